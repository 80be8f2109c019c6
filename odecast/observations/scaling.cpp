#include "odecast/observations/scaling.hpp"

#include <cmath>
#include <limits>

namespace odecast {

namespace {

/// The power of two nearest to 1 / rms(dv/dt), from differences of neighbours.
double time_unit(const Dataset& data, const Vector& scale) {
  double squares = 0, count = 0;
  for (const Trajectory& t : data.trajectories) {
    for (int i = 0; i + 1 < t.rows(); ++i) {
      const double h =
          t.times[static_cast<std::size_t>(i + 1)] - t.times[static_cast<std::size_t>(i)];
      squares += ((t.states.row(i + 1) - t.states.row(i)).array() / scale.transpose().array() / h)
                     .square()
                     .sum();
      count += static_cast<double>(scale.size());
    }
  }
  const double rms = std::sqrt(squares / count);
  if (!(rms > 0) || !std::isfinite(rms)) return 1;
  return std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(rms))));
}

}  // namespace

Scaling no_scaling(int variables) { return {Vector::Zero(variables), Vector::Ones(variables)}; }

Scaling standard_scaling(const Dataset& data) {
  auto [mean, sd] = spread(data);
  const double epsilon = std::numeric_limits<double>::epsilon();
  const auto rows = static_cast<double>(data.rows());
  for (Eigen::Index j = 0; j < sd.size(); ++j) {
    const double variance = sd[j] * sd[j], mean_error = rows * mean[j] * epsilon;
    if (variance <= rows * epsilon * variance + mean_error * mean_error) sd[j] = 1;
  }
  return {mean, sd, time_unit(data, sd)};
}

Dataset to_model_units(const Dataset& data, const Scaling& scaling) {
  Dataset result = data;
  for (Trajectory& t : result.trajectories) {
    t.states = ((t.states.rowwise() - scaling.offset.transpose()).array().rowwise() /
                scaling.scale.transpose().array())
                   .matrix();
    for (double& time : t.times) time /= scaling.time;
  }
  return result;
}

}  // namespace odecast
