#include "odecast/filter/filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "odecast/core/error.hpp"
#include "odecast/core/functions.hpp"
#include "odecast/forecast/forecast.hpp"

namespace odecast {
namespace {

constexpr int kMostParticleVariables = 6, kParticles = 1000, kMembers = 40;
/// Rows over which the surprise is averaged; above kWidened the ensemble is too narrow and is
/// widened by its root; above kLost for kPatience rows the filter has lost the system.
constexpr double kAveraged = 7, kWidened = 3, kLost = 4, kFound = 1.8, kMostSurprised = 100;
constexpr long kPatience = 10;
/// Of the particles one in a hundred is moved 8 times as far as the others, and one 64 times: so a
/// filter that has lost the system comes back.
constexpr double kFar = 8, kFarther = 64;
/// Fewer effective particles than that are no distribution.
constexpr double kFewest = 10;
/// Of the bandwidth that is best for a normal distribution: others have more than one heap (Musso,
/// Oudjane & Le Gland 2001).
constexpr double kNarrower = 0.5;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Streams of one row have numbers of their own.
std::uint64_t of_row(long row, Eigen::Index member = 0) {
  return (static_cast<std::uint64_t>(row) << 20) + static_cast<std::uint64_t>(member);
}

/// P(χ² > x) for a whole number of degrees of freedom, by its finite sums (Abramowitz & Stegun
/// 26.4.4, 26.4.5).
double chi_square_tail(double x, Eigen::Index freedom) {
  if (!(x > 0)) return 1;
  const double root = std::sqrt(x), density = exponential_of(-0.5 * x);
  if (freedom % 2 == 0) {
    double term = 1, sum = 1;
    for (Eigen::Index r = 2; r < freedom; r += 2) sum += term *= x / static_cast<double>(r);
    return density * sum;
  }
  double term = root, sum = freedom > 1 ? term : 0;
  for (Eigen::Index r = 3; r < freedom; r += 2) sum += term *= x / static_cast<double>(r);
  return std::erfc(root / std::sqrt(2.0)) + 0.7978845608028654 * density * sum;
}

double normal_below(double z) { return 0.5 * std::erfc(-z * 0.70710678118654752); }

FilterMethod method_of(const Model& model, const FilterOptions& options) {
  if (options.method != FilterMethod::automatic) return options.method;
  return model.dimension() <= kMostParticleVariables ? FilterMethod::particle
                                                     : FilterMethod::iterated;
}

Eigen::Index members_of(const Model& model, const FilterOptions& options) {
  if (options.members > 0) return options.members;
  return method_of(model, options) == FilterMethod::particle ? kParticles : kMembers;
}

/// A solver's error that no row shows: a thousandth of the least noise.
double tolerance_of(const Model& model, const Observing& observing, const FilterOptions& options) {
  const Vector scale = observing.H.cwiseAbs() * model.scaling.scale,
               noise = options.noise ? *options.noise : Vector(observing.H * model.noise);
  return std::clamp(1e-3 * noise.cwiseQuotient(scale).minCoeff(), 1e-10, 1e-4);
}

void check(const Model& model, const Observing& observing, const FilterOptions& o) {
  require_option(!model.embedding, "`filter`", "a model whose variables are made of one",
                 "a model of measured variables", "Fit the variables themselves.");
  require_option(o.members == 0 || (o.members >= 3 && o.members <= 1'000'000), "`members`",
                 fmt::format("{}", o.members), "a whole number from 3 to 1000000",
                 "The default is 1000 particles, or 40 members.");
  require_option(o.level > 0 && (1 + o.level) / 2 < 1, "`level`", fmt::format("{}", o.level),
                 "a number between 0 and 1", "0.95 is usual.");
  require_option(o.gate > 0 && o.gate < 0.5, "`gate`", fmt::format("{}", o.gate),
                 "a number between 0 and 0.5", "The default is 1e-6.");
  require_option(o.inflation >= 1 && o.inflation < 10, "`inflation`",
                 fmt::format("{}", o.inflation), "a number from 1 to 10", "The default is 1.01.");
  const auto columns = static_cast<Eigen::Index>(observing.columns.size());
  if (o.noise) {
    require_option(o.noise->size() == columns, "`noise`", fmt::format("{} values", o.noise->size()),
                   fmt::format("{}, one for each observed column", columns),
                   "Give them in the order of the columns.");
    require_option(o.noise->allFinite() && (o.noise->array() > 0).all(), "`noise`",
                   "a value that is not above 0", "standard deviations > 0",
                   "A filter weighs rows by their noise: without any the state is the row.");
    return;
  }
  const Vector noise = observation_noise(model, {});
  for (Eigen::Index j = 0; j < columns; ++j) {
    const bool is_variable =
        (observing.H.row(j).array() != 0).count() == 1 && observing.H.row(j).sum() == 1;
    require_option(is_variable && noise.size() > 0 && observing.H.row(j) * noise > 0, "`noise`",
                   fmt::format("none for {}, whose noise the model does not know",
                               observing.columns[static_cast<std::size_t>(j)]),
                   "the standard deviation of each observed column", "Give `noise`.");
  }
}

}  // namespace

Filter::Filter(const Model& model, Observing observing, const FilterOptions& options)
    : model_(model),
      observing_((check(model, observing, options), std::move(observing))),
      options_(options),
      method_(method_of(model, options)),
      carrier_(model, members_of(model, options), tolerance_of(model, observing_, options),
               options.seed, options.threads),
      members_(members_of(model, options), model.dimension()),
      weights_(Vector::Constant(members_.rows(), 1 / static_cast<double>(members_.rows()))) {
  const auto is_state = [&](const std::optional<Vector>& v, const char* option) {
    if (!v) return;
    require_option(v->size() == model.dimension() && v->allFinite(), option,
                   fmt::format("{} values", v->size()), fmt::format("{}", model.dimension()),
                   "Give one finite value per variable.");
  };
  is_state(options.init, "`init`");
  is_state(options.init_sd, "`init_sd`");
}

/// In model units: y = H (offset + scale v).
Seen Filter::seen_of(const Vector& values) const {
  const Vector noise =
      options_.noise
          ? *options_.noise
          : Vector(observing_.H * model_.noise_at(model_.scaling.to_user(moments().mean)));
  std::vector<Eigen::Index> rows;
  for (Eigen::Index j = 0; j < values.size(); ++j)
    if (std::isfinite(values[j])) rows.push_back(j);
  const auto p = static_cast<Eigen::Index>(rows.size());
  Seen seen{Matrix(p, model_.dimension()), Vector(p), Vector(p)};
  for (Eigen::Index k = 0; k < p; ++k) {
    const Eigen::Index j = rows[static_cast<std::size_t>(k)];
    seen.H.row(k) = observing_.H.row(j).cwiseProduct(model_.scaling.scale.transpose());
    seen.values[k] = values[j] - observing_.H.row(j).dot(model_.scaling.offset);
    seen.sd[k] = noise[j];
  }
  return seen;
}

EnsembleMoments Filter::moments() const {
  return method_ == FilterMethod::particle ? weighted_moments(members_, weights_)
                                           : ensemble_moments(members_);
}

void Filter::describe_state(Vector& mean, Vector& sd) const {
  const EnsembleMoments m = moments();
  mean = model_.scaling.to_user(m.mean);
  sd = model_.scaling.scale.cwiseProduct(m.covariance.diagonal().cwiseMax(0).cwiseSqrt());
}

void Filter::describe_bands(FilterRow& row) const {
  const double c = normal_quantile((1 + options_.level) / 2), tail = (1 - options_.level) / 2;
  row.lower = row.mean - c * row.sd;
  row.upper = row.mean + c * row.sd;
  if (method_ == FilterMethod::particle) {
    std::vector<std::pair<double, double>> one(index(members_.rows()));
    for (Eigen::Index i = 0; i < members_.cols(); ++i) {
      for (Eigen::Index k = 0; k < members_.rows(); ++k)
        one[index(k)] = {members_(k, i), weights_[k]};
      const double offset = model_.scaling.offset[i], scale = model_.scaling.scale[i];
      row.lower[i] = offset + scale * weighted_quantile(one, tail);
      row.upper[i] = offset + scale * weighted_quantile(one, 1 - tail);
    }
  }
  for (Eigen::Index i = 0; i < row.lower.size(); ++i)
    if (model_.is_positive(i)) row.lower[i] = std::max(row.lower[i], 0.0);
}

/// Members normal around a state in model units, all of the same weight.
void Filter::scatter(const Vector& mean, const Vector& sd) {
  for (Eigen::Index k = 0; k < members_.rows(); ++k) {
    Stream stream(options_.seed, Purpose::filter_start, of_row(rows_, k));
    for (Eigen::Index i = 0; i < members_.cols(); ++i)
      members_(k, i) = mean[i] + sd[i] * stream.normal();
  }
  weights_.setConstant(1 / static_cast<double>(members_.rows()));
}

/// Members from where the data of the model end, if their spread at the time is that of a forecast
/// that is worth something.
bool Filter::continues_to(double time, const InputSignal& inputs) {
  const double end = model_.last_time / model_.scaling.time;
  if (options_.init || options_.init_sd || options_.from || !(time > end) ||
      model_.last_state.size() != model_.dimension())
    return false;
  const Vector sd = model_.climatological_sd().cwiseQuotient(model_.scaling.scale);
  const auto posterior = make_posterior(model_);
  scatter(model_.scaling.to_model(model_.last_state),
          model_.last_state_sd ? Vector(model_.last_state_sd->cwiseQuotient(model_.scaling.scale))
                               : Vector(Vector::Zero(model_.dimension())));
  for (Eigen::Index k = 0; k < members_.rows(); ++k)
    if (const auto drawn = posterior->draw_start(options_.seed, static_cast<std::uint64_t>(k)))
      members_.row(k) = drawn->transpose();
  Stream kicks(options_.seed, Purpose::forcing, of_row(rows_));
  const double far = 1000 * model_.step / model_.scaling.time;
  if (time - end > far || carrier_.carry(members_, end, time, inputs, kicks) * 2 > members_.rows())
    return false;
  const EnsembleMoments m = ensemble_moments(members_);
  double square = 0, varies = 0;
  for (Eigen::Index i = 0; i < sd.size(); ++i)
    if (sd[i] > 0) square += m.covariance(i, i) / (sd[i] * sd[i]), ++varies;
  return square <= kHorizon * kHorizon * varies;
}

/// The state as it is before the first row: what was given, the end of the model's data, or what is
/// known of the system.
void Filter::begin(double time, const InputSignal& inputs) {
  time_ = time;
  if (options_.init) {
    if (options_.from) time_ = *options_.from / model_.scaling.time;
    scatter(model_.scaling.to_model(*options_.init),
            options_.init_sd ? Vector(options_.init_sd->cwiseQuotient(model_.scaling.scale))
                             : Vector(Vector::Zero(model_.dimension())));
  } else if (!continues_to(time, inputs)) {
    seek({});
  }
}

/// Members as far apart as the data of the model are, and what was seen now.
void Filter::seek(const Seen& seen) {
  Vector mean = model_.scaling.to_model(model_.last_state);
  if (model_.observed) {
    // The middle of the rows that the model has kept.
    const Matrix& rows = model_.observed->states;
    for (Eigen::Index i = 0; i < std::min(mean.size(), rows.cols()); ++i) {
      double sum = 0, count = 0;
      for (const double u : rows.col(i))
        if (std::isfinite(u)) sum += u, ++count;
      if (count > 0) mean[i] = (sum / count - model_.scaling.offset[i]) / model_.scaling.scale[i];
    }
  }
  scatter(mean, model_.climatological_sd().cwiseQuotient(model_.scaling.scale));
  if (seen.size() > 0) kalman_analysis(members_, seen);
}

void Filter::resample() {
  const Eigen::Index N = members_.rows(), n = members_.cols();
  if (effective_members(weights_) >= static_cast<double>(N) / 3) return;
  const Matrix root = covariance_root(weighted_moments(members_, weights_).covariance);
  const double bandwidth =
      kNarrower * power_of(static_cast<double>(N), -1 / (static_cast<double>(n) + 4));
  Stream uniform(options_.seed, Purpose::filter_resample, of_row(rows_));
  const std::vector<Eigen::Index> from = resampled(weights_, uniform.uniform());
  const Matrix before = members_;
  Vector z(n);
  for (Eigen::Index k = 0; k < N; ++k) {
    Stream stream(options_.seed, Purpose::filter_jitter, of_row(rows_, k));
    for (double& one : z) one = stream.normal();
    const double far = k % 100 == 37 ? kFar : k % 100 == 73 ? kFarther : 1;
    members_.row(k) = before.row(from[index(k)]) + (far * bandwidth * (root * z)).transpose();
  }
  weights_.setConstant(1 / static_cast<double>(N));
}

/// Bayes' rule for particles. Where hardly any of them is near the row, weights say nothing of what
/// lies between: then the ensemble's rule, for members as far apart as the row is surprising.
void Filter::analyse_particles(const Seen& seen, FilterRow& row) {
  Vector weights = weights_;
  row.log_score = weigh(members_, weights, seen);
  if (effective_members(weights) >= kFewest) {
    weights_ = std::move(weights);
    return;
  }
  Stream uniform(options_.seed, Purpose::filter_resample, of_row(rows_, 1));
  const Matrix before = members_;
  const std::vector<Eigen::Index> from = resampled(weights_, uniform.uniform());
  for (Eigen::Index k = 0; k < before.rows(); ++k) members_.row(k) = before.row(from[index(k)]);
  weights_.setConstant(1 / static_cast<double>(before.rows()));
  inflate_members(members_, std::sqrt(std::clamp(row.surprise, 1.0, kMostSurprised)));
  kalman_analysis(members_, seen);
}

/// Bayes' rule at a row; `before` are the members at the time `begin` of the row before.
void Filter::analyse(double begin, double time, const InputSignal& inputs, const Seen& seen,
                     const Matrix& before, FilterRow& row) {
  switch (method_) {
    case FilterMethod::particle: analyse_particles(seen, row); return;
    case FilterMethod::iterated: {
      const auto flow = [&](const Matrix& from) {
        Matrix to = from;
        Stream kicks(options_.seed, Purpose::forcing, of_row(rows_));  // the same in every round
        carrier_.carry(to, begin, time, inputs, kicks);
        return to;
      };
      if (!(time > begin)) break;  // nothing lies between
      Matrix moved = before;
      iterated_analysis(moved, flow, seen);
      Stream rotation(options_.seed, Purpose::filter_rotation, of_row(rows_));
      rotate_members(moved, rotation);
      members_ = flow(moved);
      inflate_members(members_, options_.inflation);
      return;
    }
    case FilterMethod::kalman:
    case FilterMethod::automatic: break;
  }
  kalman_analysis(members_, seen);
  Stream rotation(options_.seed, Purpose::filter_rotation, of_row(rows_));
  rotate_members(members_, rotation);
  inflate_members(members_, options_.inflation);
}

/// The measured inputs from the row before to this one, in model units.
InputSignal Filter::signal_to(double time, const Vector& inputs) {
  const InputPart& part = model_.inputs;
  if (part.measured() == 0) return {};
  const Vector now =
      (inputs - part.offset.head(part.measured())).cwiseQuotient(part.scale.head(part.measured()));
  const Vector before = std::exchange(last_inputs_, now);
  InputSignal signal{{time}, now.transpose()};
  if (before.size() > 0 && time > time_) {
    signal.times = {time_, time};
    signal.values.resize(2, now.size());
    signal.values << before.transpose(), now.transpose();
  }
  return signal;
}

/// How the values of a row compare with the forecast of them.
void Filter::expect(const Vector& values, const Seen& seen, FilterRow& row) const {
  const EnsembleMoments forecast = moments();
  const Innovation found = innovation(forecast, seen);
  row.surprise = found.surprise;
  row.log_score = found.log_score;
  for (Eigen::Index j = 0, k = 0; j < values.size(); ++j) {
    if (!std::isfinite(values[j])) continue;
    const double mean = seen.H.row(k).dot(forecast.mean);
    row.expected[j] = values[j] - seen.values[k] + mean;
    row.expected_sd[j] = found.sd[k];
    row.pit[j] = normal_below((seen.values[k] - mean) / found.sd[k]);
    if (method_ == FilterMethod::particle) {
      row.pit[j] = 0;
      for (Eigen::Index m = 0; m < members_.rows(); ++m)
        row.pit[j] +=
            weights_[m] *
            normal_below((seen.values[k] - seen.H.row(k).dot(members_.row(m))) / seen.sd[k]);
    }
    ++k;
  }
}

FilterRow Filter::update(double user_time, const Vector& values, const Vector& inputs) {
  const double time = user_time / model_.scaling.time;
  FilterRow row;
  row.time = user_time;
  row.expected = row.expected_sd = row.pit = Vector::Constant(values.size(), kNaN);
  const auto finish = [&] {
    describe_state(row.mean, row.sd);
    describe_bands(row);
    return row;
  };
  if (started_ && !(time >= time_)) {
    row.status = FilterStatus::late;
    describe_state(row.forecast, row.forecast_sd);
    return finish();
  }
  const InputSignal signal = signal_to(time, inputs);
  if (!started_) begin(time, signal);
  started_ = true;
  const Matrix before = members_;
  const double before_time = time_;
  if (time > time_) {
    Stream kicks(options_.seed, Purpose::forcing, of_row(rows_));
    row.blown_up = carrier_.carry(members_, time_, time, signal, kicks);
    time_ = time;
  }
  describe_state(row.forecast, row.forecast_sd);
  const Seen seen = seen_of(values);
  if (seen.size() == 0) {
    row.status = FilterStatus::unobserved;
  } else {
    expect(values, seen, row);
    const auto count = static_cast<double>(seen.size());
    if (options_.robust && rows_ > 0 && gated_ < 2 &&
        chi_square_tail(row.surprise * count, seen.size()) < options_.gate) {
      row.status = FilterStatus::gated;
      ++gated_;
    } else {
      gated_ = 0;
      row.used = static_cast<int>(seen.size());
      if (rows_ > 0) averaged_ += (std::min(row.surprise, kMostSurprised) - averaged_) / kAveraged;
      surprises_ = averaged_ > kLost ? surprises_ + 1 : 0;
      if (surprises_ >= kPatience || 2 * row.blown_up > static_cast<long>(members_.rows())) {
        row.status = FilterStatus::lost;
        recovering_ = true;
        surprises_ = 0;
        averaged_ = 1;
        seek(seen);
      } else {
        if (averaged_ > kWidened && method_ != FilterMethod::particle)
          inflate_members(members_, std::sqrt(averaged_));
        analyse(before_time, time, signal, seen, before, row);
        recovering_ = recovering_ && averaged_ > kFound;
        if (recovering_) row.status = FilterStatus::recovering;
      }
    }
  }
  finish();
  if (method_ == FilterMethod::particle) resample();
  ++rows_;
  return row;
}

void FilterSummary::add(const FilterRow& row, double level) {
  ++rows;
  values += row.used;
  blown_up += row.blown_up;
  last = row.status;
  gated += row.status == FilterStatus::gated;
  late += row.status == FilterStatus::late;
  lost += row.status == FilterStatus::lost;
  if (rows == 1 || row.used == 0) return;
  ++scored;
  log_score += (row.log_score - log_score) / static_cast<double>(scored);
  surprise += (row.surprise - surprise) / static_cast<double>(scored);
  for (const double p : row.pit) {
    if (std::isnan(p)) continue;
    ++forecasts;
    inside += p >= (1 - level) / 2 && p <= (1 + level) / 2;
    ++ranks[static_cast<std::size_t>(std::clamp(p * 10, 0.0, 9.0))];
  }
}

std::string FilterSummary::distrust() const {
  constexpr double kTooFar = 1.5, kTooNear = 0.5, kSure = 5;
  if (last == FilterStatus::lost || last == FilterStatus::recovering)
    return "the filter has lost the system: the last rows are far from what it foretells";
  // The mean of χ² over N values is 1 ± (2/N)^½ where model and noise are right.
  const double error = std::sqrt(2 / std::max(1.0, static_cast<double>(forecasts)));
  if (surprise > kTooFar + kSure * error)
    return fmt::format(
        "rows are {:.2g} times as far from what is foretold as noise and model say: the noise is "
        "larger (`noise`), or the system is not the model's any more",
        std::sqrt(surprise));
  if (surprise < kTooNear - kSure * error)
    return fmt::format(
        "rows are {:.2g} times as far from what is foretold as noise and model say: the noise is "
        "smaller (`noise`), and bands are too wide",
        std::sqrt(surprise));
  return "";
}

}  // namespace odecast
