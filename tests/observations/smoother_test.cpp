#include "odecast/observations/smoother.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

ObservedRun waves(int rows, double noise, std::uint64_t seed, bool uneven) {
  Stream stream(seed, Purpose::observation_noise, 0);
  ObservedRun run{{}, Matrix(rows, 2), Matrix::Ones(rows, 2)};
  double t = 0;
  for (int k = 0; k < rows; ++k) {
    run.times.push_back(t += uneven ? 0.04 * stream.uniform() + 1e-3 : 0.02);
    run.values(k, 0) = std::sin(t) + noise * stream.normal();
    run.values(k, 1) = 2 * std::cos(1.5 * t) + noise * stream.normal();
  }
  return run;
}

TEST(SmootherTest, PolynomialsOfDegreeTwoPassUnchanged) {
  // Third divided differences of a parabola vanish whatever the times.
  ObservedRun run = waves(60, 0, 1, true);
  for (long k = 0; k < 60; ++k) {
    const double t = run.times[static_cast<std::size_t>(k)];
    run.values(k, 0) = 1 - t + 3 * t * t;
    run.values(k, 1) = t * t;
  }
  const Smoothed s = smooth({run}, false);
  EXPECT_LT((s.values[0] - run.values).cwiseAbs().maxCoeff(), 1e-6);
}

TEST(SmootherTest, NoiseIsEstimated) {
  // n = 800 values per variable: the standard error of an estimated sd is sd / sqrt(2 n) = 2.5 %;
  // the smoother's own degrees of freedom are few.
  for (const bool uneven : {false, true}) {
    const ObservedRun run = waves(800, 0.1, 7, uneven);
    const Smoothed s = smooth({run}, false);
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(s.noise[i], 0.1, 5 * 0.025 * 0.1) << uneven;
    // The smoothed path is closer to the truth than the data by far.
    double error = 0;
    for (long k = 0; k < 800; ++k) {
      const double off = s.values[0](k, 0) - std::sin(run.times[static_cast<std::size_t>(k)]);
      error += off * off / 800;
    }
    EXPECT_LT(std::sqrt(error), 0.03) << uneven;
  }
}

TEST(SmootherTest, MissingValuesAreBridgedAndNeverRead) {
  ObservedRun run = waves(400, 0.05, 3, true);
  for (long k = 100; k < 110; ++k) run.weights(k, 0) = 0, run.values(k, 0) = std::nan("");
  const Smoothed s = smooth({run}, false);
  for (long k = 100; k < 110; ++k)
    EXPECT_NEAR(s.values[0](k, 0), std::sin(run.times[static_cast<std::size_t>(k)]), 0.15);
}

TEST(SmootherTest, OutliersDoNotMoveTheRobustNoise) {
  ObservedRun run = waves(800, 0.1, 5, false);
  for (long k = 10; k < 800; k += 20) run.values(k, 0) += k % 40 < 20 ? 1 : -1;
  EXPECT_GT(smooth({run}, false).noise[0], 0.2);
  EXPECT_NEAR(smooth({run}, true).noise[0], 0.1, 0.025);
}

TEST(SmootherTest, ErrorsAreAsLargeAsTheSdSays) {
  double square = 0, count = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Stream stream(seed, Purpose::observation_noise, 0);
    std::vector<double> times;
    Matrix truth(200, 1), values(200, 1);
    for (int k = 0; k < 200; ++k) {
      times.push_back(0.1 * k);
      truth(k, 0) = std::sin(times.back());
      values(k, 0) = truth(k, 0) + 0.1 * stream.normal();
    }
    const Smoothed s = smooth({observed_run(times, values)}, false);
    EXPECT_NEAR(s.sd[0](199, 0), s.last_sd[0], 1e-12);
    EXPECT_LT(s.sd[0](100, 0), s.sd[0](199, 0)) << "the end has rows on one side";
    square += ((s.values[0] - truth).cwiseQuotient(s.sd[0])).squaredNorm();
    count += 200;
  }
  // Errors of neighbours within some 15 rows are one: 20 × 200 / 15 of them, of squares 1 ± √2.
  EXPECT_NEAR(square / count, 1, 5 * std::sqrt(2.0 / (count / 15)));
}

}  // namespace
}  // namespace odecast
