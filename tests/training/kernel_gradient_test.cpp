#include "odecast/training/detail/kernel_gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/kernels.hpp"
#include "support/rows.hpp"

namespace odecast {
namespace {

/// The masks of a step as the trainers define them, bit by bit.
Masks masks_of(const Network& network, long rows, const TrainOptions& o, std::uint64_t step) {
  const Layer& hidden = network.layers[0];
  if (hidden.dropout == 0) return {};
  if (o.mask_per_batch) return sample_mask(network, o.seed, Purpose::training_mask, step);
  Masks masks(2);
  const auto k = hidden.biases.size();
  masks[0].resize(rows, k);
  for (long i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < k; ++j)
      masks[0](i, j) = bernoulli_word(o.seed, Purpose::training_mask, step,
                                      static_cast<std::uint32_t>(i / 32 * k + j), hidden.keep()) >>
                           (i % 32) &
                       1;
  return masks;
}

void expect_equal_to_back_propagation(int n, int k, int degree, double dropout, bool rescale,
                                      int count, bool mask_per_batch) {
  const DerivativeRows rows = random_rows(count, n, 1);
  const Network network = random_kernel(n, k, degree, dropout, rescale, 2);
  TrainOptions o;
  o.mask_per_batch = mask_per_batch;
  const Masks masks = masks_of(network, count, o, 7);
  const LossGradient expected = loss_gradient(network, rows.states, rows.derivatives, masks);
  for (const auto form : {GradientForm::units, GradientForm::patterns}) {
    if (form == GradientForm::patterns && !patterns_apply(n, k, n, degree)) continue;
    KernelGradient sum(network, rows.states, o, form);
    sum.set_targets(rows.derivatives);
    Vector gradient;
    for (int again = 0; again < 2; ++again) {  // the work space is left as it was found
      EXPECT_NEAR(sum(parameters(network), 7, gradient), expected.loss, 1e-12 * expected.loss);
      EXPECT_LT((gradient - expected.gradient).norm(), 1e-11 * expected.gradient.norm())
          << "n " << n << " k " << k << " p " << degree << " r " << dropout << " rows " << count
          << " form " << static_cast<int>(form);
    }
  }
}

TEST(KernelGradientTest, BothFormsEqualBackPropagation) {
  for (const int n : {1, 2, 3, 4})
    for (const int k : {1, 2, 5, 10, 11, 20})
      for (const int degree : {1, 2, 3})
        expect_equal_to_back_propagation(n, k, degree, 0.25, k % 2 == 0, 333, false);
}

TEST(KernelGradientTest, BothFormsWithAnyRowsAndMasks) {
  for (const int count : {1, 31, 32, 70, 2049, 8200})
    expect_equal_to_back_propagation(3, 10, 2, 0.25, false, count, false);
  for (const double dropout : {0.0, 0.05, 0.5})
    expect_equal_to_back_propagation(3, 10, 2, dropout, true, 300, false);
  expect_equal_to_back_propagation(3, 10, 2, 0.25, true, 300, true);
}

/// call(kernel) for every instruction set of this machine, in order.
#define CALL_ONE(isa, has, kernel, call) \
  if (has) call(isa::kernel);
#define ON_EVERY_INSTRUCTION_SET(kernel, call) ODECAST_ISAS(CALL_ONE, kernel, call)

TEST(KernelGradientTest, InstructionSetsAgreeToTheLastBit) {
  constexpr int n = 3, k = 10, outputs = 3, degree = 2, F = 10;
  constexpr long rows = 1500, table = (1 + k) * F * kOutputSlots;
  Stream stream(5, Purpose::observation_noise, 0);
  const AlignedDoubles numbers = aligned_doubles(rows * kRowStride), C = aligned_doubles(table);
  for (long i = 0; i < rows * kRowStride; ++i) numbers.get()[i] = stream.normal();
  for (long i = 0; i < table; ++i) C.get()[i] = stream.normal();
  std::vector<std::uint32_t> masks(1504 / 32 * k);
  for (auto& word : masks) word = stream.bits() | stream.bits();
  std::vector<std::vector<double>> results;
  const auto run = [&](void (*kernel)(PatternJob&)) {
    std::vector<std::uint16_t> next(rows), heads(1 << k, kNoRow), groups((1 << k) + 1);
    const AlignedDoubles H = aligned_doubles(table),
                         work = aligned_doubles(pattern_work_size(k, F));
    PatternJob job{n,
                   k,
                   outputs,
                   degree,
                   rows,
                   numbers.get(),
                   C.get(),
                   masks.data(),
                   next.data(),
                   heads.data(),
                   groups.data(),
                   H.get(),
                   0,
                   work.get()};
    kernel(job);
    results.emplace_back(H.get(), H.get() + table);
    results.back().push_back(job.loss);
  };
  ON_EVERY_INSTRUCTION_SET(run_patterns, run)
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST(KernelGradientTest, LanesDrawTheNormalsOfAStream) {
  constexpr long first = 32, count = 160'000;
  Stream stream(0x123456789abcdefULL, Purpose::derivative_noise, 0x9900000044ULL);
  for (long i = 0; i < first; ++i) stream.normal();
  std::vector<double> expected;
  for (long i = 0; i < count; ++i) expected.push_back(stream.normal());
  const auto run = [&](void (*kernel)(const NormalJob&)) {
    std::vector<double> normals(count);
    kernel({0x123456789abcdefULL, static_cast<std::uint32_t>(Purpose::derivative_noise),
            0x9900000044ULL, first, count, normals.data()});
    EXPECT_EQ(normals, expected);
  };
  ON_EVERY_INSTRUCTION_SET(run_normals, run)
}

TEST(KernelGradientTest, ThreadsDoNotChangeTheBits) {
  const DerivativeRows rows = random_rows(100'001, 3, 1);  // enough that threads are used at all
  const Network network = random_kernel(3, 10, 2, 0.25, false, 2);
  for (const auto form : {GradientForm::units, GradientForm::patterns}) {
    Vector first;
    for (const int threads : {1, 2, 3}) {
      TrainOptions o;
      o.threads = threads;
      KernelGradient sum(network, rows.states, o, form);
      sum.set_targets(rows.derivatives);
      Vector gradient;
      sum(parameters(network), 1, gradient);
      if (threads == 1) first = gradient;
      EXPECT_EQ(gradient, first) << threads;
    }
  }
}

TEST(KernelGradientTest, ThePapersSettingIsGroupedByMask) {
  EXPECT_EQ(faster_form(3, 10, 3, 2, 5000), GradientForm::patterns);
  EXPECT_EQ(faster_form(3, 10, 3, 2, 500), GradientForm::units);
  EXPECT_EQ(faster_form(3, 10, 3, 2, 100'000), GradientForm::units);
  EXPECT_EQ(faster_form(3, 20, 3, 2, 5000), GradientForm::units);
  EXPECT_EQ(faster_form(20, 10, 20, 2, 5000), GradientForm::units);
}

}  // namespace
}  // namespace odecast
