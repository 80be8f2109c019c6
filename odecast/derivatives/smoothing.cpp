#include "odecast/derivatives/smoothing.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/banded.hpp"

namespace odecast {
namespace {

constexpr int kSmallest = 3;  // half a window
// Noise averages out over the rows of a fit, truncation does not.
constexpr double kTruncation = 10;

/// Weights of the value and the slope at t[centre] of the best polynomial through the window around
/// it.
struct LocalWeights {
  Vector value, slope;
};
LocalWeights local_weights(const double* t, int centre, int half, int degree) {
  const int points = 2 * half + 1;
  const double width = std::max(t[centre + half] - t[centre], t[centre] - t[centre - half]);
  Eigen::MatrixXd V(points, degree + 1);
  for (int i = 0; i < points; ++i) {
    const double x = (t[centre - half + i] - t[centre]) / width;
    V(i, 0) = 1;
    for (int k = 1; k <= degree; ++k) V(i, k) = V(i, k - 1) * x;
  }
  // V = Q R: coefficient k of the fit is e_kᵀ R⁻¹ Qᵀ y, so its weights are Q R⁻ᵀ e_k.
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(V);
  Eigen::MatrixXd E = Eigen::MatrixXd::Zero(points, 2);
  E(0, 0) = E(1, 1) = 1;
  const auto R = qr.matrixQR().topRows(degree + 1).triangularView<Eigen::Upper>();
  E.topRows(degree + 1) = R.transpose().solve(E.topRows(degree + 1)).eval();
  const Eigen::MatrixXd W = qr.householderQ() * E;
  return {W.col(0), W.col(1) / width};
}

struct LocalChoice {
  int half = 0;
  double window = 0;  // mean length of a full window
  Vector truncation;  // variance
};

LocalChoice choose_window(const std::vector<Segment>& segments, const Vector& noise) {
  constexpr long tried = 500;
  LocalChoice best;
  double least = INFINITY;
  for (int half = kSmallest, step = 1;; half += step) {
    if (half >= 4 * step) step *= 2;
    long count = 0;
    for (const Segment& s : segments) count += std::max(0, s.rows - 2 * half);
    // At least half of the rows must have a full window.
    long rows = 0;
    for (const Segment& s : segments) rows += s.rows >= kLocalPolynomialRows ? s.rows : 0;
    if (count == 0 || (half > kSmallest && 2 * count < rows)) break;
    const long every = std::max(1L, count / tried);
    double size = 0, window = 0, used = 0;
    Vector change = Vector::Zero(noise.size());
    long at = 0;
    for (const Segment& s : segments)
      for (int i = half; i + half < s.rows; ++i, ++at) {
        if (at % every != 0) continue;
        const Vector w = local_weights(s.times(), i, half, 4).slope;
        // Seven points determine the polynomial of degree 6.
        const Vector d = w - local_weights(s.times(), i, half, 6).slope;
        change += (s.states().middleRows(i - half, 2 * half + 1).transpose() * d).cwiseAbs2() -
                  noise.cwiseAbs2() * d.squaredNorm();
        size += w.squaredNorm();
        window += s.times()[i + half] - s.times()[i - half];
        ++used;
      }
    const Vector truncation = (change / used).cwiseMax(0);
    const double total =
        size / used + kTruncation * truncation.cwiseQuotient(noise.cwiseAbs2()).mean();
    if (total < least) {
      least = total;
      best = {half, window / used, truncation};
    } else if (half > 4 * best.half) {
      break;  // truncation has taken over
    }
  }
  return best;
}

}  // namespace

DerivativeRows local_polynomial_rows(const std::vector<Segment>& segments, const Vector& noise) {
  const LocalChoice choice = choose_window(segments, noise);
  Eigen::Index count = 0;
  for (const Segment& s : segments) count += std::max(0, s.rows - 2 * kSmallest);
  const auto n = noise.size();
  DerivativeRows rows{Matrix(count, n), Matrix(count, n), Matrix(count, n)};
  Eigen::Index at = 0;
  for (const Segment& s : segments)
    for (int i = kSmallest; i + kSmallest < s.rows; ++i, ++at) {
      const int half = std::min({choice.half, i, s.rows - 1 - i});
      const LocalWeights w = local_weights(s.times(), i, half, 4);
      const auto y = s.states().middleRows(i - half, 2 * half + 1);
      rows.states.row(at) = w.value.transpose() * y;
      // Weights of the slope sum to 0: without the common offset no digits are lost.
      rows.derivatives.row(at) = w.slope.transpose() * (y.rowwise() - s.states().row(i));
      const double share = std::pow((s.times()[i + half] - s.times()[i - half]) / choice.window, 8);
      rows.sigma.row(at) = (noise.cwiseAbs2() * w.slope.squaredNorm() + share * choice.truncation)
                               .cwiseSqrt()
                               .transpose();
    }
  return rows;
}

SmoothingSpline smoothing_spline(const std::vector<double>& times, const Vector& values,
                                 const std::vector<int>& lengths, double lambda) {
  SmoothingSpline spline;
  const Eigen::Index N = values.size();
  spline.value = spline.slope = spline.slope_variance = Vector(N);
  Eigen::Index begin = 0;
  for (const int length : lengths) {
    // Unknowns (f_i, h f'_i), h the mean spacing: of one size.
    const double* t = times.data() + begin;
    const double h = (t[length - 1] - t[0]) / (length - 1), penalty = lambda / (h * h * h);
    BandedCholesky M(2 * length, 3);
    Matrix b = Matrix::Zero(2 * length, 1);
    for (int i = 0; i < length; ++i) {
      M.at(2 * i, 2 * i) += 1;
      b(2 * i, 0) = values[begin + i];
    }
    for (int i = 0; i + 1 < length; ++i) {
      const double d = (t[i + 1] - t[i]) / h;
      // e = D (f_i, f'_i, f_{i+1}, f'_{i+1}); M += penalty Dᵀ Q⁻¹ D.
      Eigen::Matrix<double, 2, 4> D;
      D << -1, -d, 1, 0, 0, -1, 0, 1;
      Eigen::Matrix2d inverse;
      inverse << 12 / (d * d * d), -6 / (d * d), -6 / (d * d), 4 / d;
      const Eigen::Matrix4d block = penalty * D.transpose() * inverse * D;
      for (int r = 0; r < 4; ++r)
        for (int c = 0; c <= r; ++c) M.at(2 * i + r, 2 * i + c) += block(r, c);
    }
    const bool good = M.factor();
    if (!good) {  // λ beyond what double precision holds
      spline.residual = INFINITY;
      return spline;
    }
    M.solve(b);
    const BandedCholesky inverse = M.inverse_band();
    for (int i = 0; i < length; ++i) {
      spline.value[begin + i] = b(2 * i, 0);
      spline.slope[begin + i] = b(2 * i + 1, 0) / h;
      spline.slope_variance[begin + i] = inverse.at(2 * i + 1, 2 * i + 1) / (h * h);
      spline.trace += inverse.at(2 * i, 2 * i);
      const double e = values[begin + i] - b(2 * i, 0);
      spline.residual += e * e;
    }
    begin += length;
  }
  assert(begin == N);
  return spline;
}

DerivativeRows spline_rows(const std::vector<Segment>& segments, int variables,
                           const Vector& noise) {
  std::vector<double> times;
  std::vector<int> lengths;
  double duration = 0, intervals = 0;
  for (const Segment& s : segments) {
    if (s.rows < kSplineRows) continue;
    times.insert(times.end(), s.times(), s.times() + s.rows);
    lengths.push_back(s.rows);
    duration += s.times()[s.rows - 1] - s.times()[0];
    intervals += s.rows - 1;
  }
  const auto N = static_cast<Eigen::Index>(times.size());
  DerivativeRows rows{Matrix(N, variables), Matrix(N, variables), Matrix(N, variables)};
  if (N == 0) return rows;
  const double h = duration / intervals;
  const auto count = static_cast<double>(N);
  for (int j = 0; j < variables; ++j) {
    Vector values(N);
    Eigen::Index at = 0;
    for (const Segment& s : segments) {
      if (s.rows < kSplineRows) continue;
      values.segment(at, s.rows) = s.states().col(j);
      at += s.rows;
    }
    // Roundoff is relative to the values: without their mean it is smallest.
    const double mean = values.mean();
    values.array() -= mean;
    // λ = h³ 10^x: first on a grid, then by golden sections around the best of it. The spline then
    // averages over about 10^(x/4) observations.
    const auto score = [&](double x) {
      const SmoothingSpline s =
          smoothing_spline(times, values, lengths, h * h * h * std::pow(10, x));
      const double freedom = count - s.trace;
      return freedom > 1e-6 * count && std::isfinite(s.residual)
                 ? count * s.residual / (freedom * freedom)
                 : INFINITY;
    };
    double best = -4, least = score(best);
    for (double x = -3; x <= 13; ++x)
      if (const double v = score(x); v < least) {
        least = v;
        best = x;
      }
    double a = best - 1, b = best + 1;
    const double golden = (std::sqrt(5.0) - 1) / 2;
    double c = b - golden * (b - a), d = a + golden * (b - a), fc = score(c), fd = score(d);
    while (b - a > 0.05) {
      if (fc <= fd) {
        b = d, d = c, fd = fc;
        c = b - golden * (b - a), fc = score(c);
      } else {
        a = c, c = d, fc = fd;
        d = a + golden * (b - a), fd = score(d);
      }
    }
    const double middle = (a + b) / 2, x = score(middle) <= least ? middle : best;
    const SmoothingSpline s = smoothing_spline(times, values, lengths, h * h * h * std::pow(10, x));
    const double variance = noise.size() > 0 ? noise[j] * noise[j]
                                             : s.residual / std::max(1e-6 * count, count - s.trace);
    rows.states.col(j) = s.value.array() + mean;
    rows.derivatives.col(j) = s.slope;
    rows.sigma.col(j) = (variance * s.slope_variance).cwiseSqrt();
  }
  // A constant variable has no variance; nothing is known better than that.
  rows.sigma = rows.sigma.cwiseMax(1e-300);
  return rows;
}

}  // namespace odecast
