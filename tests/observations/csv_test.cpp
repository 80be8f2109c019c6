#include "odecast/observations/csv.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <ctime>
#include <filesystem>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/observations/reading.hpp"

namespace odecast {
namespace {

std::string message(std::string_view text, const ReadOptions& options = {}) {
  try {
    parse_observations(text, "file.csv", options);
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(CsvTest, ReadsHeaderTimesAndVariables) {
  const Dataset d = parse_observations("t,x,y\n0,1,2\n0.5,3,4\n", "f");
  EXPECT_EQ(d.variables, (std::vector<std::string>{"x", "y"}));
  ASSERT_EQ(d.trajectories.size(), 1u);
  EXPECT_EQ(d.trajectories[0].times, (std::vector<double>{0, 0.5}));
  EXPECT_EQ(d.trajectories[0].states(1, 1), 4);
}

TEST(CsvTest, SpellingDoesNotChangeTheNumbers) {
  const Dataset plain = parse_observations("t,x\n0,1\n1,2\n", "f");
  for (const char* text : {"\xef\xbb\xbft,x\n0,1\n1,2\n", "t,x\r\n0,1\r\n1,2\r\n", "t,x\n0,1\n1,2",
                           "\n\nt,x\n\n0,1\n1,2\n\n", "# a comment\nt,x\n0,1\n# another\n1,2\n",
                           " t , x \n 0, 1 \n1 ,2\n", "\"t\",\"x\"\n0,\"1\"\n1,2\n",
                           "Time,x\n0,1\n1,2\n", "x,T\n1,0\n2,1\n", "t,x\n+0,1e0\n1.0,2.\n"}) {
    const Dataset d = parse_observations(text, "f");
    EXPECT_EQ(d.variables, plain.variables) << text;
    EXPECT_EQ(d.trajectories[0].times, plain.trajectories[0].times) << text;
    EXPECT_EQ(d.trajectories[0].states, plain.trajectories[0].states) << text;
  }
}

TEST(CsvTest, AnIdColumnSeparatesTrajectories) {
  const Dataset d =
      parse_observations("trajectory,t,x\na,0,1\nb,0,10\na,1,2\nb,1,20\nb,2,30\n", "f");
  ASSERT_EQ(d.trajectories.size(), 2u);
  EXPECT_EQ(d.trajectories[0].id, "a");
  EXPECT_EQ(d.trajectories[0].rows(), 2);
  EXPECT_EQ(d.trajectories[1].states(2, 0), 30);
  EXPECT_EQ(d.variables, std::vector<std::string>{"x"});
}

TEST(CsvTest, ColumnsCanBeChosen) {
  const Dataset d = parse_observations("run,clock,a,b\n1,0,1,2\n1,1,3,4\n2,0,5,6\n", "f",
                                       {.time = "clock", .id = "run", .variables = {"b"}});
  EXPECT_EQ(d.variables, std::vector<std::string>{"b"});
  EXPECT_EQ(d.trajectories.size(), 2u);
  EXPECT_EQ(d.trajectories[0].states(1, 0), 4);
}

TEST(CsvTest, ErrorsSayWhereWhatAndWhatToDo) {
  EXPECT_EQ(message("t,x\n0,1\n1,abc\n"),
            "file.csv, line 3, column x: found 'abc', expected a finite number.\n"
            "  3 | 1,abc\n"
            "  Correct the value or remove the line.");
  // Words from the first row on may be names of trajectories.
  EXPECT_NE(message("t,run,x\n0,a,1\n0,b,2\n").find("If the column run tells trajectories apart"),
            std::string::npos);
  EXPECT_EQ(message("t,run,x\n0,1,1\n1,a,2\n").find("trajectories apart"), std::string::npos);
  EXPECT_EQ(
      message("t,x\n0,1\n0,2\n"),
      "file.csv, line 3, column t: found time 0 after 0 in line 2, expected times that increase "
      "along a trajectory.\n"
      "  3 | 0,2\n"
      "  1. Keep one row of each time: duplicates=first or duplicates=mean.\n"
      "  2. Tell several trajectories apart: a column named trajectory (or id NAME), a blank "
      "line "
      "between them, or a file for each.");
  EXPECT_EQ(
      message("t,x,y\n0,1\n"),
      "file.csv, line 2, column y: found 2 cells in '0,1', expected 3 (t, x, y) separated by ','.\n"
      "  2 | 0,1\n"
      "  1. Complete or remove the line.\n"
      "  2. If another character separates the columns: separator, one of , ; tab |.");
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{{"", "no lines"},
                                                        {"\n\n# x\n", "no lines"},
                                                        {"t,x\n", "a header and no rows"},
                                                        {"t,x\n0,nan\n", "'nan'"},
                                                        {"t,x\n0,inf\n", "'inf'"},
                                                        {"t,x\n0,1e999\n", "'1e999'"},
                                                        {"t,x\n0,\n", "found nothing"},
                                                        {"a,b\n0,1\n", "time column"},
                                                        {"0 1\n1 2\n", "one column in '0 1'"},
                                                        {"t,x,x\n0,1,2\n", "twice"},
                                                        {"t,,x\n0,1,2\n", "no name for column 2"},
                                                        {"t\n0\n", "at least one variable"},
                                                        {std::string("\xff\xfet\0", 4), "UTF-16"},
                                                        {"t,x\n0,1,5\n", "3 cells"},
                                                        {"t,x\n0,0x10\n", "'0x10'"}})
    EXPECT_NE(message(text).find(part), std::string::npos) << text << " -> " << message(text);
  EXPECT_NE(message("t,x\n0,1\n", {.time = "", .id = "", .variables = {"q"}}).find("columns t, x"),
            std::string::npos);
}

TEST(CsvTest, BlankLinesSeparateTrajectories) {
  for (const char* text :
       {"t,x\n0,1\n1,2\n\n0,3\n1,4\n", "t,x\n\n0,1\n1,2\n\n\n \nt,x\n0,3\n1,4\n\n"}) {
    const Dataset d = parse_observations(text, "f");
    ASSERT_EQ(d.trajectories.size(), 2u) << text;
    EXPECT_EQ(d.trajectories[0].id, "1");
    EXPECT_EQ(d.trajectories[1].id, "2");
    EXPECT_EQ(d.trajectories[1].states(1, 0), 4);
  }
  // An id column says it already.
  EXPECT_EQ(parse_observations("id,t,x\na,0,1\n\na,1,2\n", "f").trajectories.size(), 1u);
}

TEST(CsvTest, ATableWithoutHeaderGetsNames) {
  const Dataset d = parse_observations("0,1,5\n1,2,6\n", "f");
  EXPECT_EQ(d.variables, (std::vector<std::string>{"x1", "x2"}));
  EXPECT_EQ(d.trajectories[0].states(0, 1), 5);
  const Dataset named = parse_observations("a,0,1\na,1,2\nb,0,3\n", "f");
  EXPECT_EQ(named.variables, std::vector<std::string>{"x1"});
  ASSERT_EQ(named.trajectories.size(), 2u);
  EXPECT_EQ(named.trajectories[1].id, "b");
  // The other way round by request.
  EXPECT_EQ(
      parse_observations("0,1\n2,3\n4,5\n", "f", {.time = "0", .header = HeaderRule::yes}).rows(),
      2);
  EXPECT_NE(message("t,x\n0,1\n", {.header = HeaderRule::no}).find("line 1:"), std::string::npos);
}

TEST(CsvTest, MissingCellsSplitTheTrajectoryOnRequest) {
  const std::string text = "t,x,y\n0,1,1\n1,2,1\n2,NA,1\n3,,1\n4,5,1\n5,6,1\n6,null,1\n";
  EXPECT_EQ(message(text),
            "file.csv, line 4, column x: found 'NA', a missing value, expected a finite number.\n"
            "  4 | 2,NA,1\n"
            "  1. Correct the value.\n"
            "  2. Leave such rows out and split the trajectory there: missing=drop.");
  const Dataset d = parse_observations(text, "f", {.missing = MissingRule::drop});
  ASSERT_EQ(d.trajectories.size(), 2u);
  EXPECT_EQ(d.trajectories[0].times, (std::vector<double>{0, 1}));
  EXPECT_EQ(d.trajectories[1].times, (std::vector<double>{4, 5}));
  EXPECT_EQ(d.trajectories[0].id, "1");
  // A column that is not read may have what it likes.
  EXPECT_EQ(parse_observations(text, "f", {.variables = {"y"}}).rows(), 7);
  // Each trajectory has its own gaps; the names of the pieces are new.
  const Dataset two = parse_observations("id,t,x\na,0,1\nb,0,1\na,1,nan\nb,1,2\na,2,3\na.2,0,1\n",
                                         "f", {.missing = MissingRule::drop});
  ASSERT_EQ(two.trajectories.size(), 4u);
  EXPECT_EQ(two.trajectories[0].id, "a.1");
  EXPECT_EQ(two.trajectories[1].rows(), 2);
  EXPECT_EQ(two.trajectories[2].id, "a.2'");
  EXPECT_EQ(two.trajectories[3].id, "a.2");
}

TEST(CsvTest, EverySpellingOfMissingIsKnown) {
  for (const std::string cell :
       {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}) {
    const std::string text = "t,x\n0,1\n1," + cell + "\n2,3\n";
    EXPECT_NE(message(text).find("missing=drop"), std::string::npos) << cell;
    EXPECT_EQ(parse_observations(text, "f", {.missing = MissingRule::drop}).trajectories.size(), 2u)
        << cell;
  }
  EXPECT_NE(message("t,x\n0,1\n1,inf\n", {.missing = MissingRule::drop}).find("'inf'"),
            std::string::npos);
}

TEST(CsvTest, RowsAreSortedAndJoinedOnRequest) {
  const std::string text = "t,x\n2,20\n0,1\n1,10\n0,3\n";
  const Dataset first =
      parse_observations(text, "f", {.sort = true, .duplicates = DuplicateRule::first});
  EXPECT_EQ(first.trajectories[0].times, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(first.trajectories[0].states(0, 0), 1);
  const Dataset mean =
      parse_observations(text, "f", {.sort = true, .duplicates = DuplicateRule::mean});
  EXPECT_EQ(mean.trajectories[0].states(0, 0), 2);
  EXPECT_EQ(mean.trajectories[0].states(2, 0), 20);
  EXPECT_NE(message(text, {.sort = true}).find("line 5: found time 0 after 0 in line 3"),
            std::string::npos)
      << message(text, {.sort = true});
  EXPECT_NE(message(text, {.duplicates = DuplicateRule::first})
                .find("line 3: found time 0 after 2 in line 2"),
            std::string::npos);
  // A gap lies where its time is, wherever its line stands.
  const Dataset gap = parse_observations("t,x\n3,1\n1.5,NA\n0,1\n1,1\n2,1\n", "f",
                                         {.missing = MissingRule::drop, .sort = true});
  ASSERT_EQ(gap.trajectories.size(), 2u);
  EXPECT_EQ(gap.trajectories[0].times, (std::vector<double>{0, 1}));
  EXPECT_EQ(gap.trajectories[1].times, (std::vector<double>{2, 3}));
  EXPECT_NE(message("t,x\n3,1\nNA,2\n", {.missing = MissingRule::drop, .sort = true})
                .find("a time, to sort by"),
            std::string::npos);
}

TEST(CsvTest, InputsAreReadBesideTheVariables) {
  const Dataset d = parse_observations("u,t,x\n7,0,1\n8,1,2\n9,2,3\n", "f", {.inputs = {"u"}});
  EXPECT_EQ(d.variables, std::vector<std::string>{"x"});
  EXPECT_EQ(d.inputs, std::vector<std::string>{"u"});
  EXPECT_EQ(d.trajectories[0].inputs(2, 0), 9);
  EXPECT_EQ(d.trajectories[0].states(2, 0), 3);
  const Split s = split_last(d, 0.34);
  EXPECT_EQ(s.test.trajectories[0].inputs(0, 0), 9);
  const Dataset back = parse_observations(format_csv(d), "f", {.inputs = {"u"}});
  EXPECT_EQ(back.trajectories[0].inputs, d.trajectories[0].inputs);
  EXPECT_NE(message("u,t,x\n7,0,1\n", {.variables = {"u"}, .inputs = {"u"}}).find("'u' twice"),
            std::string::npos);
}

TEST(CsvTest, TheDialectIsFoundAndSaid) {
  EXPECT_EQ(in_words(sniff("t;x\n0,5;1\n", "f", {})),
            "columns separated by ';', decimal comma, with header");
  EXPECT_EQ(in_words(sniff("0\t1.5\n1\t2\n", "f", {})),
            "columns separated by tabs, decimal point, no header");
  EXPECT_EQ(in_words(sniff("t|x\n0|1\n", "f", {})),
            "columns separated by '|', decimal point, with header");
  // Commas in words do not make a separator.
  EXPECT_EQ(sniff("id;t;x\na,b,c;0;1\nd,e,f;1;2\n", "f", {}).separator, ';');
}

TEST(CsvTest, WhatCanBeReadInTwoWaysIsRefusedWithBoth) {
  EXPECT_EQ(
      message("t;x\n0;1,234\n1;2,500\n"),
      "file.csv, line 2: found '1,234', which reads as 1.234 with a decimal comma and as 1234 with "
      "commas between thousands, expected numbers that can be read in one way only.\n"
      "  1. If it is a decimal comma: decimal=comma.\n"
      "  2. If not, write the numbers without commas between thousands.");
  EXPECT_EQ(parse_observations("t;x\n0;1,234\n1;2,500\n", "f", {.decimal = ','})
                .trajectories[0]
                .states(0, 0),
            1.234);
  // One number that can only be decimal settles it.
  EXPECT_EQ(parse_observations("t;x\n0;1,234\n1;0,5\n", "f").trajectories[0].states(0, 0), 1.234);
  EXPECT_EQ(
      message("t;x\n0;1.5\n1;2,5\n"),
      "file.csv, lines 2 and 3: found '1.5' with a decimal point and '2,5' with a decimal comma, "
      "expected one decimal mark.\n"
      "  1. Say which: decimal=point or decimal=comma.\n"
      "  2. Correct the file.");
  EXPECT_NE(message("t;x\n0;1.5\n1;2,5\n", {.decimal = '.'}).find("line 3, column x: found '2,5'"),
            std::string::npos);
}

TEST(CsvTest, QuotesAreReadOrRefused) {
  const Dataset d =
      parse_observations("id,t,\"x, in \"\"mm\"\"\"\n\"a,b\",0,\"1\"\n\"a,b\",1,2\n", "f");
  EXPECT_EQ(d.variables, std::vector<std::string>{"x, in \"mm\""});
  EXPECT_EQ(d.trajectories[0].id, "a,b");
  const Dataset back = parse_observations(format_csv(d), "f");
  EXPECT_EQ(back.variables, d.variables);
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"t,x\n0,\"1\n1,2\n", "line 2, column x: found a quote that is not closed"},
           {"t,x\n0,\"1\"2\n", "line 2, column x: found text after a closing quote"},
           {"t,x\n0,1\"\n", "line 2, column x: found a quote inside a cell"},
           {"id,t,x\na\"b,0,1\n", "line 2, column id: found a quote inside a cell"},
           {"\"t,x\n0,1\n", "line 1, column 1: found a quote that is not closed"}})
    EXPECT_NE(message(text).find(part), std::string::npos) << text << " -> " << message(text);
}

TEST(CsvTest, ColumnsAreNeverShifted) {
  const Dataset d = parse_observations("t,x,y\n0,1,2\n1,2,3\n", "f");
  for (const char* text :
       {"t,x,y\n0,1,2\n1,,2,3\n", "t,x,y\n0,1,2\n,1,2,3\n", "t,x,y\n0,1,2\n1,2,3,\n",
        "t,x,y\n0,1,2\n1 2,3\n", "t,x,y\n0;1;2\n1;2;3\n"})
    EXPECT_NE(message(text).find("line "), std::string::npos) << text << " -> " << message(text);
}

TEST(CsvTest, ManyColumnsTakeLinearTime) {
  // Found by the fuzzer on a small scale: names were compared each with each.
  std::string names = "t", numbers = "0", words = "a";
  for (int i = 0; i < 100'000; ++i) {
    names += ",v" + std::to_string(i);
    numbers += ",1";
    words += ",a";
  }
  const auto begin = std::clock();
  EXPECT_EQ(parse_observations(names + "\n" + numbers + "\n", "f").dimension(), 100'000);
  EXPECT_NE(message(words + "\n" + words + "\n", {.header = HeaderRule::no}), "no error");
  EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC);
}

TEST(CsvTest, ALongHeaderIsLookedAtWhole) {
  std::string names = "t", numbers = "0";
  for (int i = 0; i < 60'000; ++i) names += ";v" + std::to_string(i), numbers += ";1,5";
  const auto path = std::filesystem::temp_directory_path() / "odecast_long_header.csv";
  write_file(path, names + "\n" + numbers + "\n");
  ASSERT_GT(names.size(), 1u << 18);
  for (const Dataset& d :
       {read_observations(path, {.decimal = ','}),
        parse_observations(names + "\n" + numbers + "\n", "f", {.decimal = ','})}) {
    EXPECT_EQ(d.dimension(), 60'000);
    EXPECT_EQ(d.trajectories[0].states(0, 59'999), 1.5);
  }
  std::filesystem::remove(path);
}

TEST(CsvTest, LongLinesAreRefused) {
  const auto path = std::filesystem::temp_directory_path() / "odecast_long_line.csv";
  write_file(path, "t,x\n0,1\n" + std::string(3 << 20, '1') + "\n");
  try {
    read_observations(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("line 3: found a line of more than 1 MiB"),
              std::string::npos)
        << e.what();
  }
  std::filesystem::remove(path);
}

TEST(CsvTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_EQ(message("t,x\n0,\x1b[31m\n").find('\x1b'), std::string::npos);
}

TEST(CsvTest, CertifiedTimeSurvives) {
  Dataset d = parse_observations("t,x\n0,1\n1,2\n", "f");
  d.certified_until = 0.125;
  EXPECT_EQ(parse_observations(format_csv(d), "f").certified_until, 0.125);
}

RC_GTEST_PROP(CsvTest, WrittenTablesReadBackBitForBit, ()) {
  const auto rows = *rc::gen::inRange(1, 20);
  const auto columns = *rc::gen::inRange(1, 5);
  const auto several = *rc::gen::inRange(1, 4);
  const auto number =
      rc::gen::suchThat(rc::gen::arbitrary<double>(), [](double x) { return std::isfinite(x); });
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
  const Dataset back = parse_observations(format_csv(d), "f");
  RC_ASSERT(back.variables == d.variables);
  RC_ASSERT(back.trajectories.size() == d.trajectories.size());
  for (std::size_t k = 0; k < d.trajectories.size(); ++k) {
    RC_ASSERT(back.trajectories[k].times == d.trajectories[k].times);
    RC_ASSERT(back.trajectories[k].states == d.trajectories[k].states);
  }
}

}  // namespace
}  // namespace odecast
