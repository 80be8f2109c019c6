#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace odecast {

/// What kind of bad input an Error reports. The command line turns each into an exit code.
enum class ErrorKind {
  usage,  ///< an option, a range, an unknown name
  data,   ///< what is inside a file
  file,   ///< a file or the system: missing, unreadable, unwritable, full
};

/// The four facts every error carries.
struct Complaint {
  std::string where;                     ///< file, line, column, option
  std::string found;                     ///< what is there
  std::string expected;                  ///< what should be there
  std::string remedy;                    ///< what to do; a full sentence
  std::string line = {};                 ///< the text it is about, shown below
  std::vector<std::string> others = {};  ///< further remedies; they are numbered then
  std::string under = {};                ///< stands under `line`: a caret at the place
};

/// Bad input from outside. Bugs of our own are assertions; expected numerical outcomes are
/// statuses.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const Complaint& complaint);
  ErrorKind kind() const { return kind_; }
  /// what(), with the names of fields in backquotes for spelled() of core/text.hpp.
  const std::string& marked() const { return *marked_; }

 private:
  Error(ErrorKind kind, const std::string& marked);
  ErrorKind kind_;
  std::shared_ptr<const std::string> marked_;  // exceptions are copied without a throw
};

[[noreturn]] void throw_usage(const Complaint& complaint);
[[noreturn]] void throw_data(const Complaint& complaint);
[[noreturn]] void throw_file(const Complaint& complaint);

/// Usage error unless the option's value is good.
void require_option(bool good, const std::string& option, const std::string& found,
                    const std::string& expected, const std::string& remedy);

/// Data error unless what was computed from good input is finite; `found` says what overflowed.
void require_finite(bool finite, const std::string& where, const std::string& found,
                    const std::string& remedy);

/// Thrown by an Observer to stop the work; `signal` is the number the program exits with, less 128.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("interrupted"), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace odecast
