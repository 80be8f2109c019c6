#include "odecast/observations/scaling.hpp"

#include <cmath>
#include <limits>

namespace odecast {

Scaling no_scaling(int variables) { return {Vector::Zero(variables), Vector::Ones(variables)}; }

bool is_constant(long count, double mean, double sd) {
  const double epsilon = std::numeric_limits<double>::epsilon();
  const auto rows = static_cast<double>(count);
  const double variance = sd * sd, mean_error = rows * mean * epsilon;
  return variance <= rows * epsilon * variance + mean_error * mean_error;
}

Scaling standard_scaling(const ObservationSummary& summary) {
  Scaling scaling{summary.mean, summary.sd, 1};
  for (Eigen::Index j = 0; j < scaling.scale.size(); ++j)
    if (is_constant(summary.rows, summary.mean[j], summary.sd[j])) scaling.scale[j] = 1;
  // The power of two nearest to 1 / rms(dv/dt).
  const double rms = std::sqrt(summary.rms_slope.cwiseQuotient(scaling.scale).squaredNorm() /
                               static_cast<double>(scaling.scale.size()));
  if (rms > 0 && std::isfinite(rms))
    scaling.time = std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(rms))));
  return scaling;
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
