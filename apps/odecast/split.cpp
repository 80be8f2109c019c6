#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/files.hpp"

namespace odecast::cli {
namespace {

int run(const Arguments& a) {
  const std::string input = a.positional(0), train = a.text("--train"), test = a.text("--test");
  check_two_outputs("--train", train, "--test", test);
  check_output(train, {input});
  check_output(test, {input});
  const Split parts = split_last(read_csv(input, columns(a)), a.number("--holdout"));
  write_file(train, format_csv(parts.train));
  write_file(test, format_csv(parts.test));
  if (a.json())
    fmt::print("{}\n", nlohmann::ordered_json{{"train", {{"file", train}, {"rows", parts.train.rows()}}},
                                              {"test", {{"file", test}, {"rows", parts.test.rows()}}}}
                           .dump(2));
  else
    say(a, fmt::format("{} rows to {}, {} rows to {}", parts.train.rows(), train,
                       parts.test.rows(), test));
  return kDone;
}

}  // namespace

Command split_command() {
  std::vector<Option> options = {
      {"--holdout", "F", "the last fraction of each trajectory is the test part", "0.2"},
      {"--train", "FILE", "early part", "train.csv"},
      {"--test", "FILE", "late part", "test.csv"}};
  for (Option& o : column_options()) options.push_back(o);
  return {"split",
          "hold out the end of the data as test",
          "Splits every trajectory into an early part to fit and a late part to test.",
          "odecast split my.csv --holdout 0.2 --train train.csv --test test.csv",
          {{"DATA", "CSV as for fit"}},
          with_common(std::move(options)),
          run};
}

}  // namespace odecast::cli
