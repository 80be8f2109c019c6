#include "odecast/observations/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/formats.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/observations/times.hpp"

namespace odecast {
namespace {

constexpr std::string_view kCertified = "# certified until ";
constexpr std::size_t kChunk = 1 << 18;  // read at a time, and looked at to find the dialect
constexpr std::size_t kLongestLine = 1 << 20;

/// Lines end in LF, CRLF or CR; any number of CR before an LF belong to it, as some transfers
/// write. Gives each line of the text to `line`, and how many there are of it: empty ones in a row
/// come as one. Returns how many bytes are used up. What follows the last end of line is left, and
/// so is a CR at the very end, unless `whole`.
template <class Line>
std::size_t each_line(std::string_view text, bool whole, const Line& line) {
  std::size_t used = 0;
  while (used < text.size()) {
    const char* begin = text.data() + used;
    const std::size_t left = text.size() - used;
    if (*begin == '\n') {
      std::size_t run = 1;
      while (run < left && begin[run] == '\n') ++run;
      if (!line(std::string_view(begin, 0), static_cast<long>(run))) return text.size();
      used += run;
      continue;
    }
    const auto* lf = static_cast<const char*>(std::memchr(begin, '\n', left));
    const std::size_t length = lf ? static_cast<std::size_t>(lf - begin) : left;
    const auto* cr = static_cast<const char*>(std::memchr(begin, '\r', length));
    if (cr) {
      const char* end = begin + length;
      const char* last = cr;
      while (last < end && *last == '\r') ++last;
      if (lf && last == end) {  // CRLF
        if (!line(std::string_view(begin, static_cast<std::size_t>(cr - begin)), 1))
          return text.size();
        used += length + 1;
      } else if (last == end && !whole) {
        return used;  // an LF may follow
      } else {
        if (!line(std::string_view(begin, static_cast<std::size_t>(cr - begin)), 1))
          return text.size();
        used += static_cast<std::size_t>(cr - begin) + 1;
      }
    } else if (lf || whole) {
      if (!line(std::string_view(begin, length), 1)) return text.size();
      used += length + (lf ? 1 : 0);
    } else {
      return used;
    }
  }
  return used;
}

bool is_comment(std::string_view line) { return trimmed(line).starts_with('#'); }

/// A line split into cells without their quotes. `fault` tells what is wrong with the last one.
struct Cells {
  std::vector<std::string_view> cells;
  std::deque<std::string> unescaped;  // of cells with doubled quotes
  const char* fault = nullptr;

  void split(std::string_view line, char separator) {
    cells.clear();
    unescaped.clear();
    fault = nullptr;
    const auto is_blank = [&](char c) { return c != separator && (c == ' ' || c == '\t'); };
    std::size_t at = 0;
    for (;;) {
      std::size_t begin = at;
      while (begin < line.size() && is_blank(line[begin])) ++begin;
      if (begin < line.size() && line[begin] == '"') {
        bool doubled = false;
        std::size_t close = line.find('"', begin + 1);
        while (close != line.npos && close + 1 < line.size() && line[close + 1] == '"') {
          doubled = true;
          close = line.find('"', close + 2);
        }
        if (close == line.npos) return refuse_cell("a quote that is not closed in this line");
        std::string_view inside = line.substr(begin + 1, close - begin - 1);
        if (doubled) inside = unescape(inside);
        cells.push_back(trimmed(inside));
        at = close + 1;
        while (at < line.size() && is_blank(line[at])) ++at;
        if (at < line.size() && line[at] != separator) {
          fault = "text after a closing quote";
          return;
        }
      } else {
        at = std::min(line.find(separator, begin), line.size());
        std::string_view cell = line.substr(begin, at - begin);
        while (!cell.empty() && is_blank(cell.back())) cell.remove_suffix(1);
        if (cell.find('"') != cell.npos) return refuse_cell("a quote inside a cell");
        cells.push_back(cell);
      }
      if (at >= line.size()) return;
      ++at;
    }
  }

