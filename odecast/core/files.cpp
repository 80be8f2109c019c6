#include "odecast/core/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// A pipe, a terminal, /dev/null: written to as it is, never replaced by a file.
bool is_special(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

std::string temporary_name(const std::string& name, int i) {
  return "." + name + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
}

/// Closes on every way out of a scope.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value > STDIN_FILENO) ::close(value);
  }
};

}  // namespace

FileReader::FileReader(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(path_ == "-" ? STDIN_FILENO : ::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail();
}

FileReader::~FileReader() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

std::size_t FileReader::read(char* to, std::size_t size) {
  for (;;) {
    const ssize_t got = ::read(descriptor_, to, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail();
  }
}

void FileReader::fail() const {
  throw_file({quoted(path_), std::strerror(errno), "a readable file",
              "Check the path and its permissions."});
}

std::string read_file(const std::filesystem::path& path) {
  FileReader file(path);
  std::string bytes;
  constexpr std::size_t chunk = 1 << 20;
  for (;;) {
    const std::size_t used = bytes.size();
    bytes.resize(used + chunk);
    const std::size_t got = file.read(bytes.data() + used, chunk);
    bytes.resize(used + got);
    if (got == 0) return bytes;
  }
}

void check_writable(const std::filesystem::path& path) {
  const auto complain = [&](const std::string& found, const std::string& expected) {
    throw_file({"output " + quoted(path), found, expected,
                "Create the directory or choose another place with -o."});
  };
  std::error_code error;
  if (is_special(path)) return;
  if (std::filesystem::is_directory(path, error)) complain("a directory", "a file name");
  const auto directory = directory_of(path);
  if (!std::filesystem::is_directory(directory, error))
    complain("no directory " + quoted(directory), "an existing directory");
  // Asking by doing: permission bits do not tell of read-only or full file systems.
  std::string probe = (directory / ".odecast-probe-XXXXXX").string();
  const Descriptor file{::mkstemp(probe.data())};
  if (file.value < 0) complain(std::strerror(errno), "a directory that can be written to");
  ::unlink(probe.c_str());
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  if (is_special(path_)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("open");
    return;
  }
  // Through a link, so that the link stays and its target is replaced.
  std::error_code error;
  if (const auto target = std::filesystem::weakly_canonical(path_, error); !error) path_ = target;
  // A name nobody has; open() instead of mkstemp() so that the file gets ordinary permissions.
  for (int i = 0; i < 1000; ++i) {
    temporary_ = directory_of(path_) / temporary_name(path_.filename().string(), i);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0 || errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    fail("create");
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() > (1 << 20)) flush();
}

void AtomicFile::flush() {
  const char* next = buffer_.data();
  for (std::size_t left = buffer_.size(); left > 0;) {
    const ssize_t put = ::write(descriptor_, next, left);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write");
    next += put;
    left -= static_cast<std::size_t>(put);
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (temporary_.empty()) {  // a special file
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0) fail("close");
    return;
  }
  if (::fsync(descriptor_) != 0) fail("flush");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail("close");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  temporary_.clear();
  const Descriptor directory{
      ::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.value >= 0) ::fsync(directory.value);
}

void AtomicFile::fail(const char* action) const {
  throw_file({"output " + quoted(path_), std::string(std::strerror(errno)) + " on " + action,
              "a place with room that can be written to",
              "Free space or choose another place with -o; an older file there is untouched."});
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace odecast
