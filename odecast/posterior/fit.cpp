#include "odecast/posterior/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>

#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/posterior/choose_derivative.hpp"
#include "odecast/posterior/smoother.hpp"
#include "odecast/training/bootstrap.hpp"
#include "odecast/training/objective.hpp"
#include "odecast/training/selection.hpp"
#include "odecast/training/weak_regression.hpp"

namespace odecast {
namespace {

void require(bool good, const char* option, const std::string& found, const char* expected,
             const char* remedy) {
  if (!good) throw_usage({option, found, expected, remedy});
}

/// Network sizes are bounded so that a mistyped option is an error and not an exhausted machine.
constexpr double kMaxUnits = 1e5, kMaxParameters = 1e8;

/// Coefficients of all units of a polynomial kernel, expanded: n × monomials × units.
constexpr double kMaxCoefficients = 1e8;

/// Candidate terms of the trajectory posterior: the search linearises with all of them in.
constexpr double kMaxCandidates = 3000;

/// `variables` are those the function depends on, inputs included.
std::vector<HiddenLayer> hidden_layers(int variables, const FitOptions& o) {
  require(o.dropout >= 0 && o.dropout < 1, "--dropout", fmt::format("{}", o.dropout),
          "a rate in [0, 1)", "The paper uses 0.05, 0.25 and 0.5.");
  std::vector<HiddenLayer> hidden;
  if (!o.layers.empty()) {
    for (const int units : o.layers) {
      require(units >= 1 && units <= kMaxUnits, "--layers", fmt::format("{}", units),
              "whole numbers from 1 to 100000", "For example --layers 32,32.");
      hidden.push_back({units, o.activation,
                        o.activation == Activation::power ? o.degree : 1, o.dropout, o.rescale});
    }
    return hidden;
  }
  require(o.degree >= 1 && o.degree <= 20, "--degree", fmt::format("{}", o.degree),
          "a whole number from 1 to 20", "2 fits most textbook systems.");
  require(o.hidden >= 0 && o.hidden <= kMaxUnits, "--hidden", fmt::format("{}", o.hidden),
          "a whole number from 1 to 100000, or auto", "auto takes one unit per monomial.");
  const double monomials = monomial_count(variables, o.degree);
  const double units = o.hidden > 0 ? o.hidden : monomials;
  require(variables * monomials * units <= kMaxCoefficients, "--degree",
          fmt::format("{} with {} variables ({:.0f} monomials) and {:.0f} hidden units", o.degree,
                      variables, monomials, units),
          "at most 1e8 coefficients, variables × monomials × units",
          "Choose a lower degree or fewer hidden units.");
  hidden.push_back({o.hidden > 0 ? o.hidden : static_cast<int>(monomials), Activation::power,
                    o.degree, o.dropout, o.rescale});
  return hidden;
}

void run_schedule(Model& model, const DerivativeRows& rows, const FitOptions& o, Trainer trainer,
                  FitSummary& summary, const Observer& observer) {
  TrainOptions training = o.training;
  training.optimiser = trainer == Trainer::sgd ? OptimiserKind::sgd : OptimiserKind::adam;
  training.seed = o.seed;
  training.threads = o.threads;
  const TrainSummary done = train(model.network, rows, training, observer);
  summary.usable = summary.trusted = done.status == TrainStatus::schedule_done;
  summary.status = summary.usable ? "schedule_done" : "diverged";
  summary.reason = done.reason;
  model.training.iterations = done.iterations;
  if (const auto kernel = polynomial_kernel(model.network); kernel && summary.usable)
    model.training.objective =
        expected_objective(*kernel, rows, model.rate().cwiseAbs2());
}

/// Network of the right shape, or an Error.
Network checked_network(int arguments, int n, const FitOptions& o) {
  const auto hidden = hidden_layers(arguments, o);
  double parameters = 0, width = arguments;
  for (const auto& layer : hidden) {
    parameters += (width + 1) * layer.units;
    width = layer.units;
  }
  require(parameters <= kMaxParameters, "network", fmt::format("{:.0f} weights", parameters),
          "at most 1e8", "Use fewer or smaller layers.");
  return make_network(arguments, hidden, n, o.seed);
}

/// Rows from which the noise is estimated: to about a hundredth.
constexpr long kRowsForNoise = 4096;

/// Data as the fit sees them: variables and inputs side by side, and how to bring them into model units.
struct Arguments {
  ObservationSource source;
  ObservationSummary summary;
  Scaling scaling;
  DerivativeOptions derivative;  ///< its noise for all columns, where given
  Vector noise = {};             ///< sd of all columns as the first rows tell it, where it is not given

