#include "odecast/solver/tableau.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

namespace odecast {
namespace {

/// A rooted tree: its children. The order conditions are Σ b_s Φ_s(tree) = 1/γ(tree), one per tree
/// (Hairer, Nørsett, Wanner, Solving ODEs I, II.2).
struct Tree {
  std::vector<Tree> children;
  int order() const {
    int sum = 1;
    for (const Tree& c : children) sum += c.order();
    return sum;
  }
  double density() const {
    double product = order();
    for (const Tree& c : children) product *= c.density();
    return product;
  }
};

/// Every rooted tree of up to so many nodes, by their number: a root and any multiset of smaller
/// trees below it.
std::vector<Tree> trees(int most) {
  std::vector<Tree> all;
  std::vector<Tree> children;
  // Multisets of the trees before `end` with `nodes` nodes in all.
  const std::function<void(std::size_t, int)> choose = [&](std::size_t end, int nodes) {
    if (nodes == 0) return all.push_back({children});
    for (std::size_t k = 0; k < end; ++k) {
      const Tree child = all[k];
      if (child.order() > nodes) break;
      children.push_back(child);
      choose(k + 1, nodes - child.order());
      children.pop_back();
    }
  };
  for (int order = 1; order <= most; ++order) choose(all.size(), order - 1);
  return all;
}

using Weights = std::array<double, kMaxStages>;

/// Stage values Φ_s; stage 6 of a FSAL method has a_6j = b_j.
Weights phi(const Tableau& m, const Tree& tree) {
  Weights result;
  result.fill(1);
  for (const Tree& child : tree.children) {
    const Weights inner = phi(m, child);
    for (int s = 0; s < kMaxStages; ++s) {
      double sum = 0;
      for (int j = 0; j < s; ++j)
        sum += (s == m.stages  ? m.b[j]
                : s < m.stages ? m.a[s][j]
                               : 0) *
               inner[static_cast<std::size_t>(j)];
      result[static_cast<std::size_t>(s)] *= sum;
    }
  }
  return result;
}

double sum_over_stages(const Tableau& m, const Weights& weights, const Tree& tree) {
  const Weights values = phi(m, tree);
  double sum = 0;
  for (std::size_t s = 0; s < kMaxStages; ++s) sum += weights[s] * values[s];
  return sum;
}

double residual(const Tableau& m, const Weights& weights, const Tree& tree, double target) {
  return sum_over_stages(m, weights, tree) - target / tree.density();
}

Weights step_weights(const Tableau& m) {
  Weights w{};
  for (std::size_t s = 0; s < kMaxStages; ++s) w[s] = m.b[s];
  return w;
}

/// Otter (Ann. Math. 49 (1948) 583) counts them.
TEST(TableauTest, TreesAreAllThereAre) {
  std::array<int, 10> count{};
  for (const Tree& tree : trees(9)) ++count[static_cast<std::size_t>(tree.order())];
  EXPECT_EQ(count, (std::array<int, 10>{0, 1, 1, 2, 4, 9, 20, 48, 115, 286}));
}

TEST(TableauTest, EveryMethodMeetsAllConditionsOfItsOrderAndNoMore) {
  for (const Tableau* m : {&kDormandPrince, &kRungeKutta4, &kEuler}) {
    bool fails_above = false;
    for (const Tree& tree : trees(m->order + 1)) {
      const double r = residual(*m, step_weights(*m), tree, 1);
      if (tree.order() <= m->order)
        EXPECT_NEAR(r, 0, 1e-15) << "order " << tree.order();
      else
        fails_above = fails_above || std::abs(r) > 1e-4;
    }
    EXPECT_TRUE(fails_above) << "order " << m->order;
  }
}

/// Its coefficients are up to 16 and of both signs: round-off is relative to the sum of their
/// sizes, a few roundings for each of up to eight nodes.
TEST(TableauTest, FehlbergMeetsAllConditionsOfOrderEightAndNoMore) {
  Tableau sizes = kFehlberg8;
  for (auto& row : sizes.a)
    for (double& x : row) x = std::abs(x);
  bool fails_above = false;
  for (const Tree& tree : trees(9)) {
    const double r = residual(kFehlberg8, step_weights(kFehlberg8), tree, 1);
    if (tree.order() <= 8)
      EXPECT_NEAR(r, 0, 8 * 0x1p-53 * sum_over_stages(sizes, step_weights(sizes), tree))
          << "order " << tree.order();
    else
      fails_above = fails_above || std::abs(r) > 1e-5;
  }
  EXPECT_TRUE(fails_above);
}

TEST(TableauTest, TheEmbeddedMethodHasOrderFour) {
  Weights w = step_weights(kDormandPrince);
  for (std::size_t s = 0; s < kMaxStages; ++s) w[s] += kDormandPrince.e[s];
  bool fails = false;
  for (const Tree& tree : trees(5)) {
    const double r = residual(kDormandPrince, w, tree, 1);
    if (tree.order() <= 4)
      EXPECT_NEAR(r, 0, 1e-15);
    else
      fails = fails || std::abs(r) > 1e-5;
  }
  EXPECT_TRUE(fails);
}

TEST(TableauTest, DenseOutputHasOrderFourEverywhereAndIsSmooth) {
  const auto weights_at = [](double x) {
    Weights w{};
    for (std::size_t s = 0; s < kMaxStages; ++s) {
      const auto& p = kDormandPrince.p[s];
      w[s] = x * (p[0] + x * (p[1] + x * (p[2] + x * p[3])));
    }
    return w;
  };
  for (double x = 0.05; x <= 1; x += 0.05)
    for (const Tree& tree : trees(5))
      if (tree.order() <= 4) {
        EXPECT_NEAR(residual(kDormandPrince, weights_at(x), tree, std::pow(x, tree.order())), 0,
                    2e-15);
      }
  // d/dx at 0 is the first stage, at 1 the last: the interpolant is continuously differentiable.
  for (int s = 0; s < kMaxStages; ++s) {
    const auto& p = kDormandPrince.p[s];
    EXPECT_EQ(p[0], s == 0 ? 1 : 0);
    EXPECT_NEAR(p[0] + 2 * p[1] + 3 * p[2] + 4 * p[3], s == 6 ? 1 : 0, 1e-14);
  }
}

}  // namespace
}  // namespace odecast
