#include "odecast/observations/scaling.hpp"

#include <cmath>

namespace odecast {

namespace {

/// The power of two nearest to 1 / rms(dv/dt).
double unit_of_time(const ObservationSummary& summary, const Vector& scale) {
  const double rms = std::sqrt(summary.rms_slope.cwiseQuotient(scale).squaredNorm() /
                               static_cast<double>(scale.size()));
  return rms > 0 && std::isfinite(rms)
             ? std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(rms))))
             : 1;
}

}  // namespace

Scaling no_scaling(int variables) { return {Vector::Zero(variables), Vector::Ones(variables)}; }

Scaling standard_scaling(const ObservationSummary& summary) {
  Scaling scaling{summary.mean, summary.sd, 1};
  for (Eigen::Index j = 0; j < scaling.scale.size(); ++j)
    if (summary.constant[static_cast<std::size_t>(j)]) scaling.scale[j] = 1;
  scaling.time = unit_of_time(summary, scaling.scale);
  return scaling;
}

Scaling unshifted_scaling(const ObservationSummary& summary) {
  Scaling scaling{Vector::Zero(summary.rms.size()), summary.rms, 1};
  for (auto& s : scaling.scale) s = s > 0 ? s : 1;
  scaling.time = unit_of_time(summary, scaling.scale);
  return scaling;
}

Dataset to_model_units(Dataset data, const Scaling& scaling) {
  for (Trajectory& t : data.trajectories) {
    t.states = ((t.states.rowwise() - scaling.offset.transpose()).array().rowwise() /
                scaling.scale.transpose().array())
                   .matrix();
    for (double& time : t.times) time /= scaling.time;
  }
  return data;
}

}  // namespace odecast
