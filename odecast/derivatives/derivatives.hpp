#pragma once

#include "odecast/observations/scaling.hpp"

namespace odecast {

/// What a model of du/dt is trained on: a state, an estimate of its derivative (the paper's f_γ),
/// and the standard deviation of that estimate (σ_γ), entry by entry.
struct DerivativeRows {
  Matrix states, derivatives, sigma;

  Eigen::Index rows() const { return states.rows(); }
  int dimension() const { return static_cast<int>(states.cols()); }
};

struct ForwardDifferenceOptions {
  /// σ_γ = noise_factor · h^noise_order (paper eq. sigGammaEulerDefn; c = 1 and m = 2 there).
  /// The error of a forward difference is O(h), not O(h²) as the paper has it: with the default σ_γ
  /// is far too small, which is harmless only because dropout's own error is larger.
  double noise_factor = 1;
  double noise_order = 2;
};

/// f_γ(u_i) = (u_{i+1} - u_i) / (t_{i+1} - t_i) (paper eq. derivativeApproxFirstOrder), one row per
/// pair of neighbours in a trajectory; times may be uneven. Throws Error (data) when no trajectory
/// has two rows.
DerivativeRows forward_differences(const Dataset& data, const ForwardDifferenceOptions& options);

/// The same, in model units, from rows that are not in memory: blocks of at most `rows_per_block` rows in
/// the order of the source.
void forward_differences(const ObservationSource& source, const Scaling& scaling,
                         const ForwardDifferenceOptions& options, int rows_per_block,
                         const std::function<void(const DerivativeRows&)>& take);

}  // namespace odecast
