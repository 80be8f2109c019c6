// The inner loops allocate nothing.

#include <gtest/gtest.h>

#include "odecast/training/exact.hpp"
#include "odecast/training/train.hpp"
#include "support/allocations.hpp"
#include "support/kernels.hpp"
#include "support/rows.hpp"

namespace odecast {
namespace {

TEST(TrainingAllocationTest, TheCounterCounts) {
  const long one = allocations_of([] { Vector(1000).setZero(); });
  EXPECT_EQ(one > 0, allocations_are_counted);
}

TEST(TrainingAllocationTest, AdamStepsAllocateNothing) {
  for (const int count : {300, 2100}) {  // either form of the gradient
    const DerivativeRows rows = random_rows(count, 3, 1);
    const auto run = [&](int steps) {
      Network network = random_kernel(3, 10, 2, 0.25, false, 1);
      TrainOptions o;
      o.batches = 1;
      o.schedule = {{steps, 0.001}};
      return allocations_of([&] { train(network, rows, o, ignore_progress); });
    };
    run(1);
    EXPECT_EQ(run(10), run(1000));
  }
}

TEST(TrainingAllocationTest, TheExactObjectiveAllocatesNothing) {
  const DerivativeRows rows = random_rows(300, 3, 1);
  RowFactor factor(3, 2, 3);
  factor.add(rows.states, rows.derivatives);
  ExactObjective objective(factor, 10, 0.25);
  Vector theta = Vector::LinSpaced(40, -1, 1), gradient(40);
  EXPECT_EQ(allocations_of([&] { objective(theta, gradient); }), 0);
}

}  // namespace
}  // namespace odecast
