#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "odecast/forecast/forecast.hpp"
#include "odecast/posterior/fit.hpp"
#include "odecast/report/page.hpp"

namespace odecast {

/// How a result came about, for the end of its page.
struct Origin {
  std::string command;  ///< that repeats it
  std::vector<std::pair<std::string, std::string>> settings = {}, versions = {};
};

/// "How this was made": command, settings, versions.
Section origin_section(const Origin& origin);

struct ForecastPageContent {
  std::optional<Dataset> truth = {};
  std::string trajectory = {};          ///< id of the truth's trajectory; empty: the last
  std::optional<double> lyapunov = {};  ///< largest exponent, positive: times in Lyapunov times too
  std::string title = {};               ///< empty: "Forecast of x, y, z"
  Origin origin = {};
};

/// A forecast: what was observed, equations, every variable with band, samples and truth, growth of
/// spread and error, blow-ups, calibration. Throws Error (data) where the truth does not match, as
/// score().
Page forecast_page(const Model& model, const Forecast& forecast,
                   const ForecastPageContent& content);

struct FitPageContent {
  std::string title = {};  ///< empty: "Model of x, y, z"
  Origin origin = {};
};

/// A fit: the data, the equations, estimated derivatives against the model's.
Page fit_page(const Dataset& data, const Fit& fit, const FitOptions& options,
              const FitPageContent& content);

}  // namespace odecast
