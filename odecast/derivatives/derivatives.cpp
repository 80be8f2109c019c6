#include "odecast/derivatives/derivatives.hpp"

#include <fmt/format.h>

#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {

namespace {

void check(const ForwardDifferenceOptions& options) {
  if (!(options.noise_factor >= 0) || !std::isfinite(options.noise_factor))
    throw_usage({"option --noise-factor", fmt::format("{}", options.noise_factor),
                 "a finite number >= 0", "The paper uses 1."});
  if (!std::isfinite(options.noise_order))
    throw_usage({"option --noise-order", fmt::format("{}", options.noise_order), "a finite number",
                 "The paper uses 2."});
}

[[noreturn]] void too_few(const std::string& name, long rows, std::size_t trajectories) {
  throw_data({name, fmt::format("{} rows in {} trajectories", rows, trajectories),
              "at least 2 rows in a trajectory",
              "A derivative needs two observations. If a column named trajectory, series or id is not "
              "meant to tell trajectories apart, rename it."});
}

}  // namespace

void forward_differences(const ObservationSource& source, const Scaling& scaling,
                         const ForwardDifferenceOptions& options, int rows_per_block,
                         const std::function<void(const DerivativeRows&)>& take) {
  check(options);
  const int n = source.dimension();
  DerivativeRows block{Matrix(rows_per_block, n), Matrix(rows_per_block, n),
                       Matrix(rows_per_block, n)};
  Eigen::Index used = 0;
  struct Last {
    bool seen = false;
    double time = 0;
    Vector state;  // model units
  };
  std::vector<Last> last;
  long seen = 0;
  bool any = false;
  const auto flush = [&] {
    if (used == 0) return;
    any = true;
    if (used < rows_per_block)
      take({block.states.topRows(used), block.derivatives.topRows(used), block.sigma.topRows(used)});
    else
      take(block);
    used = 0;
  };
  double last_h = 0, last_sigma = 0;  // most rows have the spacing of the row before
  source.replay([&](std::size_t which, double user_time, const double* state) {
    ++seen;
    if (which >= last.size()) last.resize(which + 1);
    Last& before = last[which];
    const double time = user_time / scaling.time;
    if (!before.seen) {
      before.state.resize(n);
      before.seen = true;
      for (int j = 0; j < n; ++j) before.state[j] = (state[j] - scaling.offset[j]) / scaling.scale[j];
    } else {
      const double h = time - before.time;
      if (h != last_h) {
        last_h = h;
        last_sigma = options.noise_factor * std::pow(h, options.noise_order);
      }
      for (int j = 0; j < n; ++j) {
        const double v = (state[j] - scaling.offset[j]) / scaling.scale[j];
        block.states(used, j) = before.state[j];
        block.derivatives(used, j) = (v - before.state[j]) / h;
        block.sigma(used, j) = last_sigma;
        before.state[j] = v;
      }
      if (++used == rows_per_block) flush();
    }
    before.time = time;
  });
  flush();
  if (!any) too_few(source.name, seen, last.size());
}

DerivativeRows forward_differences(const Dataset& data, const ForwardDifferenceOptions& options) {
  DerivativeRows rows;
  long pairs = 0;
  for (const Trajectory& t : data.trajectories) pairs += std::max(0, t.rows() - 1);
  if (pairs == 0) {
    check(options);
    too_few(data.source, data.rows(), data.trajectories.size());
  }
  forward_differences(source_of(data), no_scaling(data.dimension()), options,
                      static_cast<int>(pairs), [&](const DerivativeRows& all) { rows = all; });
  return rows;
}

}  // namespace odecast
