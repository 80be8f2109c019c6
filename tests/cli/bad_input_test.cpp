#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/program.hpp"

namespace odecast::cli_test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

enum { kNotTrusted = 1, kUsage = 2, kBadData = 3, kFileFailure = 4 };

class BadInputTest : public ProgramTest {
 protected:
  BadInputTest() { write("old.out", "the old file\n"); }

  /// Runs a command that must be refused with `code`: one line on standard error that has where,
  /// found, expected, indented lines below it for the text and the remedies, all of `parts`, nothing
  /// on standard output, every file as before.
  Result refused(const Words& args, int code, const Words& parts, const How& how = {}) const {
    const auto before = snapshot();
    const Result result = run(args, how);
    std::string faults;
    const auto require = [&](bool good, const std::string& fault) {
      if (!good) faults += "- " + fault + "\n";
    };
    require(result.code == code,
            "exit " + std::to_string(result.code) + " and not " + std::to_string(code));
    require(result.out.empty(), "standard output is not empty");
    require(result.err.starts_with("odecast: "), "the message does not begin with odecast:");
    const Words lines = split(result.err, '\n');
    require(lines.size() >= 2 && lines.back().empty(), "the message does not end with its line");
    for (std::size_t i = 1; i + 1 < lines.size(); ++i)
      require(lines[i].starts_with("  "), "not one message: " + lines[i]);
    Words all = {": found ", ", expected "};
    all.insert(all.end(), parts.begin(), parts.end());
    for (const auto& part : all)
      require(contains(result.err, part), "the message lacks: " + part);
    require(changes(before).empty(), "files were changed:" + changes(before));
    if (!faults.empty())
      ADD_FAILURE() << "odecast " << joined(args) << "\n" << result.err << faults;
    return result;
  }

  /// A data file with this text must be refused by every command that reads one.
  void refused_data(const std::string& text, const Words& parts) const {
    write("bad.csv", text);
    refused({"fit", "bad.csv", "-o", "old.out"}, kBadData, parts);
    refused({"split", "bad.csv", "--train", "old.out", "--test", "new.out"}, kBadData, parts);
  }

  /// The whole message for a data file with this text.
  void golden(const std::string& text, const Words& options, const std::string& message) const {
    write("bad.csv", text);
    Words words = {"fit", "bad.csv", "-o", "old.out"};
    words.insert(words.end(), options.begin(), options.end());
    const Result result = refused(words, kBadData, {});
    EXPECT_EQ(result.err, "odecast: " + message + "\n");
  }

  /// one.json: the smallest model there is, so that every byte of it can be tried.
  void make_one_dimensional_model(const Words& options) const {
    std::string text = "t,u\n";
    for (int i = 0; i <= 180; ++i) {
      const double t = 0.005 * i;
      text += std::to_string(t) + "," + std::to_string(1 / (1 - t)) + "\n";
    }
    write("pole.csv", text);
    Words words = {"fit", "pole.csv", "--trainer", "adam", "--batches", "20", "-o", "one.json"};
    words.insert(words.end(), options.begin(), options.end());
    run_well(words);
  }

  /// forecast.csv of x at t = 5 and 6, started at 0.
  void make_forecast() const {
    write("forecast.csv", "t,x_mean,x_sd,x_lower,x_upper\n0,0,0,0,0\n5,1,1,-1,3\n6,1,1,-1,3\n");
  }

  void interrupted(const Words& args, int signal) const {
    const auto before = snapshot();
    const Result result = run(args, {.signal = signal, .signal_after = 1.5});
    EXPECT_EQ(result.code, 128 + signal) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, "interrupted")) << result.err;
    EXPECT_LT(result.seconds, 1);
    EXPECT_EQ(changes(before), "");
  }

  /// long.csv: 4001 rows, enough for the default schedule to take seconds.
  void make_long_data() const {
    run_well({"simulate", "SprottB", "--until", "80", "--step", "0.02", "-o", "long.csv"});
  }
};

// --- data files

TEST_F(BadInputTest, MissingFile) {
  make_model();
  const Words parts = {"'nowhere.csv'", "No such file"};
  refused({"fit", "nowhere.csv", "-o", "old.out"}, kFileFailure, parts);
  refused({"split", "nowhere.csv", "--train", "old.out"}, kFileFailure, parts);
  refused({"forecast", "nowhere.csv", "--until", "9", "-o", "old.out"}, kFileFailure, parts);
  refused({"forecast", "model.json", "--at", "nowhere.csv", "-o", "old.out"}, kFileFailure, parts);
  refused({"equations", "nowhere.csv"}, kFileFailure, parts);
  refused({"predict", "nowhere.csv", "--at", "1,1,1"}, kFileFailure, parts);
  refused({"score", "nowhere.csv", "train.csv"}, kFileFailure, parts);
  refused({"plot", "nowhere.csv", "-o", "old.out"}, kFileFailure, parts);
}

TEST_F(BadInputTest, DirectoryInsteadOfFile) {
  refused({"fit", ".", "-o", "old.out"}, kFileFailure, {"'.'", "directory"});
}

TEST_F(BadInputTest, EmptyFile) {
  refused_data("", {"bad.csv", "no lines", "a header"});
  refused_data("\n \n# nothing but a comment\n", {"bad.csv", "no lines", "a header"});
}

TEST_F(BadInputTest, HeaderOnly) {
  refused_data("t,x,y\n", {"bad.csv", "a header and no rows", "rows of numbers"});
}

TEST_F(BadInputTest, OneRow) { refused_data("t,x\n0,1\n", {"bad.csv", "1 row", "rows"}); }

TEST_F(BadInputTest, RaggedRow) {
  refused_data("t,x,y\n0,1,2\n1,2\n", {"bad.csv, line 3", "2 cells", "'1,2'", "3 (t, x, y)"});
  refused_data("t,x,y\n0,1,2\n1,2,3,4\n", {"bad.csv, line 3", "4 cells", "3 (t, x, y)"});
}

