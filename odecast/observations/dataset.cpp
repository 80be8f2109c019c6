#include "odecast/observations/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/rows.hpp"

namespace odecast {

long Dataset::rows() const {
  long sum = 0;
  for (const Trajectory& t : trajectories) sum += t.rows();
  return sum;
}

namespace {

/// The first of the names, or the last lengthened, that no column has.
std::string free_name(std::vector<std::string> names, std::vector<std::string> taken) {
  for (auto& name : taken) name = lower_case(name);
  while (std::count(taken.begin(), taken.end(), lower_case(names.front())) > 0) {
    if (names.size() == 1) names.push_back(names.front() + "_");
    names.erase(names.begin());
  }
  return names.front();
}

std::vector<std::string> columns_of(const Dataset& data) {
  std::vector<std::string> names = data.variables;
  names.insert(names.end(), data.inputs.begin(), data.inputs.end());
  return names;
}

Trajectory part_of(const Trajectory& t, long begin, long end, const std::string& id) {
  Trajectory part{id,
                  {t.times.begin() + begin, t.times.begin() + end},
                  t.states.middleRows(begin, end - begin)};
  if (t.inputs.cols() > 0) part.inputs = t.inputs.middleRows(begin, end - begin);
  if (!t.time_texts.empty())
    part.time_texts.assign(t.time_texts.begin() + begin, t.time_texts.begin() + end);
  return part;
}

}  // namespace

std::string time_column(const Dataset& data) {
  const std::vector<std::string> taken = columns_of(data);
  if (std::count(taken.begin(), taken.end(), data.time_name) == 0) return data.time_name;
  return free_name({"t", "time"}, taken);
}

std::string id_column(const Dataset& data) {
  std::vector<std::string> taken = columns_of(data);
  taken.push_back(time_column(data));
  return free_name({"trajectory", "series", "id"}, taken);
}

Split split_last(const Dataset& data, double fraction) {
  if (!(fraction > 0 && fraction < 1))
    throw_usage({"held-out fraction", fmt::format("{}", fraction), "a number between 0 and 1",
                 "For example 0.2 holds out the last fifth."});
  Split split{data, data};
  split.train.trajectories.clear();
  split.test.trajectories.clear();
  for (const Trajectory& t : data.trajectories) {
    const auto held = std::max<Eigen::Index>(1, std::lround(fraction * t.rows()));
    const auto kept = t.rows() - held;
    if (kept < 1)
      throw_data({data.source + (t.id.empty() ? "" : ", trajectory '" + t.id + "'"),
                  fmt::format("{} rows", t.rows()), "enough rows for both parts",
                  "Give a longer trajectory or hold out less."});
    split.train.trajectories.push_back(part_of(t, 0, kept, t.id));
    split.test.trajectories.push_back(part_of(t, kept, t.rows(), t.id));
  }
  return split;
}

Split hold_out(const Dataset& data, int block, int blocks) {
  const long rows = data.rows(), from = rows * block / blocks, until = rows * (block + 1) / blocks;
  Split split;
  split.train = split.test =
      Dataset{data.variables, {}, {}, data.source, data.time_name, data.inputs, data.calendar};
  long first = 0;
  for (const Trajectory& t : data.trajectories) {
    const long size = t.rows();
    const long a = std::clamp(from - first, 0L, size), b = std::clamp(until - first, 0L, size);
    const auto add = [&](Dataset& to, long begin, long end, const char* part) {
      if (end > begin) to.trajectories.push_back(part_of(t, begin, end, t.id + part));
    };
    const bool cut = b > a && b - a < size;
    add(split.train, 0, a, cut ? "before" : "");
    add(split.test, a, b, "");
    add(split.train, b, size, cut ? "after" : "");
    first += size;
  }
  return split;
}

const Trajectory& find_trajectory(const Dataset& data, const std::string& id) {
  if (id.empty()) return data.trajectories.back();
  std::vector<std::string> ids;
  for (const Trajectory& t : data.trajectories) {
    if (t.id == id) return t;
    ids.push_back(t.id);
  }
  throw_usage({"option `trajectory`", shown(id),
               fmt::format("one of {} in {}", fmt::join(ids, ", "), data.source),
               "Say which trajectory is meant."});
}

Vector noise_level(const Dataset& data, double factor, NoiseOf of) {
  if (of == NoiseOf::sd) return factor * spread(data).sd;
  const Vector rms = root_mean_square(data);
  return Vector::Constant(data.dimension(),
                          factor * std::sqrt(rms.squaredNorm() / data.dimension()));
}

void add_noise(Dataset& data, const Vector& standard_deviation, std::uint64_t seed) {
  for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
    Stream stream(seed, Purpose::observation_noise, k);
    Matrix& states = data.trajectories[k].states;
    for (Eigen::Index i = 0; i < states.rows(); ++i)
      for (Eigen::Index j = 0; j < states.cols(); ++j)
        if (const double noisy = states(i, j) + standard_deviation[j] * stream.normal();
            std::isfinite(noisy) || std::isnan(states(i, j)))
          states(i, j) = noisy;
        else
          throw_usage({"`noise`", "noise that overflows", "values that stay finite",
                       "Give a smaller one."});
  }
}

bool is_constant(double smallest, double largest) {
  return largest - smallest <= 1e-12 * std::max(std::abs(smallest), std::abs(largest));
}

Spread spread(const Dataset& data) {
  const auto n = data.dimension();
  Spread result{Vector::Zero(n), Vector::Zero(n)};
  const auto rows = static_cast<double>(data.rows());
  for (const Trajectory& t : data.trajectories) result.mean += t.states.colwise().sum().transpose();
  result.mean /= rows;
  for (const Trajectory& t : data.trajectories)
    result.sd += (t.states.rowwise() - result.mean.transpose())
                     .array()
                     .square()
                     .colwise()
                     .sum()
                     .matrix()
                     .transpose();
  result.sd = (result.sd / rows).cwiseSqrt();
  for (Eigen::Index i = 0; i < n; ++i) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const Trajectory& t : data.trajectories)
      if (t.rows() > 0)
        least = std::min(least, t.states.col(i).minCoeff()),
        most = std::max(most, t.states.col(i).maxCoeff());
    if (is_constant(least, most)) result.sd[i] = 0;
  }
  return result;
}

Vector root_mean_square(const Dataset& data) {
  Vector squares = Vector::Zero(data.dimension());
  for (const Trajectory& t : data.trajectories)
    squares += t.states.cwiseAbs2().colwise().sum().transpose();
  return (squares / static_cast<double>(data.rows())).cwiseSqrt();
}

}  // namespace odecast
