#pragma once

#include "odecast/core/detail/kernel.hpp"
#include "odecast/field/node.hpp"
#include "odecast/solver/trajectory_end.hpp"

namespace odecast {

/// What the lane kernels see: plain numbers and pointers, so that they need nothing from the
/// standard library.
struct LaneJob {
  int variables, monomials;
  int terms, nodes, numbers;  ///< monomials and functions; of the functions' tape
  int outputs, members;
  const int *parent, *variable;
  const Node* tape;
  const int* roots;     ///< the functions' nodes
  const double* times;  ///< and eight more that count for nothing: they are read in packs
  const double *coefficients, *starts, *number_values;
  double t0, rtol, atol, first_step, max_step, bound;
  long max_steps;
  double* states;  ///< member × variable × lane_stride(outputs)
  TrajectoryEnd* ends;
  double* work;     ///< lane_work_size() doubles, aligned to 64 bytes
  void (*pulse)();  ///< called every few hundred steps; may throw
};

/// `more`: nodes and numbers.
constexpr long lane_work_size(int n, int monomials, int terms, int more) {
  return 8L * (14L * n + static_cast<long>(n) * terms + monomials + more) + 3L * n;
}

ODECAST_KERNEL(run_lanes, const LaneJob)

}  // namespace odecast
