// Radau IIA against exact solutions, published reference values of stiff problems and the explicit
// method.
#include <gtest/gtest.h>

#include <cmath>

#include "odecast/solver/solve.hpp"

namespace odecast {
namespace {

SolverOptions radau(double tolerance) {
  SolverOptions o;
  o.method = SolverMethod::radau;
  o.rtol = o.atol = tolerance;
  return o;
}

/// As learnt equations have it, by coefficients: dx/dt = y, dy/dt = μ ((1 - x²) y) - x.
VectorField van_der_pol(double mu) {
  auto basis = std::make_shared<const MonomialBasis>(2, 3);
  PolynomialField f{basis, Matrix::Zero(2, basis->size())};
  f.coefficients(0, basis->find({0, 1})) = 1;
  f.coefficients(1, basis->find({1, 0})) = -1;
  f.coefficients(1, basis->find({0, 1})) = mu;
  f.coefficients(1, basis->find({2, 1})) = -mu;
  return VectorField(std::move(f));
}

TEST(RadauTest, ALinearStiffSystemIsItsExactSolution) {
  // u' = -1000 (u - cos t) - sin t, u(0) = 1: u = cos t, with a slope that depends on time.
  const VectorField field(1, [](double t, const double* u, double* f) {
    f[0] = -1000 * (u[0] - std::cos(t)) - std::sin(t);
  });
  std::vector<double> times;
  for (int k = 1; k <= 50; ++k) times.push_back(0.2 * k);
  const Solution s = solve(field, 0, Vector::Ones(1), times, radau(1e-9));
  ASSERT_EQ(s.status, SolveStatus::finished);
  for (int k = 0; k < 50; ++k)
    EXPECT_NEAR(s.states(k, 0), std::cos(times[static_cast<std::size_t>(k)]), 1e-7) << k;
  EXPECT_LT(s.accepted, 300) << "stability alone asks an explicit method for 3000";
}

/// The global error of a method of order p falls as tolerance^(p/4), where the estimate of order 4
/// in h decides the step.
TEST(RadauTest, TheErrorFollowsTheTolerance) {
  const VectorField field(2, [](double, const double* u, double* f) { f[0] = u[1], f[1] = -u[0]; });
  const double end[] = {10};
  double before = 0;
  for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10}) {
    const Solution s = solve(field, 0, Eigen::Vector2d(1, 0), end, radau(tolerance));
    const double error =
        std::hypot(s.states(0, 0) - std::cos(10.0), s.states(0, 1) + std::sin(10.0));
    EXPECT_LT(error, 100 * tolerance);
    if (before > 0) {
      EXPECT_LT(error, before / 30);
    }
    before = error;
  }
}

/// Hairer & Wanner, Solving ODEs II, IV.10: the test set's reference values.
TEST(RadauTest, RobertsonsReaction) {
  const VectorField field(3, [](double, const double* u, double* f) {
    f[0] = -0.04 * u[0] + 1e4 * u[1] * u[2];
    f[2] = 3e7 * u[1] * u[1];
    f[1] = -f[0] - f[2];
  });
  const double end[] = {1e11};
  SolverOptions o = radau(1e-9);
  o.atol = 1e-20;
  const Solution s = solve(field, 0, Eigen::Vector3d(1, 0, 0), end, o);
  ASSERT_EQ(s.status, SolveStatus::finished);
  EXPECT_NEAR(s.states(0, 0) / 0.2083340149701255e-07, 1, 1e-6);
  EXPECT_NEAR(s.states(0, 1) / 0.8333360770334713e-13, 1, 1e-6);
  EXPECT_NEAR(s.states(0, 2), 0.9999999791665050, 1e-9);
  EXPECT_LT(s.accepted, 10'000) << "and here for more than 1e14";
}

TEST(RadauTest, VanDerPolsOscillator) {
  // With time and velocity scaled: ε = 1e-6 is μ = 1000, t = 2 is 2000, y' of the set is μ y here.
  const double end[] = {2000};
  const Solution s =
      solve(van_der_pol(1000), 0, Eigen::Vector2d(2, -0.66 / 1000), end, radau(1e-10));
  ASSERT_EQ(s.status, SolveStatus::finished);
  EXPECT_NEAR(s.states(0, 0), 0.1706167732170483e1, 1e-5);
  EXPECT_NEAR(s.states(0, 1) * 1000, -0.8928097010247975, 1e-5);
}

TEST(RadauTest, BetweenItsStepsToo) {
  std::vector<double> times;
  for (int k = 1; k <= 400; ++k) times.push_back(0.05 * k);
  const VectorField field = van_der_pol(5);
  SolverOptions fine;
  fine.rtol = fine.atol = 1e-12;
  const Solution expected = solve(field, 0, Eigen::Vector2d(2, 0), times, fine),
                 found = solve(field, 0, Eigen::Vector2d(2, 0), times, radau(1e-9));
  ASSERT_EQ(found.outputs, 400);
  EXPECT_LT((expected.states - found.states).cwiseAbs().maxCoeff(), 1e-5);
  SolverOptions landing = radau(1e-9);
  landing.land_on_outputs = true;
  EXPECT_LT((solve(field, 0, Eigen::Vector2d(2, 0), times, landing).states - expected.states)
                .cwiseAbs()
                .maxCoeff(),
            1e-5);
}

TEST(RadauTest, EndsAsTheOthersDo) {
  const VectorField square(1, [](double, const double* u, double* f) { f[0] = u[0] * u[0]; });
  const double end[] = {2};
  SolverOptions o = radau(1e-8);
  o.bound = 1e6;
  Solution s = solve(square, 0, Vector::Ones(1), end, o);
  EXPECT_EQ(s.status, SolveStatus::left_bound);
  EXPECT_NEAR(s.reached, 1, 1e-4);
  o.max_steps = 5;
  EXPECT_EQ(solve(square, 0, Vector::Ones(1), end, o).status, SolveStatus::too_many_steps);
  const VectorField none(1, [](double, const double*, double* f) { f[0] = NAN; });
  EXPECT_EQ(solve(none, 0, Vector::Ones(1), end, radau(1e-6)).status, SolveStatus::step_too_small);
}

TEST(RadauTest, StiffIsWhatItHelps) {
  SolverOptions o;
  o.rtol = o.atol = 1e-8;
  EXPECT_TRUE(is_stiff(van_der_pol(1000), 0, Eigen::Vector2d(2, 0), 500, o));
  EXPECT_FALSE(is_stiff(van_der_pol(1), 0, Eigen::Vector2d(2, 0), 500, o));
  EXPECT_FALSE(is_stiff(van_der_pol(1000), 0, Eigen::Vector2d(2, 0), 0.1, o)) << "so short a run";
}

}  // namespace
}  // namespace odecast
