#include "odecast/forecast/moments.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

TEST(MomentsTest, EqualTheTwoPassFormulaForOffsetData) {
  // A mean far larger than the spread defeats the textbook one-pass formula.
  Stream stream(1, Purpose::observation_noise, 0);
  const int runs = 200, times = 7;
  RunningMoments whole(2, times), left(2, times), right(2, times);
  std::vector<std::vector<double>> all;
  std::vector<int> outputs;
  for (int k = 0; k < runs; ++k) {
    std::vector<double> states;
    for (int i = 0; i < 2 * times; ++i) states.push_back(1e8 + stream.normal());
    outputs.push_back(k % 3 == 0 ? 4 : times);
    whole.add(states.data(), times, outputs.back());
    (k < 80 ? left : right).add(states.data(), times, outputs.back());
    all.push_back(states);
  }
  left.merge(right);
  for (int v = 0; v < 2; ++v) {
    for (int t = 0; t < times; ++t) {
      double sum = 0, count = 0, square = 0;
      for (int k = 0; k < runs; ++k)
        if (outputs[static_cast<std::size_t>(k)] > t)
          sum += all[static_cast<std::size_t>(k)][static_cast<std::size_t>(v * times + t)] - 1e8,
              ++count;
      const double mean = sum / count;
      for (int k = 0; k < runs; ++k)
        if (outputs[static_cast<std::size_t>(k)] > t)
          square +=
              std::pow(all[static_cast<std::size_t>(k)][static_cast<std::size_t>(v * times + t)] -
                           1e8 - mean,
                       2);
      for (const RunningMoments* m : {&whole, &left}) {
        EXPECT_EQ(m->count(t), count);
        EXPECT_NEAR(m->mean(v, t) - 1e8, mean, 1e-6);
        EXPECT_NEAR(m->sd(v, t), std::sqrt(square / (count - 1)), 1e-6);
      }
    }
  }
}

TEST(MomentsTest, FewerThanTwoHaveNoSpread) {
  RunningMoments m(1, 1);
  EXPECT_TRUE(std::isnan(m.sd(0, 0)));
  const double x = 3;
  m.add(&x, 1, 1);
  EXPECT_EQ(m.mean(0, 0), 3);
  EXPECT_TRUE(std::isnan(m.sd(0, 0)));
}

TEST(MomentsTest, MergingNothingChangesNothing) {
  RunningMoments m(1, 1), empty(1, 1);
  for (const double x : {1.0, 2.0, 4.0}) m.add(&x, 1, 1);
  const double sd = m.sd(0, 0);
  m.merge(empty);
  EXPECT_EQ(m.sd(0, 0), sd);
  empty.merge(m);
  EXPECT_EQ(empty.sd(0, 0), sd);
}

}  // namespace
}  // namespace odecast
