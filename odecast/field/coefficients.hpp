#pragma once

#include "odecast/core/matrix.hpp"
#include "odecast/field/sparse_field.hpp"

namespace odecast {

/// A polynomial field in model units: θ are the coefficients of the terms in `support`. A point
/// where `covariance` is empty, else θ ~ N(theta, covariance). Where it knows of states, the one at
/// the end of the data given θ is ~ N(last_state + last_slope (θ - theta), last_covariance); empty
/// where not.
struct CoefficientSet {
  Support support;
  Vector theta;
  Matrix covariance = {};
  Vector last_state = {};
  Matrix last_slope = {}, last_covariance = {};
  double weight = 1;
  double score = 0;  ///< of the fit, lower is better
};

/// Motion that the equations do not explain, as white noise: in every `interval` the state moves by
/// N(0, sd²) in addition, model units. Empty where they explain it all.
struct Forcing {
  Vector sd = {};
  double interval = 0;

  bool present() const { return sd.size() > 0; }
};

/// Whether a square matrix can be a covariance: no variance is negative, and scaled to a unit
/// diagonal it is symmetric and has no pivot below what round-off of an inverse leaves.
bool is_covariance(const Matrix& C);

/// R with R R' = C, also where C is singular to round-off; empty for an empty C.
Matrix covariance_root(const Matrix& C);

}  // namespace odecast
