#include "odecast/posterior/trajectory_fit.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/random.hpp"
#include "odecast/posterior/smoother.hpp"

namespace odecast {
namespace {

/// How much the choice among the monomials of a degree costs. At 1, y z is taken for y too often;
/// from 2 on more does not help (docs/theory.md).
constexpr double kDegreePenalty = 2;
/// The same for averaging: a term of degree g has prior (d + 1)^(-g/4).
constexpr double kAveragingPrior = 0.25;
/// Sets of terms whose weight is less than exp(-kWindow / temper) of the best one's are not averaged.
constexpr double kWindow = 16;
/// Sets from which the quadratic model goes on to others.
constexpr int kExpanded = 20;
constexpr double kTight = 1e-3;         ///< continuity of a converged path, in noise sd
constexpr double kSmallestGap = 1e-14;  ///< and never below round-off of the states
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A set of terms with its path.
struct Path {
  Support support;
  Vector theta;
  Matrix starts;
  Vector noise;
  double score = kInfinity;   ///< of the search, lower is better
  double weighed = kInfinity;  ///< of the average: the weight is exp(-weighed / temper)
};

Eigen::MatrixXd inverse_information(const Matrix& Q) {
  const Vector scale = Q.diagonal().cwiseSqrt().cwiseInverse();
  const Eigen::MatrixXd unit = scale.asDiagonal() * Q * scale.asDiagonal();
  const Eigen::MatrixXd inverse =
      Eigen::LDLT<Eigen::MatrixXd>(unit).solve(Eigen::MatrixXd::Identity(Q.rows(), Q.cols()));
  return scale.asDiagonal() * (0.5 * (inverse + inverse.transpose())) * scale.asDiagonal();
}

/// The quadratic model of the cost over all candidates: cost(S) = const - b_S' Q_SS⁻¹ b_S.
struct QuadraticModel {
  Matrix Q;
  Vector b;
  std::vector<double> penalty;

  /// A change of the set: `out` leaves (or -1), `in` enters (or -1); the change of cost + penalty.
  struct Move {
    int out, in;
    double change;
  };

  /// All single moves from the set `S` (indices into the candidates).
  std::vector<Move> moves(const std::vector<int>& S) const {
    const int p = static_cast<int>(S.size()), all = static_cast<int>(b.size());
    Matrix QS(p, p), cross(p, all);
    Vector bS(p);
    for (int a = 0; a < p; ++a) {
      bS[a] = b[S[index(a)]];
      for (int c = 0; c < p; ++c) QS(a, c) = Q(S[index(a)], S[index(c)]);
      for (int j = 0; j < all; ++j) cross(a, j) = Q(S[index(a)], j);
    }
    std::vector<char> in_set(index(all), 0);
    for (const int s : S) in_set[index(s)] = 1;
    std::vector<Move> list;
    const Eigen::MatrixXd inverse = p > 0 ? inverse_information(QS) : Eigen::MatrixXd(0, 0);
    const Eigen::MatrixXd half = inverse * cross;  // Q_SS⁻¹ Q_Sj
    const Vector theta = inverse * bS;
    // Adding j gains (b_j - Q_jS θ)² / (Q_jj - Q_jS Q_SS⁻¹ Q_Sj); dropping i loses θ_i² /
    // (Q_SS⁻¹)_ii.
    for (int out = -1; out < p; ++out) {
      double lost = 0;
      if (out >= 0) {
        lost = theta[out] * theta[out] / inverse(out, out) - penalty[index(S[index(out)])];
        list.push_back({out, -1, lost});
      }
      for (int j = 0; j < all; ++j) {
        if (in_set[index(j)]) continue;
        double slope = b[j] - cross.col(j).dot(theta);
        double left = Q(j, j) - cross.col(j).dot(half.col(j));
        if (out >= 0) {
          // Without i: θ and Q_SS⁻¹ conditioned on θ_i = 0 (rank one).
          slope += half(out, j) * theta[out] / inverse(out, out);
          left += half(out, j) * half(out, j) / inverse(out, out);
        }
        if (!(left > 1e-9 * Q(j, j))) continue;  // a copy of what is there
        list.push_back({out, j, lost - slope * slope / left + penalty[index(j)]});
      }
    }
    return list;
  }

  static void apply(std::vector<int>& S, const Move& move) {
    if (move.out >= 0) S.erase(S.begin() + move.out);
    if (move.in >= 0) S.insert(std::upper_bound(S.begin(), S.end(), move.in), move.in);
  }

  Vector minimiser(const std::vector<int>& S) const {
    const int p = static_cast<int>(S.size());
    Matrix QS(p, p);
    Vector bS(p);
    for (int a = 0; a < p; ++a) {
      bS[a] = b[S[index(a)]];
      for (int c = 0; c < p; ++c) QS(a, c) = Q(S[index(a)], S[index(c)]);
    }
    return inverse_information(QS) * bS;
  }
};

/// The search for terms on one set of observations.
class Search {
 public:
  Search(std::vector<ObservedRun> runs, std::shared_ptr<const MonomialBasis> basis,
         const TrajectoryOptions& options, const Vector& active, const std::optional<Vector>& known,
         const Smoothed& smoothed, long& steps, const Observer& observer)
      : options_(options),
        known_(known),
        smoothed_(smoothed),
        steps_(steps),
        observer_(observer),
        active_(active),
        shooting_(std::move(runs), basis, 1, {}, options.threads) {
    long rows = 0;
    double span = 0, intervals = 0;
    for (const auto& r : shooting_.runs()) {
      rows += static_cast<long>(r.times.size());
      span += r.times.back() - r.times.front();
      intervals += static_cast<double>(r.times.size()) - 1;
    }
    const double spacing = span / std::max(1.0, intervals), tau = smoothed.time_scale;
    // Half a time scale per segment, but at least ten segments.
    long length = std::max(1L, std::lround(tau / 2 / spacing));
    length = std::max(1L, std::min(length, rows / 10));
    shooting_ = Shooting(shooting_.runs(), basis, static_cast<int>(length),
                         {FlowMethod::rk4, tau / 6, 1}, options.threads);
    floor_ = Vector::Constant(dimension(), options.floor);
  }

