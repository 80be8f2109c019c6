#include "odecast/forecast/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "odecast/core/error.hpp"
#include "odecast/core/functions.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"
#include "odecast/forecast/detail/ensemble.hpp"
#include "odecast/observations/surface.hpp"

namespace odecast {
namespace {

constexpr double kMaxStoredBytes = 8e9;

Bands bands_of(const Model& model, const ForecastOptions& o) {
  return o.bands.value_or(default_bands(model));
}

void check_options(const Model& model, const ForecastOptions& o, const ForecastStart& start,
                   std::uint64_t atoms) {
  const auto number = [](double x) { return fmt::format("{}", x); };
  const auto is_state = [&](const Vector& v, const char* option) {
    require_option(v.size() == model.dimension(), option, fmt::format("{} values", v.size()),
                   fmt::format("{} ({})", model.dimension(), fmt::join(model.variables, ", ")),
                   "Give one value per variable, separated by commas.");
    require_option(v.allFinite(), option, "a value that is not finite", "finite numbers",
                   "Check the values.");
  };
  is_state(start.state, "`init`");
  is_state(start.sd, "`init_sd`");
  require_option((start.sd.array() >= 0).all(), "`init_sd`", "a negative value", "values >= 0",
                 "A standard deviation is not negative.");
  require_option(o.draws >= 2, "`draws`", fmt::format("{}", o.draws), "a whole number >= 2",
                 "A band needs at least two trajectories; the paper uses 1000.");
  require_option(o.level > 0 && (1 + o.level) / 2 < 1, "`level`", number(o.level),
                 "a number between 0 and 1", "0.95 is usual.");
  require_option(o.bound_factor > 0, "`bound`", number(o.bound_factor), "a number > 0",
                 "The default is 1e6.");
  require_option(o.attempts_per_draw >= 1, "`attempts`", fmt::format("{}", o.attempts_per_draw),
                 "a whole number >= 1", "The default is 20.");
  require_option(o.samples >= 0 && o.samples <= 1000, "samples", fmt::format("{}", o.samples),
                 "a whole number from 0 to 1000", "A figure shows a few.");
  require_option(!o.times.empty(), "output times", "none", "at least one after the start",
                 "Give a larger `until` or a smaller `step`.");
  double before = start.time;
  for (const double t : o.times) {
    require_option(t > before && std::isfinite(t), "output times",
                   fmt::format("{} after {}", t, before), "increasing times after the start",
                   "Check `from`, `until` and `at`.");
    before = t;
  }
  if (model.kind == ModelKind::flow && o.solver) check(*o.solver);
  require_option(model.kind == ModelKind::flow || !o.transition_noise, "`transition_noise`",
                 "a map", "a flow", "A map has no solver whose error it would stand for.");
  require_option(!o.transition_noise || !model.trajectory || !model.trajectory->forcing.present(),
                 "`transition_noise`", "a model with random forcing",
                 "a model that explains its data", "Leave it out: the forcing is larger.");
  if (model.kind == ModelKind::map)
    for (const double t : o.times) {
      const double iterations = (t - start.time) / model.step;
      require_option(
          std::abs(iterations - std::round(iterations)) <= 1e-6 * std::max(1.0, iterations),
          "output times", fmt::format("t = {}, {:.6g} iterations after the start", t, iterations),
          "whole numbers of iterations",
          "The model is a map: choose a `step` that is a multiple of the data's spacing.");
    }
  if (o.noise) {
    is_state(*o.noise, "`noise`");
    require_option((o.noise->array() >= 0).all(), "`noise`", "a negative value", "values >= 0",
                   "A standard deviation is not negative.");
  }
  if (o.masks == MaskSource::enumerated) {
    require_option(atoms > 0, "`masks`", "enumerated, of a model whose draws cannot be listed",
                   "at most 2^20 masks, one per trajectory, or replicates", "Use `masks=sampled`.");
    require_option((start.sd.array() == 0).all() && !o.transition_noise, "`masks`",
                   "enumerated, with a random start or transition noise", "a point start",
                   "Use `masks=sampled`.");
  }
  const double trajectories =
      o.masks == MaskSource::enumerated ? static_cast<double>(atoms) : o.draws;
  if (bands_of(model, o) != Bands::sd)
    require_option(
        8.0 * trajectories * static_cast<double>(o.times.size()) * model.dimension() <=
            kMaxStoredBytes,
        "quantiles", fmt::format("{:.0f} draws at {} times", trajectories, o.times.size()),
        "at most 8 GB of stored values", "Use `bands=sd`, fewer draws, or a larger `step`.");
}

/// Puts `order` in the order of `x`. It is nearly in order already when it was in order for the
/// time before: then insertion takes O(n). Chaos and sparse times can undo that; a sort takes over
/// then.
void reorder(std::vector<int>& order, const double* x) {
  const auto n = static_cast<std::ptrdiff_t>(order.size());
  std::ptrdiff_t moves = 0;
  for (std::ptrdiff_t i = 1; i < n; ++i) {
    const int item = order[static_cast<std::size_t>(i)];
    std::ptrdiff_t at = i;
    for (; at > 0 && x[order[static_cast<std::size_t>(at - 1)]] > x[item]; --at)
      order[static_cast<std::size_t>(at)] = order[static_cast<std::size_t>(at - 1)];
    order[static_cast<std::size_t>(at)] = item;
    moves += i - at;
    if (moves > 16 * n) {
      std::sort(order.begin(), order.end(), [x](int a, int b) { return x[a] < x[b]; });
      return;
    }
  }
}

/// For draws: linear interpolation between order statistics (type 7 of Hyndman & Fan 1996, NumPy's
/// default), a trajectory that was drawn w times counting w times. For probabilities: the smallest
/// x with P(X <= x) >= p.
class WeightedQuantiles {
 public:
  WeightedQuantiles(const std::vector<int>& order, const double* x, const double* weights,
                    double total, bool exact)
      : order_(order), x_(x), weights_(weights), total_(total), exact_(exact) {}

