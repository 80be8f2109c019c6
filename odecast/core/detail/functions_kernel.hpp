#pragma once

// The elementary functions for a number and for eight: + - * / and bits alone, the same operations
// in the same order, so the same bits on every instruction set. Errors are in units in the last
// place (ulp); tests/core/functions_test.cpp measures them. Not a number gives not a number. See
// pack.hpp for the rules of the sources that include this.
//
// Polynomials interpolate at Chebyshev's points. Where a result of one double would not do there is
// a second, x_low below an ulp of x: Dekker, Numer. Math. 18 (1971) 224. Ranges are reduced as by
// Cody and Waite, Software Manual for the Elementary Functions (1980). Pairs are two variables:
// compilers move structs of packs through memory, which takes longer than to compute them.

#include "odecast/core/detail/pack.hpp"

namespace odecast {
namespace {

/// What s = a + b lacks to be exact.
template <class Real>
ODECAST_INLINE Real sum_error(const Real& a, const Real& b, const Real& s) {
  const Real t = s - a;
  return (a - (s - t)) + (b - t);
}
/// The same for |a| >= |b|, or a = 0.
template <class Real>
ODECAST_INLINE Real ordered_error(const Real& a, const Real& b, const Real& s) {
  return (a - s) + b;
}
/// What p = a b lacks, for what neither overflows when halved into 26 bits nor underflows.
template <class Real>
ODECAST_INLINE Real product_error(const Real& a, const Real& b, const Real& p) {
  const Real s = a * 0x1.0000002p27, t = b * 0x1.0000002p27;
  const Real a1 = s - (s - a), a2 = a - a1, b1 = t - (t - b), b2 = b - b1;
  return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
}
/// (a + a_low) / (b + b_low) rounded once, but for some 2^-100.
template <class Real>
ODECAST_INLINE Real quotient(const Real& a, const Real& a_low, const Real& b, const Real& b_low) {
  const Real q = a / b, p = q * b;
  return q + ((((a - p) - product_error(q, b, p)) + a_low) - q * b_low) / b;
}

template <class Real, int N>
ODECAST_INLINE Real polynomial(const double (&c)[N], const Real& x) {
  Real sum = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

/// Added to a number below 2^51 it leaves the nearest whole one in the last bits.
constexpr double kWhole = 0x1.8p52;

ODECAST_INLINE bool bit_of(double a, int bit) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &a, sizeof(a));
  return (bits >> bit & 1) != 0;
}
ODECAST_INLINE Mask bit_of(const Pack& a, int bit) {
  Mask m;
  ODECAST_EACH_PART m.v[part] = ((NativeInt)a.v[part] & (std::int64_t{1} << bit)) != 0;
  return m;
}

/// 2^k for a whole k from -1022 to 1023.
ODECAST_INLINE double power_of_two(double k) {
  const double shifted = k + (0x1p52 + 1023);
  std::uint64_t bits;
  __builtin_memcpy(&bits, &shifted, sizeof(shifted));
  bits <<= 52;
  double result;
  __builtin_memcpy(&result, &bits, sizeof(result));
  return result;
}
ODECAST_INLINE Pack power_of_two(const Pack& k) {
  Pack r;
  ODECAST_EACH_PART r.v[part] = (NativeDouble)((NativeInt)(k.v[part] + (0x1p52 + 1023)) << 52);
  return r;
}

constexpr double kInfinity = __builtin_inf(), kNotANumber = __builtin_nan("");
constexpr double kLog2High = 0x1.62e42fefa38p-1;  // 42 bits: products with exponents are exact
constexpr double kLog2Low = 0x1.ef35793c7673p-45;
/// Beyond, sine, cosine and tangent are not numbers.
constexpr double kLargestAngle = 0x1p20;
/// Below, sin x, tan x, tanh x are x but for x^2/3 < 2^-55 of it.
constexpr double kSmallAngle = 0x1p-27;

/// x = n pi/2 + r + r_low, |r| <= pi/4; returns a number with n in its last bits. pi/2 has three
/// parts of 33 bits and a fourth: products with n < 2^20 are exact, and an error of 2^-130 is left
/// of an r that no double makes smaller than 2^-60.
template <class Real>
ODECAST_INLINE Real reduce(const Real& x, Real& r, Real& r_low) {
  const Real turns = x * 0x1.45f306dc9c883p-1 + kWhole, n = turns - kWhole;
  const Real first = x - n * 0x1.921fb544p0;  // exact
  const Real b = -(n * 0x1.0b4611a6p-34), second = first + b;
  const Real c = -(n * 0x1.3198a2ep-69), third = second + c;
  const Real low =
      (sum_error(first, b, second) + sum_error(second, c, third)) - n * 0x1.b839a252049c1p-104;
  r = third + low;
  r_low = sum_error(third, low, r);
  return turns;
}

/// sin(r) = r + r^3 S(r^2), |r| <= pi/4, to 2^-55 and the roundings of what is added to r.
template <class Real>
ODECAST_INLINE Real sine_near_zero(const Real& r, const Real& r_low, Real& low) {
  static constexpr double c[] = {-0x1.5555555555555p-3,  0x1.1111111110bb2p-7,
                                 -0x1.a01a019e83aa2p-13, 0x1.71de37968909p-19,
                                 -0x1.ae600b01a40ccp-26, 0x1.5e0b1995f429ap-33};
  const Real z = r * r, rest = r_low + z * (r * polynomial(c, z) - r_low * 0.5), s = r + rest;
  low = ordered_error(r, rest, s);
  return s;
}
/// cos(r) = 1 - r^2/2 + r^4 C(r^2), |r| <= pi/4, to 2^-59 and the roundings of r^2 and of the last.
template <class Real>
ODECAST_INLINE Real cosine_near_zero(const Real& r, const Real& r_low, Real& low) {
  static constexpr double c[] = {0x1.5555555555555p-5,  -0x1.6c16c16c16967p-10,
                                 0x1.a01a019f4eafap-16, -0x1.27e4fa17d9864p-22,
                                 0x1.1eeb68e8b2372p-29, -0x1.907da304ce77bp-37};
  const Real z = r * r, half = z * -0.5, one = Real(1.0), w = one + half;
  const Real rest = ordered_error(one, half, w) + (z * z * polynomial(c, z) - r * r_low);
  const Real s = w + rest;
  low = ordered_error(w, rest, s);
  return s;
}

/// For |x| <= 2^20, below 1 ulp.
template <class Real>
ODECAST_INLINE Real sine(const Real& x) {
  Real r, r_low, low;
  const Real turns = reduce(x, r, r_low);
  const Real s = sine_near_zero(r, r_low, low), c = cosine_near_zero(r, r_low, low);
  const Real value = select(bit_of(turns, 0), c, s);
  const Real size = absolute(x), result = select(bit_of(turns, 1), -value, value);
  return select(size <= Real(kLargestAngle), select(size < Real(kSmallAngle), x, result),
                Real(kNotANumber));
}

/// For |x| <= 2^20, below 1 ulp: the sine a quarter of a turn later.
template <class Real>
ODECAST_INLINE Real cosine(const Real& x) {
  Real r, r_low, low;
  const Real turns = reduce(x, r, r_low) + 1.0;
  const Real s = sine_near_zero(r, r_low, low), c = cosine_near_zero(r, r_low, low);
  const Real value = select(bit_of(turns, 0), c, s);
  return select(absolute(x) <= Real(kLargestAngle), select(bit_of(turns, 1), -value, value),
                Real(kNotANumber));
}

/// For |x| <= 2^20, below 1.4 ulp: the quotient of both with what they leave behind the last place.
template <class Real>
ODECAST_INLINE Real tangent(const Real& x) {
  Real r, r_low, s_low, c_low;
  const Real turns = reduce(x, r, r_low);
  const Real s = sine_near_zero(r, r_low, s_low), c = cosine_near_zero(r, r_low, c_low);
  const auto odd = bit_of(turns, 0);
  const Real value = quotient<Real>(select(odd, c, s), select(odd, c_low, s_low),
                                    select(odd, -s, c), select(odd, -s_low, c_low));
  const Real size = absolute(x);
  return select(size <= Real(kLargestAngle), select(size < Real(kSmallAngle), x, value),
                Real(kNotANumber));
}

/// exp(x + x_low) = 2^k (s + s_low) for |x| <= 1100: x = k log 2 + r, |r| <= log(2)/2,
/// exp(r) = 1 + r + r^2 E(r), to 2^-61 and the roundings of s_low. Returns k.
template <class Real>
ODECAST_INLINE Real exponential_parts(const Real& x, const Real& x_low, Real& s, Real& s_low) {
  static constexpr double c[] = {
      0x1p-1,
      0x1.5555555555557p-3,
      0x1.5555555555556p-5,
      0x1.11111111100dfp-7,
      0x1.6c16c16c162d6p-10,
      0x1.a01a01abe6324p-13,
      0x1.a01a01a6d7833p-16,
      0x1.71de0237484b1p-19,
      0x1.27e4db67abceep-22,
      0x1.af4ddda1c44bp-26,
      0x1.1f72fc84676cp-29,
  };
  const Real k = (x * 0x1.71547652b82fep0 + kWhole) - kWhole, one = Real(1.0);
  const Real a = x - k * kLog2High, b = -(k * kLog2Low), first = a + b;
  const Real low = sum_error(a, b, first) + x_low, r = first + low;
  s = one + r;
  s_low = ordered_error(one, r, s) + (sum_error(first, low, r) * s + r * r * polynomial(c, r));
  return k;
}

/// Below 0.7 ulp where the result is normal, 1.2 below: 0 from 2^-1075 downwards, infinite from
/// 2^1024 upwards. The power of two is applied as two.
template <class Real>
ODECAST_INLINE Real exponential(const Real& x, const Real& x_low) {
  constexpr double largest = 710, smallest = -746;
  const Real high = larger(Real(smallest), smaller(Real(largest), x));
  Real s, s_low;
  const Real k = exponential_parts(high, select(high == x, x_low, Real(0.0)), s, s_low);
  const Real half = (k * 0.5 + kWhole) - kWhole;
  return (s + s_low) * power_of_two(half) * power_of_two(k - half);
}
template <class Real>
ODECAST_INLINE Real exponential(const Real& x) {
  return exponential(x, Real(0.0));
}

/// tanh |x| = (e^{2|x|} - 1) / (e^{2|x|} + 1), below 1 ulp.
template <class Real>
ODECAST_INLINE Real hyperbolic_tangent(const Real& x) {
  constexpr double one = 44;  // 1 - tanh(22) < 2^-62
  const Real size = absolute(x), minus = Real(-1.0), two = Real(2.0);
  Real s, s_low;
  const Real scale =
      power_of_two(exponential_parts(smaller(Real(one), size * 2.0), Real(0.0), s, s_low));
  const Real whole = s * scale, less = whole + minus;
  const Real rest = sum_error(whole, minus, less) + s_low * scale, above = less + rest;
  const Real above_low = sum_error(less, rest, above), more = two + above;
  const Real value =
      quotient<Real>(above, above_low, more, sum_error(two, above, more) + above_low);
  return select(size < Real(kSmallAngle), x, select(x < Real(0.0), -value, value));
}

/// x = m 2^e with m in [sqrt(1/2), sqrt(2)), for a positive number, subnormal ones too.
template <class Real>
ODECAST_INLINE void split_evenly(const Real& x, Real& m, Real& e) {
  const auto tiny = x < Real(0x1p-1022);
  split(select(tiny, x * 0x1p54, x), m, e);
  e = select(tiny, e - 54.0, e);
  const auto small = m < Real(0.70710678118654752);
  m = select(small, m * 2.0, m);
  e = select(small, e - 1.0, e);
}

/// log x = e log 2 + log(1 + f), log(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 L(s^2))),
/// s = f/(2 + f), |s| <= 0.1716: below 1 ulp. log 0 = -inf; of less: not a number.
template <class Real>
ODECAST_INLINE Real logarithm(const Real& x) {
  static constexpr double c[] = {0x1.5555555555555p-1, 0x1.9999999999a38p-2, 0x1.2492492476ccbp-2,
                                 0x1.c71c7201592a1p-3, 0x1.745cf9048617ap-3, 0x1.3b1c355c3560fp-3,
                                 0x1.0fbe95aaf31a8p-3, 0x1.0c039e172b8dfp-3};
  Real m, e;
  split_evenly(x, m, e);
  const Real f = m - 1.0, s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
  const Real whole = e * kLog2High, sum = whole + f, low = ordered_error(whole, f, sum);
  const Real value = sum + (low - (half - (s * (half + z * polynomial(c, z)) + e * kLog2Low)));
  return select(x > Real(0.0), select(x == Real(kInfinity), x, value),
                select(x == Real(0.0), Real(-kInfinity), Real(kNotANumber)));
}

/// The same to some 2^-64 of it, for a positive finite number:
/// log(1 + f) = 2 artanh s = 2 s (1 + s^2/3 + s^4 T(s^2)).
template <class Real>
ODECAST_INLINE Real logarithm_parts(const Real& x, Real& low) {
  static constexpr double c[] = {0x1.999999999999ap-3, 0x1.2492492492521p-3, 0x1.c71c71c6eaa8cp-4,
                                 0x1.745d177a8f30dp-4, 0x1.3b1395d4f2df4p-4, 0x1.1118c749a1ccap-4,
                                 0x1.df7ce956c7572p-5, 0x1.e02d1cc03596ep-5};
  constexpr double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
  Real m, e;
  split_evenly(x, m, e);
  const Real f = m - 1.0, two = Real(2.0), d = two + f, s = f / d;
  const Real back = s * d, z = s * s;
  const Real s_low = (((f - back) - product_error(s, d, back)) - s * ordered_error(two, f, d)) / d;
  const Real z_low = product_error(s, s, z) + s * s_low * 2.0;
  const Real u = z * third, tail = z * z * polynomial(c, z), w = u + tail;
  const Real w_low = ordered_error(u, tail, w) +
                     (product_error(z, Real(third), u) + (z * third_low + z_low * third));
  const Real more = s * w, g = s + more;
  const Real g_low =
      ordered_error(s, more, g) + (s_low + (product_error(s, w, more) + (s * w_low + s_low * w)));
  const Real whole = e * kLog2High, part = g * 2.0, h = whole + part;
  const Real rest = ordered_error(whole, part, h) + (g_low * 2.0 + e * kLog2Low), sum = h + rest;
  low = ordered_error(h, rest, sum);
  return sum;
}

/// x^c = exp(c log x), below 1.5 ulp where the result is normal. As pow of C for numbers: of a
/// negative x for whole c alone, x^0 = 1, 0^c = 0 or infinite.
template <class Real>
ODECAST_INLINE Real power(const Real& x, const Real& c) {
  constexpr double most = 0x1p70;  // |log x| > 2^-54 unless x is 1: all that is larger is as large
  const Real size = absolute(x), zero = Real(0.0), one = Real(1.0), infinite = Real(kInfinity);
  const Real bounded = larger(Real(-most), smaller(Real(most), c));
  Real log_low;
  const Real log = logarithm_parts(size, log_low), y = bounded * log;
  Real value = exponential(y, product_error(bounded, log, y) + bounded * log_low);
  const Real large = select(c > zero, infinite, select(c < zero, zero, one));
  const Real small = select(c > zero, zero, select(c < zero, infinite, one));
  value = select(size == infinite, large, select(size == zero, small, value));
  // Numbers from 2^52 are whole and from 2^53 even.
  const Real exponent = absolute(c), half = exponent * 0.5;
  const auto whole =
      select(exponent < Real(0x1p52), (exponent + 0x1p52) - 0x1p52, exponent) == exponent;
  const Real halves = select(half < Real(0x1p52), (half + 0x1p52) - 0x1p52, half);
  const Real signed_value = select(halves == half, value, -value);
  value =
      select(bit_of(x, 63),
             select(whole, signed_value, select(size == zero, value, Real(kNotANumber))), value);
  return select(x == x, select(c == c, value, c), x);
}

/// -1, 0 or 1.
template <class Real>
ODECAST_INLINE Real sign(const Real& x) {
  return select(x > Real(0.0), Real(1.0), select(x < Real(0.0), Real(-1.0), x - x));
}

}  // namespace
}  // namespace odecast
