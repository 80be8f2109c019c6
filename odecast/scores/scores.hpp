#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/forecast/forecast.hpp"

namespace odecast {

/// One number per variable and one for all of them.
struct ScoreRow {
  std::vector<double> variables;
  double all = 0;
};

/// `observed` is the band for an observation, where the truth is a noisy one.
enum class ScoredBand { sd, quantiles, observed };
std::string_view band_name(ScoredBand band);

struct ScoreOptions {
  /// By default that of an observation where the forecast has one and the truth looks measured
  /// (looks_noisy), else the forecast's own, `lower` and `upper`. sd of a forecast whose own is
  /// another: mean ± c sd; quantiles: those of the draws, the forecast's own where it has none.
  std::optional<ScoredBand> band = {};
  double threshold = 0.4;               ///< of the valid prediction time
  std::optional<double> lyapunov = {};  ///< largest exponent, to give times in Lyapunov times
  std::string trajectory = {};          ///< id of the truth's trajectory; empty: the last
};

/// A forecast against the truth, at the times both have after the forecast's start.
struct Scores {
  std::vector<std::string> variables;
  long points = 0;  ///< times compared
  double from = 0, until = 0;
  std::string trajectory;  ///< of the truth; empty where there is only one
  double level = 0.95;
  ScoredBand band = ScoredBand::sd;
  bool measured = false;  ///< `band` is of observations because the truth looks noisy

  /// Share of points where the band holds the truth; `all` is the mean over variables.
  ScoreRow coverage;
  /// Mean width of the band, in the units of the variable; `all` is the mean over variables.
  ScoreRow width;
  /// Mean continuous ranked probability score of the Gaussian with the forecast's mean and sd (for
  /// the band of an observation: of the Gaussian which has that band),
  ///   sd [ z (2Φ(z) - 1) + 2φ(z) - 1/√π ],  z = (truth - mean) / sd,
  /// in the units of the variable; |truth - mean| where sd = 0. `all` is the mean over variables.
  ScoreRow crps;
  /// Root mean square error of the mean; `all` over all entries.
  ScoreRow rmse;
  /// The same divided by the standard deviation of the truth over the compared times; `all` is the
  /// root mean square over variables. A variable whose truth is constant has none (NaN) and is left
  /// out of `all` and of the valid prediction time.
  ScoreRow nrmse;
  /// First compared time at which sqrt(mean_i ((mean_i - truth_i) / sd(truth_i))²) exceeds the
  /// threshold, less the forecast's start; the whole span when it never does.
  double vpt_time = 0;
  std::optional<double> vpt_lyapunov_times;
  /// Of measured rows that the band of an observation holds as it says (to a tenth): twice that
  /// band holds the row where this ends, too, so that the noise of one row ended it.
  bool vpt_ends_by_noise = false;
  double vpt_threshold = 0.4;
};

/// Throws Error (data) when variables or times do not match, or when the truth is not certified as
/// far as the forecast goes: scoring against numbers that are not the true solution is refused.
Scores score(const Forecast& forecast, const Dataset& truth, const ScoreOptions& options);

}  // namespace odecast
