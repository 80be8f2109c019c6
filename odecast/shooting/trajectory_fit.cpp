#include "odecast/shooting/trajectory_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <set>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/shooting/function_search.hpp"
#include "odecast/shooting/offset.hpp"

namespace odecast {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

/// Standard errors by which residuals of the right equations are not alike on the scale of the
/// motion: the statistic is a sum of squares, whose tail is longer than the normal's.
constexpr double kPersistent = 6;

/// The normal score of terms of higher degrees, of one or of two more, that right equations do not
/// reach: 3e-5 of the normal distribution's tail lie beyond.
constexpr double kLacking = 4;

constexpr const char* kLooksLikeNoise =
    "no term is supported: the rows look like noise. They may be too far apart, or those of a map "
    "(`kind=map`)";

/// Everything in model units, and what is known before the search.
struct Prepared {
  std::vector<ObservedRun> runs;
  Scaling scaling;
  Vector input_offset, input_scale;
  double digits = 1;  ///< largest root mean square in model units: how much coarser round-off is
  Vector active;      ///< 0 for a constant variable or input
  Smoothed smoothed;
  std::optional<Vector> known;
  NoiseForm noise_form;
  OfferedFunctions offered;
  double spacing = 0;
};

/// What drives the runs, in model units of the inputs; times are the user's still.
void add_inputs(Prepared& p, const Dataset& data, const TrajectoryOptions& o) {
  const auto measured = static_cast<long>(data.inputs.size()), m = p.input_scale.size();
  for (std::size_t r = 0; r < p.runs.size(); ++r) {
    const Trajectory& t = data.trajectories[r];
    assert(t.inputs.cols() == measured);
    ObservedRun& run = p.runs[r];
    run.inputs = {t.times, Matrix(t.rows(), m)};
    run.held = o.hold_inputs ? static_cast<int>(measured) : 0;
    for (long k = 0; k < t.rows(); ++k)
      for (long j = 0; j < m; ++j) {
        const double w = j < measured ? t.inputs(k, j) : t.times[index(k)];
        if (!std::isfinite(w))
          throw_data({fmt::format("{}, input {}, {}row {} (t = {:.6g})", data.source,
                                  data.inputs[index(j)],
                                  t.id.empty() ? "" : fmt::format("trajectory {}, ", t.id), k + 1,
                                  t.times[index(k)]),
                      "no value", "one at every row: what drives a system is not estimated",
                      "Fill it in, or leave such rows out and split the trajectory there: "
                      "`missing=drop`."});
        run.inputs.values(k, j) = w;
      }
    run.inputs.values = (run.inputs.values.rowwise() - p.input_offset.transpose()) *
                        p.input_scale.cwiseInverse().asDiagonal();
  }
}

void check_logarithms(const Dataset& data) {
  for (const Trajectory& t : data.trajectories)
    for (Eigen::Index i = 0; i < t.states.cols(); ++i)
      for (Eigen::Index k = 0; k < t.rows(); ++k)
        if (t.states(k, i) <= 0)
          throw_data({fmt::format("{}, column {}, {}row {} (t = {:.6g})", data.source,
                                  data.variables[index(i)],
                                  t.id.empty() ? "" : fmt::format("trajectory {}, ", t.id), k + 1,
                                  t.times[index(k)]),
                      fmt::format("{:.6g}", t.states(k, i)),
                      "a value > 0: with `noise=log` the noise is that of logarithms",
                      "Choose `noise=relative`, or leave such rows out."});
}

Prepared prepare(const Dataset& data, const TrajectoryOptions& o) {
  const int n = data.dimension();
  const ObservationSummary summary = summarise(with_inputs(source_of(data), o.time_input));
  for (int i = 0; i < n; ++i)
    if (const long values = summary.values(i); values < 8)
      throw_data({fmt::format("{}, column {}", data.source, data.variables[index(i)]),
                  fmt::format("{} row{} with a value", values, values == 1 ? "" : "s"),
                  "at least 8 rows", "Give more: a path is fitted through them."});
  if (summary.pairs == 0)
    throw_data({data.source, "no trajectory of two rows", "rows that follow each other",
                "Check the column that tells trajectories apart (`id`)."});
  Prepared p;
  double span = 0;
  for (const Trajectory& t : data.trajectories) {
    if (t.rows() > 0) span += t.times.back() - t.times.front();
    p.runs.push_back(observed_run(t.times, t.states));
  }
  const auto intervals = static_cast<double>(summary.pairs);
  const auto arguments = static_cast<Eigen::Index>(summary.constant.size());
  p.active.resize(arguments);
  Vector scale = summary.rms, moving = summary.sd;
  for (Eigen::Index i = 0; i < arguments; ++i) {
    p.active[i] = summary.constant[index(i)] ? 0 : 1;
    if (p.active[i] == 0) moving[i] = 0;
  }
  // Terms that are given are the user's own monomials.
  const Vector offset =
      o.terms.empty() ? offsets(summary.mean, moving) : Vector(Vector::Zero(arguments));
  for (Eigen::Index i = 0; i < arguments; ++i) {
    if (offset[i] != 0) scale[i] = root_sum_square(summary.sd[i], summary.mean[i] - offset[i]);
    if (!(scale[i] > 0)) scale[i] = 1;
    if (offset[i] != 0 && i < n) p.digits = std::max(p.digits, summary.rms[i] / scale[i]);
  }
  p.scaling = {offset.head(n), scale.head(n), 1};
  p.input_offset = offset.tail(arguments - n);
  p.input_scale = scale.tail(arguments - n);
  if (p.active.head(n).sum() == 0)
    throw_data({data.source, "only constant variables", "at least one that moves",
                "There is nothing to learn from a state at rest."});
  for (ObservedRun& r : p.runs)
    r.values = ((r.values.rowwise() - p.scaling.offset.transpose()).array().rowwise() /
                p.scaling.scale.transpose().array())
                   .matrix();
  if (arguments > n) add_inputs(p, data, o);
  if (o.noise_law == NoiseLaw::logarithmic) check_logarithms(data);
  p.smoothed = smooth(p.runs, o.robust);
  p.noise_form =
      weigh_by_noise(p.runs, p.smoothed, o.noise || o.robust ? NoiseLaw::constant : o.noise_law,
                     p.scaling.offset, p.scaling.scale);
  const double tau = p.smoothed.time_scale > 0 ? p.smoothed.time_scale : span / intervals;
  p.scaling.time = std::ldexp(1.0, static_cast<int>(std::lround(std::log2(tau))));
  for (ObservedRun& r : p.runs) {
    for (double& t : r.times) t /= p.scaling.time;
    for (double& t : r.inputs.times) t /= p.scaling.time;
  }
  p.smoothed.time_scale = tau / p.scaling.time;
  p.spacing = span / intervals / p.scaling.time;
  if (o.noise) p.known = o.noise->cwiseQuotient(p.scaling.scale);
  std::vector<std::string> names = data.variables;
  names.insert(names.end(), data.inputs.begin(), data.inputs.end());
  if (o.time_input) names.push_back(o.time_name);
  p.offered = offer_functions(o.functions, names, n, p.runs, p.smoothed, p.active, offset, scale);
  return p;
}

/// Groups of `size` neighbouring observations as one, at the time of the middle one: the smoothed
/// value there plus the mean residual of the group, so that the curvature within a group does no
/// harm. Inputs stay as they are.
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
    ObservedRun run{{}, Matrix(groups, n), Matrix::Zero(groups, n), fine.inputs, fine.held};
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
Matrix transfer(TermSearch& from, const FittedPath& path, TermSearch& to) {
  const auto states = from.shooting().path(path.support, path.theta, path.starts);
  const MonomialBasis& basis = from.shooting().basis();
  const int n = from.dimension();
  std::vector<double> phi(index(basis.size()));
  const auto slope = [&](const Vector& u, const Vector& inputs) {
    Vector f = Vector::Zero(n), arguments(basis.variables());
    arguments << u, inputs;
    basis.evaluate(arguments.data(), phi.data());
    for (std::size_t c = 0; c < path.support.size(); ++c)
      f[path.support[c].equation] +=
          path.theta[static_cast<long>(c)] * phi[index(path.support[c].term)];
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
    const auto between = pieces(from.shooting().runs()[index(s.run)], k + 1);
    const Vector a = u.row(k).transpose(), b = u.row(k + 1).transpose(),
                 fa = slope(a, between.front().from), fb = slope(b, between.back().to);
    starts.row(j) = ((1 + 2 * x) * (1 - x) * (1 - x) * a + x * x * (3 - 2 * x) * b +
                     h * x * (1 - x) * ((1 - x) * fa - x * fb))
                        .transpose();
  }
  return starts;
}

/// Residuals over the noise that is known or the smoother's, pooled over the variables that move.
double noise_ratio(TermSearch& search, const FittedPath& path, const Vector& active) {
  const Vector reference = search.initial_noise(), residual = search.residual_size(path);
  double sum = 0;
  for (long i = 0; i < reference.size(); ++i)
    if (active[i] != 0) sum += residual[i] * residual[i] / (reference[i] * reference[i] + 1e-300);
  return std::sqrt(sum / active.head(reference.size()).sum());
}

/// The variables whose noise the smoother can tell: of one that is observed in some of the rows
/// only, far apart, it goes through every value, and white residuals are no multiple of what it
/// leaves.
Vector told_by_smoother(TermSearch& search, const FittedPath& path, const Prepared& p) {
  const Vector reference = search.initial_noise(), residual = search.residual_size(path);
  Vector told = p.active;
  for (long i = 0; i < reference.size(); ++i) {
    bool missing = false;
    for (const ObservedRun& run : p.runs)
      missing = missing || (run.weights.col(i).array() == 0).any();
    if (missing && residual[i] > 10 * reference[i]) told[i] = 0;
  }
  return told.head(reference.size()).sum() > 0 ? told : p.active;
}

/// Whether nothing tells the observations of any variable from white noise: neither their
/// successive differences (von Neumann, Ann. Math. Statist. 12 (1941) 367), 2 (1 - ρ_1) of the
/// variance within two standard errors, nor their autocorrelations up to lag m, N (N + 2) Σ ρ_k² /
/// (N - k) (Ljung & Box, Biometrika 65 (1978) 297) within three standard errors of m; both a little
/// wider for many variables, of which the largest counts.
bool looks_white(const Prepared& p) {
  const double many = std::log(p.active.head(p.scaling.scale.size()).sum());
  for (long i = 0; i < p.scaling.scale.size(); ++i) {
    if (p.active[i] == 0) continue;
    double count = 0, sum = 0;
    for (const ObservedRun& run : p.runs) {
      for (long k = 0; k < run.values.rows(); ++k)
        if (run.weights(k, i) > 0) count += 1, sum += run.values(k, i);
    }
    const double mean = sum / count;
    const long lags = std::clamp(std::lround(count / 4), 2L, 20L);
    std::vector<double> products(index(lags) + 1, 0);
    for (const ObservedRun& run : p.runs)
      for (long k = 0; k < run.values.rows(); ++k)
        for (long lag = 0; lag <= std::min(lags, k); ++lag)
          if (run.weights(k, i) > 0 && run.weights(k - lag, i) > 0)
            products[index(lag)] += (run.values(k, i) - mean) * (run.values(k - lag, i) - mean);
    const double neighbours = products[1] / products[0];
    double portmanteau = 0;
    for (long lag = 1; lag <= lags; ++lag) {
      const double rho = products[index(lag)] / products[0];
      portmanteau += count * (count + 2) * rho * rho / (count - static_cast<double>(lag));
    }
    const auto m = static_cast<double>(lags);
    if (std::abs(neighbours) * std::sqrt(count) > std::sqrt(4 + 2 * many) ||
        portmanteau - m > (3 + many) * std::sqrt(2 * m))
      return false;
  }
  return true;
}

/// The bound on the search: kWork operations, some seconds' on one core, of more than kFew
/// candidates in proportion to them, up to kMany times. Where the integral form with all candidates
/// explains most of the motion, sparse equations are likely to be found, and kPromisingWork may be
/// spent for each observed value, up to kLonger times that bound, of more than kOrdinary values in
/// proportion to them, and no more than kPromising times kWork; where it explains little, no more
/// than kHopelessWork for each. Many observations have at least kFewestEvaluations of sparse
/// equations. Functions may cost kFunctionWork besides, and each of their families kFamilyWork.
constexpr double kFunctionWork = 6e10, kFamilyWork = 1e10, kWork = 1.2e10, kExplained = 0.95,
                 kPromising = 60, kPromisingWork = 2.4e8, kUnexplained = 0.3, kHopelessWork = 1.3e7,
                 kFewestEvaluations = 150, kFew = 30, kMany = 6, kOrdinary = 6000, kLonger = 2;

double default_work(TermSearch& search, const Support& candidates) {
  const Shooting& shooting = search.shooting();
  const auto all = static_cast<long>(candidates.size()),
             sparse = std::min(all, 8L * shooting.dimension());
  const double share = search.explained(candidates);
  const double values = shooting.counts().sum();
  const double bound = kWork * std::clamp(static_cast<double>(all) / kFew, 1.0, kMany);
  const double longest =
      std::min(kLonger * bound * std::max(1.0, values / kOrdinary), kPromising * kWork);
  const double most = share > kExplained     ? std::clamp(kPromisingWork * values, kWork, longest)
                      : share < kUnexplained ? std::min(kWork, kHopelessWork * values)
                                             : bound;
  return std::max(kFewestEvaluations * shooting.work(sparse, true), most);
}

/// Coefficients and last state of a path, and how well they are known.
CoefficientSet coefficient_set(TermSearch& search, const FittedPath& path,
                               const std::optional<Vector>& gaps) {
  const Shooting& s = search.shooting();
  search.use(path);
  const Vector gap_sd = gaps ? *gaps : Vector(search.tight(path.noise) * s.noise());
  const double wider = search.covariance_factor(path);
  const auto e = s.evaluate(path.support, path.theta, path.starts, true);
  const Sweep done = sweep(s, e, path.theta, path.starts, gap_sd);
  CoefficientSet m;
  m.support = path.support;
  m.theta = path.theta;
  m.covariance = wider * inverse_information(done.Q);
  m.last_state = e.ends.row(s.segments() - 1).transpose();
  m.last_slope = done.ends.back().slope;
  m.last_covariance = wider * done.ends.back().covariance;
  m.score = path.score;
  return m;
}

/// Whether it is a distribution: where the observations do not determine the coefficients,
/// information is lost to round-off and its inverse is none, or not positive.
bool is_distribution(const CoefficientSet& m) {
  return m.theta.allFinite() && m.last_state.allFinite() && m.last_slope.allFinite() &&
         std::isfinite(m.score) && is_covariance(m.covariance) && is_covariance(m.last_covariance);
}

/// Noise over the smoother's of equations that explain the data.
constexpr double kExplainedNoise = 1.06;

/// The lowest degree whose equations explain the data down to that noise, up to `degree`.
FittedPath climb(TermSearch& search, const Prepared& p, int degree, const Budget& budget) {
  FittedPath best;
  for (int g = std::min(2, degree); g <= degree; ++g) {
    FittedPath path = search.find(search.candidates(g), g == degree);
    if (path.score < best.score || g == std::min(2, degree)) best = std::move(path);
    if (budget.over() || noise_ratio(search, best, p.active) <= kExplainedNoise) break;
  }
  return best;
}

/// Whether the data tell the numbers inside functions: z has the prior N(0, 1000²), and is told
/// where at most a quarter of that is left.
bool tells_numbers(const CoefficientSet& set) {
  constexpr double kLeft = 250;
  const auto terms = static_cast<long>(set.support.size());
  return (set.covariance.diagonal().tail(set.theta.size() - terms).array() < kLeft * kLeft).all();
}

/// Data of somebody's solver: their error is smooth, not noise, and far above round-off. Equations
/// that follow it have a dozen tiny terms too many.
struct SolverData {
  FittedPath path;
  double size;  ///< of the error, as a part of the variables' root mean squares
};

/// Solvers err by at most about that part of the motion, and terms that move less cannot be told
/// from what they err by.
constexpr std::array kSolverErrors = {1e-3, 1e-2};
/// Smoothed noise that is small enough to look.
constexpr double kNearlyClean = 3e-3;
/// Noise over the error of a solver, so that a term that is fitted to it has no weight: with N
/// values z² = N (effect / noise)² of a term whose effect is the error is below its price.
constexpr double kOverError = 10;
/// By how much coefficients err more than noise of that size makes them: a solver's error is not
/// white. Measured on solvers and systems of studies/solvers.
constexpr double kSolverSpread = 2.2;
/// Where a few terms more leave less than that part of the residuals, they are in the equations.
constexpr double kExact = 1e-4;
/// Higher degrees that leave less than that part of the residuals show that equations are missing;
/// at most so many candidates are looked at.
constexpr double kShown = 0.1, kMostHigher = 300;
/// Equations that leave less are as good as right.
constexpr double kNegligible = 1e-4;
/// Nobody measures to that part of a variable: rows that are right to it were computed.
constexpr double kFinestNoise = 1e-5;
/// Residuals below that part of the variables are round-off.
constexpr double kRoundOff = 1e-11;

/// Whether higher degrees leave little of the residuals, `size`, of a path: those of equations of
/// another kind they do, which have all of them, and those of a solver hardly.
bool lacks_equations(const Prepared& p, FittedPath path, const TermLibrary& library, double size,
                     TrajectoryOptions options, long& steps, Budget& budget,
                     const Observer& observer) {
  const auto variables = static_cast<int>(p.active.size());
  const auto dimension = static_cast<double>(p.scaling.scale.size());
  const int degree = options.degree;
  options.degree += 2;
  while (options.degree > degree &&
         dimension * monomial_count(variables, options.degree) > kMostHigher)
    --options.degree;
  if (options.degree == degree) return true;  // not to be told
  const TermLibrary higher{std::make_shared<MonomialBasis>(variables, options.degree),
                           library.functions};
  for (FieldTerm& t : path.support)
    if (library.is_function(t.term)) t.term = higher.basis->size() + library.function(t.term);
  TermSearch above(p.runs, higher, p.offered, options, p.active, std::nullopt, p.smoothed, steps,
                   budget, observer);
  above.improve(path, above.candidates(options.degree));
  return above.residual_rms(path).maxCoeff() < kShown * size;
}

/// What terms of one degree more and of two, as far as they are not too many, show to be lacking
/// where residuals are no larger than the noise (TermSearch::lacking): the larger score. Odd
/// equations lack odd terms, hence two. 0 where it cannot be told: noise that is rounding is not
/// white, and weights of outliers are not those of its variance.
double lacking(const Prepared& p, TermSearch& fine, const FittedPath& path,
               const TermLibrary& library, const TrajectoryOptions& options, long& steps,
               Budget& budget, const Observer& observer) {
  const auto variables = static_cast<int>(p.active.size());
  const auto dimension = static_cast<double>(p.scaling.scale.size());
  if (options.robust || path.support.empty() || fine.residual_rms(path).maxCoeff() < kFinestNoise)
    return 0;
  double most = 0;
  for (const int more : {1, 2}) {
    TrajectoryOptions higher = options;
    higher.degree += more;
    if (dimension * monomial_count(variables, higher.degree) > kMostHigher) break;
    const TermLibrary with{std::make_shared<MonomialBasis>(variables, higher.degree),
                           library.functions};
    FittedPath same = path;
    for (FieldTerm& t : same.support)
      if (library.is_function(t.term)) t.term = with.basis->size() + library.function(t.term);
    TermSearch above(p.runs, with, p.offered, higher, p.active, p.known, p.smoothed, steps, budget,
                     observer);
    above.shooting().set_flow(fine.shooting().flow());
    // Noise that is given may be too small, which is told elsewhere.
    same.noise = fine.residual_size(path).cwiseMax(path.noise);
    most = std::max(most, above.lacking(same, above.candidates(higher.degree)));
  }
  return most;
}

/// The equations that explain the data to `error`, where what is left is neither noise (it is alike
/// at neighbours, or too small) nor round-off, nor that of some terms more that explain all of it.
std::optional<SolverData> solver_data(const Prepared& p, double error,
                                      const TrajectoryOptions& options, const TermLibrary& library,
                                      const Observer& observer) {
  long steps = 0;
  const auto some = [&](double part) {
    return options.budget ? Budget::of_seconds(0.3 * part * *options.budget)
                          : Budget::of_work(part * kWork);
  };
  Budget budget = some(0.2);
  TrajectoryOptions rough = options;
  rough.floor = error;
  TermSearch search(p.runs, library, p.offered, rough, p.active, std::nullopt, p.smoothed, steps,
                    budget, observer);
  FittedPath path = climb(search, p, options.degree, budget);
  search.converge(path);
  search.improve(path, search.candidates(options.degree));
  if (p.offered.any()) {
    budget = some(0.5);
    FunctionSearch(search, p.offered, p.active, p.smoothed, budget)
        .run(path, search.candidates(options.degree), some(0.1));
  }
  if (path.support.empty() || !(search.residual_rms(path).maxCoeff() < 2 * error))
    return std::nullopt;
  TermSearch fine(p.runs, library, p.offered, options, p.active, std::nullopt, p.smoothed, steps,
                  budget, observer);
  path.noise = search.residual_rms(path).cwiseMax(options.floor);
  fine.converge(path);
  const double size = fine.residual_rms(path).maxCoeff();
  if (!(size < 2 * error) || size < kRoundOff ||
      (size > kFinestNoise && fine.autocorrelation(path) < 0.5))
    return std::nullopt;
  FittedPath more = path;
  budget = some(0.05);
  fine.improve(more, fine.candidates(options.degree));
  if (fine.residual_rms(more).maxCoeff() < kExact * size) return std::nullopt;
  budget = some(0.1);
  if (size > kNegligible &&
      lacks_equations(p, path, library, size, options, steps, budget, observer))
    return std::nullopt;
  return SolverData{std::move(path), size};
}

/// With the smallest error that the equations explain them to.
std::optional<SolverData> solver_data(const Prepared& p, const TrajectoryOptions& options,
                                      const TermLibrary& library, const Observer& observer) {
  for (const double error : kSolverErrors)
    if (auto found = solver_data(p, error, options, library, observer)) return found;
  return std::nullopt;
}

/// From there on noise is most of a variable. White noise of 40 % of a motion's sd is .37 of that
/// of the data, and bands hold.
constexpr double kMostlyNoise = 0.5;
/// A path that turns no more often than that has no second oscillation; where its best set of terms
/// is not likely, the sets that were not refitted are missing in the average. Inputs
/// that depend on each other make sets that say the same, so driven runs are not judged.
constexpr int kFewTurns = 3;
constexpr double kUnlikely = 0.3;
/// Excess kurtosis of residuals that no normal noise has: that of N values has the sd √(24/N).
constexpr double kHeavyTails = 3;

/// Turning points of a variable of the path, over all runs.
int turns(const std::vector<Matrix>& path, long variable) {
  int count = 0;
  for (const Matrix& u : path)
    for (long k = 2; k < u.rows(); ++k)
      count +=
          (u(k, variable) - u(k - 1, variable)) * (u(k - 1, variable) - u(k - 2, variable)) < 0;
  return count;
}

/// A variable, and a number that it has.
struct Told {
  long variable = 0;
  double value = 0;
};

/// The variable that turns most.
Told most_turns(const std::vector<Matrix>& path, const Vector& active) {
  Told most;
  for (long i = 0; i < path.front().cols(); ++i)
    if (const int n = turns(path, i); active[i] != 0 && n > most.value) most = {i, 1.0 * n};
  return most;
}

/// The largest share of noise in the sd of a variable's observations.
Told most_noise(const std::vector<ObservedRun>& runs, const Vector& noise, const Vector& active) {
  Told most;
  for (long i = 0; i < noise.size(); ++i) {
    double count = 0, sum = 0, squares = 0;
    for (const ObservedRun& run : runs)
      for (long k = 0; k < run.values.rows(); ++k)
        if (run.weights(k, i) > 0) {
          const double x = run.values(k, i);
          count += 1, sum += x, squares += x * x;
        }
    const double variance = (squares - sum * sum / count) / count;
    if (active[i] == 0 || !(variance > 0)) continue;
    if (const double share = noise[i] / std::sqrt(variance); share > most.value) most = {i, share};
  }
  return most;
}

/// The largest excess kurtosis E r⁴ / (E r²)² - 3 of a variable's residuals, weighted as observed.
Told heaviest_tails(const std::vector<ObservedRun>& runs, const std::vector<Matrix>& path,
                    const Vector& active) {
  Told most;
  for (long i = 0; i < path.front().cols(); ++i) {
    double count = 0, second = 0, fourth = 0;
    for (std::size_t r = 0; r < runs.size(); ++r)
      for (long k = 0; k < path[r].rows(); ++k)
        if (const double w = runs[r].weights(k, i); w > 0) {
          const double r2 = w * std::pow(runs[r].values(k, i) - path[r](k, i), 2);
          count += 1, second += r2, fourth += r2 * r2;
        }
    if (active[i] == 0 || !(second > 0)) continue;
    if (const double excess = fourth * count / (second * second) - 3; excess > most.value)
      most = {i, excess};
  }
  return most;
}

/// Leaves those functions in the library that a set has.
void keep_functions(TrajectoryFit& fit, const Prepared& p) {
  Vector offset(p.active.size()), scale(p.active.size());
  offset << p.scaling.offset, p.input_offset;
  scale << p.scaling.scale, p.input_scale;
  keep_used(fit.library, fit.members, p.offered.given_names, offset, scale);
}

/// The fit, with what is known of a solver that made the data, where one did. `begin` is when the
/// seconds of the budget began.
TrajectoryFit fit_prepared(const Dataset& data, const Prepared& p, TrajectoryOptions o,
                           std::optional<SolverData> solved, TimePoint begin,
                           const Observer& observer) {
  Budget budget;
  TrajectoryFit fit;
  if (!p.noise_form.share.isZero(0)) fit.relative_noise = p.noise_form.share;
  if (std::ranges::count(p.noise_form.of_log, true) > 0) fit.log_noise = p.noise_form.of_log;
  fit.scaling = p.scaling;
  fit.input_offset = p.input_offset;
  fit.input_scale = p.input_scale;
  fit.smoothed_noise = p.smoothed.noise.cwiseProduct(p.scaling.scale);
  fit.library = {std::make_shared<MonomialBasis>(static_cast<int>(p.active.size()), o.degree),
                 p.offered.functions};
  const auto runs_with = [&](const std::vector<Matrix>& weights) {
    std::vector<ObservedRun> runs = p.runs;
    for (std::size_t r = 0; r < runs.size(); ++r) runs[r].weights = weights[r];
    return runs;
  };
  const bool may_be_solved = !solved && !p.known && !o.robust && o.terms.empty();
  bool looked = false;
  if (may_be_solved &&
      p.smoothed.noise.cwiseProduct(p.active.head(p.smoothed.noise.size())).maxCoeff() <
          kNearlyClean) {
    solved = solver_data(p, o, fit.library, observer);
    looked = true;
  }
  if (solved) o.floor = std::max(o.floor, kOverError * solved->size);
  TermSearch fine(o.robust ? runs_with(p.smoothed.weights) : p.runs, fit.library, p.offered, o,
                  p.active, p.known, p.smoothed, fit.steps, budget, observer);
  FunctionSearch functions(fine, p.offered, p.active, p.smoothed, budget);
  // Where observations stand much closer than the signal moves, terms are found on groups of them.
  int group = static_cast<int>(std::floor(p.smoothed.time_scale / (30 * p.spacing)));
  group -= group % 2 == 0;
  FittedPath path;
  Support given;
  for (const auto& term : o.terms)
    if (const int m = fit.library.basis->find(term.powers); m >= 0)
      given.push_back({term.equation, m});
  std::sort(given.begin(), given.end());
  const Support all = fine.candidates(o.degree);
  // A short transient has no memory either, but equations that explain it.
  if (given.empty() && looks_white(p) && fine.explained(all) < kUnexplained) {
    fit.noise = fit.smoothed_noise;
    fit.status = "diverged";
    fit.reason = kLooksLikeNoise;
    return fit;
  }
  const double work = o.budget ? 0 : default_work(fine, given.empty() ? all : given);
  // What is left of the seconds is for the bands of equations that do not fit.
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  budget = o.budget ? Budget::of_seconds(0.7 * *o.budget - spent()) : Budget::of_work(work);
  if (!given.empty()) {
    path = fine.follow(given);
  } else if (solved) {
    path = solved->path;
    path.noise = fine.initial_noise();
    fine.converge(path);
  } else if (group >= 3) {
    const Coarse coarse = coarsen(p, group);
    std::optional<Vector> known;
    if (p.known) known = *p.known / std::sqrt(static_cast<double>(group));
    TrajectoryOptions plain = o;  // outliers have lost their pull in the groups
    plain.robust = false;
    TermSearch search(coarse.runs, fit.library, p.offered, plain, p.active, known, coarse.smoothed,
                      fit.steps, budget, observer);
    path = climb(search, p, o.degree, budget);
    path.starts = transfer(search, path, fine);
    path.noise = fine.initial_noise();
    fine.converge(path);
  } else {
    path = climb(fine, p, o.degree, budget);
    fine.converge(path);
  }
  // What seemed hopeless and is explained after all: a share of jumps, which no integral sees.
  if (!o.budget && budget.over() && noise_ratio(fine, path, p.active) <= kExplainedNoise)
    budget = Budget::of_work(std::max(work, kWork));
  if (given.empty()) fine.improve(path, all);
  bool functions_stopped = false;
  if (given.empty() && p.offered.any()) {
    const Budget before = budget;
    if (!o.budget) budget = Budget::of_work(kFunctionWork);
    functions.run(path, all,
                  o.budget ? Budget::of_seconds(0.1 * *o.budget) : Budget::of_work(kFamilyWork));
    functions_stopped = budget.over();
    budget = before;
  }
  std::vector<FittedPath> paths = {path};
  // Equations that miss part of the motion: residuals larger than the noise, and alike at
  // neighbours; or alike on the scale of the motion.
  const auto judge = [&](const FittedPath& one) {
    fit.noise_ratio = noise_ratio(fine, one, p.active);
    fit.autocorrelation = fine.autocorrelation(one);
    fit.persistence = fine.persistence(one);
    fine.use(one);
    fit.misfit = (fit.noise_ratio > kExplainedNoise &&
                  fit.autocorrelation > 4 / std::sqrt(fine.shooting().counts().sum())) ||
                 fit.persistence > kPersistent;
    // What is below a solver's error is not judged.
    if (solved && fine.residual_rms(one).maxCoeff() < std::min(o.floor, 2 * kSolverErrors.back())) {
      fit.misfit = false;
      fit.noise_ratio = 1;
    }
    if (!fit.misfit && !p.known && !solved)
      fit.noise_ratio = noise_ratio(fine, one, told_by_smoother(fine, one, p));
  };
  judge(path);
  // Rows so far apart that a smoother takes their motion for noise may be a solver's, too.
  if (fit.misfit && may_be_solved && !looked &&
      fine.residual_rms(path).maxCoeff() < 2 * kSolverErrors.back())
    if (auto found = solver_data(p, o, fit.library, observer))
      return fit_prepared(data, p, o, std::move(found), begin, observer);
  // What is around equations that are far from the data does not matter.
  if (given.empty() && !(fit.misfit && fit.noise_ratio > 1.5)) {
    paths = fine.neighbourhood(path, functions.with_functions(all, path));
    judge(paths.front());
  }
  if (!fit.misfit && !solved && !budget.over()) {
    const Budget before = budget;
    budget = Budget();
    fit.lacking = lacking(p, fine, paths.front(), fit.library, o, fit.steps, budget, observer);
    if (fit.lacking > kLacking)
      fit.misfit = true;
    else
      fit.lacking = 0;
    fine.use(paths.front());
    budget = before;
  }
  // Functions are looked for besides: equations that explain the data need no more of them; and
  // those that explain them to the digits of whoever computed them need no more search.
  const bool to_the_digits = !fit.misfit && fine.residual_rms(paths.front()).maxCoeff() < kDigits;
  fit.stopped = (budget.over() && !to_the_digits) || (functions_stopped && fit.misfit);
  const auto states = [&](const FittedPath& one) {
    std::vector<Matrix> runs = fine.shooting().path(one.support, one.theta, one.starts);
    for (Matrix& run : runs)
      run = (run * p.scaling.scale.asDiagonal()).rowwise() + p.scaling.offset.transpose();
    return runs;
  };
  fit.path = states(paths.front());  // counted in no budget that is asked again
  if (fit.misfit) {
    budget = o.budget ? Budget::of_seconds(*o.budget - spent()) : Budget::of_work(work / 3);
    Support loosened = given.empty() ? all : given;
    for (const FieldTerm& t : paths.front().support)
      if (fit.library.is_function(t.term)) loosened.push_back(t);
    std::sort(loosened.begin(), loosened.end());
    auto [loose, forcing] = fine.loosen(loosened, !given.empty(), fine.numbers_of(paths.front()));
    fit.forcing = forcing;
    fit.continuity = forcing.sd.cwiseQuotient(loose.noise).maxCoeff();
    paths = {std::move(loose)};
    fit.stopped = fit.stopped || budget.over();
  }
  FittedPath best = paths.front();
  double total = 0, least = kInfinity;
  const std::optional<Vector> gaps = fit.misfit ? std::optional(fit.forcing.sd) : std::nullopt;
  for (const FittedPath& one : paths) {
    if (best.support.empty()) break;  // no equation is better than any: nothing to average
    if (one.support.empty()) continue;
    CoefficientSet m = coefficient_set(fine, one, gaps);
    if (solved) m.covariance *= kSolverSpread * kSolverSpread;
    if (!is_distribution(m)) continue;
    // A set beside the best whose functions are anything over the data: a simpler one says as much,
    // and a normal distribution is far from that of its numbers.
    if (!fit.members.empty() && !tells_numbers(m)) continue;
    // Where the best is left out, what is said is of the next; but forcing belongs to the best
    // alone.
    if (fit.members.empty() && one.support != best.support) {
      best = one;
      judge(best);
      fit.path = states(best);
      if (fit.misfit) break;
    }
    m.weight = one.weighed;
    least = std::min(least, one.weighed);
    fit.members.push_back(std::move(m));
  }
  for (CoefficientSet& m : fit.members)
    total += m.weight = std::exp(-(m.weight - least) / o.temper);
  for (CoefficientSet& m : fit.members) m.weight /= total;
  fit.noise = best.noise.cwiseProduct(p.scaling.scale);
  if (solved && !fit.misfit) fit.precision = fine.residual_rms(best).maxCoeff();
  keep_functions(fit, p);
  const bool singular = fit.members.empty();
  fit.usable = !singular && !best.support.empty();
  if (fit.misfit && fit.usable) fit.forced_path = states(best);
  // Every coefficient and every start of a run is an unknown.
  const double unknowns = static_cast<double>(best.support.size() +
                                              p.runs.size() * index(fine.dimension())),
               values = fine.shooting().counts().sum();
  fit.underdetermined = unknowns > values / 2;
  // An sd from N values is known to 1/√(2N).
  fit.noise_too_small = p.known && !fit.misfit && fit.noise_ratio > 1.2 + 5 / std::sqrt(2 * values);
  Told noisiest, turning, heaviest;
  if (fit.usable && !fit.misfit && !fit.stopped && !fit.underdetermined && !solved) {
    const auto run_of_best = fine.shooting().path(best.support, best.theta, best.starts);
    noisiest = most_noise(p.runs, fine.residual_size(best), p.active);
    if (noisiest.value > kMostlyNoise) fit.doubts.noise_share = noisiest.value;
    turning = most_turns(run_of_best, p.active);
    if (given.empty() && p.input_scale.size() == 0 && turning.value <= kFewTurns &&
        fit.members.front().weight < kUnlikely)
      fit.doubts.short_run = true;
    heaviest = heaviest_tails(p.runs, run_of_best, p.active);
    if (!o.robust && heaviest.value > kHeavyTails) fit.doubts.kurtosis = heaviest.value;
  }
  fit.status = !fit.usable                  ? "diverged"
               : fit.underdetermined        ? "underdetermined"
               : fit.stopped                ? "stopped"
               : fit.misfit                 ? "misfit"
               : fit.noise_too_small        ? "noise_too_small"
               : fit.doubts.noise_share > 0 ? "mostly_noise"
               : fit.doubts.short_run       ? "short_run"
                                            : "converged";
  const auto several = [](std::size_t count) { return count == 1 ? "" : "s"; };
  fit.reason = fmt::format("{} term{}, {} set{} of terms averaged, {} Gauss–Newton steps",
                           best.support.size(), several(best.support.size()), fit.members.size(),
                           several(fit.members.size()), fit.steps);
  if (best.support.empty())
    fit.reason = fit.misfit
                     ? fmt::format(
                           "no equation in {} moves like the rows, which are smooth. Give more "
                           "variables, or what drives them (`inputs`){}",
                           data.dimension() == 1 ? "one variable, which alone cannot oscillate,"
                                                 : "these variables",
                           data.dimension() == 1 ? ", or make some of the one (`embed=auto`)" : "")
                     : kLooksLikeNoise;
  else if (singular)
    fit.reason = fmt::format(
        "{} terms were found, but {:.0f} values do not determine their coefficients. Give more "
        "rows, or a lower degree",
        best.support.size(), values);
  else if (fit.underdetermined)
    fit.reason += fmt::format(
        "; {:.0f} unknowns from {:.0f} values: they can follow any noise. Give more rows", unknowns,
        values);
  else if (functions_stopped && !fit.stopped)
    fit.reason += "; not all functions were tried within the bound on work";
  else if (fit.stopped)
    fit.reason += fmt::format(
        "; stopped at its {}, with residuals {:.2f} times the noise: better equations may be "
        "there. {}",
        o.budget ? fmt::format("budget of {:g} s", *o.budget) : "bound on work", fit.noise_ratio,
        o.budget ? "Give more with `budget`"
                 : "Let it go on with `budget` SECONDS, or try a lower degree, or fewer variables");
  else if (fit.misfit)
    fit.reason += fmt::format(
        "; the equations do not explain all of the motion: random forcing stands for the rest and "
        "widens the bands. {} A higher degree helps where powers are missing, and what was not "
        "measured asks for more variables or `inputs`. (Residuals are {:.2f} times the noise, and "
        "neighbours correlate by {:.2f}{}{})",
        p.offered.any() ? "The functions that were offered do not either."
                        : "Let it try functions (`functions=auto`), such as sines and fractions.",
        fit.noise_ratio, fit.autocorrelation,
        fit.persistence > kPersistent
            ? fmt::format(", alike along the motion by {:.0f} standard errors", fit.persistence)
            : "",
        fit.lacking > 0
            ? fmt::format(", but terms of higher degrees would change the path, by {:.0f} standard "
                          "errors: what the equations lack is below the noise",
                          fit.lacking)
            : "");
  else if (fit.noise_too_small)
    fit.reason += fmt::format(
        "; residuals look like noise of {:.2f} times the sd that was given, and terms may follow "
        "it. Leave `noise` out, or give its sd",
        fit.noise_ratio);
  else if (fit.doubts.noise_share > 0)
    fit.reason += fmt::format(
        "; {:.0f} % of the sd of {} is called noise. Jumps between rows look the same: give closer "
        "rows, or leave it out where it is noise (`variables`)",
        100 * noisiest.value, data.variables[index(noisiest.variable)]);
  else if (fit.doubts.short_run)
    fit.reason += fmt::format(
        "; the path turns {} time{} in the variable that turns most, and the most probable terms "
        "have probability {:.2g}: others explain the rows and go on otherwise. Give a longer run, "
        "or several",
        turning.value, several(static_cast<std::size_t>(turning.value)),
        fit.members.front().weight);
  if (fit.doubts.kurtosis > 0)
    fit.reason += fmt::format(
        "; residuals of {} have heavy tails (excess kurtosis {:.2g}): outliers, which `robust` "
        "weighs down, or jumps",
        data.variables[index(heaviest.variable)], heaviest.value);
  return fit;
}

}  // namespace

TrajectoryFit fit_trajectory(const Dataset& data, const TrajectoryOptions& options,
                             const Observer& observer) {
  const TimePoint begin = std::chrono::steady_clock::now();
  TrajectoryOptions o = options;
  const auto fitted = [&] {
    const Prepared p = prepare(data, o);
    TrajectoryOptions own = o;
    own.floor *= p.digits;
    return fit_prepared(data, p, own, std::nullopt, begin, observer);
  };
  TrajectoryFit fit = fitted();
  const bool found = fit.relative_noise.size() > 0 || !fit.log_noise.empty();
  if (!found || o.noise_law != NoiseLaw::automatic || !(fit.misfit || fit.stopped) || o.budget)
    return fit;
  // A smoother that errs where the motion is fast takes that for noise that grows with the state.
  o.noise_law = NoiseLaw::constant;
  TrajectoryFit plain = fitted();
  return plain.usable && !plain.misfit && !plain.stopped ? plain : fit;
}

}  // namespace odecast
