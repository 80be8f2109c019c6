#include "odecast/observations/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {
namespace {

constexpr std::string_view kCertified = "# certified until ";

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::string_view unquoted(std::string_view s) {
  s = trimmed(s);
  if (s.size() >= 2 && s.front() == '"' && s.back() == '"') s = s.substr(1, s.size() - 2);
  return s;
}

std::string lower_case(std::string_view s) {
  std::string result(s);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// Text of a file for a message: short, printable.
std::string shown(std::string_view s) {
  std::string result = "'";
  for (const char c : s.substr(0, 40))
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return result + (s.size() > 40 ? "…'" : "'");
}

/// Whether every character is well formed. Names go into JSON, which must be UTF-8.
bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto byte = static_cast<unsigned char>(s[i]);
    const int more = byte < 0x80 ? 0 : byte >> 5 == 6 ? 1 : byte >> 4 == 14 ? 2 : byte >> 3 == 30 ? 3 : -1;
    if (more < 0 || i + static_cast<std::size_t>(more) >= s.size()) return false;
    std::uint32_t code = more == 0 ? byte : byte & (0x3fu >> more);
    for (int k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(s[i + static_cast<std::size_t>(k)]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3fu);
    }
    constexpr std::uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    if (code < smallest[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

void split_fields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const auto comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == line.npos) return;
    line.remove_prefix(comma + 1);
  }
}

/// Lines of a text, numbered from 1, without their ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line) {
    if (rest_.empty()) return false;
    ++number_;
    const auto end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }
  long number() const { return number_; }

 private:
  std::string_view rest_;
  long number_ = 0;
};

struct Columns {
  std::vector<std::string> names;
  std::size_t time = 0;
  std::optional<std::size_t> id;
  std::vector<std::size_t> variables;
};

Columns find_columns(std::string_view header, const std::string& where, const CsvOptions& options) {
  Columns columns;
  std::vector<std::string_view> fields;
  split_fields(header, fields);
  for (const auto field : fields) columns.names.emplace_back(unquoted(field));
  const auto& names = columns.names;
  const std::string have = fmt::format("columns {}", fmt::join(names, ", "));
  if (!is_utf8(header))
    throw_data({where, "bytes that are not UTF-8", "column names in UTF-8 or ASCII",
                "Save the file as CSV UTF-8."});
  if (names.size() == 1 && names[0].find_first_of(";\t|") != std::string::npos)
    throw_data({where, shown(names[0]), "a header whose columns are separated by commas",
                "Save the table with commas, e.g. `tr ';' ',' < old.csv > new.csv`."});
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      throw_data({where, fmt::format("no name for column {}", i + 1), "a name for every column",
                  "Name the column in the first line, e.g. t,x,y,z."});
    if (std::count(names.begin(), names.end(), names[i]) > 1)
      throw_data({where, "the column " + shown(names[i]) + " twice", "different names",
                  "Rename one of them."});
  }
  const auto named = [&](const std::string& wanted, const char* option) {
    const auto found = std::find(names.begin(), names.end(), wanted);
    if (found == names.end())
      throw_usage({option, "no column " + shown(wanted) + " in " + where, have,
                   "Use one of these names."});
    return static_cast<std::size_t>(found - names.begin());
  };
  const auto by_default = [&](std::initializer_list<std::string_view> wanted) {
    for (const auto name : wanted)
      for (std::size_t i = 0; i < names.size(); ++i)
        if (lower_case(names[i]) == name) return std::optional(i);
    return std::optional<std::size_t>();
  };
  if (!options.time.empty()) {
    columns.time = named(options.time, "--time");
  } else if (const auto found = by_default({"t", "time"})) {
    columns.time = *found;
  } else {
    throw_data({where, have, "a header with a time column named t or time",
                "Name it with --time NAME, or add the header line, e.g. t,x,y,z."});
  }
  if (!options.id.empty())
    columns.id = named(options.id, "--id");
  else
    columns.id = by_default({"trajectory", "series", "id"});
  if (!options.variables.empty()) {
    for (const auto& name : options.variables) {
      const std::size_t c = named(name, "--variables");
      if (c == columns.time || c == columns.id || std::count(columns.variables.begin(),
                                                             columns.variables.end(), c) > 0)
        throw_usage({"--variables", "the column " + shown(name) + " twice",
                     "each column for one purpose", "Name other columns."});
      columns.variables.push_back(c);
    }
  } else {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (i != columns.time && i != columns.id) columns.variables.push_back(i);
  }
  if (columns.variables.empty())
    throw_data({where, have, "at least one variable beside the time", "Add its column."});
  return columns;
}

}  // namespace

Dataset read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return parse_csv(read_file(path), path.string(), options);
}

