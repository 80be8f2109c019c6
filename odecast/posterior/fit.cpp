#include "odecast/posterior/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
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
      hidden.push_back({units, o.activation, 1, o.dropout, o.rescale});
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

  model.network = make_network(n, hidden, n, o.training.seed);
  result.summary = train(model.network, rows, o.training, observer);

  const Trajectory& last = data.trajectories.back();
  model.last_time = last.times.back();
  model.last_state = last.states.row(last.rows() - 1).transpose();
  model.step = median_step(data);
  for (const Trajectory& t : scaled.trajectories)
    model.data_scale = std::max(model.data_scale, t.states.cwiseAbs().maxCoeff());
  if (model.data_scale == 0) model.data_scale = 1;
  auto& record = model.training;
  record.trainer = o.training.optimiser == OptimiserKind::adam ? "adam" : "sgd";
  record.derivative = "forward";
  record.noise_factor = o.derivative.noise_factor;
  record.noise_order = o.derivative.noise_order;
  record.status =
      result.summary.status == TrainStatus::schedule_done ? "schedule_done" : "diverged";
  record.reason = result.summary.reason;
  record.rows = rows.rows();
  record.trajectories = static_cast<long>(data.trajectories.size());
  record.iterations = result.summary.iterations;
  record.seed = o.training.seed;
  if (const auto kernel = polynomial_kernel(model.network)) {
    const double objective =
        expected_objective(*kernel, rows, model.scaling.scale.cwiseAbs2());
    if (std::isfinite(objective)) record.objective = objective;
  }
  return result;
}

}  // namespace odecast
