#include "odecast/field/polynomial.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/field/detail/monomial_tree.hpp"
#include "odecast/field/sparse_field.hpp"
#include "odecast/field/vector_field.hpp"

namespace odecast {
namespace {

TEST(PolynomialTest, BasisHasEveryMonomialOnceByDegree) {
  for (int n = 1; n <= 5; ++n) {
    for (int p = 0; p <= 4; ++p) {
      const MonomialBasis basis(n, p);
      EXPECT_EQ(basis.size(), monomial_count(n, p));
      int last_degree = 0;
      for (int m = 0; m < basis.size(); ++m) {
        int degree = 0;
        for (const int power : basis.powers(m)) degree += power;
        EXPECT_EQ(basis.degree(m), degree);
        EXPECT_EQ(basis.find(basis.powers(m)), m);
        EXPECT_GE(degree, last_degree);
        last_degree = degree;
        for (int other = 0; other < m; ++other) EXPECT_NE(basis.powers(m), basis.powers(other));
      }
      EXPECT_EQ(last_degree, p);
    }
  }
  const MonomialBasis two(2, 2);
  std::string text;
  for (int m = 0; m < two.size(); ++m) text += monomial_text(two.powers(m), {"x", "y"}) + ";";
  EXPECT_EQ(text, "1;x;y;x^2;x y;y^2;");
}

TEST(PolynomialTest, ValuesAreProductsOfPowers) {
  const MonomialBasis basis(3, 4);
  const double u[3] = {1.3, -0.7, 2.1};
  std::vector<double> phi(static_cast<std::size_t>(basis.size()));
  basis.evaluate(u, phi.data());
  for (int m = 0; m < basis.size(); ++m) {
    double expected = 1;
    for (int v = 0; v < 3; ++v)
      expected *= std::pow(u[v], basis.powers(m)[static_cast<std::size_t>(v)]);
    EXPECT_NEAR(phi[static_cast<std::size_t>(m)], expected, 1e-13 * std::abs(expected));
  }
}

TEST(PolynomialTest, AMonomialAboveTheDegreeIsNotFound) {
  const MonomialBasis basis(3, 2);
  EXPECT_EQ(basis.find({0, 1, 1}), 8);  // 1, x, y, z, x², xy, xz, y², yz, z²
  EXPECT_EQ(basis.find({0, 0, 3}), -1);
  EXPECT_EQ(basis.find({1, 1, 1}), -1);
}

TEST(PolynomialTest, TheCompilersTreeIsTheBasis) {
  constexpr MonomialTree<3, 4> tree;
  const MonomialBasis basis(3, 4);
  ASSERT_EQ(tree.size, basis.size());
  for (int m = 0; m < basis.size(); ++m) {
    EXPECT_EQ(tree.parent[m], basis.parent(m));
    EXPECT_EQ(tree.variable[m], basis.variable(m));
    EXPECT_EQ(m < tree.lower, basis.degree(m) < 4);
  }
}

/// By powers: u^α has slope α_v u^(α - e_v), and times u_v it is u^(α + e_v).
TEST(PolynomialTest, SlopesAndProductsMoveOnePower) {
  for (int n = 1; n <= 4; ++n)
    for (int p = 0; p <= 4; ++p) {
      const MonomialBasis basis(n, p);
      for (int m = 0; m < basis.size(); ++m)
        for (int v = 0; v < n; ++v) {
          auto powers = basis.powers(m);
          const int own = powers[static_cast<std::size_t>(v)];
          const auto slope = basis.slope(m, v);
          EXPECT_EQ(slope.factor, own);
          --powers[static_cast<std::size_t>(v)];
          if (own > 0)
            EXPECT_EQ(basis.powers(slope.monomial), powers);
          else
            EXPECT_EQ(slope.monomial, 0);
          powers[static_cast<std::size_t>(v)] += 2;
          if (basis.degree(m) == p) continue;
          EXPECT_EQ(basis.powers(basis.times(m, v)), powers);
        }
    }
}

/// Three equations in four arguments, the last of which drives; every third coefficient is there.
SparseField sparse_field() {
  SparseField f{{std::make_shared<const MonomialBasis>(4, 3)}, {}, {}};
  for (int i = 0; i < 3; ++i)
    for (int m = i; m < f.library.basis->size(); m += 3) f.support.push_back({i, m});
  Stream stream(1, Purpose::initial_weights, 0);
  f.theta.resize(static_cast<Eigen::Index>(f.support.size()));
  for (auto& x : f.theta) x = stream.normal();
  return f;
}

TEST(PolynomialTest, JacobianIsThatOfDifferences) {
  const PolynomialField f = dense(sparse_field(), 3);
  const VectorField exact(f);
  Vector u(4), above(3), below(3);
  u << 0.7, -1.2, 0.4, 1.9;
  const Matrix J = jacobian(f, u);
  EXPECT_EQ(J.rows(), 3);
  EXPECT_EQ(J, jacobian(exact, u));
  for (int v = 0; v < 4; ++v) {
    constexpr double h = 1e-5;
    Vector at = u;
    at[v] = u[v] + h;
    exact(0, at.data(), above.data());
    at[v] = u[v] - h;
    exact(0, at.data(), below.data());
    EXPECT_LT((J.col(v) - (above - below) / (2 * h)).norm(), 1e-8 * J.norm());
  }
  // A field that is not known as a polynomial: differences of fourth order are exact for cubics.
  const PolynomialField square =
      dense({{std::make_shared<const MonomialBasis>(2, 3)}, {{0, 4}, {1, 6}}, Vector::Ones(2)}, 2);
  const VectorField known(square);
  const VectorField unknown(2, [&](double t, const double* x, double* f2) { known(t, x, f2); });
  const Vector at = u.head(2);
  EXPECT_LT((jacobian(unknown, at) - jacobian(square, at)).norm(), 1e-11);
}

TEST(PolynomialTest, ListsGiveTheDenseFieldAndItsJacobian) {
  const SparseField sparse = sparse_field();
  const PolynomialField all = dense(sparse, 3);
  const FieldLists lists(sparse, 3);
  EXPECT_LT(lists.parent.size(), static_cast<std::size_t>(all.basis->size()) + 1);
  Vector u(4), f(3), own = Vector::Zero(3);
  u << 0.7, -1.2, 0.4, 1.9;
  VectorField field(all);
  field(0, u.data(), f.data());
  Vector phi = Vector::Ones(static_cast<Eigen::Index>(lists.parent.size()));
  for (std::size_t m = 1; m < lists.parent.size(); ++m)
    phi[static_cast<Eigen::Index>(m)] = phi[lists.parent[m]] * u[lists.variable[m]];
  for (std::size_t c = 0; c < lists.theta.size(); ++c)
    own[lists.equation[c]] += lists.theta[c] * phi[lists.term[c]];
  EXPECT_LT((own - f).norm(), 1e-13 * f.norm());
  Matrix J = Matrix::Zero(3, 3);
  for (std::size_t e = 0; e < lists.slope_place.size(); ++e)
    J.data()[lists.slope_place[e]] += lists.slope_value[e] * phi[lists.slope_term[e]];
  EXPECT_LT((J - jacobian(all, u).leftCols(3)).norm(), 1e-13 * J.norm());
  // One term needs its own monomials and those of its slopes only.
  const FieldLists one(
      {sparse.library, {{0, sparse.library.basis->find({2, 1, 0, 0})}}, Vector::Ones(1)}, 3);
  EXPECT_EQ(one.parent.size(), 5u);  // 1, x, x², x y, x² y
}

TEST(PolynomialTest, ExpandedPowerEqualsThePower) {
  Stream stream(1, Purpose::initial_weights, 0);
  for (int n = 1; n <= 4; ++n) {
    for (int p = 1; p <= 5; ++p) {
      const MonomialBasis basis(n, p);
      Vector w(n), u(n), phi(basis.size());
      for (int i = 0; i < n; ++i) w[i] = stream.normal(), u[i] = stream.normal();
      const double b = stream.normal();
      basis.evaluate(u.data(), phi.data());
      const Vector q = basis.expand_power(w, b);
      EXPECT_NEAR(q.dot(phi), std::pow(b + w.dot(u), p), 1e-13 * q.cwiseAbs().dot(phi.cwiseAbs()));
    }
  }
}

TEST(PolynomialTest, AFieldKnowsItsPolynomial) {
  const auto basis = std::make_shared<const MonomialBasis>(2, 1);  // 1, x, y
  Matrix c(2, 3);
  c << 1, 2, 3, 4, 5, 6;
  const VectorField field(PolynomialField{basis, c});
  const double u[2] = {10, 100};
  double out[2];
  field(0, u, out);
  EXPECT_EQ(out[0], 321);
  EXPECT_EQ(out[1], 654);
  ASSERT_NE(field.polynomial(), nullptr);
  EXPECT_EQ(VectorField(2, nullptr).polynomial(), nullptr);
}

}  // namespace
}  // namespace odecast
