#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/learning/detail/methods.hpp"
#include "odecast/learning/detail/rivals.hpp"
#include "odecast/learning/detail/rows.hpp"
#include "odecast/model/status.hpp"

namespace odecast {
namespace {

/// Where terms of this degree, the default, or of one that nobody gave, do not explain the motion
/// those of one more are tried, as far as they are not too many for another search; not for an
/// embedding, whose law no degree has.
constexpr int kClimbFrom = 2;
constexpr double kMostClimbed = 300;

/// The trials of regression, of which that with the most evidence proposes where the search begins;
/// none where regression cannot take the rows.
std::vector<DegreeTrial> tried_degrees(const Dataset& data, const FitOptions& options,
                                       const Observer& observer) {
  FitOptions quick = options;
  const RegressionMethod method{.degree = kAutomaticDegree};
  quick.method = method;
  try {
    return learn(source_of(data), method, quick, observer).summary.degrees;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::data) throw;
    return {};
  }
}

/// What the data alone tell. The scaling and the inputs are there already.
void describe_observed(Model& model, const Dataset& data) {
  const int n = data.dimension();
  const ObservationSummary summary = summarise(source_of(data));
  model.variables = data.variables;
  model.last_trajectory = data.trajectories.back().id;
  model.last_time = data.trajectories.back().times.back();
  if (!data.inputs.empty())
    model.inputs.last = data.trajectories.back().inputs.bottomRows(1).transpose();
  model.size = summary.rms;
  model.size.conservativeResize(n + model.inputs.size());
  for (int j = 0; j < model.inputs.size(); ++j)
    model.size[n + j] = root_sum_square(model.inputs.scale[j], model.inputs.offset[j]);
  model.sd = summary.sd;
  for (int i = 0; i < n; ++i)
    if (summary.constant[static_cast<std::size_t>(i)]) model.sd[i] = 0;
  model.data_scale = (summary.largest - model.scaling.offset)
                         .cwiseAbs()
                         .cwiseMax((summary.smallest - model.scaling.offset).cwiseAbs())
                         .cwiseQuotient(model.scaling.scale)
                         .maxCoeff();
  model.step = summary.step;
  model.training.rows = summary.rows;
  model.training.trajectories = summary.trajectories;
}

}  // namespace

Fit learn(const Dataset& data, const TrajectoryMethod& method, const FitOptions& o,
          const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  const bool automatic = method.degree == kAutomaticDegree;
  const auto candidates = [&](int degree) {
    const auto inputs = data.inputs.size() + (o.time_name.empty() ? 0 : 1);
    return data.dimension() * monomial_count(data.dimension() + static_cast<int>(inputs), degree);
  };
  TrajectoryOptions options;
  std::vector<DegreeTrial> trials;
  if (automatic) trials = tried_degrees(data, o, observer);
  options.degree = !automatic ? method.degree : trials.empty() ? kClimbFrom : best_degree(trials);
  while (automatic && options.degree > 1 && candidates(options.degree) > kMostClimbed)
    --options.degree;
  options.robust = method.robust;
  options.terms = method.terms;
  options.functions = method.functions;
  if (o.noise.size() > 0)
    options.noise = o.noise.size() == 1 ? Vector::Constant(data.dimension(), o.noise[0]) : o.noise;
  options.noise_law = o.noise_law;
  options.hold_inputs = o.hold_inputs;
  options.time_input = !o.time_name.empty();
  if (options.time_input) options.time_name = o.time_name;
  options.threads = o.threads;
  options.budget = o.budget;
  TrajectoryFit found = fit_trajectory(data, options, observer);
  int taken = automatic ? options.degree : 0;
  const int first = options.degree;
  const bool may_climb =
      !o.embed && method.terms.empty() && (automatic || method.degree == kClimbFrom);
  if (const int degree = first + 1; may_climb && found.misfit && !found.stopped &&
                                    candidates(degree) <= kMostClimbed &&
                                    degree <= kHighestDegree) {
    TrajectoryOptions more = options;
    more.degree = degree;
    if (o.budget) more.budget = std::max(0.01, *o.budget - seconds_since(begin));
    TrajectoryFit next = fit_trajectory(data, more, observer);
    if (next.usable && !next.misfit && !next.underdetermined && !next.stopped) {
      found = std::move(next);
      taken = degree;
      found.reason +=
          fmt::format("; of degree {}, because terms of degree {} do not explain all of the motion",
                      degree, first);
    }
  }

  Fit result;
  Model& model = result.model;
  model.scaling = found.scaling;
  model.inputs = {data.inputs, found.input_offset, found.input_scale, o.hold_inputs,
                  options.time_input};
  if (options.time_input) model.inputs.names.push_back(o.time_name);
  model.noise = found.noise;
  model.relative_noise = found.relative_noise;
  model.log_noise = found.log_noise;
  describe_observed(model, data);
  // The sd of a logarithm is noise/size, and the size of what is observed has the noise in it.
  for (std::size_t i = 0; i < model.log_noise.size(); ++i)
    if (model.log_noise[i]) {
      double squares = 0, count = 0;
      for (const Matrix& path : found.path)
        squares += path.col(static_cast<long>(i)).squaredNorm(),
            count += static_cast<double>(path.rows());
      if (squares > 0)
        model.noise[static_cast<long>(i)] *=
            model.size[static_cast<long>(i)] / std::sqrt(squares / count);
    }
  model.trajectory = {found.noise_ratio, found.autocorrelation, found.persistence, found.continuity,
                      found.misfit,      found.forcing,         found.precision};
  PolynomialPart& part = model.law.emplace<PolynomialPart>();
  part.sets = found.members;
  // The basis need not go beyond what is used; monomials are numbered by degree, so the numbers
  // stay.
  const TermLibrary& library = found.library;
  for (const CoefficientSet& m : part.sets)
    for (const FieldTerm& t : m.support)
      if (!library.is_function(t.term))
        part.degree = std::max(part.degree, library.basis->degree(t.term));
  const int monomials = MonomialBasis(library.basis->variables(), part.degree).size();
  for (CoefficientSet& m : part.sets)
    for (FieldTerm& t : m.support)
      if (library.is_function(t.term)) t.term = monomials + library.function(t.term);
  part.functions = library.functions;
  if (found.usable) {
    const Moments last = polynomial_posterior(model).last_state();
    model.last_state = model.scaling.to_user(last.mean);
    model.last_state_sd = model.scaling.scale.cwiseProduct(last.sd());
  }
  if (found.usable) result.summary.rivals = rivals(model, data);
  auto& record = model.training;
  record.seed = o.seed;
  record.trainer = "trajectory";
  record.derivative = "none";
  record.iterations = found.steps;
  record.status = found.status;
  record.reason = found.reason;
  PathSummary& path = result.summary.path.emplace();
  path.smoothed_noise = found.smoothed_noise;
  path.noise_given = options.noise.has_value();
  path.lacking = found.lacking;
  path.noise_share = found.doubts.noise_share;
  path.kurtosis = found.doubts.kurtosis;
  const auto runs = [&](const std::vector<Matrix>& states) {
    std::vector<Trajectory> all;
    for (std::size_t r = 0; r < states.size(); ++r)
      all.push_back({data.trajectories[r].id, data.trajectories[r].times, states[r]});
    return all;
  };
  path.runs = runs(found.path);
  path.forced_runs = runs(found.forced_path);
  result.summary.taken_degree = taken;
  result.summary.degrees = std::move(trials);
  result.summary.usable = found.usable;
  result.summary.trusted = found.usable && distrust(found.status).empty();
  result.summary.status = found.status;
  result.summary.reason = found.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

}  // namespace odecast
