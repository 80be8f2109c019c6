#pragma once

#include "odecast/model/model.hpp"
#include "odecast/shooting/trajectory_fit.hpp"
#include "odecast/training/exact.hpp"
#include "odecast/training/train.hpp"

namespace odecast {

enum class ScaleKind { standard, none };

enum class Trainer {
  automatic,  ///< exact for polynomial kernels, adam for general networks
  exact,      ///< L-BFGS on the exact objective, from the factor of the rows
  adam,       ///< the paper's Algorithm 1
  sgd,
};

/// Where the spread of the draws comes from.
enum class PosteriorKind {
  dropout,     ///< the paper's: masks of the trained network
  trajectory,  ///< the likelihood of the observations; sparse polynomial fields
  regression,  ///< Bayesian regression on the rows (training/evidence.hpp); sparse polynomial
               ///< fields, normal coefficients
  bootstrap,   ///< least squares on blocks of the rows drawn again (training/bootstrap.hpp);
               ///< polynomial fields
  ensemble,    ///< networks trained from different seeds, without dropout
};

inline constexpr int kAutomaticDegree = 0, kHighestDegree = 5;

struct FitOptions {
  PosteriorKind posterior = PosteriorKind::dropout;
  /// Of `trajectory`; its degree and threads are those below. Its `terms` hold for `regression` on
  /// integrals as well.
  TrajectoryOptions trajectory = {};
  /// map: learn u_{i+1} = f(u_i) from rows that are evenly spaced; no derivative is taken.
  ModelKind kind = ModelKind::flow;
  /// Inputs of the data drive the system, held from row to row or linear between them; with
  /// `time_name` the time is one more, of that name.
  bool hold_inputs = false;
  std::string time_name = {};
  /// p of the polynomial kernel: the highest degree of the learnt equations. kAutomaticDegree, for
  /// `regression` and `bootstrap`: that of the most evidence, up to kHighestDegree.
  int degree = 2;
  /// k, units of the polynomial kernel. 0 means F = C(n+p, p): as many rank-one forms as there are
  /// monomials, which span every polynomial of that degree (10 for n = 3, p = 2, the paper's k).
  int hidden = 0;
  /// r in [0, 1).
  double dropout = 0.25;
  /// Divide masks by 1 - r. The paper does not.
  bool rescale = false;
  /// The dropout objective depends on the units. `none` is the paper's setting.
  ScaleKind scale = ScaleKind::standard;
  /// A general network instead of the polynomial kernel: the units of its hidden layers, each with
  /// `activation` (power: to the `degree`) and dropout on every hidden layer. Empty for the
  /// polynomial kernel.
  std::vector<int> layers = {};
  Activation activation = Activation::tanh;
  DerivativeOptions derivative = {};
  /// Keep only the terms of the equations that the data support, the others exactly 0: by the
  /// evidence for `regression`, in every replicate for `bootstrap`, else by training/selection.hpp.
  /// For dropout 0 and the exact trainer: dropout draws units, not terms.
  bool select_terms = false;
  int replicates = 100;  ///< of `bootstrap`
  int members = 10;      ///< of `ensemble`; seeds seed, seed + 1, …
  Trainer trainer = Trainer::automatic;
  int starts = 8;               ///< of the exact trainer; the best minimum is kept
  int max_iterations = 10'000;  ///< of the exact trainer, per start
  TrainOptions training = {};   ///< schedule of adam and sgd
  std::uint64_t seed = 1;
  int threads = 1;
  /// Seconds after which the fit ends with what it has, status `stopped`. Where not given, searches
  /// and minimisers end after an amount of work that is the same on every machine, about ten
  /// seconds' or, for much data, so many passes over it (docs/theory.md).
  std::optional<double> budget = {};
};

/// A degree that was tried: its best set of terms, all on the same rows.
struct DegreeTrial {
  int degree, terms;
  double log_evidence;  ///< ln p(rows | set)
  double log_prior;     ///< ln P(set) but for a constant: every term costs max(its degree, 1)
                        ///< ln(variables + 1)
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
  std::optional<double>
      log_evidence;  ///< of `regression`: of the rows given the terms, in model units
  std::vector<DegreeTrial> degrees;  ///< that were tried for kAutomaticDegree; the highest sum of
                                     ///< the two logarithms was taken
  std::vector<ExactSummary::Minimum> minima;  ///< of the exact trainer
  std::vector<std::uint64_t> seeds;           ///< of its starts
};

struct Fit {
  Model model;
  FitSummary summary;
};

/// The data turned into a model: units, derivatives, network, training. Throws Error (usage) for
/// options out of range and Error (data) for data that cannot be learnt from.
Fit fit(const Dataset& data, const FitOptions& options, const Observer& observer);

/// The same in passes over a source, by the exact trainer or by regression. With forward and
/// central differences memory does not grow with the rows; the other derivatives look at all rows
/// together and hold them. fit() of a Dataset goes this way too when the trainer is exact: the same
/// bits.
Fit fit_source(const ObservationSource& source, const FitOptions& options,
               const Observer& observer);

/// Whether fit_source() can.
bool fits_source(const FitOptions& options);

}  // namespace odecast
