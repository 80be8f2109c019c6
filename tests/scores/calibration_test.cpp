#include "odecast/scores/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/scores/scores.hpp"

namespace odecast {
namespace {

struct Example {
  Forecast forecast;
  Dataset truth;
};

/// Two variables; truth = mean + spread × N(0, 1) where the forecast says sd 2 and 3.
Example example(int rows, double spread) {
  Example e;
  e.forecast.variables = {"x", "y"};
  e.forecast.mean = Matrix::Zero(rows, 2);
  e.forecast.sd.resize(rows, 2);
  e.truth = {.variables = {"y", "x"}, .trajectories = {{"", {}, Matrix(rows, 2)}}};
  Stream stream(3, Purpose::observation_noise, 0);
  for (int i = 0; i < rows; ++i) {
    e.forecast.times.push_back(i);
    e.truth.trajectories[0].times.push_back(i);
    for (int v = 0; v < 2; ++v) {
      e.forecast.mean(i, v) = std::sin(0.1 * i + v);
      e.forecast.sd(i, v) = 2 + v;
      e.truth.trajectories[0].states(i, 1 - v) =
          e.forecast.mean(i, v) + spread * (2 + v) * stream.normal();
    }
  }
  e.forecast.lower = e.forecast.mean - normal_quantile(0.975) * e.forecast.sd;
  e.forecast.upper = e.forecast.mean + normal_quantile(0.975) * e.forecast.sd;
  return e;
}

TEST(CalibrationTest, ACalibratedForecastCoversWhatItSaysAndHasAFlatPit) {
  const int points = 20'000;
  const Example e = example(points + 1, 1);
  const Calibration c = calibration(e.forecast, e.truth);
  ASSERT_EQ(c.levels.size(), 20u);
  for (int v = 0; v < 2; ++v) {
    EXPECT_EQ(c.points[static_cast<std::size_t>(v)], points);
    for (std::size_t l = 0; l < c.levels.size(); ++l) {
      const double p = c.levels[l];  // binomial: five standard errors
      EXPECT_NEAR(c.coverage(static_cast<Eigen::Index>(l), v), p,
                  5 * std::sqrt(p * (1 - p) / points));
    }
    for (Eigen::Index b = 0; b < c.pit.rows(); ++b)
      EXPECT_NEAR(c.pit(b, v), 0.05, 5 * std::sqrt(0.05 * 0.95 / points));
    EXPECT_NEAR(c.pit.col(v).sum(), 1, 1e-12);
  }
  // At the level of the band it is what score() says.
  const Scores s = score(e.forecast, e.truth, {});
  EXPECT_EQ(c.coverage(18, 0), s.coverage.variables[0]);
  EXPECT_EQ(c.coverage(18, 1), s.coverage.variables[1]);
}

TEST(CalibrationTest, NarrowBandsHeapThePitAtItsEnds) {
  const Calibration narrow = calibration(example(2001, 3).forecast, example(2001, 3).truth);
  EXPECT_GT(narrow.pit(0, 0), 0.2);
  EXPECT_GT(narrow.pit(19, 0), 0.2);
  EXPECT_LT(narrow.pit(10, 0), 0.05);
  EXPECT_LT(narrow.coverage(18, 0), 0.6);
  const Calibration wide = calibration(example(2001, 0.2).forecast, example(2001, 0.2).truth);
  EXPECT_EQ(wide.pit(0, 0), 0);
  EXPECT_GT(wide.pit(10, 0), 0.1);
  EXPECT_EQ(wide.coverage(18, 0), 1);
}

TEST(CalibrationTest, PointsWithoutSpreadAreLeftOut) {
  Example e = example(11, 1);
  e.forecast.sd.col(0).setZero();
  e.forecast.sd(3, 1) = 0;
  const Calibration c = calibration(e.forecast, e.truth);
  EXPECT_EQ(c.points, (std::vector<long>{0, 9}));
  EXPECT_EQ(c.pit.col(0).sum(), 0);
}

TEST(CalibrationTest, ErrorAndSpreadAreThoseOfTheValidPredictionTime) {
  const Example e = example(101, 0.3);
  Vector scale(2);
  scale << 4, 6;
  const auto spread = relative_spread(e.forecast, scale);
  ASSERT_EQ(spread.size(), 101u);
  EXPECT_NEAR(spread[7], 0.5, 1e-15);  // sqrt(((2/4)² + (3/6)²) / 2)
  const auto error = relative_error(e.forecast, e.truth, "", scale);
  EXPECT_TRUE(std::isnan(error[0]));  // the start is given
  const double dx = e.forecast.mean(5, 0) - e.truth.trajectories[0].states(5, 1);
  const double dy = e.forecast.mean(5, 1) - e.truth.trajectories[0].states(5, 0);
  EXPECT_NEAR(error[5], std::sqrt((dx * dx / 16 + dy * dy / 36) / 2), 1e-14);
  scale[1] = 0;  // a constant variable is left out
  EXPECT_NEAR(relative_error(e.forecast, e.truth, "", scale)[5], std::abs(dx) / 4, 1e-14);
}

TEST(CalibrationTest, TruthThatDoesNotMatchIsRefused) {
  Example e = example(11, 1);
  e.truth.certified_until = 5;
  EXPECT_THROW(calibration(e.forecast, e.truth), Error);
}

}  // namespace
}  // namespace odecast