 private:
  void refuse_cell(const char* what) {
    fault = what;
    cells.emplace_back();
  }
  std::string_view unescape(std::string_view inside) {
    std::string& text = unescaped.emplace_back();
    for (std::size_t i = 0; i < inside.size(); ++i) {
      text += inside[i];
      if (inside[i] == '"') ++i;
    }
    return text;
  }
};

/// A number with that decimal mark; with a comma for it, a point is no part of a number.
std::optional<double> parse_cell(std::string_view cell, char decimal) {
  if (decimal == '.') return parse_number(cell);
  if (cell.find('.') != cell.npos || cell.size() > 400) return std::nullopt;
  std::string text(cell);
  std::replace(text.begin(), text.end(), ',', '.');
  return parse_number(text);
}

/// What a cell was meant as, by its first letter or digit: 12 kg, $1.5, 2024-03-01 and inf are
/// numbers, the middle one of 1, -, 3 is nothing.
ColumnLook look_of(std::string_view cell) {
  if (is_missing(cell)) return ColumnLook::nothing;
  if (parse_cell(cell, '.')) return ColumnLook::numbers;
  bool other = false;
  for (const char c : cell) {
    if (c >= '0' && c <= '9') return ColumnLook::numbers;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return ColumnLook::words;
    other = other || static_cast<unsigned char>(c) >= 0x80;
  }
  return other ? ColumnLook::words : ColumnLook::nothing;
}

/// 1,234 and -12,345: as well a thousand and more as one and a bit.
bool could_be_thousands(std::string_view cell) {
  if (cell.starts_with('-') || cell.starts_with('+')) cell.remove_prefix(1);
  const auto comma = cell.find(',');
  if (comma < 1 || comma > 3 || cell.size() != comma + 4 || cell[0] == '0') return false;
  return std::all_of(cell.begin(), cell.end(),
                     [](char c) { return c == ',' || (c >= '0' && c <= '9'); });
}

struct SampleLine {
  long number;
  std::string_view text;
};

/// The first lines that are neither blank nor comments, after those to skip.
std::vector<SampleLine> sample_lines(std::string_view text, bool whole, long skip,
                                     std::size_t most = 200) {
  std::vector<SampleLine> sample;
  long number = 0;
  each_line(text, whole, [&](std::string_view line, long count) {
    number += count;
    if (number > skip && !trimmed(line).empty() && !is_comment(line))
      sample.push_back({number, line});
    return sample.size() < most;
  });
  return sample;
}

const char* name_of(char separator) {
  return separator == ',' ? "','" : separator == ';' ? "';'" : separator == '|' ? "'|'" : "tabs";
}

/// How many cells each line has, 0 where it cannot be split, and their median.
struct Widths {
  std::vector<std::size_t> each;
  std::size_t usual = 0;
};

Widths widths_of(const std::vector<SampleLine>& sample, char separator) {
  Cells cells;
  Widths widths;
  for (const auto& line : sample) {
    cells.split(line.text, separator);
    widths.each.push_back(cells.fault ? 0 : cells.cells.size());
  }
  std::vector<std::size_t> sorted(widths.each);
  std::sort(sorted.begin(), sorted.end());
  widths.usual = sorted[sorted.size() / 2];
  return widths;
}

/// How well the lines below the first are rows of numbers under a separator, in [0, 1].
double rate(const std::vector<SampleLine>& sample, char separator, char decimal) {
  Cells cells;
  const auto [widths, width] = widths_of(sample, separator);
  if (width < 2 && widths[0] < 2) return 0;
  double good = 0, all = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    cells.split(sample[i].text, separator);
    double numbers = 0;
    for (const auto cell : cells.cells)
      numbers += is_missing(cell) || parse_cell(cell, '.') ||
                 (separator != ',' && decimal != '.' && parse_cell(cell, ','));
    const double share =
        i == 0 ? 1 : (0.01 + numbers / static_cast<double>(cells.cells.size())) / 1.01;
    all += 1;
    good += widths[i] == width ? share : 0;
  }
  return good / all;
}

struct FoundCell {
  long line = 0;
  std::string text;
};

char sniff_decimal(const std::vector<SampleLine>& sample, char separator, const std::string& name) {
  if (separator == ',') return '.';
  FoundCell point, comma;
  bool thousands = true;
  Cells cells;
  for (const auto& line : sample) {
    cells.split(line.text, separator);
    for (const auto cell : cells.cells) {
      if (cell.find_first_of(".,") == cell.npos) continue;
      if (parse_cell(cell, '.')) {
        if (point.line == 0) point = {line.number, std::string(cell)};
      } else if (parse_cell(cell, ',')) {
        if (comma.line == 0) comma = {line.number, std::string(cell)};
        thousands = thousands && could_be_thousands(cell);
      }
    }
  }
  if (comma.line == 0) return '.';
  if (point.line != 0)
    throw_data({fmt::format("{}, lines {} and {}", name, point.line, comma.line),
                fmt::format("{} with a decimal point and {} with a decimal comma",
                            shown(point.text), shown(comma.text)),
                "one decimal mark",
                "Say which: `decimal=point` or `decimal=comma`.",
                "",
                {"Correct the file."}});
  if (thousands) {
    std::string as_point = comma.text, as_whole = comma.text;
    as_point[as_point.find(',')] = '.';
    as_whole.erase(as_whole.find(','), 1);
    throw_data(
        {fmt::format("{}, line {}", name, comma.line),
         fmt::format("{}, which reads as {} with a decimal comma and as {} with commas between "
                     "thousands",
                     shown(comma.text), as_point, as_whole),
         "numbers that can be read in one way only",
         "If it is a decimal comma: `decimal=comma`.",
         "",
         {"If not, write the numbers without commas between thousands."}});
  }
  return ',';
}

bool sniff_header(const std::vector<SampleLine>& sample, const Dialect& d,
                  const ReadOptions& options) {
  Cells cells;
  const auto is_text = [&](std::string_view cell) {
    return !is_missing(cell) && !parse_cell(cell, d.decimal) && !parse_cell(cell, '.');
  };
  cells.split(sample[0].text, d.separator);
  const std::vector<std::string> first(cells.cells.begin(), cells.cells.end());
  std::vector<bool> text_above(first.size()), number_below(first.size());
  for (std::size_t c = 0; c < first.size(); ++c) {
    text_above[c] = is_text(first[c]);
    const std::string name = lower_case(first[c]);
    if (text_above[c] && (name == "t" || name == "time" || first[c] == options.time)) return true;
  }
  for (std::size_t i = 1; i < sample.size(); ++i) {
    cells.split(sample[i].text, d.separator);
    for (std::size_t c = 0; c < std::min(first.size(), cells.cells.size()); ++c)
      if (!is_text(cells.cells[c])) number_below[c] = true;
  }
  bool all_text = true;
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (text_above[c] && number_below[c]) return true;
    all_text = all_text && text_above[c];
  }
  return all_text;
}

