#include "odecast/scores/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"
#include "odecast/derivatives/stencil.hpp"

namespace odecast {
namespace {

/// A row of the truth to start from, and the rows at the leads.
struct Start {
  const Trajectory* trajectory;
  StartPlace place;
  int row;
  std::vector<int> rows;
};

/// Sums over leads and variables of one forecast.
struct Sums {
  double covered = 0, width = 0, interval = 0, crps = 0, energy = 0, spread = 0, error = 0,
         count = 0, leads = 0;
};

struct OneStart {
  bool good = false;
  std::vector<double> blown_up;  // share by each lead
  Sums model, climatology, persistence;
  Matrix covered;        // leads × moving variables, 0 or 1
  Matrix spread, error;  // squares
  Matrix crps, scores;   // scores of all variables
  double valid[4] = {};
  int rank = -1;
};

double crps_of(std::vector<double>& draws, double y) {
  // Σ|x - y|/M - Σ_{i<j} |x_i - x_j| / (M (M-1)), by order statistics.
  std::sort(draws.begin(), draws.end());
  const auto M = static_cast<double>(draws.size());
  double distance = 0, pairs = 0;
  for (std::size_t k = 0; k < draws.size(); ++k) {
    distance += std::abs(draws[k] - y);
    pairs += (2 * static_cast<double>(k) + 1 - M) * draws[k];
  }
  return distance / M - (M > 1 ? pairs / (M * (M - 1)) : 0);
}

/// |x_k - from|, summed over the first `count` draws; x has a column for each variable, so that it
/// is one expression.
template <class From>
double distances(const Eigen::ArrayXXd& x, const From& from, Eigen::Index count,
                 Eigen::ArrayXd& square) {
  square.head(count) = (x.col(0).head(count) - from[0]).square();
  for (Eigen::Index i = 1; i < x.cols(); ++i)
    square.head(count) += (x.col(i).head(count) - from[i]).square();
  return square.head(count).sqrt().sum();
}

/// E|X - y|.
double mean_distance(const Matrix& draws, const Vector& y) {
  Eigen::ArrayXd square(draws.rows());
  return distances(draws.array(), y, draws.rows(), square) / static_cast<double>(draws.rows());
}

/// ½ E|X - X'| over pairs of different draws.
double half_spread(const Matrix& draws) {
  const Eigen::ArrayXXd x = draws.array();
  const Eigen::Index M = x.rows();
  if (M < 2) return 0;
  Eigen::ArrayXd square(M);
  double pairs = 0;
  for (Eigen::Index k = 1; k < M; ++k)
    pairs += distances(x, Vector(x.row(k).transpose()), k, square);
  return pairs / (static_cast<double>(M) * static_cast<double>(M - 1));
}

/// Adds what one lead says of a forecast given by draws (rows, in units of sd), their half_spread,
/// and a band. The CRPS of each variable.
Vector add(Sums& sums, const Matrix& draws, double half, const Vector& y, const Vector& lower,
           const Vector& upper, double level) {
  const Eigen::Index n = y.size();
  Vector crps(n);
  const Vector mean = draws.colwise().mean();
  std::vector<double> column(static_cast<std::size_t>(draws.rows()));
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index k = 0; k < draws.rows(); ++k)
      column[static_cast<std::size_t>(k)] = draws(k, i);
    const double below = std::max(0.0, lower[i] - y[i]), above = std::max(0.0, y[i] - upper[i]);
    sums.covered += below == 0 && above == 0;
    sums.width += upper[i] - lower[i];
    sums.interval += upper[i] - lower[i] + 2 / (1 - level) * (below + above);
    sums.crps += crps[i] = crps_of(column, y[i]);
    sums.error += (y[i] - mean[i]) * (y[i] - mean[i]);
    if (draws.rows() > 1)
      sums.spread +=
          (draws.col(i).array() - mean[i]).square().sum() / static_cast<double>(draws.rows() - 1);
    ++sums.count;
  }
  sums.energy += mean_distance(draws, y) - half;
  ++sums.leads;
  return crps;
}

/// Means over the starts that count.
struct Averages {
  const std::vector<OneStart>& starts;
  std::vector<StartPlace> places;
  double horizon;

  template <class Value>
  Mean operator()(Value value) const {
    std::vector<double> values;
    for (const OneStart& s : starts)
      if (s.good) values.push_back(value(s));
    return mean_of(values, places, horizon);
  }
};

