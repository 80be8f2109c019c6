#include "odecast/forecast/moments.hpp"

#include <cassert>
#include <cmath>
#include <limits>

namespace odecast {

RunningMoments::RunningMoments(int variables, int times)
    : variables_(variables),
      times_(times),
      counts_(static_cast<std::size_t>(times)),
      share_(static_cast<std::size_t>(times)),
      means_(static_cast<std::size_t>(variables) * static_cast<std::size_t>(times)),
      squares_(means_.size()) {}

void RunningMoments::add(const double* states, int outputs, double weight) {
  assert(outputs <= times_);
  for (int t = 0; t < outputs; ++t) {
    counts_[static_cast<std::size_t>(t)] += weight;
    share_[static_cast<std::size_t>(t)] = weight / counts_[static_cast<std::size_t>(t)];
  }
  const double* share = share_.data();
  for (int v = 0; v < variables_; ++v) {
    const double* x = states + at(v, 0);
    double *mean = means_.data() + at(v, 0), *square = squares_.data() + at(v, 0);
    for (int t = 0; t < outputs; ++t) {
      const double delta = x[t] - mean[t];
      mean[t] += delta * share[t];
      square[t] += weight * delta * (x[t] - mean[t]);
    }
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