  /// To be asked in increasing order of p.
  double operator()(double p) {
    if (exact_) return value(p * total_ * (1 - 1e-12));
    const double position = p * (total_ - 1), below = std::floor(position);
    const double low = value(below);
    return position == below ? low : low + (position - below) * (value(below + 1) - low);
  }

 private:
  /// The smallest x that, with all below it, weighs more than the target.
  double value(double target) {
    while (at_ + 1 < order_.size() && !(sum_ + weights_[order_[at_]] > target))
      sum_ += weights_[order_[at_++]];
    return x_[order_[at_]];
  }
  const std::vector<int>& order_;
  const double *x_, *weights_;
  double total_, sum_ = 0;
  bool exact_;
  std::size_t at_ = 0;
};

/// The x with P(X + σ ε <= x) = p for draws X with weights and ε ~ N(0, 1): Newton's method on the
/// smooth distribution function, bisection where it leaves the bracket.
double noisy_quantile(double p, double sigma, std::span<const double> x,
                      std::span<const double> weights, double low, double high, double guess) {
  constexpr double kSqrtHalf = 0.70710678118654752, kDensity = 0.39894228040143268;
  for (int i = 0; i < 60; ++i) {
    double excess = 0, density = 0;  // Σ w (Φ(z) - p) and its derivative
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (weights[k] == 0) continue;
      const double z = (guess - x[k]) / sigma;
      excess += weights[k] * (0.5 * std::erfc(-z * kSqrtHalf) - p);
      if (std::abs(z) < 8) density += weights[k] * kDensity * std::exp(-0.5 * z * z) / sigma;
    }
    (excess > 0 ? high : low) = guess;
    const double newton = guess - excess / density;
    const double next = density > 0 && newton > low && newton < high ? newton : 0.5 * (low + high);
    if (std::abs(next - guess) <= 1e-9 * (std::abs(guess) + sigma)) return next;
    guess = next;
  }
  return guess;
}

/// Whether the noise is the model's own, which may follow the state.
bool is_models(const Vector& noise, const Model& model) {
  return noise.size() > 0 && noise.size() == model.noise.size() && noise == model.noise;
}

/// The standard deviation of the logarithm of an observation of variable i; 0 where the noise is
/// not that of the logarithm, or given.
double log_noise_sd(const Model& model, const ForecastOptions& options, Eigen::Index i) {
  return is_models(observation_noise(model, options), model) ? model.log_noise_sd(i) : 0;
}

struct Wide {
  int row, variable;
  double widest;  ///< over all times, in sd of the data
};

/// The variable whose draws spread more than kWide times as far as the data do and as their mean
/// has moved, by root mean squares over the times: some have left for where no data are. And the
/// first time of that.
std::optional<Wide> too_wide(const Forecast& f, const Vector& climatological_sd) {
  const Matrix widths = spread_of(f);
  for (int i = 0; i < f.mean.cols(); ++i) {
    const double sd = climatological_sd[i];
    if (!(sd > 0)) continue;
    double spread = 0, reach = 0;
    int first = 0;
    for (int t = 1; t < f.mean.rows(); ++t) {
      const double most = std::max(sd, std::abs(f.mean(t, i) - f.mean(0, i)));
      spread += widths(t, i) * widths(t, i);
      reach += most * most;
      if (first == 0 && widths(t, i) > kWide * most) first = t;
    }
    if (spread > kWide * kWide * reach) return Wide{first, i, widths.col(i).maxCoeff() / sd};
  }
  return std::nullopt;
}

/// The shares of the draws that are at rest in the second half, and that move there.
std::pair<double, double> kinds_of(const EnsembleSetting& s, const Ensemble& e, int rows) {
  constexpr int kFewest = 16;  // outputs in that half
  const double none = std::numeric_limits<double>::quiet_NaN();
  const int first = rows / 2, count = rows - first;
  if (count < kFewest || s.forced() || s.model.kind == ModelKind::map) return {none, none};
  const Vector sd = s.model.climatological_sd().cwiseQuotient(s.model.scaling.scale);
  const auto varies = static_cast<double>((sd.array() > 0).count());
  double rest = 0, moving = 0, all = 0;
  for (const StoredTrajectory& t : e.stored) {
    if (t.outputs < rows) continue;
    double square = 0;
    for (int i = 0; i < s.n; ++i) {
      if (!(sd[i] > 0)) continue;
      const Eigen::Map<const Eigen::ArrayXd> x(t.states + i * s.stride() + first, count);
      square += (x - x.mean()).square().mean() / (sd[i] * sd[i] * varies);
    }
    all += t.weight;
    if (square < kAtRest * kAtRest) rest += t.weight;
    if (square > kMoves * kMoves) moving += t.weight;
  }
  return all > 0 ? std::pair{rest / all, moving / all} : std::pair{none, none};
}

void fill_quantiles(const EnsembleSetting& s, const Ensemble& e, int rows, const Matrix& noise,
                    Forecast& f, const Observer& observer) {
  f.q_lower.resize(rows + 1, s.n);
  f.q_median.resize(rows + 1, s.n);
  f.q_upper.resize(rows + 1, s.n);
  const double tail = (1 - f.level) / 2;
  const bool exact = s.options.masks == MaskSource::enumerated;
  const auto size = e.stored.size();
  constexpr int chunk = 64;  // times gathered together: neighbours share cache lines and order
  const auto chunks = static_cast<std::size_t>((rows + chunk - 1) / chunk);
  const auto one_chunk = [&](std::size_t job) {
    const int i = static_cast<int>(job / chunks);
    const int begin = static_cast<int>(job % chunks) * chunk, end = std::min(rows, begin + chunk);
    // Trajectories that have ended weigh nothing and come last.
    std::vector<double> x(size * chunk, std::numeric_limits<double>::infinity());
    std::vector<double> weights(size * chunk, 0.0);
    std::vector<int> order(size);
    for (std::size_t k = 0; k < size; ++k) {
      order[k] = static_cast<int>(k);
      const StoredTrajectory& t = e.stored[k];
      for (int at = begin; at < std::min(end, t.outputs); ++at) {
        const std::size_t place = static_cast<std::size_t>(at - begin) * size + k;
        x[place] = t.states[i * s.stride() + at];
        weights[place] = t.weight;
      }
    }
    const double offset = s.model.scaling.offset[i], scale = s.model.scaling.scale[i];
    for (int at = begin; at < end; ++at) {
      const std::size_t first = static_cast<std::size_t>(at - begin) * size;
      reorder(order, x.data() + first);
      WeightedQuantiles quantile(order, x.data() + first, weights.data() + first,
                                 e.moments.count(at), exact);
      f.q_lower(at + 1, i) = offset + scale * quantile(tail);
      f.q_median(at + 1, i) = offset + scale * quantile(0.5);
      f.q_upper(at + 1, i) = offset + scale * quantile(1 - tail);
      if (f.observed_q_lower.size() == 0) continue;
      double sigma = noise(at + 1, i) / scale, lower = (f.q_lower(at + 1, i) - offset) / scale,
             upper = (f.q_upper(at + 1, i) - offset) / scale,
             middle = (f.q_median(at + 1, i) - offset) / scale;
      const double of_log = log_noise_sd(s.model, s.options, i);
      const auto in_log = [&](double v) {  // draws are positive but for a few that left the data
        return portable_log(std::max(offset + scale * v, 1e-9 * s.model.size[i]));
      };
      if (of_log > 0) {
        for (std::size_t k = first; k < first + size; ++k)
          if (std::isfinite(x[k])) x[k] = in_log(x[k]);
        sigma = of_log, lower = in_log(lower), upper = in_log(upper), middle = in_log(middle);
      }
      if (sigma > 0) {
        const auto now = std::span<const double>(x).subspan(first, size),
                   share = std::span<const double>(weights).subspan(first, size);
        const double reach = 9 * sigma;
        double least = middle, most = middle;
        for (std::size_t k = 0; k < size; ++k)
          if (share[k] > 0) least = std::min(least, now[k]), most = std::max(most, now[k]);
        const double c = normal_quantile((1 + f.level) / 2);
        lower = noisy_quantile(tail, sigma, now, share, least - reach, most + reach,
                               middle - root_sum_square(middle - lower, c * sigma));
        upper = noisy_quantile(1 - tail, sigma, now, share, least - reach, most + reach,
                               middle + root_sum_square(upper - middle, c * sigma));
      }
      f.observed_q_lower(at + 1, i) = of_log > 0 ? exponential_of(lower) : offset + scale * lower;
      f.observed_q_upper(at + 1, i) = of_log > 0 ? exponential_of(upper) : offset + scale * upper;
    }
  };
  parallel_for(s.options.threads, chunks * static_cast<std::size_t>(s.n), one_chunk,
               [&](std::size_t) { observer("forecasting", 1); });
}

/// The band as CalibrationPart has it; `noise` of an observation at each time, or none.
void calibrate(const EnsembleSetting& s, const Matrix& noise, const Forecast& f, Matrix& lower,
               Matrix& upper) {
  const CalibrationPart& calibration = *s.model.calibration;
  for (Eigen::Index t = 1; t < f.mean.rows(); ++t)
    for (int i = 0; i < s.n; ++i) {
      const Reach reach = reach_of(f, t, i, noise.size() > 0 ? noise(t, i) : 0);
      const double floor = kCalibrationFloor * s.model.size[i],
                   factor =
                       calibration.factor(f.times[static_cast<std::size_t>(t)] - s.start.time, i);
      lower(t, i) = reach.centre - factor * (reach.below + floor);
      upper(t, i) = reach.centre + factor * (reach.above + floor);
    }
}

/// The band of an observation: both reaches in quadrature, that of the state as calibrated; of
/// noise of the logarithm that of u exp(± c s).
void fill_observed(const EnsembleSetting& s, const Matrix& noise, Forecast& f) {
  const double c = normal_quantile((1 + f.level) / 2);
  f.observed_lower.resize(f.mean.rows(), f.mean.cols());
  f.observed_upper.resize(f.mean.rows(), f.mean.cols());
  for (int i = 0; i < s.n; ++i) {
    const double of_log = log_noise_sd(s.model, s.options, i);
    for (Eigen::Index t = 0; t < f.mean.rows(); ++t) {
      const bool quantiles = f.bands == Bands::quantiles;
      const double u = centre_of(f)(t, i), scale = quantiles ? 1 : c;
      Reach reach = reach_of(f, t, i, noise(t, i));
      Reach state = reach_of(f, t, i, 0);
      if (f.calibrated && !s.model.calibration->observed) {
        state = {u, (u - f.lower(t, i)) / scale, (f.upper(t, i) - u) / scale};
        reach = {u, root_sum_square(state.below, c / scale * noise(t, i)),
                 root_sum_square(state.above, c / scale * noise(t, i))};
      }
      if (of_log > 0 && u > 0) {
        reach.below = root_sum_square(state.below, (u - u * exponential_of(-c * of_log)) / scale);
        reach.above = root_sum_square(state.above, (u * exponential_of(c * of_log) - u) / scale);
      }
      f.observed_lower(t, i) = u - scale * reach.below;
      f.observed_upper(t, i) = u + scale * reach.above;
    }
  }
}

/// 1 - P(blow-up by each output time).
std::vector<double> fraction_alive(const Ensemble& e, const std::vector<double>& times) {
  std::vector<BlowUpRecord> ends = e.blow_ups;
  std::stable_sort(ends.begin(), ends.end(),
                   [](const BlowUpRecord& a, const BlowUpRecord& b) { return a.time < b.time; });
  std::vector<double> alive;
  double gone = 0;
  std::size_t next = 0;
  for (const double t : times) {
    for (; next < ends.size() && ends[next].time <= t; ++next) gone += ends[next].weight;
    alive.push_back(e.tried_weight > 0 ? std::max(0.0, 1 - gone / e.tried_weight) : 1);
  }
  return alive;
}

/// The signal in model units, or an Error where it does not belong to the model or does not reach.
std::shared_ptr<const InputSignal> checked_inputs(const Model& model, const ForecastOptions& o,
                                                  double start) {
  const auto columns = static_cast<Eigen::Index>(model.inputs.measured());
  if (columns == 0) return nullptr;
  const std::string names = fmt::format(
      "{}", fmt::join(model.inputs.names.begin(), model.inputs.names.begin() + columns, ", "));
  const double end = o.times.back();
  require_option(o.inputs.has_value(), "forecast of a driven system", "no inputs",
                 fmt::format("the future of {}, t = {:.6g} … {:.6g}", names, start, end),
                 "Give a table with a time column and these: `drive` FILE.");
  InputSignal given = *o.inputs;
  require_option(given.values.cols() == columns && !given.times.empty(), "inputs",
                 fmt::format("{} columns", given.values.cols()), fmt::format("{}", columns),
                 "Give all inputs.");
  const double ahead = given.times.front() - start;
  if (start == model.last_time && ahead > 0 && ahead <= 1.5 * model.step &&
      model.inputs.last.size() == columns) {
    // A table that goes on one row after the data.
    given.times.insert(given.times.begin(), start);
    given.values.conservativeResize(given.values.rows() + 1, columns);
    given.values.bottomRows(given.values.rows() - 1) = o.inputs->values;
    given.values.row(0) = model.inputs.last.transpose();
  }
  const double usual = given.times.size() > 1 ? given.times[given.times.size() - 1] -
                                                    given.times[given.times.size() - 2]
                                              : 0;
  const double slack = 1e-9 * std::max(1.0, std::abs(end));
  require_option(
      given.times.front() <= start + slack && given.times.back() + usual >= end - slack, "inputs",
      fmt::format("t = {:.6g} … {:.6g}", given.times.front(), given.times.back()),
      fmt::format("at least t = {:.6g} … {:.6g}", start, end),
      given.times.front() > start + slack
          ? "A forecast needs the inputs of all its times: give a table that begins earlier."
          : "A forecast needs the inputs of all its times: give a longer table or a smaller "
            "`until`.");
  for (double& t : given.times) t /= model.scaling.time;
  for (Eigen::Index j = 0; j < columns; ++j)
    given.values.col(j) =
        (given.values.col(j).array() - model.inputs.offset[j]) / model.inputs.scale[j];
  return std::make_shared<const InputSignal>(std::move(given));
}

EnsembleSetting make_setting(const Model& model, const ForecastOptions& o,
                             const Posterior& posterior) {
  const ForecastStart start = forecast_start(model, o);
  check_options(model, o, start, posterior.atoms());
  SolverOptions solver = o.solver.value_or(default_solver(model));
  solver.bound = o.bound_factor * model.data_scale;
  const double unit = model.scaling.time;  // the forecast runs in model time
  if (model.kind == ModelKind::map) {
    solver.method = SolverMethod::iterate;
    solver.fixed_step = model.step;
  }
  solver.fixed_step /= unit;
  solver.first_step /= unit;
  solver.max_step = std::min(solver.max_step / unit, SolverOptions{}.max_step);
  std::vector<double> times = o.times;
  double before = start.time / unit;
  for (double& t : times) {
    t /= unit;
    if (!(t > before) || !std::isfinite(t))
      throw_data({"output times in the model's unit of time, " + format_number(unit),
                  format_number(t) + " after " + format_number(before),
                  "finite times that increase",
                  "The data were of another time scale: give other times, or fit again."});
    before = t;
  }
  const bool continues = !o.init && !o.init_sd && (!o.from || *o.from == model.last_time);
  return {model,
          o,
          posterior,
          start,
          solver,
          model.dimension(),
          static_cast<int>(times.size()),
          start.time / unit,
          times,
          continues,
          checked_inputs(model, o, start.time)};
}

}  // namespace

