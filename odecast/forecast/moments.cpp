#include "odecast/forecast/moments.hpp"

#include <cassert>
#include <cmath>
#include <limits>

#include "odecast/forecast/detail/moments_job.hpp"

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
  add_moments({.variables = variables_,
               .outputs = outputs,
               .x_stride = stride,
               .stride = times_,
               .weight = weight,
               .x = states,
               .count = counts_.data(),
               .share = share_.data(),
               .mean = means_.data(),
               .square = squares_.data()});
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
