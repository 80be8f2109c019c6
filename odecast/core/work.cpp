#include "odecast/core/work.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/parallel.hpp"

namespace odecast {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kProcess = "process ";  // begins the text of a lock

std::string named(const fs::path& folder) { return "folder '" + folder.string() + "'"; }

[[noreturn]] void not_ours(const fs::path& folder, const std::string& found) {
  throw_usage({named(folder), found, "a new or empty folder, or one that this command has begun",
               "Choose another with -o; nothing in this one was touched."});
}

/// The process of a temporary of one of our own files (core/files.hpp), by its name:
/// .NAME.PID-N.tmp.
std::optional<pid_t> process_of_temporary(const std::string& name) {
  constexpr std::string_view end = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(end)) return std::nullopt;
  const std::string_view middle(name.data() + 1, name.size() - 1 - end.size());
  const auto dot = middle.rfind('.');
  if (dot == middle.npos) return std::nullopt;
  const std::string_view of = middle.substr(0, dot), by = middle.substr(dot + 1);
  if (of != "settings" && !of.ends_with(".json")) return std::nullopt;
  pid_t process = 0;
  int number = 0;
  const auto first = std::from_chars(by.data(), by.data() + by.size(), process);
  if (first.ec != std::errc{} || first.ptr == by.data() + by.size() || *first.ptr != '-')
    return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, by.data() + by.size(), number);
  if (second.ec != std::errc{} || second.ptr != by.data() + by.size() || process <= 0)
    return std::nullopt;
  return process;
}

/// A regular file itself, not through a link.
bool is_plain_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(fs::symlink_status(path, error));
}

std::vector<fs::path> entries(const fs::path& folder) {
  for (;;) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      found.push_back(at->path());
    if (!error) return found;
    if (error != std::errc::interrupted)
      throw_file({named(folder), error.message(), "a folder that can be listed",
                  "Check its permissions, or choose another with -o."});
  }
}

/// Empty, or with the name of a process.
bool is_our_lock(const fs::path& path) {
  if (!is_plain_file(path)) return false;
  const std::string text = read_file(path);
  return text.empty() || text.starts_with(kProcess);
}

/// Whether there is work in the folder. Throws for a folder that is not ours; looks only.
bool has_begun(const fs::path& folder) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (!fs::exists(status)) return false;
  if (!fs::is_directory(status)) not_ours(folder, "a file of that name");
  const fs::path units = folder / "units";
  const auto of_units = fs::symlink_status(units, error);
  if (fs::is_symlink(of_units)) not_ours(folder, "a link 'units'");
  if (is_plain_file(units / "settings")) {
    if (!read_file(units / "settings").starts_with("odecast "))
      not_ours(folder, "a file 'units/settings' of something else");
    return true;
  }
  // A run that was killed in its first moments leaves its name in the lock, or an empty one and
  // hardly more.
  if (is_plain_file(units / "lock") && read_file(units / "lock").starts_with(kProcess))
    return false;
  for (const fs::path& entry : entries(folder))
    if (entry != units)
      not_ours(folder, "'" + entry.filename().string() + "', which is not of this work");
  if (!fs::exists(of_units)) return false;
  if (!fs::is_directory(of_units)) not_ours(folder, "a file 'units'");
  for (const fs::path& entry : entries(units)) {
    const std::string name = entry.filename().string();
    if (!(name == "lock" ? is_our_lock(entry) : process_of_temporary(name).has_value()))
      not_ours(folder, "'units/" + name + "', which is not of this work");
  }
  return false;
}

void check_settings(const fs::path& folder, const std::string& settings) {
  if (has_begun(folder) && read_file(folder / "units" / "settings") != settings)
    throw_usage({named(folder), "work with other settings or data",
                 "a new folder, or the same settings and data",
                 "Choose another folder with -o, or delete this one."});
}

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string(kProcess) + std::to_string(::getpid()) + " on " + host.data();
}

/// The lock, and in it who has it.
int lock(const fs::path& folder) {
  const fs::path path = folder / "units" / "lock";
  const auto fail = [&](int error) {
    throw_file({"'" + path.string() + "'", std::strerror(error), "a file that can be locked",
                "Choose a folder on another file system with -o."});
  };
  // None of these waits; EINTR is the system's mood.
  const auto again = [](const auto& call) {
    for (;;)
      if (const auto result = call(); result >= 0 || errno != EINTR) return result;
  };
  const int file =
      again([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666); });
  if (file < 0) fail(errno);
  for (int tries = 0; again([&] { return ::flock(file, LOCK_EX | LOCK_NB); }) != 0; ++tries) {
    const int error = errno;
    std::array<char, 512> text{};
    const ssize_t got = error == EWOULDBLOCK ? ::pread(file, text.data(), text.size() - 1, 0) : 0;
    if (error == EWOULDBLOCK && got <= 0 &&
        tries < 20) {  // it is about to write its name, or to leave
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    ::close(file);
    if (error != EWOULDBLOCK) fail(error);
    throw_file(
        {named(folder),
         (got > 0 ? std::string(text.data(), static_cast<std::size_t>(got)) : "another process") +
             " at work in it",
         "it to be free",
         "Wait for it to end, or choose another folder with -o; nothing was touched."});
  }
  const std::string text = this_process();
  if (again([&] { return ::ftruncate(file, 0); }) != 0 ||
      again([&] { return ::pwrite(file, text.data(), text.size(), 0); }) < 0) {
    const int error = errno;
    ::close(file);
    fail(error);
  }
  return file;
}

