#include "odecast/derivatives/derivatives.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "support/series.hpp"

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
  const Dataset d{
      {"x", "y"}, {{"", {0, 0.5, 2}, (Matrix(3, 2) << 1, 0, 2, -1, 5, -4).finished()}}, {}};
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
      worst =
          std::max(worst, std::abs(rows.derivatives(i, 0) - std::cos(h * static_cast<double>(i))));
    return worst;
  };
  EXPECT_NEAR(std::log2(error(0.02) / error(0.01)), 1, 0.05);
}

TEST(DerivativesTest, NoiseFollowsItsOptions) {
  const DerivativeRows rows =
      forward_differences(sine(0.1, 5), {.noise_factor = 3, .noise_order = 1});
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

constexpr DerivativeMethod kCentral[] = {DerivativeMethod::central2, DerivativeMethod::central4,
                                         DerivativeMethod::central6, DerivativeMethod::central8};

/// Spacings between a half and one and a half of the mean.
std::vector<double> unevenly(int rows, double step) {
  Stream stream(1, Purpose::initial_state, 0);
  std::vector<double> times;
  double t = 0;
  for (int i = 0; i < rows; ++i) times.push_back(t += step * (0.5 + stream.uniform()));
  return times;
}

TEST(DerivativesTest, CentralDifferencesAreExactOnPolynomialsOfTheirOrder) {
  const std::vector<double> times = unevenly(30, 0.1);
  for (const DerivativeMethod method : kCentral) {
    const int order = central_order(method);
    const Dataset d = series(times, [&](double t) { return std::pow(t - 1, order); });
    const DerivativeRows rows = derivative_rows(d, {.method = method});
    ASSERT_EQ(rows.rows(), 30 - order) << "no one-sided rows";
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const double t = times[static_cast<std::size_t>(i + order / 2)];
      EXPECT_EQ(rows.states(i, 0), std::pow(t - 1, order));
      EXPECT_NEAR(rows.derivatives(i, 0), order * std::pow(t - 1, order - 1), 1e-9);
    }
  }
}

TEST(DerivativesTest, CentralDifferencesHaveTheirOrder) {
  for (const DerivativeMethod method : kCentral) {
    const int order = central_order(method);
    const auto error = [&](double h) {
      const Dataset d =
          series(evenly(static_cast<int>(4 / h), h), [](double t) { return std::sin(3 * t); });
      const DerivativeRows rows = derivative_rows(d, {.method = method});
      double square = 0;
      for (Eigen::Index i = 0; i < rows.rows(); ++i) {
        const double t = h * static_cast<double>(i + order / 2);
        square += std::pow(rows.derivatives(i, 0) - 3 * std::cos(3 * t), 2);
      }
      return std::sqrt(square / static_cast<double>(rows.rows()));
    };
    EXPECT_NEAR(std::log2(error(0.08) / error(0.04)), order, 0.15) << order;
  }
}

TEST(DerivativesTest, SigmaIsTheErrorOfCentralDifferences) {
  // Truncation: clean data. Noise: fine sampling. The root mean square error over σ is 1 up to the
  // approximation of the curvature by its mean, and the five-fold standard error √(1/2N) = 0.008 of
  // noise.
  for (const double noise : {0.0, 1e-3})
    for (const bool even : {true, false}) {
      const double step = noise > 0 ? 0.01 : 0.05;
      const std::vector<double> times = even ? evenly(8000, step) : unevenly(8000, step);
      Dataset d = series(times, [](double t) { return std::sin(t); });
      Stream stream(2, Purpose::observation_noise, 0);
      for (Eigen::Index i = 0; i < 8000; ++i)
        d.trajectories[0].states(i, 0) += noise * stream.normal();
      const DerivativeRows rows = derivative_rows(d, {.method = DerivativeMethod::central4});
      double ratio = 0;
      for (Eigen::Index i = 0; i < rows.rows(); ++i)
        ratio +=
            std::pow((rows.derivatives(i, 0) - std::cos(times[static_cast<std::size_t>(i + 2)])) /
                         rows.sigma(i, 0),
                     2);
      EXPECT_NEAR(std::sqrt(ratio / static_cast<double>(rows.rows())), 1, 0.1) << noise << even;
    }
}

