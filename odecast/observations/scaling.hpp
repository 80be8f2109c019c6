#pragma once

#include "odecast/observations/source.hpp"

namespace odecast {

/// u = offset + scale ∘ v and t = time · s: the user's units u and t, the model's units v and s.
/// A field dv/ds = f(v) is du/dt = rate() ∘ f(v) to the user.
struct Scaling {
  Vector offset, scale;
  double time = 1;

  Vector rate() const { return scale / time; }

  Vector to_model(const Vector& u) const { return (u - offset).cwiseQuotient(scale); }
  Vector to_user(const Vector& v) const { return offset + scale.cwiseProduct(v); }
};

/// Model units are the user's: the paper's setting.
Scaling no_scaling(int variables);

/// Each variable to mean 0 and standard deviation 1 over the data. A constant one keeps the
/// scale 1. Time to a unit in which the root mean square of dv/ds is about 1: the nearest power of
/// two, so that no time is rounded.
Scaling standard_scaling(const ObservationSummary& summary);

/// The same without the shift: each variable divided by its root mean square, so that a polynomial
/// with few terms has few terms in model units too.
Scaling unshifted_scaling(const ObservationSummary& summary);

Dataset to_model_units(Dataset data, const Scaling& scaling);

}  // namespace odecast
