#pragma once

#include <string>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/derivatives/derivatives.hpp"

namespace odecast {

/// What each derivative is worth on these data.
struct DerivativeChoice {
  DerivativeMethod method = DerivativeMethod::forward;
  struct Trial {
    DerivativeMethod method;
    double error;  ///< infinite where there were too few rows or the prediction left all bounds
  };
  std::vector<Trial> trials;
  double ahead = 0;    ///< mean time between start and prediction, in the units of the data
  std::string reason;  ///< in words
};

/// The derivative whose equations predict best. The first `targets` variables have equations; where
/// others drive them, those are taken as linear between start and target, which then is the next
/// row. For each method a polynomial of the given degree is learnt by least squares from the first
/// four fifths of every trajectory; from up to 200 rows of the last fifth it is integrated (RK4)
/// half a time scale of the data ahead, at least to the next row, and compared with the row there:
/// the root mean square over rows and variables. The noise of start and target is in every method's
/// error alike. Of errors within a hundredth of the least the first in the order of
/// DerivativeMethod counts. `data` are in model units, as the options are. Throws Error (data) when
/// no method can be tried.
DerivativeChoice choose_derivative(const Dataset& data, int targets,
                                   const DerivativeOptions& options, int degree,
                                   bool pointwise_only, const Observer& observer);

}  // namespace odecast
