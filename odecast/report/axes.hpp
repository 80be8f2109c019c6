#pragma once

#include <limits>
#include <string>
#include <vector>

#include "odecast/report/svg.hpp"

namespace odecast {

/// Larger magnitudes would overflow when a range is widened or subtracted.
constexpr double kLargestDrawn = 1e300;

/// What an axis spans; empty at first.
struct AxisRange {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();

  bool empty() const { return !(lo <= hi); }
  double span() const { return hi - lo; }
  /// What is not finite is left out.
  void add(double value);
  void add(const AxisRange& other);
};

/// Points of a curve.
std::size_t length(const Line& line);
std::size_t length(const Band& band);

/// What the points that can be drawn cover.
AxisRange data_x_range(const Panel& panel);
/// Of the axes, with air around the curves where they need it.
AxisRange x_range(const Panel& panel);
AxisRange y_range(const Panel& panel);

struct Ticks {
  std::vector<double> values;
  std::vector<std::string> labels;
};

/// The same of dates: whole years, months, days, hours, minutes, seconds at steps that people count
/// by. A label says what the one before does not: the day where it begins, else the clock. Nothing
/// for less than two seconds.
Ticks make_calendar_ticks(const AxisRange& range, int most, const Calendar& calendar);
/// At most `most` ticks, a step of 1, 2 or 5 times a power of ten apart.
Ticks make_ticks(const AxisRange& range, int most);
/// Of a range of exponents: whole powers of ten, at most `most`, or 1, 2, 5 of each where those are
/// few.
Ticks make_log_ticks(const AxisRange& range, int most);

}  // namespace odecast
