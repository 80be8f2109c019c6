#include "odecast/scores/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"
#include "odecast/observations/inspection.hpp"

namespace odecast {
namespace {

/// A row of the truth to start from, and the rows at the leads.
struct Start {
  const Trajectory* trajectory;
  int row;
  std::vector<int> rows;
};

/// Sums over leads and variables of one forecast.
struct Sums {
  double covered = 0, width = 0, interval = 0, crps = 0, energy = 0, spread = 0, error = 0, count = 0, leads = 0;
};

struct OneStart {
  bool good = false;
  Sums model, climatology, persistence;
  Matrix covered;        // leads × variables, 0 or 1
  Matrix spread, error;  // squares
  Matrix scores, crps;
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

/// |x_k - from|, summed over the first `count` draws; x has a column for each variable, so that it is one expression.
template <class From>
double distances(const Eigen::ArrayXXd& x, const From& from, Eigen::Index count, Eigen::ArrayXd& square) {
  square.head(count) = (x.col(0).head(count) - from[0]).square();
  for (Eigen::Index i = 1; i < x.cols(); ++i) square.head(count) += (x.col(i).head(count) - from[i]).square();
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
  for (Eigen::Index k = 1; k < M; ++k) pairs += distances(x, Vector(x.row(k).transpose()), k, square);
  return pairs / (static_cast<double>(M) * static_cast<double>(M - 1));
}

/// Adds what one lead says of a forecast given by draws (rows, in units of sd), their half_spread, and a band. The CRPS of each
/// variable.
Vector add(Sums& sums, const Matrix& draws, double half, const Vector& y, const Vector& lower, const Vector& upper, double level) {
  const Eigen::Index n = y.size();
  Vector crps(n);
  const Vector mean = draws.colwise().mean();
  std::vector<double> column(static_cast<std::size_t>(draws.rows()));
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index k = 0; k < draws.rows(); ++k) column[static_cast<std::size_t>(k)] = draws(k, i);
    const double below = std::max(0.0, lower[i] - y[i]), above = std::max(0.0, y[i] - upper[i]);
    sums.covered += below == 0 && above == 0;
    sums.width += upper[i] - lower[i];
    sums.interval += upper[i] - lower[i] + 2 / (1 - level) * (below + above);
    sums.crps += crps[i] = crps_of(column, y[i]);
    sums.error += (y[i] - mean[i]) * (y[i] - mean[i]);
    if (draws.rows() > 1)
      sums.spread += (draws.col(i).array() - mean[i]).square().sum() / static_cast<double>(draws.rows() - 1);
    ++sums.count;
  }
  sums.energy += mean_distance(draws, y) - half;
  ++sums.leads;
  return crps;
}

EvaluationRow row_of(std::string name, const std::vector<OneStart>& starts, Sums OneStart::*which) {
  EvaluationRow row;
  row.name = std::move(name);
  const auto over = [&](auto value) {
    std::vector<double> values;
    for (const OneStart& s : starts)
      if (s.good) values.push_back(value(s.*which));
    return mean_of(values);
  };
  row.coverage = over([](const Sums& s) { return s.covered / s.count; });
  row.width = over([](const Sums& s) { return s.width / s.count; });
  row.interval_score = over([](const Sums& s) { return s.interval / s.count; });
  row.crps = over([](const Sums& s) { return s.crps / s.count; });
  row.energy = over([](const Sums& s) { return s.energy / s.leads; });
  double spread = 0, error = 0;
  for (const OneStart& s : starts)
    if (s.good) spread += (s.*which).spread, error += (s.*which).error;
  row.spread_error = error > 0 ? std::sqrt(spread / error) : 0;
  return row;
}

/// P(χ² with k degrees of freedom > x), by the regularised incomplete gamma function's series or continued fraction.
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

std::vector<Start> choose_starts(const Dataset& truth, const EvaluateOptions& o, long& candidates) {
  std::vector<Start> all;
  for (const Trajectory& t : truth.trajectories)
    for (int i = 0; i + 1 < t.rows(); ++i) {
      const double end = t.times[static_cast<std::size_t>(i)] + o.horizon;
      if (end > t.times.back() * (1 + 1e-12) || (truth.certified_until && end > *truth.certified_until)) break;
      all.push_back({&t, i, {}});
    }
  candidates = static_cast<long>(all.size());
  if (candidates < 2)
    throw_data({truth.source, fmt::format("{} rows with {} time units after them", candidates, o.horizon),
                "at least two", "Give a longer truth, or a smaller --horizon."});
  std::vector<Start> chosen;
  const auto wanted = static_cast<std::size_t>(std::min<long>(o.starts, candidates));
  for (std::size_t k = 0; k < wanted; ++k) chosen.push_back(all[wanted == 1 ? 0 : k * (all.size() - 1) / (wanted - 1)]);
  for (Start& s : chosen) {
    const auto& times = s.trajectory->times;
    const auto begin = times.begin() + s.row + 1;
    const auto end = std::upper_bound(begin, times.end(), times[static_cast<std::size_t>(s.row)] + o.horizon * (1 + 1e-12));
    const auto rows = static_cast<int>(end - begin), leads = std::min(o.leads, rows);
    for (int j = 1; j <= leads; ++j)
      s.rows.push_back(s.row + static_cast<int>(static_cast<long>(j) * rows / leads));
  }
  return chosen;
}

/// States of the truth, as many as draws and evenly spaced, and mean ± c sd, in units of sd.
struct Climate {
  Vector scale;
  Matrix states;
  double half = 0;  ///< half_spread of the states
  Vector lower, upper;
};

Climate climate_of(const Dataset& truth, const EvaluateOptions& o) {
  const Spread truth_spread = spread(truth);
  Climate climate;
  climate.scale = truth_spread.sd.unaryExpr([](double s) { return s > 0 ? s : 1; });
  const double c = normal_quantile((1 + o.forecast.level) / 2);
  climate.lower = (truth_spread.mean - c * truth_spread.sd).cwiseQuotient(climate.scale);
  climate.upper = (truth_spread.mean + c * truth_spread.sd).cwiseQuotient(climate.scale);
  const long rows = truth.rows(), kept = std::min<long>(rows, o.forecast.draws);
  climate.states.resize(kept, truth_spread.sd.size());
  long at = 0, next = 0;
  for (const Trajectory& t : truth.trajectories)
    for (int i = 0; i < t.rows(); ++i, ++at)
      if (next < kept && at >= next * rows / kept)
        climate.states.row(next++) = t.states.row(i).cwiseQuotient(climate.scale.transpose());
  climate.half = half_spread(climate.states);
  return climate;
}

/// Forecasts from one start and scores it.
struct Judge {
  const Model& model;
  const EvaluateOptions& o;
  std::size_t leads;
  Climate climate;

