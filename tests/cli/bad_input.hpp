#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/program.hpp"

namespace odecast::cli_test {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

enum { kNotTrusted = 1, kUsage = 2, kBadData = 3, kFileFailure = 4 };

class BadInputTest : public ProgramTest {
 protected:
  BadInputTest() { write("old.out", "the old file\n"); }

  /// Runs a command that must be refused with `code`: one line on standard error that has where,
  /// found, expected, indented lines below it for the text and the remedies, all of `parts`,
  /// nothing on standard output, every file as before.
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
    for (const auto& part : all) require(contains(result.err, part), "the message lacks: " + part);
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

}  // namespace odecast::cli_test