TEST_F(BadInputTest, WordWhereANumberBelongs) {
  refused_data("t,x,y\n0,1,2\n1,2,three\n", {"bad.csv, line 3, column y", "'three'", "number"});
  refused_data("t,x,y\n0,1,2\nnoon,2,3\n", {"bad.csv, line 3, column t", "'noon'", "number"});
  refused_data("t,x,y\n0,1,2\n1,2,\n", {"bad.csv, line 3, column y", "nothing", "number"});
  refused_data("t,x,y\n0,1,2\n1,2 3,4\n", {"bad.csv, line 3, column x", "'2 3'", "number"});
  refused_data("t,x,y\n0,1,2\n1,0x10,4\n", {"bad.csv, line 3, column x", "'0x10'", "number"});
}

TEST_F(BadInputTest, NotANumber) {
  for (const std::string nan : {"nan", "NaN", "-nan", "nan(1)"})
    refused_data("t,x,y\n0,1,2\n1," + nan + ",3\n",
                 {"bad.csv, line 3, column x", "'" + nan + "'", "finite number"});
}

TEST_F(BadInputTest, Infinity) {
  for (const std::string inf : {"inf", "-Inf", "infinity", "1e999", "-1e999"})
    refused_data("t,x,y\n0,1,2\n1," + inf + ",3\n",
                 {"bad.csv, line 3, column x", "'" + inf + "'", "finite number"});
}

TEST_F(BadInputTest, TimesThatDoNotIncrease) {
  // The comment makes a line number that counts rows instead differ.
  refused_data("t,x\n# note\n0,1\n2,1\n1.5,1\n",
               {"bad.csv, line 5, column t", "1.5", "after 2", "line 4", "increase"});
}

TEST_F(BadInputTest, DuplicateTime) {
  refused_data("time,x\n0,1\n1,1\n1,1\n",
               {"bad.csv, line 4, column time", "1 after 1", "line 3", "increase"});
  refused_data("trajectory,t,x\na,0,1\nb,0,1\na,1,2\nb,1,2\na,1,3\n",
               {"bad.csv, line 6, column t", "1 after 1", "line 4", "increase"});
}

TEST_F(BadInputTest, HeaderIsUnusable) {
  refused_data("x,y\n1,2\n3,4\n", {"bad.csv, line 1", "x, y", "time column", "--time NAME"});
  refused_data("t\n1\n2\n", {"bad.csv, line 1", "variable"});
  refused_data("t,x,x\n1,2,3\n2,3,4\n", {"bad.csv, line 1", "'x' twice", "different names"});
  refused_data("t,x,\n1,2,3\n2,3,4\n", {"bad.csv, line 1", "column 3", "name"});
  refused_data("t x\n1 2\n2 3\n", {"bad.csv, line 1", "one column in 't x'", "tr -s"});
}

// One test per row of the list of inputs that people really have; the whole message is checked.

const std::string kTellApart =
    "Tell several trajectories apart: a column named trajectory (or --id NAME), a blank line between "
    "them, or a file for each.";

TEST_F(BadInputTest, GoldenHeaderOrNone) {
  golden("a,b\n0,1\n1,2\n", {},
         "bad.csv, line 1: found columns a, b, expected a header with a time column named t or time.\n"
         "  1 | a,b\n"
         "  1. Name it: --time NAME.\n"
         "  2. Add the header line, e.g. t,x,y,z.\n"
         "  3. Say that there is none: --header no.");
  golden(",t,x\n0,0,1\n1,1,2\n", {},
         "bad.csv, line 1: found no name for column 1, expected a name for every column.\n"
         "  1 | ,t,x\n"
         "  1. Name the column in the first line, e.g. t,x,y,z.\n"
         "  2. Choose the columns to read: --variables x,y,z.\n"
         "  3. From pandas, write the file with to_csv(…, index=False).");
  write("none.csv", "0,1\n1,2\n2,4\n");
  EXPECT_TRUE(contains(run_well({"fit", "none.csv", "--dropout", "0", "-o", "m.json"}).out,
                       "Read none.csv: columns separated by ',', decimal point, no header, variables x1."));
}

TEST_F(BadInputTest, GoldenEncoding) {
  golden(std::string("\xff\xfet\0,\0x\0", 8), {},
         "bad.csv: found UTF-16 text, expected text in UTF-8 or ASCII. Save the file as CSV UTF-8.");
  golden(std::string("t\0,\0x\0\n\0", 8), {},
         "bad.csv: found zero bytes, as in UTF-16 text or in no text at all, expected text in UTF-8 or "
         "ASCII. Save the file as CSV UTF-8.");
}

TEST_F(BadInputTest, GoldenDecimalComma) {
  golden("t;x\n0;1,234\n1;2,500\n", {},
         "bad.csv, line 2: found '1,234', which reads as 1.234 with a decimal comma and as 1234 with "
         "commas between thousands, expected numbers that can be read in one way only.\n"
         "  1. If it is a decimal comma: --decimal comma.\n"
         "  2. If not, write the numbers without commas between thousands.");
  golden("t;x\n0;1,5\n1;2,5\n2;3.5\n", {"--decimal", "comma"},
         "bad.csv, line 4, column x: found '3.5', expected a finite number with a decimal comma.\n"
         "  4 | 2;3.5\n"
         "  1. Correct the value or remove the line.\n"
         "  2. If all numbers are written so: --decimal point.");
  golden("t,x\n0,1,5\n1,2,5\n", {},
         "bad.csv, line 2, column 3: found 3 cells in '0,1,5', expected 2 (t, x) separated by ','.\n"
         "  2 | 0,1,5\n"
         "  1. Complete or remove the line.\n"
         "  2. If another character separates the columns: --separator, one of , ; tab |.");
}

