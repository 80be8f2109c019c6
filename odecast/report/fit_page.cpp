#include "odecast/report/fit_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "odecast/core/text.hpp"
#include "odecast/model/status.hpp"
#include "odecast/report/detail/fit_sections.hpp"
#include "odecast/report/figure.hpp"

namespace odecast {
namespace {

constexpr long kMaxRows = 200'000;

bool is_bootstrap(const FitOptions& options) {
  return std::holds_alternative<BootstrapMethod>(options.method);
}

Warning warning_of(const Fit& fit) {
  if (fit.summary.trusted) return {};
  const std::string_view why = distrust(fit.summary.status);
  return {fmt::format("Do not trust this model{}{}.", why.empty() ? "" : ": ", why),
          spelled(fit.summary.reason, Spelling::options) + "."};
}

Tiles tiles_of(const Fit& fit, const FitOptions& options) {
  const Model& model = fit.model;
  Tiles tiles;
  if (!model.polynomial()) return tiles;
  const auto& sets = model.polynomial()->sets;
  if (is_bootstrap(options))
    tiles.tiles.push_back({counted(static_cast<long>(sets.size())), "replicates", "of the rows"});
  else
    tiles.tiles.push_back(
        {counted(static_cast<long>(sets.front().support.size())), "terms",
         sets.size() > 1 ? fmt::format("in the best of {} sets that are averaged", sets.size())
                         : ""});
  if (const auto& t = model.trajectory; t && fit.summary.path)
    tiles.tiles.push_back({fmt::format("{:.2f}", t->noise_ratio), "residuals over the noise",
                           t->misfit               ? "the equations miss part of the motion"
                           : t->noise_ratio < 1.06 ? "1: nothing is left to explain"
                                                   : "1 where nothing is left to explain"});
  if (fit.summary.log_evidence)
    tiles.tiles.push_back({fmt::format("{}", model.polynomial()->degree), "highest degree",
                           fit.summary.degrees.empty() ? "as given" : "of the most evidence"});
  tiles.tiles.push_back({counted(model.training.rows), "rows",
                         plural(model.training.trajectories, "trajectory", "trajectories")});
  return tiles;
}

/// How the rows of a fit were made, where it learns from rows.
DerivativeOptions derivatives_of(const FitOptions& options) {
  const auto from = [](const RowOptions& rows) {
    return DerivativeOptions{.method = rows.derivative, .forward = rows.forward, .gap = rows.gap};
  };
  if (const auto* m = std::get_if<RegressionMethod>(&options.method)) return from(m->rows);
  if (const auto* m = std::get_if<BootstrapMethod>(&options.method)) return from(m->rows);
  if (const auto* m = std::get_if<DropoutMethod>(&options.method)) return from(m->rows);
  if (const auto* m = std::get_if<EnsembleMethod>(&options.method)) return from(m->member.rows);
  return {};
}

Section data_section(const Dataset& data, bool with_states) {
  const auto& names = data.variables;
  const std::size_t shown = std::min(kShownTrajectories, data.trajectories.size());
  Section section{"observed", with_states ? "What was observed" : "What drove it"};
  const long stride = std::max(1L, (data.rows() + kMaxRows - 1) / kMaxRows);
  const std::string note =
      stride > 1 ? fmt::format("The page holds every {}th row of the data.", stride) : "";
  if (data.trajectories.size() > shown)
    section.parts.push_back(
        Prose{fmt::format("The first {} of {} trajectories are shown.", shown,
                          counted(static_cast<long>(data.trajectories.size())))});
  Figure series{.id = "data",
                .title = "The data",
                .names = names,
                .csv_note = note,
                .panel_height = names.size() == 1 ? 320.0 : 160.0};
  Figure inputs{.id = "inputs",
                .title = "What drove the system",
                .names = data.inputs,
                .switch_label = "Input",
                .csv_note = note,
                .panel_height = data.inputs.size() == 1 ? 160.0 : 130.0};
  Attractor attractor{.id = "attractor", .title = "The data in state space", .variables = names};
  series.panels.resize(names.size());
  inputs.panels.resize(data.inputs.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const Trajectory& whole = data.trajectories[k];
    const Trajectory t = every(whole, stride);
    attractor.curves.push_back({"observed", Ink::forecast, t.times, t.states});
    for (std::size_t v = 0; v < names.size(); ++v)
      series.panels[v].lines.push_back(
          {.label = "observed", .x = t.times, .y = column(t.states, static_cast<Eigen::Index>(v))});
    if (data.inputs.empty()) continue;
    const Trajectory driven = every({"", whole.times, whole.inputs}, stride);
    for (std::size_t v = 0; v < data.inputs.size(); ++v)
      inputs.panels[v].lines.push_back({.label = "input",
                                        .x = driven.times,
                                        .y = column(driven.states, static_cast<Eigen::Index>(v)),
                                        .ink = Ink::third});
  }
  for (std::size_t v = 0; v < names.size(); ++v) {
    series.panels[v] = over_time(data.time_name, data.calendar, std::move(series.panels[v]));
    series.panels[v].y_label = names[v];
  }
  for (std::size_t v = 0; v < data.inputs.size(); ++v) {
    inputs.panels[v] = over_time(data.time_name, data.calendar, std::move(inputs.panels[v]));
    inputs.panels[v].y_label = data.inputs[v];
  }
  if (with_states) section.parts.push_back(std::move(series));
  if (!data.inputs.empty()) section.parts.push_back(std::move(inputs));
  if (with_states && names.size() >= 2) section.parts.push_back(std::move(attractor));
  return section;
}

}  // namespace

Page fit_page(const Dataset& given, const Fit& fit, const FitOptions& options,
              const FitPageContent& content) {
  const Model& model = fit.model;
  const Dataset made = model.embedding ? embedded(given, *model.embedding) : Dataset();
  const Dataset& data = model.embedding ? made : given;
  const bool path = fit.summary.path && model.trajectory;
  Page page;
  page.title = content.title.empty() ? "Model of " + joined(data.variables) : content.title;
  page.subtitle = fmt::format("Learnt from {} in {}.", plural(model.training.rows, "row", "rows"),
                              plural(model.training.trajectories, "trajectory", "trajectories"));
  page.warning = warning_of(fit);
  Section summary{"summary", "Summary"};
  if (Tiles tiles = tiles_of(fit, options); !tiles.tiles.empty())
    summary.parts.push_back(std::move(tiles));
  summary.parts.push_back(observed_facts(model));
  page.sections.push_back(std::move(summary));
  page.sections.push_back(equation_section(model));
  if (path) {
    page.sections.push_back(path_section(data, fit));
    page.sections.push_back(residual_section(data, fit));
    if (model.trajectory->forcing.present()) page.sections.push_back(forcing_section(model));
  }
  if (fit.summary.log_evidence) page.sections.push_back(evidence_section(fit.summary));
  if (is_bootstrap(options))
    page.sections.push_back(replicate_section(model));
  else if (model.polynomial())
    page.sections.push_back(term_section(model));
  if (!path) page.sections.push_back(derivative_section(data, model, derivatives_of(options)));
  if (!path || !data.inputs.empty()) page.sections.push_back(data_section(data, !path));
  Origin origin = content.origin;
  origin.settings.insert(origin.settings.begin(), model.settings.begin(), model.settings.end());
  page.sections.push_back(origin_section(origin));
  return page;
}

}  // namespace odecast
