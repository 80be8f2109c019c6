#include "odecast/observations/smoother.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "odecast/core/banded.hpp"
#include "odecast/core/random.hpp"

namespace odecast {
namespace {

using Band = BandedLdl<3>::Column;

/// D'D of the third differences, by bands.
std::vector<Band> penalty(const std::vector<double>& times) {
  const std::size_t n = times.size();
  std::vector<Band> bands(n, Band{});
  if (n < 4) return bands;
  // Times in units of the mean spacing; gaps much shorter than that would only spoil the condition.
  const double unit = (times.back() - times.front()) / static_cast<double>(n - 1);
  std::vector<double> t = {0};
  for (std::size_t i = 1; i < n; ++i)
    t.push_back(t.back() + std::max(0.05, (times[i] - times[i - 1]) / unit));
  for (std::size_t i = 0; i + 3 < n; ++i) {
    double row[4];
    for (int a = 0; a < 4; ++a) {
      double product = 1;
      for (int b = 0; b < 4; ++b)
        if (b != a)
          product *= t[i + static_cast<std::size_t>(a)] - t[i + static_cast<std::size_t>(b)];
      row[a] = 6 / product * std::sqrt((t[i + 3] - t[i]) / 3);
    }
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t b = a; b < 4; ++b) bands[i + a][b - a] += row[a] * row[b];
  }
  return bands;
}

/// W + λ D'D, factored.
BandedLdl<3> factored(const std::vector<Band>& p, const Matrix& weights, long column,
                      double lambda) {
  std::vector<Band> m(p);
  for (std::size_t i = 0; i < m.size(); ++i) {
    for (double& x : m[i]) x *= lambda;
    m[i][0] += weights(static_cast<long>(i), column) + 1e-12;
  }
  return BandedLdl<3>(std::move(m));
}

struct Fitted {
  double rss = 0, trace = 0;
  double last = 0;  ///< (M⁻¹)_nn of the last run
};

/// One variable of all runs at one λ.
/// `variances`: where given, of (M⁻¹)_ii.
Fitted apply(const std::vector<ObservedRun>& runs, const std::vector<Matrix>& weights,
             const std::vector<std::vector<Band>>& penalties, long column, double lambda,
             std::vector<Matrix>& out, std::vector<Matrix>* variances = nullptr) {
  Fitted fitted;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const Matrix& w = weights[r];
    const BandedLdl<3> factor = factored(penalties[r], w, column, lambda);
    std::vector<double> z(runs[r].times.size());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double weight = w(static_cast<long>(i), column);
      z[i] = weight > 0 ? weight * runs[r].values(static_cast<long>(i), column) : 0;
    }
    factor.solve(z.data());
    for (std::size_t i = 0; i < z.size(); ++i) {
      const auto row = static_cast<long>(i);
      out[r](row, column) = z[i];
      const double residual = runs[r].values(row, column) - z[i];
      if (w(row, column) > 0) fitted.rss += w(row, column) * residual * residual;
    }
    fitted.trace +=
        factor.inverse_diagonal_sum([&](std::size_t i) { return w(static_cast<long>(i), column); });
    fitted.last = factor.last_variance();
    if (variances)
      factor.inverse_diagonal([&](std::size_t i, double diagonal) {
        (*variances)[r](static_cast<long>(i), column) = diagonal;
      });
  }
  return fitted;
}

double median_of(std::vector<double> x) {
  if (x.empty()) return 0;
  const auto middle = x.begin() + static_cast<long>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  return *middle;
}

