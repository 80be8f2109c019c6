#include "studies/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"

namespace odecast {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const char* const kNames[] = {"x", "y", "z"};

/// Cover and width of a forecast's band for one variable over the times in (from, until].
struct BandScore {
  double cover = kNaN, width = kNaN;
};
BandScore band_score(const Forecast& f, const TestRun& run, int variable, double from,
                     double until) {
  double inside = 0, width = 0;
  int count = 0;
  for (Eigen::Index k = 1; k < f.lower.rows(); ++k) {
    const double t = f.times[static_cast<std::size_t>(k)];
    if (t <= from * (1 + 1e-12) || t > until * (1 + 1e-12)) continue;
    const double truth = run.truth(k - 1, variable);
    inside += f.lower(k, variable) <= truth && truth <= f.upper(k, variable);
    width += f.upper(k, variable) - f.lower(k, variable);
    ++count;
  }
  return count == 0 ? BandScore{} : BandScore{inside / count, width / count};
}

/// Time until the truth of x first leaves the band.
double held(const Forecast& f, const TestRun& run) {
  for (Eigen::Index k = 1; k < f.lower.rows(); ++k) {
    const double truth = run.truth(k - 1, 0);
    if (truth < f.lower(k, 0) || truth > f.upper(k, 0))
      return f.times[static_cast<std::size_t>(k - 1)];
  }
  return f.times.back();
}

/// First time at which |guess - truth| exceeds 0.4 of the attractor's root mean square distance
/// from its mean.
double valid_time(const Setting& s, const std::vector<double>& times, const Matrix& guess,
                  const TestRun& run) {
  for (Eigen::Index k = 1; k < guess.rows(); ++k)
    if (!((guess.row(k) - run.truth.row(k - 1)).norm() <= 0.4 * s.attractor_sd.norm()))
      return times[static_cast<std::size_t>(k - 1)];
  return times[static_cast<std::size_t>(guess.rows() - 1)];
}

/// Median |second difference| of the upper edge of x's band after t = 50, in sd of the attractor.
/// Values a tenth of a time unit apart.
double jaggedness(const Setting& s, const Forecast& f) {
  std::vector<double> bends;
  for (Eigen::Index k = 1; k + 1 < f.upper.rows(); ++k)
    if (f.times[static_cast<std::size_t>(k)] > 50)
      bends.push_back(std::abs(f.upper(k + 1, 0) - 2 * f.upper(k, 0) + f.upper(k - 1, 0)));
  if (bends.empty()) return kNaN;
  const auto middle = bends.begin() + static_cast<std::ptrdiff_t>(bends.size() / 2);
  std::nth_element(bends.begin(), middle, bends.end());
  return *middle / s.attractor_sd[0];
}

struct MeanError {
  double mean = kNaN, se = kNaN;
};
MeanError mean_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0, square = 0;
  for (const double v : values) mean += v / n;
  for (const double v : values) square += (v - mean) * (v - mean);
  return {mean, std::sqrt(square / (n * (n - 1)))};
}

ForecastOptions forecast_options(Reading reading, std::uint64_t seed, const TestRun& run) {
  ForecastOptions o;
  o.init = run.start;
  o.times = run.times;
  o.bands = Bands::sd;
  o.seed = seed;
  o.masks = reading == Reading::exact ? MaskSource::enumerated : MaskSource::sampled;
  return o;
}

void keep_curves(Values& v, const std::string& name, const Forecast& f) {
  for (Eigen::Index k = 0; k < f.mean.rows(); ++k) {
    v.curves[name + "_times"].push_back(f.times[static_cast<std::size_t>(k)]);
    v.curves[name + "_mean"].push_back(f.mean(k, 0));
    v.curves[name + "_lower"].push_back(f.lower(k, 0));
    v.curves[name + "_upper"].push_back(f.upper(k, 0));
  }
}

