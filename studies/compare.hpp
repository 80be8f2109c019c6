#pragma once

// Which posterior when: the posteriors beside each other over systems and noise.

#include <filesystem>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/core/work.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast {

/// Polynomial flows of the catalogue with chaos, all of degree 2.
extern const std::vector<std::string> kComparedSystems;

struct CompareOptions {
  std::vector<std::string> systems = kComparedSystems;
  std::vector<double> noises = {0, 0.01, 0.05, 0.1};  ///< sd over each variable's sd
  int rows = 2000;     ///< learnt from, two of the catalogue's steps apart
  int starts = 200;    ///< that judge, on the attractor
  int held_out = 500;  ///< further ones that calibrate
  double horizon = 5;  ///< of a forecast, in Lyapunov times
  int leads = 20;
  int draws = 100;
  std::uint64_t seed = 1;
  int threads = 1;
};

/// One cell of the comparison: a system, a noise, a method, raw or calibrated bands.
struct CompareCell {
  std::string system;
  double noise = 0;
  std::string method;
  bool calibrated = false;
  bool fitted = false;                               ///< else there are no numbers
  double setting = 0;                                ///< the rate, where it is tuned
  Mean coverage = {};                                ///< of the 95 % band, over leads and variables
  double width = 0, interval_score = 0, energy = 0;  ///< in units of each variable's sd
  double valid =
      0;  ///< median valid time (error below 0.5 sd), in Lyapunov times; at most the horizon
  double without = 0;  ///< share of the starts without a forecast
  double seconds = 0;  ///< of the fit
};

struct MethodComparison {
  std::vector<CompareCell> cells;
  int units = 0, found = 0;
};

/// For each system and noise: rows of one noisy trajectory, each method's fit of them, forecasts
/// from known starts on the attractor that are judged against the true solution, bands as they are
/// and after conformal calibration on other starts. The rate of "dropout, r tuned" is the one of
/// kRates with the least energy score over a hundred of the calibrating starts. Each system is a
/// unit of work, kept in `folder`/units. With `claim` the folder stays claimed for what the caller
/// writes there.
MethodComparison compare(const std::filesystem::path& folder, const CompareOptions& options,
                         const Observer& observer, FolderClaim* claim = nullptr);

std::string comparison_csv(const MethodComparison& comparison);
/// Summaries over the systems, for each noise and method.
std::string comparison_markdown(const MethodComparison& comparison, const CompareOptions& options);

}  // namespace odecast