EvaluationRow row_of(std::string name, const Averages& average, Sums OneStart::*which) {
  EvaluationRow row;
  row.name = std::move(name);
  const auto over = [&](auto value) {
    return average([&](const OneStart& s) { return value(s.*which); });
  };
  row.coverage = over([](const Sums& s) { return s.covered / s.count; });
  row.width = over([](const Sums& s) { return s.width / s.count; });
  row.interval_score = over([](const Sums& s) { return s.interval / s.count; });
  row.crps = over([](const Sums& s) { return s.crps / s.count; });
  row.energy = over([](const Sums& s) { return s.energy / s.leads; });
  double spread = 0, error = 0, count = 0;
  for (const OneStart& s : average.starts)
    if (s.good) spread += (s.*which).spread, error += (s.*which).error, ++count;
  row.spread_error = error > 0 ? std::sqrt(spread / error) : 0;
  // d √(S/E) = ½ √(S/E) (dS/S - dE/E).
  if (row.spread_error > 0)
    row.spread_error_se =
        over([&](const Sums& s) {
          return 0.5 * row.spread_error * count * (s.spread / spread - s.error / error);
        }).standard_error;
  return row;
}

/// P(χ² with k degrees of freedom > x), by the regularised incomplete gamma function's series or
/// continued fraction.
double chi_square_tail(double x, double k) {
  const double a = k / 2, z = x / 2;
  if (z <= 0) return 1;
  const double front = std::exp(-z + a * std::log(z) - std::lgamma(a));
  if (z < a + 1) {
    double sum = 1 / a, term = sum;
    for (int i = 1; i < 1000 && term > 1e-16 * sum; ++i) sum += term *= z / (a + i);
    return std::max(0.0, 1 - front * sum);
  }
  double b = z + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 1000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return front * h;
}

/// The times after a start that are scored: multiples of a unit, the last within the horizon. The
/// unit is the usual spacing of the rows, h; where more than one spacing of a hundred is longer
/// than 3/2 h it is twice the longest of the other 99, as far as the horizon allows, so that nearly
/// every lead has a row within half a unit.
struct Leads {
  double unit = 0;
  std::vector<int> multiples;

  std::size_t size() const { return multiples.size(); }
  double time(std::size_t j) const { return multiples[j] * unit; }
};

Leads choose_leads(const Dataset& truth, const EvaluateOptions& o) {
  std::vector<double> spacings;
  double sum = 0;
  for (const Trajectory& t : truth.trajectories) {
    for (std::size_t i = 1; i < t.times.size(); ++i)
      spacings.push_back(t.times[i] - t.times[i - 1]);
    sum += t.times.back() - t.times.front();
  }
  Leads leads;
  if (spacings.empty()) return leads;
  std::sort(spacings.begin(), spacings.end());
  const double median = spacings[spacings.size() / 2],
               longest = spacings[(spacings.size() - 1) * 99 / 100];
  auto usual = static_cast<double>(
      spacings.size());  // times may be rounded: a mean spacing does not drift away from them
  for (const double h : spacings)
    if (h < 0.5 * median || h > 1.5 * median) sum -= h, --usual;
  leads.unit = longest < 1.5 * median ? sum / usual : std::clamp(o.horizon, longest, 2 * longest);
  const auto last = static_cast<int>(std::min(1e9, o.horizon / leads.unit + 1e-6)),
             wanted = std::min(o.leads, last);
  for (int j = 1; j <= wanted; ++j)
    leads.multiples.push_back(static_cast<int>(static_cast<long>(j) * last / wanted));
  return leads;
}

/// The row nearest to each lead; none where one is more than half a unit away.
std::vector<int> rows_at(const Leads& leads, const std::vector<double>& times, int from) {
  std::vector<int> rows;
  const auto at = [&](int row) { return times[static_cast<std::size_t>(row)]; };
  const int end = static_cast<int>(times.size());
  for (std::size_t j = 0; j < leads.size(); ++j) {
    const double time = at(from) + leads.time(j);
    int row = from + leads.multiples[j];  // of even rows without a gap
    if (row >= end || std::abs(at(row) - time) > 1e-3 * leads.unit) {
      row = static_cast<int>(std::lower_bound(times.begin() + from + 1, times.end(), time) -
                             times.begin());
      if (row == end || (row > from + 1 && time - at(row - 1) < at(row) - time)) --row;
    }
    if (row <= from || std::abs(at(row) - time) > 0.499 * leads.unit) return {};
    rows.push_back(row);
  }
  return rows;
}

