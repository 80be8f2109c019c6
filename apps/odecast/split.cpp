#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/files.hpp"

namespace odecast::cli {
namespace {

int run_split(const Arguments& a) {
  const auto inputs = a.paths(0);
  const std::string train = a.text("--train"), test = a.text("--test");
  check_two_outputs("--train", train, "--test", test);
  check_output(train, inputs);
  check_output(test, inputs);
  TableInfo table;
  ReadOptions read = reading(a);
  read.keep_time_texts = true;
  const Split parts = split_last(read_observations(inputs, read, &table), a.number("--holdout"));
  write_files({{train, format_observations(train, parts.train)},
               {test, format_observations(test, parts.test)}});
  say_reading(a, table);
  if (a.json())
    put_json(Json{{"train", {{"file", train}, {"rows", parts.train.rows()}}},
                  {"test", {{"file", test}, {"rows", parts.test.rows()}}}});
  else
    say(a, fmt::format("{} rows to {}, {} rows to {}", parts.train.rows(), train, parts.test.rows(),
                       test));
  return kDone;
}

}  // namespace

Command split_command() {
  std::vector<Option> options = {
      {"--holdout", "F", "the last fraction of each trajectory is the test part", "0.2"},
      {"--train", "FILE", "early part", "train.csv"},
      {"--test", "FILE", "late part", "test.csv"}};
  for (Option& o : reading_options())
    if (o.name != "--time-unit") options.push_back(o);
  return {"split",
          "hold out the end of the data as test",
          "Splits every trajectory into an early part to fit and a late part to test.",
          "odecast split my.csv --holdout 0.2 --train train.csv --test test.csv",
          {{"DATA", "as for fit", true, true}},
          with_common(std::move(options)),
          run_split};
}

}  // namespace odecast::cli
