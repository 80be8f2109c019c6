#include "odecast/training/objective.hpp"

#include <cmath>

namespace odecast {
double expected_objective(const PolynomialKernel& kernel, const DerivativeRows& rows,
                          const Vector& weights) {
  const double q = kernel.keep(), r = kernel.dropout;
  const Vector spread = (kernel.W2.cwiseAbs2().transpose() * weights) * (q * r);  // per unit
  double sum = 0;
  Vector ap(kernel.units());
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    ap.noalias() = kernel.W1 * rows.states.row(i).transpose() + kernel.B1;
    ap = ap.unaryExpr([&](double x) { return integer_power(x, kernel.degree); });
    const Vector e = kernel.B2 + q * (kernel.W2 * ap) - rows.derivatives.row(i).transpose();
    sum += e.cwiseAbs2().dot(weights) + spread.dot(ap.cwiseAbs2());
  }
  return sum / static_cast<double>(rows.rows());
}

LossGradient expected_objective_gradient(const PolynomialKernel& kernel,
                                         const DerivativeRows& rows) {
  const double q = kernel.keep(), r = kernel.dropout;
  const int p = kernel.degree;
  Matrix dW1 = Matrix::Zero(kernel.W1.rows(), kernel.W1.cols());
  Matrix dW2 = Matrix::Zero(kernel.W2.rows(), kernel.W2.cols());
  Vector dB1 = Vector::Zero(kernel.B1.size()), dB2 = Vector::Zero(kernel.B2.size());
  const Vector spread = kernel.W2.cwiseAbs2().colwise().sum();  // |W2_j|²
  double sum = 0;
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const Vector u = rows.states.row(i);
    const Vector a = kernel.W1 * u + kernel.B1;
    const Vector lower = a.unaryExpr([&](double x) { return integer_power(x, p - 1); });  // a^{p-1}
    const Vector ap = lower.cwiseProduct(a);
    const Vector e = kernel.B2 + q * (kernel.W2 * ap) - rows.derivatives.row(i).transpose();
    sum += e.squaredNorm() + q * r * spread.dot(ap.cwiseAbs2());
    dB2 += e;
    dW2 += q * e * ap.transpose() + q * r * kernel.W2 * ap.cwiseAbs2().asDiagonal();
    const Vector s = q * (kernel.W2.transpose() * e) + q * r * spread.cwiseProduct(ap);
    const Vector da = p * lower.cwiseProduct(s);
    dB1 += da;
    dW1 += da * u.transpose();
  }
  LossGradient result{sum / static_cast<double>(rows.rows()),
                      Vector(dW1.size() + dB1.size() + dW2.size() + dB2.size())};
  result.gradient << Eigen::Map<Vector>(dW1.data(), dW1.size()), dB1,
      Eigen::Map<Vector>(dW2.data(), dW2.size()), dB2;
  result.gradient *= 2 / static_cast<double>(rows.rows());
  return result;
}

SampledObjective sampled_objective(const Network& network, const DerivativeRows& rows, int masks,
                                   std::uint64_t seed) {
  double mean = 0, square = 0;
  for (int k = 0; k < masks; ++k) {
    const Masks d =
        sample_mask(network, seed, Purpose::training_mask, static_cast<std::uint64_t>(k));
    const double j = (evaluate(network, rows.states, d) - rows.derivatives).squaredNorm() /
                     static_cast<double>(rows.rows());
    const double delta = j - mean;
    mean += delta / (k + 1);
    square += delta * (j - mean);
  }
  return {mean, masks > 1 ? std::sqrt(square / (masks - 1) / masks) : 0};
}

}  // namespace odecast
