// Times as people have them, through the command line: dates in, dates out, and the same equations
// from every way to write them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace odecast::cli_test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr long kFirst = 1'709'157'600;  // 2024-02-28 22:00 UTC

/// By the standard library.
std::string iso(long seconds, const char* form = "{:04}-{:02}-{:02} {:02}:{:02}:{:02}") {
  using namespace std::chrono;
  const sys_seconds moment{std::chrono::seconds(seconds)};
  const auto date = floor<days>(moment);
  const year_month_day d{date};
  const hh_mm_ss clock{moment - date};
  return fmt::format(fmt::runtime(form), int(d.year()), unsigned(d.month()), unsigned(d.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

class TimesTest : public ProgramTest {
 protected:
  /// A damped oscillation with a period of some 20 rows and a little noise, a row each `step`
  /// seconds.
  std::string table(const std::string& header, long step, int first, int last,
                    const std::function<std::string(long)>& time) const {
    std::string text = header + "\n";
    unsigned state = 7;
    const auto noise = [&] {
      state = 1664525u * state + 1013904223u;
      return (static_cast<double>(state >> 8) / (1 << 24) - 0.5) * 0.02;
    };
    for (int i = 0; i < last; ++i) {
      const double s = 0.3 * i, damp = std::exp(-0.02 * s);
      const double x = damp * std::cos(s) + noise(), v = damp * std::sin(s) + noise();
      if (i >= first) text += time(i * step) + fmt::format(",{},{}\n", x, v);
    }
    return text;
  }

  Json equations(const std::string& text, const Words& more = {}) const {
    write("data.csv", text);
    Words words = {"fit", "data.csv", "--degree", "1", "-o", "m.json", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    run_well(words);
    return Json::parse(run_well({"equations", "m.json", "--format", "json"}).out);
  }

  /// The same terms, and coefficients equal to 1e-9.
  static void expect_same(const Json& a, const Json& b, const std::string& what) {
    const Json flat_a = a.flatten(), flat_b = b.flatten();
    ASSERT_EQ(flat_a.size(), flat_b.size()) << what;
    for (const auto& [key, value] : flat_a.items()) {
      ASSERT_TRUE(flat_b.contains(key)) << what << ": " << key;
      if (value.is_number_float())
        EXPECT_NEAR(flat_b[key].get<double>(), value.get<double>(),
                    1e-9 * std::abs(value.get<double>()) + 1e-13)
            << what << ": " << key;
      else
        EXPECT_EQ(flat_b[key], value) << what << ": " << key;
    }
  }
};

TEST_F(TimesTest, EveryWayToWriteTimesGivesTheSameEquations) {
  constexpr long step = 600;
  const auto written = [&](const std::function<std::string(long)>& time) {
    return table("time,x,v", step, 0, 150, time);
  };
  const auto dates = [](const char* form) {
    return [form](long s) { return iso(kFirst + s, form); };
  };
  const auto number = [](double unit) {
    return [unit](long s) { return fmt::format("{}", static_cast<double>(s) / unit); };
  };
  for (const auto& [unit, seconds] :
       {std::pair{"s", 1.0}, std::pair{"min", 60.0}, std::pair{"d", 86'400.0}}) {
    const Json expected = equations(written(number(seconds)));
    for (const auto& [name, time] :
         std::vector<std::pair<std::string, std::function<std::string(long)>>>{
             {"ISO", dates("{:04}-{:02}-{:02} {:02}:{:02}:{:02}")},
             {"dotted", dates("{2:02}.{1:02}.{0:04} {3:02}:{4:02}")},
             {"zone", dates("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}+01:00")},
             {"epoch s", [](long s) { return fmt::format("{}", kFirst + s); }},
             {"epoch ms", [](long s) { return fmt::format("{}000", kFirst + s); }},
             {"epoch ns", [](long s) { return fmt::format("{}000000000", kFirst + s); }}}) {
      expect_same(expected, equations(written(time), {"--time-unit", unit}),
                  fmt::format("{} in {}", name, unit));
    }
  }
  // Ten minutes apart: minutes, where nothing is asked for.
  expect_same(equations(written(number(60))),
              equations(written(dates("{:04}-{:02}-{:02} {:02}:{:02}"))), "by spacing");
}

TEST_F(TimesTest, DatesComeBackEverywhere) {
  write("log.csv", table("when,x,v", 3600, 0, 150, [](long s) { return iso(kFirst + s); }));
  const std::string seen = run_well({"inspect", "log.csv"}).out;
  EXPECT_TRUE(contains(seen, "when from 2024-02-28 22:00 to 2024-03-06 03:00")) << seen;
  EXPECT_TRUE(contains(seen, "the unit is hours: --time-unit chooses another.")) << seen;
  EXPECT_TRUE(contains(seen, "even, step 1 hours")) << seen;

  run_well({"split", "log.csv", "--train", "early.csv", "--test", "late.csv"});
  const std::string early = read("early.csv"), late = read("late.csv");
  EXPECT_EQ(early + late.substr(late.find('\n') + 1), read("log.csv"));

  run_well({"fit", "early.csv", "--degree", "1", "-o", "m.json", "--report", "m.html"});
  EXPECT_TRUE(contains(read("m.html"), ">2024-03-04 21:00<")) << "where the data end";
  EXPECT_TRUE(contains(read("m.html"), ">1 hours (median)<"));
  const Json model = Json::parse(read("m.json"));
  EXPECT_EQ(model["time"]["name"], "when");
  EXPECT_EQ(model["time"]["calendar"]["unit"], "h");
  EXPECT_EQ(model["time"]["calendar"]["origin"][0], kFirst);

  const std::string said = run_well({"forecast", "m.json", "--until", "2024-03-06 03:00", "-o",
                                     "f.csv", "--draws", "50", "--report", "f.html"})
                               .out;
  EXPECT_TRUE(contains(said, "Forecast from 2024-03-04 21:00 to 2024-03-06 03:00")) << said;
  const auto times = csv_column(read("f.csv"), "when");
  ASSERT_EQ(times.size(), 31u);
  EXPECT_EQ(times.front(), "2024-03-04 21:00:00");
  EXPECT_EQ(times.back(), "2024-03-06 03:00:00");
  EXPECT_TRUE(contains(read("f.html"), "From 2024-03-04 21:00 to 2024-03-06 03:00"));
  EXPECT_TRUE(contains(read("f.html"), "Mar 5"));

  // No verb needs the name of the column again, and all agree on the times.
  run_well({"forecast", "m.json", "--at", "late.csv", "-o", "at.csv", "--draws", "50"});
  EXPECT_EQ(read("at.csv"), read("f.csv"));
  run_well({"forecast", "m.json", "--until", "149", "-o", "n.csv", "--draws", "50"});
  EXPECT_EQ(read("n.csv"), read("f.csv"));
  const std::string score = run_well({"score", "f.csv", "late.csv"}).out;
  EXPECT_TRUE(contains(score, "30 times in (2024-03-04 21:00, 2024-03-06 03:00]")) << score;
  EXPECT_TRUE(contains(score, " hours (error")) << score;
  run_well({"evaluate", "m.json", "log.csv", "--starts", "5", "--horizon", "10", "--draws", "20"});
  run_well({"calibrate", "m.json", "log.csv", "--starts", "40", "--horizon", "5", "--draws", "20",
            "-o", "c.json"});
  EXPECT_EQ(Json::parse(read("c.json"))["time"], model["time"]);
  run_well({"plot", "f.csv", "--truth", "late.csv", "-o", "f.svg"});
  const std::string svg = read("f.svg");
  EXPECT_TRUE(contains(svg, ">when<")) << svg.substr(0, 2000);
  EXPECT_TRUE(contains(svg, ">2024 Mar 5<") && contains(svg, ">Mar 6<")) << svg.substr(0, 3000);

  // Another spelling of the same truth.
  write("german.csv", table("when,x,v", 3600, 120, 150, [](long s) {
          return iso(kFirst + s, "{2:02}.{1:02}.{0:04} {3:02}:{4:02}");
        }));
  EXPECT_EQ(run_well({"score", "f.csv", "german.csv"}).out, score);

  const Result before = run({"forecast", "m.json", "--until", "2024-03-01"});
  EXPECT_EQ(before.code, 2);
  EXPECT_TRUE(contains(before.err,
                       "2024-03-01 00:00, expected a time after the start "
                       "(2024-03-04 21:00)"))
      << before.err;
  const Result wrong = run({"forecast", "m.json", "--until", "2024-02-30"});
  EXPECT_TRUE(contains(wrong.err, "day 30 of 2024-02")) << wrong.err;
}

TEST_F(TimesTest, MonthsAreMonthsAgain) {
  write("co2.csv", table("month,x,v", 1, 0, 60, [](long i) {
          return fmt::format("{}-{:02}", 1958 + i / 12, i % 12 + 1);
        }));
  run_well({"fit", "co2.csv", "--degree", "1", "-o", "m.json"});
  run_well({"forecast", "m.json", "--until", "1963-06", "-o", "f.csv", "--draws", "20"});
  EXPECT_EQ(csv_column(read("f.csv"), "month"),
            (Words{"1962-12", "1963-01", "1963-02", "1963-03", "1963-04", "1963-05", "1963-06"}));
}

TEST_F(TimesTest, TheNameOfTheColumnIsKept) {
  write("years.csv",
        table("Year,x,v", 1, 0, 60, [](long i) { return fmt::format("{}", 1900 + i); }));
  run_well({"fit", "years.csv", "--degree", "1", "-o", "m.json"});
  run_well({"forecast", "m.json", "--until", "1965", "-o", "f.csv", "--draws", "20"});
  EXPECT_EQ(csv_column(read("f.csv"), "Year").back(), "1965");
  // One that no rule would find: given once.
  write("odd.csv", table("clock,x,v", 1, 0, 60, [](long i) { return fmt::format("{}", i); }));
  run_well({"fit", "odd.csv", "--time", "clock", "--degree", "1", "-o", "m.json"});
  run_well(
      {"forecast", "m.json", "--at", "odd.csv", "--init", "1,0", "-o", "f.csv", "--draws", "20"});
  run_well({"score", "f.csv", "odd.csv"});
  run_well({"evaluate", "m.json", "odd.csv", "--starts", "4", "--horizon", "5", "--draws", "20"});
  // A model of numbers says that dates are no numbers.
  write("log.csv", table("clock,x,v", 3600, 0, 60, [](long s) { return iso(kFirst + s); }));
  const Result dates = run({"evaluate", "m.json", "log.csv"});
  EXPECT_EQ(dates.code, 3);
  EXPECT_TRUE(contains(dates.err, "expected numbers")) << dates.err;
}

}  // namespace
}  // namespace odecast::cli_test
