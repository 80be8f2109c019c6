#include "odecast/observations/source.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {

ObservationSource source_of(const Dataset& data) {
  ObservationSource source;
  source.variables = data.variables;
  source.inputs = data.inputs;
  source.name = data.source;
  source.table->time_name = data.time_name;
  source.table->calendar = data.calendar;
  for (const Trajectory& t : data.trajectories) source.ids->push_back(t.id);
  source.replay = [&data](const ObservationSource::Visitor& visit) {
    const Eigen::Index n = data.dimension();
    Vector row(n + static_cast<Eigen::Index>(data.inputs.size()));
    for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
      const Trajectory& t = data.trajectories[k];
      const bool driven = t.inputs.size() > 0;
      for (int i = 0; i < t.rows(); ++i) {
        if (driven) row << t.states.row(i).transpose(), t.inputs.row(i).transpose();
        if (!visit(k, t.times[static_cast<std::size_t>(i)],
                   driven ? row.data() : t.states.row(i).data()))
          return;
      }
    }
  };
  return source;
}

ObservationSource source_of_files(const std::vector<std::filesystem::path>& paths,
                                  const ReadOptions& options) {
  const bool again = std::all_of(paths.begin(), paths.end(), can_be_read_again);
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
  ObservationSource source;
  stream_observations({paths[0]}, options, [&](const TableInfo& table, const TableRow&) {
    source.variables = table.variables;
    source.inputs = table.inputs;
    return false;
  });
  source.name = paths.size() == 1 ? paths[0].string() : std::to_string(paths.size()) + " files";
  source.replay = [paths, options, ids = source.ids,
                   table = source.table](const ObservationSource::Visitor& visit) {
    *table = stream_observations(paths, options, [&](const TableInfo&, const TableRow& row) {
      return visit(row.trajectory, row.time, row.values);
    });
    *ids = table->ids;
  };
  return source;
}

Dataset dataset_of(const ObservationSource& source, long rows) {
  Dataset data;
  data.variables = source.variables;
  data.inputs = source.inputs;
  data.source = source.name;
  const auto n = static_cast<Eigen::Index>(source.variables.size()),
             all = n + static_cast<Eigen::Index>(source.inputs.size());
  std::vector<std::vector<double>> values;
  source.replay([&](std::size_t which, double time, const double* state) {
    if (rows-- <= 0) return false;
    if (which >= values.size()) {
      values.resize(which + 1);
      data.trajectories.resize(which + 1);
    }
    data.trajectories[which].times.push_back(time);
    values[which].insert(values[which].end(), state, state + all);
    return true;
  });
  data.time_name = source.table->time_name;
  data.calendar = source.table->calendar;
  for (std::size_t k = 0; k < values.size(); ++k) {
    Trajectory& t = data.trajectories[k];
    const Eigen::Map<const Matrix> both(values[k].data(), t.rows(), all);
    t.states = both.leftCols(n);
    t.inputs = both.rightCols(all - n);
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
      return visit(trajectory, time, row.data());
    });
  };
  return joined;
}

namespace {

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Steps: the first ones wait until their median says what a gap is.
class Sampling {
 public:
  void step(double h) {
    if (waiting_.size() < kWaiting) {
      waiting_.push_back(h);
      if (waiting_.size() == kWaiting) settle();
    } else {
      count(h);
    }
  }

  void finish(ObservationSummary& to) {
    if (waiting_.size() < kWaiting) settle();
    to.step = median_;
    to.smallest_step = to.pairs > 0 ? smallest_ : 0;
    to.largest_step = largest_;
    to.gaps = gaps_;
    to.largest_gap = largest_gap_;
    to.even = to.pairs > 0 && largest_ - smallest_ <= 1e-6 * median_;
  }

 private:
  static constexpr std::size_t kWaiting = 10'000;

  void settle() {
    std::vector<double> sorted(waiting_);
    median_ = median(sorted);
    for (const double h : waiting_) count(h);
  }
  void count(double h) {
    if (h > 1.5 * median_) {
      ++gaps_;
      largest_gap_ = std::max(largest_gap_, h);
    } else {
      smallest_ = std::min(smallest_, h);
      largest_ = std::max(largest_, h);
    }
  }

  std::vector<double> waiting_;
  long gaps_ = 0;
  double median_ = 0, smallest_ = std::numeric_limits<double>::infinity(), largest_ = 0,
         largest_gap_ = 0;
};

/// One variable, value by value.
struct Moving {
  long values = 0, slopes = 0;
  double mean = 0, squares = 0, raw = 0, slope_squares = 0;
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;

