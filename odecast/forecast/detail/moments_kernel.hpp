#pragma once

// The inner loop of RunningMoments, compiled once per instruction set by moments_<isa>.cpp. Each
// number has its own sums, so that the width of the vectors does not show in the bits.

#include "odecast/forecast/detail/moments_job.hpp"

namespace odecast {

void ODECAST_THIS_ISA::add_moments(const MomentsJob& job) {
  double* __restrict count = job.count, * __restrict share = job.share;
  const double weight = job.weight;
  for (int t = 0; t < job.outputs; ++t) {
    count[t] += weight;
    share[t] = weight / count[t];
  }
  for (int v = 0; v < job.variables; ++v) {
    const double* __restrict x = job.x + v * job.x_stride;
    double* __restrict mean = job.mean + v * job.stride, * __restrict square =
                                                             job.square + v * job.stride;
    for (int t = 0; t < job.outputs; ++t) {
      const double before = mean[t], delta = x[t] - before, after = before + delta * share[t];
      mean[t] = after;
      square[t] += weight * delta * (x[t] - after);
    }
  }
}

}  // namespace odecast
