#include "odecast/core/files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <list>
#include <system_error>

#include "odecast/core/error.hpp"
#include "odecast/core/stop.hpp"

namespace odecast {
namespace {

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// A pipe, a terminal, /dev/null: written to as it is, never replaced by a file.
bool is_special(const std::filesystem::path& path) {
  if (is_standard_stream(path)) return true;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

std::string temporary_name(const std::string& name, int i) {
  return "." + name + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp";
}

/// open() as often as it takes: it may wait, for the other end of a pipe.
int open_patiently(const std::filesystem::path& path, int flags) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
    throw_if_stopped();
  }
}

/// Whether all is on the disk.
bool synced(int descriptor) {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) return false;
  return true;
}

/// The file at the end of a chain of links, there or not, so that writing keeps the links.
std::filesystem::path target_of(std::filesystem::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(path, error); ++links) {
    const auto next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = next.is_absolute() ? next : directory_of(path) / next;
  }
  return path;
}

/// Temporaries that exist, for remove_temporaries(), which may not touch memory that anybody
/// allocates.
class Registry {
 public:
  struct Place {
    std::atomic<bool> taken{false}, there{false};
    std::array<char, 4096> path = {};
  };

  /// Around making a temporary and add(): none appears once unlink_all() has begun, and no signal
  /// comes between.
  class Making {
   public:
    explicit Making(Registry& registry) : registry_(registry) {
      sigset_t ending;
      ::sigemptyset(&ending);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) ::sigaddset(&ending, signal);
      ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
      ++registry_.making_;
      if (!registry_.closed_) return;
      --registry_.making_;
      for (;;) ::pause();  // the program is about to end
    }
    ~Making() {
      --registry_.making_;
      ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    Registry& registry_;
    sigset_t before_;
  };

  /// Where it is kept; null where it is too long a path.
  Place* add(std::string_view path) {
    for (std::size_t i = 0;;
         i = (i + 1) % places_.size()) {  // others give theirs back: they write a file
      Place& place = places_[i];
      if (path.size() >= place.path.size()) return nullptr;
      bool free = false;
      if (!place.taken.compare_exchange_strong(free, true)) continue;
      path.copy(place.path.data(), path.size());
      place.path[path.size()] = '\0';
      place.there = true;
      return &place;
    }
  }
  static void remove(Place* place) {
    if (!place) return;
    place->there = false;
    place->taken = false;
  }
  void unlink_all() noexcept {
    closed_ = true;
    for (int i = 0; i < 50 && making_ > 0; ++i) {
      const timespec short_while{0, 1'000'000};
      ::nanosleep(&short_while, nullptr);
    }
    for (Place& place : places_)
      if (place.there) ::unlink(place.path.data());
  }

 private:
  std::array<Place, 1024> places_;  // as many as threads (--threads), each with a file
  std::atomic<int> making_{0};
  std::atomic<bool> closed_{false};
};

constinit Registry temporaries;  // zeros, so that no page of it is touched before it is needed
std::atomic<int> committed{0};

}  // namespace

FileReader::FileReader(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(is_standard_stream(path_) ? STDIN_FILENO : open_patiently(path_, O_RDONLY)) {
  if (descriptor_ < 0) fail();
}

FileReader::~FileReader() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

std::size_t FileReader::read(char* to, std::size_t size) {
  for (;;) {
    throw_if_stopped();
    const ssize_t got = ::read(descriptor_, to, size);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail();
  }
}

void FileReader::fail() const {
  throw_file({quoted(path_), std::strerror(errno), "a readable file",
              "Check the path and its permissions."});
}

std::string read_file(const std::filesystem::path& path, std::size_t most) {
  FileReader file(path);
  std::string bytes;
  const auto refuse = [&] {
    throw_data({quoted(path), "more than " + std::to_string(most >> 20) + " MiB",
                "a model or a record, which is shorter", "Check that this is the file you mean."});
  };
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > most) refuse();
  constexpr std::size_t chunk = 1 << 20;
  if (!error) bytes.reserve(size + chunk);
  for (;;) {
    const std::size_t used = bytes.size();
    bytes.resize(used + chunk);
    const std::size_t got = file.read(bytes.data() + used, chunk);
    bytes.resize(used + got);
    if (got == 0 || std::memchr(bytes.data() + used, 0, got) != nullptr) return bytes;
    if (bytes.size() > most) refuse();
  }
}

