#pragma once

#include "odecast/learning/fit.hpp"

namespace odecast {

/// The rivals of the most probable set of terms, of a model with several.
std::optional<Rivals> rivals(const Model& model, const Dataset& data);

}  // namespace odecast
