#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "odecast/core/files.hpp"

namespace odecast {

/// Bytes that so many compressed ones may become in memory: measured numbers compress by a few
/// times, constants by a thousand.
constexpr std::uint64_t most_unpacked(std::uint64_t packed) {
  return std::max<std::uint64_t>(64 << 20, 100 * packed);
}

/// Bytes of a file in order, gzip undone where its first bytes say so; "-" is standard input.
/// Throws Error: file for the system's failures, data for broken compression.
class ByteReader {
 public:
  explicit ByteReader(const std::filesystem::path& path);
  ~ByteReader();
  /// Exactly `size` bytes, fewer at the end of the file only.
  std::size_t read(char* to, std::size_t size);
  /// The first bytes (up to 8), which stay to be read.
  std::string_view head() const { return head_; }
  bool inflates() const { return inflater_ != nullptr; }
  /// Compressed bytes taken from the file so far.
  std::uint64_t packed() const { return packed_; }

 private:
  struct Inflater;
  std::size_t read_raw(char* to, std::size_t size);
  std::size_t read_some(char* to, std::size_t size);
  std::filesystem::path path_;
  FileReader file_;
  std::string raw_;  // read from the file to look at, not used yet
  std::unique_ptr<Inflater> inflater_;
  std::string head_;
  std::size_t head_used_ = 0;
  std::uint64_t packed_ = 0;
};

/// All bytes of a file at once: a regular file is mapped, so that its pages need not stay in
/// memory; anything else is what `reader` still has to give, compressed data no more than
/// most_unpacked() of them.
class WholeFile {
 public:
  WholeFile(const std::filesystem::path& path, ByteReader& reader);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  std::string_view bytes() const { return bytes_; }

 private:
  std::string held_;
  void* mapped_ = nullptr;
  std::string_view bytes_;
};

}  // namespace odecast
