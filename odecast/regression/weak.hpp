#pragma once

#include <memory>
#include <vector>

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/field/function_terms.hpp"
#include "odecast/field/polynomial.hpp"

namespace odecast {

/// The terms φ_m of a regression: the monomials of a basis and behind them functions that have no
/// numbers inside. A view: basis and functions outlive it.
struct LinearTerms {
  const MonomialBasis& basis;
  const FunctionTerms* functions = nullptr;
  std::vector<double> prices = {};  ///< of the functions, as term_price of a monomial

  LinearTerms(const MonomialBasis& monomials) : basis(monomials) {}
  LinearTerms(const MonomialBasis& monomials, const FunctionTerms* behind,
              std::vector<double> prices_of_functions)
      : basis(monomials), functions(behind), prices(std::move(prices_of_functions)) {}

  int variables() const { return basis.variables(); }
  int size() const { return basis.size() + (functions ? functions->size() : 0); }
  double price(int term) const;
  /// The values of all terms at the arguments.
  void evaluate(const double* arguments, double* values) const;
};

/// The integral form of du/dt = Σ_m C_m φ_m(u). For a smooth ψ that vanishes with its slope at both
/// ends of its support, integration by parts gives, without any derivative of data,
///   -∫ ψ' u dt = Σ_m C_m ∫ ψ φ_m(u) dt.
/// The test functions are ψ(t) = (1 - ((t - c)/R)²)^8 with centres c a quarter of R apart
/// (Messenger & Bortz, Multiscale Model. Simul. 19 (2021) 1474). Both integrals are sums over
/// observations y_i = u_i + ε_i:
///   increment_k = Σ_i s_ki y_i,   integral_km = Σ_i v_ki φ̃_m(y_i).
///
/// Weights. For even times v_i = h ψ(t_i), s_i = -h ψ'(t_i): the trapezoidal rule, whose error is
/// the Fourier transform of the integrand at 2π/h and beyond, which falls like (2πR/h)^-9 and
/// faster than any power of h until then. For uneven times v_i = ∫ ψ ℓ_i, s_i = -∫ ψ' ℓ_i, where on
/// each interval Σ_i ℓ_i y_i is the polynomial that fits the observations around it best, of degree
/// 1, 3, 5 or 7 to 2 … 20 of them. With s' the weights of degree two higher, Δ_k = Σ_i (s'_ki -
/// s_ki) y_i is what it changes, of which noise makes σ² |s'_k - s_k|²; the rest, in the mean over
/// rows, is
///   c² = ⟨Δ_k² / |s'_k - s_k|²⟩ - (1.2 + 3 √(2/K)) σ², or 0,
/// beyond a fifth and three standard errors of the mean of K, for σ is estimated too. Row k has the
/// truncation c |s'_k - s_k|, more where gaps are wide. The fit with the least mean of noise and
/// truncation is taken.
///
/// Noise in nonlinear terms. E (u+ε)² = u² + σ²: powers of y are biased. φ̃ has the Hermite
/// polynomials
///   H_0 = 1, H_1 = y, H_{k+1} = y H_k - k σ² H_{k-1},   E H_k(u + ε) = u^k for ε ~ N(0, σ²),
/// in place of the powers of each variable; E φ̃_m(y) = φ_m(u) exactly. These are exp(-½ Σ_j σ_j²
/// ∂²/∂u_j²) φ_m, of which functions have the first two terms,
///   φ̃ = φ - ½ Σ_j σ_j² ∂²φ/∂u_j²,   E φ̃(y) = φ(u) + O(σ⁴).
struct WeakRows {
  struct Rule {
    std::vector<double> value, slope;  ///< v_i and s_i from the first observation on
  };
  struct Functional {
    std::size_t segment;
    int first;  ///< its first observation, within the segment
    Rule rule;

    int last() const { return first + static_cast<int>(rule.value.size()); }  ///< one past
  };

  std::vector<Functional> functionals;  ///< ordered by segment and time
  Matrix integrals;                     ///< functionals × monomials
  Matrix increments;           ///< functionals × variables whose equations are to be learnt
  std::vector<Matrix> states;  ///< the observations of each segment
  Vector noise;                ///< σ of each variable, those that drive the system too
  Matrix truncation;           ///< standard deviation of the rule's error in each increment
  double radius = 0;           ///< R; shorter segments have shorter ones

  Eigen::Index rows() const { return increments.rows(); }
  int dimension() const { return static_cast<int>(increments.cols()); }
};

/// Rows that a segment needs to carry a test function.
inline constexpr int kWeakRows = 17;

/// The time over which the signal changes by its own standard deviation σ_u: (τ/T)² = n / Σ_j
/// ⟨(u_j(t+T) - u_j(t))² - 2σ_j²⟩ / σ_uj², at the shortest T at which this is below 4. Noise
/// cancels, however fine the sampling.
double time_scale(const std::vector<Segment>& segments, const Vector& noise);

/// The first `targets` variables have equations (0: all), the others drive them. R is 1.5 time
/// scales, or shorter until there are five times as many rows as monomials. Test functions with a
/// spacing above R/2 inside are left out. Segments of less than kWeakRows rows have none; the
/// result may be empty.
WeakRows weak_rows(const std::vector<Segment>& segments, const LinearTerms& terms,
                   const Vector& noise, int targets = 0);

/// The same rows made block by block, when they are asked for: what regression keeps of a row is a
/// hundred times the observation. Few rows are one block. Of many a block has some segments, or a
/// part of a long one; test functions across the cuts, a sixtieth at most, are left out.
class WeakBlocks {
 public:
  /// Keeps references to the segments' data and to what the terms are made of.
  WeakBlocks(std::vector<Segment> segments, const LinearTerms& terms, const Vector& noise,
             int targets = 0);
  /// One block.
  WeakBlocks(WeakRows rows);
  ~WeakBlocks();

  std::size_t size() const { return begins_.size() - 1; }
  Eigen::Index rows() const { return rows_; }  ///< of all blocks
  int dimension() const { return dimension_; }
  const Vector& noise() const { return current_.noise; }
  /// Made anew where another one was asked for before: good until the next call.
  const WeakRows& block(std::size_t b);

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
  std::vector<std::size_t> begins_;  // the first segment of each block, and one past the last
  Eigen::Index rows_ = 0;
  int dimension_ = 0;
  WeakRows current_;
  std::size_t which_ = 0;
};

/// φ̃_m(y) of every m, and where `slopes` is not null ∂φ̃_m/∂y_j, terms × variables. It keeps what
/// it works in from one observation to the next: one for each thread.
class DebiasedTerms {
 public:
  DebiasedTerms(const LinearTerms& terms, Vector noise);
  void operator()(const double* y, double* phi, Matrix* slopes);

 private:
  void functions(const double* y, double* phi, Matrix* slopes);
  const MonomialBasis& basis_;
  Vector noise_;
  Matrix hermite_;  // H_k(y_j), variable × power
  // The nodes of φ̃ of every function, and of its slopes in every variable; values of all nodes.
  Tape tape_;
  std::vector<int> values_, slopes_;
  std::vector<double> nodes_;
};

}  // namespace odecast
