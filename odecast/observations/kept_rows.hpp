#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "odecast/observations/dataset.hpp"

namespace odecast {

/// What a model keeps of the rows that it learns from: enough to draw a forecast after them, and to
/// tell them when it meets them again.
struct KeptRows {
  double from = 0, until = 0;  ///< the times of all rows
  /// The least and the greatest value of each variable in all rows, user's units; empty in files of
  /// old, and where a variable has none.
  Vector low = {}, high = {};
  /// The smallest of the hashes of all rows, increasing: those of a random sample, which any other
  /// rows can be compared with (a bottom-k sketch, Cohen & Kaplan 2007). All of them where there
  /// are fewer than kSketch.
  std::vector<std::uint64_t> hashes = {};
  /// Rows of the last trajectory, user's units, values to six digits: the last so many, before them
  /// every 2nd, 4th, … of as many each. Missing values are NaN.
  std::vector<double> times = {};
  Matrix states = {};
  /// A random sample of all rows without missing values, those of the smallest hashes: where the
  /// data have been. User's units, six digits; all of few, none where no rows are kept.
  Matrix sample = {};
};

inline constexpr std::size_t kSketch = 32, kKeptSample = 128;

/// How far a state is from the rows that were kept, by two lengths in units of `sd` (Euclidean over
/// variables that move): to the nearest of the sample, and the greatest that a row of the sample
/// has to the nearest of the others. A state drawn as the rows were is farther than that with
/// probability 1 in the number of rows at most. Nothing where fewer than ten are kept.
struct DistanceFromRows {
  double nearest = 0, usual = 0;
};
std::optional<DistanceFromRows> distance_from(const KeptRows& kept, const Vector& state,
                                              const Vector& sd);

/// Makes KeptRows of rows that come one after another, in memory that grows with the logarithm of
/// their number.
class RowKeeper {
 public:
  /// `recent`: rows of the last trajectory that are kept before any is left out; 0: none.
  RowKeeper(int variables, int recent) : variables_(variables), recent_(recent) {}

  /// A row of a trajectory; only the variables are looked at.
  void add(std::size_t trajectory, double time, const double* state);
  KeptRows kept() const;

 private:
  /// The last rows among those whose number is a multiple of 2^level, in a ring.
  struct Level {
    long seen = 0;
    std::vector<double> times = {};
    std::vector<double> states = {};
  };
  int variables_, recent_;
  bool any_ = false;
  double from_ = 0, until_ = 0;
  Vector low_ = {}, high_ = {};
  std::size_t last_ = 0;  ///< trajectory
  long rows_ = 0;         ///< of it
  std::array<Level, 40> levels_ = {};
  std::vector<std::uint64_t> hashes_ = {};  ///< increasing
  std::map<std::uint64_t, std::vector<double>> sample_ = {};
};

/// The share of the rows that are among those kept of, by the sketch; 0 where none of them belongs
/// to the sample, or a variable is not there.
double share_kept(const KeptRows& kept, const std::vector<std::string>& variables,
                  const Dataset& rows);

}  // namespace odecast
