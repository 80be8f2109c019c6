#pragma once

#include <vector>

namespace odecast {

/// Times start + step, start + 2 step, … up to `until`, the last one exactly `until` when it is a
/// multiple within round-off. Throws Error (usage) for a step or an end out of range.
std::vector<double> regular_times(double start, double until, double step);

}  // namespace odecast
