#pragma once

#include <vector>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// Q⁻¹, scaled to a unit diagonal on the way.
Eigen::MatrixXd inverse_information(const Matrix& Q);

/// The quadratic model of the cost over all candidates: cost(S) = const - b_S' Q_SS⁻¹ b_S.
struct QuadraticModel {
  Matrix Q;
  Vector b;
  std::vector<double> penalty;
  /// A candidate of which that part is not in the set's span is a copy of what is there.
  double copy = 1e-9;

  static constexpr int kMostMoves = 30;  ///< of settle()
  /// About how many operations moves() takes from a set of that size.
  double work(std::size_t size) const {
    const double p = static_cast<double>(size), all = static_cast<double>(b.size());
    return p * p * p + 2 * p * p * all + 4 * p * all;
  }

  /// A change of the set: `out` leaves (or -1), `in` enters (or -1); the change of cost + penalty.
  struct Move {
    int out, in;
    double change;
    bool operator<(const Move& other) const { return change < other.change; }
  };

  /// All single moves from the set `S` (indices into the candidates).
  std::vector<Move> moves(const std::vector<int>& S) const;
  static void apply(std::vector<int>& S, const Move& move);
  /// The model of `some` candidates where those of `always` are in every set: these follow.
  QuadraticModel beside(const std::vector<int>& always, const std::vector<int>& some) const;
  /// Sets of the least value, best first, at most so many, that settle from one of `groups` of
  /// candidates among these and `plain`. From nothing settle() takes the candidate that explains
  /// most by itself, which is seldom the function that explains all with a few others.
  std::vector<std::vector<int>> settled_from_each(const std::vector<std::vector<int>>& groups,
                                                  const std::vector<int>& plain,
                                                  std::size_t most) const;
  /// Goes where the best move leads, until none lowers cost + penalty. Returns the change.
  double settle(std::vector<int>& S) const;
  Vector minimiser(const std::vector<int>& S) const;
  /// cost(S) + penalties, but for the constant.
  double value(const std::vector<int>& S) const;
};

}  // namespace odecast
