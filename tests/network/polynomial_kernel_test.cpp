#include "odecast/network/polynomial_kernel.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "odecast/field/vector_field.hpp"
#include "support/kernels.hpp"

namespace odecast {
namespace {

/// f(u|d) by the general network code.
Vector network_value(const Network& network, const Vector& u, const Vector& d) {
  return evaluate(network, u.transpose(), {Matrix(d.transpose()), Matrix()}).row(0);
}

TEST(PolynomialKernelTest, MomentsEqualEnumerationOfAllMasks) {
  for (const int degree : {1, 2, 3}) {
    for (const bool rescale : {false, true}) {
      const Network network = random_kernel(3, 8, degree, 0.3, rescale, 5);
      const auto kernel = polynomial_kernel(network);
      ASSERT_TRUE(kernel);
      Stream stream(1, Purpose::initial_state, 0);
      const Vector u = random_vector(3, stream);
      Vector mean = Vector::Zero(3);
      Matrix second = Matrix::Zero(3, 3);
      for_each_mask(*kernel, [&](const Vector& d, double weight) {
        const Vector f = network_value(network, u, d);
        mean += weight * f;
        second += weight * f * f.transpose();
      });
      const Moments m = exact_moments(*kernel, u);
      EXPECT_LT((m.mean - mean).norm(), 1e-13 * mean.norm());
      const Matrix covariance = second - mean * mean.transpose();
      EXPECT_LT((m.covariance - covariance).norm(), 1e-12 * second.norm());
    }
  }
}

TEST(PolynomialKernelTest, ExpansionEqualsTheNetworkForEveryMask) {
  for (const int degree : {1, 2, 3, 4}) {
    const Network network = random_kernel(2, 5, degree, 0.25, true, 7);
    const auto kernel = *polynomial_kernel(network);
    const KernelExpansion expansion = expand(kernel);
    Stream stream(2, Purpose::initial_state, 0);
    const Vector u = random_vector(2, stream);
    for_each_mask(kernel, [&](const Vector& d, double) {
      Vector f(2);
      VectorField(masked_field(expansion, d))(0, u.data(), f.data());
      const Vector expected = network_value(network, u, d);
      EXPECT_LT((f - expected).norm(), 1e-12 * (1 + expected.norm()));
    });
  }
}

TEST(PolynomialKernelTest, ChangeOfUnitsCommutesWithEvaluation) {
  const auto kernel = *polynomial_kernel(random_kernel(3, 6, 3, 0.2, false, 3));
  const Eigen::Vector3d offset(1, -2, 5), scale(0.1, 3, 40), rate = scale / 4;
  const PolynomialKernel other = change_units(kernel, offset, scale, rate);
  Stream stream(3, Purpose::initial_state, 0);
  const Vector v = random_vector(3, stream);
  const Vector u = offset + scale.cwiseProduct(v);
  const Moments in_v = exact_moments(kernel, v), in_u = exact_moments(other, u);
  EXPECT_LT((in_u.mean - rate.cwiseProduct(in_v.mean)).norm(), 1e-12 * in_u.mean.norm());
  EXPECT_LT((in_u.sd() - rate.cwiseProduct(in_v.sd())).norm(), 1e-12 * in_u.sd().norm());
}

TEST(PolynomialKernelTest, OtherNetworksAreNotTakenForOne) {
  EXPECT_FALSE(polynomial_kernel(make_network(2, {{4, Activation::tanh, 1, 0.1, false}}, 2, 1)));
  EXPECT_FALSE(polynomial_kernel(make_network(
      2, {{4, Activation::power, 2, 0.1, false}, {4, Activation::power, 2, 0.1, false}}, 2, 1)));
  Network dropped_output = random_kernel(2, 4, 2, 0.1, false, 1);
  dropped_output.layers[1].dropout = 0.1;
  EXPECT_FALSE(polynomial_kernel(dropped_output));
}

TEST(PolynomialKernelTest, AsManyUnitsAsMonomialsSpanAllPolynomials) {
  // The powers (b + w·u)^p of k = F random forms are linearly independent.
  for (const auto& [n, p] : {std::pair{3, 2}, {2, 3}, {1, 4}}) {
    const MonomialBasis basis(n, p);
    Stream stream(4, Purpose::initial_state, 0);
    Eigen::MatrixXd forms(basis.size(), basis.size());
    for (int j = 0; j < basis.size(); ++j)
      forms.col(j) = basis.expand_power(random_vector(n, stream), stream.normal());
    EXPECT_EQ(Eigen::FullPivLU<Eigen::MatrixXd>(forms).rank(), basis.size());
  }
}

}  // namespace
}  // namespace odecast
