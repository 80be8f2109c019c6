#include "odecast/scores/evaluate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "support/predators.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

Dataset run(const System& system, const Vector& start, double until, double step) {
  std::vector<double> times = regular_times(0, until, step);
  times.insert(times.begin(), 0.0);
  const auto truth = solve_certified(system.field, 0, start, times);
  return {system.variables, {{"", times, truth.solution.states}}, truth.certified_until};
}

// E|X - y| - ½ E|X - X'| in one dimension, over all pairs of different draws.
TEST(EvaluateTest, EnergyScoreIsTheDoubleSum) {
  Stream stream(1, Purpose::evaluation, 0);
  Matrix draws(30, 2);
  for (Eigen::Index k = 0; k < draws.rows(); ++k) draws.row(k) << stream.normal(), stream.normal();
  const Vector y = Eigen::Vector2d(0.3, -1);
  double distance = 0, pairs = 0;
  for (int k = 0; k < 30; ++k) {
    distance += (draws.row(k).transpose() - y).norm() / 30;
    for (int l = 0; l < 30; ++l)
      if (l != k) pairs += (draws.row(k) - draws.row(l)).norm() / (30 * 29);
  }
  EXPECT_NEAR(energy_score(draws, y), distance - pairs / 2, 1e-12);
}

// Of a standard normal and y from it, E CRPS = 1/√π: the energy score of one variable is the CRPS.
TEST(EvaluateTest, EnergyScoreOfACalibratedNormal) {
  Stream stream(2, Purpose::evaluation, 0);
  double sum = 0, square = 0;
  constexpr int trials = 4000;
  for (int i = 0; i < trials; ++i) {
    Matrix draws(40, 1);
    for (Eigen::Index k = 0; k < 40; ++k) draws(k, 0) = stream.normal();
    const double score = energy_score(draws, Vector::Constant(1, stream.normal()));
    sum += score / trials;
    square += score * score / trials;
  }
  EXPECT_NEAR(sum, 1 / std::sqrt(M_PI), 5 * std::sqrt((square - sum * sum) / trials));
}

// Exchangeable scores: the next one is below the factor with probability ⌈(N+1) level⌉ / (N+1).
TEST(EvaluateTest, ConformalFactorsHoldTheNextScore) {
  Stream stream(3, Purpose::evaluation, 0);
  constexpr int trials = 20000, N = 39;
  long below = 0;
  Evaluation e;
  e.variables = {"x"};
  e.leads = {1};
  e.starts = N;
  e.level = 0.9;
  for (int i = 0; i < trials; ++i) {
    Matrix scores(N, 1);
    for (Eigen::Index k = 0; k < N; ++k) scores(k, 0) = -portable_log(stream.uniform());
    e.scores = {scores};
    below += -portable_log(stream.uniform()) <= conformal(e).factors(0, 0);
  }
  EXPECT_NEAR(static_cast<double>(below) / trials, 36.0 / 40, 5 * std::sqrt(0.9 * 0.1 / trials));
  e.level = 0.99;
  EXPECT_THROW(conformal(e), Error) << "39 starts cannot hold 99 %";
}

// Means over windows of white noise, one window for each step: correlated by as much as they
// overlap, with a variance of their mean that a sum gives exactly.
struct Windows {
  static constexpr int length = 20, count = 600;
  std::vector<StartPlace> starts, apart;
  Windows() {
    for (int i = 0; i < count; ++i)
      starts.push_back({0, static_cast<double>(i)}), apart.push_back({i, 0.0});
  }
  /// √length × the mean of each window: normal, with variance 1.
  std::vector<double> draw(Stream& stream) const {
    std::vector<double> noise, values;
    for (int i = 0; i < count + length; ++i) noise.push_back(stream.normal());
    for (int i = 0; i < count; ++i) {
      double sum = 0;
      for (int k = 0; k < length; ++k) sum += noise[static_cast<std::size_t>(i + k)];
      values.push_back(sum / std::sqrt(length));
    }
    return values;
  }
};

