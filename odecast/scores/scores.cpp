#include "odecast/scores/scores.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

double gaussian_crps(double mean, double sd, double truth) {
  if (!(sd > 0)) return std::abs(truth - mean);
  const double z = (truth - mean) / sd;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return sd * (z * std::erf(z / std::numbers::sqrt2) + 2 * density - std::numbers::inv_sqrtpi);
}

ScoreRow mean_row(const Vector& sums, double count) {
  ScoreRow row;
  for (const double s : sums) row.variables.push_back(s / count);
  row.all = sums.mean() / count;
  return row;
}

}  // namespace

Scores score(const Forecast& forecast, const Dataset& truth, const ScoreOptions& options) {
  if (!(options.threshold > 0))
    throw_usage({"--threshold", fmt::format("{}", options.threshold), "a number > 0",
                 "0.4 is usual."});
  if (options.lyapunov && !(*options.lyapunov > 0))
    throw_usage({"--lyapunov", fmt::format("{}", *options.lyapunov), "a number > 0",
                 "Lyapunov times exist for chaotic systems only."});
  const Trajectory& t = find_trajectory(truth, options.trajectory);
  std::vector<Eigen::Index> column;
  for (const auto& v : forecast.variables) {
    const auto found = std::find(truth.variables.begin(), truth.variables.end(), v);
    if (found == truth.variables.end())
      throw_data({truth.source, fmt::format("variables {}", fmt::join(truth.variables, ", ")),
                  fmt::format("a variable '{}' as in the forecast", v),
                  "Rename the column, or check that the files belong together."});
    column.push_back(found - truth.variables.begin());
  }

  // Pairs of rows with equal times, the forecast's start left out: it is given, not forecast.
  const double start = forecast.times.front();
  std::vector<std::pair<Eigen::Index, Eigen::Index>> pairs;
  // Equal means: within the round-off of a time, and far less than the spacing of the rows.
  std::size_t j = 0;
  double tolerance = 0;
  for (std::size_t i = 1; i < forecast.times.size(); ++i) {
    const double time = forecast.times[i], spacing = time - forecast.times[i - 1];
    tolerance = std::min(1e-3 * spacing, 1e-6 * spacing + 8e-16 * std::abs(time));
    while (j + 1 < t.times.size() &&
           std::abs(t.times[j + 1] - time) <= std::abs(t.times[j] - time))
      ++j;
    if (std::abs(t.times[j] - time) <= tolerance)
      pairs.emplace_back(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  }
  if (pairs.empty())
    throw_data({truth.source, fmt::format("times {} to {}", t.times.front(), t.times.back()),
                fmt::format("times of the forecast, {} to {}", start, forecast.times.back()),
                "Forecast at the truth's own times with --at FILE, or give both the same --step."});
  const double last = forecast.times[static_cast<std::size_t>(pairs.back().first)];
  if (truth.certified_until && last > *truth.certified_until + tolerance)
    throw_data({truth.source, fmt::format("data certified until t = {} only", *truth.certified_until),
                fmt::format("a certified solution up to t = {}", last),
                "Beyond that time the numbers are not the solution: forecast a shorter time."});

  const auto n = static_cast<Eigen::Index>(forecast.variables.size());
  const auto count = static_cast<double>(pairs.size());
  Scores s;
  s.variables = forecast.variables;
  s.points = static_cast<long>(pairs.size());
  s.from = start;
  s.until = last;
  s.trajectory = t.id;
  s.level = forecast.level;
  s.vpt_threshold = options.threshold;
  const bool have_sd = forecast.lower.size() > 0, have_q = forecast.q_lower.size() > 0;
  s.band = (options.band == ScoredBand::sd ? have_sd : !have_q) ? ScoredBand::sd
                                                               : ScoredBand::quantiles;
  const Matrix& lower = s.band == ScoredBand::sd ? forecast.lower : forecast.q_lower;
  const Matrix& upper = s.band == ScoredBand::sd ? forecast.upper : forecast.q_upper;
  if (lower.size() == 0)
    throw_data({"forecast", "no band", "columns such as x_lower and x_upper",
                "Forecast again with --bands both."});

  const auto true_value = [&](Eigen::Index row, Eigen::Index i) {
    return t.states(row, column[static_cast<std::size_t>(i)]);
  };
  Vector mean = Vector::Zero(n), square = Vector::Zero(n);
  for (const auto& [f, r] : pairs)
    for (Eigen::Index i = 0; i < n; ++i) mean[i] += true_value(r, i) / count;
  for (const auto& [f, r] : pairs)
    for (Eigen::Index i = 0; i < n; ++i)
      square[i] += (true_value(r, i) - mean[i]) * (true_value(r, i) - mean[i]) / count;
  Vector sd = square.cwiseSqrt();
  for (Eigen::Index i = 0; i < n; ++i)
    if (sd[i] <= 1e-15 * count * std::abs(mean[i])) sd[i] = 0;  // constant but for round-off

  Vector covered = Vector::Zero(n), width = covered, crps = covered, squares = covered;
  s.vpt_time = last - start;
  bool valid = true;
  const double moving = std::max<double>(1, static_cast<double>((sd.array() > 0).count()));
  for (const auto& [f, r] : pairs) {
    double instant = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double y = true_value(r, i), error = forecast.mean(f, i) - y;
      covered[i] += lower(f, i) <= y && y <= upper(f, i);
      width[i] += upper(f, i) - lower(f, i);
      crps[i] += gaussian_crps(forecast.mean(f, i), forecast.sd(f, i), y);
      squares[i] += error * error;
      if (sd[i] > 0) instant += (error / sd[i]) * (error / sd[i]);
    }
    if (valid && !(std::sqrt(instant / moving) <= options.threshold)) {
      valid = false;
      s.vpt_time = forecast.times[static_cast<std::size_t>(f)] - start;
    }
  }
  if (options.lyapunov) s.vpt_lyapunov_times = s.vpt_time * *options.lyapunov;
  s.coverage = mean_row(covered, count);
  s.width = mean_row(width, count);
  s.crps = mean_row(crps, count);
  double relative = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    const double rmse = std::sqrt(squares[i] / count);
    s.rmse.variables.push_back(rmse);
    s.nrmse.variables.push_back(sd[i] > 0 ? rmse / sd[i] : std::nan(""));
    if (sd[i] > 0) relative += squares[i] / count / (sd[i] * sd[i]);
  }
  s.rmse.all = std::sqrt(squares.mean() / count);
  s.nrmse.all = std::sqrt(relative / moving);
  return s;
}

}  // namespace odecast
