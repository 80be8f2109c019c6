#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "odecast/observations/reading.hpp"

namespace odecast {

/// Observations that can be gone through several times, row by row, without being in memory: a
/// Dataset or a file.
struct ObservationSource {
  /// One row: which trajectory, its time, its state and behind it the inputs. Returns whether to go
  /// on.
  using Visitor = std::function<bool(std::size_t trajectory, double time, const double* state)>;

  std::vector<std::string> variables, inputs;
  std::string name;  ///< for messages
  std::function<void(const Visitor&)> replay;
  /// Ids of the trajectories; complete after a replay.
  std::shared_ptr<std::vector<std::string>> ids = std::make_shared<std::vector<std::string>>();
  /// What was understood of the files; complete after a replay. Of a Dataset its times alone.
  std::shared_ptr<TableInfo> table = std::make_shared<TableInfo>();

  int dimension() const { return static_cast<int>(variables.size()); }
};

/// The data must outlive the source.
ObservationSource source_of(const Dataset& data);
/// Files that can be read more than once. Each replay reads them again; with `sort` or
/// `duplicates`, or from a pipe, they are read once and kept.
ObservationSource source_of_files(const std::vector<std::filesystem::path>& paths,
                                  const ReadOptions& options);

/// Its first rows in memory, at most so many.
Dataset dataset_of(const ObservationSource& source, long rows = std::numeric_limits<long>::max());

/// The inputs as further variables behind the state's, and with `with_time` the time as the last
/// one, named `time_name`.
ObservationSource with_inputs(const ObservationSource& source, bool with_time,
                              const std::string& time_name = "t");

/// What one pass over the rows tells. A value that is not finite is missing; of a column without
/// values nothing is known, NaN.
struct ObservationSummary {
  long rows = 0, trajectories = 0;
  std::vector<long> trajectory_rows = {};  ///< of each trajectory
  double first_time = 0, latest_time = 0;  ///< over all trajectories

  // Of each variable, by the values that are there. Means and squares by Welford's formulas.
  std::vector<long> missing = {};
  Vector mean, sd;  ///< divisor: the number of values
  Vector smallest, largest;
  Vector rms;                       ///< root mean square
  Vector rms_slope;                 ///< of (u_{i+1} - u_i) / (t_{i+1} - t_i)
  std::vector<bool> constant = {};  ///< is_constant
  long values(Eigen::Index i) const { return rows - missing[static_cast<std::size_t>(i)]; }

  // Sampling, within trajectories. A gap is a step of more than 1.5 times the median one.
  long pairs = 0;                              ///< of neighbouring rows
  double step = 0;                             ///< median of the first 10,000
  double smallest_step = 0, largest_step = 0;  ///< without gaps
  long gaps = 0;
  double largest_gap = 0;
  bool even = false;  ///< all steps but gaps equal to a millionth
  std::vector<double>
      spacings;  ///< usual spacing of each trajectory: the median of its first 32; 0 for one row

  std::size_t last_trajectory = 0;  ///< the last one to begin
  double last_time = 0;             ///< its last row
  Vector last_state;
  std::vector<double> late_times;  ///< its last rows, up to 200
  Matrix late_states;
};
/// Throws Error (data) where squares of a column overflow.
ObservationSummary summarise(const ObservationSource& source);

}  // namespace odecast