TEST(EvaluateTest, StandardErrorsKnowThatForecastsOverlap) {
  const Windows windows;
  Stream stream(5, Purpose::evaluation, 0);
  double variance = 0, claimed = 0, square = 0, naive = 0;
  for (int i = 0; i < Windows::count; ++i)
    for (int j = 0; j < Windows::count; ++j)
      variance += std::max(0.0, 1 - std::abs(i - j) / 20.0) / (Windows::count * Windows::count);
  constexpr int trials = 400;
  for (int k = 0; k < trials; ++k) {
    const std::vector<double> values = windows.draw(stream);
    const double one = std::pow(mean_of(values, windows.starts, 20).standard_error, 2);
    claimed += one / trials;
    square += one * one / trials;
    naive += std::pow(mean_of(values).standard_error, 2) / trials;
    EXPECT_EQ(mean_of(values, windows.apart, 20).standard_error, mean_of(values).standard_error);
  }
  // Of ∫(1 - x)dx up to 1, weights 1 - x/2 leave 5/6.
  EXPECT_NEAR(claimed / variance, 5.0 / 6,
              5 * std::sqrt((square - claimed * claimed) / trials) / variance + 0.02);
  EXPECT_LT(naive / variance, 0.07);
  EXPECT_NEAR(effective_number(windows.starts, 20), 1 / variance, 1e-9);
  EXPECT_EQ(effective_number(windows.apart, 20), Windows::count);
  EXPECT_NEAR(effective_number({{0, 1}, {0, 1.5}, {1, 1.5}}, 2), 9 / (3 + 2 * 0.75), 1e-12);
}

TEST(EvaluateTest, OverlapIsNotTakenForRanksThatAreNotUniform) {
  const Windows windows;
  Stream stream(6, Purpose::evaluation, 0);
  constexpr int trials = 400;
  double rejected = 0, naive = 0, missed = 0;
  for (int k = 0; k < trials; ++k) {
    std::vector<int> bins, wide;
    for (const double z : windows.draw(stream)) {
      bins.push_back(static_cast<int>(5 * std::erfc(-z / std::sqrt(2.0))));
      wide.push_back(static_cast<int>(5 * std::erfc(-2 * z / std::sqrt(2.0))));
    }
    rejected += uniformity_of(bins, 10, windows.starts, 20) < 0.01;
    naive += uniformity_of(bins, 10, windows.apart, 20) < 0.01;
    missed += uniformity_of(wide, 10, windows.starts, 20) >= 0.01;
  }
  printf(
      "rejected at 1 %%: %.3f, by independent starts %.3f; bands half as wide as they ought to be "
      "are missed in %.3f\n",
      rejected / trials, naive / trials, missed / trials);
  // Neighbours have the same rank here: the worst case, as ranks are taken at leads at random. The
  // few independent windows leave 5/6 of the variance in doubt, and χ² scaled by the mean of its
  // eigenvalues has longer tails than χ².
  EXPECT_LT(rejected / trials, 0.1 + 5 * std::sqrt(0.1 / trials));
  EXPECT_GT(naive / trials, 0.7);
  EXPECT_LT(missed / trials, 0.01);
}

class ModelTest : public ::testing::Test {
 protected:
  const System system = find_system("SprottB");
  const Dataset train = run(system, Vector::Ones(3), 20, 0.02);
  const Dataset test = run(system, Eigen::Vector3d(0.5, -0.2, 1), 60, 0.05);
  const FitOptions network{
      .method = DropoutMethod{.dropout = 0.02, .rows = {.derivative = DerivativeMethod::central4}}};
  const Model model = [&] { return fit(train, network).model; }();
  const EvaluateOptions options = [] {
    EvaluateOptions o;
    o.starts = 60;
    o.horizon = 3;
    o.leads = 12;
    o.forecast.draws = 100;
    o.forecast.blow_up = BlowUp::until;
    return o;
  }();
};

