#include "odecast/forecast/forecast_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/reading.hpp"

namespace odecast {
namespace {

std::string quantile_name(const std::string& variable, double probability) {
  // 12 digits hide the round-off of (1 - level) / 2.
  return fmt::format("{}_q{:.12g}", variable, 100 * probability);
}

/// What stands between a variable and the name of a band of its observations: _observed, with more
/// underscores before it where a variable is another one and that, so that no two columns have one
/// name.
std::string observed_mark(const std::vector<std::string>& variables) {
  std::string mark = "_observed";
  const auto taken = [&](const std::string& v) {
    return std::find(variables.begin(), variables.end(), v + mark) != variables.end();
  };
  while (std::any_of(variables.begin(), variables.end(), taken)) mark = '_' + mark;
  return mark;
}

/// Whether the band lies as far above the mean as below it, but where it ends at 0.
bool is_sd_band(const Forecast& f) {
  for (Eigen::Index t = 0; t < f.mean.rows(); ++t)
    for (Eigen::Index i = 0; i < f.mean.cols(); ++i) {
      const double above = f.upper(t, i) - f.mean(t, i), below = f.mean(t, i) - f.lower(t, i);
      if (f.lower(t, i) != 0 &&
          std::abs(above - below) > 1e-9 * (std::abs(f.mean(t, i)) + std::abs(above)))
        return false;
    }
  return true;
}

}  // namespace

std::string format_forecast(const Forecast& f) {
  std::vector<const Matrix*> parts = {&f.mean, &f.sd, &f.lower, &f.upper};
  if (f.q_lower.size() > 0) parts.insert(parts.end(), {&f.q_lower, &f.q_median, &f.q_upper});
  if (f.observed_lower.size() > 0)
    parts.insert(parts.end(), {&f.observed_lower, &f.observed_upper});
  if (f.observed_q_lower.size() > 0)
    parts.insert(parts.end(), {&f.observed_q_lower, &f.observed_q_upper});
  const std::string mark = observed_mark(f.variables);
  std::vector<std::string> names;
  const auto column = [&](const std::string& name) { names.push_back(name); };
  for (const auto& v : f.variables) {
    for (const char* part : {"_mean", "_sd", "_lower", "_upper"}) column(v + part);
    if (f.q_lower.size() > 0)
      for (const double p : {(1 - f.level) / 2, 0.5, (1 + f.level) / 2})
        column(quantile_name(v, p));
    if (f.observed_lower.size() > 0)
      for (const char* part : {"_lower", "_upper"}) column(v + mark + part);
    if (f.observed_q_lower.size() > 0)
      for (const double p : {(1 - f.level) / 2, (1 + f.level) / 2})
        column(quantile_name(v + mark, p));
  }
  column("alive");
  const bool taken = std::count(names.begin(), names.end(), f.time_name) > 0;
  std::string text = taken ? "t" : csv_cell(f.time_name);
  for (const auto& name : names) text += ',' + csv_cell(name);
  text += '\n';
  const std::vector<std::string> dates =
      f.calendar ? format_times(*f.calendar, f.times) : std::vector<std::string>{};
  for (std::size_t t = 0; t < f.times.size(); ++t) {
    if (f.calendar)
      text += dates[t];
    else
      append_number(text, f.times[t]);
    for (Eigen::Index i = 0; i < f.mean.cols(); ++i)
      for (const Matrix* part : parts) {
        text += ',';
        append_number(text, (*part)(static_cast<Eigen::Index>(t), i));
      }
    text += ',';
    append_number(text, f.alive[t]);
    text += '\n';
  }
  return text;
}

Forecast read_forecast(const std::filesystem::path& path, const TimeCount& count) {
  const Dataset table = read_observations(path, {.time_is_first = true, .time_count = count});
  const Trajectory& rows = table.trajectories.front();
  std::map<std::string, Eigen::Index> column;
  for (std::size_t c = 0; c < table.variables.size(); ++c)
    column[table.variables[c]] = static_cast<Eigen::Index>(c);

  Forecast f;
  f.times = rows.times;
  f.time_name = table.time_name;
  f.calendar = table.calendar;
  for (const auto& name : table.variables)
    if (name.ends_with("_mean") && column.contains(name.substr(0, name.size() - 5) + "_sd"))
      f.variables.push_back(name.substr(0, name.size() - 5));
  if (f.variables.empty() || table.trajectories.size() != 1)
    throw_data({"forecast file '" + path.string() + "'", "no columns such as x_mean and x_sd",
                "a file written by odecast forecast", "Give the forecast first, then the truth."});
  const auto n = static_cast<Eigen::Index>(f.variables.size());
  const auto fill = [&](Matrix& m, const std::function<std::string(const std::string&)>& name) {
    for (const auto& v : f.variables)
      if (!column.contains(name(v))) return false;
    m.resize(rows.rows(), n);
    for (Eigen::Index i = 0; i < n; ++i)
      m.col(i) = rows.states.col(column.at(name(f.variables[static_cast<std::size_t>(i)])));
    return true;
  };
  const auto suffix = [](const char* s) { return [s](const std::string& v) { return v + s; }; };
  fill(f.mean, suffix("_mean"));
  fill(f.sd, suffix("_sd"));
  fill(f.lower, suffix("_lower"));
  fill(f.upper, suffix("_upper"));
  const std::string mark = observed_mark(f.variables);
  fill(f.observed_lower, [&](const std::string& v) { return v + mark + "_lower"; });
  fill(f.observed_upper, [&](const std::string& v) { return v + mark + "_upper"; });
  bool level_known = false;
  const std::string stem = f.variables[0] + "_q";
  for (const auto& name : table.variables) {
    if (!name.starts_with(stem)) continue;
    const auto percent = parse_number(name.substr(stem.size()));
    if (!percent || !(*percent > 50 && *percent < 100)) continue;
    // The name has 12 digits of the percentage; so has the level.
    f.level = *parse_number(fmt::format("{:.10g}", 2 * *percent / 100 - 1));
    level_known = true;
    const auto at = [](double p) {
      return [p](const std::string& v) { return quantile_name(v, p); };
    };
    fill(f.q_lower, at((1 - f.level) / 2));
    fill(f.q_median, at(0.5));
    fill(f.q_upper, at((1 + f.level) / 2));
    const auto observed = [&](double p) {
      return [p, &mark](const std::string& v) { return quantile_name(v + mark, p); };
    };
    fill(f.observed_q_lower, observed((1 - f.level) / 2));
    fill(f.observed_q_upper, observed((1 + f.level) / 2));
  }
  if (f.lower.size() == 0 && f.q_lower.size() > 0) f.lower = f.q_lower, f.upper = f.q_upper;
  if (f.q_lower.size() > 0 && !is_sd_band(f)) f.bands = Bands::quantiles;
  if (f.lower.size() > 0 && !level_known) {
    Eigen::Index row = 0, i = 0;
    if (f.sd.maxCoeff(&row, &i) > 0) {
      const double c = (f.upper(row, i) - f.mean(row, i)) / f.sd(row, i);
      f.level = *parse_number(fmt::format("{:.9g}", std::erf(c / std::sqrt(2.0))));
    }
  }
  if (column.contains("alive")) {
    const auto alive = rows.states.col(column.at("alive"));
    f.alive.assign(alive.begin(), alive.end());
  }
  return f;
}

}  // namespace odecast
