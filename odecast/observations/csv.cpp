#include "odecast/observations/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
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

/// The parser: lines in, rows out. Memory is that of the longest line and one row per trajectory.
class Parser {
 public:
  Parser(std::string name, const CsvOptions& options, const RowVisitor& visit)
      : options_(options), visit_(visit) {
    table_.source = std::move(name);
  }

  /// Takes all complete lines of the text; returns how many bytes that was.
  std::size_t lines(std::string_view text) {
    std::size_t used = 0;
    if (number_ == 0) {
      if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        throw_data({table_.source, "UTF-16 text", "UTF-8 or ASCII", "Save the file as CSV UTF-8."});
      if (text.starts_with("\xef\xbb\xbf")) used = 3;
    }
    for (;;) {
      const auto end = text.find('\n', used);
      if (end == text.npos) return used;
      line(text.substr(used, end - used));
      used = end + 1;
    }
  }

  void line(std::string_view text) {
    ++number_;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.starts_with('#') || trimmed(text).empty()) return comment(text);
    if (columns_.names.empty()) return header(text);
    if (!fast_row(text)) slow_row(text);
    const std::size_t which = trajectory();
    Last& last = last_[which];
    if (last.line > 0 && !(time_ > last.time))
      throw_data({where() + ", column " + columns_.names[columns_.time],
                  fmt::format("time {} after {} in line {}", time_, last.time, last.line),
                  "times that increase along a trajectory",
                  "Sort the rows, remove duplicates, or mark several trajectories by a column "
                  "named trajectory (or --id NAME)."});
    last = {time_, number_};
    ++rows_;
    visit_(table_, which, time_, states_.data());
  }

  const CsvTable& finish() const {
    if (columns_.names.empty())
      throw_data({table_.source, "no lines", "a header such as t,x,y,z and rows of numbers",
                  "Check that the right file was given."});
    if (rows_ == 0)
      throw_data({table_.source, "a header and no rows", "rows of numbers below it",
                  "Check that the file was written completely."});
    return table_;
  }

 private:
  struct Last {
    double time = 0;
    long line = 0;
  };

  std::string where() const { return fmt::format("{}, line {}", table_.source, number_); }

  void comment(std::string_view text) {
    if (!text.starts_with(kCertified)) return;
    const auto value = trimmed(text.substr(kCertified.size()));
    table_.certified_until = parse_number(value);
    if (!table_.certified_until || !std::isfinite(*table_.certified_until))
      throw_data({where(), "certified until " + shown(value), "a time",
                  "Correct or remove the line."});
  }

  void header(std::string_view text) {
    columns_ = find_columns(text, where(), options_);
    for (const auto c : columns_.variables) table_.variables.push_back(columns_.names[c]);
    // Written as `t`, unless a variable would be taken for the time then.
    for (const auto& v : table_.variables)
      if (lower_case(v) == "t" || lower_case(v) == "time")
        table_.time_name = columns_.names[columns_.time];
    states_.resize(table_.variables.size());
    place_.assign(columns_.names.size(), nullptr);
    place_[columns_.time] = &time_;
    for (std::size_t i = 0; i < columns_.variables.size(); ++i)
      place_[columns_.variables[i]] = &states_[i];
  }

  /// Plain numbers between commas, which nearly every row is. False for anything else.
  bool fast_row(std::string_view text) {
    const char *at = text.data(), *end = at + text.size();
    for (std::size_t c = 0; c < place_.size(); ++c) {
      const bool last = c + 1 == place_.size();
      if (double* value = place_[c]) {
        const auto [stop, error] = std::from_chars(at, end, *value);
        if (error != std::errc{} || !std::isfinite(*value)) return false;
        at = stop;
      } else {
        const char* stop = std::find(at, end, ',');
        if (c == columns_.id) id_ = unquoted({at, static_cast<std::size_t>(stop - at)});
        at = stop;
      }
      if (last) return at == end;
      if (at == end || *at != ',') return false;
      ++at;
    }
    return false;
  }

  static bool is_missing(std::string_view field) {
    return field.empty() || field == "NA" || field == "NaN" || field == "nan";
  }

  void slow_row(std::string_view text) {
    split_fields(text, fields_);
    if (fields_.size() != columns_.names.size())
      throw_data({where(), fmt::format("{} fields in {}", fields_.size(), shown(text)),
                  fmt::format("{} ({})", columns_.names.size(), fmt::join(columns_.names, ", ")),
                  "Complete or remove the line."});
    for (std::size_t c = 0; c < place_.size(); ++c) {
      const auto field = unquoted(fields_[c]);
      if (c == columns_.id) id_ = field;
      if (!place_[c]) continue;
      if (options_.missing && c != columns_.time && is_missing(field)) {
        *place_[c] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      const auto value = parse_number(field);
      if (!value || !std::isfinite(*value))
        throw_data({where() + ", column " + columns_.names[c],
                    field.empty() ? "nothing" : shown(field), "a finite number",
                    "Correct the value or remove the line."});
      *place_[c] = *value;
    }
  }

  std::size_t trajectory() {
    if (!columns_.id) {
      if (table_.ids.empty()) table_.ids.emplace_back(), last_.emplace_back();
      return 0;
    }
    if (current_ < table_.ids.size() && table_.ids[current_] == id_) return current_;
    auto found = known_.find(id_);
    if (found == known_.end()) {
      found = known_.emplace(std::string(id_), table_.ids.size()).first;
      table_.ids.emplace_back(id_);
      last_.emplace_back();
    }
    return current_ = found->second;
  }

  const CsvOptions& options_;
  const RowVisitor& visit_;
  CsvTable table_;
  Columns columns_;
  std::vector<double*> place_;  // where a column's number goes; none for columns not in use
  std::vector<double> states_;
  double time_ = 0;
  std::string_view id_;
  std::map<std::string, std::size_t, std::less<>> known_;
  std::size_t current_ = 0;
  std::vector<Last> last_;
  std::vector<std::string_view> fields_;
  long number_ = 0, rows_ = 0;
};

