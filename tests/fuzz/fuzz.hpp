#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "odecast/observations/dataset.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace odecast::fuzz {

/// Ends the program, which the fuzzer reports, where a promise about read data does not hold.
inline void require(bool holds) {
  if (!holds) std::abort();
}

/// At the top of a target: one input takes at most a second. Of the processor's time, since that of
/// the clock depends on what else the machine does; the fuzzer's own limit is there for what never
/// ends.
struct SecondAtMost {
  std::clock_t begin = std::clock();
  ~SecondAtMost() { require(std::clock() - begin < CLOCKS_PER_SEC); }
};

inline void check(const Dataset& d) {
  require(!d.variables.empty() && !d.trajectories.empty());
  for (const Trajectory& t : d.trajectories) {
    require(t.rows() > 0 && t.states.rows() == t.rows() && t.states.cols() == d.dimension());
    require(t.states.allFinite());
    for (std::size_t i = 0; i < t.times.size(); ++i)
      require(std::isfinite(t.times[i]) && (i == 0 || t.times[i] > t.times[i - 1]));
  }
}

inline void require_same(const Dataset& a, const Dataset& b) {
  require(a.variables == b.variables && a.trajectories.size() == b.trajectories.size());
  for (std::size_t k = 0; k < a.trajectories.size(); ++k) {
    require(a.trajectories[k].times == b.trajectories[k].times);
    require(a.trajectories[k].states == b.trajectories[k].states);
  }
}

}  // namespace odecast::fuzz
