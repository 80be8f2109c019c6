#include "odecast/observations/rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"

namespace odecast {

std::string lower_case(std::string_view s) {
  std::string result(s);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_missing(std::string_view cell) {
  static constexpr std::array<std::string_view, 19> spellings = {
      "",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
      "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
      "NaN",  "None",   "n/a",      "nan",  "null"};
  return std::find(spellings.begin(), spellings.end(), cell) != spellings.end();
}

bool is_time_name(std::string_view name) {
  static constexpr std::string_view kWords[] = {
      "time", "timestamp", "datetime", "date",  "epoch",  "year",  "years",  "month",   "months",
      "week", "weeks",     "day",      "days",  "hour",   "hours", "minute", "minutes", "seconds",
      "zeit", "jahr",      "tag",      "datum", "stunde", "temps", "tiempo", "tempo",   "excel"};
  const std::string lower = lower_case(name);
  const auto end =
      std::find_if(lower.begin(), lower.end(), [](char c) { return !(c >= 'a' && c <= 'z'); });
  const std::string_view word(lower.data(), static_cast<std::size_t>(end - lower.begin()));
  if (word == "t") return end != lower.end() && (*end == ' ' || *end == '(' || *end == '[');
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string in_words(const Dialect& d) {
  return fmt::format("columns separated by {}, decimal {}, {}",
                     d.separator == '\t' ? "tabs" : fmt::format("'{}'", d.separator),
                     d.decimal == ',' ? "comma" : "point", d.header ? "with header" : "no header");
}

std::string shown_time(const TableInfo& table, double time) {
  return table.calendar ? time_text(*table.calendar, time) : fmt::format("{}", time);
}

Rows::Rows(TableInfo& table, const ReadOptions& options, const RowVisitor& visit, const char* unit)
    : table_(table),
      options_(options),
      visit_(visit),
      unit_(unit),
      in_order_(!options.sort && options.duplicates == DuplicateRule::error) {}

void Rows::name_columns(std::vector<std::string> names, const Place& place,
                        const std::vector<ColumnLook>& looks) {
  names_ = std::move(names);
  const auto look = [&](std::size_t c) {
    return c < looks.size() ? looks[c] : ColumnLook::numbers;
  };
  const std::string at = where(place);
  const std::string have =
      fmt::format("columns {}", fmt::join(names_, ", "));  // a message shows its beginning
  std::set<std::string_view> seen;  // a line of 1 MiB has room for half a million names
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!is_utf8(names_[i]))
      throw_data({at, "bytes that are not UTF-8", "column names in UTF-8 or ASCII",
                  "Save the file as CSV UTF-8."});
    // A column without a name is usually an index that pandas wrote, or what a separator at the end
    // of every line makes. Another may stay when not asked for.
    const bool index = i == 0 && look(i) == ColumnLook::index,
               empty = i + 1 == names_.size() && look(i) == ColumnLook::nothing;
    if (names_[i].empty() && i == 0 && look(i) == ColumnLook::dates && options_.time.empty() &&
        std::count(names_.begin(), names_.end(), "time") == 0)
      names_[i] = "time";
    else if (names_[i].empty() && (index || empty))
      table_.notes.push_back(index
                                 ? "The first column, which has no name, counts the rows: left out"
                                 : "The last column has neither name nor values: left out");
    else if (names_[i].empty() && options_.variables.empty())
      throw_data({at,
                  fmt::format("no name for column {}", i + 1),
                  "a name for every column",
                  "Name the column in the first line, e.g. t,x,y,z.",
                  text_of(place),
                  {"Choose the columns to read: `variables` x,y,z.",
                   "From pandas, write the file with to_csv(…, index=False)."}});
    if (!names_[i].empty() && !seen.insert(names_[i]).second)
      throw_data({at, "the column " + shown(names_[i]) + " twice", "different names",
                  "Rename one of them.", text_of(place)});
  }
  const auto named = [&](const std::string& wanted, const char* option) {
    const auto found = std::find(names_.begin(), names_.end(), wanted);
    if (found == names_.end() || wanted.empty())
      throw_usage(
          {option, "no column " + shown(wanted) + " in " + at, have, "Use one of these names."});
    return static_cast<std::size_t>(found - names_.begin());
  };
  // A column asked for by name is what was asked for.
  const auto asked = [&](const std::string& name) {
    return std::count(options_.variables.begin(), options_.variables.end(), name) +
               std::count(options_.inputs.begin(), options_.inputs.end(), name) >
           0;
  };
  const auto by_default = [&](std::initializer_list<std::string_view> wanted, bool unless_asked) {
    for (const auto name : wanted)
      for (std::size_t i = 0; i < names_.size(); ++i)
        if (lower_case(names_[i]) == name && !(unless_asked && asked(names_[i]))) return i;
    return names_.size();
  };
  const std::size_t none = names_.size();
  std::vector<const char*> taken(names_.size(), nullptr);
  const auto take = [&](std::size_t c, const char* option) {
    if (taken[c])
      throw_usage({option, "the column " + shown(names_[c]) + " twice",
                   "each column for one purpose", "Name other columns."});
    taken[c] = option;
  };
  // The only column that is so, none where there are two: which?
  const auto only = [&](const auto& is_so) {
    std::size_t found = none;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (asked(names_[i]) || !is_so(i)) continue;
      if (found != none) return none;
      found = i;
    }
    return found;
  };
  const std::size_t likely =
      options_.likely_time.empty()
          ? none
          : static_cast<std::size_t>(std::find(names_.begin(), names_.end(), options_.likely_time) -
                                     names_.begin());
  time_column_ = options_.time_is_first   ? 0
                 : !options_.time.empty() ? named(options_.time, "`time`")
                 : likely != none         ? likely
                                          : by_default({"t", "time"}, false);
  // T is often a temperature: where another column is the time, that is it.
  const std::size_t letter =
      time_column_ != none && names_[time_column_] == "T" && options_.time.empty() && likely == none
          ? std::exchange(time_column_, none)
          : none;
  if (time_column_ == none) {
    time_column_ = only([&](std::size_t i) { return is_time_name(names_[i]); });
    if (time_column_ == none)
      time_column_ = only([&](std::size_t i) { return look(i) == ColumnLook::dates; });
    if (time_column_ == none)
      time_column_ = letter;
    else
      table_.notes.push_back("The time is the column " + shown(names_[time_column_]));
  }
  if (time_column_ == none)
    throw_data({at,
                have,
                "a header with a time column named t or time",
                "Name it: `time` NAME.",
                text_of(place),
                {"Add the header line, e.g. t,x,y,z.", "Say that there is none: `header=no`."}});
  take(time_column_, "`time`");
  table_.time_name = names_[time_column_];
  id_ = options_.id.empty() ? by_default({"trajectory", "series", "id"}, true)
                            : named(options_.id, "`id`");
  if (id_ != none) take(id_, "`id`");
  std::vector<std::size_t> used, text;
  for (const auto& name : options_.inputs) take(named(name, "`inputs`"), "`inputs`");
  if (options_.variables.empty()) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!taken[i] && !names_[i].empty())
        (look(i) == ColumnLook::words || look(i) == ColumnLook::dates ? text : used).push_back(i);
    for (const std::size_t c : text) words_.push_back(names_[c]);
    if (!words_.empty())
      table_.notes.push_back(fmt::format("Left out, being text: {} {}",
                                         words_.size() == 1 ? "column" : "columns",
                                         fmt::join(words_, ", ")));
  } else {
    for (const auto& name : options_.variables) {
      used.push_back(named(name, "`variables`"));
      take(used.back(), "`variables`");
    }
  }
  if (used.empty())
    throw_data(
        {at, have, "at least one variable beside the time", "Add its column.", text_of(place)});
  for (const std::size_t c : used) table_.variables.push_back(names_[c]);
  for (const auto& name : options_.inputs) {
    used.push_back(named(name, "`inputs`"));
    table_.inputs.push_back(name);
  }
  used.push_back(time_column_);
  for (const std::size_t c : used)
    if (const char* fault = name_fault(names_[c]))
      throw_data({at, fmt::format("{}, {}", fault, shown(names_[c])),
                  "names of one line without blanks at their ends", "Rename the column.",
                  text_of(place)});
  used.pop_back();
  // Where a variable's name speaks of time, too, the time is written as `t`, to be told apart.
  for (const auto* list : {&table_.variables, &table_.inputs})
    for (const auto& v : *list)
      if (options_.time.empty() && is_time_name(v) && is_time_name(table_.time_name) &&
          lower_case(table_.time_name) != "time" && lower_case(v) != "t")
        table_.time_name = "t";
  values_.resize(used.size());
  places_.assign(names_.size(), nullptr);
  places_[time_column_] = &time_;
  for (std::size_t i = 0; i < used.size(); ++i) places_[used[i]] = &values_[i];
}

