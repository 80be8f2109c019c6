#include "odecast/report/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <optional>

namespace odecast {
namespace {

AxisRange widened(const AxisRange& range, double by) { return {range.lo - by, range.hi + by}; }

/// A range that can be drawn: not empty, and not so narrow that only rounding errors would show.
AxisRange drawable(const AxisRange& range) {
  if (range.empty()) return {0, 1};
  const double size = std::max(std::abs(range.lo), std::abs(range.hi));
  if (range.span() > 1e-10 * size && range.span() > 1e-290) return range;
  return widened(range, size > 1e-280 ? 0.1 * size : 1.0);
}

/// Text of digits × 10^exponent.
std::string tick_label(std::int64_t digits, int exponent, bool scientific) {
  std::string text = std::to_string(std::abs(digits));
  if (!scientific) {
    const std::size_t decimals = static_cast<std::size_t>(std::max(0, -exponent));
    if (digits != 0) text.append(static_cast<std::size_t>(std::max(0, exponent)), '0');
    if (text.size() <= decimals) text.insert(0, decimals + 1 - text.size(), '0');
    if (decimals > 0) text.insert(text.size() - decimals, ".");
  } else if (digits != 0) {
    exponent += static_cast<int>(text.size()) - 1;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.size() > 1) text.insert(1, ".");
    text += exponent < 0 ? "e\u2212" : "e";
    text += std::to_string(std::abs(exponent));
  }
  return (digits < 0 ? "\u2212" : "") + text;
}

}  // namespace

void AxisRange::add(double value) {
  if (!std::isfinite(value)) return;
  value = std::clamp(value, -kLargestDrawn, kLargestDrawn);
  lo = std::min(lo, value);
  hi = std::max(hi, value);
}

void AxisRange::add(const AxisRange& other) {
  lo = std::min(lo, other.lo);
  hi = std::max(hi, other.hi);
}

std::size_t length(const Line& line) {
  assert(line.x.size() == line.y.size());
  return std::min(line.x.size(), line.y.size());
}

std::size_t length(const Band& band) {
  assert(band.x.size() == band.lower.size() && band.x.size() == band.upper.size());
  return std::min({band.x.size(), band.lower.size(), band.upper.size()});
}

AxisRange data_x_range(const Panel& panel) {
  AxisRange range;
  for (const Line& line : panel.lines)
    for (std::size_t i = 0; i < length(line); ++i)
      if (std::isfinite(line.y[i])) range.add(line.x[i]);
  for (const Band& band : panel.bands)
    for (std::size_t i = 0; i < length(band); ++i)
      if (!std::isnan(band.lower[i]) && !std::isnan(band.upper[i])) range.add(band.x[i]);
  for (const Bars& bars : panel.bars)
    for (const double edge : bars.edges) range.add(edge);
  return range;
}

AxisRange x_range(const Panel& panel) {
  const AxisRange range = drawable(data_x_range(panel));
  // Time runs from edge to edge; a curve in the plane needs some air around it.
  const bool forward = std::all_of(panel.lines.begin(), panel.lines.end(), [](const Line& line) {
    return !line.points && std::is_sorted(line.x.begin(), line.x.end());
  });
  return forward ? range : widened(range, 0.05 * range.span());
}

AxisRange y_range(const Panel& panel) {
  if (panel.y_range) {
    AxisRange given;
    given.add(panel.y_range->first);
    given.add(panel.y_range->second);
    return drawable(given);
  }
  AxisRange lines;
  for (const Line& line : panel.lines)
    for (std::size_t i = 0; i < length(line); ++i)
      if (std::isfinite(line.x[i])) lines.add(line.y[i]);
  for (const Bars& bars : panel.bars) {
    lines.add(0.0);
    for (const double height : bars.heights) lines.add(height);
  }
  AxisRange all = lines;
  for (const Band& band : panel.bands) {
    AxisRange with_band = lines;
    for (std::size_t i = 0; i < length(band); ++i)
      if (std::isfinite(band.x[i])) {
        with_band.add(band.lower[i]);
        with_band.add(band.upper[i]);
      }
    const bool flattens = lines.span() > 0 && with_band.span() > 4 * lines.span();
    all.add(flattens ? widened(lines, 0.5 * lines.span()) : with_band);
  }
  all = drawable(all);
  const bool on_zero = !panel.bars.empty() && all.lo == 0;
  return {on_zero ? 0 : all.lo - 0.05 * all.span(), all.hi + 0.05 * all.span()};
}

