// Data as people have them, through the command line: the same model from every form of the same
// table.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

namespace odecast::cli_test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class ReadingTest : public ProgramTest {
 protected:
  ReadingTest() { make_data(); }

  /// The mean field fitted to this data.
  std::string equations(const Words& data, const How& how = {}) const {
    Words words = {"fit", "--dropout", "0.25", "-o", "m.json", "--quiet"};
    words.insert(words.end(), data.begin(), data.end());
    run_well(words, how);
    return run_well({"equations", "m.json", "--format", "json"}).out;
  }
  /// A shell command in the directory of the test.
  void shell(const std::string& command) const {
    const std::string all = "cd '" + path(".").string() + "' && " + command;
    ASSERT_EQ(std::system(all.c_str()), 0) << command;
  }
};

TEST_F(ReadingTest, EveryFormOfATableGivesTheSameModel) {
  const std::string expected = equations({"train.csv"});
  const std::string text = read("train.csv");
  shell("gzip -k train.csv");
  EXPECT_EQ(equations({"train.csv.gz"}), expected);
  EXPECT_EQ(equations({"-"}, {.input = text}), expected);
  EXPECT_EQ(equations({"-"}, {.input = read("train.csv.gz")}), expected);
  std::string german = text;
  for (char& c : german) c = c == ',' ? ';' : c == '.' ? ',' : c;
  write("german.csv", german);
  EXPECT_EQ(equations({"german.csv"}), expected);
  // Arrays, in and out.
  for (const std::string name : {"a.npz", "a.npy"}) {
    run_well(
        {"simulate", "SprottB", "--init", "1,1,1", "--until", "1", "--step", "0.02", "-o", name});
    std::string found = equations({name});
    if (name == "a.npy")  // has no names
      for (const auto& [from, to] :
           {std::pair{"x1", "x"}, std::pair{"x2", "y"}, std::pair{"x3", "z"}})
        for (std::size_t at = 0; (at = found.find(from, at)) != found.npos;)
          found.replace(at, 2, to);
    EXPECT_EQ(found, expected) << name;
    EXPECT_EQ(equations({"-"}, {.input = read(name)}).empty(), false);
  }
  run_well({"split", "train.csv", "--train", "early.npz", "--test", "late.csv"});
  run_well({"split", "train.csv", "--train", "early.csv", "--test", "late.npz"});
  EXPECT_EQ(equations({"early.npz"}), equations({"early.csv"}));
}

TEST_F(ReadingTest, TrajectoriesByFileBlankLineAndColumnAreTheSame) {
  run_well(
      {"simulate", "SprottB", "--init=-1,0.5,1", "--until", "1", "--step", "0.02", "-o", "b.csv"});
  const auto a = csv_rows(read("train.csv")), b = csv_rows(read("b.csv"));
  std::string blocks = "t,x,y,z\n", column = "id,t,x,y,z\n";
  for (const auto* rows : {&a, &b}) {
    for (std::size_t i = 1; i < rows->size(); ++i) {
      const auto& r = (*rows)[i];
      const std::string line = r[0] + "," + r[1] + "," + r[2] + "," + r[3] + "\n";
      blocks += line;
      column += (rows == &a ? "one," : "two,") + line;
    }
    blocks += "\n";
  }
  write("blocks.csv", blocks);
  write("column.csv", column);
  const std::string expected = equations({"column.csv"});
  EXPECT_EQ(equations({"blocks.csv"}), expected);
  EXPECT_EQ(equations({"train.csv", "b.csv"}), expected);
  EXPECT_NE(equations({"train.csv"}), expected);
  const Json inspected = Json::parse(run_well({"inspect", "train.csv", "b.csv", "--json"}).out);
  EXPECT_EQ(inspected["trajectories"]["count"], 2);
  EXPECT_EQ(inspected["rows"], 102);
}

