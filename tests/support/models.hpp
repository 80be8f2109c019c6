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

/// theta' = v, v' = -0.9 sin(theta) - 0.1 v in units of its own; with 0.3 in the place of that sine
/// S' = -1.2 S/(k + S) too, k = 0.3 in the first set and 0.4 in the second.
inline Model model_with_functions() {
  Model m = make_model(decaying_model(3, 0).network());
  m.variables = {"theta", "v", "the S"};
  m.scaling = {Eigen::Vector3d(0.1, 0, 1), Eigen::Vector3d(2, 1.5, 0.5), 0.5};
  m.last_state = Eigen::Vector3d(1, 0, 2);
  Tape tape(m.variables);
  const int k = tape.parameter("k");
  const int sine = parse_expression("sin(theta)", tape),
            uptake =
                tape.make(Op::divide, tape.argument(2), tape.make(Op::add, k, tape.argument(2))),
            root = parse_expression("sqrt(v) + sign(v)", tape);
  PolynomialPart part{1, {}};
  part.functions = std::make_shared<const FunctionTerms>(
      tape, std::vector<FunctionTerms::Term>{{sine, 0.7}, {uptake, 0.8}, {root, 1}},
      std::vector<InnerNumber>{{"k", 0.25, 1e-3, true}}, m.scaling.offset, m.scaling.scale, 3);
  const Vector rate = m.scaling.rate();
  for (const double value : {0.3, 0.4}) {
    // theta' = v: 4 v' of the model is 1.5 v.
    CoefficientSet set{{{0, 2}, {1, 2}, {1, 4}, {2, 5}}, Vector(5), 1e-6 * Matrix::Identity(5, 5)};
    set.theta << 1.5 / rate[0], -0.1 * 1.5 / rate[1], -0.9 * 0.7 / rate[1], -1.2 * 0.8 / rate[2],
        part.functions->numbers()[0].z(value);
    set.covariance(4, 4) = 100;
    set.weight = value == 0.3 ? 0.75 : 0.25;
    part.sets.push_back(std::move(set));
  }
  m.law = std::move(part);
  return m;
}

}  // namespace odecast
