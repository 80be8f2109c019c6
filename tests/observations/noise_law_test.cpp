#include "odecast/observations/noise_law.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

struct Sample {
  std::vector<double> residuals, u;
};

/// Residuals with variance s² + r² u² along a wave around `level`.
Sample sample(double s, double r, double level, int rows, std::uint64_t seed) {
  Stream stream(seed, Purpose::observation_noise, 0);
  Sample made;
  for (int k = 0; k < rows; ++k) {
    made.u.push_back(level + 2 * std::sin(0.05 * k));
    made.residuals.push_back(std::sqrt(s * s + r * r * made.u.back() * made.u.back()) *
                             stream.normal());
  }
  return made;
}

TEST(NoiseLawTest, TheLikeliestLawIsTheOneThatMadeTheResiduals) {
  // r² = q sd² / m. A variance from N = 4000 values is known to √(2/N) = 2.2 %; that of the part
  // that grows, told from the rest by its dependence on u, to about three times that.
  for (const auto& [s, r] : {std::pair{0.0, 0.1}, {0.1, 0.05}, {0.2, 0.0}}) {
    const Sample made = sample(s, r, 1.0, 4000, 5);
    const RelativeNoise law = likeliest_noise(made.residuals, made.u);
    double variance = 0;
    for (std::size_t k = 0; k < made.u.size(); ++k)
      variance += made.residuals[k] * made.residuals[k] / law.variance(made.u[k]);
    variance /= static_cast<double>(made.u.size());
    EXPECT_NEAR(law.share * variance / law.mean_square, r * r, 5 * 0.066 * (r * r + s * s / 3));
    EXPECT_NEAR((1 - law.share) * variance, s * s, 5 * 0.066 * (s * s + r * r));
  }
}

TEST(NoiseLawTest, ConstantNoiseIsNotTakenForRelative) {
  // Under constant noise twice the gain is χ² with one degree of freedom or 0; beyond 20 + ln 500
  // it is in 1e-7 of draws.
  int relative = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Sample made = sample(0.1, 0, 0.5, 500, seed);
    relative += likeliest_noise(made.residuals, made.u).evidence > relative_noise_threshold(500);
  }
  EXPECT_EQ(relative, 0);
}

TEST(NoiseLawTest, RelativeNoiseOfAStateThatFallsIsSeen) {
  ObservedRun run{{}, Matrix(400, 1), Matrix::Ones(400, 1)};
  Stream stream(7, Purpose::observation_noise, 0);
  for (int k = 0; k < 400; ++k) {
    run.times.push_back(0.02 * k);
    const double u = 3 * std::exp(-0.5 * run.times.back());
    run.values(k, 0) = u * (1 + 0.05 * stream.normal());
  }
  std::vector<ObservedRun> runs = {run};
  Smoothed smoothed = smooth(runs, false);
  const NoiseForm form =
      weigh_by_noise(runs, smoothed, NoiseLaw::automatic, Vector::Zero(1), Vector::Ones(1));
  EXPECT_GT(form.share[0], 0.9);
  EXPECT_GT(runs[0].weights(399, 0), 100 * runs[0].weights(0, 0)) << "u falls by a factor of 54";
  // Constant noise leaves the weights as they are.
  Stream again(8, Purpose::observation_noise, 0);
  for (int k = 0; k < 400; ++k) run.values(k, 0) = 3 * std::exp(-0.01 * k) + 0.05 * again.normal();
  runs = {run};
  smoothed = smooth(runs, false);
  const NoiseForm constant =
      weigh_by_noise(runs, smoothed, NoiseLaw::automatic, Vector::Zero(1), Vector::Ones(1));
  EXPECT_EQ(constant.share, Vector::Zero(1));
  EXPECT_FALSE(constant.of_log[0]);
  EXPECT_EQ(runs[0].weights, run.weights);
}

/// 400 rows of 3 e^(-t/2), times exp(0.3 ε) or 1 + 0.3 ε, in units of 2 beside 1.
std::vector<ObservedRun> decay(bool of_log, std::uint64_t seed) {
  ObservedRun run{{}, Matrix(400, 1), Matrix::Ones(400, 1)};
  Stream stream(seed, Purpose::observation_noise, 0);
  for (int k = 0; k < 400; ++k) {
    run.times.push_back(0.02 * k);
    const double u = 3 * std::exp(-0.5 * run.times.back()), e = 0.3 * stream.normal();
    run.values(k, 0) = (u * (of_log ? std::exp(e) : std::max(1 + e, 0.05)) - 1) / 2;
  }
  return {run};
}

TEST(NoiseLawTest, NoiseOfLogarithmsIsToldFromRelativeNoise) {
  // Skewness 0.95 beside 0: 2 · 400 · 0.95²/12 = 60 are expected of twice the gain in likelihood,
  // whose sd is about 2 √60 = 15 to either side; 6 are asked for.
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const bool of_log : {true, false}) {
      std::vector<ObservedRun> runs = decay(of_log, seed);
      Smoothed smoothed = smooth(runs, false);
      const NoiseForm form = weigh_by_noise(runs, smoothed, NoiseLaw::automatic,
                                            Vector::Constant(1, 1.0), Vector::Constant(1, 2.0));
      EXPECT_EQ(form.of_log[0], of_log) << seed;
      if (!of_log) continue;
      EXPECT_EQ(form.share[0], 1);
      // The mean of exp(0.3 ε) is 1.046; the logarithms have no such bias. Its standard error is
      // 0.3/√400 = 0.015.
      double ratio = 0;
      for (int k = 0; k < 400; ++k)
        ratio += (1 + 2 * runs[0].values(k, 0)) /
                 (3 * std::exp(-0.5 * runs[0].times[static_cast<std::size_t>(k)])) / 400;
      EXPECT_NEAR(ratio, 1, 4 * 0.015) << seed;
    }
}

}  // namespace
}  // namespace odecast
