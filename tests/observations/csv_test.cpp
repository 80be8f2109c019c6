#include "odecast/observations/csv.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

std::string message(std::string_view text, const CsvOptions& options = {}) {
  try {
    parse_csv(text, "file.csv", options);
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(CsvTest, ReadsHeaderTimesAndVariables) {
  const Dataset d = parse_csv("t,x,y\n0,1,2\n0.5,3,4\n", "f");
  EXPECT_EQ(d.variables, (std::vector<std::string>{"x", "y"}));
  ASSERT_EQ(d.trajectories.size(), 1u);
  EXPECT_EQ(d.trajectories[0].times, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(d.trajectories[0].states(1, 1), 4);
}

TEST(CsvTest, SpellingDoesNotChangeTheNumbers) {
  const Dataset plain = parse_csv("t,x\n0,1\n1,2\n", "f");
  for (const char* text :
       {"\xef\xbb\xbft,x\n0,1\n1,2\n", "t,x\r\n0,1\r\n1,2\r\n", "t,x\n0,1\n1,2", "\n\nt,x\n\n0,1\n1,2\n\n",
        "# a comment\nt,x\n0,1\n# another\n1,2\n", " t , x \n 0, 1 \n1 ,2\n", "\"t\",\"x\"\n0,\"1\"\n1,2\n",
        "Time,x\n0,1\n1,2\n", "x,T\n1,0\n2,1\n", "t,x\n+0,1e0\n1.0,2.\n"}) {
    const Dataset d = parse_csv(text, "f");
    EXPECT_EQ(d.variables, plain.variables) << text;
    EXPECT_EQ(d.trajectories[0].times, plain.trajectories[0].times) << text;
    EXPECT_EQ(d.trajectories[0].states, plain.trajectories[0].states) << text;
  }
}

TEST(CsvTest, AnIdColumnSeparatesTrajectories) {
  const Dataset d = parse_csv("trajectory,t,x\na,0,1\nb,0,10\na,1,2\nb,1,20\nb,2,30\n", "f");
  ASSERT_EQ(d.trajectories.size(), 2u);
  EXPECT_EQ(d.trajectories[0].id, "a");
  EXPECT_EQ(d.trajectories[0].rows(), 2);
  EXPECT_EQ(d.trajectories[1].states(2, 0), 30);
  EXPECT_EQ(d.variables, std::vector<std::string>{"x"});
}

TEST(CsvTest, ColumnsCanBeChosen) {
  const Dataset d = parse_csv("run,clock,a,b\n1,0,1,2\n1,1,3,4\n2,0,5,6\n", "f",
                              {.time = "clock", .id = "run", .variables = {"b"}});
  EXPECT_EQ(d.variables, std::vector<std::string>{"b"});
  EXPECT_EQ(d.trajectories.size(), 2u);
  EXPECT_EQ(d.trajectories[0].states(1, 0), 4);
}

TEST(CsvTest, ErrorsSayWhereWhatAndWhatToDo) {
  EXPECT_EQ(message("t,x\n0,1\n1,abc\n"),
            "file.csv, line 3, column x: found 'abc', expected a finite number. Correct the value or "
            "remove the line.");
  EXPECT_EQ(message("t,x\n0,1\n0,2\n"),
            "file.csv, line 3, column t: found time 0 after 0 in line 2, expected times that increase "
            "along a trajectory. Sort the rows, remove duplicates, or mark several trajectories by a "
            "column named trajectory (or --id NAME).");
  EXPECT_EQ(message("t,x,y\n0,1\n"),
            "file.csv, line 2: found 2 fields in '0,1', expected 3 (t, x, y). Complete or remove the "
            "line.");
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "no lines"}, {"\n\n# x\n", "no lines"}, {"t,x\n", "a header and no rows"},
           {"t,x\n0,nan\n", "'nan'"}, {"t,x\n0,inf\n", "'inf'"}, {"t,x\n0,1e999\n", "'1e999'"},
           {"t,x\n0,\n", "found nothing"}, {"a,b\n0,1\n", "time column"}, {"t,x,x\n0,1,2\n", "twice"},
           {"t,,x\n0,1,2\n", "no name for column 2"}, {"t\n0\n", "at least one variable"},
           {"t;x\n0;1\n", "commas"}, {std::string("\xff\xfet\0", 4), "UTF-16"},
           {"t,x\n0,1,5\n", "3 fields"}, {"t,x\n0,0x10\n", "'0x10'"}})
    EXPECT_NE(message(text).find(part), std::string::npos) << text << " -> " << message(text);
  EXPECT_NE(message("t,x\n0,1\n", {.time = "", .id = "", .variables = {"q"}}).find("columns t, x"),
            std::string::npos);
}

TEST(CsvTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(message("t,x\n0,\x1b[31m\n").find('\x1b'), std::string::npos);
}

TEST(CsvTest, CertifiedTimeSurvives) {
  Dataset d = parse_csv("t,x\n0,1\n1,2\n", "f");
  d.certified_until = 0.125;
  EXPECT_EQ(parse_csv(format_csv(d), "f").certified_until, 0.125);
}

RC_GTEST_PROP(CsvTest, WrittenTablesReadBackBitForBit, ()) {
  const auto rows = *rc::gen::inRange(1, 20);
  const auto columns = *rc::gen::inRange(1, 5);
  const auto several = *rc::gen::inRange(1, 4);
  const auto number = rc::gen::suchThat(rc::gen::arbitrary<double>(),
                                        [](double x) { return std::isfinite(x); });
  Dataset d;
  for (int c = 0; c < columns; ++c) d.variables.push_back("v" + std::to_string(c));
  for (int k = 0; k < several; ++k) {
    Trajectory t{several > 1 ? std::to_string(k) : "", {}, Matrix(rows, columns)};
    for (int i = 0; i < rows; ++i) {
      t.times.push_back(i / 3.0);
      for (int c = 0; c < columns; ++c) t.states(i, c) = *number;
    }
    d.trajectories.push_back(std::move(t));
  }
  const Dataset back = parse_csv(format_csv(d), "f");
  RC_ASSERT(back.variables == d.variables);
  RC_ASSERT(back.trajectories.size() == d.trajectories.size());
  for (std::size_t k = 0; k < d.trajectories.size(); ++k) {
    RC_ASSERT(back.trajectories[k].times == d.trajectories[k].times);
    RC_ASSERT(back.trajectories[k].states == d.trajectories[k].states);
  }
}

}  // namespace
}  // namespace odecast
