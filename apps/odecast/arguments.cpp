#include "apps/odecast/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/text.hpp"

namespace odecast::cli {
namespace {

std::string usage_line(const Command& c) {
  std::string line = "odecast " + c.name;
  for (const Positional& p : c.positionals)
    line += (p.required ? " " + p.name : " [" + p.name + "]") + (p.repeats ? "…" : "");
  return line + " [options]";
}

}  // namespace

std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./,=:@%+").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string marked(std::string_view option) {
  std::string name(option.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  return "`" + name + "`";
}

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& known) {
  const auto cost =
      [&](const std::string& name) {  // of equally near ones the name that the word begins
        return std::pair(edit_distance(word, name), !name.starts_with(word));
      };
  const auto closest = std::min_element(known.begin(), known.end(),
                                        [&](auto& a, auto& b) { return cost(a) < cost(b); });
  if (closest == known.end() ||
      edit_distance(word, *closest) > std::max<std::size_t>(2, word.size() / 3))
    return std::nullopt;
  return *closest;
}

Arguments::Arguments(const Command& command, const std::vector<std::string>& words)
    : command_(&command), command_line_("odecast " + command.name) {
  for (const std::string& word : words) command_line_ += " " + quoted(word);
  const auto required =
      static_cast<std::size_t>(std::count_if(command.positionals.begin(), command.positionals.end(),
                                             [](const Positional& p) { return p.required; }));
  bool only_positionals = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_positionals || word.size() < 2 || word[0] != '-') {
      positionals_.push_back(word);
      continue;
    }
    if (word == "--") {
      only_positionals = true;
      continue;
    }
    const auto equals = word.starts_with("--") ? word.find('=') : word.npos;
    const std::string name = word.substr(0, equals);
    const auto find = [&](const std::string& wanted) {
      return std::find_if(command.options.begin(), command.options.end(), [&](const Option& o) {
        return o.name == wanted ||
               (wanted.size() == 2 && o.letter && wanted == std::string{'-', o.letter});
      });
    };
    const auto option = find(name);
    if (option == command.options.end()) {
      std::vector<std::string> known;
      for (const Option& o : command.options) known.push_back(o.name);
      const auto near = nearest(name, known);
      throw_usage(
          {"option " + printable(name, 60), "no such option of odecast " + command.name,
           near ? "perhaps " + *near : "one that `odecast " + command.name + " --help` lists",
           "See odecast " + command.name + " --help."});
    }
    if (given(option->name))
      throw_usage({"option " + name, "it given twice", "it once", "Remove one of them."});
    if (option->value.empty()) {
      if (equals != word.npos)
        throw_usage(
            {"option " + name, "a value", "none: it is a switch", "Write just " + name + "."});
      given_.emplace_back(option->name, "");
    } else if (equals != word.npos) {
      given_.emplace_back(option->name, word.substr(equals + 1));
    } else if (i + 1 < words.size() && find(words[i + 1]) == command.options.end() &&
               (option->bare.empty() || positionals_.size() >= required)) {
      // A value that may be missing is none where a word is still needed for something else.
      given_.emplace_back(option->name, words[++i]);
    } else if (!option->bare.empty()) {
      given_.emplace_back(option->name, option->bare);
    } else {
      throw_usage(
          {"option " + name,
           i + 1 < words.size() ? printable(words[i + 1], 60) + " after it" : "nothing after it",
           option->value, "Write " + name + " " + option->value + "."});
    }
    const std::string& value = given_.back().second;
    if (!option->choices.empty() &&
        std::find(option->choices.begin(), option->choices.end(), value) == option->choices.end())
      throw_usage({marked(option->name), shown(value),
                   fmt::format("one of {}", fmt::join(option->choices, ", ")),
                   "Use one of these."});
  }
  const bool repeats = !command.positionals.empty() && command.positionals.back().repeats;
  if (positionals_.size() < required ||
      (positionals_.size() > command.positionals.size() && !repeats))
    throw_usage({"odecast " + command.name, fmt::format("{} arguments", positionals_.size()),
                 usage_line(command), "See odecast " + command.name + " --help."});
}

const Option& Arguments::declared(std::string_view name) const {
  return *std::find_if(command_->options.begin(), command_->options.end(),
                       [&](const Option& o) { return o.name == name; });
}

bool Arguments::declares(std::string_view name) const {
  return std::any_of(command_->options.begin(), command_->options.end(),
                     [&](const Option& o) { return o.name == name; });
}

bool Arguments::given(std::string_view name) const {
  return std::any_of(given_.begin(), given_.end(), [&](auto& g) { return g.first == name; });
}

bool Arguments::has(std::string_view name) const {
  return given(name) || !declared(name).initial.empty();
}

