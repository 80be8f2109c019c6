#include "odecast/regression/bootstrap.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {

int chunk_rows(double block) {
  return std::max(1, static_cast<int>(std::ceil(block / BlockBootstrap::kChunksPerBlock)));
}

BlockBootstrap::BlockBootstrap(const Eigen::MatrixXd& triangle, int unknowns)
    : unknowns_(unknowns) {
  for (int q = 0; q < unknowns; ++q)
    if (std::abs(triangle(q, q)) > 1e-10 * triangle.col(q).norm()) kept_.push_back(q);
  const auto count = static_cast<Eigen::Index>(kept_.size());
  Eigen::MatrixXd R(triangle.rows(), count);
  for (Eigen::Index c = 0; c < count; ++c)
    R.col(c) = triangle.col(kept_[static_cast<std::size_t>(c)]);
  const Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(R);
  inverse_ = R.topRows(count).triangularView<Eigen::Upper>().solve(
      Eigen::MatrixXd::Identity(count, count));
}

void BlockBootstrap::add(const Eigen::MatrixXd& chunk) {
  const auto count = static_cast<Eigen::Index>(kept_.size());
  Eigen::MatrixXd A(chunk.rows(), count);
  for (Eigen::Index c = 0; c < count; ++c) A.col(c) = chunk.col(kept_[static_cast<std::size_t>(c)]);
  const Eigen::MatrixXd Q = A * inverse_.triangularView<Eigen::Upper>();
  const auto Y = chunk.rightCols(chunk.cols() - unknowns_);
  parts_.push_back({Q.transpose() * Q, Q.transpose() * Y, Y.colwise().squaredNorm().transpose()});
  rows_ += static_cast<double>(chunk.rows());
}

std::vector<int> BlockBootstrap::multiplicities(std::uint64_t seed, std::uint64_t replicate) const {
  std::vector<int> count(parts_.size());
  Stream stream(seed, Purpose::bootstrap_blocks, replicate);
  const auto all = parts_.size();
  for (std::size_t taken = 0; taken < all;) {
    const auto first = static_cast<std::size_t>(stream.uniform() * static_cast<double>(all));
    for (int k = 0; k < kChunksPerBlock && taken < all; ++k, ++taken)
      ++count[(first + static_cast<std::size_t>(k)) % all];
  }
  return count;
}

Estimate BlockBootstrap::replicate(const std::vector<int>& multiplicities, int output,
                                   double least) const {
  assert(multiplicities.size() == parts_.size());
  const auto count = static_cast<Eigen::Index>(kept_.size());
  Eigen::MatrixXd G = Eigen::MatrixXd::Zero(count, count);
  Eigen::VectorXd h = Eigen::VectorXd::Zero(count);
  double square = 0;
  for (std::size_t c = 0; c < parts_.size(); ++c) {
    const double m = multiplicities[c];
    if (m == 0) continue;
    G += m * parts_[c].gram;
    h += m * parts_[c].pull.col(output);
    square += m * parts_[c].square[output];
  }
  // Least squares of least norm where the rows drawn do not determine all.
  const Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> solver(G);
  const Eigen::VectorXd z = solver.solve(h);
  // |Y - Q z|² = |Y|² - h·z; what is below round-off of |Y|² says nothing.
  const double rest = std::max(square - h.dot(z), 0x1p-52 * square);
  const double variance = std::max(least, rest / std::max(1.0, rows_ - static_cast<double>(count)));
  Estimate e;
  e.terms = kept_;
  e.x = inverse_.triangularView<Eigen::Upper>() * z;
  const Eigen::MatrixXd root = inverse_.triangularView<Eigen::Upper>() * solver.pseudoInverse();
  e.covariance = variance * (root * inverse_.transpose());
  for (Eigen::Index q = 0; q < count; ++q)
    e.covariance(q, q) = std::max(e.covariance(q, q), 1e-300);
  return e;
}

}  // namespace odecast
