#pragma once

#include <compare>
#include <memory>
#include <vector>

#include "odecast/field/function_terms.hpp"
#include "odecast/field/polynomial.hpp"

namespace odecast {

/// The terms of a field: the monomials of a basis, by their numbers there, and behind them
/// functions, where there are any.
struct TermLibrary {
  std::shared_ptr<const MonomialBasis> basis;
  std::shared_ptr<const FunctionTerms> functions = nullptr;

  int size() const { return basis->size() + (functions ? functions->size() : 0); }
  bool is_function(int term) const { return term >= basis->size(); }
  /// Which of the functions a term is.
  int function(int term) const { return term - basis->size(); }
  /// Values of all terms at the arguments, in model units; `z` has all numbers.
  void evaluate(const double* arguments, const std::vector<double>& z, double* values) const;
};

/// The coefficient of a term in an equation.
struct FieldTerm {
  int equation, term;
  auto operator<=>(const FieldTerm&) const = default;
};
using Support = std::vector<FieldTerm>;

/// The numbers that are inside some of these terms, in ascending order.
std::vector<int> numbers_inside(const TermLibrary& library, const Support& support);
/// The values z of all numbers of the library, those that do not occur 0: they stand in theta
/// behind the coefficients, in the order of numbers_inside().
std::vector<double> all_numbers(const TermLibrary& library, const Support& support,
                                const Vector& theta);

/// du_i/dt = Σ theta[c] φ_t(u) over the terms c of `support` that are (i, t); behind these theta
/// has the numbers inside functions.
struct SparseField {
  TermLibrary library;
  Support support;
  Vector theta;
};

/// The same with all coefficients.
PolynomialField dense(const SparseField& field, int equations);
/// ∂f_i/∂theta_c at the arguments u.
Matrix design(const SparseField& field, const Vector& u, int equations);

/// A sparse field, its Jacobian and its slopes in the numbers as lists, for kernels:
///   φ_0 = 1,  φ_m = φ_parent[m] u_variable[m]     the monomials that are needed, m > 0
///   φ_m, m >= monomials                           the nodes of a tape: first `values` for the
///                                                 functions, then those of their slopes
///   f_equation[c] += theta[c] φ_term[c]           every term c; those that are not 0 are `summed`
///   J[place] += value φ_term                      every slope; place = row × equations + column
///   ∂f_equation/∂z_k += value φ_term              the forces first_force[k] … of number k
/// Slopes are with respect to the first `equations` arguments: what stands behind drives.
struct FieldLists {
  std::vector<int> parent, variable, equation, term, slope_place, slope_term;
  std::vector<double> theta, slope_value;
  /// Terms whose coefficient is not 0: another may be undefined, and does not matter but for its
  /// own column of sensitivities.
  std::vector<int> summed_equation = {}, summed_term = {};
  std::vector<double> summed_theta = {};
  std::vector<Node> tape = {};
  int values = 0;
  std::vector<double> parameters = {};
  std::vector<int> first_force = {0}, force_equation = {}, force_term = {};
  std::vector<double> force_value = {};

  int numbers() const { return static_cast<int>(first_force.size()) - 1; }

  FieldLists(const SparseField& field, int equations);
};

}  // namespace odecast
