#include "odecast/shooting/offset.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace odecast {
namespace {

TEST(OffsetTest, AnOffsetIsShortAndWithinAnSdOfTheMean) {
  EXPECT_EQ(rounded_mean(300.13, 1.2), 300);
  EXPECT_EQ(rounded_mean(-299.8, 0.6), -300);
  EXPECT_EQ(rounded_mean(1013.4, 9), 1010);
  EXPECT_EQ(rounded_mean(1e-3, 2e-6), 1e-3);
  EXPECT_EQ(rounded_mean(37.2468, 0.0345), 37.25);
  for (const double mean : {-1234.5, 0.07123, 9.9e8})
    for (double ratio = 6; ratio < 1e9; ratio *= 3.3) {
      const double sd = std::abs(mean) / ratio;
      EXPECT_LE(std::abs(rounded_mean(mean, sd) - mean), sd * (1 + 1e-6)) << mean << " ± " << sd;
    }
}

TEST(OffsetTest, WhatIsNearZeroOrConstantKeepsItsZero) {
  using Eigen::Vector3d;
  EXPECT_EQ(offsets(Vector3d(0.1, -0.2, 23.5), Vector3d(7.9, 9, 8.6)), Vector::Zero(3));
  EXPECT_EQ(offsets(Vector3d(90, 60, 1), Vector3d(10, 10, 10)), Vector::Zero(3));
  EXPECT_EQ(offsets(Vector3d(300, 0, 1), Vector3d(0, 0, 1)), Vector::Zero(3));
  // One that is far takes those with it that are away.
  EXPECT_EQ(offsets(Vector3d(300, 60, 1), Vector3d(1, 10, 1)), Vector3d(300, 60, 0));
}

}  // namespace
}  // namespace odecast
