#pragma once

#include <vector>

#include "odecast/solver/solve.hpp"

namespace odecast {

/// Many polynomial initial value problems that share start time, output times and basis, each with
/// its own coefficients and start. Member i gives the bits that solve() gives for it alone.
struct LaneProblems {
  const MonomialBasis* basis = nullptr;
  double t0 = 0;
  std::span<const double> times;      ///< increasing, the first after t0
  std::vector<double> coefficients;   ///< member × variable × monomial
  std::vector<double> starts;         ///< member × variable
};

struct LaneSolutions {
  std::vector<double> states;  ///< member × variable × time
  struct End {
    SolveStatus status = SolveStatus::finished;
    int outputs = 0;  ///< how many times were reached
    double time = 0;  ///< of the blow-up, or the last output time
    long steps = 0;   ///< accepted and rejected
  };
  std::vector<End> ends;
};

/// Integrates all of them with rk45, eight at a time: each lane has its own time and step, and a
/// lane that is done or has blown up takes the next member at once. `options.method` must be rk45.
/// Buffers in `solutions` are reused.
void solve_lanes(const LaneProblems& problems, const SolverOptions& options,
                 LaneSolutions& solutions);

}  // namespace odecast
