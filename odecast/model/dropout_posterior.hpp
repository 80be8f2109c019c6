#pragma once

#include <optional>

#include "odecast/model/posterior.hpp"
#include "odecast/network/polynomial_kernel.hpp"

namespace odecast {

/// When a trajectory's mask is drawn anew.
enum class MaskChange {
  never,  ///< one mask per trajectory (paper, Algorithm 2)
  step,   ///< at every accepted step of the solver
  call,   ///< at every evaluation of f (the text's rough outline)
};

/// The paper's approximate posterior (§2.4): the trained network with its dropout left on. A draw
/// is a mask d ~ D(r). With a fresh mask per step or call the noise averages out along a
/// trajectory: the spread goes to zero with the square root of the step, around a field that
/// dropout biases.
class DropoutPosterior : public Posterior {
 public:
  explicit DropoutPosterior(Network network, MaskChange change = MaskChange::never);

  int dimension() const override { return network_.outputs(); }
  VectorField draw(std::uint64_t seed, std::uint64_t index) const override;
  /// Exact for a polynomial kernel; for other networks the mean of 1000 masks of a fixed seed.
  VectorField mean_field() const override;
  /// Exact for a polynomial kernel; for other networks from the same 1000 masks.
  Moments moments(const Vector& u) const override;

  /// The 2^k masks of all units with dropout, k <= 20, bit j of the number being unit j. One mask
  /// per trajectory only.
  std::uint64_t atoms() const override;
  VectorField atom_field(std::uint64_t atom) const override;
  double atom_weight(std::uint64_t atom) const override;
  std::uint64_t atom_of_draw(std::uint64_t seed, std::uint64_t index) const override;

  /// Every unit kept, no mask at all: the paper's "standard dropout" point estimate. It differs
  /// from the mean field, because the mask is not rescaled: units are kept with probability 1 - r
  /// in one and with certainty in the other.
  VectorField point_field() const override;

 private:
  VectorField masked(const Masks& masks) const;

  Network network_;
  MaskChange change_;
  std::optional<PolynomialKernel> kernel_;
  std::optional<KernelExpansion> expansion_;
};

}  // namespace odecast
