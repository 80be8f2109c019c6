#pragma once

#include <vector>

#include "odecast/model/posterior.hpp"
#include "odecast/network/network.hpp"

namespace odecast {

/// Networks trained independently, from seeds of their own, each with the same weight: a draw is
/// one of them (Lakshminarayanan, Pritzel & Blundell, NeurIPS 2017). Their spread says where the
/// data leave the function open; it is no posterior in the strict sense.
class EnsemblePosterior : public Posterior {
 public:
  explicit EnsemblePosterior(std::vector<Network> members);

  int dimension() const override { return members_.front().outputs(); }
  VectorField draw(std::uint64_t seed, std::uint64_t index) const override;
  VectorField mean_field() const override;
  /// The mean field.
  VectorField point_field() const override { return mean_field(); }
  Moments moments(const Vector& u) const override;
  std::uint64_t atoms() const override { return members_.size(); }
  VectorField atom_field(std::uint64_t atom) const override;
  double atom_weight(std::uint64_t) const override {
    return 1 / static_cast<double>(members_.size());
  }
  std::uint64_t atom_of_draw(std::uint64_t seed, std::uint64_t index) const override;

 private:
  std::vector<Network> members_;
};

}  // namespace odecast
