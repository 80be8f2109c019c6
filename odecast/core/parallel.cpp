#include "odecast/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace odecast {

int default_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

namespace {

struct Stopped {};  // by the failure of another thread; never leaves parallel_for

/// What pulse() does on this thread.
thread_local const std::function<void()>* current_pulse = nullptr;

/// Puts the pulse of an outer loop back.
class PulseScope {
 public:
  PulseScope(const std::function<void()>& now, const std::function<void()>* outer) : outer_(outer) {
    current_pulse = &now;
  }
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
  std::mutex mutex;
  std::exception_ptr failure;      // under the mutex
  std::size_t others_at_work = 0;  // under the mutex
  std::condition_variable one_left;
  std::atomic<bool> failed{false};
  const auto fail = [&] {
    next = count;
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::current_exception();
    failed = true;
  };
  const auto work = [&](bool calling_thread) {
    const std::function<void()>* const outer =
        current_pulse;  // of the loop whose item this loop is part of
    const std::function<void()> on_pulse = [&, calling_thread, outer] {
      if (failed.load(std::memory_order_relaxed)) throw Stopped();
      if (calling_thread) between(std::min(count, next.load(std::memory_order_relaxed)));
      if (outer) (*outer)();
    };
    const PulseScope scope(on_pulse, outer);
    try {
      for (;;) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) break;
        body(i);
        on_pulse();
      }
      // Nothing left but what others have begun: they are waited for with open eyes.
      while (calling_thread) {
        {
          std::unique_lock lock(mutex);
          if (one_left.wait_for(lock, std::chrono::milliseconds(50),
                                [&] { return others_at_work == 0; }))
            break;
        }
        on_pulse();
      }
    } catch (...) {
      fail();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto wanted = std::min(static_cast<std::size_t>(std::max(threads, 1)), count);
    try {
      others.reserve(wanted - std::min<std::size_t>(1, wanted));
      for (std::size_t i = 1; i < wanted; ++i) {
        {
          const std::lock_guard lock(mutex);
          ++others_at_work;
        }
        try {
          others.emplace_back([&] {
            work(false);
            const std::lock_guard lock(mutex);
            --others_at_work;
            one_left.notify_one();
          });
        } catch (
            const std::system_error&) {  // the system gives no more threads: fewer do the same work
          const std::lock_guard lock(mutex);
          --others_at_work;
          break;
        }
      }
    } catch (...) {
      fail();
    }
    work(true);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace odecast
