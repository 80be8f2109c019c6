#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/forecast/forecast.hpp"
#include "odecast/observations/dataset.hpp"
#include "odecast/report/svg.hpp"
#include "odecast/tuning/tune.hpp"

namespace odecast {

struct FigureContent {
  std::vector<std::string> variables = {};  ///< a panel each; empty for all
  std::optional<Dataset> truth = {};
  std::string trajectory = {};          ///< id of the truth's trajectory; empty: the last
  std::optional<Dataset> history = {};  ///< what was observed before, drawn as far as it tells
  std::optional<Bands> bands = {};      ///< instead of the forecast's own, where it has them
  std::optional<double> lyapunov = {};  ///< marks Lyapunov times
  std::string title = {};
};

/// A forecast and what its panels are called.
struct NamedForecast {
  std::string name = {};
  Forecast forecast;
};

/// Mean and band of forecasts over the truth, one below the other, as SVG. Throws Error (usage) for
/// an unknown variable.
std::string forecast_figure(const std::vector<NamedForecast>& forecasts,
                            const FigureContent& content);

/// The rows that a model kept of its last trajectory, if any.
std::optional<Dataset> history_of(const Model& model);
/// The observations of a variable before a forecast, as dots: back to twice its span, or to thirty
/// of them where those reach further. Of the trajectory with that id, or the last.
std::optional<Line> history_line(const Dataset& history, const std::string& trajectory,
                                 const std::string& variable, const Forecast& forecast);
/// Where the forecast begins, for a panel with a history.
Mark start_mark(const Forecast& forecast);

/// "95 % band (mean ± 1.96 sd)", of the state: the forecast's own.
std::string band_label(const Forecast& forecast);
/// "forecast median" or "forecast mean", the centre of that band.
std::string centre_label(const Forecast& forecast);
/// "95 % band of an observation"
std::string observed_band_label(const Forecast& forecast);

/// The panel with an axis of time: the name of the column, and dates where there is a calendar.
Panel over_time(const std::string& time_name, const std::optional<Calendar>& calendar, Panel panel);

/// A column of a matrix.
std::vector<double> column(const Matrix& m, Eigen::Index i);

/// Whole Lyapunov times since `from`, at most five; none for an exponent that is not positive.
std::vector<Mark> lyapunov_marks(double from, double until, double exponent);

/// Energy scores of the candidates, best first, beside climatology's: an SVG.
std::string tuning_figure(const Tuning& tuning);

}  // namespace odecast
