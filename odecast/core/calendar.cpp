#include "odecast/core/calendar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"

namespace odecast {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int32_t kNano = 1'000'000'000;
constexpr double kYear = 365.25 * kDay;
constexpr double kMonthlySpacing = 28.5 * kDay;  // shorter than all months but one
/// Farther from the origin than this (three hundred million years) no date is given.
constexpr double kFarthest = 1e16;

bool is_leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

/// Days since 1970-01-01. Years begin in March here, so that the leap day is their last; they
/// repeat after 400, which have 146097 days.
std::int64_t days_of(std::int64_t year, int month, int day) {
  const std::int64_t y = month > 2 ? year : year - 1, era = floor_divide(y, 400),
                     of_era = y - 400 * era, m = (month + 9) % 12,
                     of_year = (153 * m + 2) / 5 + day - 1;
  return 146'097 * era + 365 * of_era + of_era / 4 - of_era / 100 + of_year - 719'468;
}

double seconds_of(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::second: return 1;
    case TimeUnit::minute: return 60;
    case TimeUnit::hour: return 3600;
    case TimeUnit::day: return kDay;
    default: return kYear;
  }
}

Instant plus(Instant instant, std::int64_t seconds, std::int64_t nanoseconds) {
  const std::int64_t nanos = instant.nanoseconds + nanoseconds, carry = floor_divide(nanos, kNano);
  return {instant.seconds + seconds + carry, static_cast<std::int32_t>(nanos - carry * kNano)};
}

/// Seconds to nanoseconds: the roundest number within `off` of them.
std::int64_t rounded(double seconds, double off) {
  for (const double grain : {static_cast<double>(kDay), 60.0, 1.0, 1e-3, 1e-6}) {
    const double whole = std::round(seconds / grain);
    if (std::abs(seconds - whole * grain) <= off)
      return std::llround(whole) * std::llround(grain * kNano);
  }
  return std::llround(seconds * kNano);
}

Civil local(const Calendar& calendar, const Instant& instant) {
  return civil_of(plus(instant, 60 * calendar.offset.value_or(0), 0));
}

// ---- text ------------------------------------------------------------------------------------

/// At least so many digits, zeros before them.
std::string padded(std::int64_t number, std::size_t digits) {
  const std::string text = std::to_string(number);
  return std::string(digits > text.size() ? digits - text.size() : 0, '0') + text;
}

/// As printf's %.*g, without a locale.
std::string general(double number, int digits) {
  std::array<char, 64> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number,
                                 std::chars_format::general, std::min(digits, 17))
                       .ptr;
  return {text.data(), end};
}

std::string date_text(const Civil& c) {
  return (c.year < 0       ? "-"
          : c.year > 9'999 ? "+"
                           : "") +
         padded(std::abs(c.year), 4) + '-' + padded(c.month, 2) + '-' + padded(c.day, 2);
}

/// "+01:00", with that minus.
std::string offset_text(int minutes, const char* minus) {
  return (minutes < 0 ? minus : "+") + padded(std::abs(minutes) / 60, 2) + ':' +
         padded(std::abs(minutes) % 60, 2);
}

bool at_midnight(const Civil& c) {
  return c.hour == 0 && c.minute == 0 && c.second == 0 && c.nanosecond == 0;
}

/// How many digits of a second: 0, 3, 6 or 9.
int digits_of(const Civil& c) {
  return c.nanosecond == 0               ? 0
         : c.nanosecond % 1'000'000 == 0 ? 3
         : c.nanosecond % 1'000 == 0     ? 6
                                         : 9;
}

std::string clock_text(const Civil& c, int digits) {
  std::string text = padded(c.hour, 2) + ':' + padded(c.minute, 2) + ':' + padded(c.second, 2);
  if (digits > 0) text += '.' + padded(c.nanosecond, 9).substr(0, static_cast<std::size_t>(digits));
  return text;
}

// ---- reading ---------------------------------------------------------------------------------

/// A text from left to right.
struct Scanner {
  std::string_view left;