  int dimension() const { return shooting_.dimension(); }
  Shooting& shooting() { return shooting_; }
  double tight(const Vector& noise) const {
    return std::max(kTight, kSmallestGap / noise.minCoeff());
  }

  /// All terms up to a degree.
  Support candidates(int degree) const {
    Support list;
    const MonomialBasis& basis = *shooting_.basis();
    for (int i = 0; i < dimension(); ++i) {
      if (active_[i] == 0) continue;
      for (int m = 0; m < basis.size(); ++m) {
        int total = 0;
        bool moving = true;
        for (int v = 0; v < dimension(); ++v) {
          total += basis.powers(m)[index(v)];
          if (basis.powers(m)[index(v)] > 0 && active_[v] == 0) moving = false;
        }
        if (moving && total <= degree) list.push_back({i, m});
      }
    }
    return list;
  }

  /// ln(observed values) + 2 degree ln(variables + 1): the second part pays for the choice among
  /// the monomials of that degree.
  double penalty(const FieldTerm& term) const {
    return portable_log(shooting_.counts().sum()) +
           kDegreePenalty * 2 * degree_of(term) * portable_log(dimension() + 1.0);
  }
  /// What a term costs in the average. With the likelihood L = exp(-misfit / 2) to the power 2 / T the evidence of p
  /// terms is L^(2/T) (2 N / T)^(-p/2) times their prior; this is -T times its logarithm.
  double averaging_penalty(const FieldTerm& term) const {
    const double T = options_.temper;
    return T * (0.5 * portable_log(2 * shooting_.counts().sum() / T) +
                kAveragingPrior * degree_of(term) * portable_log(dimension() + 1.0));
  }

  /// Segment starts on the smoothed observations, coefficients from the integral form
  ///   z(t + τ) - z(t) = Σ θ ∫ φ(z) dt
  /// by ridge regression, or zero: what shoots best.
  Path start(const Support& support) {
    Path path{support, Vector::Zero(static_cast<long>(support.size())),
              Matrix(shooting_.segments(), dimension()), initial_noise()};
    for (int j = 0; j < shooting_.segments(); ++j)
      path.starts.row(j) =
          smoothed_.values[index(shooting_.segment(j).run)].row(shooting_.segment(j).first);
    shooting_.set_noise(path.noise);
    double best = cost(path, 1);
    for (const double ridge : {1e-6, 1e-4, 1e-2, 1.0}) {
      Path other = path;
      other.theta = integral_regression(support, ridge);
      const double c = cost(other, 1);
      if (c < best || !std::isfinite(best)) best = c, path.theta = other.theta;
    }
    return path;
  }

  double cost(const Path& path, double q) {
    const auto e = shooting_.evaluate(path.support, path.theta, path.starts, false);
    const double c = total_cost(shooting_, e, path.theta, path.starts, q);
    return std::isfinite(c) ? c : kInfinity;
  }

  /// Levenberg–Marquardt at fixed q and noise until the cost falls by less than `gain`. Returns
  /// whether every step was accepted.
  bool descend(Path& path, double q, int most, double gain) {
    auto e = shooting_.evaluate(path.support, path.theta, path.starts, true);
    double now = total_cost(shooting_, e, path.theta, path.starts, q), damping = 0;
    bool smooth_way = true;
    if (!std::isfinite(now)) return false;
    // Gaps of nearly clean data are round-off: each adds its square in units of q times the noise, and no step removes it.
    const double round_off = 4 * std::numeric_limits<double>::epsilon() / (q * path.noise.minCoeff());
    const double asked = gain;
    gain = std::max(gain, shooting_.segments() * dimension() * round_off * round_off);
    for (int k = 0; k < most;) {
      observer_("fitting", 0);
      const Sweep s = sweep(shooting_, e, path.theta, path.starts, q, damping);
      const Vector dtheta = theta_step(s, damping);
      Path trial = path;
      trial.theta += dtheta;
      trial.starts += state_steps(shooting_, s, dtheta);
      ++steps_;
      bool better = false;
      if (trial.theta.allFinite() && trial.starts.allFinite()) {
        auto next = shooting_.evaluate(trial.support, trial.theta, trial.starts, true);
        const double cost = total_cost(shooting_, next, trial.theta, trial.starts, q);
        better = cost < now;
        if (better) {
          const double fall = now - cost;
          path.theta = std::move(trial.theta);
          path.starts = std::move(trial.starts);
          e = std::move(next);
          now = cost;
          damping = damping > 1e-5 ? damping / 10 : 0;
          ++k;
          if (fall < gain) return smooth_way;
        } else if (std::abs(cost - now) <= std::max(1e-9 * std::abs(now), gain > asked ? gain : 0.1 * gain)) {
          return smooth_way;  // flat to round-off
        }
      }
      if (!better) {
        smooth_way = false;
        damping = std::max(1e-4, 10 * damping);
        if (damping > 1e5) return false;
      }
    }
    return smooth_way;
  }

