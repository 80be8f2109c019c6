#include "odecast/model/equations.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

TEST(EquationsTest, TermsEqualEnumerationOfAllMasksInTheUsersUnits) {
  Model model = make_model(random_kernel(2, 6, 2, 0.3, false, 1));
  model.scaling = {Eigen::Vector2d(1, -2), Eigen::Vector2d(0.5, 3), 0.25};
  const auto kernel = *polynomial_kernel(model.network());
  const KernelExpansion user =
      expand(change_units(kernel, model.scaling.offset, model.scaling.scale, model.scaling.rate()));
  Matrix mean = Matrix::Zero(2, 6), second = mean, nonzero = mean;
  for_each_mask(kernel, [&](const Vector& d, double weight) {
    const Matrix c = masked_field(user, d).coefficients;
    mean += weight * c;
    second += weight * c.cwiseAbs2();
    nonzero += weight * (c.array() != 0).cast<double>().matrix();
  });
  const auto all = equations(model);
  ASSERT_EQ(all.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(all[static_cast<std::size_t>(i)].terms.size(), 6u);
    for (int m = 0; m < 6; ++m) {
      const Term& t = all[static_cast<std::size_t>(i)].terms[static_cast<std::size_t>(m)];
      EXPECT_EQ(t.powers, user.basis->powers(m));
      EXPECT_NEAR(t.mean, mean(i, m), 1e-12);
      EXPECT_NEAR(t.sd, std::sqrt(second(i, m) - mean(i, m) * mean(i, m)), 1e-7);
      EXPECT_NEAR(t.probability, nonzero(i, m), 1e-12);
    }
  }
}

TEST(EquationsTest, ReadsBackAKnownSystem) {
  // du/dt = u² through one unit that is never dropped.
  const Model model = exploding_model(0);
  const auto all = equations(model);
  ASSERT_EQ(all[0].terms.size(), 1u);
  EXPECT_EQ(all[0].terms[0].powers, std::vector<int>{2});
  EXPECT_EQ(all[0].terms[0].mean, 1);
  EXPECT_EQ(all[0].terms[0].sd, 0);
  EXPECT_EQ(all[0].terms[0].probability, 1);
  EXPECT_EQ(format_equations(model, EquationFormat::text), "dx/dt = 1.0000 x^2\n");
  EXPECT_EQ(format_equations(model, EquationFormat::latex),
            "\\begin{aligned}\n\\dot{x} &= 1.0000\\,x^{2}\n\\end{aligned}\n");
  EXPECT_NE(format_equations(model, EquationFormat::c).find("+ 1 * u[0] * u[0];"),
            std::string::npos);
}

TEST(EquationsTest, GeneralNetworksHaveNone) {
  EXPECT_THROW(equations(make_model(make_network(2, {{3, Activation::tanh, 1, 0, false}}, 2, 1))),
               Error);
}

TEST(EquationsTest, NoNumberIsTooOddToRound) {
  const double all[] = {0, 1, 0.1, 1e-300, 5e-324, 1e300, 1.7e308, INFINITY, NAN};
  for (const double mean : all)
    for (const double sd : all)
      for (const double sign : {1.0, -1.0})
        EXPECT_NO_THROW(rounded_coefficient(sign * mean, sd)) << mean << " " << sd;
}

TEST(EquationsTest, CoefficientsThatOverflowAreAnError) {
  Model model = make_model(random_kernel(2, 4, 2, 0.25, false, 1));
  model.network().layers[0].weights *= 1e160;
  for (const EquationFormat format :
       {EquationFormat::text, EquationFormat::latex, EquationFormat::c})
    EXPECT_THROW(format_equations(model, format), Error);
  // Sizes that overflow order terms, and no more.
  model = make_model(random_kernel(2, 4, 2, 0.25, false, 1));
  model.size = Vector::Constant(2, 1e200);
  EXPECT_EQ(readable_equations(model, 0)[0].left_out, 0u);
}

}  // namespace
}  // namespace odecast
