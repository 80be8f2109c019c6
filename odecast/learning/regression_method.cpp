#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/learning/detail/methods.hpp"
#include "odecast/learning/detail/rows.hpp"
#include "odecast/regression/bootstrap.hpp"
#include "odecast/regression/selection.hpp"
#include "odecast/regression/weak_regression.hpp"

namespace odecast {
namespace {

/// The estimates of one or more equations as coefficients; unknown o F + m is that of φ_m in
/// equation o, of F terms.
CoefficientSet coefficient_set(const Estimate& e, int F) {
  CoefficientSet set{};
  for (const int q : e.terms) set.support.push_back({q / F, q % F});
  set.theta = e.x;
  set.covariance = e.covariance;
  return set;
}

/// What regression found, by whichever rows.
struct Regression {
  Estimate posterior;
  double log_evidence = 0, log_prior = 0, misfit = 0;
  bool settled = true;
  int rounds = 1;
};

Regression regression_of(const WeakPosterior& found) {
  return {found.fit.posterior, found.fit.log_evidence, found.fit.log_prior,
          found.fit.misfit,    found.settled,          found.rounds};
}

std::vector<int> unknowns(const std::vector<TrajectoryOptions::KnownTerm>& known,
                          const LinearTerms& terms) {
  std::vector<int> result;
  for (const auto& term : known)
    if (const int m = terms.basis.find(term.powers); m >= 0)
      result.push_back(term.equation * terms.size() + m);
  std::sort(result.begin(), result.end());
  return result;
}

/// The functions that a regression is offered. Its data are in model units, the inputs behind the
/// variables.
OfferedFunctions offered_functions(const FunctionWishes& wishes, const FitData& data, int n) {
  if (wishes.kinds.empty() && wishes.candidates.empty()) return {};
  const int arguments = data.size();
  std::vector<ObservedRun> runs;
  Smoothed as_observed;
  for (const Trajectory& t : data.in_model_units().trajectories) {
    if (t.rows() < 2) continue;
    ObservedRun& run = runs.emplace_back(observed_run(t.times, t.states.leftCols(n)));
    if (arguments > n) run.inputs = {t.times, t.states.rightCols(arguments - n)};
    as_observed.values.push_back(run.values);
  }
  Vector active(arguments);
  for (int j = 0; j < arguments; ++j)
    active[j] = data.summary.constant[static_cast<std::size_t>(j)] ? 0 : 1;
  return offer_functions(wishes, data.source.variables, n, runs, as_observed, active,
                         data.scaling.offset, data.scaling.scale, InnerNumbers::none);
}

LinearTerms linear_terms(const MonomialBasis& basis, const OfferedFunctions& offered) {
  std::vector<double> prices;
  for (const OfferedFunctions::Offer& offer : offered.offers)
    prices.push_back(offer.price * std::log(basis.variables() + 1.0) +
                     (offer.given() ? 0 : std::log(offered.kinds)));
  return {basis, offered.functions.get(), std::move(prices)};
}

/// [Φ | g] of the rows [begin, end), each times the root of its weight.
Matrix weighted_rows(const LinearTerms& terms, const DerivativeRows& rows, const Vector& weights,
                     Eigen::Index begin, Eigen::Index end) {
  const Eigen::Index F = terms.size(), n = rows.derivatives.cols();
  Matrix all(end - begin, F + n);
  for (Eigen::Index i = begin; i < end; ++i) {
    auto row = all.row(i - begin);
    terms.evaluate(rows.states.row(i).data(), row.data());
    row.tail(n) = rows.derivatives.row(i);
    if (weights.size() > 0) row *= std::sqrt(weights[i]);
  }
  return all;
}

/// The factor of all rows; with functions, of which that of monomials alone does not know.
RowFactor factor_of(const FitData& data, int n, const LinearTerms& terms, const RowPlan& plan,
                    FitSummary& summary, const Observer& observer) {
  const int degree = terms.basis.degree();
  if (!terms.functions) return row_factor(data, n, degree, plan, summary, observer);
  RowFactor factor(data.size(), degree, n, terms.functions->size());
  double first_variance = -1;
  for_rows(data, n, plan, summary, observer, [&](const DerivativeRows& rows) {
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    const Matrix all =
        weighted_rows(terms, rows, row_weights(rows, first_variance), 0, rows.rows());
    if (!all.allFinite())
      throw_data({data.source.name, "a function that is undefined at a row of derivatives",
                  "functions that are defined along the smoothed motion",
                  "Choose others, or `derivative=weak`."});
    factor.add_features(all.leftCols(terms.size()), all.rightCols(n));
  });
  return factor;
}

/// Equation by equation: rows that are differences have no covariance between equations.
Regression regress(const RowFactor& factor, const LinearTerms& terms, int n, int degree,
                   bool select) {
  const int F = terms.size(), monomials = terms.basis.size();
  const auto count = [&](int d) {
    return static_cast<std::size_t>(
        monomial_count(terms.variables(), std::min(d, terms.basis.degree())));
  };
  std::vector<int> low(count(std::min(degree, 2))), all(count(degree));
  std::iota(low.begin(), low.end(), 0);
  std::iota(all.begin(), all.end(), 0);
  for (int f = monomials; f < F; ++f) all.push_back(f);
  Regression r;
  std::vector<EvidenceFit> fits;
  Eigen::Index found = 0;
  for (int o = 0; o < n; ++o) {
    const EvidenceProblem problem = equation_problem(factor, o, terms);
    fits.push_back(select ? evidence_search(problem, low, all) : evidence_fit(problem, all));
    found += fits.back().posterior.x.size();
  }
  r.posterior.x.resize(found);
  r.posterior.covariance = Eigen::MatrixXd::Zero(found, found);
  found = 0;
  for (int o = 0; o < n; ++o) {
    const EvidenceFit& fit = fits[static_cast<std::size_t>(o)];
    const auto size = fit.posterior.x.size();
    for (const int q : fit.posterior.terms) r.posterior.terms.push_back(o * F + q);
    r.posterior.x.segment(found, size) = fit.posterior.x;
    r.posterior.covariance.block(found, found, size, size) = fit.posterior.covariance;
    r.log_evidence += fit.log_evidence;
    r.log_prior += fit.log_prior;
    found += size;
  }
  return r;
}

constexpr int kFewestBlocks = 5;  ///< that rows are drawn from

constexpr std::size_t kFewestReplicates = 10;  ///< whatever they cost
constexpr double kReplicatesWork = 2e10;       ///< operations, some seconds' on one core

/// As many as the bound on work leaves, where no time is given: one takes about 12 u³ for u
/// unknowns of a column.
int most_replicates(const BootstrapMethod& m, const FitOptions& o, int outputs,
                    std::size_t unknowns) {
  const double u = static_cast<double>(unknowns);
  if (o.budget) return m.replicates;
  return static_cast<int>(std::clamp(kReplicatesWork / (12 * u * u * u * outputs),
                                     static_cast<double>(kFewestReplicates), 1e5));
}

/// Every replicate a set of the same weight. `price` is the penalty of each unknown, `outputs` how
/// many columns of unknowns there are, each for one equation, or 1 where one column holds those of
/// all.
std::vector<CoefficientSet> replicates(const BlockBootstrap& bootstrap, const BootstrapMethod& m,
                                       const FitOptions& o, int outputs, int terms,
                                       const std::vector<double>& penalty, double least,
                                       const std::string& source, const Budget& budget,
                                       const Observer& observer) {
  // Fewer blocks hardly ever leave one out: replicates would be alike.
  if (bootstrap.chunks() < kFewestBlocks * BlockBootstrap::kChunksPerBlock)
    throw_data(
        {source,
         fmt::format("{:.1f} blocks of neighbours that depend on each other",
                     bootstrap.chunks() / static_cast<double>(BlockBootstrap::kChunksPerBlock)),
         fmt::format("at least {} blocks to draw from", kFewestBlocks),
         "Give more rows, or take `posterior=regression`, which draws none."});
  std::vector<CoefficientSet> sets(static_cast<std::size_t>(
      std::min(m.replicates, most_replicates(m, o, outputs, penalty.size()))));
  std::vector<char> drawn_in_time(sets.size(), 1);
  parallel_for(
      o.threads, sets.size(),
      [&](std::size_t k) {
        if (k >= kFewestReplicates && budget.over()) {
          drawn_in_time[k] = 0;
          return;
        }
        const std::vector<int> drawn = bootstrap.multiplicities(o.seed, k);
        CoefficientSet& set = sets[k];
        std::vector<double> theta;
        for (int output = 0; output < outputs; ++output) {
          Estimate e = bootstrap.replicate(drawn, output, least);
          if (m.select_terms) eliminate(e, penalty, static_cast<int>(e.terms.size()));
          for (const int q : e.terms) set.support.push_back({output + q / terms, q % terms});
          theta.insert(theta.end(), e.x.begin(), e.x.end());
        }
        set.theta = Eigen::Map<const Vector>(theta.data(), static_cast<Eigen::Index>(theta.size()));
      },
      [&](std::size_t begun) {
        observer("drawing rows", static_cast<double>(begun) / static_cast<double>(sets.size()));
      });
  std::size_t kept = 0;
  for (std::size_t k = 0; k < sets.size(); ++k)
    if (drawn_in_time[k]) std::swap(sets[kept++], sets[k]);
  sets.resize(kept);
  for (CoefficientSet& set : sets) set.weight = 1 / static_cast<double>(kept);
  return sets;
}

/// The price of every unknown of n equations: regression/selection.hpp.
std::vector<double> penalties(const LinearTerms& terms, int n, int equations, double observations) {
  std::vector<double> penalty;
  for (int o = 0; o < equations; ++o)
    for (int m = 0; m < terms.size(); ++m)
      penalty.push_back(std::log(observations * n) + 2 * terms.price(m));
  return penalty;
}

std::vector<CoefficientSet> weak_replicates(WeakBlocks& blocks, const LinearTerms& terms,
                                            const WeakPosterior& found, const BootstrapMethod& m,
                                            const FitOptions& o, const FitData& data,
                                            const Budget& budget, const Observer& observer) {
  const int n = blocks.dimension(), F = terms.size();
  BlockBootstrap bootstrap(weak_problem(blocks, terms, found.coefficients, found.paths).triangle,
                           n * F);
  // Whitened rows are independent as far as the noise is white; blocks stand for the rest.
  const Eigen::Index size = n * chunk_rows(std::cbrt(static_cast<double>(blocks.rows())));
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (const Matrix& part :
         WeakLinearisation(blocks.block(b), terms, found.coefficients, found.paths[b]).whitened())
      for (Eigen::Index at = 0; at < part.rows(); at += size)
        bootstrap.add(part.middleRows(at, std::min(size, part.rows() - at)));
  return replicates(bootstrap, m, o, 1, F,
                    penalties(terms, n, n, static_cast<double>(data.summary.rows)), 1,
                    data.source.name, budget, observer);
}

std::vector<CoefficientSet> row_replicates(const FitData& data, const RowFactor& factor,
                                           const LinearTerms& terms, int n, const RowPlan& plan,
                                           const BootstrapMethod& m, const FitOptions& o,
                                           FitSummary& summary, const Budget& budget,
                                           const Observer& observer) {
  const int F = terms.size();
  BlockBootstrap bootstrap(factor.triangle(), F);
  // Neighbours share observations: up to 16 of them. Few rows make ten blocks.
  const auto all = static_cast<double>(factor.rows());
  const Eigen::Index size = chunk_rows(std::min(std::max(16.0, std::sqrt(all)), all / 10));
  double first_variance = -1;
  for_rows(data, n, plan, summary, observer, [&](const DerivativeRows& rows) {
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    const Vector weights = row_weights(rows, first_variance);
    for (Eigen::Index at = 0; at < rows.rows(); at += size)
      bootstrap.add(weighted_rows(terms, rows, weights, at, std::min(at + size, rows.rows())));
  });
  return replicates(bootstrap, m, o, n, F,
                    penalties(terms, n, 1, static_cast<double>(data.summary.rows)), 0,
                    data.source.name, budget, observer);
}

/// Whether residuals are larger than the noise explains: chi² per degree of freedom beyond 1 by
/// more than five standard errors √(2 / values) and what an estimate of the noise may lack (10 %).
/// On clean data rounding and quadrature are larger than the "noise": what is less than a ten
/// thousandth of the motion is not a misfit. Noise and sd of the variables, in the same units.
bool unexplained(const Regression& r, double values, const Vector& noise, const Vector& sd) {
  double share = 0;  // of the motion that is noise
  for (Eigen::Index i = 0; i < sd.size(); ++i)
    if (sd[i] > 0) share = std::max(share, noise[i] / sd[i]);
  return r.misfit > 1.1 + 5 * std::sqrt(2 / values) && std::sqrt(r.misfit) * share > 1e-4;
}

/// Which equations have no more than the rows can carry.
int highest_degree(int arguments, int n, double rows) {
  int degree = 1;
  while (degree < kHighestDegree &&
         n * monomial_count(arguments, degree + 1) <= kMostJointUnknowns &&
         5 * monomial_count(arguments, degree + 1) <= rows)
    ++degree;
  return degree;
}

DegreeTrial trial(int degree, const Regression& r) {
  return {degree, static_cast<int>(r.posterior.terms.size()), r.log_evidence, r.log_prior};
}

/// Every degree on the rows of the highest. Sets are compared around one path, that of the best of
/// them.
std::vector<DegreeTrial> try_degrees(const WeakData& weak, const OfferedFunctions& offered, int n,
                                     bool select, const std::string& source,
                                     const Observer& observer) {
  const auto arguments = static_cast<int>(weak.noise.size());
  double rows = 0;
  for (const Segment& s : weak.parts) rows += s.rows;
  const MonomialBasis basis(arguments, highest_degree(arguments, n, rows / 4));
  const LinearTerms terms = linear_terms(basis, offered);
  WeakBlocks all(weak.parts, terms, weak.noise, n);
  std::vector<WeakPosterior> found;
  std::vector<DegreeTrial> trials;
  for (int degree = 1; degree <= basis.degree(); ++degree) {
    if (degree > 1 && static_cast<double>(all.rows()) < monomial_count(arguments, degree)) break;
    found.push_back(weak_posterior(all, terms, {degree, select}, source, observer));
    trials.push_back(trial(degree, regression_of(found.back())));
  }
  const WeakPosterior& best = found[static_cast<std::size_t>(best_degree(trials) - 1)];
  const EvidenceProblem problem = weak_problem(all, terms, best.coefficients, best.paths);
  for (std::size_t k = 0; k < found.size(); ++k) {
    const EvidenceFit fit = evidence_fit(problem, found[k].fit.posterior.terms);
    trials[k].log_evidence = fit.log_evidence;
  }
  return trials;
}

struct OutOfTime {};

/// `replicates` where the posterior is that of a bootstrap, of which `m` has all but their number.
Fit regression_in_time(const ObservationSource& source, const RegressionMethod& m,
                       std::optional<int> asked, const FitOptions& o, const Budget& budget,
                       const Observer& observer) {
  // Replicates that are there are worth something; half a posterior is not.
  const Observer watch = [&](std::string_view what, double part) {
    if (budget.over()) throw OutOfTime{};
    observer(what, part);
  };
  Fit result;
  Model& model = result.model;
  FitSummary& summary = result.summary;
  const int arguments = argument_count(source, o.time_name), n = source.dimension();
  const bool automatic = m.degree == kAutomaticDegree, bootstrap = asked.has_value();
  int degree = m.degree;
  BootstrapMethod draws{.select_terms = m.select_terms, .replicates = asked.value_or(0)};
  TermLibrary library;
  watch("reading", 0);
  const RowPlan given = row_plan(o, m.rows, false, automatic ? 2 : m.degree);
  const FitData data = fit_data(source, given);
  describe(model, source, data, given);
  smooth_last_state(model, data, summary);
  const RowPlan plan = with_derivative(given, data, model, summary, false, watch);
  const OfferedFunctions offered = offered_functions(m.functions, data, n);
  library.functions = offered.functions;
  Regression r;
  std::vector<CoefficientSet> sets;
  long rows = 0;
  bool misfit = false;
  if (is_weak(plan)) {
    const WeakData weak = weak_data(data, plan);
    const auto begin = std::chrono::steady_clock::now();
    if (automatic) {
      summary.degrees = try_degrees(weak, offered, n, m.select_terms, source.name, watch);
      degree = best_degree(summary.degrees);
    }
    library.basis = std::make_shared<MonomialBasis>(arguments, degree);
    const LinearTerms terms = linear_terms(*library.basis, offered);
    WeakBlocks integrals(weak.parts, terms, weak.noise, n);
    const WeakPosterior found = weak_posterior(
        integrals, terms, {degree, m.select_terms, unknowns(m.terms, terms)}, source.name, watch);
    r = regression_of(found);
    rows = static_cast<long>(integrals.rows());
    misfit = unexplained(r, static_cast<double>(n * rows), weak.noise,
                         data.summary.sd.head(n).cwiseQuotient(data.scaling.scale.head(n)));
    if (bootstrap)
      sets = weak_replicates(integrals, terms, found, draws, o, data, budget, observer);
    summary.seconds += seconds_since(begin);
  } else {
    const int highest =
        automatic ? highest_degree(arguments, n, static_cast<double>(data.summary.pairs)) : degree;
    const MonomialBasis most(arguments, highest);
    const LinearTerms terms = linear_terms(most, offered);
    RowFactor factor = factor_of(data, n, terms, plan, summary, watch);
    rows = factor.rows();
    require_option(static_cast<double>(rows) >= monomial_count(arguments, highest), "`degree`",
                   fmt::format("{} rows for degree {}", rows, highest), "a row for each monomial",
                   "Give more data or choose a lower degree.");
    const auto begin = std::chrono::steady_clock::now();
    for (int d = 1; automatic && d <= highest; ++d)
      summary.degrees.push_back(trial(d, regress(factor, terms, n, d, m.select_terms)));
    degree = automatic ? best_degree(summary.degrees) : highest;
    r = regress(factor, terms, n, degree, m.select_terms);
    library.basis = std::make_shared<MonomialBasis>(arguments, degree);
    // Unknowns are numbered by the factor's terms, whose first monomials are those of a lower
    // degree.
    const int F = terms.size(), fewer = most.size() - library.basis->size();
    for (int& q : r.posterior.terms)
      q = q / F * (F - fewer) + q % F - (q % F < most.size() ? 0 : fewer);
    summary.seconds += seconds_since(begin);
    if (bootstrap) {
      const LinearTerms own = linear_terms(*library.basis, offered);
      if (degree < highest) factor = factor_of(data, n, own, plan, summary, watch);
      sets = row_replicates(data, factor, own, n, plan, draws, o, summary, budget, observer);
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  if (!bootstrap) sets = {coefficient_set(r.posterior, library.size())};
  summary.terms = static_cast<int>(r.posterior.terms.size());
  const bool stopped = bootstrap && sets.size() < static_cast<std::size_t>(draws.replicates);
  const std::size_t drawn = sets.size();
  summary.usable = false;
  for (const CoefficientSet& set : sets) summary.usable = summary.usable || !set.support.empty();
  for (const CoefficientSet& set : sets)
    summary.usable = summary.usable && set.theta.allFinite() && is_covariance(set.covariance);
  summary.usable = summary.usable && std::isfinite(r.log_evidence);
  keep_used(library, sets, {}, data.scaling.offset, data.scaling.scale);
  model.law = PolynomialPart{degree, std::move(sets), library.functions};
  summary.log_evidence = r.log_evidence;
  summary.trusted = summary.usable && r.settled && !misfit && !stopped;
  summary.status = !summary.usable ? "diverged"
                   : misfit        ? "misfit"
                   : stopped       ? "stopped"
                   : r.settled     ? "posterior"
                                   : "not_converged";
  const char* of = is_weak(plan) ? "integrals" : "rows";
  summary.reason =
      !summary.usable ? "no term is left, or a coefficient is not finite"
      : bootstrap
          ? fmt::format("{} replicates of {} {} in blocks, degree {}", drawn, rows, of, degree)
          : fmt::format("normal posterior of {} coefficients of degree {}{} from {} {}",
                        summary.terms, degree, offered.any() ? " and of functions" : "", rows, of);
  if (summary.usable && is_weak(plan))
    summary.reason += fmt::format("; chi^2 {:.3g} per degree of freedom", r.misfit);
  if (summary.usable && stopped)
    summary.reason += fmt::format("; stopped at its {} before all {} were drawn{}",
                                  o.budget ? "budget" : "bound on work", draws.replicates,
                                  o.budget ? "" : ": `budget` SECONDS lets it go on");
  if (summary.usable && misfit)
    summary.reason += fmt::format(
        ", where white noise alone gives 1: the equations do not explain all of the motion, or the "
        "noise {}, and bands are too narrow. Try a higher "
        "degree, or give what else moves it (`variables`, `inputs`); `posterior=trajectory` widens "
        "its bands by what is not explained, and takes `robust`",
        o.noise.size() > 0 ? "is larger than the one given" : "has outliers or a memory");
  if (summary.usable && !r.settled)
    summary.reason += fmt::format("; terms or coefficients still change after {} rounds", r.rounds);
  auto& record = model.training;
  record.trainer = bootstrap ? "bootstrap" : "regression";
  record.rows = is_weak(plan) ? data.summary.rows : rows;
  record.iterations = r.rounds;
  record.status = summary.status;
  record.reason = summary.reason;
  summary.seconds += seconds_since(begin);
  return result;
}

Fit stopped_at(double budget) {
  Fit result;
  result.summary.status = "stopped";
  result.summary.reason = fmt::format(
      "stopped at its budget of {:g} s, before there was a posterior. Give more with `budget`",
      budget);
  result.summary.seconds = budget;
  result.model.training.status = result.summary.status;
  result.model.training.reason = result.summary.reason;
  return result;
}

Fit regression(const ObservationSource& source, const RegressionMethod& m, std::optional<int> asked,
               const FitOptions& o, const Observer& observer) {
  const Budget budget = o.budget ? Budget::of_seconds(*o.budget) : Budget();
  try {
    return regression_in_time(source, m, asked, o, budget, observer);
  } catch (const OutOfTime&) {
    return stopped_at(*o.budget);
  }
}

}  // namespace

int best_degree(const std::vector<DegreeTrial>& trials) {
  const auto score = [](const DegreeTrial& t) { return t.log_evidence + t.log_prior; };
  std::size_t best = 0;
  for (std::size_t k = 1; k < trials.size(); ++k)
    if (score(trials[k]) > score(trials[best]) + 1e-6) best = k;
  return trials[best].degree;
}

Fit learn(const ObservationSource& source, const RegressionMethod& method,
          const FitOptions& options, const Observer& observer) {
  return regression(source, method, std::nullopt, options, observer);
}

Fit learn(const ObservationSource& source, const BootstrapMethod& method, const FitOptions& options,
          const Observer& observer) {
  return regression(source, {method.degree, method.rows, method.select_terms, method.functions},
                    method.replicates, options, observer);
}

}  // namespace odecast