std::vector<std::string> Arguments::spelled() const {
  std::vector<std::string> words;
  for (const auto& [option, value] : given_)
    words.push_back(declared(option).value.empty() ? option : option + "=" + value);
  words.push_back("--");
  words.insert(words.end(), positionals_.begin(), positionals_.end());
  return words;
}

std::string Arguments::text(std::string_view name) const {
  for (const auto& [option, value] : given_)
    if (option == name) return value;
  return declared(name).initial;
}

double Arguments::number(std::string_view name) const {
  const auto value = parse_number(text(name));
  if (!value || !std::isfinite(*value))
    throw_usage({"option " + marked(name), shown(text(name)), "a finite number",
                 "Give a number such as 0.5 or 1e-3."});
  return *value;
}

long Arguments::whole(std::string_view name, long smallest, long largest) const {
  const std::string value = text(name);
  long result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size() || result < smallest ||
      result > largest)
    throw_usage({"option " + marked(name), shown(value),
                 fmt::format("a whole number from {} to {}", smallest, largest),
                 "Give a number in that range."});
  return result;
}

std::uint64_t Arguments::seed() const {
  const std::string value = text("--seed");
  std::uint64_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size())
    throw_usage({"option `seed`", shown(value), "a whole number >= 0 below 2^64",
                 "Give a number such as 1."});
  return result;
}

int Arguments::threads() const {
  if (text("--threads") == "all") return default_threads();
  return static_cast<int>(whole("--threads", 1, 1024));
}

std::vector<std::string> Arguments::words(std::string_view name) const {
  if (!has(name)) return {};
  const auto list = split_list(text(name));
  if (!list)
    throw_usage(
        {"option " + marked(name), shown(text(name)) + " with a quote that is not closed",
         "names separated by commas",
         "Put a name that has a comma or a quote in quotes, the quote doubled: '\"x, m\",y'."});
  return *list;
}

std::vector<double> Arguments::numbers(std::string_view name) const {
  std::vector<double> result;
  for (const auto& word : words(name)) {
    const auto value = parse_number(word);
    if (!value || !std::isfinite(*value))
      throw_usage({"option " + marked(name), shown(word) + " in " + shown(text(name)),
                   "finite numbers separated by commas", "For example -1,-1,-1."});
    result.push_back(*value);
  }
  return result;
}

std::string wrapped(const std::string& text, std::size_t width) {
  std::string lines, line;
  std::size_t columns = 0;  // characters, not bytes
  for (const auto& word : split(text, ' ')) {
    const auto size = static_cast<std::size_t>(
        std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    if (!line.empty() && columns + 1 + size > width) {
      lines += line + '\n';
      line.clear();
      columns = 0;
    }
    line += (line.empty() ? "" : " ") + word;
    columns += (columns > 0) + size;
  }
  return lines + line;
}

namespace {

std::string option_help(const Option& o) {
  std::string left = o.letter ? fmt::format("-{}, {}", o.letter, o.name) : o.name;
  if (!o.choices.empty())
    left += fmt::format(" {}", fmt::join(o.choices, "|"));
  else if (!o.bare.empty())
    left += " [" + o.value + "]";
  else if (!o.value.empty())
    left += " " + o.value;
  // Help lines break at their own newlines and stay under the second column.
  std::string help = o.help;
  if (!o.initial.empty()) help += fmt::format(" [default: {}]", o.initial);
  for (std::size_t at = 0; (at = help.find('\n', at)) != help.npos; at += 26)
    help.replace(at, 1, "\n" + std::string(25, ' '));
  return (left.size() <= 22 ? fmt::format("  {:<22} ", left)
                            : fmt::format("  {}\n  {:<22} ", left, "")) +
         help + "\n";
}

}  // namespace

std::vector<std::string> groups(const Command& c) {
  std::vector<std::string> names = {""};
  for (const Option& o : c.options)
    if (std::find(names.begin(), names.end(), o.group) == names.end()) names.push_back(o.group);
  return names;
}

std::string help_text(const Command& c, Help how) {
  std::string text = fmt::format("{}\n\nUsage: {}\n", c.description, usage_line(c));
  text += "\nExample:\n";
  for (const auto& line : split(c.example, '\n')) text += "  " + line + "\n";
  if (!c.positionals.empty()) {
    text += "\nArguments:\n";
    for (const Positional& p : c.positionals) text += fmt::format("  {:<22} {}\n", p.name, p.help);
  }
  const auto names = groups(c);
  for (const std::string& group : names) {
    if (how == Help::brief && !group.empty()) continue;
    text += group.empty() ? "\nOptions:\n" : "\n" + group + ":\n";
    for (const Option& o : c.options)
      if (o.group == group) text += option_help(o);
  }
  if (how == Help::brief && names.size() > 1)
    text += fmt::format("\nodecast {} --help has all {} options.\n", c.name, c.options.size());
  return text;
}

}  // namespace odecast::cli
