#include "cli/bad_input.hpp"

namespace odecast::cli_test {
namespace {

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
    "Tell several trajectories apart: a column named trajectory (or --id NAME), a blank line "
    "between "
    "them, or a file for each.";

TEST_F(BadInputTest, GoldenHeaderOrNone) {
  golden(
      "a,b\n0,1\n1,2\n", {},
      "bad.csv, line 1: found columns a, b, expected a header with a time column named t or time.\n"
      "  1 | a,b\n"
      "  1. Name it: --time NAME.\n"
      "  2. Add the header line, e.g. t,x,y,z.\n"
      "  3. Say that there is none: --header no.");
  golden(",t,x\n7,0,1\n1,1,2\n", {},
         "bad.csv, line 1: found no name for column 1, expected a name for every column.\n"
         "  1 | ,t,x\n"
         "  1. Name the column in the first line, e.g. t,x,y,z.\n"
         "  2. Choose the columns to read: --variables x,y,z.\n"
         "  3. From pandas, write the file with to_csv(…, index=False).");
  write("none.csv", "0,1\n1,2\n2,4\n3,7\n");
  EXPECT_TRUE(
      contains(run_well({"fit", "none.csv", "--dropout", "0", "-o", "m.json"}).out,
               "Read none.csv: columns separated by ',', decimal point, no header, variables x1."));
}

TEST_F(BadInputTest, GoldenEncoding) {
  golden(
      std::string("\xff\xfet\0,\0x\0", 8), {},
      "bad.csv: found UTF-16 text, expected text in UTF-8 or ASCII. Save the file as CSV UTF-8.");
  golden(std::string("t\0,\0x\0\n\0", 8), {},
         "bad.csv: found zero bytes, as in UTF-16 text or in no text at all, expected text in "
         "UTF-8 or "
         "ASCII. Save the file as CSV UTF-8.");
}

TEST_F(BadInputTest, GoldenDecimalComma) {
  golden(
      "t;x\n0;1,234\n1;2,500\n", {},
      "bad.csv, line 2: found '1,234', which reads as 1.234 with a decimal comma and as 1234 with "
      "commas between thousands, expected numbers that can be read in one way only.\n"
      "  1. If it is a decimal comma: --decimal comma.\n"
      "  2. If not, write the numbers without commas between thousands.");
  golden("t;x\n0;1,5\n1;2,5\n2;3.5\n", {"--decimal", "comma"},
         "bad.csv, line 4, column x: found '3.5', expected a finite number with a decimal comma.\n"
         "  4 | 2;3.5\n"
         "  1. Correct the value or remove the line.\n"
         "  2. If all numbers are written so: --decimal point.");
  golden(
      "t,x\n0,1,5\n1,2,5\n", {},
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
         "  2. Use what else was observed in such rows: --missing keep.\n"
         "  3. Leave such rows out and split the trajectory there: --missing drop.");
  golden("t,x,y\n0,1,2\n1,,3\n", {"--dropout", "0.1"},
         "bad.csv, line 3, column x: found nothing, expected a finite number.\n"
         "  3 | 1,,3\n"
         "  1. Correct the value.\n"
         "  2. Leave such rows out and split the trajectory there: --missing drop.");
  golden("t,x\n0,NA\n1,NA\n", {"--missing", "drop"},
         "bad.csv: found 2 rows, each with a missing cell, expected rows of numbers below it. "
         "Check that "
         "the file was written completely.");
  write("gap.csv", "t,x\n0,1\n1,2\n2,NaN\n3,1\n4,3\n5,9\n");
  EXPECT_TRUE(contains(
      run_well({"fit", "gap.csv", "--missing", "drop", "--dropout", "0", "-o", "m.json"}).out,
      "1 row with a missing cell left out; 2 trajectories remain."));
}

TEST_F(BadInputTest, GoldenInfinity) {
  golden("t,x\n0,1\n1,inf\n", {},
         "bad.csv, line 3, column x: found 'inf', expected a finite number.\n"
         "  3 | 1,inf\n"
         "  Correct the value or remove the line.");
  golden("t,x,y\n0,0,1e300\n1,1,-1e300\n2,2,1e300\n3,3,-1e300\n", {},
         "bad.csv, column y: found values from -1e+300 to 1e+300, whose squares overflow, expected "
         "values "
         "below 1e154. Write the column in larger units, or remove the outliers.");
}

TEST_F(BadInputTest, GoldenTimes) {
  golden("t,x\n0,1\n2,1\n1,1\n", {},
         "bad.csv, line 4, column t: found time 1 after 2 in line 3, expected times that increase "
         "along a "
         "trajectory.\n"
         "  4 | 1,1\n"
         "  1. Sort the rows by time: --sort.\n"
         "  2. " +
             kTellApart);
  golden("t,x\n0,1\n1,1\n1,2\n", {},
         "bad.csv, line 4, column t: found time 1 after 1 in line 3, expected times that increase "
         "along a "
         "trajectory.\n"
         "  4 | 1,2\n"
         "  1. Keep one row of each time: --duplicates first or --duplicates mean.\n"
         "  2. " +
             kTellApart);
  golden("t,x\n2,1\n0,1\n2,2\n", {"--sort"},
         "bad.csv, line 4: found time 2 after 2 in line 2, expected times that increase along a "
         "trajectory.\n"
         "  1. Keep one row of each time: --duplicates first or --duplicates mean.\n"
         "  2. " +
             kTellApart);
  write("bad.csv", "t,x\n2,1\n0,1\n2,2\n1,5\n3,-1\n");
  run_well({"fit", "bad.csv", "--sort", "--duplicates", "mean", "--dropout", "0", "-o", "m.json"});
}

TEST_F(BadInputTest, GoldenTooFewRows) {
  golden(
      "", {},
      "bad.csv: found no lines, expected a header such as t,x,y,z and rows of numbers. Check that "
      "the right file was given.");
  golden("t,x,y\n", {},
         "bad.csv: found a header and no rows, expected rows of numbers below it. Check that the "
         "file was written completely.");
}

TEST_F(BadInputTest, GoldenRaggedRow) {
  golden(
      "t,x,y\n0,1,2\n1,2\n", {},
      "bad.csv, line 3, column y: found 2 cells in '1,2', expected 3 (t, x, y) separated by ','.\n"
      "  3 | 1,2\n"
      "  1. Complete or remove the line.\n"
      "  2. If another character separates the columns: --separator, one of , ; tab |.");
  golden("t,x\n0,\"1\n1,2\n", {},
         "bad.csv, line 2, column x: found a quote that is not closed in this line, expected cells "
         "with "
         "both quotes or with none.\n"
         "  2 | 0,\"1\n"
         "  Correct the line.");
}

TEST_F(BadInputTest, GoldenLongLine) {
  golden("t,x\n0,1\n" + std::string(3 << 20, '1') + "\n", {},
         "bad.csv, line 3: found a line of more than 1 MiB, expected lines of numbers. Check that "
         "the file "
         "is a text table.");
}

TEST_F(BadInputTest, GoldenDamagedGzip) {
  golden("\x1f\x8b\x08", {},
         "bad.csv: found a gzip file that ends too early, expected a whole gzip file. "
         "Compress or transfer the file again.");
  golden("\x1f\x8bnonsense that is no gzip", {},
         "bad.csv: found damaged gzip data, expected a whole gzip file. Compress or transfer the "
         "file again.");
}

TEST_F(BadInputTest, GoldenSeveralFiles) {
  write("a.csv", "t,x\n0,1\n1,2\n");
  write("b.csv", "t,y\n0,1\n1,2\n");
  const Result result = refused({"fit", "a.csv", "b.csv", "-o", "old.out"}, kBadData, {});
  EXPECT_EQ(result.err,
            "odecast: b.csv: found columns y, expected x as in a.csv.\n"
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
  refused({"fit", "constant.csv", "-o", "old.out"}, kBadData,
          {"constant.csv, column x", "4 rows with a value", "at least 8", "Give more"});
  // Two rows of a derivative do not determine three coefficients: written, but not to be trusted.
  write("three.csv", "t,x\n0,1\n1,2\n2,4\n");
  const Result three = run({"fit", "three.csv", "--dropout", "0", "-o", "m.json"});
  EXPECT_EQ(three.code, 1);
  EXPECT_TRUE(contains(three.err, "2 rows do not determine 3 coefficients")) << three.err;
  EXPECT_TRUE(contains(run_well({"equations", "m.json"}).err, "too many unknowns"));
  EXPECT_TRUE(contains(run_well({"inspect", "three.csv"}).out, "fit would refuse"));
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

}  // namespace
}  // namespace odecast::cli_test
