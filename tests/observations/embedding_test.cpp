#include "odecast/observations/embedding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

Dataset series(int rows, double step, const std::function<double(double)>& x) {
  Dataset data{{"x"}, {{"", {}, Matrix(rows, 1)}}};
  for (int i = 0; i < rows; ++i) {
    data.trajectories[0].times.push_back(step * i);
    data.trajectories[0].states(i, 0) = x(step * i);
  }
  return data;
}

TEST(EmbeddingTest, NamesAreReadBack) {
  for (const char* name : {"delays:2", "delays:9", "derivatives:3"})
    EXPECT_EQ(embedding_name(*embedding_from_name(name)), name);
  for (const char* name : {"", "delays", "delays:", "delays:1", "delays:10", "delays:3x", "lags:2"})
    EXPECT_FALSE(embedding_from_name(name)) << name;
}

TEST(EmbeddingTest, DelaysAreEarlierRows) {
  const Dataset data = series(30, 0.5, [](double t) { return t * t; });
  const Dataset wide = embedded(data, {EmbeddingKind::delays, 3, 4, 0.5});
  EXPECT_EQ(wide.variables, (std::vector<std::string>{"x", "x(t-2)", "x(t-4)"}));
  const Trajectory& t = wide.trajectories[0];
  ASSERT_EQ(t.rows(), 22);
  for (int i = 0; i < t.rows(); ++i) {
    const double now = t.times[static_cast<std::size_t>(i)];
    EXPECT_EQ(now, 4 + 0.5 * i);
    for (int c = 0; c < 3; ++c) EXPECT_EQ(t.states(i, c), (now - 2 * c) * (now - 2 * c));
  }
}

TEST(EmbeddingTest, DerivativesOfAPolynomialAreItsOwn) {
  const Dataset data = series(20, 0.1, [](double t) { return 1 - t + 2 * t * t - t * t * t; });
  const Dataset wide = embedded(data, {EmbeddingKind::derivatives, 3, 6, 0.1});
  EXPECT_EQ(wide.variables, (std::vector<std::string>{"x", "x'", "x''"}));
  const Trajectory& rows = wide.trajectories[0];
  ASSERT_EQ(rows.rows(), 14);
  for (int i = 0; i < rows.rows(); ++i) {
    const double t = rows.times[static_cast<std::size_t>(i)];
    EXPECT_NEAR(rows.states(i, 1), -1 + 4 * t - 3 * t * t, 1e-10);
    EXPECT_NEAR(rows.states(i, 2), 4 - 6 * t, 1e-8);
  }
}

TEST(EmbeddingTest, NoRowLooksAhead) {
  const auto x = [](double t) { return std::sin(t); };
  Dataset data = series(40, 0.2, x), other = data;
  other.trajectories[0].states(39, 0) = 1e6;
  for (const EmbeddingKind kind : {EmbeddingKind::delays, EmbeddingKind::derivatives}) {
    const Matrix a = embedded(data, {kind, 2, 5, 0.2}).trajectories[0].states,
                 b = embedded(other, {kind, 2, 5, 0.2}).trajectories[0].states;
    EXPECT_EQ(a.topRows(a.rows() - 1), b.topRows(b.rows() - 1));
    EXPECT_NE(a.bottomRows(1), b.bottomRows(1));
  }
}

TEST(EmbeddingTest, AGapBeginsAnew) {
  Dataset data = series(30, 1, [](double t) { return t; });
  for (std::size_t i = 15; i < 30; ++i) data.trajectories[0].times[i] += 10;
  const Dataset wide = embedded(data, {EmbeddingKind::delays, 2, 3, 1});
  ASSERT_EQ(wide.trajectories.size(), 2u);
  EXPECT_EQ(wide.trajectories[1].times.front(), 28);  // row 18, at t = 18 + 10
  EXPECT_EQ(wide.trajectories[1].states(0, 1), 15);
}

TEST(EmbeddingTest, TheLagFollowsFromTheCorrelation) {
  // cos falls to 1/e at t = 1.194, row 12 of steps of 0.1: delays of half of that.
  const Dataset data = series(2000, 0.1, [](double t) { return std::cos(t); });
  EXPECT_EQ(fitted_embedding(data, {EmbeddingKind::delays, 3}).lag, 6);
  EXPECT_EQ(fitted_embedding(data, {EmbeddingKind::derivatives, 2}).lag, 4);
  EXPECT_NEAR(fitted_embedding(data, {EmbeddingKind::delays, 3}).step, 0.1, 1e-12);
}

TEST(EmbeddingTest, WhatCannotBeEmbeddedIsRefused) {
  Dataset uneven = series(30, 1, [](double t) { return t; });
  uneven.trajectories[0].times[3] += 0.3;
  EXPECT_THROW(fitted_embedding(uneven, {}), Error);
  EXPECT_THROW(embedded(uneven, {EmbeddingKind::delays, 2, 1, 1}), Error);
  EXPECT_THROW(embedded(series(5, 1, [](double t) { return t; }), {EmbeddingKind::delays, 3, 3, 1}),
               Error);
  Dataset two = series(30, 1, [](double t) { return t; });
  two.variables.push_back("y");
  EXPECT_THROW(fitted_embedding(two, {}), Error);
}

}  // namespace
}  // namespace odecast
