// Names that mean something to a file, a language or a terminal, through the commands.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

using Json = nlohmann::json;

class NamesProgramTest : public ProgramTest {
 protected:
  /// A circle under these two names, as they stand in the header.
  void circle(const std::string& a, const std::string& b) const {
    std::string text = "t," + a + "," + b + "\n";
    for (int i = 0; i <= 100; ++i) {
      const double t = 0.05 * i;
      text += std::to_string(t) + "," + std::to_string(std::cos(t)) + "," +
              std::to_string(-std::sin(t)) + "\n";
    }
    write("data.csv", text);
  }
  static bool acts(const std::string& text) {
    return std::any_of(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f;
    });
  }
};

TEST_F(NamesProgramTest, NamesWithCommasAndQuotesGoFromDataToScore) {
  const std::vector<std::string> names = {"x, m", "say \"=1+1\""};
  circle("\"x, m\"", "\"say \"\"=1+1\"\"\"");
  run_well({"split", "data.csv"});
  run_well({"fit", "train.csv", "--dropout", "0.25", "-o", "m.json"});
  run_well({"forecast", "m.json", "--at", "test.csv", "-o", "f.csv"});
  EXPECT_EQ(Json::parse(run_well({"equations", "m.json", "--json"}).out)["variables"], names);
  EXPECT_EQ(split(read("f.csv"), '\n')[0].substr(0, 30), "t,\"x, m_mean\",\"x, m_sd\",\"x, m_");
  const Json score = Json::parse(run_well({"score", "f.csv", "test.csv", "--json"}).out);
  EXPECT_TRUE(score["coverage"].contains(names[0]) && score["coverage"].contains(names[1]));
  run_well({"plot", "f.csv", "--variables", "\"x, m\"", "-o", "f.svg"});
  EXPECT_TRUE(contains(read("f.svg"), ">x, m<"));
  run_well({"fit", "data.csv", "--variables", "\"say \"\"=1+1\"\"\",\"x, m\"", "--dropout", "0.25",
            "-o", "m.json"});
  const Result open = run({"fit", "data.csv", "--variables", "\"x, m", "-o", "m.json"});
  EXPECT_EQ(open.code, 2);
  EXPECT_TRUE(contains(open.err, "with a quote that is not closed")) << open.err;
}

TEST_F(NamesProgramTest, NothingPrintedActsOnTheTerminal) {
  circle("\x1b[31mred", "a\u009b\u202eb");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"inspect", "data.csv"},
           {"fit", "data.csv", "-o", "m.json"},
           {"fit", "data.csv", "--dropout", "0.25", "-o", "m.json"},
           {"equations", "m.json"},
           {"equations", "m.json", "--format", "latex"},
           {"equations", "m.json", "--format", "c"},
           {"predict", "m.json", "--at", "1,2"},
           {"forecast", "m.json", "--until", "6", "-o", "\x1b[2J.csv"},
           {"lyapunov", "m.json", "--until", "20"},
           {"evaluate", "m.json", "data.csv", "--starts", "4", "--horizon", "1", "--draws", "20"},
           {"score", "\x1b[2J.csv", "data.csv"},
           {"fit", "no such \x1b[2J file"},
           {"fit", "data.csv", "--variables", "\x1b[2J"},
           {"fit", "data.csv", "--degree", "\x1b[2J"},
           {"fit", "data.csv", "--\x1b[2J"},
           {"\x1b[2J"},
           {"simulate", "\x1b[2J"}}) {
    const Result r = run(words);
    EXPECT_FALSE(acts(r.out) || acts(r.err)) << joined(words) << "\n" << r.out << r.err;
    EXPECT_FALSE(contains(r.out + r.err, "\u202e") || contains(r.out + r.err, "\u009b"))
        << joined(words);
    EXPECT_FALSE(r.out.empty() && r.err.empty()) << joined(words);
  }
}

TEST_F(NamesProgramTest, FileNamesNeedNotBeText) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_data();
  std::filesystem::rename(path("train.csv"), path("caf\xe9.csv"));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"inspect", "caf\xe9.csv", "--json"},
           {"fit", "caf\xe9.csv", "-o", "m\xe9.json", "--json"}}) {
    const Result r = run(words);
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(contains(r.out, "\xef\xbf\xbd")) << r.out;  // U+FFFD
  }
}

TEST_F(NamesProgramTest, LongValuesAreCutInMessages) {
  circle("x", "y");
  const std::string text(100'000, 'z');
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {text},
           {"fit", "data.csv", "--" + text},
           {"fit", "data.csv", "--degree", text},
           {"fit", "data.csv", "--seed", text},
           {"fit", "data.csv", "--posterior", text},
           {"fit", "data.csv", "--variables", text},
           {"fit", "data.csv", "--schedule", text, "--trainer", "adam"},
           {"simulate", text},
           {"simulate", "Lorenz", "--set", text},
           {"simulate", "Lorenz", "--set", text + "=1"},
           {"simulate", "Lorenz", "--init", text}}) {
    const Result r = run(words);
    EXPECT_EQ(r.code, 2) << r.err.substr(0, 200);
    EXPECT_LT(r.err.size(), 600u) << r.err.substr(0, 200);
  }
}

}  // namespace
}  // namespace odecast::cli_test
