#include "odecast/observations/dataset.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/observations/scaling.hpp"

namespace odecast {
namespace {

Dataset make(int rows, int variables = 2) {
  Dataset d;
  for (int j = 0; j < variables; ++j) d.variables.push_back("v" + std::to_string(j));
  Trajectory t{"", {}, Matrix(rows, variables)};
  for (int i = 0; i < rows; ++i) {
    t.times.push_back(i);
    for (int j = 0; j < variables; ++j) t.states(i, j) = std::sin(0.7 * i + j) * (j + 1) + 3 * j;
  }
  d.trajectories.push_back(t);
  return d;
}

TEST(DatasetTest, SplitKeepsEveryRowOnceAndInOrder) {
  const Dataset d = make(103);
  const Split s = split_last(d, 0.2);
  EXPECT_EQ(s.train.rows(), 82);
  EXPECT_EQ(s.test.rows(), 21);
  EXPECT_EQ(s.train.trajectories[0].times.back() + 1, s.test.trajectories[0].times.front());
  EXPECT_EQ(s.test.trajectories[0].states.row(20), d.trajectories[0].states.row(102));
  EXPECT_THROW(split_last(make(1), 0.2), Error);
  EXPECT_THROW(split_last(d, 0), Error);
  EXPECT_THROW(split_last(d, 1), Error);
}

TEST(DatasetTest, StandardScalingGivesMeanZeroAndUnitSpread) {
  const Dataset d = make(500);
  const Scaling s = standard_scaling(summarise(source_of(d)));
  const Spread after = spread(to_model_units(d, s));
  EXPECT_NEAR(after.mean.norm(), 0, 1e-13);
  EXPECT_NEAR((after.sd - Vector::Ones(2)).norm(), 0, 1e-13);
  const Vector u = d.trajectories[0].states.row(7);
  EXPECT_NEAR((s.to_user(s.to_model(u)) - u).norm(), 0, 1e-14);
}

TEST(DatasetTest, ConstantColumnsKeepTheirScale) {
  Dataset d = make(50);
  d.trajectories[0].states.col(1).setConstant(1e9 / 3);
  EXPECT_EQ(standard_scaling(summarise(source_of(d))).scale[1], 1);
}

TEST(DatasetTest, ScalingByPowersOfTwoKeepsTheBits) {
  const Dataset d = make(300);
  Dataset scaled = d;
  scaled.trajectories[0].states.col(0) *= 0x1p-30;
  scaled.trajectories[0].states.col(1) *= 0x1p30;
  EXPECT_EQ(to_model_units(d, standard_scaling(summarise(source_of(d)))).trajectories[0].states,
            to_model_units(scaled, standard_scaling(summarise(source_of(scaled))))
                .trajectories[0]
                .states);
}

TEST(DatasetTest, SummaryEqualsTheFormulas) {
  Dataset d = make(400);
  d.trajectories.push_back(d.trajectories[0]);
  d.trajectories[1].states.array() += 0.25;
  const ObservationSummary s = summarise(source_of(d));
  const Spread expected = spread(d);
  EXPECT_EQ(s.rows, 800);
  EXPECT_EQ(s.trajectories, 2);
  EXPECT_EQ(s.pairs, 798);
  EXPECT_LT((s.mean - expected.mean).norm(), 1e-13);
  EXPECT_LT((s.sd - expected.sd).norm(), 1e-13);
  EXPECT_LT((s.rms - root_mean_square(d)).norm(), 1e-13);
  EXPECT_EQ(s.step, 1);
  EXPECT_EQ(s.last_trajectory, 1u);
  EXPECT_EQ(s.last_state.transpose(), d.trajectories[1].states.row(399));
  double squares = 0;
  for (int i = 0; i < 399; ++i)
    squares += std::pow(d.trajectories[0].states(i + 1, 0) - d.trajectories[0].states(i, 0), 2);
  EXPECT_NEAR(s.rms_slope[0], std::sqrt(squares / 399), 1e-12);
}

TEST(DatasetTest, NoiseHasTheAskedSpreadAndFollowsTheSeed) {
  const Dataset d = make(20'000);
  Dataset a = d, b = d, c = d;
  add_noise(a, Eigen::Vector2d(0.5, 2), 1);
  add_noise(b, Eigen::Vector2d(0.5, 2), 1);
  add_noise(c, Eigen::Vector2d(0.5, 2), 2);
  EXPECT_EQ(a.trajectories[0].states, b.trajectories[0].states);
  EXPECT_NE(a.trajectories[0].states, c.trajectories[0].states);
  a.trajectories[0].states -= d.trajectories[0].states;
  const Spread s = spread(a);
  // The sd of N normals has standard error sd/sqrt(2N).
  EXPECT_NEAR(s.sd[0], 0.5, 5 * 0.5 / std::sqrt(40'000));
  EXPECT_NEAR(s.sd[1], 2, 5 * 2 / std::sqrt(40'000));
}

}  // namespace
}  // namespace odecast
