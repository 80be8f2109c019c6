#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/core/random.hpp"

namespace odecast {

/// What was seen of the state u at one time: y = H u + ε, ε ~ N(0, diag sd²), independent.
struct Seen {
  Matrix H;  ///< values × variables
  Vector values, sd;

  Eigen::Index size() const { return values.size(); }
};

/// Members of an ensemble are the rows of a matrix. Their mean ū and covariance P (divisor N - 1).
struct EnsembleMoments {
  Vector mean;
  Matrix covariance;
};
EnsembleMoments ensemble_moments(const Matrix& members);

/// How what was seen compares with a normal forecast: d = y - H ū, S = H P Hᵀ + R.
struct Innovation {
  Vector sd;             ///< of each value, (S_jj)^½
  double surprise = 0;   ///< dᵀ S⁻¹ d over the number of values: 1 is normal
  double log_score = 0;  ///< log N(y; H ū, S)
};
Innovation innovation(const EnsembleMoments& forecast, const Seen& seen);

/// The ensemble transform Kalman filter (Bishop, Etherton & Majumdar 2001; Hunt, Kostelich &
/// Szunyogh 2007): with anomalies A, S = A Hᵀ R^-½ / (N - 1)^½ and d̃ = R^-½ (y - H ū),
///   ū ← ū + Aᵀ S (1 + SᵀS)⁻¹ d̃ / (N - 1)^½,   A ← (1 + S Sᵀ)^-½ A:
/// mean and covariance are exactly those of the Kalman filter for the ensemble's own.
void kalman_analysis(Matrix& members, const Seen& seen);

/// The iterated ensemble Kalman filter (Sakov, Oliver & Bertino 2012; Bocquet & Sakov 2014, lag 1):
/// Gauss–Newton in the space of the ensemble at the time before, for
///   J(w) = ½ |w|² + ½ |R^-½ (y - H mean F(ū + Aᵀw/(N-1)^½ + T A))|²,   T = (1 + S Sᵀ)^-½,
/// where S is that of F's members with T undone. `members` are those before; they are moved to
/// where the data have them, for F to carry them over. Returns the rounds.
using MembersFlow = std::function<Matrix(const Matrix&)>;
int iterated_analysis(Matrix& members, const MembersFlow& flow, const Seen& seen);

/// Anomalies turned by a random rotation of the members, whose mean and covariance stay: without
/// it square-root filters lose track as members grow (Sakov & Oke 2008). With A = B R, B
/// orthonormal and of no mean, B is drawn anew, uniformly.
void rotate_members(Matrix& members, Stream& stream);

/// Members to whose last columns a random change is added, of no mean and covariance R Rᵀ: exactly,
/// and uncorrelated with all columns, where there are members enough for that; else by chance.
void drift_members(Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> members, const Matrix& R,
                   Stream& stream);

/// Anomalies times a factor.
void inflate_members(Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> members, double factor);

/// Particles: members with weights that sum to 1.
EnsembleMoments weighted_moments(const Matrix& members, const Vector& weights);
/// Bayes' rule: weights times the likelihood of what was seen, Σ = 1. Returns log p(y | before).
double weigh(const Matrix& members, Vector& weights, const Seen& seen);
/// The number of equal weights that tell as much (Kong, Liu & Wong 1994).
double effective_members(const Vector& weights);
/// Systematic resampling: which member each new one is, from one uniform number.
std::vector<Eigen::Index> resampled(const Vector& weights, double uniform);
/// The smallest x among the values with Σ weights >= p, by linear interpolation between the middles
/// of the weights' steps.
double weighted_quantile(std::vector<std::pair<double, double>>& value_weight, double p);

}  // namespace odecast