  /// Noise from the residuals of the path; the median of their sizes where outliers are about.
  Vector residual_noise(const Path& path) {
    if (known_) return *known_;
    if (options_.robust) {
      Vector noise = path.noise;
      for (int i = 0; i < dimension(); ++i) {
        std::vector<double> sizes;
        for_each_residual(path, [&](int variable, double r) {
          if (variable == i) sizes.push_back(std::abs(r));
        });
        const auto middle = sizes.begin() + static_cast<long>(sizes.size() / 2);
        std::nth_element(sizes.begin(), middle, sizes.end());
        if (middle != sizes.end() && std::isfinite(*middle))
          noise[i] = std::max(1.4826 * *middle, floor_[i]);
      }
      return noise;
    }
    const auto e = shooting_.evaluate(path.support, path.theta, path.starts, false);
    Vector noise(dimension());
    const double spent = static_cast<double>(path.theta.size()) / dimension() +
                         static_cast<double>(shooting_.runs().size());
    for (int i = 0; i < dimension(); ++i) {
      const double left = std::max(1.0, shooting_.counts()[i] - spent);
      noise[i] = std::max(std::sqrt(e.squares[i] / left), floor_[i]);
      if (!std::isfinite(noise[i])) noise[i] = path.noise[i];
    }
    return noise;
  }

  void use(const Path& path) {
    shooting_.set_noise(path.noise);
    if (options_.robust) reweigh(path);
  }

  /// visit(variable, y - u) for every observed value, in the order of the runs.
  template <class Visit>
  void for_each_residual(const Path& path, Visit visit) const {
    const auto u = shooting_.path(path.support, path.theta, path.starts);
    for (std::size_t r = 0; r < u.size(); ++r) {
      const ObservedRun& run = shooting_.runs()[r];
      for (long k = 0; k < u[r].rows(); ++k)
        for (int i = 0; i < dimension(); ++i)
          if (run.weights(k, i) > 0) visit(i, run.values(k, i) - u[r](k, i));
    }
  }

  /// To the minimum at tight continuity, with the noise that belongs to it, and an integrator whose
  /// error does not show.
  void converge(Path& path, bool quick = false) {
    for (int round = 0; round < 12; ++round) {
      use(path);
      const double q = tight(path.noise);
      if (!descend(path, q, 30, 0.02) && !quick) {
        // Open the gaps again and close them slowly.
        Path other = path;
        for (const double wide : {0.2, 0.06, 0.02, 0.006})
          if (wide > q) descend(other, wide, 6, 0.1);
        descend(other, q, 30, 0.02);
        if (cost(other, q) < cost(path, q)) path.theta = other.theta, path.starts = other.starts;
      }
      const Vector noise = residual_noise(path);
      const double moved = (noise.array() / path.noise.array() - 1).abs().maxCoeff();
      path.noise = noise;
      use(path);
      const bool refined = refine(path);
      if (moved < 0.01 && !refined) break;
    }
    rate(path);
  }

  /// N ln RSS + penalties; where the noise is known, RSS / noise² instead; with outliers about,
  /// twice Huber's loss in units of the smoother's noise.
  void rate(Path& path) {
    if (options_.robust) {
      const Vector unit = initial_noise();
      double score = 0;
      for_each_residual(path, [&](int i, double r) {
        const double z = std::abs(r) / unit[i];
        score += z <= kHuber ? z * z : kHuber * (2 * z - kHuber);
      });
      charge(path, score);
      return;
    }
    const auto e = shooting_.evaluate(path.support, path.theta, path.starts, false);
    double score = 0;
    for (int i = 0; i < dimension(); ++i) {
      const double n = shooting_.counts()[i];
      if (known_)
        score += e.squares[i] / ((*known_)[i] * (*known_)[i]);
      else if (n > 0)
        score += n * portable_log(std::max({e.squares[i] / n, floor_[i] * floor_[i], 1e-300}));
    }
    charge(path, score);
  }

  /// One round of elimination: from the normal approximation the term with least z² - penalty goes,
  /// the rest is conditioned on its absence, and so on. Rounds are small because the approximation
  /// is local.
  bool eliminate(Path& path, double q) {
    if (path.support.empty()) return false;
    const auto e = shooting_.evaluate(path.support, path.theta, path.starts, true);
    const Sweep s = sweep(shooting_, e, path.theta, path.starts, q);
    Eigen::MatrixXd C = inverse_information(s.Q);
    Vector theta = path.theta;
    const long p = theta.size();
    std::vector<char> gone(index(p), 0);
    double sum = 0;
    long removed = 0;
    const long most = std::max(1L, p / 3);
    while (removed < most) {
      long worst = -1;
      double least = 0, z2_worst = 0;
      for (long c = 0; c < p; ++c) {
        if (gone[index(c)] || !(C(c, c) > 0)) continue;
        const double z2 = theta[c] * theta[c] / C(c, c),
                     excess = z2 - penalty(path.support[index(c)]);
        if (excess < least) least = excess, worst = c, z2_worst = z2;
      }
      if (worst < 0 || (removed > 0 && sum + z2_worst >= 6)) break;
      sum += z2_worst;
      ++removed;
      gone[index(worst)] = 1;
      const Vector column = C.col(worst);
      theta -= column * (theta[worst] / column[worst]);
      C -= column * column.transpose() / column[worst];
      theta[worst] = 0;
    }
    if (removed == 0) return false;
    const Vector dtheta = theta - path.theta;
    const Matrix ds = state_steps(shooting_, s, dtheta);
    Path best;
    double best_cost = kInfinity;
    for (const double part : {1.0, 0.3, 0.0}) {
      Path trial;
      trial.noise = path.noise;
      trial.starts = path.starts + part * ds;
      std::vector<double> kept;
      for (long c = 0; c < p; ++c) {
        if (gone[index(c)]) continue;
        trial.support.push_back(path.support[index(c)]);
        kept.push_back(path.theta[c] + part * dtheta[c]);
      }
      trial.theta = Eigen::Map<Vector>(kept.data(), static_cast<long>(kept.size()));
      const double c = cost(trial, q);
      if (c < best_cost) best_cost = c, best = std::move(trial);
      if (part == 1.0 && best_cost < kInfinity && best_cost < cost(path, q) + 2 * sum + 2) break;
    }
    if (best_cost == kInfinity) return false;
    path = std::move(best);
    return true;
  }

