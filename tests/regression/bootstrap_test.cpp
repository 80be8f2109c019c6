#include "odecast/regression/bootstrap.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <numeric>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

struct Example {
  Eigen::MatrixXd rows;  // [A | y]
  Eigen::MatrixXd triangle;
};

Example example(int rows, double noise, std::uint64_t seed) {
  Example e{Eigen::MatrixXd(rows, 4), {}};
  Stream stream(seed, Purpose::observation_noise, 0);
  for (int i = 0; i < rows; ++i) {
    e.rows.row(i) << 1, 1e4 * stream.normal(), 0, 0;
    e.rows(i, 2) = 1e-7 * e.rows(i, 1) + 1e-6 * stream.normal();
    e.rows(i, 3) = 3 - 2e-4 * e.rows(i, 1) + 1e6 * e.rows(i, 2) + noise * stream.normal();
  }
  const Eigen::MatrixXd R = Eigen::HouseholderQR<Eigen::MatrixXd>(e.rows).matrixQR();
  e.triangle = R.topRows(4).triangularView<Eigen::Upper>();
  return e;
}

BlockBootstrap bootstrap(const Example& e, int chunk) {
  BlockBootstrap b(e.triangle, 3);
  for (Eigen::Index at = 0; at < e.rows.rows(); at += chunk)
    b.add(e.rows.middleRows(at, std::min<Eigen::Index>(chunk, e.rows.rows() - at)));
  return b;
}

TEST(BootstrapTest, AReplicateIsLeastSquaresOnTheRowsDrawn) {
  const Example e = example(100, 0.5, 1);
  const BlockBootstrap b = bootstrap(e, 7);
  for (std::uint64_t k = 0; k < 5; ++k) {
    const std::vector<int> drawn = b.multiplicities(3, k);
    EXPECT_EQ(std::accumulate(drawn.begin(), drawn.end(), 0), b.chunks());
    Eigen::MatrixXd rows(0, 4);
    for (std::size_t c = 0; c < drawn.size(); ++c)
      for (int m = 0; m < drawn[c]; ++m) {
        const auto at = static_cast<Eigen::Index>(7 * c),
                   count = std::min<Eigen::Index>(7, 100 - at);
        rows.conservativeResize(rows.rows() + count, 4);
        rows.bottomRows(count) = e.rows.middleRows(at, count);
      }
    const Eigen::VectorXd x = rows.leftCols(3).colPivHouseholderQr().solve(rows.col(3));
    const Estimate found = b.replicate(drawn, 0, 0);
    for (int q = 0; q < 3; ++q) EXPECT_NEAR(found.x[q], x[q], 1e-9 * std::abs(x[q]));
  }
}

TEST(BootstrapTest, ExactRowsGiveTheSameEveryTime) {
  const BlockBootstrap b = bootstrap(example(200, 0, 2), 5);
  const double truth[] = {3, -2e-4, 1e6};
  for (std::uint64_t k = 0; k < 20; ++k) {
    const Estimate found = b.replicate(b.multiplicities(1, k), 0, 0);
    for (int q = 0; q < 3; ++q) EXPECT_NEAR(found.x[q], truth[q], 1e-9 * std::abs(truth[q]));
  }
}

TEST(BootstrapTest, SpreadIsTheStandardErrorForIndependentRows) {
  // The mean of 2000 draws of sd 2 has sd 0.0447. Over 1000 replicates its estimate errs by 1/√2000
  // = 2.2 %, and by the draws themselves by 1/√(2 · 500 blocks) = 3.2 %; five times their root sum
  // of squares.
  Eigen::MatrixXd rows(2000, 2);
  Stream stream(4, Purpose::observation_noise, 0);
  for (auto& y : rows.col(1)) y = 5 + 2 * stream.normal();
  rows.col(0).setOnes();
  const Eigen::MatrixXd R = Eigen::HouseholderQR<Eigen::MatrixXd>(rows).matrixQR();
  BlockBootstrap b(Eigen::MatrixXd(R.topRows(2).triangularView<Eigen::Upper>()), 1);
  for (int i = 0; i < 2000; ++i) b.add(rows.row(i));
  double sum = 0, square = 0;
  for (std::uint64_t k = 0; k < 1000; ++k) {
    const double x = b.replicate(b.multiplicities(9, k), 0, 0).x[0] - 5;
    sum += x / 1000;
    square += x * x / 1000;
  }
  EXPECT_NEAR(std::sqrt(square - sum * sum) / (2 / std::sqrt(2000)), 1, 0.2);
}

TEST(BootstrapTest, ADependentColumnIsLeftOut) {
  Example e = example(50, 0.5, 3);
  e.rows.col(2) = 2 * e.rows.col(1);
  const Eigen::MatrixXd R = Eigen::HouseholderQR<Eigen::MatrixXd>(e.rows).matrixQR();
  e.triangle = R.topRows(4).triangularView<Eigen::Upper>();
  const BlockBootstrap b = bootstrap(e, 5);
  const Estimate found = b.replicate(b.multiplicities(1, 1), 0, 0);
  EXPECT_EQ(found.terms, (std::vector<int>{0, 1}));
  EXPECT_TRUE(found.x.allFinite());
}

}  // namespace
}  // namespace odecast
