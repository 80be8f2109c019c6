#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/posterior/fit.hpp"

namespace odecast {

struct EvaluateOptions {
  int starts = 100;     ///< rows of the truth to forecast from, evenly spaced among those with a horizon after them
  double horizon = 0;   ///< in the user's time; 0: a quarter of the longest trajectory, as far as it is certified
  int leads = 50;       ///< times after the start that are scored, evenly spaced among the rows
  int bins = 10;        ///< of the ranks
  /// Draws, level and seed of every forecast; its start, times, inputs, solver and samples are set here. Start number s
  /// takes seed + s: with the same draws at all starts the ranks would not be independent.
  ForecastOptions forecast = {.draws = 200};
  /// The truth is observed with the noise of `forecast.noise`: starts have it as their sd, and what is judged is the forecast of an
  /// observation.
  bool observations = false;
  std::optional<double> lyapunov = {};  ///< largest exponent, to give valid times in Lyapunov times
  int threads = 1;
};

/// A mean over starts. Points of one trajectory depend on each other, starts do much less: the standard error is the
/// standard deviation over starts divided by the square root of their number.
struct Mean {
  double value = 0, standard_error = 0;
};
Mean mean_of(const std::vector<double>& of_starts);

/// What is said of one way to forecast. Lengths are in units of each variable's standard deviation in the truth.
struct EvaluationRow {
  std::string name;       ///< model, climatology, persistence
  Mean coverage;          ///< of the band, over leads and variables
  Mean width;
  Mean interval_score;    ///< width + (2/α) × how far the truth is outside (Gneiting & Raftery 2007)
  Mean crps;              ///< mean over variables of E|X - y| - ½ E|X - X'|
  Mean energy;            ///< the same with norms of whole states: proper for their joint distribution
  double spread_error = 0;  ///< rms spread over rms error of the mean; 1 for a forecast that knows itself
};

/// Valid prediction time in one convention: median and quartiles over starts.
struct ValidTime {
  std::string convention;
  double median = 0, lower = 0, upper = 0;
};

struct Evaluation {
  std::vector<std::string> variables;
  int starts = 0;
  double horizon = 0;
  bool noisy_truth = false;  ///< rows with noise, by their look, are judged as if they were states
  long candidates = 0;  ///< rows with a horizon after them
  int discarded = 0;    ///< starts whose forecast had too few trajectories
  double level = 0.95;
  std::vector<double> leads;  ///< times after the start
  EvaluationRow model, climatology, persistence;
  Vector crps;                   ///< of the model, per variable, in units of its sd
  std::vector<double> energies;  ///< of the model for each start; persistence's where too few trajectories survive
  std::vector<Mean> coverage;  ///< of the model's band at each lead
  std::vector<double> spread, error;  ///< rms at each lead
  std::vector<ValidTime> valid;  ///< times; four conventions
  /// Rank of the truth among the draws, for one lead and variable of each start: uniform for a calibrated forecast.
  std::vector<int> ranks;      ///< counts in EvaluateOptions::bins
  double uniformity = 0;       ///< p-value of their χ²
  bool observations = false;   ///< of which the bands are, as EvaluateOptions say
  /// (start, lead, variable): |y - mean| / (sd + floor), what conformal calibration ranks; sd with the noise where y has it.
  std::vector<Matrix> scores;  ///< one per lead: starts × variables
};

/// Whether the rows have noise, by their own look: at least half of this sd, which is not next to nothing.
bool looks_noisy(const Dataset& data, const Vector& noise);

/// Forecasts from many rows of the truth and scores them together, beside climatology (draws of the truth's own states) and
/// persistence (the start). Throws Error (data) when there are fewer than two rows with a horizon after them.
Evaluation evaluate(const Model& model, const Dataset& truth, const EvaluateOptions& options, const Observer& observer);

/// E|X - y| - ½ E|X - X'| from draws, the second term over pairs of different draws (fair): rows are draws.
double energy_score(const Matrix& draws, const Vector& truth);

/// Conformal calibration per lead and variable: with N starts the ⌈(N+1) level⌉-th smallest score. If scores of held-out starts and of the
/// forecast to come are exchangeable, mean ± q (sd + floor) holds the truth with probability at least `level`, at each lead and
/// for each variable by itself (Vovk, Gammerman & Shafer 2005; scaled residuals: Papadopoulos et al. 2008). Neighbouring starts of one
/// trajectory are exchangeable only as far as the system forgets.
/// Throws Error (data) for fewer than level / (1 - level) starts.
CalibrationPart conformal(const Evaluation& evaluation);

/// Coverage at each lead of bands calibrated on one half of the starts over the other half, both ways: an honest check of conformal(),
/// which keeps it as CalibrationPart::after. Empty where a half has too few starts.
std::vector<double> judged_coverage(const Evaluation& evaluation);

/// Learns from all but the last `holdout` of each trajectory and calibrates on that: 200 starts, 20 leads up to a quarter of the longest held-out
/// part, observations where the model knows their noise. The model continues from where the held-out rows begin.
Fit fit_calibrated(const Dataset& data, double holdout, const FitOptions& options, const Observer& observer);

}  // namespace odecast
