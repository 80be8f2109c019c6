#include "odecast/training/gradient_kernel.hpp"
#include "odecast/training/pattern_kernel.hpp"

void odecast::run_gradient_avx512(GradientJob& job) { run_gradient(job); }
void odecast::run_masks_avx512(const MaskJob& job) { run_masks(job); }
void odecast::run_patterns_avx512(PatternJob& job) { run_patterns(job); }
void odecast::run_normals_avx512(const NormalJob& job) { run_normals(job); }
