#include "odecast/observations/conserved.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "odecast/core/text.hpp"

namespace odecast {
namespace {

constexpr double kMostVariance = 1.5;  // of the combination, in units of its noise
constexpr double kLeastMotion = 5;     // sd of a variable, in units of its noise
constexpr double kLeastPart = 0.05;    // of a variable, beside the largest
constexpr Eigen::Index kMostVariables = 50;

/// Sums of squares and products about the mean of each trajectory, by Welford's formulas.
struct Scatter {
  Eigen::MatrixXd products;
  Vector mean;  // of all rows
  double rows = 0, freedom = 0;
};

Scatter scatter(const ObservationSource& source) {
  const auto n = static_cast<Eigen::Index>(source.dimension());
  Scatter s{Eigen::MatrixXd::Zero(n, n), Vector::Zero(n)};
  struct Run {
    double rows = 0;
    Vector mean;
  };
  std::vector<Run> runs;
  source.replay([&](std::size_t which, double, const double* state) {
    const Eigen::Map<const Vector> u(state, n);
    if (!u.allFinite()) return true;  // a value is missing
    if (which >= runs.size()) runs.resize(which + 1, {0, Vector::Zero(n)});
    Run& run = runs[which];
    const Vector before = u - run.mean;
    run.mean += before / ++run.rows;
    s.products += before * (u - run.mean).transpose();
    s.mean += (u - s.mean) / ++s.rows;
    if (run.rows > 1) ++s.freedom;
    return true;
  });
  return s;
}

}  // namespace

std::optional<Conserved> conserved(const ObservationSource& source, const Vector& noise) {
  const auto n = static_cast<Eigen::Index>(source.dimension());
  if (noise.size() != n || n < 2 || n > kMostVariables) return std::nullopt;
  const Scatter s = scatter(source);
  if (!(s.freedom > 2 * static_cast<double>(n))) return std::nullopt;
  const Eigen::MatrixXd C = (s.products + s.products.transpose()) / (2 * s.freedom);
  if (!C.allFinite()) return std::nullopt;
  const Vector sd = C.diagonal().cwiseMax(0).cwiseSqrt();
  // Clean rows have the noise of whoever's solver made them, which is not known.
  const Vector sigma = noise.cwiseMax(1e-6 * sd);
  std::vector<Eigen::Index> moving;
  for (Eigen::Index i = 0; i < n; ++i)
    if (sd[i] > kLeastMotion * sigma[i]) moving.push_back(i);
  if (moving.size() < 2) return std::nullopt;
  const Eigen::MatrixXd scaled = sigma(moving).cwiseInverse().asDiagonal() * C(moving, moving) *
                                 sigma(moving).cwiseInverse().asDiagonal();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(scaled);
  if (eigen.info() != Eigen::Success || !(eigen.eigenvalues()[0] < kMostVariance))
    return std::nullopt;
  Conserved c{Vector::Zero(n)};
  c.weights(moving) = eigen.eigenvectors().col(0).cwiseQuotient(sigma(moving));
  const Vector part = c.weights.cwiseAbs().cwiseProduct(sd);
  for (Eigen::Index i = 0; i < n; ++i)
    if (part[i] < kLeastPart * part.maxCoeff()) c.weights[i] = 0;
  Eigen::Index largest = 0;
  c.weights.cwiseAbs().maxCoeff(&largest);
  c.weights /= c.weights[largest];
  // Plain sums and differences, where they move no more than noise, too.
  Vector plain = c.weights;
  for (double& w : plain)
    if (std::abs(std::abs(w) - 1) < 0.2) w = w > 0 ? 1 : -1;
  if (plain.dot(C * plain) < kMostVariance * plain.cwiseProduct(sigma).squaredNorm())
    c.weights = plain;
  c.value = c.weights.dot(s.mean);
  if ((c.weights.array() != 0).count() < 2) return std::nullopt;
  return c;
}

std::string in_words(const Conserved& c, const std::vector<std::string>& variables) {
  std::string text;
  for (Eigen::Index i = 0; i < c.weights.size(); ++i) {
    const double w = c.weights[i];
    if (w == 0) continue;
    text += text.empty() ? (w < 0 ? "-" : "") : (w < 0 ? " - " : " + ");
    if (std::abs(std::abs(w) - 1) > 0.02) text += fmt::format("{:.3g} ", std::abs(w));
    text += printable(variables[static_cast<std::size_t>(i)]);
  }
  return text;
}

}  // namespace odecast
