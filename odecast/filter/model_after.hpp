#pragma once

#include "odecast/filter/filter.hpp"

namespace odecast {

/// Mean and sd of every coefficient, in the order of the filter's terms, and behind them of the
/// numbers inside functions; model units.
struct LearntCoefficients {
  Vector mean, sd;
};
LearntCoefficients learnt_coefficients(const Filter& filter);

/// The model as it is after the last row: a forecast of it goes on from there. Of a filter that
/// learns, a normal distribution over coefficients and state, as the members have them together:
/// with u the state, θ the coefficients, C their covariances over the members,
///   u | θ ~ N(ū + C_uθ C_θθ⁻¹ (θ - θ̄),  C_uu - C_uθ C_θθ⁻¹ C_θu).
/// A term that the model before thought improbable, and whose coefficient is below two sd now, is
/// taken out: the others are conditioned on its being 0. Of one that does not learn the equations
/// stay, and the state is independent of them. Throws Error (usage) before the first row.
Model model_after(const Filter& filter);

}  // namespace odecast
