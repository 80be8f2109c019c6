#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace odecast {

/// Bytes of a file in order; "-" is standard input. Throws Error (file).
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  /// At most `size` bytes; 0 at the end.
  std::size_t read(char* to, std::size_t size);

 private:
  [[noreturn]] void fail() const;
  std::filesystem::path path_;
  int descriptor_;
};

/// The whole file; "-" is standard input. Throws Error (file).
std::string read_file(const std::filesystem::path& path);

/// Throws Error (file) unless a file can be created in the directory of `path`. Called before long
/// work, so that an unwritable place is found before it.
void check_writable(const std::filesystem::path& path);

/// True when both name the same existing file.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// A file that appears whole or not at all: written to a temporary beside the target, flushed to
/// the disk, then renamed over it. Without commit() (an exception, an interruption) the temporary
/// is removed and the old file stays. Links are followed; pipes and devices are written to directly.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;
  void flush();

  std::filesystem::path path_, temporary_;
  std::string buffer_;
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace odecast
