#include "odecast/observations/kept_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/observations/source.hpp"

namespace odecast {
namespace {

Trajectory wave(const std::string& id, int rows, double from) {
  Trajectory t{id, {}, Matrix(rows, 2)};
  for (int k = 0; k < rows; ++k) {
    t.times.push_back(from + 0.5 * k);
    t.states.row(k) << std::sin(t.times.back()), std::cos(t.times.back());
  }
  return t;
}

KeptRows keep(const Dataset& data, int recent) {
  RowKeeper keeper(data.dimension(), recent);
  source_of(data).replay([&](std::size_t which, double time, const double* state) {
    keeper.add(which, time, state);
    return true;
  });
  return keeper.kept();
}

Dataset waves(std::vector<Trajectory> trajectories) {
  return {.variables = {"x", "y"}, .trajectories = std::move(trajectories)};
}

TEST(KeptRowsTest, TheLastRowsAreAllThereAndOlderOnesThinByPowersOfTwo) {
  const Dataset data = waves({wave("a", 50, 1000), wave("b", 1000, 0)});
  const KeptRows kept = keep(data, 16);
  EXPECT_EQ(kept.from, 0);
  EXPECT_EQ(kept.until, 1000 + 0.5 * 49);
  // By the definition: of every level the last 16 multiples of its power, where no finer one has
  // them.
  std::vector<double> expected;
  const Trajectory& t = data.trajectories[1];
  int oldest = t.rows();
  for (int every = 1; every < 2048; every *= 2) {
    const int last = (t.rows() - 1) / every * every;
    for (int k = last; k >= std::max(0, last - 15 * every); k -= every)
      if (k < oldest) expected.push_back(t.times[static_cast<std::size_t>(oldest = k)]);
  }
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(kept.times, expected);
  EXPECT_EQ(kept.times.back(), t.times.back());
  EXPECT_LT(kept.times.size(), 16u * 8);
  for (std::size_t k = 0; k < kept.times.size(); ++k)
    EXPECT_NEAR(kept.states(static_cast<Eigen::Index>(k), 0), std::sin(kept.times[k]), 5e-7);
  // All of few; none where none are asked for.
  EXPECT_EQ(keep(waves({wave("a", 12, 3)}), 16).times, wave("a", 12, 3).times);
  EXPECT_TRUE(keep(data, 0).times.empty());
  // The range is that of all rows.
  EXPECT_EQ(kept.low[0], std::min(data.trajectories[0].states.col(0).minCoeff(),
                                  data.trajectories[1].states.col(0).minCoeff()));
  EXPECT_EQ(kept.high[1], std::max(data.trajectories[0].states.col(1).maxCoeff(),
                                   data.trajectories[1].states.col(1).maxCoeff()));
  EXPECT_EQ(keep(data, 0).hashes, kept.hashes);
}

TEST(KeptRowsTest, ASampleOfAllRowsTellsHowFarAStateIsFromThem) {
  Dataset data = waves({wave("a", 700, 0.1), wave("b", 50, 1000)});
  data.trajectories[0].states(3, 1) = std::numeric_limits<double>::quiet_NaN();
  const KeptRows kept = keep(data, 10);
  ASSERT_EQ(kept.sample.rows(), static_cast<Eigen::Index>(kKeptSample));
  for (Eigen::Index j = 0; j < kept.sample.rows(); ++j)
    EXPECT_NEAR(kept.sample.row(j).norm(), 1, 1e-5) << "a row of the circle";
  EXPECT_EQ(keep(data, 0).sample.rows(), 0);
  EXPECT_EQ(keep(waves({wave("a", 12, 0)}), 5).sample.rows(), 12) << "all of few";
  // In units of sd, of which the second variable has none.
  const auto d = distance_from(kept, Eigen::Vector2d(3, 0), Eigen::Vector2d(0.5, 0.5));
  ASSERT_TRUE(d.has_value());
  EXPECT_NEAR(d->nearest, 4, 0.1);
  EXPECT_LT(d->usual, 1);
  EXPECT_GT(d->usual, 0);
  EXPECT_NEAR(distance_from(kept, Eigen::Vector2d(3, 77), Eigen::Vector2d(0.5, 0))->nearest, 4,
              0.1);
  EXPECT_FALSE(distance_from(KeptRows{}, Eigen::Vector2d(3, 0), Eigen::Vector2d(1, 1)));
}

TEST(KeptRowsTest, RowsThatWereKeptOfAreToldFromOthers) {
  const Dataset data = waves({wave("a", 2000, 0), wave("b", 500, 7.1)});
  const KeptRows kept = keep(data, 10);
  EXPECT_EQ(kept.hashes.size(), kSketch);
  EXPECT_EQ(share_kept(kept, data.variables, data), 1);
  // Another name and order of trajectories and columns, and a part of them.
  Dataset other = waves({data.trajectories[1]});
  EXPECT_EQ(share_kept(kept, data.variables, other), 1);
  other.variables = {"y", "x"};
  other.trajectories[0].states.col(0).swap(other.trajectories[0].states.col(1));
  EXPECT_EQ(share_kept(kept, data.variables, other), 1);
  // Half of them: within five standard errors of 32 or so.
  const Dataset mixed = waves({data.trajectories[0], wave("new", 2000, 0.013)});
  EXPECT_NEAR(share_kept(kept, data.variables, mixed), 0.5, 5 * 0.5 / std::sqrt(40));
  EXPECT_EQ(share_kept(kept, data.variables, waves({wave("new", 2000, 0.013)})), 0);
  EXPECT_EQ(share_kept(kept, {"x", "z"}, data), 0);
  // Few rows are all in the sketch; the same states at other times are other rows.
  const Dataset few = waves({wave("a", 20, 0)});
  const KeptRows all = keep(few, 10);
  EXPECT_EQ(share_kept(all, few.variables, few), 1);
  Dataset later = few;
  for (double& time : later.trajectories[0].times) time += 1e-9;
  EXPECT_EQ(share_kept(all, few.variables, later), 0);
}

TEST(KeptRowsTest, MissingValuesStayMissing) {
  Dataset data = waves({wave("a", 5, 0)});
  data.trajectories[0].states(2, 1) = std::numeric_limits<double>::quiet_NaN();
  const KeptRows kept = keep(data, 10);
  EXPECT_TRUE(std::isnan(kept.states(2, 1)));
  EXPECT_NEAR(kept.states(2, 0), std::sin(1.0), 5e-7);
  EXPECT_EQ(share_kept(kept, data.variables, data), 1);
}

}  // namespace
}  // namespace odecast