TEST_F(BadInputTest, GoldenMissingCell) {
  golden("t,x,y\n0,1,2\n1,,3\n", {},
         "bad.csv, line 3, column x: found nothing, expected a finite number.\n"
         "  3 | 1,,3\n"
         "  1. Correct the value.\n"
         "  2. Leave such rows out and split the trajectory there: --missing drop.");
  golden("t,x\n0,NA\n1,NA\n", {"--missing", "drop"},
         "bad.csv: found 2 rows, each with a missing cell, expected rows of numbers below it. Check that "
         "the file was written completely.");
  write("gap.csv", "t,x\n0,1\n1,2\n2,NaN\n3,1\n4,3\n5,9\n");
  EXPECT_TRUE(contains(run_well({"fit", "gap.csv", "--missing", "drop", "--dropout", "0", "-o", "m.json"}).out,
                       "1 row with a missing cell left out; 2 trajectories remain."));
}

TEST_F(BadInputTest, GoldenInfinity) {
  golden("t,x\n0,1\n1,inf\n", {},
         "bad.csv, line 3, column x: found 'inf', expected a finite number.\n"
         "  3 | 1,inf\n"
         "  Correct the value or remove the line.");
  golden("t,x,y\n0,0,1e300\n1,1,-1e300\n2,2,1e300\n3,3,-1e300\n", {},
         "bad.csv, column y: found values from -1e+300 to 1e+300, whose squares overflow, expected values "
         "below 1e154. Write the column in larger units, or remove the outliers.");
}

TEST_F(BadInputTest, GoldenTimes) {
  golden("t,x\n0,1\n2,1\n1,1\n", {},
         "bad.csv, line 4, column t: found time 1 after 2 in line 3, expected times that increase along a "
         "trajectory.\n"
         "  4 | 1,1\n"
         "  1. Sort the rows by time: --sort.\n"
         "  2. " + kTellApart);
  golden("t,x\n0,1\n1,1\n1,2\n", {},
         "bad.csv, line 4, column t: found time 1 after 1 in line 3, expected times that increase along a "
         "trajectory.\n"
         "  4 | 1,2\n"
         "  1. Keep one row of each time: --duplicates first or --duplicates mean.\n"
         "  2. " + kTellApart);
  golden("t,x\n2,1\n0,1\n2,2\n", {"--sort"},
         "bad.csv, line 4: found time 2 after 2 in line 2, expected times that increase along a "
         "trajectory.\n"
         "  1. Keep one row of each time: --duplicates first or --duplicates mean.\n"
         "  2. " + kTellApart);
  write("bad.csv", "t,x\n2,1\n0,1\n2,2\n1,5\n3,-1\n");
  run_well({"fit", "bad.csv", "--sort", "--duplicates", "mean", "--dropout", "0", "-o", "m.json"});
}

TEST_F(BadInputTest, GoldenTooFewRows) {
  golden("", {}, "bad.csv: found no lines, expected a header such as t,x,y,z and rows of numbers. Check that "
                 "the right file was given.");
  golden("t,x,y\n", {}, "bad.csv: found a header and no rows, expected rows of numbers below it. Check that the "
                        "file was written completely.");
}

TEST_F(BadInputTest, GoldenRaggedRow) {
  golden("t,x,y\n0,1,2\n1,2\n", {},
         "bad.csv, line 3, column y: found 2 cells in '1,2', expected 3 (t, x, y) separated by ','.\n"
         "  3 | 1,2\n"
         "  1. Complete or remove the line.\n"
         "  2. If another character separates the columns: --separator, one of , ; tab |.");
  golden("t,x\n0,\"1\n1,2\n", {},
         "bad.csv, line 2, column x: found a quote that is not closed in this line, expected cells with "
         "both quotes or with none.\n"
         "  2 | 0,\"1\n"
         "  Correct the line.");
}

TEST_F(BadInputTest, GoldenLongLine) {
  golden("t,x\n0,1\n" + std::string(3 << 20, '1') + "\n", {},
         "bad.csv, line 3: found a line of more than 1 MiB, expected lines of numbers. Check that the file "
         "is a text table.");
}

TEST_F(BadInputTest, GoldenDamagedGzip) {
  golden("\x1f\x8b\x08", {}, "bad.csv: found a gzip file that ends too early, expected a whole gzip file. "
                             "Compress or transfer the file again.");
  golden("\x1f\x8bnonsense that is no gzip", {},
         "bad.csv: found damaged gzip data, expected a whole gzip file. Compress or transfer the file again.");
}

TEST_F(BadInputTest, GoldenSeveralFiles) {
  write("a.csv", "t,x\n0,1\n1,2\n");
  write("b.csv", "t,y\n0,1\n1,2\n");
  const Result result = refused({"fit", "a.csv", "b.csv", "-o", "old.out"}, kBadData, {});
  EXPECT_EQ(result.err, "odecast: b.csv: found columns y, expected x as in a.csv.\n"
                        "  1. Choose common columns: --variables A,B,….\n"
                        "  2. Fit the files separately.\n");
  refused({"fit", "a.csv", "a.csv", "-o", "old.out"}, kUsage, {"'a.csv'", "twice"});
  refused({"fit", "a.csv", "b.csv", "-o", "b.csv"}, kUsage, {"also the input"});
}

TEST_F(BadInputTest, GoldenConstantColumn) {
  // Not an error: scikit-learn's rule, and no division by zero.
  write("constant.csv", "t,x,y\n0,1,5\n1,2,5\n2,4,5\n3,8,5\n");
  run_well({"fit", "constant.csv", "--dropout", "0.25", "-o", "m.json"});
  EXPECT_FALSE(contains(read("m.json"), "nan"));
  refused({"fit", "constant.csv", "-o", "old.out"}, kBadData, {"constant.csv, column x", "4 rows with a value", "at least 8", "--dropout"});
}

