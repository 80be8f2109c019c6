#pragma once

#include <Eigen/Core>
#include <vector>

#include "odecast/regression/selection.hpp"
#include "odecast/regression/weak.hpp"

namespace odecast {

/// Bayesian linear regression y = A x + e, e ~ N(0, s² I), known by the triangular factor of [A |
/// y] alone. Unknowns belong to groups (equations), each with a prior scale of its own,
///   x_q ~ N(0, t_q),   t_q = τ²_g(q) / size_q²,
/// so that size_q x_q, what a term contributes over the data, has the prior variance τ² whatever
/// the units. The posterior is normal, with mean and covariance from the factor of [A / s; t^-½]
/// (never the normal equations), and
///   2 ln p(y) = -M ln 2πs² - ln det(I + A diag(t) Aᵀ / s²) - yᵀ (s² I + A diag(t) Aᵀ)⁻¹ y,   M
///   rows.
///
/// τ and s maximise it (MacKay, Neural Comput. 4 (1992) 415), by the fixed point
///   γ_g = Σ_{q in g} (1 - Σ_qq / t_q),   τ_g² = Σ_{q in g} (size_q x_q)² / γ_g,   s² = |y - A x|²
///   / (M - Σ γ).
/// γ counts the unknowns that the data determine.
///
/// Without unknown q the evidence changes by the posterior density over the prior density of x_q =
/// 0 (Dickey, Ann. Math. Statist. 42 (1971) 204), exactly,
///   ½ [ln(t_q / Σ_qq) - x_q² / Σ_qq];
/// with one that is out, of precision λ = aᵀ M⁻¹ a and pull b = aᵀ M⁻¹ y, M = s² I + A diag(t) Aᵀ
/// (Tipping & Faul, AISTATS 2003),
///   ½ [t b² / (1 + t λ) - ln(1 + t λ)].
/// Sets of terms have a prior too: each term costs `price`, the logarithm of how many there are
/// like it.
struct EvidenceProblem {
  Eigen::MatrixXd triangle;  ///< of [A | y], square, upper triangular
  double rows = 0;           ///< M
  double log_determinant =
      0;  ///< ln det V, where A and y were whitened by V's root: p is that of what they were before
  std::vector<int> group;     ///< of each unknown
  std::vector<double> size;   ///< of each unknown
  std::vector<double> price;  ///< of each unknown
  /// s² is never less: 1 where rows were whitened by a covariance that is known, 0 where only the
  /// residuals tell.
  double least_variance = 0;
};

struct EvidenceFit {
  Estimate posterior;         ///< unknowns that are in, their mean and covariance
  std::vector<double> prior;  ///< τ of each group
  double variance = 0;        ///< s²
  double log_evidence = 0;    ///< ln p(y | set)
  double log_prior = 0;       ///< ln P(set) but for a constant: minus the prices
  double misfit = 0;          ///< |y - A x|² / (M - Σ γ)

  double score() const { return log_evidence + log_prior; }
};

/// One equation from the factor of its rows, whose errors are taken as independent with a common
/// variance: unknowns are its terms, their sizes the root mean squares over the rows.
EvidenceProblem equation_problem(const RowFactor& factor, int output, const LinearTerms& terms);

/// The posterior for the unknowns named in `terms`, at the best τ and s.
EvidenceFit evidence_fit(const EvidenceProblem& problem, std::vector<int> terms);

/// From those terms on, one goes or one of `candidates` comes in as long as that raises evidence +
/// prior; τ and s are renewed when neither does.
EvidenceFit evidence_search(const EvidenceProblem& problem, std::vector<int> terms,
                            const std::vector<int>& candidates);

}  // namespace odecast
