#pragma once

#include <string>
#include <vector>

#include "odecast/forecast/forecast.hpp"

namespace odecast {

/// How often the truth lies where the forecast says, at every level at once. With
/// z = (truth - mean) / sd, the forecast's Gaussian gives
///   coverage at level p = share of points with |z| <= Φ⁻¹((1 + p)/2)
///   PIT = Φ(z), the probability integral transform (Dawid 1984): uniform for a calibrated
///   forecast, heaped at both ends for bands that are too narrow, in the middle for those that are
///   too wide.
/// Points of one trajectory depend on each other: the scatter of a perfect forecast is larger than
/// that of as many independent points.
struct Calibration {
  std::vector<std::string> variables;
  std::vector<double> levels;  ///< 0.05, 0.10 … 0.95, 0.99
  Matrix coverage;             ///< levels × variables
  std::vector<double> edges;   ///< of the PIT's bins, from 0 to 1
  Matrix pit;                  ///< bins × variables: share of the points; columns add up to 1
  /// Compared per variable; points with sd = 0 are left out.
  std::vector<long> points;
};

/// Throws Error like score() does. `bins` of the PIT, at least 1.
Calibration calibration(const Forecast& forecast, const Dataset& truth,
                        const std::string& trajectory = {}, int bins = 20);

/// How spread and error grow, over all variables: √(mean_i (s_i / scale_i)²) with s_i the
/// forecast's standard deviation, and the error of its mean. Variables with scale 0 are left out.
std::vector<double> relative_spread(const Forecast& forecast, const Vector& scale);

/// The error at the times compared, as the valid prediction time of Scores is taken from it; NaN at
/// other times of the forecast.
std::vector<double> relative_error(const Forecast& forecast, const Dataset& truth,
                                   const std::string& trajectory, const Vector& scale);

}  // namespace odecast
