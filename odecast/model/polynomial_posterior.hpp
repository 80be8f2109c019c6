#pragma once

#include <memory>
#include <vector>

#include "odecast/field/coefficients.hpp"
#include "odecast/model/posterior.hpp"

namespace odecast {

/// A mixture of fields of monomials and functions, one component per set of terms: of points
/// (bootstrap), or of normal distributions over the coefficients (regression) and the state in
/// which the data end (trajectory; docs/theory.md). A draw is a set by its weight, then
/// coefficients and last state together.
class PolynomialPosterior : public Posterior {
 public:
  /// `library` is the one the sets' terms are numbered by; what drives the system is behind the
  /// `outputs` variables.
  PolynomialPosterior(TermLibrary library, std::vector<CoefficientSet> sets, int outputs);

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
  /// Of every coefficient, outputs × terms: mean and sd over the mixture, and the weight of the
  /// sets with that term.
  struct Coefficients {
    Matrix mean, sd, probability;
  };
  Coefficients coefficients() const;
  /// All sets together: the terms that are in sets of this weight or more in sum, in ascending
  /// order; mean and covariance over the mixture of their coefficients, 0 where a set has not the
  /// term, and behind them of the numbers inside functions, the mean of those sets that have one
  /// where a set has not.
  struct Joint {
    Support support;
    Vector mean;
    Matrix covariance;
  };
  Joint joint(double probability) const;
  /// The median of every coefficient over the sets, which are points of equal weight; 0 in those
  /// without the term.
  Matrix median_coefficients() const;
  /// The median of z of every number inside functions over the sets that have it, 0 where none has.
  std::vector<double> median_numbers() const;

  const TermLibrary& library() const { return library_; }
  const std::vector<CoefficientSet>& sets() const { return sets_; }

 private:
  struct Draw {
    std::size_t set;
    Vector theta, start;
  };
  Draw draw_all(std::uint64_t seed, std::uint64_t index) const;
  VectorField field(const Support& support, const Vector& theta) const;

  TermLibrary library_;
  std::vector<CoefficientSet> sets_;
  int outputs_;
  std::vector<Matrix> theta_roots_, start_roots_;  ///< R R' = covariance
};

}  // namespace odecast
