#pragma once

#include <vector>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// Running mean and variance of trajectories at fixed output times, in one pass and constant
/// memory. A trajectory may end early; each time counts those that reached it.
///   add (Welford 1962, West 1979):  N <- N + w, δ = x - μ, μ <- μ + δ w/N, S <- S + w δ (x - μ)
///   merge (Chan, Golub, LeVeque 1979):  δ = μ_b - μ_a, μ = μ_a + δ N_b/N,
///     S = S_a + S_b + δ² N_a N_b/N
/// The result depends on the order of the calls only, never on threads.
class RunningMoments {
 public:
  RunningMoments(int variables, int times);

  /// `states` is variable × stride; the first `outputs` times count.
  void add(const double* states, int stride, int outputs, double weight = 1);
  void merge(const RunningMoments& other);

  /// Sum of the weights of those that reached the time.
  double count(int time) const { return counts_[static_cast<std::size_t>(time)]; }
  double mean(int variable, int time) const { return means_[at(variable, time)]; }
  /// With divisor N - 1, for draws; NaN for fewer than two.
  double sd(int variable, int time) const;
  /// With divisor N, for weights that are probabilities.
  double exact_sd(int variable, int time) const;

 private:
  std::size_t at(int variable, int time) const {
    return static_cast<std::size_t>(variable) * static_cast<std::size_t>(times_) +
           static_cast<std::size_t>(time);
  }
  int variables_, times_;
  std::vector<double> counts_, share_;   // time; share: w/N of the trajectory being added
  std::vector<double> means_, squares_;  // variable × time
};

}  // namespace odecast
