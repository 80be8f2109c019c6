#include "odecast/posterior/trajectory_posterior.hpp"

#include <Eigen/Cholesky>
#include <cassert>
#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

/// R with R R' = C, also where C is singular to round-off: coefficients differ by many orders, so C
/// is scaled to a unit diagonal first.
Matrix root(const Matrix& C) {
  if (C.rows() == 0) return C;
  const Vector size = C.diagonal().cwiseMax(0).cwiseSqrt();
  const Vector inverse = size.unaryExpr([](double x) { return x > 0 ? 1 / x : 0.0; });
  Eigen::MatrixXd unit = inverse.asDiagonal() * C * inverse.asDiagonal();
  for (Eigen::Index i = 0; i < size.size(); ++i)
    if (size[i] == 0) unit(i, i) = 1;
  const Eigen::LDLT<Eigen::MatrixXd> factor(unit);
  const Vector d = factor.vectorD().cwiseMax(0).cwiseSqrt();
  Eigen::MatrixXd R = Eigen::MatrixXd(factor.matrixL()) * d.asDiagonal();
  R = factor.transpositionsP().transpose() * R;
  return size.asDiagonal() * R;
}

}  // namespace

TrajectoryPosterior::TrajectoryPosterior(std::shared_ptr<const MonomialBasis> basis,
                                         std::vector<TrajectoryMember> members)
    : basis_(std::move(basis)), members_(std::move(members)) {
  assert(!members_.empty());
  for (const TrajectoryMember& m : members_) {
    theta_roots_.push_back(root(m.covariance));
    start_roots_.push_back(root(m.last_covariance));
  }
}

VectorField TrajectoryPosterior::field(const Support& support, const Vector& theta) const {
  PolynomialField f{basis_, Matrix::Zero(dimension(), basis_->size())};
  for (std::size_t c = 0; c < support.size(); ++c)
    f.coefficients(support[c].equation, support[c].monomial) = theta[static_cast<Eigen::Index>(c)];
  return VectorField(std::move(f));
}

TrajectoryPosterior::Draw TrajectoryPosterior::draw_all(std::uint64_t seed,
                                                        std::uint64_t index) const {
  Stream stream(seed, Purpose::trajectory_draw, index);
  double left = stream.uniform();
  std::size_t k = 0;
  while (k + 1 < members_.size() && left >= members_[k].weight) left -= members_[k++].weight;
  const TrajectoryMember& m = members_[k];
  const auto normals = [&stream](Eigen::Index size) {
    Vector z(size);
    for (auto& x : z) x = stream.normal();
    return z;
  };
  const Vector shift = theta_roots_[k] * normals(m.theta.size());
  return {k, m.theta + shift,
          m.last_state + m.last_slope * shift + start_roots_[k] * normals(m.last_state.size())};
}

VectorField TrajectoryPosterior::draw(std::uint64_t seed, std::uint64_t index) const {
  const Draw d = draw_all(seed, index);
  return field(members_[d.member].support, d.theta);
}

std::optional<Vector> TrajectoryPosterior::draw_start(std::uint64_t seed,
                                                      std::uint64_t index) const {
  return draw_all(seed, index).start;
}

VectorField TrajectoryPosterior::mean_field() const {
  PolynomialField f{basis_, Matrix::Zero(dimension(), basis_->size())};
  for (const TrajectoryMember& m : members_)
    for (std::size_t c = 0; c < m.support.size(); ++c)
      f.coefficients(m.support[c].equation, m.support[c].monomial) +=
          m.weight * m.theta[static_cast<Eigen::Index>(c)];
  return VectorField(std::move(f));
}

VectorField TrajectoryPosterior::point_field() const {
  return field(members_.front().support, members_.front().theta);
}

Moments TrajectoryPosterior::moments(const Vector& u) const {
  const int n = dimension();
  std::vector<double> phi(static_cast<std::size_t>(basis_->size()));
  basis_->evaluate(u.data(), phi.data());
  // E f = Σ w f_k;  Cov f = Σ w (Φ C Φ' + f_k f_k') - E f E f'.
  Moments total{Vector::Zero(n), Matrix::Zero(n, n)};
  Matrix square = Matrix::Zero(n, n);
  std::vector<Vector> means;
  for (const TrajectoryMember& m : members_) {
    Matrix design = Matrix::Zero(n, m.theta.size());
    for (std::size_t c = 0; c < m.support.size(); ++c)
      design(m.support[c].equation, static_cast<Eigen::Index>(c)) =
          phi[static_cast<std::size_t>(m.support[c].monomial)];
    means.push_back(design * m.theta);
    total.mean += m.weight * means.back();
    total.covariance += m.weight * design * m.covariance * design.transpose();
  }
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Vector away = means[k] - total.mean;
    total.covariance += members_[k].weight * away * away.transpose();
  }
  return total;
}

Moments TrajectoryPosterior::last_state() const {
  const int n = dimension();
  Moments total{Vector::Zero(n), Matrix::Zero(n, n)};
  for (const TrajectoryMember& m : members_) total.mean += m.weight * m.last_state;
  for (const TrajectoryMember& m : members_) {
    const Vector away = m.last_state - total.mean;
    total.covariance += m.weight * (m.last_covariance + away * away.transpose());
    total.covariance += m.weight * m.last_slope * m.covariance * m.last_slope.transpose();
  }
  return total;
}

// There are infinitely many fields.
VectorField TrajectoryPosterior::atom_field(std::uint64_t) const {
  assert(false);
  return point_field();
}
double TrajectoryPosterior::atom_weight(std::uint64_t) const {
  assert(false);
  return 0;
}
std::uint64_t TrajectoryPosterior::atom_of_draw(std::uint64_t, std::uint64_t) const {
  assert(false);
  return 0;
}

}  // namespace odecast
