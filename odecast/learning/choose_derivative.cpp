#include "odecast/learning/choose_derivative.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/regression/weak_regression.hpp"
#include "odecast/solver/tableau.hpp"
#include "odecast/training/exact.hpp"

namespace odecast {
namespace {

Network learn(const Dataset& data, int targets, const DerivativeOptions& options,
              const MonomialBasis& basis) {
  const int n = data.dimension();
  Network network =
      make_network(n, {{basis.size(), Activation::power, basis.degree(), 0, false}}, targets, 1);
  if (options.method == DerivativeMethod::weak) {
    const std::vector<Segment> parts = segments(data, options.gap);
    const WeakRows rows = weak_rows(parts, basis, observation_noise(options, parts, n), targets);
    set_polynomial(network, basis,
                   weak_regression(rows, basis, {}, data.source, ignore_progress).coefficients);
  } else {
    const DerivativeRows rows = first_targets(derivative_rows(data, options), targets);
    RowFactor factor(n, basis.degree(), targets);
    factor.add(rows.states, rows.derivatives,
               row_weights(rows, rows.sigma.row(0).cwiseAbs2().mean()));
    train_exact(network, factor, {}, ignore_progress);
  }
  return network;
}

/// Starts and targets among the held-out rows.
struct Pairs {
  Matrix starts, targets;
  Vector ahead;
};

Pairs pairs_of(const std::vector<Segment>& parts, double horizon, int n) {
  constexpr long most = 200;
  std::vector<std::array<Eigen::Index, 3>> found;  // segment, start, target
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const double* t = parts[k].times();
    for (int i = 0, j = 1; i + 1 < parts[k].rows; ++i) {
      j = std::max(j, i + 1);
      while (j < parts[k].rows && t[j] < t[i] + horizon) ++j;
      if (j == parts[k].rows) {
        if (i > 0) break;
        j = parts[k].rows - 1;  // as far as a short piece goes
      }
      found.push_back({static_cast<Eigen::Index>(k), i, j});
    }
  }
  const auto all = static_cast<long>(found.size()), every = std::max(1L, all / most);
  const Eigen::Index count = (all + every - 1) / every;
  Pairs pairs{Matrix(count, n), Matrix(count, n), Vector(count)};
  for (Eigen::Index p = 0; p < count; ++p) {
    const auto [k, i, j] = found[static_cast<std::size_t>(p * every)];
    const Segment& s = parts[static_cast<std::size_t>(k)];
    pairs.starts.row(p) = s.states().row(i);
    pairs.targets.row(p) = s.states().row(j);
    pairs.ahead[p] = s.times()[j] - s.times()[i];
  }
  return pairs;
}

/// All starts side by side, each with its own step.
double prediction_error(const Network& network, const Pairs& pairs) {
  constexpr int steps = 32;
  const Vector h = pairs.ahead / steps;
  const auto n = static_cast<Eigen::Index>(network.outputs()), inputs = pairs.starts.cols() - n;
  Matrix u = pairs.starts.leftCols(n);
  const auto field = [&](double share,
                         const Matrix& state) -> Matrix {  // `share` of the way to the target
    if (inputs == 0) return evaluate(network, state);
    Matrix joined(state.rows(), n + inputs);
    joined << state,
        (1 - share) * pairs.starts.rightCols(inputs) + share * pairs.targets.rightCols(inputs);
    return evaluate(network, joined);
  };
  constexpr const Tableau& method = kRungeKutta4;
  std::array<Matrix, method.stages> K;
  const auto combined = [&](const double* weights, int count) -> Matrix {
    Matrix sum = Matrix::Zero(u.rows(), n);
    for (int j = 0; j < count; ++j)
      if (weights[j] != 0) sum += weights[j] * K[static_cast<std::size_t>(j)];
    return h.asDiagonal() * sum;
  };
  for (int step = 0; step < steps; ++step) {
    for (int s = 0; s < method.stages; ++s)
      K[static_cast<std::size_t>(s)] =
          field((step + method.c[s]) / steps, u + combined(method.a[s], s));
    u += combined(method.b, method.stages);
  }
  const double error =
      std::sqrt((u - pairs.targets.leftCols(n)).squaredNorm() / static_cast<double>(u.size()));
  return std::isfinite(error) ? error : INFINITY;
}

}  // namespace

DerivativeChoice choose_derivative(const Dataset& data, int targets,
                                   const DerivativeOptions& options, int degree,
                                   bool pointwise_only, const Observer& observer) {
  const int n = data.dimension();
  Dataset long_enough = data;
  std::erase_if(long_enough.trajectories, [](const Trajectory& t) { return t.rows() < 10; });
  if (long_enough.trajectories.empty())
    throw_data({data.source, "no trajectory of 10 rows",
                "some rows to learn from and some to predict",
                "Name a derivative instead of auto, for example `derivative=central2`."});
  const Split split = split_last(long_enough, 0.2);
  const std::vector<Segment> parts = segments(split.test, options.gap);
  const std::vector<Segment> learnt_from = segments(split.train, options.gap);
  const double horizon =
      targets < n ? 0 : 0.5 * time_scale(learnt_from, observation_noise(options, learnt_from, n));
  const Pairs pairs = pairs_of(parts, horizon, n);
  if (pairs.starts.rows() == 0)
    throw_data({data.source, "no two neighbouring rows among the last fifth",
                "some rows to predict", "Name a derivative instead of auto."});
  const MonomialBasis basis(n, degree);
  DerivativeChoice choice;
  choice.ahead = pairs.ahead.mean();
  for (int m = 0; m < static_cast<int>(DerivativeMethod::automatic); ++m) {
    DerivativeOptions tried = options;
    tried.method = static_cast<DerivativeMethod>(m);
    if (pointwise_only && tried.method == DerivativeMethod::weak) continue;
    observer("choosing a derivative", m / 8.0);
    double error = INFINITY;
    try {
      error = prediction_error(learn(split.train, targets, tried, basis), pairs);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::data) throw;  // too few rows for this one
    }
    choice.trials.push_back({tried.method, error});
  }
  double least = INFINITY;
  for (const auto& trial : choice.trials) least = std::min(least, trial.error);
  if (!std::isfinite(least))
    throw_data({data.source, "no derivative whose equations predict the last fifth of the rows",
                "at least one", "Name a derivative instead of auto, or choose a lower `degree`."});
  const auto best = std::find_if(choice.trials.begin(), choice.trials.end(),
                                 [&](const auto& t) { return t.error <= 1.01 * least; });
  choice.method = best->method;
  choice.reason = fmt::format("{} predicts held-out rows best, with error {:.3g}",
                              derivative_name(best->method), best->error);
  std::string others;
  for (const auto& t : choice.trials)
    if (t.method != choice.method)
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ", derivative_name(t.method),
                            std::isfinite(t.error) ? fmt::format("{:.3g}", t.error) : "failed");
  choice.reason += " (" + others + ")";
  return choice;
}

}  // namespace odecast