void check_writable(const std::filesystem::path& path) {
  const auto complain = [&](const std::string& found, const std::string& expected) {
    throw_file({"output " + quoted(path), found, expected,
                "Create the directory or choose another place with -o."});
  };
  std::error_code error;
  if (is_special(path)) return;
  if (!path.has_filename()) complain(path.empty() ? "no name" : "a directory", "a file name");
  if (std::filesystem::is_directory(path, error)) complain("a directory", "a file name");
  const auto directory = directory_of(target_of(path));
  if (!std::filesystem::is_directory(directory, error))
    complain("no directory " + quoted(directory), "an existing directory");
  // Asking by doing: permission bits do not tell of read-only or full file systems. Without a name
  // where that is possible, so that nothing is left behind whatever happens.
  int probe = -1;
  do {
    throw_if_stopped();
    probe = ::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  } while (probe < 0 && errno == EINTR);
  if (probe < 0) {
    std::string name = (directory / ".odecast-probe-XXXXXX").string();
    probe = ::mkostemp(name.data(), O_CLOEXEC);
    if (probe >= 0) ::unlink(name.c_str());
  }
  if (probe < 0) complain(std::strerror(errno), "a directory that can be written to");
  ::close(probe);
}

bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return !is_standard_stream(a) && !is_standard_stream(b) &&
         std::filesystem::equivalent(a, b, error) && !error;
}

bool can_be_read_again(const std::filesystem::path& path) {
  std::error_code error;
  return !is_standard_stream(path) && std::filesystem::is_regular_file(path, error);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  if (is_special(path_)) {
    descriptor_ = is_standard_stream(path_) ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                            : open_patiently(path_, O_WRONLY);
    if (descriptor_ < 0) fail("open");
    return;
  }
  path_ = target_of(path_);
  const Registry::Making making(temporaries);
  // A name nobody has; open() instead of mkstemp() so that the file gets ordinary permissions.
  for (int i = 0; i < 1000; ++i) {
    temporary_ = directory_of(path_) / temporary_name(path_.filename().string(), i);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0 || (errno != EEXIST && errno != EINTR)) break;
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    fail("create");
  }
  place_ = temporaries.add(temporary_.native());
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  Registry::remove(static_cast<Registry::Place*>(place_));
}

void AtomicFile::write(std::string_view bytes) {
  for (const char* next = bytes.data(); !bytes.empty(); next = bytes.data()) {
    throw_if_stopped();
    const ssize_t put = ::write(descriptor_, next, bytes.size());
    if (put >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(put));
    else if (errno != EINTR)
      fail("write");
  }
}

void AtomicFile::finish() {
  if (descriptor_ < 0) return;
  if (!temporary_.empty() && !synced(descriptor_)) fail("flush");
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 && errno != EINTR) fail("close");
}

void AtomicFile::replace() {
  finish();
  if (temporary_.empty()) return;  // a special file
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  Registry::remove(static_cast<Registry::Place*>(place_));
  temporary_.clear();
  replaced_ = true;
  ++committed;
}

void AtomicFile::settle() {
  if (!replaced_) return;
  int directory = -1;
  do directory = ::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (directory < 0 && errno == EINTR);
  // Some file systems have no such thing as flushing a directory.
  const bool good = directory < 0 || synced(directory) || errno == EINVAL || errno == ENOTSUP;
  const int error = errno;
  if (directory >= 0) ::close(directory);
  if (!good)
    throw_file(
        {"output " + quoted(path_),
         std::string(std::strerror(error)) + " on flushing its directory",
         "a disk that keeps what it is given",
         "The file is there and whole, but may not outlive a power failure: check the disk."});
}

void AtomicFile::fail(const char* action) const {
  if (is_standard_stream(path_) && errno == EPIPE) throw PipeClosed();
  throw_file({"output " + quoted(path_), std::string(std::strerror(errno)) + " on " + action,
              "a place with room that can be written to",
              "Free space or choose another place with -o; an older file there is untouched."});
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  write_files({{path, bytes}});
}

void write_files(const std::vector<FileText>& files) {
  std::list<AtomicFile> open;
  for (const FileText& file : files) {
    open.emplace_back(file.path).write(file.bytes);
    open.back().finish();
  }
  for (AtomicFile& file : open) file.replace();
  for (AtomicFile& file : open) file.settle();
}

int files_written() noexcept { return committed; }

void remove_temporaries() noexcept { temporaries.unlink_all(); }

}  // namespace odecast
