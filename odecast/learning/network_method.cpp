#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "odecast/learning/detail/methods.hpp"
#include "odecast/learning/detail/rows.hpp"
#include "odecast/regression/selection.hpp"
#include "odecast/regression/weak_regression.hpp"
#include "odecast/training/objective.hpp"

namespace odecast {

std::vector<HiddenLayer> hidden_layers(const DropoutMethod& m, int arguments) {
  std::vector<HiddenLayer> hidden;
  for (const int units : m.layers)
    hidden.push_back({units, m.activation, m.activation == Activation::power ? m.degree : 1,
                      m.dropout, m.rescale});
  if (!hidden.empty()) return hidden;
  const int units = m.hidden > 0 ? m.hidden : static_cast<int>(monomial_count(arguments, m.degree));
  return {{units, Activation::power, m.degree, m.dropout, m.rescale}};
}

namespace {

void run_schedule(Model& model, const DerivativeRows& rows, const DropoutMethod& m,
                  const FitOptions& o, FitSummary& summary, const Observer& observer) {
  TrainOptions training = m.training;
  training.optimiser = m.trainer == Trainer::sgd ? OptimiserKind::sgd : OptimiserKind::adam;
  training.seed = o.seed;
  training.threads = o.threads;
  training.budget = o.budget;
  const TrainSummary done = train(model.network(), rows, training, observer);
  summary.usable = done.status != TrainStatus::diverged;
  summary.trusted = done.status == TrainStatus::schedule_done;
  summary.status = summary.trusted ? "schedule_done" : summary.usable ? "stopped" : "diverged";
  summary.reason = done.reason;
  model.training.iterations = done.iterations;
  if (const auto kernel = polynomial_kernel(model.network()); kernel && summary.usable)
    model.training.objective = expected_objective(*kernel, rows, model.rate().cwiseAbs2());
}

/// The rows of the data as the exact trainers want them, and what the integral form says of the
/// coefficients beyond.
struct ExactRows {
  RowFactor factor;
  std::optional<WeakRegression> regression;
};

ExactRows exact_rows(const FitData& data, const Model& model, const RowPlan& plan, bool select,
                     FitSummary& summary, const Observer& observer) {
  const int n = model.dimension(), degree = model.network().layers[0].power;
  if (!is_weak(plan)) return {row_factor(data, n, degree, plan, summary, observer), {}};
  const WeakData weak = weak_data(data, plan);
  const auto begin = std::chrono::steady_clock::now();
  const MonomialBasis basis(data.size(), degree);
  const WeakRows rows = weak_rows(weak.parts, basis, weak.noise, n);
  WeakRegression regression =
      weak_regression(rows, basis, {.select = select}, data.source.name, observer);
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

Fit learn_exactly(const ObservationSource& source, const DropoutMethod& m, const FitOptions& o,
                  const Observer& observer) {
  Fit result;
  Model& model = result.model;
  FitSummary& summary = result.summary;
  const int arguments = argument_count(source, o.time_name);
  model.law = make_network(arguments, hidden_layers(m, arguments), source.dimension(), o.seed);
  const bool least_squares =
      m.dropout == 0 && static_cast<double>(model.network().layers[0].biases.size()) >=
                            monomial_count(arguments, m.degree);
  observer("reading", 0);
  const RowPlan given = row_plan(o, m.rows, !m.select_terms, m.layers.empty() ? m.degree : 3);
  const FitData data = fit_data(source, given);
  describe(model, source, data, given);
  smooth_last_state(model, data, summary);
  const RowPlan plan = with_derivative(given, data, model, summary, false, observer);
  ExactRows rows = exact_rows(data, model, plan, m.select_terms, summary, observer);
  const RowFactor& factor = rows.factor;
  const auto begin = std::chrono::steady_clock::now();
  ExactSummary exact;
  if (least_squares && rows.regression) {
    const WeakRegression& r = *rows.regression;
    summary.terms = m.select_terms ? r.terms : 0;
    exact = polynomial_fit(
        model.network(), factor, r.coefficients,
        fmt::format("least squares on {} integrals, weighted by their covariance; chi^2 {:.3g} per "
                    "degree of freedom{}",
                    factor.rows(), r.misfit,
                    m.select_terms ? fmt::format("; {} terms left", r.terms) : ""));
  } else if (m.select_terms) {
    const Eigen::MatrixXd C = select_terms(factor, static_cast<double>(data.summary.rows));
    summary.terms = static_cast<int>((C.array() != 0).count());
    exact = polynomial_fit(model.network(), factor, C,
                           fmt::format("least squares, {} terms left", summary.terms));
  } else {
    exact = train_exact(model.network(), factor,
                        {.starts = m.starts,
                         .max_iterations = m.max_iterations,
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
    const auto kernel = *polynomial_kernel(model.network());
    ExactObjective objective(factor, kernel.units(), kernel.dropout);
    record.objective = objective.weighted(kernel, model.rate().cwiseAbs2());
  }
  summary.seconds += seconds_since(begin);
  return result;
}

Fit learn_by_schedule(const ObservationSource& source, const DropoutMethod& m, const FitOptions& o,
                      const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  Fit result;
  Model& model = result.model;
  const int arguments = argument_count(source, o.time_name);
  model.law = make_network(arguments, hidden_layers(m, arguments), source.dimension(), o.seed);
  // Cubic polynomials stand in for general networks where derivatives are tried.
  const RowPlan given = row_plan(o, m.rows, true, m.layers.empty() ? m.degree : 3);
  const FitData data = fit_data(source, given);
  describe(model, source, data, given);
  smooth_last_state(model, data, result.summary);
  const RowPlan plan = with_derivative(given, data, model, result.summary, true, observer);
  const Dataset scaled = data.in_model_units();
  const DerivativeRows rows =
      first_targets(o.kind == ModelKind::map
                        ? successors(scaled, data.summary.step / data.scaling.time)
                        : derivative_rows(scaled, to_model_units(plan.derivative, data.scaling)),
                    source.dimension());
  model.training.rows = rows.rows();
  if (!rows.derivatives.allFinite() || !rows.states.allFinite()) differences_overflow(source.name);
  run_schedule(model, rows, m, o, result.summary, observer);
  model.training.trainer = m.trainer == Trainer::sgd ? "sgd" : "adam";
  model.training.status = result.summary.status;
  model.training.reason = result.summary.reason;
  result.summary.seconds = seconds_since(begin);
  return result;
}

}  // namespace

Fit learn(const ObservationSource& source, const DropoutMethod& method, const FitOptions& options,
          const Observer& observer) {
  return method.exact() ? learn_exactly(source, method, options, observer)
                        : learn_by_schedule(source, method, options, observer);
}

Fit learn(const ObservationSource& source, const EnsembleMethod& method, const FitOptions& given,
          const Observer& observer) {
  DropoutMethod network = method.member;
  network.dropout = 0;
  FitOptions one = given;
  if (given.budget) one.budget = *given.budget / method.members;
  Fit result;
  bool stopped = false;
  NetworkEnsemble networks;
  for (int k = 0; k < method.members; ++k) {
    one.seed = given.seed + static_cast<std::uint64_t>(k);
    Fit member = learn(source, network, one, [&](std::string_view what, double part) {
      observer(what, (k + part) / method.members);
    });
    result.summary.seconds += member.summary.seconds;
    if (!member.summary.usable) {
      member.summary.reason += fmt::format(" (member {} of {})", k + 1, method.members);
      return member;
    }
    stopped = stopped || !member.summary.trusted;
    networks.push_back(std::move(member.model.network()));
    if (k == 0) {
      const double seconds = result.summary.seconds;
      result = std::move(member);
      result.summary.seconds = seconds;
    } else {
      result.model.training.iterations += member.model.training.iterations;
    }
  }
  result.model.law = std::move(networks);
  auto& record = result.model.training;
  record.reason = result.summary.reason =
      fmt::format("{} networks, each: {}", method.members, record.reason);
  record.objective.reset();
  if (stopped) {
    record.status = result.summary.status = "stopped";
    result.summary.trusted = false;
  }
  return result;
}

}  // namespace odecast
