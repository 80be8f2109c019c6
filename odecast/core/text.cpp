#include "odecast/core/text.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace odecast {

Utf8 first_character(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  std::uint32_t point = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    point = point << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = point < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return overlong || surrogate || point > 0x10ffff ? Utf8{} : Utf8{length, point};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = first_character(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

namespace {

bool acts(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
         (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string cleaned(std::string_view text, std::size_t longest, bool lines) {
  std::string result;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == longest) return result + "…";
    const auto [length, point] = first_character(text);
    if (length == 0 || (acts(point) && !(lines && point == '\n')))
      result += '?';
    else
      result += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  return cleaned(text, longest, false);
}
std::string printable_lines(std::string_view text) {
  return cleaned(text, std::string_view::npos, true);
}
std::string shown(std::string_view text) { return "'" + printable(text, 60) + "'"; }

std::string csv_cell(std::string_view text) {
  // A byte order mark at the very beginning of a file would be dropped.
  if (text.find_first_of(",;\t|\"#") == text.npos && trimmed(text) == text &&
      !text.starts_with("\xef\xbb\xbf"))
    return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

namespace {

/// The command of a Greek letter that is not one of the Latin ones too; empty for all else.
std::string_view greek_command(std::uint32_t point) {
  constexpr std::array<std::string_view, 25> small = {
      "alpha", "beta",   "gamma",   "delta",  "varepsilon", "zeta", "eta",  "theta", "iota",
      "kappa", "lambda", "mu",      "nu",     "xi",         "",     "pi",   "rho",   "varsigma",
      "sigma", "tau",    "upsilon", "varphi", "chi",        "psi",  "omega"};
  constexpr std::array<std::pair<std::uint32_t, std::string_view>, 14> others = {
      {{0xb5, "mu"},
       {0x393, "Gamma"},
       {0x394, "Delta"},
       {0x398, "Theta"},
       {0x39b, "Lambda"},
       {0x39e, "Xi"},
       {0x3a0, "Pi"},
       {0x3a3, "Sigma"},
       {0x3a6, "Phi"},
       {0x3a8, "Psi"},
       {0x3a9, "Omega"},
       {0x3d1, "vartheta"},
       {0x3d5, "phi"},
       {0x3f5, "epsilon"}}};
  if (point >= 0x3b1 && point <= 0x3c9) return small[point - 0x3b1];
  for (const auto& [letter, command] : others)
    if (letter == point) return command;
  return "";
}

}  // namespace

std::string latex_name(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto plain = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  if (name.size() == 1 && letter(name[0])) return name;
  if (std::all_of(name.begin(), name.end(), plain)) return "\\mathrm{" + name + "}";
  if (const Utf8 c = first_character(name); c.length == name.size())
    if (const std::string_view greek = greek_command(c.point); !greek.empty())
      return "\\" + std::string(greek);
  std::string text;
  for (const char c : printable(name)) {
    switch (c) {
      case '\\': text += "\\textbackslash{}"; break;
      case '^': text += "\\textasciicircum{}"; break;
      case '~': text += "\\textasciitilde{}"; break;
      case '<': text += "\\textless{}"; break;
      case '>': text += "\\textgreater{}"; break;
      case '|': text += "\\textbar{}"; break;
      case '"': text += "\\symbol{34}"; break;  // babel may have made it a command
      case '{':
      case '}':
      case '$':
      case '&':
      case '#':
      case '_':
      case '%': text += '\\'; [[fallthrough]];
      default: text += c;
    }
  }
  return "\\text{" + text + "}";
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // row[j] is the distance between the first i characters of a and the first j of b.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

const char* name_fault(std::string_view name) {
  if (name.empty()) return "an empty name";
  if (!is_utf8(name)) return "a name that is not UTF-8";
  if (name.find_first_of("\r\n") != name.npos) return "a line break in a name";
  if (name.find('\0') != name.npos) return "a zero byte in a name";
  if (trimmed(name) != name) return "a name with blanks at its ends";
  return nullptr;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const auto end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

std::optional<std::vector<std::string>> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;; ++at) {
    std::string& part = parts.emplace_back();
    if (at < text.size() && text[at] == '"') {
      for (++at; at < text.size() && (text[at] != '"' || text[at + 1] == '"'); ++at) {
        part += text[at];
        if (text[at] == '"') ++at;
      }
      if (at == text.size()) return std::nullopt;
      ++at;
    }
    while (at < text.size() && text[at] != ',') part += text[at++];
    if (at >= text.size()) return parts;
  }
}

std::string spelled(std::string_view text, Spelling as) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '`' ? text.find('`', at + 1) : text.npos;
    const std::string_view inside = end == text.npos ? "" : text.substr(at + 1, end - at - 1);
    const std::size_t equals = std::min(inside.find('='), inside.size());
    const std::string_view name = inside.substr(0, equals);
    const bool field = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || c == '_';
    });
    if (!field) {
      result += text[at++];
      continue;
    }
    const std::string_view value = inside.substr(std::min(equals + 1, inside.size()));
    std::string word(name);
    if (as == Spelling::options) std::replace(word.begin(), word.end(), '_', '-');
    result += as == Spelling::options ? "--" + word : word;
    if (equals < inside.size())
      result += (as == Spelling::options ? " " : "=") + std::string(value);
    else if (as == Spelling::keywords)
      result += '=';
    at = end + 1;
  }
  return result;
}

}  // namespace odecast
