// The inner loops allocate nothing.

#include <gtest/gtest.h>

#include "odecast/solver/lanes.hpp"
#include "odecast/systems/catalogue.hpp"
#include "support/allocations.hpp"

namespace odecast {
namespace {

TEST(AllocationTest, LanesAllocateTheSameForManyStepsAsForFew) {
  const MonomialBasis basis(3, 2);
  LaneProblems problems;
  problems.basis = &basis;
  problems.starts.assign(3 * 64, 0.5);
  problems.coefficients.assign(30 * 64, 0.0);
  for (std::size_t k = 0; k < 64; ++k) {  // a rotation in x and y
    problems.coefficients[30 * k + 2] = -1;
    problems.coefficients[30 * k + 11] = 1;
  }
  std::vector<double> states(64 * 3 * lane_stride(1));
  std::vector<TrajectoryEnd> ends(64);
  const auto run = [&](double end) {
    const std::vector<double> times = {end};
    problems.times = times;
    return allocations_of([&] { solve_lanes(problems, {}, states.data(), ends); });
  };
  const long few = run(1), many = run(1000);
  EXPECT_GT(ends[0].steps, 500);
  EXPECT_EQ(few, many);
  EXPECT_LT(few, 30);
}

TEST(AllocationTest, ALoneTrajectoryAllocatesTheSameForManySteps) {
  const VectorField field = find_system("SprottB").field;
  const auto run = [&](double end) {
    const std::vector<double> times = {end};
    return allocations_of([&] { solve(field, 0, Vector::Ones(3), times, {}); });
  };
  EXPECT_EQ(run(1), run(500));
}

}  // namespace
}  // namespace odecast