  OneStart operator()(const Start& start, std::size_t index) const;
  ForecastOptions options(const Start& start, std::size_t index) const;
};

ForecastOptions Judge::options(const Start& start, std::size_t index) const {
  const Trajectory& t = *start.trajectory;
  ForecastOptions f = o.forecast;
  f.threads = 1;
  f.seed += index;
  f.solver = default_solver(model);
  f.masks = MaskSource::sampled;
  f.bands = Bands::sd;
  f.samples = std::min(1000, f.draws);
  f.draws = f.samples;
  f.init = t.states.row(start.row).transpose();
  f.from = t.times[static_cast<std::size_t>(start.row)];
  if (o.observations && f.noise) f.init_sd = *f.noise;
  if (!o.observations) f.noise.reset();
  f.times.clear();
  for (std::size_t j = 0; j < leads; ++j) f.times.push_back(t.times[static_cast<std::size_t>(start.rows[j])]);
  if (model.inputs.measured() > 0) f.inputs = InputSignal{t.times, t.inputs};
  return f;
}

OneStart Judge::operator()(const Start& start, std::size_t index) const {
  const Trajectory& t = *start.trajectory;
  const Eigen::Index n = model.dimension();
  const Vector& scale = climate.scale;
  const ForecastOptions f = options(start, index);
  OneStart one;
  const Vector kept_state = f.init->cwiseQuotient(scale);
  for (std::size_t j = 0; j < leads; ++j) {
    pulse();
    const Vector y = t.states.row(start.rows[j]).transpose().cwiseQuotient(scale);
    add(one.climatology, climate.states, climate.half, y, climate.lower, climate.upper, f.level);
    add(one.persistence, kept_state.transpose(), 0, y, kept_state, kept_state, f.level);
  }
  const Forecast made = forecast(model, f, ignore_progress);
  if (made.times.size() != leads + 1) return one;
  one.good = true;
  one.covered = one.spread = one.error = one.scores = one.crps = Matrix::Zero(static_cast<Eigen::Index>(leads), n);
  Stream stream(o.forecast.seed, Purpose::evaluation, index);
  const auto asked_lead = static_cast<std::size_t>(stream.uniform() * static_cast<double>(leads));
  const auto asked_variable = static_cast<Eigen::Index>(stream.uniform() * static_cast<double>(n));
  const Matrix &lower = f.noise ? made.observed_lower : made.lower, &upper = f.noise ? made.observed_upper : made.upper;
  bool valid[4] = {true, true, true, true};
  double cumulative = 0, sizes = 0, smape = 0;
  for (std::size_t j = 0; j < leads; ++j) {
    pulse();
    const auto row = static_cast<Eigen::Index>(j + 1);
    const Vector y = t.states.row(start.rows[j]).transpose();
    Matrix draws(static_cast<Eigen::Index>(made.samples.size()), n);
    for (Eigen::Index k = 0; k < draws.rows(); ++k) {
      const Matrix& sample = made.samples[static_cast<std::size_t>(k)];
      draws.row(k) = sample.row(std::min(row, sample.rows() - 1));
      if (f.noise)
        for (Eigen::Index i = 0; i < n; ++i) draws(k, i) += (*f.noise)[i] * stream.normal();
    }
    const Matrix scaled = draws * scale.cwiseInverse().asDiagonal();
    one.crps.row(row - 1) = add(one.model, scaled, half_spread(scaled), y.cwiseQuotient(scale),
                                lower.row(row).transpose().cwiseQuotient(scale),
                                upper.row(row).transpose().cwiseQuotient(scale), f.level);
    double square = 0, norm = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double mean = made.mean(row, i), sd = made.sd(row, i), error = y[i] - mean;
      const double full = f.noise ? std::hypot(sd, (*f.noise)[i]) : sd;
      one.covered(row - 1, i) = lower(row, i) <= y[i] && y[i] <= upper(row, i);
      one.spread(row - 1, i) = full * full / (scale[i] * scale[i]);
      one.error(row - 1, i) = error * error / (scale[i] * scale[i]);
      one.scores(row - 1, i) = std::abs(error) / (full + kCalibrationFloor * model.size[i]);
      square += one.error(row - 1, i);
      norm += error * error;
      smape += 2 * std::abs(error) / std::max(1e-300, std::abs(y[i]) + std::abs(mean));
      sizes += y[i] * y[i];
    }
    cumulative += norm;
    const auto count = static_cast<double>(n), upto = static_cast<double>(j + 1);
    // Vlachas 2020; Pathak 2018 (mean square of the truth so far); cumulative sMAPE (0 to 100), cumulative NRMSE.
    const bool still[4] = {std::sqrt(square / count) < 0.5, std::sqrt(norm / (sizes / upto)) < 0.4,
                           100 * smape / (2 * count * upto) <= 30, std::sqrt(cumulative / sizes) <= 0.5};
    for (int v = 0; v < 4; ++v) {
      valid[v] = valid[v] && still[v];
      if (valid[v]) one.valid[v] = f.times[j] - *f.from;
    }
    if (j == asked_lead) {
      long below = 0, equal = 0;
      for (Eigen::Index k = 0; k < draws.rows(); ++k) {
        below += draws(k, asked_variable) < y[asked_variable];
        equal += draws(k, asked_variable) == y[asked_variable];
      }
      const double rank = static_cast<double>(below) + stream.uniform() * static_cast<double>(equal + 1);
      one.rank = std::min(o.bins - 1, static_cast<int>(o.bins * rank / static_cast<double>(draws.rows() + 1)));
    }
  }
  return one;
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

double energy_score(const Matrix& draws, const Vector& truth) { return mean_distance(draws, truth) - half_spread(draws); }

bool looks_noisy(const Dataset& data, const Vector& noise) {
  const Inspection rows = inspect(source_of(data));
  // Coarse rows of a smooth motion look noisy too, by far less than a ten thousandth.
  for (Eigen::Index i = 0; i < noise.size(); ++i)
    if (noise[i] > 1e-4 * rows.sd[i] && rows.noise[i] > 0.5 * noise[i]) return true;
  return false;
}

Evaluation evaluate(const Model& model, const Dataset& truth, const EvaluateOptions& given, const Observer& observer) {
  EvaluateOptions o = given;
  if (o.horizon == 0)
    for (const Trajectory& t : truth.trajectories)
      o.horizon = std::max(o.horizon, (std::min(t.times.back(), truth.certified_until.value_or(t.times.back())) - t.times.front()) / 4);
  if (truth.variables != model.variables)
    throw_data({truth.source, fmt::format("{} variables", truth.variables.size()),
                "the variables of the model, in their order", "Choose them with --variables."});
  if (!(o.horizon > 0) || o.starts < 2 || o.leads < 1 || o.bins < 2)
    throw_usage({"evaluate", fmt::format("{} starts, horizon {}, {} bins", o.starts, o.horizon, o.bins),
                 "at least 2 starts and bins and a horizon > 0",
                 "For example --starts 100 --horizon 10."});
  Evaluation result;
  result.variables = model.variables;
  result.level = o.forecast.level;
  result.observations = o.observations;
  result.horizon = o.horizon;
  result.noisy_truth = !o.observations && model.kind == ModelKind::flow && looks_noisy(truth, model.noise);
  const std::vector<Start> starts = choose_starts(truth, o, result.candidates);
  const Eigen::Index n = model.dimension();
  // Uneven rows have leads of their own; the first start's stand for all.
  const double from = starts[0].trajectory->times[static_cast<std::size_t>(starts[0].row)];
  std::size_t leads = starts[0].rows.size();
  for (const Start& s : starts) leads = std::min(leads, s.rows.size());
  for (std::size_t j = 0; j < leads; ++j)
    result.leads.push_back(starts[0].trajectory->times[static_cast<std::size_t>(starts[0].rows[j])] - from);
  const Judge judge{model, o, leads, climate_of(truth, o)};
  std::vector<OneStart> all(starts.size());
  parallel_for(
      o.threads, starts.size(), [&](std::size_t s) { all[s] = judge(starts[s], s); },
      [&](std::size_t begun) {
        observer("evaluating", static_cast<double>(begun) / static_cast<double>(starts.size()));
      });

  result.ranks.assign(static_cast<std::size_t>(o.bins), 0);
  for (const OneStart& s : all) {
    result.energies.push_back((s.good ? s.model.energy : s.persistence.energy) / s.persistence.leads);
    if (!s.good) {
      ++result.discarded;
      continue;
    }
    ++result.starts;
    ++result.ranks[static_cast<std::size_t>(s.rank)];
  }
  if (result.starts < 2)
    throw_data({"evaluate", fmt::format("{} of {} forecasts with enough trajectories", result.starts, starts.size()),
                "at least two", "The model blows up: shorten --horizon, or fit again."});
  result.model = row_of("model", all, &OneStart::model);
  result.climatology = row_of("climatology", all, &OneStart::climatology);
  result.persistence = row_of("persistence", all, &OneStart::persistence);
  result.crps = Vector::Zero(n);
  for (const OneStart& s : all)
    if (s.good) result.crps += s.crps.colwise().mean().transpose() / result.starts;
  const double expected = static_cast<double>(result.starts) / o.bins;
  double chi = 0;
  for (const int count : result.ranks) chi += (count - expected) * (count - expected) / expected;
  result.uniformity = chi_square_tail(chi, o.bins - 1);
  for (std::size_t j = 0; j < leads; ++j) {
    std::vector<double> covered;
    double spread_square = 0, error_square = 0;
    Matrix& scores = result.scores.emplace_back(result.starts, n);
    Eigen::Index at = 0;
    for (const OneStart& s : all) {
      if (!s.good) continue;
      const auto row = static_cast<Eigen::Index>(j);
      covered.push_back(s.covered.row(row).mean());
      spread_square += s.spread.row(row).mean() / result.starts;
      error_square += s.error.row(row).mean() / result.starts;
      scores.row(at++) = s.scores.row(row);
    }
    result.coverage.push_back(mean_of(covered));
    result.spread.push_back(std::sqrt(spread_square));
    result.error.push_back(std::sqrt(error_square));
  }
  static constexpr const char* names[4] = {"error below 0.5 sd (Vlachas 2020)", "error below 0.4 of the norm (Pathak 2018)",
                                           "cumulative sMAPE up to 30 (Gilpin 2023)", "cumulative NRMSE up to 0.5"};
  for (int v = 0; v < 4; ++v) {
    std::vector<double> times;
    for (const OneStart& s : all)
      if (s.good) times.push_back(s.valid[v]);
    std::sort(times.begin(), times.end());
    const auto quantile = [&](double p) {
      const double position = p * static_cast<double>(times.size() - 1);
      const auto low = static_cast<std::size_t>(position), high = std::min(low + 1, times.size() - 1);
      return times[low] + (position - static_cast<double>(low)) * (times[high] - times[low]);
    };
    result.valid.push_back({names[v], quantile(0.5), quantile(0.25), quantile(0.75)});
  }
  return result;
}

namespace {

/// The ⌈(N+1) level⌉-th smallest of N scores, for each lead and variable.
Matrix conformal_factors(const std::vector<Matrix>& scores, double level) {
  const Eigen::Index N = scores[0].rows(), n = scores[0].cols();
  const auto rank = static_cast<Eigen::Index>(std::ceil((static_cast<double>(N) + 1) * level * (1 - 1e-12)));
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

/// Whether so many starts have an order statistic for the level.
bool enough(double starts, double level) { return std::ceil((starts + 1) * level * (1 - 1e-12)) <= starts; }

}  // namespace

std::vector<double> judged_coverage(const Evaluation& e) {
  const Eigen::Index middle = e.starts / 2;
  if (!enough(static_cast<double>(middle), e.level)) return {};
  std::vector<Matrix> first, second;
  for (const Matrix& scores : e.scores) {
    first.push_back(scores.topRows(middle));
    second.push_back(scores.bottomRows(scores.rows() - middle));
  }
  const Matrix by_first = conformal_factors(first, e.level), by_second = conformal_factors(second, e.level);
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
                fmt::format("at least {:.0f} for a level of {}", std::ceil(e.level / (1 - e.level) * (1 - 1e-12)), e.level),
                "Give more --starts, a longer truth or a lower --level."});
  CalibrationPart part;
  part.level = e.level;
  part.starts = e.starts;
  part.observed = e.observations;
  part.leads = e.leads;
  part.factors = conformal_factors(e.scores, e.level);
  for (const Mean& m : e.coverage) part.before.push_back(m.value);
  part.after = judged_coverage(e);
  return part;
}

