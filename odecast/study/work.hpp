#pragma once

// Long work in units. Each is computed alone, kept in a file, and found there when interrupted work goes on.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "odecast/core/observer.hpp"

namespace odecast {

/// What a unit found, by name.
struct Values {
  std::map<std::string, double> numbers;
  std::map<std::string, std::vector<double>> curves;
};

struct Unit {
  std::string key;  ///< a file name
  double cost;      ///< roughly in seconds
  std::function<Values(const Observer&)> run;
};

using UnitResults = std::map<std::string, Values>;

/// Throws Error (file) where the folder cannot be made.
void make_folder(const std::filesystem::path& folder);

struct WorkOptions {
  std::filesystem::path folder;  ///< of the units' files
  std::string settings;          ///< what the units depend on; work goes on only with the same
  std::string activity;          ///< for the observer
  int threads = 1;
};

struct Work {
  UnitResults results;
  int found = 0;  ///< done by an earlier run
};

/// Runs the units that the folder does not hold, the longest first. The results do not depend on the number of threads or on
/// interruptions. Throws Error (usage) when the folder holds units of other settings.
Work run_units(std::vector<Unit> units, const WorkOptions& options, const Observer& observer);

/// As JSON; reading gives back the same bits. Throws Error (data) for a text that is no unit.
std::string format_values(const Values& values);
Values parse_values(const std::string& text, const std::string& source);

}  // namespace odecast
