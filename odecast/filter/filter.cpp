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
/// Drift of coefficients that are learnt, where none is given: in units of their sd in the
/// posterior, and fast in addition of their size; per root of a time unit.
constexpr double kSlowDrift = 0.05, kFastDrift = 1, kFastChange = 0.02;
/// Rows whose surprise tells that noise or model were wrong from the beginning.
constexpr long kEarly = 30;
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
  return model.dimension() <= kMostParticleVariables && !options.learn ? FilterMethod::particle
                                                                       : FilterMethod::iterated;
}

/// An ensemble of fewer members knows nothing of most directions.
Eigen::Index least_members(const Model& model, const FilterOptions& options) {
  if (!options.learn) return 3;
  return 2 * (model.dimension() + polynomial_posterior(model).joint(kLeastCarried).mean.size());
}

Eigen::Index members_of(const Model& model, const FilterOptions& options) {
  if (options.members > 0) return options.members;
  const Eigen::Index usual =
      method_of(model, options) == FilterMethod::particle ? kParticles : kMembers;
  return std::max(usual, least_members(model, options));
}

/// A solver's error that no row shows: a thousandth of the least noise.
double tolerance_of(const Model& model, const Observing& observing, const FilterOptions& options) {
  const Vector scale = observing.H.cwiseAbs() * model.scaling.scale,
               noise = options.noise ? *options.noise : Vector(observing.H * model.noise);
  return std::clamp(1e-3 * noise.cwiseQuotient(scale).minCoeff(), 1e-10, 1e-4);
}

bool is_finite(const Model& model) {
  return !model.polynomial() || polynomial_posterior(model).atoms() > 0;
}

Carried carried_by(const FilterOptions& options) {
  return options.learn ? Carried::coefficients : options.bank ? Carried::draws : Carried::slots;
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
  if (o.learn) {
    require_option(model.polynomial() != nullptr, "`learn`", "a model without equations",
                   "one whose coefficients can move", "Its draws can be weighed instead: `bank`.");
    const Eigen::Index least = least_members(model, o);
    require_option(o.members == 0 || o.members >= least, "`members`", fmt::format("{}", o.members),
                   fmt::format("at least {}, twice as many as variables and coefficients", least),
                   "Leave it out for the default.");
  }
  require_option(!o.bank || (is_finite(model) && !o.learn), "`bank`",
                 o.learn ? "also `learn`" : "a model of infinitely many draws",
                 "one of masks or replicates, whose draws can be weighed", "Leave it out.");
  require_option(!o.drift || o.learn, "`drift`", "no `learn`", "both",
                 "Only coefficients that are learnt drift.");
  require_option(!o.drift || (*o.drift >= 0 && *o.drift <= 1e6), "`drift`",
                 fmt::format("{}", o.drift.value_or(0)), "a number from 0 to 1000000",
                 "Leave it out: it is slow, and fast while rows surprise.");
  require_option(o.lag >= 0 && o.lag <= 1000, "`lag`", fmt::format("{}", o.lag),
                 "a whole number of rows from 0 to 1000", "Some five to twenty are usual.");
  require_option(o.ahead >= 0 && std::isfinite(o.ahead), "`ahead`", fmt::format("{}", o.ahead),
                 "a time above 0", "It is in the units of the model's times.");
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
               options.seed, options.threads, carried_by(options)),
      now_{Matrix(members_of(model, options),
                  model.dimension() * (1 + options.lag) + carrier_.drawn().cols()),
           Vector::Constant(members_of(model, options),
                            1 / static_cast<double>(members_of(model, options)))} {
  const auto is_state = [&](const std::optional<Vector>& v, const char* option) {
    if (!v) return;
    require_option(v->size() == model.dimension() && v->allFinite(), option,
                   fmt::format("{} values", v->size()), fmt::format("{}", model.dimension()),
                   "Give one finite value per variable.");
  };
  is_state(options.init, "`init`");
  is_state(options.init_sd, "`init_sd`");
  now_.members.setZero();
  now_.members.middleCols(model.dimension(), carrier_.drawn().cols()) = carrier_.drawn();
  if (options.learn) drift_root_ = covariance_root(carrier_.joint().covariance);
}

