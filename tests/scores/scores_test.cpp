#include "odecast/scores/scores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"

namespace odecast {
namespace {

/// Truth sin(t), mean off by `bias` from t = 5 on, sd 0.5.
struct Example {
  Forecast forecast;
  Dataset truth;
};

Example example(double bias) {
  Example e;
  e.forecast.variables = {"x"};
  e.truth = {{"other", "x"}, {{"", {}, Matrix(101, 2)}}, {}};
  const int rows = 101;
  e.forecast.mean.resize(rows, 1);
  e.forecast.sd = Matrix::Constant(rows, 1, 0.5);
  for (int i = 0; i < rows; ++i) {
    const double t = 0.1 * i;
    e.forecast.times.push_back(t);
    e.forecast.mean(i, 0) = std::sin(t) + (t >= 5 ? bias : 0);
    e.truth.trajectories[0].times.push_back(t);
    e.truth.trajectories[0].states(i, 0) = -1;
    e.truth.trajectories[0].states(i, 1) = std::sin(t);
  }
  e.forecast.lower = e.forecast.mean - 1.96 * e.forecast.sd;
  e.forecast.upper = e.forecast.mean + 1.96 * e.forecast.sd;
  return e;
}

TEST(ScoresTest, KnownValues) {
  const Example e = example(2);
  const Scores s = score(e.forecast, e.truth, {.lyapunov = 0.5});
  EXPECT_EQ(s.points, 100);  // the start does not count
  EXPECT_NEAR(s.coverage.variables[0], 0.49, 1e-12);
  EXPECT_NEAR(s.width.variables[0], 1.96, 1e-12);
  EXPECT_NEAR(s.rmse.variables[0], std::sqrt(0.51) * 2, 1e-12);
  EXPECT_NEAR(s.vpt_time, 5, 1e-9);
  EXPECT_NEAR(*s.vpt_lyapunov_times, 2.5, 1e-9);
  EXPECT_FALSE(score(e.forecast, e.truth, {}).vpt_lyapunov_times);
}

TEST(ScoresTest, APerfectForecastIsValidToTheEnd) {
  const Example e = example(0);
  const Scores s = score(e.forecast, e.truth, {});
  EXPECT_EQ(s.coverage.all, 1);
  EXPECT_EQ(s.rmse.all, 0);
  EXPECT_NEAR(s.vpt_time, 10, 1e-12);
}

TEST(ScoresTest, CrpsIsThatOfAGaussian) {
  // E|X - y| - E|X - X'|/2 by sampling, against the closed form.
  const Example e = example(0.7);
  const double crps = score(e.forecast, e.truth, {}).crps.variables[0];
  Stream stream(1, Purpose::observation_noise, 0);
  const auto sampled = [&](double error) {
    double first = 0, second = 0;
    const int count = 200'000;
    for (int i = 0; i < count; ++i) {
      const double a = error + 0.5 * stream.normal(), b = error + 0.5 * stream.normal();
      first += std::abs(a) / count;
      second += std::abs(a - b) / count;
    }
    return first - second / 2;
  };
  // Half-normal spread: each average has a standard error below 0.5/sqrt(200000) = 0.0011.
  EXPECT_NEAR(crps, 0.49 * sampled(0) + 0.51 * sampled(0.7), 5 * 0.0011 * 1.2);
}

TEST(ScoresTest, QuantileBandsAreChosenOrFallenBackTo) {
  Example e = example(2);
  e.forecast.q_lower = e.forecast.mean.array() - 10;
  e.forecast.q_upper = e.forecast.mean.array() + 10;
  e.forecast.q_median = e.forecast.mean;
  EXPECT_EQ(score(e.forecast, e.truth, {.band = ScoredBand::quantiles}).coverage.all, 1);
  EXPECT_NEAR(score(e.forecast, e.truth, {}).coverage.all, 0.49, 1e-12);
  // The forecast's own band is what is judged; mean ± c sd of it by name.
  e.forecast.bands = Bands::quantiles;
  e.forecast.lower = e.forecast.q_lower;
  e.forecast.upper = e.forecast.q_upper;
  EXPECT_EQ(score(e.forecast, e.truth, {}).band, ScoredBand::quantiles);
  EXPECT_EQ(score(e.forecast, e.truth, {}).coverage.all, 1);
  const Scores sd = score(e.forecast, e.truth, {.band = ScoredBand::sd});
  EXPECT_EQ(sd.band, ScoredBand::sd);
  EXPECT_NEAR(sd.coverage.all, 0.49, 1e-12);
  // Calibrated, it is not that of the draws.
  e.forecast.lower.array() += 9;
  e.forecast.upper.array() -= 9;
  EXPECT_NEAR(score(e.forecast, e.truth, {}).coverage.all, 0.49, 1e-12);
  EXPECT_EQ(score(e.forecast, e.truth, {.band = ScoredBand::quantiles}).coverage.all, 1);
}

TEST(ScoresTest, OnlyCommonTimesCount) {
  Example e = example(2);
  auto& t = e.truth.trajectories[0];
  t.times.resize(60);  // up to 5.9
  t.states.conservativeResize(60, 2);
  const Scores s = score(e.forecast, e.truth, {});
  EXPECT_EQ(s.points, 59);
  EXPECT_NEAR(s.until, 5.9, 1e-12);
  for (double& time : t.times) time += 0.05;
  EXPECT_THROW(score(e.forecast, e.truth, {}), Error);
}

TEST(ScoresTest, LateTimesPairTheRightRows) {
  // Seconds since 1970: a tolerance relative to the time would span several rows.
  Example e = example(0);
  const Scores early = score(e.forecast, e.truth, {});
  for (double& t : e.forecast.times) t = 1.7e9 + std::round(10 * t) / 10;
  for (double& t : e.truth.trajectories[0].times) t = 1.7e9 + std::round(10 * t) / 10;
  const Scores late = score(e.forecast, e.truth, {});
  EXPECT_EQ(late.points, early.points);
  EXPECT_EQ(late.rmse.all, 0);
}

TEST(ScoresTest, AConstantTruthDoesNotSpoilTheRest) {
  Example e = example(2);
  Forecast two = e.forecast;
  two.variables = {"x", "other"};
  for (Matrix* m : {&two.mean, &two.sd, &two.lower, &two.upper}) m->conservativeResize(101, 2);
  two.mean.col(1).setConstant(-1 + 7e-5);
  two.sd.col(1).setConstant(1e-3);
  two.lower.col(1) = two.mean.col(1) - 1.96 * two.sd.col(1);
  two.upper.col(1) = two.mean.col(1) + 1.96 * two.sd.col(1);
  const Scores one = score(e.forecast, e.truth, {}), both = score(two, e.truth, {});
  EXPECT_TRUE(std::isnan(both.nrmse.variables[1]));
  EXPECT_NEAR(both.nrmse.all, one.nrmse.all, 1e-12);
  EXPECT_EQ(both.vpt_time, one.vpt_time);
}

TEST(ScoresTest, BeyondTheCertifiedTimeIsRefused) {
  Example e = example(2);
  e.truth.certified_until = 8;
  EXPECT_THROW(score(e.forecast, e.truth, {}), Error);
  e.truth.certified_until = 10;
  EXPECT_NO_THROW(score(e.forecast, e.truth, {}));
}

TEST(ScoresTest, MismatchesAreRefused) {
  Example e = example(2);
  e.forecast.variables = {"unknown"};
  EXPECT_THROW(score(e.forecast, e.truth, {}), Error);
  e = example(2);
  e.truth.trajectories.push_back(e.truth.trajectories[0]);
  e.truth.trajectories[0].id = "a";
  e.truth.trajectories[1].id = "b";
  e.truth.trajectories[0].states.setConstant(7);
  EXPECT_EQ(score(e.forecast, e.truth, {}).rmse.all,
            score(e.forecast, e.truth, {.trajectory = "b"}).rmse.all);  // the last by default
  EXPECT_THROW(score(e.forecast, e.truth, {.trajectory = "c"}), Error);
  EXPECT_THROW(score(e.forecast, e.truth, {.threshold = 0, .trajectory = "b"}), Error);
}

/// Rows with noise of sd 0.5 around a forecast that is certain of sin(t), and knows that noise.
Example measured(double noise) {
  Example e = example(0);
  const double sigma = 0.5, c = normal_quantile(0.975);
  e.forecast.sd.setConstant(1e-9);
  e.forecast.lower = e.forecast.mean - c * e.forecast.sd;
  e.forecast.upper = e.forecast.mean + c * e.forecast.sd;
  e.forecast.observed_lower = e.forecast.mean.array() - c * sigma;
  e.forecast.observed_upper = e.forecast.mean.array() + c * sigma;
  Stream stream(1, Purpose::observation_noise, 0);
  for (int i = 0; i < 101; ++i) e.truth.trajectories[0].states(i, 1) += noise * stream.normal();
  return e;
}

TEST(ScoresTest, MeasuredRowsAreJudgedByTheBandOfAnObservation) {
  const Example noisy = measured(0.5);
  const Scores s = score(noisy.forecast, noisy.truth, {});
  EXPECT_TRUE(s.measured);
  EXPECT_EQ(s.band, ScoredBand::observed);
  EXPECT_NEAR(s.coverage.all, 0.95, 3 * std::sqrt(0.95 * 0.05 / 100));
  EXPECT_EQ(score(noisy.forecast, noisy.truth, {.band = ScoredBand::sd}).coverage.all, 0);
  // A truth without noise is a state.
  const Example clean = measured(0);
  EXPECT_FALSE(score(clean.forecast, clean.truth, {}).measured);
  EXPECT_EQ(score(clean.forecast, clean.truth, {}).band, ScoredBand::sd);
}

TEST(ScoresTest, OneRowsNoiseEndsTheValidPredictionTime) {
  const Example noisy = measured(0.5);  // of a sine, whose sd is 0.7
  const Scores s = score(noisy.forecast, noisy.truth, {});
  EXPECT_LT(s.vpt_time, s.until - s.from);
  EXPECT_TRUE(s.vpt_ends_by_noise);
  Example wrong = measured(0.5);
  wrong.truth.trajectories[0].states.bottomRows(100).array() += 20;
  EXPECT_FALSE(
      score(wrong.forecast, wrong.truth, {.band = ScoredBand::observed}).vpt_ends_by_noise);
}

TEST(ScoresTest, NoiseThatIsLargeAtTheStartCountsByItsMean) {
  // Noise that follows the state: 5 at the start, 0.5 elsewhere, which the rows have.
  Example e = measured(0.5);
  const double c = normal_quantile(0.975);
  e.forecast.observed_lower.row(0) = e.forecast.mean.row(0).array() - 5 * c;
  e.forecast.observed_upper.row(0) = e.forecast.mean.row(0).array() + 5 * c;
  EXPECT_TRUE(score(e.forecast, e.truth, {}).measured);
}

TEST(ScoresTest, CrpsIsThatOfTheBandAskedFor) {
  // Of N(0, σ²) and rows of the same: σ / √π, with a standard error of 0.04 over 100 rows.
  const Example e = measured(0.5);
  const Scores s = score(e.forecast, e.truth, {.band = ScoredBand::observed});
  EXPECT_NEAR(s.crps.all, 0.5 / std::sqrt(std::numbers::pi), 0.12);
  EXPECT_GT(score(e.forecast, e.truth, {.band = ScoredBand::sd}).crps.all, 0.3);  // |error|, .4
}

}  // namespace
}  // namespace odecast