/// Everything that is asked of a fitted model.
void judge(const Setting& s, Reading reading, const Model& model, std::uint64_t seed, bool curves,
           Values& v, const Observer& observer) {
  auto& n = v.numbers;
  const bool released = reading == Reading::released;
  const TestRun& short_run = released ? s.released_short_run : s.short_run;
  const TestRun& long_run = released ? s.released_long_run : s.long_run;

  const Forecast near = forecast(model, forecast_options(reading, seed, short_run), observer);
  for (int i = 0; i < 3; ++i) {
    const BandScore b = band_score(near, short_run, i, 0, 10);
    n[fmt::format("short_cover_{}", kNames[i])] = b.cover;
    n[fmt::format("short_width_{}", kNames[i])] = b.width;
  }
  n["short_late_cover_x"] = band_score(near, short_run, 0, 6, 10).cover;
  n["short_early_width_x"] = band_score(near, short_run, 0, 0, 1).width;
  n["short_discard"] = near.discard_probability;
  n["short_held"] = held(near, short_run);
  n["short_valid"] = valid_time(s, near.times, near.mean, short_run);

  const Forecast far = forecast(model, forecast_options(reading, seed, long_run), observer);
  for (const auto& [from, until] :
       {std::pair{0, 10}, {10, 50}, {50, 100}, {0, 60}, {60, 100}, {0, 100}}) {
    const BandScore b = band_score(far, long_run, 0, from, until);
    n[fmt::format("long_cover_{}_{}", from, until)] = b.cover;
    n[fmt::format("long_width_{}_{}", from, until)] = b.width;
  }
  n["long_discard"] = far.discard_probability;
  n["long_jagged"] = jaggedness(s, far);
  if (curves) {
    keep_curves(v, "short", near);
    keep_curves(v, "long", far);
  }

  std::map<std::string, std::vector<double>> over_starts;
  for (const TestRun& run : s.starts) {
    const Forecast f = forecast(model, forecast_options(reading, seed, run), observer);
    for (int i = 0; i < 3; ++i)
      over_starts[fmt::format("starts_cover_{}", kNames[i])].push_back(
          f.lower.rows() > 1 ? band_score(f, run, i, 0, 10).cover : 0.0);
    if (f.lower.rows() > 1)
      over_starts["starts_width_x"].push_back(band_score(f, run, 0, 0, 10).width);
    over_starts["starts_discard"].push_back(f.discard_probability);
  }
  for (const auto& [name, values] : over_starts) {
    const MeanError e = mean_error(values);
    n[name] = e.mean;
    n[name + "_se"] = e.se;
  }
}

/// What only the exact engine is asked: the effect of the horizon, and the mean field.
void judge_exact(const Setting& s, const Model& model, const Dataset& data, Values& v,
                 const Observer& observer) {
  auto& n = v.numbers;
  for (const int horizon : {10, 20, 50, 100}) {
    TestRun run{s.short_run.start, s.short_run.times, {}};
    for (double t : regular_times(10, 100, 0.5))
      if (t <= horizon) run.times.push_back(t);
    run.truth = s.short_run.truth;  // only (0, 10] is compared
    const Forecast f = forecast(model, forecast_options(Reading::exact, 1, run), observer);
    Forecast head = f;
    const Eigen::Index rows = std::min<Eigen::Index>(f.mean.rows(), 501);
    head.lower = f.lower.topRows(rows);
    head.upper = f.upper.topRows(rows);
    const BandScore b = band_score(head, run, 0, 0, 10);
    n[fmt::format("horizon_{}_cover", horizon)] = b.cover;
    n[fmt::format("horizon_{}_width", horizon)] = b.width;
    n[fmt::format("horizon_{}_discard", horizon)] = f.discard_probability;
  }

  ForecastOptions o = forecast_options(Reading::paper, 1, s.short_run);
  const SingleTrajectory mean = single_trajectory(model, SingleField::mean, o);
  n["mean_field_valid"] = valid_time(s, mean.times, mean.states, s.short_run);
  n["mean_field_valid_lyapunov"] = n["mean_field_valid"] * *s.system.lyapunov;

  // Bias of the mean field and sd over masks, at the observed states.
  const DropoutPosterior posterior(model.network());
  const Matrix& u = data.trajectories[0].states;
  double bias = 0, spread = 0, size = 0;
  for (Eigen::Index i = 0; i < u.rows(); ++i) {
    const Vector at = u.row(i).transpose();
    Vector truth(3);
    s.system.field(0, at.data(), truth.data());
    const Moments m = posterior.moments(at);
    bias += (m.mean - truth).squaredNorm();
    spread += m.covariance.trace();
    size += truth.squaredNorm();
  }
  const auto count = static_cast<double>(u.rows());
  n["bias_rms"] = std::sqrt(bias / count);
  n["mask_sd_rms"] = std::sqrt(spread / count);
  n["field_rms"] = std::sqrt(size / count);
  const std::vector<Equation> learnt = equations(model);
  for (const Term& t : learnt[0].terms)
    if (t.powers == std::vector<int>{0, 1, 1}) {
      n["yz_coefficient"] = t.mean;
      n["yz_coefficient_sd"] = t.sd;
    }
}

