#include "odecast/filter/analysis.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/functions.hpp"

namespace odecast {
namespace {

constexpr double kLogTwoPi = 1.8378770664093453;

/// Eigenvalues and orthonormal eigenvectors (columns) of a small symmetric matrix, by Jacobi's
/// rotations (Golub & Van Loan, Matrix Computations, 8.5).
struct Eigenpairs {
  Vector values;
  Matrix vectors;

  explicit Eigenpairs(Matrix C) : vectors(Matrix::Identity(C.rows(), C.rows())) {
    const Eigen::Index n = C.rows();
    const double small = 1e-32 * C.squaredNorm();
    for (int round = 0; round < 50; ++round) {
      double off = 0;
      for (Eigen::Index p = 0; p < n; ++p)
        for (Eigen::Index q = p + 1; q < n; ++q) off += C(p, q) * C(p, q);
      if (!(off > small)) break;
      for (Eigen::Index p = 0; p < n; ++p)
        for (Eigen::Index q = p + 1; q < n; ++q) rotate(C, p, q);
    }
    values = C.diagonal();
  }

 private:
  void rotate(Matrix& C, Eigen::Index p, Eigen::Index q) {
    if (C(p, q) == 0) return;
    const double tau = (C(q, q) - C(p, p)) / (2 * C(p, q)),
                 t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::sqrt(1 + tau * tau)),
                 c = 1 / std::sqrt(1 + t * t), s = t * c;
    for (Eigen::Index k = 0; k < C.rows(); ++k) {
      const double a = C(k, p), b = C(k, q);
      C(k, p) = c * a - s * b, C(k, q) = s * a + c * b;
    }
    for (Eigen::Index k = 0; k < C.rows(); ++k) {
      const double a = C(p, k), b = C(q, k);
      C(p, k) = c * a - s * b, C(q, k) = s * a + c * b;
      const double v = vectors(k, p), w = vectors(k, q);
      vectors(k, p) = c * v - s * w, vectors(k, q) = s * v + c * w;
    }
  }
};

/// Powers of 1 + S Sᵀ by the eigenpairs (λ, V) of SᵀS, which is as small as what was seen:
///   (1 + S Sᵀ)^a = 1 + S V diag(((1 + λ)^a - 1)/λ) Vᵀ Sᵀ.
class OneAndSquare {
 public:
  /// The identity on N members.
  OneAndSquare() = default;
  explicit OneAndSquare(const Matrix& S) {
    const Eigenpairs e(S.transpose() * S);
    SV_ = S * e.vectors;
    lambda_ = e.values.cwiseMax(0);
  }

  Matrix inverse_root(const Matrix& x) const {
    return with(x, [](double l) { return -1 / (std::sqrt(1 + l) * (1 + std::sqrt(1 + l))); });
  }
  Matrix root(const Matrix& x) const {
    return with(x, [](double l) { return 1 / (1 + std::sqrt(1 + l)); });
  }
  Matrix inverse(const Matrix& x) const {
    return with(x, [](double l) { return -1 / (1 + l); });
  }

 private:
  template <class Factor>
  Matrix with(const Matrix& x, Factor factor) const {
    if (lambda_.size() == 0) return x;
    return x + SV_ * (lambda_.unaryExpr(factor).asDiagonal() * (SV_.transpose() * x));
  }
  Matrix SV_;
  Vector lambda_;
};

Vector mean_of(const Matrix& members) { return members.colwise().mean().transpose(); }

/// R^-½ H of what was seen, so that errors have variance 1, and R^-½ y.
struct Whitened {
  Matrix H;
  Vector y;
  explicit Whitened(const Seen& seen)
      : H(seen.sd.cwiseInverse().asDiagonal() * seen.H), y(seen.values.cwiseQuotient(seen.sd)) {}
};

}  // namespace

EnsembleMoments ensemble_moments(const Matrix& members) {
  EnsembleMoments m{mean_of(members), {}};
  const Matrix A = members.rowwise() - m.mean.transpose();
  m.covariance = A.transpose() * A / static_cast<double>(members.rows() - 1);
  return m;
}

Innovation innovation(const EnsembleMoments& forecast, const Seen& seen) {
  Matrix S = seen.H * forecast.covariance * seen.H.transpose();
  S.diagonal() += seen.sd.cwiseAbs2();
  Innovation result{S.diagonal().cwiseSqrt()};
  const Eigen::LLT<Eigen::MatrixXd> factor(S);
  const Vector z = factor.matrixL().solve(seen.values - seen.H * forecast.mean);
  double logs = 0;
  for (Eigen::Index i = 0; i < z.size(); ++i) logs += logarithm_of(factor.matrixLLT()(i, i));
  const auto count = static_cast<double>(z.size());
  result.surprise = z.squaredNorm() / count;
  result.log_score = -0.5 * z.squaredNorm() - logs - 0.5 * count * kLogTwoPi;
  return result;
}

void kalman_analysis(Matrix& members, const Seen& seen) {
  const Whitened white(seen);
  const double root = std::sqrt(static_cast<double>(members.rows() - 1));
  const Vector mean = mean_of(members);
  Matrix A = members.rowwise() - mean.transpose();
  const Matrix S = A * white.H.transpose() / root;
  const OneAndSquare hessian(S);
  // S (1 + SᵀS)⁻¹ = (1 + S Sᵀ)⁻¹ S
  const Vector w = hessian.inverse(S * (white.y - white.H * mean)) / root;
  const Vector moved = mean + A.transpose() * w;
  members = hessian.inverse_root(A).rowwise() + moved.transpose();
}

