#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "odecast/observations/reading.hpp"

namespace odecast {

/// Observations that can be gone through several times, row by row, without being in memory: a
/// Dataset or a file.
struct ObservationSource {
  /// One row: which trajectory, its time, its state and behind it the inputs.
  using Visitor = std::function<void(std::size_t trajectory, double time, const double* state)>;

  std::vector<std::string> variables, inputs;
  std::string name;  ///< for messages
  std::function<void(const Visitor&)> replay;
  /// Ids of the trajectories; complete after a replay.
  std::shared_ptr<std::vector<std::string>> ids = std::make_shared<std::vector<std::string>>();
  /// What was understood of the files; complete after a replay. Nothing of a Dataset.
  std::shared_ptr<TableInfo> table = std::make_shared<TableInfo>();

  int dimension() const { return static_cast<int>(variables.size()); }
};

/// The data must outlive the source.
ObservationSource source_of(const Dataset& data);
/// Files that can be read more than once. Each replay reads them again; with `sort` or
/// `duplicates`, or from a pipe, they are read once and kept.
ObservationSource source_of_files(const std::vector<std::filesystem::path>& paths,
                                  const ReadOptions& options);

/// All of its rows, in memory.
Dataset dataset_of(const ObservationSource& source);

/// The inputs as further variables behind the state's, and with `with_time` the time as the last
/// one, named `time_name`.
ObservationSource with_inputs(const ObservationSource& source, bool with_time,
                              const std::string& time_name = "t");

/// What one pass over the rows tells. Means and squares by Welford's formulas.
struct ObservationSummary {
  long rows = 0, trajectories = 0;
  long pairs = 0;   ///< of neighbours in a trajectory
  Vector mean, sd;  ///< of each variable; divisor: the number of rows
  Vector smallest, largest;
  Vector rms;        ///< root mean square
  Vector rms_slope;  ///< root mean square of (u_{i+1} - u_i) / (t_{i+1} - t_i)
  double step = 0;   ///< median spacing of the first 10,000 pairs
  std::vector<double>
      spacings;  ///< usual spacing of each trajectory: the median of its first 32; 0 for one row
  std::size_t last_trajectory = 0;  ///< the last one to begin
  double last_time = 0;             ///< its last row
  Vector last_state;
  std::vector<double> late_times;  ///< its last rows, up to 200
  Matrix late_states;
};
ObservationSummary summarise(const ObservationSource& source);

}  // namespace odecast