TEST_F(ReadingTest, ColumnsAreChosenForEveryVerb) {
  const std::string expected = equations({"train.csv", "--variables", "x,z", "--inputs", "y"});
  EXPECT_NE(expected, equations({"train.csv", "--variables", "x,z"}));
  std::string renamed = read("train.csv");
  renamed.replace(0, 7, "clock,x,y,z");
  ASSERT_TRUE(renamed.starts_with("clock,x,y,z\n"));
  write("renamed.csv", renamed);
  const Words choice = {"--time", "clock", "--variables", "x,z", "--inputs", "y"};
  const auto with = [&](Words words) {
    words.insert(words.end(), choice.begin(), choice.end());
    return words;
  };
  EXPECT_EQ(equations(with({"renamed.csv"})), expected);
  run_well(with({"split", "renamed.csv", "--train", "early.csv", "--test", "late.csv"}));
  EXPECT_EQ(csv_rows(read("early.csv"))[0], (Words{"clock", "x", "z", "y"}));
  const Json j = Json::parse(run_well(with({"inspect", "renamed.csv", "--json"})).out);
  EXPECT_EQ(j["columns"][2]["name"], "y");
  EXPECT_EQ(j["columns"][2]["use"], "input");
  write("forecast.csv", "t,x_mean,x_sd,x_lower,x_upper\n0,1,0,1,1\n0.5,1,1,-1,3\n1,1,1,-1,3\n");
  run_well({"score", "forecast.csv", "renamed.csv", "--time", "clock", "--variables", "x"});
}

TEST_F(ReadingTest, InputsOfAForecastComeFromTheFileThatHasThem) {
  run_well({"simulate", "ForcedDuffing", "--until", "20", "-o", "driven.csv"});
  run_well({"fit", "driven.csv", "--inputs", "F", "--degree", "3", "--dropout", "0", "--derivative",
            "central4", "-o", "m.json"});
  const auto forecast = [&](const Words& more) {
    Words words = {"forecast", "m.json", "--init", "1,0", "-o", "f.csv"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  run_well(forecast({"--at", "driven.csv"}));
  const std::string by_times = read("f.csv");
  std::string alone = "t,F\n";
  for (const auto& row : csv_rows(read("driven.csv")))
    if (row[0] != "t") alone += row[0] + "," + row[3] + "\n";
  write("alone.csv", alone);
  run_well(forecast({"--at", "driven.csv", "--drive", "alone.csv"}));
  EXPECT_EQ(read("f.csv"), by_times);
  const Result none = run(forecast({"--until", "2"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.err, "--drive")) << none.err;
  const Result wrong = run(forecast({"--until", "2", "--drive", "train.csv"}));
  EXPECT_EQ(wrong.code, 3);
  EXPECT_TRUE(contains(wrong.err, "no column F")) << wrong.err;
}

// A degree out of range is found without a row being read: the file behind is broken in its second
// row.
TEST_F(ReadingTest, OptionsAreCheckedBeforeTheRows) {
  write("broken.csv", "t,x\n0,1\n1,word\n");
  const Result result = run({"fit", "broken.csv", "--dropout", "2", "-o", "m.json"});
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_TRUE(contains(result.err, "--dropout")) << result.err;
}

TEST_F(ReadingTest, InspectSaysWhatWasUnderstood) {
  write("odd.csv", "0;1,5\n0,5;2,25\n1;NA\n1,5;2\n2;1,5\n");
  const Result text = run_well({"inspect", "odd.csv", "--missing", "drop"});
  EXPECT_TRUE(contains(text.out, "odd.csv: columns separated by ';', decimal comma, no header"))
      << text.out;
  EXPECT_TRUE(contains(text.out, "4 rows in 2 trajectories of 2 to 2 rows, t from 0 to 2"))
      << text.out;
  EXPECT_TRUE(contains(text.out, "1 row with a missing cell left out")) << text.out;
  EXPECT_TRUE(contains(text.out, "Sampling: even, step 0.5")) << text.out;
  EXPECT_TRUE(contains(text.out, "fit would ")) << text.out;
  const Json j = Json::parse(run_well({"inspect", "train.csv", "--json"}).out);
  EXPECT_EQ(j["format"], "csv");
  EXPECT_EQ(j["dialect"]["separator"], ",");
  EXPECT_EQ(j["rows"], 51);
  EXPECT_EQ(j["sampling"]["even"], true);
  EXPECT_EQ(j["columns"][0]["name"], "x");
  // 51 clean rows: what the smoother makes of them is below 1e-4 of the sd (theory.md §7).
  EXPECT_LT(j["columns"][0]["noise"].get<double>(), 1e-4 * j["columns"][0]["sd"].get<double>());
  run_well({"simulate", "SprottB", "--until", "10", "--step", "0.01", "--noise", "0.1", "-o",
            "noisy.csv"});
  const Json noisy = Json::parse(run_well({"inspect", "noisy.csv", "--json"}).out);
  // 993 windows of which at most a ninth are independent: the median is good to 11 %.
  for (const auto& c : noisy["columns"])
    EXPECT_NEAR(c["noise"].get<double>() / c["sd"].get<double>(), 0.1, 0.05) << c;
}

// --- units

/// A forecast from data whose columns are multiplied by these factors, divided by them again.
class UnitsTest : public ReadingTest {
 protected:
  /// Long enough to determine the model: of a short arc the minimum is a valley, flat to round-off.
  UnitsTest() {
    run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "20", "--step", "0.02", "-o",
              "long.csv"});
  }

  std::vector<std::vector<double>> forecast_of(const std::vector<double>& factors) const {
    auto rows = csv_rows(read("long.csv"));
    std::string text = joined_line(rows[0]), init;
    for (std::size_t i = 1; i < rows.size(); ++i) {
      for (std::size_t c = 1; c < 4; ++c)
        rows[i][c] = shortest(std::stod(rows[i][c]) * factors[c - 1]);
      text += joined_line(rows[i]);
    }
    write("scaled.csv", text);
    run_well({"fit", "scaled.csv", "--dropout", "0.1", "-o", "m.json", "--quiet"});
    run_well({"forecast", "m.json", "--until", "22", "--step", "0.1", "--draws", "200", "--blow-up",
              "until", "-o", "f.csv", "--quiet"});
    std::vector<std::vector<double>> result;
    for (const std::string name : {"x", "y", "z"})
      for (const std::string part : {"_mean", "_sd", "_lower", "_upper"}) {
        result.emplace_back();
        const double factor = factors[name == "x" ? 0 : name == "y" ? 1 : 2];
        for (const auto& cell : csv_column(read("f.csv"), name + part))
          result.back().push_back(std::stod(cell) / factor);
      }
    return result;
  }

 private:
  static std::string shortest(double value) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    return buffer;
  }
  static std::string joined_line(const Words& cells) {
    std::string line;
    for (const auto& cell : cells) line += (line.empty() ? "" : ",") + cell;
    return line + "\n";
  }
};