  void add(double x) {
    const double delta = x - mean;
    mean += delta * (1 / static_cast<double>(++values));
    squares += delta * (x - mean);
    raw += x * x;
    smallest = std::min(smallest, x);
    largest = std::max(largest, x);
  }
  void add_slope(double slope) {
    ++slopes;
    slope_squares += slope * slope;
  }
};

}  // namespace

ObservationSummary summarise(const ObservationSource& source) {
  const int n = source.dimension();
  constexpr std::size_t sampled_spacings = 32;
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  ObservationSummary s;
  struct Last {
    long rows = 0;
    double time = 0;
    Vector state;
    std::vector<double> spacings;
  };
  std::vector<Last> last;
  std::vector<Moving> columns(static_cast<std::size_t>(n));
  Sampling sampling;
  s.first_time = std::numeric_limits<double>::infinity();
  s.latest_time = -s.first_time;
  // The late rows in a ring: row k of the last trajectory is at k modulo their number.
  constexpr long late = 200;
  std::vector<double> late_times(late);
  Matrix late_states(late, n);
  source.replay([&](std::size_t which, double time, const double* state) {
    if (which >= last.size()) {
      last.resize(which + 1);
      s.last_trajectory = which;
    }
    Last& before = last[which];
    if (which == s.last_trajectory) {
      late_times[static_cast<std::size_t>(before.rows % late)] = time;
      late_states.row(before.rows % late) = Eigen::Map<const Eigen::RowVectorXd>(state, n);
    }
    ++s.rows;
    s.first_time = std::min(s.first_time, time);
    s.latest_time = std::max(s.latest_time, time);
    const double h = time - before.time;
    for (int i = 0; i < n; ++i) {
      if (!std::isfinite(state[i])) continue;
      Moving& column = columns[static_cast<std::size_t>(i)];
      column.add(state[i]);
      if (before.rows > 0 && std::isfinite(before.state[i]))
        column.add_slope((state[i] - before.state[i]) / h);
    }
    if (before.rows > 0) {
      ++s.pairs;
      sampling.step(h);
      if (before.spacings.size() < sampled_spacings) before.spacings.push_back(h);
    }
    ++before.rows;
    before.time = time;
    before.state = Eigen::Map<const Vector>(state, n);
    return true;
  });
  s.trajectories = static_cast<long>(last.size());
  s.last_time = last[s.last_trajectory].time;
  s.last_state = last[s.last_trajectory].state;
  const long own = last[s.last_trajectory].rows, kept = std::min(own, late);
  s.late_states.resize(kept, n);
  for (long k = 0; k < kept; ++k) {
    const long at = (own - kept + k) % late;
    s.late_times.push_back(late_times[static_cast<std::size_t>(at)]);
    s.late_states.row(k) = late_states.row(at);
  }
  s.mean = s.sd = s.rms = s.rms_slope = s.smallest = s.largest = Vector::Constant(n, unknown);
  for (int i = 0; i < n; ++i) {
    const Moving& column = columns[static_cast<std::size_t>(i)];
    s.missing.push_back(s.rows - column.values);
    s.constant.push_back(column.values > 0 && is_constant(column.smallest, column.largest));
    if (column.values == 0) continue;
    const auto values = static_cast<double>(column.values);
    s.mean[i] = column.mean;
    s.sd[i] = std::sqrt(column.squares / values);
    s.rms[i] = std::sqrt(column.raw / values);
    s.rms_slope[i] =
        std::sqrt(column.slope_squares / std::max(1.0, static_cast<double>(column.slopes)));
    s.smallest[i] = column.smallest;
    s.largest[i] = column.largest;
    if (!std::isfinite(s.rms[i]) || !std::isfinite(s.sd[i]))
      throw_data({source.name + ", column " + source.variables[static_cast<std::size_t>(i)],
                  "values from " + format_number(s.smallest[i]) + " to " +
                      format_number(s.largest[i]) + ", whose squares overflow",
                  "values below 1e154",
                  "Write the column in larger units, or remove the outliers."});
  }
  sampling.finish(s);
  for (Last& trajectory : last) {
    s.trajectory_rows.push_back(trajectory.rows);
    s.spacings.push_back(median(trajectory.spacings));
  }
  return s;
}

}  // namespace odecast