DropoutMethod paper_method(const StudyCell& cell) {
  return {.hidden = 10, .dropout = cell.r, .rows = {.scale = ScaleKind::none}};
}

/// A model file's worth of facts about the data, with this network in it.
Model with_network(const Dataset& data, Network network, double r) {
  Model m;
  m.variables = data.variables;
  m.scaling = no_scaling(data.dimension());
  for (Layer& layer : network.layers)
    if (layer.activation == Activation::power) layer.dropout = r;
  m.law = std::move(network);
  m.data_scale = data.trajectories[0].states.cwiseAbs().maxCoeff();
  m.last_state = data.trajectories[0].states.bottomRows(1).transpose();
  m.last_time = data.trajectories[0].times.back();
  m.size = root_mean_square(data);
  m.step = data.trajectories[0].times[1] - data.trajectories[0].times[0];
  return m;
}

Values run_cell(const Setting& s, const StudyOptions& options, Reading reading,
                const StudyCell& cell, int index, const Observer& observer) {
  Values v;
  const std::uint64_t seed = options.seed * 1000 + static_cast<std::uint64_t>(index);
  Model model;
  Dataset data = training_data(s, cell.per_unit);
  DropoutMethod method = paper_method(cell);
  FitOptions fit_options;
  if (reading == Reading::released) {
    const DerivativeRows rows = released_rows(s, cell.per_unit);
    Network network = make_network(3, {{10, Activation::power, 2, 0.0, false}}, 3, seed);
    TrainOptions training;
    training.batches = options.batches;
    training.seed = seed;
    train(network, rows, training, observer);
    model = with_network(data, std::move(network), cell.r);
  } else {
    if (reading == Reading::paper) {
      method.trainer = Trainer::adam;
      method.training.batches = options.batches;
      fit_options.seed = seed;
    }
    fit_options.method = method;
    Fit fitted = fit(data, fit_options, observer);
    v.numbers["objective"] = fitted.model.training.objective.value_or(kNaN);
    if (!fitted.summary.minima.empty()) {
      v.numbers["second_minimum"] = fitted.summary.minima.back().objective;
      v.numbers["minima"] = static_cast<double>(fitted.summary.minima.size());
    }
    model = std::move(fitted.model);
  }
  judge(s, reading, model, seed, reading == Reading::exact || index == 0, v, observer);
  if (reading == Reading::exact) judge_exact(s, model, data, v, observer);
  return v;
}

/// Jaggedness of sampled bands against their number of trajectories, ten seeds each.
Values run_jaggedness(const Setting& s, const Observer& observer) {
  Values v;
  const Model model = fit(training_data(s, 500), {.method = paper_method({})}, observer).model;
  for (const int draws : {250, 1000, 4000, 16000}) {
    std::vector<double> values;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      ForecastOptions o = forecast_options(Reading::paper, seed, s.long_run);
      o.draws = draws;
      values.push_back(jaggedness(s, forecast(model, o, observer)));
    }
    const MeanError e = mean_error(values);
    v.numbers[fmt::format("jagged_{}", draws)] = e.mean;
    v.numbers[fmt::format("jagged_{}_se", draws)] = e.se;
  }
  // Over starts: discards and jaggedness of the enumerated band go together, or not.
  std::vector<double> discards, bends;
  for (const TestRun& start : s.starts) {
    TestRun run{start.start, s.long_run.times, {}};
    const Forecast f = forecast(model, forecast_options(Reading::exact, 1, run), observer);
    if (f.upper.rows() < 2) continue;
    discards.push_back(f.discard_probability);
    bends.push_back(jaggedness(s, f));
  }
  v.curves["start_discards"] = discards;
  v.curves["start_jagged"] = bends;
  return v;
}

