#include "odecast/observations/inspection.hpp"

#include <algorithm>
#include <cmath>

#include "odecast/observations/noise_law.hpp"

namespace odecast {

Inspection inspect(const ObservationSource& source) {
  const ObservationSource all = with_inputs(source, false);
  const long n = all.dimension(), most = std::clamp((1L << 20) / n, 8L, kNoiseRows);
  struct Growing {
    std::vector<double> times, values;
  };
  std::vector<Growing> first;
  long held = 0;
  ObservationSource watched = all;
  watched.replay = [&](const ObservationSource::Visitor& visit) {
    all.replay([&](std::size_t which, double time, const double* row) {
      if (held++ < most) {
        if (which >= first.size()) first.resize(which + 1);
        first[which].times.push_back(time);
        first[which].values.insert(first[which].values.end(), row, row + n);
      }
      return visit(which, time, row);
    });
  };
  Inspection result{summarise(watched), {}, {}, std::min(held, most)};
  std::vector<ObservedRun> runs;
  for (Growing& g : first) {
    if (g.times.empty()) continue;
    const auto rows = static_cast<long>(g.times.size());
    runs.push_back(
        observed_run(std::move(g.times), Eigen::Map<const Matrix>(g.values.data(), rows, n)));
    g = {};
  }
  Vector values = Vector::Zero(n);
  for (const ObservedRun& run : runs) values += run.weights.colwise().sum().transpose();
  Smoothed smoothed = smooth(runs, false);
  NoiseForm form =
      weigh_by_noise(runs, smoothed, NoiseLaw::automatic, Vector::Zero(n), Vector::Ones(n));
  result.relative_noise = std::move(form.share);
  result.log_noise = std::move(form.of_log);
  result.noise = smoothed.noise;
  for (long i = 0; i < n; ++i)
    if (values[i] < 8) result.noise[i] = std::nan(""), result.relative_noise[i] = 0;
  return result;
}

}  // namespace odecast