ForecastStart forecast_start(const Model& model, const ForecastOptions& o) {
  ForecastStart start;
  start.time = o.from.value_or(o.init ? 0.0 : model.last_time);
  start.state = o.init.value_or(model.last_state);
  start.sd = o.init_sd ? *o.init_sd
             : !o.init && model.last_state_sd &&
                     o.masks != MaskSource::enumerated  // of all masks from one start
                 ? *model.last_state_sd
                 : Vector(Vector::Zero(model.dimension()));
  return start;
}

SolverOptions default_solver(const Model& model) {
  SolverOptions solver;
  if (!model.polynomial()) return solver;
  // A thousandth of the least relative uncertainty among the coefficients.
  double least = 1e-2;
  if (const CoefficientSet& best = model.polynomial()->sets.front(); best.covariance.size() > 0) {
    for (Eigen::Index c = 0; c < best.theta.size(); ++c)
      least = std::min(least, std::sqrt(best.covariance(c, c)) / std::abs(best.theta[c]));
  } else {
    const PolynomialPosterior::Coefficients all = polynomial_posterior(model).coefficients();
    for (Eigen::Index c = 0; c < all.mean.size(); ++c)
      if (all.probability.data()[c] > 0)
        least = std::min(least, all.sd.data()[c] / std::abs(all.mean.data()[c]));
  }
  solver.rtol = solver.atol = std::clamp(1e-3 * least, 1e-13, 1e-6);
  return solver;
}

