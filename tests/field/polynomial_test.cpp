#include "odecast/field/polynomial.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
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
