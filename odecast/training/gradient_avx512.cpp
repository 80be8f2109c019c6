#include "odecast/training/gradient_kernel.hpp"

void odecast::run_gradient_avx512(GradientJob& job) { run_gradient(job); }
