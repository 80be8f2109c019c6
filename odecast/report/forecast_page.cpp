#include "odecast/report/forecast_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/text.hpp"
#include "odecast/model/status.hpp"
#include "odecast/report/figure.hpp"
#include "odecast/scores/calibration.hpp"
#include "odecast/scores/comparison.hpp"
#include "odecast/scores/lyapunov.hpp"
#include "odecast/scores/scores.hpp"

namespace odecast {
namespace {

using Index = Eigen::Index;

/// Long sample trajectories are shown at their start only.
constexpr std::size_t kMaxSampleValues = 60'000;
constexpr Index kSampleRows = 1000;
constexpr std::size_t kFewSamples = 3;

bool samples_are_long(const Forecast& f) {
  return f.times.size() * f.variables.size() * f.samples.size() > kMaxSampleValues;
}

Index sample_rows(const Forecast& f, const Matrix& sample) {
  return samples_are_long(f) ? std::min(kSampleRows, sample.rows()) : sample.rows();
}

/// The truth at the forecast's times, NaN elsewhere, where all its times are among them; else at
/// its own times within the forecast's span.
struct TruthCurve {
  std::vector<double> times;
  Matrix states;
};

TruthCurve truth_curve(const Forecast& f, const Dataset& truth, const std::string& id) {
  const Comparison c = compare(f, truth, id);
  const Trajectory& t = find_trajectory(truth, id);
  const auto first = std::lower_bound(t.times.begin(), t.times.end(), f.times.front());
  const auto last = std::upper_bound(t.times.begin(), t.times.end(), f.times.back());
  TruthCurve curve;
  const bool has_start = first != last && *first == f.times.front();
  const auto n = static_cast<Index>(f.variables.size());
  std::vector<Index> columns;
  for (const auto& v : f.variables)
    columns.push_back(std::find(truth.variables.begin(), truth.variables.end(), v) -
                      truth.variables.begin());
  if (c.points() + (has_start ? 1 : 0) >= last - first) {
    curve.times = f.times;
    curve.states = Matrix::Constant(f.mean.rows(), n, std::numeric_limits<double>::quiet_NaN());
    for (Index r = 0; r < c.points(); ++r)
      curve.states.row(c.rows[static_cast<std::size_t>(r)]) = c.truth.row(r);
    if (has_start)
      for (Index i = 0; i < n; ++i)
        curve.states(0, i) =
            t.states(first - t.times.begin(), columns[static_cast<std::size_t>(i)]);
    return curve;
  }
  curve.times.assign(first, last);
  curve.states.resize(last - first, n);
  for (Index r = 0; r < curve.states.rows(); ++r)
    for (Index i = 0; i < n; ++i)
      curve.states(r, i) =
          t.states(first - t.times.begin() + r, columns[static_cast<std::size_t>(i)]);
  return curve;
}

/// Rows far apart are no curve: they are dots, in another ink than those before the forecast.
Ink ink_of_truth(const ForecastPageContent& content) {
  return content.drawn ? Ink::second : Ink::truth;
}

/// Whether rows stand closer at the end, as those do that a model kept.
bool thins(const std::vector<double>& times) {
  const std::size_t n = times.size();
  return n > 2 && times[1] - times[0] > 1.5 * (times[n - 1] - times[n - 2]);
}

/// `f` is drawn; its marks, and the one where it begins where something is shown before that.
Figure forecast_panels(const Forecast& f, const std::optional<TruthCurve>& truth,
                       const ForecastPageContent& content, const std::vector<Mark>& marks) {
  std::string before;
  Figure figure{.id = "forecast", .title = "Forecast of every variable", .names = f.variables};
  figure.panel_height = f.variables.size() == 1 ? 320 : 200;
  const std::size_t samples =
      samples_are_long(f) ? std::min(kFewSamples, f.samples.size()) : f.samples.size();
  for (Index i = 0; i < f.mean.cols(); ++i) {
    Panel panel = over_time(f.time_name, f.calendar,
                            {.y_label = f.variables[static_cast<std::size_t>(i)], .marks = marks});
    if (f.observed_lower.size() > 0)
      panel.bands.push_back({observed_band_label(f), f.times, column(f.observed_lower, i),
                             column(f.observed_upper, i), Ink::muted});
    panel.bands.push_back({band_label(f), f.times, column(f.lower, i), column(f.upper, i)});
    if (content.history)
      if (auto line = history_line(*content.history, content.trajectory,
                                   f.variables[static_cast<std::size_t>(i)], f)) {
        before = fmt::format("Dots are what was observed{}. ",
                             thins(line->x) ? "; of rows long ago some are left out" : "");
        panel.lines.push_back(std::move(*line));
        panel.marks.insert(panel.marks.begin(), start_mark(f));
      }
    for (std::size_t k = 0; k < samples; ++k) {
      const Index rows = sample_rows(f, f.samples[k]);
      panel.lines.push_back({.label = "sample trajectories",
                             .x = {f.times.begin(), f.times.begin() + rows},
                             .y = column(f.samples[k].topRows(rows), i),
                             .ink = Ink::muted,
                             .width = 0.8});
    }
    panel.lines.push_back(
        {.label = centre_label(f), .x = f.times, .y = column(centre_of(f), i), .width = 2});
    if (truth)
      panel.lines.push_back({.label = "truth",
                             .x = truth->times,
                             .y = column(truth->states, i),
                             .ink = ink_of_truth(content),
                             .points = content.drawn.has_value()});
    figure.panels.push_back(std::move(panel));
  }
  if (content.drawn)
    figure.csv_note = "There are times between those of the forecast's own file, for the curves";
  if (samples_are_long(f))
    figure.csv_note = fmt::format("The start of {} sample trajectories is held", samples);
  const bool times = content.lyapunov.has_value(), horizon = std::isfinite(f.horizon);
  const std::string rules = times && horizon ? "Lyapunov times and the predictability horizon"
                            : times          ? "Lyapunov times"
                                             : "the predictability horizon";
  figure.caption =
      fmt::format("{}{} and {} of {} trajectories.{}", before,
                  f.bands == Bands::quantiles ? "Median" : "Mean", band_label(f), counted(f.kept),
                  marks.empty() ? "" : " Dotted rules mark " + rules + " since the start.");
  return figure;
}

Attractor forecast_attractor(const Forecast& f, const std::optional<TruthCurve>& truth,
                             const ForecastPageContent& content) {
  Attractor a{.id = "attractor", .title = "In state space", .variables = f.variables};
  for (std::size_t k = 0; k < f.samples.size() && k < kFewSamples; ++k) {
    const Index rows = sample_rows(f, f.samples[k]);
    a.curves.push_back({"sample trajectories",
                        Ink::muted,
                        {f.times.begin(), f.times.begin() + rows},
                        f.samples[k].topRows(rows),
                        0.8});
  }
  a.curves.push_back({centre_label(f), Ink::forecast, f.times, centre_of(f), 2});
  if (truth)
    a.curves.push_back({"truth", ink_of_truth(content), truth->times, truth->states, 1.6,
                        content.drawn.has_value()});
  a.caption = fmt::format(
      "The {} of many trajectories is not one of them: as they part, it moves to the middle.",
      f.bands == Bands::quantiles ? "median" : "mean");
  return a;
}

Figure growth_figure(const Model& model, const Forecast& f, const ForecastPageContent& content,
                     const std::vector<Mark>& marks) {
  Panel panel = over_time(f.time_name, f.calendar,
                          {.y_label = "relative to the truth's sd", .marks = marks, .log_y = true});
  Vector scale = model.climatological_sd().head(model.measured());
  Figure figure{.id = "growth", .title = "Spread and error grow with time"};
  if (content.truth) {
    scale = compare(f, *content.truth, content.trajectory).truth_sd;
    panel.lines.push_back({.label = "error of the mean",
                           .x = f.times,
                           .y = relative_error(f, *content.truth, content.trajectory, scale),
                           .ink = Ink::second});
    figure.caption =
        "Root mean square over the variables, each divided by its standard deviation in the "
        "truth. A forecast that knows itself has the two curves together.";
  } else {
    panel.y_label = "relative to the data's sd";
    figure.title = "Spread grows with time";
    figure.caption =
        "Root mean square over the variables, each divided by its standard deviation in the data.";
  }
  const Forecast& fine = content.drawn ? *content.drawn : f;
  const std::vector<double> spread = relative_spread(fine, scale);
  panel.lines.push_back({.label = "spread (sd)", .x = fine.times, .y = spread});
  const auto first = std::find_if(spread.begin(), spread.end(), [](double s) { return s > 0; });
  if (content.lyapunov && first != spread.end()) {
    // What a small spread would grow to; beyond the size of the attractor nothing grows.
    Line expected{
        .label = "expected growth, exp(λt)", .ink = Ink::muted, .dashed = true, .width = 1.2};
    for (auto k = static_cast<std::size_t>(first - spread.begin()); k < spread.size(); ++k) {
      const double grown =
          *first *
          std::exp(*content.lyapunov *
                   (fine.times[k] - fine.times[static_cast<std::size_t>(first - spread.begin())]));
      if (grown > 1) break;
      expected.x.push_back(fine.times[k]);
      expected.y.push_back(grown);
    }
    if (expected.x.size() > 1) {
      panel.lines.push_back(std::move(expected));
      figure.caption += fmt::format(
          " λ = {:.3g}{}.", *content.lyapunov,
          content.exponent_is_learnt ? ", from a short run of the learnt equations" : "");
    }
  }
  panel.lines.push_back(
      {.label = fmt::format("{:g}: limit of {}", kHorizon,
                            content.truth ? "the valid prediction time" : "predictability"),
       .x = {f.times.front(), f.times.back()},
       .y = {kHorizon, kHorizon},
       .ink = Ink::muted,
       .dashed = true,
       .width = 1.2});
  figure.panels.push_back(std::move(panel));
  return figure;
}

/// A share of blow-ups that is said first.
constexpr double kManyBlowUps = 0.05;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// Of the forecast itself, and of the model that it is made with.
Warning warning_of(const Model& model, const Forecast& f) {
  const std::string_view why = distrust(model.training.status);
  const std::string of_model = fmt::format("of its model fit said: {}", why),
                    reason = spelled(model.training.reason, Spelling::options);
  if (f.status != ForecastStatus::complete)
    return {fmt::format("Do not trust this forecast: {}.", spelled(f.reason, Spelling::options)),
            why.empty() ? "" : fmt::format("And {}. {}.", of_model, reason)};
  if (why.empty()) return {};
  return {fmt::format("Do not trust this forecast; {}.", of_model), reason + "."};
}

Section blow_up_section(const Forecast& f, const std::vector<Mark>& marks) {
  Section section{"blow-ups", "Blow-ups"};
  if (f.discarded == 0) {
    section.parts.push_back(
        Prose{fmt::format("None of the {} trajectories blew up.", counted(f.kept))});
    return section;
  }
  const double first = *std::min_element(f.blow_up_times.begin(), f.blow_up_times.end());
  section.parts.push_back(Prose{fmt::format(
      "{} blew up ({:.1f} % of what was tried), the first at {}. The band is made of "
      "{}.",
      plural(f.discarded, "trajectory", "trajectories"), 100 * f.discard_probability,
      moment_text(f.calendar, first, 3), plural(f.kept, "trajectory", "trajectories"))});
  std::vector<double> gone;
  for (const double alive : f.alive) gone.push_back(100 * (1 - alive));
  Panel panel = over_time(f.time_name, f.calendar, {.y_label = "blown up (%)", .marks = marks});
  panel.lines.push_back(
      {.label = "blown up by that time", .x = f.times, .y = gone, .ink = Ink::second});
  section.parts.push_back(Figure{.id = "blow-up-share",
                                 .title = "Share of all trajectories tried that have blown up",
                                 .panels = {panel},
                                 .panel_height = 160});
  return section;
}

constexpr std::array<Ink, 3> kInks = {Ink::forecast, Ink::second, Ink::third};

Section score_section(const Forecast& f, const ForecastPageContent& content, const Scores& s) {
  Section section{"scores", "Against the truth"};
  Table table{.header = {""}, .rows = {}};
  const std::vector<std::tuple<std::string, const ScoreRow*, int>> rows = {
      {fmt::format("coverage of the {:g} % band", 100 * s.level), &s.coverage, 3},
      {"mean width of the band", &s.width, 3},
      {"CRPS (Gaussian)", &s.crps, 3},
      {"rmse of the mean", &s.rmse, 3},
      {"rmse / sd of the truth", &s.nrmse, 3}};
  for (const auto& v : s.variables) table.header.push_back(v);
  table.header.push_back("all");
  for (const auto& [name, row, digits] : rows) {
    std::vector<Cell> cells = {{name}};
    for (const double x : row->variables) cells.push_back(number_cell(x, digits));
    cells.push_back(number_cell(row->all, digits));
    table.rows.push_back(std::move(cells));
  }
  const auto time = [&](double t) {
    return f.calendar ? time_text(*f.calendar, t) : fmt::format("{:.4g}", t);
  };
  table.caption =
      fmt::format("{} times in ({}, {}]", counted(s.points), time(s.from), time(s.until));
  section.parts.push_back(std::move(table));

  Forecast judged = f;
  if (s.band == ScoredBand::observed && f.observed_lower.size() > 0)
    judged.sd = (f.observed_upper - f.observed_lower) / (2 * band_factor(f.level));
  const Calibration c = calibration(judged, *content.truth, content.trajectory);
  if (std::all_of(c.points.begin(), c.points.end(), [](long n) { return n == 0; })) {
    section.parts.push_back(Prose{"The forecast has no spread: there is nothing to calibrate."});
    return section;
  }
  Panel levels{.x_label = "nominal level", .y_label = "share of times inside the band"};
  levels.y_range = {-0.02, 1.02};
  levels.lines.push_back(
      {.label = "ideal", .x = {0, 1}, .y = {0, 1}, .ink = Ink::muted, .dashed = true});
  const bool few = c.variables.size() <= kInks.size();
  std::vector<double> mean(c.levels.size());
  Index counted_variables = 0;
  for (std::size_t i = 0; i < c.variables.size(); ++i) {
    if (c.points[i] == 0) continue;
    ++counted_variables;
    Line line{.label = few ? c.variables[i] : "each variable",
              .x = c.levels,
              .y = column(c.coverage, static_cast<Index>(i)),
              .ink = few ? kInks[i] : Ink::muted,
              .width = few ? 1.8 : 0.8};
    for (std::size_t l = 0; l < mean.size(); ++l) mean[l] += line.y[l];
    levels.lines.push_back(std::move(line));
  }
  for (double& m : mean) m /= static_cast<double>(counted_variables);
  if (!few)
    levels.lines.push_back(
        {.label = "mean over the variables", .x = c.levels, .y = mean, .width = 2});
  section.parts.push_back(Figure{
      .id = "coverage",
      .title = "Coverage against nominal level",
      .caption = "Above the diagonal the bands are wider than they claim, below it narrower. "
                 "Bands are mean ± c sd. Times of one trajectory depend on each other.",
      .panels = {levels},
      .panel_height = 300});

  Figure pit{
      .id = "pit",
      .title = "Where the truth falls in the forecast (PIT)",
      .caption =
          "Flat for a calibrated forecast; heaped at the ends where bands are too narrow, in the "
          "middle where they are too wide.",
      .panel_height = 160,
      .columns = few ? static_cast<int>(c.variables.size()) : 4};
  const auto bins = c.edges.size() - 1;
  for (std::size_t i = 0; i < c.variables.size(); ++i) {
    if (c.points[i] == 0) continue;
    Panel panel{.title = c.variables[i],
                .x_label = "forecast probability below the truth",
                .y_label = "share of times"};
    panel.bars.push_back({"share of times", c.edges, column(c.pit, static_cast<Index>(i))});
    panel.lines.push_back({.label = "calibrated",
                           .x = {0, 1},
                           .y = {1.0 / static_cast<double>(bins), 1.0 / static_cast<double>(bins)},
                           .ink = Ink::second,
                           .dashed = true});
    pit.panels.push_back(std::move(panel));
    pit.names.push_back(c.variables[i]);
  }
  section.parts.push_back(std::move(pit));
  return section;
}

/// What the held-out starts said of the bands before and after `calibrate`.
Section calibration_section(const CalibrationPart& c) {
  Section section{"calibration", "Calibration on held-out data"};
  section.parts.push_back(Prose{
      fmt::format("The band is {}; q is, at each time after the start, the smallest at which "
                  "enough of {} held-out forecasts hold the truth (conformal prediction). If the "
                  "forecast shown here is like those, it holds the truth at each "
                  "time with probability {:g} % at least; the times of one forecast err together.",
                  c.bands == Bands::quantiles
                      ? "the median less and plus q times (its distance from the quantiles of the "
                        "draws + a thousandth of the variable's size)"
                      : "mean ± q (sd + a thousandth of the variable's size)",
                  counted(c.starts), 100 * c.level)});
  if (c.before.size() != c.leads.size()) return section;
  Panel panel{.x_label = "time after the start", .y_label = "share of the held-out truth inside"};
  panel.lines.push_back({.label = "asked for",
                         .x = {0, c.leads.back()},
                         .y = {c.level, c.level},
                         .ink = Ink::muted,
                         .dashed = true});
  panel.lines.push_back(
      {.label = "band of the draws", .x = c.leads, .y = c.before, .ink = Ink::second});
  if (!c.after.empty())
    panel.lines.push_back(
        {.label = "calibrated on the other half of the starts", .x = c.leads, .y = c.after});
  double least = c.level;
  for (const auto* shares : {&c.before, &c.after})
    for (const double share : *shares) least = std::min(least, share);
  panel.y_range = {std::max(-0.02, least - 0.05), 1.02};
  section.parts.push_back(Figure{.id = "calibration-by-lead",
                                 .title = "Coverage before and after calibration",
                                 .caption = "Over all variables.",
                                 .panels = {panel}});
  return section;
}

}  // namespace

Page forecast_page(const Model& model, const Forecast& f, const ForecastPageContent& given) {
  ForecastPageContent content = given;
  if (!content.lyapunov) {
    content.lyapunov = largest_exponent(model);
    content.exponent_is_learnt = true;
  }
  std::optional<TruthCurve> truth;
  std::optional<Scores> scores;
  if (content.truth) {
    scores =
        score(f, *content.truth, {.lyapunov = content.lyapunov, .trajectory = content.trajectory});
    truth = truth_curve(f, *content.truth, content.trajectory);
  }
  std::vector<Mark> marks;
  if (content.lyapunov) marks = lyapunov_marks(f.times.front(), f.times.back(), *content.lyapunov);
  if (std::isfinite(f.horizon))
    marks.insert(marks.begin(), {f.times.front() + f.horizon, "predictability horizon"});

  if (!content.history && f.continues) content.history = history_of(model);
  const Forecast& curves = content.drawn ? *content.drawn : f;

  Page page;
  page.title = content.title.empty() ? "Forecast of " + joined(f.variables) : content.title;
  page.subtitle = fmt::format(
      "From {} to {}, learnt from {} in {}.", moment_text(f.calendar, f.times.front()),
      f.calendar ? time_text(*f.calendar, f.times.back()) : fmt::format("{:.6g}", f.times.back()),
      plural(model.training.rows, "row", "rows"),
      plural(model.training.trajectories, "trajectory", "trajectories"));
  Section summary{"summary", "Summary"};
  page.warning = warning_of(model, f);
  if (f.discard_probability > kManyBlowUps)
    summary.parts.push_back(Notice{fmt::format(
        "{} of the trajectories that were tried blew up: late bands rest on the others.",
        percent(f.discard_probability))});
  if (f.distance && f.status == ForecastStatus::complete && is_away(*f.distance))
    summary.parts.push_back(Notice{"Away from the data: " + away_in_words(*f.distance) + "."});
  if (content.truth)
    if (const double share = share_of_fit(model, *content.truth); share > 0)
      summary.parts.push_back(
          Notice{"Of the truth: " + fit_in_words(share, content.truth->source) + "."});
  const std::string units = f.calendar ? std::string(unit_words(f.calendar->unit)) : "time units";
  Tiles tiles;
  if (scores) {
    tiles.tiles.push_back({percent(scores->coverage.all),
                           fmt::format("truth inside the {:g} % band", 100 * f.level),
                           scores->measured ? "of an observation: the rows look measured"
                                            : "all variables and times"});
    const bool throughout = scores->vpt_time >= scores->until - scores->from;
    tiles.tiles.push_back(
        {scores->vpt_lyapunov_times ? fmt::format("{:.2f}", *scores->vpt_lyapunov_times)
                                    : fmt::format("{:.3g}", scores->vpt_time),
         scores->vpt_lyapunov_times ? "Lyapunov times valid" : units + " valid",
         throughout                  ? "the whole forecast: error of the mean below 0.4 sd"
         : scores->vpt_ends_by_noise ? "until the noise of one row passes 0.4 sd"
                                     : "until the error of the mean passes 0.4 sd"});
  }
  tiles.tiles.push_back(
      {counted(f.kept), "trajectories in the band",
       f.discarded > 0 ? fmt::format("{} blew up", counted(f.discarded)) : "none blew up"});
  tiles.tiles.push_back(
      {fmt::format("{:.6g}", f.times.back() - f.times.front()), units + " ahead",
       content.lyapunov
           ? fmt::format("{:.1f} Lyapunov times",
                         (f.times.back() - f.times.front()) * *content.lyapunov)
           : plural(static_cast<long>(f.times.size()) - 1, "output time", "output times")});
  if (!std::isnan(f.horizon))
    tiles.tiles.push_back(
        {std::isfinite(f.horizon)
             ? duration_text(f.calendar, f.horizon, 3)
             : "> " + duration_text(f.calendar, f.times.back() - f.times.front(), 3),
         "predictability horizon",
         fmt::format("until the spread passes {:g} of the data's sd", kHorizon)});
  summary.parts.push_back(std::move(tiles));
  page.sections.push_back(std::move(summary));

  Section shown{"forecasts", "Forecast"};
  shown.parts.push_back(forecast_panels(curves, truth, content, marks));
  if (f.variables.size() >= 2) shown.parts.push_back(forecast_attractor(curves, truth, content));
  shown.parts.push_back(growth_figure(model, f, content, marks));
  page.sections.push_back(std::move(shown));
  if (scores) page.sections.push_back(score_section(f, content, *scores));
  if (f.calibrated && model.calibration)
    page.sections.push_back(calibration_section(*model.calibration));
  page.sections.push_back(blow_up_section(f, marks));
  page.sections.push_back(equation_section(model));
  page.sections.push_back({"observed", "What was observed", {observed_facts(model)}});
  page.sections.push_back(origin_section(content.origin));
  return page;
}

}  // namespace odecast
