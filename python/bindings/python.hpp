#pragma once

// What the bindings need of Python: memory of arrays, words from keywords, calls that let other
// threads run.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"

namespace odecast::python {

namespace nb = nanobind;

/// C-contiguous doubles of an object with the buffer protocol, such as a NumPy array; not a copy.
/// Held until destroyed, which takes the interpreter's lock itself.
class Doubles {
 public:
  /// Throws nb::python_error for anything else.
  explicit Doubles(nb::handle object);
  ~Doubles();
  /// Whether it is such an object; float64 in this machine's order.
  static bool would_take(nb::handle object);
  Doubles(Doubles&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  Doubles& operator=(Doubles&&) = delete;
  Doubles(const Doubles&) = delete;

  const double* data() const { return static_cast<const double*>(view_.buf); }
  int dimensions() const { return view_.ndim; }
  long size(int dimension) const { return static_cast<long>(view_.shape[dimension]); }
  long size() const { return static_cast<long>(view_.len) / 8; }
  std::span<const double> values() const { return {data(), static_cast<std::size_t>(size())}; }
  Vector vector() const { return Eigen::Map<const Vector>(data(), size()); }

 private:
  Py_buffer view_{};
};

/// A new NumPy array, and where its numbers go.
struct NewArray {
  nb::object array;
  double* data;
};
NewArray new_array(long size);
NewArray new_array(long rows, long columns);
nb::object to_array(std::span<const double> values);
nb::object to_array(const Matrix& matrix);

/// Dicts, lists and numbers; None for null and for what is not finite.
nb::object to_python(const cli::Json& json);

/// A keyword's value as text: [1, 2] is "1,2", {"a": 1} is "a=1".
std::string word(nb::handle value);
/// The words of a command line for keywords: draws=5 is --draws=5, init=[1, 2] is --init=1,2,
/// sort=True is --sort, from_=3 is --from=3. None and False leave an option out.
cli::Arguments words(const cli::Command& command, const std::string& positional, nb::dict keywords);

/// A message as Python says it: keywords for options, True for a switch that is to be set,
/// functions of the package for commands.
std::string in_python(std::string_view marked);

/// A name, a sequence of names, or None for none. Throws nb::python_error, a TypeError that names
/// the argument, for anything else.
std::vector<std::string> names_of(nb::handle value, const char* argument);

/// The options of fit, which also say how data are read.
const cli::Command& fit_words();

/// Looks after the interpreter while the library works without its lock: signals are handled every
/// 20 ms, and `progress` (a callable or None) is told at most ten times a second. Both may raise:
/// the work then stops.
class Watch {
 public:
  explicit Watch(nb::handle progress) : progress_(progress.is_none() ? nullptr : progress.ptr()) {}
  /// Called without the lock. Throws Interrupted with the exception set in the interpreter.
  void operator()(std::string_view what, double fraction);
  /// Signals only.
  void poll() { (*this)({}, -1); }

 private:
  using Clock = std::chrono::steady_clock;
  PyObject* progress_;
  Clock::time_point checked_ = Clock::now(), told_ = checked_;
};

/// work(watch) without the interpreter's lock.
template <class Work>
auto unlocked(nb::handle progress, const Work& work) {
  Watch watch(progress);
  try {
    nb::gil_scoped_release release;
    return work(watch);
  } catch (const Interrupted&) {
    throw nb::python_error();
  }
}
inline Observer observer(Watch& watch) {
  return [&watch](std::string_view what, double fraction) { watch(what, fraction); };
}

void bind_data(nb::module_& m);
void bind_model(nb::module_& m);
void bind_evaluate(nb::module_& m);
void bind_forecast(nb::module_& m);
void bind_filter(nb::module_& m);
void bind_systems(nb::module_& m);

}  // namespace odecast::python
