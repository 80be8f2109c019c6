#pragma once

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/program.hpp"

namespace odecast::cli_test {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

inline std::string number_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

inline double number(const std::string& text) {
  double value = NAN;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(error == std::errc{} && end == text.data() + text.size()) << "'" << text << "'";
  return value;
}

/// Instruction sets this machine has, with the conditions of odecast/core/isa.cpp.
inline Words instruction_sets() {
  Words sets = {"sse2"};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2") ||
      !__builtin_cpu_supports("fma"))
    return sets;
  sets.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    sets.push_back("avx512");
  return sets;
}

class CommandsTest : public ProgramTest {
 protected:
  /// One JSON object, and nothing else on standard output.
  Json json_of(Words args, const How& how = {}) const {
    args.push_back("--json");
    const Result result = run_well(args, how);
    EXPECT_EQ(result.err, "") << joined(args);
    const Json json = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << joined(args) << "\n" << result.out.substr(0, 200);
    return json.is_object() ? json : Json::object();
  }

  /// fit with these options is wrong usage, and the message says `part`.
  void refused(Words words, const std::string& part, const std::string& data = "train.csv") const {
    words.insert(words.begin(), {"fit", data});
    const Result r = run(words);
    EXPECT_EQ(r.code, 2) << joined(words);
    EXPECT_NE(r.err.find(part), r.err.npos) << r.err;
  }

  /// forecast.csv at few times; `more` after the usual options.
  Result forecast(const Words& more) const {
    Words words = {"forecast", "model.json", "--until", "1.2", "--draws", "50"};
    words.insert(words.end(), more.begin(), more.end());
    return run_well(words);
  }

  /// Runs a command that writes `out` with every number of threads and instruction set.
  void expect_same(const Words& args) const {
    const auto with = [&](const std::string& threads, const std::string& isa) {
      Words words = args;
      words.insert(words.end(), {"--threads", threads, "-o", "out"});
      std::filesystem::remove(path("out"));
      run_well(words, {.environment = {{"ODECAST_ISA", isa}}});
      return read("out");
    };
    const std::string first = with("1", "sse2");
    EXPECT_GT(first.size(), 100u);
    for (const std::string threads : {"2", "3", "8", "all"})
      EXPECT_TRUE(with(threads, "sse2") == first) << threads << " threads: " << joined(args);
    for (const auto& isa : instruction_sets()) {
      EXPECT_TRUE(with("1", isa) == first) << isa << ": " << joined(args);
      EXPECT_TRUE(with("3", isa) == first) << isa << ", 3 threads: " << joined(args);
    }
    Words other = args;
    other.insert(other.end(), {"--seed", "2", "-o", "out"});
    run_well(other);
    EXPECT_FALSE(read("out") == first) << "another seed: " << joined(args);
  }
};

inline void expect_keys(const Json& json, const Words& keys) {
  for (const auto& key : keys) EXPECT_TRUE(json.contains(key)) << key << " in " << json;
}

}  // namespace odecast::cli_test