  bool done() const { return left.empty(); }
  char next() const { return left.empty() ? '\0' : left.front(); }
  bool eat(char c) {
    if (next() != c) return false;
    left.remove_prefix(1);
    return true;
  }
  bool blanks() {
    const bool some = next() == ' ';
    while (eat(' ')) {
    }
    return some;
  }
  /// A whole number of `least` to `most` digits; -1 for anything else.
  std::int64_t number(std::size_t least, std::size_t most) {
    std::size_t n = 0;
    std::int64_t value = 0;
    while (n < left.size() && left[n] >= '0' && left[n] <= '9')
      if (++n <= 18) value = 10 * value + (left[n - 1] - '0');
    if (n < least || n > most) return -1;
    left.remove_prefix(n);
    return value;
  }
  std::size_t digits() const {
    std::size_t n = 0;
    while (n < left.size() && left[n] >= '0' && left[n] <= '9') ++n;
    return n;
  }
  /// 1 to 12 for the English name of a month or its first three letters; 0.
  int month() {
    static constexpr std::array<std::string_view, 12> kMonths = {
        "january", "february", "march",     "april",   "may",      "june",
        "july",    "august",   "september", "october", "november", "december"};
    std::string word;
    while (word.size() < left.size() && word.size() < 10) {
      const char c = static_cast<char>(left[word.size()] | 0x20);
      if (c < 'a' || c > 'z') break;
      word += c;
    }
    for (std::size_t m = 0; m < kMonths.size(); ++m)
      if (word.size() >= 3 && (word == kMonths[m] || word == kMonths[m].substr(0, 3))) {
        left.remove_prefix(word.size());
        return static_cast<int>(m) + 1;
      }
    return 0;
  }
};

struct Date {
  std::int64_t year = -1, month = -1, day = -1;
  TimeDetail detail = TimeDetail::day;
};

