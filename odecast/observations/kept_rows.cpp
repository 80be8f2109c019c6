#include "odecast/observations/kept_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "odecast/core/encoding.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {
namespace {

/// FNV-1a of the bytes, and the finaliser of SplitMix64 so that every bit counts alike.
std::uint64_t row_hash(double time, std::span<const double> state) {
  const auto bits = [](double x) {
    return std::isnan(x) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(x + 0.0);  // no -0
  };
  std::uint64_t hash = fnv1a({});
  const auto take = [&](double x) {
    const std::uint64_t word = bits(x);
    char bytes[8];
    for (int k = 0; k < 8; ++k) bytes[k] = static_cast<char>(word >> (8 * k));
    hash = fnv1a({bytes, 8}, hash);
  };
  take(time);
  for (const double x : state) take(x);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

double six_digits(double x) {
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  return parse_number(fmt::format("{:.6g}", x)).value_or(x);
}

}  // namespace

void RowKeeper::add(std::size_t trajectory, double time, const double* state) {
  from_ = any_ ? std::min(from_, time) : time;
  until_ = any_ ? std::max(until_, time) : time;
  if (!any_) {
    low_ = Vector::Constant(variables_, std::numeric_limits<double>::infinity());
    high_ = -low_;
  }
  any_ = true;
  for (Eigen::Index i = 0; i < variables_; ++i)
    if (std::isfinite(state[i])) {
      low_[i] = std::min(low_[i], state[i]);
      high_[i] = std::max(high_[i], state[i]);
    }
  const std::uint64_t hash = row_hash(time, {state, static_cast<std::size_t>(variables_)});
  if (hashes_.size() < kSketch || hash < hashes_.back()) {
    const auto at = std::lower_bound(hashes_.begin(), hashes_.end(), hash);
    if (at == hashes_.end() || *at != hash) hashes_.insert(at, hash);
    if (hashes_.size() > kSketch) hashes_.pop_back();
  }
  const auto n = static_cast<std::size_t>(variables_);
  const bool whole = std::all_of(state, state + n, [](double x) { return std::isfinite(x); });
  if (recent_ > 0 && whole && (sample_.size() < kKeptSample || hash < sample_.rbegin()->first)) {
    sample_.try_emplace(hash, state, state + n);
    if (sample_.size() > kKeptSample) sample_.erase(std::prev(sample_.end()));
  }
  if (recent_ == 0 || trajectory < last_) return;
  if (trajectory > last_) {
    levels_.fill({});
    rows_ = 0;
    last_ = trajectory;
  }
  const auto among =
      rows_ == 0
          ? levels_.size()
          : static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(rows_))) + 1;
  for (std::size_t k = 0; k < std::min(among, levels_.size()); ++k) {
    Level& level = levels_[k];
    const auto at = static_cast<std::size_t>(level.seen++ % recent_);
    if (at == level.times.size()) {
      level.times.emplace_back();
      level.states.resize(level.states.size() + n);
    }
    level.times[at] = time;
    std::copy_n(state, n, level.states.begin() + static_cast<std::ptrdiff_t>(at * n));
  }
  ++rows_;
}

KeptRows RowKeeper::kept() const {
  KeptRows kept{.from = from_, .until = until_, .hashes = hashes_};
  if (low_.allFinite()) kept.low = low_, kept.high = high_;
  const auto n = static_cast<std::size_t>(variables_);
  std::vector<double> states;
  // From the latest back; of every level what is older than all of the level below.
  for (const Level& level : levels_)
    for (long s = level.seen - 1; s >= std::max(0L, level.seen - recent_); --s) {
      const auto at = static_cast<std::size_t>(s % recent_);
      if (!kept.times.empty() && level.times[at] >= kept.times.back()) continue;
      kept.times.push_back(level.times[at]);
      for (std::size_t i = 0; i < n; ++i) states.push_back(level.states[at * n + i]);
    }
  std::reverse(kept.times.begin(), kept.times.end());
  const auto rows = static_cast<Eigen::Index>(kept.times.size());
  kept.states.resize(rows, variables_);
  for (Eigen::Index r = 0; r < rows; ++r)
    for (Eigen::Index i = 0; i < variables_; ++i)
      kept.states(rows - 1 - r, i) =
          six_digits(states[static_cast<std::size_t>(r) * n + static_cast<std::size_t>(i)]);
  kept.sample.resize(static_cast<Eigen::Index>(sample_.size()), variables_);
  Eigen::Index at = 0;
  for (const auto& [hash, row] : sample_) {
    for (Eigen::Index i = 0; i < variables_; ++i)
      kept.sample(at, i) = six_digits(row[static_cast<std::size_t>(i)]);
    ++at;
  }
  return kept;
}

std::optional<DistanceFromRows> distance_from(const KeptRows& kept, const Vector& state,
                                              const Vector& sd) {
  constexpr Eigen::Index kFewest = 10;
  const Eigen::Index rows = kept.sample.rows();
  if (rows < kFewest || kept.sample.cols() != state.size() || sd.size() != state.size())
    return std::nullopt;
  const Vector weight = (sd.array() > 0).select(sd.cwiseInverse(), 0);
  const auto apart = [&](const Vector& a, Eigen::Index j) {
    return (a - kept.sample.row(j).transpose()).cwiseProduct(weight).norm();
  };
  constexpr double kNone = std::numeric_limits<double>::infinity();
  DistanceFromRows d{kNone, 0};
  for (Eigen::Index j = 0; j < rows; ++j) {
    d.nearest = std::min(d.nearest, apart(state, j));
    const Vector row = kept.sample.row(j).transpose();
    double nearest = kNone;
    for (Eigen::Index k = 0; k < rows; ++k)
      if (k != j) nearest = std::min(nearest, apart(row, k));
    d.usual = std::max(d.usual, nearest);
  }
  return d;
}

double share_kept(const KeptRows& kept, const std::vector<std::string>& variables,
                  const Dataset& rows) {
  if (kept.hashes.empty()) return 0;
  std::vector<Eigen::Index> columns;
  for (const std::string& v : variables) {
    const auto found = std::find(rows.variables.begin(), rows.variables.end(), v);
    if (found == rows.variables.end()) return 0;
    columns.push_back(found - rows.variables.begin());
  }
  const bool all = kept.hashes.size() < kSketch;  // the sketch has every row
  long sampled = 0, same = 0;
  std::vector<double> state(columns.size());
  for (const Trajectory& t : rows.trajectories)
    for (Eigen::Index r = 0; r < t.rows(); ++r) {
      for (std::size_t i = 0; i < columns.size(); ++i) state[i] = t.states(r, columns[i]);
      const std::uint64_t hash = row_hash(t.times[static_cast<std::size_t>(r)], state);
      if (!all && hash > kept.hashes.back()) continue;
      ++sampled;
      same += std::binary_search(kept.hashes.begin(), kept.hashes.end(), hash) ? 1 : 0;
    }
  return sampled > 0 ? static_cast<double>(same) / static_cast<double>(sampled) : 0;
}

}  // namespace odecast
