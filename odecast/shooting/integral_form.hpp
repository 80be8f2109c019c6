#pragma once

#include <vector>

#include "odecast/shooting/shooting.hpp"

namespace odecast {

/// The integral form of the equations over windows,
///   z(t + τ) - z(t) = Σ θ ∫ φ(z, w) dt,
/// along known states, linear between their times, by the trapezoidal rule: linear in the
/// coefficients θ without any slope of the data.
struct IntegralForm {
  Matrix terms;   ///< ∫ φ dt, window × term of the library
  Matrix change;  ///< window × variable
};

/// The windows are the segments of `windows`, and `states` its runs, smoothed or of a path. With
/// `observed` changes are those of the observations themselves. Functions have the numbers `z`
/// inside; of monomials alone where there are none.
IntegralForm integral_form(const Shooting& windows, const std::vector<Matrix>& states,
                           const std::vector<double>* z, bool observed);

/// The coefficients of terms by ridge regression, an equation at a time. With `explained`, for each
/// variable the share of its motion that they explain, less what p terms explain of anything:
/// 1 - (1 - R²) N / (N - p) for N windows, and 0 where N <= p.
Vector integral_regression(const IntegralForm& form, const Support& support, double ridge,
                           Vector* explained = nullptr);

}  // namespace odecast
