#pragma once

#include <memory>
#include <vector>

#include "odecast/core/random.hpp"
#include "odecast/model/model.hpp"
#include "odecast/solver/lanes.hpp"

namespace odecast {

/// Whose coefficients a member of an ensemble is carried by.
enum class Carried {
  slots,         ///< member i by draw i of the posterior, at all times, whose state it ever has
  draws,         ///< by a draw that goes with the state: of posteriors over finitely many fields
  coefficients,  ///< its own: they stand behind its state
};

/// Terms less probable than that are not carried.
inline constexpr double kLeastCarried = 0.01;

/// Carries members (rows) from time to time, each by equations of its own. Everything in model
/// units. The model must outlive it.
class Carrier {
 public:
  /// Flows are integrated to `tolerance`, relative to a variable's value and, in model units,
  /// absolute. Only models with a `polynomial` part have coefficients to carry.
  Carrier(const Model& model, Eigen::Index members, double tolerance, std::uint64_t seed,
          int threads, Carried carried);

  Carried carried() const { return carried_; }
  /// Which draw each member has.
  const std::vector<int>& draws() const { return draws_; }
  void take_draws(const std::vector<int>& draws);

  /// Of carried coefficients: terms, mean and covariance in the posterior.
  const PolynomialPosterior::Joint& joint() const { return joint_; }
  /// Those of every member's draw, members × coefficients; no columns where they are not carried.
  const Matrix& drawn() const { return drawn_; }

  /// From t to `until`, driven by the signal, which has a column for each measured input. What the
  /// equations do not explain enters as kicks, one for each interval of the model's forcing. Of a
  /// map times are whole steps apart. A member that blows up takes the state of one that does not,
  /// and the draw where that goes with it; where none is left all stay where they are. Returns how
  /// many blew up.
  long carry(Matrix& members, double t, double until, const InputSignal& inputs, Stream& kicks);

 private:
  void carry_part(Matrix& members, double t, double until, std::vector<char>& alive);
  void take_coefficients(const Matrix& members);
  void set_field(Eigen::Index member, const VectorField& field);

  const Model& model_;
  std::unique_ptr<Posterior> posterior_;
  Carried carried_;
  std::uint64_t seed_;
  std::vector<int> draws_;
  int threads_;
  SolverOptions solver_;
  TermLibrary library_;
  PolynomialPosterior::Joint joint_;
  std::vector<int> numbers_;  ///< behind the joint coefficients
  Matrix drawn_;
  /// Where all fields have terms: side by side, in blocks.
  std::vector<LaneProblems> blocks_;
  std::vector<VectorField> keeps_terms_;  ///< the first, whose basis the blocks have
  std::vector<VectorField> fields_;       ///< otherwise
  std::shared_ptr<InputSignal> signal_;   ///< of the interval under way
};

}  // namespace odecast
