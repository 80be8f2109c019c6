#include "odecast/observations/source.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {

ObservationSource source_of(const Dataset& data) {
  ObservationSource source;
  source.variables = data.variables;
  source.inputs = data.inputs;
  source.name = data.source;
  for (const Trajectory& t : data.trajectories) source.ids->push_back(t.id);
  source.replay = [&data](const ObservationSource::Visitor& visit) {
    const Eigen::Index n = data.dimension();
    Vector row(n + static_cast<Eigen::Index>(data.inputs.size()));
    for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
      const Trajectory& t = data.trajectories[k];
      const bool driven = t.inputs.size() > 0;
      for (int i = 0; i < t.rows(); ++i) {
        if (driven) row << t.states.row(i).transpose(), t.inputs.row(i).transpose();
        visit(k, t.times[static_cast<std::size_t>(i)],
              driven ? row.data() : t.states.row(i).data());
      }
    }
  };
  return source;
}

ObservationSource source_of_files(const std::vector<std::filesystem::path>& paths,
                                  const ReadOptions& options) {
  std::error_code ignored;
  const bool again = std::all_of(paths.begin(), paths.end(), [&](const auto& path) {
    return std::filesystem::is_regular_file(path, ignored);
  });
  if (!again || options.sort || options.duplicates != DuplicateRule::error) {
    const auto table = std::make_shared<TableInfo>();
    const auto data = std::make_shared<Dataset>(read_observations(paths, options, table.get()));
    ObservationSource source = source_of(*data);
    source.replay = [data, replay = source.replay](const ObservationSource::Visitor& visit) {
      replay(visit);
    };
    source.table = table;
    return source;
  }
  // The header alone tells the variables: stop at the first row.
  struct HeaderRead {};
  ObservationSource source;
  try {
    stream_observations({paths[0]}, options, [&](const TableInfo& table, const TableRow&) {
      source.variables = table.variables;
      source.inputs = table.inputs;
      throw HeaderRead{};
    });
  } catch (const HeaderRead&) {
  }
  source.name = paths.size() == 1 ? paths[0].string() : std::to_string(paths.size()) + " files";
  source.replay = [paths, options, ids = source.ids,
                   table = source.table](const ObservationSource::Visitor& visit) {
    *table = stream_observations(paths, options, [&](const TableInfo&, const TableRow& row) {
      visit(row.trajectory, row.time, row.values);
    });
    *ids = table->ids;
  };
  return source;
}

Dataset dataset_of(const ObservationSource& source) {
  Dataset data;
  data.variables = source.variables;
  data.inputs = source.inputs;
  data.source = source.name;
  const auto n = static_cast<Eigen::Index>(source.variables.size()),
             all = n + static_cast<Eigen::Index>(source.inputs.size());
  std::vector<std::vector<double>> values;
  source.replay([&](std::size_t which, double time, const double* state) {
    if (which >= values.size()) {
      values.resize(which + 1);
      data.trajectories.resize(which + 1);
    }
    data.trajectories[which].times.push_back(time);
    values[which].insert(values[which].end(), state, state + all);
  });
  for (std::size_t k = 0; k < values.size(); ++k) {
    Trajectory& t = data.trajectories[k];
    const Eigen::Map<const Matrix> rows(values[k].data(), t.rows(), all);
    t.states = rows.leftCols(n);
    t.inputs = rows.rightCols(all - n);
    t.id = (*source.ids)[k];
    values[k] = {};  // many rows are not to be twice in memory
  }
  return data;
}

ObservationSource with_inputs(const ObservationSource& source, bool with_time,
                              const std::string& time_name) {
  ObservationSource joined = source;
  joined.variables.insert(joined.variables.end(), source.inputs.begin(), source.inputs.end());
  joined.inputs.clear();
  if (!with_time) return joined;
  const std::size_t columns = joined.variables.size();
  joined.variables.push_back(time_name);
  joined.replay = [replay = source.replay, columns](const ObservationSource::Visitor& visit) {
    std::vector<double> row(columns + 1);
    replay([&](std::size_t trajectory, double time, const double* state) {
      std::copy_n(state, columns, row.begin());
      row[columns] = time;
      visit(trajectory, time, row.data());
    });
  };
  return joined;
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
  // The late rows in a ring: row k of the last trajectory is at k modulo their number.
  constexpr long late = 200;
  std::vector<double> late_times(late);
  Matrix late_states(late, n);
  long own = 0;
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
      own = 0;
    }
    if (which == s.last_trajectory) {
      late_times[static_cast<std::size_t>(own % late)] = time;
      late_states.row(own % late) = Eigen::Map<const Eigen::RowVectorXd>(state, n);
      ++own;
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
  const long kept = std::min(own, late);
  s.late_states.resize(kept, n);
  for (long k = 0; k < kept; ++k) {
    const long at = (own - kept + k) % late;
    s.late_times.push_back(late_times[static_cast<std::size_t>(at)]);
    s.late_states.row(k) = late_states.row(at);
  }
  const auto rows = static_cast<double>(s.rows);
  s.sd = (squares / rows).cwiseSqrt();
  s.rms = (raw / rows).cwiseSqrt();
  for (int i = 0; i < n; ++i)
    if (!std::isfinite(s.rms[i]) || !std::isfinite(s.sd[i]))
      throw_data({source.name + ", column " + source.variables[static_cast<std::size_t>(i)],
                  "values from " + format_number(s.smallest[i]) + " to " +
                      format_number(s.largest[i]) + ", whose squares overflow",
                  "values below 1e154",
                  "Write the column in larger units, or remove the outliers."});
  s.rms_slope = (slopes / std::max(1.0, static_cast<double>(s.pairs))).cwiseSqrt();
  s.step = median(steps);
  for (Last& trajectory : last) s.spacings.push_back(median(trajectory.spacings));
  return s;
}

}  // namespace odecast
