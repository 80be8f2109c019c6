#pragma once

#include <vector>

#include "odecast/observations/dataset.hpp"

namespace odecast {

/// One run of observations. Weight 0 means: not observed, the value is not looked at.
struct ObservedRun {
  std::vector<double> times;
  Matrix values, weights;  ///< rows are times
  /// What drives it, known exactly: at these times and maybe others between. No columns where
  /// nothing does.
  InputSignal inputs = {};
  int held = 0;  ///< that many inputs, the first, keep their value until the next time; the others
                 ///< are linear between times
};

/// Values that are not finite are not observed; the others have weight 1.
ObservedRun observed_run(std::vector<double> times, Matrix values);

/// A part of the interval before an observation on which every input is linear: between
/// neighbouring times of the inputs.
struct DrivenPiece {
  double begin, end;
  Vector from, to;  ///< inputs at its begin and end, from within
};
/// Of the interval that ends at observation `row` > 0; one piece where nothing drives the run.
std::vector<DrivenPiece> pieces(const ObservedRun& run, long row);

}  // namespace odecast