/// Starts evenly among the rows that have a horizon after them and a row at every lead; `gaps`
/// counts those without the latter.
std::vector<Start> choose_starts(const Dataset& truth, const EvaluateOptions& o, const Leads& leads,
                                 long& candidates, long& gaps) {
  if (leads.size() == 0)
    throw_data({truth.source,
                fmt::format("rows {:.3g} time units apart, or more, and a horizon of {:g}",
                            leads.unit, o.horizon),
                "a horizon of at least one spacing", "Give a larger `horizon`."});
  std::vector<Start> all;
  gaps = 0;
  for (const Trajectory& t : truth.trajectories)
    for (int i = 0; i + 1 < t.rows(); ++i) {
      const double end = t.times[static_cast<std::size_t>(i)] + o.horizon;
      if (end > t.times.back() * (1 + 1e-12)) break;
      if (rows_at(leads, t.times, i).empty())
        ++gaps;
      else
        all.push_back({&t,
                       {static_cast<int>(&t - truth.trajectories.data()),
                        t.times[static_cast<std::size_t>(i)]},
                       i,
                       {}});
    }
  candidates = static_cast<long>(all.size());
  if (candidates < 2)
    throw_data({truth.source,
                fmt::format("{} rows with {} time units after them{}", candidates, o.horizon,
                            gaps ? fmt::format(", and {} more with a gap there", gaps) : ""),
                "at least two", "Give a longer truth, or a smaller `horizon`."});
  std::vector<Start> chosen;
  const auto wanted = static_cast<std::size_t>(std::min<long>(o.starts, candidates));
  for (std::size_t k = 0; k < wanted; ++k)
    chosen.push_back(all[wanted == 1 ? 0 : k * (all.size() - 1) / (wanted - 1)]);
  for (Start& s : chosen) s.rows = rows_at(leads, s.trajectory->times, s.row);
  return chosen;
}

/// States of the truth, as many as draws and evenly spaced, and mean ± c sd, of the variables that
/// are not constant, in units of sd.
struct Climate {
  std::vector<Eigen::Index> moving;
  Vector scale;
  Matrix states;
  double half = 0;  ///< half_spread of the states
  Vector lower, upper;
  double mean_square = 0;  ///< of the norm, in the user's units

  Matrix scaled(const Matrix& rows) const {
    Matrix part(rows.rows(), scale.size());
    for (Eigen::Index i = 0; i < scale.size(); ++i)
      part.col(i) = rows.col(moving[static_cast<std::size_t>(i)]) * (1 / scale[i]);
    return part;
  }
  Vector scaled(const Vector& state) const { return state(moving).cwiseQuotient(scale); }
};

/// Of the first variables, those that are measured.
Climate climate_of(const Dataset& truth, int measured, const EvaluateOptions& o) {
  require_option(o.forecast.level > 0 && (1 + o.forecast.level) / 2 < 1, "`level`",
                 fmt::format("{}", o.forecast.level), "a number between 0 and 1", "0.95 is usual.");
  const Spread truth_spread = spread(truth);
  Climate climate;
  for (Eigen::Index i = 0; i < measured; ++i)
    if (truth_spread.sd[i] > 0) climate.moving.push_back(i);
  if (climate.moving.empty())
    throw_data({truth.source, "variables that are all constant", "at least one that moves",
                "Errors have no scale here: give a truth that moves."});
  climate.scale = truth_spread.sd(climate.moving);
  climate.mean_square = root_mean_square(truth)(climate.moving).squaredNorm();
  const double c = normal_quantile((1 + o.forecast.level) / 2);
  climate.lower = climate.scaled(Vector(truth_spread.mean - c * truth_spread.sd));
  climate.upper = climate.scaled(Vector(truth_spread.mean + c * truth_spread.sd));
  const long rows = truth.rows(), kept = std::min<long>(rows, o.forecast.draws);
  climate.states.resize(kept, climate.scale.size());
  long at = 0, next = 0;
  for (const Trajectory& t : truth.trajectories)
    for (int i = 0; i < t.rows(); ++i, ++at)
      if (next < kept && at >= next * rows / kept)
        climate.states.row(next++) =
            climate.scaled(Vector(t.states.row(i).transpose())).transpose();
  climate.half = half_spread(climate.states);
  return climate;
}

/// Forecasts from one start and scores it.
struct Judge {
  const Model& model;
  std::unique_ptr<const Posterior> posterior;  // one for all starts
  const EvaluateOptions& o;
  std::vector<double> leads;
  Climate climate;

  OneStart operator()(const Start& start, std::size_t index) const;
  ForecastOptions options(const Start& start, std::size_t index) const;
  Vector truth_sd(const Start& start, int row) const {
    if (o.truth_sd.empty()) return Vector::Zero(model.dimension());
    return o.truth_sd[static_cast<std::size_t>(start.place.trajectory)].row(row).transpose();
  }
};

