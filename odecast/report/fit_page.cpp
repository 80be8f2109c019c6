#include "odecast/report/fit_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/report/figure.hpp"

namespace odecast {
namespace {

constexpr std::size_t kMaxTrajectories = 12;
constexpr long kMaxRows = 200'000, kMaxDerivatives = 5'000;

/// Every so many-th row, the last one too.
Trajectory every(const Trajectory& t, long stride) {
  if (stride <= 1) return t;
  Trajectory thin{t.id, {}, Matrix((t.rows() + stride - 1) / stride, t.states.cols())};
  for (long r = 0; r < t.rows(); r += stride) {
    thin.states.row(static_cast<Eigen::Index>(thin.times.size())) = t.states.row(r);
    thin.times.push_back(t.times[static_cast<std::size_t>(r)]);
  }
  return thin;
}

/// Estimate and model of the derivative along one trajectory, some rows of it.
struct DerivativeFit {
  std::vector<double> times;
  Matrix estimate, mean, sd;
};

/// The rows without a missing value.
Trajectory observed_rows(const Trajectory& t) {
  if (t.states.allFinite()) return t;
  Trajectory whole{t.id, {}, Matrix(t.states.rows(), t.states.cols())};
  for (Eigen::Index k = 0; k < t.states.rows(); ++k)
    if (t.states.row(k).allFinite()) {
      whole.states.row(static_cast<Eigen::Index>(whole.times.size())) = t.states.row(k);
      whole.times.push_back(t.times[static_cast<std::size_t>(k)]);
    }
  whole.states.conservativeResize(static_cast<Eigen::Index>(whole.times.size()), Eigen::NoChange);
  return whole;
}

DerivativeFit derivative_fit(const Dataset& data, const Trajectory& t, const Model& model,
                             const Posterior& posterior, const FitOptions& options, long most) {
  DerivativeFit fit;
  if (t.rows() < 2) return fit;
  Dataset one{data.variables, {t}};
  one.inputs = data.inputs;
  if (model.inputs.size() > 0)
    one = first_rows(with_inputs(source_of(one), model.inputs.time, model.inputs.names.back()),
                     t.rows());
  // Rows at observed states; where the fit smooths or integrates, fourth-order differences are
  // shown.
  DerivativeOptions shown;
  if (const auto* method = std::get_if<DropoutMethod>(&options.method))
    shown.method = method->rows.derivative, shown.forward = method->rows.forward;
  if (shown.method != DerivativeMethod::forward && central_order(shown.method) == 0)
    shown.method = DerivativeMethod::central4;
  if (t.rows() < 12) shown.method = DerivativeMethod::forward;
  shown.noise = {};
  const DerivativeRows rows = model.kind == ModelKind::map
                                  ? successors(one, model.step)
                                  : first_targets(derivative_rows(one, shown), model.dimension());
  // Ends and gaps have no rows: each is found again in the trajectory.
  std::vector<double> times;
  for (int at = 0; static_cast<Eigen::Index>(times.size()) < rows.rows() && at < t.rows(); ++at)
    if (t.states.row(at) ==
        rows.states.row(static_cast<Eigen::Index>(times.size())).head(t.states.cols()))
      times.push_back(t.times[static_cast<std::size_t>(at)]);
  const Eigen::Index stride = std::max<Eigen::Index>(1, (rows.rows() + most - 1) / most);
  const Eigen::Index count = (rows.rows() + stride - 1) / stride, n = rows.derivatives.cols();
  fit.estimate.resize(count, n);
  fit.mean.resize(count, n);
  fit.sd.resize(count, n);
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index row = k * stride;
    fit.times.push_back(times[static_cast<std::size_t>(row)]);
    fit.estimate.row(k) = rows.derivatives.row(row);
    const Moments m = posterior.moments(model.to_model(rows.states.row(row).transpose()));
    fit.mean.row(k) = (model.base() + m.mean.cwiseProduct(model.rate())).transpose();
    fit.sd.row(k) = m.sd().cwiseProduct(model.rate()).transpose();
  }
  return fit;
}

}  // namespace

