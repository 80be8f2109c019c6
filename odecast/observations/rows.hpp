#pragma once

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "odecast/observations/table.hpp"

namespace odecast {

std::string lower_case(std::string_view text);
/// The spellings of "no value here" that pandas reads as such, and the empty cell.
bool is_missing(std::string_view cell);

/// Whether a column of this name is the time, where none is called t or time: year, day, date, …
/// alone or before a unit, as in "Time (s)" and "year_AD".
bool is_time_name(std::string_view name);

/// As a date where the table has dates.
std::string shown_time(const TableInfo& table, double time);

/// What the first cells of a column are.
enum class ColumnLook {
  numbers,
  words,    ///< none is a number or begins like one
  nothing,  ///< all are missing
  index,    ///< whole numbers, each by one more than the last
  dates,
};

/// A line or row for messages.
struct Place {
  long number = 0;
  std::string_view text = {};  ///< of the line; empty for arrays
};

/// Rows of a table to rows of trajectories, whatever file they come from: finds the columns by
/// their names, tells trajectories apart, checks that time runs forward, splits at gaps. Memory is
/// one row per trajectory.
class Rows {
 public:
  /// `unit` names what a Place counts: line, row.
  Rows(TableInfo& table, const ReadOptions& options, const RowVisitor& visit, const char* unit);

  /// Once, before the first row.
  void name_columns(std::vector<std::string> names, const Place& place,
                    const std::vector<ColumnLook>& looks = {});
  const std::vector<std::string>& names() const { return names_; }

  /// Where the number of each column goes; null for columns that are not read as numbers.
  const std::vector<double*>& places() const { return places_; }
  const double* time_place() const { return &time_; }
  std::size_t time_column() const { return time_column_; }
  /// How the time of the next row is written, where it is a date.
  void set_time_text(std::string_view text) { time_text_ = text; }
  std::size_t id_column() const { return id_; }  ///< names().size() for none

  /// After the numbers of a row are in their places; `id` is used where there is an id column.
  void row(std::string_view id, const Place& place) {
    const std::size_t which = trajectory(id, place);
    Piece& piece = pieces_[which];
    if (in_order_) {
      if (!(time_ > piece.time)) not_increasing(piece, place);
      piece.time = time_;
      piece.number = place.number;
    }
    ++rows_;
    give({which, time_, values_.data(), place.number, false, time_text_});
  }
  /// A row with a missing cell in this column, time read or not.
  void missing(std::size_t column, std::string_view cell, std::string_view id, const Place& place);
  /// Rows that follow belong to another trajectory, where no column says so.
  void new_block();
  /// Whether the visitor has seen enough: no row is to follow.
  bool stopped() const { return stopped_; }
  bool block_is_empty() const { return block_pending_ || rows_ == 0; }

  /// After the last row.
  void finish();
  long count() const { return rows_; }

  std::string where(const Place& place) const;
  std::string where(const Place& place, std::size_t column) const;
  std::string text_of(const Place& place) const;  ///< the line, for Complaint::line

 private:
  struct Piece {
    std::string id;
    double time = -std::numeric_limits<double>::infinity();
    long number = 0;
    bool gap = false;
  };

  void give(const TableRow& row) { stopped_ = !visit_(table_, row); }
  std::size_t trajectory(std::string_view id, const Place& place);
  std::size_t add_piece(std::string_view id);
  [[noreturn]] void not_increasing(const Piece& piece, const Place& place) const;

  TableInfo& table_;
  const ReadOptions& options_;
  const RowVisitor& visit_;
  const std::string unit_;
  const bool in_order_;
  std::vector<std::string> names_;
  std::vector<double*> places_;
  std::vector<double> values_;
  double time_ = 0;
  std::string_view time_text_;
  std::size_t time_column_ = 0, id_ = 0;
  std::vector<std::string> words_;  // names of the columns of words that are left out
  std::vector<Piece> pieces_;
  std::map<std::string, std::size_t, std::less<>> current_of_;  // the piece an id has reached
  std::size_t current_ = 0;
  bool block_pending_ = false, stopped_ = false;
  long rows_ = 0;
};

}  // namespace odecast
