#include "odecast/learning/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "odecast/learning/detail/fit_parts.hpp"
#include "odecast/regression/weak_regression.hpp"
#include "odecast/training/objective.hpp"

namespace odecast {
namespace {

/// Network sizes are bounded so that a mistyped option is an error and not an exhausted machine.
constexpr double kMaxUnits = 1e5, kMaxParameters = 1e8;

/// Candidate terms of the trajectory posterior: the search linearises with all of them in.
constexpr double kMaxCandidates = 3000;

/// `variables` are those the function depends on, inputs included.
std::vector<HiddenLayer> hidden_layers(int variables, const FitOptions& o) {
  require_option(o.dropout >= 0 && o.dropout < 1, "--dropout", fmt::format("{}", o.dropout),
                 "a rate in [0, 1)", "The paper uses 0.05, 0.25 and 0.5.");
  std::vector<HiddenLayer> hidden;
  if (!o.layers.empty()) {
    for (const int units : o.layers) {
      require_option(units >= 1 && units <= kMaxUnits, "--layers", fmt::format("{}", units),
                     "whole numbers from 1 to 100000", "For example --layers 32,32.");
      hidden.push_back({units, o.activation, o.activation == Activation::power ? o.degree : 1,
                        o.dropout, o.rescale});
    }
    require_option(
        o.layers.size() > 1 || o.activation != Activation::power ||
            can_expand(variables, variables, o.degree, o.layers[0]),
        "--layers",
        fmt::format("{} units of degree {} with {} variables", o.layers[0], o.degree, variables),
        "at most 4e6 powers, units × monomials", "Choose a lower degree or fewer units.");
    return hidden;
  }
  require_option(o.degree >= 1 && o.degree <= 20, "--degree", fmt::format("{}", o.degree),
                 "a whole number from 1 to 20", "2 fits most textbook systems.");
  require_option(o.hidden >= 0 && o.hidden <= kMaxUnits, "--hidden", fmt::format("{}", o.hidden),
                 "a whole number from 1 to 100000, or auto", "auto takes one unit per monomial.");
  const double monomials = monomial_count(variables, o.degree);
  const double units = o.hidden > 0 ? o.hidden : monomials;
  require_option(
      can_expand(variables, variables, o.degree, units), "--degree",
      fmt::format("{} with {} variables ({:.0f} monomials) and {:.0f} hidden units", o.degree,
                  variables, monomials, units),
      "at most 1e5 coefficients, variables × monomials, and 4e6 powers, units × monomials",
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
  training.budget = o.budget;
  const TrainSummary done = train(model.network, rows, training, observer);
  summary.usable = done.status != TrainStatus::diverged;
  summary.trusted = done.status == TrainStatus::schedule_done;
  summary.status = summary.trusted ? "schedule_done" : summary.usable ? "stopped" : "diverged";
  summary.reason = done.reason;
  model.training.iterations = done.iterations;
  if (const auto kernel = polynomial_kernel(model.network); kernel && summary.usable)
    model.training.objective = expected_objective(*kernel, rows, model.rate().cwiseAbs2());
}

/// Network of the right shape, or an Error.
Network checked_network(int arguments, int n, const FitOptions& o) {
  const auto hidden = hidden_layers(arguments, o);
  double parameters = 0, width = arguments;
  for (const auto& layer : hidden) {
    parameters += (width + 1) * layer.units;
    width = layer.units;
  }
  require_option(parameters <= kMaxParameters, "network", fmt::format("{:.0f} weights", parameters),
                 "at most 1e8", "Use fewer or smaller layers.");
  return make_network(arguments, hidden, n, o.seed);
}

}  // namespace

bool fits_source(const FitOptions& o) {
  if (o.posterior != PosteriorKind::dropout)
    return o.posterior == PosteriorKind::regression || o.posterior == PosteriorKind::bootstrap;
  return o.trainer == Trainer::exact || (o.trainer == Trainer::automatic && o.layers.empty());
}

namespace {

/// The rows of the data as the exact trainers want them, and what the integral form says of the
/// coefficients beyond.
struct ExactRows {
  RowFactor factor;
  std::optional<WeakRegression> regression;
};

ExactRows exact_rows(const FitData& data, const Model& model, const FitOptions& o,
                     FitSummary& summary, const Observer& observer) {
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
  require_option(polynomial_kernel(model.network).has_value(), "--trainer", "exact with --layers",
                 "adam or sgd for a general network",
                 "The exact trainer is for polynomial kernels only.");
  const bool least_squares = o.dropout == 0 && polynomial_kernel(model.network)->units() >=
                                                   monomial_count(arguments, o.degree);
  require_option(!o.select_terms || least_squares, "--terms",
                 fmt::format("select with dropout {} and {} hidden units", o.dropout,
                             polynomial_kernel(model.network)->units()),
                 "--dropout 0 and at least one hidden unit per monomial",
                 "Dropout draws units, each of them many terms: give --dropout 0, or --terms all.");
  observer("reading", 0);
  const FitData data = fit_data(source, o);
  describe(model, source, data, o);
  smooth_last_state(model, data, summary);
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
                         .threads = o.threads,
                         .budget = o.budget},
                        observer);
  }
  summary.usable = exact.least_squares || !exact.minima.empty();
  const int monomials = factor.basis().size();
  const bool undetermined = exact.least_squares && factor.rows() < monomials;
  summary.trusted = exact.converged && !undetermined;
  summary.status = undetermined          ? "underdetermined"
                   : exact.least_squares ? "least_squares"
                   : exact.converged     ? "converged"
                   : exact.stopped       ? "stopped"
                   : summary.usable      ? "not_converged"
                                         : "diverged";
  summary.reason = exact.reason;
  if (undetermined)
    summary.reason += fmt::format(
        "; {} rows do not determine {} coefficients of each equation. Give more rows or a lower "
        "degree",
        factor.rows(), monomials);
  summary.minima = exact.minima;
  summary.seeds = exact.seeds;
  auto& record = model.training;
  record.trainer = "exact";
  record.rows = rows.regression ? data.summary.rows : factor.rows();
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

}  // namespace

