#pragma once

#include <cstddef>
#include <vector>

#include "odecast/filter/filter_file.hpp"
#include "odecast/report/page_parts.hpp"

namespace odecast {

/// Of things that come one after another every 1st, 2nd, 4th, …: as many as there is room for.
template <class Thing>
class Thinned {
 public:
  void add(Thing thing) {
    if (seen_++ % stride_ != 0) return;
    kept_.push_back(std::move(thing));
    if (kept_.size() < kMost) return;
    for (std::size_t k = 0; 2 * k < kept_.size(); ++k) kept_[k] = std::move(kept_[2 * k]);
    kept_.resize((kept_.size() + 1) / 2);
    stride_ *= 2;
  }
  const std::vector<Thing>& kept() const { return kept_; }
  long stride() const { return stride_; }

 private:
  static constexpr std::size_t kMost = 20'000;
  std::vector<Thing> kept_ = {};
  long stride_ = 1, seen_ = 0;
};

/// What a filter said of a trajectory, late rows left out.
struct FilterRecord {
  Thinned<FilterRow> rows = {};
  Thinned<Vector> observed = {};                  ///< the values of each, NaN where empty
  Thinned<LearntCoefficients> coefficients = {};  ///< of one that learns, user's units
};

struct FilterPageContent {
  FilterRecord record = {};
  FilterSummary summary = {};
  std::optional<Dataset> truth = {};  ///< the true states, of one trajectory
  KeyValues against_truth = {};       ///< what the comparison with it gave
  std::string title = {};             ///< empty: "x, y, z followed"
  Origin origin = {};
};

/// Every variable with its band and what was observed, surprise, coefficients that were learnt,
/// ranks, scores.
Page filter_page(const Filter& filter, const FilterPageContent& content);

}  // namespace odecast
