#include "odecast/derivatives/derivatives.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/derivatives/smoothing.hpp"

namespace odecast {

namespace {

constexpr std::array<std::string_view, 9> kNames = {
    "forward", "central2", "central4", "central6", "central8", "savgol", "spline", "weak", "auto"};

/// Enough to estimate the noise to about a hundredth, and constant memory.
constexpr long kRowsForErrors = 1 << 14;

/// The last observations of one trajectory, in model units, oldest first.
struct Window {
  int used = 0;
  std::array<double, 9> times;
  std::array<Vector, 9> states;

  void forget_first(int capacity) {
    for (int i = 1; i < capacity; ++i) {
      times[static_cast<std::size_t>(i - 1)] = times[static_cast<std::size_t>(i)];
      states[static_cast<std::size_t>(i - 1)].swap(states[static_cast<std::size_t>(i)]);
    }
    --used;
  }
};

/// Root mean square of u^{(m)} / m!, m = points - 1, from divided differences d with weights w:
/// their mean square less the noise, Σ (d²/|w|² - σ²) / Σ 1/|w|², so that those with less noise
/// count more.
Vector root_mean_square_difference(const std::vector<Segment>& parts, int points,
                                   const Vector& noise) {
  Vector square = Vector::Zero(noise.size());
  double weight = 0;
  std::array<double, 10> w;
  for (const Segment& s : parts)
    for (int i = 0; i + points <= s.rows; ++i) {
      divided_difference_weights(s.times() + i, points, w.data());
      const Eigen::Map<const Eigen::RowVectorXd> weights(w.data(), points);
      const double length = weights.norm();
      const Vector d = (weights / length * s.states().middleRows(i, points)).transpose();
      square += d.cwiseAbs2() - noise.cwiseAbs2();
      weight += 1 / (length * length);
    }
  if (!(weight > 0)) return Vector::Zero(noise.size());
  return (square / weight).cwiseMax(0).cwiseSqrt();
}

[[noreturn]] void too_few(const std::string& name, long rows, std::size_t trajectories,
                          int needed) {
  throw_data(
      {name, fmt::format("{} rows in {} trajectories", rows, trajectories),
       fmt::format("at least {} rows in a trajectory", needed),
       needed == 2
           ? "A derivative needs two observations. If a column named trajectory, series or id is "
             "not "
             "meant to tell trajectories apart, rename it."
           : "Choose a derivative of lower order, for example `derivative=central2`. If a column "
             "named "
             "trajectory, series or id is not meant to tell trajectories apart, rename it."});
}

}  // namespace

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

DerivativeRows first_targets(DerivativeRows rows, int targets) {
  if (rows.derivatives.cols() == targets) return rows;
  rows.derivatives = Matrix(rows.derivatives.leftCols(targets));
  rows.sigma = Matrix(rows.sigma.leftCols(targets));
  return rows;
}

DerivativeRows successors(const Dataset& data, double spacing) {
  std::vector<std::pair<const Trajectory*, Eigen::Index>> pairs;
  for (const Trajectory& t : data.trajectories)
    for (int i = 0; i + 1 < t.rows(); ++i) {
      const double h =
          t.times[static_cast<std::size_t>(i + 1)] - t.times[static_cast<std::size_t>(i)];
      if (std::abs(h - spacing) <= 1e-6 * spacing) pairs.emplace_back(&t, i);
    }
  if (pairs.empty()) too_few(data.source, data.rows(), data.trajectories.size(), 2);
  const auto count = static_cast<Eigen::Index>(pairs.size()),
             n = static_cast<Eigen::Index>(data.dimension());
  DerivativeRows rows{Matrix(count, n), Matrix(count, n), Matrix::Zero(count, n)};
  for (Eigen::Index k = 0; k < count; ++k) {
    const auto& [t, i] = pairs[static_cast<std::size_t>(k)];
    rows.states.row(k) = t->states.row(i);
    rows.derivatives.row(k) = t->states.row(i + 1);
  }
  return rows;
}

std::string_view derivative_name(DerivativeMethod method) {
  return kNames[static_cast<std::size_t>(method)];
}

std::optional<DerivativeMethod> derivative_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<DerivativeMethod>(i);
  return std::nullopt;
}