/// Without the lines above the first that has as many cells as most.
std::vector<SampleLine> after_preamble(const std::vector<SampleLine>& sample, char separator) {
  const auto [widths, usual] = widths_of(sample, separator);
  std::size_t first = 0;
  while (usual > 1 && widths[first] != usual) ++first;
  return {sample.begin() + static_cast<std::ptrdiff_t>(first), sample.end()};
}

/// Whether the line below the header has units: no number in any cell, where the next has some.
bool is_units(const std::vector<SampleLine>& sample, const Dialect& d) {
  const auto numbers = [&](const SampleLine& line) {
    Cells cells;
    cells.split(line.text, d.separator);
    return std::count_if(cells.cells.begin(), cells.cells.end(), [&](std::string_view cell) {
      return look_of(cell) == ColumnLook::numbers;
    });
  };
  Cells below;
  below.split(sample[1].text, d.separator);
  const bool says = std::any_of(below.cells.begin(), below.cells.end(),
                                [](std::string_view cell) { return !is_missing(cell); });
  return says && numbers(sample[1]) == 0 && numbers(sample[2]) > 0;
}

/// What the first cells of every column are, below the header.
std::vector<ColumnLook> looks_of(const std::vector<SampleLine>& sample, const Dialect& d) {
  struct Seen {
    bool number = false, word = false, index = true;
    long dates = 0, others = 0;
    std::optional<double> last = {};
  };
  std::vector<Seen> seen;
  Cells cells;
  for (const SampleLine& line : sample) {
    if (line.number < d.first_line || line.number == d.units_line) continue;
    cells.split(line.text, d.separator);
    if (seen.empty()) {
      seen.resize(cells.cells.size());
      if (d.header) continue;
    }
    for (std::size_t c = 0; c < std::min(seen.size(), cells.cells.size()); ++c) {
      Seen& s = seen[c];
      const std::string_view cell = cells.cells[c];
      const auto value = parse_cell(cell, d.decimal);
      s.index =
          s.index && value && *value == std::floor(*value) && (!s.last || *value == *s.last + 1);
      s.last = value;
      if (!is_missing(cell)) ++(!value && is_date(cell) ? s.dates : s.others);
      const ColumnLook look = look_of(cell);
      s.number = s.number || look == ColumnLook::numbers;
      s.word = s.word || look == ColumnLook::words;
    }
  }
  std::vector<ColumnLook> looks;
  for (const Seen& s : seen)
    looks.push_back(s.dates > s.others    ? ColumnLook::dates
                    : s.number && s.index ? ColumnLook::index
                    : s.number            ? ColumnLook::numbers
                    : s.word              ? ColumnLook::words
                                          : ColumnLook::nothing);
  return looks;
}

}  // namespace

