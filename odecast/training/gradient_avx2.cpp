#include "odecast/training/gradient_kernel.hpp"

void odecast::run_gradient_avx2(GradientJob& job) { run_gradient(job); }
