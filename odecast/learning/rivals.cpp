#include "odecast/learning/detail/rivals.hpp"

#include <algorithm>
#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/model/coefficients.hpp"

namespace odecast {
namespace {

constexpr int kPoints = 64;
constexpr double kElsewhere = 0.2;  ///< of the field's size: from there on it is another one
constexpr double kAsWell = 0.05;    ///< of the best set's weight: as much explains the rows as well

struct Box {
  Vector low, high;
};

/// What the arguments take, states half of their range further to either side; what is positive
/// stays so.
Box around(const Dataset& data, const Model& model) {
  const Eigen::Index n = data.dimension(), m = model.inputs.size();
  Box box{Vector::Constant(n + m, std::numeric_limits<double>::infinity()),
          Vector::Constant(n + m, -std::numeric_limits<double>::infinity())};
  const auto take = [&](Eigen::Index i, double x) {
    if (!std::isfinite(x)) return;
    box.low[i] = std::min(box.low[i], x);
    box.high[i] = std::max(box.high[i], x);
  };
  for (const Trajectory& t : data.trajectories)
    for (Eigen::Index k = 0; k < t.rows(); ++k) {
      for (Eigen::Index i = 0; i < n; ++i) take(i, t.states(k, i));
      for (Eigen::Index j = 0; j < m; ++j)  // the time is the last, where it drives
        take(n + j, j < t.inputs.cols() ? t.inputs(k, j) : t.times[static_cast<std::size_t>(k)]);
    }
  for (Eigen::Index i = 0; i < n; ++i) {
    const double reach = 0.5 * (box.high[i] - box.low[i]);
    box.high[i] += reach;
    box.low[i] =
        box.low[i] > 0 ? std::max(box.low[i] - reach, 0.5 * box.low[i]) : box.low[i] - reach;
  }
  return box;
}

/// The field of a set at the rows of `points`, in model units.
Matrix field_of(const CoefficientSet& set, const TermLibrary& library, const Matrix& points,
                int equations) {
  const std::vector<double> z = all_numbers(library, set.support, set.theta);
  std::vector<double> phi(static_cast<std::size_t>(library.size()));
  Matrix f = Matrix::Zero(points.rows(), equations);
  for (Eigen::Index k = 0; k < points.rows(); ++k) {
    library.evaluate(points.row(k).data(), z, phi.data());
    for (std::size_t c = 0; c < set.support.size(); ++c)
      f(k, set.support[c].equation) += set.theta[static_cast<Eigen::Index>(c)] *
                                       phi[static_cast<std::size_t>(set.support[c].term)];
  }
  return f;
}

/// Whether an equation differs, over the points where both are defined, by more than kElsewhere of
/// its size there.
bool differ(const Matrix& a, const Matrix& b) {
  for (Eigen::Index i = 0; i < a.cols(); ++i) {
    double difference = 0, size = 0;
    for (Eigen::Index k = 0; k < a.rows(); ++k)
      if (const double d = a(k, i) - b(k, i); std::isfinite(d))
        difference += d * d, size += a(k, i) * a(k, i);
    if (difference > kElsewhere * kElsewhere * size) return true;
  }
  return false;
}

}  // namespace

std::optional<Rivals> rivals(const Model& model, const Dataset& data) {
  const PolynomialPart* part = model.polynomial();
  if (!part || part->sets.size() < 2) return std::nullopt;
  const TermLibrary library = term_library(model);
  const Box box = around(data, model);
  Matrix points(kPoints, box.low.size());
  for (Eigen::Index k = 0; k < points.rows(); ++k) {
    Stream random(1, Purpose::evaluation, static_cast<std::uint64_t>(k));
    Vector u(box.low.size());
    for (Eigen::Index i = 0; i < u.size(); ++i)
      u[i] = box.low[i] + random.uniform() * (box.high[i] - box.low[i]);
    points.row(k) = model.to_model(u).transpose();
  }
  const int n = data.dimension();
  const Matrix best = field_of(part->sets[0], library, points, n);
  Rivals found;
  for (std::size_t k = 1; k < part->sets.size(); ++k) {
    const CoefficientSet& set = part->sets[k];
    if (set.weight < kAsWell * part->sets[0].weight ||
        !differ(best, field_of(set, library, points, n)))
      continue;
    if (found.count == 0) found.next = k;
    found.probability += set.weight;
    ++found.count;
  }
  return found.count > 0 ? std::optional(found) : std::nullopt;
}

}  // namespace odecast
