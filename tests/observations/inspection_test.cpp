#include "odecast/observations/inspection.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/observations/formats.hpp"
#include "odecast/observations/scaling.hpp"
#include "odecast/observations/smoother.hpp"

namespace odecast {
namespace {

/// Sine and cosine at these times.
Dataset waves(const std::vector<double>& times) {
  Dataset d{{"x", "y"}, {{"", times, Matrix(static_cast<Eigen::Index>(times.size()), 2)}}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    d.trajectories[0].states(static_cast<Eigen::Index>(i), 0) = std::sin(times[i]);
    d.trajectories[0].states(static_cast<Eigen::Index>(i), 1) = 5 + 100 * std::cos(times[i]);
  }
  return d;
}

std::vector<double> even_times(int rows) {
  std::vector<double> times;
  for (int i = 0; i < rows; ++i) times.push_back(0.01 * i);
  return times;
}

TEST(InspectionTest, NoiseIsFoundWhateverTheSampling) {
  std::vector<double> irregular = {0};
  Stream stream(3, Purpose::observation_noise, 9);
  for (int i = 1; i < 40'000; ++i)
    irregular.push_back(irregular.back() + 0.002 + 0.016 * stream.uniform());
  for (const auto& times : {even_times(40'000), irregular})
    for (const double noise : {0.0, 1e-3, 0.1}) {
      Dataset d = waves(times);
      add_noise(d, Eigen::Vector2d(noise, 100 * noise), 7);
      const Inspection i = inspect(source_of(d));
      if (noise == 0) {
        EXPECT_LT(i.noise[0], 1e-8);  // what the smoother makes of clean rows: theory.md §7
        continue;
      }
      // An sd from N values has the standard error 1 / sqrt(2 N) of it.
      const double error = 5 / std::sqrt(2.0 * kNoiseRows);
      EXPECT_NEAR(i.noise[0] / noise, 1, error);
      EXPECT_NEAR(i.noise[1] / (100 * noise), 1, error);
    }
}

TEST(InspectionTest, MissingValuesAreCountedAndPassedOver) {
  const double missing = std::nan("");
  Dataset d = waves(even_times(40'000));
  add_noise(d, Eigen::Vector2d(0.1, 10), 7);
  Matrix& u = d.trajectories[0].states;
  const Inspection whole = inspect(source_of(d));
  EXPECT_EQ(whole.missing, (std::vector<long>{0, 0}));
  Stream stream(4, Purpose::observation_noise, 9);
  long lost = 0;
  double sum = 0;
  for (long k = 0; k < u.rows(); ++k) {
    if (stream.uniform() < 0.3)
      u(k, 0) = missing, ++lost;
    else
      sum += u(k, 0);
  }
  const Inspection i = inspect(source_of(d));
  EXPECT_EQ(i.missing, (std::vector<long>{lost, 0}));
  EXPECT_NEAR(i.mean[0], sum / static_cast<double>(u.rows() - lost), 1e-12);
  EXPECT_NEAR(i.noise[0] / 0.1, 1, 5 / std::sqrt(2 * 0.7 * kNoiseRows));
  EXPECT_EQ(i.noise[1], whole.noise[1]);
  EXPECT_EQ(i.sd[1], whole.sd[1]);
  u.col(0).setConstant(missing);
  const Inspection none = inspect(source_of(d));
  EXPECT_EQ(none.missing[0], u.rows());
  EXPECT_TRUE(std::isnan(none.mean[0]) && std::isnan(none.noise[0]) && !none.constant[0]);
  EXPECT_EQ(none.noise[1], whole.noise[1]);
}

TEST(InspectionTest, FewValuesDoNotMakeANoiseSmall) {
  // 200 rows, half of the values missing.
  int low = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Dataset d = waves(even_times(200));
    add_noise(d, Eigen::Vector2d(0.1, 10), seed);
    Stream stream(seed, Purpose::observation_noise, 9);
    for (double& u : d.trajectories[0].states.col(0))
      if (stream.uniform() < 0.5) u = std::nan("");
    low += inspect(source_of(d)).noise[0] < 0.05;
  }
  EXPECT_LE(low, 5);
}

TEST(InspectionTest, SamplingIsDescribed) {
  Dataset d = waves(even_times(30'000));
  Inspection i = inspect(source_of(d));
  EXPECT_TRUE(i.even);
  EXPECT_NEAR(i.step, 0.01, 1e-9);
  EXPECT_EQ(i.gaps, 0);
  EXPECT_EQ(i.pairs, 29'999);
  // A gap of three steps, after the steps that the median is taken from.
  for (std::size_t k = 20'000; k < 30'000; ++k) d.trajectories[0].times[k] += 0.02;
  i = inspect(source_of(d));
  EXPECT_TRUE(i.even);
  EXPECT_EQ(i.gaps, 1);
  EXPECT_NEAR(i.largest_gap, 0.03, 1e-9);
  d.trajectories[0].times[5] += 0.004;
  i = inspect(source_of(d));
  EXPECT_FALSE(i.even);
  EXPECT_NEAR(i.smallest_step, 0.006, 1e-9);
  EXPECT_NEAR(i.largest_step, 0.014, 1e-9);
}

/// Against two passes over the data in memory.
TEST(InspectionTest, NumbersAreThoseOfTwoPasses) {
  Dataset d = waves(even_times(500));
  d.trajectories.push_back(d.trajectories[0]);
  d.trajectories[1].states.col(1).setConstant(3);
  const Inspection i = inspect(source_of(d));
  const Spread s = spread(d);
  EXPECT_EQ(i.rows, 1000);
  EXPECT_EQ(i.trajectory_rows, (std::vector<long>{500, 500}));
  EXPECT_EQ(i.pairs, 998);
  EXPECT_EQ(i.first_time, 0);
  EXPECT_EQ(i.latest_time, d.trajectories[0].times.back());
  EXPECT_LT((i.mean - s.mean).cwiseQuotient(s.sd).norm(), 1e-13);
  EXPECT_LT((i.sd - s.sd).cwiseQuotient(s.sd).norm(), 1e-13);
  EXPECT_LT((i.rms - root_mean_square(d)).cwiseQuotient(s.sd).norm(), 1e-13);
  double squares = 0;
  const Matrix& u = d.trajectories[0].states;
  for (int k = 1; k < 500; ++k) squares += std::pow((u(k, 0) - u(k - 1, 0)) / 0.01, 2);
  EXPECT_NEAR(i.rms_slope[0], std::sqrt(squares / 499), 1e-9);
  for (int v = 0; v < 2; ++v) {
    EXPECT_EQ(i.smallest[v],
              std::min(u.col(v).minCoeff(), d.trajectories[1].states.col(v).minCoeff()));
    EXPECT_EQ(i.largest[v],
              std::max(u.col(v).maxCoeff(), d.trajectories[1].states.col(v).maxCoeff()));
  }
  EXPECT_FALSE(i.constant[1]);
  d.trajectories.erase(d.trajectories.begin());
  EXPECT_TRUE(inspect(source_of(d)).constant[1]);
}

/// One rule for what is constant, whatever asks: round-off of a size is, a millionth of it is not,
/// however many rows there are.
TEST(InspectionTest, OneRuleForConstants) {
  for (const auto& [change, constant] : {std::pair{1e-13, true}, {1e-9, false}}) {
    Dataset d = waves(even_times(20'000));
    for (long k = 0; k < 20'000; ++k)
      d.trajectories[0].states(k, 1) = 1000 * (1 + (k % 2 == 0 ? change : 0));
    const ObservationSummary s = summarise(source_of(d));
    EXPECT_EQ(s.constant[1], constant);
    EXPECT_EQ(spread(d).sd[1] == 0, constant);
    EXPECT_EQ(standard_scaling(s).scale[1] == 1, constant);
    EXPECT_EQ(inspect(source_of(d)).constant[1], constant);
  }
}

TEST(InspectionTest, AVisitorThatHasSeenEnoughEndsTheReading) {
  const Dataset d = waves(even_times(100));
  int seen = 0;
  source_of(d).replay([&](std::size_t, double, const double*) { return ++seen < 7; });
  EXPECT_EQ(seen, 7);
  for (const Format* format : kFormats) {
    seen = 0;
    const std::string bytes = format->write(d);
    EXPECT_TRUE(format->matches(bytes)) << format->name;
    format->stream({.memory = bytes}, "memory", {},
                   [&](const TableInfo&, const TableRow&) { return ++seen < 7; });
    EXPECT_EQ(seen, 7) << format->name;
  }
}

TEST(InspectionTest, TooFewRowsAreNoReasonToGuess) {
  EXPECT_FALSE(std::isnan(inspect(source_of(waves(even_times(8)))).noise[0]));
  const Inspection i = inspect(source_of(waves(even_times(7))));
  EXPECT_TRUE(std::isnan(i.noise[0]));
  EXPECT_EQ(inspect(source_of(waves(even_times(1)))).pairs, 0);
}

}  // namespace
}  // namespace odecast
