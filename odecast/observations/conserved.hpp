#pragma once

#include <optional>
#include <string>

#include "odecast/observations/source.hpp"

namespace odecast {

/// A combination w·u of the variables that does not move along a trajectory: S + P of a reaction,
/// or a sensor that repeats another. Any multiple of it can be added to an equation, so that the
/// data tell the equations only up to that.
struct Conserved {
  Vector weights;    ///< of the variables; the largest is ±1, and 0 for those without a part in it
  double value = 0;  ///< its mean over the rows
};

/// With C the covariance of the rows about the mean of their trajectory and D the diagonal of the
/// noise, the least eigenvalue λ of D⁻¹ C D⁻¹ is the variance of the combination that moves least,
/// in units of its noise: 1 where nothing but noise moves it. It is conserved where λ is below 1.5
/// (which for noise alone is five standard errors off from 200 rows on) while every variable with a
/// part in it moves by more than five times its noise. None where the noise is not known.
std::optional<Conserved> conserved(const ObservationSource& source, const Vector& noise);

/// "S + P", "y - 2.01 x"
std::string in_words(const Conserved& c, const std::vector<std::string>& variables);

}  // namespace odecast