Fit fit_source(const ObservationSource& source, const FitOptions& options,
               const Observer& observer) {
  return options.posterior == PosteriorKind::dropout ? fit_exact(source, options, observer)
                                                     : fit_regression(source, options, observer);
}

namespace {

/// What the data alone tell, where values may be missing. The scaling and the inputs are there
/// already.
void describe_observed(Model& model, const Dataset& data) {
  const int n = data.dimension();
  model.variables = data.variables;
  model.last_trajectory = data.trajectories.back().id;
  model.last_time = data.trajectories.back().times.back();
  if (!data.inputs.empty())
    model.inputs.last = data.trajectories.back().inputs.bottomRows(1).transpose();
  model.size = Vector::Zero(n);
  Vector counts = Vector::Zero(n), sums = counts;
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
        sums[i] += u;
        counts[i] += 1;
      }
  }
  const Vector means = sums.cwiseQuotient(counts);
  model.sd = Vector::Zero(n);
  for (const Trajectory& t : data.trajectories)
    for (long k = 0; k < t.rows(); ++k)
      for (int i = 0; i < n; ++i)
        if (const double u = t.states(k, i); std::isfinite(u))
          model.sd[i] += (u - means[i]) * (u - means[i]) / counts[i];
  model.sd = model.sd.cwiseSqrt();
  for (int i = 0; i < n; ++i)
    if (is_constant(static_cast<long>(counts[i]), means[i], model.sd[i])) model.sd[i] = 0;
  model.size = (model.size.array() / counts.array()).sqrt().matrix();
  model.size.conservativeResize(n + model.inputs.size());
  model.size.tail(model.inputs.size()) = model.inputs.scale;
  std::nth_element(steps.begin(), steps.begin() + static_cast<long>(steps.size() / 2), steps.end());
  model.step = steps[steps.size() / 2];
  model.training.trajectories = static_cast<long>(data.trajectories.size());
}

