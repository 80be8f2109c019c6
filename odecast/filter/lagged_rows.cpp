#include "odecast/filter/lagged_rows.hpp"

#include <utility>

namespace odecast {

void LaggedRows::add(const FilterRow& row) {
  rows_.push_back(row);
  if (row.status != FilterStatus::late) ++seen_;
  if (row.past && seen_ > lag_) release(*row.past);
  release_late();
}

void LaggedRows::end(const Filter& filter) {
  const std::vector<StateBand> bands = filter.recent();
  while (seen_ > 0) release(bands[bands.size() - static_cast<std::size_t>(seen_)]);
}

void LaggedRows::release(const StateBand& state) {
  rows_.front().state = state;
  --seen_;
  pop();
  release_late();
}

/// A late row says nothing of its own, and follows the one before it.
void LaggedRows::release_late() {
  while (!rows_.empty() && (lag_ == 0 || rows_.front().status == FilterStatus::late)) {
    if (rows_.front().status != FilterStatus::late) --seen_;
    pop();
  }
}

void LaggedRows::pop() {
  const FilterRow row = std::move(rows_.front());
  rows_.pop_front();
  give_(row);
}

}  // namespace odecast
