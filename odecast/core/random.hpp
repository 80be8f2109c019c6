#pragma once

#include <array>
#include <cstdint>

namespace odecast {

/// What a stream of random numbers is for. Streams of different purpose never overlap. The values
/// are part of what a seed means: append, never renumber.
enum class Purpose : std::uint32_t {
  initial_weights = 1,
  derivative_noise = 2,
  training_mask = 3,
  forecast_mask = 4,
  initial_state = 5,
  transition_noise = 6,
  observation_noise = 7,
  trajectory_draw = 8,
  evaluation = 9,
  bootstrap_blocks = 10,
  ensemble_member = 11,
  forcing = 12,
  filter_rotation = 13,
  filter_jitter = 14,
  filter_resample = 15,
  filter_start = 16,
  filter_drift = 17,
  filter_ahead = 18,
  attractor = 20,
};

/// A stream of random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11), a bijection of a
/// 128-bit counter under a 64-bit key. The key is the seed; the counter is (position, purpose,
/// index). No state is shared, so member `index` can be replayed alone and results do not depend on
/// the number of threads. Only + - * / sqrt and integer operations are used: the bits do not depend
/// on a maths library.
class Stream {
 public:
  Stream(std::uint64_t seed, Purpose purpose, std::uint64_t index)
      : seed_(seed), index_(index), purpose_(purpose) {}

  /// 32 random bits.
  std::uint32_t bits();
  /// Uniform in the open interval (0, 1), on the grid (i + 1/2) / 2^53.
  double uniform();
  /// Standard normal, by inversion.
  double normal();

 private:
  std::uint64_t seed_, index_;
  Purpose purpose_;
  std::uint32_t position_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int left_ = 0;
};

/// 32 independent bits, each 1 with the given probability (exact to 2^-32). Word `word` of the
/// stream (seed, purpose, index) is random-access: its binary digits sit at fixed counters.
///
/// Bit i compares a uniform number U_i with the probability p, digit by digit from the top, all 32
/// at once: while the digits agree U_i is undecided; a 0 where p has a 1 means U_i < p. Half of
/// the undecided are decided by each digit, so about seven words are drawn instead of 32, and two
/// for p = 3/4. A block of Philox holds two digits of two neighbouring words.
std::uint32_t bernoulli_word(std::uint64_t seed, Purpose purpose, std::uint64_t index,
                             std::uint32_t word, double probability);

/// The value below which a standard normal falls with probability p in (0, 1), to about 1e-16
/// relative (Wichura, algorithm AS 241, Appl. Statist. 37 (1988) 477).
double normal_quantile(double p);

/// The natural logarithm of a positive normal number by + - * / only, to about 2 units in the last
/// place: log x = e log 2 + 2 artanh((m - 1)/(m + 1)), x = m 2^e, m in [sqrt(1/2), sqrt(2)).
double portable_log(double x);

}  // namespace odecast
