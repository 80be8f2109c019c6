#include "odecast/core/random.hpp"

#include <Random123/philox.h>

#include <bit>
#include <cassert>
#include <cmath>

namespace odecast {
namespace {

std::array<std::uint32_t, 4> philox(std::uint64_t seed, Purpose purpose, std::uint64_t index,
                                    std::uint32_t position) {
  const r123::Philox4x32::ctr_type counter = {{position, static_cast<std::uint32_t>(purpose),
                                               static_cast<std::uint32_t>(index),
                                               static_cast<std::uint32_t>(index >> 32)}};
  const r123::Philox4x32::key_type key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const auto out = r123::Philox4x32()(counter, key);
  return {out[0], out[1], out[2], out[3]};
}

template <std::size_t N>
double horner(const std::array<double, N>& c, double x) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

}  // namespace

std::uint32_t Stream::bits() {
  if (left_ == 0) {
    block_ = philox(seed_, purpose_, index_, position_++);
    left_ = 4;
  }
  return block_[static_cast<std::size_t>(4 - left_--)];
}

double Stream::uniform() {
  const std::uint64_t high = bits() >> 5, low = bits() >> 6;  // 27 + 26 bits
  return (static_cast<double>((high << 26) | low) + 0.5) * 0x1p-53;
}

double Stream::normal() { return normal_quantile(uniform()); }

std::uint32_t bernoulli_word(std::uint64_t seed, Purpose purpose, std::uint64_t index,
                             std::uint32_t word, double probability) {
  assert(probability >= 0 && probability <= 1);
  const auto p = static_cast<std::uint64_t>(std::nearbyint(probability * 0x1p32));
  if (p >> 32) return ~0u;
  std::uint32_t result = 0, undecided = ~0u;
  auto rest = static_cast<std::uint32_t>(p);  // digits of p not yet looked at
  for (std::uint32_t group = 0; rest != 0 && undecided != 0; ++group) {
    const auto digits = philox(seed, purpose, index, word / 2 * 16 + group);
    for (std::uint32_t d = 0; d < 2; ++d, rest <<= 1) {
      const std::uint32_t u = digits[word % 2 * 2 + d];
      if (rest >> 31) {
        result |= undecided & ~u;
        undecided &= u;
      } else {
        undecided &= ~u;
      }
    }
  }
  return result;
}

double portable_log(double x) {
  assert(x > 0 && std::isfinite(x));
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), z = s * s;  // |s| <= 0.1716, z <= 0.02944
  double sum = 0;
  for (int i = 21; i >= 3; i -= 2) sum = (sum + 1.0 / i) * z;  // z^10/21 < 3e-17
  const double e = exponent;
  // log 2 in two parts, the first with 21 trailing zero bits so that e * it is exact.
  return e * 0x1.62e42feep-1 + (2 * s + (2 * s * sum + e * 0x1.a39ef35793c76p-33));
}

double normal_quantile(double p) {
  assert(p > 0 && p < 1);
  static constexpr std::array<double, 8> a = {
      3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
      1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
      3.3430575583588128105e4, 2.5090809287301226727e3};
  static constexpr std::array<double, 8> b = {
      1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
      2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
      5.2264952788528545610e3};
  static constexpr std::array<double, 8> c = {
      1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
      3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
      2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr std::array<double, 8> d = {
      1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
      1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
      1.05075007164441684324e-9};
  static constexpr std::array<double, 8> e = {
      6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
      2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
      2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr std::array<double, 8> f = {
      1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
      7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
      2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * horner(a, r) / horner(b, r);
  }
  const double tail = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double x = tail <= 5 ? horner(c, tail - 1.6) / horner(d, tail - 1.6)
                             : horner(e, tail - 5) / horner(f, tail - 5);
  return q < 0 ? -x : x;
}

}  // namespace odecast
