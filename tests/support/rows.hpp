#pragma once

#include "odecast/core/random.hpp"
#include "odecast/derivatives/derivatives.hpp"

namespace odecast {

/// Rows with standard normal states and derivatives, σ = 1.
inline DerivativeRows random_rows(int rows, int n, std::uint64_t seed) {
  Stream stream(seed, Purpose::observation_noise, 0);
  DerivativeRows r{Matrix(rows, n), Matrix(rows, n), Matrix::Ones(rows, n)};
  for (Eigen::Index i = 0; i < r.states.size(); ++i) {
    r.states.data()[i] = stream.normal();
    r.derivatives.data()[i] = stream.normal();
  }
  return r;
}

}  // namespace odecast
