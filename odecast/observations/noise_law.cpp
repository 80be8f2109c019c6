#include "odecast/observations/noise_law.hpp"

#include <algorithm>
#include <cmath>

#include "odecast/core/functions.hpp"
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

namespace {

/// The observations of a variable that have weight, and the path there, in the user's units; their
/// difference in the runs'.
struct WeighedColumn {
  std::vector<double> residuals, values, path;

  WeighedColumn(const std::vector<ObservedRun>& runs, const std::vector<Matrix>& path_of, long i,
                double offset, double scale) {
    for (std::size_t r = 0; r < runs.size(); ++r)
      for (long k = 0; k < runs[r].values.rows(); ++k)
        if (runs[r].weights(k, i) > 0) {
          residuals.push_back(runs[r].values(k, i) - path_of[r](k, i));
          values.push_back(offset + scale * runs[r].values(k, i));
          path.push_back(offset + scale * path_of[r](k, i));
        }
  }
  bool positive() const {
    return std::all_of(values.begin(), values.end(), [](double y) { return y > 0; });
  }
};

/// Twice the log likelihood of the observations of variable i as those of ln u + r ε, less that of
/// N values whose mean square is one: `logs` are ln y, `path` is ln u.
double likelihood_of_logs(const std::vector<Matrix>& logs, const std::vector<Matrix>& path,
                          const std::vector<Matrix>& weights, long i) {
  double squares = 0, sum = 0, count = 0;
  for (std::size_t r = 0; r < logs.size(); ++r)
    for (long k = 0; k < logs[r].rows(); ++k) {
      if (!(weights[r](k, i) > 0)) continue;
      const double e = logs[r](k, i) - path[r](k, i);
      squares += e * e, sum += logs[r](k, i), ++count;
    }
  return -count * portable_log(std::max(squares / count, 1e-300)) - 2 * sum;
}

/// Values and weights of variable i around the path û > 0: `logs` are ln y, `path` is ln û.
void observe_logs(std::vector<ObservedRun>& runs, const std::vector<Matrix>& weights,
                  const std::vector<Matrix>& logs, const std::vector<Matrix>& path, long i,
                  double offset, double scale) {
  double squares = 0, count = 0;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (long k = 0; k < path[r].rows(); ++k)
      if (weights[r](k, i) > 0) squares += exponential_of(2 * path[r](k, i)), ++count;
  const RelativeNoise law{1, 0, squares / std::max(count, 1.0)};
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (long k = 0; k < path[r].rows(); ++k) {
      if (!(weights[r](k, i) > 0)) continue;
      const double u = exponential_of(path[r](k, i));
      runs[r].values(k, i) = (u * (1 + logs[r](k, i) - path[r](k, i)) - offset) / scale;
      runs[r].weights(k, i) = weights[r](k, i) / law.variance(u);
    }
}

}  // namespace

NoiseForm weigh_by_noise(std::vector<ObservedRun>& runs, Smoothed& smoothed, NoiseLaw law,
                         const Vector& offset, const Vector& scale) {
  const auto n = static_cast<long>(scale.size());
  NoiseForm form{Vector::Zero(n), std::vector<bool>(static_cast<std::size_t>(n))};
  if (law == NoiseLaw::constant) return form;
  std::vector<Matrix> plain;  // weights
  for (const ObservedRun& run : runs) plain.push_back(run.weights);
  std::vector<Matrix> logs, log_path;  // of what is positive; smoothed when they are asked for
  const auto smooth_logs = [&] {
    if (!logs.empty()) return;
    std::vector<ObservedRun> of_logs = runs;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      of_logs[r].weights = plain[r];
      for (long i = 0; i < n; ++i)
        for (long k = 0; k < plain[r].rows(); ++k) {
          const double y = offset[i] + scale[i] * runs[r].values(k, i);
          of_logs[r].values(k, i) = plain[r](k, i) > 0 && y > 0 ? portable_log(y) : 0;
        }
    }
    log_path = smooth(of_logs, false).values;
    for (ObservedRun& run : of_logs) logs.push_back(std::move(run.values));
  };
  for (int round = 0; round < kRounds; ++round) {
    bool relative = false;
    for (long i = 0; i < n; ++i) {
      if (form.of_log[static_cast<std::size_t>(i)]) continue;
      const WeighedColumn column(runs, smoothed.values, i, offset[i], scale[i]);
      const RelativeNoise found = likeliest_noise(column.residuals, column.path);
      const bool supported =
          law == NoiseLaw::relative ||
          (scale[i] * smoothed.noise[i] > kSmallNoise * std::sqrt(found.mean_square) &&
           found.evidence > relative_noise_threshold(static_cast<double>(column.path.size())));
      if (round == 0 && column.positive() &&
          (law == NoiseLaw::logarithmic ||
           (law == NoiseLaw::automatic && supported && found.share > 0.5))) {
        smooth_logs();
        form.of_log[static_cast<std::size_t>(i)] =
            law == NoiseLaw::logarithmic ||
            likelihood_of_logs(logs, log_path, plain, i) >
                log_likelihood(found, column.residuals, column.path) -
                    2 * static_cast<double>(column.path.size()) * portable_log(scale[i]) +
                    kLogNoiseThreshold;
      }
      const bool of_log = form.of_log[static_cast<std::size_t>(i)];
      form.share[i] = of_log ? 1 : supported && law != NoiseLaw::logarithmic ? found.share : 0;
      if (of_log) {
        observe_logs(runs, plain, logs, log_path, i, offset[i], scale[i]);
      } else {
        for (std::size_t r = 0; r < runs.size(); ++r)
          for (long k = 0; k < runs[r].values.rows(); ++k)
            runs[r].weights(k, i) =
                form.share[i] > 0
                    ? plain[r](k, i) /
                          found.variance(offset[i] + scale[i] * smoothed.values[r](k, i))
                    : plain[r](k, i);
      }
      relative = relative || form.share[i] > 0;
    }
    if (!relative) break;
    smoothed = smooth(runs, false);
  }
  return form;
}

}  // namespace odecast
