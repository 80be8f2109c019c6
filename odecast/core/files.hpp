#pragma once

#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace odecast {

/// A name for standard input where a file is read, and for standard output where one is written,
/// whatever files there are.
inline bool is_standard_stream(const std::filesystem::path& path) { return path == "-"; }
/// Whether it can be read more than once: a regular file.
bool can_be_read_again(const std::filesystem::path& path);

/// Standard output, a pipe, whose reader has seen enough: nothing went wrong, and nothing is to be
/// said.
struct PipeClosed : std::exception {
  const char* what() const noexcept override { return "the reader of standard output is gone"; }
};

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

/// Texts are read whole: no model or record of ours is longer.
inline constexpr std::size_t kMostText = std::size_t{256} << 20;
/// The whole text of a file; "-" is standard input. Reading ends after the first MiB with a zero
/// byte, which is in no text: whoever parses it refuses it all the same, and a device or an empty
/// disk image does not fill the memory. Throws Error (file), and Error (data) for more bytes than
/// `most`.
std::string read_file(const std::filesystem::path& path, std::size_t most = kMostText);

/// Throws Error (file) unless a file can be created in the directory of `path`. Called before long
/// work, so that an unwritable place is found before it.
void check_writable(const std::filesystem::path& path);

/// True when both name the same existing file; standard streams are none.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// A file that appears whole or not at all: written to a temporary beside the target, flushed to
/// the disk, then renamed over it. Without commit() (an exception, an interruption) the temporary
/// is removed and the old file stays. Links are followed, also to what is not there yet; pipes,
/// devices and standard output ("-") are written to directly, which may throw PipeClosed.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  /// All is on the disk, and the old file still in its place.
  void finish();
  /// The new file takes its place …
  void replace();
  /// … and keeps it, whatever happens to the machine.
  void settle();
  void commit() {
    replace();
    settle();
  }

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  void* place_ = nullptr;  ///< in the table of remove_temporaries()
  bool replaced_ = false;
};

struct FileText {
  std::filesystem::path path;
  std::string_view bytes;
};
/// All of them: where one cannot be written, none is replaced. Only a rename that fails after
/// another leaves new and old side by side.
void write_files(const std::vector<FileText>& files);
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// By this process so far.
int files_written() noexcept;

/// For a program that ends at once, from a signal handler: the temporaries that exist now go.
/// Async-signal-safe.
void remove_temporaries() noexcept;

}  // namespace odecast
