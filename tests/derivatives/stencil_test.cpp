#include "odecast/derivatives/stencil.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "support/series.hpp"

namespace odecast {
namespace {

TEST(StencilTest, WeightsAreExactOnPolynomialsOfTheirDegree) {
  const double t[] = {0, 0.3, 0.35, 1.1, 1.4, 2.2, 2.25};
  for (const int points : {2, 3, 5, 7})
    for (const double at : {0.35, 1.0, 2.25}) {
      double w[7];
      first_derivative_weights(t, points, at, w);
      for (int degree = 0; degree < points; ++degree) {
        double sum = 0;
        for (int i = 0; i < points; ++i) sum += w[i] * std::pow(t[i], degree);
        const double expected = degree == 0 ? 0 : degree * std::pow(at, degree - 1);
        EXPECT_NEAR(sum, expected, 1e-10 * std::max(1.0, std::abs(expected)))
            << points << ' ' << degree;
      }
    }
}

TEST(StencilTest, EvenWeightsAreThoseOfTheTables) {
  const double t[] = {-4, -3, -2, -1, 0, 1, 2, 3, 4};
  double w[9];
  first_derivative_weights(t, 9, 0, w);
  // Fornberg 1988, table 1, order 8.
  const double expected[] = {1.0 / 280, -4.0 / 105, 1.0 / 5,   -4.0 / 5,  0,
                             4.0 / 5,   -1.0 / 5,   4.0 / 105, -1.0 / 280};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(w[i], expected[i], 1e-15);
}

TEST(StencilTest, DividedDifferencesSeeTheirOwnDegreeOnly) {
  const double t[] = {0, 0.5, 2, 2.5};
  double w[4];
  divided_difference_weights(t, 4, w);
  for (int degree = 0; degree <= 3; ++degree) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += w[i] * std::pow(t[i], degree);
    EXPECT_NEAR(sum, degree == 3 ? 1 : 0, 1e-13);
  }
}

TEST(StencilTest, SegmentsEndAtGaps) {
  Dataset d = series({0, 1, 2, 3, 40, 41, 42}, [](double t) { return t; });
  auto parts = segments(d, 0);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].rows, 4);
  EXPECT_EQ(parts[1].first, 4);
  EXPECT_EQ(parts[1].rows, 3);
  EXPECT_EQ(segments(d, 100).size(), 1u) << "a gap as the user defines it";
  EXPECT_EQ(segments(d, 0.5).size(), 7u);
  // A trajectory sampled a hundred times coarser than the others has no gaps of its own.
  d.trajectories.push_back(series({0, 100, 200, 300}, [](double t) { return t; }).trajectories[0]);
  EXPECT_EQ(segments(d, 0).size(), 3u);
}

TEST(StencilTest, NoiseIsEstimatedBesideASignal) {
  for (const bool even : {true, false}) {
    Stream stream(3, Purpose::observation_noise, 0);
    std::vector<double> times;
    double t = 0;
    for (int i = 0; i < 4000; ++i)
      times.push_back(t += even ? 0.01 : -0.01 * portable_log(stream.uniform()));
    Dataset d = series(times, [](double x) { return 10 * std::sin(x); });
    for (Eigen::Index i = 0; i < 4000; ++i) d.trajectories[0].states(i, 0) += 0.3 * stream.normal();
    // A median of N values has standard error 1.17/√N relative; differences of m + 1 neighbours
    // correlate, which counts as about N/3 values: 5 · 1.17/√1333 = 0.16.
    EXPECT_NEAR(estimate_noise(segments(d, 0), 1)[0], 0.3, 0.16 * 0.3) << even;
  }
  const Dataset clean = series(evenly(1000, 0.01), [](double x) { return std::sin(x); });
  EXPECT_LT(estimate_noise(segments(clean, 0), 1)[0], 1e-15);
}

TEST(StencilTest, FirstRowsStopWhereAsked) {
  Dataset d = series(evenly(10, 1), [](double t) { return t; });
  d.trajectories.push_back(d.trajectories[0]);
  const Dataset part = dataset_of(source_of(d), 13);
  ASSERT_EQ(part.trajectories.size(), 2u);
  EXPECT_EQ(part.trajectories[0].rows(), 10);
  EXPECT_EQ(part.trajectories[1].rows(), 3);
  EXPECT_EQ(part.trajectories[1].states, d.trajectories[1].states.topRows(3));
}

}  // namespace
}  // namespace odecast