TEST_F(BadInputTest, HeaderThatIsNotUtf8) {
  // A model is JSON: what cannot stand in it has to be found before the fit, not after.
  write("bad.csv", "t,x\xb0\n0,1\n1,2\n2,1\n");
  refused({"fit", "bad.csv", "-o", "old.out"}, kBadData, {"bad.csv, line 1", "UTF-8"});
}

TEST_F(BadInputTest, UnknownColumn) {
  make_data();
  for (const std::string option : {"--variables", "--time", "--id"}) {
    const Words parts = {option, "'w'", "train.csv", "t, x, y, z"};
    refused({"fit", "train.csv", option, "w", "-o", "old.out"}, kUsage, parts);
    refused({"split", "train.csv", option, "w", "--train", "old.out"}, kUsage, parts);
  }
  refused({"fit", "train.csv", "--variables", "x,w,y", "-o", "old.out"}, kUsage, {"'w'"});
}

TEST_F(BadInputTest, VariableGivenTwice) {
  make_data();
  refused({"fit", "train.csv", "--variables", "x,y,x", "-o", "old.out"}, kUsage,
          {"--variables", "'x'", "twice"});
}

// --- options

TEST_F(BadInputTest, WrongLengthOfInit) {
  make_model();
  for (const auto& [init, found] :
       {std::pair{"1,1", "2 values"}, std::pair{"1,1,1,1", "4 values"}}) {
    const Words parts = {"--init", found, "3 (x, y, z)"};
    refused({"forecast", "model.json", "--init", init, "--until", "2", "-o", "old.out"}, kUsage,
            parts);
    refused({"simulate", "SprottB", "--init", init, "-o", "old.out"}, kUsage, parts);
  }
  refused({"forecast", "model.json", "--init-sd", "1", "--until", "2", "-o", "old.out"}, kUsage,
          {"--init-sd", "1 values", "3 (x, y, z)"});
  refused({"predict", "model.json", "--at", "1,1"}, kUsage, {"--at", "2 values", "3"});
  refused({"predict", "model.json"}, kUsage, {"--at"});
}

TEST_F(BadInputTest, InitThatIsNoNumber) {
  make_model();
  for (const std::string init : {"1,one,1", "1,,1", "1,nan,1", "1,inf,1"}) {
    refused({"forecast", "model.json", "--init", init, "--until", "2", "-o", "old.out"}, kUsage,
            {"--init", "'" + init + "'", "finite numbers"});
    refused({"simulate", "SprottB", "--init", init, "-o", "old.out"}, kUsage,
            {"--init", "'" + init + "'", "finite numbers"});
  }
}

TEST_F(BadInputTest, UnknownSystem) {
  refused({"simulate", "Lorens", "-o", "old.out"}, kUsage, {"system", "'Lorens'", "Lorenz"});
  refused({"simulate", "sprotb", "-o", "old.out"}, kUsage, {"system", "'sprotb'", "SprottB"});
  refused({"systems", "Roessler"}, kUsage, {"system", "'Roessler'", "Rossler"});
}

TEST_F(BadInputTest, UnknownParameterOfASystem) {
  refused({"simulate", "Lorenz", "--set", "roh=24", "-o", "old.out"}, kUsage,
          {"parameter", "'roh'", "rho"});
  refused({"simulate", "Lorenz", "--set", "rho", "-o", "old.out"}, kUsage, {"--set", "'rho'"});
}

TEST_F(BadInputTest, NegativeStep) {
  make_model();
  refused({"simulate", "SprottB", "--step", "-0.02", "-o", "old.out"}, kUsage,
          {"--step", "-0.02", "> 0"});
  refused({"forecast", "model.json", "--until", "2", "--step", "-0.02", "-o", "old.out"}, kUsage,
          {"--step", "-0.02", "> 0"});
}

TEST_F(BadInputTest, ZeroStep) {
  make_model();
  refused({"simulate", "SprottB", "--step", "0", "-o", "old.out"}, kUsage, {"--step", "> 0"});
  refused({"forecast", "model.json", "--until", "2", "--step", "0", "-o", "old.out"}, kUsage,
          {"--step", "found 0", "> 0"});
  refused({"forecast", "model.json", "--until", "2", "--method", "rk4", "--fixed-step", "0", "-o",
           "old.out"},
          kUsage, {"fixed", "found 0", "> 0"});
}

TEST_F(BadInputTest, TinyStep) {
  refused({"simulate", "SprottB", "--step", "1e-300", "--until", "1", "-o", "old.out"}, kUsage,
          {"--step", "1e-300"});
}

TEST_F(BadInputTest, FixedStepThatDoesNotMoveTime) {
  make_model();
  // 1 + 1e-300 == 1. Two seconds are plenty to see that; the step caps alone would take hours.
  const Result result =
      run({"forecast", "model.json", "--until", "2", "--method", "rk4", "--fixed-step", "1e-300",
           "-o", "old.out"},
          {.limit = 2});
  EXPECT_TRUE(result.code == kNotTrusted || result.code == kUsage) << result.code;
  EXPECT_EQ(read("old.out"), "the old file\n");
}

TEST_F(BadInputTest, DropoutOutOfRange) {
  make_data();
  for (const std::string rate : {"1", "-0.1", "nan", "1.5", "inf", "a quarter", ""})
    refused({"fit", "train.csv", "--dropout", rate, "-o", "old.out"}, kUsage,
            {"--dropout", rate, rate == "1" || rate == "-0.1" ? "[0, 1)" : ""});
}

TEST_F(BadInputTest, DrawsOutOfRange) {
  make_model();
  for (const std::string draws : {"0", "1", "-5", "many", "2.5", "1e3", "99999999999999999999"})
    refused({"forecast", "model.json", "--until", "2", "--draws", draws, "-o", "old.out"}, kUsage,
            {"--draws", "'" + draws + "'", "whole number from 2"});
}

