#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "odecast/observations/bytes.hpp"
#include "odecast/observations/table.hpp"

namespace odecast {

/// How the text is written, from its first lines: the separator under which they are rows of
/// equally many numbers, the decimal mark, whether the first line is a header (it has a word where
/// the lines below have numbers). Throws Error (data) with both readings where two are possible.
Dialect sniff(std::string_view lines, const std::string& name, const ReadOptions& options);

/// A text table, row by row in constant memory: lines that end in LF, CRLF or CR, cells between
/// separators, in double quotes or not; lines that start with '#' are passed over, blank lines
/// separate trajectories where no id column does. Throws Error (data) with line and column for
/// anything that is not a finite number in its place: nothing is guessed. Lines longer than 1 MiB
/// are refused.
TableInfo stream_csv(ByteReader& bytes, const std::string& name, const ReadOptions& options,
                     const RowVisitor& visit);
/// The same from memory.
TableInfo stream_csv(std::string_view text, const std::string& name, const ReadOptions& options,
                     const RowVisitor& visit);

/// A table that reads back bit for bit: `t`, the variables, the inputs, and `trajectory` first when
/// there are several.
std::string format_csv(const Dataset& data);

}  // namespace odecast
