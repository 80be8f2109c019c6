#pragma once

#include <memory>
#include <vector>

#include "odecast/posterior/posterior.hpp"
#include "odecast/posterior/shooting.hpp"

namespace odecast {

/// One set of terms with its normal posterior, in model units: θ ~ N(theta, covariance), and the
/// state at the end of the data given θ ~ N(last_state + last_slope (θ - theta), last_covariance).
struct TrajectoryMember {
  Support support;
  Vector theta;
  Matrix covariance;
  Vector last_state;
  Matrix last_slope, last_covariance;
  double weight = 1;
  double score = 0;  ///< of the fit, lower is better
};

/// What the data say of a polynomial field and of the state they end in: a mixture of normal
/// distributions, one per set of terms (docs/theory.md). A draw is a set of terms by its weight,
/// then coefficients and last state together.
class TrajectoryPosterior : public Posterior {
 public:
  /// `basis` is the one the members' monomials are numbered by.
  TrajectoryPosterior(std::shared_ptr<const MonomialBasis> basis,
                      std::vector<TrajectoryMember> members);

  int dimension() const override { return basis_->variables(); }
  VectorField draw(std::uint64_t seed, std::uint64_t index) const override;
  std::optional<Vector> draw_start(std::uint64_t seed, std::uint64_t index) const override;
  VectorField mean_field() const override;
  Moments moments(const Vector& u) const override;
  std::uint64_t atoms() const override { return 0; }
  VectorField atom_field(std::uint64_t atom) const override;
  double atom_weight(std::uint64_t atom) const override;
  std::uint64_t atom_of_draw(std::uint64_t seed, std::uint64_t index) const override;

  /// The most probable set of terms at its most probable coefficients.
  VectorField point_field() const override;
  /// Mean and covariance of the state at the end of the data.
  Moments last_state() const;

  const MonomialBasis& basis() const { return *basis_; }
  const std::vector<TrajectoryMember>& members() const { return members_; }

 private:
  struct Draw {
    std::size_t member;
    Vector theta, start;
  };
  Draw draw_all(std::uint64_t seed, std::uint64_t index) const;
  VectorField field(const Support& support, const Vector& theta) const;

  std::shared_ptr<const MonomialBasis> basis_;
  std::vector<TrajectoryMember> members_;
  std::vector<Matrix> theta_roots_, start_roots_;  ///< R R' = covariance
};

}  // namespace odecast