Dataset parse_csv(std::string_view text, const std::string& name, const CsvOptions& options) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw_data({name, "UTF-16 text", "UTF-8 or ASCII", "Save the file as CSV UTF-8."});
  Dataset data;
  data.source = name;
  Lines lines(text);
  std::string_view line;
  const auto skip = [&](std::string_view l) {
    if (l.starts_with(kCertified)) {
      const auto value = trimmed(l.substr(kCertified.size()));
      data.certified_until = parse_number(value);
      if (!data.certified_until || !std::isfinite(*data.certified_until))
        throw_data({fmt::format("{}, line {}", name, lines.number()),
                    "certified until " + shown(value), "a time", "Correct or remove the line."});
    }
    return l.starts_with('#') || trimmed(l).empty();
  };
  bool header = false;
  while (!header && lines.next(line)) header = !skip(line);
  if (!header)
    throw_data({name, "no lines", "a header such as t,x,y,z and rows of numbers",
                "Check that the right file was given."});
  const Columns columns =
      find_columns(line, fmt::format("{}, line {}", name, lines.number()), options);
  for (const auto c : columns.variables) data.variables.push_back(columns.names[c]);
  // Written as `t`, unless a variable would be taken for the time then.
  const bool clash = std::any_of(data.variables.begin(), data.variables.end(), [](const auto& v) {
    return lower_case(v) == "t" || lower_case(v) == "time";
  });
  if (clash) data.time_name = columns.names[columns.time];

  struct Growing {
    std::string id;
    std::vector<double> times, states;
    long last_line = 0;
  };
  std::vector<Growing> growing;
  std::map<std::string, std::size_t, std::less<>> known;
  std::vector<std::string_view> fields;
  while (lines.next(line)) {
    if (skip(line)) continue;
    split_fields(line, fields);
    if (fields.size() != columns.names.size())
      throw_data({fmt::format("{}, line {}", name, lines.number()),
                  fmt::format("{} fields in {}", fields.size(), shown(line)),
                  fmt::format("{} ({})", columns.names.size(), fmt::join(columns.names, ", ")),
                  "Complete or remove the line."});
    const auto number = [&](std::size_t c) {
      const auto field = unquoted(fields[c]);
      const auto value = parse_number(field);
      if (!value || !std::isfinite(*value))
        throw_data({fmt::format("{}, line {}, column {}", name, lines.number(), columns.names[c]),
                    field.empty() ? "nothing" : shown(field), "a finite number",
                    "Correct the value or remove the line."});
      return *value;
    };
    std::size_t which = 0;
    if (columns.id) {
      const auto id = unquoted(fields[*columns.id]);
      auto found = known.find(id);
      if (found == known.end()) {
        found = known.emplace(std::string(id), growing.size()).first;
        growing.push_back({std::string(id), {}, {}, 0});
      }
      which = found->second;
    } else if (growing.empty()) {
      growing.emplace_back();
    }
    Growing& g = growing[which];
    const double time = number(columns.time);
    if (!g.times.empty() && !(time > g.times.back()))
      throw_data({fmt::format("{}, line {}, column {}", name, lines.number(),
                              columns.names[columns.time]),
                  fmt::format("time {} after {} in line {}", time, g.times.back(), g.last_line),
                  "times that increase along a trajectory",
                  "Sort the rows, remove duplicates, or mark several trajectories by a column "
                  "named trajectory (or --id NAME)."});
    g.times.push_back(time);
    g.last_line = lines.number();
    for (const auto c : columns.variables) g.states.push_back(number(c));
  }
  if (growing.empty())
    throw_data({name, "a header and no rows", "rows of numbers below it",
                "Check that the file was written completely."});
  for (Growing& g : growing)
    data.trajectories.push_back(
        {g.id, std::move(g.times),
         Eigen::Map<const Matrix>(g.states.data(),
                                  static_cast<Eigen::Index>(g.states.size()) / data.dimension(),
                                  data.dimension())});
  return data;
}

std::string format_csv(const Dataset& data) {
  std::string text;
  const bool several = data.trajectories.size() > 1;
  if (data.certified_until) text += fmt::format("{}{}\n", kCertified, *data.certified_until);
  text += fmt::format("{}{},{}\n", several ? "trajectory," : "", data.time_name,
                      fmt::join(data.variables, ","));
  for (const Trajectory& t : data.trajectories) {
    for (int i = 0; i < t.rows(); ++i) {
      if (several) text += t.id + ",";
      append_number(text, t.times[static_cast<std::size_t>(i)]);
      for (Eigen::Index j = 0; j < t.states.cols(); ++j) {
        text += ',';
        append_number(text, t.states(i, j));
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace odecast