TEST_F(ModelTest, OneStartIsTheForecastFromThere) {
  EvaluateOptions o = options;
  o.starts = 2;
  const Evaluation e = evaluate(model, test, o, ignore_progress);
  ASSERT_EQ(e.starts, 2);
  ASSERT_EQ(e.leads.size(), 12u);
  EXPECT_DOUBLE_EQ(e.leads.back(), 3);
  // The first start is the first row: its forecast by hand.
  ForecastOptions f = o.forecast;
  f.init = test.trajectories[0].states.row(0).transpose();
  f.from = 0;
  for (const double lead : e.leads) f.times.push_back(lead);
  const Forecast by_hand = forecast(model, f, ignore_progress);
  for (std::size_t j = 0; j < 12; ++j)
    for (Eigen::Index i = 0; i < 3; ++i) {
      const auto row = static_cast<Eigen::Index>(j + 1);
      const double y = test.trajectories[0].states(std::lround(e.leads[j] / 0.05), i);
      EXPECT_NEAR(e.scores[j](0, i),
                  std::abs(y - by_hand.mean(row, i)) /
                      (by_hand.sd(row, i) + kCalibrationFloor * model.size[i]),
                  1e-9);
    }
}

Dataset without(const Dataset& data, double from, double until) {
  Dataset kept = data;
  Trajectory& to = kept.trajectories[0];
  const Trajectory& t = data.trajectories[0];
  to.times.clear();
  to.states.resize(0, 3);
  for (int i = 0; i < t.rows(); ++i) {
    if (t.times[static_cast<std::size_t>(i)] > from && t.times[static_cast<std::size_t>(i)] < until)
      continue;
    to.times.push_back(t.times[static_cast<std::size_t>(i)]);
    to.states.conservativeResize(to.states.rows() + 1, 3);
    to.states.bottomRows(1) = t.states.row(i);
  }
  return kept;
}

// A gap costs the starts that have a lead in it, and nobody else's horizon.
TEST_F(ModelTest, AGapCostsOnlyTheStartsBeforeIt) {
  for (const double gap : {2.9, 4.9}) {
    const Dataset kept = without(test, 20.01, 20.01 + gap);
    const Evaluation e = evaluate(model, kept, options, ignore_progress);
    ASSERT_EQ(e.leads.size(), 12u);
    EXPECT_DOUBLE_EQ(e.leads.back(), 3);
    EXPECT_EQ(e.starts, 60);
    long whole = 0, holes = 0;  // rows of 1/20, leads of 1/4
    std::set<long> rows;
    for (const double t : kept.trajectories[0].times) rows.insert(std::lround(t * 20));
    for (const long i : rows) {
      if (i + 60 > 1200) continue;
      bool all = true;
      for (long j = 1; j <= 12; ++j) all = all && rows.count(i + 5 * j) > 0;
      ++(all ? whole : holes);
    }
    EXPECT_EQ(e.candidates, whole);
    EXPECT_EQ(e.gaps, holes);
    EXPECT_GT(holes, 0);
  }
}

// At uneven times each lead is a time, and its row the nearest.
TEST_F(ModelTest, UnevenRowsAreJudgedNearTheLeads) {
  Stream stream(4, Purpose::evaluation, 0);
  std::vector<double> times = {0};
  while (times.back() < 58) times.push_back(times.back() - 0.05 * portable_log(stream.uniform()));
  const auto truth = solve_certified(system.field, 0, Eigen::Vector3d(0.5, -0.2, 1), times);
  const Dataset uneven{
      system.variables, {{"", times, truth.solution.states}}, truth.certified_until};
  EvaluateOptions o = options;
  o.starts = 40;
  const Evaluation e = evaluate(model, uneven, o, ignore_progress);
  EXPECT_EQ(e.starts, 40);
  ASSERT_GE(e.leads.size(), 5u);
  EXPECT_LE(e.leads.back(), 3);
  EXPECT_GT(e.leads.back(), 2.4);
  EXPECT_LT(e.gaps, e.candidates / 10) << "a row within half a unit with probability 1 - exp(-9.2)";
  std::vector<int> rows;
  for (std::size_t j = 0; j < e.leads.size(); ++j) {
    int nearest = 1;
    for (int i = 2; i < static_cast<int>(times.size()); ++i)
      if (std::abs(times[static_cast<std::size_t>(i)] - e.leads[j]) <
          std::abs(times[static_cast<std::size_t>(nearest)] - e.leads[j]))
        nearest = i;
    rows.push_back(nearest);
    EXPECT_LE(std::abs(times[static_cast<std::size_t>(nearest)] - e.leads[j]), e.leads[0] / 2);
  }
  ForecastOptions f = o.forecast;
  f.init = uneven.trajectories[0].states.row(0).transpose();
  f.from = 0;
  for (const int row : rows) f.times.push_back(times[static_cast<std::size_t>(row)]);
  const Forecast by_hand = forecast(model, f, ignore_progress);
  for (std::size_t j = 0; j < rows.size(); ++j) {
    const auto row = static_cast<Eigen::Index>(j + 1);
    const double y = uneven.trajectories[0].states(rows[j], 1);
    EXPECT_NEAR(e.scores[j](0, 1),
                std::abs(y - by_hand.mean(row, 1)) /
                    (by_hand.sd(row, 1) + kCalibrationFloor * model.size[1]),
                1e-9);
  }
}