  /// Anneal from q = 1 on; terms are eliminated from `eliminate_from` on, or at the end.
  Path anneal(Path path, double from, double eliminate_from) {
    for (double q = from; q > kTight; q /= 2) {
      use(path);
      descend(path, q, 3, 1);
      if (q <= eliminate_from && eliminate(path, q)) descend(path, q, 2, 1);
      // The noise is that of the smoother until the path is nearly continuous.
    }
    converge(path);
    while (eliminate(path, tight(path.noise))) converge(path);
    return path;
  }

  /// Terms by annealing: several ways to eliminate, until two agree.
  Path find(const Support& support) {
    Path begin = start(support);
    use(begin);
    for (double q = 1; q > 0.3; q /= 2) descend(begin, q, 3, 1);
    std::vector<Path> found;
    for (const double from : {0.25, 0.0, 0.03}) {
      found.push_back(anneal(begin, 0.25, from));
      reset_flow();
      for (std::size_t k = 0; k + 1 < found.size(); ++k)
        if (found[k].support == found.back().support) return better(found);
    }
    return better(found);
  }

  /// The path of a given set of terms.
  Path follow(const Support& support) {
    Path path = start(support);
    for (double q = 1; q > kTight; q /= 2) {
      use(path);
      descend(path, q, 3, 1);
    }
    converge(path);
    return path;
  }

  /// The quadratic model over all candidates at a path.
  struct Linearised {
    QuadraticModel model;
    Support all;
    Sweep sweep;
    Vector theta;
    std::vector<int> chosen;
  };
  Linearised linearise(const Path& path, const Support& all) {
    Linearised l;
    l.all = all;
    for (const FieldTerm& t : path.support)
      if (!std::binary_search(all.begin(), all.end(), t)) l.all.push_back(t);
    std::sort(l.all.begin(), l.all.end());
    l.theta = Vector::Zero(static_cast<long>(l.all.size()));
    for (std::size_t c = 0; c < path.support.size(); ++c) {
      const auto at = std::lower_bound(l.all.begin(), l.all.end(), path.support[c]) - l.all.begin();
      l.theta[at] = path.theta[static_cast<long>(c)];
      l.chosen.push_back(static_cast<int>(at));
    }
    use(path);
    const auto e = shooting_.evaluate(l.all, l.theta, path.starts, true);
    l.sweep = sweep(shooting_, e, l.theta, path.starts, tight(path.noise));
    l.model.Q = l.sweep.Q;
    l.model.b = l.sweep.gamma + l.sweep.Q * l.theta;
    for (const FieldTerm& t : l.all) l.model.penalty.push_back(penalty(t));
    return l;
  }

  /// A path with another set of terms, from the quadratic model.
  Path moved(const Path& from, const Linearised& l, const std::vector<int>& set) {
    const Vector theta = l.model.minimiser(set);
    Vector whole = Vector::Zero(l.theta.size());
    Path path;
    path.noise = from.noise;
    path.theta = theta;
    for (std::size_t c = 0; c < set.size(); ++c) {
      path.support.push_back(l.all[index(set[c])]);
      whole[set[c]] = theta[static_cast<long>(c)];
    }
    const Matrix ds = state_steps(shooting_, l.sweep, whole - l.theta);
    path.starts = from.starts + ds;
    if (cost(path, tight(from.noise)) == kInfinity) path.starts = from.starts;
    return path;
  }

  /// The set that best moves in the quadratic model lead to, and the change of cost + penalty.
  static double settle(const QuadraticModel& model, std::vector<int>& set) {
    double change = 0;
    for (int k = 0; k < 30; ++k) {
      const auto list = model.moves(set);
      const auto best = std::min_element(list.begin(), list.end(), by_change);
      if (best == list.end() || best->change >= -1e-6) break;
      change += best->change;
      QuadraticModel::apply(set, *best);
    }
    return change;
  }

  /// Local search: sets that the quadratic model proposes, refitted, accepted if the score falls.
  /// To leave a local minimum it goes through each of the least bad single moves.
  void improve(Path& path, const Support& all) {
    for (int round = 0; round < 8; ++round) {
      const Linearised l = linearise(path, all);
      struct Proposal {
        double change;
        std::vector<int> set;
      };
      std::vector<Proposal> proposals;
      const auto propose = [&](double change, const std::vector<int>& set) {
        if (set == l.chosen || change >= 0) return;
        for (const Proposal& p : proposals)
          if (p.set == set) return;
        proposals.push_back({change, set});
      };
      std::vector<int> set = l.chosen;
      const double straight = settle(l.model, set);
      propose(straight, set);
      auto list = l.model.moves(l.chosen);
      std::sort(list.begin(), list.end(), by_change);
      for (std::size_t k = 0; k < std::min<std::size_t>(12, list.size()); ++k) {
        std::vector<int> through = l.chosen;
        QuadraticModel::apply(through, list[k]);
        propose(list[k].change, through);
        const double change = list[k].change + settle(l.model, through);
        propose(change, through);
      }
      std::stable_sort(proposals.begin(), proposals.end(),
                       [](const Proposal& x, const Proposal& y) { return x.change < y.change; });
      bool moved_on = false;
      for (std::size_t k = 0; k < std::min<std::size_t>(4, proposals.size()) && !moved_on; ++k) {
        Path other = moved(path, l, proposals[k].set);
        converge(other);
        while (eliminate(other, tight(other.noise))) converge(other);
        if (other.score < path.score - 1e-6) {
          path = std::move(other);
          moved_on = true;
        }
        use(path);
      }
      if (!moved_on) return;
    }
  }

