#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace odecast::cli_test {

extern const char* const kProgram;  ///< its path; CMake writes the source

/// How to run the program, where it differs from just running it.
struct How {
  std::string input = "";  ///< standard input
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string output_to = "";  ///< standard output goes to this path and is not captured
  std::string error_to = "";   ///< the same for standard error
  bool close_error = false;    ///< there is no standard error
  int signal = 0;              ///< sent `signal_after` seconds after the start
  double signal_after = 0;
  double limit = 60;  ///< seconds after which the program is killed and the test fails
};

struct Result {
  int code = -1;  ///< exit code; minus the signal that ended it
  std::string out, err;
  double seconds = 0;    ///< since the start, or since the signal where one was sent
  double megabytes = 0;  ///< the most that was resident
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const auto end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

inline std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The fields of a CSV as text, comment lines left out.
inline std::vector<std::vector<std::string>> csv_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : split(text, '\n'))
    if (!line.empty() && line[0] != '#') rows.push_back(split(line, ','));
  return rows;
}

/// One column of a CSV by its name, the header left out; empty when there is none.
inline std::vector<std::string> csv_column(const std::string& text, const std::string& name) {
  const auto rows = csv_rows(text);
  if (rows.empty()) return {};
  const auto found = std::find(rows[0].begin(), rows[0].end(), name);
  if (found == rows[0].end()) return {};
  std::vector<std::string> column;
  for (std::size_t i = 1; i < rows.size(); ++i)
    column.push_back(rows[i].at(static_cast<std::size_t>(found - rows[0].begin())));
  return column;
}

/// Whether the process has installed a handler of its own for the signal: on a busy machine a
/// program may take seconds to begin.
inline bool handles(pid_t process, int signal) {
  if (signal == SIGKILL) return true;
  const std::string status = read_bytes("/proc/" + std::to_string(process) + "/status");
  const auto at = status.find("SigCgt:");
  return at != status.npos &&
         (std::stoull(status.substr(at + 7), nullptr, 16) >> (signal - 1) & 1) != 0;
}

/// Runs the program in a directory of its own, gone after the test.
class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    std::string name = (std::filesystem::temp_directory_path() / "odecast-cli-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    base_ = name;
    directory_ = base_ / "work";  // beside it lies what the program prints
    std::filesystem::create_directory(directory_);
  }
  ~ProgramTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }
  void write(const std::string& name, const std::string& text) const {
    write_bytes(path(name), text);
  }
  std::string read(const std::string& name) const { return read_bytes(path(name)); }
  bool exists(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(path(name)));
  }

  /// Every file of the directory, hidden ones too, with its bytes.
  std::map<std::string, std::string> snapshot() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_))
      files[std::filesystem::relative(entry.path(), directory_).string()] =
          entry.is_symlink()        ? "-> " + std::filesystem::read_symlink(entry).string()
          : entry.is_regular_file() ? read_bytes(entry)
          : entry.is_directory()    ? "directory"
                                    : "special";
    return files;
  }

  /// Names of the files that came, went or changed since a snapshot.
  std::string changes(const std::map<std::string, std::string>& before) const {
    std::string names;
    const auto now = snapshot();
    for (const auto& [name, bytes] : now)
      if (!before.contains(name) || before.at(name) != bytes) names += " " + name;
    for (const auto& [name, bytes] : before)
      if (!now.contains(name)) names += " " + name;
    return names;
  }

  Result run(const std::vector<std::string>& args, const How& how = {}) const {
    const auto out = base_ / "stdout", err = base_ / "stderr", in = base_ / "stdin";
    write_bytes(in, how.input);
    std::vector<std::string> words = {kProgram};
    words.insert(words.end(), args.begin(), args.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string out_path = how.output_to.empty() ? out.string() : how.output_to;

    using Clock = std::chrono::steady_clock;
    const auto since = [](Clock::time_point t) {
      return std::chrono::duration<double>(Clock::now() - t).count();
    };
    const auto start = Clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
      ::unsetenv("ODECAST_ISA");
      for (const auto& [name, value] : how.environment) ::setenv(name.c_str(), value.c_str(), 1);
      const int flags = O_WRONLY | O_CREAT | O_TRUNC;
      if (::dup2(::open(in.c_str(), O_RDONLY), 0) < 0 ||
          ::dup2(::open(out_path.c_str(), flags, 0600), 1) < 0 ||
          ::dup2(::open(how.error_to.empty() ? err.c_str() : how.error_to.c_str(), flags, 0600),
                 2) < 0 ||
          ::chdir(directory_.c_str()) != 0)
        ::_exit(99);
      if (how.close_error) ::close(2);
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    if (child < 0) throw std::runtime_error("cannot fork");

    Result result;
    auto counted_from = start;
    bool signalled = false, killed = false;
    int status = 0;
    rusage usage{};
    while (::wait4(child, &status, WNOHANG, &usage) == 0) {
      if (how.signal != 0 && !signalled && since(start) >= how.signal_after &&
          handles(child, how.signal)) {
        ::kill(child, how.signal);
        counted_from = Clock::now();
        signalled = true;
      }
      if (!killed && since(start) > how.limit) {
        ::kill(child, SIGKILL);
        killed = true;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    result.seconds = since(counted_from);
    result.megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (how.output_to.empty()) result.out = read_bytes(out);
    result.err = read_bytes(err);
    if (killed) ADD_FAILURE() << "killed after " << how.limit << " s: odecast " << joined(args);
    return result;
  }

  /// For the steps a test only needs to get somewhere.
  Result run_well(const std::vector<std::string>& args, const How& how = {}) const {
    Result result = run(args, how);
    EXPECT_EQ(result.code, 0) << "odecast " << joined(args) << "\n" << result.err;
    return result;
  }

  /// train.csv: 51 rows of Sprott B, t = 0 … 1, variables x, y, z.
  void make_data() const {
    run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "1", "--step", "0.02", "-o",
              "train.csv"});
  }
  /// model.json, fitted to train.csv.
  void make_model() const {
    make_data();
    run_well({"fit", "train.csv", "--trainer", "adam", "--batches", "5", "-o", "model.json"});
  }

 private:
  std::filesystem::path base_, directory_;
};

}  // namespace odecast::cli_test
