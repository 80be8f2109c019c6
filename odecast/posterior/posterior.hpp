#pragma once

#include <cstdint>

#include "odecast/core/vector_field.hpp"
#include "odecast/network/polynomial_kernel.hpp"

namespace odecast {

/// A distribution over vector fields, given the data. The one interface that forecasts depend on.
/// All fields are in the model's units.
class Posterior {
 public:
  virtual ~Posterior() = default;
  virtual int dimension() const = 0;
  /// Draw number `index` of the seed: the same field whenever and on whatever thread it is asked for.
  virtual VectorField draw(std::uint64_t seed, std::uint64_t index) const = 0;
  /// The expectation of the draws.
  virtual VectorField mean_field() const = 0;
  /// Mean and covariance of du/dt at u over the draws.
  virtual Moments moments(const Vector& u) const = 0;
};

/// The same from K draws (paper eqs. sampleMuWGauss, sampleSigWGauss; divisor K - 1).
Moments sampled_moments(const Posterior& posterior, const Vector& u, int draws, std::uint64_t seed);

}  // namespace odecast