  /// The path and the sets of terms around it: best first in the quadratic model, through moves
  /// from the best ones found so far, then refitted. The best path comes first.
  std::vector<Path> neighbourhood(Path path, const Support& all) {
    for (int round = 0;; ++round) {
      Linearised l = linearise(path, all);
      for (std::size_t c = 0; c < l.all.size(); ++c) l.model.penalty[c] = averaging_penalty(l.all[c]);
      struct Known {
        double change;
        std::vector<int> set;
        bool expanded;
      };
      std::vector<Known> known = {{0, l.chosen, false}};
      for (int pops = 0; pops < kExpanded; ++pops) {
        std::size_t next = known.size();
        for (std::size_t k = 0; k < known.size(); ++k)
          if (!known[k].expanded && (next == known.size() || known[k].change < known[next].change))
            next = k;
        if (next == known.size()) break;
        known[next].expanded = true;
        const Known from = known[next];
        for (const auto& move : l.model.moves(from.set)) {
          const double change = from.change + move.change;
          if (change > kWindow + 4) continue;
          std::vector<int> set = from.set;
          QuadraticModel::apply(set, move);
          if (set.empty() ||
              std::any_of(known.begin(), known.end(), [&](const Known& k) { return k.set == set; }))
            continue;
          known.push_back({change, std::move(set), false});
        }
      }
      std::stable_sort(known.begin() + 1, known.end(),
                       [](const Known& x, const Known& y) { return x.change < y.change; });
      std::vector<Path> paths = {path};
      for (std::size_t k = 1; k < known.size() && static_cast<int>(k) <= options_.neighbours; ++k) {
        use(path);
        Path other = moved(path, l, known[k].set);
        converge(other, true);
        if (other.weighed < path.weighed + kWindow) paths.push_back(std::move(other));
      }
      std::stable_sort(paths.begin(), paths.end(),
                       [](const Path& x, const Path& y) { return x.score < y.score; });
      if (paths.front().support == path.support || round == 3) return paths;
      path = paths.front();
    }
  }

  /// Finer steps while the integrator's error shows and falls: where halved steps leave more than a quarter of it, it is
  /// round-off. Returns whether it changed.
  bool refine(const Path& path) {
    const Flow& now = shooting_.flow();
    Flow finer = now;
    if (now.method == FlowMethod::rk4)
      finer.method = FlowMethod::rk8;
    else
      finer.substeps *= 2;
    if (finer.substeps > 64) return false;
    const Vector error = shooting_.flow_error(finer, path.support, path.theta, path.starts);
    const double limit = 0.02, many = std::sqrt(static_cast<double>(shooting_.segments()));
    bool shows = false;
    for (int i = 0; i < dimension(); ++i)
      shows = shows || error[i] * many > limit * path.noise[i] +
                                             4 * std::numeric_limits<double>::epsilon() * many;
    const double largest = error.maxCoeff();
    if (!shows || (now.method == FlowMethod::rk8 && largest > flow_error_ / 4)) return false;
    flow_error_ = largest;
    shooting_.set_flow(finer);
    use(path);
    return true;
  }
  void reset_flow() {
    shooting_.set_flow({FlowMethod::rk4, shooting_.flow().longest_step, 1});
    flow_error_ = kInfinity;
  }

  Vector initial_noise() const { return known_ ? *known_ : smoothed_.noise.cwiseMax(floor_); }

  /// Huber's weights from the residuals of the path.
  void reweigh(const Path& path) {
    const auto u = shooting_.path(path.support, path.theta, path.starts);
    std::vector<Matrix> weights;
    for (std::size_t r = 0; r < u.size(); ++r) {
      const ObservedRun& run = shooting_.runs()[r];
      weights.push_back(run.weights);
      for (long k = 0; k < u[r].rows(); ++k)
        for (int i = 0; i < dimension(); ++i) {
          if (!(run.weights(k, i) > 0)) continue;
          const double size = std::abs(run.values(k, i) - u[r](k, i)) / path.noise[i];
          weights[r](k, i) = size > kHuber ? kHuber / size : 1;
        }
    }
    shooting_.set_weights(weights);
  }

  /// By how much the covariance of a Huber estimate exceeds the inverse of its weighted
  /// information: E ψ² E w / (E ψ')² (Huber, Robust Statistics, 1981, 7.6), from the residuals; 1
  /// without weights.
  double covariance_factor(const Path& path) const {
    if (!options_.robust) return 1;
    double n = 0, squares = 0, weights = 0, inside = 0;
    for_each_residual(path, [&](int i, double r) {
      const double z = std::abs(r) / path.noise[i];
      n += 1;
      squares += std::min(z * z, kHuber * kHuber);
      weights += z > kHuber ? kHuber / z : 1;
      inside += z <= kHuber;
    });
    return squares * weights / (inside * inside);
  }

  /// Correlation of neighbouring residuals of the same variable, over all variables.
  double autocorrelation(const Path& path) const {
    const auto u = shooting_.path(path.support, path.theta, path.starts);
    double product = 0, square = 0;
    for (std::size_t r = 0; r < u.size(); ++r) {
      const ObservedRun& run = shooting_.runs()[r];
      for (int i = 0; i < dimension(); ++i) {
        const auto z = [&](long k) {
          return std::sqrt(run.weights(k, i)) * (run.values(k, i) - u[r](k, i)) / path.noise[i];
        };
        for (long k = 0; k < u[r].rows(); ++k) {
          if (!(run.weights(k, i) > 0)) continue;
          square += z(k) * z(k);
          if (k + 1 < u[r].rows() && run.weights(k + 1, i) > 0) product += z(k) * z(k + 1);
        }
      }
    }
    return square > 0 ? product / square : 0;
  }