/// In model units: y = H (offset + scale v).
Seen Filter::seen_of(const Vector& values) const {
  const Vector noise =
      options_.noise
          ? *options_.noise
          : Vector(observing_.H * model_.noise_at(model_.scaling.to_user(moments(states()).mean)));
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

EnsembleMoments Filter::moments(const Matrix& states) const {
  return method_ == FilterMethod::particle ? weighted_moments(states, now_.weights)
                                           : ensemble_moments(states);
}

/// What was seen, of members with more than their state behind it.
Seen Filter::padded(const Seen& seen) const {
  Seen all{Matrix::Zero(seen.size(), now_.members.cols()), seen.values, seen.sd};
  all.H.leftCols(seen.H.cols()) = seen.H;
  return all;
}

StateBand Filter::band(const Matrix& states) const {
  const EnsembleMoments m = moments(states);
  StateBand band;
  band.mean = model_.scaling.to_user(m.mean);
  band.sd = model_.scaling.scale.cwiseProduct(m.covariance.diagonal().cwiseMax(0).cwiseSqrt());
  const double c = normal_quantile((1 + options_.level) / 2), tail = (1 - options_.level) / 2;
  band.lower = band.mean - c * band.sd;
  band.upper = band.mean + c * band.sd;
  if (method_ == FilterMethod::particle) {
    std::vector<std::pair<double, double>> one(index(states.rows()));
    for (Eigen::Index i = 0; i < states.cols(); ++i) {
      for (Eigen::Index k = 0; k < states.rows(); ++k)
        one[index(k)] = {states(k, i), now_.weights[k]};
      const double offset = model_.scaling.offset[i], scale = model_.scaling.scale[i];
      band.lower[i] = offset + scale * weighted_quantile(one, tail);
      band.upper[i] = offset + scale * weighted_quantile(one, 1 - tail);
    }
  }
  for (Eigen::Index i = 0; i < band.lower.size(); ++i)
    if (model_.is_positive(i)) band.lower[i] = std::max(band.lower[i], 0.0);
  return band;
}

StateBand Filter::band_before(int rows) const {
  const int n = model_.dimension();
  return band(now_.members.middleCols(now_.members.cols() - (options_.lag - rows + 1) * n, n));
}

std::vector<StateBand> Filter::recent() const {
  std::vector<StateBand> bands;
  for (int back = static_cast<int>(std::min<long>(options_.lag, now_.rows)) - 1; back >= 0; --back)
    bands.push_back(back > 0 ? band_before(back) : band(states()));
  return bands;
}

/// States move on to the place of those one row before.
void Filter::remember() {
  const Eigen::Index n = model_.dimension(), past = options_.lag * n;
  if (past == 0) return;
  const Eigen::Index first = now_.members.cols() - past;
  const Matrix before = now_.members.middleCols(first, past - n);
  now_.members.middleCols(first, n) = Matrix(states());
  now_.members.rightCols(past - n) = before;
}

/// Inputs stay as they are in the row.
StateBand Filter::look_ahead(const Vector& inputs) {
  Matrix members = now_.members;
  InputSignal signal;
  if (inputs.size() > 0) signal = {{now_.time}, inputs.transpose()};
  Stream kicks(options_.seed, Purpose::filter_ahead, of_row(now_.rows));
  const std::vector<int> draws = carrier_.draws();
  carrier_.carry(members, now_.time, now_.time + options_.ahead / model_.scaling.time, signal,
                 kicks);
  carrier_.take_draws(draws);  // what blows up ahead has not blown up yet
  return band(members.leftCols(model_.dimension()));
}

/// Members normal around a state in model units, all of the same weight.
void Filter::scatter(const Vector& mean, const Vector& sd) {
  for (Eigen::Index k = 0; k < now_.members.rows(); ++k) {
    Stream stream(options_.seed, Purpose::filter_start, of_row(now_.rows, k));
    for (Eigen::Index i = 0; i < mean.size(); ++i)
      now_.members(k, i) = mean[i] + sd[i] * stream.normal();
  }
  now_.weights.setConstant(1 / static_cast<double>(now_.members.rows()));
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
  for (Eigen::Index k = 0; k < now_.members.rows(); ++k)
    if (const auto drawn = posterior->draw_start(options_.seed, static_cast<std::uint64_t>(k)))
      states().row(k) = drawn->transpose();
  Stream kicks(options_.seed, Purpose::forcing, of_row(now_.rows));
  const double far = 1000 * model_.step / model_.scaling.time;
  if (time - end > far ||
      carrier_.carry(now_.members, end, time, inputs, kicks) * 2 > now_.members.rows())
    return false;
  const EnsembleMoments m = ensemble_moments(now_.members);
  double square = 0, varies = 0;
  for (Eigen::Index i = 0; i < sd.size(); ++i)
    if (sd[i] > 0) square += m.covariance(i, i) / (sd[i] * sd[i]), ++varies;
  return square <= kHorizon * kHorizon * varies;
}

/// The state as it is before the first row: what was given, the end of the model's data, or what is
/// known of the system.
void Filter::begin(double time, const InputSignal& inputs) {
  now_.time = time;
  if (options_.init) {
    if (options_.from) now_.time = *options_.from / model_.scaling.time;
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
  if (seen.size() == 0) return;
  Matrix scattered = states();  // which says nothing of coefficients
  kalman_analysis(scattered, seen);
  states() = scattered;
}

bool Filter::surprised() const { return now_.averaged > kFound; }

/// Coefficients as a random walk; before they are carried over an interval of that duration, in
/// the user's units.
void Filter::drift(double duration) {
  const bool fast = surprised() && !options_.drift;
  const double root = std::sqrt(duration),
               sd = root * options_.drift.value_or(fast ? kFastDrift : kSlowDrift);
  if (!(sd > 0)) return;
  const Eigen::Index n = model_.dimension(), P = drift_root_.rows();
  Matrix R = sd * drift_root_;
  if (fast) {
    const Vector size = moments(now_.members.middleCols(n, P)).mean;
    Matrix C = R * R.transpose();
    C.diagonal() += (root * kFastChange * size).cwiseAbs2();
    R = covariance_root(C);
  }
  Stream stream(options_.seed, Purpose::filter_drift, of_row(now_.rows));
  drift_members(now_.members.leftCols(n + P), R, stream);
}

/// Each new member is one of the old ones.
void Filter::take_members(const std::vector<Eigen::Index>& from) {
  const Matrix before = now_.members;
  std::vector<int> draws;
  for (std::size_t k = 0; k < from.size(); ++k) {
    now_.members.row(static_cast<Eigen::Index>(k)) = before.row(from[k]);
    draws.push_back(carrier_.draws()[index(from[k])]);
  }
  now_.weights.setConstant(1 / static_cast<double>(before.rows()));
  if (carrier_.carried() == Carried::draws) carrier_.take_draws(draws);
}

/// A state is jittered by a kernel; coefficients that are learnt are drawn towards their mean by as
/// much as their kernel widens them, so that their covariance stays (Liu & West 2001).
void Filter::resample() {
  const Eigen::Index N = now_.members.rows(), n = model_.dimension(), P = carrier_.drawn().cols();
  if (effective_members(now_.weights) >= static_cast<double>(N) / 3) return;
  const auto part = now_.members.leftCols(n + P);
  const EnsembleMoments m = weighted_moments(part, now_.weights);
  const Matrix root = covariance_root(m.covariance);
  const double bandwidth =
      kNarrower * power_of(static_cast<double>(N), -1 / (static_cast<double>(n + P) + 4));
  const double nearer = 1 - std::sqrt(1 - bandwidth * bandwidth);
  Stream uniform(options_.seed, Purpose::filter_resample, of_row(now_.rows));
  take_members(resampled(now_.weights, uniform.uniform()));
  Vector z(n + P);
  for (Eigen::Index k = 0; k < N; ++k) {
    Stream stream(options_.seed, Purpose::filter_jitter, of_row(now_.rows, k));
    for (double& one : z) one = stream.normal();
    const double far = k % 100 == 37 ? kFar : k % 100 == 73 ? kFarther : 1;
    auto member = now_.members.row(k);
    const Vector jitter = bandwidth * (root * z);
    member.head(n) += far * jitter.head(n).transpose();
    member.segment(n, P) +=
        jitter.tail(P).transpose() + nearer * (m.mean.tail(P).transpose() - member.segment(n, P));
  }
}

/// Bayes' rule for particles. Where hardly any of them is near the row, weights say nothing of what
/// lies between: then the ensemble's rule, for members as far apart as the row is surprising.
void Filter::analyse_particles(const Seen& seen, FilterRow& row) {
  Vector weights = now_.weights;
  row.log_score = weigh(states(), weights, seen);
  if (effective_members(weights) >= kFewest) {
    now_.weights = std::move(weights);
    return;
  }
  Stream uniform(options_.seed, Purpose::filter_resample, of_row(now_.rows, 1));
  take_members(resampled(now_.weights, uniform.uniform()));
  inflate_members(states(), std::sqrt(std::clamp(row.surprise, 1.0, kMostSurprised)));
  kalman_analysis(now_.members, padded(seen));
}

/// Bayes' rule at a row; `before` are the members at the time `begin` of the row before.
void Filter::analyse(double begin, double time, const InputSignal& inputs, const Seen& seen,
                     const Matrix& before, FilterRow& row) {
  switch (method_) {
    case FilterMethod::particle: analyse_particles(seen, row); return;
    case FilterMethod::iterated: {
      const auto flow = [&](const Matrix& from) {
        Matrix to = from;
        Stream kicks(options_.seed, Purpose::forcing,
                     of_row(now_.rows));  // the same in every round
        carrier_.carry(to, begin, time, inputs, kicks);
        return to;
      };
      if (!(time > begin)) break;  // nothing lies between
      Matrix moved = before;
      iterated_analysis(moved, flow, padded(seen));
      Stream rotation(options_.seed, Purpose::filter_rotation, of_row(now_.rows));
      rotate_members(moved, rotation);
      now_.members = flow(moved);
      inflate_members(states(), options_.inflation);
      return;
    }
    case FilterMethod::kalman:
    case FilterMethod::automatic: break;
  }
  kalman_analysis(now_.members, padded(seen));
  Stream rotation(options_.seed, Purpose::filter_rotation, of_row(now_.rows));
  rotate_members(now_.members, rotation);
  inflate_members(states(), options_.inflation);
}

/// The measured inputs from the row before to this one, in model units.
InputSignal Filter::signal_to(double time, const Vector& inputs) {
  const InputPart& part = model_.inputs;
  if (part.measured() == 0) return {};
  const Vector now =
      (inputs - part.offset.head(part.measured())).cwiseQuotient(part.scale.head(part.measured()));
  const Vector before = std::exchange(now_.last_inputs, now);
  InputSignal signal{{time}, now.transpose()};
  if (before.size() > 0 && time > now_.time) {
    signal.times = {now_.time, time};
    signal.values.resize(2, now.size());
    signal.values << before.transpose(), now.transpose();
  }
  return signal;
}

/// How the values of a row compare with the forecast of them.
void Filter::expect(const Vector& values, const Seen& seen, FilterRow& row) const {
  const EnsembleMoments forecast = moments(states());
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
      for (Eigen::Index m = 0; m < now_.members.rows(); ++m)
        row.pit[j] +=
            now_.weights[m] *
            normal_below((seen.values[k] - seen.H.row(k).dot(states().row(m))) / seen.sd[k]);
    }
    ++k;
  }
}