Fit fit_by_trajectory(const Dataset& data, const FitOptions& o, const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  require_option(o.degree >= 1 && o.degree <= 20, "--degree", fmt::format("{}", o.degree),
                 "a whole number from 1 to 20", "2 fits most textbook systems.");
  require_option(o.kind == ModelKind::flow, "--kind", "map with --posterior trajectory", "flow",
                 "Maps are learnt by --posterior dropout.");
  const int arguments =
      data.dimension() + static_cast<int>(data.inputs.size()) + (o.time_name.empty() ? 0 : 1);
  require_option(data.dimension() * monomial_count(arguments, o.degree) <= kMaxCandidates,
                 "--degree",
                 fmt::format("{} with {} variables{}", o.degree, data.dimension(),
                             arguments > data.dimension()
                                 ? fmt::format(" and {} inputs", arguments - data.dimension())
                                 : ""),
                 "at most 3000 candidate terms, variables × monomials", "Choose a lower degree.");
  if (o.trajectory.noise) {
    const Vector& noise = *o.trajectory.noise;
    require_option(noise.size() == 1 || noise.size() == data.dimension(), "--noise",
                   fmt::format("{} values", noise.size()), "one, or one per variable",
                   "Give the standard deviations in the order of the columns.");
    require_option((noise.array() > 0).all() && noise.allFinite(), "--noise",
                   "a value that is not > 0", "standard deviations",
                   "Leave it out to have the noise estimated.");
  }
  TrajectoryOptions options = o.trajectory;
  if (options.noise && options.noise->size() == 1)
    options.noise = Vector::Constant(data.dimension(), (*options.noise)[0]);
  options.degree = o.degree;
  options.hold_inputs = o.hold_inputs;
  options.time_input = !o.time_name.empty();
  options.threads = o.threads;
  options.budget = o.budget;
  const TrajectoryFit found = fit_trajectory(data, options, observer);

  Fit result;
  Model& model = result.model;
  model.scaling = found.scaling;
  model.inputs = {data.inputs, Vector::Zero(found.input_scale.size()), found.input_scale,
                  o.hold_inputs, options.time_input};
  if (options.time_input) model.inputs.names.push_back(o.time_name);
  model.noise = found.noise;
  describe_observed(model, data);
  model.trajectory = {found.noise_ratio, found.autocorrelation, found.continuity, found.misfit,
                      found.forcing};
  PolynomialPart& part = model.polynomial.emplace();
  part.sets = found.members;
  // The basis need not go beyond what is used; monomials are numbered by degree, so the numbers
  // stay.
  for (const CoefficientSet& m : part.sets)
    for (const FieldTerm& t : m.support) {
      int degree = 0;
      for (const int power : found.basis->powers(t.monomial)) degree += power;
      part.degree = std::max(part.degree, degree);
    }
  if (found.usable) {
    const Moments last = polynomial_posterior(model).last_state();
    model.last_state = model.scaling.to_user(last.mean);
    model.last_state_sd = model.scaling.scale.cwiseProduct(last.sd());
  }
  auto& record = model.training;
  record.seed = o.seed;
  record.trainer = "trajectory";
  record.derivative = "none";
  record.iterations = found.steps;
  record.status = found.status;
  record.reason = found.reason;
  result.summary.usable = found.usable;
  result.summary.trusted = found.usable && !found.misfit && !found.underdetermined &&
                           !found.noise_too_small && !found.stopped;
  result.summary.status = found.status;
  result.summary.reason = found.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

Fit fit_ensemble(const Dataset& data, const FitOptions& given, const Observer& observer) {
  FitOptions one = given;
  one.posterior = PosteriorKind::dropout;
  one.dropout = 0;
  require_option(given.members >= 2 && given.members <= 1000, "--members",
                 fmt::format("{}", given.members), "a whole number from 2 to 1000",
                 "10 are usual.");
  require_option(!fits_source(one), "--posterior", "ensemble by the exact trainer",
                 "--trainer adam or sgd, or --layers",
                 "Without dropout the exact trainer gives the same polynomial from every seed: "
                 "choose another trainer, or --posterior "
                 "bootstrap.");
  if (given.budget) one.budget = *given.budget / given.members;
  Fit result;
  bool stopped = false;
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
    stopped = stopped || !member.summary.trusted;
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
  record.reason = result.summary.reason =
      fmt::format("{} networks, each: {}", given.members, record.reason);
  record.objective.reset();
  if (stopped) {
    record.status = result.summary.status = "stopped";
    result.summary.trusted = false;
  }
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
  const FitData arguments = fit_data(source, o);
  describe(model, source, arguments, o);
  smooth_last_state(model, arguments, result.summary);
  require_option(
      o.derivative.method != DerivativeMethod::weak, "--derivative",
      "weak with --trainer adam or sgd", "a derivative at every row",
      "The integral form has none: choose --derivative spline or savgol, or --trainer exact.");
  require_option(!o.select_terms, "--terms", "select with --trainer adam or sgd", "--trainer exact",
                 "Leave --terms out.");
  o = with_derivative(given, arguments, model, result.summary, true, observer);
  const Dataset scaled = arguments.in_model_units();
  const DerivativeRows rows =
      first_targets(o.kind == ModelKind::map
                        ? successors(scaled, arguments.summary.step / arguments.scaling.time)
                        : derivative_rows(scaled, to_model_units(o.derivative, arguments.scaling)),
                    data.dimension());
  model.training.rows = rows.rows();
  if (!rows.derivatives.allFinite() || !rows.states.allFinite()) differences_overflow(data.source);
  run_schedule(model, rows, o, o.trainer, result.summary, observer);
  model.training.trainer = o.trainer == Trainer::sgd ? "sgd" : "adam";
  model.training.status = result.summary.status;
  model.training.reason = result.summary.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

}  // namespace odecast
