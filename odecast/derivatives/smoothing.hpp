#pragma once

#include "odecast/derivatives/derivatives.hpp"

namespace odecast {

/// Rows a segment needs for a local polynomial, and for a spline.
inline constexpr int kLocalPolynomialRows = 7, kSplineRows = 5;

/// Savitzky–Golay: at each row the polynomial of degree 4 that fits the 2m + 1 observations around
/// it best, its value in place of the state and its slope as the derivative (Savitzky & Golay,
/// Anal. Chem. 36 (1964) 1627; by least squares in each window, so times may be uneven). Near the
/// ends of a segment m shrinks to what is left on the shorter side, down to 3; the first and last
/// three rows have none.
///
/// With w the weights of the slope and w' those of degree 6 on the same window, and y the
/// observations,
///   truncation² = ⟨((w - w')·y)² - σ² |w - w'|²⟩,   variance = σ² |w|² + truncation² (T/T̄)^8,
/// T the length of the window and T̄ its mean for full windows: the slope of degree 4 errs by O(T⁴).
/// m is that of 3, 4, 6, 8, 12, 16, … with the least mean of σ² |w|² + 10 truncation², in units of
/// σ², over at most 500 rows: in a regression noise averages out and truncation does not.
DerivativeRows local_polynomial_rows(const std::vector<Segment>& segments, const Vector& noise);

/// The cubic smoothing spline of each variable: f minimises Σ (y_i - f(t_i))² + λ ∫ f''², one λ for
/// all segments, by generalised cross-validation: the λ that minimises N RSS / (N - tr A)², A the
/// matrix from y to f (Craven & Wahba, Numer. Math. 31 (1979) 377). States are f(t_i), derivatives
/// f'(t_i).
///
/// Between knots δ apart the least ∫ f''² for given (f, f') at both ends is eᵀ Q⁻¹ e with
///   e = (f, f')_{i+1} - (f + δ f', f')_i,   Q⁻¹ = (12/δ³, -6/δ²; -6/δ², 4/δ),
/// so the problem is a banded system for all (f_i, f'_i), solved in O(rows). With M its matrix, tr
/// A = Σ [M⁻¹]_ff, and σ² [M⁻¹]_f'f' is the variance of f' under the prior that the spline is the
/// posterior mean of, an integrated Wiener process (Wahba, J. R. Statist. Soc. B 45 (1983) 133): it
/// holds noise and truncation both, and grows towards the ends. σ² = RSS / (N - tr A), or that of
/// `noise` where it is not empty.
DerivativeRows spline_rows(const std::vector<Segment>& segments, int variables,
                           const Vector& noise = {});

/// The spline of one variable at one λ. Times and values of all segments one after the other,
/// `lengths` of them each.
struct SmoothingSpline {
  Vector value, slope;    ///< f and f' at every observation
  Vector slope_variance;  ///< for σ = 1
  double residual = 0;    ///< Σ (y - f)²
  double trace = 0;       ///< tr A
};
SmoothingSpline smoothing_spline(const std::vector<double>& times, const Vector& values,
                                 const std::vector<int>& lengths, double lambda);

}  // namespace odecast
