#pragma once

#include <string>
#include <vector>

#include "odecast/forecast/forecast.hpp"

namespace odecast {

/// A forecast and the truth at the times both have. The forecast's start is left out: it is given,
/// not forecast.
struct Comparison {
  std::vector<Eigen::Index> rows;  ///< of the forecast
  Matrix truth;                    ///< a row for each, the variables in the order of the forecast
  /// Standard deviation of the truth over these rows (their number as divisor); 0 for a constant.
  Vector truth_sd;
  double from = 0, until = 0;  ///< the forecast's start and the last time compared
  std::string trajectory;      ///< of the truth; empty where there is only one

  Eigen::Index points() const { return truth.rows(); }
};

/// `trajectory` is the id of the truth's trajectory; empty: the last. Throws Error (data) when
/// variables or times do not match, or when the truth is not certified as far as the forecast goes.
Comparison compare(const Forecast& forecast, const Dataset& truth, const std::string& trajectory);

}  // namespace odecast