/// Smooths one variable; its noise, and the sd of its last value.
std::pair<double, double> smooth_variable(const std::vector<ObservedRun>& runs,
                                          const std::vector<Matrix>& weights,
                                          const std::vector<std::vector<Band>>& penalties,
                                          long column, std::vector<Matrix>& out,
                                          std::vector<Matrix>& sd) {
  double count = 0;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (long i = 0; i < weights[r].rows(); ++i) count += weights[r](i, column) > 0;
  const auto gcv = [&](double log_lambda) {
    const Fitted f = apply(runs, weights, penalties, column, std::exp(log_lambda), out);
    const double left = std::max(0.5, count - f.trace);
    return portable_log(std::max(f.rss, 1e-300)) - 2 * portable_log(left);
  };
  // A coarse grid, then a parabola through its least value.
  const double step = std::log(10.0);
  std::vector<double> value;
  constexpr int first = -2, last = 11;
  for (int k = first; k <= last; ++k) value.push_back(gcv(k * step));
  const auto best = std::min_element(value.begin(), value.end()) - value.begin();
  double at = static_cast<double>(best + first) * step;
  if (best > 0 && best + 1 < static_cast<long>(value.size())) {
    const double a = value[static_cast<std::size_t>(best - 1)],
                 b = value[static_cast<std::size_t>(best)],
                 c = value[static_cast<std::size_t>(best + 1)];
    if (a - 2 * b + c > 0) at += step * std::clamp(0.5 * (a - c) / (a - 2 * b + c), -1.0, 1.0);
  }
  const Fitted f = apply(runs, weights, penalties, column, std::exp(at), out, &sd);
  const double noise = std::sqrt(f.rss / std::max(0.5, count - f.trace));
  for (Matrix& part : sd) part.col(column) = noise * part.col(column).cwiseMax(0).cwiseSqrt();
  return {noise, noise * std::sqrt(f.last)};
}

}  // namespace

Smoothed smooth(const std::vector<ObservedRun>& runs, bool robust) {
  const long n = runs.front().values.cols();
  Smoothed s;
  std::vector<std::vector<Band>> penalties;
  for (const ObservedRun& r : runs) {
    penalties.push_back(penalty(r.times));
    s.values.emplace_back(r.values.rows(), n);
    s.sd.emplace_back(r.values.rows(), n);
    s.weights.push_back(r.weights);
  }
  s.noise.resize(n);
  s.last_sd.resize(n);
  for (long c = 0; c < n; ++c) {
    std::tie(s.noise[c], s.last_sd[c]) =
        smooth_variable(runs, s.weights, penalties, c, s.values, s.sd);
    for (int pass = 0; robust && pass < 10; ++pass) {
      std::vector<double> sizes;
      for (std::size_t r = 0; r < runs.size(); ++r)
        for (long i = 0; i < runs[r].values.rows(); ++i)
          if (runs[r].weights(i, c) > 0)
            sizes.push_back(std::abs(runs[r].values(i, c) - s.values[r](i, c)));
      const double scale = 1.4826 * median_of(std::move(sizes));
      if (!(scale > 0)) break;
      double change = 0;
      for (std::size_t r = 0; r < runs.size(); ++r)
        for (long i = 0; i < runs[r].values.rows(); ++i) {
          if (!(runs[r].weights(i, c) > 0)) continue;
          const double size = std::abs(runs[r].values(i, c) - s.values[r](i, c)) / scale;
          const double w = runs[r].weights(i, c) * (size > kHuber ? kHuber / size : 1);
          change = std::max(change, std::abs(w - s.weights[r](i, c)));
          s.weights[r](i, c) = w;
        }
      smooth_variable(runs, s.weights, penalties, c, s.values, s.sd);
      s.noise[c] = scale;
      if (change < 0.02) break;
    }
  }
  double spread = 0, slope = 0;
  for (long c = 0; c < n; ++c) {
    double sum = 0, count = 0;
    for (const Matrix& z : s.values) sum += z.col(c).sum(), count += static_cast<double>(z.rows());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const Matrix& z = s.values[r];
      spread += (z.col(c).array() - sum / count).square().sum() / count;
      for (long i = 0; i + 1 < z.rows(); ++i) {
        const double rate =
            (z(i + 1, c) - z(i, c)) / (runs[r].times[static_cast<std::size_t>(i + 1)] -
                                       runs[r].times[static_cast<std::size_t>(i)]);
        slope += rate * rate / count;
      }
    }
  }
  s.time_scale = slope > 0 ? std::sqrt(spread / slope) : 0;
  return s;
}

}  // namespace odecast
