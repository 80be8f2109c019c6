#include "odecast/filter/analysis.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

namespace odecast {
namespace {

Matrix normals(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  Stream stream(seed, Purpose::observation_noise, 0);
  Matrix m(rows, columns);
  for (double& x : m.reshaped()) x = stream.normal();
  return m;
}

/// Two sums of three variables.
Seen two_sums() {
  Seen seen{Matrix(2, 3), Eigen::Vector2d(0.7, -1.2), Eigen::Vector2d(0.3, 0.8)};
  seen.H << 1, 0, 2, 0, -1, 0.5;
  return seen;
}

/// Kalman's formulas, by a dense inverse.
EnsembleMoments kalman(const EnsembleMoments& before, const Seen& seen) {
  const Eigen::MatrixXd P = before.covariance, R = seen.sd.cwiseAbs2().asDiagonal().toDenseMatrix(),
                        S = seen.H * P * seen.H.transpose() + R,
                        K = P * seen.H.transpose() * S.inverse();
  return {before.mean + K * (seen.values - seen.H * before.mean), P - K * seen.H * P};
}

void expect_equal(const EnsembleMoments& a, const EnsembleMoments& b, double tolerance) {
  EXPECT_LT((a.mean - b.mean).cwiseAbs().maxCoeff(), tolerance);
  EXPECT_LT((a.covariance - b.covariance).cwiseAbs().maxCoeff(), tolerance);
}

TEST(AnalysisTest, MeanAndCovarianceAreKalmans) {
  for (const Eigen::Index members : {3, 6, 40}) {
    Matrix m = normals(members, 3, 1);
    const EnsembleMoments expected = kalman(ensemble_moments(m), two_sums());
    kalman_analysis(m, two_sums());
    expect_equal(ensemble_moments(m), expected, 1e-12);
  }
}

TEST(AnalysisTest, IteratedIsKalmanWhereTheFlowIsLinear) {
  Matrix flow(3, 3);
  flow << 0.9, 0.3, 0, -0.3, 0.9, 0.1, 0, 0.2, 1.1;
  Matrix m = normals(20, 3, 2), after = m * flow.transpose();
  int carried = 0;
  const int rounds = iterated_analysis(
      m,
      [&](const Matrix& x) -> Matrix {
        ++carried;
        return x * flow.transpose();
      },
      two_sums());
  EXPECT_EQ(rounds, 2) << "the first round ends at the minimum, the second sees that";
  EXPECT_EQ(carried, rounds);
  kalman_analysis(after, two_sums());
  expect_equal(ensemble_moments(m * flow.transpose()), ensemble_moments(after), 1e-12);
}

/// E[u | y] of a flow that bends, by quadrature in one variable.
TEST(AnalysisTest, IteratedFindsTheModeWhereTheFlowBends) {
  // u1 = u0 + u0²/4 with u0 ~ N(1, 0.5²), y = u1 + 0.05 ε = 2: the mode is where u1 is close to 2.
  Matrix m = 0.5 * normals(400, 1, 3);
  m.array() += 1 - m.mean();
  const Seen seen{Matrix::Ones(1, 1), Vector::Constant(1, 2), Vector::Constant(1, 0.05)};
  const auto flow = [](const Matrix& x) -> Matrix { return x.array() + 0.25 * x.array().square(); };
  Matrix once = flow(m);
  kalman_analysis(once, seen);
  iterated_analysis(m, flow, seen);
  const double sd = std::sqrt(ensemble_moments(m).covariance(0, 0));
  // J(u) = (u - 1)²/(2 0.25) + (2 - u - u²/4)²/(2 0.0025), by bisection of its slope.
  double low = 1, high = 2;
  for (int k = 0; k < 60; ++k) {
    const double u = 0.5 * (low + high),
                 slope = (u - 1) / 0.25 - (2 - u - u * u / 4) * (1 + u / 2) / 0.0025;
    (slope > 0 ? high : low) = u;
  }
  // The ensemble's own sd is that of 400 members, and its slope one over a finite spread.
  EXPECT_NEAR(ensemble_moments(m).mean[0], low, 0.1 * sd);
  EXPECT_NEAR(sd, 0.05 / (1 + low / 2), 0.1 * sd);
}

TEST(AnalysisTest, RotationKeepsMeanAndCovariance) {
  for (const auto& [members, variables] : {std::pair{40, 3}, std::pair{5, 4}, std::pair{4, 6}}) {
    Matrix m = normals(members, variables, 4);
    const Matrix before = m;
    const EnsembleMoments expected = ensemble_moments(m);
    Stream stream(1, Purpose::filter_rotation, 0);
    rotate_members(m, stream);
    expect_equal(ensemble_moments(m), expected, 1e-12);
    EXPECT_GT((m - before).cwiseAbs().maxCoeff(), 0.1);
  }
}

TEST(AnalysisTest, InnovationIsThatOfANormalForecast) {
  const EnsembleMoments before = ensemble_moments(normals(30, 3, 5));
  const Seen seen = two_sums();
  const Eigen::MatrixXd R = seen.sd.cwiseAbs2().asDiagonal().toDenseMatrix(),
                        S = seen.H * before.covariance * seen.H.transpose() + R;
  const Vector d = seen.values - seen.H * before.mean;
  const double chi2 = d.dot(S.inverse() * d);
  const Innovation found = innovation(before, seen);
  EXPECT_NEAR(found.surprise, chi2 / 2, 1e-12);
  EXPECT_NEAR(found.log_score, -0.5 * chi2 - std::log(2 * M_PI * std::sqrt(S.determinant())),
              1e-12);
  EXPECT_NEAR(found.sd[1], std::sqrt(S(1, 1)), 1e-12);
}

TEST(AnalysisTest, WeightsAreBayesRule) {
  // Particles of N(0, 1), seen at 1 with sd 0.5: N(0.8, 0.2), evidence N(1; 0, 1.25).
  constexpr Eigen::Index N = 20000;
  const Matrix m = normals(N, 1, 6);
  Vector weights = Vector::Constant(N, 1.0 / N);
  const Seen seen{Matrix::Ones(1, 1), Vector::Ones(1), Vector::Constant(1, 0.5)};
  const double log_evidence = weigh(m, weights, seen);
  EXPECT_NEAR(weights.sum(), 1, 1e-12);
  const double few = effective_members(weights);
  const EnsembleMoments after = weighted_moments(m, weights);
  EXPECT_NEAR(after.mean[0], 0.8, 5 * std::sqrt(0.2 / few));
  EXPECT_NEAR(after.covariance(0, 0), 0.2, 5 * 0.2 * std::sqrt(2 / few));
  const double exact = -0.5 / 1.25 - 0.5 * std::log(2 * M_PI * 1.25);
  EXPECT_NEAR(log_evidence, exact, 5 * std::sqrt((1 / few - 1.0 / N)));
  // Quantiles: those of the normal, with the error of a rank.
  std::vector<std::pair<double, double>> pairs;
  for (Eigen::Index k = 0; k < N; ++k) pairs.emplace_back(m(k, 0), weights[k]);
  const double q = weighted_quantile(pairs, 0.975);
  EXPECT_NEAR(q, 0.8 + 1.96 * std::sqrt(0.2),
              5 * std::sqrt(0.2) * std::sqrt(0.975 * 0.025 / few) / 0.0584);
}

TEST(AnalysisTest, ResamplingTakesEachAsOftenAsItsWeightSays) {
  Vector weights = normals(50, 1, 7).cwiseAbs2();
  weights /= weights.sum();
  std::vector<double> counts(50, 0);
  for (const Eigen::Index k : resampled(weights, 0.3)) ++counts[index(k)];
  for (Eigen::Index k = 0; k < 50; ++k) EXPECT_LT(std::abs(counts[index(k)] - 50 * weights[k]), 1);
}

}  // namespace
}  // namespace odecast
