#include "odecast/training/exact.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "odecast/training/lbfgs.hpp"
#include "odecast/training/objective.hpp"
#include "support/kernels.hpp"
#include "support/rows.hpp"

namespace odecast {
namespace {

RowFactor factor_of(const DerivativeRows& rows, int degree, int threads = 1) {
  RowFactor factor(rows.dimension(), degree, rows.dimension());
  factor.add(rows.states, rows.derivatives, {}, threads);
  return factor;
}

/// [Φ | g], row by row.
Eigen::MatrixXd design(const DerivativeRows& rows, const MonomialBasis& basis) {
  Eigen::MatrixXd m(rows.rows(), basis.size() + rows.dimension());
  Vector phi(basis.size());
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const Vector u = rows.states.row(i);
    basis.evaluate(u.data(), phi.data());
    m.row(i) << phi.transpose(), rows.derivatives.row(i);
  }
  return m;
}

TEST(ExactTest, FactorHasTheInnerProductsOfTheRows) {
  for (const auto& [count, n, degree] :
       {std::tuple{3, 2, 2}, {50, 1, 5}, {9000, 3, 2}, {5000, 2, 3}}) {
    const DerivativeRows rows = random_rows(count, n, 1);
    const RowFactor factor = factor_of(rows, degree);
    const Eigen::MatrixXd R = factor.triangle(), A = design(rows, factor.basis());
    EXPECT_TRUE(R.isUpperTriangular(0));
    EXPECT_EQ(factor.weight(), count);
    EXPECT_LT((R.transpose() * R - A.transpose() * A).norm(), 1e-12 * A.squaredNorm());
  }
}

TEST(ExactTest, FactorDoesNotDependOnHowRowsArriveNorOnThreads) {
  const DerivativeRows rows = random_rows(20'000, 3, 2);
  const Eigen::MatrixXd whole = factor_of(rows, 2).triangle();
  for (const int threads : {2, 3, 8}) EXPECT_EQ(factor_of(rows, 2, threads).triangle(), whole);
  RowFactor pieces(3, 2, 3);
  Stream stream(3, Purpose::initial_state, 0);
  for (Eigen::Index at = 0; at < rows.rows();) {
    const Eigen::Index size = std::min<Eigen::Index>(rows.rows() - at, stream.bits() % 5000);
    pieces.add(rows.states.middleRows(at, size), rows.derivatives.middleRows(at, size));
    at += size;
  }
  EXPECT_EQ(pieces.triangle(), whole);
}

TEST(ExactTest, WeightsCountRowsSeveralTimes) {
  const DerivativeRows once = random_rows(40, 2, 3);
  DerivativeRows twice = once;
  twice.states = once.states.replicate(2, 1);
  twice.derivatives = once.derivatives.replicate(2, 1);
  RowFactor weighted(2, 2, 2);
  weighted.add(once.states, once.derivatives, Vector::Constant(40, 2.0));
  const Eigen::MatrixXd a = weighted.triangle(), b = factor_of(twice, 2).triangle();
  EXPECT_LT((a.transpose() * a - b.transpose() * b).norm(), 1e-12 * a.squaredNorm());
  EXPECT_EQ(weighted.weight(), 80);
}

TEST(ExactTest, ObjectiveAndGradientEqualTheSumsOverRows) {
  Stream stream(4, Purpose::initial_state, 0);
  for (int trial = 0; trial < 100; ++trial) {
    const int n = 1 + static_cast<int>(stream.bits() % 4),
              k = 1 + static_cast<int>(stream.bits() % 12);
    const int degree = 1 + static_cast<int>(stream.bits() % 4);
    const double rate = 0.01 + 0.9 * stream.uniform();
    const DerivativeRows rows =
        random_rows(5 + static_cast<int>(stream.bits() % 100), n, stream.bits());
    PolynomialKernel kernel =
        *polynomial_kernel(random_kernel(n, k, degree, rate, false, stream.bits()));
    ExactObjective objective(factor_of(rows, degree), k, rate);
    const std::string name = std::to_string(n) + " " + std::to_string(k) + " " +
                             std::to_string(degree) + " " + std::to_string(rate);

    const Vector weights = random_vector(n, stream).cwiseAbs2();
    const double direct = expected_objective(kernel, rows, weights);
    EXPECT_NEAR(objective.weighted(kernel, weights), direct, 1e-11 * direct) << name;

    // At the best read-out the sums over rows give the same value, the same gradient with respect
    // to the hidden layer, and none with respect to the read-out; any other read-out is worse.
    Vector theta(k * n + k), gradient(theta.size());
    theta << Eigen::Map<const Vector>(kernel.W1.data(), k * n), kernel.B1;
    const double other = expected_objective(kernel, rows, Vector::Ones(n));
    const double value = objective(theta, gradient);
    EXPECT_LE(value, other * (1 + 1e-12)) << name;
    kernel.W2 = objective.W2();
    kernel.B2 = objective.B2();
    const LossGradient best = expected_objective_gradient(kernel, rows);
    EXPECT_NEAR(value, best.loss, 1e-10 * best.loss) << name;
    EXPECT_LT((gradient - best.gradient.head(theta.size())).norm(),
              1e-9 * (gradient.norm() + best.loss))
        << name;
    EXPECT_LT(
        best.gradient.tail(n * k + n)
            .cwiseProduct(
                (Vector(n * k + n) << Eigen::Map<const Vector>(kernel.W2.data(), n * k), kernel.B2)
                    .finished())
            .norm(),
        1e-9 * best.loss)
        << name;
  }
}

TEST(ExactTest, LbfgsFindsTheMinimumOfRosenbrocksValley) {
  Vector theta = Vector::Constant(50, -1.2);
  const LbfgsResult r = minimise(
      [](const Vector& x, Vector& g) {
        double f = 1;  // > 0 at the minimum
        g.setZero();
        for (Eigen::Index i = 0; i + 1 < x.size(); ++i) {
          const double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
          f += 100 * a * a + b * b;
          g[i] += -400 * a * x[i] - 2 * b;
          g[i + 1] += 200 * a;
        }
        return f;
      },
      theta, {});
  EXPECT_TRUE(r.converged);
  EXPECT_LT((theta - Vector::Ones(50)).norm(), 1e-6);
}

TEST(ExactTest, LbfgsSaysWhenItDidNotConverge) {
  Vector theta = Vector::Constant(10, -1.2);
  const LbfgsResult r = minimise(
      [](const Vector& x, Vector& g) {
        g = x.array().exp().matrix();
        return g.sum() + 1;  // no minimum
      },
      theta, {.max_iterations = 5});
  EXPECT_FALSE(r.converged);
  EXPECT_EQ(r.iterations, 5);
}

DerivativeRows sprott_rows(double h) {
  std::vector<double> times;
  for (int i = 0; i <= std::lround(10 / h); ++i) times.push_back(h * i);
  const auto truth = solve_certified(find_system("SprottB").field, 0, Vector::Ones(3), times);
  return forward_differences({{"x", "y", "z"}, {{"", times, truth.solution.states}}}, {});
}

TEST(ExactTest, SprottBHasItsKnownMinima) {
  const DerivativeRows rows = sprott_rows(0.002);
  const RowFactor factor = factor_of(rows, 2);
  for (const auto& [rate, expected] :
       {std::pair{0.25, 1.1785797}, {0.05, 0.2361778}, {0.5, 2.5520984}}) {
    Network network = make_network(3, {{10, Activation::power, 2, rate, false}}, 3, 1);
    const ExactSummary s = train_exact(network, factor, {}, ignore_progress);
    EXPECT_TRUE(s.converged) << s.reason;
    EXPECT_NEAR(s.objective, expected, 1e-6);
    EXPECT_NEAR(expected_objective(*polynomial_kernel(network), rows, Vector::Ones(3)), s.objective,
                1e-10);
    EXPECT_EQ(s.seeds.size(), 8u);
    int starts = 0;
    for (const auto& m : s.minima) starts += m.count;
    EXPECT_EQ(starts, 8);
  }
}

TEST(ExactTest, ThreadsDoNotChangeTheBits) {
  const RowFactor factor = factor_of(sprott_rows(0.02), 2);
  Vector first;
  for (const int threads : {1, 2, 3, 8}) {
    Network network = make_network(3, {{10, Activation::power, 2, 0.25, false}}, 3, 1);
    train_exact(network, factor, {.threads = threads}, ignore_progress);
    if (threads == 1) first = parameters(network);
    EXPECT_EQ(parameters(network), first);
  }
}

TEST(ExactTest, RescaledMasksReachTheRightObjective) {
  const DerivativeRows rows = sprott_rows(0.02);
  Network network = make_network(3, {{10, Activation::power, 2, 0.25, true}}, 3, 1);
  const ExactSummary s = train_exact(network, factor_of(rows, 2), {}, ignore_progress);
  // polynomial_kernel() folds the scale of the mask into W2.
  EXPECT_NEAR(expected_objective(*polynomial_kernel(network), rows, Vector::Ones(3)), s.objective,
              1e-10 * s.objective);
}

/// Rows of a system with exact derivatives.
DerivativeRows exact_rows(const System& system, int count) {
  Stream stream(7, Purpose::initial_state, 0);
  const auto n = system.start.size();
  DerivativeRows rows{Matrix(count, n), Matrix(count, n), Matrix::Zero(count, n)};
  for (Eigen::Index i = 0; i < count; ++i) {
    Vector u = random_vector(n, stream), d(n);
    system.field(0, u.data(), d.data());
    rows.states.row(i) = u.transpose();
    rows.derivatives.row(i) = d.transpose();
  }
  return rows;
}

double worst_coefficient_error(const Network& network, const System& system) {
  // Coefficients of a polynomial field from its values: differences at points around 0 would
  // round; instead compare fields at random points of size 1, which bounds every coefficient.
  const DerivativeRows test = exact_rows(system, 200);
  return (evaluate(network, test.states) - test.derivatives).cwiseAbs().maxCoeff();
}

TEST(ExactTest, WithoutDropoutItIsLeastSquaresAndExact) {
  for (const auto& [name, degree] :
       {std::pair{"SprottB", 2}, {"Lorenz", 2}, {"SprottB", 5}, {"VanDerPol", 3}}) {
    const System system = find_system(name);
    const int n = static_cast<int>(system.start.size());
    const int F = static_cast<int>(monomial_count(n, degree));
    Network network = make_network(n, {{F + 2, Activation::power, degree, 0, false}}, n, 1);
    const ExactSummary s =
        train_exact(network, factor_of(exact_rows(system, 1000), degree), {}, ignore_progress);
    EXPECT_TRUE(s.least_squares && s.converged) << s.reason;
    // 1e-12 in the coefficients of order 1; Lorenz has 28, degree 5 adds the round-off of 56 forms.
    EXPECT_LT(worst_coefficient_error(network, system), degree == 5 ? 1e-10 : 1e-12 * 30) << name;
  }
}

TEST(ExactTest, CoefficientsWithoutDropoutReachTwelveDigits) {
  const System system = find_system("SprottB");
  Network network = make_network(3, {{10, Activation::power, 2, 0, false}}, 3, 1);
  train_exact(network, factor_of(exact_rows(system, 1000), 2), {}, ignore_progress);
  const KernelExpansion e = expand(*polynomial_kernel(network));
  const Matrix C = masked_field(e, Vector::Ones(10)).coefficients;
  // Monomials 1, x, y, z, x², xy, xz, y², yz, z².
  Matrix expected = Matrix::Zero(3, 10);
  expected(0, 8) = 1;                       // y z
  expected(1, 1) = 1, expected(1, 2) = -1;  // x - y
  expected(2, 0) = 1, expected(2, 5) = -1;  // 1 - x y
  EXPECT_LT((C - expected).cwiseAbs().maxCoeff(), 1e-12);
}

TEST(ExactTest, FortyVariablesAreRecoveredToNineDigits) {
  const System system = find_system("Lorenz96");
  const int count = 2000;  // 861 monomials; the benchmark has 20,000 rows
  const DerivativeRows rows = exact_rows(system, count);
  RowFactor factor(40, 2, 40);
  factor.add(rows.states, rows.derivatives, {}, 2);
  Network network = make_network(40, {{861, Activation::power, 2, 0, false}}, 40, 1);
  const ExactSummary s = train_exact(network, factor, {}, ignore_progress);
  EXPECT_TRUE(s.least_squares) << s.reason;
  EXPECT_LT(worst_coefficient_error(network, system), 1e-9);
}

TEST(ExactTest, AConstantColumnIsNoObstacle) {
  DerivativeRows rows = random_rows(100, 2, 5);
  rows.states.col(1).setZero();
  rows.derivatives.col(1).setZero();
  Network network = make_network(2, {{6, Activation::power, 2, 0, false}}, 2, 1);
  const ExactSummary s = train_exact(network, factor_of(rows, 2), {}, ignore_progress);
  EXPECT_TRUE(s.converged);
  EXPECT_NE(s.reason.find("rank 3 of 6"), std::string::npos) << s.reason;
  EXPECT_TRUE(parameters(network).allFinite());
}

}  // namespace
}  // namespace odecast
