#include "odecast/derivatives/smoothing.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>

#include "odecast/core/random.hpp"
#include "support/series.hpp"

namespace odecast {
namespace {

std::vector<double> exponential_times(int rows, double mean) {
  Stream stream(1, Purpose::initial_state, 0);
  std::vector<double> times;
  double t = 0;
  for (int i = 0; i < rows; ++i) times.push_back(t -= mean * portable_log(stream.uniform()));
  return times;
}

TEST(SmoothingTest, LocalPolynomialsAreExactUpToTheirDegree) {
  const std::vector<double> times = exponential_times(60, 0.1);
  const Dataset d =
      series(times, [](double t) { return 1 + t - 0.5 * t * t + 0.1 * t * t * t * t; });
  const DerivativeRows rows = derivative_rows(d, {.method = DerivativeMethod::savgol});
  ASSERT_EQ(rows.rows(), 54);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const double t = times[static_cast<std::size_t>(i + 3)];
    EXPECT_NEAR(rows.states(i, 0), d.trajectories[0].states(i + 3, 0), 1e-9 * (1 + t * t * t * t));
    EXPECT_NEAR(rows.derivatives(i, 0), 1 - t + 0.4 * t * t * t, 1e-8 * (1 + t * t * t));
  }
}

/// Root mean square of (estimate - truth) / σ, and of the error itself, for a noisy sine.
struct Errors {
  double ratio, size;
};
Errors of_noisy_sine(DerivativeMethod method, bool even, double noise) {
  const int N = 4000;
  const std::vector<double> times = even ? evenly(N, 0.02) : exponential_times(N, 0.02);
  Dataset d = series(times, [](double t) { return std::sin(t); });
  Stream stream(5, Purpose::observation_noise, 0);
  for (Eigen::Index i = 0; i < N; ++i) d.trajectories[0].states(i, 0) += noise * stream.normal();
  const DerivativeRows rows = derivative_rows(d, {.method = method});
  const auto skipped = static_cast<std::size_t>((N - rows.rows()) / 2);
  Errors e{0, 0};
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const double error =
        rows.derivatives(i, 0) - std::cos(times[static_cast<std::size_t>(i) + skipped]);
    e.size += error * error;
    e.ratio += std::pow(error / rows.sigma(i, 0), 2);
  }
  const auto count = static_cast<double>(rows.rows());
  return {std::sqrt(e.ratio / count), std::sqrt(e.size / count)};
}

TEST(SmoothingTest, SigmaIsTheErrorAndFarBelowThatOfDifferences) {
  // Errors of neighbouring rows are correlated over a window of about 100 rows, so that 4000 rows
  // count as about 40: five standard errors √(1/80) of their root mean square are 0.56, and the
  // spline's prior is only roughly a sine's.
  for (const bool even : {true, false})
    for (const auto method : {DerivativeMethod::savgol, DerivativeMethod::spline}) {
      const Errors e = of_noisy_sine(method, even, 0.05);
      EXPECT_GT(e.ratio, 0.4) << derivative_name(method) << even;
      EXPECT_LT(e.ratio, 1.6) << derivative_name(method) << even;
      EXPECT_LT(e.size, 0.1 * of_noisy_sine(DerivativeMethod::central2, even, 0.05).size);
    }
}

TEST(SmoothingTest, SplineSolvesThePenalisedProblem) {
  // Reinsch's form of the same: with Q, T of the natural cubic spline, (I + λ Q T⁻¹ Qᵀ) f = y.
  const std::vector<double> t = {0, 0.4, 1, 1.3, 2.2, 2.5, 3.1};
  const int n = 7;
  Vector y(n);
  y << 1, 0.5, 2, -1, 0.3, 0.9, 4;
  Eigen::MatrixXd Q = Eigen::MatrixXd::Zero(n, n - 2), T = Eigen::MatrixXd::Zero(n - 2, n - 2);
  for (int j = 0; j < n - 2; ++j) {
    const auto k = static_cast<std::size_t>(j);
    const double a = t[k + 1] - t[k], b = t[k + 2] - t[k + 1];
    Q(j, j) = 1 / a;
    Q(j + 1, j) = -1 / a - 1 / b;
    Q(j + 2, j) = 1 / b;
    T(j, j) = (a + b) / 3;
    if (j + 1 < n - 2) T(j, j + 1) = T(j + 1, j) = b / 6;
  }
  for (const double lambda : {1e-3, 0.1, 10.0}) {
    const Eigen::MatrixXd M =
        Eigen::MatrixXd::Identity(n, n) + lambda * Q * T.llt().solve(Q.transpose().eval());
    const Eigen::MatrixXd A = M.llt().solve(Eigen::MatrixXd::Identity(n, n));
    const Vector f = A * y;
    const SmoothingSpline s = smoothing_spline(t, y, {n}, lambda);
    EXPECT_LT((s.value - f).norm(), 1e-11);
    EXPECT_NEAR(s.trace, A.trace(), 1e-11);
    EXPECT_NEAR(s.residual, (y - f).squaredNorm(), 1e-11);
    // f'(t_0) of a natural spline with second derivatives c = T⁻¹ Qᵀ f.
    const Vector c = T.llt().solve(Q.transpose() * f);
    EXPECT_NEAR(s.slope[0], (f[1] - f[0]) / 0.4 - 0.4 * c[0] / 6, 1e-10);
  }
}

TEST(SmoothingTest, SplineGoesFromInterpolationToTheLine) {
  const std::vector<double> t = {0, 1, 2, 4, 5};
  Vector y(5);
  y << 0, 3, 1, 2, 5;
  EXPECT_LT((smoothing_spline(t, y, {5}, 1e-9).value - y).norm(), 1e-6);
  const SmoothingSpline line = smoothing_spline(t, y, {5}, 1e9);
  Eigen::MatrixXd V(5, 2);
  for (int i = 0; i < 5; ++i) V.row(i) << 1, t[static_cast<std::size_t>(i)];
  const Vector best = V.colPivHouseholderQr().solve(y);
  EXPECT_LT((line.value - V * best).norm(), 1e-5);
  EXPECT_NEAR(line.slope[3], best[1], 1e-5);
  EXPECT_NEAR(line.trace, 2, 1e-5);
  // Segments share λ and nothing else.
  Vector twice(10);
  twice << y, y;
  std::vector<double> again = t;
  again.insert(again.end(), t.begin(), t.end());
  const SmoothingSpline both = smoothing_spline(again, twice, {5, 5}, 0.1),
                        one = smoothing_spline(t, y, {5}, 0.1);
  EXPECT_EQ(both.value.tail(5), one.value);
}

}  // namespace
}  // namespace odecast
