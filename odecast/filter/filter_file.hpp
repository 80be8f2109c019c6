#pragma once

#include <string>

#include "odecast/filter/model_after.hpp"

namespace odecast {

/// The rows of a filter as CSV: the time by its name in the data, as dates where the model has a
/// calendar; for each variable x `x_mean`, `x_sd`, `x_lower`, `x_upper` given all rows so far,
/// `x_forecast`, `x_forecast_sd` given those before; then `surprise`, `log_score`, `used` and
/// `status`. Between these, with `ahead`, `x_ahead`, `x_ahead_sd`, `x_ahead_lower`,
/// `x_ahead_upper`. With ids, `trajectory` stands first. What is not known is empty.
std::string filter_header(const Model& model, bool ids, bool ahead);
std::string format_filter_row(const Model& model, const FilterRow& row, const std::string* id);

/// What a filter that learns says of its coefficients, in the user's units: the names of all terms
/// of all equations, as "dx/dt: y", and mean and sd of each.
std::vector<std::string> coefficient_names(const Filter& filter);
LearntCoefficients user_coefficients(const Filter& filter);
/// The same after a row as CSV: the time, then `dx/dt: y_mean`, `dx/dt: y_sd`, ….
std::string coefficients_header(const Filter& filter);
std::string format_coefficients_row(const Filter& filter, double time);

}  // namespace odecast
