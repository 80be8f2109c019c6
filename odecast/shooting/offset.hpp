#pragma once

#include <cmath>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// Of x = m + v, v of sd s, what tells x² from 1 and x is v², in sd a part s / (√2 |m|) of x².
/// Beyond kFar sd that is less than 7 %, and under noise of that size which monomials in x are
/// there cannot be told, while those in v are as different as ever. Where one variable is so far,
/// the offsets of all beyond kAway sd are taken out: products of one that is shifted and one that
/// is not would be alike again.
inline constexpr double kAway = 5, kFar = 10;

/// The mean rounded to the largest power of ten of at most 2 sd: at most an sd from it, and short
/// to read.
inline double rounded_mean(double mean, double sd) {
  const double tens = std::floor(std::log10(2 * sd)),
               unit = std::pow(10, std::abs(tens));  // exact up to 1e22
  return tens < 0 ? std::round(mean * unit) / unit : std::round(mean / unit) * unit;
}

/// What is to be taken out of each variable; 0 where nothing is, as of those with sd 0.
inline Vector offsets(const Vector& mean, const Vector& sd) {
  const auto beyond = [&](double ratio, Eigen::Index i) {
    return sd[i] > 0 && std::abs(mean[i]) > ratio * sd[i];
  };
  bool far = false;
  for (Eigen::Index i = 0; i < mean.size(); ++i) far = far || beyond(kFar, i);
  Vector offset = Vector::Zero(mean.size());
  for (Eigen::Index i = 0; far && i < mean.size(); ++i)
    if (beyond(kAway, i)) offset[i] = rounded_mean(mean[i], sd[i]);
  return offset;
}

}  // namespace odecast
