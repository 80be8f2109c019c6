#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/core/calendar.hpp"
#include "odecast/core/matrix.hpp"

namespace odecast {

/// One run of a system: times (increasing) and the state at each, a row per time.
struct Trajectory {
  std::string id;  ///< empty where there is only one
  std::vector<double> times;
  Matrix states;
  Matrix inputs = {};  ///< what drove the system, a row per time; no columns where nothing did
  /// How the times were written, where that is kept (ReadOptions::keep_time_texts); else none.
  std::vector<std::string> time_texts = {};

  int rows() const { return static_cast<int>(times.size()); }
};

/// What drives a system: values of its inputs at increasing times, one column each. Between these
/// they are linear, or held at the last value.
struct InputSignal {
  std::vector<double> times = {};
  Matrix values = {};
};

/// Several runs of one system. No operation of the library mixes rows of different trajectories.
struct Dataset {
  std::vector<std::string> variables = {};
  std::vector<Trajectory> trajectories = {};
  /// For simulated data: the time after which it is not the true solution any more.
  std::optional<double> certified_until = {};
  std::string source = "data";  ///< a file name, for messages
  std::string time_name = "t";
  std::vector<std::string> inputs = {};   ///< names of the input columns
  std::optional<Calendar> calendar = {};  ///< what the times count; nothing: they are numbers

  int dimension() const { return static_cast<int>(variables.size()); }
  long rows() const;
};

/// Names of the columns of times and of ids in a file: time_name and `trajectory`, or others that
/// no variable or input has.
std::string time_column(const Dataset& data);
std::string id_column(const Dataset& data);

/// Early part and late part of every trajectory; the last `fraction` of the rows is held out, at
/// least one. Throws Error (data) when a part would be empty.
struct Split {
  Dataset train, test;
};
Split split_last(const Dataset& data, double fraction);
/// The parts of `data` other than `block` of `blocks`, and that one. No trajectory of either goes
/// across a cut.
Split hold_out(const Dataset& data, int block, int blocks);

/// The trajectory with that id; the last one for an empty id. Throws Error (usage).
const Trajectory& find_trajectory(const Dataset& data, const std::string& id);

/// What a noise of `factor` is taken relative to.
enum class NoiseOf {
  sd,   ///< each variable's standard deviation
  rms,  ///< the root mean square over all variables and rows, as in the SINDy papers
};
Vector noise_level(const Dataset& data, double factor, NoiseOf of);

/// Adds independent Gaussian noise. `standard_deviation` has one entry per variable.
void add_noise(Dataset& data, const Vector& standard_deviation, std::uint64_t seed);

/// Whether values in that range count as constant: they differ by no more than a few digits of
/// round-off, 10^-12 of their size. The one rule: what is constant is not scaled, moves no equation
/// and has no sd.
bool is_constant(double smallest, double largest);

/// Mean and standard deviation (over rows, dividing by their number) of each variable; 0 for one
/// that is constant but for round-off.
struct Spread {
  Vector mean, sd;
};
Spread spread(const Dataset& data);
/// Root mean square of each variable.
Vector root_mean_square(const Dataset& data);

}  // namespace odecast