Dialect sniff(std::string_view text, const std::string& name, const ReadOptions& options) {
  Dialect d;
  if (options.skip > 0) d.first_line = options.skip + 1;
  auto sample = sample_lines(text, true, options.skip);
  if (sample.empty()) return d;
  if (options.separator != 0) {
    d.separator = options.separator;
  } else {
    double best = -1, second = -1;
    char other = ',';
    for (const char separator : {',', ';', '\t', '|'}) {
      if (separator == options.decimal) continue;
      const double r = rate(sample, separator, options.decimal);
      if (r > best) {
        second = best;
        other = d.separator;
        best = r;
        d.separator = separator;
      } else if (r > second) {
        second = r;
        other = separator;
      }
    }
    if (best > 0 && best == second && sample.size() > 1) {
      const auto reading = [&](char separator) {
        Cells cells;
        cells.split(sample[1].text, separator);
        return fmt::format("{} cells separated by {} ({})", cells.cells.size(), name_of(separator),
                           fmt::join(cells.cells, " and "));
      };
      throw_data({fmt::format("{}, line {}", name, sample[1].number),
                  reading(d.separator) + " or " + reading(other), "one separator",
                  "Say which: `separator`, one of , ; tab |.",
                  fmt::format("{} | {}", sample[1].number, shown(sample[1].text))});
    }
  }
  std::vector<SampleLine> table = after_preamble(sample, d.separator);
  d.decimal = options.decimal != 0 ? options.decimal : sniff_decimal(table, d.separator, name);
  // Lines before the table are some only where a header follows: a header that is too short is not
  // a preamble.
  if (table.size() < sample.size() && options.header == HeaderRule::sniffed &&
      sniff_header(table, d, options)) {
    d.first_line = table[0].number;
    sample = std::move(table);
  }
  d.header = options.header == HeaderRule::sniffed ? sniff_header(sample, d, options)
                                                   : options.header == HeaderRule::yes;
  if (d.header && sample.size() > 2 && is_units(sample, d)) d.units_line = sample[1].number;
  return d;
}

namespace {

/// The parser: text in, rows out. Memory is that of a line and what Rows keeps.
class Parser {
 public:
  Parser(const std::string& name, const ReadOptions& options, const RowVisitor& visit)
      : options_(options), rows_(table_, options, visit, "line") {
    table_.source = name;
    if (options.step > 0)
      throw_usage({"option `sample_step`", "it for " + name, "an array without times",
                   "Remove it: a text table has a column of times."});
    if (options.decimal != 0 && options.decimal == options.separator)
      throw_usage({"option `decimal`", "a comma, which is also the separator",
                   "two different characters", "Remove one of the options."});
  }

  /// Takes the lines of the text; returns how many bytes are used up. `whole`: nothing follows.
  std::size_t lines(std::string_view text, bool whole) {
    std::size_t mark = 0;
    if (number_ == 0) {
      if (!whole && text.find_first_of("\r\n") == text.npos) return 0;
      mark = begin(text, whole);
    }
    return mark + each_line(text.substr(mark), whole, [this](std::string_view l, long count) {
             line(l, count);
             return !rows_.stopped();
           });
  }

