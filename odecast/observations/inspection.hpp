#pragma once

#include <vector>

#include "odecast/observations/source.hpp"

namespace odecast {

/// What one pass over observations tells a person who wants to know whether they were understood.
struct Inspection {
  long rows = 0;
  std::vector<long> trajectory_rows = {};  ///< of each trajectory
  double first_time = 0, last_time = 0;    ///< over all trajectories

  // Sampling, within trajectories. A gap is a step of more than 1.5 times the median one.
  long pairs = 0;                              ///< of neighbouring rows
  double step = 0;                             ///< median of the first 10,000
  double smallest_step = 0, largest_step = 0;  ///< without gaps
  long gaps = 0;
  double largest_gap = 0;
  bool even = false;  ///< all steps but gaps equal to a millionth

  std::vector<long> missing = {};      ///< values of each variable, then each input, that are NaN
  Vector smallest, largest, mean, sd;  ///< of the others
  std::vector<bool> constant = {};     ///< by the rule of standard_scaling
  /// Standard deviation of the noise of each; NaN where there are too few rows to tell.
  ///
  /// From divided differences of k + 1 neighbours, k = 2, 4, 6, 8, whose weights are scaled to unit
  /// length: independent noise keeps its standard deviation in them whatever k is, while a smooth
  /// signal fades like h^k. Of the four the smallest median is taken (as sd: / 0.6745), so gaps and
  /// outliers do not count. Neighbours with a missing value are passed over.
  Vector noise;
};

Inspection inspect(const ObservationSource& source);

}  // namespace odecast
