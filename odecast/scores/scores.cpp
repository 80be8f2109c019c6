#include "odecast/scores/scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "odecast/core/error.hpp"
#include "odecast/scores/comparison.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast {
namespace {

constexpr double kWellCovered = 0.1;  ///< below the level, at most

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

/// Those columns of the data, which has them.
Dataset columns(const Dataset& data, const std::vector<std::string>& names) {
  Dataset chosen{names, data.trajectories};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto from =
        std::find(data.variables.begin(), data.variables.end(), names[i]) - data.variables.begin();
    for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
      chosen.trajectories[k].inputs = {};
      chosen.trajectories[k].states.col(static_cast<Eigen::Index>(i)) =
          data.trajectories[k].states.col(from);
    }
  }
  for (Trajectory& t : chosen.trajectories)
    t.states.conservativeResize(Eigen::NoChange, static_cast<Eigen::Index>(names.size()));
  return chosen;
}

/// Whether the forecast has bands of observations and the truth looks as if it had their noise σ.
/// At the start they are mean ± c (sd² + σ²)^½; noise that follows the state may be large just
/// there, so that it counts by its root mean square over all rows where that is less.
bool looks_measured(const Forecast& f, const Dataset& truth) {
  const bool quantiles = f.observed_lower.size() == 0;  // of files of old
  const Matrix &lower = quantiles ? f.observed_q_lower : f.observed_lower,
               &upper = quantiles ? f.observed_q_upper : f.observed_upper;
  if (lower.size() == 0) return false;
  const Matrix square = (((upper - lower) / (2 * band_factor(f.level))).cwiseAbs2() -
                         spread_of(f).topRows(lower.rows()).cwiseAbs2())
                            .cwiseMax(0);
  Vector noise = square.row(0).transpose();
  for (Eigen::Index i = 0; i < noise.size(); ++i)
    if (const double mean = square.col(i).mean(); mean > 0) noise[i] = std::min(noise[i], mean);
  return looks_noisy(columns(truth, f.variables), noise.cwiseSqrt());
}

}  // namespace

std::string_view band_name(ScoredBand band) {
  return band == ScoredBand::sd ? "sd" : band == ScoredBand::quantiles ? "quantiles" : "observed";
}

Scores score(const Forecast& forecast, const Dataset& truth, const ScoreOptions& options) {
  if (!(options.threshold > 0))
    throw_usage(
        {"`threshold`", fmt::format("{}", options.threshold), "a number > 0", "0.4 is usual."});
  if (options.lyapunov && !(*options.lyapunov > 0))
    throw_usage({"`lyapunov`", fmt::format("{}", *options.lyapunov), "a number > 0",
                 "Lyapunov times exist for chaotic systems only."});
  const Comparison compared = compare(forecast, truth, options.trajectory);
  const auto n = static_cast<Eigen::Index>(forecast.variables.size());
  const auto count = static_cast<double>(compared.points());
  Scores s;
  s.variables = forecast.variables;
  s.points = compared.points();
  s.from = compared.from;
  s.until = compared.until;
  s.trajectory = compared.trajectory;
  s.level = forecast.level;
  s.vpt_threshold = options.threshold;
  const double c = band_factor(forecast.level);
  const bool observed_q = forecast.observed_lower.size() == 0;
  s.measured = !options.band && looks_measured(forecast, truth);
  const ScoredBand own =
      forecast.bands == Bands::quantiles ? ScoredBand::quantiles : ScoredBand::sd;
  const ScoredBand asked = options.band.value_or(s.measured ? ScoredBand::observed : own);
  const bool observed = asked == ScoredBand::observed;
  s.band = asked == ScoredBand::quantiles && forecast.q_lower.size() == 0 ? own : asked;
  Matrix lower = forecast.lower, upper = forecast.upper;
  if (observed) {
    lower = observed_q ? forecast.observed_q_lower : forecast.observed_lower;
    upper = observed_q ? forecast.observed_q_upper : forecast.observed_upper;
  } else if (s.band == ScoredBand::sd && own != ScoredBand::sd) {
    lower = forecast.mean - c * forecast.sd;
    upper = forecast.mean + c * forecast.sd;
  } else if (options.band == ScoredBand::quantiles && s.band == ScoredBand::quantiles) {
    lower = forecast.q_lower;
    upper = forecast.q_upper;
  }
  if (lower.size() == 0)
    throw_data(
        {"forecast", observed ? "no band for observations" : "no band",
         observed ? "columns such as x_observed_lower" : "columns such as x_lower and x_upper",
         observed ? "Forecast again with `observations`." : "Forecast again with `bands` both."});

  const Vector& sd = compared.truth_sd;
  Vector covered = Vector::Zero(n), width = covered, crps = covered, squares = covered;
  s.vpt_time = compared.until - compared.from;
  bool valid = true;
  const double moving = std::max<double>(1, static_cast<double>((sd.array() > 0).count()));
  for (Eigen::Index r = 0; r < compared.points(); ++r) {
    const Eigen::Index f = compared.rows[static_cast<std::size_t>(r)];
    double instant = 0;
    bool as_noise = s.measured;
    for (Eigen::Index i = 0; i < n; ++i) {
      const double y = compared.truth(r, i), error = forecast.mean(f, i) - y;
      covered[i] += lower(f, i) <= y && y <= upper(f, i);
      width[i] += upper(f, i) - lower(f, i);
      crps[i] +=
          gaussian_crps(forecast.mean(f, i),
                        observed ? (upper(f, i) - lower(f, i)) / (2 * c) : forecast.sd(f, i), y);
      squares[i] += error * error;
      as_noise = as_noise && std::abs(error) <= upper(f, i) - lower(f, i);
      if (sd[i] > 0) instant += (error / sd[i]) * (error / sd[i]);
    }
    if (valid && !(std::sqrt(instant / moving) <= options.threshold)) {
      valid = false;
      s.vpt_ends_by_noise = as_noise;
      s.vpt_time = forecast.times[static_cast<std::size_t>(f)] - compared.from;
    }
  }
  if (options.lyapunov) s.vpt_lyapunov_times = s.vpt_time * *options.lyapunov;
  s.coverage = mean_row(covered, count);
  s.vpt_ends_by_noise = s.vpt_ends_by_noise && s.coverage.all > forecast.level - kWellCovered;
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
  for (const ScoreRow* row : {&s.width, &s.crps, &s.rmse, &s.nrmse})
    require_finite(std::isfinite(row->all), "scores", "an error or a band whose square overflows",
                   "Give forecast and truth in units in which their values are near 1.");
  return s;
}

}  // namespace odecast