/// Temporaries of processes that are dead, of our own names, never through a link.
void remove_leftovers(const fs::path& units) {
  for (const fs::path& entry : entries(units)) {
    const auto process = process_of_temporary(entry.filename().string());
    if (process && is_plain_file(entry) && ::kill(*process, 0) != 0 && errno == ESRCH)
      ::unlink(entry.c_str());
  }
}

std::string settings_hash(const std::string& settings) { return hexadecimal(fnv1a(settings)); }

}  // namespace

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw_file({named(folder), error ? error.message() : "a file of that name",
                "a folder that can be made", "Choose another with -o."});
}

FolderClaim::FolderClaim(const fs::path& folder, const std::string& settings) {
  check_settings(folder, settings);
  make_folder(folder / "units");
  lock_ = lock(folder);
  try {
    check_settings(folder, settings);  // by now another may have begun, and ended
    remove_leftovers(folder / "units");
    if (!fs::exists(folder / "units" / "settings"))
      write_file(folder / "units" / "settings", settings);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

FolderClaim::~FolderClaim() {
  if (lock_ < 0) return;
  [[maybe_unused]] const int ignored = ::ftruncate(lock_, 0);
  ::close(lock_);
}

Work run_units(std::vector<Unit> units, const WorkOptions& options, const Observer& observer) {
  Work work;
  work.claim = FolderClaim(options.folder, options.settings);
  const fs::path folder = options.folder / "units";
  // The longest first, so that no thread is left alone with one at the end.
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit& a, const Unit& b) { return a.cost > b.cost; });

  std::vector<const Unit*> open;
  for (const Unit& unit : units) {
    const fs::path file = folder / (unit.key + ".json");
    if (fs::exists(file)) {
      work.results[unit.key] = parse_values(read_file(file), options.settings, file.string());
      ++work.found;
    } else {
      open.push_back(&unit);
    }
  }

  double total = 0;
  for (const Unit* unit : open) total += unit->cost;
  std::atomic<double> done{0};
  std::mutex mutex;
  std::atomic<bool> stop{false};
  std::exception_ptr cause;  // of a stop: the observer's
  const auto caller = std::this_thread::get_id();
  const auto report = [&](double more) {
    try {
      observer(options.activity, std::min(1.0, (done + more) / total));
    } catch (...) {
      if (!cause) cause = std::current_exception();
      stop = true;
      throw;
    }
  };
  try {
    parallel_for(
        options.threads, open.size(),
        [&](std::size_t i) {
          const Unit& unit = *open[i];
          // The observer belongs to the calling thread; the others stop when it has thrown. A unit
          // in several parts reports from 0 to 1 more than once; the bar never goes back.
          double furthest = 0;
          const Observer watch = [&](std::string_view, double fraction) {
            furthest = std::max(furthest, fraction);
            if (std::this_thread::get_id() == caller) report(furthest * unit.cost);
            if (stop) throw Interrupted(0);  // the observer's exception takes its place
          };
          Values values = unit.run(watch);
          write_file(folder / (unit.key + ".json"), format_values(values, options.settings));
          const std::lock_guard lock(mutex);
          done = done + unit.cost;
          work.results[unit.key] = std::move(values);
        },
        [&](std::size_t) { report(0); });
  } catch (...) {
    if (cause) std::rethrow_exception(cause);
    throw;
  }
  return work;
}

std::string format_values(const Values& values, const std::string& settings) {
  nlohmann::ordered_json json{{"odecast_unit", 1},
                              {"settings", settings_hash(settings)},
                              {"numbers", nlohmann::ordered_json::object()},
                              {"curves", nlohmann::ordered_json::object()}};
  for (const auto& [name, value] : values.numbers) json["numbers"][name] = value;  // NaN is null
  for (const auto& [name, curve] : values.curves) json["curves"][name] = curve;
  return sealed(json.dump(1));
}

Values parse_values(const std::string& text, const std::string& settings,
                    const std::string& source) {
  const auto refuse = [&](const char* found) {
    throw_data({source, found, "a result of this work as odecast wrote it",
                "Delete it; it is computed again."});
  };
  if (!has_seal(text)) refuse("a file that was changed, or is none of this work");
  Values values;
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("settings") != settings_hash(settings)) refuse("a result with other settings");
    const auto number = [](const nlohmann::json& j) {
      return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
    };
    for (const auto& [name, value] : json.at("numbers").items())
      values.numbers[name] = number(value);
    for (const auto& [name, curve] : json.at("curves").items())
      for (const auto& value : curve) values.curves[name].push_back(number(value));
  } catch (const nlohmann::json::exception&) {
    refuse("no result of this work");
  }
  return values;
}

}  // namespace odecast