std::string Rows::where(const Place& place) const {
  return place.number > 0 ? fmt::format("{}, {} {}", table_.source, unit_, place.number)
                          : table_.source;
}

std::string Rows::where(const Place& place, std::size_t column) const {
  return fmt::format("{}, column {}", where(place), printable(names_[column], 80));
}

std::string Rows::text_of(const Place& place) const {
  return place.text.empty() ? "" : fmt::format("{} | {}", place.number, printable(place.text, 100));
}

std::size_t Rows::add_piece(std::string_view id) {
  pieces_.push_back({std::string(id)});
  table_.ids.emplace_back(id);
  return pieces_.size() - 1;
}

std::size_t Rows::trajectory(std::string_view id, const Place& place) {
  if (id_ == names_.size()) {
    if (pieces_.empty() || block_pending_ || pieces_[current_].gap) current_ = add_piece("");
    block_pending_ = false;
    return current_;
  }
  if (current_ < pieces_.size() && pieces_[current_].id == id && !pieces_[current_].gap)
    return current_;
  if (id.empty() || !is_utf8(id))
    throw_data({where(place, id_), id.empty() ? "nothing" : "bytes that are not UTF-8",
                "the id of a trajectory", "Complete or remove the line.", text_of(place)});
  auto found = current_of_.find(id);
  if (found == current_of_.end())
    found = current_of_.emplace(std::string(id), add_piece(id)).first;
  else if (pieces_[found->second].gap)
    found->second = add_piece(id);
  return current_ = found->second;
}