  int size() const { return source.dimension(); }
  Dataset in_model_units() const {
    return to_model_units(first_rows(source, std::numeric_limits<long>::max()), scaling);
  }
};

/// How many arguments the function has; known before any row is read.
int argument_count(const ObservationSource& source, const FitOptions& o) {
  return source.dimension() + static_cast<int>(source.inputs.size()) + (o.time_name.empty() ? 0 : 1);
}

Arguments arguments_of(const ObservationSource& source, const FitOptions& o) {
  const bool driven = argument_count(source, o) > source.dimension();
  Arguments a;
  a.source = driven ? with_inputs(source, !o.time_name.empty(), o.time_name) : source;
  a.summary = summarise(a.source);
  a.scaling = o.scale == ScaleKind::none ? no_scaling(a.size())
              : o.select_terms || o.posterior != PosteriorKind::dropout ? unshifted_scaling(a.summary)
                                                                        : standard_scaling(a.summary);
  if (o.kind == ModelKind::map && o.scale != ScaleKind::none) a.scaling.time = a.summary.step;
  a.derivative = o.derivative;
  if (driven && o.derivative.noise.size() > 0) {  // what drives is known to round-off
    Vector noise = 0x1p-52 * a.summary.rms.cwiseMax(1e-280);
    if (o.derivative.noise.size() == 1)
      noise.head(source.dimension()).setConstant(o.derivative.noise[0]);
    else
      noise.head(source.dimension()) = o.derivative.noise;
    a.derivative.noise = noise;
  }
  if (o.derivative.noise.size() == 0 && o.kind == ModelKind::flow) {
    const Dataset first = first_rows(a.source, kRowsForNoise);
    a.noise = estimate_noise(segments(first, o.derivative.gap), a.size());
  }
  return a;
}

/// What the data alone tell.
void describe(Model& model, const ObservationSource& source, const Arguments& data, const FitOptions& o) {
  const ObservationSummary& summary = data.summary;
  const Eigen::Index n = source.dimension(), inputs = data.size() - n;
  require(o.kind == ModelKind::flow || summary.pairs > 0, "--kind", "map with trajectories of one row",
          "rows that follow each other", "A map is learnt from pairs of rows.");
  model.kind = o.kind;
  model.variables = source.variables;
  model.scaling = {data.scaling.offset.head(n), data.scaling.scale.head(n), data.scaling.time};
  model.inputs.names.assign(data.source.variables.begin() + n, data.source.variables.end());
  model.inputs.offset = data.scaling.offset.tail(inputs);
  model.inputs.scale = data.scaling.scale.tail(inputs);
  model.inputs.held = o.hold_inputs;
  model.inputs.time = !o.time_name.empty();
  model.last_trajectory = (*source.ids)[summary.last_trajectory];
  model.last_time = summary.last_time;
  model.last_state = summary.last_state.head(n);
  model.step = summary.step;
  model.size = summary.rms;
  model.data_scale = std::max(model.scaling.to_model(summary.smallest.head(n)).cwiseAbs().maxCoeff(),
                              model.scaling.to_model(summary.largest.head(n)).cwiseAbs().maxCoeff());
  if (model.data_scale == 0) model.data_scale = 1;
  if (o.derivative.noise.size() > 0) {
    model.noise = data.derivative.noise.size() == 1 ? Vector::Constant(n, data.derivative.noise[0])
                                                    : Vector(data.derivative.noise.head(n));
  } else {
    model.noise = data.noise.head(std::min(n, data.noise.size()));
  }
  auto& record = model.training;
  record.derivative = o.kind == ModelKind::map ? "none" : derivative_name(o.derivative.method);
  record.noise_factor = o.derivative.forward.noise_factor;
  record.noise_order = o.derivative.forward.noise_order;
  record.trajectories = summary.trajectories;
  record.seed = o.seed;
}

[[noreturn]] void overflow(const std::string& name) {
  throw_data({name, "differences that overflow", "values whose differences are finite",
              "Rescale the columns or the times, or remove the outliers."});
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The options with a derivative of a name, where they leave the choice to us.
FitOptions with_derivative(const FitOptions& options, const Arguments& data, Model& model,
                           FitSummary& summary, bool pointwise_only, const Observer& observer) {
  FitOptions o = options;
  o.derivative = data.derivative;
  summary.derivative = model.training.derivative;
  if (o.kind == ModelKind::map || o.derivative.method != DerivativeMethod::automatic) return o;
  const auto begin = std::chrono::steady_clock::now();
  // Cubic polynomials stand in for general networks.
  const DerivativeChoice choice =
      choose_derivative(data.in_model_units(), model.dimension(), to_model_units(o.derivative, data.scaling),
                        o.layers.empty() ? o.degree : 3, pointwise_only, observer);
  o.derivative.method = choice.method;
  model.training.derivative = derivative_name(choice.method);
  summary.derivative = fmt::format("{}, {:.3g} time units ahead", choice.reason,
                                   choice.ahead * model.scaling.time);
  summary.seconds += seconds_since(begin);
  return o;
}

}  // namespace

bool fits_source(const FitOptions& o) {
  if (o.posterior != PosteriorKind::dropout) return o.posterior == PosteriorKind::regression || o.posterior == PosteriorKind::bootstrap;
  return o.trainer == Trainer::exact || (o.trainer == Trainer::automatic && o.layers.empty());
}

namespace {

/// The rows of the data as the exact trainers want them, and what the integral form says of the coefficients beyond.
struct ExactRows {
  RowFactor factor;
  std::optional<WeakRegression> regression;
};

/// Rows with derivatives, or successors for a map, block by block; any method but weak.
void for_rows(const Arguments& data, int n, const FitOptions& o, FitSummary& summary, const Observer& observer,
              const std::function<void(const DerivativeRows&)>& visit) {
  const DerivativeMethod method = o.derivative.method;
  long seen = 0;
  const auto take = [&](const DerivativeRows& all) {
    observer("reading", static_cast<double>(seen) / static_cast<double>(data.summary.pairs));
    const bool driven = data.size() > n;
    const DerivativeRows cut = driven ? first_targets(all, n) : DerivativeRows();
    const DerivativeRows& rows = driven ? cut : all;
    if (!rows.derivatives.allFinite() || !rows.states.allFinite()) overflow(data.source.name);
    const auto begin = std::chrono::steady_clock::now();  // reading is not part of the fit
    visit(rows);
    seen += rows.rows();
    summary.seconds += seconds_since(begin);
  };
  if (o.kind == ModelKind::map) {
    take(successors(data.in_model_units(), data.summary.step / data.scaling.time));
  } else if (method == DerivativeMethod::forward || central_order(method) > 0) {
    stream_differences(data.source, data.scaling, o.derivative, data.summary, 1 << 14, take);
  } else {
    const Dataset scaled = data.in_model_units();
    const auto begin = std::chrono::steady_clock::now();
    const DerivativeRows rows = derivative_rows(scaled, to_model_units(o.derivative, data.scaling));
    summary.seconds += seconds_since(begin);
    take(rows);
  }
}

/// The factor of those rows, weighted by their inverse variance.
RowFactor row_factor(const Arguments& data, int n, int degree, const FitOptions& o, FitSummary& summary,
                     const Observer& observer) {
  RowFactor factor(data.size(), degree, n);
  double first_variance = -1;
  for_rows(data, n, o, summary, observer, [&](const DerivativeRows& rows) {
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    factor.add(rows.states, rows.derivatives, row_weights(rows, first_variance), o.threads);
  });
  return factor;
}

bool is_weak(const FitOptions& o) {
  return o.kind == ModelKind::flow && o.derivative.method == DerivativeMethod::weak;
}

/// What the integral form is made of, in model units.
struct WeakData {
  Dataset scaled;
  std::vector<Segment> parts;
  Vector noise;
};

WeakData weak_data(const Arguments& data, const FitOptions& o) {
  WeakData weak{data.in_model_units(), {}, {}};
  for (const Trajectory& t : weak.scaled.trajectories)
    if (!t.states.allFinite()) overflow(data.source.name);
  const DerivativeOptions options = to_model_units(o.derivative, data.scaling);
  weak.parts = segments(weak.scaled, options.gap);
  weak.noise = data.noise.size() > 0 && data.summary.rows <= kRowsForNoise
                   ? data.noise.cwiseQuotient(data.scaling.scale)
                   : observation_noise(options, weak.parts, data.size());
  return weak;
}

ExactRows exact_rows(const Arguments& data, const Model& model, const FitOptions& o, FitSummary& summary,
                     const Observer& observer) {
  const int n = model.dimension(), degree = model.network.layers[0].power;
  if (!is_weak(o)) return {row_factor(data, n, degree, o, summary, observer), {}};
  const WeakData weak = weak_data(data, o);
  const auto begin = std::chrono::steady_clock::now();
  const MonomialBasis basis(data.size(), degree);
  const WeakRows rows = weak_rows(weak.parts, basis, weak.noise, n);
  WeakRegression regression =
      weak_regression(rows, basis, {.select = o.select_terms}, data.source.name, observer);
  RowFactor factor = weak_factor(rows, basis, regression.coefficients);
  summary.seconds += seconds_since(begin);
  return {std::move(factor), std::move(regression)};
}

/// The network as the polynomial with these coefficients, outputs × monomials.
ExactSummary polynomial_fit(Network& network, const RowFactor& factor,
                            const Eigen::MatrixXd& coefficients, const std::string& reason) {
  ExactSummary summary;
  set_polynomial(network, factor.basis(), coefficients);
  const auto kernel = *polynomial_kernel(network);
  summary.least_squares = summary.converged = true;
  summary.objective = ExactObjective(factor, kernel.units(), kernel.dropout)
                          .weighted(kernel, Vector::Ones(network.outputs()));
  summary.minima = {{summary.objective, 1}};
  summary.reason = reason;
  return summary;
}

Fit fit_exact(const ObservationSource& source, const FitOptions& given, const Observer& observer) {
  FitOptions o = given;
  Fit result;
  Model& model = result.model;
  FitSummary& summary = result.summary;
  const int arguments = argument_count(source, o);
  model.network = checked_network(arguments, source.dimension(), o);
  check(o.derivative, source.dimension());
  require(polynomial_kernel(model.network).has_value(), "--trainer", "exact with --layers",
          "adam or sgd for a general network",
          "The exact trainer is for polynomial kernels only.");
  const bool least_squares =
      o.dropout == 0 && polynomial_kernel(model.network)->units() >=
                            monomial_count(arguments, o.degree);
  require(!o.select_terms || least_squares, "--terms",
          fmt::format("select with dropout {} and {} hidden units", o.dropout,
                      polynomial_kernel(model.network)->units()),
          "--dropout 0 and at least one hidden unit per monomial",
          "Dropout draws units, each of them many terms: give --dropout 0, or --terms all.");
  observer("reading", 0);
  const Arguments data = arguments_of(source, o);
  describe(model, source, data, o);
  o = with_derivative(given, data, model, summary, false, observer);
  ExactRows rows = exact_rows(data, model, o, summary, observer);
  const RowFactor& factor = rows.factor;
  const auto begin = std::chrono::steady_clock::now();
  ExactSummary exact;
  if (least_squares && rows.regression) {
    const WeakRegression& r = *rows.regression;
    summary.terms = o.select_terms ? r.terms : 0;
    exact = polynomial_fit(
        model.network, factor, r.coefficients,
        fmt::format("least squares on {} integrals, weighted by their covariance; chi^2 {:.3g} per "
                    "degree of freedom{}",
                    factor.rows(), r.misfit,
                    o.select_terms ? fmt::format("; {} terms left", r.terms) : ""));
  } else if (o.select_terms) {
    const Eigen::MatrixXd C = select_terms(factor, static_cast<double>(data.summary.rows));
    summary.terms = static_cast<int>((C.array() != 0).count());
    exact = polynomial_fit(model.network, factor, C,
                           fmt::format("least squares, {} terms left", summary.terms));
  } else {
    exact = train_exact(model.network, factor,
                        {.starts = o.starts,
                         .max_iterations = o.max_iterations,
                         .seed = o.seed,
                         .threads = o.threads},
                        observer);
  }
  summary.usable = exact.least_squares || !exact.minima.empty();
  summary.trusted = exact.converged;
  summary.status = exact.least_squares ? "least_squares"
                   : exact.converged   ? "converged"
                   : summary.usable    ? "not_converged"
                                       : "diverged";
  summary.reason = exact.reason;
  summary.minima = exact.minima;
  summary.seeds = exact.seeds;
  auto& record = model.training;
  record.trainer = "exact";
  record.rows = factor.rows();
  record.status = summary.status;
  record.reason = summary.reason;
  record.iterations = exact.iterations;
  if (summary.usable) {
    const auto kernel = *polynomial_kernel(model.network);
    ExactObjective objective(factor, kernel.units(), kernel.dropout);
    record.objective = objective.weighted(kernel, model.rate().cwiseAbs2());
  }
  summary.seconds += seconds_since(begin);
  return result;
}

// ---- regression ----------------------------------------------------------------------------------

/// The estimates of one or more equations as coefficients; unknown o F + m is that of φ_m in equation o.
CoefficientSet coefficient_set(const Estimate& e, int monomials) {
  CoefficientSet set{};
  for (const int q : e.terms) set.support.push_back({q / monomials, q % monomials});
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
  return {found.fit.posterior, found.fit.log_evidence, found.fit.log_prior, found.fit.misfit, found.settled, found.rounds};
}

std::vector<int> unknowns(const std::vector<TrajectoryOptions::KnownTerm>& terms, const MonomialBasis& basis) {
  std::vector<int> result;
  for (const auto& term : terms)
    for (int m = 0; m < basis.size(); ++m)
      if (basis.powers(m) == term.powers) result.push_back(term.equation * basis.size() + m);
  std::sort(result.begin(), result.end());
  return result;
}

/// Equation by equation: rows that are differences have no covariance between equations.
Regression regress(const RowFactor& factor, int n, int degree, bool select) {
  const int F = factor.basis().size();
  const auto count = [&](int d) {
    return static_cast<int>(monomial_count(factor.basis().variables(), std::min(d, factor.basis().degree())));
  };
  std::vector<int> low(static_cast<std::size_t>(count(std::min(degree, 2)))), all(static_cast<std::size_t>(count(degree)));
  std::iota(low.begin(), low.end(), 0);
  std::iota(all.begin(), all.end(), 0);
  Regression r;
  std::vector<EvidenceFit> fits;
  Eigen::Index terms = 0;
  for (int o = 0; o < n; ++o) {
    const EvidenceProblem problem = equation_problem(factor, o);
    fits.push_back(select ? evidence_search(problem, low, all) : evidence_fit(problem, all));
    terms += fits.back().posterior.x.size();
  }
  r.posterior.x.resize(terms);
  r.posterior.covariance = Eigen::MatrixXd::Zero(terms, terms);
  terms = 0;
  for (int o = 0; o < n; ++o) {
    const EvidenceFit& fit = fits[static_cast<std::size_t>(o)];
    const auto size = fit.posterior.x.size();
    for (const int q : fit.posterior.terms) r.posterior.terms.push_back(o * F + q);
    r.posterior.x.segment(terms, size) = fit.posterior.x;
    r.posterior.covariance.block(terms, terms, size, size) = fit.posterior.covariance;
    r.log_evidence += fit.log_evidence;
    r.log_prior += fit.log_prior;
    terms += size;
  }
  return r;
}

/// Every replicate a set of the same weight. `price` is the penalty of each unknown, `outputs` how many columns of unknowns
/// there are, each for one equation, or 1 where one column holds those of all.
std::vector<CoefficientSet> replicates(const BlockBootstrap& bootstrap, const FitOptions& o, int outputs, int monomials,
                                       const std::vector<double>& penalty, double least, const Observer& observer) {
  std::vector<CoefficientSet> sets(static_cast<std::size_t>(o.replicates));
  parallel_for(
      o.threads, sets.size(),
      [&](std::size_t k) {
        const std::vector<int> drawn = bootstrap.multiplicities(o.seed, k);
        CoefficientSet& set = sets[k];
        std::vector<double> theta;
        for (int output = 0; output < outputs; ++output) {
          Estimate e = bootstrap.replicate(drawn, output, least);
          if (o.select_terms) eliminate(e, penalty, static_cast<int>(e.terms.size()));
          for (const int q : e.terms) set.support.push_back({output + q / monomials, q % monomials});
          theta.insert(theta.end(), e.x.begin(), e.x.end());
        }
        set.theta = Eigen::Map<const Vector>(theta.data(), static_cast<Eigen::Index>(theta.size()));
        set.weight = 1 / static_cast<double>(sets.size());
      },
      [&](std::size_t begun) { observer("drawing rows", static_cast<double>(begun) / static_cast<double>(sets.size())); });
  return sets;
}

/// The price of every unknown of n equations: training/selection.hpp.
std::vector<double> penalties(const MonomialBasis& basis, int n, int equations, double observations) {
  std::vector<double> penalty;
  for (int o = 0; o < equations; ++o)
    for (int m = 0; m < basis.size(); ++m)
      penalty.push_back(std::log(observations * n) + 2 * term_price(basis, m));
  return penalty;
}

/// Test functions of a block at least: twice the support of one.
constexpr int kLeastBlock = 16;

std::vector<CoefficientSet> weak_replicates(const WeakRows& rows, const MonomialBasis& basis, const WeakPosterior& found,
                                            const FitOptions& o, double observations, const Observer& observer) {
  const int n = rows.dimension(), F = basis.size();
  WeakLinearisation around(rows, basis, found.coefficients, found.path);
  BlockBootstrap bootstrap(around.problem().triangle, n * F);
  const Eigen::Index size = n * chunk_rows(static_cast<double>(rows.rows()), kLeastBlock);
  for (const Matrix& part : around.whitened())
    for (Eigen::Index at = 0; at < part.rows(); at += size)
      bootstrap.add(part.middleRows(at, std::min(size, part.rows() - at)));
  return replicates(bootstrap, o, 1, F, penalties(basis, n, n, observations), 1, observer);
}

std::vector<CoefficientSet> row_replicates(const Arguments& data, const RowFactor& factor, int n, const FitOptions& o,
                                           FitSummary& summary, const Observer& observer) {
  const MonomialBasis& basis = factor.basis();
  const int F = basis.size();
  BlockBootstrap bootstrap(factor.triangle(), F);
  const Eigen::Index size = chunk_rows(static_cast<double>(factor.rows()), kLeastBlock);
  double first_variance = -1;
  for_rows(data, n, o, summary, observer, [&](const DerivativeRows& rows) {
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    const Vector weights = row_weights(rows, first_variance);
    for (Eigen::Index at = 0; at < rows.rows(); at += size) {
      const Eigen::Index count = std::min(size, rows.rows() - at);
      Matrix chunk(count, F + n);
      for (Eigen::Index i = 0; i < count; ++i) {
        basis.evaluate(rows.states.row(at + i).data(), chunk.row(i).data());
        chunk.row(i).tail(n) = rows.derivatives.row(at + i);
        if (weights.size() > 0) chunk.row(i) *= std::sqrt(weights[at + i]);
      }
      bootstrap.add(chunk);
    }
  });
  return replicates(bootstrap, o, n, F, penalties(basis, n, 1, static_cast<double>(data.summary.rows)), 0, observer);
}

/// Rows that the last state is smoothed from.
constexpr std::size_t kRowsForStart = 200;

/// The last state and its sd from smoothing, where nothing better is known of it.
void smooth_last_state(Model& model, const ObservationSource& source, const ObservationSummary& observed,
                       FitSummary& summary) {
  const int n = source.dimension();
  std::deque<std::pair<double, Vector>> last;
  source.replay([&](std::size_t trajectory, double time, const double* state) {
    if (trajectory != observed.last_trajectory) return;
    if (last.size() == kRowsForStart) last.pop_front();
    last.emplace_back(time, Eigen::Map<const Vector>(state, n));
  });
  if (last.size() < 8) return;  // third differences and a noise
  const auto begin = std::chrono::steady_clock::now();
  const auto rows = static_cast<Eigen::Index>(last.size());
  ObservedRun run{{}, Matrix(rows, n), Matrix::Ones(rows, n)};
  for (Eigen::Index i = 0; i < rows; ++i) {
    run.times.push_back(last[static_cast<std::size_t>(i)].first);
    run.values.row(i) = last[static_cast<std::size_t>(i)].second.transpose();
  }
  const Smoothed smoothed = smooth({run}, false);
  model.last_state = smoothed.values[0].row(rows - 1).transpose();
  model.last_state_sd = smoothed.last_sd;
  summary.seconds += seconds_since(begin);
}

/// Which equations have no more than the rows can carry.
int highest_degree(int arguments, int n, double rows) {
  int degree = 1;
  while (degree < kHighestDegree && n * monomial_count(arguments, degree + 1) <= kMostJointUnknowns &&
         5 * monomial_count(arguments, degree + 1) <= rows)
    ++degree;
  return degree;
}

DegreeTrial trial(int degree, const Regression& r) {
  return {degree, static_cast<int>(r.posterior.terms.size()), r.log_evidence, r.log_prior};
}

/// The first of the highest evidence and prior: of degrees that find the same terms the lowest.
int best_degree(const std::vector<DegreeTrial>& trials) {
  const auto score = [](const DegreeTrial& t) { return t.log_evidence + t.log_prior; };
  std::size_t best = 0;
  for (std::size_t k = 1; k < trials.size(); ++k)
    if (score(trials[k]) > score(trials[best]) + 1e-6) best = k;
  return trials[best].degree;
}

/// Every degree on the rows of the highest. Sets are compared around one path, that of the best of them.
std::vector<DegreeTrial> try_degrees(const WeakData& weak, int n, bool select, const std::string& source,
                                     const Observer& observer) {
  const auto arguments = static_cast<int>(weak.noise.size());
  double rows = 0;
  for (const Segment& s : weak.parts) rows += s.rows;
  const MonomialBasis basis(arguments, highest_degree(arguments, n, rows / 4));
  const WeakRows all = weak_rows(weak.parts, basis, weak.noise, n);
  std::vector<WeakPosterior> found;
  std::vector<DegreeTrial> trials;
  for (int degree = 1; degree <= basis.degree(); ++degree) {
    if (degree > 1 && static_cast<double>(all.rows()) < monomial_count(arguments, degree)) break;
    found.push_back(weak_posterior(all, basis, {degree, select}, source, observer));
    trials.push_back(trial(degree, regression_of(found.back())));
  }
  const WeakPosterior& best = found[static_cast<std::size_t>(best_degree(trials) - 1)];
  const EvidenceProblem problem = WeakLinearisation(all, basis, best.coefficients, best.path).problem();
  for (std::size_t k = 0; k < found.size(); ++k) {
    const EvidenceFit fit = evidence_fit(problem, found[k].fit.posterior.terms);
    trials[k].log_evidence = fit.log_evidence;
  }
  return trials;
}

Fit fit_regression(const ObservationSource& source, const FitOptions& given, const Observer& observer) {
  FitOptions o = given;
  Fit result;
  Model& model = result.model;
  FitSummary& summary = result.summary;
  const int arguments = argument_count(source, o), n = source.dimension();
  const bool automatic = o.degree == kAutomaticDegree;
  require(automatic || (o.degree >= 1 && o.degree <= 20), "--degree", fmt::format("{}", o.degree),
          "a whole number from 1 to 20, or auto", "2 fits most textbook systems.");
  require(n * monomial_count(arguments, automatic ? 1 : o.degree) <= kMostJointUnknowns, "--degree",
          fmt::format("{} with {} variables", o.degree, arguments),
          "at most 600 candidate terms, variables × monomials", "Choose a lower degree.");
  check(o.derivative, n);
  observer("reading", 0);
  const Arguments data = arguments_of(source, o);
  describe(model, source, data, o);
  FitOptions choosing = given;
  if (automatic) choosing.degree = 2;  // of the polynomials that try derivatives
  o = with_derivative(choosing, data, model, summary, false, observer);
  const bool bootstrap = o.posterior == PosteriorKind::bootstrap;
  require(!bootstrap || (o.replicates >= 2 && o.replicates <= 100'000), "--replicates", fmt::format("{}", o.replicates),
          "a whole number from 2 to 100000", "100 give a standard deviation to 7 %.");
  Regression r;
  std::vector<CoefficientSet> sets;
  long rows = 0;
  if (is_weak(o)) {
    const WeakData weak = weak_data(data, o);
    const auto begin = std::chrono::steady_clock::now();
    if (automatic) {
      summary.degrees = try_degrees(weak, n, o.select_terms, source.name, observer);
      o.degree = best_degree(summary.degrees);
    }
    const MonomialBasis basis(arguments, o.degree);
    const WeakRows integrals = weak_rows(weak.parts, basis, weak.noise, n);
    const WeakPosterior found = weak_posterior(
        integrals, basis, {o.degree, o.select_terms, unknowns(o.trajectory.terms, basis)}, source.name, observer);
    r = regression_of(found);
    rows = static_cast<long>(integrals.rows());
    if (bootstrap)
      sets = weak_replicates(integrals, basis, found, o, static_cast<double>(data.summary.rows), observer);
    summary.seconds += seconds_since(begin);
  } else {
    const int degree = automatic ? highest_degree(arguments, n, static_cast<double>(data.summary.pairs)) : o.degree;
    RowFactor factor = row_factor(data, n, degree, o, summary, observer);
    rows = factor.rows();
    require(static_cast<double>(rows) >= monomial_count(arguments, degree), "--degree", fmt::format("{} rows for degree {}", rows, degree),
            "a row for each monomial", "Give more data or choose a lower degree.");
    const auto begin = std::chrono::steady_clock::now();
    for (int d = 1; automatic && d <= degree; ++d) summary.degrees.push_back(trial(d, regress(factor, n, d, o.select_terms)));
    o.degree = automatic ? best_degree(summary.degrees) : degree;
    r = regress(factor, n, o.degree, o.select_terms);
    // Unknowns are numbered by the factor's basis, whose first monomials are those of a lower degree.
    const int F = factor.basis().size(), own = static_cast<int>(monomial_count(arguments, o.degree));
    for (int& q : r.posterior.terms) q = q / F * own + q % F;
    summary.seconds += seconds_since(begin);
    if (bootstrap) {
      if (o.degree < degree) factor = row_factor(data, n, o.degree, o, summary, observer);
      sets = row_replicates(data, factor, n, o, summary, observer);
    }
  }
  if (o.kind == ModelKind::flow) smooth_last_state(model, source, data.summary, summary);
  const auto begin = std::chrono::steady_clock::now();
  if (!bootstrap) sets = {coefficient_set(r.posterior, static_cast<int>(monomial_count(arguments, o.degree)))};
  summary.terms = static_cast<int>(r.posterior.terms.size());
  summary.usable = false;
  for (const CoefficientSet& set : sets) summary.usable = summary.usable || !set.support.empty();
  for (const CoefficientSet& set : sets)
    summary.usable = summary.usable && set.theta.allFinite() && set.covariance.allFinite();
  model.polynomial = {o.degree, std::move(sets)};
  summary.log_evidence = r.log_evidence;
  summary.trusted = summary.usable && r.settled;
  summary.status = !summary.usable ? "diverged" : r.settled ? "posterior" : "not_converged";
  summary.reason =
      !summary.usable ? "no term is left, or a coefficient is not finite"
      : bootstrap     ? fmt::format("{} replicates of {} {} in blocks, degree {}", o.replicates, rows,
                                    is_weak(o) ? "integrals" : "rows", o.degree)
                      : fmt::format("normal posterior of {} coefficients of degree {} from {} {}{}", summary.terms, o.degree,
                                       rows, is_weak(o) ? "integrals" : "rows",
                                       is_weak(o) ? fmt::format("; chi^2 {:.3g} per degree of freedom", r.misfit) : "");
  if (summary.usable && !r.settled) summary.reason += fmt::format("; terms or coefficients still change after {} rounds", r.rounds);
  auto& record = model.training;
  record.trainer = bootstrap ? "bootstrap" : "regression";
  record.rows = rows;
  record.iterations = r.rounds;
  record.status = summary.status;
  record.reason = summary.reason;
  summary.seconds += seconds_since(begin);
  return result;
}

}  // namespace

Fit fit_source(const ObservationSource& source, const FitOptions& options, const Observer& observer) {
  return options.posterior == PosteriorKind::dropout ? fit_exact(source, options, observer)
                                                     : fit_regression(source, options, observer);
}

namespace {

/// What the data alone tell, where values may be missing. The scaling and the inputs are there already.
void describe_observed(Model& model, const Dataset& data) {
  const int n = data.dimension();
  model.variables = data.variables;
  model.last_trajectory = data.trajectories.back().id;
  model.last_time = data.trajectories.back().times.back();
  model.size = Vector::Zero(n);
  Vector counts = Vector::Zero(n);
  std::vector<double> steps;
  for (const Trajectory& t : data.trajectories) {
    model.training.rows += t.rows();
    for (std::size_t k = 1; k < t.times.size(); ++k) steps.push_back(t.times[k] - t.times[k - 1]);
    for (long k = 0; k < t.rows(); ++k)
      for (int i = 0; i < n; ++i) {
        const double u = t.states(k, i);
        if (!std::isfinite(u)) continue;
        model.data_scale = std::max(model.data_scale, std::abs(u) / model.scaling.scale[i]);
        model.size[i] += u * u;
        counts[i] += 1;
      }
  }
  model.size = (model.size.array() / counts.array()).sqrt().matrix();
  model.size.conservativeResize(n + model.inputs.size());
  model.size.tail(model.inputs.size()) = model.inputs.scale;
  std::nth_element(steps.begin(), steps.begin() + static_cast<long>(steps.size() / 2), steps.end());
  model.step = steps[steps.size() / 2];
  model.training.trajectories = static_cast<long>(data.trajectories.size());
}

Fit fit_by_trajectory(const Dataset& data, const FitOptions& o, const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  require(o.degree >= 1 && o.degree <= 20, "--degree", fmt::format("{}", o.degree),
          "a whole number from 1 to 20", "2 fits most textbook systems.");
  require(o.kind == ModelKind::flow, "--kind", "map with --posterior trajectory", "flow",
          "Maps are learnt by --posterior dropout.");
  const int arguments = data.dimension() + static_cast<int>(data.inputs.size()) + (o.time_name.empty() ? 0 : 1);
  require(data.dimension() * monomial_count(arguments, o.degree) <= kMaxCandidates, "--degree",
          fmt::format("{} with {} variables{}", o.degree, data.dimension(),
                      arguments > data.dimension() ? fmt::format(" and {} inputs", arguments - data.dimension()) : ""),
          "at most 3000 candidate terms, variables × monomials", "Choose a lower degree.");
  if (o.trajectory.noise) {
    const Vector& noise = *o.trajectory.noise;
    require(noise.size() == 1 || noise.size() == data.dimension(), "--noise", fmt::format("{} values", noise.size()),
            "one, or one per variable", "Give the standard deviations in the order of the columns.");
    require((noise.array() > 0).all() && noise.allFinite(), "--noise", "a value that is not > 0",
            "standard deviations", "Leave it out to have the noise estimated.");
  }
  TrajectoryOptions options = o.trajectory;
  if (options.noise && options.noise->size() == 1)
    options.noise = Vector::Constant(data.dimension(), (*options.noise)[0]);
  options.degree = o.degree;
  options.hold_inputs = o.hold_inputs;
  options.time_input = !o.time_name.empty();
  options.threads = o.threads;
  const TrajectoryFit found = fit_trajectory(data, options, observer);

  Fit result;
  Model& model = result.model;
  model.scaling = found.scaling;
  model.inputs = {data.inputs, Vector::Zero(found.input_scale.size()), found.input_scale, o.hold_inputs, options.time_input};
  if (options.time_input) model.inputs.names.push_back(o.time_name);
  model.noise = found.noise;
  describe_observed(model, data);
  model.trajectory = {found.noise_ratio, found.autocorrelation, found.continuity, found.misfit, found.forcing};
  PolynomialPart& part = model.polynomial.emplace();
  part.sets = found.members;
  // The basis need not go beyond what is used; monomials are numbered by degree, so the numbers stay.
  for (const CoefficientSet& m : part.sets)
    for (const FieldTerm& t : m.support) {
      int degree = 0;
      for (const int power : found.basis->powers(t.monomial)) degree += power;
      part.degree = std::max(part.degree, degree);
    }
  const Moments last = polynomial_posterior(model).last_state();
  model.last_state = model.scaling.to_user(last.mean);
  model.last_state_sd = model.scaling.scale.cwiseProduct(last.sd());
  auto& record = model.training;
  record.seed = o.seed;
  record.trainer = "trajectory";
  record.derivative = "none";
  record.iterations = found.steps;
  record.status = found.status;
  record.reason = found.reason;
  result.summary.usable = found.usable;
  result.summary.trusted = found.usable && !found.misfit && !found.underdetermined;
  result.summary.status = found.status;
  result.summary.reason = found.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

Fit fit_ensemble(const Dataset& data, const FitOptions& given, const Observer& observer) {
  FitOptions one = given;
  one.posterior = PosteriorKind::dropout;
  one.dropout = 0;
  require(given.members >= 2 && given.members <= 1000, "--members", fmt::format("{}", given.members),
          "a whole number from 2 to 1000", "10 are usual.");
  require(!fits_source(one), "--posterior", "ensemble by the exact trainer", "--trainer adam or sgd, or --layers",
          "Without dropout the exact trainer gives the same polynomial from every seed: choose another trainer, or --posterior "
          "bootstrap.");
  Fit result;
  for (int k = 0; k < given.members; ++k) {
    one.seed = given.seed + static_cast<std::uint64_t>(k);
    Fit member = fit(data, one, [&](std::string_view what, double part) {
      observer(what, (k + part) / given.members);
    });
    result.summary.seconds += member.summary.seconds;
    if (!member.summary.usable) {
      member.summary.reason += fmt::format(" (member {} of {})", k + 1, given.members);
      return member;
    }
    if (k == 0) {
      const double seconds = result.summary.seconds;
      result = std::move(member);
      result.summary.seconds = seconds;
    } else {
      result.model.training.iterations += member.model.training.iterations;
      result.model.members.push_back(std::move(member.model.network));
    }
  }
  auto& record = result.model.training;
  record.reason = result.summary.reason = fmt::format("{} networks, each: {}", given.members, record.reason);
  record.objective.reset();
  return result;
}

}  // namespace

Fit fit(const Dataset& data, const FitOptions& given, const Observer& observer) {
  if (given.posterior == PosteriorKind::trajectory) return fit_by_trajectory(data, given, observer);
  if (given.posterior == PosteriorKind::ensemble) return fit_ensemble(data, given, observer);
  const ObservationSource source = source_of(data);
  if (fits_source(given)) return fit_source(source, given, observer);
  FitOptions o = given;
  const auto begin = std::chrono::steady_clock::now();
  Fit result;
  Model& model = result.model;
  model.network = checked_network(argument_count(source, o), data.dimension(), o);
  check(o.derivative, data.dimension());
  const Arguments arguments = arguments_of(source, o);
  describe(model, source, arguments, o);
  require(o.derivative.method != DerivativeMethod::weak, "--derivative", "weak with --trainer adam or sgd",
          "a derivative at every row",
          "The integral form has none: choose --derivative spline or savgol, or --trainer exact.");
  require(!o.select_terms, "--terms", "select with --trainer adam or sgd", "--trainer exact",
          "Leave --terms out.");
  o = with_derivative(given, arguments, model, result.summary, true, observer);
  const Dataset scaled = arguments.in_model_units();
  const DerivativeRows rows = first_targets(
      o.kind == ModelKind::map ? successors(scaled, arguments.summary.step / arguments.scaling.time)
                               : derivative_rows(scaled, to_model_units(o.derivative, arguments.scaling)),
      data.dimension());
  model.training.rows = rows.rows();
  if (!rows.derivatives.allFinite() || !rows.states.allFinite()) overflow(data.source);
  run_schedule(model, rows, o, o.trainer, result.summary, observer);
  model.training.trainer = o.trainer == Trainer::sgd ? "sgd" : "adam";
  model.training.status = result.summary.status;
  model.training.reason = result.summary.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

}  // namespace odecast
