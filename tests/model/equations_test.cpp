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

TEST(EquationsTest, AnOffsetStandsInTheTerms) {
  // dv/ds = -2 v + 3 v² with u = 300 + 4 v, t = 0.5 s.
  Model m = forced_model(-1, 0.1, 1);
  m.law = PolynomialPart{2, {{{{0, 1}, {0, 2}}, Eigen::Vector2d(-2, 3), Matrix::Zero(2, 2)}}};
  m.scaling = {Vector::Constant(1, 300), Vector::Constant(1, 4), 0.5};
  EXPECT_EQ(format_equations(m, EquationFormat::text, 0),
            "dx/dt = 1.5000 (x - 300)^2 - 4.0000 (x - 300)\n");
  EXPECT_NE(format_equations(m, EquationFormat::latex, 0).find("1.5000\\,(x - 300)^{2}"),
            std::string::npos);
  EXPECT_NE(format_equations(m, EquationFormat::c).find("* (u[0] - 300) * (u[0] - 300)"),
            std::string::npos);
  m.scaling.offset[0] = -300.5;
  EXPECT_NE(format_equations(m, EquationFormat::text, 0).find("(x + 300.5)^2"), std::string::npos);
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

/// dx/dt = a x with probability 0.7, a x + b x² otherwise.
Model two_sets() {
  Model m = make_model(decaying_model(1, 0).network());
  const Matrix one = Matrix::Constant(1, 1, 0.01), two = 0.04 * Matrix::Identity(2, 2);
  Vector both(2);
  both << -2, 0.5;
  m.law = PolynomialPart{
      2,
      {{.support = {{0, 1}}, .theta = Vector::Constant(1, -1), .covariance = one, .weight = 0.7},
       {.support = {{0, 1}, {0, 2}}, .theta = both, .covariance = two, .weight = 0.3}}};
  return m;
}

TEST(EquationsTest, TheMostProbableSetComesFirst) {
  const Model m = two_sets();
  EXPECT_DOUBLE_EQ(*best_set_probability(m), 0.7);
  const auto best = readable_equations(m, 0, Centre::best), all = readable_equations(m, 0);
  ASSERT_EQ(best[0].terms.size(), 1u);
  EXPECT_DOUBLE_EQ(best[0].terms[0].mean, -1);
  EXPECT_DOUBLE_EQ(best[0].terms[0].sd, 0.1);
  ASSERT_EQ(all[0].terms.size(), 2u);
  EXPECT_DOUBLE_EQ(all[0].terms[0].mean, 0.7 * -1 + 0.3 * -2);
  const std::string text = describe_equations(m);
  EXPECT_LT(text.find("probability 0.7"), text.find("dx/dt = -1.00(±0.10) x\n")) << text;
  EXPECT_NE(text.find("dx/dt: x^2 0.30"), text.npos) << text;
  EXPECT_NE(text.find("average over 2 sets"), text.npos) << text;
  EXPECT_NE(format_equations(m, EquationFormat::c, 0, Centre::best).find("most probable"),
            std::string::npos);
  // Sets that lack a term of the best are told apart, too.
  Model less = m;
  std::swap(less.polynomial()->sets[0].weight, less.polynomial()->sets[1].weight);
  EXPECT_NE(describe_equations(less).find("average over 2 sets"), std::string::npos);
  // Where one set has it all there is one equation.
  Model sure = m;
  sure.polynomial()->sets.resize(1);
  sure.polynomial()->sets[0].weight = 1;
  EXPECT_EQ(describe_equations(sure).find("average"), std::string::npos);
  EXPECT_FALSE(best_set_probability(decaying_model(1, 0.1)));
}

}  // namespace
}  // namespace odecast
