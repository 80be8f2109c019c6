#pragma once

#include "odecast/forecast/forecast.hpp"
#include "odecast/learning/fields.hpp"

namespace odecast {

/// The settings of a forecast as they ran, those that the model and the solver have: what was left
/// to be chosen is what was taken. Those of a fit are Model::settings.
Settings forecast_settings(const Model& model, const ForecastOptions& options);

}  // namespace odecast
