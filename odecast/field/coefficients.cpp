#include "odecast/field/coefficients.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>

namespace odecast {
namespace {

/// C over the sizes of row and column, 1 on the diagonal: coefficients differ by many orders.
Eigen::MatrixXd scaled(const Matrix& C, const Vector& size) {
  const Vector inverse = size.unaryExpr([](double x) { return x > 0 ? 1 / x : 0.0; });
  Eigen::MatrixXd unit = inverse.asDiagonal() * C * inverse.asDiagonal();
  for (Eigen::Index i = 0; i < size.size(); ++i)
    if (size[i] == 0) unit(i, i) = 1;
  return unit;
}

}  // namespace

Matrix covariance_root(const Matrix& C) {
  if (C.rows() == 0) return C;
  const Vector size = C.diagonal().cwiseMax(0).cwiseSqrt();
  const Eigen::MatrixXd unit = scaled(C, size);
  const Eigen::LDLT<Eigen::MatrixXd> factor(unit);
  const Vector d = factor.vectorD().cwiseMax(0).cwiseSqrt();
  Eigen::MatrixXd R = Eigen::MatrixXd(factor.matrixL()) * d.asDiagonal();
  R = factor.transpositionsP().transpose() * R;
  return size.asDiagonal() * R;
}

bool is_covariance(const Matrix& C) {
  constexpr double kRoundOff = 1e-6;
  if (C.rows() != C.cols() || !C.allFinite() || !(C.diagonal().array() >= 0).all()) return false;
  if (C.rows() == 0) return true;
  const Eigen::MatrixXd unit = scaled(C, C.diagonal().cwiseSqrt());
  return unit.allFinite() && (unit - unit.transpose()).cwiseAbs().maxCoeff() <= kRoundOff &&
         Eigen::LDLT<Eigen::MatrixXd>(unit).vectorD().minCoeff() >= -kRoundOff;
}

}  // namespace odecast
