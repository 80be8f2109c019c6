#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/forecast/forecast.hpp"

namespace odecast {

struct EvaluateOptions {
  int starts = 100;    ///< rows of the truth to forecast from, evenly spaced among those with a
                       ///< horizon after them
  double horizon = 0;  ///< in the user's time; 0: a quarter of the longest trajectory, at most as
                       ///< long as a solution from t = 0 is certified
  /// Times after the start that are scored, at most. They are multiples of the rows' usual spacing,
  /// or of a longer time where rows are uneven; each start is judged at the row nearest to each,
  /// and left out where that is more than half a unit away.
  int leads = 50;
  int bins = 10;  ///< of the ranks
  /// Draws, level and seed of every forecast; its start, times, inputs, solver and samples are set
  /// here. Start number s takes seed + s: with the same draws at all starts the ranks would not be
  /// independent.
  ForecastOptions forecast = {.draws = 200};
  /// The truth is observed with the noise of `forecast.noise`: starts have it as their sd, and what
  /// is judged is the forecast of an observation.
  bool observations = false;
  /// The truth is a path that is known so well: sd of its states, trajectory by trajectory. Starts
  /// have it, and a band of reach r holds a state of sd s where it is within (r² + c² s²)^½ of the
  /// centre. Empty: the truth is exact.
  std::vector<Matrix> truth_sd = {};
  std::optional<double> lyapunov = {};  ///< largest exponent, to give valid times in Lyapunov times
  int threads = 1;
};

/// A mean over starts, the unit of every standard error: points of one trajectory depend on each
/// other.
struct Mean {
  double value = 0, standard_error = 0;
};
/// Of independent values: their standard deviation divided by the square root of their number.
Mean mean_of(const std::vector<double>& values);

/// Where a forecast starts.
struct StartPlace {
  int trajectory = 0;
  double time = 0;
};
/// Of values of starts, in the order of their trajectories and times. Forecasts of one trajectory
/// overlap where they start within a horizon T, and err together:
///   SE² = Σ_ij w_ij r_i r_j / (N² - Σ_ij w_ij),  w_ij = max(0, 1 - |t_i - t_j| / 2T),
/// r the deviations from the mean, over pairs of the same trajectory (Bartlett's weights, Newey &
/// West 1987); never less than if all were independent.
Mean mean_of(const std::vector<double>& values, const std::vector<StartPlace>& starts,
             double horizon);

/// N² / Σ_ij max(0, 1 - |t_i - t_j| / T): how many independent starts tell as much as these, if
/// forecasts are correlated by as much as they overlap.
double effective_number(const std::vector<StartPlace>& starts, double horizon);

/// p-value of χ² for equally likely bins, given that of each start. χ² is divided by how much more
/// the shares of bins vary than those of independent starts (Rao & Scott 1981), at least 1.
double uniformity_of(const std::vector<int>& bin_of_start, int bins,
                     const std::vector<StartPlace>& starts, double horizon);

/// What is said of one way to forecast. Lengths are in units of each variable's standard deviation
/// in the truth; variables that are constant there are left out.
struct EvaluationRow {
  std::string name;  ///< model, climatology, persistence
  Mean coverage;     ///< of the band, over leads and variables
  Mean width;
  Mean interval_score;  ///< width + (2/α) × how far the truth is outside (Gneiting & Raftery 2007)
  Mean crps;            ///< mean over variables of E|X - y| - ½ E|X - X'|
  Mean energy;  ///< the same with norms of whole states: proper for their joint distribution
  double spread_error =
      0;  ///< rms spread over rms error of the mean; 1 for a forecast that knows itself
  double spread_error_se = 0;
};

/// Valid prediction time in one convention: median and quartiles over starts. The standard error of
/// the median is half the distance of the quantiles at ½ ± the standard error of the share below it
/// (Woodruff 1952).
struct ValidTime {
  std::string convention;
  double median = 0, lower = 0, upper = 0, standard_error = 0;
  bool censored =
      false;  ///< the median start is valid to the last lead: the median is at least that
};

struct Evaluation {
  std::vector<std::string> variables;
  int starts = 0;
  double horizon = 0;
  bool noisy_truth = false;  ///< rows with noise, by their look and by what forecasts over the
                             ///< first lead err, are judged as if they were states
  double share_of_fit = 0;   ///< of the truth's rows that the model learnt from
  long candidates = 0;       ///< rows with a horizon after them, and a row at every lead
  long gaps = 0;  ///< rows with a horizon after them that have none at some lead: not started from
  int discarded =
      0;  ///< starts left out: fewer than two trajectories of theirs reach the last lead
  /// Independent starts that tell as much, effective_number() of those that count.
  double effective = 0;
  /// Share of all trajectories that blow up, by the last lead and by each; every score at a lead is
  /// of those left there.
  double blown_up = 0;
  std::vector<double> blown_up_by_lead;
  double level = 0.95;
  std::vector<double> leads;  ///< times after the start
  EvaluationRow model, climatology, persistence;
  Vector crps, crps_se;  ///< of the model, per variable, in units of its sd; NaN for a constant
  std::vector<double>
      energies;  ///< of the model for each start; persistence's where too few trajectories survive
  std::vector<StartPlace> places;     ///< of these
  std::vector<Mean> coverage;         ///< of the model's band at each lead
  std::vector<double> spread, error;  ///< rms at each lead
  std::vector<ValidTime> valid;       ///< times; four conventions
  /// Rank of the truth among the draws, for one lead and variable of each start: uniform for a
  /// calibrated forecast.
  std::vector<int> ranks;     ///< counts in EvaluateOptions::bins
  double uniformity = 0;      ///< uniformity_of() them
  Bands bands = Bands::sd;    ///< sd or quantiles
  bool observations = false;  ///< of which the bands are, as EvaluateOptions say
  bool smoothed = false;      ///< the truth is a path with an sd
  /// (start, lead, variable): |y - centre| / (reach + floor), the reach that of the side on which y
  /// lies (reach_of), with the noise where y has it: what conformal calibration ranks. Of a path of
  /// sd s ((y - centre)² - c² s²)^½ in the place of |y - centre|, or 0: of independent normal
  /// errors the quantile of either is that of the state itself.
  std::vector<Matrix> scores;  ///< one per lead: starts × variables
};

/// Whether the rows have noise, by their own look: at least half of this sd, which is not next to
/// nothing.
bool looks_noisy(const Dataset& data, const Vector& noise);

/// Forecasts from many rows of the truth and scores them together, beside climatology (draws of the
/// truth's own states) and persistence (the start). Throws Error (data) when there are fewer than
/// two rows with a horizon after them, when a value is missing and when all variables are constant.
Evaluation evaluate(const Model& model, const Dataset& truth, const EvaluateOptions& options,
                    const Observer& observer);

/// E|X - y| - ½ E|X - X'| from draws, the second term over pairs of different draws (fair): rows
/// are draws.
double energy_score(const Matrix& draws, const Vector& truth);

/// Conformal calibration per lead and variable: with N starts the ⌈(N+1) level⌉-th smallest score.
/// If scores of held-out starts and of the forecast to come are exchangeable, the centre less and
/// plus q (reach + floor) holds the truth with probability at least `level`, at each lead and for
/// each variable by itself (Vovk, Gammerman & Shafer 2005; scaled residuals: Papadopoulos et al.
/// 2008; distances of quantiles: Sesia & Candès 2020). Neighbouring starts
/// of one trajectory are exchangeable only as far as the system forgets. Throws Error (data) for
/// fewer than level / (1 - level) starts.
CalibrationPart conformal(const Evaluation& evaluation);

/// Coverage at each lead of bands calibrated on one half of the starts over the other half, both
/// ways: an honest check of conformal(), which keeps it as CalibrationPart::after. Empty where a
/// half has too few starts.
std::vector<double> judged_coverage(const Evaluation& evaluation);

/// Whether so many starts have an order statistic for the level.
bool enough(double starts, double level);

}  // namespace odecast
