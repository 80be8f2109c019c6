#include "odecast/training/gradient_kernel.hpp"
#include "odecast/training/pattern_kernel.hpp"

void odecast::run_gradient_sse2(GradientJob& job) { run_gradient(job); }
void odecast::run_masks_sse2(const MaskJob& job) { run_masks(job); }
void odecast::run_patterns_sse2(PatternJob& job) { run_patterns(job); }
void odecast::run_normals_sse2(const NormalJob& job) { run_normals(job); }
