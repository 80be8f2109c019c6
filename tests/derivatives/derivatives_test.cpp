#include "odecast/derivatives/derivatives.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

Dataset sine(double h, int rows) {
  Dataset d{{"x"}, {{"", {}, Matrix(rows, 1)}}, {}};
  for (int i = 0; i < rows; ++i) {
    d.trajectories[0].times.push_back(i * h);
    d.trajectories[0].states(i, 0) = std::sin(i * h);
  }
  return d;
}

TEST(DerivativesTest, ExactOnLinesEvenOrUneven) {
  const Dataset d{{"x", "y"}, {{"", {0, 0.5, 2}, (Matrix(3, 2) << 1, 0, 2, -1, 5, -4).finished()}}, {}};
  const DerivativeRows rows = forward_differences(d, {});
  ASSERT_EQ(rows.rows(), 2);
  EXPECT_EQ(rows.derivatives, (Matrix(2, 2) << 2, -2, 2, -2).finished());
  EXPECT_EQ(rows.states, d.trajectories[0].states.topRows(2));
  EXPECT_DOUBLE_EQ(rows.sigma(0, 0), 0.25);
  EXPECT_DOUBLE_EQ(rows.sigma(1, 1), 2.25);
}

TEST(DerivativesTest, ErrorIsOfFirstOrder) {
  const auto error = [](double h) {
    const DerivativeRows rows = forward_differences(sine(h, static_cast<int>(2 / h)), {});
    double worst = 0;
    for (Eigen::Index i = 0; i < rows.rows(); ++i)
      worst = std::max(worst, std::abs(rows.derivatives(i, 0) - std::cos(h * static_cast<double>(i))));
    return worst;
  };
  EXPECT_NEAR(std::log2(error(0.02) / error(0.01)), 1, 0.05);
}

TEST(DerivativesTest, NoiseFollowsItsOptions) {
  const DerivativeRows rows = forward_differences(sine(0.1, 5), {.noise_factor = 3, .noise_order = 1});
  EXPECT_NEAR(rows.sigma(2, 0), 0.3, 1e-15);
  EXPECT_THROW(forward_differences(sine(0.1, 5), {.noise_factor = -1}), Error);
}

TEST(DerivativesTest, NoRowCrossesATrajectorysEnd) {
  Dataset d = sine(0.1, 10);
  d.trajectories.push_back(d.trajectories[0]);
  d.trajectories[1].states.array() += 1000;
  const DerivativeRows rows = forward_differences(d, {});
  EXPECT_EQ(rows.rows(), 18);
  EXPECT_LE(rows.derivatives.cwiseAbs().maxCoeff(), 1.0);
}

TEST(DerivativesTest, OneRowIsNotEnough) {
  EXPECT_THROW(forward_differences(sine(0.1, 1), {}), Error);
}

}  // namespace
}  // namespace odecast
