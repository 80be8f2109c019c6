#include "odecast/observations/conserved.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace odecast {
namespace {

/// A → B → C with rates 1 and 0.6 from (1, 0, 0), whose sum stays: the closed form, with noise.
Dataset chain(double total, double noise) {
  Dataset data{{"A", "B", "C"}, {{"", {}, Matrix(200, 3)}}};
  Trajectory& t = data.trajectories[0];
  for (int i = 0; i < 200; ++i) {
    const double time = 0.05 * i, a = std::exp(-time),
                 b = (std::exp(-0.6 * time) - std::exp(-time)) / 0.4;
    t.times.push_back(time);
    t.states.row(i) << total * a, total * b, total * (1 - a - b);
  }
  add_noise(data, Vector::Constant(3, noise), 5);
  return data;
}

TEST(ConservedTest, TheSumOfAChainOfReactions) {
  for (const double noise : {0.0, 0.01, 0.03}) {
    const Dataset data = chain(1, noise);
    const auto c = conserved(source_of(data), Vector::Constant(3, noise));
    ASSERT_TRUE(c) << noise;
    EXPECT_EQ(in_words(*c, data.variables), "A + B + C") << noise;
    EXPECT_NEAR(c->value, 1, 0.02);
  }
}

TEST(ConservedTest, WithinEachTrajectoryWhateverItsTotal) {
  Dataset data = chain(1, 0.01);
  data.trajectories.push_back(chain(3, 0.01).trajectories[0]);
  const auto c = conserved(source_of(data), Vector::Constant(3, 0.01));
  ASSERT_TRUE(c);
  EXPECT_EQ(in_words(*c, data.variables), "A + B + C");
}

TEST(ConservedTest, NothingOfASystemThatMovesInAllDirections) {
  Dataset data = chain(1, 0.01);
  data.variables = {"A", "B"};
  data.trajectories[0].states.conservativeResize(Eigen::NoChange, 2);
  EXPECT_FALSE(conserved(source_of(data), Vector::Constant(2, 0.01)));
  EXPECT_FALSE(conserved(source_of(chain(1, 0.01)), Vector()));                 // noise not known
  EXPECT_FALSE(conserved(source_of(chain(1, 0.3)), Vector::Constant(3, 0.3)));  // nothing but noise
}

}  // namespace
}  // namespace odecast
