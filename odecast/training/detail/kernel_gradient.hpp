#pragma once

#include <memory>
#include <vector>

#include "odecast/core/aligned.hpp"
#include "odecast/training/detail/gradient_job.hpp"
#include "odecast/training/train.hpp"

namespace odecast {

/// Numbers first, …, first + count - 1 of Stream(seed, purpose, index).normal(), in lanes; both are
/// multiples of kNormals.
void draw_normals(std::uint64_t seed, Purpose purpose, std::uint64_t index, long first, long count,
                  double* normals);

/// How the gradient of a polynomial kernel is summed. Both give the same sums up to rounding.
enum class GradientForm {
  units,     ///< unit by unit, eight rows at a time
  patterns,  ///< as polynomials, the rows of each mask together
};

/// The form that takes less time.
GradientForm faster_form(int n, int k, int outputs, int degree, long rows);

/// Loss and gradient of the steps of a polynomial kernel, in lanes, with masks of its own. Same
/// bits for any number of threads and any instruction set.
class KernelGradient {
 public:
  KernelGradient(const Network& network, const Matrix& states, const TrainOptions& options,
                 GradientForm form);
  KernelGradient(const Network& network, const Matrix& states, const TrainOptions& options);
  ~KernelGradient();

  void set_targets(const Matrix& targets);
  /// The mean over rows of |e|² and its gradient, with the masks of step `step`: row i keeps unit j
  /// where bit i % 32 of word (i / 32) k + j of the step is set.
  double operator()(const Vector& theta, std::uint64_t step, Vector& gradient);

 private:
  class Sum;
  class UnitSum;
  class PatternSum;
  struct Run;
  void fill_masks(Run& run, std::uint64_t step, const std::vector<std::uint32_t>& one_mask) const;
  std::vector<std::uint32_t> whole_batch_mask(std::uint64_t step) const;

  Layer hidden_;
  int k_;
  long rows_;
  const TrainOptions& options_;
  int threads_;
  std::vector<Run> runs_;
  std::unique_ptr<Sum> sum_;
};

}  // namespace odecast