Ticks make_ticks(const AxisRange& range, int most) {
  static constexpr std::array<int, 3> kSteps = {1, 2, 5};
  int exponent = static_cast<int>(std::floor(std::log10(range.span() / most))) - 1;
  std::int64_t first = 0, last = 0;
  int step = 0;
  double power = 1;
  // Quotients are at most 1e11 here, because drawable() refuses narrower ranges.
  for (std::size_t i = 0;; ++i) {
    step = kSteps[i % 3];
    if (i > 0 && i % 3 == 0) ++exponent;
    power = std::pow(10.0, exponent);
    const double slack = 1e-9 * range.span();
    first = static_cast<std::int64_t>(std::ceil((range.lo - slack) / (step * power)));
    last = static_cast<std::int64_t>(std::floor((range.hi + slack) / (step * power)));
    if (last - first < most) break;
  }
  const double largest = std::max(std::abs(range.lo), std::abs(range.hi));
  const bool scientific = largest >= 1e6 || largest < 1e-3;
  Ticks ticks;
  for (std::int64_t k = first; k <= last; ++k) {
    ticks.values.push_back(static_cast<double>(k * step) * power);
    ticks.labels.push_back(tick_label(k * step, exponent, scientific));
  }
  return ticks;
}

Ticks make_log_ticks(const AxisRange& range, int most) {
  const auto first = static_cast<std::int64_t>(std::ceil(range.lo - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(range.hi + 1e-9));
  Ticks ticks;
  if (last - first < 1) {
    for (std::int64_t decade = first - 1; decade <= last; ++decade)
      for (const int digit : {1, 2, 5}) {
        const double at = static_cast<double>(decade) + std::log10(digit);
        if (at < range.lo || at > range.hi) continue;
        ticks.values.push_back(at);
        ticks.labels.push_back(
            tick_label(digit, static_cast<int>(decade), decade < -3 || decade >= 6));
      }
    if (ticks.values.size() < 2) {  // so narrow that the axis is nearly linear
      ticks = make_ticks({std::pow(10.0, range.lo), std::pow(10.0, range.hi)}, most);
      for (double& value : ticks.values) value = std::log10(value);
    }
    return ticks;
  }
  std::int64_t every = 1;
  while ((last - first) / every >= most) ++every;
  const bool scientific = first < -3 || last >= 6;
  for (std::int64_t k = first; k <= last; k += every) {
    ticks.values.push_back(static_cast<double>(k));
    ticks.labels.push_back(tick_label(1, static_cast<int>(k), scientific));
  }
  return ticks;
}

namespace {

/// A step of a calendar axis: so many months, or so many seconds.
struct CalendarStep {
  int months = 0;
  std::int64_t seconds = 0;
};
constexpr std::array<CalendarStep, 31> kCalendarSteps = {{
    {0, 1},     {0, 2},     {0, 5},     {0, 10},    {0, 15},     {0, 30},     {0, 60},
    {0, 120},   {0, 300},   {0, 600},   {0, 900},   {0, 1800},   {0, 3600},   {0, 7200},
    {0, 10800}, {0, 21600}, {0, 43200}, {0, 86400}, {0, 172800}, {0, 604800}, {0, 1209600},
    {1, 0},     {2, 0},     {3, 0},     {6, 0},     {12, 0},     {24, 0},     {60, 0},
    {120, 0},   {240, 0},   {600, 0},
}};
constexpr std::array<const char*, 12> kMonthNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// The clock of the calendar: as if its zone were UTC.
Instant on_clock(const Calendar& calendar, double number) {
  Instant instant = to_instant(calendar, number);
  instant.seconds += 60 * calendar.offset.value_or(0);
  return instant;
}

double number_on_clock(const Calendar& calendar, Instant instant) {
  instant.seconds -= 60 * calendar.offset.value_or(0);
  return to_number(calendar, instant);
}

std::int64_t ceil_to(std::int64_t value, std::int64_t step) {
  const std::int64_t rest = ((value % step) + step) % step;
  return rest == 0 ? value : value + step - rest;
}

}  // namespace

Ticks make_calendar_ticks(const AxisRange& range, int most, const Calendar& calendar) {
  const Instant lo = on_clock(calendar, range.lo), hi = on_clock(calendar, range.hi);
  const Civil first = civil_of(lo), last = civil_of(hi);
  const std::int64_t begin = lo.seconds + (lo.nanoseconds > 0 ? 1 : 0), end = hi.seconds;
  const std::int64_t first_month =
      12 * first.year + first.month - 1 + (instant_of({first.year, first.month, 1}) < lo ? 1 : 0);
  const std::int64_t last_month = 12 * last.year + last.month - 1;
  constexpr std::int64_t kMonday = 4 * 86'400;  // 1970-01-05, where weeks begin
  std::vector<Instant> ticks;
  int months = 0;
  std::int64_t seconds = 0;
  const auto make = [&](const CalendarStep& step) {
    ticks.clear();
    months = step.months;
    seconds = step.seconds;
    if (months > 0) {
      if ((last_month - first_month) / months >= most) return false;
      for (std::int64_t m = ceil_to(first_month, months); m <= last_month; m += months) {
        const std::int64_t year = (m - ((m % 12) + 12) % 12) / 12;
        ticks.push_back(instant_of({year, static_cast<int>(m - 12 * year) + 1, 1}));
      }
    } else {
      if ((end - begin) / seconds >= most) return false;
      const std::int64_t from = seconds % 604'800 == 0 ? kMonday : 0;
      for (std::int64_t s = from + ceil_to(begin - from, seconds); s <= end; s += seconds)
        ticks.push_back({s, 0});
    }
    return static_cast<int>(ticks.size()) <= most;
  };
  bool found = false;
  for (const CalendarStep& step : kCalendarSteps)
    if ((found = make(step))) break;
  for (int years = 100; !found && years <= 10'000'000; years *= 10)
    for (const int lead : {1, 2, 5}) found = found || make({12 * years * lead, 0});
  if (ticks.size() < 2) return {};  // less than two seconds

  Ticks result;
  std::optional<Civil> before;
  for (const Instant& tick : ticks) {
    const Civil c = civil_of(tick);
    std::string label;
    const bool new_year = !before || before->year != c.year;
    if (months > 0 && months % 12 == 0)
      label = std::to_string(c.year);
    else if (months > 0)
      label = std::string(kMonthNames[static_cast<std::size_t>(c.month - 1)]) +
              (new_year ? " " + std::to_string(c.year) : "");
    else if (!before || before->day != c.day || before->month != c.month || new_year)
      label = fmt::format("{}{} {}", new_year ? std::to_string(c.year) + " " : "",
                          kMonthNames[static_cast<std::size_t>(c.month - 1)], c.day) +
              (seconds < 86'400 && (c.hour > 0 || c.minute > 0 || c.second > 0)
                   ? fmt::format(" {:02}:{:02}{}", c.hour, c.minute,
                                 seconds % 60 ? fmt::format(":{:02}", c.second) : "")
                   : "");
    else
      label = fmt::format("{:02}:{:02}{}", c.hour, c.minute,
                          seconds % 60 ? fmt::format(":{:02}", c.second) : "");
    before = c;
    result.values.push_back(number_on_clock(calendar, tick));
    result.labels.push_back(std::move(label));
  }
  return result;
}

}  // namespace odecast
