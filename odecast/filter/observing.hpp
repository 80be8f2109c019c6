#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "odecast/filter/analysis.hpp"
#include "odecast/model/model.hpp"

namespace odecast {

/// What the columns of a table say of the state: column j is Σ_i H_ji u_i, with noise.
struct Observing {
  std::vector<std::string> columns;
  Matrix H;  ///< columns × variables, user's units
};

/// Columns by the model's names, in its order; those that the table lacks are not observed. Throws
/// Error (data) where it has none.
Observing observing_variables(const Model& model, const std::vector<std::string>& columns,
                              const std::string& source);

/// A further column that is a sum of variables, "total = x + 2*y". Throws Error (usage) where it is
/// not, with the place.
void add_observing(Observing& observing, const Model& model, std::string_view text);

}  // namespace odecast
