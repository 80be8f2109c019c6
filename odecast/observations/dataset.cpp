#include "odecast/observations/dataset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"

namespace odecast {

long Dataset::rows() const {
  long sum = 0;
  for (const Trajectory& t : trajectories) sum += t.rows();
  return sum;
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
    const auto part = [&](auto first, auto last, Eigen::Index from, Eigen::Index rows) {
      return Trajectory{t.id, {first, last}, t.states.middleRows(from, rows),
                        t.inputs.size() > 0 ? Matrix(t.inputs.middleRows(from, rows)) : Matrix()};
    };
    const auto middle = t.times.begin() + kept;
    split.train.trajectories.push_back(part(t.times.begin(), middle, 0, kept));
    split.test.trajectories.push_back(part(middle, t.times.end(), kept, held));
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
  throw_usage({"option --trajectory", "'" + id + "'",
               fmt::format("one of {} in {}", fmt::join(ids, ", "), data.source),
               "Say which trajectory is meant."});
}

Vector noise_level(const Dataset& data, double factor, NoiseOf of) {
  if (of == NoiseOf::sd) return factor * spread(data).sd;
  const Vector rms = root_mean_square(data);
  return Vector::Constant(data.dimension(), factor * std::sqrt(rms.squaredNorm() / data.dimension()));
}

void add_noise(Dataset& data, const Vector& standard_deviation, std::uint64_t seed) {
  for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
    Stream stream(seed, Purpose::observation_noise, k);
    Matrix& states = data.trajectories[k].states;
    for (Eigen::Index i = 0; i < states.rows(); ++i)
      for (Eigen::Index j = 0; j < states.cols(); ++j)
        states(i, j) += standard_deviation[j] * stream.normal();
  }
}

Spread spread(const Dataset& data) {
  const auto n = data.dimension();
  Spread result{Vector::Zero(n), Vector::Zero(n)};
  const auto rows = static_cast<double>(data.rows());
  for (const Trajectory& t : data.trajectories) result.mean += t.states.colwise().sum().transpose();
  result.mean /= rows;
  for (const Trajectory& t : data.trajectories)
    result.sd += (t.states.rowwise() - result.mean.transpose()).array().square().colwise().sum()
                     .matrix().transpose();
  result.sd = (result.sd / rows).cwiseSqrt();
  return result;
}

Vector root_mean_square(const Dataset& data) {
  Vector squares = Vector::Zero(data.dimension());
  for (const Trajectory& t : data.trajectories)
    squares += t.states.cwiseAbs2().colwise().sum().transpose();
  return (squares / static_cast<double>(data.rows())).cwiseSqrt();
}

}  // namespace odecast
