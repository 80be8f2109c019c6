#pragma once

#include "odecast/observations/dataset.hpp"

namespace odecast {

/// u = offset + scale ∘ v: the user's units u, the model's units v. Time is not scaled.
struct Scaling {
  Vector offset, scale;

  Vector to_model(const Vector& u) const { return (u - offset).cwiseQuotient(scale); }
  Vector to_user(const Vector& v) const { return offset + scale.cwiseProduct(v); }
};

/// Model units are the user's: the paper's setting.
Scaling no_scaling(int variables);

/// Each variable to mean 0 and standard deviation 1 over the data. A constant one (variance below
/// rows ε var + (rows mean ε)², scikit-learn's rule) keeps the scale 1.
Scaling standard_scaling(const Dataset& data);

Dataset to_model_units(const Dataset& data, const Scaling& scaling);

}  // namespace odecast
