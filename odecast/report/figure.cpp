#include "odecast/report/figure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"

namespace odecast {

Panel over_time(const std::string& time_name, const std::optional<Calendar>& calendar,
                Panel panel) {
  panel.x_label = time_name == "t" ? "time t" : time_name;
  if (calendar && calendar->offset) panel.x_label += " (" + zone_text(*calendar) + ")";
  panel.calendar = calendar;
  return panel;
}

std::vector<double> column(const Matrix& m, Eigen::Index i) {
  std::vector<double> values;
  for (Eigen::Index t = 0; t < m.rows(); ++t) values.push_back(m(t, i));
  return values;
}

namespace {

/// The truth over the span of the forecast, of the variable with that name.
std::optional<Line> truth_line(const Dataset& truth, const std::string& trajectory,
                               const std::string& variable, double from, double until) {
  const auto found = std::find(truth.variables.begin(), truth.variables.end(), variable);
  if (found == truth.variables.end()) return std::nullopt;
  const auto i = found - truth.variables.begin();
  Line line{.label = "truth", .ink = Ink::truth};
  const Trajectory& t = find_trajectory(truth, trajectory);
  for (int row = 0; row < t.rows(); ++row) {
    const double time = t.times[static_cast<std::size_t>(row)];
    if (time < from || time > until) continue;
    line.x.push_back(time);
    line.y.push_back(t.states(row, i));
  }
  return line;
}

}  // namespace

std::optional<Dataset> history_of(const Model& model) {
  if (!model.observed || model.observed->times.empty()) return std::nullopt;
  return Dataset{
      .variables = model.measured_variables(),
      .trajectories = {{model.last_trajectory, model.observed->times, model.observed->states}}};
}

std::optional<Line> history_line(const Dataset& history, const std::string& trajectory,
                                 const std::string& variable, const Forecast& f) {
  constexpr std::ptrdiff_t kFewest = 30;
  const auto found = std::find(history.variables.begin(), history.variables.end(), variable);
  if (found == history.variables.end()) return std::nullopt;
  const auto i = found - history.variables.begin();
  const Trajectory* chosen = &history.trajectories.back();
  for (const Trajectory& t : history.trajectories)
    if (t.id == trajectory) chosen = &t;
  const std::vector<double>& times = chosen->times;
  const double start = f.times.front(), span = f.times.back() - start;
  const auto end = std::upper_bound(times.begin(), times.end(), start);
  auto begin = std::lower_bound(times.begin(), end, start - 2 * span);
  begin = std::min(begin, end - std::min<std::ptrdiff_t>(kFewest, end - times.begin()));
  Line line{.label = "observed", .ink = Ink::truth, .width = 1.4, .points = true};
  for (auto t = begin; t != end; ++t) {
    line.x.push_back(*t);
    line.y.push_back(chosen->states(t - times.begin(), i));
  }
  if (line.x.empty()) return std::nullopt;
  return line;
}

Mark start_mark(const Forecast& f) { return {f.times.front(), "forecast begins"}; }

std::vector<Mark> lyapunov_marks(double from, double until, double exponent) {
  if (!(exponent > 0)) return {};
  std::vector<Mark> marks;
  const double unit = 1 / exponent, span = until - from;
  const double every = std::max(1.0, std::ceil(span / unit / 5));
  for (double k = every; k * unit <= span; k += every)
    marks.push_back({from + k * unit, fmt::format("{:g} Lyapunov time{}", k, k == 1 ? "" : "s")});
  return marks;
}

std::string band_label(const Forecast& f) {
  const double c = band_factor(f.level);
  const auto last = f.mean.rows() - 1;
  const bool quantiles = f.bands == Bands::quantiles;
  const double reach = c * f.sd(last, 0),
               raw = quantiles ? f.q_upper(last, 0) : f.mean(last, 0) + reach;
  const bool calibrated =  // another multiple of that, or of it and a floor
      std::abs(f.upper(last, 0) - raw) > 1e-6 * (std::abs(f.mean(last, 0)) + reach);
  return fmt::format("{:g} % band ({})", 100 * f.level,
                     calibrated  ? "calibrated"
                     : quantiles ? "quantiles"
                                 : fmt::format("mean ± {:.3g} sd", c));
}

std::string centre_label(const Forecast& f) {
  return f.bands == Bands::quantiles ? "forecast median" : "forecast mean";
}

std::string observed_band_label(const Forecast& f) {
  return fmt::format("{:g} % band of an observation", 100 * f.level);
}

namespace {

/// The forecast with other bands as its own, where it has them.
Forecast with_bands(Forecast f, const std::optional<Bands>& bands) {
  if (bands == Bands::quantiles && f.q_lower.size() > 0) {
    f.bands = Bands::quantiles;
    f.lower = f.q_lower;
    f.upper = f.q_upper;
    if (f.observed_q_lower.size() > 0) {
      f.observed_lower = f.observed_q_lower;
      f.observed_upper = f.observed_q_upper;
    }
  } else if (bands == Bands::sd && f.bands == Bands::quantiles) {
    f.bands = Bands::sd;
    f.lower = f.mean - band_factor(f.level) * f.sd;
    f.upper = f.mean + band_factor(f.level) * f.sd;
  }
  return f;
}

std::vector<Panel> forecast_figure_panels(const NamedForecast& named,
                                          const FigureContent& content) {
  const Forecast f = with_bands(named.forecast, content.bands);
  const auto& names = content.variables.empty() ? f.variables : content.variables;
  std::vector<Panel> panels;
  for (const auto& name : names) {
    const auto found = std::find(f.variables.begin(), f.variables.end(), name);
    if (found == f.variables.end())
      throw_usage({"`variables`", shown(name),
                   fmt::format("one of {}", fmt::join(f.variables, ", ")),
                   "Use a variable of the forecast."});
    const auto i = found - f.variables.begin();
    Panel panel = over_time(f.time_name, f.calendar, {.title = named.name, .y_label = name});
    if (f.observed_lower.size() > 0)
      panel.bands.push_back({observed_band_label(f), f.times, column(f.observed_lower, i),
                             column(f.observed_upper, i), Ink::muted});
    panel.bands.push_back({band_label(f), f.times, column(f.lower, i), column(f.upper, i)});
    if (content.history)
      if (auto line = history_line(*content.history, content.trajectory, name, f)) {
        panel.lines.push_back(std::move(*line));
        panel.marks.push_back(start_mark(f));
      }
    panel.lines.push_back({.label = centre_label(f), .x = f.times, .y = column(centre_of(f), i)});
    if (content.truth)
      if (auto line =
              truth_line(*content.truth, content.trajectory, name, f.times.front(), f.times.back()))
        panel.lines.push_back(std::move(*line));
    if (content.lyapunov)
      for (Mark& mark : lyapunov_marks(f.times.front(), f.times.back(), *content.lyapunov))
        panel.marks.push_back(std::move(mark));
    panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace

std::string forecast_figure(const std::vector<NamedForecast>& forecasts,
                            const FigureContent& content) {
  std::vector<Panel> panels;
  for (const NamedForecast& f : forecasts)
    for (Panel& panel : forecast_figure_panels(f, content)) panels.push_back(std::move(panel));
  return draw_svg(panels,
                  {.panel_height = panels.size() == 1 ? 300.0 : 180.0, .title = content.title});
}

std::string tuning_figure(const Tuning& tuning) {
  Panel panel;
  panel.x_label = "settings, by their rank in table.csv";
  panel.y_label = "energy score";
  Line points{.label = "mean over starts", .width = 4, .points = true};
  bool first = true;
  for (std::size_t i = 0; i < tuning.rows.size(); ++i) {
    const TuneRow& row = tuning.rows[i];
    if (!row.fitted) continue;
    const auto x = static_cast<double>(i + 1);
    points.x.push_back(x);
    points.y.push_back(row.energy.value);
    panel.lines.push_back({.label = first ? "± standard error" : "",
                           .x = {x, x},
                           .y = {row.energy.value - row.energy.standard_error,
                                 row.energy.value + row.energy.standard_error}});
    first = false;
  }
  panel.lines.push_back(points);
  panel.lines.push_back({.label = "climatology",
                         .x = {0.5, static_cast<double>(tuning.rows.size()) + 0.5},
                         .y = {tuning.climatology, tuning.climatology},
                         .ink = Ink::muted,
                         .dashed = true});
  return draw_svg({panel},
                  {.title = fmt::format("Forecasts of held-out blocks, {} starts", tuning.starts),
                   .subtitle = fmt::format("horizon {:.4g}; lower is better", tuning.horizon)});
}

}  // namespace odecast
