#pragma once

namespace odecast {

enum class SolveStatus;

/// How a trajectory ended.
struct TrajectoryEnd {
  SolveStatus status = {};
  int outputs = 0;  ///< how many times were reached
  double time = 0;  ///< of the blow-up, or the last output time
  long steps = 0;   ///< accepted and rejected
};

/// What the lane kernels see: plain numbers and pointers, so that they need nothing from the
/// standard library.
struct LaneJob {
  int variables, monomials, outputs, members;
  const int *parent, *variable;
  const double* times;  ///< and eight more that count for nothing: they are read in packs
  const double *coefficients, *starts;
  double t0, rtol, atol, first_step, max_step, bound;
  long max_steps;
  double* states;  ///< member × variable × lane_stride(outputs)
  TrajectoryEnd* ends;
  double* work;     ///< lane_work_size() doubles, aligned to 64 bytes
  void (*pulse)();  ///< called every few hundred steps; may throw
};

/// Output rows have room for the rest of a pack that begins at the last output.
constexpr int lane_stride(int outputs) { return (outputs + 14) / 8 * 8; }

constexpr long lane_work_size(int n, int monomials) {
  return 8L * (14L * n + static_cast<long>(n) * monomials + monomials) + 3L * n;
}

void run_lanes_sse2(const LaneJob& job);
void run_lanes_avx2(const LaneJob& job);
void run_lanes_avx512(const LaneJob& job);

}  // namespace odecast
