#pragma once

#include "odecast/observations/smoother.hpp"

namespace odecast {

/// How the noise of an observation depends on the state: its variance is s² + r² u² with, per
/// variable, s constant and r relative; or it is that of the logarithm, y = u exp(r ε).
enum class NoiseLaw {
  automatic,    ///< r > 0, or logarithms, where the data ask for it
  constant,     ///< r = 0
  relative,     ///< s and r as likely as can be
  logarithmic,  ///< of variables that are positive at all rows
};

/// The law that makes the residuals of one variable most likely, in the form
///   variance = sd² g(u),   g = (1 - q) + q u² / m,   m = mean u²,   0 <= q <= 1:
/// the mean of g is 1, so sd² is the mean variance; r² = q sd² / m. For a given q the likeliest sd²
/// is mean (e² / g), and q has the largest of
///   -N ln mean(e² / g) - Σ ln g.
struct RelativeNoise {
  double share = 0;        ///< q
  double evidence = 0;     ///< twice the gain in log likelihood over q = 0
  double mean_square = 1;  ///< m

  double variance(double u) const;  ///< g(u), at least 1e-6
};
RelativeNoise likeliest_noise(const std::vector<double>& residuals, const std::vector<double>& u);

/// Twice the gain in log likelihood from N residuals that is asked for before noise counts as
/// relative: what a number costs, ln N, and 20 for what a smoother leaves of the motion.
double relative_noise_threshold(double count);

struct NoiseForm {
  Vector share;              ///< q of each variable
  std::vector<bool> of_log;  ///< whether the noise is that of its logarithm: q is 1 there
};

/// Twice the gain in log likelihood over relative noise that is asked for before the noise counts
/// as that of the logarithm: both have as many numbers.
inline constexpr double kLogNoiseThreshold = 6;

/// Smooths runs whose noise may grow with the state, and divides the weights of the observations
/// by g of the smoothed state, where the law says so; offset and scale make the user's units of
/// the runs'. Twice, because the path follows the weights.
///
/// Where the noise is that of the logarithm, ln y = ln u + r ε, the logarithms are smoothed, and an
/// observation becomes what it is to first order around their path û,
///   y* = û (1 + ln(y/û)),   with the standard deviation r û:
/// least squares in y* is least squares in ln y but for the square of (u - û)/û.
NoiseForm weigh_by_noise(std::vector<ObservedRun>& runs, Smoothed& smoothed, NoiseLaw law,
                         const Vector& offset, const Vector& scale);

}  // namespace odecast
