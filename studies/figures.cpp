#include "studies/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace odecast {
namespace {

std::vector<double> column(const Matrix& m, Eigen::Index i) {
  std::vector<double> values;
  for (Eigen::Index t = 0; t < m.rows(); ++t) values.push_back(m(t, i));
  return values;
}

/// An orthographic view of a run in space, coloured along time, with the three axes from the
/// origin.
Panel view_in_space(const Trajectory& run) {
  constexpr double turn = 0.7, tilt = 0.42;  // about z, then towards the reader
  const auto project = [](double x, double y, double z) {
    const double right = x * std::cos(turn) - y * std::sin(turn);
    const double back = x * std::sin(turn) + y * std::cos(turn);
    return std::pair{right, z * std::cos(tilt) + back * std::sin(tilt)};
  };
  Panel panel{.x_label = "0.76 x − 0.64 y", .y_label = "0.91 z + 0.41 (0.64 x + 0.76 y)"};
  const double reach = run.states.cwiseAbs().maxCoeff();
  for (int axis = 0; axis < 3; ++axis) {
    const auto [x, y] =
        project(axis == 0 ? reach : 0, axis == 1 ? reach : 0, axis == 2 ? reach : 0);
    panel.lines.push_back({.label = axis == 0 ? "axes of x, y, z from the origin" : "",
                           .x = {0, x},
                           .y = {0, y},
                           .ink = Ink::muted,
                           .width = 1});
  }
  constexpr int parts = 60;
  const int rows = run.rows();
  for (int part = 0; part < parts; ++part) {
    Line line{.width = 0.9, .tone = part / (parts - 1.0)};
    for (int k = part * (rows - 1) / parts; k <= (part + 1) * (rows - 1) / parts; ++k) {
      const auto [x, y] = project(run.states(k, 0), run.states(k, 1), run.states(k, 2));
      line.x.push_back(x);
      line.y.push_back(y);
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

std::vector<Panel> time_series(const Trajectory& run, const std::vector<std::string>& names) {
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < names.size(); ++i)
    panels.push_back({.x_label = i + 1 == names.size() ? "time t" : "",
                      .y_label = names[i],
                      .lines = {{.x = run.times,
                                 .y = column(run.states, static_cast<Eigen::Index>(i)),
                                 .ink = Ink::truth,
                                 .width = 1.1}}});
  return panels;
}

/// The band of one cell over the truth, up to `until`.
Panel band_panel(const Setting& s, const UnitResults& results, Reading reading,
                 const StudyCell& cell, const std::string& length, double until,
                 const std::string& title) {
  const auto& curves = results.at(cell_key(reading, cell, 0)).curves;
  const bool is_short = length == "short";
  Panel panel{.title = title, .x_label = "time t", .y_label = "x", .y_range = {{-6.0, 6.0}}};
  const TestRun& run = reading == Reading::released
                           ? (is_short ? s.released_short_run : s.released_long_run)
                           : (is_short ? s.short_run : s.long_run);
  Line truth{.label = "truth", .ink = Ink::truth, .width = 1.2};
  for (std::size_t k = 0; k < run.times.size() && run.times[k] <= until; ++k) {
    truth.x.push_back(run.times[k]);
    truth.y.push_back(run.truth(static_cast<Eigen::Index>(k), 0));
  }
  const auto found = curves.find(length + "_times");
  if (found != curves.end()) {
    const auto size = static_cast<std::size_t>(
        std::upper_bound(found->second.begin(), found->second.end(), until * (1 + 1e-12)) -
        found->second.begin());
    const auto head = [&](const char* name) {
      const auto& all = curves.at(length + name);
      return std::vector<double>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
    };
    panel.bands.push_back(
        {"95 % band (mean ± 1.96 sd)", head("_times"), head("_lower"), head("_upper")});
    panel.lines.push_back({.label = "forecast mean", .x = head("_times"), .y = head("_mean")});
  }
  panel.lines.push_back(std::move(truth));
  return panel;
}

}  // namespace

std::vector<StudyFigure> study_figures(const Setting& s, const UnitResults& results) {
  std::vector<StudyFigure> figures;
  const auto add = [&](int number, const char* what, Reading reading, const std::string& caption,
                       const std::vector<Panel>& panels, FigureOptions options) {
    options.title = fmt::format("Figure {}: {}", number, caption);
    options.subtitle = fmt::format("reading: {}", reading_name(reading));
    figures.push_back({number, fmt::format("figure{}-{}-{}", number, what, reading_name(reading)),
                       reading, caption, panels, options});
  };
  const auto h = [](int per_unit) { return fmt::format("h = 1/{}", per_unit); };
  for (const Reading r : kReadings) {
    const Trajectory example = example_run(s, r);
    add(1, "attractor", r,
        "the Sprott B attractor, coloured from the start (dark) to the end (light)",
        {view_in_space(example)}, {.panel_height = 480});
    add(2, "series", r, "the same run as time series", time_series(example, s.system.variables),
        {.panel_height = 130});

    Trajectory training = training_data(s, 500).trajectories[0];
    if (r == Reading::released) {  // row 0 holds the last state of the run
      const DerivativeRows rows = released_rows(s, 500);
      training.times.clear();
      for (int k = 0; k < 499; ++k) training.times.push_back(100.0 * k / 4999);
      training.states = rows.states.bottomRows(499);
    }
    add(3, "training", r, "the training data, h = 1/500", time_series(training, s.system.variables),
        {.panel_height = 130});

    std::vector<Panel> panels;
    for (const int n : {250, 500, 1000})
      panels.push_back(band_panel(s, results, r, {n, 0.25}, "short", 10, h(n)));
    add(4, "bands", r, "forecasts with r = 0.25", panels, {.panel_height = 170});
    add(5, "long", r, "the forecast of h = 1/500 up to t = 100",
        {band_panel(s, results, r, {500, 0.25}, "long", 100, "")}, {.panel_height = 300});
    add(6, "jagged", r, "a jagged long forecast, h = 1/1000",
        {band_panel(s, results, r, {1000, 0.25}, "long", 100, "")}, {.panel_height = 300});
    panels.clear();
    for (const int n : {50, 100, 1000, 5000})
      panels.push_back(band_panel(s, results, r, {n, 0.25}, "short", 10, h(n)));
    add(7, "steps", r, "h too large and too small", panels, {.panel_height = 150});
    std::vector<Panel> wide, zoom;
    double largest = 6;
    for (const double rate : {0.5, 0.25, 0.05}) {
      Panel panel =
          band_panel(s, results, r, {500, rate}, "long", 100, fmt::format("r = {:g}", rate));
      if (wide.empty() && !panel.bands.empty())  // all three as wide as the first
        for (const double v : panel.bands[0].upper)
          if (std::isfinite(v)) largest = std::clamp(v, largest, 60.0);
      zoom.push_back(panel);
      zoom.back().y_range = {{-6.0, 6.0}};
      panel.y_range = {{-largest, largest}};
      wide.push_back(std::move(panel));
    }
    add(8, "rates-wide", r, "dropout rates, wide view", wide, {.panel_height = 170});
    add(9, "rates-zoom", r, "dropout rates, zoom", zoom, {.panel_height = 170});
  }
  std::stable_sort(figures.begin(), figures.end(),
                   [](const StudyFigure& a, const StudyFigure& b) { return a.number < b.number; });
  return figures;
}

}  // namespace odecast
