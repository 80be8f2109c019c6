#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "odecast/core/work.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast {

/// One way to fit.
struct Candidate {
  std::string words;  ///< its options of `odecast fit`; others have other words, or are the same
  FitOptions options;
};

struct TuneOptions {
  int blocks = 3;                      ///< each is held out once
  int starts = 60;                     ///< of forecasts, over all blocks
  std::optional<double> horizon = {};  ///< of each; a quarter of a block's time where not given
  int leads = 20;                      ///< times of a forecast that are scored
  int draws = 100;
  /// Of the observations, per variable; estimated where not given.
  std::optional<Vector> noise = {};
  /// What the candidates' options have in common and their words do not say, as one line: a folder
  /// is for one such text.
  std::string shared = {};
  std::uint64_t seed = 1;
  int threads = 1;
};

/// What held-out blocks say of a candidate. Lengths are in units of each variable's standard
/// deviation.
struct TuneRow {
  std::size_t candidate = 0;
  Mean energy;             ///< over starts; persistence's score where a forecast fails
  Mean behind;             ///< its energy score less the best's, from the same starts
  Mean coverage;           ///< of the band for an observation
  Vector crps;             ///< per variable
  double climatology = 0;  ///< its energy score from the same starts
  bool fitted = true;      ///< to every part; else there are no scores
  int failed = 0;          ///< starts without a forecast
};

struct Tuning {
  std::vector<TuneRow> rows;  ///< best first
  double climatology = 0;     ///< its energy score from the starts of the best
  double horizon = 0;
  int starts = 0;
  Vector noise;
  int units = 0, found = 0;  ///< of work; found done from an earlier run
};

/// Cross-validation by blocks: the rows are cut into `blocks` parts in their order; for each
/// candidate and part a model is fitted to the other parts and forecasts from many rows of this
/// one. The truth are observations: starts have their noise, and what is scored is the forecast of
/// an observation by its energy score, which is proper for whole states (Gneiting & Raftery 2007).
/// Each (candidate, part) is kept in `folder`/units; interrupted work goes on there, and further
/// candidates are added to it. Throws Error (data) for blocks shorter than the horizon, and what
/// FolderClaim throws for the folder. With `claim` the folder stays claimed for what the caller
/// writes there.
Tuning tune(const Dataset& data, const std::vector<Candidate>& candidates,
            const std::filesystem::path& folder, const TuneOptions& options,
            const Observer& observer, FolderClaim* claim = nullptr);

}  // namespace odecast
