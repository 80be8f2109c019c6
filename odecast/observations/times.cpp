#include "odecast/observations/times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/rows.hpp"

namespace odecast {
namespace {

/// Seconds of 1990-01-01 and 2100-01-01.
constexpr double kEpochFrom = 631'152'000, kEpochUntil = 4'102'444'800;

std::optional<TimeForm> epoch_of(const std::vector<TimeCell>& cells,
                                 const std::vector<double>& numbers) {
  double scale = 1;
  for (const TimeForm form :
       {TimeForm::epoch_s, TimeForm::epoch_ms, TimeForm::epoch_us, TimeForm::epoch_ns}) {
    if (std::all_of(numbers.begin(), numbers.end(),
                    [&](double x) { return x >= kEpochFrom * scale && x < kEpochUntil * scale; })) {
      std::vector<Instant> instants;
      for (const TimeCell& cell : cells)
        if (const auto time = parse_time(cell.text, form)) instants.push_back(time->instant);
      return usual_spacing(instants) > 0 ? std::optional(form) : std::nullopt;
    }
    scale *= 1000;
  }
  return std::nullopt;
}

[[noreturn]] void two_readings(const std::string& where, std::string_view cell) {
  const auto reading = [&](TimeForm form) {
    const auto time = parse_time(cell, form);
    return time ? time_text({.origin = time->instant, .detail = TimeDetail::day}, 0) : "";
  };
  throw_data(
      {where,
       fmt::format("{}, which reads as {} with the day first and as {} with the month first",
                   shown(cell), reading(TimeForm::day_first), reading(TimeForm::month_first)),
       "dates that can be read in one way only",
       "Say which comes first: `time_format=dmy` or `time_format=mdy`.",
       "",
       {"Write dates as 2024-03-31."}});
}

/// How the cells are written; nothing for numbers.
std::optional<TimeForm> form_of(const std::vector<TimeCell>& cells, const std::string& source,
                                const std::string& column, TimeFormat asked) {
  switch (asked) {
    case TimeFormat::number: return std::nullopt;
    case TimeFormat::day_first: return TimeForm::day_first;
    case TimeFormat::month_first: return TimeForm::month_first;
    case TimeFormat::excel: return TimeForm::excel;
    case TimeFormat::found: break;
  }
  std::vector<double> numbers;
  std::size_t text = 0, day_first = 0, month_first = 0;
  const TimeCell* two = nullptr;  // the first that is read in two ways
  for (const TimeCell& cell : cells) {
    if (const auto number = parse_number(cell.text)) {
      numbers.push_back(*number);
      continue;
    }
    const bool a = parse_time(cell.text, TimeForm::day_first).has_value(),
               b = parse_time(cell.text, TimeForm::month_first).has_value(),
               plain = parse_time(cell.text, TimeForm::text).has_value();
    text += plain;
    day_first += a;
    month_first += b;
    if (a && b && !plain && !two) two = &cell;
  }
  if (std::max(day_first, month_first) > numbers.size()) {
    if (text == day_first && text == month_first) return TimeForm::text;
    if (day_first != month_first)
      return day_first > month_first ? TimeForm::day_first : TimeForm::month_first;
    two_readings(fmt::format("{}, line {}, column {}", source, two->line, printable(column, 80)),
                 two->text);
  }
  if (numbers.size() < cells.size()) return std::nullopt;
  const std::string name = lower_case(column);
  if ((name.find("excel") != name.npos || name.find("serial") != name.npos) &&
      std::all_of(numbers.begin(), numbers.end(), [](double x) { return x >= 1 && x < 2'958'466; }))
    return TimeForm::excel;
  return epoch_of(cells, numbers);
}

TimeColumn counted(TimeForm form, const std::vector<Instant>& instants, TimeDetail detail,
                   std::optional<int> offset, const std::string& where,
                   const ReadOptions& options) {
  TimeColumn times{.form = form, .zoned = offset.has_value()};
  if (const auto* given = std::get_if<Calendar>(&options.time_count)) {
    if (offset && !given->offset)
      throw_data({where, fmt::format("times with a zone ({})", form_words(form)),
                  "times without one, as those before them and of the model",
                  "Write both in the same way, with a zone or without."});
    times.calendar = *given;
  } else {
    const auto* unit = std::get_if<TimeUnit>(&options.time_count);
    times.calendar =
        calendar_for(instants, unit ? std::optional(*unit) : std::nullopt, offset, detail);
  }
  return times;
}

}  // namespace

bool is_date(std::string_view cell) {
  return parse_time(cell, TimeForm::day_first) || parse_time(cell, TimeForm::month_first);
}

std::optional<double> TimeColumn::number(std::string_view cell, std::string* fault) const {
  const auto time = parse_time(cell, form, fault);
  if (!time) return std::nullopt;
  if (time->offset.has_value() != zoned && time->detail == TimeDetail::clock) {
    if (fault)
      *fault = zoned ? "no zone such as Z or +01:00, where the first time has one"
                     : "a zone, where the first time has none";
    return std::nullopt;
  }
  Instant instant = time->instant;
  if (!zoned && calendar.offset) instant.seconds -= 60 * *calendar.offset;
  return to_number(calendar, instant);
}

std::optional<TimeColumn> time_column_of(const std::vector<TimeCell>& cells,
                                         const std::string& source, const std::string& column,
                                         const ReadOptions& options) {
  const auto form = form_of(cells, source, column, options.time_format);
  if (!form) return std::nullopt;
  std::vector<Instant> instants;
  TimeDetail detail = TimeDetail::month;
  std::optional<int> offset;
  for (const TimeCell& cell : cells) {
    const auto time = parse_time(cell.text, *form);
    if (!time) continue;
    if (instants.empty()) offset = time->offset;
    instants.push_back(time->instant);
    detail = std::max(detail, time->detail);
  }
  if (instants.empty()) detail = TimeDetail::clock;
  if (*form == TimeForm::excel &&
      std::all_of(instants.begin(), instants.end(),
                  [](const Instant& i) { return i.seconds % 86'400 == 0 && i.nanoseconds == 0; }))
    detail = TimeDetail::day;
  return counted(*form, instants, detail, offset, source + ", column " + printable(column, 80),
                 options);
}

TimeColumn time_column_of(const std::vector<Instant>& instants, bool zoned,
                          const std::string& source, const ReadOptions& options) {
  const bool days = std::all_of(instants.begin(), instants.end(), [](const Instant& i) {
    return i.seconds % 86'400 == 0 && i.nanoseconds == 0;
  });
  return counted(TimeForm::text, instants, days ? TimeDetail::day : TimeDetail::clock,
                 zoned ? std::optional(0) : std::nullopt, source, options);
}

Dataset counted_as(Dataset data, const std::optional<Calendar>& calendar) {
  if (data.calendar == calendar) return data;
  if (!data.calendar || !calendar)
    throw_data({data.source, data.calendar ? "times that are dates" : "times that are numbers",
                calendar ? "dates, as the model has them" : "numbers, as the model has them",
                "Give the times in the same way."});
  if (data.calendar->offset && !calendar->offset)
    throw_data({data.source, "times with a zone", "times without one, as the model has them",
                "Write both in the same way, with a zone or without."});
  const std::int64_t shift = data.calendar->offset ? 0 : -60 * calendar->offset.value_or(0);
  for (Trajectory& t : data.trajectories)
    for (double& time : t.times) {
      Instant instant = to_instant(*data.calendar, time);
      instant.seconds += shift;
      time = to_number(*calendar, instant);
    }
  data.calendar = calendar;
  return data;
}

std::string in_words(const TimeColumn& times) {
  const bool epoch = times.form >= TimeForm::epoch_s && times.form <= TimeForm::epoch_ns;
  std::string text = in_words(times.calendar, times.form);
  text[0] = 'T';
  return text + ": `time_unit` chooses another" +
         (epoch ? ", `time_format=number` leaves the numbers as they are" : "");
}

}  // namespace odecast
