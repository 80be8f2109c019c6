#pragma once

#include "odecast/core/observer.hpp"
#include "odecast/derivatives/factor.hpp"
#include "odecast/regression/evidence.hpp"
#include "odecast/regression/weak.hpp"

namespace odecast {

/// Polynomial coefficients from the integral form, by generalised least squares with the covariance
/// that the noise of the observations gives the rows.
///
/// The residual of row k, increment_k - C integral_k, is to first order in the noise
///   Σ_i (s_ki - v_ki J_i) ε_i,   J_i = Σ_m C_m ∇φ_m(u_i),
/// (s only in the equation's own variable) so that with S = diag σ² rows k and l covary by the n ×
/// n block
///   Σ_i (s_ki - v_ki J_i) S (s_li - v_li J_i)ᵀ,
/// plus the truncation of the rule on the diagonal. Rows whose supports do not meet do not covary:
/// the matrix is banded and its Cholesky factor whitens all equations of a segment together. J
/// comes from the coefficients of the round before, the first time J = 0 (Bortz, Messenger & Dukic,
/// Bull. Math. Biol. 85 (2023) 110). The result is the maximum likelihood estimate of trajectory
/// and coefficients to first order in σ, as far as the test functions resolve.
struct WeakRegressionOptions {
  /// Keep only terms that are worth their penalty: those up to degree 2 are eliminated
  /// (`eliminate`; the covariance is renewed after each tenth of the terms), then any term comes in
  /// that lowers χ² by more than its penalty.
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

/// `observations` is their number, for the penalty. Throws Error (data) when there are fewer rows
/// than terms, and Error (usage) when terms are to be selected of more than kMostJointUnknowns.
WeakRegression weak_regression(const WeakRows& rows, const MonomialBasis& basis,
                               const WeakRegressionOptions& options, const std::string& source,
                               const Observer& observer);

/// States along the observations, segment by segment; empty: the observations themselves.
struct WeakPath {
  std::vector<Matrix> states = {};
  Vector noise = {};  ///< sd of what noise is left in them, per variable
};

/// What blocks of whitened rows add up to.
struct WeakProblem {
  Eigen::MatrixXd triangle;
  double rows = 0, log_determinant = 0, constant = 0;
  Vector squares;  ///< of the integrals of every term; `constant` those of the first

  EvidenceProblem evidence(const LinearTerms& terms, int equations) const;
};

/// The integral form as a linear problem for the coefficients around a path û, all equations
/// together. F is the number of terms.
///
/// Maximum likelihood for path u and coefficients C together minimises Σ_i |y_i - u_i|²/σ² under
/// Σ_i s_ki u_i - v_ki C φ(u_i) = 0. To first order around û and C_0 (J_i from C_0 at û_i) u drops
/// out, and leaves generalised least squares with the covariance V above for
///   Σ_i s_ki y_i - v_ki J_i (y_i - û_i) ≈ C Σ_i v_ki φ̃(û_i).
/// The next path is y less the noise that the residuals r imply, ε̂_i = Σ_k S (s_ki - v_ki J_i)ᵀ
/// (V⁻¹ r)_k. Noise that no test function sees stays in û, with the variance σ² - ⟨ε̂²⟩ that φ̃ is
/// corrected for. The first path is y itself: there the noise of the regressors pulls coefficients
/// towards zero, which a round or two along the path takes away (Gauss–Newton for errors in
/// variables: Fuller, Measurement Error Models, 1987, §3.2).
class WeakLinearisation {
 public:
  /// Keeps a reference to the rows.
  WeakLinearisation(const WeakRows& rows, const LinearTerms& terms, const Matrix& coefficients,
                    const WeakPath& path);
  ~WeakLinearisation();
  /// The same around another path, in the same memory; the covariance may stay where the path has
  /// hardly moved.
  void move_to(const Matrix& coefficients, const WeakPath& path, bool keep_covariance = false);

  /// The whitened rows; unknown o F + m is the coefficient of φ_m in equation o. Equations are the
  /// groups; the size of a term is the root mean square of its column over that of the constant's.
  EvidenceProblem problem();
  /// Adds them to those of other blocks.
  void add_to(WeakProblem& problem);
  /// These rows themselves, [A | d] of each segment, n for each test function.
  std::vector<Matrix> whitened() const;
  /// The states that these coefficients make of the observations, of each segment. Adds to
  /// `removed` and `count` the squares of the noise taken away, per variable, and how many
  /// observations there are.
  std::vector<Matrix> states(const Matrix& coefficients, Vector& removed, double& count) const;
  /// These and the noise that is left in them.
  WeakPath path(const Matrix& coefficients) const;

 private:
  struct Part;
  void whiten(const Part& part, Eigen::Index from, Eigen::Index begin, Eigen::Index end,
              Matrix& A) const;
  const WeakRows& rows_;
  LinearTerms terms_;
  std::vector<Part> parts_;
  Matrix rows_of_part_;  // what problem() works in
  Eigen::MatrixXd stacked_;
};

/// The posterior of the coefficients by rounds of WeakLinearisation, each with the set of terms
/// that the evidence chooses.
struct WeakPosterior {
  EvidenceFit fit;
  Matrix coefficients;          ///< its mean, variables × terms
  std::vector<WeakPath> paths;  ///< that the last round was linearised around, of each block
  int rounds = 0;
  bool settled =
      false;  ///< the last round changed no term, and coefficients by less than a fifth of their sd
};

struct WeakPosteriorOptions {
  int degree = 2;               ///< candidates are the monomials up to it, and all functions
  bool select = true;           ///< those that the evidence chooses, or all
  std::vector<int> terms = {};  ///< these unknowns and no others, where given
};

/// Throws Error (data) when there are fewer rows than candidates in an equation.
WeakPosterior weak_posterior(WeakBlocks& blocks, const LinearTerms& terms,
                             const WeakPosteriorOptions& options, const std::string& source,
                             const Observer& observer);
/// Of all rows at once.
WeakPosterior weak_posterior(const WeakRows& rows, const LinearTerms& terms,
                             const WeakPosteriorOptions& options, const std::string& source,
                             const Observer& observer);

/// The problem of all blocks around coefficients and paths.
EvidenceProblem weak_problem(WeakBlocks& blocks, const LinearTerms& terms,
                             const Matrix& coefficients, const std::vector<WeakPath>& paths);

/// The factor of [Ψ | Δ] for networks, whose equations share their rows: whitened with the mean
/// over the equations of the covariances above, each in units of its own σ², at the given
/// coefficients.
RowFactor weak_factor(const WeakRows& rows, const MonomialBasis& basis, const Matrix& coefficients);

}  // namespace odecast