int central_order(DerivativeMethod method) {
  switch (method) {
    case DerivativeMethod::central2: return 2;
    case DerivativeMethod::central4: return 4;
    case DerivativeMethod::central6: return 6;
    case DerivativeMethod::central8: return 8;
    default: return 0;
  }
}

void check(const DerivativeOptions& options, int variables) {
  if (!(options.forward.noise_factor >= 0) || !std::isfinite(options.forward.noise_factor))
    throw_usage({"option `noise_factor`", fmt::format("{}", options.forward.noise_factor),
                 "a finite number >= 0", "The paper uses 1."});
  if (!std::isfinite(options.forward.noise_order))
    throw_usage({"option `noise_order`", fmt::format("{}", options.forward.noise_order),
                 "a finite number", "The paper uses 2."});
  const auto given = options.noise.size();
  if (given != 0 && given != 1 && given != variables)
    throw_usage({"option `noise`", fmt::format("{} numbers", given),
                 fmt::format("one, or one for each of the {} variables", variables),
                 "Give standard deviations in the units of the data, separated by commas."});
  for (const double s : options.noise)
    if (!(s > 0) || !std::isfinite(s))
      throw_usage({"option `noise`", fmt::format("{}", s), "finite numbers > 0",
                   "Leave it out to have the noise estimated from the data."});
  if (!(options.gap >= 0) || !std::isfinite(options.gap))
    throw_usage({"option `gap`", fmt::format("{}", options.gap), "a finite time > 0",
                 "Leave it out to have gaps found from the usual spacing."});
}

DerivativeOptions to_model_units(const DerivativeOptions& options, const Scaling& scaling) {
  DerivativeOptions result = options;
  if (options.noise.size() == 1)
    result.noise = options.noise[0] * scaling.scale.cwiseInverse();
  else if (options.noise.size() > 1)
    result.noise = options.noise.cwiseQuotient(scaling.scale);
  result.gap /= scaling.time;
  return result;
}

Vector observation_noise(const DerivativeOptions& options, const std::vector<Segment>& segments,
                         int variables) {
  if (options.noise.size() == 0) return estimate_noise(segments, variables);
  return options.noise.size() == 1 ? Vector::Constant(variables, options.noise[0]) : options.noise;
}