TEST_F(ModelTest, ThreadsChangeNothingAndBaselinesAreWhatTheyAre) {
  EvaluateOptions o = options;
  const Evaluation one = evaluate(model, test, o, ignore_progress);
  o.threads = 3;
  const Evaluation three = evaluate(model, test, o, ignore_progress);
  EXPECT_EQ(one.scores.back(), three.scores.back());
  EXPECT_EQ(one.model.energy.value, three.model.energy.value);
  EXPECT_EQ(one.ranks, three.ranks);
  // Climatology: the truth is one of its own states; its constant band is 2 c sd wide.
  EXPECT_NEAR(one.climatology.width.value, 2 * 1.959963984540054, 1e-9);
  EXPECT_EQ(one.persistence.coverage.value, 0);
  EXPECT_LT(one.model.energy.value, one.climatology.energy.value);
  EXPECT_LT(one.climatology.energy.value, one.persistence.energy.value);
}

TEST_F(ModelTest, CalibratedBandsHoldTheirLevelOnOtherStarts) {
  const Evaluation held_out = evaluate(model, test, options, ignore_progress);
  Model calibrated = model;
  calibrated.calibration = conformal(held_out);
  calibrated = model_from_text(model_to_text(calibrated), "test");
  EXPECT_EQ(calibrated.calibration->factors, conformal(held_out).factors);
  // Fresh truth from another start.
  const Dataset fresh = run(system, Eigen::Vector3d(-0.7, 0.4, 0.2), 100, 0.05);
  const Evaluation raw = evaluate(model, fresh, options, ignore_progress);
  const Evaluation after = evaluate(calibrated, fresh, options, ignore_progress);
  printf("coverage raw %.3f ± %.3f, calibrated %.3f ± %.3f; width %.3f, %.3f\n",
         raw.model.coverage.value, raw.model.coverage.standard_error, after.model.coverage.value,
         after.model.coverage.standard_error, raw.model.width.value, after.model.width.value);
  // The table itself rests on 60 starts: its coverage has sd √(.95 × .05 / 61) about its level.
  const double se = std::hypot(after.model.coverage.standard_error, std::sqrt(0.95 * 0.05 / 61));
  EXPECT_NEAR(after.model.coverage.value, 0.95, 5 * se);
  // The band is mean ± factor (sd + floor), factors linear between the leads.
  ForecastOptions f = options.forecast;
  f.init = Vector::Ones(3);
  f.times = {0.3, 1.0, 2.9};
  const Forecast band = forecast(calibrated, f, ignore_progress);
  ASSERT_TRUE(band.calibrated);
  for (Eigen::Index t = 1; t <= 3; ++t)
    EXPECT_NEAR(band.upper(t, 0) - band.mean(t, 0),
                calibrated.calibration->factor(band.times[static_cast<std::size_t>(t)], 0) *
                    (band.sd(t, 0) + kCalibrationFloor * model.size[0]),
                1e-12);
  f.calibrated = false;
  EXPECT_FALSE(forecast(calibrated, f, ignore_progress).calibrated);
}

TEST_F(ModelTest, FactorsBetweenAndBeyondTheLeads) {
  CalibrationPart part;
  part.leads = {1, 3};
  part.factors = (Matrix(2, 1) << 2, 4).finished();
  EXPECT_EQ(part.factor(0.1, 0), 2);
  EXPECT_EQ(part.factor(2, 0), 3);
  EXPECT_EQ(part.factor(10, 0), 4);
}