Page fit_page(const Dataset& data, const Fit& fit, const FitOptions& options,
              const FitPageContent& content) {
  const Model& model = fit.model;
  const auto& names = data.variables;
  const std::size_t shown = std::min(kMaxTrajectories, data.trajectories.size());
  Page page;
  page.title = content.title.empty() ? "Model of " + joined(names) : content.title;
  page.subtitle = fmt::format("Learnt from {} in {}.", plural(model.training.rows, "row", "rows"),
                              plural(model.training.trajectories, "trajectory", "trajectories"));
  Section summary{"summary", "Summary"};
  if (!fit.summary.trusted)
    summary.parts.push_back(Notice{"Not to be trusted: " + fit.summary.reason + "."});
  summary.parts.push_back(observed_facts(model));
  page.sections.push_back(std::move(summary));
  page.sections.push_back(equation_section(model));

  // The derivative, estimated and modelled.
  const auto posterior = make_posterior(model);
  std::vector<DerivativeFit> fits;
  for (std::size_t k = 0; k < shown; ++k)
    fits.push_back(derivative_fit(data, observed_rows(data.trajectories[k]), model, *posterior,
                                  options,
                                  std::max(50L, kMaxDerivatives / static_cast<long>(shown))));
  const bool map = model.kind == ModelKind::map;
  Section derivatives{"derivatives", map ? "Next rows: observed against model"
                                         : "Derivatives: estimate against model"};
  Figure along{.id = "derivatives-in-time",
               .title = map ? "The next row along the data" : "du/dt along the data",
               .names = names,
               .panel_height = 180};
  Figure across{.id = "derivatives-scatter",
                .title = "Estimate against model",
                .caption = "On the diagonal the model agrees with the estimate.",
                .names = names,
                .panel_height = names.size() == 1 ? 320.0 : 190.0,
                .columns = static_cast<int>(std::min<std::size_t>(3, names.size()))};
  Table residuals{.caption = "Residual: estimate less model's mean",
                  .header = {"", map ? "rms of the next row" : "rms of du/dt", "rms residual",
                             "mean sd of the model"},
                  .rows = {}};
  for (std::size_t v = 0; v < names.size(); ++v) {
    const auto i = static_cast<Eigen::Index>(v);
    Panel time{.x_label = "time t", .y_label = model.left_side(names[v])};
    Panel plane{.title = names[v], .x_label = "model's mean", .y_label = "estimate"};
    std::vector<std::pair<double, double>> cloud;
    double square = 0, residual = 0, spread = 0, count = 0;
    for (const DerivativeFit& d : fits) {
      if (d.times.empty()) continue;
      std::vector<double> lower = column(d.mean - 2 * d.sd, i),
                          upper = column(d.mean + 2 * d.sd, i);
      time.bands.push_back({"model ± 2 sd", d.times, std::move(lower), std::move(upper)});
      time.lines.push_back({.label = "estimate",
                            .x = d.times,
                            .y = column(d.estimate, i),
                            .ink = Ink::truth,
                            .width = 1.2});
      time.lines.push_back(
          {.label = "model's mean", .x = d.times, .y = column(d.mean, i), .width = 2});
      for (Eigen::Index r = 0; r < d.mean.rows(); ++r) {
        const double estimate = d.estimate(r, i), mean = d.mean(r, i);
        cloud.emplace_back(mean, estimate);
        square += estimate * estimate;
        residual += (estimate - mean) * (estimate - mean);
        spread += d.sd(r, i);
        ++count;
      }
    }
    std::sort(cloud.begin(), cloud.end());
    const std::size_t stride = std::max<std::size_t>(1, cloud.size() / 2000);
    Line dots{.label = "rows of the data", .width = 1.4, .points = true};
    double lo = std::numeric_limits<double>::infinity(), hi = -lo;
    for (std::size_t k = 0; k < cloud.size(); k += stride) {
      dots.x.push_back(cloud[k].first);
      dots.y.push_back(cloud[k].second);
      lo = std::min({lo, cloud[k].first});
      hi = std::max({hi, cloud[k].first});
    }
    plane.lines.push_back(
        {.label = "equal", .x = {lo, hi}, .y = {lo, hi}, .ink = Ink::second, .dashed = true});
    plane.lines.push_back(std::move(dots));
    along.panels.push_back(std::move(time));
    across.panels.push_back(std::move(plane));
    if (count > 0)
      residuals.rows.push_back({{model.left_side(names[v])},
                                number_cell(std::sqrt(square / count)),
                                number_cell(std::sqrt(residual / count)),
                                number_cell(spread / count)});
  }
  along.caption =
      std::string(map ? "Each row's successor, and the model's. "
                      : "Differences of neighbouring rows, and the model at the same states. ") +
      "The band is the spread of the draws, not the error of the estimate.";
  if (!residuals.rows.empty()) {
    derivatives.parts.push_back(std::move(residuals));
    derivatives.parts.push_back(std::move(along));
    derivatives.parts.push_back(std::move(across));
  }
  page.sections.push_back(std::move(derivatives));

  Section observed{"observed", "What was observed"};
  const long stride = std::max(1L, (data.rows() + kMaxRows - 1) / kMaxRows);
  if (data.trajectories.size() > shown)
    observed.parts.push_back(
        Prose{fmt::format("The first {} of {} trajectories are shown.", shown,
                          counted(static_cast<long>(data.trajectories.size())))});
  Figure series{.id = "data",
                .title = "The data",
                .names = names,
                .panel_height = names.size() == 1 ? 320.0 : 160.0};
  if (stride > 1)
    series.csv_note = fmt::format("The page holds every {}th row of the data.", stride);
  Attractor attractor{.id = "attractor", .title = "The data in state space", .variables = names};
  std::vector<Trajectory> kept;
  for (std::size_t k = 0; k < shown; ++k) kept.push_back(every(data.trajectories[k], stride));
  for (const Trajectory& t : kept)
    attractor.curves.push_back({"observed", Ink::forecast, t.times, t.states});
  for (std::size_t v = 0; v < names.size(); ++v) {
    Panel panel{.x_label = "time t", .y_label = names[v]};
    for (const Trajectory& t : kept)
      panel.lines.push_back(
          {.label = "observed", .x = t.times, .y = column(t.states, static_cast<Eigen::Index>(v))});
    series.panels.push_back(std::move(panel));
  }
  observed.parts.push_back(std::move(series));
  if (names.size() >= 2) observed.parts.push_back(std::move(attractor));
  page.sections.push_back(std::move(observed));
  page.sections.push_back(origin_section(content.origin));
  return page;
}

}  // namespace odecast
