#pragma once

#include <functional>

#include "odecast/core/budget.hpp"
#include "odecast/core/matrix.hpp"

namespace odecast {

struct LbfgsOptions {
  int memory = 20;
  int max_iterations = 10'000;
  /// Converged when max_i |θ_i g_i| <= gradient_tolerance × f. Each product has the units of f, so
  /// that the test does not depend on the units of θ. Near a minimum f is off by about the square
  /// of this; below 1e-8 round-off in f hides the way down.
  double gradient_tolerance = 1e-7;
  const Budget* budget = nullptr;  ///< f spends it; the iteration ends when it is over
};

struct LbfgsResult {
  bool converged = false;
  int iterations = 0, evaluations = 0;
  double value = 0;
  double gradient = 0;  ///< max_i |θ_i g_i| / f at the end
};

/// Value at θ; writes the gradient.
using SmoothFunction = std::function<double(const Vector& theta, Vector& gradient)>;

/// Minimises f > 0 from θ, in place, by L-BFGS (Nocedal & Wright, Numerical Optimization, 2nd ed.,
/// algorithm 7.5) with a line search for the strong Wolfe conditions (algorithms 3.5 and 3.6,
/// c1 = 1e-4, c2 = 0.9). When no step decreases f any more, round-off decides: that counts as
/// converged up to a hundred times the tolerance.
LbfgsResult minimise(const SmoothFunction& f, Vector& theta, const LbfgsOptions& options);

}  // namespace odecast
