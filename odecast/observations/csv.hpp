#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "odecast/observations/dataset.hpp"

namespace odecast {

/// Which columns mean what. Empty means: found by name.
struct CsvOptions {
  std::string time = {};                    ///< default: `t` or `time`, any case
  std::string id = {};                      ///< default: `trajectory`, `series` or `id`, where present
  std::vector<std::string> variables = {};  ///< default: every other column
  /// A field that is empty, NA or NaN is a value that was not observed, and read as NaN. For methods that
  /// know what to do with it; otherwise it is refused.
  bool missing = false;
};

/// Trajectories from a text table: a header line, then numbers separated by commas; lines that are
/// empty or start with '#' are passed over. A byte order mark and CRLF are accepted. Rows with the
/// same id form one trajectory, whose times must increase. Throws Error (data) with the line and
/// column for anything that is not a finite number in its place: nothing is guessed or dropped.
Dataset read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

/// What is known of a table beside its rows.
struct CsvTable {
  std::vector<std::string> variables = {};
  std::vector<std::string> ids = {};  ///< of the trajectories seen so far
  std::optional<double> certified_until = {};
  std::string source = {};
  std::string time_name = "t";
};

/// Called for every row, in the order of the file; `trajectory` counts the ids.
using RowVisitor = std::function<void(const CsvTable& table, std::size_t trajectory, double time,
                                      const double* states)>;

/// The same as read_csv, row by row in constant memory. Lines longer than 1 MiB are refused.
CsvTable stream_csv(const std::filesystem::path& path, const CsvOptions& options,
                    const RowVisitor& visit);

/// The same from memory; `name` stands in messages.
Dataset parse_csv(std::string_view text, const std::string& name, const CsvOptions& options = {});

/// A table that read_csv reads back bit for bit: `t`, the variables, and `trajectory` first when
/// there are several.
std::string format_csv(const Dataset& data);

}  // namespace odecast
