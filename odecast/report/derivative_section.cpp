#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/derivatives/smoothing.hpp"
#include "odecast/report/detail/fit_sections.hpp"
#include "odecast/report/figure.hpp"
#include "odecast/report/page_parts.hpp"

namespace odecast {
namespace {

constexpr long kMaxDerivatives = 5'000, kMaxSmoothed = 20'000;

/// Estimate and model of the derivative along one trajectory, some rows of it.
struct DerivativeFit {
  std::vector<double> times;
  Matrix estimate, mean, sd;
};

/// The rows without a missing value, the first of them.
Trajectory observed_rows(const Trajectory& t, long most) {
  Trajectory whole{
      t.id, {}, Matrix(t.states.rows(), t.states.cols()), Matrix(t.inputs.rows(), t.inputs.cols())};
  Eigen::Index at = 0;
  for (Eigen::Index k = 0; k < t.states.rows() && at < most; ++k) {
    if (!t.states.row(k).allFinite()) continue;
    whole.states.row(at) = t.states.row(k);
    if (t.inputs.cols() > 0) whole.inputs.row(at) = t.inputs.row(k);
    whole.times.push_back(t.times[static_cast<std::size_t>(k)]);
    ++at;
  }
  whole.states.conservativeResize(at, Eigen::NoChange);
  if (t.inputs.cols() > 0) whole.inputs.conservativeResize(at, Eigen::NoChange);
  return whole;
}

/// That of the fit; where it integrates instead, a spline, which smooths noise away.
DerivativeMethod shown_method(const Model& model, const DerivativeOptions& options) {
  const DerivativeMethod ran =
      derivative_from_name(model.training.derivative).value_or(options.method);
  return ran == DerivativeMethod::weak || ran == DerivativeMethod::automatic
             ? DerivativeMethod::spline
             : ran;
}

bool smooths(DerivativeMethod method) {
  return method == DerivativeMethod::spline || method == DerivativeMethod::savgol;
}

DerivativeFit derivative_fit(const Dataset& data, const Trajectory& t, const Model& model,
                             const Posterior& posterior, DerivativeOptions options, long most) {
  DerivativeFit fit;
  if (t.rows() < 2) return fit;
  Dataset one{data.variables, {t}};
  one.inputs = data.inputs;
  // The time as the last column, which every estimate keeps: ends and gaps have no rows.
  one = dataset_of(with_inputs(source_of(one), true, "t"), t.rows());
  if (t.rows() < 12) options.method = DerivativeMethod::forward;
  options.noise = {};
  const DerivativeRows rows = model.kind == ModelKind::map
                                  ? successors(one, model.step)
                                  : first_targets(derivative_rows(one, options), model.dimension());
  const Eigen::Index stride = std::max<Eigen::Index>(1, (rows.rows() + most - 1) / most);
  const Eigen::Index count = (rows.rows() + stride - 1) / stride, n = model.dimension(),
                     arguments = n + model.inputs.size();
  fit.estimate.resize(count, n);
  fit.mean.resize(count, n);
  fit.sd.resize(count, n);
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index row = k * stride;
    const double time = rows.states(row, rows.states.cols() - 1);  // smoothed, off by its rounding
    const auto after = std::lower_bound(t.times.begin(), t.times.end(), time);
    const bool before =
        after == t.times.end() || (after != t.times.begin() && time - *(after - 1) < *after - time);
    fit.times.push_back(before ? *(after - 1) : *after);
    fit.estimate.row(k) = rows.derivatives.row(row).head(n);
    const Moments m =
        posterior.moments(model.to_model(rows.states.row(row).head(arguments).transpose()));
    fit.mean.row(k) = (model.base() + m.mean.cwiseProduct(model.rate())).transpose();
    fit.sd.row(k) = m.sd().cwiseProduct(model.rate()).transpose();
  }
  return fit;
}

std::string caption_of(const Model& model, DerivativeMethod method, bool cut) {
  if (model.kind == ModelKind::map)
    return "Each row's successor, and the model's. The band is the spread of the draws.";
  return fmt::format(
      "{}, and the model at the same states. The band is the spread of the draws, not the error of "
      "the estimate.{}",
      method == DerivativeMethod::spline   ? "Slopes of a smoothing spline through the rows"
      : method == DerivativeMethod::savgol ? "Slopes of local polynomials through the rows"
                                           : "Differences of neighbouring rows",
      cut ? fmt::format(" The first {} rows of each trajectory.", counted(kMaxSmoothed)) : "");
}

}  // namespace

Section derivative_section(const Dataset& data, const Model& model,
                           const DerivativeOptions& options) {
  const auto& names = data.variables;
  const bool map = model.kind == ModelKind::map;
  DerivativeOptions shown = options;
  shown.method = shown_method(model, options);
  const bool smoothed = !map && smooths(shown.method);
  const auto posterior = make_posterior(model);
  std::vector<DerivativeFit> fits;
  bool cut = false;
  const std::size_t trajectories = std::min(kShownTrajectories, data.trajectories.size());
  for (std::size_t k = 0; k < trajectories; ++k) {
    const long most = smoothed ? kMaxSmoothed / static_cast<long>(trajectories)
                               : std::numeric_limits<long>::max();
    cut = cut || data.trajectories[k].rows() > most;
    fits.push_back(
        derivative_fit(data, observed_rows(data.trajectories[k], most), model, *posterior, shown,
                       std::max(50L, kMaxDerivatives / static_cast<long>(trajectories))));
  }
  Section section{"derivatives", map ? "Next rows: observed against model"
                                     : "Derivatives: estimate against model"};
  Figure along{.id = "derivatives-in-time",
               .title = map ? "The next row along the data" : "du/dt along the data",
               .caption = caption_of(model, shown.method, cut),
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
    Panel time = over_time(model.time_name, model.calendar, {.y_label = model.left_side(names[v])});
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
  if (residuals.rows.empty()) return section;
  section.parts = {std::move(residuals), std::move(along), std::move(across)};
  return section;
}

}  // namespace odecast