  TableInfo finish() {
    if (rows_.names().empty())
      throw_data({table_.source, "no lines", "a header such as t,x,y,z and rows of numbers",
                  "Check that the right file was given."});
    if (rows_.count() == 0)
      throw_data({table_.source,
                  table_.dropped > 0
                      ? fmt::format("{} rows, each with a missing cell", table_.dropped)
                      : "a header and no rows",
                  "rows of numbers below it", "Check that the file was written completely."});
    rows_.finish();
    return std::move(table_);
  }

  long number() const { return number_; }
  bool stopped() const { return rows_.stopped(); }

 private:
  /// Looks at the beginning; returns the length of the byte order mark.
  std::size_t begin(std::string_view text, bool whole) {
    const auto refuse = [&](const char* found) {
      throw_data({table_.source, found, "text in UTF-8 or ASCII", "Save the file as CSV UTF-8."});
    };
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) refuse("UTF-16 text");
    // At least one line, however long.
    const std::string_view first =
        text.substr(0, std::max(kChunk, std::min(text.find_first_of("\r\n"), text.size() - 1) + 1));
    if (first.find('\0') != first.npos)
      refuse("zero bytes, as in UTF-16 text or in no text at all");
    const std::size_t mark = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
    std::string_view sample = first.substr(mark);
    if (!whole || first.size() < text.size())  // the last line may be cut
      sample = sample.substr(0, sample.find_last_of("\r\n") + 1);
    table_.dialect = sniff(sample, table_.source, options_);
    looks_ = looks_of(sample_lines(sample, true, options_.skip), table_.dialect);
    beginning_ = sample;
    const Dialect& d = table_.dialect;
    if (d.first_line > 1 && options_.skip == 0)
      table_.notes.push_back(
          fmt::format("The table begins in line {}; what stands before is left out", d.first_line));
    if (d.units_line > 0)
      table_.notes.push_back(fmt::format("Line {} has units: left out", d.units_line));
    return mark;
  }

  void line(std::string_view text, long count) {
    number_ += count;
    if (rows_.names().empty() || !fast_row(text)) slow_line(text);
  }

  /// Plain numbers between separators, which nearly every line is. False for anything else.
  bool fast_row(std::string_view text) {
    const std::string_view original = text;
    if (comma_) text = with_points(text);
    const char separator = table_.dialect.separator;
    const char *at = text.data(), *end = at + text.size();
    std::string_view id;
    for (std::size_t c = 0; c < columns_; ++c) {
      if (double* value = places_[c]; value && !(times_ && value == rows_.time_place())) {
        while (at != end && *at == ' ') ++at;
        const auto [stop, error] = std::from_chars(at, end, *value);
        if (error != std::errc{} || !std::isfinite(*value)) return false;
        at = stop;
      } else {
        const auto left = static_cast<std::size_t>(end - at);
        const auto* stop =
            left > 0 ? static_cast<const char*>(std::memchr(at, separator, left)) : nullptr;
        if (!stop) stop = end;
        const std::string_view cell = original.substr(static_cast<std::size_t>(at - text.data()),
                                                      static_cast<std::size_t>(stop - at));
        if (cell.find('"') != cell.npos || (c == 0 && is_comment(cell))) return false;
        if (c == rows_.id_column()) id = trimmed(cell);
        if (value && !take_time(value, trimmed(cell))) return false;
        at = stop;
      }
      if (c + 1 == columns_) {
        if (at != end) return false;
        break;
      }
      if (at == end || *at != separator) return false;
      ++at;
    }
    rows_.row(id, {number_, original});
    return true;
  }

  /// The line with points for decimal commas; a point, which no number has then, becomes a '?'.
  std::string_view with_points(std::string_view text) {
    scratch_.resize(text.size());
    for (std::size_t i = 0; i < text.size(); ++i)
      scratch_[i] = text[i] == ',' ? '.' : text[i] == '.' ? '?' : text[i];
    return scratch_;
  }

  void slow_line(std::string_view text) {
    if (number_ < table_.dialect.first_line && !is_comment(text)) return;
    if (trimmed(text).empty()) return rows_.new_block();
    if (is_comment(text)) return comment(text);
    const Place place{number_, text};
    cells_.split(text, table_.dialect.separator);
    if (cells_.fault) {
      const std::size_t c = cells_.cells.size() - 1;
      throw_data({c < rows_.names().size()
                      ? rows_.where(place, c)
                      : fmt::format("{}, column {}", rows_.where(place), c + 1),
                  cells_.fault, "cells with both quotes or with none", "Correct the line.",
                  rows_.text_of(place)});
    }
    if (rows_.names().empty()) return begin_table(text, place);
    if (number_ == table_.dialect.units_line) return;
    if (cells_.cells.size() != rows_.names().size()) wrong_width(place);
    if (rows_.block_is_empty() && text == header_) return;  // each block may have it
    slow_row(place);
  }

