#pragma once

#include <Eigen/Core>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/derivatives/factor.hpp"

namespace odecast {

/// What a least-squares problem says of its unknowns: x and its covariance, for the unknowns named
/// by `terms`.
struct Estimate {
  std::vector<int> terms;
  Vector x;
  Eigen::MatrixXd covariance;
};

/// The cost of a term of degree g in n equations learnt from N observations:
///   ln(N n) + 2 max(g, 1) ln(n + 1).
/// The first part is that of the Bayesian information criterion; the second is twice the logarithm
/// of the number of ways to choose that many factors, so that of two terms which explain the same
/// the simpler one stays. Half of the second part, the price of naming the monomial, in nats:
/// max(g, 1) ln(n + 1).
double term_price(const MonomialBasis& basis, int monomial);
double term_penalty(int degree, int equations, double observations);

/// Without unknown q, which is 0 then; the others are corrected for its absence,
///   x ← x - C_q x_q / C_qq,   C ← C - C_q C_qᵀ / C_qq   (C_q: column q).
void leave_out(Estimate& estimate, Eigen::Index q);

/// Backward elimination: removes the term whose z² = x² / var x is furthest below its penalty, and
/// goes on until every term is worth its penalty or `most` are gone. `penalty` has an entry for
/// every term that Estimate::terms may name. Returns how many are gone.
int eliminate(Estimate& estimate, const std::vector<double>& penalty, int most);

/// Least squares on the factor of the rows with only the terms that are worth their penalty,
/// equation by equation; the variance of the rows is that of their residual. Coefficients, outputs
/// × monomials, the others exactly 0.
Eigen::MatrixXd select_terms(const RowFactor& factor, double observations);

}  // namespace odecast
