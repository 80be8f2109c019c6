#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/field/vector_field.hpp"

namespace odecast {

enum class SolverMethod {
  rk45,
  radau,  ///< implicit, of order 5: for stiff fields
  rk4,
  euler,
  iterate,  ///< no differential equation but a map: u(t + fixed_step) = f(t, u(t))
};

std::string_view method_name(SolverMethod method);

/// How an integration ended. All but `finished` are blow-ups to a forecast.
enum class SolveStatus {
  finished,
  left_bound,      ///< some |u_i| exceeded SolverOptions::bound
  step_too_small,  ///< the step fell below ten spacings of t: a pole, or f is not finite
  too_many_steps,  ///< SolverOptions::max_steps
};
std::string_view status_name(SolveStatus status);

struct SolverOptions {
  /// rk45 and radau choose their own steps; rk4 and euler take equal steps of at most `fixed_step`
  /// between output times.
  SolverMethod method = SolverMethod::rk45;
  /// A step is accepted when the root mean square of error_i / (atol + rtol |u_i|) is below 1.
  /// The defaults are SciPy's. rtol is raised to 100 machine epsilons, as there.
  double rtol = 1e-3;
  double atol = 1e-6;
  /// 0 means chosen from the field (Hairer, Nørsett, Wanner, Solving ODEs I, II.4).
  double first_step = 0;
  double max_step = 1e300;
  /// Used by rk4, euler and iterate only; must then be set.
  double fixed_step = 0;
  /// Leaving |u_i| <= bound is a blow-up. The default never triggers for finite states.
  double bound = 1e300;
  /// Accepted and rejected steps together. No integration runs for ever.
  long max_steps = 100'000;
  /// Let steps end on the output times instead of interpolating. Slower; the outputs then have the
  /// full accuracy of the steps. For making truth.
  bool land_on_outputs = false;
  /// Keep the end of every accepted step in Solution::step_times.
  bool record_steps = false;
};

struct Solution {
  SolveStatus status = SolveStatus::finished;
  /// Time up to which the states are good: the last output time, or that of the blow-up.
  double reached = 0;
  /// Row i is the state at output time i. After a blow-up only the first `outputs` rows count.
  Matrix states;
  int outputs = 0;
  long accepted = 0, rejected = 0, evaluations = 0;
  /// End of every accepted step, start included, when SolverOptions::record_steps asks for it.
  std::vector<double> step_times;
  Vector end_state;
  /// What the controller would try next; a continuation may start with it.
  double next_step = 0;
};

/// The initial value problem du/dt = f(t, u), u(t0) = u0, at the given times (increasing, the
/// first not before t0). With `rk45` this is SciPy's `solve_ivp(method="RK45")`: Dormand–Prince
/// 5(4), the same error norm, step factors, first step and quartic dense output; `radau` is Radau
/// IIA (solver/detail/radau.hpp).
/// Throws Error (usage) for options out of range; how the integration ended is in the Solution.
Solution solve(const VectorField& field, double t0, const Vector& u0, std::span<const double> times,
               const SolverOptions& options);

/// Whether steps of rk45 are small by stiffness, not by the motion: that of radau needs fewer than
/// a twentieth, in a trial run of each; at most 20,000 steps of rk45 are tried.
bool is_stiff(const VectorField& field, double t0, const Vector& u0, double until,
              const SolverOptions& options);

/// Whether a variable that is seen at some times falls below `small`, but not to 0, and later rises
/// above a thousand times that. With an absolute error of that size it comes back with the sign and
/// the size that the error gave it.
bool falls_and_returns(std::span<const double> seen, double small);

/// The same options for a long run of rk45, with so fine an absolute tolerance that no variable
/// falls below ten of it and returns, or leaves the bound after it: of a million times finer ones
/// the first that does, seen at a thousand times of a trial run. Decay to 1e-12 and growth from
/// there are then resolved relative to the variable itself.
SolverOptions resolving(const VectorField& field, double t0, const Vector& u0, double until,
                        SolverOptions options);

/// Checks what solve() would refuse, so that callers can do so before long work.
void check(const SolverOptions& options);

/// A solution for use as truth, and until when it may be used as such.
struct CertifiedSolution {
  Solution solution;
  /// Up to here a second integration at another tolerance differs by less than 1 % of the standard
  /// deviation of each variable over the run. Chaos makes all numerical truth end somewhere.
  double certified_until = 0;
};

/// Until when two solutions of the same problem agree that well.
double agreed_until(const Solution& a, const Solution& b, double t0, std::span<const double> times);

/// Integrates at rtol 1e-13 and again at 2.3e-14, with steps that end on the output times.
CertifiedSolution solve_certified(const VectorField& field, double t0, const Vector& u0,
                                  std::span<const double> times);

}  // namespace odecast
