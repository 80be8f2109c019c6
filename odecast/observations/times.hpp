#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "odecast/observations/table.hpp"

namespace odecast {

/// Whether a cell is a date, day or month first where it has two readings.
bool is_date(std::string_view cell);

/// A column of calendar times: how its cells are written, and what they are counted in.
struct TimeColumn {
  TimeForm form = TimeForm::text;
  Calendar calendar = {};
  bool zoned = false;  ///< its cells have a zone

  /// Of a cell; else nothing, and what is wrong in `fault`.
  std::optional<double> number(std::string_view cell, std::string* fault = nullptr) const;
};

struct TimeCell {
  long line;
  std::string_view text;
};

/// What a column of times is, by its first cells, those that are missing left out; nothing: numbers
/// as they stand. Epochs are numbers that all stand for days from 1990 to 2100, and some increase.
/// Throws Error (data) where 3/4/2024 has two readings and no row decides, and where times with a
/// zone are to be counted as others without.
std::optional<TimeColumn> time_column_of(const std::vector<TimeCell>& cells,
                                         const std::string& source, const std::string& column,
                                         const ReadOptions& options);

/// The same for moments that are known: `zoned`, as UTC.
TimeColumn time_column_of(const std::vector<Instant>& instants, bool zoned,
                          const std::string& source, const ReadOptions& options);

/// The data with times counted as another calendar does, none for numbers. Throws Error (data)
/// where one has dates and the other numbers, and where the data alone have a zone.
Dataset counted_as(Dataset data, const std::optional<Calendar>& calendar);

/// "Times are dates from 2024-03-01 00:00; the unit is hours: `time_unit` chooses another"
std::string in_words(const TimeColumn& times);

}  // namespace odecast
