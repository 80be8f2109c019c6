#include "odecast/observations/embedding.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/observations/source.hpp"

namespace odecast {
namespace {

constexpr int kMostCoordinates = 9;

/// The weights of the last lag + 1 values, the newest last, that give the derivatives 1 … count - 1
/// at the newest in units of rows: those of the polynomial of degree max(2, count) that fits best.
Matrix derivative_weights(int count, int lag) {
  const int degree = std::max(2, count);
  Eigen::MatrixXd powers(lag + 1, degree + 1);
  for (int k = 0; k <= lag; ++k) {
    double power = 1;
    for (int d = 0; d <= degree; ++d, power *= k - lag) powers(k, d) = power;
  }
  const Eigen::MatrixXd inverse = powers.completeOrthogonalDecomposition().pseudoInverse();
  Matrix weights(count - 1, lag + 1);
  double factorial = 1;
  for (int d = 1; d < count; ++d) {
    factorial *= d;
    weights.row(d - 1) = factorial * inverse.row(d);
  }
  return weights;
}

int least_lag(EmbeddingKind kind, int count) {
  return kind == EmbeddingKind::delays ? 1 : std::max(2, count) + 1;
}

/// The first lag in rows at which the autocorrelation is below 1/e, a quarter of the longest
/// trajectory at most. Lags are tried at a sixteenth of themselves apart, and halved between the
/// last two: O(rows log rows), and exact where it falls there without a rise.
int memory(const Dataset& data, long longest) {
  double sum = 0, count = 0;
  for (const Trajectory& t : data.trajectories)
    for (int k = 0; k < t.rows(); ++k)
      if (const double x = t.states(k, 0); std::isfinite(x)) sum += x, count += 1;
  const double mean = sum / count;
  const auto covariance = [&](int lag) {
    double products = 0, pairs = 0;
    for (const Trajectory& t : data.trajectories)
      for (int k = lag; k < t.rows(); ++k) {
        const double x = t.states(k, 0) - mean, y = t.states(k - lag, 0) - mean;
        if (std::isfinite(x * y)) products += x * y, pairs += 1;
      }
    return pairs > 0 ? products / pairs : 0;
  };
  const double least = std::exp(-1.0) * covariance(0);
  const int most = static_cast<int>(std::max(1L, longest / 4));
  int before = 0, lag = 1;
  while (lag < most && covariance(lag) > least) {
    before = lag;
    lag = std::min(most, lag + 1 + lag / 16);
  }
  while (lag - before > 1) {
    const int middle = before + (lag - before) / 2;
    (covariance(middle) > least ? before : lag) = middle;
  }
  return lag;
}

}  // namespace

std::string embedding_name(const Embedding& e) {
  return fmt::format("{}:{}", e.kind == EmbeddingKind::delays ? "delays" : "derivatives", e.count);
}

std::optional<Embedding> embedding_from_name(std::string_view name) {
  Embedding e;
  const auto colon = name.find(':');
  if (colon == name.npos) return std::nullopt;
  const std::string_view kind = name.substr(0, colon), number = name.substr(colon + 1);
  if (kind != "delays" && kind != "derivatives") return std::nullopt;
  e.kind = kind == "delays" ? EmbeddingKind::delays : EmbeddingKind::derivatives;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), e.count);
  if (error != std::errc{} || end != number.data() + number.size() || e.count < 2 ||
      e.count > kMostCoordinates)
    return std::nullopt;
  return e;
}

Embedding fitted_embedding(const Dataset& data, Embedding e) {
  if (data.dimension() != 1)
    throw_data({data.source, fmt::format("{} variables", data.dimension()),
                "one measured variable to embed",
                "Choose it with `variables`, or leave `embed` out."});
  const ObservationSummary summary = summarise(source_of(data));
  if (!(summary.step > 0) || summary.smallest_step < 0.99 * summary.step ||
      (summary.gaps == 0 && summary.largest_step > 1.01 * summary.step))
    throw_data({data.source, "rows that are not evenly spaced", "one spacing, but for gaps",
                "Embedding counts rows: interpolate onto even times first."});
  const long longest =
      *std::max_element(summary.trajectory_rows.begin(), summary.trajectory_rows.end());
  const int forgets = memory(data, longest);
  e.step = summary.step;
  e.lag =
      std::max(least_lag(e.kind, e.count),
               static_cast<int>(e.kind == EmbeddingKind::delays ? (forgets + 1) / 2 : forgets / 3));
  return e;
}

Dataset embedded(const Dataset& data, const Embedding& e) {
  if (data.dimension() != 1)
    throw_data({data.source, fmt::format("{} variables", data.dimension()),
                "the one that the model measured", "Choose it with `variables`."});
  Dataset wide = data;
  wide.trajectories.clear();
  const bool delays = e.kind == EmbeddingKind::delays;
  for (int c = 1; c < e.count; ++c)
    wide.variables.push_back(
        delays ? fmt::format("{}(t-{:.4g})", data.variables[0], c * e.lag * e.step)
               : data.variables[0] + std::string(static_cast<std::size_t>(c), '\''));
  const Matrix weights = delays ? Matrix() : derivative_weights(e.count, e.lag);
  const int history = e.history();
  bool even = true;
  for (const Trajectory& t : data.trajectories)
    for (long begin = 0, end = 0; begin < t.rows(); begin = end) {
      for (end = begin + 1; end < t.rows(); ++end) {
        const double h =
            t.times[static_cast<std::size_t>(end)] - t.times[static_cast<std::size_t>(end - 1)];
        if (h > 1.5 * e.step) break;
        even = even && std::abs(h - e.step) < 0.01 * e.step;
      }
      const long rows = end - begin - history;
      if (rows < 1) continue;
      Trajectory part{
          t.id, {t.times.begin() + begin + history, t.times.begin() + end}, Matrix(rows, e.count)};
      if (t.inputs.cols() > 0) part.inputs = t.inputs.middleRows(begin + history, rows);
      for (long k = 0; k < rows; ++k) {
        const long now = begin + history + k;
        part.states(k, 0) = t.states(now, 0);
        double power = e.step;
        for (int c = 1; c < e.count; ++c, power *= e.step)
          part.states(k, c) =
              delays
                  ? t.states(now - c * e.lag, 0)
                  : weights.row(c - 1).dot(t.states.col(0).segment(now - e.lag, e.lag + 1)) / power;
      }
      wide.trajectories.push_back(std::move(part));
    }
  if (!even)
    throw_data({data.source, fmt::format("rows that are not {:.6g} apart", e.step),
                "the spacing of the rows that were learnt from",
                "Interpolate onto such times first."});
  if (wide.trajectories.empty())
    throw_data({data.source, "no row with its history",
                fmt::format("more than {} rows without a gap", history),
                "Give more rows, or fewer coordinates (`embed`)."});
  return wide;
}

}  // namespace odecast
