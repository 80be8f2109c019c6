#include "odecast/training/gradient_kernel.hpp"

void odecast::run_gradient_sse2(GradientJob& job) { run_gradient(job); }
void odecast::run_masks_sse2(const MaskJob& job) { run_masks(job); }
