#include "odecast/core/calendar.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <cmath>

namespace odecast {
namespace {

using std::chrono::day;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

/// Days since 1970-01-01 by the standard library.
std::int64_t chrono_days(int y, int m, int d) {
  return sys_days(year(y) / month(static_cast<unsigned>(m)) / day(static_cast<unsigned>(d)))
      .time_since_epoch()
      .count();
}

TEST(CalendarTest, EveryDayOfEightCenturiesIsChronos) {
  for (std::int64_t days = chrono_days(1500, 1, 1); days < chrono_days(2300, 1, 1); ++days) {
    const year_month_day d{sys_days(std::chrono::days(days))};
    const Civil c = civil_of({86'400 * days + 3'723, 5});
    ASSERT_EQ(c, (Civil{int(d.year()), static_cast<int>(unsigned(d.month())),
                        static_cast<int>(unsigned(d.day())), 1, 2, 3, 5}));
    ASSERT_EQ(instant_of(c), (Instant{86'400 * days + 3'723, 5}));
    ASSERT_EQ(days_in_month(c.year, c.month),
              static_cast<int>(unsigned(
                  std::chrono::year_month_day_last(d.year(), std::chrono::month_day_last(d.month()))
                      .day())));
  }
}

Instant at(int y, int m, int d, int hour = 0, int minute = 0, int second = 0, int nano = 0) {
  return {86'400 * chrono_days(y, m, d) + 3600 * hour + 60 * minute + second, nano};
}

TEST(CalendarTest, ReadsWhatPeopleWrite) {
  const Instant six = at(2024, 3, 1, 6), half = at(2024, 3, 1, 6, 0, 0, 500'000'000);
  for (const char* text :
       {"2024-03-01 06:00:00", "2024-03-01T06:00:00", "2024-03-01T06:00", "2024-03-01  06:00",
        "2024/03/01 06:00", "2024/3/1 6:00", "01.03.2024 06:00", "1.3.2024 06:00:00",
        "20240301T060000", "2024-03-01 6:00 AM", "Mar 1 2024 06:00", "1 Mar 2024 06:00",
        "01-Mar-2024 06:00:00", "March 1, 2024 06:00", "2024-03-01T06"}) {
    const auto time = parse_time(text, TimeForm::text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->instant, six) << text;
    EXPECT_FALSE(time->offset) << text;
    EXPECT_EQ(time->detail, TimeDetail::clock) << text;
  }
  EXPECT_EQ(parse_time("2024-03-01 06:00:00.5", TimeForm::text)->instant, half);
  EXPECT_EQ(parse_time("2024-03-01 06:00:00,500", TimeForm::text)->instant, half);
  EXPECT_EQ(parse_time("2024-03-01 06:00:00.000000001", TimeForm::text)->instant,
            at(2024, 3, 1, 6, 0, 0, 1));
  EXPECT_EQ(parse_time("2024-03-01 12:30 AM", TimeForm::text)->instant, at(2024, 3, 1, 0, 30));
  EXPECT_EQ(parse_time("2024-03-01 12:30 pm", TimeForm::text)->instant, at(2024, 3, 1, 12, 30));
  EXPECT_EQ(parse_time("2024-02-29 24:00", TimeForm::text)->instant, at(2024, 3, 1));
  EXPECT_EQ(parse_time("2024-03-01", TimeForm::text)->detail, TimeDetail::day);
  EXPECT_EQ(parse_time("1949-01", TimeForm::text)->detail, TimeDetail::month);
  EXPECT_EQ(parse_time("1949-07", TimeForm::text)->instant, at(1949, 7, 1));
}

TEST(CalendarTest, OffsetsAreTakenOff) {
  for (const auto& [text, offset, instant] :
       {std::tuple{"2024-03-01T06:00:00Z", 0, at(2024, 3, 1, 6)},
        std::tuple{"2024-03-01 06:00:00 UTC", 0, at(2024, 3, 1, 6)},
        std::tuple{"2024-03-01T00:30:00+01:00", 60, at(2024, 2, 29, 23, 30)},
        std::tuple{"2024-03-01 06:00+0530", 330, at(2024, 3, 1, 0, 30)},
        std::tuple{"2024-03-01T06:00:00.25-08", -480, at(2024, 3, 1, 14, 0, 0, 250'000'000)}}) {
    const auto time = parse_time(text, TimeForm::text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->instant, instant) << text;
    EXPECT_EQ(time->offset, offset) << text;
  }
}

TEST(CalendarTest, DayOrMonthFirst) {
  EXPECT_FALSE(parse_time("03/04/2024", TimeForm::text));
  EXPECT_EQ(parse_time("03/04/2024", TimeForm::day_first)->instant, at(2024, 4, 3));
  EXPECT_EQ(parse_time("03/04/2024", TimeForm::month_first)->instant, at(2024, 3, 4));
  EXPECT_EQ(parse_time("03-04-2024 05:06", TimeForm::day_first)->instant, at(2024, 4, 3, 5, 6));
  EXPECT_FALSE(parse_time("31/04/2024", TimeForm::month_first));
  EXPECT_FALSE(parse_time("04/31/2024", TimeForm::day_first));
  EXPECT_EQ(parse_time("2024-03-04", TimeForm::day_first)->instant, at(2024, 3, 4));
}

TEST(CalendarTest, SaysWhatIsWrong) {
  for (const auto& [text, fault] :
       {std::pair{"2023-02-29", "day 29 of 2023-02"}, std::pair{"1900-02-29", "day 29 of 1900-02"},
        std::pair{"2024-13-01", "month 13"}, std::pair{"2024-00-01", "month 0"},
        std::pair{"2024-01-01 25:00", "hour 25"}, std::pair{"2024-01-01 10:61", "minute 61"},
        std::pair{"2024-01-01 10:00:60", "second 60"},
        std::pair{"2024-01-01 13:00 PM", "hour 13 of a clock of twelve"},
        std::pair{"2024-01-01 10:00 Berlin", "something after the clock"},
        std::pair{"2024-01-01x", "something after the date"}, std::pair{"monday", "no date"},
        std::pair{"12:00", "no date"}, std::pair{"", "no date"},
        std::pair{"2024-01-01 10:00:00.1234567891", "10 digits of a second"}}) {
    std::string found;
    EXPECT_FALSE(parse_time(text, TimeForm::text, &found)) << text;
    EXPECT_TRUE(found.starts_with(fault)) << text << ": " << found;
  }
}

TEST(CalendarTest, EpochsKeepEveryDigit) {
  const Instant instant = at(2024, 3, 1, 6, 7, 8, 123'456'789);
  EXPECT_EQ(parse_time("1709273228.123456789", TimeForm::epoch_s)->instant, instant);
  EXPECT_EQ(parse_time("1709273228123.456789", TimeForm::epoch_ms)->instant, instant);
  EXPECT_EQ(parse_time("1709273228123456.789", TimeForm::epoch_us)->instant, instant);
  EXPECT_EQ(parse_time("1709273228123456789", TimeForm::epoch_ns)->instant, instant);
  EXPECT_EQ(parse_time("-1", TimeForm::epoch_ms)->instant, (Instant{-1, 999'000'000}));
  EXPECT_EQ(parse_time("1.709273228e9", TimeForm::epoch_s)->instant, at(2024, 3, 1, 6, 7, 8));
  EXPECT_FALSE(parse_time("12 kg", TimeForm::epoch_s));
  EXPECT_EQ(parse_time("45352.25", TimeForm::excel)->instant, at(2024, 3, 1, 6));
  EXPECT_FALSE(parse_time("-3", TimeForm::excel));
}

TEST(CalendarTest, TheUnitFollowsFromTheSpacing) {
  const std::vector<std::pair<int, TimeUnit>> units = {{1, TimeUnit::second},
                                                       {59, TimeUnit::minute},
                                                       {60, TimeUnit::minute},
                                                       {1'800, TimeUnit::minute},
                                                       {3'600, TimeUnit::hour},
                                                       {43'200, TimeUnit::hour},
                                                       {86'400, TimeUnit::day},
                                                       {7 * 86'400, TimeUnit::day},
                                                       {30 * 86'400, TimeUnit::civil_year},
                                                       {50, TimeUnit::second},
                                                       {365 * 86'400, TimeUnit::civil_year}};
  for (const auto& [step, unit] : units) {
    std::vector<Instant> instants;
    for (int i = 0; i < 5; ++i) instants.push_back({1'000'000'000 + i * step, 0});
    EXPECT_EQ(calendar_for(instants, {}, {}, TimeDetail::clock).unit, unit) << step;
  }
  const std::vector<Instant> daily = {{0, 0}, {86'400, 0}};
  EXPECT_EQ(calendar_for(daily, TimeUnit::year, {}, TimeDetail::day).unit, TimeUnit::year);
  EXPECT_EQ(calendar_for(daily, TimeUnit::hour, {}, TimeDetail::day).unit, TimeUnit::hour);
}

TEST(CalendarTest, NumbersAreTheQuotient) {
  const Calendar hours{.unit = TimeUnit::hour, .origin = at(2024, 2, 28, 23)};
  EXPECT_EQ(to_number(hours, at(2024, 3, 1, 0, 30)), 25.5);  // over a leap day
  EXPECT_EQ(to_number(hours, at(2024, 2, 28, 22, 45)), -0.25);
  const Calendar years{.unit = TimeUnit::civil_year};
  EXPECT_EQ(to_number(years, at(1949, 1, 1)), 1949);
  EXPECT_EQ(to_number(years, at(1949, 7, 1)), 1949.5);
  EXPECT_EQ(to_number(years, at(1949, 2, 15)), 1949 + 1.5 / 12);  // half of 28 days
  EXPECT_EQ(to_number({.unit = TimeUnit::year}, at(1970, 1, 2)), 1 / 365.25);
  // Nanoseconds are not lost far from 1970, and seconds are not at all.
  const Calendar seconds{.unit = TimeUnit::second, .origin = at(2024, 3, 1)};
  EXPECT_EQ(to_number(seconds, at(2024, 3, 1, 0, 0, 1, 1)), 1.000000001);
}

const std::vector<TimeUnit> kUnits = {TimeUnit::second, TimeUnit::minute, TimeUnit::hour,
                                      TimeUnit::day,    TimeUnit::year,   TimeUnit::civil_year};

/// Text to number to text gives the text back, whatever the unit: for whole milliseconds within
/// twenty years of the origin, which doubles can tell apart (2^-52 · 20 years is 0.14 µs).
RC_GTEST_PROP(CalendarTest, TextComesBack, ()) {
  const Instant origin = {*rc::gen::inRange<std::int64_t>(-5'000'000'000, 5'000'000'000),
                          1'000'000 * *rc::gen::inRange(0, 1000)};
  const Instant instant = {origin.seconds + *rc::gen::inRange<std::int64_t>(0, 600'000'000),
                           1'000'000 * *rc::gen::inRange(0, 1000)};
  for (const TimeUnit unit : kUnits) {
    Calendar c{.unit = unit, .origin = origin};
    if (*rc::gen::arbitrary<bool>()) c.offset = *rc::gen::inRange(-720, 720);
    const double number = to_number(c, instant);
    if (unit == TimeUnit::civil_year) {  // counted from the year 0: to the millisecond
      const Instant back = to_instant(c, number);
      RC_ASSERT(std::abs(static_cast<double>(back.seconds - instant.seconds) +
                         1e-9 * (back.nanoseconds - instant.nanoseconds)) < 2e-3);
      continue;
    }
    RC_ASSERT(to_instant(c, number) == instant);
    const std::string text = format_times(c, std::vector{number})[0];
    const auto again = parse_time(text, TimeForm::text);
    RC_ASSERT(again.has_value());
    RC_ASSERT(again->instant == instant);
    RC_ASSERT(again->offset == c.offset);
  }
}

TEST(CalendarTest, MonthsComeBackAsMonths) {
  const Calendar c{.unit = TimeUnit::civil_year, .detail = TimeDetail::month};
  std::vector<double> numbers;
  for (int k = 0; k < 12 * 300; ++k) {
    const double number = 1700 + k / 12.0;
    EXPECT_EQ(to_instant(c, number), at(1700 + k / 12, k % 12 + 1, 1));
    numbers.push_back(1700 + k * (1 / 12.0));  // as a step adds up
  }
  const auto texts = format_times(c, numbers);
  EXPECT_EQ(texts[0], "1700-01");
  EXPECT_EQ(texts[12 * 200 + 1], "1900-02");
}

TEST(CalendarTest, TextsAreAsLongAsOneOfThemNeeds) {
  const Calendar hours{.unit = TimeUnit::hour, .origin = at(2024, 3, 1)};
  EXPECT_EQ(format_times(hours, std::vector{0.0, 1.0}),
            (std::vector<std::string>{"2024-03-01 00:00:00", "2024-03-01 01:00:00"}));
  EXPECT_EQ(format_times(hours, std::vector{0.0, 0.25 / 3600}),
            (std::vector<std::string>{"2024-03-01 00:00:00.000", "2024-03-01 00:00:00.250"}));
  Calendar days{.unit = TimeUnit::day, .origin = at(2024, 2, 28), .detail = TimeDetail::day};
  EXPECT_EQ(format_times(days, std::vector{0.0, 1.0, 2.0}),
            (std::vector<std::string>{"2024-02-28", "2024-02-29", "2024-03-01"}));
  EXPECT_EQ(format_times(days, std::vector{0.0, 0.5})[1], "2024-02-28 12:00:00");
  days.detail = TimeDetail::clock;
  days.offset = -210;
  EXPECT_EQ(format_times(days, std::vector{0.0})[0], "2024-02-27 20:30:00-03:30");
  EXPECT_EQ(time_text(hours, 1.5), "2024-03-01 01:30");
  EXPECT_EQ(time_text(hours, 1e300).substr(0, 4), "+316");  // the farthest date there is
}

TEST(CalendarTest, AStepLosesItsRoundOff) {
  const Calendar hours{.unit = TimeUnit::hour}, years{.unit = TimeUnit::civil_year};
  EXPECT_EQ(tidy_step(hours, (1000 + 1.0 / 60) - 1000), 60.0 / 3600);
  EXPECT_EQ(tidy_step(years, (1949 + 1 / 12.0) - 1949), 1 / 12.0);
  EXPECT_EQ(tidy_step(hours, std::sqrt(2.0)), std::sqrt(2.0));
}

TEST(CalendarTest, Words) {
  const Calendar hours{.unit = TimeUnit::hour, .origin = at(2024, 3, 1)};
  EXPECT_EQ(in_words(hours), "times are dates from 2024-03-01 00:00; the unit is hours");
  EXPECT_EQ(moment_text(hours, 6), "2024-03-01 06:00");
  EXPECT_EQ(moment_text({}, 6), "t = 6");
  EXPECT_EQ(duration_text(hours, 6.5), "6.5 hours");
  EXPECT_EQ(duration_text({}, 6.5), "6.5");
}

}  // namespace
}  // namespace odecast
