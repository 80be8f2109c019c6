#pragma once

#include <optional>
#include <string>

#include "odecast/forecast/forecast.hpp"
#include "odecast/report/page_parts.hpp"

namespace odecast {

struct ForecastPageContent {
  std::optional<Dataset> truth = {};
  std::string trajectory = {};          ///< id of the truth's trajectory; empty: the last
  std::optional<Dataset> history = {};  ///< observed before; else the rows that the model kept
  std::optional<Forecast> drawn = {};   ///< drawn_forecast() of the same, for the curves
  std::optional<double> lyapunov = {};  ///< largest exponent, positive: times in Lyapunov times
                                        ///< too; else that of the model's mean field
  bool exponent_is_learnt = false;      ///< for the caption
  std::string title = {};               ///< empty: "Forecast of x, y, z"
  Origin origin = {};
};

/// A forecast: what was observed, equations, every variable with the observations before it, band,
/// samples and truth, growth of
/// spread and error, blow-ups, calibration. Throws Error (data) where the truth does not match, as
/// score().
Page forecast_page(const Model& model, const Forecast& forecast,
                   const ForecastPageContent& content);

}  // namespace odecast
