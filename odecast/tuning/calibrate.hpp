#pragma once

#include "odecast/learning/fit.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast {

/// Learns from all rows, with bands calibrated on rows that are held out. One part after another of
/// the rows, each `holdout` of them, is held out and foretold by what the others teach: 200 starts
/// in all, 20 leads up to a quarter of a part. A start is what a smoother without
/// equations makes of the rows up to it (smooth, weigh_by_noise), the truth what it makes of those
/// behind it, each with the sd that it gives them, which the score takes off
/// (EvaluateOptions::truth_sd). The factors are those of models of fewer rows: of the
/// model that results the bands are rather too wide. `judged` gets what was found.
///
/// Of maps, embeddings and rows with missing values the last part alone, the model is that of the
/// rows before it, and truth and starts are rows, with their noise where the model knows it.
Fit fit_calibrated(const Dataset& data, double holdout, const FitOptions& options,
                   const Observer& observer, Evaluation* judged = nullptr);

}  // namespace odecast
