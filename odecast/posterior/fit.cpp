#include "odecast/posterior/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/posterior/choose_derivative.hpp"
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
              : o.select_terms           ? unshifted_scaling(a.summary)
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
  } else if (o.kind == ModelKind::flow) {
    const Dataset first = first_rows(data.source, kRowsForNoise);
    model.noise = estimate_noise(segments(first, o.derivative.gap), data.size()).head(n);
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

bool trains_exactly(const FitOptions& o) {
  if (o.posterior != PosteriorKind::dropout) return false;
  return o.trainer == Trainer::exact || (o.trainer == Trainer::automatic && o.layers.empty());
}

namespace {

/// The rows of the data as the exact trainers want them, and what the integral form says of the coefficients beyond.
struct ExactRows {
  RowFactor factor;
  std::optional<WeakRegression> regression;
};

ExactRows exact_rows(const Arguments& data, const Model& model, const FitOptions& o, FitSummary& summary,
                     const Observer& observer) {
  const int n = model.dimension(), degree = model.network.layers[0].power;
  const ObservationSource& source = data.source;
  const DerivativeMethod method = o.derivative.method;
  ExactRows result{RowFactor(data.size(), degree, n), {}};
  double first_variance = -1;
  const auto take = [&](const DerivativeRows& all) {
    observer("reading",
             static_cast<double>(result.factor.rows()) / static_cast<double>(data.summary.pairs));
    const bool driven = data.size() > n;
    const DerivativeRows cut = driven ? first_targets(all, n) : DerivativeRows();
    const DerivativeRows& rows = driven ? cut : all;
    if (!rows.derivatives.allFinite() || !rows.states.allFinite()) overflow(source.name);
    const auto begin = std::chrono::steady_clock::now();  // reading is not part of the fit
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    result.factor.add(rows.states, rows.derivatives, row_weights(rows, first_variance), o.threads);
    summary.seconds += seconds_since(begin);
  };
  if (o.kind == ModelKind::map) {
    take(successors(data.in_model_units(), data.summary.step / data.scaling.time));
    return result;
  }
  if (method == DerivativeMethod::forward || central_order(method) > 0) {
    stream_differences(source, data.scaling, o.derivative, data.summary, 1 << 14, take);
    return result;
  }
  const Dataset scaled = data.in_model_units();
  const DerivativeOptions options = to_model_units(o.derivative, data.scaling);
  const auto begin = std::chrono::steady_clock::now();
  if (method != DerivativeMethod::weak) {
    const DerivativeRows rows = derivative_rows(scaled, options);
    summary.seconds += seconds_since(begin);
    take(rows);
    return result;
  }
  for (const Trajectory& t : scaled.trajectories)
    if (!t.states.allFinite()) overflow(source.name);
  const std::vector<Segment> parts = segments(scaled, options.gap);
  const Vector noise = observation_noise(options, parts, data.size());
  const MonomialBasis& basis = result.factor.basis();
  const WeakRows rows = weak_rows(parts, basis, noise, n);
  result.regression =
      weak_regression(rows, basis, {.select = o.select_terms}, source.name, observer);
  result.factor = weak_factor(rows, basis, result.regression->coefficients);
  summary.seconds += seconds_since(begin);
  return result;
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

}  // namespace

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

namespace {

/// What the data alone tell, where values may be missing. The scaling is there already.
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
  require(data.inputs.empty() && o.time_name.empty(), "--inputs", "inputs with --posterior trajectory",
          "a system that nothing drives", "Driven systems are learnt by --posterior dropout.");
  require(data.dimension() * monomial_count(data.dimension(), o.degree) <= kMaxCandidates, "--degree",
          fmt::format("{} with {} variables", o.degree, data.dimension()),
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
  options.threads = o.threads;
  const TrajectoryFit found = fit_trajectory(data, options, observer);

  Fit result;
  Model& model = result.model;
  model.scaling = found.scaling;
  model.noise = found.noise;
  describe_observed(model, data);
  TrajectoryPart& part = model.trajectory.emplace();
  part.members = found.members;
  part.noise_ratio = found.noise_ratio;
  part.autocorrelation = found.autocorrelation;
  part.continuity = found.continuity;
  part.misfit = found.misfit;
  // The basis need not go beyond what is used; monomials are numbered by degree, so the numbers stay.
  for (const TrajectoryMember& m : part.members)
    for (const FieldTerm& t : m.support) {
      int degree = 0;
      for (const int power : found.basis->powers(t.monomial)) degree += power;
      part.degree = std::max(part.degree, degree);
    }
  const Moments last = trajectory_posterior(model).last_state();
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
  result.summary.trusted = found.usable;
  result.summary.status = found.status;
  result.summary.reason = found.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

}  // namespace

Fit fit(const Dataset& data, const FitOptions& given, const Observer& observer) {
  if (given.posterior == PosteriorKind::trajectory) return fit_by_trajectory(data, given, observer);
  const ObservationSource source = source_of(data);
  if (trains_exactly(given)) return fit_exact(source, given, observer);
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
