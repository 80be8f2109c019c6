#include "odecast/solver/lane_kernel.hpp"

void odecast::run_lanes_sse2(const LaneJob& job) { run_lanes(job); }
