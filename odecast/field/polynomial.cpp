#include "odecast/field/polynomial.hpp"

#include <cassert>

#include "odecast/field/detail/monomial_tree.hpp"
#include "odecast/field/function_terms.hpp"

namespace odecast {

MonomialBasis::MonomialBasis(int variables, int degree) : variables_(variables), degree_(degree) {
  assert(variables >= 1 && degree >= 0);
  const auto size = static_cast<std::size_t>(monomial_count(variables, degree));
  const auto n = at(variables);
  parent_.resize(size);
  variable_.resize(size);
  grow_monomials(variables, degree, parent_.data(), variable_.data());
  degree_of_.resize(size);
  first_child_.resize(size);
  over_.resize(size * n);
  powers_.assign(size, std::vector<int>(n));
  for (std::size_t m = 1; m < size; ++m) {
    const std::size_t parent = at(parent_[m]), last = at(variable_[m]);
    if (last == at(variable_[parent])) first_child_[parent] = static_cast<int>(m);
    degree_of_[m] = degree_of_[parent] + 1;
    powers_[m] = powers_[parent];
    ++powers_[m][last];
    // Without its last variable it is its parent; without another, that of the parent without it
    // times the last.
    for (std::size_t v = 0; v < last; ++v)
      if (powers_[m][v] > 0) {
        const std::size_t rest = at(over_[parent * n + v]);
        over_[m * n + v] = first_child_[rest] + static_cast<int>(last) - variable_[rest];
      }
    over_[m * n + last] = parent_[m];
  }
}

int MonomialBasis::find(const std::vector<int>& powers) const {
  assert(powers.size() == at(variables_));
  int m = 0, left = degree_;
  for (int v = 0; v < variables_; ++v)
    for (int i = 0; i < powers[at(v)]; ++i) {
      if (left-- == 0) return -1;
      m = first_child_[at(m)] + v - variable(m);
    }
  return m;
}

int MonomialBasis::times(int m, int v) const {
  assert(degree(m) < degree_);
  std::vector<int> product = powers(m);
  ++product[at(v)];
  return find(product);
}

void MonomialBasis::evaluate(const double* u, double* phi) const {
  phi[0] = 1;
  for (int m = 1; m < size(); ++m) phi[m] = phi[parent(m)] * u[variable(m)];
}

Vector MonomialBasis::expand_power(const Vector& w, double b) const {
  assert(w.size() == variables_);
  Vector q(size());
  for (int m = 0; m < size(); ++m) {
    double term = multinomial(powers(m), degree_);
    for (int v = 0; v < variables_; ++v)
      for (int i = 0; i < powers(m)[at(v)]; ++i) term *= w[v];
    for (int i = degree(m); i < degree_; ++i) term *= b;
    q[m] = term;
  }
  return q;
}

double monomial_count(int variables, int degree) {
  double count = 1;
  for (int i = 1; i <= degree; ++i) count = count * (variables + i) / i;
  return count;
}

double multinomial(const std::vector<int>& powers, int p) {
  double result = 1;  // a product of binomials, exact for the sizes in use
  for (const int power : powers)
    for (int i = 1; i <= power; ++i, --p) result = result * p / i;
  return result;
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

Matrix jacobian(const PolynomialField& f, const Vector& u) {
  // The rule of products: φ_m = φ_parent u_v.
  const MonomialBasis& basis = *f.basis;
  Vector phi(basis.size());
  basis.evaluate(u.data(), phi.data());
  Matrix slope = Matrix::Zero(basis.size(), basis.variables());
  for (int m = 1; m < basis.size(); ++m) {
    slope.row(m) = slope.row(basis.parent(m)) * u[basis.variable(m)];
    slope(m, basis.variable(m)) += phi[basis.parent(m)];
  }
  if (!f.functions) return f.coefficients * slope;
  const FunctionTerms& functions = *f.functions;
  Matrix J = f.coefficients.leftCols(basis.size()) * slope;
  std::vector<double> nodes(static_cast<std::size_t>(functions.model().size()));
  evaluate(functions.model(), u.data(), f.numbers.data(), nodes.data());
  for (int k = 0; k < functions.size(); ++k)
    for (Eigen::Index i = 0; i < J.rows(); ++i) {
      const double c = f.coefficients(i, basis.size() + k);
      for (int v = 0; v < functions.variables() && c != 0; ++v)
        if (const int node = functions.nodes(k).variables[static_cast<std::size_t>(v)]; node >= 0)
          J(i, v) += c * nodes[static_cast<std::size_t>(node)];
    }
  return J;
}

}  // namespace odecast
