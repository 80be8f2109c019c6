#include "odecast/forecast/moments_kernel.hpp"

void odecast::add_moments_avx2(const MomentsJob& job) { add_moments(job); }
