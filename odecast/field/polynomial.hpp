#pragma once

#include <memory>
#include <string>
#include <vector>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// All F = C(n+p, p) monomials of n variables up to degree p, by degree and then lexicographically:
/// for n = 2, p = 2: 1, x, y, x², xy, y². Monomial m > 0 is its parent times one variable, so that
/// all of them cost F - 1 multiplications. The number of a monomial does not depend on p.
class MonomialBasis {
 public:
  MonomialBasis(int variables, int degree);

  int variables() const { return variables_; }
  int degree() const { return degree_; }
  int size() const { return static_cast<int>(parent_.size()); }
  /// Power of each variable in monomial m, and their sum.
  const std::vector<int>& powers(int m) const { return powers_[at(m)]; }
  int degree(int m) const { return degree_of_[at(m)]; }
  int parent(int m) const { return parent_[at(m)]; }
  int variable(int m) const { return variable_[at(m)]; }
  const std::vector<int>& parents() const { return parent_; }
  const std::vector<int>& last_variables() const { return variable_; }

  /// The number of the monomial with these powers, -1 where its degree is higher.
  int find(const std::vector<int>& powers) const;
  /// That of φ_m u_v, for a φ_m below the highest degree.
  int times(int m, int v) const;
  /// ∂φ_m/∂u_v = factor φ_monomial; factor and monomial are 0 where u_v is not in φ_m.
  struct Slope {
    int factor, monomial;
  };
  Slope slope(int m, int v) const {
    return {powers(m)[at(v)], over_[at(m) * at(variables_) + at(v)]};
  }

  /// phi[m] for every m, at the state u.
  void evaluate(const double* u, double* phi) const;

  /// Coefficients of (b + w·u)^p with p the degree of the basis:
  /// that of u^α is p! / (α_0! α_1! … α_n!) b^α_0 w_1^α_1 … w_n^α_n, α_0 = p - |α|.
  Vector expand_power(const Vector& w, double b) const;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  int variables_, degree_;
  std::vector<int> parent_, variable_, degree_of_, first_child_;
  std::vector<int> over_;  ///< monomial × variable: the number of φ_m / u_v
  std::vector<std::vector<int>> powers_;
};

/// x^p by multiplication, the same bits everywhere.
inline double integer_power(double x, int p) {
  double result = 1;
  for (int i = 0; i < p; ++i) result *= x;
  return result;
}

/// C(n+p, p), or a very large number where it does not fit: callers check sizes before they build.
double monomial_count(int variables, int degree);

/// p! / (α_0! α_1! … α_n!), α_0 = p - |α|, for |α| <= p.
double multinomial(const std::vector<int>& powers, int p);

/// "x", "x^2 y", "1": a monomial for people.
std::string monomial_text(const std::vector<int>& powers, const std::vector<std::string>& names);

class FunctionTerms;

/// du_i/dt = Σ_m coefficients(i, m) φ_m(u): the monomials, and behind them functions where there
/// are any. A function without a coefficient need not be defined.
struct PolynomialField {
  std::shared_ptr<const MonomialBasis> basis;
  Matrix coefficients;  ///< equations × terms
  std::shared_ptr<const FunctionTerms> functions = nullptr;
  std::vector<double> numbers = {};  ///< z of all numbers inside functions
};

/// ∂f_i/∂u_v at u.
Matrix jacobian(const PolynomialField& field, const Vector& u);

}  // namespace odecast
