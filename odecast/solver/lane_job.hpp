#pragma once

namespace odecast {

struct LaneEnd {
  int status, outputs;
  double time;
  long steps;
};

/// What the lane kernels see: plain numbers and pointers, so that they need nothing from the
/// standard library.
struct LaneJob {
  int variables, monomials, outputs, members;
  const int *parent, *variable;
  const double *times, *coefficients, *starts;
  double t0, rtol, atol, first_step, max_step, bound;
  long max_steps;
  double* states;
  LaneEnd* ends;
  double* work;  ///< lane_work_size() doubles, aligned to 64 bytes
};

constexpr long lane_work_size(int n, int monomials) {
  return 8L * (14L * n + static_cast<long>(n) * monomials + monomials) + 3L * n;
}

void run_lanes_sse2(const LaneJob& job);
void run_lanes_avx2(const LaneJob& job);
void run_lanes_avx512(const LaneJob& job);

}  // namespace odecast
