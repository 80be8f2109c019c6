#pragma once

#include "odecast/core/detail/kernel.hpp"

namespace odecast {

/// A trajectory x of weight w:  N <- N + w, δ = x - μ, μ <- μ + δ w/N, S <- S + w δ (x - μ).
struct MomentsJob {
  int variables, outputs;
  long x_stride, stride;  ///< between variables in x, and in mean and square
  double weight;
  const double* x;
  double *count, *share;  ///< time; N and w/N
  double *mean, *square;
};

ODECAST_KERNEL(add_moments, const MomentsJob)

}  // namespace odecast
