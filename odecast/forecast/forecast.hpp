#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/model/dropout_posterior.hpp"
#include "odecast/model/model.hpp"
#include "odecast/solver/solve.hpp"

namespace odecast {

/// What a trajectory that blows up means.
enum class BlowUp {
  /// It is discarded whole and another is drawn (paper §5, "finite blow up time regularisation").
  /// This looks ahead: a run dropped for what it does at t = 80 changes the band at t = 5.
  discard,
  /// It counts up to the time it blows up; the fraction alive is part of the result. Nothing looks
  /// ahead, but late times rest on the survivors only.
  until,
};

enum class MaskSource { sampled, enumerated };

struct ForecastOptions {
  /// Start, in the user's units. Without it the forecast continues from the last observation.
  std::optional<Vector> init = {};
  /// Standard deviation of a Gaussian start, per variable; empty for a point (or, when continuing,
  /// for what the model knows).
  std::optional<Vector> init_sd = {};
  /// Time of the start; without it 0 for a given start, else the time of the last observation.
  std::optional<double> from = {};
  /// Output times, increasing, all after the start.
  std::vector<double> times = {};
  /// Measured inputs of the model, user's units, the time not among them; from the start to the
  /// end, or to one spacing before it.
  std::optional<InputSignal> inputs = {};
  int draws = 1000;
  double level = 0.95;
  /// What `lower` and `upper` are; default_bands() of the model where not given.
  std::optional<Bands> bands = {};
  BlowUp blow_up = BlowUp::discard;
  /// `enumerated` integrates every field of a finite posterior once, with its probability: no seed
  /// and no Monte Carlo error. `draws` then has no meaning. The start must be a point.
  MaskSource masks = MaskSource::sampled;
  /// When the model's own posterior draws its masks anew.
  MaskChange mask = MaskChange::never;
  /// Adds ε ~ N(0, h^m) to the state at every output time, h the spacing of the output times and m
  /// the order of the solver's error: 4 for rk45, as the paper takes it, 4 for rk4 and 1 for euler.
  /// In the model's units.
  bool transition_noise = false;
  /// Its times are in the user's units; default_solver() of the model where not given.
  std::optional<SolverOptions> solver = {};
  /// Of learnt equations tolerances are made finer where their error shows in the band
  /// (checked_solver); not where they are what was asked for.
  bool check_tolerances = true;
  /// radau takes the place of rk45 where learnt equations are stiff (is_stiff).
  bool check_stiffness = true;
  /// A trajectory blows up when it leaves |v| <= bound_factor × the data's largest |v|; of learnt
  /// equations also when it is kFarRanges ranges of a variable away from the data at an output
  /// time.
  double bound_factor = 1e6;
  /// At most this many trajectories are tried for each one asked for.
  int attempts_per_draw = 20;
  /// How many trajectories the result carries whole, for figures; 0 to 1000. They change nothing
  /// else.
  int samples = 0;
  /// Widen or narrow the band as the model's calibration says, where it has one of this level and
  /// of these bands.
  bool calibrated = true;
  /// Standard deviation of an observation of the state, per variable, for the bands of what would
  /// be observed. By default the model's own, where it knows the noise of its data, without the
  /// quantiles of an observation; zeros: no such bands.
  std::optional<Vector> noise = {};
  std::uint64_t seed = 1;
  int threads = 1;
};

enum class ForecastStatus {
  complete,
  too_few,   ///< fewer trajectories than asked for survive: not to be trusted
  unstable,  ///< of learnt equations more than kMostBlowUps of the draws blew up: the others are a
             ///< selection, not to be trusted
  wide,      ///< of learnt equations the draws spread more than kWide times as far as the data do
             ///< and as their mean has moved: some have left for where no data are
  far,       ///< learnt equations from a start where no data are (kFarSd)
  off_surface,  ///< learnt equations from a start off the surface that all data lie on, which they
                ///< keep: what draws other starts to it, or from it, no data have shown
  kinds,        ///< some draws of learnt equations come to rest and some go on (kOtherKind)
};
/// The last of them.
inline constexpr ForecastStatus kLastForecastStatus = ForecastStatus::kinds;

std::string_view status_name(ForecastStatus status);

/// The share of blow-ups that a posterior of equations may have. A network's masks often blow up,
/// and the paper's method discards them; equations that explain the data do so hardly ever.
inline constexpr double kMostBlowUps = 0.2;
/// Ranges of the data: a trajectory of learnt equations so far from the values that a variable had
/// in them, at the start and in the run of the most probable equations until then is on its way to
/// infinity.
inline constexpr double kFarRanges = 10;
inline constexpr double kWide = 3;
/// A start is far from the data where the nearest row that was kept is more than kFarRows times as
/// far as such rows are from each other at most, and more than kAwaySd standard deviations: of
/// 12,960 starts on attractors of the catalogue, with windows of 1500 or 300 rows and 5 % noise, 1
/// in 900 (studies/far_starts). That is said; from kFarSd on the forecast is not to be trusted.
inline constexpr double kFarRows = 2, kAwaySd = 0.25, kFarSd = 3;
bool is_away(const DistanceFromRows& distance);
/// The same as a sentence without its end.
std::string away_in_words(const DistanceFromRows& distance);
/// A start is off the surface of the rows (surface_of) from so many of their noise on; equations
/// keep it where they move states as far from it as the start across it by less than that share of
/// all their motion.
inline constexpr double kOffSurface = 2, kKept = 0.03;
/// By its second half a draw is at rest where the root mean square over variables of its sd there,
/// over that of the data, is below kAtRest, and moves where it is above kMoves; the share of either
/// from which on the draws are of two kinds.
inline constexpr double kAtRest = 0.02, kMoves = 0.3, kOtherKind = 0.05;

/// Mean and band of the state at each time; rows are times, the start first.
struct Forecast {
  std::vector<std::string> variables;
  std::vector<double> times;
  std::string time_name = "t";            ///< as in the data
  std::optional<Calendar> calendar = {};  ///< of the model
  Matrix mean, sd;
  /// The band: what `bands` says, widened or narrowed where `calibrated`.
  Matrix lower, upper;
  Bands bands = Bands::sd;            ///< quantiles, or sd: mean ± c sd
  Matrix q_lower, q_median, q_upper;  ///< quantiles of the draws; empty for Bands::sd
  /// The band of an observation of the state, with its noise: mean ± c (sd² + σ²)^½, or the median
  /// less and plus the distances of the quantiles and c σ in quadrature. And, where asked for, the
  /// quantiles of the mixture Σ_k w_k N(x_k, σ²) over the draws. Empty where σ is not known
  /// (observation_noise).
  Matrix observed_lower, observed_upper, observed_q_lower, observed_q_upper;
  /// 1 - P(blow-up by that time), over all trajectories tried, the discarded ones too.
  std::vector<double> alive;
  double level = 0.95;
  /// The first draws that count, in draw order; of enumerated masks the most probable. Rows are
  /// times, the start first; one that blows up and counts until then has fewer.
  std::vector<Matrix> samples;

