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

const Tree leaf{};
Tree join(std::vector<Tree> children) { return {std::move(children)}; }

/// All 17 trees with at most five nodes.
std::vector<Tree> trees() {
  const Tree two = join({leaf}), chain3 = join({two}), bush3 = join({leaf, leaf});
  const Tree t41 = join({leaf, leaf, leaf}), t42 = join({leaf, two}), t43 = join({bush3}),
             t44 = join({chain3});
  return {leaf,
          two,
          bush3,
          chain3,
          t41,
          t42,
          t43,
          t44,
          join({leaf, leaf, leaf, leaf}),
          join({leaf, leaf, two}),
          join({two, two}),
          join({leaf, bush3}),
          join({leaf, chain3}),
          join({t41}),
          join({t42}),
          join({t43}),
          join({t44})};
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

double residual(const Tableau& m, const Weights& weights, const Tree& tree, double target) {
  const Weights values = phi(m, tree);
  double sum = 0;
  for (std::size_t s = 0; s < kMaxStages; ++s) sum += weights[s] * values[s];
  return sum - target / tree.density();
}

Weights step_weights(const Tableau& m) {
  Weights w{};
  for (std::size_t s = 0; s < kMaxStages; ++s) w[s] = m.b[s];
  return w;
}

TEST(TableauTest, EveryMethodMeetsAllConditionsOfItsOrderAndNoMore) {
  EXPECT_EQ(trees().size(), 17u);
  for (const Tableau* m : {&kDormandPrince, &kRungeKutta4, &kEuler}) {
    bool fails_above = m->order == 5;  // trees of six nodes are not listed
    for (const Tree& tree : trees()) {
      const double r = residual(*m, step_weights(*m), tree, 1);
      if (tree.order() <= m->order)
        EXPECT_NEAR(r, 0, 1e-15) << "order " << tree.order();
      else if (tree.order() == m->order + 1)
        fails_above = fails_above || std::abs(r) > 1e-3;
    }
    EXPECT_TRUE(fails_above);
  }
}

TEST(TableauTest, TheEmbeddedMethodHasOrderFour) {
  Weights w = step_weights(kDormandPrince);
  for (std::size_t s = 0; s < kMaxStages; ++s) w[s] += kDormandPrince.e[s];
  bool fails = false;
  for (const Tree& tree : trees()) {
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
    for (const Tree& tree : trees())
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