TEST(DerivativesTest, NoMethodCrossesAnEndOrAGap) {
  // Two trajectories and a gap, each piece a line of slope 1 on a level of its own: any row that
  // takes two pieces together has a slope far from 1.
  std::vector<double> times;
  for (int i = 0; i < 60; ++i) times.push_back(i < 30 ? 0.1 * i : 100 + 0.1 * i);
  Dataset d = series(times, [](double t) { return t < 50 ? t : t + 1000; });
  d.trajectories.push_back(d.trajectories[0]);
  d.trajectories[1].states.array() -= 5000;
  for (const auto method :
       {DerivativeMethod::forward, DerivativeMethod::central2, DerivativeMethod::central8,
        DerivativeMethod::savgol, DerivativeMethod::spline}) {
    const DerivativeRows rows = derivative_rows(d, {.method = method});
    EXPECT_GE(rows.rows(), 4 * (30 - 8));
    EXPECT_LT((rows.derivatives.array() - 1).abs().maxCoeff(), 1e-6) << derivative_name(method);
  }
  EXPECT_EQ(derivative_rows(d, {}).rows(), 4 * 29);
}

TEST(DerivativesTest, StreamedRowsAreThoseInMemory) {
  Dataset d = series(
      unevenly(500, 0.1), [](double t) { return std::sin(t); }, [](double t) { return t * t; });
  d.trajectories.push_back(
      series(
          unevenly(100, 0.2), [](double t) { return t; }, [](double t) { return -t; })
          .trajectories[0]);
  const DerivativeRows all = derivative_rows(d, {.method = DerivativeMethod::central4});
  const ObservationSource source = source_of(d);
  Eigen::Index at = 0;
  stream_differences(source, no_scaling(2), {.method = DerivativeMethod::central4},
                     summarise(source), 64, [&](const DerivativeRows& part) {
                       EXPECT_EQ(part.states, all.states.middleRows(at, part.rows()));
                       EXPECT_EQ(part.derivatives, all.derivatives.middleRows(at, part.rows()));
                       EXPECT_EQ(part.sigma, all.sigma.middleRows(at, part.rows()));
                       at += part.rows();
                     });
  EXPECT_EQ(at, all.rows());
}

TEST(DerivativesTest, BadOptionsAndTooFewRowsAreErrors) {
  const Dataset d = sine(0.1, 8);
  EXPECT_THROW(derivative_rows(d, {.method = DerivativeMethod::central8}), Error);
  EXPECT_THROW(derivative_rows(d, {.noise = Vector::Constant(1, -1)}), Error);
  EXPECT_THROW(derivative_rows(d, {.noise = Vector::Ones(2)}), Error);
  EXPECT_THROW(derivative_rows(d, {.gap = -1}), Error);
  EXPECT_THROW(derivative_rows(sine(0.1, 6), {.method = DerivativeMethod::savgol}), Error);
  EXPECT_THROW(derivative_rows(sine(0.1, 4), {.method = DerivativeMethod::spline}), Error);
  for (const char* name : {"forward", "central6", "savgol", "spline", "weak", "auto"})
    EXPECT_EQ(derivative_name(*derivative_from_name(name)), name);
  EXPECT_FALSE(derivative_from_name("backward"));
}

TEST(DerivativesTest, AGivenNoiseEntersForwardDifferences) {
  const DerivativeRows rows = derivative_rows(
      sine(0.1, 5), {.forward = {.noise_factor = 0}, .noise = Vector::Constant(1, 0.3)});
  EXPECT_NEAR(rows.sigma(1, 0), std::sqrt(2.0) * 0.3 / 0.1, 1e-12);
}

}  // namespace
}  // namespace odecast
