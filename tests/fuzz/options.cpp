// Command lines: the first byte chooses the command, the others are its words, one in each line. A
// word that begins with the byte 1 is the option whose number follows, with the rest as its value.
// Whatever reads options refuses with an Error.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/odecast/commands.hpp"
#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast::cli {
namespace {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      fit_command(),     forecast_command(),  evaluate_command(),  simulate_command(),
      score_command(),   tune_command(),      lyapunov_command(),  attractor_command(),
      inspect_command(), equations_command(), predict_command(),   plot_command(),
      split_command(),   systems_command(),   calibrate_command(), reproduce_command(),
      compare_command()};
  return all;
}

const Model& model() {
  static const Model one =
      model_from_text(read_file(ODECAST_MODELS "/trajectory").substr(1), "model");
  return one;
}

/// Runs one reader of options; an Error is an answer.
template <class Use>
void answer(const Use& use) {
  try {
    use();
  } catch (const Error&) {
  }
}

void use(const Arguments& a) {
  const std::string& name = a.command().name;
  origin(a);
  static std::set<std::string>
      seen;  // help and defaults are the same for every line: once is enough
  const bool first = seen.insert(name).second;
  if (first) help_text(a.command());
  for (const Option& o : a.command().options) {
    if (o.value.empty() || !(first || a.given(o.name))) continue;
    a.text(o.name);
    a.words(o.name);
    answer([&] { fuzz::require(std::isfinite(a.number(o.name))); });
    answer([&] { fuzz::require(a.whole(o.name, 1, 1000) <= 1000); });
    answer([&] {
      for (const double x : a.numbers(o.name)) fuzz::require(std::isfinite(x));
    });
  }
  if (a.declares("--seed")) answer([&] { a.seed(); });
  if (a.declares("--threads")) answer([&] { fuzz::require(a.threads() >= 1); });
  if (a.declares("--separator")) answer([&] { reading(a); });
  if (name == "fit") {
    answer([&] { fit_options(a); });
    answer([&] { fit_columns(a); });
  } else if (name == "forecast") {
    answer([&] {
      const ForecastOptions o = forecast_options(a, model());
      if (!a.given("--until") || a.number("--until") < 1000) even_times(a, model(), o);
    });
    answer([&] { exponent(a); });
  } else if (name == "score") {
    answer([&] { score_options(a); });
  } else if (name == "evaluate" || name == "calibrate") {
    answer([&] { evaluate_options(a, model()); });
  }
}

}  // namespace
}  // namespace odecast::cli

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  using namespace odecast::cli;
  if (size == 0) return 0;
  const fuzz::SecondAtMost limit;
  const Command& command = commands()[bytes[0] % commands().size()];
  std::vector<std::string> words(1);
  for (const std::uint8_t* next = bytes + 1; next != bytes + size; ++next)
    *next == '\n' ? void(words.emplace_back()) : words.back().push_back(static_cast<char>(*next));
  for (std::string& word : words)
    if (word.size() >= 2 && word[0] == 1) {
      const Option& option =
          command.options[static_cast<unsigned char>(word[1]) % command.options.size()];
      word = option.name + (option.value.empty() ? "" : "=" + word.substr(2));
    }
  answer([&] { use(Arguments(command, words)); });
  return 0;
}
