#include "odecast/regression/weak_regression.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/training/exact.hpp"
#include "support/series.hpp"

namespace odecast {
namespace {

/// x' = -x/20 + y, y' = -x - y/20 over 40 time units. Not a circle: there 1, x² and y² depend on
/// each other.
constexpr double kDecay = 0.05;
Dataset spiral(double noise, std::uint64_t draw) {
  Dataset d = series(
      evenly(2000, 0.02), [](double t) { return std::exp(-kDecay * t) * std::sin(t); },
      [](double t) { return std::exp(-kDecay * t) * std::cos(t); });
  add_noise(d, Vector::Constant(2, noise), draw);
  return d;
}

WeakRegression regress(const Dataset& d, int degree, bool select, double noise) {
  const MonomialBasis basis(2, degree);
  const WeakRows rows = weak_rows(segments(d, 0), basis, Vector::Constant(2, noise));
  return weak_regression(rows, basis, {.select = select}, "test", ignore_progress);
}

TEST(WeakRegressionTest, StandardDeviationsAreThoseOverTheDraws) {
  // 100 draws: z² of one coefficient averages 1 ± 5 √(2/100) = 1 ± 0.71; so does the mean over
  // both.
  const int draws = 100;
  const double noise = 0.02;
  double x = 0, y = 0, misfit = 0;
  for (int draw = 1; draw <= draws; ++draw) {
    const WeakRegression r =
        regress(spiral(noise, static_cast<std::uint64_t>(draw)), 1, false, noise);
    x += std::pow((r.coefficients(0, 2) - 1) / r.sd(0, 2), 2) / draws;
    y += std::pow((r.coefficients(1, 1) + 1) / r.sd(1, 1), 2) / draws;
    misfit += r.misfit / draws;
  }
  EXPECT_NEAR(x, 1, 0.71);
  EXPECT_NEAR(y, 1, 0.71);
  EXPECT_NEAR(misfit, 1, 0.1);
}

TEST(WeakRegressionTest, SelectsTheTermsAndLowersTheirError) {
  const double noise = 0.02;
  int exact = 0;
  double all = 0, few = 0;
  for (std::uint64_t draw = 1; draw <= 20; ++draw) {
    const Dataset d = spiral(noise, draw);
    const WeakRegression s = regress(d, 2, true, noise), a = regress(d, 2, false, noise);
    Matrix truth = Matrix::Zero(2, 6);
    truth(0, 2) = 1;
    truth(1, 1) = -1;
    truth(0, 1) = truth(1, 2) = -kDecay;
    exact += ((s.coefficients.array() != 0) == (truth.array() != 0)).all();
    few += (s.coefficients - truth).squaredNorm();
    all += (a.coefficients - truth).squaredNorm();
  }
  EXPECT_GE(exact, 18);
  EXPECT_LT(few, 0.2 * all);
}

TEST(WeakRegressionTest, TheFactorForNetworksHoldsTheSameEquations) {
  const MonomialBasis basis(2, 2);
  const Dataset d = spiral(0, 1);
  const std::vector<Segment> parts = segments(d, 0);
  const WeakRows rows = weak_rows(parts, basis, estimate_noise(parts, 2));
  const WeakRegression r = weak_regression(rows, basis, {}, "test", ignore_progress);
  const RowFactor factor = weak_factor(rows, basis, r.coefficients);
  EXPECT_EQ(factor.rows(), rows.rows());
  const Eigen::MatrixXd R = factor.triangle();
  EXPECT_NEAR(factor.weight(), R(0, 0) * R(0, 0), 1e-9 * factor.weight());
  // A network trained on it without dropout is the spiral.
  Network network = make_network(2, {{6, Activation::power, 2, 0, false}}, 2, 1);
  const ExactSummary s = train_exact(network, factor, {}, ignore_progress);
  EXPECT_TRUE(s.least_squares);
  const Matrix at = (Matrix(1, 2) << 0.3, -0.8).finished();
  EXPECT_LT((evaluate(network, at) -
             (Matrix(1, 2) << -0.8 - 0.3 * kDecay, -0.3 + 0.8 * kDecay).finished())
                .norm(),
            1e-9);
}

TEST(WeakRegressionTest, TooFewRowsAreAnError) {
  const Dataset d = series(
      evenly(20, 0.1), [](double t) { return std::sin(t); }, [](double t) { return std::cos(t); });
  const MonomialBasis basis(2, 4);
  EXPECT_THROW(weak_regression(weak_rows(segments(d, 0), basis, Vector::Constant(2, 1e-9)), basis,
                               {}, "test", ignore_progress),
               Error);
}

}  // namespace
}  // namespace odecast