ForecastOptions Judge::options(const Start& start, std::size_t index) const {
  const Trajectory& t = *start.trajectory;
  ForecastOptions f = o.forecast;
  f.threads = 1;
  f.seed += index;
  f.masks = MaskSource::sampled;
  f.bands = o.forecast.bands.value_or(default_bands(model));
  if (f.bands == Bands::both) f.bands = Bands::sd;
  f.samples = std::min(1000, f.draws);
  f.draws = f.samples;
  f.init = t.states.row(start.row).transpose();
  f.from = t.times[static_cast<std::size_t>(start.row)];
  if (!o.observations)
    f.noise = Vector::Zero(model.dimension());
  else if (f.noise && f.noise->size() == model.noise.size() && *f.noise == model.noise &&
           observation_noise(model, {}).size() > 0)
    f.noise
        .reset();  // the model's own, without the quantiles of observations, which nobody looks at
  if (!o.truth_sd.empty())
    f.init_sd = truth_sd(start, start.row);
  else if (const Vector noise = observation_noise(model, f, *f.init); noise.size() > 0)
    f.init_sd = noise;
  f.times.clear();
  for (const int row : start.rows) f.times.push_back(t.times[static_cast<std::size_t>(row)]);
  if (model.inputs.measured() > 0) f.inputs = InputSignal{t.times, t.inputs};
  return f;
}

OneStart Judge::operator()(const Start& start, std::size_t index) const {
  const Trajectory& t = *start.trajectory;
  const Eigen::Index n = model.dimension(), moving = climate.scale.size();
  const Vector& scale = climate.scale;
  const ForecastOptions f = options(start, index);
  OneStart one;
  const Vector kept_state = climate.scaled(*f.init);
  for (const int row : start.rows) {
    pulse();
    const Vector y = climate.scaled(Vector(t.states.row(row).transpose()));
    add(one.climatology, climate.states, climate.half, y, climate.lower, climate.upper, f.level);
    add(one.persistence, kept_state.transpose(), 0, y, kept_state, kept_state, f.level);
  }
  const Forecast made = forecast(*posterior, model, f, ignore_progress);
  const auto tried =
      static_cast<double>(f.blow_up == BlowUp::until ? made.draws : made.kept + made.discarded);
  for (const double time : f.times)
    one.blown_up.push_back(
        static_cast<double>(std::count_if(made.blow_up_times.begin(), made.blow_up_times.end(),
                                          [&](double end) { return end <= time; })) /
        tried);
  if (made.times.size() != leads.size() + 1) return one;
  one.good = true;
  one.covered = one.spread = one.error = one.crps =
      Matrix::Zero(static_cast<Eigen::Index>(leads.size()), moving);
  one.scores = Matrix::Zero(static_cast<Eigen::Index>(leads.size()), n);
  Stream stream(o.forecast.seed, Purpose::evaluation, index);
  const auto asked_lead =
      static_cast<std::size_t>(stream.uniform() * static_cast<double>(leads.size()));
  const Eigen::Index asked_variable =
      climate.moving[static_cast<std::size_t>(stream.uniform() * static_cast<double>(moving))];
  const bool noisy = observation_noise(model, f).size() > 0;
  const Matrix &lower = noisy ? made.observed_lower : made.lower,
               &upper = noisy ? made.observed_upper : made.upper;
  bool valid[4] = {true, true, true, true};
  double smape = 0;
  for (std::size_t j = 0; j < leads.size(); ++j) {
    pulse();
    const auto row = static_cast<Eigen::Index>(j + 1);
    const Vector y = t.states.row(start.rows[j]).transpose();
    Matrix draws(static_cast<Eigen::Index>(made.samples.size()), n);
    Eigen::Index alive = 0;
    for (const Matrix& sample : made.samples) {
      if (sample.rows() <= row) continue;
      draws.row(alive) = sample.row(row);
      if (noisy) {
        const Vector noise = observation_noise(model, f, sample.row(row).transpose());
        for (Eigen::Index i = 0; i < n; ++i) {
          draws(alive, i) += noise[i] * stream.normal();
          if (model.is_positive(i)) draws(alive, i) = std::max(0.0, draws(alive, i));
        }
      }
      ++alive;
    }
    draws.conservativeResize(alive, n);
    const Matrix scaled = climate.scaled(draws);
    const Vector path = band_factor(f.level) * truth_sd(start, start.rows[j]);
    Vector low = lower.row(row).transpose(), high = upper.row(row).transpose();
    for (Eigen::Index i = 0; i < n; ++i)
      if (const double centre = centre_of(made)(row, i); path[i] > 0) {
        low[i] = centre - root_sum_square(centre - low[i], path[i]);
        high[i] = centre + root_sum_square(high[i] - centre, path[i]);
      }
    one.crps.row(row - 1) = add(one.model, scaled, half_spread(scaled), climate.scaled(y),
                                climate.scaled(low), climate.scaled(high), f.level);
    double square = 0, norm = 0;
    const Vector noise =
        noisy ? observation_noise(model, f, made.mean.row(row).transpose()) : Vector();
    for (Eigen::Index i = 0, m = 0; i < n; ++i) {
      const double mean = made.mean(row, i), sd = made.sd(row, i), error = y[i] - mean;
      const double full = noisy ? root_sum_square(sd, noise[i]) : sd;
      const Reach reach = reach_of(made, row, i, noisy ? noise[i] : 0);
      const double off = y[i] - reach.centre;
      one.scores(row - 1, i) =
          std::sqrt(std::max(0.0, off * off - path[i] * path[i])) /
          ((off < 0 ? reach.below : reach.above) + kCalibrationFloor * model.size[i]);
      if (m == moving || climate.moving[static_cast<std::size_t>(m)] != i) continue;
      one.covered(row - 1, m) = low[i] <= y[i] && y[i] <= high[i];
      one.spread(row - 1, m) = full * full / (scale[m] * scale[m]);
      one.error(row - 1, m) = error * error / (scale[m] * scale[m]);
      square += one.error(row - 1, m);
      norm += error * error;
      smape += 2 * std::abs(error) / std::max(1e-300, std::abs(y[i]) + std::abs(mean));
      ++m;
    }
    const auto count = static_cast<double>(moving), upto = static_cast<double>(j + 1);
    // In the order of kConventions; sMAPE from 0 to 100.
    const bool still[4] = {std::sqrt(square / count) < 0.5,
                           std::sqrt(norm / climate.mean_square) < 0.4,
                           100 * smape / (2 * count * upto) <= 30, std::sqrt(square / count) < 0.3};
    for (int v = 0; v < 4; ++v) {
      valid[v] = valid[v] && still[v];
      if (valid[v]) one.valid[v] = leads[j];
    }
    if (j == asked_lead) {
      long below = 0, equal = 0;
      for (Eigen::Index k = 0; k < draws.rows(); ++k) {
        below += draws(k, asked_variable) < y[asked_variable];
        equal += draws(k, asked_variable) == y[asked_variable];
      }
      const double rank =
          static_cast<double>(below) + stream.uniform() * static_cast<double>(equal + 1);
      one.rank = std::min(o.bins - 1,
                          static_cast<int>(o.bins * rank / static_cast<double>(draws.rows() + 1)));
    }
  }
  return one;
}

