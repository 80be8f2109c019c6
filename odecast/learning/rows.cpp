#include "odecast/learning/detail/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "odecast/learning/choose_derivative.hpp"
#include "odecast/observations/smoother.hpp"

namespace odecast {
namespace {

/// Rows from which the noise is estimated: to about a hundredth.
constexpr long kRowsForNoise = 4096;

}  // namespace

RowPlan row_plan(const FitOptions& o, const RowOptions& rows, bool shift, int degree) {
  return {.kind = o.kind,
          .hold_inputs = o.hold_inputs,
          .time_name = o.time_name,
          .derivative = {rows.derivative, rows.forward, o.noise, rows.gap},
          .scale = rows.scale,
          .shift = shift,
          .degree = degree,
          .seed = o.seed,
          .threads = o.threads};
}

int argument_count(const ObservationSource& source, const std::string& time_name) {
  return source.dimension() + static_cast<int>(source.inputs.size()) + (time_name.empty() ? 0 : 1);
}

FitData fit_data(const ObservationSource& source, const RowPlan& plan) {
  const bool driven = argument_count(source, plan.time_name) > source.dimension();
  FitData a;
  a.source = driven ? with_inputs(source, !plan.time_name.empty(), plan.time_name) : source;
  a.summary = summarise(a.source);
  a.scaling = plan.scale == ScaleKind::none ? no_scaling(a.size())
              : plan.shift                  ? standard_scaling(a.summary)
                                            : unshifted_scaling(a.summary);
  if (plan.kind == ModelKind::map && plan.scale != ScaleKind::none) a.scaling.time = a.summary.step;
  a.derivative = plan.derivative;
  if (driven && plan.derivative.noise.size() > 0) {  // what drives is known to round-off
    Vector noise = 0x1p-52 * a.summary.rms.cwiseMax(1e-280);
    if (plan.derivative.noise.size() == 1)
      noise.head(source.dimension()).setConstant(plan.derivative.noise[0]);
    else
      noise.head(source.dimension()) = plan.derivative.noise;
    a.derivative.noise = noise;
  }
  if (plan.derivative.noise.size() == 0 && plan.kind == ModelKind::flow) {
    const Dataset first = dataset_of(a.source, kRowsForNoise);
    a.noise = estimate_noise(segments(first, plan.derivative.gap), a.size());
  }
  return a;
}

void describe(Model& model, const ObservationSource& source, const FitData& data,
              const RowPlan& plan) {
  const ObservationSummary& summary = data.summary;
  const Eigen::Index n = source.dimension(), inputs = data.size() - n;
  require_option(plan.kind == ModelKind::flow || summary.pairs > 0, "`kind`",
                 "map with trajectories of one row", "rows that follow each other",
                 "A map is learnt from pairs of rows.");
  model.kind = plan.kind;
  model.variables = source.variables;
  model.scaling = {data.scaling.offset.head(n), data.scaling.scale.head(n), data.scaling.time};
  model.inputs.names.assign(data.source.variables.begin() + n, data.source.variables.end());
  model.inputs.offset = data.scaling.offset.tail(inputs);
  model.inputs.scale = data.scaling.scale.tail(inputs);
  model.inputs.held = plan.hold_inputs;
  model.inputs.time = !plan.time_name.empty();
  model.last_trajectory = (*source.ids)[summary.last_trajectory];
  model.last_time = summary.last_time;
  model.last_state = summary.last_state.head(n);
  model.inputs.last = summary.last_state.segment(n, model.inputs.measured());
  model.step = summary.step;
  model.size = summary.rms;
  model.sd = summary.sd.head(n);
  for (Eigen::Index i = 0; i < n; ++i)
    if (summary.constant[static_cast<std::size_t>(i)]) model.sd[i] = 0;
  model.data_scale =
      std::max(model.scaling.to_model(summary.smallest.head(n)).cwiseAbs().maxCoeff(),
               model.scaling.to_model(summary.largest.head(n)).cwiseAbs().maxCoeff());
  if (model.data_scale == 0) model.data_scale = 1;
  if (plan.derivative.noise.size() > 0) {
    model.noise = data.derivative.noise.size() == 1 ? Vector::Constant(n, data.derivative.noise[0])
                                                    : Vector(data.derivative.noise.head(n));
  } else {
    model.noise = data.noise.head(std::min(n, data.noise.size()));
  }
  auto& record = model.training;
  record.derivative =
      plan.kind == ModelKind::map ? "none" : derivative_name(plan.derivative.method);
  record.noise_factor = plan.derivative.forward.noise_factor;
  record.noise_order = plan.derivative.forward.noise_order;
  record.trajectories = summary.trajectories;
  record.seed = plan.seed;
}

void differences_overflow(const std::string& name) {
  throw_data({name, "differences that overflow", "values whose differences are finite",
              "Rescale the columns or the times, or remove the outliers."});
}

RowPlan with_derivative(const RowPlan& given, const FitData& data, Model& model,
                        FitSummary& summary, bool pointwise_only, const Observer& observer) {
  RowPlan plan = given;
  plan.derivative = data.derivative;
  summary.derivative = model.training.derivative;
  if (plan.kind == ModelKind::map || plan.derivative.method != DerivativeMethod::automatic)
    return plan;
  const auto begin = std::chrono::steady_clock::now();
  const DerivativeChoice choice = choose_derivative(data.in_model_units(), model.dimension(),
                                                    to_model_units(plan.derivative, data.scaling),
                                                    plan.degree, pointwise_only, observer);
  plan.derivative.method = choice.method;
  model.training.derivative = derivative_name(choice.method);
  summary.derivative =
      fmt::format("{}, {:.3g} time units ahead", choice.reason, choice.ahead * model.scaling.time);
  summary.seconds += seconds_since(begin);
  return plan;
}

void for_rows(const FitData& data, int n, const RowPlan& plan, FitSummary& summary,
              const Observer& observer, const std::function<void(const DerivativeRows&)>& visit) {
  const DerivativeMethod method = plan.derivative.method;
  long seen = 0;
  const auto take = [&](const DerivativeRows& all) {
    observer("reading", static_cast<double>(seen) / static_cast<double>(data.summary.pairs));
    const bool driven = data.size() > n;
    const DerivativeRows cut = driven ? first_targets(all, n) : DerivativeRows();
    const DerivativeRows& rows = driven ? cut : all;
    if (!rows.derivatives.allFinite() || !rows.states.allFinite())
      differences_overflow(data.source.name);
    const auto begin = std::chrono::steady_clock::now();  // reading is not part of the fit
    visit(rows);
    seen += rows.rows();
    summary.seconds += seconds_since(begin);
  };
  if (plan.kind == ModelKind::map) {
    take(successors(data.in_model_units(), data.summary.step / data.scaling.time));
  } else if (method == DerivativeMethod::forward || central_order(method) > 0) {
    stream_differences(data.source, data.scaling, plan.derivative, data.summary, 1 << 14, take);
  } else {
    const Dataset scaled = data.in_model_units();
    const auto begin = std::chrono::steady_clock::now();
    const DerivativeRows rows =
        derivative_rows(scaled, to_model_units(plan.derivative, data.scaling));
    summary.seconds += seconds_since(begin);
    take(rows);
  }
}

RowFactor row_factor(const FitData& data, int n, int degree, const RowPlan& plan,
                     FitSummary& summary, const Observer& observer) {
  RowFactor factor(data.size(), degree, n);
  double first_variance = -1;
  for_rows(data, n, plan, summary, observer, [&](const DerivativeRows& rows) {
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    factor.add(rows.states, rows.derivatives, row_weights(rows, first_variance), plan.threads);
  });
  return factor;
}

bool is_weak(const RowPlan& plan) {
  return plan.kind == ModelKind::flow && plan.derivative.method == DerivativeMethod::weak;
}

void smooth_last_state(Model& model, const FitData& data, FitSummary& summary) {
  const ObservationSummary& observed = data.summary;
  const auto rows = observed.late_states.rows();
  if (model.kind == ModelKind::map || rows < 8) return;  // third differences and a noise
  const auto begin = std::chrono::steady_clock::now();
  const auto n = static_cast<Eigen::Index>(model.dimension());
  const Smoothed smoothed = smooth(
      {{observed.late_times, observed.late_states.leftCols(n), Matrix::Ones(rows, n)}}, false);
  model.last_state = smoothed.values[0].row(rows - 1).transpose();
  model.last_state_sd = smoothed.last_sd;
  summary.seconds += seconds_since(begin);
}

WeakData weak_data(const FitData& data, const RowPlan& plan) {
  WeakData weak{data.in_model_units(), {}, {}};
  for (const Trajectory& t : weak.scaled.trajectories)
    if (!t.states.allFinite()) differences_overflow(data.source.name);
  const DerivativeOptions options = to_model_units(plan.derivative, data.scaling);
  weak.parts = segments(weak.scaled, options.gap);
  weak.noise = data.noise.size() > 0 && data.summary.rows <= kRowsForNoise
                   ? data.noise.cwiseQuotient(data.scaling.scale)
                   : observation_noise(options, weak.parts, data.size());
  weak.noise = weak.noise.unaryExpr(
      [](double sd) { return sd * sd > 0 ? sd : 0x1p-52; });  // a column of zeros has none
  return weak;
}

}  // namespace odecast
