#include "studies/setting.hpp"

#include <cassert>
#include <cmath>

#include "odecast/core/times.hpp"
#include "odecast/solver/solve.hpp"

namespace odecast {
namespace {

Vector state(double x, double y, double z) { return (Vector(3) << x, y, z).finished(); }

TestRun certified_run(const System& system, const Vector& start, double until, double step) {
  TestRun run{start, regular_times(0, until, step), {}};
  const CertifiedSolution truth = solve_certified(system.field, 0, start, run.times);
  assert(truth.certified_until >= until);
  run.truth = truth.solution.states;
  return run;
}

TestRun rough_run(const System& system, const Vector& start, double until, double step) {
  TestRun run{start, regular_times(0, until, step), {}};
  run.truth = solve(system.field, 0, start, run.times, {}).states;
  return run;
}

Dataset with_start(const System& system, const Vector& start, const std::vector<double>& times,
                   const Matrix& states) {
  Trajectory t{"", {0.0}, Matrix(states.rows() + 1, states.cols())};
  t.times.insert(t.times.end(), times.begin(), times.end());
  t.states.row(0) = start.transpose();
  t.states.bottomRows(states.rows()) = states;
  return {system.variables, {std::move(t)}};
}

}  // namespace

std::string reading_name(Reading reading) {
  switch (reading) {
    case Reading::paper: return "paper";
    case Reading::released: return "released";
    case Reading::exact: return "exact";
  }
  return "";
}

Setting make_setting() {
  Setting s{.system = find_system("SprottB"),
            .short_run = {},
            .long_run = {},
            .released_short_run = {},
            .released_long_run = {},
            .starts = {},
            .attractor_mean = {},
            .attractor_sd = {},
            .yardstick_cover = {},
            .yardstick_width = {}};
  const Vector test = state(-1, -1, -1);
  s.short_run = certified_run(s.system, test, 10, 0.02);
  s.long_run = certified_run(s.system, test, 100, 0.1);
  s.released_short_run = rough_run(s.system, test, 10, 0.02);
  s.released_long_run = rough_run(s.system, test, 100, 0.1);

  // The attractor, after a transient of 100 time units: 100,000 of them, and every 1000th a start.
  SolverOptions fine;
  fine.rtol = fine.atol = 1e-9;
  fine.max_steps = 100'000'000;
  const std::vector<double> times = regular_times(100, 100'100, 0.1);
  const Matrix orbit = solve(s.system.field, 0, state(1, 1, 1), times, fine).states;
  s.attractor_mean = orbit.colwise().mean().transpose();
  const Matrix centred = orbit.rowwise() - s.attractor_mean.transpose();
  s.attractor_sd = centred.array().square().colwise().mean().sqrt().matrix().transpose();
  s.yardstick_width = 2 * 1.96 * s.attractor_sd;
  s.yardstick_cover = Vector::Zero(3);
  for (int i = 0; i < 3; ++i)
    s.yardstick_cover[i] =
        (centred.col(i).array().abs() <= 1.96 * s.attractor_sd[i]).cast<double>().mean();
  for (int k = 1; k <= 100; ++k)
    s.starts.push_back(certified_run(s.system, orbit.row(k * 10'000 - 1).transpose(), 10, 0.05));
  return s;
}

Dataset training_data(const Setting& s, int per_unit) {
  const TestRun run = certified_run(s.system, state(1, 1, 1), 10, 1.0 / per_unit);
  return with_start(s.system, run.start, run.times, run.truth);
}

Dataset training_data_at(const Setting& s, int per_unit, double rtol) {
  const std::vector<double> times = regular_times(0, 10, 1.0 / per_unit);
  SolverOptions options;
  options.rtol = rtol;
  const Vector start = state(1, 1, 1);
  return with_start(s.system, start, times, solve(s.system.field, 0, start, times, options).states);
}

DerivativeRows released_rows(const Setting& s, int per_unit) {
  const int points = 10 * per_unit;
  std::vector<double> times;
  for (int i = 0; i < points; ++i) times.push_back(100.0 * i / (points - 1));
  const Matrix u = solve(s.system.field, 0, state(1, 1, 1), times, {}).states;
  const double h = 100.0 / points;
  DerivativeRows rows{Matrix(per_unit, 3), Matrix(per_unit, 3), Matrix::Constant(per_unit, 3, h)};
  for (int i = 0; i < per_unit; ++i) {
    rows.states.row(i) = u.row(i == 0 ? points - 1 : i - 1);
    rows.derivatives.row(i) = (u.row(i + 1) - u.row(i)) / h;
  }
  return rows;
}

Trajectory example_run(const Setting& s, Reading reading) {
  const Vector start = reading == Reading::released ? state(0.1, 1, -0.1) : state(0.1, 0.1, -0.1);
  const TestRun run = reading == Reading::released ? rough_run(s.system, start, 100, 0.02)
                                                   : certified_run(s.system, start, 100, 0.02);
  return with_start(s.system, start, run.times, run.truth).trajectories[0];
}

}  // namespace odecast
