#pragma once

#include <vector>

#include "odecast/observations/source.hpp"

namespace odecast {

/// Fornberg's weights: w with Σ_j w_j p(t_j) = p'(at) for every polynomial p of degree below the
/// number of points (Fornberg, Math. Comp. 51 (1988) 699; the recursion of his algorithm for the
/// first derivative). Points may be uneven but must differ.
void first_derivative_weights(const double* times, int points, double at, double* weights);

/// Weights of the divided difference u[t_0, …, t_m] = Σ_j u_j / Π_{l≠j} (t_j - t_l), which is
/// u^{(m)}(ξ) / m! and vanishes for polynomials of degree below m.
void divided_difference_weights(const double* times, int points, double* weights);

/// Part of a trajectory without a gap: rows first … first + rows - 1.
struct Segment {
  const Trajectory* trajectory;
  int first, rows;

  const double* times() const { return trajectory->times.data() + first; }
  auto states() const { return trajectory->states.middleRows(first, rows); }
};

/// A spacing above this many times the usual one of its trajectory is a gap: nothing is differenced
/// or integrated across it. Of exponentially distributed spacings one in 10^9 is as long.
inline constexpr double kGapFactor = 30;

/// The longest spacing of each trajectory that is not a gap: `gap` where it is positive, else
/// kGapFactor times the usual spacing, in the units of the times.
std::vector<double> longest_spacings(const ObservationSummary& summary, double gap);

/// The trajectories cut at their gaps, in order. The data must outlive the segments.
std::vector<Segment> segments(const Dataset& data, double gap);

/// Standard deviation of the observation noise of each variable. For m = 2 … 8 the divided
/// difference of m + 1 neighbours, with weights scaled to length 1, has standard deviation σ plus
/// what the signal's m-th derivative adds: the median absolute value of all of them / 0.6745
/// estimates σ. Taken is the first m within a tenth of the smallest, which itself would err
/// downwards. Not below round-off, 2^-53 times the root mean square. The noise is taken as white
/// and alike along the data.
Vector estimate_noise(const std::vector<Segment>& segments, int variables);

}  // namespace odecast
