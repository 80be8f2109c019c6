#include "odecast/derivatives/stencil.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace odecast {

void first_derivative_weights(const double* times, int points, double at, double* weights) {
  assert(points >= 1 && points <= 32);
  // c0, c1: weights of the value and of the derivative of the interpolant through the points so
  // far.
  double c0[32] = {1};
  double* c1 = weights;
  std::fill(c1, c1 + points, 0.0);
  double before = 1, distance = times[0] - at;
  for (int i = 1; i < points; ++i) {
    double product = 1;
    const double last = distance;
    distance = times[i] - at;
    for (int j = 0; j < i; ++j) {
      const double h = times[i] - times[j];
      product *= h;
      if (j == i - 1) {
        c1[i] = before * (c0[i - 1] - last * c1[i - 1]) / product;
        c0[i] = -before * last * c0[i - 1] / product;
      }
      c1[j] = (distance * c1[j] - c0[j]) / h;
      c0[j] = distance * c0[j] / h;
    }
    before = product;
  }
}

void divided_difference_weights(const double* times, int points, double* weights) {
  for (int j = 0; j < points; ++j) {
    double product = 1;
    for (int l = 0; l < points; ++l)
      if (l != j) product *= times[j] - times[l];
    weights[j] = 1 / product;
  }
}

std::vector<double> longest_spacings(const ObservationSummary& summary, double gap) {
  std::vector<double> longest(summary.spacings.size(), gap);
  if (!(gap > 0))
    for (std::size_t k = 0; k < longest.size(); ++k) longest[k] = kGapFactor * summary.spacings[k];
  return longest;
}

std::vector<Segment> segments(const Dataset& data, double gap) {
  const std::vector<double> longest = longest_spacings(summarise(source_of(data)), gap);
  std::vector<Segment> all;
  for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
    const Trajectory& t = data.trajectories[k];
    int first = 0;
    for (int i = 1; i <= t.rows(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (i < t.rows() && t.times[at] - t.times[at - 1] <= longest[k]) continue;
      all.push_back({&t, first, i - first});
      first = i;
    }
  }
  return all;
}

namespace {

/// Up to the round-off of the times.
bool same_spacings(const double* a, const double* b, int points) {
  const double limit =
      2 * std::numeric_limits<double>::epsilon() *
      std::max({std::abs(a[0]), std::abs(a[points - 1]), std::abs(b[0]), std::abs(b[points - 1])});
  for (int k = 1; k < points; ++k)
    if (!(std::abs((a[k] - a[k - 1]) - (b[k] - b[k - 1])) <= limit)) return false;
  return true;
}

}  // namespace

Vector estimate_noise(const std::vector<Segment>& segments, int variables) {
  constexpr int highest = 8;
  Vector squares = Vector::Zero(variables);
  Matrix estimates = Matrix::Constant(highest + 1, variables, INFINITY);  // of each m
  double rows = 0;
  for (const Segment& s : segments) {
    squares += s.states().cwiseAbs2().colwise().sum().transpose();
    rows += s.rows;
  }
  Eigen::Index most = 0;
  for (const Segment& s : segments) most += s.rows;
  Matrix sizes(variables, most);  // |normalised difference| of each variable
  for (int m = 2; m <= highest; ++m) {
    double w[highest + 1], norm = 1;
    const double* times = nullptr;  // that w belongs to
    Eigen::Index count = 0;
    for (const Segment& s : segments) {
      const double* states = s.states().data();
      for (int i = 0; i + m < s.rows; ++i, ++count) {
        const double* t = s.times() + i;
        if (!times || !same_spacings(times, t, m + 1)) {
          times = t;
          divided_difference_weights(t, m + 1, w);
          // Scaled first: products of many small spacings overflow when squared.
          double largest = 0;
          norm = 0;
          for (int k = 0; k <= m; ++k) largest = std::max(largest, std::abs(w[k]));
          for (int k = 0; k <= m; ++k) {
            w[k] /= largest;
            norm += w[k] * w[k];
          }
          norm = std::sqrt(norm);
        }
        for (int j = 0; j < variables; ++j) {
          double difference = 0;
          for (int k = 0; k <= m; ++k) difference += w[k] * states[(i + k) * variables + j];
          sizes(j, count) = std::abs(difference) / norm;
        }
      }
    }
    if (count == 0) break;
    for (int j = 0; j < variables; ++j) {
      double* const begin = &sizes(j, 0);
      std::nth_element(begin, begin + count / 2, begin + count);
      estimates(m, j) = begin[count / 2] / 0.6744897501960817;
    }
  }
  Vector sigma(variables);
  for (int j = 0; j < variables; ++j) {
    const double least = estimates.col(j).minCoeff();
    sigma[j] = least;
    for (int m = highest; m >= 2; --m)
      if (estimates(m, j) <= 1.1 * least) sigma[j] = estimates(m, j);
    const double round_off = 0x1p-53 * std::sqrt(squares[j] / std::max(1.0, rows));
    sigma[j] = std::max({std::isfinite(sigma[j]) ? sigma[j] : 0, round_off, 1e-300});
  }
  return sigma;
}

}  // namespace odecast
