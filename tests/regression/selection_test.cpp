#include "odecast/regression/selection.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "support/rows.hpp"

namespace odecast {
namespace {

TEST(SelectionTest, EliminationIsLeastSquaresWithoutTheTerm) {
  Eigen::MatrixXd A = Eigen::MatrixXd::Random(30, 4);
  A.col(3) += 0.5 * A.col(0);
  const Vector d = A * Eigen::Vector4d(5, 0.01, -3, 2);
  Estimate e{{0, 1, 2, 3}, {}, {}};
  e.covariance = (A.transpose() * A).inverse();
  e.x = e.covariance * (A.transpose() * d);
  EXPECT_EQ(eliminate(e, {1, 1, 1, 1}, 4), 1);
  ASSERT_EQ(e.terms, (std::vector<int>{0, 2, 3}));
  Eigen::MatrixXd B(30, 3);
  B << A.col(0), A.col(2), A.col(3);
  const Eigen::MatrixXd covariance = (B.transpose() * B).inverse();
  EXPECT_LT((e.covariance - covariance).norm(), 1e-12);
  EXPECT_LT((e.x - covariance * (B.transpose() * d)).norm(), 1e-12);
  EXPECT_EQ(eliminate(e, {1, 1, 1, 1}, 4), 0);
}

TEST(SelectionTest, HigherDegreesCostMore) {
  EXPECT_DOUBLE_EQ(term_penalty(0, 3, 100), term_penalty(1, 3, 100));
  EXPECT_NEAR(term_penalty(3, 3, 100) - term_penalty(2, 3, 100), 2 * std::log(4.0), 1e-12);
}

TEST(SelectionTest, FindsTheTermsOfNoisyRows) {
  // g0 = 2 - x y, g1 = 0.5 y² with noise 0.1: every true term has z² above 1000, a false one enters
  // with probability below P(χ²_1 > 12) = 5e-4.
  DerivativeRows rows = random_rows(2000, 2, 3);
  Stream stream(4, Purpose::derivative_noise, 0);
  for (Eigen::Index i = 0; i < 2000; ++i) {
    const double x = rows.states(i, 0), y = rows.states(i, 1);
    rows.derivatives.row(i) << 2 - x * y + 0.1 * stream.normal(),
        0.5 * y * y + 0.1 * stream.normal();
  }
  RowFactor factor(2, 2, 2);
  factor.add(rows.states, rows.derivatives);
  const Eigen::MatrixXd C = select_terms(factor, 2000);
  Eigen::MatrixXd expected = Eigen::MatrixXd::Zero(2, 6);
  expected(0, 0) = 2;
  expected(0, 4) = -1;
  expected(1, 5) = 0.5;
  EXPECT_EQ((C.array() != 0).count(), 3);
  EXPECT_LT((C - expected).cwiseAbs().maxCoeff(), 5 * 0.1 / std::sqrt(2000.0));
}

TEST(SelectionTest, NothingIsLeftOfPureNoise) {
  const DerivativeRows rows = random_rows(500, 2, 5);
  RowFactor factor(2, 2, 2);
  factor.add(rows.states, rows.derivatives);
  EXPECT_EQ((select_terms(factor, 500).array() != 0).count(), 0);
}

}  // namespace
}  // namespace odecast
