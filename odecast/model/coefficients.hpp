#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "odecast/model/model.hpp"

namespace odecast {

/// A coefficient of du_i/dt and u^α in the user's units is rate_i Π scale_v^-α_v times that of the
/// model's, which have no offset.
double user_unit(const Model& model, int equation, const std::vector<int>& powers);
/// The same of a term of a library; that of a function is rate_i / unit_f.
double user_unit(const Model& model, const TermLibrary& library, const FieldTerm& term);
/// What the sets' terms are numbered by, of a model with a `polynomial` part.
TermLibrary term_library(const Model& model);

/// The set of terms of most weight, over all of its distributions.
struct BestSet {
  const CoefficientSet* set = nullptr;  ///< the heaviest with these terms; a part of the model
  double probability = 0;
};
/// Empty where the model is not a mixture of normal distributions over sets of terms.
std::optional<BestSet> best_set(const Model& model);

/// The most probable set of terms, whose coefficients are ~ N(mean, covariance) in the user's
/// units. Throws Error (usage) where there are no sets.
struct SetOfTerms {
  Support support;  ///< equations, and terms numbered as by term_library()
  Vector mean;      ///< of the coefficients and behind them of the numbers inside functions
  Matrix covariance;
  std::vector<int> numbers = {};  ///< which, as in FunctionTerms::numbers()
};
SetOfTerms most_probable_terms(const Model& model);

/// The monomials of the learnt polynomial. Throws Error (usage) for a network that is none.
std::shared_ptr<const MonomialBasis> monomials(const Model& model);

/// Draws number 0, 1, … of the seed, those that forecasts of that seed integrate, as polynomials in
/// the user's units.
struct CoefficientDraws {
  /// Of each draw, variables × terms: monomials, and behind them functions.
  std::vector<Matrix> coefficients;
  Matrix numbers = {};  ///< draws × numbers inside functions, NaN where a draw does not have one
  /// draws × variables: the state in which the data end, drawn with the coefficients; empty where
  /// the posterior says nothing of it.
  Matrix starts;
};
/// With v = (u - o) / s, the coefficient of u^β is rate Σ_α≥β c_α Π_v C(α_v, β_v) (-o_v)^(α_v-β_v)
/// s_v^-α_v, and base is added to that of 1. Throws Error (usage) for more than 10^8 numbers, and
/// as monomials() does.
CoefficientDraws draw_coefficients(const Model& model, long draws, std::uint64_t seed,
                                   const Observer& observer = ignore_progress);

}  // namespace odecast
