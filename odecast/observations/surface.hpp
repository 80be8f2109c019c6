#pragma once

#include <optional>

#include "odecast/core/matrix.hpp"

namespace odecast {

/// A quadric g(u) = Σ w_m φ_m(z) = 0 that rows lie on but for their noise; φ are the monomials up
/// to degree 2 of z = (u - centre) / scale.
struct Surface {
  Vector centre, scale, weights;
  Vector noise;  ///< sd of the rows, in the units of z

  double value(const Vector& u) const;
  /// ∂g/∂u.
  Vector slope(const Vector& u) const;
  /// |g(u)| in units of what the noise of a row makes of it, (Σ (∂g/∂z_i σ_i)²)^½.
  double distance(const Vector& u) const;
};

/// With A = mean φφᵀ over the rows and B = mean (∂φ/∂z) Σ (∂φ/∂z)ᵀ, the covariance that their noise
/// gives φ to first order, the least λ with A w = λ B w is the mean square of g in units of its
/// noise: 1 where nothing but noise moves the rows off the surface. It is one where λ < 1.5, which
/// rows of a curve as flat as its noise have, too. None where the noise is not known, for more than
/// six variables, and for fewer than three rows for each monomial.
std::optional<Surface> surface_of(const Matrix& rows, const Vector& noise, const Vector& sd);

}  // namespace odecast
