#pragma once

// Long work in units. Each is computed alone, kept in a file, and found there when interrupted work
// goes on.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
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

/// A folder of work, for one process at a time: FOLDER/units holds the units, `settings`, and
/// `lock`, on which an advisory lock (flock) rests as long as the claim lives and which names its
/// process and host. The system takes the lock off when a process dies.
class FolderClaim {
 public:
  FolderClaim() = default;
  /// For work with these settings, whose first word is "odecast". Throws before anything is
  /// touched: Error (usage) for a folder that is neither new, empty nor ours, or holds work of
  /// other settings; Error (file) for one that another process works in. What killed work left
  /// behind in `units`, and nothing else, is removed.
  FolderClaim(const std::filesystem::path& folder, const std::string& settings);
  FolderClaim(FolderClaim&& other) noexcept : lock_(std::exchange(other.lock_, -1)) {}
  FolderClaim& operator=(FolderClaim&& other) noexcept {
    std::swap(lock_, other.lock_);
    return *this;
  }
  ~FolderClaim();

 private:
  int lock_ = -1;
};

struct WorkOptions {
  std::filesystem::path folder;  ///< the units are in its folder `units`
  std::string settings;          ///< what the units depend on; work goes on only with the same
  std::string activity;          ///< for the observer
  int threads = 1;
};

struct Work {
  UnitResults results;
  int found = 0;      ///< done by an earlier run
  FolderClaim claim;  ///< for what is written beside the units
};

/// Runs the units that the folder does not hold, the longest first. The results do not depend on
/// the number of threads or on interruptions. Throws as FolderClaim does, and Error (data) for a
/// unit that was changed.
Work run_units(std::vector<Unit> units, const WorkOptions& options, const Observer& observer);

/// As JSON with the hash of the settings, sealed by a checksum; reading gives back the same bits.
/// Throws Error (data) for a text that is no unit of these settings, or was changed.
std::string format_values(const Values& values, const std::string& settings);
Values parse_values(const std::string& text, const std::string& settings,
                    const std::string& source);

}  // namespace odecast
