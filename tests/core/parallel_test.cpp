#include "odecast/core/parallel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace odecast {
namespace {

TEST(ParallelTest, EveryItemRunsOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    std::vector<int> counts(1000);
    parallel_for(threads, counts.size(), [&](std::size_t i) { ++counts[i]; });
    EXPECT_EQ(counts, std::vector<int>(1000, 1)) << threads;
  }
  parallel_for(4, 0, [](std::size_t) { FAIL(); });
}

TEST(ParallelTest, AnExceptionStopsTheRestAndArrives) {
  for (const int threads : {1, 4})
    EXPECT_THROW(parallel_for(threads, 100'000,
                              [](std::size_t i) {
                                if (i == 17) throw std::runtime_error("x");
                              }),
                 std::runtime_error);
}

TEST(ParallelTest, BetweenRunsOnTheCallingThreadAndMayStop) {
  const auto caller = std::this_thread::get_id();
  parallel_for(
      4, 100, [](std::size_t) {},
      [&](std::size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  EXPECT_THROW(
      parallel_for(
          1, 100, [](std::size_t) {}, [](std::size_t) { throw std::runtime_error("stop"); }),
      std::runtime_error);
}

// Every item runs until it is stopped: without the pulse this would not end.
TEST(ParallelTest, APulseStopsItemsThatTakeLong) {
  const auto caller = std::this_thread::get_id();
  for (const int threads : {1, 2, 8}) {
    int calls = 0;
    const auto stop = [&](std::size_t) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      if (++calls == 1000) throw std::runtime_error("stop");
    };
    EXPECT_THROW(parallel_for(
                     threads, 100,
                     [](std::size_t) {
                       for (;;) pulse();
                     },
                     stop),
                 std::runtime_error);
  }
  pulse();  // nothing outside
}

// The calling thread has had its only item: the other one is stopped all the same.
TEST(ParallelTest, ItWatchesWhileItWaitsForOthers) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> other_runs{false};
  EXPECT_THROW(parallel_for(
                   2, 2,
                   [&](std::size_t) {
                     if (std::this_thread::get_id() != caller)
                       for (other_runs = true;;) pulse();
                     while (!other_runs) std::this_thread::yield();
                   },
                   [&, calls = 0](std::size_t) mutable {
                     if (++calls == 3) throw std::runtime_error("stop");
                   }),
               std::runtime_error);
}

// The item is a loop of its own, on one thread and on two: a pulse inside it reaches the loop
// around.
TEST(ParallelTest, APulseReachesTheLoopAround) {
  for (const int threads : {1, 2}) {
    int calls = 0;
    const auto inner = [](std::size_t) {
      for (;;) pulse();
    };
    EXPECT_THROW(parallel_for(
                     threads, 4, [&](std::size_t) { parallel_for(threads, 4, inner); },
                     [&](std::size_t) {
                       if (++calls == 1000) throw std::runtime_error("stop");
                     }),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace odecast
