#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "apps/odecast/commands.hpp"
#include "apps/odecast/ending.hpp"
#include "apps/odecast/manual.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/isa.hpp"
#include "odecast/core/stop.hpp"
#include "odecast/core/text.hpp"

namespace odecast::cli {
namespace {

std::vector<Command> all_commands() {
  return {simulate_command(),  inspect_command(),  fit_command(),       forecast_command(),
          filter_command(),    score_command(),    equations_command(), predict_command(),
          plot_command(),      split_command(),    systems_command(),   lyapunov_command(),
          attractor_command(), evaluate_command(), calibrate_command(), tune_command(),
          reproduce_command(), compare_command()};
}

std::string overview(const std::vector<Command>& commands) {
  std::string text =
      "odecast learns the equations of a system from observed trajectories and forecasts\n"
      "with error bands.\n\nUsage: odecast COMMAND [options]     odecast COMMAND -h, --help\n\n";
  for (const Command& c : commands) text += fmt::format("  {:<10} {}\n", c.name, c.summary);
  return text +
         "\nFrom data to a forecast:\n"
         "  odecast simulate SprottB --init 1,1,1 --until 10 --step 0.002 -o train.csv\n"
         "  odecast fit train.csv -o model.json\n"
         "  odecast forecast model.json --init=-1,-1,-1 --until 10 --step 0.02 -o forecast.csv\n"
         "\nExit codes: 0 done, 1 finished but not to be trusted, 2 wrong usage, 3 bad input "
         "data,\n"
         "4 file or system failure, 130/143 interrupted.\n";
}

int run(const std::vector<std::string>& words) {
  const auto commands = all_commands();
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    if (words.empty()) {
      print_error(overview(commands));
      return kUsage;
    }
    print_text(overview(commands));
    return kDone;
  }
  if (words[0] == "--completions") {
    print_text(completions(commands, words.size() > 1 ? words[1] : ""));
    return kDone;
  }
  if (words[0] == "--manual") {
    print_text(manual(commands, words.size() > 1 ? words[1] : ""));
    return kDone;
  }
  if (words[0] == "--version") {
    put("odecast {}\n", ODECAST_VERSION);
    return kDone;
  }
  const auto command = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& c) { return c.name == words[0]; });
  if (command == commands.end()) {
    std::vector<std::string> names;
    for (const Command& c : commands) names.push_back(c.name);
    const auto near = nearest(words[0], names);
    throw_usage({"command", shown(words[0]),
                 near ? "perhaps " + *near : "one that `odecast --help` lists",
                 "See odecast --help."});
  }
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  for (const auto& word : rest) {
    if (word == "--") break;
    if (word == "--help" || word == "-h") {
      put("{}", help_text(*command, word == "-h" ? Help::brief : Help::full));
      return kDone;
    }
  }
  active_isa();  // a wrong ODECAST_ISA is an error of every command
  const Arguments arguments(*command, rest);
  if (arguments.json() && output_is_standard(arguments))
    throw_usage({"option `output`", "- beside `json`", "one of them on standard output",
                 "Remove `json`, or name a file."});
  return command->run(arguments);
}

}  // namespace
}  // namespace odecast::cli

int main(int argc, char** argv) {
  using namespace odecast;
  using namespace odecast::cli;
  install_endings();
  // Keep freed memory: by default every large buffer is mapped, faulted in page by page, and
  // unmapped.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
  const auto ended = [](const std::string& text, int code) {
    // What fails while it is told to stop may fail for that: a pipe whose other end was told, too.
    complain(stop_requested() != 0 ? interruption_text() : text);
    return stop_requested() != 0 ? 128 + stop_requested() : code;
  };
  try {
    const int code = run({argv + 1, argv + argc});
    throw_if_stopped();  // what was asked to stop and came to its end first
    flush_output();
    return code;
  } catch (const Error& e) {
    return ended(e.marked(), e.kind() == ErrorKind::usage  ? kUsage
                             : e.kind() == ErrorKind::data ? kBadData
                                                           : kFileFailure);
  } catch (const Interrupted& e) {
    return ended("interrupted", 128 + e.signal());
  } catch (const PipeClosed&) {
    return 128 + SIGPIPE;
  } catch (
      const std::filesystem::filesystem_error& e) {  // a name that is too long, a loop of links
    return ended(shown(e.path1().string()) + ": found " + e.code().message() +
                     ", expected a path that the system knows. Check it, or choose another.",
                 kFileFailure);
  } catch (const std::system_error& e) {
    return ended(std::string("the system: found ") + e.what() +
                     ", expected it to serve. Try again, or with fewer --threads.",
                 kFileFailure);
  } catch (const std::bad_alloc&) {  // a size that no memory has
    return ended(kOutOfMemory, kFileFailure);
  } catch (const std::length_error&) {
    return ended(kOutOfMemory, kFileFailure);
  } catch (const std::exception& e) {
    return ended(e.what(), kFileFailure);
  }
}