TEST_F(BadInputTest, LevelOutOfRange) {
  make_model();
  for (const std::string level : {"0", "1", "-0.5", "95"}) {
    refused({"forecast", "model.json", "--until", "2", "--level", level, "-o", "old.out"}, kUsage,
            {"--level", level, "between 0 and 1"});
    refused({"predict", "model.json", "--at", "1,1,1", "--level", level}, kUsage,
            {"--level", level, "between 0 and 1"});
  }
}

TEST_F(BadInputTest, UntilBeforeStart) {
  make_model();  // its last observation is at t = 1
  for (const std::string until : {"0.5", "1", "-3"})
    refused({"forecast", "model.json", "--until", until, "-o", "old.out"}, kUsage,
            {"--until", until, "after the start (1)"});
  refused({"forecast", "model.json", "--init", "1,1,1", "--from", "7", "--until", "6", "-o",
           "old.out"},
          kUsage, {"--until", "found 6", "after the start (7)"});
  refused({"simulate", "SprottB", "--until", "-1", "-o", "old.out"}, kUsage,
          {"--until", "-1", "after the start (0)"});
}

TEST_F(BadInputTest, ForecastWithoutTimes) {
  make_model();
  refused({"forecast", "model.json", "-o", "old.out"}, kUsage, {"--until", "--at", "t = 1"});
  refused({"forecast", "model.json", "--at", "train.csv", "--until", "2", "-o", "old.out"}, kUsage,
          {"--at", "--until"});
  // All times of the file are those of the data, none after the last observation.
  refused({"forecast", "model.json", "--at", "train.csv", "-o", "old.out"}, kUsage, {"times"});
}

TEST_F(BadInputTest, UnknownOption) {
  make_data();
  refused({"fit", "train.csv", "--dropuot", "0.1", "-o", "old.out"}, kUsage,
          {"--dropuot", "perhaps --dropout"});
  refused({"forecast", "model.json", "--draw=10", "-o", "old.out"}, kUsage,
          {"option --draw:", "perhaps --draws"});
  refused({"fit", "train.csv", "--xyzzy", "-o", "old.out"}, kUsage,
          {"--xyzzy", "odecast fit --help"});
  refused({"fit", "train.csv", "-x", "-o", "old.out"}, kUsage, {"-x"});
}

TEST_F(BadInputTest, UnknownCommand) {
  refused({"forcast", "model.json"}, kUsage, {"'forcast'", "perhaps forecast"});
  refused({"xyzzy"}, kUsage, {"'xyzzy'", "odecast --help"});
  refused({""}, kUsage, {"''"});
}

TEST_F(BadInputTest, OptionWithoutValue) {
  make_data();
  refused({"fit", "train.csv", "-o", "old.out", "--degree"}, kUsage, {"--degree", "nothing"});
  refused({"fit", "train.csv", "--degree", "-o", "old.out"}, kUsage, {"--degree", "-o"});
  refused({"fit", "train.csv", "--degree=", "-o", "old.out"}, kUsage, {"--degree", "''"});
  refused({"fit", "train.csv", "-o"}, kUsage, {"-o", "nothing", "FILE"});
}

TEST_F(BadInputTest, ValueForASwitch) {
  make_data();
  refused({"fit", "train.csv", "--json=yes", "-o", "old.out"}, kUsage, {"--json", "switch"});
}

TEST_F(BadInputTest, OptionGivenTwice) {
  make_data();
  refused({"fit", "train.csv", "--seed", "1", "--seed=1", "-o", "old.out"}, kUsage,
          {"--seed", "twice"});
  refused({"fit", "train.csv", "--output", "new.out", "-o", "old.out"}, kUsage, {"-o", "twice"});
}

TEST_F(BadInputTest, ValueNotAmongTheChoices) {
  make_data();
  refused({"fit", "train.csv", "--scale", "some", "-o", "old.out"}, kUsage,
          {"--scale", "'some'", "standard, none"});
  refused({"forecast", "model.json", "--bands", "", "-o", "old.out"}, kUsage,
          {"--bands", "''", "both, sd, quantiles"});
  refused({"equations", "model.json", "--format", "fortran"}, kUsage,
          {"--format", "'fortran'", "text, latex, json, c"});
}

TEST_F(BadInputTest, WrongNumberOfArguments) {
  make_data();
  refused({"fit", "-o", "old.out"}, kUsage, {"odecast fit", "0 arguments", "DATA"});
  refused({"score", "a", "b", "c"}, kUsage, {"odecast score", "3 arg"});
  refused({"score", "train.csv"}, kUsage, {"odecast score", "1 arg", "FORECAST TRUTH"});
  refused({"systems", "Lorenz", "Rossler"}, kUsage, {"odecast systems", "2 arg"});
}

TEST_F(BadInputTest, SeedAndThreadsOutOfRange) {
  make_data();
  for (const std::string seed : {"-1", "1.5", "x", "18446744073709551616"})
    refused({"fit", "train.csv", "--seed", seed, "-o", "old.out"}, kUsage,
            {"--seed", "'" + seed + "'", "whole number"});
  for (const std::string threads : {"0", "-2", "two", "1000000"})
    refused({"fit", "train.csv", "--threads", threads, "-o", "old.out"}, kUsage,
            {"--threads", "'" + threads + "'", "whole number"});
}

TEST_F(BadInputTest, ScheduleThatIsNone) {
  make_data();
  for (const std::string schedule : {"10", "@0.1", "0@0.1", "1.5@0.1", "nan@0.1", "10@", "10@x"})
    refused({"fit", "train.csv", "--schedule", schedule, "-o", "old.out"}, kUsage,
            {"--schedule", "'" + schedule + "'", "STEPS@RATE"});
  refused({"fit", "train.csv", "--trainer", "adam", "--batches", "0", "-o", "old.out"}, kUsage,
          {"--batches", "'0'"});
}

