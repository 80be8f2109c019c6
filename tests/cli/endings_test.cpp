// How the program ends: by signals while it waits, with nowhere to complain, at its bounds.
#include <sys/stat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

using EndingsTest = ProgramTest;

/// Columns of noise, or their sums.
std::string noise(int rows, int columns, bool walk) {
  std::string text = "t";
  for (int c = 0; c < columns; ++c) text += ",x" + std::to_string(c);
  std::vector<double> at(static_cast<std::size_t>(columns), 0);
  unsigned long long state = 88172645463325252ull;  // xorshift64, G. Marsaglia 2003
  for (int k = 0; k < rows; ++k) {
    text += "\n" + std::to_string(0.1 * k);
    for (double& x : at) {
      double sum = -6;  // of twelve uniform ones: nearly normal
      for (int i = 0; i < 12; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        sum += static_cast<double>(state >> 11) * 0x1p-53;
      }
      x = walk ? x + sum : sum;
      text += "," + std::to_string(x);
    }
  }
  return text + "\n";
}

TEST_F(EndingsTest, AMessageThatCannotBeWrittenCostsNoExitCode) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_data();
  write("noise.csv", noise(20, 3, false));
  for (const char* to : {"/dev/full", ""}) {
    How how;
    how.error_to = to;
    how.close_error = *to == '\0';
    EXPECT_EQ(run({"fit", "missing.csv"}, how).code, 4);
    EXPECT_EQ(run({"frobnicate"}, how).code, 2);
    EXPECT_EQ(run({"fit", "noise.csv"}, how).code, 1);
    EXPECT_EQ(run({"fit", "train.csv"}, how).code, 0);
  }
}

TEST_F(EndingsTest, SignalsReachWhatWaits) {
  make_data();
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}})
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"fit", "fifo"},
          {"equations", "fifo"},
          {"simulate", "Lorenz", "--until", "1", "-o", "fifo"}}) {
      How how;
      how.signal = signal;
      how.signal_after = 0.2;
      const Result result = run(words, how);
      EXPECT_EQ(result.code, code) << joined(words);
      EXPECT_LT(result.seconds, 1) << joined(words);
      EXPECT_TRUE(contains(result.err, "interrupted; nothing was written")) << result.err;
    }
}

TEST_F(EndingsTest, AnInterruptedStudySaysHowItGoesOn) {
  How how;
  how.signal = SIGINT;
  how.signal_after = 0.3;
  const Result result =
      run({"reproduce", "--adam-seeds", "2", "--batches", "20", "-o", "study"}, how);
  EXPECT_EQ(result.code, 130);
  EXPECT_LT(result.seconds, 1.5);
  EXPECT_TRUE(contains(result.err,
                       "finished units are kept in 'study': the same command goes on from there"))
      << result.err;
}

TEST_F(EndingsTest, SizesBeyondAllBoundsAreWrongUsage) {
  for (const char* until : {"1e9", "1e17", "1e19", "1e300"}) {
    const Result result = run({"lyapunov", "Lorenz", "--until", until});
    EXPECT_EQ(result.code, 2) << until << result.err;
    EXPECT_TRUE(contains(result.err, "expected at most 1e+07")) << result.err;
  }
  EXPECT_EQ(run({"lyapunov", "Lorenz", "--transient", "1e18"}).code, 2);
  make_data();
  EXPECT_EQ(run({"fit", "train.csv", "--layers", "1e300"}).code, 2);
  EXPECT_EQ(run({"simulate", "Lorenz", "--until", "1e300"}).code, 2);
}

// Nothing can be learnt from noise, and that is said soon: bounds of work, not of time, and twenty
// times what they take here.
TEST_F(EndingsTest, FitsOfNoiseGiveUp) {
  ODECAST_NOT_UNDER_SANITIZERS();
  write("short.csv", noise(20, 3, false));
  write("wide.csv", noise(1000, 10, false));
  write("walk.csv", noise(2000, 3, true));
  for (const char* name : {"short.csv", "wide.csv"}) {
    const Result result = run({"fit", name, "--json"});
    EXPECT_EQ(result.code, 1) << name;
    EXPECT_TRUE(contains(result.err, "the rows look like noise")) << result.err;
    EXPECT_FALSE(exists("model.json"));
  }
  How how;
  how.limit = 200;
  const Result result = run({"fit", "walk.csv", "--json", "--threads", "1"}, how);
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(nlohmann::json::parse(result.out)["status"], "stopped");
  run_well({"equations", "model.json", "--json"});
}

TEST_F(EndingsTest, ABudgetEndsAFitWithWhatItHas) {
  ODECAST_NOT_UNDER_SANITIZERS();
  write("walk.csv", noise(2000, 3, true));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--degree", "3"},
           {"--dropout", "0.25", "--degree", "6", "--starts", "300"},
           {"--posterior", "bootstrap", "--degree", "3", "--replicates", "10000"},
           {"--layers", "64,64"}}) {
    std::vector<std::string> line = {"fit", "walk.csv", "--json", "--budget",
                                     "0.5", "-o",       "m.json"};
    line.insert(line.end(), words.begin(), words.end());
    const Result result = run(line);
    EXPECT_EQ(result.code, 1) << joined(line) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_TRUE(json["status"] == "stopped" || json["status"] == "misfit") << result.out;
    EXPECT_TRUE(contains(result.err, "stopped at its budget")) << result.err;
    if (exists("m.json")) run_well({"predict", "m.json", "--at", "1,1,1"});
    std::filesystem::remove(path("m.json"));
  }
  EXPECT_EQ(run({"fit", "walk.csv", "--budget", "0"}).code, 2);
}

TEST_F(EndingsTest, AnOlderModelStaysWhereNoneWasLearnt) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_data();
  run_well({"fit", "train.csv"});
  const std::string before = read("model.json");
  write("short.csv", noise(20, 3, false));
  EXPECT_EQ(run({"fit", "short.csv"}).code, 1);
  EXPECT_EQ(read("model.json"), before);
}

TEST_F(EndingsTest, AHyphenIsAStandardStreamWhateverFilesThereAre) {
  write("-", "hello\n");
  const Result data = run({"simulate", "SprottB", "--until", "2", "--step", "0.01", "-o", "-"});
  EXPECT_EQ(data.code, 0);
  EXPECT_EQ(data.out.substr(0, 7), "t,x,y,z");
  EXPECT_EQ(read("-"), "hello\n");
  How how;
  how.input = data.out;
  const Result fitted = run({"fit", "-", "-o", "-"}, how);
  EXPECT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_EQ(fitted.out.substr(0, 1), "{");
  EXPECT_NE(fitted.err.find("dx/dt"), std::string::npos);  // what is said stands beside it
  EXPECT_EQ(read("-"), "hello\n");
  EXPECT_EQ(run({"fit", "-", "-o", "-", "--json"}, how).code, 2);
  const Result cut = run({"split", "-", "--train", "-"}, how);
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_EQ(cut.out.find("rows to"), std::string::npos);
  EXPECT_NE(cut.err.find("rows to"), std::string::npos);
}

TEST_F(EndingsTest, AReaderThatHasSeenEnoughIsNoError) {
  const std::string command = std::string(kProgram) +
                              " simulate SprottB --until 60 --step 0.0005 2> " +
                              path("err").string() + " | head -n 2 > " + path("out").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read("err"), "");
  EXPECT_EQ(split(read("out"), '\n').size(), 3u);
}

}  // namespace
}  // namespace odecast::cli_test
