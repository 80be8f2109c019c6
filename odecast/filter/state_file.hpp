#pragma once

#include <string>

#include "odecast/filter/filter.hpp"

namespace odecast {

/// Where a filter is, as JSON, sealed by a checksum: a filter of the same model, columns and
/// options goes on from it with the same bits.
std::string filter_state_to_text(const FilterState& state, const Model& model,
                                 const Observing& observing, const FilterOptions& options);

/// Throws Error (data) for a text that was changed or cut off, or is of another model, other
/// columns or other options; `name` stands in messages.
FilterState filter_state_from_text(const std::string& text, const std::string& name,
                                   const Model& model, const Observing& observing,
                                   const FilterOptions& options);

}  // namespace odecast