  void comment(std::string_view text) {
    if (!text.starts_with(kCertified)) return;
    const auto value = trimmed(text.substr(kCertified.size()));
    table_.certified_until = parse_number(value);
    if (!table_.certified_until || !std::isfinite(*table_.certified_until))
      throw_data({rows_.where({number_, text}), "certified until " + shown(value), "a time",
                  "Correct or remove the line."});
  }

  void begin_table(std::string_view text, const Place& place) {
    const Dialect& d = table_.dialect;
    std::vector<std::string> names;
    if (d.header) {
      names.assign(cells_.cells.begin(), cells_.cells.end());
      header_ = text;
    } else {
      names = made_names();
    }
    // One column that is a whole row: the separator is none of those we know.
    if (names.size() == 1 && trimmed(text).find_first_of(" ,;\t|:") != text.npos)
      throw_data({rows_.where(place),
                  "one column in " + shown(trimmed(text)),
                  fmt::format("columns separated by {}", name_of(d.separator)),
                  "Say what separates them: `separator`, one of , ; tab |.",
                  rows_.text_of(place),
                  {"For blanks: `tr -s ' ' ',' < old.txt > new.csv`."}});
    rows_.name_columns(std::move(names), place, looks_);
    begin_times();
    places_ = rows_.places().data();
    columns_ = rows_.places().size();
    comma_ = d.decimal == ',';
    if (!d.header) slow_row(place);
  }

  /// For a table without a header: id for a column of words, then t, x1, x2, …
  std::vector<std::string> made_names() const {
    std::vector<std::string> names;
    const char* next = "t";
    bool has_id = false;
    int variables = 0;
    for (const auto cell : cells_.cells) {
      const bool word = !is_missing(cell) && !parse_cell(cell, table_.dialect.decimal);
      if (word && next && is_date(cell)) {
        names.emplace_back(std::exchange(next, nullptr));
      } else if (word && !has_id) {
        has_id = true;
        names.emplace_back("id");
      } else if (next) {
        names.emplace_back(std::exchange(next, nullptr));
      } else {
        names.push_back(fmt::format("x{}", ++variables));
      }
    }
    return names;
  }

  /// What the column of times is, by its cells at the beginning: one with a day above 12 tells
  /// 3/4/2024 from 4/3/2024, and may come late.
  void begin_times() {
    const std::size_t column = rows_.time_column();
    const Dialect& d = table_.dialect;
    const auto find = [&](std::size_t most) {
      Cells cells;
      std::vector<TimeCell> times;
      std::deque<std::string> kept;  // the cells of a line are those of the next one then
      for (const SampleLine& line : sample_lines(beginning_, true, options_.skip, most)) {
        if (line.number < d.first_line + (d.header ? 1 : 0) || line.number == d.units_line)
          continue;
        if (d.header && line.text == header_) continue;
        cells.split(line.text, d.separator);
        if (column < cells.cells.size() && !is_missing(cells.cells[column]))
          times.push_back({line.number, kept.emplace_back(plain_time(cells.cells[column]))});
      }
      return time_column_of(times, table_.source, rows_.names()[column], options_);
    };
    const bool dates = column < looks_.size() && looks_[column] == ColumnLook::dates;
    times_ = find(dates ? std::string_view::npos : 200);
    beginning_ = {};
    if (!times_) return;
    table_.calendar = times_->calendar;
    if (!std::holds_alternative<Calendar>(options_.time_count))
      table_.notes.push_back(in_words(*times_));
  }

  /// A number has a point, whatever the decimal mark of the file.
  std::string plain_time(std::string_view cell) const {
    std::string text(cell);
    if (table_.dialect.decimal == ',' && !is_date(cell))
      std::replace(text.begin(), text.end(), ',', '.');
    return text;
  }

