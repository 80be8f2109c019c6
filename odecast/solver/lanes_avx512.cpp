#include "odecast/solver/lane_kernel.hpp"

void odecast::run_lanes_avx512(const LaneJob& job) { run_lanes(job); }