constexpr const char* kConventions[4] = {
    "error below 0.5 sd (Vlachas 2020)", "error below 0.4 of the norm (Pathak 2018)",
    "cumulative sMAPE up to 30 (Gilpin 2023)", "error below 0.3 sd (others)"};

ValidTime valid_time(const Averages& average, int v, double last) {
  std::vector<double> times;
  for (const OneStart& s : average.starts)
    if (s.good) times.push_back(s.valid[v]);
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double p) {
    const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(times.size() - 1);
    const auto low = static_cast<std::size_t>(position), high = std::min(low + 1, times.size() - 1);
    return times[low] + (position - static_cast<double>(low)) * (times[high] - times[low]);
  };
  ValidTime time{kConventions[v], quantile(0.5), quantile(0.25), quantile(0.75)};
  time.censored = time.median >= last;
  const double below = average([&](const OneStart& s) {
                         return s.valid[v] < time.median ? 1 : s.valid[v] == time.median ? 0.5 : 0;
                       }).standard_error;
  const double share = std::max(below, 0.5 / std::sqrt(static_cast<double>(times.size())));
  time.standard_error = (quantile(0.5 + share) - quantile(0.5 - share)) / 2;
  return time;
}

/// Σ_ij max(0, 1 - |t_i - t_j| / width) r_i r_j over pairs of one trajectory: ∫ (Σ of the r_i with
/// t_i in (x - width, x])² dx / width.
double overlapping_sum(const std::vector<double>& r, const std::vector<StartPlace>& starts,
                       double width) {
  double total = 0;
  for (std::size_t begin = 0, end = 0; begin < r.size(); begin = end) {
    while (end < r.size() && starts[end].trajectory == starts[begin].trajectory) ++end;
    double sum = 0, x = starts[begin].time;
    for (std::size_t in = begin, out = begin; out < end;) {
      const bool enters = in < end && starts[in].time < starts[out].time + width;
      const double next = enters ? starts[in].time : starts[out].time + width;
      if (in > out) total += sum * sum * (next - x) / width;
      x = next;
      sum += enters ? r[in++] : -r[out++];
    }
  }
  return total;
}

