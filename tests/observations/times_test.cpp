// Times as people write them: the same moments give the same numbers, whatever the text.
#include "odecast/observations/times.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "odecast/core/error.hpp"
#include "odecast/observations/csv.hpp"
#include "odecast/observations/reading.hpp"

namespace odecast {
namespace {

/// Rows every `step` seconds from 2024-02-28 22:00, over a leap day.
constexpr std::int64_t kFirst = 1'709'157'600;
std::vector<std::int64_t> seconds(int rows, std::int64_t step) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < rows; ++i) all.push_back(kFirst + i * step);
  return all;
}

/// By the standard library: what the code under test does itself.
std::string text_of(std::int64_t at, const char* form) {
  using namespace std::chrono;
  const sys_seconds moment{std::chrono::seconds(at)};
  const auto date = floor<days>(moment);
  const year_month_day d{date};
  const hh_mm_ss clock{moment - date};
  return fmt::format(fmt::runtime(form), fmt::arg("Y", int(d.year())),
                     fmt::arg("M", unsigned(d.month())), fmt::arg("D", unsigned(d.day())),
                     fmt::arg("h", clock.hours().count()), fmt::arg("m", clock.minutes().count()),
                     fmt::arg("s", clock.seconds().count()), fmt::arg("e", at));
}

std::string file(const std::vector<std::int64_t>& times, const char* form,
                 const std::string& header = "date,x") {
  std::string text = header + "\n";
  for (std::size_t i = 0; i < times.size(); ++i)
    text += text_of(times[i], form) + fmt::format(",{}.5\n", i);
  return text;
}

Dataset read(const std::string& text, const ReadOptions& options = {}) {
  return parse_observations(text, "data", options);
}

