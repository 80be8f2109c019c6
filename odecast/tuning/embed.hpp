#pragma once

#include "odecast/learning/fit.hpp"

namespace odecast {

/// A way to embed that was tried, and by which method.
struct EmbeddingTrial {
  Embedding embedding;
  Method method;
  double energy = 0;  ///< mean energy score of held-out rows, in sd; NaN where there is no model
};
struct EmbeddingSearch {
  std::vector<EmbeddingTrial> trials;  ///< the best first
  double climatology = 0, persistence = 0;
};

/// For `embed` auto: delays and derivatives, linear with forcing by `trajectory` and cubic by
/// `regression` where the method is the default, else by the one given. Each is fitted to the first
/// 70 % of the rows, within a fifth of the budget where there is one, and forecasts the others over
/// twice the time in which x forgets itself; the least mean energy score is the best. Throws Error
/// (data) where none can be fitted.
EmbeddingSearch search_embedding(const Dataset& data, const FitOptions& options,
                                 const Observer& observer);

/// The options with the best, and its method, in the place of auto; as they are where nothing is to
/// be chosen.
FitOptions choose_embedding(const Dataset& data, FitOptions options, const Observer& observer);

}  // namespace odecast
