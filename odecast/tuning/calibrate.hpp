#pragma once

#include "odecast/learning/fit.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast {

/// Learns from all but the last `holdout` of each trajectory and calibrates on that: 200 starts, 20
/// leads up to a quarter of the longest held-out part, observations where the model knows their
/// noise. The model continues from where the held-out rows begin. `judged` gets what was found.
Fit fit_calibrated(const Dataset& data, double holdout, const FitOptions& options,
                   const Observer& observer, Evaluation* judged = nullptr);

}  // namespace odecast
