#include <regex>
#include <set>

#include "cli/commands.hpp"

namespace odecast::cli_test {
namespace {

/// What a help text says about one option.
std::string option_help(const std::string& help, const std::string& option) {
  std::string found;
  bool inside = false;
  for (const auto& line : split(help, '\n')) {
    if (line.starts_with("  -")) inside = contains(line + " ", " " + option + " ");
    if (inside) found += line + "\n";
  }
  return found;
}

struct Helped {
  std::string command;
  std::vector<std::pair<std::string, std::string>> defaults;  // option and its default
  Words without;                                              // options that have none
};

/// Every verb that reads data has these.
const std::vector<std::pair<std::string, std::string>> kReadingDefaults = {
    {"--time-format", "auto"}, {"--header", "sniff"},  {"--separator", "sniff"},
    {"--decimal", "sniff"},    {"--missing", "error"}, {"--duplicates", "error"}};
const Words kReadingWithout = {"--time", "--id", "--skip", "--sort", "--sample-step"};
const std::set<std::string> kReaders = {"attractor", "evaluate", "calibrate", "fit",    "forecast",
                                        "score",     "plot",     "split",     "inspect"};

const std::vector<Helped> kHelp = {
    {"simulate",
     {{"--noise", "0"}, {"--noise-of", "sd"}, {"--seed", "1"}},
     {"--init", "--until", "--step", "--set", "--size", "--output"}},
    {"fit",
     {{"--posterior", "auto"},  {"--replicates", "100"},
      {"--members", "10"},      {"--kind", "flow"},
      {"--between", "linear"},  {"--degree", "2"},
      {"--hidden", "auto"},     {"--scale", "standard"},
      {"--noise-factor", "1"},  {"--noise-order", "2"},
      {"--activation", "tanh"}, {"--trainer", "auto"},
      {"--starts", "8"},        {"--max-iterations", "10000"},
      {"--batches", "1000"},    {"--schedule", "10@0.01,100@0.001"},
      {"--noise-samples", "1"}, {"--masks", "1"},
      {"--mask-per", "row"},    {"--holdout", "0.2"},
      {"--keep-rows", "100"},   {"--seed", "1"},
      {"--threads", "all"},     {"--output", "model.json"},
      {"--time-unit", "auto"}},
     {"--robust", "--functions", "--candidates", "--rescale", "--budget", "--calibrate", "--layers",
      "--noise", "--gap", "--dropout", "--derivative", "--terms", "--positive", "--embed",
      "--variables", "--inputs", "--report", "--title"}},
    {"forecast",
     {{"--draws", "1000"},
      {"--masks", "sampled"},
      {"--level", "0.95"},
      {"--blow-up", "discard"},
      {"--field", "draws"},
      {"--mask-change", "never"},
      {"--method", "auto"},
      {"--bound", "1000000"},
      {"--attempts", "20"},
      {"--max-steps", "100000"},
      {"--seed", "1"},
      {"--threads", "all"},
      {"--output", "forecast.csv"}},
     {"--init",         "--init-sd", "--from",       "--until",
      "--step",         "--at",      "--trajectory", "--transition-noise",
      "--rtol",         "--atol",    "--fixed-step", "--drive",
      "--observations", "--noise",   "--raw",        "--report",
      "--truth",        "--history", "--lyapunov",   "--system",
      "--title",        "--bands"}},
    {"filter",
     {{"--method", "auto"},
      {"--gate", "1e-06"},
      {"--drift", "auto"},
      {"--level", "0.95"},
      {"--missing", "keep"},
      {"--time-format", "auto"},
      {"--header", "sniff"},
      {"--separator", "sniff"},
      {"--decimal", "sniff"},
      {"--duplicates", "error"},
      {"--seed", "1"},
      {"--threads", "all"}},
     {"--members", "--noise", "--observe", "--init",   "--init-sd",    "--from",
      "--robust",  "--truth", "--bank",    "--learn",  "--model",      "--coefficients",
      "--lag",     "--ahead", "--state",   "--report", "--title",      "--output",
      "--time",    "--id",    "--skip",    "--sort",   "--sample-step"}},
    {"score",
     {{"--band", "auto"}, {"--threshold", "0.4"}, {"--time-unit", "auto"}},
     {"--lyapunov", "--system", "--trajectory", "--model", "--variables", "--inputs"}},
    {"equations", {{"--format", "text"}, {"--centre", "mean"}}, {"--all", "--set"}},
    {"predict", {{"--level", "0.95"}, {"--seed", "1"}}, {"--at", "--draws"}},
    {"plot",
     {{"--output", "forecast.svg"}, {"--time-unit", "auto"}},
     {"--band", "--truth", "--history", "--trajectory", "--variables", "--inputs", "--lyapunov",
      "--system", "--title", "--titles"}},
    {"split",
     {{"--holdout", "0.2"}, {"--train", "train.csv"}, {"--test", "test.csv"}},
     {"--variables", "--inputs"}},
    {"inspect", {{"--time-unit", "auto"}}, {"--variables", "--inputs"}},
    {"attractor",
     {{"--draws", "10"},
      {"--pieces", "10"},
      {"--bins", "auto"},
      {"--smoothing", "20"},
      {"--seed", "1"},
      {"--threads", "all"}},
     {"--noise"}},
    {"evaluate",
     {{"--starts", "100"},
      {"--leads", "50"},
      {"--draws", "200"},
      {"--level", "0.95"},
      {"--seed", "1"},
      {"--threads", "all"}},
     {"--horizon", "--bands", "--observations", "--noise", "--lyapunov", "--system"}},
    {"calibrate",
     {{"--starts", "100"},
      {"--leads", "50"},
      {"--draws", "200"},
      {"--level", "0.95"},
      {"--seed", "1"},
      {"--threads", "all"}},
     {"--horizon", "--bands", "--observations", "--noise", "--lyapunov", "--system", "--output"}},
    {"systems", {}, {}}};

TEST_F(CommandsTest, HelpTellsEveryDefault) {
  for (const Helped& h : kHelp) {
    SCOPED_TRACE(h.command);
    const Result result = run_well({h.command, "--help"});
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(contains(result.out, "Usage: odecast " + h.command));
    EXPECT_TRUE(contains(result.out, "Example:\n  odecast " + h.command));
    auto defaults = h.defaults;
    if (kReaders.contains(h.command))
      defaults.insert(defaults.end(), kReadingDefaults.begin(), kReadingDefaults.end());
    for (const auto& [option, value] : defaults)
      EXPECT_TRUE(contains(option_help(result.out, option), "[default: " + value + "]"))
          << option << "\n"
          << option_help(result.out, option);
    Words without = h.without;
    without.insert(without.end(), {"--json", "--quiet", "--help"});
    if (kReaders.contains(h.command))
      without.insert(without.end(), kReadingWithout.begin(), kReadingWithout.end());
    for (const auto& option : without) {
      EXPECT_NE(option_help(result.out, option), "") << option;
      EXPECT_FALSE(contains(option_help(result.out, option), "[default:")) << option;
    }
    // Every option the help lists is one of those above.
    std::size_t listed = 0;
    for (const auto& line : split(result.out, '\n')) listed += line.starts_with("  -");
    EXPECT_EQ(listed, defaults.size() + without.size());
    // The short help is the long one's beginning, less groups of options.
    const std::string brief = run_well({h.command, "-h"}).out;
    for (const auto& line : split(brief, '\n'))
      EXPECT_TRUE(contains(result.out, line) || line.starts_with("odecast ")) << line;
    EXPECT_LE(brief.size(), result.out.size());
    EXPECT_EQ(run_well({h.command, "too", "many", "--nonsense", "--help"}).out, result.out);
  }
}

TEST_F(CommandsTest, OverviewListsEveryCommand) {
  const Result result = run_well({"--help"});
  EXPECT_TRUE(contains(result.out, "Usage: odecast COMMAND"));
  for (const Helped& h : kHelp) EXPECT_TRUE(contains(result.out, "\n  " + h.command + " "));
  EXPECT_EQ(run_well({"help"}).out, result.out);
  EXPECT_EQ(run({}).code, 2) << "no command is wrong usage";
}

TEST_F(CommandsTest, Version) {
  const Result result = run_well({"--version"});
  EXPECT_TRUE(std::regex_match(result.out, std::regex("odecast [0-9]+\\.[0-9]+\\.[0-9]+\n")))
      << result.out;
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace odecast::cli_test