void Filter::learn_from(const Filter& other) {
  const Eigen::Index n = model_.dimension(), P = carrier_.drawn().cols();
  const std::vector<Eigen::Index> from = resampled(other.now_.weights, 0.5);
  for (Eigen::Index k = 0; k < now_.members.rows(); ++k)
    now_.members.row(k).segment(n, P) = other.now_.members.row(from[index(k)]).segment(n, P);
}

void Filter::continue_from(FilterState state) {
  const bool fits =
      state.members.rows() == now_.members.rows() && state.members.cols() == now_.members.cols() &&
      state.members.allFinite() && state.weights.size() == now_.weights.size() &&
      state.weights.allFinite() &&
      (carrier_.carried() != Carried::draws || state.draws.size() == carrier_.draws().size()) &&
      std::all_of(state.draws.begin(), state.draws.end(),
                  [&](int draw) { return draw >= 0 && draw < now_.members.rows(); });
  if (!fits)
    throw_data({"the state of a filter",
                fmt::format("{} members of {} numbers", state.members.rows(), state.members.cols()),
                fmt::format("{} members of {}", now_.members.rows(), now_.members.cols()),
                "Go on with the model, columns and options that it was begun with."});
  now_ = std::move(state);
  if (carrier_.carried() == Carried::draws) carrier_.take_draws(now_.draws);
  resumed_ = true;
}

