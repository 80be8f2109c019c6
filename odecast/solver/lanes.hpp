#pragma once

#include <vector>

#include "odecast/solver/solve.hpp"
#include "odecast/solver/trajectory_end.hpp"

namespace odecast {

/// Many polynomial initial value problems that share start time, output times and basis, each with
/// its own coefficients and start; behind the monomials functions where there are any, with
/// numbers inside. Member i gives the bits that solve() gives for it alone.
struct LaneProblems {
  const MonomialBasis* basis = nullptr;
  double t0 = 0;
  std::span<const double> times;     ///< increasing, the first after t0
  std::vector<double> coefficients;  ///< member × variable × term
  std::vector<double> starts;        ///< member × variable
  const FunctionTerms* functions = nullptr;
  std::vector<double> numbers = {};  ///< member × number: z of those inside functions
};

/// Integrates all of them with rk45, eight at a time: each lane has its own time and step, and a
/// lane that is done or has blown up takes the next member at once. `options.method` must be rk45.
/// `states` has room for member × variable × lane_stride(times); in each row the first
/// `ends[member].outputs` count.
void solve_lanes(const LaneProblems& problems, const SolverOptions& options, double* states,
                 std::span<TrajectoryEnd> ends);

}  // namespace odecast
