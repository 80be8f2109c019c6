#include "odecast/training/gradient_kernel.hpp"

void odecast::run_gradient_avx512(GradientJob& job) { run_gradient(job); }
void odecast::run_masks_avx512(const MaskJob& job) { run_masks(job); }
