#include "odecast/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace odecast {

int default_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

namespace {

struct Stopped {};  // by the failure of another thread; never leaves parallel_for

/// What pulse() does on this thread.
thread_local const std::function<void()>* current_pulse = nullptr;

/// Puts the pulse of an outer loop back.
class PulseScope {
 public:
  PulseScope(const std::function<void()>& now, const std::function<void()>* outer) : outer_(outer) { current_pulse = &now; }
  ~PulseScope() { current_pulse = outer_; }

 private:
  const std::function<void()>* outer_;
};

}  // namespace

void pulse() {
  if (current_pulse) (*current_pulse)();
}

void parallel_for(int threads, std::size_t count, const std::function<void(std::size_t)>& body,
                  const std::function<void(std::size_t)>& between) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  std::atomic<bool> failed{false};
  const auto work = [&](bool calling_thread) {
    const std::function<void()>* const outer = current_pulse;  // of the loop whose item this loop is part of
    const std::function<void()> on_pulse = [&, calling_thread, outer] {
      if (failed.load(std::memory_order_relaxed)) throw Stopped();
      if (calling_thread) between(std::min(count, next.load(std::memory_order_relaxed)));
      if (outer) (*outer)();
    };
    const PulseScope scope(on_pulse, outer);
    try {
      for (;;) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        body(i);
        on_pulse();
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
      failed = true;
    }
  };
  {
    std::vector<std::jthread> others;
    const auto wanted = std::min(static_cast<std::size_t>(std::max(threads, 1)), count);
    for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(work, false);
    work(true);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace odecast
