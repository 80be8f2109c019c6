#include "odecast/training/objective.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "support/kernels.hpp"
#include "support/rows.hpp"

namespace odecast {
namespace {

TEST(ObjectiveTest, EqualsTheWeightedSumOverAllMasks) {
  for (const int degree : {1, 2, 3}) {
    const Network network = random_kernel(3, 7, degree, 0.35, degree == 2, 1);
    const auto kernel = *polynomial_kernel(network);
    const DerivativeRows rows = random_rows(20, 3, 2);
    const Eigen::Vector3d weights(1, 4, 0.25);
    double expected = 0;
    for_each_mask(kernel, [&](const Vector& d, double weight) {
      const Matrix f = evaluate(network, rows.states, {Matrix(d.transpose()), Matrix()});
      expected += weight * ((f - rows.derivatives).cwiseAbs2() * weights).sum() / 20;
    });
    EXPECT_NEAR(expected_objective(kernel, rows, weights), expected, 1e-12 * expected);
  }
}

TEST(ObjectiveTest, GradientAgreesWithCentralDifferences) {
  for (const auto& [n, k, degree] : {std::tuple{1, 1, 1}, {3, 10, 2}, {2, 5, 3}, {4, 8, 2}}) {
    Network network = random_kernel(n, k, degree, 0.25, false, 3);
    const DerivativeRows rows = random_rows(15, n, 4);
    const Vector ones = Vector::Ones(n);
    const LossGradient exact = expected_objective_gradient(*polynomial_kernel(network), rows);
    EXPECT_NEAR(exact.loss, expected_objective(*polynomial_kernel(network), rows, ones),
                1e-12 * exact.loss);
    const Vector theta = parameters(network);
    for (Eigen::Index i = 0; i < theta.size(); ++i) {
      const auto at = [&](double step) {
        Vector moved = theta;
        moved[i] += step;
        set_parameters(network, moved);
        return expected_objective(*polynomial_kernel(network), rows, ones);
      };
      EXPECT_NEAR((at(1e-5) - at(-1e-5)) / 2e-5, exact.gradient[i], 1e-7 * exact.gradient.norm());
    }
  }
}

TEST(ObjectiveTest, SampledObjectiveAgreesWithinFiveStandardErrors) {
  for (const double rate : {0.05, 0.25, 0.5}) {
    const Network network = random_kernel(3, 10, 2, rate, false, 5);
    const DerivativeRows rows = random_rows(30, 3, 6);
    const SampledObjective sampled = sampled_objective(network, rows, 4000, 7);
    EXPECT_GT(sampled.standard_error, 0);
    EXPECT_NEAR(sampled.mean,
                expected_objective(*polynomial_kernel(network), rows, Vector::Ones(3)),
                5 * sampled.standard_error);
  }
}

TEST(ObjectiveTest, MeanOfSampledGradientsIsTheExactGradient) {
  const Network network = random_kernel(2, 6, 2, 0.3, false, 8);
  const DerivativeRows rows = random_rows(10, 2, 9);
  const Vector exact = expected_objective_gradient(*polynomial_kernel(network), rows).gradient;
  const int count = 4000;
  Vector mean = Vector::Zero(exact.size()), square = mean;
  for (int s = 0; s < count; ++s) {
    const Masks d = sample_mask(network, 1, Purpose::training_mask, static_cast<std::uint64_t>(s));
    const Vector g = loss_gradient(network, rows.states, rows.derivatives, d).gradient;
    mean += g / count;
    square += g.cwiseAbs2() / count;
  }
  const Vector se = ((square - mean.cwiseAbs2()) / count).cwiseSqrt();
  for (Eigen::Index i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(mean[i], exact[i], 5 * se[i] + 1e-12) << i;
}

}  // namespace
}  // namespace odecast
