#include "odecast/derivatives/derivatives.hpp"

#include <fmt/format.h>

#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {

DerivativeRows forward_differences(const Dataset& data, const ForwardDifferenceOptions& options) {
  if (!(options.noise_factor >= 0) || !std::isfinite(options.noise_factor))
    throw_usage({"option --noise-factor", fmt::format("{}", options.noise_factor),
                 "a finite number >= 0", "The paper uses 1."});
  if (!std::isfinite(options.noise_order))
    throw_usage({"option --noise-order", fmt::format("{}", options.noise_order),
                 "a finite number", "The paper uses 2."});
  Eigen::Index count = 0;
  for (const Trajectory& t : data.trajectories) count += std::max(0, t.rows() - 1);
  if (count == 0)
    throw_data({data.source, fmt::format("{} rows in {} trajectories", data.rows(),
                                    data.trajectories.size()),
                "at least 2 rows in a trajectory", "A derivative needs two observations."});
  const auto n = data.dimension();
  DerivativeRows rows{Matrix(count, n), Matrix(count, n), Matrix(count, n)};
  Eigen::Index next = 0;
  for (const Trajectory& t : data.trajectories) {
    for (int i = 0; i + 1 < t.rows(); ++i, ++next) {
      const double h = t.times[static_cast<std::size_t>(i + 1)] - t.times[static_cast<std::size_t>(i)];
      rows.states.row(next) = t.states.row(i);
      rows.derivatives.row(next) = (t.states.row(i + 1) - t.states.row(i)) / h;
      rows.sigma.row(next).setConstant(options.noise_factor * std::pow(h, options.noise_order));
    }
  }
  return rows;
}

}  // namespace odecast