// Trajectories that end count nowhere after their end, and are told.
TEST_F(ModelTest, ScoresAreOfTheTrajectoriesThatAreLeft) {
  EvaluateOptions o = options;
  o.starts = 20;
  o.forecast.bound_factor = 0.7;  // the attractor reaches 1
  const Evaluation e = evaluate(model, test, o, ignore_progress);
  const Vector scale = spread(test).sd;
  double gone = 0, partly = 0;
  int lost = 0;
  for (int k = 0; k < 20; ++k) {
    const auto row = static_cast<int>(static_cast<std::size_t>(k) *
                                      static_cast<std::size_t>(e.candidates - 1) / 19);
    ForecastOptions f = o.forecast;
    f.init = test.trajectories[0].states.row(row).transpose();
    f.seed += static_cast<std::uint64_t>(k);
    f.samples = f.draws;
    for (const double lead : e.leads) f.times.push_back(lead);
    const Forecast made = forecast(model, f, ignore_progress);
    gone += made.discard_probability / 20;
    if (made.times.size() < 13) {
      ++lost;
      continue;
    }
    double energy = 0;
    for (int j = 1; j <= 12; ++j) {
      Matrix left(0, 3);
      for (const Matrix& sample : made.samples) {
        if (sample.rows() <= j) continue;
        left.conservativeResize(left.rows() + 1, 3);
        left.bottomRows(1) = sample.row(j).cwiseQuotient(scale.transpose());
      }
      energy +=
          energy_score(
              left, test.trajectories[0].states.row(row + 5 * j).transpose().cwiseQuotient(scale)) /
          12;
    }
    EXPECT_NEAR(e.energies[static_cast<std::size_t>(k)], energy, 1e-6 * energy) << k;
    partly += made.discarded > 0;
  }
  EXPECT_GT(partly, 0);
  EXPECT_NEAR(e.blown_up, gone, 1e-12);
  EXPECT_EQ(e.blown_up, e.blown_up_by_lead.back());
  EXPECT_LE(e.blown_up_by_lead.front(), e.blown_up);
  EXPECT_EQ(e.discarded, lost);
  EXPECT_EQ(evaluate(model, test, options, ignore_progress).blown_up, 0);
}

TEST_F(ModelTest, MissingValuesAreRefused) {
  Dataset holes = test;
  holes.trajectories[0].states(7, 1) = std::nan("");
  EXPECT_THROW(evaluate(model, holes, options, ignore_progress), Error);
}

TEST_F(ModelTest, ConstantsAreLeftOut) {
  const auto widened = [](Dataset data) {
    Matrix& states = data.trajectories[0].states;
    states.conservativeResize(states.rows(), 4);
    states.col(3).setConstant(0.1);
    data.variables.push_back("c");
    return data;
  };
  EXPECT_EQ(spread(widened(test)).sd[3], 0);
  const Evaluation e =
      evaluate(fit(widened(train), network).model, widened(test), options, ignore_progress);
  EXPECT_TRUE(std::isnan(e.crps[3]) && std::isnan(e.crps_se[3]));
  EXPECT_NEAR(e.model.crps.value, e.crps.head(3).mean(), 1e-12);
  EXPECT_NEAR(e.climatology.width.value, 2 * 1.959963984540054, 1e-9);
  EXPECT_LT(e.model.width.value, 100) << "in units of an sd of 1e-17 it is not";
}

