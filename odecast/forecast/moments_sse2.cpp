#include "odecast/forecast/moments_kernel.hpp"

void odecast::add_moments_sse2(const MomentsJob& job) { add_moments(job); }
