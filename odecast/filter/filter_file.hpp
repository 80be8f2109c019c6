#pragma once

#include <string>

#include "odecast/filter/filter.hpp"

namespace odecast {

/// The rows of a filter as CSV: the time by its name in the data, as dates where the model has a
/// calendar; for each variable x `x_mean`, `x_sd`, `x_lower`, `x_upper` given all rows so far,
/// `x_forecast`, `x_forecast_sd` given those before; then `surprise`, `log_score`, `used` and
/// `status`. With ids, `trajectory` stands first. What is not known is empty.
std::string filter_header(const Model& model, bool ids);
std::string format_filter_row(const Model& model, const FilterRow& row, const std::string* id);

}  // namespace odecast
