#pragma once
// Systems that filters are tested with, and rows of them.

#include <limits>

#include "odecast/filter/filter.hpp"
#include "odecast/solver/solve.hpp"
#include "support/models.hpp"

namespace odecast {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Known terms of two or three variables, `doubt` the sd of each coefficient.
inline Model known(std::vector<CoefficientSet> sets, int variables, int degree) {
  Model m = make_model(decaying_model(variables, 0).network());
  m.law = PolynomialPart{degree, std::move(sets), nullptr};
  m.sd = Vector::Ones(variables);
  m.last_time = -1e6;  // the data end long before
  return m;
}

/// A turning and shrinking map of two variables: a linear system without a solver's error.
inline Model turning() {
  CoefficientSet set{{{0, 1}, {0, 2}, {1, 1}, {1, 2}}, Vector(4), 1e-30 * Matrix::Identity(4, 4)};
  set.theta << 0.95, 0.2, -0.25, 0.9;
  set.weight = 1;
  Model m = known({set}, 2, 1);
  m.kind = ModelKind::map;
  m.step = 1;
  m.last_time = -10;
  m.last_state_sd = Eigen::Vector2d(1, 1);
  m.noise = Eigen::Vector2d(0.5, 0.5);
  return m;
}

/// Lorenz's equations in units of 10, 10 and 30, by the terms' places among those of degree 2: 1,
/// x, y, z, x², xy, xz, y², yz, z².
inline Model lorenz(double rho = 28) {
  CoefficientSet set{{{0, 1}, {0, 2}, {1, 1}, {1, 2}, {1, 6}, {2, 3}, {2, 5}},
                     Vector(7),
                     1e-30 * Matrix::Identity(7, 7)};
  set.theta << -10, 10, rho, -1, -30, -8.0 / 3, 100.0 / 30;
  set.weight = 1;
  Model m = known({set}, 3, 2);
  m.scaling.scale = Eigen::Vector3d(10, 10, 30);
  m.size = m.sd = Eigen::Vector3d(8, 9, 9);
  m.last_state = Eigen::Vector3d(0, 0, 24);
  m.noise = Vector::Constant(3, 1);
  m.data_scale = 3;
  return m;
}

inline Matrix lorenz_rows(int rows, double gap, double sd, std::uint64_t seed,
                          Matrix* truth = nullptr, double rho = 28) {
  const auto drawn = make_posterior(lorenz(rho))->draw(1, 0);
  Stream stream(seed, Purpose::observation_noise, 0);
  Vector v = Eigen::Vector3d(0.1 * stream.normal(), 0.3, 0.8);
  Matrix seen(rows, 3);
  if (truth) truth->resize(rows, 3);
  SolverOptions o;
  o.rtol = o.atol = 1e-8;
  for (int k = -40; k < rows; ++k) {
    const double t[] = {gap};
    v = solve(drawn, 0, v, t, o).states.row(0).transpose();
    if (k < 0) continue;
    const Vector u = lorenz().scaling.to_user(v);
    if (truth) truth->row(k) = u.transpose();
    for (int i = 0; i < 3; ++i) seen(k, i) = u[i] + sd * stream.normal();
  }
  return seen;
}

inline Observing all_of(const Model& m) { return observing_variables(m, m.variables, "rows"); }

/// Lorenz's equations as a fit knows them, each coefficient to a part in 500.
inline Model doubtful_lorenz() {
  Model m = lorenz();
  CoefficientSet& set = m.polynomial()->sets[0];
  set.covariance = (0.002 * set.theta).cwiseAbs2().asDiagonal();
  return m;
}

}  // namespace odecast
