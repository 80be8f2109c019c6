#pragma once

#include <compare>
#include <memory>
#include <vector>

#include "odecast/field/polynomial.hpp"

namespace odecast {

/// The coefficient of a monomial in an equation.
struct FieldTerm {
  int equation, monomial;
  auto operator<=>(const FieldTerm&) const = default;
};
using Support = std::vector<FieldTerm>;

/// du_i/dt = Σ theta[c] φ_m(u) over the terms c of `support` that are (i, m).
struct SparseField {
  std::shared_ptr<const MonomialBasis> basis;
  Support support;
  Vector theta;
};

/// The same with all coefficients.
PolynomialField dense(const SparseField& field, int equations);

/// A sparse field and its Jacobian as lists, for kernels:
///   φ_0 = 1,  φ_m = φ_parent[m] u_variable[m]       the monomials that are needed, m > 0
///   f_equation[c] += theta[c] φ_monomial[c]         every term c
///   J[place] += value φ_monomial                    every slope; place = row × equations + column
/// Slopes are with respect to the first `equations` arguments: what stands behind drives.
struct FieldLists {
  std::vector<int> parent, variable, equation, monomial, slope_place, slope_monomial;
  std::vector<double> theta, slope_value;

  FieldLists(const SparseField& field, int equations);
};

}  // namespace odecast