TEST_F(BadInputTest, GiantDegree) {
  make_data();
  for (const std::string degree : {"21", "1000000000", "99999999999999999999999"})
    refused({"fit", "train.csv", "--degree", degree, "-o", "old.out"}, kUsage,
            {"--degree", degree, "to 20"});
  // Small enough as a degree, not as a number of monomials: 3108105 and 53130. The time limit also
  // bounds the memory that a program without this check would take.
  std::string header = "t", row;
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    header += "," + name;
    row += ",1";
  }
  write("five.csv", header + "\n0" + row + "\n1" + row + "\n2" + row + "\n");
  write("eight.csv", header + ",f,g,h\n0,1,1,1" + row + "\n1,1,1,1" + row + "\n");
  for (const std::string file : {"eight.csv", "five.csv"})
    refused({"fit", file, "--degree", "20", "--trainer", "adam", "--batches", "1", "--schedule", "1@0.001", "-o",
             "old.out"},
            kUsage, {"--degree", "20", "monomials"}, {.limit = 3});
}

TEST_F(BadInputTest, GiantLayers) {
  make_data();
  refused({"fit", "train.csv", "--layers", "100000,100000", "-o", "old.out"}, kUsage,
          {"weights", "at most"});
  refused({"fit", "train.csv", "--layers", "8,0", "-o", "old.out"}, kUsage, {"--layers", "0"});
  refused({"fit", "train.csv", "--hidden", "1000000", "-o", "old.out"}, kUsage,
          {"--hidden", "'1000000'"});
}

TEST_F(BadInputTest, UnknownInstructionSet) {
  make_model();
  const How how{.environment = {{"ODECAST_ISA", "nonsense"}}};
  const Words parts = {"ODECAST_ISA", "'nonsense'", "sse2"};
  refused({"fit", "train.csv", "-o", "old.out"}, kUsage, parts, how);
  refused({"forecast", "model.json", "--until", "2", "-o", "old.out"}, kUsage, parts, how);
}

// --- model files

TEST_F(BadInputTest, ModelTruncated) {
  make_model();
  const std::string whole = read("model.json");
  std::vector<std::size_t> lengths = {0, 1, 2, 100, whole.size() - 1, whole.size() - 2};
  for (int i = 1; i < 16; ++i) lengths.push_back(whole.size() * static_cast<std::size_t>(i) / 16);
  for (const std::size_t length : lengths) {
    write("cut.json", whole.substr(0, length));
    refused({"forecast", "cut.json", "--until", "2", "-o", "old.out"}, kBadData,
            {"'cut.json'", "again"});
    refused({"equations", "cut.json"}, kBadData, {"'cut.json'"});
    refused({"predict", "cut.json", "--at", "1,1,1"}, kBadData, {"'cut.json'"});
  }
}

TEST_F(BadInputTest, ModelWithOneByteChanged) {
  make_one_dimensional_model({"--hidden", "1"});
  const std::string whole = read("one.json");
  int tried = 0;
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    for (const char byte : {static_cast<char>(whole[at] ^ 1), '9', '\xff'}) {
      if (byte == whole[at]) continue;
      std::string changed = whole;
      changed[at] = byte;
      write("changed.json", changed);
      SCOPED_TRACE("byte " + std::to_string(at));
      refused({"forecast", "changed.json", "--until", "0.95", "-o", "old.out"}, kBadData,
              {"'changed.json'"});
      if (HasFailure()) return;  // one is enough to read
      ++tried;
    }
  }
  EXPECT_GT(tried, 300);
}

TEST_F(BadInputTest, ModelWithANumberTooLarge) {
  // Damage that is still JSON by its grammar.
  make_one_dimensional_model({"--hidden", "1"});
  std::string changed = read("one.json");
  const auto value = changed.find("\"data_scale\": ");
  ASSERT_NE(value, changed.npos);
  write("changed.json", changed.insert(changed.find(',', value), "e999"));
  refused({"forecast", "changed.json", "--until", "0.95", "-o", "old.out"}, kBadData,
          {"'changed.json'"});
}

TEST_F(BadInputTest, ModelThatIsSomethingElse) {
  make_data();
  refused({"forecast", "train.csv", "--until", "2", "-o", "old.out"}, kBadData,
          {"'train.csv'", "not JSON"});
  write("other.json", "{\"model\": 1}\n");
  refused({"forecast", "other.json", "--until", "2", "-o", "old.out"}, kBadData,
          {"'other.json'", "odecast_model"});
  write("deep.json", std::string(100000, '['));
  refused({"forecast", "deep.json", "--until", "2", "-o", "old.out"}, kBadData,
          {"'deep.json'", "nesting"});
}

TEST_F(BadInputTest, ModelOfANewerVersion) {
  make_model();
  std::string text = read("model.json");
  const std::string version = "\"odecast_model\": 1";
  ASSERT_TRUE(contains(text, version));
  text.replace(text.find(version) + version.size() - 1, 1, "9");
  write("newer.json", text);
  refused({"forecast", "newer.json", "--until", "2", "-o", "old.out"}, kBadData,
          {"'newer.json'", "version 9", "version 6 or older", "newer"});
}

// --- outputs

TEST_F(BadInputTest, UnwritableOutputIsFoundBeforeTheWork) {
  make_model();
  make_long_data();
  fs::create_directory(path("directory"));
  for (const std::string output : {"nowhere/out", "old.out/out", "directory", "/proc/odecast.out"}) {
    const Words parts = {"output '" + output + "'"};
    std::vector<Words> calls = {
        {"fit", "long.csv", "-o", output},
        {"forecast", "model.json", "--until", "100", "--draws", "100000", "-o", output},
        {"simulate", "SprottB", "--until", "500", "-o", output},
        {"split", "long.csv", "--train", "new.out", "--test", output}};
    for (const Words& call : calls) {
      const Result result = refused(call, kFileFailure, parts);
      EXPECT_LT(result.seconds, 0.5) << joined(call);
    }
  }
  refused({"fit", "long.csv", "-o", "nowhere/out"}, kFileFailure,
          {"no directory 'nowhere'", "existing directory"});
}

