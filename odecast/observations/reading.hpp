#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "odecast/observations/table.hpp"

namespace odecast {

/// Observations from files in any of kFormats, text tables (csv.hpp) or NumPy arrays (npy.hpp),
/// plain or gzipped, told apart by their first bytes; "-" is standard input. The trajectories of
/// several files are named after the files. `table` receives what was understood. Throws Error.
Dataset read_observations(const std::vector<std::filesystem::path>& paths,
                          const ReadOptions& options = {}, TableInfo* table = nullptr);
Dataset read_observations(const std::filesystem::path& path, const ReadOptions& options = {});
/// The same from memory; `name` stands in messages.
Dataset parse_observations(std::string_view bytes, const std::string& name,
                           const ReadOptions& options = {});

/// Row by row, in constant memory for text. Rows come in the order of the files: the options `sort`
/// and `duplicates` are for read_observations, which has all rows at hand. Ends where the visitor
/// does not go on; ids are then those met so far.
TableInfo stream_observations(const std::vector<std::filesystem::path>& paths,
                              const ReadOptions& options, const RowVisitor& visit);

/// In the format whose extension the name has, as CSV otherwise.
std::string format_observations(const std::filesystem::path& path, const Dataset& data);
void write_observations(const std::filesystem::path& path, const Dataset& data);

}  // namespace odecast
