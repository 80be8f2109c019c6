#pragma once

#include <deque>
#include <functional>

#include "odecast/filter/filter.hpp"

namespace odecast {

/// Rows of one trajectory on their way out: each waits until `lag` more have been seen, and goes
/// with its state as these smooth it. Without a lag they go at once.
class LaggedRows {
 public:
  using Give = std::function<void(const FilterRow&)>;
  LaggedRows(int lag, Give give) : lag_(lag), give_(std::move(give)) {}

  void add(const FilterRow& row);
  /// The last rows, for which no more come.
  void end(const Filter& filter);

 private:
  void release(const StateBand& state);
  void release_late();
  void pop();

  int lag_;
  Give give_;
  std::deque<FilterRow> rows_;
  int seen_ = 0;  ///< of these, not late
};

}  // namespace odecast