  /// False for a cell that is no time.
  bool take_time(double* value, std::string_view cell, std::string* fault = nullptr) {
    const bool number = times_->form >= TimeForm::epoch_s;
    const auto time =
        number && comma_ ? times_->number(plain_time(cell), fault) : times_->number(cell, fault);
    if (!time) return false;
    *value = *time;
    rows_.set_time_text(cell);
    return true;
  }

  [[noreturn]] void wrong_width(const Place& place) const {
    const auto& names = rows_.names();
    const std::size_t found = cells_.cells.size();
    const std::string column =
        found < names.size() ? names[found] : fmt::format("{}", names.size() + 1);
    throw_data({rows_.where(place) + ", column " + column,
                fmt::format("{} {} in {}", found, found == 1 ? "cell" : "cells", shown(place.text)),
                fmt::format("{} ({}) separated by {}", names.size(), fmt::join(names, ", "),
                            name_of(table_.dialect.separator)),
                "Complete or remove the line.",
                rows_.text_of(place),
                {"If another character separates the columns: `separator`, one of , ; tab |."}});
  }

  void slow_row(const Place& place) {
    const std::size_t id_column = rows_.id_column();
    const std::string_view id = id_column < columns_ ? cells_.cells[id_column] : std::string_view();
    std::optional<std::size_t> missing;
    for (std::size_t c = 0; c < columns_; ++c) {
      if (!places_[c]) continue;
      const auto cell = cells_.cells[c];
      if (is_missing(cell)) {
        *places_[c] = std::numeric_limits<double>::quiet_NaN();
        if (!missing || places_[c] == rows_.time_place()) missing = c;
        continue;
      }
      if (times_ && places_[c] == rows_.time_place()) {
        std::string fault;
        if (!take_time(places_[c], cell, &fault)) no_time(c, cell, fault, place);
        continue;
      }
      const auto value = parse_cell(cell, table_.dialect.decimal);
      if (!value || !std::isfinite(*value)) no_number(c, cell, place);
      *places_[c] = *value;
    }
    if (missing) return rows_.missing(*missing, cells_.cells[*missing], id, place);
    rows_.row(id, place);
  }

  [[noreturn]] void no_time(std::size_t column, std::string_view cell, const std::string& fault,
                            const Place& place) const {
    const bool text = times_->form < TimeForm::epoch_s;
    throw_data({rows_.where(place, column),
                fmt::format("{}: {}", shown(cell), fault),
                text ? "a date as in the other lines, such as " +
                           format_times(
                               times_->calendar,
                               std::vector{to_number(times_->calendar, times_->calendar.origin)})[0]
                     : std::string(form_words(times_->form)),
                "Correct the value or remove the line.",
                rows_.text_of(place),
                {}});
  }

  /// A cell of the column of times where these are numbers.
  [[noreturn]] void no_time_number(std::size_t column, std::string_view cell,
                                   const Place& place) const {
    const bool date = is_date(cell), clock = !date && cell.find(':') != cell.npos;
    throw_data(
        {rows_.where(place, column),
         shown(cell),
         date ? "numbers, as the other times are" : "a number, or a date such as 2024-03-01 06:00",
         date && options_.time_format == TimeFormat::number
             ? "Leave `time_format=number` out where it is given; a model of times that are "
               "numbers is fitted again, to dates."
         : date  ? "Write all times as dates, or all as numbers."
         : clock ? "Write date and clock into one column, as 2024-03-01 06:00:00."
                 : "Correct the value; where all are so, write them as dates or as numbers.",
         rows_.text_of(place),
         {"Name another column: `time` NAME."}});
  }

  [[noreturn]] void no_number(std::size_t column, std::string_view cell, const Place& place) const {
    const bool comma = table_.dialect.decimal == ',';
    const bool other_mark =
        cell.find(comma ? '.' : ',') != cell.npos && parse_cell(cell, comma ? '.' : ',');
    if (places_[column] == rows_.time_place() && !other_mark && !parse_cell(cell, '.'))
      no_time_number(column, cell, place);
    Complaint c{
        rows_.where(place, column), shown(cell),
        fmt::format("a finite number{}",
                    other_mark ? comma ? " with a decimal comma" : " with a decimal point" : ""),
        "Correct the value or remove the line.", rows_.text_of(place)};
    if (other_mark && table_.dialect.separator != ',')
      c.others.push_back(
          fmt::format("If all numbers are written so: `decimal` {}.", comma ? "point" : "comma"));
    if (rows_.count() == 0 && table_.dialect.header == false)
      c.others.push_back("If the first line is a header: `header=yes`.");
    if (rows_.count() == 0 && table_.dialect.header && rows_.id_column() >= columns_ &&
        places_[column] != rows_.time_place() && !other_mark)
      c.others.push_back(
          "If the column tells trajectories apart: `id` with its name. To leave it out: "
          "`variables` with the others.");
    throw_data(c);
  }

