#pragma once

#include <optional>
#include <vector>

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/field/polynomial.hpp"

namespace odecast {

/// All that a polynomial least-squares objective needs to know of its rows: the triangular factor R
/// of [Φ | g], the monomials and derivatives of every row side by side. With [Φ | g] = Q R and Q
/// orthonormal, |Φ c - g| = |R_Φ c - R_g|, so that cost after the factor does not depend on the
/// number of rows. Never the normal equations: their condition number is the square of R's.
///
/// Rows enter in leaves of fixed size and leaves are merged in a fixed binary tree (merging two
/// factors is one small QR), so that memory is constant and the bits depend on neither the way the
/// rows arrive nor the number of threads.
class RowFactor {
 public:
  /// Of the monomials up to that degree and `functions` columns behind them.
  RowFactor(int variables, int degree, int outputs, int functions = 0);

  /// Rows of monomials alone to add, with a weight each (empty: 1). `threads` share the leaves that
  /// are complete.
  void add(const Matrix& states, const Matrix& derivatives, const Vector& weights = {},
           int threads = 1);

  /// Rows whose columns are given, as those of the integral form are: [Ψ | Δ] in place of [Φ | g].
  /// The sum of the weights grows by Σ Ψ_0², the squares of the constant's column, which is the
  /// number of rows for [Φ | g]: objectives are mean squares of du/dt either way.
  void add_features(const Matrix& features, const Matrix& targets);

  /// R: square, upper triangular, monomials first. All rows so far.
  Eigen::MatrixXd triangle() const;
  double weight() const { return weight_; }  ///< Σ w
  long rows() const { return rows_; }
  const MonomialBasis& basis() const { return basis_; }
  int columns() const { return columns_; }  ///< monomials and functions

 private:
  using Triangle = Eigen::MatrixXd;
  Triangle leaf(const double* states, const double* derivatives, const double* weights,
                Eigen::Index rows) const;
  Triangle merged(const Triangle& a, const Triangle& b) const;
  void push(Triangle t);

  MonomialBasis basis_;
  int columns_, outputs_;  // of features, of targets
  Eigen::Index leaf_rows_;
  std::vector<double> states_, derivatives_, weights_;  // rows of the leaf under way
  std::vector<std::optional<Triangle>> levels_;         // level i holds 2^i leaves, or none
  double weight_ = 0;
  long rows_ = 0;
};

}  // namespace odecast
