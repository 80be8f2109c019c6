#include "odecast/field/polynomial.hpp"

#include <cassert>

namespace odecast {

MonomialBasis::MonomialBasis(int variables, int degree) : variables_(variables), degree_(degree) {
  assert(variables >= 1 && degree >= 0);
  powers_.emplace_back(static_cast<std::size_t>(variables), 0);
  parent_.push_back(0);
  variable_.push_back(0);
  // Monomials of degree d+1 are those of degree d times a variable that does not come before their
  // last one: each arises once, in lexicographic order.
  std::size_t begin = 0;
  for (int d = 0; d < degree; ++d) {
    const std::size_t end = powers_.size();
    for (std::size_t m = begin; m < end; ++m) {
      for (int v = m == 0 ? 0 : variable_[m]; v < variables; ++v) {
        auto p = powers_[m];
        ++p[static_cast<std::size_t>(v)];
        powers_.push_back(std::move(p));
        parent_.push_back(static_cast<int>(m));
        variable_.push_back(v);
      }
    }
    begin = end;
  }
}

void MonomialBasis::evaluate(const double* u, double* phi) const {
  phi[0] = 1;
  for (int m = 1; m < size(); ++m) phi[m] = phi[parent(m)] * u[variable(m)];
}

Vector MonomialBasis::expand_power(const Vector& w, double b) const {
  assert(w.size() == variables_);
  Vector q(size());
  for (int m = 0; m < size(); ++m) {
    double term = 1;
    int left = degree_;  // multinomial as a product of binomials, exact for the sizes in use
    for (int v = 0; v < variables_; ++v) {
      for (int i = 1; i <= powers(m)[static_cast<std::size_t>(v)]; ++i, --left)
        term = term * left / i;
    }
    for (int v = 0; v < variables_; ++v)
      for (int i = 0; i < powers(m)[static_cast<std::size_t>(v)]; ++i) term *= w[v];
    for (int i = 0; i < left; ++i) term *= b;
    q[m] = term;
  }
  return q;
}

double monomial_count(int variables, int degree) {
  double count = 1;
  for (int i = 1; i <= degree; ++i) count = count * (variables + i) / i;
  return count;
}

std::string monomial_text(const std::vector<int>& powers, const std::vector<std::string>& names) {
  assert(powers.size() == names.size());
  std::string text;
  for (std::size_t v = 0; v < powers.size(); ++v) {
    if (powers[v] == 0) continue;
    if (!text.empty()) text += ' ';
    text += names[v];
    if (powers[v] > 1) text += '^' + std::to_string(powers[v]);
  }
  return text.empty() ? "1" : text;
}

}  // namespace odecast
