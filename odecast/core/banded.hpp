#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// A symmetric positive definite matrix whose entries vanish more than `reach` places from the
/// diagonal, and its Cholesky factor A = L Lᵀ, which has the same shape: O(size · reach²) work,
/// O(size · reach) memory (Golub & Van Loan, Matrix Computations, 4th ed., §4.3.5).
class BandedCholesky {
 public:
  BandedCholesky(Eigen::Index size, Eigen::Index reach)
      : reach_(reach), band_(Matrix::Zero(size, reach + 1)) {}

  Eigen::Index size() const { return band_.rows(); }
  Eigen::Index reach() const { return reach_; }
  /// A(i, j), or L(i, j) after factor(), for i - reach <= j <= i.
  double& at(Eigen::Index i, Eigen::Index j) { return band_(i, j - i + reach_); }
  double at(Eigen::Index i, Eigen::Index j) const { return band_(i, j - i + reach_); }

  /// Back to zeros, in the same memory.
  void clear() { band_.setZero(); }
  /// A → L. False where A is not positive definite to working precision; it is then lost.
  [[nodiscard]] bool factor();
  /// B → L⁻¹ B, with as many rows as A.
  void solve_lower(Eigen::Ref<Matrix> b) const { solve_lower(b, 0, 0); }
  /// The same for some of the rows: b has those of B from `from` on, of which those before `begin`
  /// are done already, `reach` of them or all.
  void solve_lower(Eigen::Ref<Matrix> b, Eigen::Index from, Eigen::Index begin) const;
  /// B → A⁻¹ B.
  void solve(Eigen::Ref<Matrix> b) const;
  /// The entries of A⁻¹ within `reach` of the diagonal, stored as A was, without the others
  /// (Takahashi, Fagan & Chin, 1973): from the last row upwards, with Z = A⁻¹ and j <= i,
  ///   Z_ij = [i = j] / L_jj² - Σ_{j < k <= j + reach} Z_ik L_kj / L_jj.
  BandedCholesky inverse_band() const;

 private:
  Eigen::Index reach_;
  Matrix band_;  // row i: entries i - reach … i
};

/// The same for a reach that the compiler knows and one right-hand side, as A = L diag Lᵀ without
/// roots: an order of magnitude faster for the few bands of a smoother, in one pass over them.
template <std::size_t Reach>
class BandedLdl {
 public:
  using Column = std::array<double, Reach + 1>;  ///< entries (i, i) … (i + Reach, i)

  /// From the columns of A, those beyond the end being 0.
  explicit BandedLdl(std::vector<Column> a) : l_(std::move(a)) {
    for (std::size_t i = 0; i < l_.size(); ++i) {
      Column& own = l_[i];
      for (std::size_t back = 1; back <= std::min(Reach, i); ++back) {
        const Column& before = l_[i - back];
        const double scaled = before[back] * before[0];
        for (std::size_t k = 0; back + k <= Reach; ++k) own[k] -= scaled * before[back + k];
      }
      for (std::size_t k = 1; k <= Reach; ++k) own[k] = i + k < l_.size() ? own[k] / own[0] : 0;
    }
  }
  /// x → A⁻¹ x.
  void solve(double* x) const {
    const std::size_t n = l_.size();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 1; k <= Reach && i + k < n; ++k) x[i + k] -= l_[i][k] * x[i];
    for (std::size_t i = 0; i < n; ++i) x[i] /= l_[i][0];
    for (std::size_t i = n; i-- > 0;)
      for (std::size_t k = 1; k <= Reach && i + k < n; ++k) x[i] -= l_[i][k] * x[i + k];
  }
  /// Σ weight(i) (A⁻¹)_ii.
  template <class Weight>
  double inverse_diagonal_sum(const Weight& weight) const {
    double sum = 0;
    inverse_diagonal([&](std::size_t i, double diagonal) { sum += weight(i) * diagonal; });
    return sum;
  }
  /// Gives each (i, (A⁻¹)_ii) by Takahashi's recurrence, the last rows of A⁻¹ first.
  template <class Each>
  void inverse_diagonal(const Each& each) const {
    // z[a][b] is (A⁻¹)_{i+1+a, i+1+b}, rows beyond the end being zero.
    double z[Reach][Reach] = {};
    for (std::size_t i = l_.size(); i-- > 0;) {
      double next[Reach];
      for (std::size_t j = 0; j < Reach; ++j) {
        next[j] = 0;
        for (std::size_t k = 0; k < Reach; ++k) next[j] -= l_[i][k + 1] * z[k][j];
      }
      double diagonal = 1 / l_[i][0];
      for (std::size_t k = 0; k < Reach; ++k) diagonal -= l_[i][k + 1] * next[k];
      each(i, diagonal);
      for (std::size_t a = Reach - 1; a > 0; --a)
        for (std::size_t b = Reach - 1; b > 0; --b) z[a][b] = z[a - 1][b - 1];
      z[0][0] = diagonal;
      for (std::size_t k = 1; k < Reach; ++k) z[0][k] = z[k][0] = next[k - 1];
    }
  }
  /// (A⁻¹)_nn of the last row.
  double last_variance() const { return 1 / l_.back()[0]; }

 private:
  std::vector<Column> l_;  // the diagonal at [0], below it L's own
};

}  // namespace odecast