TEST_F(BadInputTest, OutputThatIsAlsoTheInput) {
  make_model();
  run_well({"forecast", "model.json", "--until", "2", "--draws", "20", "--blow-up", "until", "-o",
            "forecast.csv"});
  write("test.csv", "t,x,y,z\n1.1,0,0,0\n1.2,0,0,0\n");
  fs::create_directory(path("sub"));
  fs::create_symlink("train.csv", path("link.csv"));
  fs::create_hard_link(path("train.csv"), path("hard.csv"));
  const auto same = [&](const Words& args, const std::string& output) {
    refused(args, kUsage, {"'" + output + "'", "also the input"});
  };
  const Words spellings = {"train.csv", "./train.csv", "sub/../train.csv",
                           "link.csv",  "hard.csv",    path("train.csv").string()};
  for (const auto& output : spellings) {
    same({"fit", "train.csv", "-o", output}, output);
    same({"split", "train.csv", "--train", output, "--test", "new.out"}, output);
    same({"split", "train.csv", "--train", "new.out", "--test", output}, output);
  }
  same({"fit", "link.csv", "-o", "train.csv"}, "train.csv");
  same({"forecast", "model.json", "--until", "2", "-o", "sub/../model.json"}, "sub/../model.json");
  same({"forecast", "model.json", "--at", "test.csv", "-o", "./test.csv"}, "./test.csv");
  same({"plot", "forecast.csv", "-o", "./forecast.csv"}, "./forecast.csv");
  same({"plot", "forecast.csv", "--truth", "test.csv", "-o", "test.csv"}, "test.csv");
}

TEST_F(BadInputTest, TwoOutputsInOneFile) {
  make_data();
  for (const std::string test : {"old.out", "./old.out"})
    refused({"split", "train.csv", "--train", "old.out", "--test", test}, kUsage,
            {"--test", "--train", "another file"});
  for (const std::string test : {"new.out", "./new.out"})
    refused({"split", "train.csv", "--train", "new.out", "--test", test}, kUsage,
            {"--test", "--train", "another file"});
}

