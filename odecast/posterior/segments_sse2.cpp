#include "odecast/posterior/segment_kernel.hpp"

void odecast::run_segments_sse2(const SegmentJob& job) { run_segments(job); }
