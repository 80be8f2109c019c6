#include "apps/odecast/manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"

namespace odecast::cli {
namespace {

/// In single quotes, as bash, zsh and fish all read them.
std::string quoted(const std::string& text, std::string_view quote) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string(quote) : std::string(1, c);
  return result + "'";
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// The words of an option.
std::vector<std::string> spellings(const Option& o) {
  std::vector<std::string> words = {o.name};
  if (o.letter) words.push_back({'-', o.letter});
  return words;
}

std::string bash(const std::vector<Command>& commands) {
  std::string text =
      "# bash completion of odecast\n_odecast() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
      "  case ${COMP_WORDS[1]} in\n";
  std::vector<std::string> names;
  for (const Command& c : commands) {
    names.push_back(c.name);
    text += fmt::format("    {})\n      case $before in\n", c.name);
    std::vector<std::string> all;
    for (const Option& o : c.options) {
      for (const auto& word : spellings(o)) all.push_back(word);
      if (!o.choices.empty())
        text += fmt::format("        {}) words={} ;;\n", fmt::join(spellings(o), "|"),
                            quoted(fmt::format("{}", fmt::join(o.choices, " ")), "'\\''"));
      else if (!o.value.empty())  // a file, a number, a name
        text += fmt::format("        {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
                            fmt::join(spellings(o), "|"));
    }
    text += fmt::format("        *) words='{}' ;;\n      esac ;;\n", fmt::join(all, " "));
  }
  text += fmt::format(
      "  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words='{} --help --version'\n"
      "  elif [ \"${{word#-}}\" = \"$word\" ] && [ \"${{before#-}}\" = \"$before\" ]; then\n"
      "    COMPREPLY=($(compgen -f -- \"$word\")); return\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
      "}}\ncomplete -o filenames -F _odecast odecast\n",
      fmt::join(names, " "));
  return text;
}

/// Text inside the brackets and colons of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : one_line(text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh(const std::vector<Command>& commands) {
  std::string text =
      "#compdef odecast\n# zsh completion of odecast\n_odecast() {\n"
      "  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (const Command& c : commands)
    text += "      " + quoted(c.name + ":" + zsh_text(c.summary), "'\\''") + "\n";
  text +=
      "    )\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words; (( CURRENT-- ))\n  case $command in\n";
  for (const Command& c : commands) {
    text += "    " + c.name + ") _arguments -S";
    for (const Option& o : c.options)
      for (const auto& word : spellings(o)) {
        std::string spec = word + "[" + zsh_text(o.help) + "]";
        if (!o.choices.empty())
          spec += fmt::format(":{}:({})", zsh_text(o.value), fmt::join(o.choices, " "));
        else if (!o.value.empty())
          spec += ":" + zsh_text(o.value) + ":_files";
        text += " \\\n      " + quoted(spec, "'\\''");
      }
    text += " \\\n      '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_odecast \"$@\"\n";
}

std::string fish(const std::vector<Command>& commands) {
  std::string text = "# fish completion of odecast\n";
  for (const Command& c : commands)
    text += fmt::format("complete -c odecast -n __fish_use_subcommand -f -a {} -d {}\n", c.name,
                        quoted(c.summary, "\\'"));
  for (const Command& c : commands)
    for (const Option& o : c.options) {
      text += fmt::format("complete -c odecast -n '__fish_seen_subcommand_from {}' -l {}", c.name,
                          o.name.substr(2));
      if (o.letter) text += fmt::format(" -s {}", o.letter);
      if (!o.choices.empty())
        text += " -x -a " + quoted(fmt::format("{}", fmt::join(o.choices, " ")), "\\'");
      else if (!o.value.empty())
        text += " -r";
      text += " -d " + quoted(one_line(o.help), "\\'") + "\n";
    }
  return text;
}

/// Text of ours for troff: no line of it is a request, no hyphen a dash.
std::string troff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n'))
      result += std::string("\\&") + c;
    else
      result += c;
  }
  return result;
}

std::string page_of(const Command& c) {
  std::string text = fmt::format(
      ".TH ODECAST\\-{0} 1\n.SH NAME\nodecast\\-{1} \\- {2}\n.SH SYNOPSIS\n.B odecast {1}\n",
      c.name, c.name, troff(c.summary));
  for (const Positional& p : c.positionals)
    text += fmt::format("{}{}{}\n", p.required ? "" : "[", troff(p.name),
                        std::string(p.repeats ? "…" : "") + (p.required ? "" : "]"));
  text += "[options]\n.SH DESCRIPTION\n" + troff(c.description) + "\n.SH EXAMPLES\n.nf\n" +
          troff(c.example) + "\n.fi\n";
  if (!c.positionals.empty()) text += ".SH ARGUMENTS\n";
  for (const Positional& p : c.positionals)
    text += ".TP\n.I " + troff(p.name) + "\n" + troff(one_line(p.help)) + "\n";
  for (const std::string& group : groups(c)) {
    text += group.empty() ? ".SH OPTIONS\n" : ".SS " + troff(group) + "\n";
    for (const Option& o : c.options) {
      if (o.group != group) continue;
      std::string left = fmt::format("\\fB{}\\fR", troff(o.name));
      if (o.letter) left = fmt::format("\\fB\\-{}\\fR, ", o.letter) + left;
      if (!o.choices.empty())
        left += " " + troff(fmt::format("{}", fmt::join(o.choices, "|")));
      else if (!o.value.empty())
        left += fmt::format(" \\fI{}\\fR", troff(o.value));
      text += ".TP\n" + left + "\n" + troff(one_line(o.help));
      text += o.initial.empty() ? "\n" : troff(fmt::format(" [default: {}]\n", o.initial));
    }
  }
  return text + ".SH SEE ALSO\n.BR odecast (1)\n";
}

}  // namespace

std::string completions(const std::vector<Command>& commands, std::string_view shell) {
  if (shell == "bash") return bash(commands);
  if (shell == "zsh") return zsh(commands);
  if (shell == "fish") return fish(commands);
  throw_usage({"--completions", shown(shell), "bash, zsh or fish",
               "Put what it prints where your shell looks for completions."});
}

std::string manual(const std::vector<Command>& commands, std::string_view name) {
  if (!name.empty()) {
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& c) { return c.name == name; });
    if (found == commands.end())
      throw_usage({"--manual", shown(name), "a command", "See odecast --help."});
    return page_of(*found);
  }
  std::string text =
      ".TH ODECAST 1\n.SH NAME\nodecast \\- learns the equations of a system from observed "
      "trajectories and forecasts with error bands\n.SH SYNOPSIS\n.B odecast\n.I COMMAND\n"
      "[options]\n.SH COMMANDS\n";
  for (const Command& c : commands)
    text += fmt::format(".TP\n.BR odecast\\-{} (1)\n{}\n", c.name, troff(c.summary));
  return text +
         ".SH EXIT STATUS\n0 done, 1 finished but not to be trusted, 2 wrong usage, 3 bad input "
         "data, 4 file or system failure, 130 or 143 interrupted.\n";
}

}  // namespace odecast::cli
