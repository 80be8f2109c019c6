#pragma once

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

}  // namespace odecast
