#include "odecast/report/filter_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/functions.hpp"
#include "odecast/core/times.hpp"
#include "odecast/report/figure.hpp"

namespace odecast {
namespace {

using Index = Eigen::Index;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> times_of(const FilterRecord& record) {
  std::vector<double> times;
  for (const FilterRow& row : record.rows.kept()) times.push_back(row.time);
  return times;
}

std::string thinned_note(const FilterRecord& record) {
  const long stride = record.rows.stride();
  return stride == 1 ? "" : fmt::format("every {}th row", stride);
}

/// Where a variable is a column of its own, which.
std::optional<Index> column_of(const Observing& observing, Index variable) {
  for (Index j = 0; j < observing.H.rows(); ++j)
    if (observing.H(j, variable) == 1 && (observing.H.row(j).array() != 0).count() == 1) return j;
  return std::nullopt;
}

/// Rows from which on the filter has lost the system.
std::vector<Mark> lost_marks(const FilterRecord& record) {
  constexpr std::size_t kMost = 5;
  std::vector<Mark> marks;
  for (const FilterRow& row : record.rows.kept())
    if (row.status == FilterStatus::lost && marks.size() < kMost)
      marks.push_back({row.time, marks.empty() ? "lost" : ""});
  return marks;
}

Figure state_figure(const Filter& filter, const FilterPageContent& content) {
  const Model& model = filter.model();
  const std::vector<double> times = times_of(content.record);
  Figure figure{.id = "states",
                .title = "State and what was observed",
                .caption = "The band is that of the state, given all rows up to each time.",
                .csv_note = thinned_note(content.record)};
  const auto& rows = content.record.rows.kept();
  for (Index i = 0; i < model.dimension(); ++i) {
    Panel panel = over_time(model.time_name, model.calendar,
                            {.y_label = model.variables[static_cast<std::size_t>(i)],
                             .marks = lost_marks(content.record)});
    Band band{.label = fmt::format("{:g} % band", 100 * filter.options().level), .x = times};
    Line mean{.label = "state", .x = times};
    for (const FilterRow& row : rows) {
      band.lower.push_back(row.state.lower[i]);
      band.upper.push_back(row.state.upper[i]);
      mean.y.push_back(row.state.mean[i]);
    }
    panel.bands.push_back(std::move(band));
    if (const auto j = column_of(filter.observing(), i)) {
      Line used{.label = "observed", .x = times, .ink = Ink::muted, .points = true},
          gated{.label = "not used", .x = times, .ink = Ink::second, .points = true};
      bool any = false;
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const double y = content.record.observed.kept()[k][*j];
        const bool out = rows[k].status == FilterStatus::gated;
        used.y.push_back(out ? kNaN : y);
        gated.y.push_back(out ? y : kNaN);
        any = any || out;
      }
      panel.lines.push_back(std::move(used));
      if (any) panel.lines.push_back(std::move(gated));
    }
    if (content.truth && i < content.truth->trajectories[0].states.cols())
      panel.lines.push_back({.label = "truth",
                             .x = content.truth->trajectories[0].times,
                             .y = column(content.truth->trajectories[0].states, i),
                             .ink = Ink::truth,
                             .width = 1.2});
    panel.lines.push_back(std::move(mean));
    figure.panels.push_back(std::move(panel));
    figure.names.push_back(model.variables[static_cast<std::size_t>(i)]);
  }
  return figure;
}

/// χ² over its number of values, averaged over seven rows as the filter does.
Figure surprise_figure(const Filter& filter, const FilterPageContent& content) {
  const Model& model = filter.model();
  const auto& rows = content.record.rows.kept();
  Panel panel =
      over_time(model.time_name, model.calendar,
                {.y_label = "surprise", .marks = lost_marks(content.record), .log_y = true});
  Line each{.label = "each row", .ink = Ink::muted, .points = true},
      averaged{.label = "average over some seven rows"};
  double average = 1;
  for (const FilterRow& row : rows) {
    if (row.used == 0 && row.status != FilterStatus::gated) continue;
    each.x.push_back(row.time);
    each.y.push_back(row.surprise);
    if (row.used > 0) average += (std::min(row.surprise, 100.0) - average) / 7;
    averaged.x.push_back(row.time);
    averaged.y.push_back(average);
  }
  const std::vector<double> ends = {rows.front().time, rows.back().time};
  panel.lines = {std::move(each), std::move(averaged),
                 Line{.label = "1: noise and model are right",
                      .x = ends,
                      .y = {1, 1},
                      .ink = Ink::second,
                      .dashed = true,
                      .width = 1.2}};
  return {.id = "surprise",
          .title = "How far rows are from what was foretold",
          .caption = "χ² of a row's distance from its forecast over its number of values.",
          .panels = {std::move(panel)},
          .csv_note = thinned_note(content.record)};
}

/// Those that moved most, in their own last sd.
Section coefficient_section(const Filter& filter, const FilterPageContent& content) {
  constexpr std::size_t kMost = 12;
  const auto& all = content.record.coefficients.kept();
  const std::vector<std::string> names = coefficient_names(filter);
  const std::vector<double> times = times_of(content.record);
  std::vector<std::pair<double, Index>> moved;
  for (Index c = 0; c < all.front().mean.size(); ++c) {
    double lo = all.front().mean[c], hi = lo;
    for (const LearntCoefficients& one : all) {
      lo = std::min(lo, one.mean[c]);
      hi = std::max(hi, one.mean[c]);
    }
    moved.emplace_back((hi - lo) / std::max(all.back().sd[c], 1e-300), c);
  }
  std::stable_sort(moved.begin(), moved.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (moved.size() > kMost) moved.resize(kMost);
  Figure figure{.id = "coefficients",
                .title = "Coefficients over time",
                .caption =
                    "Mean and 95 % band of each; dashed: where the model had it. Those that "
                    "moved most come first.",
                .names = {},
                .switch_label = "Coefficient",
                .csv_note = thinned_note(content.record),
                .panel_height = 150,
                .columns = 2};
  for (const auto& [_, c] : moved) {
    const std::string& name = names[static_cast<std::size_t>(c)];
    Panel panel = over_time(filter.model().time_name, filter.model().calendar,
                            {.title = name, .y_label = ""});
    Band band{.label = "95 % band", .x = times};
    Line mean{.label = "mean", .x = times};
    for (const LearntCoefficients& one : all) {
      mean.y.push_back(one.mean[c]);
      band.lower.push_back(one.mean[c] - 1.96 * one.sd[c]);
      band.upper.push_back(one.mean[c] + 1.96 * one.sd[c]);
    }
    panel.bands.push_back(std::move(band));
    panel.lines.push_back(std::move(mean));
    panel.lines.push_back({.label = "at the start",
                           .x = {times.front(), times.back()},
                           .y = {all.front().mean[c], all.front().mean[c]},
                           .ink = Ink::second,
                           .dashed = true,
                           .width = 1.2});
    figure.panels.push_back(std::move(panel));
    figure.names.push_back(name);
  }
  return {"learnt", "What was learnt", {std::move(figure)}};
}

Figure rank_figure(const FilterSummary& s) {
  Bars bars{.label = "share of values", .edges = {}, .heights = {}};
  for (std::size_t k = 0; k <= s.ranks.size(); ++k)
    bars.edges.push_back(static_cast<double>(k) / static_cast<double>(s.ranks.size()));
  for (const long n : s.ranks)
    bars.heights.push_back(static_cast<double>(n) / static_cast<double>(std::max(1L, s.forecasts)));
  Panel panel{.x_label = "forecast probability below the value", .y_label = "share of values"};
  panel.bars.push_back(std::move(bars));
  panel.lines.push_back(
      {.label = "calibrated",
       .x = {0, 1},
       .y = {1.0 / static_cast<double>(s.ranks.size()), 1.0 / static_cast<double>(s.ranks.size())},
       .ink = Ink::second,
       .dashed = true});
  return {.id = "ranks",
          .title = "Where values fall in what was foretold of them",
          .caption =
              "Flat where forecasts of the next row are calibrated; heaped at the ends "
              "where they are too narrow, in the middle where they are too wide.",
          .panels = {std::move(panel)},
          .panel_height = 160};
}

}  // namespace

Page filter_page(const Filter& filter, const FilterPageContent& content) {
  const Model& model = filter.model();
  const FilterSummary& s = content.summary;
  Page page;
  page.title = content.title.empty() ? joined(model.variables) + " followed" : content.title;
  const auto& rows = content.record.rows.kept();
  page.subtitle = fmt::format("{} from {} to {}, by the {} filter.", plural(s.rows, "row", "rows"),
                              moment_text(model.calendar, rows.front().time),
                              model.calendar ? time_text(*model.calendar, rows.back().time)
                                             : fmt::format("{:.6g}", rows.back().time),
                              kFilterMethodNames[static_cast<std::size_t>(filter.method())]);
  if (const std::string why = s.distrust(); !why.empty())
    page.warning = {"Do not trust these states.", spelled(why, Spelling::options) + "."};
  Section summary{"summary", "Summary"};
  summary.parts.push_back(
      Prose{fmt::format("The filter {} the data: {} of {} values were inside their {:g} % band one "
                        "row ahead.",
                        page.warning.headline.empty() ? "followed" : "did not follow",
                        counted(s.inside), counted(s.forecasts), 100 * filter.options().level)});
  Tiles tiles;
  tiles.tiles = {{fmt::format("{:.1f} %", 100 * s.coverage()), "values inside their band",
                  "of the forecast one row ahead"},
                 {fmt::format("{:.3g}", s.surprise), "mean surprise", "1 is normal"},
                 {fmt::format("{:.4g}", s.log_score), "mean log score", "larger is better"},
                 {counted(s.lost), "times lost",
                  s.gated + s.late > 0 ? fmt::format("{} gated, {} late", s.gated, s.late) : ""}};
  summary.parts.push_back(std::move(tiles));
  if (!content.against_truth.rows.empty()) summary.parts.push_back(content.against_truth);
  page.sections.push_back(std::move(summary));

  page.sections.push_back(
      {"followed",
       "Followed",
       {state_figure(filter, content), surprise_figure(filter, content), rank_figure(s)}});
  if (filter.options().learn && !content.record.coefficients.kept().empty()) {
    page.sections.push_back(coefficient_section(filter, content));
    Section equations = equation_section(model_after(filter));
    equations.heading = "Equations after the last row";
    page.sections.push_back(std::move(equations));
  } else if (model.has_equations()) {
    page.sections.push_back(equation_section(model));
  }
  page.sections.push_back(origin_section(content.origin));
  return page;
}

}  // namespace odecast
