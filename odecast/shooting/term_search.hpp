#pragma once

#include <limits>
#include <map>
#include <optional>

#include "odecast/core/budget.hpp"
#include "odecast/observations/smoother.hpp"
#include "odecast/shooting/offered_functions.hpp"
#include "odecast/shooting/quadratic_model.hpp"
#include "odecast/shooting/shooting.hpp"
#include "odecast/shooting/trajectory_fit.hpp"

namespace odecast {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kBlurred = 40;       ///< in the score: what numbers of a grid may cost
constexpr double kMuch = 2e9;         ///< operations for a degree that does not explain the data
constexpr std::size_t kRestarts = 3;  ///< of an equation, that begin with one function

/// A set of terms with its path.
struct FittedPath {
  Support support;
  Vector theta;
  Matrix starts;
  Vector noise;
  double score = kInfinity;    ///< of the search, lower is better
  double weighed = kInfinity;  ///< of the average: the weight is exp(-weighed / temper)
};

/// A path with gaps between its segments.
struct LoosePath {
  FittedPath path;
  Forcing forcing;
};

/// Noise below that part of a variable's size is the rounding error of whoever computed it: not
/// white.
inline constexpr double kDigits = 1e-8;

/// The search for terms on one set of observations.
class TermSearch {
 public:
  /// `active` is 0 for a constant variable or input; `known` is the noise, where given. Model
  /// units. `offered`, `options`, `smoothed`, `steps`, `budget` and `observer` must outlive it.
  /// Once the budget is over everything ends soon with what it has; the budget may be renewed.
  /// `library` has the functions of `offered`.
  TermSearch(std::vector<ObservedRun> runs, TermLibrary library, const OfferedFunctions& offered,
             const TrajectoryOptions& options, const Vector& active,
             const std::optional<Vector>& known, const Smoothed& smoothed, long& steps,
             Budget& budget, const Observer& observer);

