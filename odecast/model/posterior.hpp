#pragma once

#include <cstdint>
#include <optional>

#include "odecast/core/observer.hpp"
#include "odecast/field/vector_field.hpp"

namespace odecast {

/// A distribution over vector fields, given the data. The one interface that forecasts depend on.
/// All fields are in the model's units. Where inputs drive the system, fields and moments take them
/// behind the state.
class Posterior {
 public:
  virtual ~Posterior() = default;
  virtual int dimension() const = 0;  ///< of the state
  /// Draw number `index` of the seed: the same field whenever and on whatever thread it is asked
  /// for.
  virtual VectorField draw(std::uint64_t seed, std::uint64_t index) const = 0;
  /// The state in which the data end, as that draw sees it: coefficients and state are drawn
  /// together. Nothing where the posterior says nothing of states.
  virtual std::optional<Vector> draw_start(std::uint64_t, std::uint64_t) const {
    return std::nullopt;
  }
  /// The expectation of the draws.
  virtual VectorField mean_field() const = 0;
  /// One field to stand for all where a single estimate is wanted.
  virtual VectorField point_field() const = 0;
  /// Mean and covariance of du/dt at u over the draws.
  virtual Moments moments(const Vector& u) const = 0;

  /// A posterior over finitely many fields can be enumerated. How many there are; 0 for one that
  /// cannot be, because they are more than 2^20 or not finitely many.
  virtual std::uint64_t atoms() const = 0;
  /// Field number `atom`, and its probability.
  virtual VectorField atom_field(std::uint64_t atom) const = 0;
  virtual double atom_weight(std::uint64_t atom) const = 0;
  /// Which of them draw(seed, index) is.
  virtual std::uint64_t atom_of_draw(std::uint64_t seed, std::uint64_t index) const = 0;
};

/// The same from K draws (paper eqs. sampleMuWGauss, sampleSigWGauss; divisor K - 1).
Moments sampled_moments(const Posterior& posterior, const Vector& u, int draws, std::uint64_t seed,
                        const Observer& observer = ignore_progress);

}  // namespace odecast
