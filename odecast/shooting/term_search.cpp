#include "odecast/shooting/term_search.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "odecast/core/random.hpp"
#include "odecast/shooting/integral_form.hpp"

namespace odecast {
namespace {

/// How much the choice among the monomials of a degree costs. At 1, y z is taken for y too often;
/// from 2 on more does not help (docs/theory.md).
constexpr double kDegreePenalty = 2;
/// The same for averaging: a term of degree g has prior (d + 1)^(-g/4). Fractions and others with
/// numbers inside stand in for each other: where their size s is above 2 they have (d + 1)^(-2 (s -
/// 2)) besides. With less Michaelis and Menten's x/(k + x) loses to x/(k + x^2) at every sixth
/// draw.
constexpr double kAveragingPrior = 0.25, kSizePrior = 2;
/// Sets of terms whose weight is less than exp(-kWindow / temper) of the best one's are not
/// averaged.
constexpr double kWindow = 16;
/// Sets from which the quadratic model goes on to others.
constexpr int kExpanded = 20;
constexpr double kTight = 1e-3;  ///< continuity of a converged path, in noise sd
constexpr double kHopeless =
    3;                       ///< noise over the smoother's of a path that is not worth more steps
constexpr int kShorter = 4;  ///< segments, where the equations do not fit
constexpr int kGroups =
    8;  ///< of residuals in a segment, where correlations on the scale of the motion are looked for
constexpr double kSameFunction = 1e-6;  ///< columns that differ by less on a path are one
constexpr double kSameMotion = 1e-4;    ///< of the noise
constexpr double kTold = 1e-6;  ///< directions among terms that are told apart, of a unit diagonal
constexpr double kSmallestGap = 1e-14;  ///< and never below round-off of the states

/// Columns that are not finite, of functions that are not defined all along a path, as if they did
/// nothing: no move takes them.
void leave_out_undefined(Sweep& s) {
  for (long c = 0; c < s.gamma.size(); ++c) {
    if (std::isfinite(s.gamma[c]) && std::isfinite(s.Q(c, c)) && s.E.col(c).allFinite() &&
        s.D.col(c).allFinite())
      continue;
    s.gamma[c] = 0;
    s.Q.row(c).setZero();
    s.Q.col(c).setZero();
    s.E.col(c).setZero();
    s.D.col(c).setZero();
  }
}

FittedPath better(const std::vector<FittedPath>& paths) {
  return *std::min_element(
      paths.begin(), paths.end(),
      [](const FittedPath& a, const FittedPath& b) { return a.score < b.score; });
}

}  // namespace

TermSearch::TermSearch(std::vector<ObservedRun> runs, TermLibrary library,
                       const OfferedFunctions& offered, const TrajectoryOptions& options,
                       const Vector& active, const std::optional<Vector>& known,
                       const Smoothed& smoothed, long& steps, Budget& budget,
                       const Observer& observer)
    : offered_(offered),
      options_(options),
      known_(known),
      smoothed_(smoothed),
      steps_(steps),
      budget_(budget),
      observer_(observer),
      active_(active),
      shooting_(std::move(runs), library, 1, {}, options.threads) {
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
  shooting_ = Shooting(shooting_.runs(), library, static_cast<int>(length),
                       {FlowMethod::rk4, tau / 6, 1}, options.threads, &budget_);
  floor_ = Vector::Constant(dimension(), options.floor);
}

double TermSearch::tight(const Vector& noise) const {
  return std::max(kTight, kSmallestGap / noise.minCoeff());
}

Support TermSearch::candidates(int degree) const {
  Support list;
  const MonomialBasis& basis = shooting_.basis();
  for (int i = 0; i < dimension(); ++i) {
    if (active_[i] == 0) continue;
    for (int m = 0; m < basis.size(); ++m) {
      bool moving = true;
      for (int v = 0; v < basis.variables(); ++v)
        if (basis.powers(m)[index(v)] > 0 && active_[v] == 0) moving = false;
      if (moving && basis.degree(m) <= degree) list.push_back({i, m});
    }
  }
  return list;
}

double TermSearch::penalty(const FieldTerm& term, const Support& beside) const {
  return (1 + numbers_in(term)) * portable_log(shooting_.counts().sum()) +
         kDegreePenalty * 2 * choice(term, beside);
}

double TermSearch::averaging_penalty(const FieldTerm& term, const Support& beside) const {
  const double T = options_.temper, numbers = numbers_in(term);
  double prior = kAveragingPrior * choice(term, beside);
  if (numbers > 0) {
    const double size = offered_.offers[index(shooting_.library().function(term.term))].price;
    prior +=
        kSizePrior * std::max(0.0, size - 2) * portable_log(shooting_.basis().variables() + 1.0);
  }
  return T * (0.5 * (1 + numbers) * portable_log(2 * shooting_.counts().sum() / T) + prior);
}

double TermSearch::choice(const FieldTerm& term, const Support& beside) const {
  const TermLibrary& library = shooting_.library();
  const double arguments = portable_log(shooting_.basis().variables() + 1.0);
  if (!library.is_function(term.term))
    return std::max(shooting_.basis().degree(term.term), 1) * arguments;
  const OfferedFunctions::Offer& offer = offered_.offers[index(library.function(term.term))];
  const double size = offer.price * arguments;
  if (offer.given()) return size;
  if (numbers_in(term) > 0) {
    const bool is_there = std::binary_search(beside.begin(), beside.end(), term);
    for (const FieldTerm& t : beside)
      if (t.equation != term.equation && (!is_there || t < term) && library.is_function(t.term) &&
          offered_.offers[index(library.function(t.term))].form == offer.form)
        return size;
  }
  return size + portable_log(offered_.kinds);
}

double TermSearch::numbers_in(const FieldTerm& term) const {
  const TermLibrary& library = shooting_.library();
  if (!library.is_function(term.term)) return 0;
  const int f = library.function(term.term);
  const std::size_t numbers = offered_.offers[index(f)].z.size();
  return static_cast<double>(std::max(numbers, library.functions->numbers_of(f).size()));
}

bool TermSearch::is_column(const FieldTerm& term) const {
  const TermLibrary& library = shooting_.library();
  return library.is_function(term.term) &&
         !offered_.offers[index(library.function(term.term))].free.empty();
}

std::map<int, double> TermSearch::numbers_of(const FittedPath& path) const {
  std::map<int, double> numbers;
  auto at = static_cast<long>(path.support.size());
  for (const int k : numbers_inside(shooting_.library(), path.support))
    numbers[k] = path.theta[at++];
  return numbers;
}

void TermSearch::set_terms(FittedPath& path, std::vector<std::pair<FieldTerm, double>> terms,
                           std::map<int, double> numbers) const {
  const TermLibrary& library = shooting_.library();
  for (auto& [term, value] : terms) {
    if (!is_column(term)) continue;
    const int f = library.function(term.term);
    const OfferedFunctions::Offer& offer = offered_.offers[index(f)];
    const int free = offer.free[index(term.equation)];
    value *= library.functions->term(free).unit / library.functions->term(f).unit;
    term.term = library.basis->size() + free;
    const std::vector<int>& inside = library.functions->numbers_of(free);
    for (std::size_t k = 0; k < inside.size(); ++k) numbers.emplace(inside[k], offer.z[k]);
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  path.support.clear();
  std::vector<double> theta;
  for (const auto& [term, value] : terms) {
    if (!path.support.empty() && path.support.back() == term) continue;  // two columns of one
    path.support.push_back(term);
    theta.push_back(value);
  }
  for (const int k : numbers_inside(library, path.support)) {
    const auto at = numbers.find(k);
    theta.push_back(at == numbers.end() ? 0 : at->second);
  }
  path.theta = Eigen::Map<Vector>(theta.data(), static_cast<long>(theta.size()));
}

FittedPath TermSearch::start(const Support& support, const std::map<int, double>& numbers) {
  FittedPath path{{}, {}, Matrix(shooting_.segments(), dimension()), initial_noise()};
  std::vector<std::pair<FieldTerm, double>> terms;
  for (const FieldTerm& t : support) terms.push_back({t, 0.0});
  set_terms(path, terms, numbers);
  for (int j = 0; j < shooting_.segments(); ++j)
    path.starts.row(j) =
        smoothed_.values[index(shooting_.segment(j).run)].row(shooting_.segment(j).first);
  shooting_.set_noise(path.noise);
  double best = cost(path, gaps(1));
  const std::vector<double> z = all_numbers(shooting_.library(), path.support, path.theta);
  const IntegralForm form = integral_form(shooting_, smoothed_.values, &z, false);
  for (const double ridge : {1e-6, 1e-4, 1e-2, 1.0}) {
    FittedPath other = path;
    other.theta.head(static_cast<long>(path.support.size())) =
        integral_regression(form, path.support, ridge);
    const double c = cost(other, gaps(1));
    if (c < best || !std::isfinite(best)) best = c, path.theta = other.theta;
  }
  return path;
}

double TermSearch::cost(const FittedPath& path, const Vector& gap_sd) {
  const auto e = shooting_.evaluate(path.support, path.theta, path.starts, false);
  const double c = total_cost(shooting_, e, path.theta, path.starts, gap_sd);
  return std::isfinite(c) ? c : kInfinity;
}

bool TermSearch::descend(FittedPath& path, const Vector& gap_sd, int most, double gain) {
  auto e = shooting_.evaluate(path.support, path.theta, path.starts, true);
  double now = total_cost(shooting_, e, path.theta, path.starts, gap_sd), damping = 0;
  bool smooth_way = true;
  if (!std::isfinite(now)) return false;
  // Gaps of nearly clean data are round-off: each adds its square in units of its sd, and no step
  // removes it.
  const double round_off = 4 * std::numeric_limits<double>::epsilon() / gap_sd.minCoeff();
  const double asked = gain;
  gain = std::max(gain, shooting_.segments() * dimension() * round_off * round_off);
  for (int k = 0; k < most && !budget_.over();) {
    observer_(fmt::format("fitting: {} terms, {} steps", path.support.size(), steps_), 0);
    const Sweep s = sweep(shooting_, e, path.theta, path.starts, gap_sd, damping);
    const Vector dtheta = theta_step(s, damping);
    FittedPath trial = path;
    trial.theta += dtheta;
    trial.starts += state_steps(shooting_, s, dtheta);
    ++steps_;
    bool better = false;
    if (trial.theta.allFinite() && trial.starts.allFinite()) {
      auto next = shooting_.evaluate(trial.support, trial.theta, trial.starts, true);
      const double cost = total_cost(shooting_, next, trial.theta, trial.starts, gap_sd);
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
      } else if (std::abs(cost - now) <=
                 std::max(1e-9 * std::abs(now), gain > asked ? gain : 0.1 * gain)) {
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

Vector TermSearch::estimated_noise(const FittedPath& path) {
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

Vector TermSearch::residual_rms(const FittedPath& path) {
  const auto e = shooting_.evaluate(path.support, path.theta, path.starts, false);
  return e.squares.cwiseQuotient(shooting_.counts().cwiseMax(1.0)).cwiseSqrt();
}

void TermSearch::use(const FittedPath& path) {
  shooting_.set_noise(path.noise);
  if (options_.robust) reweigh(path);
}

template <class Visit>
void TermSearch::for_each_residual(const FittedPath& path, Visit visit) const {
  const auto u = shooting_.path(path.support, path.theta, path.starts);
  for (std::size_t r = 0; r < u.size(); ++r) {
    const ObservedRun& run = shooting_.runs()[r];
    for (long k = 0; k < u[r].rows(); ++k)
      for (int i = 0; i < dimension(); ++i)
        if (run.weights(k, i) > 0) visit(i, run.values(k, i) - u[r](k, i));
  }
}

void TermSearch::converge(FittedPath& path, bool quick) {
  for (int round = 0; round < 12; ++round) {
    use(path);
    const double q = tight(path.noise);
    if (!descend(path, gaps(q), 30, 0.02) && !quick) {
      // Open the gaps again and close them slowly.
      FittedPath other = path;
      for (const double wide : {0.2, 0.06, 0.02, 0.006})
        if (wide > q) descend(other, gaps(wide), 6, 0.1);
      descend(other, gaps(q), 30, 0.02);
      if (cost(other, gaps(q)) < cost(path, gaps(q)))
        path.theta = other.theta, path.starts = other.starts;
    }
    const Vector noise = residual_noise(path);
    const double moved = (noise.array() / path.noise.array() - 1).abs().maxCoeff();
    path.noise = noise;
    use(path);
    const bool refined = refine(path);
    if ((moved < 0.01 && !refined) || budget_.over()) break;
    // Far from the data, and not about to come closer.
    if (round >= 2 && moved < 0.2 && is_far(path)) break;
  }
  rate(path);
}

bool TermSearch::is_far(const FittedPath& path) const {
  return path.noise.cwiseQuotient(initial_noise()).cwiseAbs2().mean() > kHopeless * kHopeless;
}

void TermSearch::rate(FittedPath& path) {
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
    else if (!std::isfinite(e.squares[i]))
      score = kInfinity;  // a segment blows up
    else if (n > 0)
      score += n * portable_log(std::max({e.squares[i] / n, floor_[i] * floor_[i], 1e-300}));
  }
  charge(path, score);
}

bool TermSearch::eliminate(FittedPath& path, const Vector& gap_sd) {
  if (path.support.empty()) return false;
  const auto e = shooting_.evaluate(path.support, path.theta, path.starts, true);
  const Sweep s = sweep(shooting_, e, path.theta, path.starts, gap_sd);
  Eigen::MatrixXd C = inverse_information(s.Q);
  Vector theta = path.theta;
  const auto p = static_cast<long>(path.support.size());  // behind them numbers
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
                   excess = z2 - penalty(path.support[index(c)], path.support);
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
  FittedPath best;
  double best_cost = kInfinity;
  for (const double part : {1.0, 0.3, 0.0}) {
    FittedPath trial;
    trial.noise = path.noise;
    trial.starts = path.starts + part * ds;
    FittedPath whole = path;
    whole.theta += part * dtheta;
    std::vector<std::pair<FieldTerm, double>> kept;
    for (long c = 0; c < p; ++c)
      if (!gone[index(c)]) kept.push_back({path.support[index(c)], whole.theta[c]});
    set_terms(trial, kept, numbers_of(whole));
    const double c = cost(trial, gap_sd);
    if (c < best_cost) best_cost = c, best = std::move(trial);
    if (part == 1.0 && best_cost < kInfinity && best_cost < cost(path, gap_sd) + 2 * sum + 2) break;
  }
  if (best_cost == kInfinity) return false;
  path = std::move(best);
  return true;
}

FittedPath TermSearch::anneal(FittedPath path, double from, double eliminate_from, bool last) {
  for (double q = from; q > kTight && !budget_.over(); q /= 2) {
    use(path);
    descend(path, gaps(q), 3, 1);
    if (q <= eliminate_from && eliminate(path, gaps(q))) descend(path, gaps(q), 2, 1);
    // The noise is that of the smoother until the path is nearly continuous.
  }
  converge(path);
  if (is_not_worth_more(path, last)) return path;
  while (!budget_.over() && eliminate(path, gaps(tight(path.noise)))) converge(path);
  return path;
}

FittedPath TermSearch::find(const Support& support, bool last) {
  FittedPath begin = start(support);
  use(begin);
  for (double q = 1; q > 0.3; q /= 2) descend(begin, gaps(q), 3, 1);
  std::vector<FittedPath> found;
  for (const double from : {0.25, 0.0, 0.03}) {
    found.push_back(anneal(begin, 0.25, from, last));
    reset_flow();
    if (budget_.over() || is_not_worth_more(found.back(), last)) break;
    for (std::size_t k = 0; k + 1 < found.size(); ++k)
      if (found[k].support == found.back().support) return better(found);
  }
  return better(found);
}

FittedPath TermSearch::follow(const Support& support) {
  FittedPath path = start(support);
  for (double q = 1; q > kTight && !budget_.over(); q /= 2) {
    use(path);
    descend(path, gaps(q), 3, 1);
  }
  converge(path);
  return path;
}

TermSearch::Linearised TermSearch::linearise(const FittedPath& path, const Support& all) {
  Linearised l;
  l.all = all;
  for (const FieldTerm& t : path.support)
    if (!std::binary_search(all.begin(), all.end(), t)) l.all.push_back(t);
  // Of a function whose numbers are free no column is needed.
  std::erase_if(l.all, [&](const FieldTerm& t) {
    if (!is_column(t)) return false;
    const TermLibrary& library = shooting_.library();
    const auto& free = offered_.offers[index(library.function(t.term))].free;
    const FieldTerm same{t.equation, library.basis->size() + free[index(t.equation)]};
    return std::find(path.support.begin(), path.support.end(), same) != path.support.end();
  });
  std::sort(l.all.begin(), l.all.end());
  const auto terms = static_cast<long>(l.all.size()),
             numbers = path.theta.size() - static_cast<long>(path.support.size());
  l.theta = Vector::Zero(terms + numbers);
  l.theta.tail(numbers) = path.theta.tail(numbers);
  for (std::size_t c = 0; c < path.support.size(); ++c) {
    const auto at = std::lower_bound(l.all.begin(), l.all.end(), path.support[c]) - l.all.begin();
    l.theta[at] = path.theta[static_cast<long>(c)];
    l.chosen.push_back(static_cast<int>(at));
  }
  use(path);
  const auto e = shooting_.evaluate(l.all, l.theta, path.starts, true);
  l.sweep = sweep(shooting_, e, l.theta, path.starts, gaps(tight(path.noise)));
  if (shooting_.library().functions) {
    l.model.copy = kSameFunction;
    leave_out_undefined(l.sweep);
  }
  const Vector b = l.sweep.gamma + l.sweep.Q * l.theta;
  l.model.Q = l.sweep.Q.topLeftCorner(terms, terms);
  l.model.b = b.head(terms);
  if (numbers > 0) {
    // The numbers follow the terms: what is left of the cost is quadratic in these alone.
    const Matrix Qtn = l.sweep.Q.topRightCorner(terms, numbers);
    const Matrix inverse = inverse_information(l.sweep.Q.bottomRightCorner(numbers, numbers));
    l.number_slope = -inverse * Qtn.transpose();
    l.number_centre = inverse * b.tail(numbers);
    l.model.Q += Qtn * l.number_slope;
    l.model.Q = (0.5 * (l.model.Q + l.model.Q.transpose())).eval();
    l.model.b -= Qtn * l.number_centre;
  }
  for (const FieldTerm& t : l.all) l.model.penalty.push_back(penalty(t, path.support));
  return l;
}

FittedPath TermSearch::moved(const FittedPath& from, const Linearised& l,
                             const std::vector<int>& set) {
  const Vector theta = l.model.minimiser(set);
  Vector whole = Vector::Zero(l.theta.size());
  FittedPath path;
  path.noise = from.noise;
  std::vector<std::pair<FieldTerm, double>> terms;
  for (std::size_t c = 0; c < set.size(); ++c) {
    terms.push_back({l.all[index(set[c])], theta[static_cast<long>(c)]});
    whole[set[c]] = theta[static_cast<long>(c)];
  }
  if (const long numbers = l.number_centre.size(); numbers > 0)
    whole.tail(numbers) = l.number_centre + l.number_slope * whole.head(whole.size() - numbers);
  const Matrix ds = state_steps(shooting_, l.sweep, whole - l.theta);
  path.starts = from.starts + ds;
  // Numbers may not be where the quadratic model has them: the fit moves them.
  set_terms(path, terms, numbers_of(from));
  if (cost(path, gaps(tight(from.noise))) == kInfinity) path.starts = from.starts;
  return path;
}

std::vector<std::vector<int>> TermSearch::beginnings(const Linearised& l) {
  std::vector<std::vector<int>> sets;
  if (!shooting_.library().functions) return sets;
  std::vector<int> all_plain;
  std::map<int, std::vector<int>> everywhere;  // of a function, in all equations
  // Those of one equation beside the others as they are, or of all.
  const auto begin = [&](const QuadraticModel& model, const std::vector<std::vector<int>>& groups,
                         const std::vector<int>& plain) {
    const double few = static_cast<double>(groups.size()) * model.beside({}, plain).work(8);
    budget_.spend(QuadraticModel::kMostMoves * (few + (kRestarts + 1) * model.work(8)));
    return model.settled_from_each(groups, plain, kRestarts);
  };
  for (int i = 0; i < dimension() && !budget_.over(); ++i) {
    std::vector<int> others, own, plain;
    std::vector<std::vector<int>> functions;
    for (const int c : l.chosen)
      if (l.all[index(c)].equation != i) others.push_back(c);
    for (int c = 0; c < static_cast<int>(l.all.size()); ++c) {
      const auto [equation, term] = l.all[index(c)];
      if (equation != i) continue;
      if (shooting_.library().is_function(term)) {
        functions.push_back({static_cast<int>(own.size())});
        everywhere[term].push_back(c);
      } else {
        plain.push_back(static_cast<int>(own.size()));
        all_plain.push_back(c);
      }
      own.push_back(c);
    }
    const QuadraticModel equation = l.model.beside(others, own);
    auto found = begin(equation, functions, plain);
    found.emplace_back();
    for (std::size_t k = found.size(); k-- > 0;) {  // and with all that seems to lack then
      auto whole = found[k];
      equation.settle(whole);
      if (found[k].empty())
        found[k] = std::move(whole);
      else
        found.push_back(std::move(whole));
    }
    for (const std::vector<int>& one : found) {
      sets.push_back(others);
      for (const int c : one) sets.back().push_back(own[index(c)]);
      std::sort(sets.back().begin(), sets.back().end());
    }
  }
  std::vector<std::vector<int>> shared;
  for (const auto& [term, columns] : everywhere)
    if (columns.size() > 1) shared.push_back(columns);
  if (dimension() > 1 && !budget_.over())
    for (auto& set : begin(l.model, shared, all_plain)) sets.push_back(std::move(set));
  return sets;
}

void TermSearch::improve(FittedPath& path, const Support& all) {
  for (int round = 0; round < 8 && !budget_.over(); ++round) {
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
    const double straight = l.model.settle(set);
    propose(straight, set);
    auto list = l.model.moves(l.chosen);
    std::sort(list.begin(), list.end());
    for (std::size_t k = 0; k < std::min<std::size_t>(12, list.size()) && !budget_.over(); ++k) {
      budget_.spend(QuadraticModel::kMostMoves * l.model.work(l.chosen.size()));
      std::vector<int> through = l.chosen;
      QuadraticModel::apply(through, list[k]);
      propose(list[k].change, through);
      const double change = list[k].change + l.model.settle(through);
      propose(change, through);
    }
    // Numbers are not at their best in columns: what is a little worse is looked at, too.
    for (const std::vector<int>& anew : beginnings(l)) {
      const double change = l.model.value(anew) - l.model.value(l.chosen);
      propose(std::min(change - kBlurred, -1e-9), anew);
    }
    std::stable_sort(proposals.begin(), proposals.end(),
                     [](const Proposal& x, const Proposal& y) { return x.change < y.change; });
    bool moved_on = false;
    for (std::size_t k = 0;
         k < std::min<std::size_t>(shooting_.library().functions ? 12 : 4, proposals.size()) &&
         !moved_on && !budget_.over();
         ++k) {
      FittedPath other = moved(path, l, proposals[k].set);
      converge(other);
      while (!budget_.over() && eliminate(other, gaps(tight(other.noise)))) converge(other);
      if (other.score < path.score - 1e-6) {
        path = std::move(other);
        moved_on = true;
      }
      use(path);
    }
    if (!moved_on) return;
  }
}

bool TermSearch::is_same_motion(const FittedPath& a, const FittedPath& b) const {
  const auto unknowns = [&](const FittedPath& p) {
    return p.support.size() + numbers_of(p).size();
  };
  const auto has_function = [&](const FittedPath& p) {
    return std::any_of(p.support.begin(), p.support.end(),
                       [&](const FieldTerm& t) { return shooting_.library().is_function(t.term); });
  };
  if (unknowns(a) != unknowns(b) || !has_function(a) || !has_function(b)) return false;
  const auto near = [](double x, double y, double size) { return std::abs(x - y) < size; };
  for (int i = 0; i < dimension(); ++i) {
    if (!near(a.noise[i], b.noise[i], kSameMotion * a.noise[i])) return false;
    for (long k = 0; k < a.starts.rows(); ++k)
      if (!near(a.starts(k, i), b.starts(k, i), 10 * kSameMotion * a.noise[i])) return false;
  }
  return true;
}

std::vector<FittedPath> TermSearch::neighbourhood(FittedPath path, const Support& all) {
  for (int round = 0;; ++round) {
    Linearised l = linearise(path, all);
    for (std::size_t c = 0; c < l.all.size(); ++c)
      l.model.penalty[c] = averaging_penalty(l.all[c], path.support);
    struct Known {
      double change;
      std::vector<int> set;
      bool expanded;
    };
    std::vector<Known> known = {{0, l.chosen, false}};
    std::set<std::vector<int>> seen = {l.chosen};
    for (int pops = 0; pops < kExpanded && !budget_.over(); ++pops) {
      budget_.spend(l.model.work(l.chosen.size()));
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
        if (set.empty() || !seen.insert(set).second) continue;
        known.push_back({change, std::move(set), false});
      }
    }
    std::stable_sort(known.begin() + 1, known.end(),
                     [](const Known& x, const Known& y) { return x.change < y.change; });
    std::vector<FittedPath> paths = {path};
    std::set<Support> tried = {path.support};  // columns of one function are one set
    for (std::size_t k = 1; k < known.size() && !budget_.over(); ++k) {
      if (static_cast<int>(tried.size()) > options_.neighbours) break;
      use(path);
      FittedPath other = moved(path, l, known[k].set);
      if (!tried.insert(other.support).second) continue;
      converge(other, true);
      if (other.weighed < path.weighed + kWindow) paths.push_back(std::move(other));
    }
    std::stable_sort(paths.begin(), paths.end(),
                     [](const FittedPath& x, const FittedPath& y) { return x.score < y.score; });
    if (paths.front().support == path.support || round == 3 || budget_.over()) {
      std::vector<FittedPath> others;  // the best first: of two that say the same the cheaper
      for (FittedPath& one : paths)
        if (std::none_of(others.begin(), others.end(),
                         [&](const FittedPath& o) { return is_same_motion(o, one); }))
          others.push_back(std::move(one));
      return others;
    }
    path = paths.front();
  }
}

bool TermSearch::refine(const FittedPath& path) {
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
    shows = shows || error[i] * many >
                         limit * path.noise[i] + 4 * std::numeric_limits<double>::epsilon() * many;
  const double largest = error.maxCoeff();
  if (!shows || (now.method == FlowMethod::rk8 && largest > flow_error_ / 4)) return false;
  flow_error_ = largest;
  shooting_.set_flow(finer);
  use(path);
  return true;
}

void TermSearch::reset_flow() {
  shooting_.set_flow({FlowMethod::rk4, shooting_.flow().longest_step, 1});
  flow_error_ = kInfinity;
}

void TermSearch::reweigh(const FittedPath& path) {
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

double TermSearch::covariance_factor(const FittedPath& path) const {
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

TermSearch::Lagged TermSearch::lagged_products(const std::vector<Matrix>& u, const Vector& noise,
                                               int variable, int group, int lags) const {
  Lagged l{std::vector<double>(index(lags) + 1, 0), std::vector<double>(index(lags) + 1, 0)};
  for (std::size_t r = 0; r < u.size(); ++r) {
    const ObservedRun& run = shooting_.runs()[r];
    std::vector<double> z, observed;
    for (long k = 0; k < u[r].rows(); ++k) {
      if (k % group == 0) z.push_back(0), observed.push_back(0);
      const double w = run.weights(k, variable);
      if (w > 0)
        z.back() += std::sqrt(w) * (run.values(k, variable) - u[r](k, variable)) / noise[variable],
            observed.back() += 1;
    }
    for (std::size_t k = 0; k < z.size(); ++k) z[k] /= std::sqrt(std::max(1.0, observed[k]));
    for (std::size_t lag = 0; lag < l.pairs.size(); ++lag)
      for (std::size_t k = lag; k < z.size(); ++k)
        if (observed[k] > 0 && observed[k - lag] > 0)
          l.products[lag] += z[k] * z[k - lag], l.pairs[lag] += 1;
  }
  return l;
}

double TermSearch::autocorrelation(const FittedPath& path) const {
  const auto u = shooting_.path(path.support, path.theta, path.starts);
  double neighbours = 0, squares = 0;
  for (int i = 0; i < dimension(); ++i) {
    const Lagged l = lagged_products(u, path.noise, i, 1, 1);
    neighbours += l.products[1];
    squares += l.products[0];
  }
  return squares > 0 ? neighbours / squares : 0;
}

double TermSearch::persistence(const FittedPath& path) const {
  const auto u = shooting_.path(path.support, path.theta, path.starts);
  const int group = (shooting_.per_segment() + kGroups - 1) / kGroups,
            lags = (2 * shooting_.per_segment() + group - 1) / group;
  double statistic = 0, expected = 0, variance = 0;
  for (int i = 0; i < dimension(); ++i) {
    if (active_[i] == 0 || path.noise[i] < kDigits) continue;
    const Lagged l = lagged_products(u, path.noise, i, group, lags);
    const double size = l.products[0] / l.pairs[0];
    for (std::size_t j = 1; j < l.pairs.size(); ++j) {
      if (l.pairs[j] == 0) continue;
      const double k = 1 - static_cast<double>(j) / (lags + 1), product = l.products[j] / size;
      statistic += k * k * product * product / l.pairs[j];  // k² n ρ²
      expected += k * k;
      variance += 2 * k * k * k * k;
    }
  }
  return variance > 0 ? (statistic - expected) / std::sqrt(variance) : 0;
}

double TermSearch::lacking(const FittedPath& path, const Support& all) {
  const Linearised l = linearise(path, all);
  std::vector<int> S = l.chosen, U;
  for (int c = 0; c < static_cast<int>(l.theta.size()); ++c) {
    if (c >= static_cast<int>(l.all.size()))
      S.push_back(c);  // a number inside a function
    else if (!std::binary_search(l.chosen.begin(), l.chosen.end(), c))
      U.push_back(c);
  }
  if (U.empty()) return 0;
  const auto block = [&](const std::vector<int>& rows, const std::vector<int>& columns) {
    Matrix part(static_cast<long>(rows.size()), static_cast<long>(columns.size()));
    for (std::size_t a = 0; a < rows.size(); ++a)
      for (std::size_t b = 0; b < columns.size(); ++b)
        part(static_cast<long>(a), static_cast<long>(b)) = l.sweep.Q(rows[a], columns[b]);
    return part;
  };
  const auto gradient = [&](const std::vector<int>& rows) {
    Vector part(static_cast<long>(rows.size()));
    for (std::size_t a = 0; a < rows.size(); ++a)
      part[static_cast<long>(a)] = l.sweep.gamma[rows[a]];
    return part;
  };
  const auto terms = static_cast<double>(U.size());
  shooting_.spend(10 * terms * terms * terms);
  const Matrix across = block(S, U), within = block(U, U);
  Vector s = gradient(U);
  Eigen::MatrixXd J = within;
  if (!S.empty()) {
    const Eigen::MatrixXd half = inverse_information(block(S, S)) * across;
    s -= half.transpose() * gradient(S);
    J -= across.transpose() * half;
  }
  const Vector unit = within.diagonal().cwiseSqrt().cwiseInverse();
  J = (unit.asDiagonal() * J * unit.asDiagonal()).eval();
  J = (0.5 * (J + J.transpose())).eval();
  if (!J.allFinite() || !s.allFinite()) return 0;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> directions(J);
  const Vector along = directions.eigenvectors().transpose() * unit.cwiseProduct(s);
  double statistic = 0, k = 0;
  for (long a = 0; a < along.size(); ++a)
    if (directions.eigenvalues()[a] > kTold)
      statistic += along[a] * along[a] / directions.eigenvalues()[a], k += 1;
  if (k == 0) return 0;
  const double spread = 2 / (9 * k);
  return (std::cbrt(statistic / k) - (1 - spread)) / std::sqrt(spread);
}

LoosePath TermSearch::loosen(const Support& candidates, bool all,
                             const std::map<int, double>& numbers) {
  reset_flow();
  FittedPath path = start(candidates, numbers);
  use(path);
  Vector gap_sd = likeliest_gaps(path, path.noise);
  while (!all && !budget_.over() && eliminate(path, gaps_of_forecasts(path, gap_sd)))
    gap_sd = likeliest_gaps(path, gap_sd);
  // Shorter segments, so that what the equations lack has a say within them too; white noise keeps
  // its variance per time.
  const auto states = shooting_.path(path.support, path.theta, path.starts);
  const double before = shooting_.segment_time();
  std::size_t longest = 0;
  for (const ObservedRun& run : shooting_.runs()) longest = std::max(longest, run.times.size());
  const int length = std::min(shooting_.per_segment(), static_cast<int>(longest)) / kShorter;
  shooting_ = Shooting(shooting_.runs(), shooting_.library(), std::max(1, length), shooting_.flow(),
                       options_.threads, &budget_);
  path.starts.resize(shooting_.segments(), dimension());
  for (int j = 0; j < shooting_.segments(); ++j)
    path.starts.row(j) = states[index(shooting_.segment(j).run)].row(shooting_.segment(j).first);
  use(path);
  if (before > 0)
    gap_sd *= std::sqrt(shooting_.segment_time() / before);
  else  // there were no gaps to learn from
    gap_sd = likeliest_gaps(path, path.noise);
  do descend(path, gap_sd, 30, 0.1);
  while (!budget_.over() && refine(path));
  do {
    gap_sd = gaps_of_forecasts(path, gap_sd);
    descend(path, gap_sd, 30, 0.1);
  } while (!all && !budget_.over() && eliminate(path, gap_sd));
  rate(path);
  return {path, {gap_sd, shooting_.segment_time()}};
}

Vector TermSearch::gaps_of_forecasts(const FittedPath& path, const Vector& gap_sd) const {
  const auto e = shooting_.evaluate(path.support, path.theta, path.starts, true);
  const Sweep s = sweep(shooting_, e, path.theta, path.starts, gap_sd);
  return gap_sd * std::sqrt(gaps_needed(shooting_, path.support, path.theta, path.starts, gap_sd,
                                        inverse_information(s.Q), active_));
}

Vector TermSearch::likeliest_gaps(FittedPath& path, Vector gap_sd) {
  const Vector least = gaps(tight(path.noise));
  for (int k = 0; k < 60 && !budget_.over(); ++k) {
    descend(path, gap_sd, 10, 0.1);
    const auto e = shooting_.evaluate(path.support, path.theta, path.starts, true);
    const Sweep s = sweep(shooting_, e, path.theta, path.starts, gap_sd);
    const Vector likelier =
        likelier_gaps(shooting_, e, s, path.starts, gap_sd, inverse_information(s.Q))
            .cwiseMax(least);
    // Gaps far below the noise do no more than fall.
    const bool settled =
        ((likelier.array() / gap_sd.array() - 1).abs() < 0.02 ||
         likelier.array() < 0.1 * path.noise.array() || active_.head(dimension()).array() == 0)
            .all();
    gap_sd = likelier;
    if (settled) break;
  }
  return gap_sd;
}

void TermSearch::charge(FittedPath& path, double misfit) const {
  path.score = path.weighed = std::isfinite(misfit) ? misfit : kInfinity;
  double numbers = 0;
  for (const FieldTerm& t : path.support) {
    path.score += penalty(t, path.support);
    path.weighed += averaging_penalty(t, path.support);
    numbers += numbers_in(t);
  }
  // A number that several terms share is paid for once.
  if (numbers == 0) return;
  const double twice =
      numbers - static_cast<double>(numbers_inside(shooting_.library(), path.support).size());
  const double N = shooting_.counts().sum(), T = options_.temper;
  path.score -= twice * portable_log(N);
  path.weighed -= twice * T * 0.5 * portable_log(2 * N / T);
}

double TermSearch::explained(const Support& support) {
  long rows = 0;
  for (const ObservedRun& run : shooting_.runs()) rows += run.values.rows();
  const long terms = static_cast<long>(support.size()) / dimension() + 1,
             enough = std::max(1L, rows / (4 * terms));
  const Shooting windows(shooting_.runs(), shooting_.library(),
                         static_cast<int>(std::min<long>(shooting_.per_segment(), enough)),
                         shooting_.flow(), options_.threads);
  Vector shares;
  integral_regression(integral_form(windows, smoothed_.values, nullptr, true), support, 1e-6,
                      &shares);
  double least = 1;
  for (int i = 0; i < dimension(); ++i)
    if (active_[i] != 0) least = std::min(least, shares[i]);
  return least;
}

void TermSearch::settle(FittedPath& path) {
  for (double q = 1; q > kTight && !budget_.over(); q /= 2) {
    use(path);
    descend(path, gaps(q), 3, 1);
  }
  converge(path);
  while (!budget_.over() && eliminate(path, gaps(tight(path.noise)))) converge(path);
}

}  // namespace odecast