void require_values(const Dataset& truth) {
  for (const Trajectory& t : truth.trajectories)
    for (int i = 0; i < t.rows(); ++i)
      for (Eigen::Index k = 0; k < t.states.cols(); ++k)
        if (!std::isfinite(t.states(i, k)))
          throw_data(
              {truth.source,
               fmt::format("{} = {} at t = {:g}", truth.variables[static_cast<std::size_t>(k)],
                           t.states(i, k), t.times[static_cast<std::size_t>(i)]),
               "numbers: forecasts are judged row by row", "Leave such rows out: `missing=drop`."});
}

}  // namespace

Mean mean_of(const std::vector<double>& values) {
  Mean m;
  const auto N = static_cast<double>(values.size());
  for (const double v : values) m.value += v / N;
  for (const double v : values) m.standard_error += (v - m.value) * (v - m.value);
  m.standard_error = N > 1 ? std::sqrt(m.standard_error / (N * (N - 1))) : 0;
  return m;
}

Mean mean_of(const std::vector<double>& values, const std::vector<StartPlace>& starts,
             double horizon) {
  Mean m = mean_of(values);
  const auto N = static_cast<double>(values.size());
  std::vector<double> r = values;
  for (double& v : r) v -= m.value;
  const double left =
      N * N - overlapping_sum(std::vector<double>(values.size(), 1.0), starts, 2 * horizon);
  if (left > 1e-9 * N * N)
    m.standard_error =
        std::max(m.standard_error, std::sqrt(overlapping_sum(r, starts, 2 * horizon) / left));
  return m;
}

double effective_number(const std::vector<StartPlace>& starts, double horizon) {
  const auto N = static_cast<double>(starts.size());
  return N * N / overlapping_sum(std::vector<double>(starts.size(), 1.0), starts, horizon);
}

double uniformity_of(const std::vector<int>& bin_of_start, int bins,
                     const std::vector<StartPlace>& starts, double horizon) {
  const double expected = static_cast<double>(bin_of_start.size()) / bins;
  double chi = 0, variance = 0, independent = 0;
  for (int b = 0; b < bins; ++b) {
    std::vector<double> in;
    for (const int bin : bin_of_start) in.push_back(bin == b);
    const auto count = static_cast<double>(std::count(bin_of_start.begin(), bin_of_start.end(), b));
    chi += (count - expected) * (count - expected) / expected;
    variance += std::pow(mean_of(in, starts, horizon).standard_error, 2);
    independent += std::pow(mean_of(in).standard_error, 2);
  }
  return chi_square_tail(independent > 0 ? chi * independent / variance : chi, bins - 1);
}

double energy_score(const Matrix& draws, const Vector& truth) {
  return mean_distance(draws, truth) - half_spread(draws);
}

bool looks_noisy(const Dataset& data, const Vector& noise) {
  // By differences: of coarse rows without noise a smoother makes more, as much as the model's.
  const Vector sd = summarise(source_of(data)).sd,
               found = estimate_noise(segments(data, 0), data.dimension());
  // Coarse rows of a smooth motion look noisy too, by far less than a ten thousandth.
  for (Eigen::Index i = 0; i < noise.size(); ++i)
    if (noise[i] > kNoNoise * sd[i] && found[i] > 0.5 * noise[i]) return true;
  return false;
}

