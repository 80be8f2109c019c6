#include "odecast/observations/source.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace odecast {

ObservationSource source_of(const Dataset& data) {
  ObservationSource source;
  source.variables = data.variables;
  source.name = data.source;
  for (const Trajectory& t : data.trajectories) source.ids->push_back(t.id);
  source.replay = [&data](const ObservationSource::Visitor& visit) {
    for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
      const Trajectory& t = data.trajectories[k];
      for (int i = 0; i < t.rows(); ++i)
        visit(k, t.times[static_cast<std::size_t>(i)], t.states.row(i).data());
    }
  };
  return source;
}

ObservationSource source_of_file(const std::filesystem::path& path, const CsvOptions& options) {
  // The header alone tells the variables: stop at the first row.
  struct HeaderRead {
    std::vector<std::string> variables;
  };
  ObservationSource source;
  try {
    stream_csv(path, options, [](const CsvTable& table, std::size_t, double, const double*) {
      throw HeaderRead{table.variables};
    });
  } catch (const HeaderRead& header) {
    source.variables = header.variables;
  }
  source.name = path.string();
  source.replay = [path, options, ids = source.ids](const ObservationSource::Visitor& visit) {
    const CsvTable table =
        stream_csv(path, options, [&](const CsvTable&, std::size_t which, double time,
                                      const double* state) { visit(which, time, state); });
    *ids = table.ids;
  };
  return source;
}

ObservationSummary summarise(const ObservationSource& source) {
  const int n = source.dimension();
  constexpr std::size_t sampled_steps = 10'000, sampled_spacings = 32;
  ObservationSummary s;
  s.mean = Vector::Zero(n);
  Vector squares = s.mean, slopes = s.mean, raw = s.mean;
  s.smallest = Vector::Constant(n, std::numeric_limits<double>::infinity());
  s.largest = -s.smallest;
  struct Last {
    bool seen = false;
    double time = 0;
    Vector state;
    std::vector<double> spacings;
  };
  std::vector<Last> last;
  std::vector<double> steps;
  const auto median = [](std::vector<double>& values) {
    if (values.empty()) return 0.0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  source.replay([&](std::size_t which, double time, const double* state) {
    if (which >= last.size()) {
      last.resize(which + 1);
      s.last_trajectory = which;
    }
    ++s.rows;
    const double share = 1 / static_cast<double>(s.rows);
    Last& before = last[which];
    for (int i = 0; i < n; ++i) {
      const double x = state[i], delta = x - s.mean[i];
      s.mean[i] += delta * share;
      squares[i] += delta * (x - s.mean[i]);
      raw[i] += x * x;
      s.smallest[i] = std::min(s.smallest[i], x);
      s.largest[i] = std::max(s.largest[i], x);
    }
    if (before.seen) {
      const double h = time - before.time;
      ++s.pairs;
      for (int i = 0; i < n; ++i) {
        const double slope = (state[i] - before.state[i]) / h;
        slopes[i] += slope * slope;
      }
      if (steps.size() < sampled_steps) steps.push_back(h);
      if (before.spacings.size() < sampled_spacings) before.spacings.push_back(h);
    }
    before.seen = true;
    before.time = time;
    before.state = Eigen::Map<const Vector>(state, n);
  });
  s.trajectories = static_cast<long>(last.size());
  s.last_time = last[s.last_trajectory].time;
  s.last_state = last[s.last_trajectory].state;
  const auto rows = static_cast<double>(s.rows);
  s.sd = (squares / rows).cwiseSqrt();
  s.rms = (raw / rows).cwiseSqrt();
  s.rms_slope = (slopes / std::max(1.0, static_cast<double>(s.pairs))).cwiseSqrt();
  s.step = median(steps);
  for (Last& trajectory : last) s.spacings.push_back(median(trajectory.spacings));
  return s;
}

}  // namespace odecast
