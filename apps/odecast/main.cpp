#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/isa.hpp"

namespace odecast::cli {
namespace {

std::vector<Command> all_commands() {
  return {simulate_command(), inspect_command(), fit_command(),     forecast_command(), score_command(),
          equations_command(), predict_command(), plot_command(),     split_command(),
          systems_command(),   lyapunov_command(),  attractor_command(), evaluate_command(), calibrate_command(),
          tune_command(),      reproduce_command(), compare_command()};
}

std::string overview(const std::vector<Command>& commands) {
  std::string text =
      "odecast learns the equations of a system from observed trajectories and forecasts\n"
      "with error bands.\n\nUsage: odecast COMMAND [options]     odecast COMMAND --help\n\n";
  for (const Command& c : commands) text += fmt::format("  {:<10} {}\n", c.name, c.summary);
  return text +
         "\nFrom data to a forecast:\n"
         "  odecast simulate SprottB --init 1,1,1 --until 10 --step 0.002 -o train.csv\n"
         "  odecast fit train.csv --degree 2 --dropout 0.25 -o model.json\n"
         "  odecast forecast model.json --init=-1,-1,-1 --until 10 --step 0.02 -o forecast.csv\n"
         "\nExit codes: 0 done, 1 finished but not to be trusted, 2 wrong usage, 3 bad input data,\n"
         "4 file or system failure, 130/143 interrupted.\n";
}

int run(const std::vector<std::string>& words) {
  const auto commands = all_commands();
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    fmt::print(words.empty() ? stderr : stdout, "{}", overview(commands));
    return words.empty() ? kUsage : kDone;
  }
  if (words[0] == "--version") {
    fmt::print("odecast {}\n", ODECAST_VERSION);
    return kDone;
  }
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& c) { return c.name == words[0]; });
  if (command == commands.end()) {
    std::vector<std::string> names;
    for (const Command& c : commands) names.push_back(c.name);
    const auto near = nearest(words[0], names);
    throw_usage({"command", "'" + words[0] + "'",
                 near ? "perhaps " + *near : "one that `odecast --help` lists",
                 "See odecast --help."});
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  for (const auto& word : rest) {
    if (word == "--") break;
    if (word == "--help" || word == "-h") {
      fmt::print("{}", help_text(*command));
      return kDone;
    }
  }
  active_isa();  // a wrong ODECAST_ISA is an error of every command
  return command->run(Arguments(*command, rest));
}

}  // namespace
}  // namespace odecast::cli

int main(int argc, char** argv) {
  using namespace odecast;
  using namespace odecast::cli;
  install_signal_handlers();
  // Keep freed memory: by default every large buffer is mapped, faulted in page by page, and unmapped.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
  try {
    const int code = run({argv + 1, argv + argc});
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    return code;
  } catch (const Error& e) {
    fmt::print(stderr, "odecast: {}\n", e.what());
    switch (e.kind()) {
      case ErrorKind::usage: return kUsage;
      case ErrorKind::data: return kBadData;
      case ErrorKind::file: return kFileFailure;
    }
  } catch (const Interrupted& e) {
    fmt::print(stderr, "odecast: interrupted; nothing was written\n");
    return 128 + e.signal();
  } catch (const std::system_error& e) {  // what fmt throws when printing fails
    fmt::print(stderr,
               "odecast: standard output: found {}, expected a place with room. Free space or write "
               "to another place.\n",
               e.code().message());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "odecast: out of memory. Use fewer draws, output times or hidden units.\n");
  } catch (const std::exception& e) {
    fmt::print(stderr, "odecast: {}\n", e.what());
  }
  return kFileFailure;
}
