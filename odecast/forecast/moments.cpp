#include "odecast/forecast/moments.hpp"

#include <cassert>
#include <cmath>
#include <limits>

#include "odecast/core/isa.hpp"
#include "odecast/forecast/moments_kernel.hpp"

namespace odecast {

RunningMoments::RunningMoments(int variables, int times)
    : variables_(variables),
      times_(times),
      counts_(static_cast<std::size_t>(times)),
      share_(static_cast<std::size_t>(times)),
      means_(static_cast<std::size_t>(variables) * static_cast<std::size_t>(times)),
      squares_(means_.size()) {}

void RunningMoments::add(const double* states, int stride, int outputs, double weight) {
  assert(outputs <= times_);
  const MomentsJob job{variables_, outputs,        stride,        times_,        weight,
                       states,     counts_.data(), share_.data(), means_.data(), squares_.data()};
  switch (active_isa()) {
    case Isa::sse2: return add_moments_sse2(job);
    case Isa::avx2: return add_moments_avx2(job);
    case Isa::avx512: return add_moments_avx512(job);
  }
}

void RunningMoments::merge(const RunningMoments& other) {
  assert(other.variables_ == variables_ && other.times_ == times_);
  for (int v = 0; v < variables_; ++v) {
    for (int t = 0; t < times_; ++t) {
      const double na = count(t), nb = other.count(t), n = na + nb;
      if (nb == 0) continue;
      const std::size_t i = at(v, t);
      const double delta = other.means_[i] - means_[i];
      means_[i] += delta * (nb / n);
      squares_[i] += other.squares_[i] + delta * delta * (na * (nb / n));
    }
  }
  for (int t = 0; t < times_; ++t)
    counts_[static_cast<std::size_t>(t)] += other.counts_[static_cast<std::size_t>(t)];
}

double RunningMoments::sd(int variable, int time) const {
  const double n = count(time);
  if (n < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::sqrt(squares_[at(variable, time)] / (n - 1));
}

double RunningMoments::exact_sd(int variable, int time) const {
  return std::sqrt(squares_[at(variable, time)] / count(time));
}

}  // namespace odecast