  /// The smallest continuity error at which the path follows the data as closely as the smoother
  /// does: the part of the motion that the equations do not explain enters at the segments' ends.
  double free_continuity(Path& path) {
    path.noise = initial_noise();
    double q = tight(path.noise);
    for (; q < 8; q *= 1.5) {
      use(path);
      descend(path, q, 10, 0.1);
      const Vector noise = known_ ? spread_of(path) : residual_noise(path);
      const double excess = (noise.array() / path.noise.array()).square().mean();
      if (excess <= 1.04) break;
    }
    return q;
  }

 private:
  double degree_of(const FieldTerm& term) const {
    int degree = 0;
    for (const int p : shooting_.basis()->powers(term.monomial)) degree += p;
    return std::max(degree, 1);
  }
  void charge(Path& path, double misfit) const {
    path.score = path.weighed = std::isfinite(misfit) ? misfit : kInfinity;
    for (const FieldTerm& t : path.support) path.score += penalty(t), path.weighed += averaging_penalty(t);
  }
  static bool by_change(const QuadraticModel::Move& a, const QuadraticModel::Move& b) {
    return a.change < b.change;
  }
  static Path better(const std::vector<Path>& paths) {
    return *std::min_element(paths.begin(), paths.end(),
                             [](const Path& a, const Path& b) { return a.score < b.score; });
  }

  /// Root mean square residual of each variable.
  Vector spread_of(const Path& path) {
    const auto e = shooting_.evaluate(path.support, path.theta, path.starts, false);
    return (e.squares.array() / shooting_.counts().array().max(1)).sqrt().matrix();
  }

  Vector integral_regression(const Support& support, double ridge) {
    const MonomialBasis& basis = *shooting_.basis();
    const int n = dimension(), F = basis.size();
    // Windows of one segment each; the trapezoidal rule on the smoothed observations.
    Matrix rows = Matrix::Zero(shooting_.segments(), F),
           change = Matrix::Zero(shooting_.segments(), n);
    std::vector<double> phi(index(F)), before(index(F));
    for (int j = 0; j < shooting_.segments(); ++j) {
      const auto& s = shooting_.segment(j);
      const Matrix& z = smoothed_.values[index(s.run)];
      const auto& times = shooting_.runs()[index(s.run)].times;
      for (int k = 0; k <= s.intervals(); ++k) {
        const long at = s.first + k;
        const Vector u = z.row(at).transpose();
        basis.evaluate(u.data(), phi.data());
        if (k > 0) {
          const double h = times[index(at)] - times[index(at - 1)];
          for (int m = 0; m < F; ++m) rows(j, m) += 0.5 * h * (phi[index(m)] + before[index(m)]);
        }
        phi.swap(before);
      }
      change.row(j) = z.row(s.first + s.intervals()) - z.row(s.first);
    }
    Vector theta = Vector::Zero(static_cast<long>(support.size()));
    for (int i = 0; i < n; ++i) {
      std::vector<int> terms;
      for (std::size_t c = 0; c < support.size(); ++c)
        if (support[c].equation == i) terms.push_back(static_cast<int>(c));
      const long p = static_cast<long>(terms.size());
      if (p == 0) continue;
      Eigen::MatrixXd X(rows.rows(), p);
      for (long c = 0; c < p; ++c) X.col(c) = rows.col(support[index(terms[index(c)])].monomial);
      Eigen::MatrixXd gram = X.transpose() * X;
      gram.diagonal() += ridge * gram.diagonal();
      gram.diagonal().array() += 1e-300;
      const Vector solved = Eigen::LDLT<Eigen::MatrixXd>(gram).solve(X.transpose() * change.col(i));
      for (long c = 0; c < p; ++c) theta[terms[index(c)]] = solved[c];
    }
    return theta;
  }

