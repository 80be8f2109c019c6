#include "odecast/solver/solve.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/solver/detail/radau.hpp"
#include "odecast/solver/detail/stepper.hpp"

namespace odecast {
namespace {

/// One trajectory as a Problem of integrate().
struct OneTrajectory {
  const VectorField& field;
  std::span<const double> times;
  const Vector& u0;
  double t0;
  bool land, record;
  Solution& solution;
  std::vector<double> buffer;
  bool loaded = false;

  void evaluate(double t, const double* u, double* dudt) {
    ++solution.evaluations;
    field(t, u, dudt);
  }
  bool load(int, double* t, double* y) {
    if (loaded) return false;
    loaded = true;
    if (field.step_hook()) field.step_hook()(0);
    *t = t0;
    for (Eigen::Index i = 0; i < u0.size(); ++i) y[i] = u0[i];
    return true;
  }
  double interval(int) const { return times.back() - t0; }
  double limit(int) const {
    return land ? times[static_cast<std::size_t>(solution.outputs)] : times.back();
  }
  void pass() const {}
  bool before_step(int) const {
    if (!field.step_hook() || solution.accepted == 0) return false;
    field.step_hook()(static_cast<std::uint64_t>(solution.accepted));
    return true;
  }
  bool wants(int, double t_new) const {
    return times[static_cast<std::size_t>(solution.outputs)] <= t_new;
  }
  void step(int, double t, double h, double t_new, const double* y, const double* Q,
            const double* y_new) {
    if (record) solution.step_times.push_back(t_new);
    const auto n = u0.size();
    int& k = solution.outputs;
    for (;
         static_cast<std::size_t>(k) < times.size() && times[static_cast<std::size_t>(k)] <= t_new;
         ++k) {
      const double x = (times[static_cast<std::size_t>(k)] - t) * (1 / h);
      for (Eigen::Index i = 0; i < n; ++i)
        solution.states(k, i) =
            land ? y_new[i]
                 : y[i] + h * (x * (Q[i] + x * (Q[n + i] + x * (Q[2 * n + i] + x * Q[3 * n + i]))));
    }
  }
  bool at_end(int, double t) const { return t >= times.back(); }
  void finish(int, int status, double t, const double* y, double h) {
    solution.status = static_cast<SolveStatus>(status);
    solution.reached = t;
    solution.next_step = h;
    solution.end_state = Eigen::Map<const Vector>(y, u0.size());
  }
  void count(int, bool accepted) {
    ++(accepted ? solution.accepted : solution.rejected);
    if ((solution.accepted + solution.rejected) % 64 == 0) pulse();
  }
  double* scratch() { return buffer.data(); }
  void add_evaluations(long count) const { solution.evaluations += count; }
};

/// Equal steps between output times: of at most fixed_step, or whole numbers of it (a map). Of
/// more than max_steps none is taken: an interval is begun only if the rest of them is enough.
template <class Advance>
void equal_steps(OneTrajectory& problem, const SolverOptions& o, double* y,
                 const Advance& advance) {
  Solution& solution = problem.solution;
  const auto n = static_cast<std::size_t>(problem.u0.size());
  const bool map = o.method == SolverMethod::iterate;
  double t = 0;
  problem.load(0, &t, y);
  while (static_cast<std::size_t>(solution.outputs) < problem.times.size()) {
    const double start = t, end = problem.limit(0), steps = (end - start) / o.fixed_step;
    const double pieces = std::max(1.0, map ? std::round(steps) : std::ceil(steps * (1 - 1e-12)));
    if (pieces > static_cast<double>(o.max_steps - solution.accepted))
      return problem.finish(0, kTooManySteps, t, y, 0);
    const double h = map ? o.fixed_step : (end - start) / pieces;
    for (double piece = 0; piece < pieces; ++piece) {
      problem.before_step(0);
      advance(t, h);
      t = piece + 1 == pieces ? end : start + (piece + 1) * h;
      problem.count(0, true);
      if (!std::all_of(y, y + n, [&](double x) { return std::abs(x) <= o.bound; }))
        return problem.finish(0, kLeftBound, t, y, 0);
    }
    problem.step(0, start, end - start, end, y, nullptr, y);
  }
  problem.finish(0, kFinished, t, y, o.fixed_step);
}

template <const Tableau& M>
void integrate_fixed(OneTrajectory& problem, const SolverOptions& o, std::vector<double>& work) {
  const int n = static_cast<int>(problem.u0.size());
  double *y = work.data(), *y_new = y + n, *stage = y_new + n, *K = stage + n;
  equal_steps(problem, o, y, [&](double t, double h) {
    problem.evaluate(t, y, K);
    take_stages<M>(problem, n, t, h, y, K, stage, y_new);
    std::copy_n(y_new, n, y);
  });
}

/// The map applied again and again.
void iterate(OneTrajectory& problem, const SolverOptions& o, std::vector<double>& work) {
  const auto n = problem.u0.size();
  double *y = work.data(), *y_new = y + n;
  equal_steps(problem, o, y, [&](double t, double) {
    problem.evaluate(t, y, y_new);
    std::copy_n(y_new, n, y);
  });
}

}  // namespace

std::string_view method_name(SolverMethod method) {
  switch (method) {
    case SolverMethod::rk45: return "rk45";
    case SolverMethod::radau: return "radau";
    case SolverMethod::rk4: return "rk4";
    case SolverMethod::euler: return "euler";
    case SolverMethod::iterate: return "iterate";
  }
  return "";
}

std::string_view status_name(SolveStatus status) {
  switch (status) {
    case SolveStatus::finished: return "finished";
    case SolveStatus::left_bound: return "left the bound";
    case SolveStatus::step_too_small: return "step too small";
    case SolveStatus::too_many_steps: return "too many steps";
  }
  return "";
}

void check(const SolverOptions& o) {
  const auto require = [](bool good, const char* name, double value, const char* expected) {
    if (!good)
      throw_usage({"option `" + std::string(name) + "`", format_number(value), expected,
                   "Give a value in that range."});
  };
  require(o.rtol >= 0 && o.rtol < 1, "rtol", o.rtol, "a number in [0, 1)");
  require(o.atol >= 0 && std::isfinite(o.atol), "atol", o.atol, "a finite number >= 0");
  require(o.first_step >= 0, "first_step", o.first_step, "a number >= 0");
  require(o.max_step > 0, "max_step", o.max_step, "a number > 0");
  require(o.bound > 0, "bound", o.bound, "a number > 0");
  require(o.max_steps > 0, "max_steps", static_cast<double>(o.max_steps), "a number > 0");
  require(o.method == SolverMethod::rk45 || o.method == SolverMethod::radau || o.fixed_step > 0,
          "fixed_step", o.fixed_step, "a number > 0 for the methods rk4, euler and iterate");
}

Solution solve(const VectorField& field, double t0, const Vector& u0, std::span<const double> times,
               const SolverOptions& options) {
  check(options);
  assert(field.dimension() == u0.size() && !times.empty() && times.front() >= t0);
  const int n = static_cast<int>(u0.size());
  Solution solution;
  solution.states.resize(static_cast<Eigen::Index>(times.size()), n);
  if (options.record_steps) solution.step_times.push_back(t0);
  solution.reached = t0;
  solution.end_state = u0;
  for (; static_cast<std::size_t>(solution.outputs) < times.size() &&
         times[static_cast<std::size_t>(solution.outputs)] == t0;
       ++solution.outputs)
    solution.states.row(solution.outputs) = u0.transpose();
  if (static_cast<std::size_t>(solution.outputs) == times.size()) return solution;

  const bool adaptive =
      options.method == SolverMethod::rk45 || options.method == SolverMethod::radau;
  OneTrajectory problem{field,
                        times,
                        u0,
                        t0,
                        options.land_on_outputs || !adaptive,
                        options.record_steps,
                        solution,
                        std::vector<double>(static_cast<std::size_t>(3 * n))};
  std::vector<double> work(static_cast<std::size_t>(workspace_size(n)));
  if (options.method == SolverMethod::rk4) {
    integrate_fixed<kRungeKutta4>(problem, options, work);
  } else if (options.method == SolverMethod::euler) {
    integrate_fixed<kEuler>(problem, options, work);
  } else if (options.method == SolverMethod::iterate) {
    iterate(problem, options, work);
  } else {
    const double rtol = std::max(options.rtol, 100 * std::numeric_limits<double>::epsilon());
    const StepLimits limits{rtol,          options.atol,     options.first_step, options.max_step,
                            options.bound, options.max_steps};
    if (options.method == SolverMethod::radau)
      Radau(field, limits).integrate(problem);
    else
      integrate(problem, n, limits, work.data());
  }
  return solution;
}

double agreed_until(const Solution& one, const Solution& other, double t0,
                    std::span<const double> times) {
  const int rows = std::min(one.outputs, other.outputs);
  if (rows == 0) return t0;
  const Matrix& a = one.states;
  const Vector mean = a.topRows(rows).colwise().mean();
  const Vector sd =
      ((a.topRows(rows).rowwise() - mean.transpose()).array().square().colwise().mean())
          .sqrt()
          .matrix();
  double until = t0;
  for (int i = 0; i < rows; ++i) {
    for (Eigen::Index j = 0; j < a.cols(); ++j)
      if (!(std::abs(a(i, j) - other.states(i, j)) <= 0.01 * sd[j] + 1e-9 * std::abs(a(i, j))))
        return until;
    until = times[static_cast<std::size_t>(i)];
  }
  return until;
}

bool is_stiff(const VectorField& field, double t0, const Vector& u0, double until,
              const SolverOptions& options) {
  constexpr long kTried = 20'000, kMany = 1000, kFewer = 20;
  if (options.method != SolverMethod::rk45) return false;
  const double end[] = {until};
  SolverOptions trial = options;
  trial.max_steps = kTried;
  const Solution by_rk45 = solve(field, t0, u0, end, trial);
  const long steps = by_rk45.accepted + by_rk45.rejected;
  if (steps < kMany ||
      (by_rk45.status != SolveStatus::finished && by_rk45.status != SolveStatus::too_many_steps))
    return false;
  trial.method = SolverMethod::radau;
  trial.max_steps = steps / kFewer;
  const double as_far[] = {by_rk45.reached};
  return solve(field, t0, u0, as_far, trial).status == SolveStatus::finished;
}

bool falls_and_returns(std::span<const double> seen, double small) {
  bool fallen = false;
  for (const double u : seen) {
    if (fallen && std::abs(u) > 1e3 * small) return true;
    fallen = fallen || (std::abs(u) < small && u != 0);
  }
  return false;
}

SolverOptions resolving(const VectorField& field, double t0, const Vector& u0, double until,
                        SolverOptions options) {
  constexpr int kLooks = 1000;
  constexpr double kErrors = 10, kFiner = 1e-6, kFinest = 1e-30;
  if (options.method != SolverMethod::rk45) return options;
  std::vector<double> times, seen;
  for (int k = 1; k <= kLooks; ++k) times.push_back(t0 + (until - t0) * k / kLooks);
  for (; options.atol > kFinest; options.atol *= kFiner) {
    const Solution run = solve(field, t0, u0, times, options);
    bool lost = false;
    for (Eigen::Index i = 0; i < u0.size() && !lost; ++i) {
      seen.assign(1, u0[i]);
      for (int k = 0; k < run.outputs; ++k) seen.push_back(run.states(k, i));
      // What left the bound rose in the end.
      if (run.status != SolveStatus::finished) seen.push_back(options.bound);
      lost = falls_and_returns(seen, kErrors * options.atol);
    }
    if (!lost) break;
  }
  return options;
}

CertifiedSolution solve_certified(const VectorField& field, double t0, const Vector& u0,
                                  std::span<const double> times) {
  SolverOptions options;
  options.land_on_outputs = true;
  options.max_steps = 1'000'000'000;  // bounded by the spacing of t; a long run is a user's wish
  options.bound = 1e100;
  const auto run = [&](double tolerance) {
    options.rtol = options.atol = tolerance;
    return solve(field, t0, u0, times, options);
  };
  const Solution second = run(1e-13);
  CertifiedSolution result{run(2.3e-14), t0};
  result.certified_until = agreed_until(result.solution, second, t0, times);
  return result;
}

}  // namespace odecast
