#include "odecast/shooting/quadratic_model.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

/// Least squares |y - X θ|² over seven columns of scales from 1e-3 to 1e3: Q = XᵀX, b = Xᵀy.
struct LeastSquares {
  Eigen::MatrixXd X{20, 7};
  Eigen::VectorXd y{20};
  QuadraticModel model;

  LeastSquares() {
    Stream stream(1, Purpose::initial_state, 0);
    for (double& x : X.reshaped()) x = stream.normal();
    for (double& v : y) v = stream.normal();
    y += 2 * X.col(1) - X.col(4);
    for (long j = 0; j < 7; ++j) X.col(j) *= std::pow(10.0, static_cast<double>(j - 3));
    model = {X.transpose() * X, X.transpose() * y, {1, 2, 3, 4, 5, 6, 7}};
  }

  Eigen::VectorXd solution(const std::vector<int>& set) const {
    return Eigen::MatrixXd(X(Eigen::all, set)).colPivHouseholderQr().solve(y);
  }
  /// Residual sum of squares + penalties, by QR.
  double cost(const std::vector<int>& set) const {
    double cost =
        set.empty() ? y.squaredNorm() : (y - X(Eigen::all, set) * solution(set)).squaredNorm();
    for (const int j : set) cost += model.penalty[static_cast<std::size_t>(j)];
    return cost;
  }
};

TEST(QuadraticModelTest, MovesChangeTheCostByWhatTheySay) {
  const LeastSquares problem;
  for (const std::vector<int>& set : {std::vector<int>{}, {3}, {0, 2, 5}, {0, 1, 2, 3, 4, 5, 6}}) {
    const auto moves = problem.model.moves(set);
    const std::size_t in = set.size(), outside = 7 - in;
    EXPECT_EQ(moves.size(), in + outside + in * outside);
    for (const auto& move : moves) {
      std::vector<int> other = set;
      QuadraticModel::apply(other, move);
      EXPECT_TRUE(std::is_sorted(other.begin(), other.end()));
      EXPECT_NEAR(move.change, problem.cost(other) - problem.cost(set), 1e-9 * problem.cost({}))
          << move.out << " " << move.in;
    }
  }
}

TEST(QuadraticModelTest, SettlesWhereNoMoveGainsAnything) {
  const LeastSquares problem;
  std::vector<int> set = {0, 6};
  const double before = problem.cost(set), change = problem.model.settle(set);
  EXPECT_NEAR(change, problem.cost(set) - before, 1e-9 * before);
  for (const auto& move : problem.model.moves(set)) EXPECT_GE(move.change, -1e-6);
  EXPECT_EQ(set, (std::vector<int>{1, 4}));
}

TEST(QuadraticModelTest, MinimiserIsLeastSquares) {
  const LeastSquares problem;
  const std::vector<int> set = {0, 2, 3, 6};
  const Eigen::VectorXd exact = problem.solution(set);
  EXPECT_LT((problem.model.minimiser(set) - exact).cwiseQuotient(exact).cwiseAbs().maxCoeff(),
            1e-10);
}

TEST(QuadraticModelTest, ACopyOfATermDoesNotEnter) {
  LeastSquares problem;
  problem.X.col(5) = 3 * problem.X.col(1);
  problem.model.Q = problem.X.transpose() * problem.X;
  problem.model.b = problem.X.transpose() * problem.y;
  for (const auto& move : problem.model.moves({1})) EXPECT_FALSE(move.out < 0 && move.in == 5);
}

TEST(QuadraticModelTest, BesideOthersTheCostIsThatOfBoth) {
  const LeastSquares problem;
  const std::vector<int> always = {1, 3}, some = {0, 4, 5, 6};
  const QuadraticModel beside = problem.model.beside(always, some);
  for (const std::vector<int>& set : {std::vector<int>{}, {1}, {0, 3}, {0, 1, 2, 3}}) {
    std::vector<int> both = always;
    for (const int j : set) both.push_back(some[static_cast<std::size_t>(j)]);
    EXPECT_NEAR(beside.value(set), problem.cost(both) - problem.cost(always),
                1e-9 * problem.cost({}));
  }
  EXPECT_EQ(problem.model.beside({}, {2}).value({0}), problem.model.value({2}));
}

TEST(QuadraticModelTest, ManyBeginningsFindWhatNoneBySingleStepsDoes) {
  // y = c4 + 0.3 c0, and three others that together are c4 but for a part that c0 is: what
  // explains most by itself is one of the three, and these then stand for it.
  LeastSquares problem;
  Eigen::MatrixXd& X = problem.X;
  X.col(0) *= 1e3;
  X.col(4) = X.col(1) + X.col(2) + 0.1 * X.col(0);
  problem.y = X.col(4) + 0.3 * X.col(0);
  problem.model.Q = X.transpose() * X;
  problem.model.b = X.transpose() * problem.y;
  problem.model.penalty.assign(7, 1e-3 * problem.y.squaredNorm());
  const auto sets = problem.model.settled_from_each({{4}, {5}, {6}}, {0, 1, 2, 3}, 2);
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.front(), (std::vector<int>{0, 4}));
  // A group whose members all leave is no beginning.
  for (const std::vector<int>& set : sets) EXPECT_GE(set.back(), 4);
  EXPECT_LE(sets.size(), 2u);
}

}  // namespace
}  // namespace odecast
