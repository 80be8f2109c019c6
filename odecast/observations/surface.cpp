#include "odecast/observations/surface.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>

namespace odecast {
namespace {

constexpr double kFlat = 1.5;
constexpr double kLeastNoise = 1e-4;  // of a variable's sd: of clean rows the solver's
constexpr Eigen::Index kMostDimensions = 6, kRowsPerMonomial = 3;

Eigen::Index quadric_size(Eigen::Index n) { return (n + 1) * (n + 2) / 2; }

Vector quadric_terms(const Vector& z) {
  Vector phi(quadric_size(z.size()));
  phi[0] = 1;
  phi.segment(1, z.size()) = z;
  Eigen::Index at = 1 + z.size();
  for (Eigen::Index i = 0; i < z.size(); ++i)
    for (Eigen::Index j = i; j < z.size(); ++j) phi[at++] = z[i] * z[j];
  return phi;
}

/// ∂φ_m/∂z_i.
Matrix quadric_slopes(const Vector& z) {
  Matrix J = Matrix::Zero(quadric_size(z.size()), z.size());
  for (Eigen::Index i = 0; i < z.size(); ++i) J(1 + i, i) = 1;
  Eigen::Index at = 1 + z.size();
  for (Eigen::Index i = 0; i < z.size(); ++i)
    for (Eigen::Index j = i; j < z.size(); ++j, ++at) {
      J(at, i) += z[j];
      J(at, j) += z[i];
    }
  return J;
}

}  // namespace

double Surface::value(const Vector& u) const {
  return weights.dot(quadric_terms((u - centre).cwiseQuotient(scale)));
}

Vector Surface::slope(const Vector& u) const {
  const Vector of_z = quadric_slopes((u - centre).cwiseQuotient(scale)).transpose() * weights;
  return of_z.cwiseQuotient(scale);
}

double Surface::distance(const Vector& u) const {
  const double sd = slope(u).cwiseProduct(scale).cwiseProduct(noise).norm();
  return std::abs(value(u)) / std::max(sd, 1e-300);
}

std::optional<Surface> surface_of(const Matrix& rows, const Vector& noise, const Vector& sd) {
  const Eigen::Index n = rows.cols(), M = quadric_size(n);
  if (n < 2 || n > kMostDimensions || noise.size() != n || sd.size() != n ||
      !(sd.array() > 0).all() || rows.rows() < kRowsPerMonomial * M)
    return std::nullopt;
  Surface s{rows.colwise().mean().transpose(), sd, {}, noise.cwiseQuotient(sd)};
  s.noise = s.noise.cwiseMax(kLeastNoise);
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(M, M), B = A;
  const auto count = static_cast<double>(rows.rows());
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    const Vector z = (rows.row(k).transpose() - s.centre).cwiseQuotient(s.scale);
    const Vector phi = quadric_terms(z);
    const Matrix J = quadric_slopes(z) * s.noise.asDiagonal();
    A += phi * phi.transpose() / count;
    B += J * J.transpose() / count;
  }
  // 1/λ are the eigenvalues of L⁻¹ B L⁻ᵀ with A = L Lᵀ.
  A.diagonal().array() += 1e-12 * A.trace();
  const Eigen::LLT<Eigen::MatrixXd> root(A);
  if (root.info() != Eigen::Success) return std::nullopt;
  Eigen::MatrixXd C = root.matrixL().solve(B);
  C = root.matrixL().solve(C.transpose().eval()).eval();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen((C + C.transpose()) / 2);
  if (eigen.info() != Eigen::Success || !(eigen.eigenvalues()[M - 1] * kFlat > 1))
    return std::nullopt;
  s.weights = root.matrixL().transpose().solve(eigen.eigenvectors().col(M - 1));
  return s;
}

}  // namespace odecast
