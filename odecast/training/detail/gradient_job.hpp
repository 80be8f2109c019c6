#pragma once

#include <cstdint>

#include "odecast/core/detail/kernel.hpp"

namespace odecast {

inline constexpr int kRowsPerBlock = 32;  ///< a word of mask bits serves one unit of a block

/// What the gradient kernels see: a run of blocks of 32 rows of a polynomial kernel's training
/// set, as plain numbers and pointers.
struct GradientJob {
  int n, k, outputs, degree;
  long rows;                        ///< in this job
  long stride;                      ///< between variables in states and targets
  const double* states;             ///< variable × row
  const double* targets;            ///< output × row
  const double *W1, *B1, *W2, *B2;  ///< W1 and B1 times mask_value
  double mask_value;                ///< 1, or 1/q when the mask is rescaled
  const std::uint32_t* masks;       ///< block × unit
  double* gradient;                 ///< W1, B1, W2, B2: Σ over rows of ∂|e|²/2
  double loss;                      ///< Σ over rows of |e|²
  double* work;                     ///< gradient_work_size() doubles, aligned to 64 bytes
};

constexpr long gradient_work_size(int n, int k, int outputs) {
  const long parameters = static_cast<long>(k) * n + k + static_cast<long>(outputs) * k + outputs;
  const long widest = n > outputs ? n : outputs;
  return 8 * (parameters + 4L * k + 9L * widest);
}

inline constexpr int kOutputSlots = 4, kMaxDegree = 3;
inline constexpr int kRowStride = 8;             ///< of a row: four targets, up to four variables
inline constexpr std::uint16_t kNoRow = 0xffff;  ///< ends a list of rows

/// The same for rows grouped by their masks; see pattern_kernel.hpp. Coefficients and their
/// gradients are monomial × 4 outputs, of which job.outputs are in use.
struct PatternJob {
  int n, k, outputs, degree;   ///< patterns_apply() holds
  long rows;                   ///< in this job, fewer than kNoRow
  const double* numbers;       ///< rows, aligned to 64 bytes as all that follows
  const double* coefficients;  ///< C_0, …, C_k
  const std::uint32_t* masks;  ///< block × unit
  std::uint16_t* next;         ///< room for a number per row
  std::uint16_t* heads;        ///< 2^k times kNoRow, before and after
  std::uint16_t* groups;       ///< room for 2^k + 1
  double* gradient;            ///< H_0, …, H_k: Σ over rows of ∂|e|²/2
  double loss;                 ///< Σ over rows of |e|²
  double* work;                ///< pattern_work_size() doubles
};

/// Sizes that the kernel is compiled for.
constexpr bool patterns_apply(int n, int k, int outputs, int degree) {
  return n >= 1 && k >= 1 && k <= 16 && outputs <= kOutputSlots && degree >= 1 &&
         ((n <= 3 && degree <= kMaxDegree) || (n == 4 && degree <= 2));
}

constexpr long pattern_work_size(int k, int monomials) {
  return 2L * kOutputSlots * monomials * ((1L << k / 2) + (1L << (k - k / 2)));
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

inline constexpr int kNormals = 16;  ///< drawn at a time

/// Numbers of Stream::normal(), from an even one on.
struct NormalJob {
  std::uint64_t seed;
  std::uint32_t purpose;
  std::uint64_t index;
  long first, count;  ///< a multiple of kNormals
  double* normals;
};

ODECAST_KERNEL(run_normals, const NormalJob)
ODECAST_KERNEL(run_masks, const MaskJob)
ODECAST_KERNEL(run_patterns, PatternJob)
ODECAST_KERNEL(run_gradient, GradientJob)

}  // namespace odecast