void stream_differences(const ObservationSource& source, const Scaling& scaling,
                        const DerivativeOptions& user_options, const ObservationSummary& summary,
                        int rows_per_block,
                        const std::function<void(const DerivativeRows&)>& take) {
  const int n = source.dimension(), order = central_order(user_options.method);
  assert(order > 0 || user_options.method == DerivativeMethod::forward);
  check(user_options, n);
  const DerivativeOptions options = to_model_units(user_options, scaling);
  const std::vector<double> longest = longest_spacings(summary, user_options.gap);
  const int points = order > 0 ? order + 1 : 2, centre = order / 2;

  Vector noise = Vector::Zero(n), curvature = Vector::Zero(n);
  if (order > 0) {
    const Dataset first = to_model_units(dataset_of(source, kRowsForErrors), scaling);
    const std::vector<Segment> parts = segments(first, options.gap);
    noise = observation_noise(options, parts, n);
    curvature = root_mean_square_difference(parts, order + 2, noise);
  } else if (options.noise.size() > 0) {
    noise = observation_noise(options, {}, n);
  }

  DerivativeRows block{Matrix(rows_per_block, n), Matrix(rows_per_block, n),
                       Matrix(rows_per_block, n)};
  Eigen::Index used = 0;
  bool any = false;
  const auto flush = [&] {
    if (used == 0) return;
    any = true;
    if (used < rows_per_block)
      take(
          {block.states.topRows(used), block.derivatives.topRows(used), block.sigma.topRows(used)});
    else
      take(block);
    used = 0;
  };
  double last_h = 0, last_sigma = 0;  // most rows have the spacing of the row before
  const auto forward = [&](const Window& w) {
    const double h = w.times[1] - w.times[0];
    if (h != last_h) {
      last_h = h;
      last_sigma = options.forward.noise_factor * std::pow(h, options.forward.noise_order);
    }
    for (int j = 0; j < n; ++j) {
      block.states(used, j) = w.states[0][j];
      block.derivatives(used, j) = (w.states[1][j] - w.states[0][j]) / h;
      block.sigma(used, j) =
          noise[j] > 0 ? root_sum_square(last_sigma, std::sqrt(2.0) * noise[j] / h) : last_sigma;
    }
  };
  const auto central = [&](const Window& w) {
    std::array<double, 9> weights;
    const auto c = static_cast<std::size_t>(centre);
    first_derivative_weights(w.times.data(), points, w.times[c], weights.data());
    double product = 1, square = 0;
    for (int i = 0; i < points; ++i) {
      if (i != centre) product *= w.times[c] - w.times[static_cast<std::size_t>(i)];
      square += weights[static_cast<std::size_t>(i)] * weights[static_cast<std::size_t>(i)];
    }
    const Vector& u = w.states[c];
    for (int j = 0; j < n; ++j) {
      // The weights sum to 0: differences from the centre lose no digits to a common offset.
      double sum = 0;
      for (int i = 0; i < points; ++i)
        if (i != centre)
          sum += weights[static_cast<std::size_t>(i)] *
                 (w.states[static_cast<std::size_t>(i)][j] - u[j]);
      block.states(used, j) = u[j];
      block.derivatives(used, j) = sum;
      block.sigma(used, j) = root_sum_square(curvature[j] * product, noise[j] * std::sqrt(square));
    }
  };

  std::vector<Window> windows;
  std::vector<double> last_times;
  long seen = 0;
  source.replay([&](std::size_t which, double user_time, const double* state) {
    ++seen;
    if (which >= windows.size()) {
      windows.resize(which + 1);
      last_times.resize(which + 1);
    }
    Window& w = windows[which];
    if (w.used > 0 && which < longest.size() && user_time - last_times[which] > longest[which])
      w.used = 0;
    last_times[which] = user_time;
    if (w.used == points) w.forget_first(points);
    const auto at = static_cast<std::size_t>(w.used++);
    w.times[at] = user_time / scaling.time;
    Vector& v = w.states[at];
    v.resize(n);
    for (int j = 0; j < n; ++j) v[j] = (state[j] - scaling.offset[j]) / scaling.scale[j];
    if (w.used < points) return true;
    if (order > 0)
      central(w);
    else
      forward(w);
    if (++used == rows_per_block) flush();
    return true;
  });
  flush();
  if (!any) too_few(source.name, seen, windows.size(), points);
}

DerivativeRows forward_differences(const Dataset& data, const ForwardDifferenceOptions& options) {
  return derivative_rows(data, {.forward = options});
}

DerivativeRows derivative_rows(const Dataset& data, const DerivativeOptions& options) {
  const int n = data.dimension();
  check(options, n);
  assert(options.method != DerivativeMethod::weak && options.method != DerivativeMethod::automatic);
  DerivativeRows rows;
  if (options.method == DerivativeMethod::forward || central_order(options.method) > 0) {
    const ObservationSource source = source_of(data);
    stream_differences(source, no_scaling(n), options, summarise(source),
                       static_cast<int>(std::max(1L, data.rows())),
                       [&](const DerivativeRows& all) { rows = all; });
    return rows;
  }
  const std::vector<Segment> parts = segments(data, options.gap);
  const Vector noise = observation_noise(options, parts, n);
  rows = options.method == DerivativeMethod::savgol
             ? local_polynomial_rows(parts, noise)
             : spline_rows(parts, n, options.noise.size() > 0 ? noise : Vector());
  if (rows.rows() == 0)
    too_few(data.source, data.rows(), data.trajectories.size(),
            options.method == DerivativeMethod::savgol ? kLocalPolynomialRows : kSplineRows);
  return rows;
}

}  // namespace odecast
