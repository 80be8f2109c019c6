#pragma once

#include <memory>
#include <string>
#include <vector>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// All F = C(n+p, p) monomials of n variables up to degree p, by degree and then lexicographically:
/// for n = 2, p = 2: 1, x, y, x², xy, y². Monomial m > 0 is its parent times one variable, so that
/// all of them cost F - 1 multiplications.
class MonomialBasis {
 public:
  MonomialBasis(int variables, int degree);

  int variables() const { return variables_; }
  int degree() const { return degree_; }
  int size() const { return static_cast<int>(parent_.size()); }
  /// Power of each variable in monomial m.
  const std::vector<int>& powers(int m) const { return powers_[static_cast<std::size_t>(m)]; }
  int parent(int m) const { return parent_[static_cast<std::size_t>(m)]; }
  int variable(int m) const { return variable_[static_cast<std::size_t>(m)]; }

  /// phi[m] for every m, at the state u.
  void evaluate(const double* u, double* phi) const;

  /// Coefficients of (b + w·u)^p with p the degree of the basis:
  /// that of u^α is p! / (α_0! α_1! … α_n!) b^α_0 w_1^α_1 … w_n^α_n, α_0 = p - |α|.
  Vector expand_power(const Vector& w, double b) const;

 private:
  int variables_, degree_;
  std::vector<std::vector<int>> powers_;
  std::vector<int> parent_, variable_;
};

/// x^p by multiplication, the same bits everywhere.
inline double integer_power(double x, int p) {
  double result = 1;
  for (int i = 0; i < p; ++i) result *= x;
  return result;
}

/// C(n+p, p), or a very large number where it does not fit: callers check sizes before they build.
double monomial_count(int variables, int degree);

/// "x", "x^2 y", "1": a monomial for people.
std::string monomial_text(const std::vector<int>& powers, const std::vector<std::string>& names);

/// du_i/dt = Σ_m coefficients(i, m) φ_m(u).
struct PolynomialField {
  std::shared_ptr<const MonomialBasis> basis;
  Matrix coefficients;  ///< variables × monomials
};

}  // namespace odecast
