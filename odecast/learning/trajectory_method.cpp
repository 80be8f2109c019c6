#include <algorithm>
#include <chrono>
#include <cmath>

#include "odecast/learning/detail/methods.hpp"
#include "odecast/learning/detail/rows.hpp"

namespace odecast {
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

}  // namespace

Fit learn(const Dataset& data, const TrajectoryMethod& method, const FitOptions& o,
          const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  TrajectoryOptions options;
  options.degree = method.degree;
  options.robust = method.robust;
  options.terms = method.terms;
  if (o.noise.size() > 0)
    options.noise = o.noise.size() == 1 ? Vector::Constant(data.dimension(), o.noise[0]) : o.noise;
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
  model.trajectory = {found.noise_ratio, found.autocorrelation, found.persistence,
                      found.continuity,  found.misfit,          found.forcing};
  PolynomialPart& part = model.law.emplace<PolynomialPart>();
  part.sets = found.members;
  // The basis need not go beyond what is used; monomials are numbered by degree, so the numbers
  // stay.
  for (const CoefficientSet& m : part.sets)
    for (const FieldTerm& t : m.support)
      part.degree = std::max(part.degree, found.basis->degree(t.monomial));
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

}  // namespace odecast
