#include "odecast/posterior/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/training/objective.hpp"

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

/// Weights 1/σ² of a block of rows relative to `first`; empty where all are 1, to a millionth: even
/// sampling up to round-off of the times, or σ = 0.
Vector row_weights(const DerivativeRows& rows, double first) {
  if (!(first > 0)) return {};
  Vector weights = first * rows.sigma.cwiseAbs2().rowwise().mean().cwiseInverse();
  bool alike = true;
  for (double& w : weights) {
    if (std::abs(w - 1) <= 2e-6) w = 1;
    alike = alike && w == 1;
  }
  return alike ? Vector() : weights;
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
        expected_objective(*kernel, rows, model.scaling.rate().cwiseAbs2());
}

/// Network of the right shape, or an Error.
Network checked_network(int n, const FitOptions& o) {
  const auto hidden = hidden_layers(n, o);
  double parameters = 0, width = n;
  for (const auto& layer : hidden) {
    parameters += (width + 1) * layer.units;
    width = layer.units;
  }
  require(parameters <= kMaxParameters, "network", fmt::format("{:.0f} weights", parameters),
          "at most 1e8", "Use fewer or smaller layers.");
  return make_network(n, hidden, n, o.seed);
}

/// What the data alone tell.
void describe(Model& model, const ObservationSource& source, const ObservationSummary& summary,
              const FitOptions& o) {
  model.variables = source.variables;
  model.scaling = o.scale == ScaleKind::standard ? standard_scaling(summary)
                                                 : no_scaling(source.dimension());
  model.last_trajectory = (*source.ids)[summary.last_trajectory];
  model.last_time = summary.last_time;
  model.last_state = summary.last_state;
  model.step = summary.step;
  model.size = summary.rms;
  model.data_scale = std::max(model.scaling.to_model(summary.smallest).cwiseAbs().maxCoeff(),
                              model.scaling.to_model(summary.largest).cwiseAbs().maxCoeff());
  if (model.data_scale == 0) model.data_scale = 1;
  auto& record = model.training;
  record.derivative = "forward";
  record.noise_factor = o.derivative.noise_factor;
  record.noise_order = o.derivative.noise_order;
  record.rows = summary.pairs;
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

}  // namespace

bool trains_exactly(const FitOptions& o) {
  if (o.posterior != PosteriorKind::dropout) return false;
  return o.trainer == Trainer::exact || (o.trainer == Trainer::automatic && o.layers.empty());
}

Fit fit_exact(const ObservationSource& source, const FitOptions& o, const Observer& observer) {
  Fit result;
  Model& model = result.model;
  FitSummary& summary = result.summary;
  model.network = checked_network(source.dimension(), o);
  require(polynomial_kernel(model.network).has_value(), "--trainer", "exact with --layers",
          "adam or sgd for a general network",
          "The exact trainer is for polynomial kernels only.");
  observer("reading", 0);
  const ObservationSummary data = summarise(source);
  describe(model, source, data, o);
  const int n = source.dimension();
  RowFactor factor(n, model.network.layers[0].power, n);
  double first_variance = -1;
  forward_differences(source, model.scaling, o.derivative, 1 << 14, [&](const DerivativeRows& rows) {
    observer("reading", static_cast<double>(factor.rows()) / static_cast<double>(data.pairs));
    if (!rows.derivatives.allFinite() || !rows.states.allFinite()) overflow(source.name);
    const auto begin = std::chrono::steady_clock::now();  // reading is not part of the fit
    if (first_variance < 0) first_variance = rows.sigma.row(0).cwiseAbs2().mean();
    factor.add(rows.states, rows.derivatives, row_weights(rows, first_variance), o.threads);
    summary.seconds += seconds_since(begin);
  });
  const auto begin = std::chrono::steady_clock::now();
  const ExactSummary exact = train_exact(model.network, factor,
                                         {.starts = o.starts,
                                          .max_iterations = o.max_iterations,
                                          .seed = o.seed,
                                          .threads = o.threads},
                                         observer);
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
  record.status = summary.status;
  record.reason = summary.reason;
  record.iterations = exact.iterations;
  if (summary.usable) {
    const auto kernel = *polynomial_kernel(model.network);
    ExactObjective objective(factor, kernel.units(), kernel.dropout);
    record.objective = objective.weighted(kernel, model.scaling.rate().cwiseAbs2());
  }
  summary.seconds += seconds_since(begin);
  return result;
}

namespace {

Fit fit_by_trajectory(const Dataset& data, const FitOptions& o, const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  require(o.degree >= 1 && o.degree <= 20, "--degree", fmt::format("{}", o.degree),
          "a whole number from 1 to 20", "2 fits most textbook systems.");
  require(data.dimension() * monomial_count(data.dimension(), o.degree) <= kMaxCandidates, "--degree",
          fmt::format("{} with {} variables", o.degree, data.dimension()),
          "at most 3000 candidate terms, variables × monomials", "Choose a lower degree.");
  if (o.trajectory.noise) {
    const Vector& noise = *o.trajectory.noise;
    require(noise.size() == data.dimension(), "--noise", fmt::format("{} values", noise.size()),
            "one per variable", "Give the standard deviations in the order of the columns.");
    require((noise.array() > 0).all() && noise.allFinite(), "--noise", "a value that is not > 0",
            "standard deviations", "Leave it out to have the noise estimated.");
  }
  TrajectoryOptions options = o.trajectory;
  options.degree = o.degree;
  options.threads = o.threads;
  const TrajectoryFit found = fit_trajectory(data, options, observer);

  Fit result;
  Model& model = result.model;
  const ObservationSource source = source_of(data);
  FitOptions plain = o;
  plain.scale = ScaleKind::none;
  describe(model, source, summarise(source), plain);
  model.scaling = found.scaling;
  Model::TrajectoryPart& part = model.trajectory.emplace();
  part.members = found.members;
  part.noise = found.noise;
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
  model.data_scale = 0;
  model.size.setZero();
  Vector counts = Vector::Zero(data.dimension());
  for (const Trajectory& t : data.trajectories)
    for (long k = 0; k < t.states.rows(); ++k)
      for (int i = 0; i < data.dimension(); ++i) {
        const double u = t.states(k, i);
        if (!std::isfinite(u)) continue;
        model.data_scale = std::max(model.data_scale, std::abs(u) / model.scaling.scale[i]);
        model.size[i] += u * u;
        counts[i] += 1;
      }
  model.size = (model.size.array() / counts.array()).sqrt().matrix();
  auto& record = model.training;
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

Fit fit(const Dataset& data, const FitOptions& o, const Observer& observer) {
  if (o.posterior == PosteriorKind::trajectory) return fit_by_trajectory(data, o, observer);
  const ObservationSource source = source_of(data);
  if (trains_exactly(o)) return fit_exact(source, o, observer);
  const auto begin = std::chrono::steady_clock::now();
  Fit result;
  Model& model = result.model;
  model.network = checked_network(data.dimension(), o);
  describe(model, source, summarise(source), o);
  const DerivativeRows rows =
      forward_differences(to_model_units(data, model.scaling), o.derivative);
  if (!rows.derivatives.allFinite() || !rows.states.allFinite()) overflow(data.source);
  run_schedule(model, rows, o, o.trainer, result.summary, observer);
  model.training.trainer = o.trainer == Trainer::sgd ? "sgd" : "adam";
  model.training.status = result.summary.status;
  model.training.reason = result.summary.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

}  // namespace odecast
