#pragma once

#include <cmath>

#include "odecast/solver/solve.hpp"
#include "support/models.hpp"

namespace odecast {

/// Lotka and Volterra's law x' = x (1 - y), y' = y (x - 1), known to 1e-6, from (1, 31.07): both
/// fall to 1e-12 and return, once in a period of some 65.
inline Model predator_model() {
  Model m = make_model(decaying_model(2, 0).network());
  CoefficientSet set{{{0, 1}, {0, 4}, {1, 2}, {1, 4}},  // monomials 1, x, y, x², x y, y²
                     Eigen::Vector4d(1, -1, -1, 1),
                     1e-12 * Matrix::Identity(4, 4)};
  m.law = PolynomialPart{2, {set}};
  m.sd = Eigen::Vector2d(4, 4);
  m.size = m.sd;
  m.data_scale = 32;
  m.last_state = Eigen::Vector2d(1, 31.07);
  return m;
}

/// The solution at multiples of the step, integrated in logarithms, in which nothing is small.
inline Trajectory predators(int rows, double step) {
  const VectorField logs(2, [](double, const double* u, double* dudt) {
    dudt[0] = 1 - std::exp(u[1]);
    dudt[1] = std::exp(u[0]) - 1;
  });
  Trajectory t{"", {0}, Matrix(rows, 2)};
  t.states.row(0) << 1, 31.07;
  std::vector<double> times;
  for (int k = 1; k < rows; ++k) t.times.push_back(k * step);
  SolverOptions options;
  options.rtol = options.atol = 1e-12;
  const Solution s =
      solve(logs, 0, Eigen::Vector2d(0, std::log(31.07)), std::span(t.times).subspan(1), options);
  t.states.bottomRows(rows - 1) = s.states.array().exp().matrix();
  return t;
}

}  // namespace odecast
