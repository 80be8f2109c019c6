#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace odecast {

/// A moment, to the nanosecond: seconds since 1970-01-01 00:00 UTC. Of a clock without a zone: as
/// if it were UTC. No leap seconds.
struct Instant {
  std::int64_t seconds = 0;
  std::int32_t nanoseconds = 0;  ///< 0 to 999,999,999

  friend auto operator<=>(const Instant&, const Instant&) = default;
};

/// The same on the (proleptic) Gregorian calendar.
struct Civil {
  std::int64_t year = 1970;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0, nanosecond = 0;

  friend bool operator==(const Civil&, const Civil&) = default;
};
Instant instant_of(const Civil& civil);
Civil civil_of(const Instant& instant);
int days_in_month(std::int64_t year, int month);

/// What calendar times are counted in.
enum class TimeUnit {
  second,
  minute,
  hour,
  day,
  year,        ///< 365.25 days
  civil_year,  ///< a month is a twelfth, however long: 1949-07 is 1949.5
};
/// "s", "min", "h", "d", "y"; of a year of the calendar "y", too.
std::string_view unit_name(TimeUnit unit);
/// "seconds", "minutes", "hours", "days", "years"
std::string_view unit_words(TimeUnit unit);
/// Of unit_name, and "civil_y" for the years of the calendar; nothing for anything else.
std::optional<TimeUnit> unit_from_name(std::string_view name);
/// unit_name but for "civil_y": what unit_from_name gives back.
std::string_view unit_code(TimeUnit unit);

/// How much of a time its text says.
enum class TimeDetail { month, day, clock };

/// What numbers of a time axis mean: time since `origin` in `unit`; in civil years the year itself,
/// and the origin is kept for people.
struct Calendar {
  TimeUnit unit = TimeUnit::second;
  Instant origin = {};
  /// Minutes east of UTC in which times are written; nothing: they have no zone.
  std::optional<int> offset = {};
  TimeDetail detail = TimeDetail::clock;

  friend bool operator==(const Calendar&, const Calendar&) = default;
};

/// The number of a moment: whole units as integers, so that the result is the double nearest to the
/// true quotient but for its last bit. Civil years: year + (month - 1 + part of the month) / 12.
double to_number(const Calendar& calendar, const Instant& instant);
/// The moment of a number. A double of that size cannot tell moments apart that are closer than e =
/// 4 ε |number| unit; among those within e the roundest is taken (whole days, minutes, seconds,
/// milli-, micro-, nanoseconds after the origin), so that the text of a time gives back the text.
Instant to_instant(const Calendar& calendar, double number);

/// ISO 8601 with a blank between date and clock: 2024-03-01 06:00:00, as many digits for all as one
/// of them needs; dates alone (or months) where the calendar has no more and all are whole days
/// (months). The zone follows where there is one.
std::vector<std::string> format_times(const Calendar& calendar, std::span<const double> numbers);
/// One, for people: the seconds only where there are some, no zone.
std::string time_text(const Calendar& calendar, double number);
/// "UTC" or "UTC+01:00"; empty where times have no zone.
std::string zone_text(const Calendar& calendar);
/// "2024-03-01 06:00", or where times are numbers "t = 12.5", to so many digits.
std::string moment_text(const std::optional<Calendar>& calendar, double number, int digits = 6);
/// "12.5 hours", or where times are numbers "12.5".
std::string duration_text(const std::optional<Calendar>& calendar, double number, int digits = 4);

/// A usual spacing without the round-off of the times it is the difference of: whole months of
/// civil years, else the roundest time within 1e-9 of it.
double tidy_step(const Calendar& calendar, double step);

/// How times are written.
enum class TimeForm {
  text,         ///< ISO 8601, yyyy/mm/dd, dd.mm.yyyy, 1949-01, Mar 1 2024
  day_first,    ///< the same, and dd/mm/yyyy
  month_first,  ///< the same, and mm/dd/yyyy
  epoch_s,      ///< seconds since 1970-01-01 UTC
  epoch_ms,
  epoch_us,
  epoch_ns,
  excel,  ///< days since 1899-12-30
};
/// "dates", "epoch milliseconds"
std::string_view form_words(TimeForm form);
/// "times are dates from 2024-03-01 00:00; the unit is hours"
std::string in_words(const Calendar& calendar, TimeForm form = TimeForm::text);

struct WrittenTime {
  Instant instant;  ///< in UTC where there is an offset
  std::optional<int> offset = {};
  TimeDetail detail = TimeDetail::clock;
};
/// Reads a time. `fault`, where given, receives what is wrong: "day 30 of 2023-02".
std::optional<WrittenTime> parse_time(std::string_view text, TimeForm form,
                                      std::string* fault = nullptr);

/// The unit for moments with that usual spacing in seconds: the largest that it is not shorter
/// than, years of the calendar for a month and more.
TimeUnit unit_for(double spacing);
/// The median of the steps forward from one to the next, in seconds; 0 where there are none.
double usual_spacing(std::span<const Instant> instants);
/// A calendar that counts these from the first of them. `unit`: the one asked for; `year` is one of
/// the calendar where they are a month apart or more.
Calendar calendar_for(std::span<const Instant> instants, std::optional<TimeUnit> unit,
                      std::optional<int> offset, TimeDetail detail);

}  // namespace odecast
