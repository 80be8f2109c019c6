#include "odecast/observations/noise_law.hpp"

#include <algorithm>
#include <cmath>

#include "odecast/core/numbers.hpp"
#include "odecast/core/random.hpp"

namespace odecast {
namespace {

constexpr double kLeastVariance = 1e-6;  ///< of g: an observation of 0 is not exact
/// Below that part of a variable's root mean square what a smoother leaves is motion that it cannot
/// follow.
constexpr double kSmallNoise = 1e-3;
constexpr int kRounds = 2;

double log_likelihood(const RelativeNoise& law, const std::vector<double>& residuals,
                      const std::vector<double>& u) {
  double squares = 0, logs = 0;
  for (std::size_t k = 0; k < u.size(); ++k) {
    const double g = law.variance(u[k]);
    squares += residuals[k] * residuals[k] / g;
    logs += portable_log(g);
  }
  const auto count = static_cast<double>(u.size());
  return -count * portable_log(std::max(squares / count, 1e-300)) - logs;
}

}  // namespace

double RelativeNoise::variance(double u) const {
  return std::max(1 - share + share * u * u / mean_square, kLeastVariance);
}

RelativeNoise likeliest_noise(const std::vector<double>& residuals, const std::vector<double>& u) {
  RelativeNoise law;
  double squares = 0;
  for (const double x : u) squares += x * x;
  if (u.empty() || !(squares > 0)) return law;
  law.mean_square = squares / static_cast<double>(u.size());
  const auto at = [&](double share) {
    RelativeNoise other = law;
    other.share = share;
    return log_likelihood(other, residuals, u);
  };
  const double constant = at(0);
  double most = constant;
  // 1 - q = 1, 3/4, (3/4)², … 1e-4, 0: the best of these, and the golden section around it.
  std::vector<double> rest = {1};
  while (rest.back() > 1e-4) rest.push_back(0.75 * rest.back());
  rest.push_back(0);
  std::size_t place = 0;
  for (std::size_t k = 1; k < rest.size(); ++k)
    if (const double value = at(1 - rest[k]); value > most) most = value, place = k;
  if (place == 0) return law;
  double best = rest[place];
  double high = rest[place - 1], low = rest[std::min(place + 1, rest.size() - 1)];
  constexpr double kGolden = 0.6180339887498949;
  for (int round = 0; round < 20; ++round) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    const double at_a = at(1 - a), at_b = at(1 - b);
    if (std::max(at_a, at_b) > most) most = std::max(at_a, at_b), best = at_a > at_b ? a : b;
    (at_a > at_b ? high : low) = at_a > at_b ? b : a;
  }
  law.share = 1 - best;
  law.evidence = most - constant;
  return law;
}

double relative_noise_threshold(double count) { return 20 + portable_log(std::max(count, 1.0)); }

Vector weigh_by_noise(std::vector<ObservedRun>& runs, Smoothed& smoothed, NoiseLaw law,
                      const Vector& offset, const Vector& scale) {
  const auto n = static_cast<long>(scale.size());
  Vector shares = Vector::Zero(n);
  if (law == NoiseLaw::constant) return shares;
  std::vector<Matrix> plain;
  for (const ObservedRun& run : runs) plain.push_back(run.weights);
  for (int round = 0; round < kRounds; ++round) {
    bool relative = false;
    for (long i = 0; i < n; ++i) {
      std::vector<double> residuals, u;
      for (std::size_t r = 0; r < runs.size(); ++r)
        for (long k = 0; k < runs[r].values.rows(); ++k)
          if (plain[r](k, i) > 0) {
            residuals.push_back(runs[r].values(k, i) - smoothed.values[r](k, i));
            u.push_back(offset[i] + scale[i] * smoothed.values[r](k, i));
          }
      const RelativeNoise found = likeliest_noise(residuals, u);
      const bool supported =
          law == NoiseLaw::relative ||
          (scale[i] * smoothed.noise[i] > kSmallNoise * std::sqrt(found.mean_square) &&
           found.evidence > relative_noise_threshold(static_cast<double>(u.size())));
      shares[i] = supported ? found.share : 0;
      for (std::size_t r = 0; r < runs.size(); ++r)
        for (long k = 0; k < runs[r].values.rows(); ++k)
          runs[r].weights(k, i) =
              shares[i] > 0
                  ? plain[r](k, i) / found.variance(offset[i] + scale[i] * smoothed.values[r](k, i))
                  : plain[r](k, i);
      relative = relative || shares[i] > 0;
    }
    if (!relative) break;
    smoothed = smooth(runs, false);
  }
  return shares;
}

}  // namespace odecast