Evaluation evaluate(const Model& model, const Dataset& given_truth, const EvaluateOptions& given,
                    const Observer& observer) {
  EvaluateOptions o = given;
  const bool embeds = model.embedding && given_truth.variables == model.measured_variables();
  const Dataset made = embeds ? embedded(given_truth, *model.embedding) : Dataset();
  const Dataset& truth = embeds ? made : given_truth;
  // The noise of the coordinates that are made follows from the fit.
  if (auto& noise = o.forecast.noise; embeds && noise && noise->size() == 1) {
    Vector all = Vector::Constant(model.dimension(), (*noise)[0]);
    if (model.embedding->kind == EmbeddingKind::derivatives && model.noise.size() == all.size())
      all.tail(all.size() - 1) = model.noise.tail(all.size() - 1);
    *noise = all;
  }
  if (o.horizon == 0)
    for (const Trajectory& t : truth.trajectories)
      o.horizon = std::max(o.horizon, std::min((t.times.back() - t.times.front()) / 4,
                                               truth.certified_until.value_or(t.times.back())));
  // A forecast starts in a row, whatever led there: what counts is how long rows follow each other
  // as a solution does, which for a run from t = 0 is until it is certified.
  if (truth.certified_until && o.horizon > *truth.certified_until)
    throw_data(
        {truth.source,
         fmt::format("a solution that is certified over {:g} time units and a horizon of {:g}",
                     *truth.certified_until, o.horizon),
         "a horizon of no more", "Give a smaller `horizon`: beyond it rows depend on round-off."});
  if (truth.variables != model.variables)
    throw_data({truth.source, fmt::format("{} variables", truth.variables.size()),
                "the variables of the model, in their order", "Choose them with `variables`."});
  if (!(o.horizon > 0) || o.starts < 2 || o.leads < 1 || o.bins < 2)
    throw_usage(
        {"evaluate", fmt::format("{} starts, horizon {}, {} bins", o.starts, o.horizon, o.bins),
         "at least 2 starts and bins and a horizon > 0", "For example `starts` 100 `horizon` 10."});
  require_values(truth);
  Evaluation result;
  result.variables = model.measured_variables();
  result.level = o.forecast.level;
  result.bands = o.forecast.bands.value_or(default_bands(model)) == Bands::quantiles
                     ? Bands::quantiles
                     : Bands::sd;
  result.observations = o.observations;
  result.smoothed = !o.truth_sd.empty();
  result.horizon = o.horizon;
  result.share_of_fit = share_of_fit(model, truth);
  const Leads scored = choose_leads(truth, o);
  const std::vector<Start> starts = choose_starts(truth, o, scored, result.candidates, result.gaps);
  const Eigen::Index n = model.dimension();
  const std::size_t leads = scored.size();
  for (std::size_t j = 0; j < leads; ++j) result.leads.push_back(scored.time(j));
  const Judge judge{model, make_posterior(model, o.forecast.mask), o, result.leads,
                    climate_of(truth, model.measured(), o)};
  std::vector<OneStart> all(starts.size());
  parallel_for(
      o.threads, starts.size(), [&](std::size_t s) { all[s] = judge(starts[s], s); },
      [&](std::size_t begun) {
        observer("evaluating", static_cast<double>(begun) / static_cast<double>(starts.size()));
      });

  Averages average{all, {}, o.horizon};
  std::vector<int> ranks;
  result.blown_up_by_lead.assign(leads, 0);
  result.ranks.assign(static_cast<std::size_t>(o.bins), 0);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const OneStart& s = all[k];
    result.energies.push_back((s.good ? s.model.energy : s.persistence.energy) /
                              s.persistence.leads);
    result.places.push_back(starts[k].place);
    for (std::size_t j = 0; j < leads; ++j)
      result.blown_up_by_lead[j] += s.blown_up[j] / static_cast<double>(all.size());
    if (!s.good) {
      ++result.discarded;
      continue;
    }
    ++result.starts;
    ranks.push_back(s.rank);
    ++result.ranks[static_cast<std::size_t>(s.rank)];
    average.places.push_back(starts[k].place);
  }
  result.blown_up = result.blown_up_by_lead.back();
  if (result.starts < 2)
    throw_data(
        {"evaluate",
         fmt::format("{} of {} forecasts with enough trajectories", result.starts, starts.size()),
         "at least two", "The model blows up: shorten `horizon`, or fit again."});
  result.effective = effective_number(average.places, o.horizon);
  result.model = row_of("model", average, &OneStart::model);
  result.climatology = row_of("climatology", average, &OneStart::climatology);
  result.persistence = row_of("persistence", average, &OneStart::persistence);
  result.crps = result.crps_se =
      Vector::Constant(model.measured(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < judge.climate.moving.size(); ++i) {
    const Mean m =
        average([&](const OneStart& s) { return s.crps.col(static_cast<Eigen::Index>(i)).mean(); });
    result.crps[judge.climate.moving[i]] = m.value;
    result.crps_se[judge.climate.moving[i]] = m.standard_error;
  }
  result.uniformity = uniformity_of(ranks, o.bins, average.places, o.horizon);
  for (std::size_t j = 0; j < leads; ++j) {
    const auto row = static_cast<Eigen::Index>(j);
    double spread_square = 0, error_square = 0;
    Matrix& scores = result.scores.emplace_back(result.starts, n);
    Eigen::Index at = 0;
    for (const OneStart& s : all) {
      if (!s.good) continue;
      spread_square += s.spread.row(row).mean() / result.starts;
      error_square += s.error.row(row).mean() / result.starts;
      scores.row(at++) = s.scores.row(row);
    }
    result.coverage.push_back(
        average([&](const OneStart& s) { return s.covered.row(row).mean(); }));
    result.spread.push_back(std::sqrt(spread_square));
    result.error.push_back(std::sqrt(error_square));
  }
  // Widely spaced rows of a quick motion look noisy too, but forecasts over the first lead err by
  // their noise, twice, where they have it.
  if (!o.observations && !result.smoothed && model.kind == ModelKind::flow) {
    Vector noise = Vector::Zero(model.noise.size());
    for (std::size_t m = 0; m < judge.climate.moving.size(); ++m) {
      const Eigen::Index i = judge.climate.moving[m];
      const double square = average([&](const OneStart& s) {
                              return s.error(0, static_cast<Eigen::Index>(m));
                            }).value;
      const double error = std::sqrt(square) * judge.climate.scale[static_cast<Eigen::Index>(m)];
      if (i < noise.size() && error > model.noise[i]) noise[i] = model.noise[i];
    }
    result.noisy_truth = looks_noisy(truth, noise);
  }
  for (int v = 0; v < 4; ++v) result.valid.push_back(valid_time(average, v, result.leads.back()));
  bool finite = true;
  for (const EvaluationRow* row : {&result.model, &result.climatology, &result.persistence}) {
    for (const Mean& m : {row->coverage, row->width, row->interval_score, row->crps, row->energy})
      finite = finite && std::isfinite(m.value) && std::isfinite(m.standard_error);
    finite = finite && std::isfinite(row->spread_error) && std::isfinite(row->spread_error_se);
  }
  for (std::size_t j = 0; j < leads; ++j)
    finite = finite && std::isfinite(result.spread[j]) && std::isfinite(result.error[j]) &&
             result.scores[j].allFinite();
  require_finite(
      finite, "evaluate", "a score or a spread that overflows",
      "Shorten `horizon`, or fit again with columns in units in which their values are near 1.");
  return result;
}

