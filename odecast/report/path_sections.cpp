#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "odecast/report/detail/fit_sections.hpp"
#include "odecast/report/figure.hpp"
#include "odecast/report/page_parts.hpp"

namespace odecast {
namespace {

constexpr long kMaxPathRows = 40'000;
constexpr int kFewestLags = 20, kMostLags = 100;

std::size_t place(Eigen::Index k) { return static_cast<std::size_t>(k); }

long shown_rows(const std::vector<Trajectory>& runs) {
  long rows = 0;
  for (std::size_t k = 0; k < std::min(kShownTrajectories, runs.size()); ++k)
    rows += runs[k].rows();
  return rows;
}

/// The rows of a trajectory that a run goes along: where some were held out, the first ones.
Trajectory along(const Trajectory& observed, const Trajectory& run) {
  assert(observed.rows() >= run.rows());
  return {observed.id, run.times, observed.states.topRows(run.rows()),
          observed.inputs.topRows(observed.inputs.cols() > 0 ? run.rows() : 0)};
}

/// A run of few rows with points between them: cubics with the slopes of the fitted equations.
Trajectory drawn(const Trajectory& run, const Trajectory& observed, const Model& model) {
  const int parts = static_cast<int>(std::clamp(800L / std::max(1, run.rows()), 1L, 10L));
  if (parts == 1 || model.trajectory->misfit) return run;  // its equations are not the model's
  const int n = model.dimension(), measured = model.inputs.measured();
  Model best = model;
  best.polynomial()->sets.resize(1);
  best.polynomial()->sets[0].weight = 1;
  const VectorField field = make_posterior(best)->mean_field();
  const auto slope = [&](Eigen::Index at, Eigen::Index inputs_at) {
    Vector arguments(n + model.inputs.size()), f(n);
    arguments.head(n) = run.states.row(at).transpose();
    if (measured > 0) arguments.segment(n, measured) = observed.inputs.row(inputs_at).transpose();
    if (model.inputs.time) arguments[arguments.size() - 1] = run.times[place(at)];
    const Vector in_model = model.to_model(arguments);
    field(0, in_model.data(), f.data());
    return Vector(model.rate().cwiseProduct(f));
  };
  Trajectory fine{run.id, {}, Matrix((run.rows() - 1) * parts + 1, n)};
  for (Eigen::Index k = 0; k + 1 < run.rows(); ++k) {
    const double h = run.times[place(k + 1)] - run.times[place(k)];
    const Vector a = run.states.row(k).transpose(), b = run.states.row(k + 1).transpose(),
                 fa = slope(k, k), fb = slope(k + 1, model.inputs.held ? k : k + 1);
    for (int part = 0; part < parts; ++part) {
      const double x = static_cast<double>(part) / parts;
      fine.states.row(k * parts + part) =
          ((1 + 2 * x) * (1 - x) * (1 - x) * a + x * x * (3 - 2 * x) * b +
           h * x * (1 - x) * ((1 - x) * fa - x * fb))
              .transpose();
      fine.times.push_back(run.times[place(k)] + x * h);
    }
  }
  fine.states.row(fine.states.rows() - 1) = run.states.row(run.rows() - 1);
  fine.times.push_back(run.times.back());
  return fine;
}

double root_mean_square(const std::vector<Matrix>& residuals, Eigen::Index variable) {
  double sum = 0, count = 0;
  for (const Matrix& r : residuals)
    for (Eigen::Index k = 0; k < r.rows(); ++k)
      if (std::isfinite(r(k, variable))) sum += r(k, variable) * r(k, variable), count += 1;
  return std::sqrt(sum / count);
}

/// What the residuals say, in words.
std::string verdict(const Model& model, bool noise_given) {
  const TrajectoryPart& t = *model.trajectory;
  return fmt::format(
      "Residuals of {} are {:.2f} times {}, and neighbours are correlated by {:.2f}: {}.",
      t.misfit ? "the nearest solution, without random pushes," : "the path", t.noise_ratio,
      noise_given ? "the noise that was given"
                  : "the noise that a smoother finds without any equation",
      t.autocorrelation,
      t.misfit              ? "they hold motion that the equations do not explain"
      : t.noise_ratio > 1.5 ? "they hold more than noise"
                            : "the equations explain the motion down to the noise");
}

Figure residuals_in_time(const Dataset& data, const Fit& fit, const std::vector<Matrix>& all) {
  const auto& names = data.variables;
  const std::vector<Trajectory>& runs = fit.summary.path->runs;
  const long stride = std::max(1L, (shown_rows(runs) + kMaxPathRows - 1) / kMaxPathRows);
  Figure figure{
      .id = "residuals-in-time",
      .title = fit.model.trajectory->misfit ? "Observed less the nearest solution"
                                            : "Observed less path",
      .caption = "White noise stays inside the band for 95 rows of 100, and has no shape.",
      .names = names,
      .panel_height = names.size() == 1 ? 240.0 : 140.0};
  if (stride > 1)
    figure.csv_note = fmt::format("The page holds every {}th row of the data.", stride);
  for (std::size_t v = 0; v < names.size(); ++v) {
    const auto i = static_cast<Eigen::Index>(v);
    Panel panel = over_time(data.time_name, data.calendar, {.y_label = names[v]});
    double first = std::numeric_limits<double>::infinity(), last = -first;
    for (std::size_t k = 0; k < std::min(kShownTrajectories, runs.size()); ++k) {
      const Trajectory left = every({"", runs[k].times, all[k]}, stride);
      first = std::min(first, left.times.front());
      last = std::max(last, left.times.back());
      panel.lines.push_back({.label = "residual",
                             .x = left.times,
                             .y = column(left.states, i),
                             .ink = Ink::truth,
                             .width = 1.2,
                             .points = true});
    }
    const double two = 2 * fit.model.noise[i];
    panel.bands.push_back(
        {"± 2 sd of the noise", {first, last}, {-two, -two}, {two, two}, Ink::forecast});
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

/// Far enough for the motion to show, which moves on the scale of the model's unit of time.
int shown_lags(const Model& model, const std::vector<Matrix>& residuals) {
  Eigen::Index longest = 0;
  for (const Matrix& r : residuals) longest = std::max(longest, r.rows());
  const int motion =
      static_cast<int>(std::min(1e6, std::ceil(2 * model.scaling.time / model.step)));
  return std::clamp(std::clamp(motion, kFewestLags, kMostLags), 1,
                    std::max(1, static_cast<int>(longest / 4)));
}

Figure memory_figure(const Dataset& data, const Model& model, const std::vector<Matrix>& all) {
  const auto& names = data.variables;
  Figure figure{.id = "residual-memory",
                .title = "Memory of the residuals",
                .caption =
                    "Correlation of residuals so many rows apart. White noise stays between "
                    "the dashed lines, ±2/√n, at 95 of 100 lags; a motion that the equations "
                    "lack makes neighbours alike.",
                .names = names,
                .panel_height = names.size() == 1 ? 240.0 : 150.0,
                .columns = static_cast<int>(std::min<std::size_t>(3, names.size()))};
  const int lags = shown_lags(model, all);
  std::vector<double> edges = {0.5};
  for (int lag = 1; lag <= lags; ++lag) edges.push_back(lag + 0.5);
  for (std::size_t v = 0; v < names.size(); ++v) {
    const Correlogram c = correlogram(all, static_cast<Eigen::Index>(v), lags);
    const double edge = 2 / std::sqrt(c.count);
    Panel panel{
        .title = names[v], .x_label = "lag (rows)", .y_label = "correlation", .whole_x = true};
    panel.bars.push_back({"autocorrelation", edges, c.correlations});
    for (const double limit : {edge, -edge})
      panel.lines.push_back({.label = "±2/√n",
                             .x = {edges.front(), edges.back()},
                             .y = {limit, limit},
                             .ink = Ink::second,
                             .dashed = true,
                             .width = 1.2});
    double least = -0.3, most = 0.5;  // what is small should look small
    for (const double r : c.correlations) least = std::min(least, r), most = std::max(most, r);
    panel.y_range = {std::min(least, -edge) - 0.05, std::max(most, edge) + 0.05};
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace

Trajectory every(const Trajectory& t, long stride) {
  if (stride <= 1) return t;
  Trajectory thin{t.id, {}, Matrix((t.rows() + stride - 1) / stride, t.states.cols())};
  for (long r = 0; r < t.rows(); r += stride) {
    thin.states.row(static_cast<Eigen::Index>(thin.times.size())) = t.states.row(r);
    thin.times.push_back(t.times[static_cast<std::size_t>(r)]);
  }
  return thin;
}

std::vector<Matrix> path_residuals(const Dataset& data, const PathSummary& path) {
  std::vector<Matrix> residuals;
  for (std::size_t k = 0; k < path.runs.size(); ++k) {
    residuals.push_back(along(data.trajectories[k], path.runs[k]).states - path.runs[k].states);
    residuals.back() = residuals.back().unaryExpr(
        [](double r) { return std::isfinite(r) ? r : std::numeric_limits<double>::quiet_NaN(); });
  }
  return residuals;
}

Correlogram correlogram(const std::vector<Matrix>& residuals, Eigen::Index variable, int lags) {
  Correlogram c{std::vector<double>(static_cast<std::size_t>(lags)), 0};
  double squares = 0;
  for (const Matrix& r : residuals)
    for (Eigen::Index k = 0; k < r.rows(); ++k) {
      const double now = r(k, variable);
      if (!std::isfinite(now)) continue;
      squares += now * now;
      c.count += 1;
      for (Eigen::Index lag = 1; lag <= std::min<Eigen::Index>(lags, k); ++lag)
        if (const double then = r(k - lag, variable); std::isfinite(then))
          c.correlations[place(lag - 1)] += now * then;
    }
  for (double& product : c.correlations) product = squares > 0 ? product / squares : 0;
  return c;
}

Section path_section(const Dataset& data, const Fit& fit) {
  const auto& names = data.variables;
  const std::vector<Trajectory>& runs = fit.summary.path->runs;
  const std::size_t shown = std::min(kShownTrajectories, runs.size());
  const bool misfit = fit.model.trajectory->misfit;
  Section section{"path", "The path through the data"};
  if (runs.size() > shown)
    section.parts.push_back(
        Prose{fmt::format("The first {} of {} trajectories are shown; numbers are of all.", shown,
                          counted(static_cast<long>(runs.size())))});
  const long stride = std::max(1L, (shown_rows(runs) + kMaxPathRows - 1) / kMaxPathRows);
  Figure figure{
      .id = "path-in-time",
      .title = "Data, and the path of the learnt equations",
      .caption = misfit ? "No solution of such equations goes through the data. With random "
                          "pushes the path follows them, in pieces."
                        : "One solution of the learnt equations along each trajectory: the best "
                          "set of terms, from its own start.",
      .names = names,
      .panel_height = names.size() == 1 ? 320.0 : 180.0};
  if (stride > 1)
    figure.csv_note = fmt::format("The page holds every {}th row of the data.", stride);
  Attractor attractor{.id = "attractor", .title = "In state space", .variables = names};
  std::vector<Trajectory> seen, paths, pushed;
  for (std::size_t k = 0; k < shown; ++k) {
    const Trajectory observed = along(data.trajectories[k], runs[k]);
    seen.push_back(every(observed, stride));
    paths.push_back(stride > 1 ? every(runs[k], stride) : drawn(runs[k], observed, fit.model));
    if (misfit) pushed.push_back(every(fit.summary.path->forced_runs[k], stride));
    attractor.curves.push_back(
        {"observed", Ink::muted, seen.back().times, seen.back().states, 0.8, true});
  }
  const std::string label = misfit ? "nearest solution" : "path of the learnt equations";
  for (const Trajectory& path : paths)
    attractor.curves.push_back(
        {label, misfit ? Ink::second : Ink::forecast, path.times, path.states, 1.6});
  for (std::size_t v = 0; v < names.size(); ++v) {
    const auto i = static_cast<Eigen::Index>(v);
    Panel panel = over_time(data.time_name, data.calendar, {.y_label = names[v]});
    for (const Trajectory& t : seen)
      panel.lines.push_back({.label = "observed",
                             .x = t.times,
                             .y = column(t.states, i),
                             .ink = Ink::truth,
                             .width = 1.4,
                             .points = true});
    for (const Trajectory& t : paths)
      panel.lines.push_back({.label = label,
                             .x = t.times,
                             .y = column(t.states, i),
                             .ink = misfit ? Ink::second : Ink::forecast,
                             .width = 1.8});
    for (const Trajectory& t : pushed)
      panel.lines.push_back(
          {.label = "with random pushes", .x = t.times, .y = column(t.states, i), .width = 1.4});
    figure.panels.push_back(std::move(panel));
  }
  section.parts.push_back(std::move(figure));
  if (names.size() >= 2) section.parts.push_back(std::move(attractor));
  return section;
}

Section residual_section(const Dataset& data, const Fit& fit) {
  const auto& names = data.variables;
  const PathSummary& path = *fit.summary.path;
  const std::vector<Matrix> all = path_residuals(data, path);
  Section section{"residuals", "What is left"};
  section.parts.push_back(Prose{verdict(fit.model, path.noise_given)});
  Table table{
      .caption = "Standard deviations, in the units of the data",
      .header = {"", "the data", "residuals", path.noise_given ? "noise given" : "noise found",
                 "noise by a smoother", "correlation of neighbours"},
      .rows = {}};
  for (std::size_t v = 0; v < names.size(); ++v) {
    const auto i = static_cast<Eigen::Index>(v);
    table.rows.push_back({{names[v]},
                          number_cell(fit.model.sd[i]),
                          number_cell(root_mean_square(all, i)),
                          number_cell(fit.model.noise[i]),
                          number_cell(path.smoothed_noise[i]),
                          number_cell(correlogram(all, i, 1).correlations[0], 2)});
  }
  section.parts.push_back(std::move(table));
  section.parts.push_back(residuals_in_time(data, fit, all));
  section.parts.push_back(memory_figure(data, fit.model, all));
  return section;
}

Section forcing_section(const Model& model) {
  const Forcing& forcing = model.trajectory->forcing;
  const double interval = forcing.interval * model.scaling.time;
  const Vector sd = model.scaling.scale.cwiseProduct(forcing.sd), data = model.climatological_sd();
  Section section{"forcing", "Random forcing"};
  section.parts.push_back(Prose{fmt::format(
      "The equations miss part of the motion. Random pushes stand for it: in every {:.3g} of time "
      "the state moves by this much beside what the equations say. Forecasts draw them, so their "
      "bands are as wide as what is not explained.",
      interval)});
  Table table{.caption = "",
              .header = {"", fmt::format("sd of a push, every {:.3g}", interval),
                         "of the data's sd", "over the noise", "in words"},
              .rows = {}};
  for (Eigen::Index i = 0; i < sd.size(); ++i) {
    const double share = data[i] > 0 ? sd[i] / data[i] : std::numeric_limits<double>::quiet_NaN();
    const char* words = !(share >= 0)  ? "it does not move"
                        : share < 0.01 ? "slight: less than a hundredth of its spread"
                        : share < 0.1  ? "some: less than a tenth of its spread"
                                       : "large: more than a tenth of its spread";
    table.rows.push_back(
        {{model.variables[place(i)]},
         number_cell(sd[i]),
         {std::isnan(share) ? "–" : fmt::format("{:.2g} %", 100 * share), CellKind::number},
         number_cell(sd[i] / model.noise[i]),
         {words}});
  }
  section.parts.push_back(std::move(table));
  return section;
}

}  // namespace odecast