FilterRow Filter::update(double user_time, const Vector& values, const Vector& inputs) {
  const double time = user_time / model_.scaling.time;
  FilterRow row;
  row.time = user_time;
  row.expected = row.expected_sd = row.pit = Vector::Constant(values.size(), kNaN);
  if (now_.started && (resumed_ ? !(time > now_.time) : !(time >= now_.time))) {
    row.status = FilterStatus::late;
    row.state = band(states());
    row.forecast = row.state.mean;
    row.forecast_sd = row.state.sd;
    if (options_.ahead > 0) row.ahead = look_ahead(now_.last_inputs);
    return row;
  }
  const InputSignal signal = signal_to(time, inputs);
  if (!now_.started) begin(time, signal);
  now_.started = true;
  resumed_ = false;
  remember();
  if (options_.learn && time > now_.time) drift((time - now_.time) * model_.scaling.time);
  const Matrix before = now_.members;
  const double before_time = now_.time;
  if (time > now_.time) {
    Stream kicks(options_.seed, Purpose::forcing, of_row(now_.rows));
    row.blown_up = carrier_.carry(now_.members, now_.time, time, signal, kicks);
    now_.time = time;
  }
  const EnsembleMoments forecast = moments(states());
  row.forecast = model_.scaling.to_user(forecast.mean);
  row.forecast_sd =
      model_.scaling.scale.cwiseProduct(forecast.covariance.diagonal().cwiseMax(0).cwiseSqrt());
  const Seen seen = seen_of(values);
  if (seen.size() == 0) {
    row.status = FilterStatus::unobserved;
  } else {
    expect(values, seen, row);
    const auto count = static_cast<double>(seen.size());
    if (options_.robust && now_.rows > 0 && now_.gated < 2 &&
        chi_square_tail(row.surprise * count, seen.size()) < options_.gate) {
      row.status = FilterStatus::gated;
      ++now_.gated;
    } else {
      now_.gated = 0;
      row.used = static_cast<int>(seen.size());
      if (now_.rows > 0)
        now_.averaged += (std::min(row.surprise, kMostSurprised) - now_.averaged) / kAveraged;
      now_.surprises = now_.averaged > kLost ? now_.surprises + 1 : 0;
      if (now_.surprises >= kPatience ||
          2 * row.blown_up > static_cast<long>(now_.members.rows())) {
        row.status = FilterStatus::lost;
        now_.recovering = true;
        now_.surprises = 0;
        now_.averaged = 1;
        seek(seen);
      } else {
        if (now_.averaged > kWidened && method_ != FilterMethod::particle)
          inflate_members(states(), std::sqrt(now_.averaged));
        analyse(before_time, time, signal, seen, before, row);
        now_.recovering = now_.recovering && now_.averaged > kFound;
        if (now_.recovering)
          row.status = FilterStatus::recovering;
        else if (options_.learn && surprised())
          row.status = FilterStatus::changing;
      }
    }
  }
  row.state = band(states());
  if (options_.lag > 0 && now_.rows >= options_.lag) row.past = band_before(options_.lag);
  if (options_.ahead > 0) row.ahead = look_ahead(now_.last_inputs);
  if (method_ == FilterMethod::particle) resample();
  if (carrier_.carried() == Carried::draws) now_.draws = carrier_.draws();
  ++now_.rows;
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
  if (scored <= kEarly) early += (row.surprise - early) / static_cast<double>(scored);
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
  if (lost > 0 && early > kTooFar * kTooFar)
    return fmt::format(
        "rows are {:.2g} times as far from what is foretold as noise and model say, from the first "
        "on: the noise is larger (`noise`), or the model is another system's",
        std::sqrt(early));
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