namespace {

/// The ⌈(N+1) level⌉-th smallest of N scores, for each lead and variable.
Matrix conformal_factors(const std::vector<Matrix>& scores, double level) {
  const Eigen::Index N = scores[0].rows(), n = scores[0].cols();
  const auto rank =
      static_cast<Eigen::Index>(std::ceil((static_cast<double>(N) + 1) * level * (1 - 1e-12)));
  Matrix factors(static_cast<Eigen::Index>(scores.size()), n);
  std::vector<double> column(static_cast<std::size_t>(N));
  for (std::size_t j = 0; j < scores.size(); ++j)
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index s = 0; s < N; ++s) column[static_cast<std::size_t>(s)] = scores[j](s, i);
      std::nth_element(column.begin(), column.begin() + rank - 1, column.end());
      factors(static_cast<Eigen::Index>(j), i) = column[static_cast<std::size_t>(rank - 1)];
    }
  return factors;
}

}  // namespace

bool enough(double starts, double level) {
  return std::ceil((starts + 1) * level * (1 - 1e-12)) <= starts;
}

std::vector<double> judged_coverage(const Evaluation& e) {
  const Eigen::Index middle = e.starts / 2;
  if (!enough(static_cast<double>(middle), e.level)) return {};
  std::vector<Matrix> first, second;
  for (const Matrix& scores : e.scores) {
    first.push_back(scores.topRows(middle));
    second.push_back(scores.bottomRows(scores.rows() - middle));
  }
  const Matrix by_first = conformal_factors(first, e.level),
               by_second = conformal_factors(second, e.level);
  std::vector<double> coverage;
  for (std::size_t j = 0; j < e.scores.size(); ++j) {
    const auto lead = static_cast<Eigen::Index>(j);
    double inside = 0;
    for (Eigen::Index i = 0; i < by_first.cols(); ++i)
      inside += static_cast<double>((second[j].col(i).array() <= by_first(lead, i)).count() +
                                    (first[j].col(i).array() <= by_second(lead, i)).count());
    coverage.push_back(inside / static_cast<double>(e.scores[j].size()));
  }
  return coverage;
}

CalibrationPart conformal(const Evaluation& e) {
  if (!enough(e.starts, e.level))
    throw_data({"calibration", fmt::format("{} starts", e.starts),
                fmt::format("at least {:.0f} for a level of {}",
                            std::ceil(e.level / (1 - e.level) * (1 - 1e-12)), e.level),
                "Give more `starts`, a longer truth or a lower `level`."});
  CalibrationPart part;
  part.level = e.level;
  part.starts = e.starts;
  part.bands = e.bands;
  part.smoothed = e.smoothed;
  part.observed = e.observations;
  part.leads = e.leads;
  part.factors = conformal_factors(e.scores, e.level);
  for (const Mean& m : e.coverage) part.before.push_back(m.value);
  part.after = judged_coverage(e);
  return part;
}

}  // namespace odecast
