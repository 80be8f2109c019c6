#include "odecast/posterior/segment_kernel.hpp"

void odecast::run_segments_avx512(const SegmentJob& job) { run_segments(job); }
