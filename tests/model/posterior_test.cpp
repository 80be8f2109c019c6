#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/model/dropout_posterior.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

Vector value(const VectorField& f, const Vector& u) {
  Vector out(u.size());
  f(0, u.data(), out.data());
  return out;
}

TEST(PosteriorTest, SampledMomentsAgreeWithTheExactOnes) {
  const int draws = 20'000;
  for (const double rate : {0.05, 0.25, 0.5}) {
    const Network network = random_kernel(3, 10, 2, rate, false, 1);
    const auto kernel = *polynomial_kernel(network);
    const DropoutPosterior posterior(network);
    Stream stream(1, Purpose::initial_state, 0);
    const Vector u = random_vector(3, stream);
    const Moments exact = posterior.moments(u), sampled = sampled_moments(posterior, u, draws, 3);
    // Fourth central moment by enumeration gives the standard error of the variance.
    Vector fourth = Vector::Zero(3);
    const KernelExpansion expansion = expand(kernel);
    for_each_mask(kernel, [&](const Vector& d, double weight) {
      fourth +=
          weight *
          (value(VectorField(masked_field(expansion, d)), u) - exact.mean).array().pow(4).matrix();
    });
    for (int i = 0; i < 3; ++i) {
      const double variance = exact.covariance(i, i);
      EXPECT_NEAR(sampled.mean[i], exact.mean[i], 5 * std::sqrt(variance / draws)) << rate;
      EXPECT_NEAR(sampled.covariance(i, i), variance,
                  5 * std::sqrt((fourth[i] - variance * variance) / draws))
          << rate;
    }
  }
}

TEST(PosteriorTest, ASetWithoutTermsStartsFromItsLastState) {
  Model m = forced_model(-1, 0.25, 0.1);
  CoefficientSet& set = m.polynomial()->sets[0];
  set.support = {};
  set.theta = Vector();
  set.covariance = Matrix(0, 0);
  set.last_state = Vector::Constant(1, 2.0);
  set.last_slope = Matrix(1, 0);
  set.last_covariance = Matrix::Constant(1, 1, 0.01);
  const auto posterior = make_posterior(m);
  const int draws = 2000;
  double sum = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const auto start = posterior->draw_start(5, i);
    ASSERT_TRUE(start && start->size() == 1);
    sum += (*start)[0];
  }
  EXPECT_NEAR(sum / draws, 2, 4 * 0.1 / std::sqrt(draws));
}

TEST(PosteriorTest, DrawsAreReplayable) {
  const DropoutPosterior posterior(random_kernel(3, 10, 2, 0.25, false, 1));
  const Vector u = Vector::Ones(3);
  const Vector a = value(posterior.draw(1, 17), u);
  value(posterior.draw(1, 3), u);
  EXPECT_EQ(value(posterior.draw(1, 17), u), a);
  int different = 0;
  for (std::uint64_t i = 0; i < 50; ++i) different += value(posterior.draw(2, i), u) != a;
  EXPECT_GT(different, 40);
}

TEST(PosteriorTest, MeanFieldAndPointEstimateDifferUnlessRescaledAtDegreeOne) {
  const Vector u = Eigen::Vector3d(0.3, -1, 2);
  const DropoutPosterior plain(random_kernel(3, 10, 2, 0.25, false, 1));
  EXPECT_GT((value(plain.mean_field(), u) - value(plain.point_field(), u)).norm(), 0.01);
  EXPECT_LT((value(plain.mean_field(), u) - plain.moments(u).mean).norm(), 1e-12);
  // E(d/q)^p = q^{1-p}, which is 1 for p = 1: rescaling makes the two coincide there.
  const Network linear = random_kernel(3, 10, 1, 0.25, true, 1);
  const DropoutPosterior rescaled(linear);
  Matrix all_kept = evaluate(linear, u.transpose());
  EXPECT_LT((value(rescaled.mean_field(), u) - all_kept.row(0).transpose()).norm(), 1e-12);
}

TEST(PosteriorTest, ThePointEstimateIsTheNetworkWithoutMasks) {
  const Vector u = Eigen::Vector3d(0.3, -1, 2);
  for (const bool rescale : {false, true}) {
    const Network network = random_kernel(3, 10, 2, 0.25, rescale, 1);
    const Vector expected = evaluate(network, u.transpose()).row(0);
    EXPECT_LT((value(DropoutPosterior(network).point_field(), u) - expected).norm(), 1e-12);
  }
}

TEST(PosteriorTest, WithoutDropoutAllDrawsAreTheMeanField) {
  const DropoutPosterior posterior(random_kernel(3, 10, 2, 0, false, 1));
  const Vector u = Eigen::Vector3d(0.3, -1, 2);
  EXPECT_EQ(value(posterior.draw(1, 5), u), value(posterior.mean_field(), u));
  EXPECT_EQ(posterior.moments(u).covariance.norm(), 0);
}

TEST(PosteriorTest, GeneralNetworksHaveMomentsToo) {
  // One hidden layer: f = b + Σ_j W_j σ(d_j z_j), σ(0) = 0 for tanh, so E f = b + q Σ W σ(z) and
  // Var f_o = q r Σ W_oj² σ(z_j)².
  const Network network = make_network(2, {{12, Activation::tanh, 1, 0.3, false}}, 2, 4);
  const DropoutPosterior posterior(network);
  const Vector u = Eigen::Vector2d(1, -1);
  const Vector a = (network.layers[0].weights * u).array().tanh();
  const Vector mean = 0.7 * network.layers[1].weights * a;
  const Vector variance = 0.21 * network.layers[1].weights.cwiseAbs2() * a.cwiseAbs2();
  const Moments m = posterior.moments(u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(m.mean[i], mean[i], 5 * std::sqrt(variance[i] / 1000));
    EXPECT_NEAR(m.covariance(i, i), variance[i], 5 * variance[i] * std::sqrt(2.0 / 1000));
    EXPECT_NEAR(value(posterior.mean_field(), u)[i], m.mean[i], 1e-12);
  }
}

TEST(PosteriorTest, FreshMasksChangeWhenTheyShould) {
  const Network network = random_kernel(3, 10, 2, 0.5, false, 1);
  const Vector u = Vector::Ones(3);
  const VectorField each_call = DropoutPosterior(network, MaskChange::call).draw(1, 0);
  EXPECT_NE(value(each_call, u), value(each_call, u));
  const VectorField each_step = DropoutPosterior(network, MaskChange::step).draw(1, 0);
  each_step.step_hook()(0);
  const Vector first = value(each_step, u);
  EXPECT_EQ(value(each_step, u), first);
  each_step.step_hook()(1);
  EXPECT_NE(value(each_step, u), first);
  each_step.step_hook()(0);
  EXPECT_EQ(value(each_step, u), first);
}

TEST(PosteriorTest, APredictionThatOverflowsIsAnError) {
  const Model model = make_model(random_kernel(2, 4, 2, 0.25, false, 1));
  const auto posterior = make_posterior(model);
  const Prediction p = prediction(model, posterior->moments(Vector::Ones(2)));
  EXPECT_TRUE(p.mean.allFinite() && p.sd.allFinite());
  EXPECT_THROW(prediction(model, posterior->moments(Vector::Constant(2, 1e200))), Error);
  EXPECT_THROW(prediction(model, {Vector::Zero(2), Matrix::Constant(2, 2, -1)}), Error);
}

}  // namespace
}  // namespace odecast