  /// It starts where the data of the model end.
  bool continues = false;

  ForecastStatus status = ForecastStatus::complete;
  std::string reason;
  long draws = 0;                     ///< asked for; the number of fields when enumerated
  long kept = 0;                      ///< that count
  long discarded = 0;                 ///< that blew up: not counted, or counted until then
  long integrated = 0;                ///< distinct trajectories; equal masks are integrated once
  long below_zero = 0;                ///< that left what is known to be positive; not counted, and
                                      ///< no blow-ups
  double discard_probability = 0;     ///< weight of the discarded among all that were tried
  std::vector<double> blow_up_times;  ///< of the discarded, in draw order
  /// lower and upper, or those of observations where the model is calibrated on them, are as
  /// CalibrationPart says.
  bool calibrated = false;
  /// Predictability horizon: the time after the start at which the spread, the root mean square
  /// over variables of spread_of() over the sd of the data, first passes kHorizon. Infinite where
  /// it does not; NaN where it is not known.
  double horizon = std::numeric_limits<double>::quiet_NaN();
  /// Of a given start from the rows that the model kept, where it did.
  std::optional<DistanceFromRows> distance = {};
  /// Of that start from the surface that the rows lie on and the equations keep, in units of the
  /// rows' noise; NaN where there is none.
  double off_surface = std::numeric_limits<double>::quiet_NaN();
  /// Shares of the draws that are kept: NaN where the forecast is too short to say, and of
  /// networks, forced models and the sd band alone.
  double at_rest = std::numeric_limits<double>::quiet_NaN(),
         moving = std::numeric_limits<double>::quiet_NaN();
  double seconds = 0;
  double rtol = 0, atol = 0;  ///< the solver's, in the model's units
  SolverMethod method = SolverMethod::rk45;
};

/// The same share of the error ends the valid prediction time.
inline constexpr double kHorizon = 0.4;

/// Quantiles for learnt equations, few of whose draws may be on their way to infinity; mean ± c sd
/// and quantiles beside them for networks, as the paper has it; those that a model is calibrated
/// for.
Bands default_bands(const Model& model);

/// The centre of the band: the median, or the mean.
const Matrix& centre_of(const Forecast& forecast);
/// The sd, or the distance of the quantiles of the draws as one: (q_upper - q_lower) / 2c.
Matrix spread_of(const Forecast& forecast);

/// How far the band of the draws reaches below and above its centre, of variable i in a row: sd (of
/// Bands::sd, without c) or the distances of the quantiles, each with that of the noise of an
/// observation in quadrature. What a calibration multiplies.
struct Reach {
  double centre, below, above;
};
Reach reach_of(const Forecast& forecast, Eigen::Index row, Eigen::Index i, double noise);

/// Algorithm 2 of the paper: draws of the posterior, integrated forward, blow-ups counted. Same
/// seed, same bits for any number of threads. The model gives units, start and bound; the posterior
/// the fields, in the model's units. The result of fewer than two surviving trajectories has no
/// rows but the start. Throws Error (usage) for options out of range.
Forecast forecast(const Posterior& posterior, const Model& model, const ForecastOptions& options,
                  const Observer& observer);
/// The same with the model's own posterior; `options.mask` is for that of dropout. Without
/// options.init a trajectory posterior draws each trajectory's start together with its field.
Forecast forecast(const Model& model, const ForecastOptions& options,
                  const Observer& observer = ignore_progress);

/// The same with times between those of `options`, for drawing: few of them would make a flow a
/// polygon. What it has at their times is what forecast() gives. Nothing where the times are many,
/// or other ones would change the result: of a map, with steps or noise that go by them.
std::optional<Forecast> drawn_forecast(const Model& model, const ForecastOptions& options,
                                       const Observer& observer = ignore_progress);

/// The c of a band mean ± c sd of that level; of one that is 1 but for its digits, 7.
double band_factor(double level);

/// Noise of a smaller share of a variable's sd is that of numbers, not of measuring.
inline constexpr double kNoNoise = 1e-4;
/// The σ of an observation that a forecast with these options has bands for; empty: none.
Vector observation_noise(const Model& model, const ForecastOptions& options);
/// Of one of the state u, user's units, where the model knows that it depends on it.
Vector observation_noise(const Model& model, const ForecastOptions& options, const Vector& u);

/// Tolerances whose error stays inside the band: SciPy's defaults for a dropout model, finer ones
/// for a trajectory posterior, whose band may be narrow.
SolverOptions default_solver(const Model& model);

/// The solver of a forecast with these options: theirs, with finer tolerances where a few draws of
/// it are moved by these by more than a tenth of their spread, blow up with one of them alone, or
/// fall below the tolerance and return. A variable that decays to 1e-12 and grows again comes back
/// with the sign that the solver's error gave it, which no tolerance in units of the data sees.
SolverOptions checked_solver(const Posterior& posterior, const Model& model,
                             const ForecastOptions& options);

/// Where and when a forecast with these options starts, in the user's units.
struct ForecastStart {
  double time;
  Vector state, sd;
};
ForecastStart forecast_start(const Model& model, const ForecastOptions& options);

/// One trajectory of the mean field or of the point estimate (all units kept; the most probable
/// coefficients of a trajectory posterior), start included.
enum class SingleField { mean, point };
struct SingleTrajectory {
  std::vector<double> times;
  Matrix states;
  SolveStatus status = SolveStatus::finished;
  double reached = 0;
};
SingleTrajectory single_trajectory(const Model& model, SingleField field,
                                   const ForecastOptions& options,
                                   const Observer& observer = ignore_progress);

}  // namespace odecast
