#pragma once

#include "odecast/core/observer.hpp"
#include "odecast/derivatives/weak.hpp"
#include "odecast/training/factor.hpp"

namespace odecast {

/// Polynomial coefficients from the integral form, by generalised least squares with the covariance that the noise of
/// the observations gives the rows.
///
/// The residual of row k, increment_k - C integral_k, is to first order in the noise
///   Σ_i (s_ki - v_ki J_i) ε_i,   J_i = Σ_m C_m ∇φ_m(u_i),
/// (s only in the equation's own variable) so that with S = diag σ² rows k and l covary by the n × n block
///   Σ_i (s_ki - v_ki J_i) S (s_li - v_li J_i)ᵀ,
/// plus the truncation of the rule on the diagonal. Rows whose supports do not meet do not covary: the
/// matrix is banded and its Cholesky factor whitens all equations of a segment together. J comes from the coefficients of the
/// round before, the first time J = 0 (Bortz, Messenger & Dukic, Bull. Math. Biol. 85 (2023) 110). The result is
/// the maximum likelihood estimate of trajectory and coefficients to first order in σ, as far as the test functions
/// resolve.
struct WeakRegressionOptions {
  /// Keep only terms that are worth their penalty: those up to degree 2 are eliminated (`eliminate`; the covariance is renewed after
  /// each tenth of the terms), then any term comes in that lowers χ² by more than its penalty.
  bool select = false;
  int rounds = 4;  ///< at most, with the terms unchanged
};

struct WeakRegression {
  Matrix coefficients;  ///< variables × monomials; eliminated ones exactly 0
  Matrix sd;            ///< their standard deviations
  double misfit = 0;    ///< χ² per degree of freedom: about 1 when noise and terms are right
  int terms = 0;        ///< that are left
  bool joint = true;    ///< false: too many unknowns, all equations share one covariance instead
};

/// Unknowns, variables × monomials, up to which all equations are whitened together.
inline constexpr int kMostJointUnknowns = 600;

/// `observations` is their number, for the penalty. Throws Error (data) when there are fewer rows than terms, and Error
/// (usage) when terms are to be selected of more than kMostJointUnknowns.
WeakRegression weak_regression(const WeakRows& rows, const MonomialBasis& basis,
                               const WeakRegressionOptions& options, const std::string& source,
                               const Observer& observer);

/// The factor of [Ψ | Δ] for networks, whose equations share their rows: whitened with the mean over the equations of the
/// covariances above, each in units of its own σ², at the given coefficients.
RowFactor weak_factor(const WeakRows& rows, const MonomialBasis& basis, const Matrix& coefficients);

}  // namespace odecast
