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

/// Weights 1/σ² of the rows, relative to the first; empty where all are alike to a millionth, as for
/// even sampling up to round-off of the times, or where σ is 0.
Vector row_weights(const DerivativeRows& rows) {
  const Vector variance = rows.sigma.cwiseAbs2().rowwise().mean();
  if (!(variance.minCoeff() > 0) || variance.maxCoeff() <= (1 + 2e-6) * variance.minCoeff())
    return {};
  return variance[0] * variance.cwiseInverse();
}

void run_exact(Model& model, const DerivativeRows& rows, const FitOptions& o, FitSummary& summary,
               const Observer& observer) {
  const Layer& hidden = model.network.layers[0];
  RowFactor factor(model.dimension(), hidden.power, model.dimension());
  factor.add(rows.states, rows.derivatives, row_weights(rows), o.threads);
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
  model.training.iterations = exact.iterations;
  if (!summary.usable) return;
  const auto kernel = *polynomial_kernel(model.network);
  ExactObjective objective(factor, kernel.units(), kernel.dropout);
  model.training.objective = objective.weighted(kernel, model.scaling.rate().cwiseAbs2());
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

double median_step(const Dataset& data) {
  std::vector<double> steps;
  for (const Trajectory& t : data.trajectories)
    for (std::size_t i = 1; i < t.times.size(); ++i) steps.push_back(t.times[i] - t.times[i - 1]);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

}  // namespace

Fit fit(const Dataset& data, const FitOptions& o, const Observer& observer) {
  const int n = data.dimension();
  const auto hidden = hidden_layers(n, o);
  double parameters = 0, width = n;
  for (const auto& layer : hidden) {
    parameters += (width + 1) * layer.units;
    width = layer.units;
  }
  require(parameters <= kMaxParameters, "network", fmt::format("{:.0f} weights", parameters),
          "at most 1e8", "Use fewer or smaller layers.");

  Fit result;
  Model& model = result.model;
  model.variables = data.variables;
  model.scaling = o.scale == ScaleKind::standard ? standard_scaling(data) : no_scaling(n);
  const Dataset scaled = to_model_units(data, model.scaling);
  const DerivativeRows rows = forward_differences(scaled, o.derivative);
  if (!rows.derivatives.allFinite() || !rows.states.allFinite())
    throw_data({data.source, "differences that overflow", "values whose differences are finite",
                "Rescale the columns or the times, or remove the outliers."});

  const auto begin = std::chrono::steady_clock::now();
  model.network = make_network(n, hidden, n, o.seed);
  auto& record = model.training;
  const bool kernel = polynomial_kernel(model.network).has_value();
  const Trainer trainer =
      o.trainer != Trainer::automatic ? o.trainer : kernel ? Trainer::exact : Trainer::adam;
  require(kernel || trainer != Trainer::exact, "--trainer", "exact with --layers",
          "adam or sgd for a general network",
          "The exact trainer is for polynomial kernels only.");
  if (trainer == Trainer::exact)
    run_exact(model, rows, o, result.summary, observer);
  else
    run_schedule(model, rows, o, trainer, result.summary, observer);
  record.trainer = trainer == Trainer::exact ? "exact" : trainer == Trainer::adam ? "adam" : "sgd";
  result.summary.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const Trajectory& last = data.trajectories.back();
  model.last_trajectory = last.id;
  model.last_time = last.times.back();
  model.last_state = last.states.row(last.rows() - 1).transpose();
  model.step = median_step(data);
  for (const Trajectory& t : scaled.trajectories)
    model.data_scale = std::max(model.data_scale, t.states.cwiseAbs().maxCoeff());
  if (model.data_scale == 0) model.data_scale = 1;
  model.size = root_mean_square(data);
  record.derivative = "forward";
  record.noise_factor = o.derivative.noise_factor;
  record.noise_order = o.derivative.noise_order;
  record.status = result.summary.status;
  record.reason = result.summary.reason;
  record.rows = rows.rows();
  record.trajectories = static_cast<long>(data.trajectories.size());
  record.seed = o.seed;
  return result;
}

}  // namespace odecast
