// What the machinery of forecasts and their judgement promises exactly: if the truth is one more
// draw of what the forecast is made of, its rank among the draws is uniform and bands by order
// statistics hold it as often as they say (Talts et al. 2018, simulation-based calibration). Every
// trial draws the ensemble and the truth anew.

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/scores/evaluate.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

constexpr int kTrials = 100'000, kBins = 20;
constexpr std::uint64_t kTruthSeed = 1'000'000'000;  // far from the seeds of the ensembles
const Vector kStart = Vector::Ones(3), kNoise = Vector::Constant(3, 0.1);

Model fitted(const Method& method) {
  const System system = find_system("SprottB");
  std::vector<double> times = regular_times(0, 5, 0.05);
  times.insert(times.begin(), 0.0);
  Dataset data{system.variables,
               {{"", times, solve_certified(system.field, 0, kStart, times).solution.states}}};
  add_noise(data, noise_level(data, 0.1, NoiseOf::sd), 1);
  Model model = fit(data, {.method = method}).model;
  if (std::holds_alternative<TrajectoryMethod>(method)) {
    // Two sets of terms in equal parts, so that draws differ in kind.
    EXPECT_GE(model.polynomial()->sets.size(), 2u);
    model.polynomial()->sets.resize(2);
    for (auto& m : model.polynomial()->sets) m.weight = 0.5;
  }
  return model;
}

/// As many draws as trials of the state at time `until`: rows. The other options say where they
/// start.
Matrix draws_of(const Model& model, ForecastOptions o, double until) {
  Matrix all(kTrials, 3);
  o.times = {until};
  o.draws = o.samples = 1000;
  o.bands = Bands::sd;
  for (int first = 0; first < kTrials; first += 1000) {
    o.seed = kTruthSeed + static_cast<std::uint64_t>(first);
    const Forecast f = forecast(model, o, ignore_progress);
    EXPECT_EQ(f.samples.size(), 1000u);
    for (int k = 0; k < 1000; ++k)
      all.row(first + k) = f.samples[static_cast<std::size_t>(k)].row(1);
  }
  return all;
}

/// Trials of one start and one lead each: two rows from kStart to what is compared at time 1.
Evaluation evaluate_trials(const Model& model, const Matrix& ends, EvaluateOptions o) {
  Dataset truth{model.variables, {}};
  for (int k = 0; k < kTrials; ++k) {
    Trajectory& t = truth.trajectories.emplace_back();
    t.id = std::to_string(k);
    t.times = {0, 1};
    t.states.resize(2, 3);
    t.states << kStart.transpose(), ends.row(k);
  }
  o.starts = kTrials;
  o.horizon = 1;
  o.leads = 1;
  o.bins = 2 * kBins;
  o.forecast.draws = 2 * kBins - 1;  // 40 ranks
  return evaluate(model, truth, o, ignore_progress);
}

void expect_uniform(const Evaluation& e) {
  EXPECT_EQ(e.starts, kTrials);
  // χ² with 19 degrees of freedom is below 43.82 with probability 0.999.
  double chi = 0;
  for (std::size_t b = 0; b < kBins; ++b) {
    const double expected = static_cast<double>(kTrials) / kBins;
    const double count = e.ranks[2 * b] + e.ranks[2 * b + 1];
    chi += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi, 43.82) << ::testing::PrintToString(e.ranks);
  EXPECT_GT(e.uniformity, 0.001) << "of all 40 ranks";
  // Of 39 draws the least and the greatest hold the truth with probability 38/40; standard error
  // 0.0007.
  const double covered = 1 - static_cast<double>(e.ranks.front() + e.ranks.back()) / kTrials;
  EXPECT_NEAR(covered, 0.95, 0.003);
  printf("chi-square %.1f, p %.3f, cover %.4f\n", chi, e.uniformity, covered);
}

// Fields, starts and the noise of observations are all drawn.
TEST(SelfConsistencyTest, RanksOfTheTrajectoryPosterior) {
  const Model model = fitted(TrajectoryMethod{});
  Matrix ends = draws_of(model, {.init = kStart, .init_sd = kNoise}, 1);
  Stream stream(3, Purpose::evaluation, 0);
  for (double& x : ends.reshaped()) x += kNoise[0] * stream.normal();
  EvaluateOptions o;
  o.observations = true;
  o.forecast.noise = kNoise;
  expect_uniform(evaluate_trials(model, ends, o));
}

// Masks repeat, and the truth equals some of the draws: ties are broken by chance.
TEST(SelfConsistencyTest, RanksOfTheDropoutPosterior) {
  const Model model = fitted(DropoutMethod{});
  expect_uniform(evaluate_trials(model, draws_of(model, {.init = kStart}, 1), {}));
}

// Continued from where the data end, coefficients and last state drawn together. At level 1 - 2/(M
// - 1) the quantiles of M draws are their second and last but one (type 7), and hold one more draw
// with probability 1 - 4/(M + 1): 0.95 for M = 79.
TEST(SelfConsistencyTest, QuantileBandOfAForecast) {
  const Model model = fitted(TrajectoryMethod{});
  const auto posterior = make_posterior(model);
  const double until = model.last_time + 1;
  const Matrix truth = draws_of(model, {}, until);
  ForecastOptions o;
  o.times = {until};
  o.draws = 79;
  o.level = 1 - 2.0 / 78;
  o.bands = Bands::quantiles;
  Vector covered = Vector::Zero(3);
  for (int k = 0; k < kTrials; ++k) {
    o.seed = static_cast<std::uint64_t>(k);
    const Forecast f = forecast(*posterior, model, o, ignore_progress);
    for (int i = 0; i < 3; ++i)
      covered[i] +=
          (f.q_lower(1, i) <= truth(k, i) && truth(k, i) <= f.q_upper(1, i)) / double{kTrials};
  }
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(covered[i], 0.95, 0.003) << "standard error 0.0007";
  printf("cover %.4f %.4f %.4f\n", covered[0], covered[1], covered[2]);
}

}  // namespace
}  // namespace odecast
