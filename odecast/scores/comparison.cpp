#include "odecast/scores/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {

Comparison compare(const Forecast& forecast, const Dataset& truth, const std::string& trajectory) {
  const Trajectory& t = find_trajectory(truth, trajectory);
  std::vector<Eigen::Index> column;
  for (const auto& v : forecast.variables) {
    const auto found = std::find(truth.variables.begin(), truth.variables.end(), v);
    if (found == truth.variables.end())
      throw_data({truth.source, fmt::format("variables {}", fmt::join(truth.variables, ", ")),
                  fmt::format("a variable '{}' as in the forecast", v),
                  "Rename the column, or check that the files belong together."});
    column.push_back(found - truth.variables.begin());
  }

  const double start = forecast.times.front();
  std::vector<std::pair<Eigen::Index, Eigen::Index>> pairs;
  // Equal means: within the round-off of a time, and far less than the spacing of the rows.
  std::size_t j = 0;
  double tolerance = 0;
  for (std::size_t i = 1; i < forecast.times.size(); ++i) {
    const double time = forecast.times[i], spacing = time - forecast.times[i - 1];
    tolerance = std::min(1e-3 * spacing, 1e-6 * spacing + 8e-16 * std::abs(time));
    while (j + 1 < t.times.size() && std::abs(t.times[j + 1] - time) <= std::abs(t.times[j] - time))
      ++j;
    if (std::abs(t.times[j] - time) <= tolerance)
      pairs.emplace_back(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  }
  const auto shown = [&](double time) {
    return forecast.calendar ? time_text(*forecast.calendar, time) : fmt::format("{}", time);
  };
  if (pairs.empty())
    throw_data(
        {truth.source, fmt::format("times {} to {}", shown(t.times.front()), shown(t.times.back())),
         fmt::format("times of the forecast, {} to {}", shown(start), shown(forecast.times.back())),
         "Forecast at the truth's own times with `at` FILE, or give both the same `step`."});
  const double last = forecast.times[static_cast<std::size_t>(pairs.back().first)];
  if (truth.certified_until && last > *truth.certified_until + tolerance)
    throw_data({truth.source,
                fmt::format("data certified until t = {} only", *truth.certified_until),
                fmt::format("a certified solution up to t = {}", last),
                "Beyond that time the numbers are not the solution: forecast a shorter time."});

  const auto n = static_cast<Eigen::Index>(forecast.variables.size());
  const auto count = static_cast<double>(pairs.size());
  Comparison c;
  c.from = start;
  c.until = last;
  c.trajectory = t.id;
  c.truth.resize(static_cast<Eigen::Index>(pairs.size()), n);
  for (const auto& [row, other] : pairs) {
    const auto at = static_cast<Eigen::Index>(c.rows.size());
    for (Eigen::Index i = 0; i < n; ++i)
      c.truth(at, i) = t.states(other, column[static_cast<std::size_t>(i)]);
    c.rows.push_back(row);
  }
  Vector mean = Vector::Zero(n), square = Vector::Zero(n);
  for (Eigen::Index r = 0; r < c.points(); ++r)
    for (Eigen::Index i = 0; i < n; ++i) mean[i] += c.truth(r, i) / count;
  for (Eigen::Index r = 0; r < c.points(); ++r)
    for (Eigen::Index i = 0; i < n; ++i)
      square[i] += (c.truth(r, i) - mean[i]) * (c.truth(r, i) - mean[i]) / count;
  c.truth_sd = square.cwiseSqrt();
  for (Eigen::Index i = 0; i < n; ++i)
    if (c.truth_sd[i] <= 1e-15 * count * std::abs(mean[i])) c.truth_sd[i] = 0;  // but for round-off
  return c;
}

}  // namespace odecast
