#include "odecast/field/sparse_field.hpp"

#include <cassert>

namespace odecast {

PolynomialField dense(const SparseField& field, int equations) {
  PolynomialField f{field.basis, Matrix::Zero(equations, field.basis->size())};
  for (std::size_t c = 0; c < field.support.size(); ++c)
    f.coefficients(field.support[c].equation, field.support[c].monomial) =
        field.theta[static_cast<Eigen::Index>(c)];
  return f;
}

FieldLists::FieldLists(const SparseField& field, int equations)
    : theta(field.theta.begin(), field.theta.end()) {
  assert(theta.size() == field.support.size());
  const MonomialBasis& basis = *field.basis;
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<char> needed(index(basis.size()), 0);
  needed[0] = 1;
  const auto need = [&](int m) {
    for (; !needed[index(m)]; m = basis.parent(m)) needed[index(m)] = 1;
  };
  for (const FieldTerm& term : field.support) {
    need(term.monomial);
    for (int v = 0; v < equations; ++v) need(basis.slope(term.monomial, v).monomial);
  }
  std::vector<int> place(index(basis.size()), -1);
  for (int m = 0; m < basis.size(); ++m) {
    if (!needed[index(m)]) continue;
    place[index(m)] = static_cast<int>(parent.size());
    parent.push_back(place[index(basis.parent(m))]);
    variable.push_back(basis.variable(m));
  }
  for (std::size_t c = 0; c < field.support.size(); ++c) {
    const FieldTerm& term = field.support[c];
    equation.push_back(term.equation);
    monomial.push_back(place[index(term.monomial)]);
    for (int v = 0; v < equations; ++v) {
      const MonomialBasis::Slope slope = basis.slope(term.monomial, v);
      if (slope.factor == 0) continue;
      slope_place.push_back(term.equation * equations + v);
      slope_monomial.push_back(place[index(slope.monomial)]);
      slope_value.push_back(slope.factor * theta[c]);
    }
  }
}

}  // namespace odecast
