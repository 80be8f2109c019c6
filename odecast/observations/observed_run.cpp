#include "odecast/observations/observed_run.hpp"

#include <algorithm>
#include <cmath>

namespace odecast {

ObservedRun observed_run(std::vector<double> times, Matrix values) {
  ObservedRun run{std::move(times), std::move(values), {}};
  run.weights = run.values.unaryExpr([](double x) { return std::isfinite(x) ? 1.0 : 0.0; });
  run.values = run.values.unaryExpr([](double x) { return std::isfinite(x) ? x : 0.0; });
  return run;
}

std::vector<DrivenPiece> pieces(const ObservedRun& run, long row) {
  const double begin = run.times[index(row - 1)], end = run.times[index(row)];
  const auto& knots = run.inputs.times;
  const Matrix& w = run.inputs.values;
  if (w.cols() == 0) return {{begin, end, {}, {}}};
  std::vector<DrivenPiece> list;
  long k = std::upper_bound(knots.begin(), knots.end(), begin) - knots.begin() - 1;
  for (double t = begin; t < end; ++k) {
    const double next = std::min(end, knots[index(k + 1)]),
                 length = knots[index(k + 1)] - knots[index(k)];
    DrivenPiece piece{t, next, w.row(k).transpose(), w.row(k).transpose()};
    for (long j = run.held; j < w.cols(); ++j) {
      const double change = w(k + 1, j) - w(k, j);
      piece.from[j] += (t - knots[index(k)]) / length * change;
      piece.to[j] += (next - knots[index(k)]) / length * change;
    }
    list.push_back(std::move(piece));
    t = next;
  }
  return list;
}

}  // namespace odecast
