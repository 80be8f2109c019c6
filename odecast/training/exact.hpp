#pragma once

#include <Eigen/Cholesky>
#include <optional>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/derivatives/factor.hpp"
#include "odecast/network/polynomial_kernel.hpp"

namespace odecast {

/// The expected dropout objective of a polynomial kernel, from the factor of its rows, as a
/// function of the hidden layer alone. With P the matrix of the expanded powers (column j: (w_j·u +
/// b_j)^p), S = R_Φ P, and r_0 the column of R_Φ that belongs to the constant:
///   N J = |E|² + |R_rest|² + q r Σ_j |W2_j|² |S_j|²,   E = q S W2ᵀ + r_0 B2ᵀ - R_g.
/// Squared norms of columns of R are sums over rows; R_rest is what no polynomial can reach.
///
/// For a given hidden layer J is quadratic in the read-out, whose best value is in closed form
/// (variable projection, Golub & Pereyra 1973). Only the first entry of r_0 is not zero, so B2
/// makes the first row of E vanish; with S', R_g' the other rows,
///   (q² S'ᵀS' + q r diag|S_j|²) W2ᵀ = q S'ᵀ R_g'.
/// Columns of S are scaled to length 1 for the solution, which bounds the condition by about q k /
/// r. The gradient is that of J at the best read-out:
///   N/2 ∂S = q E W2 + q r S diag|W2_j|²,   ∂P = R_Φᵀ ∂S,
///   ∂b_j = p Σ_m e_m ∂P_mj,   ∂w_ij = p Σ_m e_m ∂P_{m·u_i, j},   e = coefficients of (w_j·u +
///   b_j)^{p-1}.
class ExactObjective {
 public:
  ExactObjective(const RowFactor& factor, int units, double dropout);

  /// J at θ = (W1, B1), W1 row by row, with the best read-out; writes the gradient. Allocates
  /// nothing.
  double operator()(const Vector& theta, Vector& gradient);
  /// The best read-out of the last call, outputs × units and outputs.
  Matrix W2() const { return W2_; }
  Vector B2() const { return B2_; }

  /// J of any kernel with this number of units, with output o weighted by w_o.
  double weighted(const PolynomialKernel& kernel, const Vector& weights);
  /// The smallest mean squared error any polynomial of the degree has: J cannot be below.
  double floor() const { return rest_.sum() / weight_; }

 private:
  void expand(const double* W1, const double* B1);

  const MonomialBasis basis_;
  int n_, k_, outputs_, degree_;
  double q_, r_, weight_;
  Eigen::MatrixXd R_, Rg_;  // F × F upper, F × outputs
  Vector rest_;             // |R_rest|² per output
  std::vector<double> multinomial_, multinomial_below_;
  std::vector<int> product_;  // monomial m of degree < p times variable i
  int below_ = 0;             // how many monomials have degree < p
  // Work space.
  Eigen::MatrixXd P_, S_, E_, dS_, dP_, phi_, unit_, A_, readout_;
  Matrix W2_;
  Vector B2_, length_, b_power_;
  Eigen::LLT<Eigen::MatrixXd> cholesky_;
};

struct ExactOptions {
  /// Starting points: W1 and B1 uniform in (-1, 1), each from a seed of its own: seed, seed + 1, …
  int starts = 8;
  int max_iterations = 10'000;
  double gradient_tolerance = 1e-7;
  std::uint64_t seed = 1;
  int threads = 1;
  /// Seconds after which all starts end where they are. Where not given, each ends after its share
  /// of kExactWork.
  std::optional<double> budget = {};
};

/// Operations of all starts together, unless a time is given: the same on every machine. An
/// evaluation takes about 6 F² k of them, so that the paper's network (F = k = 10) never comes
/// near.
inline constexpr double kExactWork = 3e10;

struct ExactSummary {
  bool converged = false;
  bool stopped = false;  ///< by the bound on work or time
  std::string reason;
  bool least_squares = false;  ///< r = 0: solved directly
  long iterations = 0;         ///< of all starts
  double objective = 0;        ///< in the units of the rows
  /// Distinct minima found, best first, and how many starts ended in each.
  struct Minimum {
    double objective;
    int count;
  };
  std::vector<Minimum> minima;
  std::vector<std::uint64_t> seeds;
  double seconds = 0;
};

/// Weights that make a polynomial kernel equal to Σ_m C_om φ_m(u), for k >= F: units α with w = α
/// and b = p - |α|, one per monomial u^α. The p-th powers of these forms span all polynomials of
/// degree p (the lattice of a simplex determines its polynomials); for p = 2 they are the
/// polarisation identity. `coefficients` is outputs × monomials.
void set_polynomial(Network& network, const MonomialBasis& basis,
                    const Eigen::MatrixXd& coefficients);

/// Trains a polynomial-kernel network in place on the factor of its rows. At dropout 0 with at
/// least as many units as monomials it is a least-squares problem and solved as such.
ExactSummary train_exact(Network& network, const RowFactor& factor, const ExactOptions& options,
                         const Observer& observer);

}  // namespace odecast
