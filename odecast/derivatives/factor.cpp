#include "odecast/derivatives/factor.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/parallel.hpp"

namespace odecast {

RowFactor::RowFactor(int variables, int degree, int outputs, int functions)
    : basis_(variables, degree),
      columns_(basis_.size() + functions),
      outputs_(outputs),
      // Long enough that merging costs little beside the leaves.
      leaf_rows_(std::max<Eigen::Index>(2048, 8 * (columns_ + outputs))) {}

RowFactor::Triangle RowFactor::leaf(const double* states, const double* derivatives,
                                    const double* weights, Eigen::Index rows) const {
  const int n = basis_.variables(), F = basis_.size(), m = columns_ + outputs_;
  Eigen::MatrixXd block = Eigen::MatrixXd::Zero(std::max<Eigen::Index>(rows, m), m);
  // Column by column: monomial m is its parent times a variable.
  for (Eigen::Index i = 0; i < rows; ++i) block(i, 0) = std::sqrt(weights[i]);
  for (int c = 1; c < F; ++c) {
    const double* parent = block.col(basis_.parent(c)).data();
    const double* u = states + basis_.variable(c);
    double* column = block.col(c).data();
    for (Eigen::Index i = 0; i < rows; ++i) column[i] = parent[i] * u[i * n];
  }
  for (int o = 0; o < outputs_; ++o)
    for (Eigen::Index i = 0; i < rows; ++i)
      block(i, columns_ + o) = block(i, 0) * derivatives[i * outputs_ + o];
  Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(block);
  return block.topRows(m).triangularView<Eigen::Upper>();
}

RowFactor::Triangle RowFactor::merged(const Triangle& a, const Triangle& b) const {
  Eigen::MatrixXd stacked(a.rows() + b.rows(), a.cols());
  stacked << a, b;
  Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(stacked);
  return stacked.topRows(a.rows()).triangularView<Eigen::Upper>();
}

void RowFactor::push(Triangle t) {
  // A binary counter: equal levels merge and carry.
  for (std::size_t level = 0;; ++level) {
    if (level == levels_.size()) levels_.emplace_back();
    if (!levels_[level]) {
      levels_[level] = std::move(t);
      return;
    }
    t = merged(*levels_[level], t);
    levels_[level].reset();
  }
}

void RowFactor::add(const Matrix& states, const Matrix& derivatives, const Vector& weights,
                    int threads) {
  assert(columns_ == basis_.size());
  assert(states.cols() == basis_.variables() && derivatives.cols() == outputs_);
  assert(states.rows() == derivatives.rows());
  assert(weights.size() == 0 || weights.size() == states.rows());
  states_.insert(states_.end(), states.data(), states.data() + states.size());
  derivatives_.insert(derivatives_.end(), derivatives.data(),
                      derivatives.data() + derivatives.size());
  if (weights.size() > 0)
    weights_.insert(weights_.end(), weights.begin(), weights.end());
  else
    weights_.resize(weights_.size() + static_cast<std::size_t>(states.rows()), 1.0);
  weight_ += weights.size() > 0 ? weights.sum() : static_cast<double>(states.rows());
  rows_ += states.rows();

  const auto n = static_cast<std::size_t>(basis_.variables());
  const auto m = static_cast<std::size_t>(outputs_);
  const auto size = static_cast<std::size_t>(leaf_rows_);
  const std::size_t full = weights_.size() / size;
  std::vector<Triangle> leaves(full);
  parallel_for(threads, full, [&](std::size_t i) {
    leaves[i] = leaf(states_.data() + i * size * n, derivatives_.data() + i * size * m,
                     weights_.data() + i * size, leaf_rows_);
  });
  for (Triangle& t : leaves) push(std::move(t));
  const auto drop = [&](std::vector<double>& v, std::size_t width) {
    v.erase(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(full * size * width));
  };
  drop(states_, n);
  drop(derivatives_, m);
  drop(weights_, 1);
}

void RowFactor::add_features(const Matrix& features, const Matrix& targets) {
  const int F = columns_, m = F + outputs_;
  assert(features.cols() == F && targets.cols() == outputs_ && features.rows() == targets.rows());
  for (Eigen::Index at = 0; at < features.rows(); at += leaf_rows_) {
    const Eigen::Index rows = std::min(leaf_rows_, features.rows() - at);
    Eigen::MatrixXd block = Eigen::MatrixXd::Zero(std::max<Eigen::Index>(rows, m), m);
    block.topLeftCorner(rows, F) = features.middleRows(at, rows);
    block.topRightCorner(rows, outputs_) = targets.middleRows(at, rows);
    Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(block);
    push(block.topRows(m).triangularView<Eigen::Upper>());
  }
  weight_ += features.col(0).squaredNorm();
  rows_ += features.rows();
}

Eigen::MatrixXd RowFactor::triangle() const {
  Triangle t = leaf(states_.data(), derivatives_.data(), weights_.data(),
                    static_cast<Eigen::Index>(weights_.size()));
  for (const auto& level : levels_)
    if (level) t = merged(*level, t);
  return t;
}

}  // namespace odecast
