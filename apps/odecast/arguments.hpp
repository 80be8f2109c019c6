#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace odecast::cli {

/// One option of a command. The default is text, shown in the help and read like a given value, so
/// that the two cannot differ.
struct Option {
  std::string name;   ///< "--draws"; "-o" has its long form in `name` and 'o' in `letter`
  std::string value;  ///< what stands after it in the help; empty for a switch
  std::string help;
  std::string initial;  ///< default; empty for none
  char letter = 0;
  std::vector<std::string> choices = {};  ///< allowed values; empty for any
  std::string bare = {};                  ///< the value where none stands after it; empty: one must
  std::string group = {};  ///< heading of the long help; empty: among those of the short one
};

/// The word as a shell reads it back.
std::string quoted(const std::string& word);

/// The option as messages have it, for spelled() of core/text.hpp: "`max_steps`" for "--max-steps".
std::string marked(std::string_view option);

/// Lines of at most so many characters, broken at blanks.
std::string wrapped(const std::string& text, std::size_t width);

struct Positional {
  std::string name, help;
  bool required = true;
  bool repeats = false;  ///< of the last one: any number
};

class Arguments;

struct Command {
  std::string name, summary, description, example;
  std::vector<Positional> positionals;
  std::vector<Option> options;
  int (*run)(const Arguments&);
};

/// The words of a command line, checked against a Command. Every getter throws Error (usage) that
/// names the option, what was found and what was expected.
class Arguments {
 public:
  /// `words` are those after the command's name.
  Arguments(const Command& command, const std::vector<std::string>& words);

  const Command& command() const { return *command_; }
  bool declares(std::string_view option) const;
  bool has(std::string_view option) const;  ///< given, or has a default
  bool given(std::string_view option) const;
  std::string text(std::string_view option) const;
  double number(std::string_view option) const;
  long whole(std::string_view option, long smallest, long largest) const;
  std::uint64_t seed() const;
  int threads() const;
  std::vector<double> numbers(std::string_view option) const;
  /// Separated by commas; one that has a comma or begins with a quote stands in quotes, as in a CSV
  /// file.
  std::vector<std::string> words(std::string_view option) const;
  const std::string& positional(std::size_t i) const { return positionals_[i]; }
  std::size_t positional_count() const { return positionals_.size(); }
  /// The positionals from `first` on.
  std::vector<std::filesystem::path> paths(std::size_t first) const {
    return {positionals_.begin() + static_cast<std::ptrdiff_t>(first), positionals_.end()};
  }
  /// The command as it was given, quoted for a shell.
  const std::string& command_line() const { return command_line_; }
  /// Words that give the same arguments again.
  std::vector<std::string> spelled() const;
  bool json() const { return given("--json"); }
  bool quiet() const { return given("--quiet"); }

 private:
  const Option& declared(std::string_view option) const;
  const Command* command_;
  std::string command_line_;
  std::vector<std::string> positionals_;
  std::vector<std::pair<std::string, std::string>> given_;
};

/// Headings of a command's options, in their order; the first is empty.
std::vector<std::string> groups(const Command& command);
enum class Help {
  brief,  ///< of the options those without a group
  full,
};
std::string help_text(const Command& command, Help how = Help::full);
/// The nearest of `known` to a mistyped word, or nothing.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace odecast::cli
