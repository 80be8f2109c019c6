#include "odecast/scores/evaluate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/posterior/fit.hpp"
#include "odecast/posterior/model_file.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"

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

class ModelTest : public ::testing::Test {
 protected:
  const System system = find_system("SprottB");
  const Dataset train = run(system, Vector::Ones(3), 20, 0.02);
  const Dataset test = run(system, Eigen::Vector3d(0.5, -0.2, 1), 60, 0.05);
  const Model model = [&] {
    FitOptions o;
    o.dropout = 0.02;
    o.derivative.method = DerivativeMethod::central4;
    return fit(train, o, ignore_progress).model;
  }();
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
                  std::abs(y - by_hand.mean(row, i)) / (by_hand.sd(row, i) + kCalibrationFloor * model.size[i]), 1e-9);
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
  printf("coverage raw %.3f ± %.3f, calibrated %.3f ± %.3f; width %.3f, %.3f\n", raw.model.coverage.value,
         raw.model.coverage.standard_error, after.model.coverage.value, after.model.coverage.standard_error,
         raw.model.width.value, after.model.width.value);
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

}  // namespace
}  // namespace odecast