/// Error of forward differences, root mean square over the rows, for each h.
Values run_differences(const Setting& s) {
  Values v;
  for (const int per_unit : {50, 100, 250, 500, 1000, 5000}) {
    const DerivativeRows rows = forward_differences(training_data(s, per_unit), {});
    double square = 0;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const Vector u = rows.states.row(i).transpose();
      Vector truth(3);
      s.system.field(0, u.data(), truth.data());
      square += (rows.derivatives.row(i).transpose() - truth).squaredNorm();
    }
    v.numbers[fmt::format("error_{}", per_unit)] =
        std::sqrt(square / (3.0 * static_cast<double>(rows.rows())));
  }
  return v;
}

/// Training data by RK45 at SciPy's default tolerance.
Values run_tolerance(const Setting& s, const Observer& observer) {
  Values v;
  const Fit rough = fit(training_data_at(s, 500, 1e-3), {.method = paper_method({})}, observer);
  v.numbers["objective"] = rough.model.training.objective.value_or(kNaN);
  judge(s, Reading::exact, rough.model, 1, false, v, observer);
  return v;
}

/// ε ~ N(0, h⁴) at every output time of Algorithm 2: what it changes.
Values run_transition_noise(const Setting& s, const Observer& observer) {
  Values v;
  const Model model = fit(training_data(s, 500), {.method = paper_method({})}, observer).model;
  ForecastOptions o = forecast_options(Reading::paper, 1, s.short_run);
  o.draws = 100;
  o.times = regular_times(0, 10, 0.002);
  const Forecast without = forecast(model, o, observer);
  o.transition_noise = true;
  const Forecast with = forecast(model, o, observer);
  // The noisy chain stops at every output time; the solver's own error comes on top.
  v.numbers["change"] = (with.upper - without.upper).cwiseAbs().maxCoeff();
  o.solver = SolverOptions{.rtol = 1e-10, .atol = 1e-10};
  o.transition_noise = false;
  const Forecast fine = forecast(model, o, observer);
  o.transition_noise = true;
  const Forecast fine_with = forecast(model, o, observer);
  v.numbers["change_fine"] = (fine_with.upper - fine.upper).cwiseAbs().maxCoeff();
  return v;
}

}  // namespace

std::string cell_key(Reading reading, const StudyCell& cell, int seed) {
  const std::string base =
      fmt::format("{}-h{}-r{:.0f}", reading_name(reading), cell.per_unit, 100 * cell.r);
  return reading == Reading::exact ? base : fmt::format("{}-s{:02}", base, seed);
}

std::vector<Unit> study_units(const Setting& s, const StudyOptions& options) {
  std::vector<Unit> units;
  for (const Reading reading : kReadings) {
    const int seeds = reading == Reading::exact ? 1 : options.adam_seeds;
    for (const StudyCell& cell : kCells) {
      // Roughly 7 ns for each row of a step, and the forecasts.
      const double rows = reading == Reading::paper ? 10.0 * cell.per_unit : cell.per_unit;
      const double training =
          reading == Reading::exact ? 0.2 : 7e-9 * 110 * options.batches * (rows + 300);
      for (int k = 0; k < seeds; ++k)
        units.push_back({cell_key(reading, cell, k), training + 0.6,
                         [&s, options, reading, cell, k](const Observer& observer) {
                           return run_cell(s, options, reading, cell, k, observer);
                         }});
    }
  }
  units.push_back({"jaggedness", 2, [&s](const Observer& o) { return run_jaggedness(s, o); }});
  units.push_back({"differences", 0.5, [&s](const Observer&) { return run_differences(s); }});
  units.push_back({"tolerance", 0.6, [&s](const Observer& o) { return run_tolerance(s, o); }});
  units.push_back(
      {"transition-noise", 4, [&s](const Observer& o) { return run_transition_noise(s, o); }});
  return units;
}

}  // namespace odecast
