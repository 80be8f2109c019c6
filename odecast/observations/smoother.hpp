#pragma once

#include "odecast/observations/observed_run.hpp"

namespace odecast {

/// Smoothed observations and the noise they imply.
struct Smoothed {
  std::vector<Matrix> values;   ///< run by run, at every time, also where nothing was observed
  std::vector<Matrix> weights;  ///< the observations' own times Huber's, where robust
  std::vector<Matrix> sd;       ///< of the values, but for what the noise is not known by
  Vector noise;                 ///< sd of each variable
  Vector last_sd;               ///< of each variable's last value in the last run
  /// rms of the deviation from the mean over rms of the slope, over all variables: the time on
  /// which the signal moves.
  double time_scale = 0;
};

/// Whittaker's smoother (Whittaker 1923; Eilers, Anal. Chem. 75 (2003) 3631): z minimises
/// Σ w (y - z)² + λ Σ (third difference)², divided differences where times are uneven. M = W + λ
/// D'D has seven bands, so one λ costs O(rows); the trace of its inverse needs only the bands of
/// M⁻¹ (Takahashi's recurrence; Hutchinson & de Hoog, Numer. Math. 47 (1985) 99). For each variable
/// λ is that of least GCV = RSS / (n - trace)², pooled over runs, and noise² = RSS / (n - trace).
/// z is the posterior mean when third differences are independent normal with variance noise²/λ, so
/// that noise² (M⁻¹)_ii is the variance of z_i; the last of these is 1 over the last pivot of M's
/// factor. `robust`: weights are multiplied by Huber's min(1, 1.345 s/|r|), s from the median of
/// |r|, and the smoother is run again until they settle.
Smoothed smooth(const std::vector<ObservedRun>& runs, bool robust);

/// 1.345: 95 % efficient for normal noise.
constexpr double kHuber = 1.345;

}  // namespace odecast