namespace {

constexpr int kTriedDraws = 8, kLooks = 64;  ///< by which tolerances are checked, and at how many
                                             ///< times
constexpr double kShows = 0.1;               ///< of the spread: an error that shows
constexpr double kNarrow = 1e-4;             ///< of the data's sd: a spread that nobody draws

/// Whether trajectories are moved, before their spread is that of the data, by more than a part of
/// it, or some blow up with one of the tolerances alone. `fine` has the spread.
bool moved(const EnsembleSetting& s, const Ensemble& rough, const Ensemble& fine) {
  const std::size_t count = std::min(rough.samples.size(), fine.samples.size());
  if (count < 2) return false;
  const Vector sd = s.model.climatological_sd().cwiseQuotient(s.model.scaling.scale);
  const auto varies = static_cast<double>((sd.array() > 0).count());
  for (int t = 0; t < s.times; ++t) {
    double spread2 = 0;
    bool shows = false;
    for (int i = 0; i < s.n; ++i) {
      double sum = 0, squares = 0, apart = 0, draws = 0;
      for (std::size_t k = 0; k < count; ++k) {
        const bool ended = rough.samples[k].outputs <= t;
        if (ended != (fine.samples[k].outputs <= t)) return true;
        if (ended) continue;
        const auto at = static_cast<std::size_t>(i * s.stride() + t);
        const double u = fine.samples[k].states[at], d = u - rough.samples[k].states[at];
        sum += u, squares += u * u, apart += d * d, ++draws;
      }
      if (draws < 2) return shows;
      const double variance = std::max(0.0, squares - sum * sum / draws) / (draws - 1);
      if (sd[i] > 0) spread2 += variance / (sd[i] * sd[i] * varies);
      shows = shows ||
              std::sqrt(apart / draws) > kShows * std::max(std::sqrt(variance), kNarrow * sd[i]);
    }
    if (spread2 > kHorizon * kHorizon) return false;
    if (shows) return true;
  }
  return false;
}

/// Whether a variable falls below ten of that tolerance and returns: beyond the time at which draws
/// part, too, where no comparison tells.
bool lost(const EnsembleSetting& s, const Ensemble& fine, double atol) {
  for (const SampleTrajectory& sample : fine.samples)
    for (int i = 0; i < s.n; ++i)
      if (falls_and_returns(std::span(sample.states)
                                .subspan(static_cast<std::size_t>(i * s.stride()),
                                         static_cast<std::size_t>(sample.outputs)),
                            10 * atol))
        return true;
  return false;
}

SolverOptions checked_solver(const EnsembleSetting& s) {
  const ForecastOptions& o = s.options;
  if (o.check_stiffness && s.model.polynomial() && !o.transition_noise &&
      is_stiff(s.driven(s.posterior.point_field()), s.t0, s.model.scaling.to_model(s.start.state),
               s.output_times.back(), s.solver)) {
    SolverOptions stiff = s.solver;
    stiff.method = SolverMethod::radau;
    return stiff;
  }
  if (!o.check_tolerances || !s.model.polynomial() || s.solver.method != SolverMethod::rk45 ||
      o.transition_noise || o.masks != MaskSource::sampled)
    return s.solver;
  ForecastOptions few = o;
  few.draws = few.samples = kTriedDraws;
  few.blow_up = BlowUp::until;
  few.bands = Bands::sd;
  few.threads = 1;
  EnsembleSetting tried{s.model, few,  s.posterior, s.start,     s.solver, s.n,
                        kLooks,  s.t0, {},          s.continues, s.inputs};
  for (int k = 1; k <= kLooks; ++k)
    tried.output_times.push_back(s.t0 + (s.output_times.back() - s.t0) * k / kLooks);
  Ensemble before = run_sampled(tried, ignore_progress);
  SolverOptions enough = s.solver;
  for (const auto& [relative, absolute] :
       {std::pair{0.1, 1e-8}, std::pair{0.1, 1e-16}, std::pair{0.01, 1e-16}}) {
    tried.solver.rtol = std::max(relative * s.solver.rtol, 1e-13);
    tried.solver.atol = absolute * s.solver.atol;
    Ensemble now = run_sampled(tried, ignore_progress);
    if (!moved(tried, before, now) && !lost(tried, now, enough.atol)) break;
    enough = tried.solver;
    before = std::move(now);
  }
  return enough;
}

/// Fills low and high: at each output time the values of the data, of the start, by kTail of its
/// sd, and of the run of the most probable equations until then, and kFarRanges times the range of
/// the data.
void keep_near(EnsembleSetting& s) {
  constexpr double kTail = 10;
  const auto& observed = s.model.observed;
  if (!observed || observed->low.size() == 0) return;
  const Eigen::Index n = observed->low.size();  // those that are measured
  const Scaling& scaling = s.model.scaling;
  const auto in_model = [&](const Vector& u) {
    return Vector((u.head(n) - scaling.offset.head(n)).cwiseQuotient(scaling.scale.head(n)));
  };
  Vector low = in_model(observed->low), high = in_model(observed->high);
  const Vector far = kFarRanges * (high - low);
  low = low.cwiseMin(in_model(s.start.state - kTail * s.start.sd));
  high = high.cwiseMax(in_model(s.start.state + kTail * s.start.sd));
  const Solution run = solve(s.driven(s.posterior.point_field()), s.t0,
                             scaling.to_model(s.start.state), s.output_times, s.solver);
  constexpr double kAny = std::numeric_limits<double>::infinity();
  s.low.resize(s.times, n);
  s.high.resize(s.times, n);
  for (int t = 0; t < s.times; ++t)
    for (Eigen::Index i = 0; i < n; ++i) {
      const bool known = t < run.outputs && far[i] > 0;
      if (known)
        low[i] = std::min(low[i], run.states(t, i)), high[i] = std::max(high[i], run.states(t, i));
      s.low(t, i) = known ? low[i] - far[i] : -kAny;
      s.high(t, i) = known ? high[i] + far[i] : kAny;
    }
}

/// How far the start is from the surface that the rows lie on, in units of their noise, where the
/// most probable equations keep it; NaN where they do not, or there is none.
double off_surface(const EnsembleSetting& s) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Model& model = s.model;
  if (model.inputs.size() > 0 || model.kind == ModelKind::map || model.noise.size() == 0)
    return none;
  const Matrix& rows = model.observed->sample;
  const auto surface = surface_of(rows, model.noise, model.climatological_sd());
  if (!surface) return none;
  // The rows, moved as the start is from the nearest of them.
  Eigen::Index nearest = 0;
  ((rows.rowwise() - s.start.state.transpose()) *
   model.climatological_sd().cwiseInverse().asDiagonal())
      .rowwise()
      .squaredNorm()
      .minCoeff(&nearest);
  const Vector shift = s.start.state - rows.row(nearest).transpose();
  const VectorField field = s.posterior.point_field();
  double across = 0, all = 0;
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    const Vector u = rows.row(k).transpose() + shift, v = model.scaling.to_model(u);
    Vector rate(u.size());
    field(0, v.data(), rate.data());
    rate = rate.cwiseProduct(model.scaling.scale);
    const Vector slope = surface->slope(u);
    across += std::pow(slope.dot(rate), 2);
    all += slope.cwiseProduct(rate).squaredNorm();
  }
  return across < kKept * kKept * all ? surface->distance(s.start.state) : none;
}