std::string complaint(const std::string& text, const ReadOptions& options = {}) {
  try {
    read(text, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

TEST(TimesTest, EveryTextGivesTheSameNumbers) {
  for (const std::int64_t step : {900, 3600, 43'200}) {
    const auto times = seconds(100, step);
    std::vector<double> expected;
    for (const auto t : times)
      expected.push_back(static_cast<double>(t - kFirst) / (step < 3600 ? 60 : 3600));
    for (const char* form :
         {"{Y}-{M:02}-{D:02} {h:02}:{m:02}:{s:02}", "{Y}-{M:02}-{D:02}T{h:02}:{m:02}:{s:02}",
          "{Y}-{M:02}-{D:02}T{h:02}:{m:02}:{s:02}.000Z", "{Y}/{M:02}/{D:02} {h:02}:{m:02}",
          "{D:02}.{M:02}.{Y} {h:02}:{m:02}", "{D}.{M}.{Y} {h}:{m:02}",
          "{D:02}/{M:02}/{Y} {h:02}:{m:02}", "{M:02}/{D:02}/{Y} {h:02}:{m:02}", "{e}", "{e}000",
          "{e}000000", "{e}000000000", "\"{Y}-{M:02}-{D:02} {h:02}:{m:02}\""}) {
      const Dataset data = read(file(times, form));
      ASSERT_TRUE(data.calendar) << form;
      EXPECT_EQ(data.trajectories.at(0).times, expected) << form;
      EXPECT_EQ(data.calendar->origin, (Instant{kFirst, 0})) << form;
      EXPECT_EQ(data.time_name, "date");
    }
  }
}

TEST(TimesTest, TheUnitIsChosenOrGiven) {
  const std::string text = file(seconds(4, 3600), "{Y}-{M:02}-{D:02} {h:02}:{m:02}");
  TableInfo table;
  stream_csv(text, "data", {}, [&](const TableInfo& t, const TableRow&) {
    table = t;
    return true;
  });
  EXPECT_EQ(
      table.notes.back(),
      "Times are dates from 2024-02-28 22:00; the unit is hours: `time_unit` chooses another");
  for (const auto& [unit, step] :
       {std::pair{TimeUnit::second, 3600.0}, std::pair{TimeUnit::minute, 60.0},
        std::pair{TimeUnit::hour, 1.0}, std::pair{TimeUnit::day, 1 / 24.0},
        std::pair{TimeUnit::year, 3600 / (365.25 * 86'400)}})
    EXPECT_EQ(read(text, {.time_count = unit}).trajectories.at(0).times[1], step);
}

TEST(TimesTest, MonthsAndYears) {
  const Dataset months = read("month,co2\n1958-11,1\n1958-12,2\n1959-01,3\n");
  EXPECT_EQ(months.calendar->unit, TimeUnit::civil_year);
  EXPECT_EQ(months.trajectories.at(0).times,
            (std::vector<double>{1958 + 10 / 12.0, 1958 + 11 / 12.0, 1959}));
  EXPECT_EQ(format_csv(months), "month,co2\n1958-11,1\n1958-12,2\n1959-01,3\n");
  const Dataset years = read("Year,Hare\n1900,30\n1901,47.2\n");
  EXPECT_FALSE(years.calendar);
  EXPECT_EQ(years.trajectories.at(0).times, (std::vector<double>{1900, 1901}));
  EXPECT_EQ(format_csv(years), "Year,Hare\n1900,30\n1901,47.2\n");
  // The same years as dates are the same numbers.
  const Dataset dates = read("Year,Hare\n1900-01-01,30\n1901-01-01,47.2\n");
  EXPECT_EQ(dates.trajectories.at(0).times, years.trajectories.at(0).times);
}

TEST(TimesTest, ADayAboveTwelveDecides) {
  const auto text = [](int first, int last) {
    std::string t = "date,x\n";
    for (int d = first; d <= last; ++d) t += fmt::format("{:02}/04/2024,{}\n", d, d);
    return t;
  };
  EXPECT_EQ(read(text(1, 13)).trajectories.at(0).times.back(), 12);  // days of April
  EXPECT_EQ(complaint(text(1, 12)),
            "data, line 2, column date: found '01/04/2024', which reads as 2024-04-01 with the day "
            "first and as 2024-01-04 with the month first, expected dates that can be read in one "
            "way only.\n  1. Say which comes first: time_format=dmy or time_format=mdy.\n"
            "  2. Write dates as 2024-03-31.");
  EXPECT_EQ(read(text(1, 12), {.time_format = TimeFormat::day_first}).trajectories.at(0).times[1],
            1);
  const Dataset months = read(text(1, 12), {.time_format = TimeFormat::month_first});
  EXPECT_EQ(months.calendar->unit, TimeUnit::civil_year);
  // It decides as well where it comes late.
  std::string late = "date,x\n";
  for (int i = 0; i < 500; ++i)
    late += fmt::format("{:02}/03/2024 {:02}:00,{}\n", i / 24 + 1, i % 24, i);
  EXPECT_EQ(read(late).trajectories.at(0).times.back(), 499);
}

TEST(TimesTest, ExcelsDaysAreAskedFor) {
  const std::string rows = ",x\n45352.25,1\n45352.5,2\n";
  EXPECT_FALSE(read("t" + rows).calendar);
  for (const Dataset& data :
       {read("Excel date" + rows), read("t" + rows, {.time_format = TimeFormat::excel})}) {
    EXPECT_EQ(data.trajectories.at(0).times, (std::vector<double>{0, 6}));
    EXPECT_EQ(format_times(*data.calendar, data.trajectories[0].times)[0], "2024-03-01 06:00:00");
  }
}

TEST(TimesTest, EpochsAreNumbersWhereThatIsAsked) {
  const std::string text = "t,x\n1709251200000,1\n1709251201000,2\n";
  EXPECT_EQ(read(text).trajectories.at(0).times, (std::vector<double>{0, 1}));
  EXPECT_EQ(read(text, {.time_format = TimeFormat::number}).trajectories.at(0).times[0],
            1709251200000);
  // Numbers of that size that are no epoch: they do not increase, or one is out of its range.
  EXPECT_FALSE(read("t,x\n1709251200,1\n").calendar);
  EXPECT_FALSE(read("t,x\n0,1\n1709251200,2\n").calendar);
  // Nanoseconds keep the digits that a double of 1.7e18 has not.
  const Dataset fine = read("t,x\n1709251200000000001,1\n1709251200000000002,2\n");
  EXPECT_EQ(fine.trajectories.at(0).times, (std::vector<double>{0, 1e-9}));
}

TEST(TimesTest, ColumnsAreFoundByTheirDates) {
  // What to_csv of pandas writes for an index without a name; a name that says nothing; a column
  // of dates beside the time.
  EXPECT_EQ(read(",x\n2024-01-01,1\n2024-01-02,2\n").time_name, "time");
  EXPECT_EQ(read("when,x\n2024-01-01,1\n2024-01-02,2\n").time_name, "when");
  const Dataset both = read("t,built,x\n0,2024-01-01,1\n1,2024-01-02,2\n");
  EXPECT_FALSE(both.calendar);
  EXPECT_EQ(both.variables, std::vector<std::string>{"x"});
  const Dataset bare = read("2024-01-01 00:00,1.5\n2024-01-01 01:00,2.5\n");
  EXPECT_EQ(bare.trajectories.at(0).times, (std::vector<double>{0, 1}));
  EXPECT_EQ(bare.variables, std::vector<std::string>{"x1"});
}

TEST(TimesTest, DecimalCommasAndDots) {
  const Dataset data = read("Zeit;T\n29.02.2024 23:50;1,5\n01.03.2024 00:00;2,25\n");
  EXPECT_EQ(data.trajectories.at(0).times, (std::vector<double>{0, 10}));
  EXPECT_EQ(data.trajectories[0].states(1, 0), 2.25);
}

TEST(TimesTest, BadRowsSayWhereAndWhat) {
  EXPECT_EQ(complaint("time,x\n2024-02-28,1\n2024-02-30,2\n"),
            "data, line 3, column time: found '2024-02-30': day 30 of 2024-02, expected a date as "
            "in the other lines, such as 2024-02-28.\n  3 | 2024-02-30,2\n"
            "  Correct the value or remove the line.");
  EXPECT_EQ(complaint("time,x\n2024-02-28 00:00Z,1\n2024-02-28 01:00,2\n"),
            "data, line 3, column time: found '2024-02-28 01:00': no zone such as Z or +01:00, "
            "where the first time has one, expected a date as in the other lines, such as "
            "2024-02-28 00:00:00+00:00.\n  3 | 2024-02-28 01:00,2\n"
            "  Correct the value or remove the line.");
  const std::string clocks = complaint("time,x\n06:00,1\n07:00,2\n");
  EXPECT_NE(clocks.find("Write date and clock into one column"), clocks.npos) << clocks;
  const std::string back = complaint("time,x\n2024-02-28,1\n2024-02-27,2\n");
  EXPECT_NE(back.find("time 2024-02-27 after 2024-02-28 in line 2"), back.npos) << back;
  const std::string dates =
      complaint("time,x\n2024-02-28,1\n", {.time_format = TimeFormat::number});
  EXPECT_NE(dates.find("expected numbers"), dates.npos) << dates;
}

TEST(TimesTest, OthersAreCountedAsTheFirst) {
  const Dataset first = read("time,x\n2024-03-01 00:00+01:00,1\n2024-03-01 01:00+01:00,2\n");
  const ReadOptions as_first{.time_count = *first.calendar};
  EXPECT_EQ(read("time,x\n2024-02-29 23:30Z,1\n", as_first).trajectories.at(0).times[0], 0.5);
  // Without a zone they are of the same clock; plain numbers are of the same unit.
  EXPECT_EQ(read("time,x\n2024-03-01 02:00,1\n", as_first).trajectories.at(0).times[0], 2);
  EXPECT_EQ(read("time,x\n3,1\n4,1\n", as_first).trajectories.at(0).times[0], 3);
  const Dataset bare = read("time,x\n2024-03-01 00:00,1\n2024-03-01 01:00,2\n");
  const std::string zoned =
      complaint("time,x\n2024-02-29 23:30Z,1\n", {.time_count = *bare.calendar});
  EXPECT_NE(zoned.find("times with a zone"), zoned.npos) << zoned;
}

TEST(TimesTest, SplitKeepsTheText) {
  const std::string text = "Zeit,x\n1.3.2024 6:00,1\n01.03.2024 06:30:00,2\n1.3.2024 07:00,3\n";
  const Split parts = split_last(read(text, {.keep_time_texts = true}), 0.3);
  EXPECT_EQ(format_csv(parts.train), "Zeit,x\n1.3.2024 6:00,1\n01.03.2024 06:30:00,2\n");
  EXPECT_EQ(format_csv(parts.test), "Zeit,x\n1.3.2024 07:00,3\n");
  // Sorted, too.
  const Dataset sorted =
      read("Zeit,x\n2.3.2024,1\n1.3.2024,2\n", {.keep_time_texts = true, .sort = true});
  EXPECT_EQ(format_csv(sorted), "Zeit,x\n1.3.2024,2\n2.3.2024,1\n");
}

}  // namespace
}  // namespace odecast
