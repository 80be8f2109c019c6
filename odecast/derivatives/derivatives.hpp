#pragma once

#include <optional>
#include <string_view>

#include "odecast/derivatives/stencil.hpp"
#include "odecast/observations/scaling.hpp"

namespace odecast {

/// What a model of du/dt is trained on: a state, an estimate of its derivative (the paper's f_γ),
/// and the standard deviation of that estimate (σ_γ), entry by entry.
struct DerivativeRows {
  Matrix states, derivatives, sigma;

  Eigen::Index rows() const { return states.rows(); }
  int dimension() const { return static_cast<int>(states.cols()); }
};

/// The rows with the derivatives of the first variables only. The others drive the system: their
/// derivatives are not to be learnt.
DerivativeRows first_targets(DerivativeRows rows, int targets);

/// A map takes u_i to u_{i+1}: rows of states with the next one in place of the derivative,
/// `spacing` apart to a millionth; pairs further apart are gaps. One row per pair, σ = 0. Throws
/// Error (data) when there is none.
DerivativeRows successors(const Dataset& data, double spacing);

/// Weights 1/σ² of a block of rows relative to `first`; empty where all are 1, to a millionth: even
/// sampling up to round-off of the times, or σ = 0.
Vector row_weights(const DerivativeRows& rows, double first);

/// How derivatives are taken from observations. No method uses rows of two trajectories, or of both
/// sides of a gap, together.
enum class DerivativeMethod {
  forward,   ///< (u_{i+1} - u_i) / (t_{i+1} - t_i): the paper's
  central2,  ///< central differences of order 2 … 8
  central4,
  central6,
  central8,
  savgol,     ///< local polynomials
  spline,     ///< smoothing spline
  weak,       ///< integrals against test functions: no derivative is taken, and there are no
              ///< DerivativeRows
  automatic,  ///< the one whose model predicts held-out rows best
};
std::string_view derivative_name(DerivativeMethod method);
std::optional<DerivativeMethod> derivative_from_name(std::string_view name);
/// 2, 4, 6, 8 for central differences, 0 otherwise.
int central_order(DerivativeMethod method);

struct ForwardDifferenceOptions {
  /// σ_γ = noise_factor · h^noise_order (paper eq. sigGammaEulerDefn; c = 1 and m = 2 there).
  /// The error of a forward difference is O(h), not O(h²) as the paper has it: with the default σ_γ
  /// is far too small, which is harmless only because dropout's own error is larger.
  double noise_factor = 1;
  double noise_order = 2;
};

struct DerivativeOptions {
  DerivativeMethod method = DerivativeMethod::forward;
  ForwardDifferenceOptions forward = {};
  /// Standard deviation of the observation noise, one per variable or one for all, in the units of
  /// the data; empty: estimated (estimate_noise). Forward differences have the paper's σ_γ instead
  /// of an estimate.
  Vector noise = {};
  /// A longer spacing is a gap, in the units of the times. 0: kGapFactor times the usual spacing of
  /// the trajectory.
  double gap = 0;
};

/// Throws Error (usage) for options out of range.
void check(const DerivativeOptions& options, int variables);

/// The options for data in model units.
DerivativeOptions to_model_units(const DerivativeOptions& options, const Scaling& scaling);

/// The noise that the options give, else the estimate.
Vector observation_noise(const DerivativeOptions& options, const std::vector<Segment>& segments,
                         int variables);

/// f_γ(u_i) = (u_{i+1} - u_i) / (t_{i+1} - t_i) (paper eq. derivativeApproxFirstOrder), one row per
/// pair of neighbours in a trajectory; times may be uneven. Throws Error (data) when no trajectory
/// has two rows.
DerivativeRows forward_differences(const Dataset& data, const ForwardDifferenceOptions& options);

/// Rows of any method that has them; all in memory. Throws Error (data) when there are too few
/// observations and Error (usage) for options out of range; `method` must be neither weak nor
/// automatic.
DerivativeRows derivative_rows(const Dataset& data, const DerivativeOptions& options);

/// Forward or central differences in model units, from rows that are not in memory: blocks of at
/// most `rows_per_block` rows in the order of the source.
///
/// Central differences of order p: at each row with p/2 neighbours on both sides, the derivative of
/// the polynomial through these p + 1 observations (Fornberg weights w, so times may be uneven);
/// the first and last p/2 rows of a trajectory have no derivative of their own, because one-sided
/// ones are far worse. With σ the noise of the observations and c the root mean square of u^{(p+1)}
/// / (p+1)!, by divided differences less their noise, the variance of a row is
///   c² Π_{j≠i} (t_i - t_j)² + σ² |w|².
/// σ and c are estimated from the first 2^14 rows.
void stream_differences(const ObservationSource& source, const Scaling& scaling,
                        const DerivativeOptions& options, const ObservationSummary& summary,
                        int rows_per_block, const std::function<void(const DerivativeRows&)>& take);

}  // namespace odecast
