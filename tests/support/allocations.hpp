#pragma once

// Counts every malloc of the program that includes this, operator new and Eigen's included. To be
// included by one source file of a program. Sanitizers have a malloc of their own: nothing is
// counted under them.

#include <atomic>
#include <cstddef>
#include <functional>

namespace odecast {

inline std::atomic<long> allocations{0};

inline long allocations_of(const std::function<void()>& action) {
  const long before = allocations;
  action();
  return allocations - before;
}

#ifdef ODECAST_SANITIZED
inline constexpr bool allocations_are_counted = false;
#else
inline constexpr bool allocations_are_counted = true;
#endif

}  // namespace odecast

#ifndef ODECAST_SANITIZED
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* malloc(std::size_t size) {
  ++odecast::allocations;
  return __libc_malloc(size);
}
#endif
