#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "odecast/observations/bytes.hpp"
#include "odecast/observations/table.hpp"

namespace odecast {

/// What is read: a file in order, or bytes in memory.
struct ByteSource {
  ByteReader* file = nullptr;
  std::filesystem::path path = {};
  std::string_view memory = {};

  std::string_view head() const { return file ? file->head() : memory; }
};

/// How observations are written down. A further format is a source with its `stream` and `write`,
/// and a line here.
struct Format {
  const char* name;                        ///< TableInfo::format
  const char* extension;                   ///< of files that are written so
  bool (*matches)(std::string_view head);  ///< whether a file that begins so is one
  /// Rows until the visitor has seen enough. Throws Error (data).
  TableInfo (*stream)(const ByteSource& from, const std::string& name, const ReadOptions& options,
                      const RowVisitor& visit);
  std::string (*write)(const Dataset& data);
};

extern const Format kNpy, kNpz, kCsv;
/// Those tried first come first; the last takes what is left.
inline constexpr const Format* kFormats[] = {&kNpy, &kNpz, &kCsv};

}  // namespace odecast