void Rows::missing(std::size_t column, std::string_view cell, std::string_view id,
                   const Place& place) {
  const auto found = cell.empty() ? std::string("nothing") : shown(cell) + ", a missing value";
  const bool timeless = column == time_column_;
  if (options_.missing == MissingRule::error) {
    std::vector<std::string> others = {
        "Leave such rows out and split the trajectory there: `missing=drop`."};
    if (options_.may_keep && !timeless)
      others.insert(others.begin(), "Use what else was observed in such rows: `missing=keep`.");
    throw_data({where(place, column), found, "a finite number", "Correct the value.",
                text_of(place), others});
  }
  if (options_.missing == MissingRule::keep) {
    if (timeless)
      throw_data({where(place, column),
                  found,
                  "a time",
                  "Correct the value.",
                  text_of(place),
                  {"Remove the line."}});
    return row(id, place);
  }
  if (options_.sort && timeless)
    throw_data({where(place, column),
                found,
                "a time, to sort by",
                "Correct the value.",
                text_of(place),
                {"Remove the line."}});
  ++table_.dropped;
  if (options_.sort) {  // where the gap is shows when the rows are in order
    give({trajectory(id, place), time_, values_.data(), place.number, true, time_text_});
  } else if (id_ == names_.size()) {
    if (!pieces_.empty()) pieces_[current_].gap = true;
  } else if (const auto known = current_of_.find(id); known != current_of_.end()) {
    pieces_[known->second].gap = true;
  }
}

void Rows::new_block() {
  if (rows_ > 0 && id_ == names_.size()) block_pending_ = true;
}

void Rows::finish() {
  // Pieces of one trajectory are numbered: a.1, a.2; without an id 1, 2.
  std::map<std::string_view, int> pieces, seen;
  std::set<std::string> names;
  for (const Piece& p : pieces_)
    if (++pieces[p.id] == 1) names.insert(p.id);
  for (std::size_t k = 0; k < pieces_.size(); ++k) {
    const std::string& id = pieces_[k].id;
    if (pieces[id] == 1) continue;
    std::string name = fmt::format("{}{}{}", id, id.empty() ? "" : ".", ++seen[id]);
    while (!names.insert(name).second) name += "'";
    table_.ids[k] = name;
  }
}

void Rows::not_increasing(const Piece& piece, const Place& place) const {
  throw_data({where(place, time_column_),
              fmt::format("time {} after {} in {} {}", shown_time(table_, time_),
                          shown_time(table_, piece.time), unit_, piece.number),
              "times that increase along a trajectory",
              time_ == piece.time
                  ? "Keep one row of each time: `duplicates=first` or `duplicates=mean`."
                  : "Sort the rows by time: `sort`.",
              text_of(place),
              {words_.empty()
                   ? "Tell several trajectories apart: a column named trajectory (or `id` NAME), a "
                     "blank line between them, or a file for each."
                   : fmt::format("If the column {} tells trajectories apart: `id` {}.", words_[0],
                                 shown(words_[0]))}});
}

}  // namespace odecast
