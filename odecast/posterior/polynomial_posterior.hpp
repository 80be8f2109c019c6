#pragma once

#include <memory>
#include <vector>

#include "odecast/posterior/posterior.hpp"
#include "odecast/posterior/shooting.hpp"

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

/// A mixture of polynomial fields, one component per set of terms: of points (bootstrap), or of
/// normal distributions over the coefficients (regression) and the state in which the data end
/// (trajectory; docs/theory.md). A draw is a set by its weight, then coefficients and last state
/// together.
class PolynomialPosterior : public Posterior {
 public:
  /// `basis` is the one the sets' monomials are numbered by; what drives the system is behind the
  /// `outputs` variables.
  PolynomialPosterior(std::shared_ptr<const MonomialBasis> basis, std::vector<CoefficientSet> sets,
                      int outputs);

  int dimension() const override { return outputs_; }
  VectorField draw(std::uint64_t seed, std::uint64_t index) const override;
  std::optional<Vector> draw_start(std::uint64_t seed, std::uint64_t index) const override;
  VectorField mean_field() const override;
  Moments moments(const Vector& u) const override;
  /// As many as sets, where all are points.
  std::uint64_t atoms() const override;
  VectorField atom_field(std::uint64_t atom) const override;
  double atom_weight(std::uint64_t atom) const override;
  std::uint64_t atom_of_draw(std::uint64_t seed, std::uint64_t index) const override;

  /// The most probable set of terms at its most probable coefficients; the median of every
  /// coefficient where all sets are points, in which a term that most of them do not have is none.
  VectorField point_field() const override;
  /// Mean and covariance of the state at the end of the data, where known.
  Moments last_state() const;
  /// Of every coefficient, outputs × monomials: mean and sd over the mixture, and the weight of the
  /// sets with that term.
  struct Coefficients {
    Matrix mean, sd, probability;
  };
  Coefficients coefficients() const;
  /// The median of every coefficient over the sets, which are points of equal weight; 0 in those
  /// without the term.
  Matrix median_coefficients() const;

  const MonomialBasis& basis() const { return *basis_; }
  const std::vector<CoefficientSet>& sets() const { return sets_; }

 private:
  struct Draw {
    std::size_t set;
    Vector theta, start;
  };
  Draw draw_all(std::uint64_t seed, std::uint64_t index) const;
  VectorField field(const Support& support, const Vector& theta) const;

  std::shared_ptr<const MonomialBasis> basis_;
  std::vector<CoefficientSet> sets_;
  int outputs_;
  std::vector<Matrix> theta_roots_, start_roots_;  ///< R R' = covariance
};

}  // namespace odecast