  const TrajectoryOptions& options_;
  std::optional<Vector> known_;
  const Smoothed& smoothed_;
  long& steps_;
  const Observer& observer_;
  Vector active_;  ///< 0 for a constant variable
  Shooting shooting_;
  Vector floor_;
  double flow_error_ = kInfinity;  ///< of the flow before it was refined last
};

/// Everything in model units, and what is known before the search.
struct Prepared {
  std::vector<ObservedRun> runs;
  Scaling scaling;
  Vector active;  ///< 0 for a constant variable
  Smoothed smoothed;
  std::optional<Vector> known;
  double spacing = 0;
};

Prepared prepare(const Dataset& data, const TrajectoryOptions& o) {
  const int n = data.dimension();
  Prepared p;
  Vector squares = Vector::Zero(n), counts = Vector::Zero(n), low = Vector::Constant(n, kInfinity),
         high = -low;
  double span = 0, intervals = 0;
  for (const Trajectory& t : data.trajectories) {
    ObservedRun run{t.times, t.states, Matrix::Zero(t.states.rows(), n)};
    for (long k = 0; k < run.values.rows(); ++k)
      for (int i = 0; i < n; ++i) {
        double& value = run.values(k, i);
        if (!std::isfinite(value)) {
          value = 0;
          continue;
        }
        run.weights(k, i) = 1;
        squares[i] += value * value;
        counts[i] += 1;
        low[i] = std::min(low[i], value);
        high[i] = std::max(high[i], value);
      }
    if (run.times.size() > 1) {
      span += run.times.back() - run.times.front();
      intervals += static_cast<double>(run.times.size()) - 1;
    }
    p.runs.push_back(std::move(run));
  }
  for (int i = 0; i < n; ++i)
    if (!std::isfinite(squares[i]))
      throw_data({fmt::format("{}, column {}", data.source, data.variables[index(i)]),
                  "values from " + format_number(low[i]) + " to " + format_number(high[i]) + ", whose squares overflow",
                  "values below 1e154", "Write the column in larger units, or remove the outliers."});
  for (int i = 0; i < n; ++i)
    if (counts[i] < 8)
      throw_data({fmt::format("{}, column {}", data.source, data.variables[index(i)]),
                  fmt::format("{:.0f} row{} with a value", counts[i], counts[i] == 1 ? "" : "s"), "at least 8 rows",
                  "Give more: a path is fitted through them. --dropout 0 takes two."});
  p.active = Vector::Ones(n);
  p.scaling.offset = Vector::Zero(n);
  p.scaling.scale = (squares.array() / counts.array()).sqrt().matrix();
  for (int i = 0; i < n; ++i) {
    if (high[i] - low[i] <= 1e-12 * std::max(std::abs(high[i]), std::abs(low[i]))) p.active[i] = 0;
    if (!(p.scaling.scale[i] > 0)) p.scaling.scale[i] = 1;
  }
  if (p.active.sum() == 0)
    throw_data({data.source, "only constant variables", "at least one that moves",
                "There is nothing to learn from a state at rest."});
  for (ObservedRun& r : p.runs)
    r.values = (r.values.array().rowwise() / p.scaling.scale.transpose().array()).matrix();
  p.smoothed = smooth(p.runs, o.robust);
  const double tau =
      p.smoothed.time_scale > 0 ? p.smoothed.time_scale : span / std::max(1.0, intervals);
  p.scaling.time = std::ldexp(1.0, static_cast<int>(std::lround(std::log2(tau))));
  for (ObservedRun& r : p.runs)
    for (double& t : r.times) t /= p.scaling.time;
  p.smoothed.time_scale = tau / p.scaling.time;
  p.spacing = span / std::max(1.0, intervals) / p.scaling.time;
  if (o.noise) p.known = o.noise->cwiseQuotient(p.scaling.scale);
  return p;
}

/// Groups of `size` neighbouring observations as one, at the time of the middle one: the smoothed
/// value there plus the mean residual of the group, so that the curvature within a group does no
/// harm.
struct Coarse {
  std::vector<ObservedRun> runs;
  Smoothed smoothed;
};

Coarse coarsen(const Prepared& p, int size) {
  Coarse c;
  c.smoothed.noise = p.smoothed.noise / std::sqrt(static_cast<double>(size));
  c.smoothed.time_scale = p.smoothed.time_scale;
  const long n = p.scaling.scale.size();
  for (std::size_t r = 0; r < p.runs.size(); ++r) {
    const ObservedRun& fine = p.runs[r];
    const Matrix &z = p.smoothed.values[r], &w = p.smoothed.weights[r];
    const long groups = std::max(1L, fine.values.rows() / size);
    ObservedRun run{{}, Matrix(groups, n), Matrix::Zero(groups, n)};
    Matrix middle(groups, n);
    for (long g = 0; g < groups; ++g) {
      const long begin = g * size, end = std::min(begin + size, fine.values.rows()),
                 centre = (begin + end - 1) / 2;
      run.times.push_back(fine.times[index(centre)]);
      middle.row(g) = z.row(centre);
      for (long i = 0; i < n; ++i) {
        double sum = 0, weight = 0;
        for (long k = begin; k < end; ++k)
          if (w(k, i) > 0) sum += w(k, i) * (fine.values(k, i) - z(k, i)), weight += w(k, i);
        run.values(g, i) = z(centre, i) + (weight > 0 ? sum / weight : 0);
        run.weights(g, i) = weight / size;
      }
    }
    c.runs.push_back(std::move(run));
    c.smoothed.values.push_back(std::move(middle));
  }
  return c;
}

/// The states of a path at the segment starts of another search: cubic Hermite interpolation
/// between its observations, with the slopes of its own field.
Matrix transfer(Search& from, const Path& path, Search& to) {
  const auto states = from.shooting().path(path.support, path.theta, path.starts);
  const MonomialBasis& basis = *from.shooting().basis();
  const int n = from.dimension();
  std::vector<double> phi(index(basis.size()));
  const auto slope = [&](const Vector& u) {
    Vector f = Vector::Zero(n);
    basis.evaluate(u.data(), phi.data());
    for (std::size_t c = 0; c < path.support.size(); ++c)
      f[path.support[c].equation] +=
          path.theta[static_cast<long>(c)] * phi[index(path.support[c].monomial)];
    return f;
  };
  Matrix starts(to.shooting().segments(), n);
  for (int j = 0; j < to.shooting().segments(); ++j) {
    const auto& s = to.shooting().segment(j);
    const double t = to.shooting().runs()[index(s.run)].times[index(s.first)];
    const auto& times = from.shooting().runs()[index(s.run)].times;
    const Matrix& u = states[index(s.run)];
    if (times.size() < 2) {
      starts.row(j) = u.row(0);
      continue;
    }
    const auto above = std::upper_bound(times.begin(), times.end(), t) - times.begin();
    const long k = std::clamp<long>(above - 1, 0, static_cast<long>(times.size()) - 2);
    const double h = times[index(k + 1)] - times[index(k)], x = (t - times[index(k)]) / h;
    const Vector a = u.row(k).transpose(), b = u.row(k + 1).transpose(), fa = slope(a),
                 fb = slope(b);
    starts.row(j) = ((1 + 2 * x) * (1 - x) * (1 - x) * a + x * x * (3 - 2 * x) * b +
                     h * x * (1 - x) * ((1 - x) * fa - x * fb))
                        .transpose();
  }
  return starts;
}

/// Noise of the path over the smoother's, pooled over the variables that move.
double noise_ratio(const Path& path, const Vector& smoother, const Vector& active) {
  double sum = 0;
  for (long i = 0; i < active.size(); ++i)
    if (active[i] != 0) sum += path.noise[i] * path.noise[i] / (smoother[i] * smoother[i] + 1e-300);
  return std::sqrt(sum / active.sum());
}

/// The lowest degree whose equations explain the data down to the smoother's noise, up to `degree`.
Path climb(Search& search, const Prepared& p, const Vector& smoother_noise, int degree) {
  Path best;
  for (int g = std::min(2, degree); g <= degree; ++g) {
    Path path = search.find(search.candidates(g));
    if (path.score < best.score || g == std::min(2, degree)) best = std::move(path);
    if (noise_ratio(best, smoother_noise, p.active) <= 1.06) break;
  }
  return best;
}

}  // namespace

TrajectoryFit fit_trajectory(const Dataset& data, const TrajectoryOptions& o,
                             const Observer& observer) {
  const Prepared p = prepare(data, o);
  TrajectoryFit fit;
  fit.scaling = p.scaling;
  fit.basis = std::make_shared<MonomialBasis>(data.dimension(), o.degree);
  const auto runs_with = [&](const std::vector<Matrix>& weights) {
    std::vector<ObservedRun> runs = p.runs;
    for (std::size_t r = 0; r < runs.size(); ++r) runs[r].weights = weights[r];
    return runs;
  };
  Search fine(o.robust ? runs_with(p.smoothed.weights) : p.runs, fit.basis, o, p.active, p.known,
              p.smoothed, fit.steps, observer);
  // Where observations stand much closer than the signal moves, terms are found on groups of them.
  int group = static_cast<int>(std::floor(p.smoothed.time_scale / (30 * p.spacing)));
  group -= group % 2 == 0;
  Path path;
  Support given;
  for (const auto& term : o.terms)
    for (int m = 0; m < fit.basis->size(); ++m)
      if (fit.basis->powers(m) == term.powers) given.push_back({term.equation, m});
  std::sort(given.begin(), given.end());
  if (!given.empty()) {
    path = fine.follow(given);
  } else if (group >= 3) {
    const Coarse coarse = coarsen(p, group);
    std::optional<Vector> known;
    if (p.known) known = *p.known / std::sqrt(static_cast<double>(group));
    TrajectoryOptions plain = o;  // outliers have lost their pull in the groups
    plain.robust = false;
    Search search(coarse.runs, fit.basis, plain, p.active, known, coarse.smoothed, fit.steps,
                  observer);
    path = climb(search, p, coarse.smoothed.noise, o.degree);
    path.starts = transfer(search, path, fine);
    path.noise = fine.initial_noise();
    fine.converge(path);
  } else {
    path = climb(fine, p, p.smoothed.noise, o.degree);
    fine.converge(path);
  }
  const Support all = fine.candidates(o.degree);
  std::vector<Path> paths = {path};
  if (given.empty()) {
    fine.improve(path, all);
    paths = fine.neighbourhood(path, all);
  }

  // Equations that miss part of the motion: residuals larger than the smoother's, and alike at
  // neighbours.
  fit.noise_ratio = noise_ratio(paths.front(), p.known ? *p.known : p.smoothed.noise, p.active);
  fit.autocorrelation = fine.autocorrelation(paths.front());
  fine.use(paths.front());
  fit.misfit =
      fit.noise_ratio > 1.06 && fit.autocorrelation > 4 / std::sqrt(fine.shooting().counts().sum());
  double total = 0, least = kInfinity;
  for (const Path& one : paths) least = std::min(least, one.weighed);
  for (Path& one : paths) {
    if (fit.misfit) {
      const double q = fine.free_continuity(one);
      if (&one == &paths.front()) fit.continuity = q;
    }
    fine.use(one);
    const double q = fit.misfit ? fit.continuity : fine.tight(one.noise),
                 wider = fine.covariance_factor(one);
    const Shooting& s = fine.shooting();
    const auto e = s.evaluate(one.support, one.theta, one.starts, true);
    const Sweep done = sweep(s, e, one.theta, one.starts, q);
    CoefficientSet m;
    m.support = one.support;
    m.theta = one.theta;
    m.covariance = wider * inverse_information(done.Q);
    m.last_state = e.ends.row(s.segments() - 1).transpose();
    m.last_slope = done.ends.back().slope;
    m.last_covariance = wider * done.ends.back().covariance;
    m.score = one.score;
    m.weight = std::exp(-(one.weighed - least) / o.temper);
    total += m.weight;
    fit.members.push_back(std::move(m));
  }
  for (CoefficientSet& m : fit.members) m.weight /= total;
  const Path& best = paths.front();
  fit.noise = best.noise.cwiseProduct(p.scaling.scale);
  fit.usable = std::isfinite(best.score) && best.theta.allFinite();
  fit.status = !fit.usable ? "diverged" : fit.misfit ? "misfit" : "converged";
  fit.reason = fmt::format("{} terms, {} sets of terms averaged, {} Gauss–Newton steps",
                           best.support.size(), fit.members.size(), fit.steps);
  if (fit.misfit)
    fit.reason += fmt::format(
        "; the equations do not explain all of the motion (residuals {:.2f} times the noise, their "
        "neighbours "
        "correlated by {:.2f}): a continuity error of {:.2g} noise sd per segment was allowed, and "
        "the band is wider "
        "for it; try a higher degree",
        fit.noise_ratio, fit.autocorrelation, fit.continuity);
  return fit;
}

}  // namespace odecast
