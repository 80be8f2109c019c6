// A default that is given is a default: every option of `fit --help` that names one, spelled out.
#include <regex>

#include "cli/commands.hpp"
#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

/// Options and their defaults, by the help.
std::vector<std::pair<std::string, std::string>> defaults(const std::string& help) {
  std::vector<std::pair<std::string, std::string>> found;
  std::string option;
  for (const auto& line : split(help, '\n')) {
    std::smatch match;
    if (std::regex_search(line, match, std::regex("^  (?:-., )?(--[a-z-]+)"))) option = match[1];
    if (std::regex_search(line, match, std::regex("\\[default: ([^\\]]+)\\]")))
      found.emplace_back(option, match[1]);
  }
  return found;
}

class DefaultsTest : public CommandsTest {
 protected:
  void SetUp() override {
    run_well({"simulate", "Lorenz", "--until", "6", "--step", "0.02", "--noise", "0.02", "-o",
              "data.csv"});
  }
  std::string model(Words words) {
    words.insert(words.begin(), {"fit", "data.csv"});
    words.insert(words.end(), {"--quiet"});
    const Result result = run(words);
    EXPECT_EQ(result.code, 0) << joined(words) << ": " << result.err;
    return read("model.json");
  }
};

TEST_F(DefaultsTest, ADefaultThatIsGivenChangesNothing) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const auto options = defaults(run({"fit", "--help"}).out);
  ASSERT_GE(options.size(), 25u);
  for (const Words& by :
       {Words{}, Words{"--posterior", "regression"},
        Words{"--posterior", "bootstrap", "--replicates", "5"}, Words{"--dropout", "0.25"}}) {
    const std::string plain = model(by);
    for (const auto& [option, value] : options) {
      if (std::find(by.begin(), by.end(), option) != by.end()) continue;
      if (option == "--holdout") continue;  // needs --calibrate, as its help says
      if (option == "--posterior" && !by.empty()) continue;
      Words words = by;
      words.insert(words.end(), {option, value});
      EXPECT_EQ(model(words), plain) << joined(words);
    }
  }
}

TEST_F(DefaultsTest, TheDefaultMethodByItsNameIsTheDefault) {
  EXPECT_EQ(model({"--posterior", "trajectory"}), model({}));
}

TEST_F(DefaultsTest, AMethodOptionThatTheMethodDoesNotHaveIsRefused) {
  const Result result = run({"fit", "data.csv", "--posterior", "regression", "--batches", "7"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(contains(result.err, "--batches")) << result.err;
  EXPECT_TRUE(contains(result.err, "--posterior dropout")) << result.err;
}

TEST_F(DefaultsTest, ShortHelpPointsToTheLongOne) {
  const std::string brief = run({"fit", "-h"}).out, full = run({"fit", "--help"}).out;
  EXPECT_TRUE(contains(brief, "--degree"));
  EXPECT_FALSE(contains(brief, "--noise-samples"));
  EXPECT_TRUE(contains(brief, "odecast fit --help has all"));
  for (const char* heading : {"The default method", "The paper's network", "Reading the data"})
    EXPECT_TRUE(contains(full, heading)) << heading;
}

}  // namespace
}  // namespace odecast::cli_test
