#include "odecast/core/banded.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

namespace odecast {
namespace {

/// Diagonally dominant with 2 entries beside the diagonal.
Eigen::MatrixXd dense() {
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(9, 9);
  for (int i = 0; i < 9; ++i) {
    A(i, i) = 4 + 0.1 * i;
    if (i >= 1) A(i, i - 1) = A(i - 1, i) = std::sin(i);
    if (i >= 2) A(i, i - 2) = A(i - 2, i) = std::cos(3 * i);
  }
  return A;
}

BandedCholesky banded(const Eigen::MatrixXd& A) {
  BandedCholesky b(A.rows(), 2);
  for (Eigen::Index i = 0; i < A.rows(); ++i)
    for (Eigen::Index j = std::max<Eigen::Index>(0, i - 2); j <= i; ++j) b.at(i, j) = A(i, j);
  return b;
}

TEST(BandedTest, TheFactorWithoutRootsAgreesWithDenseAlgebra) {
  const Eigen::MatrixXd A = dense(), inverse = A.inverse();
  std::vector<BandedLdl<2>::Column> columns(9, BandedLdl<2>::Column{});
  for (int i = 0; i < 9; ++i)
    for (int k = 0; k <= 2 && i + k < 9; ++k)
      columns[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] = A(i + k, i);
  const BandedLdl<2> factor(columns);
  Vector x = Vector::Random(9), y = x;
  factor.solve(x.data());
  EXPECT_LT((A * x - y).norm(), 1e-13);
  double expected = 0;
  for (int i = 0; i < 9; ++i) expected += (1 + i) * inverse(i, i);
  EXPECT_NEAR(
      factor.inverse_diagonal_sum([](std::size_t i) { return 1.0 + static_cast<double>(i); }),
      expected, 1e-13 * expected);
  EXPECT_NEAR(factor.last_variance(), inverse(8, 8), 1e-14);
}

TEST(BandedTest, AgreesWithDenseAlgebra) {
  const Eigen::MatrixXd A = dense();
  BandedCholesky b = banded(A);
  ASSERT_TRUE(b.factor());
  Matrix x = Matrix::Random(9, 3), y = x;
  b.solve(x);
  EXPECT_LT((A * x - y).norm(), 1e-13);
  Matrix z = y;
  b.solve_lower(z);
  Matrix rest(6, 3);  // rows 3 … 8, of which two are done
  rest << z.middleRows(3, 2), y.bottomRows(4);
  b.solve_lower(rest, 3, 5);
  EXPECT_EQ(rest.bottomRows(4), z.bottomRows(4));
  const Eigen::MatrixXd L = A.llt().matrixL();
  EXPECT_LT((L * z - y).norm(), 1e-13);
  const Eigen::MatrixXd inverse = A.inverse();
  const BandedCholesky part = b.inverse_band();
  for (Eigen::Index i = 0; i < 9; ++i)
    for (Eigen::Index j = std::max<Eigen::Index>(0, i - 2); j <= i; ++j)
      EXPECT_NEAR(part.at(i, j), inverse(i, j), 1e-14);
}

TEST(BandedTest, SaysWhenAMatrixIsNotPositiveDefinite) {
  Eigen::MatrixXd A = dense();
  A(4, 4) = -1;
  EXPECT_FALSE(banded(A).factor());
}

}  // namespace
}  // namespace odecast