/// Trajectories are bounded in the model's units; in the user's, or squared, they may overflow all
/// the same.
void check_finite(const Forecast& f) {
  for (const Matrix* part :
       {&f.mean, &f.sd, &f.lower, &f.upper, &f.q_lower, &f.q_median, &f.q_upper, &f.observed_lower,
        &f.observed_upper, &f.observed_q_lower, &f.observed_q_upper})
    for (Eigen::Index t = 0; t < part->rows(); ++t)
      for (Eigen::Index i = 0; i < part->cols(); ++i)
        if (!std::isfinite((*part)(t, i)))
          throw_data({"forecast",
                      fmt::format("a mean or band of {} that overflows at t = {:g}",
                                  f.variables[static_cast<std::size_t>(i)],
                                  f.times[static_cast<std::size_t>(t)]),
                      "finite numbers",
                      "Forecast a shorter time (`until`), give a smaller `bound`, or fit again "
                      "with columns in units in which their values are near 1."});
}

/// Bands of what is positive end at 0, which takes nothing from what they hold.
void end_at_zero(Forecast& f, const Model& model) {
  for (Eigen::Index i = 0; i < static_cast<Eigen::Index>(f.variables.size()); ++i)
    if (model.is_positive(i))
      for (Matrix* part : {&f.mean, &f.lower, &f.q_lower, &f.q_median, &f.q_upper,
                           &f.observed_lower, &f.observed_q_lower})
        if (part->size() > 0) part->col(i) = part->col(i).cwiseMax(0.0);
}

