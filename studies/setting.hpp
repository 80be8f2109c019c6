#pragma once

// The paper's experiment (§6): the Sprott B system, what is learnt from, and what forecasts are
// judged against.

#include <string>
#include <vector>

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/observations/dataset.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {

struct StudyOptions {
  int adam_seeds = 50;  ///< networks trained for each cell and reading; at least 2
  int batches = 1000;   ///< of the paper's schedule, 110 steps each
  std::uint64_t seed = 1;
  int threads = 1;
};
/// A few seeds of a quarter of the schedule: two minutes instead of most of an hour.
inline constexpr StudyOptions kQuickStudy{.adam_seeds = 3, .batches = 250};

/// How the paper is read.
enum class Reading {
  paper,     ///< the text: Algorithms 1 and 2 as printed
  released,  ///< the authors' program, which differs from the text (docs/reproduction.md lists how)
  exact,     ///< the text's objective at its exact optimum, every mask enumerated; no seed
};
inline constexpr Reading kReadings[] = {Reading::paper, Reading::released, Reading::exact};
std::string reading_name(Reading reading);

/// One setting of the experiment: h = 1/`per_unit` in the paper's notation, and the dropout rate.
struct StudyCell {
  int per_unit = 500;
  double r = 0.25;
};
inline constexpr StudyCell kCells[] = {{50, 0.25},   {100, 0.25},  {250, 0.25}, {500, 0.25},
                                       {1000, 0.25}, {5000, 0.25}, {500, 0.05}, {500, 0.5}};

/// A start and the true solution from there at regular times after it.
struct TestRun {
  Vector start;
  std::vector<double> times;
  Matrix truth;  ///< time × variable
};

/// What every unit of the study shares.
struct Setting {
  System system;
  TestRun short_run;           ///< the paper's test start (-1,-1,-1) to t = 10
  TestRun long_run;            ///< the same to t = 100
  TestRun released_short_run;  ///< as the released program makes them: RK45 at rtol 1e-3
  TestRun released_long_run;
  std::vector<TestRun> starts;  ///< 100 on the attractor, to t = 10
  /// The attractor's mean and sd: the constant band mean ± 1.96 sd is what knows nothing but the
  /// range.
  Vector attractor_mean, attractor_sd;
  Vector yardstick_cover, yardstick_width;  ///< of that band, per variable, over the attractor
};
Setting make_setting();

/// Observations for h = 1/per_unit on [0, 10] from (1,1,1), as the text has it.
Dataset training_data(const Setting& setting, int per_unit);
/// The same by RK45 at the given relative tolerance (atol 1e-6) instead of the certified solution.
Dataset training_data_at(const Setting& setting, int per_unit, double rtol);

/// The released program's rows: 10 N points on [0, 100] by RK45 at rtol 1e-3, both ends included; h
/// is taken as 100/(10 N); the first N targets (u[i+1] - u[i])/h are paired with u[i-1], row 0 with
/// the last state of the run; σ_γ = h.
DerivativeRows released_rows(const Setting& setting, int per_unit);

/// The example run of figures 1 and 2; the released program starts elsewhere than the text says.
Trajectory example_run(const Setting& setting, Reading reading);

}  // namespace odecast
