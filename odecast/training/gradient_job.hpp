#pragma once

#include <cstdint>

namespace odecast {

inline constexpr int kRowsPerBlock = 32;  ///< a word of mask bits serves one unit of a block

/// What the gradient kernels see: a run of blocks of 32 rows of a polynomial kernel's training
/// set, as plain numbers and pointers.
struct GradientJob {
  int n, k, outputs, degree;
  long rows;                   ///< in this job
  long stride;                 ///< between variables in states and targets
  const double* states;        ///< variable × row
  const double* targets;       ///< output × row
  const double *W1, *B1, *W2, *B2;  ///< W1 and B1 times mask_value
  double mask_value;           ///< 1, or 1/q when the mask is rescaled
  const std::uint32_t* masks;  ///< block × unit
  double* gradient;            ///< W1, B1, W2, B2: Σ over rows of ∂|e|²/2
  double loss;                 ///< Σ over rows of |e|²
  double* work;                ///< gradient_work_size() doubles, aligned to 64 bytes
};

constexpr long gradient_work_size(int n, int k, int outputs) {
  const long parameters = static_cast<long>(k) * n + k + static_cast<long>(outputs) * k + outputs;
  const long widest = n > outputs ? n : outputs;
  return 8 * (parameters + 4L * k + 9L * widest);
}

inline constexpr int kMaskWords = 16;  ///< drawn at a time

/// Words of bernoulli_word(), from an even one on.
struct MaskJob {
  std::uint64_t seed;
  std::uint32_t purpose;
  std::uint64_t index;
  long first_word, words;
  std::uint32_t probability;  ///< of a 1, times 2^32
  std::uint32_t* masks;       ///< room for `words`, rounded up to kMaskWords
};

void run_masks_sse2(const MaskJob& job);
void run_masks_avx2(const MaskJob& job);
void run_masks_avx512(const MaskJob& job);

void run_gradient_sse2(GradientJob& job);
void run_gradient_avx2(GradientJob& job);
void run_gradient_avx512(GradientJob& job);

}  // namespace odecast