TEST_F(UnitsTest, PowersOfTwoChangeNoBit) {
  const auto plain = forecast_of({1, 1, 1});
  EXPECT_EQ(forecast_of({0x1p-30, 1, 0x1p30}), plain);
  EXPECT_EQ(forecast_of({0x1p7, 0x1p-3, 0x1p-29}), plain);
}

TEST_F(UnitsTest, NineOrdersOfMagnitudeChangeNothingThatCounts) {
  const auto plain = forecast_of({1, 1, 1});
  for (const auto& factors :
       {std::vector{1e-9, 1.0, 1e9}, std::vector{1e9, 1e-9, 1e3}, std::vector{1e-9, 1e-9, 1e-9}}) {
    const auto scaled = forecast_of(factors);
    for (std::size_t k = 0; k < plain.size(); ++k) {
      double size = 0, difference = 0;
      ASSERT_EQ(scaled[k].size(), plain[k].size());
      for (std::size_t i = 0; i < plain[k].size(); ++i) {
        size = std::max(size, std::abs(plain[k][i]));
        difference = std::max(difference, std::abs(scaled[k][i] - plain[k][i]));
      }
      EXPECT_LT(difference, 1e-9 * size) << "column " << k << ", first factor " << factors[0];
    }
  }
}

}  // namespace
}  // namespace odecast::cli_test
