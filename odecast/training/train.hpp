#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/derivatives/derivatives.hpp"
#include "odecast/network/network.hpp"

namespace odecast {

enum class OptimiserKind { adam, sgd };

/// Some steps at one learning rate.
struct Phase {
  int steps;
  double rate;
};

/// Algorithm 1 of the paper. The defaults are the paper's schedule.
struct TrainOptions {
  OptimiserKind optimiser = OptimiserKind::adam;
  /// How often the targets R ~ N(f_γ, σ_γ) are drawn anew. Adam's moments are kept throughout.
  int batches = 1000;
  /// What is done for each batch.
  std::vector<Phase> schedule = {{10, 0.01}, {100, 0.001}};
  /// B of eq. jWithAllApprox. Σ_b |g_b - f|² differs from B |ḡ - f|² by a constant, so the mean of
  /// the B samples is trained on.
  int noise_samples = 1;
  /// K of eq. dropoutKApprox: masks averaged in every step.
  int masks = 1;
  /// One mask for all rows of a step instead of one for each row: the same expected gradient, with
  /// far more noise.
  bool mask_per_batch = false;
  std::uint64_t seed = 1;
  int threads = 1;
  std::optional<double> budget =
      {};  ///< seconds after which the schedule is left; it is its own bound otherwise
};

enum class TrainStatus {
  schedule_done,  ///< every step of the schedule was taken
  stopped,        ///< by the budget, before that
  diverged,       ///< the loss or a weight stopped being finite
};

struct TrainSummary {
  TrainStatus status = TrainStatus::schedule_done;
  std::string reason;
  long iterations = 0;
  double seconds = 0;
  /// The sampled loss of the last step of each batch.
  std::vector<double> history;
};

/// Trains `network` in place on the rows; all rows count alike. Same seed, same bits for any number
/// of threads. Throws Error (usage) for options out of range.
TrainSummary train(Network& network, const DerivativeRows& rows, const TrainOptions& options,
                   const Observer& observer);

}  // namespace odecast