TEST_F(BadInputTest, ReportThatIsAnotherFileOrDoesNothing) {
  make_model();
  write("test.csv", "t,x,y,z\n1.1,0,0,0\n1.2,0,0,0\n");
  const Words forecast = {"forecast", "model.json", "--until", "1.2", "--draws", "20"};
  const auto with = [&](Words more) {
    Words words = forecast;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused(with({"--report", "./forecast.csv"}), kUsage, {"--report", "--output", "another file"});
  refused(with({"--report", "model.json"}), kUsage, {"'model.json'", "also the input"});
  refused(with({"--truth", "test.csv", "--report", "test.csv"}), kUsage, {"'test.csv'", "also the input"});
  refused(with({"--truth", "test.csv"}), kUsage, {"--truth", "--report"});
  refused(with({"--system", "SprottB"}), kUsage, {"--system", "--report"});
  refused(with({"--report", "new.out", "--lyapunov", "-1"}), kUsage, {"--lyapunov", "> 0"});
  refused(with({"--report", "new.out", "--lyapunov", "1", "--system", "Lorenz"}), kUsage, {"--lyapunov", "--system"});
  refused(with({"--report", "nowhere/page.html"}), kFileFailure, {"nowhere"});
  refused(with({"--report", "new.out", "--field", "mean"}), kUsage, {"--report", "--field draws"});
  refused({"fit", "train.csv", "-o", "new.out", "--report", "./new.out"}, kUsage, {"--report", "--output"});
  refused({"fit", "train.csv", "--report", "train.csv"}, kUsage, {"also the input"});
  refused({"fit", "train.csv", "--title", "x"}, kUsage, {"--title", "--report"});
  // Truth that does not match is found before anything is written.
  write("other.csv", "t,x,q\n1.1,0,0\n1.2,0,0\n");
  refused(with({"--truth", "other.csv", "--report", "new.out"}), kBadData, {"other.csv", "variable 'y'"});
  write("late.csv", "t,x,y,z\n7,0,0,0\n8,0,0,0\n");
  refused(with({"--truth", "late.csv", "--report", "new.out"}), kBadData, {"late.csv", "--at"});
}

TEST_F(BadInputTest, OutputThatIsAPipeIsNotReplacedByAFile) {
  // Renaming a file over it would do the same to /dev/null.
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const Result result = run({"simulate", "SprottB", "--until", "0.1", "-o", "pipe"}, {.limit = 5});
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  // Either it is refused, or the data came through.
  char first[2] = {};
  if (result.code == 0)
    EXPECT_EQ(std::string(first, static_cast<std::size_t>(std::max<ssize_t>(
                                     0, ::read(reader, first, sizeof first)))),
              "t,");
  else
    EXPECT_TRUE(result.code == kUsage || result.code == kFileFailure) << result.code;
  ::close(reader);
}

TEST_F(BadInputTest, FullDisk) {
  const How full{.output_to = "/dev/full"};
  make_model();
  for (const Words& args :
       {Words{"systems"}, {"systems", "--json"}, {"simulate", "SprottB"},
        {"equations", "model.json"}, {"--help"}, {"--version"}, {"fit", "--help"}}) {
    const Result result = run(args, full);
    EXPECT_EQ(result.code, kFileFailure) << joined(args);
    EXPECT_TRUE(contains(result.err, "standard output")) << joined(args) << "\n" << result.err;
  }
}

// --- scores

TEST_F(BadInputTest, ScoreNoCommonTimes) {
  make_forecast();
  write("truth.csv", "t,x\n0.5,1\n5.5,1\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "0.5 to 5.5", "0 to 6"});
}

TEST_F(BadInputTest, ScoreOnlyTheStartInCommon) {
  make_forecast();
  write("truth.csv", "t,x\n0,0\n5.5,1\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "0 to 5.5", "0 to 6"});
}

TEST_F(BadInputTest, ScoreDifferentVariables) {
  make_forecast();
  write("truth.csv", "t,y,z\n5,1,1\n6,1,1\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "y, z", "'x'"});
}

TEST_F(BadInputTest, ScoreBeyondTheCertifiedTime) {
  make_forecast();
  write("truth.csv", "# certified until 5\nt,x\n5,1\n6,2\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "until t = 5", "t = 6"});
  write("truth.csv", "# certified until 6\nt,x\n5,1\n6,2\n");
  run_well({"score", "forecast.csv", "truth.csv"});
}

TEST_F(BadInputTest, ScoreCertifiedTimeThatIsNoNumber) {
  make_forecast();
  // Read as "certified everywhere" it would turn the refusal off.
  write("truth.csv", "# certified until noon\nt,x\n5,1\n6,2\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv, line 1", "noon"});
}

TEST_F(BadInputTest, ScoreForecastIsSomethingElse) {
  make_forecast();
  write("truth.csv", "t,x\n5,1\n6,2\n");
  refused({"score", "truth.csv", "forecast.csv"}, kBadData, {"'truth.csv'", "x_mean"});
}

TEST_F(BadInputTest, ScoreSeveralTrajectories) {
  make_forecast();
  write("truth.csv", "trajectory,t,x\na,5,1\nb,5,1\n");
  refused({"score", "forecast.csv", "truth.csv", "--trajectory", "c"}, kUsage,
          {"--trajectory", "'c'", "a, b"});
}

TEST_F(BadInputTest, ScoreThresholdAndExponent) {
  make_forecast();
  write("truth.csv", "t,x\n5,1\n6,2\n");
  refused({"score", "forecast.csv", "truth.csv", "--threshold", "0"}, kUsage,
          {"--threshold", "found 0", "> 0"});
  refused({"score", "forecast.csv", "truth.csv", "--lyapunov", "-1"}, kUsage,
          {"--lyapunov", "-1", "> 0"});
  refused({"score", "forecast.csv", "truth.csv", "--system", "Lorens"}, kUsage, {"Lorenz"});
}

// --- runs that end badly

TEST_F(BadInputTest, EveryTrajectoryExplodes) {
  // du/dt = u² with no mask to stop it: no draw passes the pole at t = 1.
  make_one_dimensional_model({"--dropout", "0"});
  const auto before = snapshot();
  const Words call = {"forecast", "one.json", "--draws", "20", "--until", "1000", "--step", "1"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), call.begin(), call.end());
    return run(more);
  };
  const Result result = with({"-o", "new.out"});
  EXPECT_EQ(result.code, kNotTrusted);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "only 0 of 20")) << result.err;
  EXPECT_TRUE(contains(result.err, "400 attempts")) << result.err;
  EXPECT_TRUE(contains(result.err, "--until")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_LT(result.seconds, 5);
  EXPECT_EQ(changes(before), "");

  EXPECT_EQ(with({"-o", "old.out"}).code, kNotTrusted);
  EXPECT_EQ(with({"-o", "old.out", "--blow-up", "until"}).code, kNotTrusted);
  for (const std::string method : {"rk4", "euler"})
    EXPECT_EQ(with({"-o", "old.out", "--method", method}).code, kNotTrusted) << method;
  // Quiet means no messages but errors, and this is one.
  EXPECT_TRUE(contains(with({"-o", "old.out", "--quiet"}).err, "only 0 of 20"));
  EXPECT_EQ(changes(before), "");
}

TEST_F(BadInputTest, SingleTrajectoryExplodes) {
  make_one_dimensional_model({"--dropout", "0"});
  const auto before = snapshot();
  const Result result = run({"forecast", "one.json", "--field", "mean", "--until", "1000", "--step",
                             "1", "-o", "old.out"});
  EXPECT_EQ(result.code, kNotTrusted);
  EXPECT_TRUE(contains(result.err, "t = ")) << result.err;
  EXPECT_EQ(changes(before), "") << "no output time was reached";
}

TEST_F(BadInputTest, TrainingThatDiverges) {
  make_data();
  const auto before = snapshot();
  const Result result = run({"fit", "train.csv", "--trainer", "sgd", "--batches", "20",
                             "--schedule", "100@1e6", "-o", "old.out"});
  EXPECT_EQ(result.code, kNotTrusted);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "no model was written")) << result.err;
  EXPECT_EQ(changes(before), "");
}

TEST_F(BadInputTest, InterruptedFit) {
  make_long_data();
  for (const std::string output : {"old.out", "new.out"})
    interrupted({"fit", "long.csv", "--trainer", "adam", "--batches", "1000000", "-o", output}, SIGINT);
}

TEST_F(BadInputTest, TerminatedFit) {
  make_long_data();
  interrupted({"fit", "long.csv", "--trainer", "adam", "--batches", "1000000", "-o", "old.out"}, SIGTERM);
}

TEST_F(BadInputTest, InterruptedForecast) {
  make_model();
  interrupted({"forecast", "model.json", "--init", "1,1,1", "--until", "1", "--draws", "1000000000",
               "--bands", "sd", "--blow-up", "until", "-o", "old.out"},
              SIGINT);
}

TEST_F(BadInputTest, InterruptedSimulation) {
  interrupted({"simulate", "Lorenz", "--until", "100000", "--step", "1", "-o", "old.out"}, SIGINT);
}

}  // namespace
}  // namespace odecast::cli_test
