#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "odecast/observations/dataset.hpp"

namespace odecast {

enum class HeaderRule { sniffed, yes, no };
/// A cell without a number: refused; its row left out and the trajectory split there; or kept as
/// NaN, for methods that know what was not observed.
enum class MissingRule { error, drop, keep };
/// Rows of one trajectory with the same time: refused, or made one row.
enum class DuplicateRule { error, first, mean };

/// How times are written, where looking at them does not tell: numbers as they stand, 3/4/2024 with
/// the day or the month first, Excel's days.
enum class TimeFormat { found, number, day_first, month_first, excel };
/// What calendar times are counted in: a unit that their spacing chooses, this unit, or as others
/// were, unit and origin.
struct UnitBySpacing {};
using TimeCount = std::variant<UnitBySpacing, TimeUnit, Calendar>;

/// What the columns of a table mean and how its text is read. Empty and 0: found by looking.
struct ReadOptions {
  /// Default: `t` or `time`, any case; else the one column whose name speaks of time
  /// (is_time_name).
  std::string time = {};
  std::string likely_time = {};  ///< the time where there is a column of that name
  bool time_is_first = false;    ///< the time is the first column, whatever its name
  TimeFormat time_format = TimeFormat::found;
  TimeCount time_count = UnitBySpacing{};
  bool keep_time_texts = false;  ///< of calendar times, beside their numbers
  std::string id = {};           ///< default: `trajectory`, `series` or `id`, where present
  std::vector<std::string> variables = {};  ///< default: every other column
  std::vector<std::string> inputs = {};     ///< measured inputs; default: none
  HeaderRule header = HeaderRule::sniffed;
  long skip = 0;       ///< lines before the table that are not looked at
  char separator = 0;  ///< one of , ; | and tab
  char decimal = 0;    ///< '.' or ','
  MissingRule missing = MissingRule::error;
  bool may_keep = false;  ///< whether the error about a missing cell offers to keep it
  bool sort = false;      ///< rows by time, within each trajectory
  DuplicateRule duplicates = DuplicateRule::error;
  double step = 0;  ///< spacing of the rows of an array without times
};

/// How a text table is written.
struct Dialect {
  char separator = ',';
  char decimal = '.';
  bool header = true;
  long first_line = 0;  ///< where the table begins after a preamble; 0: with the first
  long units_line = 0;  ///< of units, below the header; 0: none
};
/// "columns separated by ';', decimal comma, no header"
std::string in_words(const Dialect& dialect);

/// What is known of a table beside its rows.
struct TableInfo {
  std::vector<std::string> variables = {}, inputs = {};
  std::vector<std::string> ids = {};  ///< of the trajectories; complete after the last row
  std::optional<double> certified_until = {};
  std::string source = {};
  std::string time_name = "t";
  std::optional<Calendar> calendar = {};  ///< of the times; nothing: they are numbers
  std::string format = "csv";             ///< Format::name
  Dialect dialect = {};                   ///< of csv
  long dropped = 0;                       ///< rows left out for a missing cell
  /// What was understood beyond the plain table, and what was left out: sentences.
  std::vector<std::string> notes = {};
};

/// One row of a table.
struct TableRow {
  std::size_t trajectory;  ///< counted from 0 in the order of their first rows
  double time;
  const double* values;  ///< the variables, then the inputs
  long number;           ///< line of the file, or row of the array
  bool gap = false;      ///< left out for a missing cell; only reported where `sort` is asked for
  std::string_view time_text = {};  ///< of calendar times
};
/// Returns whether to go on; reading ends where it does not.
using RowVisitor = std::function<bool(const TableInfo& table, const TableRow& row)>;

}  // namespace odecast
