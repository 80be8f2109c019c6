#pragma once

// Quantiles of the normal distribution for a number and for eight: the same operations in the same
// order, so the same bits. See pack.hpp for the rules of the sources that include this.

#include "odecast/core/detail/pack.hpp"

namespace odecast {
namespace {

template <class Real>
ODECAST_INLINE Real horner(const double (&c)[8], const Real& x) {
  Real sum = c[7];
#pragma GCC unroll 8
  for (int i = 6; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

/// The natural logarithm of a positive normal number by + - * / only, to about 2 units in the last
/// place: log x = e log 2 + 2 artanh((m - 1)/(m + 1)), x = m 2^e, m in [sqrt(1/2), sqrt(2)). That
/// of functions_kernel.hpp is better; draws that were recorded depend on these bits.
template <class Real>
ODECAST_INLINE Real plain_logarithm(const Real& x) {
  Real m, e;
  split(x, m, e);  // exact
  const auto small = m < Real(0.70710678118654752);
  m = select(small, m * 2.0, m);
  e = select(small, e - 1.0, e);
  const Real s = (m - 1.0) / (m + 1.0), z = s * s;  // |s| <= 0.1716, z <= 0.02944
  Real sum = 0.0;
#pragma GCC unroll 16
  for (int i = 21; i >= 3; i -= 2) sum = (sum + 1.0 / i) * z;  // z^10/21 < 3e-17
  // log 2 in two parts, the first with 21 trailing zero bits so that e * it is exact.
  return e * 0x1.62e42feep-1 + (s * 2.0 + (s * 2.0 * sum + e * 0x1.a39ef35793c76p-33));
}

/// Wichura, algorithm AS 241, Appl. Statist. 37 (1988) 477.
template <class Real>
ODECAST_INLINE Real quantile(const Real& p) {
  static constexpr double a[8] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                  1.9715909503065514427e3, 1.3731693765509461125e4,
                                  4.5921953931549871457e4, 6.7265770927008700853e4,
                                  3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr double b[8] = {1.0,
                                  4.2313330701600911252e1,
                                  6.8718700749205790830e2,
                                  5.3941960214247511077e3,
                                  2.1213794301586595867e4,
                                  3.9307895800092710610e4,
                                  2.8729085735721942674e4,
                                  5.2264952788528545610e3};
  static constexpr double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                  5.76949722146069140550e0,  3.64784832476320460504e0,
                                  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[8] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                  1.78482653991729133580e0,  2.96560571828504891230e-1,
                                  2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[8] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  constexpr unsigned all = (1u << lanes_of<Real>()) - 1;
  const Real q = p - 0.5;
  const auto central = absolute(q) <= Real(0.425), below = q < Real(0.0);
  const Real r = Real(0.180625) - q * q;
  const Real middle = q * horner(a, r) / horner(b, r);
  if (bits_of(central) == all) return middle;
  const Real tail = square_root(Real(0.0) - plain_logarithm(select(below, p, Real(1.0) - p)));
  Real x = horner(c, tail - 1.6) / horner(d, tail - 1.6);
  const auto far = tail > Real(5.0);
  if (bits_of(far)) x = select(far, horner(e, tail - 5.0) / horner(f, tail - 5.0), x);
  return select(central, middle, select(below, Real(0.0) - x, x));
}

}  // namespace
}  // namespace odecast
