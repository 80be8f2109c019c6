#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/field/coefficients.hpp"
#include "odecast/field/polynomial.hpp"
#include "odecast/observations/noise_law.hpp"
#include "odecast/observations/scaling.hpp"
#include "odecast/shooting/offered_functions.hpp"

namespace odecast {

struct TrajectoryOptions {
  /// Candidates are all monomials up to this degree in every equation.
  int degree = 2;
  /// Standard deviation of the observation noise, per variable, user's units; estimated where not
  /// given.
  std::optional<Vector> noise = {};
  /// Whether it grows with the state; noise that is given does not.
  NoiseLaw noise_law = NoiseLaw::automatic;
  /// Huber weights: observations further than 1.345 sd from the path pull no harder than that.
  bool robust = false;
  /// Sets of terms beside the best that are refitted and averaged, a few moves (a term added,
  /// dropped or exchanged) away.
  int neighbours = 32;
  /// Sets are weighed by the evidence of the likelihood to the power 2 / temper. 2 would be the
  /// evidence itself; more measures better where the terms are in doubt, because the sets that were
  /// not refitted are missing.
  double temper = 4;
  /// Functions that the search is offered beside the monomials.
  FunctionWishes functions = {};
  /// Only these terms, without a search, where given: each an equation and the powers of the
  /// variables and behind them the inputs.
  struct KnownTerm {
    int equation;
    std::vector<int> powers;
  };
  std::vector<KnownTerm> terms = {};
  /// Noise is never taken for less than this part of a variable's root mean square. Below lie the
  /// digits of the data.
  double floor = 1e-12;
  /// Measured inputs keep their value until the next row instead of being linear between rows.
  bool hold_inputs = false;
  bool time_input = false;  ///< the time is one more input, the last
  std::string time_name = "t";
  /// Seconds after which the search ends with what it has. Where not given it ends after an amount
  /// of work that follows from the data and the candidates (docs/decisions/0019), so that the
  /// result does not depend on the machine.
  std::optional<double> budget = {};
  int threads = 1;
};

struct TrajectoryFit {
  Scaling scaling;
  Vector input_offset, input_scale;  ///< of the inputs, the time among them
  TermLibrary library;
  std::vector<CoefficientSet> members;  ///< the best first; weights sum to 1
  Vector noise;                         ///< sd per variable, user's units: rms over the rows
  /// The part of noise² that grows as u², of each variable; empty where all noise is constant.
  Vector relative_noise;
  std::vector<bool> log_noise;  ///< of each variable whether it is noise of the logarithm, or empty
  /// Where the data are those of a solver, whose error is smooth: how large it is, as a part of the
  /// variables' root mean squares, by the residuals; 0 elsewhere.
  double precision = 0;
  Vector smoothed_noise;  ///< the same before any equation: Inspection::noise
  /// The path of the best set of terms, at every row, values that were not observed too, trajectory
  /// by trajectory, user's units: what the three numbers below are of.
  std::vector<Matrix> path;
  /// Where the equations do not fit: that of the set with forcing, which jumps between segments.
  std::vector<Matrix> forced_path;
  /// Residuals of the path over the noise that was given, or the smoother's: well above 1 says that
  /// the equations do not fit.
  double noise_ratio = 1;
  double autocorrelation = 0;  ///< of neighbouring residuals, over all variables
  double persistence =
      0;  ///< of residuals, on the scale of the motion, in standard errors of white noise
  /// Where higher degrees show that equations lack something though residuals do not: by how much
  /// (TermSearch::lacking); 0 elsewhere.
  double lacking = 0;
  /// Where the equations do not fit: the gaps between segments, and the largest of their sd over
  /// the noise's.
  Forcing forcing;
  double continuity = 0;
  bool misfit = false;
  bool underdetermined = false;  ///< more unknowns than half of the values
  bool noise_too_small = false;  ///< residuals look like noise, but larger than the one given
  /// What bands may not hold though the equations explain the data; 0 where it is not so.
  struct Doubts {
    double noise_share = 0;  ///< of the sd of the variable that is most noise, where beyond a half
    /// The path has less than two oscillations, and its terms are not likely.
    bool short_run = false;
    double kurtosis = 0;  ///< of residuals, in excess of a normal distribution's, where beyond 3
  };
  Doubts doubts;
  bool stopped = false;  ///< at the end of the budget: better equations may be there
  long steps = 0;        ///< Gauss–Newton steps
  bool usable = false;
  std::string status, reason;
};

/// Scaling of variables and inputs by the root mean square without a shift, which keeps sparse
/// equations sparse, but for those far from 0 (offset.hpp). Weak-constraint multiple shooting
/// (class Shooting) with annealed continuity, elimination and search over terms; docs/theory.md has
/// the whole. A value that is not finite counts as not observed; inputs must be known at every row.
/// Throws Error (data) for data that cannot be learnt from.
TrajectoryFit fit_trajectory(const Dataset& data, const TrajectoryOptions& options,
                             const Observer& observer);

}  // namespace odecast
