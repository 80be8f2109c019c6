#include "odecast/observations/scaling.hpp"

#include <limits>

namespace odecast {

Scaling no_scaling(int variables) { return {Vector::Zero(variables), Vector::Ones(variables)}; }

Scaling standard_scaling(const Dataset& data) {
  auto [mean, sd] = spread(data);
  const double epsilon = std::numeric_limits<double>::epsilon();
  const auto rows = static_cast<double>(data.rows());
  for (Eigen::Index j = 0; j < sd.size(); ++j) {
    const double variance = sd[j] * sd[j], mean_error = rows * mean[j] * epsilon;
    if (variance <= rows * epsilon * variance + mean_error * mean_error) sd[j] = 1;
  }
  return {mean, sd};
}

Dataset to_model_units(const Dataset& data, const Scaling& scaling) {
  Dataset result = data;
  for (Trajectory& t : result.trajectories)
    t.states = ((t.states.rowwise() - scaling.offset.transpose()).array().rowwise() /
                scaling.scale.transpose().array())
                   .matrix();
  return result;
}

}  // namespace odecast
