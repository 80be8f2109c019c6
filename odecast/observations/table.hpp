#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "odecast/observations/dataset.hpp"

namespace odecast {

enum class HeaderRule { sniffed, yes, no };
/// A cell without a number: refused; its row left out and the trajectory split there; or kept as
/// NaN, for methods that know what was not observed.
enum class MissingRule { error, drop, keep };
/// Rows of one trajectory with the same time: refused, or made one row.
enum class DuplicateRule { error, first, mean };

/// What the columns of a table mean and how its text is read. Empty and 0: found by looking.
struct ReadOptions {
  std::string time = {};  ///< default: `t` or `time`, any case
  std::string id = {};    ///< default: `trajectory`, `series` or `id`, where present
  std::vector<std::string> variables = {};  ///< default: every other column
  std::vector<std::string> inputs = {};     ///< measured inputs; default: none
  HeaderRule header = HeaderRule::sniffed;
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
  std::string format = "csv";  ///< csv, npy or npz
  Dialect dialect = {};        ///< of csv
  long dropped = 0;            ///< rows left out for a missing cell
};

/// One row of a table.
struct TableRow {
  std::size_t trajectory;  ///< counted from 0 in the order of their first rows
  double time;
  const double* values;  ///< the variables, then the inputs
  long number;           ///< line of the file, or row of the array
  bool gap = false;      ///< left out for a missing cell; only reported where `sort` is asked for
};
using RowVisitor = std::function<void(const TableInfo& table, const TableRow& row)>;

}  // namespace odecast