TEST_F(ModelTest, ValidTimesByHand) {
  EvaluateOptions o = options;
  o.horizon = 12;
  o.leads = 48;
  o.starts = 30;
  const Evaluation e = evaluate(model, test, o, ignore_progress);
  const Trajectory& t = test.trajectories[0];
  const Vector scale = spread(test).sd;
  const double norm = t.states.rowwise().squaredNorm().mean();
  std::vector<double> times[4];
  for (int k = 0; k < 30; ++k) {
    const auto row = static_cast<int>(static_cast<std::size_t>(k) *
                                      static_cast<std::size_t>(e.candidates - 1) / 29);
    ForecastOptions f = o.forecast;
    f.init = t.states.row(row).transpose();
    f.seed += static_cast<std::uint64_t>(k);
    for (const double lead : e.leads) f.times.push_back(lead);
    const Forecast made = forecast(model, f, ignore_progress);
    ASSERT_EQ(made.times.size(), 49u);
    bool valid[4] = {true, true, true, true};
    double last[4] = {}, relative = 0;
    for (int j = 1; j <= 48; ++j) {
      const Vector y = t.states.row(row + 5 * j).transpose(), mean = made.mean.row(j).transpose(),
                   error = y - mean;
      const double sds = std::sqrt(error.cwiseQuotient(scale).squaredNorm() / 3);
      relative += error.cwiseAbs().cwiseQuotient(y.cwiseAbs() + mean.cwiseAbs()).mean();
      const bool still[4] = {sds < 0.5, error.norm() < 0.4 * std::sqrt(norm),
                             100 * relative / j <= 30, sds < 0.3};
      for (int v = 0; v < 4; ++v)
        if (valid[v] = valid[v] && still[v]; valid[v])
          last[v] = e.leads[static_cast<std::size_t>(j - 1)];
    }
    for (int v = 0; v < 4; ++v) times[v].push_back(last[v]);
  }
  for (std::size_t v = 0; v < 4; ++v) {
    std::sort(times[v].begin(), times[v].end());
    EXPECT_NEAR(e.valid[v].median, (times[v][14] + times[v][15]) / 2, 1e-9)
        << e.valid[v].convention;
    EXPECT_EQ(e.valid[v].censored, e.valid[v].median == e.leads.back());
    EXPECT_GE(e.valid[v].upper, e.valid[v].lower);
    printf("%s: %.3g ± %.2g, %.3g to %.3g%s\n", e.valid[v].convention.c_str(), e.valid[v].median,
           e.valid[v].standard_error, e.valid[v].lower, e.valid[v].upper,
           e.valid[v].censored ? ", censored" : "");
  }
  EXPECT_LE(e.valid[3].median, e.valid[0].median);
  EXPECT_TRUE(evaluate(model, test, options, ignore_progress).valid[0].censored)
      << "at t+3 all are valid";
}

TEST_F(ModelTest, ShortTruthIsRefused) {
  EvaluateOptions o = options;
  o.horizon = 100;
  EXPECT_THROW(evaluate(model, test, o, ignore_progress), Error);
}

TEST(EvaluateTest, CoarseRowsAreNotTakenForNoise) {
  for (const double per_period : {8.0, 100.0})
    for (const double noise : {0.0, 0.05}) {
      Dataset data{{"x"}, {{"", {}, Matrix(400, 1)}}};
      for (int k = 0; k < 400; ++k) {
        data.trajectories[0].times.push_back(k);
        data.trajectories[0].states(k, 0) = std::sin(2 * M_PI * k / per_period);
      }
      if (noise > 0) add_noise(data, Vector::Constant(1, noise), 1);
      EXPECT_EQ(looks_noisy(data, Vector::Constant(1, 0.05)), noise > 0) << per_period;
      EXPECT_FALSE(looks_noisy(data, Vector::Constant(1, 1e-6))) << "of a model of clean data";
    }
}

TEST(EvaluateTest, WidelySpacedTruthWithoutNoiseIsNotTakenForNoisy) {
  // u' = v, v' = -u, seen 2.6 times in a period: differences of any order are as large as noise.
  Model model = predator_model();
  model.law = PolynomialPart{
      1, {{{{0, 2}, {1, 1}}, Eigen::Vector2d(1, -1), 1e-10 * Matrix::Identity(2, 2)}}};
  model.sd = Eigen::Vector2d(0.7, 0.7);
  model.noise = Eigen::Vector2d(0.05, 0.05);
  Dataset truth{.variables = {"x", "y"}, .trajectories = {{"", {}, Matrix(200, 2)}}};
  for (int k = 0; k < 200; ++k) {
    truth.trajectories[0].times.push_back(2.4 * k);
    truth.trajectories[0].states.row(k) << std::cos(2.4 * k), -std::sin(2.4 * k);
  }
  EvaluateOptions o;
  o.starts = 30;
  o.horizon = 24;
  o.forecast.draws = 20;
  EXPECT_TRUE(looks_noisy(truth, model.noise)) << "by differences alone";
  EXPECT_FALSE(evaluate(model, truth, o, ignore_progress).noisy_truth);
  add_noise(truth, model.noise, 1);
  EXPECT_TRUE(evaluate(model, truth, o, ignore_progress).noisy_truth);
}

