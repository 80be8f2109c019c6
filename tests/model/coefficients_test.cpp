#include "odecast/model/coefficients.hpp"

#include <gtest/gtest.h>

#include "odecast/core/error.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

TEST(CoefficientsTest, DrawsAreTheFieldsOfThePosteriorInTheUsersUnits) {
  for (const ModelKind kind : {ModelKind::flow, ModelKind::map}) {
    Model model = make_model(random_kernel(2, 6, 3, 0.3, false, 1));
    model.kind = kind;
    model.scaling = {Eigen::Vector2d(1, -2), Eigen::Vector2d(0.5, 3), 0.25};
    const auto posterior = make_posterior(model);
    const CoefficientDraws drawn = draw_coefficients(model, 20, 7);
    ASSERT_EQ(drawn.coefficients.size(), 20u);
    EXPECT_EQ(drawn.starts.size(), 0);
    Stream stream(1, Purpose::initial_state, 0);
    for (std::uint64_t k = 0; k < 20; ++k) {
      const Vector u = random_vector(2, stream), v = model.to_model(u);
      Vector f(2), phi(monomials(model)->size());
      posterior->draw(7, k)(0, v.data(), f.data());
      monomials(model)->evaluate(u.data(), phi.data());
      const Vector expected = model.base() + model.rate().cwiseProduct(f);
      EXPECT_LT((drawn.coefficients[k] * phi - expected).norm(), 1e-10 * (1 + expected.norm()));
    }
  }
}

TEST(CoefficientsTest, TheMostProbableTermsAreThoseOfMostWeightTogether) {
  // x' = a x + b: twice the terms {x}, of 0.3 each, are more than once {1}, of 0.4.
  Model model = make_model(random_kernel(1, 3, 1, 0, false, 1));
  model.scaling = {Vector::Zero(1), Vector::Constant(1, 2.0), 0.5};
  const auto normal = [](int monomial, double theta, double weight) {
    CoefficientSet set{{{0, monomial}}, Vector::Constant(1, theta), Matrix::Constant(1, 1, 0.01)};
    set.weight = weight;
    return set;
  };
  model.law = PolynomialPart{1, {normal(0, 5, 0.4), normal(1, 3, 0.3), normal(1, 4, 0.3)}};
  EXPECT_NEAR(best_set(model)->probability, 0.6, 1e-15);
  const SetOfTerms found = most_probable_terms(model);
  ASSERT_EQ(found.support.size(), 1u);
  EXPECT_EQ(found.support[0].term, 1);
  // u = 2 v, t = s / 2: the rate of x is 4 times that of v, and x 2 times v.
  EXPECT_EQ(found.mean[0], 2 * 3);
  EXPECT_EQ(found.covariance(0, 0), 4 * 0.01);
}

TEST(CoefficientsTest, WhatHasNoneSaysSo) {
  const Model network = make_model(make_network(2, {{3, Activation::tanh, 1, 0, false}}, 2, 1));
  EXPECT_THROW(draw_coefficients(network, 3, 1), Error);
  const Model kernel = make_model(random_kernel(2, 6, 2, 0.3, false, 1));
  EXPECT_THROW(most_probable_terms(kernel), Error);
  EXPECT_THROW(draw_coefficients(kernel, 1'000'000'000, 1), Error);
}

}  // namespace
}  // namespace odecast
