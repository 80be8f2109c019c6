#include "odecast/scores/calibration.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "odecast/core/random.hpp"
#include "odecast/scores/comparison.hpp"

namespace odecast {
namespace {

double root_mean_square(const Matrix& m, Eigen::Index row, const Vector& scale) {
  double sum = 0, moving = 0;
  for (Eigen::Index i = 0; i < m.cols(); ++i) {
    if (!(scale[i] > 0)) continue;
    sum += m(row, i) / scale[i] * (m(row, i) / scale[i]);
    ++moving;
  }
  return std::sqrt(sum / std::max(1.0, moving));
}

}  // namespace

Calibration calibration(const Forecast& forecast, const Dataset& truth,
                        const std::string& trajectory, int bins) {
  assert(bins >= 1);
  const Comparison compared = compare(forecast, truth, trajectory);
  const auto n = compared.truth.cols();
  Calibration c;
  c.variables = forecast.variables;
  for (int percent = 5; percent <= 95; percent += 5) c.levels.push_back(percent / 100.0);
  c.levels.push_back(0.99);
  for (int b = 0; b <= bins; ++b) c.edges.push_back(static_cast<double>(b) / bins);
  const auto levels = static_cast<Eigen::Index>(c.levels.size());
  c.coverage = Matrix::Zero(levels, n);
  c.pit = Matrix::Zero(bins, n);
  std::vector<double> reach;
  for (const double p : c.levels) reach.push_back(normal_quantile((1 + p) / 2));
  for (Eigen::Index i = 0; i < n; ++i) {
    long points = 0;
    for (Eigen::Index r = 0; r < compared.points(); ++r) {
      const Eigen::Index f = compared.rows[static_cast<std::size_t>(r)];
      if (!(forecast.sd(f, i) > 0)) continue;
      const double z = (compared.truth(r, i) - forecast.mean(f, i)) / forecast.sd(f, i);
      if (std::isnan(z)) continue;
      const double pit = std::erfc(-z / std::sqrt(2.0)) / 2;
      for (Eigen::Index l = 0; l < levels; ++l)
        c.coverage(l, i) += std::abs(z) <= reach[static_cast<std::size_t>(l)];
      c.pit(std::min(bins - 1, static_cast<int>(pit * bins)), i) += 1;
      ++points;
    }
    c.points.push_back(points);
    if (points == 0) continue;
    c.coverage.col(i) /= static_cast<double>(points);
    c.pit.col(i) /= static_cast<double>(points);
  }
  return c;
}

std::vector<double> relative_spread(const Forecast& forecast, const Vector& scale) {
  std::vector<double> spread;
  for (Eigen::Index t = 0; t < forecast.sd.rows(); ++t)
    spread.push_back(root_mean_square(forecast.sd, t, scale));
  return spread;
}

std::vector<double> relative_error(const Forecast& forecast, const Dataset& truth,
                                   const std::string& trajectory, const Vector& scale) {
  const Comparison compared = compare(forecast, truth, trajectory);
  std::vector<double> error(forecast.times.size(), std::numeric_limits<double>::quiet_NaN());
  Matrix difference = -compared.truth;
  for (Eigen::Index r = 0; r < compared.points(); ++r) {
    const Eigen::Index f = compared.rows[static_cast<std::size_t>(r)];
    difference.row(r) += forecast.mean.row(f);
    error[static_cast<std::size_t>(f)] = root_mean_square(difference, r, scale);
  }
  return error;
}

}  // namespace odecast