/// Rows of a table as a Dataset.
struct Collector {
  struct Growing {
    std::vector<double> times, states;
  };
  std::vector<Growing> growing;

  RowVisitor visitor() {
    return [this](const CsvTable& table, std::size_t which, double time, const double* states) {
      if (which >= growing.size()) growing.resize(which + 1);
      growing[which].times.push_back(time);
      growing[which].states.insert(growing[which].states.end(), states,
                                   states + table.variables.size());
    };
  }
  Dataset dataset(const CsvTable& table) {
    Dataset data{table.variables, {}, table.certified_until, table.source, table.time_name};
    const auto n = data.dimension();
    for (std::size_t k = 0; k < growing.size(); ++k) {
      Growing& g = growing[k];
      data.trajectories.push_back(
          {table.ids[k], std::move(g.times),
           Eigen::Map<const Matrix>(g.states.data(),
                                    static_cast<Eigen::Index>(g.states.size()) / n, n)});
      g = {};
    }
    return data;
  }
};

}  // namespace

CsvTable stream_csv(const std::filesystem::path& path, const CsvOptions& options,
                    const RowVisitor& visit) {
  constexpr std::size_t chunk = 1 << 18, longest = 1 << 20;
  Parser parser(path.string(), options, visit);
  FileReader file(path);
  std::string buffer;
  std::size_t left = 0;  // bytes of a line that has begun
  for (;;) {
    buffer.resize(left + chunk);
    const std::size_t got = file.read(buffer.data() + left, chunk);
    buffer.resize(left + got);
    if (got == 0) break;
    const std::size_t used = parser.lines(buffer);
    left = buffer.size() - used;
    if (left > longest)
      throw_data({path.string(), "a line of more than 1 MiB", "lines of numbers",
                  "Check that the file is a text table."});
    buffer.erase(0, used);
  }
  if (!buffer.empty()) parser.line(buffer);
  return parser.finish();
}

Dataset read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  Collector collector;
  const CsvTable table = stream_csv(path, options, collector.visitor());
  return collector.dataset(table);
}

Dataset parse_csv(std::string_view text, const std::string& name, const CsvOptions& options) {
  Collector collector;
  const RowVisitor visit = collector.visitor();
  Parser parser(name, options, visit);
  const std::size_t used = parser.lines(text);
  if (used < text.size()) parser.line(text.substr(used));
  return collector.dataset(parser.finish());
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