Fit fit_calibrated(const Dataset& data, double holdout, const FitOptions& options, const Observer& observer) {
  const Split split = split_last(data, holdout);
  double longest = 0;
  for (const Trajectory& t : split.test.trajectories) longest = std::max(longest, t.times.back() - t.times.front());
  EvaluateOptions e;
  e.starts = 200;
  e.horizon = longest / 4;
  e.leads = 20;
  long starts = 0;
  for (const Trajectory& t : split.test.trajectories)
    starts += std::count_if(t.times.begin(), t.times.end(), [&](double time) { return time + e.horizon <= t.times.back(); });
  if (!(longest > 0) || !enough(static_cast<double>(std::min<long>(starts, e.starts)), e.forecast.level))
    throw_data({data.source, fmt::format("{} held-out rows, {} of them with a quarter of the longest part after them", split.test.rows(), starts),
                fmt::format("at least {:.0f} such rows to calibrate {:g} % bands on", std::ceil(e.forecast.level / (1 - e.forecast.level) * (1 - 1e-12)), 100 * e.forecast.level), "Hold out more (--holdout), or give longer trajectories."});
  Fit result = fit(split.train, options, observer);
  if (!result.summary.usable) return result;
  e.forecast.blow_up = BlowUp::until;
  e.forecast.seed = options.seed;
  e.threads = options.threads;
  if (result.model.noise.size() > 0) {  // the held-out rows are observations: so are the starts
    e.observations = true;
    e.forecast.noise = result.model.noise;
  }
  result.model.calibration = conformal(evaluate(result.model, split.test, e, observer));
  return result;
}

}  // namespace odecast