/// Of an embedding the measured variable alone.
void keep_measured(Forecast& f, const Model& model) {
  const Eigen::Index columns = model.measured();
  f.variables = model.measured_variables();
  for (Matrix* part :
       {&f.mean, &f.sd, &f.lower, &f.upper, &f.q_lower, &f.q_median, &f.q_upper, &f.observed_lower,
        &f.observed_upper, &f.observed_q_lower, &f.observed_q_upper})
    if (part->size() > 0) *part = Matrix(part->leftCols(columns));
  for (Matrix& sample : f.samples) sample = Matrix(sample.leftCols(columns));
}

double horizon(const Forecast& f, const Vector& sd) {
  const auto varies = static_cast<double>((sd.array() > 0).count());
  const Matrix spread = spread_of(f);
  for (Eigen::Index t = 0; t < spread.rows(); ++t) {
    double square = 0;
    for (Eigen::Index i = 0; i < sd.size(); ++i)
      if (sd[i] > 0) square += std::pow(spread(t, i) / sd[i], 2) / varies;
    if (square > kHorizon * kHorizon) return f.times[static_cast<std::size_t>(t)] - f.times.front();
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

SolverOptions checked_solver(const Posterior& posterior, const Model& model,
                             const ForecastOptions& options) {
  const EnsembleSetting s = make_setting(model, options, posterior);
  SolverOptions solver = options.solver.value_or(default_solver(model));
  const SolverOptions finer = checked_solver(s);
  solver.method = finer.method;
  solver.rtol = finer.rtol;
  solver.atol = finer.atol;
  return solver;
}

std::string_view status_name(ForecastStatus status) {
  switch (status) {
    case ForecastStatus::complete: return "complete";
    case ForecastStatus::too_few: return "too_few";
    case ForecastStatus::unstable: return "unstable";
    case ForecastStatus::wide: return "wide";
    case ForecastStatus::far: return "far";
    case ForecastStatus::off_surface: return "off_surface";
    case ForecastStatus::kinds: return "kinds";
  }
  return "";
}

bool is_away(const DistanceFromRows& d) {
  return d.nearest > kFarRows * d.usual && d.nearest > kAwaySd;
}

std::string away_in_words(const DistanceFromRows& d) {
  return fmt::format(
      "the start is {:.2g} standard deviations from the nearest row that the equations were learnt "
      "from; such rows are {:.2g} from each other at most",
      d.nearest, d.usual);
}

Bands default_bands(const Model& model) {
  const bool quantiles = model.calibration ? model.calibration->bands == Bands::quantiles
                                           : model.polynomial() != nullptr;
  return quantiles ? Bands::quantiles : Bands::both;
}

const Matrix& centre_of(const Forecast& f) {
  return f.bands == Bands::quantiles ? f.q_median : f.mean;
}

Matrix spread_of(const Forecast& f) {
  if (f.bands != Bands::quantiles) return f.sd;
  return (f.q_upper - f.q_lower) / (2 * band_factor(f.level));
}

Reach reach_of(const Forecast& f, Eigen::Index row, Eigen::Index i, double noise) {
  if (f.bands != Bands::quantiles) {
    const double sd = root_sum_square(f.sd(row, i), noise);
    return {f.mean(row, i), sd, sd};
  }
  const double middle = f.q_median(row, i), more = band_factor(f.level) * noise;
  return {middle, root_sum_square(middle - f.q_lower(row, i), more),
          root_sum_square(f.q_upper(row, i) - middle, more)};
}

double band_factor(double level) { return normal_quantile((1 + std::min(level, 1 - 0x1p-38)) / 2); }

Vector observation_noise(const Model& model, const ForecastOptions& options) {
  if (options.noise) return (options.noise->array() > 0).any() ? *options.noise : Vector();
  // Round-off is not what makes an observation.
  return model.noise.size() > 0 &&
                 (model.noise.array() > kNoNoise * model.climatological_sd().array()).any()
             ? model.noise
             : Vector();
}

Vector observation_noise(const Model& model, const ForecastOptions& options, const Vector& u) {
  const Vector noise = observation_noise(model, options);
  return is_models(noise, model) ? model.noise_at(u) : noise;
}

Forecast forecast(const Model& model, const ForecastOptions& options, const Observer& observer) {
  Forecast f = forecast(*make_posterior(model, options.mask), model, options, observer);
  if (model.embedding) keep_measured(f, model);
  return f;
}

Forecast forecast(const Posterior& posterior, const Model& model, const ForecastOptions& options,
                  const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  EnsembleSetting s = make_setting(model, options, posterior);
  s.solver = checked_solver(s);
  const bool exact = options.masks == MaskSource::enumerated;
  if (model.polynomial()) keep_near(s);
  const Ensemble total = exact ? run_enumerated(s, observer) : run_sampled(s, observer);

  Forecast f;
  f.variables = model.variables;
  f.time_name = model.time_name;
  f.calendar = model.calendar;
  f.level = options.level;
  f.continues = !options.init && s.start.time == model.last_time;
  f.draws = exact ? total.tried : options.draws;
  f.kept = total.kept;
  f.discarded = static_cast<long>(total.blow_ups.size());
  f.integrated = total.integrated;
  f.method = s.solver.method;
  f.rtol = s.solver.rtol;
  f.atol = s.solver.atol;
  f.below_zero = total.below_zero;
  double lost = 0;
  for (const BlowUpRecord& b : total.blow_ups) {
    f.blow_up_times.push_back(b.time);
    lost += b.weight;
  }
  f.discard_probability = total.tried_weight > 0 ? lost / total.tried_weight : 0;

  // Times reached by two draws at least; with `discard` that is all of them or none.
  const double least = exact ? 1e-300 : 2;
  int rows = 0;
  while (rows < s.times && total.moments.count(rows) >= least) ++rows;
  if (exact && total.kept_weight < 1.0 / options.attempts_per_draw) {
    f.status = ForecastStatus::too_few;
    f.reason = fmt::format(
        "masks with a probability of only {:.3g} survive: the model blows up too "
        "often; forecast a shorter time (`until`), use `blow_up=until`, or fit "
        "again with another degree or dropout rate",
        total.kept_weight);
  } else if (!exact && total.kept < options.draws && total.below_zero > f.discarded) {
    f.status = ForecastStatus::too_few;
    f.reason = fmt::format(
        "only {} of {} trajectories stay positive in {} attempts: the equations do not keep what "
        "is known of the variables; forecast a shorter time (`until`), or fit without `positive`",
        total.kept, options.draws, total.tried);
  } else if (!exact && total.kept < options.draws) {
    f.status = ForecastStatus::too_few;
    f.reason = fmt::format(
        "only {} of {} trajectories survive {} attempts: the model blows up too often; forecast a "
        "shorter time (`until`), use `blow_up=until`, or fit again with another degree or dropout "
        "rate",
        total.kept, options.draws, total.tried);
  } else if (rows < s.times) {
    f.status = ForecastStatus::too_few;
    f.reason = fmt::format(
        "no two trajectories are alive after {}; later times are left out",
        moment_text(model.calendar,
                    rows > 0 ? options.times[static_cast<std::size_t>(rows - 1)] : s.start.time));
  } else if (total.below_zero > total.kept) {
    f.status = ForecastStatus::unstable;
    f.reason = fmt::format(
        "{} of {} trajectories went below 0, and the band is that of the others; the equations do "
        "not keep what is known of the variables: forecast a shorter time (`until`), or fit more "
        "rows or a lower `degree`",
        total.below_zero, total.tried);
  } else if (model.polynomial() && f.discard_probability > kMostBlowUps) {
    f.status = ForecastStatus::unstable;
    f.reason = fmt::format(
        "{:.0f} % of the trajectories blew up, the first at {}, and the band is that of the "
        "others; the data do not hold these equations there: forecast a shorter time (`until`), or "
        "fit more rows or a lower `degree`",
        100 * f.discard_probability,
        moment_text(model.calendar,
                    *std::min_element(f.blow_up_times.begin(), f.blow_up_times.end()), 4));
  } else {
    f.reason = fmt::format("{} trajectories, {} blew up", total.kept, f.discarded);
  }

  const double c = normal_quantile((1 + options.level) / 2);
  const Bands bands = bands_of(model, options);
  f.bands = bands == Bands::quantiles ? Bands::quantiles : Bands::sd;
  f.times.push_back(s.start.time);
  f.times.insert(f.times.end(), options.times.begin(), options.times.begin() + rows);
  f.mean.resize(rows + 1, s.n);
  f.sd.resize(rows + 1, s.n);
  f.mean.row(0) = s.start.state.transpose();
  f.sd.row(0) = s.start.sd.transpose();
  f.alive = fraction_alive(total, f.times);
  for (int t = 0; t < rows; ++t) {
    for (int i = 0; i < s.n; ++i) {
      const double scale = model.scaling.scale[i];
      f.mean(t + 1, i) = model.scaling.offset[i] + scale * total.moments.mean(i, t);
      f.sd(t + 1, i) = scale * (exact ? total.moments.exact_sd(i, t) : total.moments.sd(i, t));
    }
  }
  Matrix noise;  // of an observation at each time; empty where none is known
  if (observation_noise(model, options).size() > 0) {
    noise.resize(f.mean.rows(), f.mean.cols());
    for (Eigen::Index t = 0; t < noise.rows(); ++t)
      noise.row(t) = observation_noise(model, options, f.mean.row(t).transpose()).transpose();
  }
  if (bands != Bands::sd) {
    // Those of an observation take ten times as long as the rest, and are for those who ask.
    if (noise.size() > 0 && options.noise)
      f.observed_q_lower = f.observed_q_upper = Matrix::Zero(rows + 1, s.n);
    fill_quantiles(s, total, rows, noise, f, observer);
    f.q_median.row(0) = f.mean.row(0);
    f.q_lower.row(0) = f.mean.row(0) - c * f.sd.row(0);
    f.q_upper.row(0) = f.mean.row(0) + c * f.sd.row(0);
  }
  f.lower = f.bands == Bands::quantiles ? f.q_lower : Matrix(f.mean - c * f.sd);
  f.upper = f.bands == Bands::quantiles ? f.q_upper : Matrix(f.mean + c * f.sd);
  const auto& calibration = model.calibration;
  f.calibrated = options.calibrated && calibration && calibration->bands == f.bands &&
                 std::abs(calibration->level - options.level) < 1e-9 &&
                 (!calibration->observed || noise.size() > 0);
  if (f.calibrated && !calibration->observed) calibrate(s, {}, f, f.lower, f.upper);
  if (noise.size() > 0) fill_observed(s, noise, f);
  if (f.calibrated && calibration->observed)
    calibrate(s, noise, f, f.observed_lower, f.observed_upper);
  if (f.observed_q_lower.size() > 0) {
    f.observed_q_lower.row(0) = f.observed_lower.row(0);
    f.observed_q_upper.row(0) = f.observed_upper.row(0);
  }
  if (f.status == ForecastStatus::complete && model.polynomial())
    if (const auto w = too_wide(f, model.climatological_sd())) {
      f.status = ForecastStatus::wide;
      f.reason = fmt::format(
          "from {} on the trajectories of {} spread {:.2g} times as far as the data do, so that "
          "the band says nothing; forecast a shorter time (`until`), or fit more rows or a lower "
          "`degree`",
          moment_text(model.calendar, f.times[static_cast<std::size_t>(w->row)]),
          f.variables[static_cast<std::size_t>(w->variable)], w->widest);
    }
  f.horizon = horizon(f, model.climatological_sd().head(model.measured()));
  if (model.polynomial() && options.init && model.observed)
    f.distance = distance_from(*model.observed, s.start.state, model.climatological_sd());
  if (model.polynomial() && bands != Bands::sd && !exact)
    std::tie(f.at_rest, f.moving) = kinds_of(s, total, rows);
  if (f.distance) f.off_surface = off_surface(s);
  if (f.status == ForecastStatus::complete && f.off_surface > kOffSurface) {
    f.status = ForecastStatus::off_surface;
    f.reason = fmt::format(
        "all rows lie on one surface, which the equations keep, and the start is off it by {:.2g} "
        "times their noise: what draws such starts to it, or from it, no data have shown; start on "
        "it (`init`), or fit trajectories that come from elsewhere",
        f.off_surface);
  }
  if (f.status == ForecastStatus::complete && f.distance && is_away(*f.distance) &&
      f.distance->nearest > kFarSd) {
    f.status = ForecastStatus::far;
    f.reason = away_in_words(*f.distance) +
               ": what the equations do there no data have shown; start nearer to the data "
               "(`init`), or fit trajectories that go there";
  }
  if (f.status == ForecastStatus::complete && f.at_rest >= kOtherKind && f.moving >= kOtherKind) {
    f.status = ForecastStatus::kinds;
    f.reason = fmt::format(
        "{:.0f} % of the trajectories come to rest and {:.0f} % go on moving: the data do not tell "
        "which of them the system does; forecast a shorter time (`until`), or fit more rows",
        100 * f.at_rest, 100 * f.moving);
  }
  end_at_zero(f, model);
  check_finite(f);
  for (const SampleTrajectory& sample : total.samples) {
    observer("forecasting", 1);
    const int outputs = std::min(sample.outputs, rows);
    Matrix& states = f.samples.emplace_back(outputs + 1, s.n);
    states.row(0) = model.scaling.to_user(s.start_of(sample.index)).transpose();
    for (int t = 0; t < outputs; ++t)
      for (int i = 0; i < s.n; ++i)
        states(t + 1, i) =
            model.scaling.offset[i] +
            model.scaling.scale[i] * sample.states[static_cast<std::size_t>(i * s.stride() + t)];
    if (!model.positive.empty())
      for (int i = 0; i < s.n; ++i)
        if (model.is_positive(i)) states.col(i) = states.col(i).cwiseMax(0.0);
  }
  f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return f;
}

std::optional<Forecast> drawn_forecast(const Model& model, const ForecastOptions& options,
                                       const Observer& observer) {
  constexpr std::size_t kEnough = 240, kMostParts = 12;
  const std::size_t rows = options.times.size();
  const bool adaptive = !options.solver || options.solver->method == SolverMethod::rk45;
  if (rows == 0 || rows >= kEnough || model.kind == ModelKind::map || !adaptive ||
      options.transition_noise || options.mask != MaskChange::never)
    return std::nullopt;
  const std::size_t parts = std::min(kMostParts, (kEnough + rows - 1) / rows);
  ForecastOptions fine = options;
  fine.times.clear();
  double before = forecast_start(model, options).time;
  for (const double t : options.times) {
    for (std::size_t k = 1; k < parts; ++k) {
      const double between =
          before + (t - before) * static_cast<double>(k) / static_cast<double>(parts);
      if (between > (fine.times.empty() ? before : fine.times.back()) && between < t)
        fine.times.push_back(between);
    }
    fine.times.push_back(t);
    before = t;
  }
  return forecast(model, fine, observer);
}

SingleTrajectory single_trajectory(const Model& model, SingleField which,
                                   const ForecastOptions& options, const Observer& observer) {
  const auto owned = make_posterior(model);
  const Posterior& posterior = *owned;
  ForecastOptions one = options;  // no band: its limits do not apply
  one.bands = Bands::sd;
  one.masks = MaskSource::sampled;
  EnsembleSetting s = make_setting(model, one, posterior);
  s.solver = checked_solver(s);
  const VectorField chosen =
      s.driven(which == SingleField::mean ? posterior.mean_field() : posterior.point_field());
  const double span = s.output_times.back() - s.t0;
  const VectorField field(s.n, [&](double t, const double* u, double* dudt) {
    observer("forecasting", (t - s.t0) / span);
    chosen(t, u, dudt);
  });
  const Solution solution =
      solve(field, s.t0, model.scaling.to_model(s.start.state), s.output_times, s.solver);
  SingleTrajectory result{{s.start.time},
                          Matrix(solution.outputs + 1, s.n),
                          solution.status,
                          solution.reached * model.scaling.time};
  result.states.row(0) = s.start.state.transpose();
  for (int t = 0; t < solution.outputs; ++t) {
    result.times.push_back(options.times[static_cast<std::size_t>(t)]);
    result.states.row(t + 1) =
        model.scaling.to_user(solution.states.row(t).transpose()).transpose();
  }
  require_finite(result.states.allFinite(), "forecast",
                 "a trajectory that overflows in the units of the data",
                 "Forecast a shorter time (`until`), or give a smaller `bound`.");
  return result;
}

}  // namespace odecast
