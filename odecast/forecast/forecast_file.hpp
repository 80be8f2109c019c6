#pragma once

#include <filesystem>
#include <string>

#include "odecast/forecast/forecast.hpp"
#include "odecast/observations/table.hpp"

namespace odecast {

/// A forecast as CSV: the time by its name in the data, as dates where it has a calendar; for each
/// variable x `x_mean`, `x_sd`, with the sd band `x_lower`, `x_upper`, with quantiles `x_q2.5`,
/// `x_q50`, `x_q97.5` (at level 0.95), with the bands of an observation `x_observed_lower`,
/// `x_observed_upper`, `x_observed_q2.5`, `x_observed_q97.5`; then `alive`. Names are quoted as in
/// every CSV of ours. No variable's name makes two columns equal: where one is called `x_observed`,
/// the bands of observations are `x__observed_lower` and so on.
std::string format_forecast(const Forecast& forecast);

/// Reads what format_forecast wrote. The level is in the names of the quantiles or follows from
/// upper = mean + c sd. Dates are counted as `count` says. Draw counts are not in the file and stay
/// 0. Throws Error (data).
Forecast read_forecast(const std::filesystem::path& path, const TimeCount& count = UnitBySpacing{});

}  // namespace odecast
