#include "odecast/shooting/trajectory_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/observations/inspection.hpp"

namespace odecast {
namespace {

/// x = 3 cos t, y = 40 sin t, in several trajectories.
Dataset circles(int trajectories, int rows, double step, double noise) {
  Dataset data{{"x", "y"}, {}};
  for (int k = 0; k < trajectories; ++k) {
    Trajectory t{std::to_string(k), {}, Matrix(rows, 2)};
    for (int i = 0; i < rows; ++i) {
      t.times.push_back(step * i);
      t.states.row(i) << 3 * std::cos(step * i + k), 40 * std::sin(step * i + k);
    }
    data.trajectories.push_back(std::move(t));
  }
  add_noise(data, Eigen::Vector2d(3 * noise, 40 * noise), 1);
  return data;
}

Vector noise_of_fit(const Dataset& data, const TrajectoryOptions& options) {
  return fit_trajectory(data, options, ignore_progress).smoothed_noise;
}

void expect_one_noise(const Dataset& data, const TrajectoryOptions& options) {
  const Vector fitted = noise_of_fit(data, options);
  const Vector inspected = inspect(source_of(data)).noise.head(data.dimension());
  for (Eigen::Index i = 0; i < fitted.size(); ++i)
    EXPECT_NEAR(fitted[i], inspected[i], 1e-9 * inspected[i]) << i;
}

TEST(TrajectoryFitTest, InspectionGivesTheNoiseThatAFitBeginsWith) {
  TrajectoryOptions options;
  options.terms = {{0, {0, 1}}, {1, {1, 0}}};
  expect_one_noise(circles(1, 200, 0.1, 0.02), options);
  expect_one_noise(circles(3, 100, 0.1, 0.2), options);
  Dataset data = circles(2, 300, 0.05, 0.05);
  Stream stream(3, Purpose::initial_state, 0);
  for (Trajectory& t : data.trajectories)
    for (auto& x : t.states.reshaped())
      if (stream.uniform() < 0.3) x = std::nan("");
  expect_one_noise(data, options);
  data.inputs = {"w"};
  for (Trajectory& t : data.trajectories) {
    t.inputs.resize(t.rows(), 1);
    for (auto& w : t.inputs.reshaped()) w = stream.normal();
  }
  options.terms = {{0, {0, 1, 0}}, {1, {1, 0, 0}}};
  expect_one_noise(data, options);
}

TEST(TrajectoryFitTest, AVariableThatIsSeldomSeenDoesNotMakeTheResidualsLookLarge) {
  Dataset data = circles(1, 300, 0.05, 0.02);
  for (Eigen::Index k = 0; k < 300; ++k)
    if (k % 10 != 0) data.trajectories[0].states(k, 1) = std::nan("");
  TrajectoryOptions options;
  options.terms = {{0, {0, 1}}, {1, {1, 0}}};
  const TrajectoryFit fit = fit_trajectory(data, options, ignore_progress);
  EXPECT_FALSE(fit.misfit);
  // That of x alone, whose smoother knows its noise to a few per cent.
  EXPECT_NEAR(fit.noise_ratio, 1, 0.15);
  EXPECT_NEAR(fit.noise[1], 0.8, 5 * 0.8 / std::sqrt(2 * 30));
}

/// The terms of each equation of the best set.
std::vector<std::vector<int>> best_terms(const TrajectoryFit& fit, int equations) {
  std::vector<std::vector<int>> terms(static_cast<std::size_t>(equations));
  for (const FieldTerm& t : fit.members.front().support)
    terms[static_cast<std::size_t>(t.equation)].push_back(t.term);
  return terms;
}

TEST(TrajectoryFitTest, AnOffsetChangesNoTermsOfAnOscillator) {
  // x = cos t and y = -sin t around 1000 and -50000: monomials around 0 are alike to 1e-6.
  Dataset data = circles(1, 200, 0.1, 0.02);
  data.trajectories[0].states.rowwise() += Eigen::RowVector2d(1000, -50000);
  const TrajectoryFit fit = fit_trajectory(data, {}, ignore_progress);
  ASSERT_TRUE(fit.usable);
  EXPECT_EQ(fit.scaling.offset, Eigen::Vector2d(1000, -50000));
  EXPECT_EQ(best_terms(fit, 2), (std::vector<std::vector<int>>{{2}, {1}}));
  // The path is in the user's units.
  EXPECT_NEAR(fit.path[0].col(0).mean(), 1000, 1);
  EXPECT_NEAR(fit.path[0].col(1).mean(), -50000, 10);
  EXPECT_EQ(fit_trajectory(circles(1, 200, 0.1, 0.02), {}, ignore_progress).scaling.offset,
            Vector::Zero(2));
}

TEST(TrajectoryFitTest, TimeAsAnInputMayBeAYear) {
  // dx/dt = -x + (year - 1910) / 5: x = (year - 1910) / 5 - 1/5 + c exp(-t).
  Dataset data{{"x"}, {{"", {}, Matrix(100, 1)}}};
  for (int i = 0; i < 100; ++i) {
    const double t = 0.2 * i;
    data.trajectories[0].times.push_back(1900 + t);
    data.trajectories[0].states(i, 0) = (t - 10) / 5 - 0.2 + 4 * std::exp(-t);
  }
  add_noise(data, Vector::Constant(1, 0.01), 1);
  TrajectoryOptions options;
  options.time_input = true;
  const TrajectoryFit fit = fit_trajectory(data, options, ignore_progress);
  ASSERT_TRUE(fit.usable);
  EXPECT_EQ(fit.input_offset[0], 1910);
  EXPECT_EQ(best_terms(fit, 1), (std::vector<std::vector<int>>{{1, 2}}));
}

TEST(TrajectoryFitTest, OfManyRowsTheNoiseIsThatOfAll) {
  TrajectoryOptions options;
  options.terms = {{0, {0, 1}}, {1, {1, 0}}};
  Dataset data = circles(1, 20'000, 0.1, 0.02);
  // Four times the noise in 3000 rows that inspect() does not hold, and says so.
  Dataset late = circles(1, 20'000, 0.1, 0.08);
  data.trajectories[0].states.bottomRows(3000) = late.trajectories[0].states.bottomRows(3000);
  const Inspection inspected = inspect(source_of(data));
  EXPECT_EQ(inspected.noise_rows, kNoiseRows);
  const double first = 3 * 0.02, all = first * std::sqrt((17.0 + 3 * 16) / 20);
  EXPECT_NEAR(inspected.noise[0], first, 5 * first / std::sqrt(2.0 * kNoiseRows));
  // The variance of all: that of its estimate is mostly that of the late rows.
  EXPECT_NEAR(noise_of_fit(data, options)[0], all, 5 * all / std::sqrt(2 * 3000.0));
}

}  // namespace
}  // namespace odecast
