#include "odecast/core/banded.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace odecast {

bool BandedCholesky::factor() {
  for (Eigen::Index i = 0; i < size(); ++i) {
    const Eigen::Index first = std::max<Eigen::Index>(0, i - reach_);
    for (Eigen::Index j = first; j <= i; ++j) {
      double sum = at(i, j);
      for (Eigen::Index k = std::max(first, j - reach_); k < j; ++k) sum -= at(i, k) * at(j, k);
      if (j < i) {
        at(i, j) = sum / at(j, j);
      } else {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        at(i, i) = std::sqrt(sum);
      }
    }
  }
  return true;
}

void BandedCholesky::solve_lower(Eigen::Ref<Matrix> b, Eigen::Index from,
                                 Eigen::Index begin) const {
  assert(from <= std::max<Eigen::Index>(0, begin - reach_) && from + b.rows() <= size());
  for (Eigen::Index i = begin; i < from + b.rows(); ++i) {
    for (Eigen::Index k = std::max<Eigen::Index>(0, i - reach_); k < i; ++k)
      if (at(i, k) != 0) b.row(i - from) -= at(i, k) * b.row(k - from);
    b.row(i - from) /= at(i, i);
  }
}

void BandedCholesky::solve(Eigen::Ref<Matrix> b) const {
  solve_lower(b);
  for (Eigen::Index i = size() - 1; i >= 0; --i) {
    b.row(i) /= at(i, i);
    for (Eigen::Index k = std::max<Eigen::Index>(0, i - reach_); k < i; ++k)
      b.row(k) -= at(i, k) * b.row(i);
  }
}

BandedCholesky BandedCholesky::inverse_band() const {
  BandedCholesky z(size(), reach_);
  const auto entry = [&](Eigen::Index i, Eigen::Index j) {
    return i >= j ? z.at(i, j) : z.at(j, i);
  };
  for (Eigen::Index j = size() - 1; j >= 0; --j) {
    const Eigen::Index last = std::min(size() - 1, j + reach_);
    for (Eigen::Index i = last; i >= j; --i) {
      double sum = i == j ? 1 / at(j, j) : 0;
      for (Eigen::Index k = j + 1; k <= last; ++k) sum -= entry(i, k) * at(k, j);
      z.at(i, j) = sum / at(j, j);
    }
  }
  return z;
}

}  // namespace odecast
