#pragma once

#include "odecast/core/observer.hpp"
#include "odecast/learning/method.hpp"
#include "odecast/observations/conserved.hpp"
#include "odecast/observations/source.hpp"
#include "odecast/training/exact.hpp"

namespace odecast {

/// A degree that was tried: its best set of terms, all on the same rows.
struct DegreeTrial {
  int degree, terms;
  double log_evidence;  ///< ln p(rows | set)
  double log_prior;     ///< ln P(set) but for a constant: every term costs max(its degree, 1)
                        ///< ln(variables + 1)
};

/// How the equations of a trajectory fit go through the data, user's units.
struct PathSummary {
  std::vector<Trajectory> runs;         ///< at every row that was learnt from, missing values too
  std::vector<Trajectory> forced_runs;  ///< of a misfit: with forcing, which the others are without
  Vector smoothed_noise;     ///< sd of the noise as a smoother has it, before any equation
  bool noise_given = false;  ///< Model::noise is not estimated
  /// Of a misfit that only terms of higher degrees show: their score, in standard errors; 0
  /// elsewhere.
  double lacking = 0;
  double noise_share = 0;  ///< of the sd of the variable that is most noise, where above a half
  double kurtosis = 0;     ///< in excess of normal residuals', of one variable's, where above 3
};

/// Sets of terms in the average that explain the rows as the most probable one does, and differ
/// from it by a fifth elsewhere: over states up to half of the data's range away from them.
struct Rivals {
  int count = 0;
  double probability = 0;  ///< of all of them
  std::size_t next = 0;    ///< the most probable of them, among PolynomialPart::sets
};

struct FitSummary {
  std::string status;      ///< converged, least_squares, posterior, schedule_done; not_converged,
                           ///< stopped, diverged
  std::string reason;      ///< the same in words
  bool usable = false;     ///< there is a model
  bool trusted = false;    ///< it is what was asked for
  double seconds = 0;      ///< of the fit alone, reading excluded
  std::string derivative;  ///< how derivatives were taken, and why where that was chosen
  int terms = 0;           ///< left by select_terms
  int taken_degree = 0;  ///< in place of the one asked for, where that is kAutomaticDegree or does
                         ///< not explain the rows
  /// Variables that are positive in all rows and not said to be, though bands near the smallest of
  /// them reach below 0.
  std::vector<std::string> perhaps_positive;
  std::optional<double>
      log_evidence;  ///< of `regression`: of the rows given the terms, in model units
  std::vector<DegreeTrial> degrees;  ///< that regression tried for kAutomaticDegree; the highest
                                     ///< sum of the two logarithms was taken, by the trajectory
                                     ///< posterior as the first
  std::vector<ExactSummary::Minimum> minima;  ///< of the exact trainer
  std::vector<std::uint64_t> seeds;           ///< of its starts
  std::optional<PathSummary> path;            ///< of `trajectory`
  std::optional<Conserved> conserved;         ///< the equations are known up to multiples of it
  std::optional<Rivals> rivals;               ///< of the most probable set of terms
};

struct Fit {
  Model model;
  FitSummary summary;
};

/// The data turned into a model. Throws Error (usage) for what check() refuses and Error (data) for
/// data that cannot be learnt from.
Fit fit(const Dataset& data, const FitOptions& options, const Observer& observer = ignore_progress);

/// The same from a source, gone through in passes where the method streams(): by forward and
/// central differences memory does not grow with the rows then. All other ways hold them.
Fit fit(const ObservationSource& source, const FitOptions& options,
        const Observer& observer = ignore_progress);

}  // namespace odecast
