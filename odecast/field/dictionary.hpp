#pragma once

#include <span>
#include <string_view>

namespace odecast {

/// What the numbers inside a form are like, which tells where a search begins.
enum class NumberKind {
  none,
  size,      ///< positive, like a value of x
  rate,      ///< of either sign, like 1/x
  steep,     ///< positive, like 1/x
  level,     ///< a value of x
  exponent,  ///< positive, without a unit
};

/// A form of a term that a search is offered for every argument x, or for every pair of arguments x
/// and y where y occurs. k and m are numbers inside.
struct FunctionForm {
  std::string_view kind;  ///< the word by which it is asked for
  std::string_view text;
  int size;  ///< what its choice costs: as much as that of a monomial of that degree
  NumberKind k = NumberKind::none, m = NumberKind::none;
  bool ordered = true;  ///< whether x, y and y, x are two terms
};
/// Where x must lie for a form to be defined and bounded; noise may take values a little below 0
/// where it is about positive.
enum class Domain { everywhere, about_positive, positive };
Domain domain_of(const FunctionForm& form);
std::span<const FunctionForm> function_forms();

/// Kinds that occur together in equations.
enum class Family { waves, growth, fractions, switches };

/// The words: "sin", "cos", … with what they offer.
struct FunctionKind {
  std::string_view name, meaning;
  Family family;
};
std::span<const FunctionKind> function_kinds();
Family family_of(const FunctionForm& form);

}  // namespace odecast
