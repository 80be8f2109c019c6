#pragma once

#include <functional>
#include <string_view>

namespace odecast {

/// Called now and then by anything that may take long, always from the calling thread.
/// `fraction` runs from 0 to 1. The observer may throw Interrupted; the work then stops and
/// nothing is written.
using Observer = std::function<void(std::string_view what, double fraction)>;

/// The observer of callers that do not care.
inline void ignore_progress(std::string_view, double) {}

}  // namespace odecast
