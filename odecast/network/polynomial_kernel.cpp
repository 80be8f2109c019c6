#include "odecast/network/polynomial_kernel.hpp"

#include <cassert>
#include <cmath>

namespace odecast {
std::optional<PolynomialKernel> polynomial_kernel(const Network& network) {
  if (network.layers.size() != 2) return std::nullopt;
  const Layer &hidden = network.layers[0], &out = network.layers[1];
  if (hidden.activation != Activation::power || out.activation != Activation::identity ||
      out.dropout != 0)
    return std::nullopt;
  return PolynomialKernel{
      hidden.weights, hidden.biases, out.weights * integer_power(hidden.mask_value(), hidden.power),
      out.biases,     hidden.power,  hidden.dropout};
}

Moments exact_moments(const PolynomialKernel& kernel, const Vector& u) {
  const Vector a = kernel.W1 * u + kernel.B1;
  const Vector ap = a.unaryExpr([&](double x) { return integer_power(x, kernel.degree); });
  const Matrix scaled = kernel.W2 * ap.asDiagonal();  // columns W2_j a_j^p
  const double q = kernel.keep(), r = kernel.dropout;
  return {kernel.B2 + q * (kernel.W2 * ap), q * r * (scaled * scaled.transpose())};
}

KernelExpansion expand(const PolynomialKernel& kernel) {
  KernelExpansion e;
  e.basis =
      std::make_shared<const MonomialBasis>(static_cast<int>(kernel.W1.cols()), kernel.degree);
  e.constant = kernel.B2;
  e.W2 = kernel.W2;
  e.powers.resize(kernel.units(), e.basis->size());
  for (int j = 0; j < kernel.units(); ++j)
    e.powers.row(j) = e.basis->expand_power(kernel.W1.row(j), kernel.B1[j]).transpose();
  return e;
}

bool can_expand(int arguments, int outputs, int degree, double units) {
  const double monomials = monomial_count(arguments, degree);
  return outputs * monomials <= kMostCoefficients && units * monomials <= kMostUnitPowers;
}

PolynomialField masked_field(const KernelExpansion& e, const Vector& d) {
  assert(d.size() == e.powers.rows());
  PolynomialField field{e.basis, Matrix::Zero(e.constant.size(), e.basis->size())};
  field.coefficients.col(0) = e.constant;
  for (Eigen::Index j = 0; j < d.size(); ++j)
    if (d[j] != 0)
      for (Eigen::Index i = 0; i < field.coefficients.rows(); ++i)
        field.coefficients.row(i) += d[j] * (e.W2(i, j) * e.powers.row(j));
  return field;
}

PolynomialKernel change_units(const PolynomialKernel& kernel, const Vector& offset,
                              const Vector& scale, const Vector& rate) {
  // v = (u - offset) / scale.
  PolynomialKernel result = kernel;
  result.W1 = kernel.W1 * scale.cwiseInverse().asDiagonal();
  result.B1 = kernel.B1 - result.W1 * offset;
  result.W2 = rate.asDiagonal() * kernel.W2;
  result.B2 = rate.cwiseProduct(kernel.B2);
  return result;
}

}  // namespace odecast