/// A date at the beginning; a negative part where there is none.
Date read_date(Scanner& s, TimeForm form) {
  const std::size_t first = s.digits();
  Date d;
  if (first == 4) {  // 2024-03-01, 2024/03/01, 2024-03
    d.year = s.number(4, 4);
    const char mark = s.next();
    if (mark != '-' && mark != '/') return {};
    s.eat(mark);
    d.month = s.number(1, 2);
    if (mark == '-' && s.done()) {
      d.day = 1;
      d.detail = TimeDetail::month;
    } else if (s.eat(mark)) {
      d.day = s.number(1, 2);
    }
    return d;
  }
  if (first == 8 && s.left.size() > 8 && s.left[8] == 'T') {  // 20240301T060000
    const std::int64_t all = s.number(8, 8);
    return {all / 10'000, all / 100 % 100, all % 100};
  }
  if (first == 0) {  // Mar 1 2024, March 2024
    d.month = s.month();
    if (d.month == 0) return {};
    while (s.eat(' ') || s.eat('-') || s.eat('.')) {
    }
    if (s.digits() == 4) {
      d.year = s.number(4, 4);
      d.day = 1;
      d.detail = TimeDetail::month;
      return d;
    }
    d.day = s.number(1, 2);
    while (s.eat(' ') || s.eat(',')) {
    }
    d.year = s.number(4, 4);
    return d;
  }
  const std::int64_t a = s.number(1, 2);
  const char mark = s.next();
  if (a < 0 || (mark != '.' && mark != '/' && mark != '-' && mark != ' ')) return {};
  s.eat(mark);
  if (s.digits() == 0) {  // 1 Mar 2024, 01-Mar-2024
    d.day = a;
    d.month = s.month();
    if (d.month == 0 || !s.eat(mark)) return {};
    d.year = s.number(4, 4);
    return d;
  }
  if (mark == ' ' || (mark != '.' && form == TimeForm::text)) return {};
  const std::int64_t b = s.number(1, 2);
  if (!s.eat(mark)) return {};
  const bool day_first = mark == '.' || form == TimeForm::day_first;
  return {s.number(4, 4), day_first ? b : a, day_first ? a : b};
}

std::optional<WrittenTime> read_text(std::string_view text, TimeForm form, std::string& fault) {
  Scanner s{text};
  const Date date = read_date(s, form);
  if (date.year < 0 || date.month < 0 || date.day < 0) {
    fault = "no date";
    return std::nullopt;
  }
  Civil c{date.year, static_cast<int>(date.month), static_cast<int>(date.day)};
  if (c.month < 1 || c.month > 12) {
    fault = "month " + std::to_string(c.month);
    return std::nullopt;
  }
  if (c.day < 1 || c.day > days_in_month(c.year, c.month)) {
    fault = "day " + std::to_string(c.day) + " of " + padded(c.year, 4) + '-' + padded(c.month, 2);
    return std::nullopt;
  }
  WrittenTime time{.instant = {}, .detail = date.detail};
  if (!s.done()) {
    time.detail = TimeDetail::clock;
    if (!s.eat('T') && !s.eat('t') && !s.blanks()) {
      fault = "something after the date that is no clock";
      return std::nullopt;
    }
    fault = "no clock such as 06:00 or 06:00:00.5";
    const bool compact = s.digits() >= 4;  // 060000
    const auto pair = [&](bool mark) -> std::int64_t {
      if (mark && !compact && !s.eat(':')) return -1;
      if (compact) {
        Scanner two{s.left.substr(0, 2)};
        s.left.remove_prefix(std::min<std::size_t>(2, s.left.size()));
        return two.number(2, 2);
      }
      return s.number(mark ? 2 : 1, 2);
    };
    const auto more = [&] { return compact ? s.digits() > 0 : s.next() == ':'; };
    c.hour = static_cast<int>(pair(false));
    if (more()) c.minute = static_cast<int>(pair(true));
    if (c.minute >= 0 && more()) {
      c.second = static_cast<int>(pair(true));
      if (c.second >= 0 && (s.eat('.') || s.eat(','))) {
        const std::size_t digits = s.digits();
        std::int64_t part = s.number(1, 9);
        if (part < 0) {
          if (digits > 9) fault = std::to_string(digits) + " digits of a second, more than nine";
          return std::nullopt;
        }
        for (std::size_t k = digits; k < 9; ++k) part *= 10;
        c.nanosecond = static_cast<int>(part);
      }
    }
    if (c.hour < 0 || c.minute < 0 || c.second < 0) return std::nullopt;
    const bool blank = s.blanks();
    if (const char half = static_cast<char>(s.next() | 0x20);
        (half == 'a' || half == 'p') && s.left.size() > 1 && (s.left[1] | 0x20) == 'm') {
      s.left.remove_prefix(2);
      if (c.hour < 1 || c.hour > 12) {
        fault = "hour " + std::to_string(c.hour) + " of a clock of twelve";
        return std::nullopt;
      }
      c.hour = c.hour % 12 + (half == 'p' ? 12 : 0);
      s.blanks();
    }
    const bool end_of_day = c.hour == 24 && c.minute == 0 && c.second == 0 && c.nanosecond == 0;
    if ((c.hour > 23 && !end_of_day) || c.minute > 59 || c.second > 59) {
      fault = c.hour > 23     ? "hour " + std::to_string(c.hour)
              : c.minute > 59 ? "minute " + std::to_string(c.minute)
                              : "second " + std::to_string(c.second);
      return std::nullopt;
    }
    fault = "something after the clock that is no zone such as Z or +01:00";
    if (s.eat('Z') || s.eat('z')) {
      time.offset = 0;
    } else if (s.left == "UTC" || s.left == "GMT") {
      s.left = {};
      time.offset = 0;
    } else if (s.next() == '+' || (s.next() == '-' && !blank)) {
      const int sign = s.eat('-') ? -1 : 1;
      if (sign > 0) s.eat('+');
      std::int64_t hours = 0, minutes = 0;
      if (s.digits() == 4) {
        const std::int64_t both = s.number(4, 4);
        hours = both / 100;
        minutes = both % 100;
      } else {
        hours = s.number(2, 2);
        if (s.eat(':')) minutes = s.number(2, 2);
      }
      if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
      time.offset = sign * static_cast<int>(60 * hours + minutes);
    }
    if (!s.done()) return std::nullopt;
  }
  time.instant = plus(instant_of(c), -60 * time.offset.value_or(0), 0);
  return time;
}

/// A decimal number of 10^-power seconds, digit by digit.
std::optional<Instant> read_epoch(std::string_view text, int power) {
  Scanner s{text};
  const bool negative = s.eat('-');
  if (!negative) s.eat('+');
  std::int64_t scale = 1;
  for (int k = 0; k < power; ++k) scale *= 10;
  const bool plain = s.digits() > 0 && s.digits() <= 19 && text.find_first_of("eE") == text.npos;
  std::uint64_t whole = 0;
  if (plain)
    while (s.next() >= '0' && s.next() <= '9') {
      whole = 10 * whole + static_cast<std::uint64_t>(s.next() - '0');
      s.left.remove_prefix(1);
    }
  if (!plain || (!s.done() && s.next() != '.' && s.next() != ',')) {  // 1.7e12
    const auto value = parse_number(text);
    if (!value || !(std::abs(*value) / static_cast<double>(scale) < kFarthest)) return std::nullopt;
    const double seconds = std::floor(*value / static_cast<double>(scale));
    return plus({static_cast<std::int64_t>(seconds), 0}, 0,
                std::llround((*value / static_cast<double>(scale) - seconds) * kNano));
  }
  if (!s.done()) s.left.remove_prefix(1);
  const std::size_t behind = s.digits();
  if (behind != s.left.size()) return std::nullopt;
  if (whole > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  const auto count = static_cast<std::int64_t>(whole);
  std::int64_t nanos = count % scale;
  int places = power;
  for (std::size_t k = 0; k < behind && places < 9; ++k, ++places)
    nanos = 10 * nanos + (s.left[k] - '0');
  for (; places < 9; ++places) nanos *= 10;
  const std::int64_t seconds = count / scale;
  if (static_cast<double>(seconds) > kFarthest) return std::nullopt;
  return negative ? plus({-seconds, 0}, 0, -nanos) : plus({seconds, 0}, 0, nanos);
}

}  // namespace

int days_in_month(std::int64_t year, int month) {
  return month == 2 ? (is_leap(year) ? 29 : 28)
                    : 30 + (month == 4 || month == 6 || month == 9 || month == 11 ? 0 : 1);
}

Instant instant_of(const Civil& c) {
  return {kDay * days_of(c.year, c.month, c.day) + 3600 * c.hour + 60 * c.minute + c.second,
          c.nanosecond};
}

Civil civil_of(const Instant& instant) {
  const std::int64_t days = floor_divide(instant.seconds, kDay),
                     rest = instant.seconds - kDay * days, z = days + 719'468,
                     era = floor_divide(z, 146'097), of_era = z - 146'097 * era,
                     year_of_era =
                         (of_era - of_era / 1'460 + of_era / 36'524 - of_era / 146'096) / 365,
                     of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100),
                     m = (5 * of_year + 2) / 153;
  Civil c;
  c.day = static_cast<int>(of_year - (153 * m + 2) / 5 + 1);
  c.month = static_cast<int>(m < 10 ? m + 3 : m - 9);
  c.year = year_of_era + 400 * era + (c.month <= 2 ? 1 : 0);
  c.hour = static_cast<int>(rest / 3600);
  c.minute = static_cast<int>(rest / 60 % 60);
  c.second = static_cast<int>(rest % 60);
  c.nanosecond = instant.nanoseconds;
  return c;
}

std::string_view unit_code(TimeUnit unit) {
  static constexpr std::array<std::string_view, 6> kCodes = {"s", "min", "h", "d", "y", "civil_y"};
  return kCodes[static_cast<std::size_t>(unit)];
}

std::string_view unit_name(TimeUnit unit) {
  return unit == TimeUnit::civil_year ? "y" : unit_code(unit);
}

std::string_view unit_words(TimeUnit unit) {
  static constexpr std::array<std::string_view, 6> kWords = {"seconds", "minutes", "hours",
                                                             "days",    "years",   "years"};
  return kWords[static_cast<std::size_t>(unit)];
}

std::optional<TimeUnit> unit_from_name(std::string_view name) {
  for (const TimeUnit unit : {TimeUnit::second, TimeUnit::minute, TimeUnit::hour, TimeUnit::day,
                              TimeUnit::year, TimeUnit::civil_year})
    if (unit_code(unit) == name) return unit;
  return std::nullopt;
}

double to_number(const Calendar& calendar, const Instant& instant) {
  if (calendar.unit == TimeUnit::civil_year) {
    const Civil c = local(calendar, instant);
    const double part = ((c.day - 1) * static_cast<double>(kDay) + 3600 * c.hour + 60 * c.minute +
                         c.second + c.nanosecond / static_cast<double>(kNano)) /
                        (static_cast<double>(kDay) * days_in_month(c.year, c.month));
    return (static_cast<double>(12 * c.year + c.month - 1) + part) / 12;
  }
  const auto unit = static_cast<std::int64_t>(seconds_of(calendar.unit));
  const std::int64_t seconds = instant.seconds - calendar.origin.seconds;
  const double nanos = instant.nanoseconds - calendar.origin.nanoseconds;
  return static_cast<double>(seconds / unit) +
         (static_cast<double>(seconds % unit) + nanos / kNano) / static_cast<double>(unit);
}

Instant to_instant(const Calendar& calendar, double number) {
  const double unit = seconds_of(calendar.unit);
  number = std::isnan(number) ? 0 : std::clamp(number, -kFarthest / unit, kFarthest / unit);
  const double off = 4 * std::numeric_limits<double>::epsilon() * std::abs(number) * unit;
  if (calendar.unit != TimeUnit::civil_year) {
    const double whole = std::floor(number);
    const std::int64_t nanos = rounded((number - whole) * unit, off);
    return plus(calendar.origin, static_cast<std::int64_t>(whole) * static_cast<std::int64_t>(unit),
                nanos);
  }
  double months = std::floor(12 * number);
  double part = 12 * number - months;
  const double near = 12 * off / kYear;
  if (part > 1 - near) ++months, part = 0;
  const auto all = static_cast<std::int64_t>(months);
  const std::int64_t year = floor_divide(all, 12);
  const int month = static_cast<int>(all - 12 * year) + 1;
  const Instant begin = instant_of({year, month, 1});
  const double length = static_cast<double>(kDay) * days_in_month(year, month);
  return plus(begin, -60 * calendar.offset.value_or(0), rounded(part * length, off));
}

std::vector<std::string> format_times(const Calendar& calendar, std::span<const double> numbers) {
  std::vector<Civil> times;
  bool months = calendar.detail == TimeDetail::month, days = calendar.detail != TimeDetail::clock;
  int digits = 0;
  for (const double number : numbers) {
    const Civil& c = times.emplace_back(local(calendar, to_instant(calendar, number)));
    days = days && at_midnight(c);
    months = months && at_midnight(c) && c.day == 1;
    digits = std::max(digits, digits_of(c));
  }
  const std::string zone = calendar.offset ? offset_text(*calendar.offset, "-") : "";
  std::vector<std::string> texts;
  for (const Civil& c : times) {
    std::string& text = texts.emplace_back(date_text(c));
    if (months) text.erase(text.size() - 3);
    if (!days) text += ' ' + clock_text(c, digits) + zone;
  }
  return texts;
}

std::string time_text(const Calendar& calendar, double number) {
  const Civil c = local(calendar, to_instant(calendar, number));
  std::string text = date_text(c);
  if (calendar.detail == TimeDetail::month && c.day == 1 && at_midnight(c))
    text.erase(text.size() - 3);
  else if (calendar.detail == TimeDetail::clock || !at_midnight(c)) {
    std::string clock = clock_text(c, digits_of(c));
    if (c.second == 0 && c.nanosecond == 0) clock.erase(5);
    text += ' ' + clock;
  }
  return text;
}

std::string moment_text(const std::optional<Calendar>& calendar, double number, int digits) {
  return calendar ? time_text(*calendar, number) : "t = " + general(number, digits);
}

std::string duration_text(const std::optional<Calendar>& calendar, double number, int digits) {
  return general(number, digits) + (calendar ? " " + std::string(unit_words(calendar->unit)) : "");
}

double tidy_step(const Calendar& calendar, double step) {
  if (calendar.unit == TimeUnit::civil_year) {
    const double months = std::round(12 * step);
    return months > 0 && std::abs(12 * step - months) < 1e-6 ? months / 12 : step;
  }
  const double unit = seconds_of(calendar.unit), seconds = step * unit;
  for (const double per_second : {1.0 / 60, 1.0, 1e3, 1e6, 1e9}) {
    const double whole = std::round(seconds * per_second);
    if (whole > 0 && std::abs(seconds * per_second - whole) <= std::min(1e-9 * whole, 1e-3))
      return whole / (unit * per_second);
  }
  return step;
}

std::string zone_text(const Calendar& calendar) {
  return !calendar.offset        ? ""
         : *calendar.offset == 0 ? "UTC"
                                 : "UTC" + offset_text(*calendar.offset, "−");
}

std::string in_words(const Calendar& calendar, TimeForm form) {
  const std::string zone = calendar.offset ? " " + zone_text(calendar) : "";
  return "times are " +
         std::string(calendar.detail == TimeDetail::month ? "months" : form_words(form)) +
         " from " + time_text(calendar, to_number(calendar, calendar.origin)) + zone +
         "; the unit is " + std::string(unit_words(calendar.unit));
}

std::string_view form_words(TimeForm form) {
  switch (form) {
    case TimeForm::epoch_s: return "epoch seconds";
    case TimeForm::epoch_ms: return "epoch milliseconds";
    case TimeForm::epoch_us: return "epoch microseconds";
    case TimeForm::epoch_ns: return "epoch nanoseconds";
    case TimeForm::excel: return "Excel's days";
    default: return "dates";
  }
}

std::optional<WrittenTime> parse_time(std::string_view text, TimeForm form, std::string* fault) {
  std::string why = "no time";
  std::optional<WrittenTime> time;
  if (form == TimeForm::text || form == TimeForm::day_first || form == TimeForm::month_first) {
    time = read_text(text, form, why);
  } else if (form == TimeForm::excel) {
    const auto days = parse_number(text);
    if (days && *days >= 1 && *days < 2'958'466) {  // 1900 to 9999
      const double whole = std::floor(*days);       // Excel itself counts milliseconds
      const auto millis = std::llround((*days - whole) * static_cast<double>(kDay) * 1000);
      time = WrittenTime{plus({kDay * (static_cast<std::int64_t>(whole) - 25'569), 0}, 0,
                              static_cast<std::int64_t>(millis) * 1'000'000)};
    } else {
      why = "no day of Excel, from 1 to 2958465";
    }
  } else {
    const int power = 3 * (static_cast<int>(form) - static_cast<int>(TimeForm::epoch_s));
    if (const auto instant = read_epoch(text, power)) time = WrittenTime{*instant, 0};
  }
  if (!time && fault) *fault = why;
  return time;
}

TimeUnit unit_for(double spacing) {
  constexpr double slack = 0.95;  // loggers are not exact
  return spacing >= kMonthlySpacing ? TimeUnit::civil_year
         : spacing >= slack * kDay  ? TimeUnit::day
         : spacing >= slack * 3600  ? TimeUnit::hour
         : spacing >= slack * 60    ? TimeUnit::minute
                                    : TimeUnit::second;
}

double usual_spacing(std::span<const Instant> instants) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < instants.size(); ++i) {
    const double step =
        static_cast<double>(instants[i].seconds - instants[i - 1].seconds) +
        static_cast<double>(instants[i].nanoseconds - instants[i - 1].nanoseconds) / kNano;
    if (step > 0) steps.push_back(step);
  }
  if (steps.empty()) return 0;
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  return *middle;
}

Calendar calendar_for(std::span<const Instant> instants, std::optional<TimeUnit> unit,
                      std::optional<int> offset, TimeDetail detail) {
  Calendar calendar{.origin = instants.empty() ? Instant{} : instants.front(),
                    .offset = offset,
                    .detail = detail};
  const double spacing = usual_spacing(instants);
  const TimeUnit fitting = detail == TimeDetail::month ? TimeUnit::civil_year
                           : spacing > 0               ? unit_for(spacing)
                           : detail == TimeDetail::day ? TimeUnit::day
                                                       : TimeUnit::second;
  calendar.unit = !unit                                                        ? fitting
                  : *unit == TimeUnit::year && fitting == TimeUnit::civil_year ? fitting
                                                                               : *unit;
  return calendar;
}

}  // namespace odecast
