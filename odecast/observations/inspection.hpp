#pragma once

#include "odecast/observations/source.hpp"

namespace odecast {

/// Enough of them for a standard deviation to half a hundredth.
inline constexpr long kNoiseRows = 1 << 14;

/// What one pass over observations tells a person who wants to know whether they were understood:
/// the summary of the variables and behind them the inputs, and the noise of each.
struct Inspection : ObservationSummary {
  /// Standard deviation, by Whittaker's smoother: what a fit of trajectories begins with and holds
  /// its residuals against. NaN for fewer than 8 values. Of the first noise_rows, which are held
  /// for it (at most kNoiseRows, or what makes 2^20 values); a fit holds all.
  Vector noise;
  /// The share of its variance that grows as u² (noise_law.hpp); 0 where it is constant.
  Vector relative_noise;
  long noise_rows = 0;
  std::vector<bool> log_noise = {};  ///< of each variable whether it is that of the logarithm
};

Inspection inspect(const ObservationSource& source);

}  // namespace odecast
