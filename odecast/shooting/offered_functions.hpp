#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "odecast/field/coefficients.hpp"
#include "odecast/field/dictionary.hpp"
#include "odecast/observations/observed_run.hpp"
#include "odecast/observations/smoother.hpp"

namespace odecast {

/// Functions that a search is offered, as terms of one library. A function with numbers inside is
/// there with its numbers free, once for each equation, or once for all where the user gave it, and
/// as columns in which the numbers have the values of a grid: a search takes a column and goes on
/// with the free function from there.
struct OfferedFunctions {
  std::shared_ptr<const FunctionTerms> functions;
  struct Offer {
    double price;           ///< of the choice, as the degree of a monomial
    bool column;            ///< whether a search may add it: it has no numbers
    std::vector<int> free;  ///< of a column with values for numbers: the free function, by equation
    std::vector<double> z;  ///< and the values
    std::optional<Family> family;  ///< of the dictionary; empty where the user gave it
    int form = 0;  ///< one number for a function in all equations, with free numbers or as a column
    bool given() const { return !family; }
  };
  std::vector<Offer> offers;             ///< of every function
  int kinds = 1;                         ///< among which the choice is
  std::vector<std::string> given_names;  ///< of the user's numbers

  bool any() const { return !offers.empty(); }
};

inline constexpr std::string_view kAutomaticFunctions = "auto";

/// What is offered.
struct FunctionWishes {
  /// Words of function_kinds(), or kAutomaticFunctions: their forms for all arguments.
  std::vector<std::string> kinds = {};
  /// Expressions of the arguments, with names of numbers to estimate.
  std::vector<std::string> candidates = {};
};

/// Whether numbers inside functions can be estimated by who asks for them.
enum class InnerNumbers { estimated, none };

/// The arguments are the variables and behind them the inputs, by `names`; those that are not
/// `active` are constants and in no form. What the data do not define is not offered, or, where the
/// user gave it, an Error (data) that names the row. Throws Error (usage) for what cannot be read,
/// and for what has numbers inside where none can be estimated.
OfferedFunctions offer_functions(const FunctionWishes& wishes,
                                 const std::vector<std::string>& names, int variables,
                                 const std::vector<ObservedRun>& runs, const Smoothed& smoothed,
                                 const Vector& active, const Vector& offset, const Vector& scale,
                                 InnerNumbers inner = InnerNumbers::estimated);

/// Leaves those functions in a library that some set has, and renumbers the terms of the sets.
/// Numbers that have none of the `taken_names` are called k1, k2, …
void keep_used(TermLibrary& library, std::vector<CoefficientSet>& sets,
               const std::vector<std::string>& taken_names, const Vector& offset,
               const Vector& scale);

}  // namespace odecast
