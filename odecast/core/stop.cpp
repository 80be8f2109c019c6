#include "odecast/core/stop.hpp"

#include <atomic>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

std::atomic<int> requested{0};
static_assert(std::atomic<int>::is_always_lock_free);  // what makes it safe in a handler

}  // namespace

void request_stop(int signal) noexcept { requested = signal; }

int stop_requested() noexcept { return requested; }

void throw_if_stopped() {
  if (const int signal = stop_requested(); signal != 0) throw Interrupted(signal);
}

}  // namespace odecast
