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

/// Output rows have room for the rest of a pack that begins at the last output.
constexpr int lane_stride(int outputs) { return (outputs + 14) / 8 * 8; }

}  // namespace odecast
