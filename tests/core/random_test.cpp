#include "odecast/core/random.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace odecast {
namespace {

TEST(RandomTest, PhiloxGivesThePublishedVectorForTheZeroKey) {
  // Random123's known answer for counter 0, key 0. Purpose 0 is not in use otherwise.
  Stream stream(0, static_cast<Purpose>(0), 0);
  EXPECT_EQ(stream.bits(), 0x6627e8d5u);
  EXPECT_EQ(stream.bits(), 0xe169c58du);
  EXPECT_EQ(stream.bits(), 0xbc57ac4cu);
  EXPECT_EQ(stream.bits(), 0x9b00dbd8u);
}

TEST(RandomTest, StreamsDifferInSeedPurposeAndIndex) {
  const auto first = [](std::uint64_t seed, Purpose purpose, std::uint64_t index) {
    return Stream(seed, purpose, index).bits();
  };
  const auto base = first(1, Purpose::forecast_mask, 0);
  EXPECT_NE(base, first(2, Purpose::forecast_mask, 0));
  EXPECT_NE(base, first(std::uint64_t{1} << 40 | 1, Purpose::forecast_mask, 0));
  EXPECT_NE(base, first(1, Purpose::training_mask, 0));
  EXPECT_NE(base, first(1, Purpose::forecast_mask, std::uint64_t{1} << 40));
}

TEST(RandomTest, LogarithmAgreesWithTheLibrary) {
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    EXPECT_NEAR(portable_log(x), std::log(x), 4e-16 * std::abs(std::log(x)) + 1e-18) << x;
  for (double x = 0.9; x < 1.1; x += 0.00137)
    EXPECT_NEAR(portable_log(x), std::log(x), 5e-16 * std::abs(std::log(x)) + 1e-18) << x;
}

TEST(RandomTest, QuantileInvertsTheNormalDistribution) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-17);
  for (double x = -8; x <= 5; x += 0.0371) {
    // Φ(x) = erfc(-x/√2)/2 is accurate in the lower tail; an error δ of p moves x by δ/φ(x).
    const double p = std::erfc(-x / std::sqrt(2.0)) / 2;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    EXPECT_NEAR(normal_quantile(p), x, 1e-14 * std::abs(x) + 4e-16 * p / density + 1e-15) << x;
  }
}

TEST(RandomTest, NormalsHaveTheRightMoments) {
  const int count = 400'000;
  Stream stream(3, Purpose::derivative_noise, 0);
  double sum[5] = {};
  for (int i = 0; i < count; ++i) {
    const double x = stream.normal();
    double power = 1;
    for (double& s : sum) s += power, power *= x;
  }
  // Standard errors of the moments: sqrt(Var(x^k)/N), Var = E x^2k - (E x^k)².
  const double se = 1 / std::sqrt(count);
  EXPECT_NEAR(sum[1] / count, 0, 5 * se);
  EXPECT_NEAR(sum[2] / count, 1, 5 * se * std::sqrt(2));
  EXPECT_NEAR(sum[3] / count, 0, 5 * se * std::sqrt(15));
  EXPECT_NEAR(sum[4] / count, 3, 5 * se * std::sqrt(96));
}

TEST(RandomTest, BernoulliWordsHaveTheRightProbabilityInEveryBit) {
  const int words = 20'000;
  for (const double p : {0.05, 0.25, 0.5, 0.75, 0.95, 1.0 / 3}) {
    long bit_counts[32] = {}, total = 0, neighbours = 0;
    for (int w = 0; w < words; ++w) {
      const std::uint32_t bits =
          bernoulli_word(7, Purpose::forecast_mask, 5, static_cast<std::uint32_t>(w), p);
      total += std::popcount(bits);
      neighbours += std::popcount(bits & (bits >> 1));
      for (int i = 0; i < 32; ++i) bit_counts[i] += bits >> i & 1;
    }
    const double se = std::sqrt(p * (1 - p) / words);
    EXPECT_NEAR(static_cast<double>(total) / words / 32, p, 5 * se / std::sqrt(32)) << p;
    for (int i = 0; i < 32; ++i)
      EXPECT_NEAR(static_cast<double>(bit_counts[i]) / words, p, 5 * se) << p << " bit " << i;
    // Neighbouring bits are independent: both set with probability p². The 31 pairs of a word
    // overlap, which at most doubles the variance of their mean.
    EXPECT_NEAR(static_cast<double>(neighbours) / words / 31, p * p,
                5 * std::sqrt(2 * p * p * (1 - p * p) / words / 31))
        << p;
  }
}

TEST(RandomTest, BernoulliWordsAtTheEnds) {
  EXPECT_EQ(bernoulli_word(1, Purpose::forecast_mask, 0, 0, 1.0), ~0u);
  EXPECT_EQ(bernoulli_word(1, Purpose::forecast_mask, 0, 0, 0.0), 0u);
}

}  // namespace
}  // namespace odecast