  const ReadOptions& options_;
  TableInfo table_;
  Rows rows_;
  // Of rows_, for the fast path.
  double* const* places_ = nullptr;
  std::size_t columns_ = 0;
  bool comma_ = false;
  std::string header_, scratch_;
  std::vector<ColumnLook> looks_;
  std::string beginning_;            // of the file, until its columns are named
  std::optional<TimeColumn> times_;  // nothing: they are numbers
  Cells cells_;
  long number_ = 0;
};

}  // namespace

TableInfo stream_csv(ByteReader& bytes, const std::string& name, const ReadOptions& options,
                     const RowVisitor& visit) {
  Parser parser(name, options, visit);
  std::vector<char> buffer(kChunk);
  std::size_t held = 0;  // bytes of a line that has begun
  for (;;) {
    if (buffer.size() < held + kChunk) buffer.resize(held + kChunk);
    const std::size_t got = bytes.read(buffer.data() + held, kChunk);
    const bool whole = got < kChunk;
    const std::string_view text(buffer.data(), held + got);
    const std::size_t used = parser.lines(text, whole);
    if (whole || parser.stopped()) return parser.finish();
    held = text.size() - used;
    if (held > kLongestLine)
      throw_data({fmt::format("{}, line {}", name, parser.number() + 1),
                  "a line of more than 1 MiB", "lines of numbers",
                  "Check that the file is a text table."});
    std::memmove(buffer.data(), buffer.data() + used, held);
  }
}

TableInfo stream_csv(std::string_view text, const std::string& name, const ReadOptions& options,
                     const RowVisitor& visit) {
  Parser parser(name, options, visit);
  parser.lines(text, true);
  return parser.finish();
}

std::string format_csv(const Dataset& data) {
  std::string text;
  const bool several = data.trajectories.size() > 1;
  if (data.certified_until) text += fmt::format("{}{}\n", kCertified, *data.certified_until);
  if (several) text += csv_cell(id_column(data)) + ',';
  text += csv_cell(time_column(data));
  for (const auto& name : data.variables) text += ',' + csv_cell(name);
  for (const auto& name : data.inputs) text += ',' + csv_cell(name);
  text += '\n';
  for (const Trajectory& t : data.trajectories) {
    if (const char* fault = several ? name_fault(t.id) : nullptr)
      throw_data({fmt::format("{}, trajectory {}", data.source, shown(t.id)), fault,
                  "an id that a cell of CSV can hold", "Rename the trajectory."});
    const std::string id = several ? csv_cell(t.id) + ',' : "";
    const std::vector<std::string> dates = !t.time_texts.empty() ? t.time_texts
                                           : data.calendar ? format_times(*data.calendar, t.times)
                                                           : std::vector<std::string>{};
    for (int i = 0; i < t.rows(); ++i) {
      text += id;
      if (dates.empty())
        append_number(text, t.times[static_cast<std::size_t>(i)]);
      else
        text += csv_cell(dates[static_cast<std::size_t>(i)]);
      for (const Matrix* part : {&t.states, &t.inputs})
        for (Eigen::Index j = 0; j < part->cols(); ++j) {
          text += ',';
          append_number(text, (*part)(i, j));
        }
      text += '\n';
    }
  }
  return text;
}

const Format kCsv = {.name = "csv",
                     .extension = ".csv",
                     .matches = [](std::string_view) { return true; },  // what is nothing else
                     .stream =
                         [](const ByteSource& from, const std::string& name,
                            const ReadOptions& options, const RowVisitor& visit) {
                           return from.file ? stream_csv(*from.file, name, options, visit)
                                            : stream_csv(from.memory, name, options, visit);
                         },
                     .write = format_csv};

}  // namespace odecast