int iterated_analysis(Matrix& members, const MembersFlow& flow, const Seen& seen) {
  constexpr int kMostRounds = 10;
  constexpr double kSettled = 1e-3;
  const Whitened white(seen);
  const auto N = static_cast<double>(members.rows());
  const double root = std::sqrt(N - 1);
  const Vector before = mean_of(members);
  const Matrix A = members.rowwise() - before.transpose();
  Vector w = Vector::Zero(members.rows());
  OneAndSquare hessian;
  const auto moved = [&]() -> Matrix {
    const Vector mean = before + A.transpose() * (w / root);
    return hessian.inverse_root(A).rowwise() + mean.transpose();
  };
  int rounds = 0;
  for (double step = std::numeric_limits<double>::infinity();
       rounds < kMostRounds && step > kSettled * std::sqrt(N); ++rounds) {
    const Matrix after = flow(moved());
    const Vector mean = mean_of(after);
    const Matrix S =
        hessian.root((after.rowwise() - mean.transpose()) * white.H.transpose()) / root;
    hessian = OneAndSquare(S);
    // The gradient is w - S d̃, the Hessian 1 + S Sᵀ.
    const Vector change = hessian.inverse(S * (white.y - white.H * mean) - w);
    w += change;
    step = change.norm() / root;
  }
  members = moved();
  return rounds;
}

void rotate_members(Matrix& members, Stream& stream) {
  const Eigen::Index N = members.rows(), k = std::min(N - 1, members.cols());
  const Vector mean = mean_of(members);
  const Matrix A = members.rowwise() - mean.transpose();
  const auto thin = [](const Matrix& x) { return Eigen::HouseholderQR<Eigen::MatrixXd>(x); };
  const Eigen::MatrixXd R =
      thin(A).matrixQR().topRows(std::min(N, A.cols())).triangularView<Eigen::Upper>();
  Matrix normal(N, k);
  for (Eigen::Index i = 0; i < N; ++i)
    for (Eigen::Index j = 0; j < k; ++j) normal(i, j) = stream.normal();
  normal.rowwise() -= mean_of(normal).transpose();
  const Eigen::MatrixXd frame = thin(normal).householderQ() * Eigen::MatrixXd::Identity(N, k);
  members = (frame * R.topRows(k)).rowwise() + mean.transpose();
}

void drift_members(Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> members, const Matrix& R,
                   Stream& stream) {
  const Eigen::Index N = members.rows(), k = members.cols(), p = R.cols();
  Eigen::MatrixXd Z(N, p);
  for (Eigen::Index i = 0; i < N; ++i)
    for (Eigen::Index j = 0; j < p; ++j) Z(i, j) = stream.normal();
  if (N > k + p) {
    const auto frame = [N](const Eigen::MatrixXd& of) -> Eigen::MatrixXd {
      return Eigen::HouseholderQR<Eigen::MatrixXd>(of).householderQ() *
             Eigen::MatrixXd::Identity(N, of.cols());
    };
    Eigen::MatrixXd taken(N, k + 1);
    taken << Vector::Ones(N), members;
    const Eigen::MatrixXd Q = frame(taken);
    for (int twice = 0; twice < 2; ++twice) Z -= Q * (Q.transpose() * Z);
    Z = std::sqrt(static_cast<double>(N - 1)) * frame(Z);
  }
  members.rightCols(R.rows()) += Z * R.transpose();
}

void inflate_members(Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> members, double factor) {
  const Vector mean = members.colwise().mean().transpose();
  members = (factor * (members.rowwise() - mean.transpose())).rowwise() + mean.transpose();
}

EnsembleMoments weighted_moments(const Matrix& members, const Vector& weights) {
  EnsembleMoments m{members.transpose() * weights, {}};
  const Matrix A = members.rowwise() - m.mean.transpose();
  m.covariance = A.transpose() * weights.asDiagonal() * A;
  return m;
}

double weigh(const Matrix& members, Vector& weights, const Seen& seen) {
  const Whitened white(seen);
  const Vector logs =
      -0.5 *
      ((members * white.H.transpose()).rowwise() - white.y.transpose()).rowwise().squaredNorm();
  double most = -std::numeric_limits<double>::infinity();
  for (Eigen::Index i = 0; i < logs.size(); ++i)
    if (weights[i] > 0) most = std::max(most, logs[i]);
  double sum = 0;
  for (Eigen::Index i = 0; i < logs.size(); ++i)
    sum += weights[i] *= exponential_of(std::max(logs[i] - most, -700.0));
  weights /= sum;
  double constant = 0.5 * static_cast<double>(seen.size()) * kLogTwoPi;
  for (const double sd : seen.sd) constant += logarithm_of(sd);
  return logarithm_of(sum) + most - constant;
}

double effective_members(const Vector& weights) { return 1 / weights.squaredNorm(); }

std::vector<Eigen::Index> resampled(const Vector& weights, double uniform) {
  const Eigen::Index N = weights.size();
  std::vector<Eigen::Index> from(index(N));
  double sum = weights[0];
  Eigen::Index at = 0;
  for (Eigen::Index i = 0; i < N; ++i) {
    const double place = (static_cast<double>(i) + uniform) / static_cast<double>(N);
    while (place > sum && at + 1 < N) sum += weights[++at];
    from[index(i)] = at;
  }
  return from;
}

double weighted_quantile(std::vector<std::pair<double, double>>& value_weight, double p) {
  std::sort(value_weight.begin(), value_weight.end());
  double sum = 0, before = value_weight.front().first, middle_before = 0;
  for (const auto& [value, weight] : value_weight) {
    const double middle = sum + 0.5 * weight;
    if (middle >= p)
      return middle > middle_before
                 ? before + (value - before) * (p - middle_before) / (middle - middle_before)
                 : value;
    before = value, middle_before = middle;
    sum += weight;
  }
  return value_weight.back().first;
}

}  // namespace odecast