  int dimension() const { return shooting_.dimension(); }
  Shooting& shooting() { return shooting_; }
  /// q of a path that counts as continuous.
  double tight(const Vector& noise) const;
  /// All monomials up to a degree.
  Support candidates(int degree) const;
  /// The share of the observed motion that the integral form explains with these terms, in the
  /// variable where it is least, over windows of a segment or less.
  double explained(const Support& support);
  /// Terms by annealing: several ways to eliminate, until two agree. Where more candidates are to
  /// follow, not the `last`, a path far from the data that has cost much is left as it is: its
  /// terms do not matter.
  FittedPath find(const Support& support, bool last = true);
  /// The path of a given set of terms.
  FittedPath follow(const Support& support);
  /// To the minimum at tight continuity, with the noise that belongs to it, and an integrator whose
  /// error does not show.
  void converge(FittedPath& path, bool quick = false);
  /// Local search: sets that the quadratic model proposes, refitted, accepted if the score falls.
  /// To leave a local minimum it goes through each of the least bad single moves.
  void improve(FittedPath& path, const Support& all);
  /// The path and the sets of terms around it: best first in the quadratic model, through moves
  /// from the best ones found so far, then refitted. The best path comes first. Functions may say
  /// the same in other words, as 1 - k/(k + x) = x/(k + x): such sets are one.
  std::vector<FittedPath> neighbourhood(FittedPath path, const Support& all);
  /// ln(observed values) + 4 choice(): the second part pays for the choice among what is offered.
  /// A function pays ln(observed values) for every number inside, too.
  double penalty(const FieldTerm& term, const Support& beside) const;
  /// A set of terms, each with its coefficient, with values of the numbers inside; columns become
  /// free functions that start at their values. In the order of supports.
  void set_terms(FittedPath& path, std::vector<std::pair<FieldTerm, double>> terms,
                 std::map<int, double> numbers) const;
  /// Segment starts on the smoothed observations, coefficients from the integral form by ridge
  /// regression, or zero: what shoots best.
  FittedPath start(const Support& support, const std::map<int, double>& numbers = {});
  /// To continuity from far, and without the terms that are not needed then.
  void settle(FittedPath& path);
  /// z of the numbers inside its functions.
  std::map<int, double> numbers_of(const FittedPath& path) const;
  /// Noise, and where outliers are about weights, of the path.
  void use(const FittedPath& path);
  /// Of a converged path, whether or not the noise was given.
  Vector residual_size(const FittedPath& path) {
    return known_ ? estimated_noise(path) : path.noise;
  }
  /// Root mean square of the residuals of each variable, whatever the floor of the noise.
  Vector residual_rms(const FittedPath& path);
  Vector initial_noise() const { return known_ ? *known_ : smoothed_.noise.cwiseMax(floor_); }
  /// By how much the covariance of a Huber estimate exceeds the inverse of its weighted
  /// information: E ψ² E w / (E ψ')² (Huber, Robust Statistics, 1981, 7.6), from the residuals; 1
  /// without weights.
  double covariance_factor(const FittedPath& path) const;
  /// Correlation of neighbouring residuals of the same variable, over all variables.
  double autocorrelation(const FittedPath& path) const;
  /// How much the residuals are alike on the scale of the motion, in standard errors of white
  /// noise. With ρ_j the autocorrelation at lag j of sums over eighths of a segment, n pairs each,
  /// and k = 1 - j/(m+1) up to a lag of two segments (Hong, Econometrica 64, 1996),
  ///   (Σ k² n ρ_j² - Σ k²) / √(2 Σ k⁴),  sums over lags and variables.
  /// What the equations lack shows there long before it enlarges the residuals; noise that is
  /// correlated over few rows only does not.
  double persistence(const FittedPath& path) const;
  /// How much of `all` the path is without, by Rao's score test (Proc. Camb. Phil. Soc. 44 (1948)
  /// 50). With S the unknowns of the path, U the terms that it has not, g half the downhill
  /// gradient and Q the information of both, states eliminated,
  ///   s = g_U - Q_US Q_SS⁻¹ g_S,   J = Q_UU - Q_US Q_SS⁻¹ Q_SU,   s' J⁻¹ s ~ χ²_k
  /// where the path's equations are right, over the k directions of J, scaled to a unit diagonal of
  /// Q_UU, that are not lost to round-off. As a normal score, by Wilson and Hilferty's cube root
  /// (Proc. Nat. Acad. Sci. 17 (1931) 684); 0 for no direction. No term of U needs to be the
  /// missing one: what is none of them has some of its motion, and residuals below the noise, which
  /// are white where coefficients have bent to hide them, do not hide it from the rest of U.
  double lacking(const FittedPath& path, const Support& all);
  /// For equations that miss part of the motion: it enters as gaps between segments, and their sd
  /// is estimated. From the candidates as `start` has them, terms leave (unless `all` are to stay)
  /// by what they explain beyond the gaps. The noise is the one given, or the smoother's. Segments
  /// are shorter from here on.
  LoosePath loosen(const Support& candidates, bool all, const std::map<int, double>& numbers = {});