TEST(EvaluateTest, RowsBeyondTheCertifiedTimeAreStartsOfTheirOwn) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // As a split leaves them: a simulated run is certified from its start on, and the late rows begin
  // after that.
  Dataset late = run(find_system("Lorenz"), Eigen::Vector3d(-8, 7, 27), 60, 0.01);
  ASSERT_LT(*late.certified_until, 36);
  Dataset early = late;
  early.trajectories[0].times.resize(1000);
  early.trajectories[0].states = Matrix(late.trajectories[0].states.topRows(1000));
  const Model model = fit(early, {.method = RegressionMethod{}}).model;
  Trajectory& t = late.trajectories[0];
  t.times.erase(t.times.begin(), t.times.begin() + 3600);
  t.states = Matrix(t.states.bottomRows(t.states.rows() - 3600));
  const Evaluation e =
      evaluate(model, late, {.starts = 40, .horizon = 5, .leads = 10, .forecast = {.draws = 10}},
               ignore_progress);
  EXPECT_EQ(e.starts, 40);
  EXPECT_LT(e.error.back(), 1e-3) << "the rows do not follow each other as a solution does";
  EXPECT_THROW(evaluate(model, late, {.starts = 40, .horizon = 1.01 * *late.certified_until},
                        ignore_progress),
               Error);
}

TEST(EvaluateTest, WhatNearlyDiesOutAndReturnsIsForetoldFromEveryStart) {
  const Model model = predator_model();
  const Dataset truth{.variables = {"x", "y"}, .trajectories = {predators(600, 0.5)}};
  EvaluateOptions o;
  o.starts = 12;
  o.horizon = 70;
  o.forecast.draws = 20;
  const Evaluation e = evaluate(model, truth, o, ignore_progress);
  EXPECT_EQ(e.discarded, 0);
  EXPECT_EQ(e.blown_up, 0);
  for (std::size_t j = 0; j < e.error.size(); ++j) EXPECT_LT(e.error[j], 0.02) << e.leads[j];
}

/// u' = -u with kicks, followed from rows that are known to s: without s the bands would have to be
/// wider by its square, with it the factor is that of the band itself.
TEST(EvaluateTest, TheUncertaintyOfThePathIsTakenOffTheScores) {
  ODECAST_NOT_UNDER_SANITIZERS();
  Model model = forced_model(-1, 0.1, 0.1);
  model.sd = Vector::Constant(1, 0.22);
  Dataset truth{.variables = {"x"}, .trajectories = {{"", {}, Matrix(4000, 1)}}};
  EvaluateOptions o;
  o.truth_sd = {Matrix::Constant(4000, 1, 0.15)};
  Stream stream(3, Purpose::observation_noise, 0);
  double u = 0;
  for (int k = 0; k < 4000; ++k) {
    // A kick in the middle of each interval.
    u = u * std::exp(-0.1) + 0.1 * std::exp(-0.05) * stream.normal();
    truth.trajectories[0].times.push_back(0.1 * k);
    truth.trajectories[0].states(k, 0) = u + 0.15 * stream.normal();
  }
  o.starts = 400;
  o.horizon = 3;
  o.leads = 3;
  o.forecast.draws = 400;
  const Evaluation with = evaluate(model, truth, o, ignore_progress);
  EXPECT_TRUE(with.smoothed);
  EXPECT_NEAR(with.model.coverage.value, 0.95, 5 * with.model.coverage.standard_error);
  const CalibrationPart part = conformal(with);
  EXPECT_TRUE(part.smoothed);
  o.truth_sd.clear();
  const CalibrationPart without = conformal(evaluate(model, truth, o, ignore_progress));
  // By t+3 the start is forgotten: the band is c 0.22, that of the path (0.22² + 0.15²)^½ of it,
  // 1.21. The quantile of N starts has a standard error of (p (1-p) / N)^½ / density of a normal
  // distribution's, 0.047 of it for N = 400, more where starts overlap.
  EXPECT_NEAR(part.factors(2, 0), 1, 5 * 0.047);
  EXPECT_NEAR(without.factors(2, 0), 1.21, 5 * 0.047);
  EXPECT_LT(part.factors(2, 0), without.factors(2, 0) - 0.1);
}

}  // namespace
}  // namespace odecast
