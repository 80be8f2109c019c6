#pragma once

#include "odecast/model/model.hpp"
#include "support/kernels.hpp"

namespace odecast {

/// A model around a network, with units and a last state.
inline Model make_model(Network network) {
  Model m;
  const int n = network.inputs();
  for (int i = 0; i < n; ++i) m.variables.push_back(std::string(1, static_cast<char>('x' + i)));
  m.scaling = no_scaling(n);
  m.law = std::move(network);
  m.last_time = 2;
  m.last_state = Vector::LinSpaced(n, 0.5, 1);
  m.step = 0.1;
  m.data_scale = 1;
  m.size = Vector::Ones(n);
  m.training = {"adam", "forward", "schedule_done", "test", 1, 2, 10, 1, 5, 1.25, 3};
  return m;
}

/// du/dt = -u through two units of degree 1 per variable, each with half of it.
inline Model decaying_model(int n, double dropout) {
  // W2 W1 = -(identity) shared by 2n units of degree 1.
  const int k = 2 * n;
  Network network = make_network(n, {{k, Activation::power, 1, dropout, false}}, n, 1);
  network.layers[0].weights.setZero();
  network.layers[1].weights.setZero();
  for (int j = 0; j < k; ++j) {
    network.layers[0].weights(j, j % n) = 1;
    network.layers[1].weights(j % n, j) = -0.5;
  }
  return make_model(std::move(network));
}

/// du/dt = a u² in one variable, dropped or not: u = 1/(1/u0 - a t) has a pole at 1/(a u0).
inline Model exploding_model(double dropout, int units = 1, double a = 1) {
  Network network = make_network(1, {{units, Activation::power, 2, dropout, false}}, 1, 1);
  network.layers[0].weights.setOnes();
  network.layers[1].weights.setConstant(a);
  Model m = make_model(std::move(network));
  m.last_state = Vector::Ones(1);
  return m;
}

/// du/dt = a u in one variable, known exactly, with kicks of that sd, one in every interval.
inline Model forced_model(double a, double sd, double interval) {
  Model m = make_model(decaying_model(1, 0).network());
  m.trajectory = {2, 0.5, 0, 3, true, {Vector::Constant(1, sd), interval}};
  m.law = PolynomialPart{1, {{{{0, 1}}, Vector::Constant(1, a), Matrix::Zero(1, 1)}}};
  return m;
}

}  // namespace odecast