 private:
  bool is_same_motion(const FittedPath& a, const FittedPath& b) const;
  /// Σ z_k z_{k-j} and the number of pairs at lags j = 0 … of a variable's residuals from the path
  /// u over the noise, where z_k is the sum over a group of neighbouring rows over the root of its
  /// size: of unit variance if they are white.
  struct Lagged {
    std::vector<double> products, pairs;
  };
  Lagged lagged_products(const std::vector<Matrix>& u, const Vector& noise, int variable, int group,
                         int lags) const;
  /// The quadratic model over all candidates at a path.
  struct Linearised {
    QuadraticModel model;
    Support all;
    Sweep sweep;
    Vector theta;  ///< of all terms, then of the numbers inside those of the path
    std::vector<int> chosen;
    Matrix number_slope;   ///< of the numbers' minimiser, -Q_nn⁻¹ Q_nt
    Vector number_centre;  ///< that minimiser where the terms are 0: Q_nn⁻¹ b_n
  };
  /// What a term costs in the average. With the likelihood L = exp(-misfit / 2) to the power 2 / T
  /// the evidence of p terms is L^(2/T) (2 N / T)^(-p/2) times their prior; this is -T times its
  /// logarithm.
  double averaging_penalty(const FieldTerm& term, const Support& beside) const;
  /// degree ln(arguments + 1) of a monomial; of a function that, with its price for the degree, and
  /// ln(kinds) for the choice among those that are offered, unless another equation `beside` has
  /// it, with numbers inside: what one loses another gains.
  double choice(const FieldTerm& term, const Support& beside) const;
  double numbers_in(const FieldTerm& term) const;
  bool is_column(const FieldTerm& term) const;
  /// The sd of gaps of q times the noise.
  Vector gaps(double q) const { return q * shooting_.noise(); }
  double cost(const FittedPath& path, const Vector& gap_sd);
  /// Levenberg–Marquardt at fixed gaps and noise until the cost falls by less than `gain`. Returns
  /// whether every step was accepted.
  bool descend(FittedPath& path, const Vector& gap_sd, int most, double gain);
  /// The sd of gaps that makes the data most likely, per variable, and the path with them; by
  /// iteration from `gap_sd`.
  Vector likeliest_gaps(FittedPath& path, Vector gap_sd);
  /// Gaps as large as forecasts within the data need them (gaps_needed).
  Vector gaps_of_forecasts(const FittedPath& path, const Vector& gap_sd) const;
  /// Noise that was given, or estimated.
  Vector residual_noise(const FittedPath& path) { return known_ ? *known_ : estimated_noise(path); }
  /// Noise from the residuals of the path; the median of their sizes where outliers are about.
  Vector estimated_noise(const FittedPath& path);
  /// visit(variable, y - u) for every observed value, in the order of the runs.
  template <class Visit>
  void for_each_residual(const FittedPath& path, Visit visit) const;
  /// N ln RSS + penalties; where the noise is known, RSS / noise² instead; with outliers about,
  /// twice Huber's loss in units of the smoother's noise.
  void rate(FittedPath& path);
  void charge(FittedPath& path, double misfit) const;
  /// One round of elimination: from the normal approximation the term with least z² - penalty goes,
  /// the rest is conditioned on its absence, and so on. Rounds are small because the approximation
  /// is local.
  bool eliminate(FittedPath& path, const Vector& gap_sd);
  /// Anneal from q = 1 on; terms are eliminated from `eliminate_from` on, or at the end.
  FittedPath anneal(FittedPath path, double from, double eliminate_from, bool last);
  bool is_not_worth_more(const FittedPath& path, bool last) const {
    return !last && budget_.spent() > kMuch && is_far(path);
  }
  /// Its residuals are several times what the smoother leaves.
  bool is_far(const FittedPath& path) const;
  Linearised linearise(const FittedPath& path, const Support& all);
  /// What an equation would be if it began with nothing, or with one function, and what all would
  /// be if they began with one that they share: one function may stand for many terms.
  std::vector<std::vector<int>> beginnings(const Linearised& l);
  /// A path with another set of terms, from the quadratic model.
  FittedPath moved(const FittedPath& from, const Linearised& l, const std::vector<int>& set);
  /// Finer steps while the integrator's error shows and falls: where halved steps leave more than a
  /// quarter of it, it is round-off. Returns whether it changed.
  bool refine(const FittedPath& path);
  void reset_flow();
  /// Huber's weights from the residuals of the path.
  void reweigh(const FittedPath& path);

  const OfferedFunctions& offered_;
  const TrajectoryOptions& options_;
  std::optional<Vector> known_;
  const Smoothed& smoothed_;
  long& steps_;
  Budget& budget_;
  const Observer& observer_;
  Vector active_;  ///< 0 for a constant variable or input
  Shooting shooting_;
  Vector floor_;
  double flow_error_ = kInfinity;  ///< of the flow before it was refined last
};

}  // namespace odecast
