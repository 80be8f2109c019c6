#include "odecast/core/random.hpp"

#include <Random123/philox.h>

#include <cassert>
#include <cmath>

#include "odecast/core/detail/normal_kernel.hpp"

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
  return plain_logarithm(x);
}

double normal_quantile(double p) {
  assert(p > 0 && p < 1);
  return quantile(p);
}

}  // namespace odecast
