#include "python/bindings/python.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"

namespace odecast::python {

Doubles::Doubles(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0)
    throw nb::python_error();
  const std::string_view format = view_.format ? view_.format : "";
  if (view_.itemsize != 8 ||
      (format != "d" && format != "<d" && format != "=d" && format != "@d")) {
    PyBuffer_Release(&view_);
    PyErr_SetString(PyExc_TypeError, "expected C-contiguous float64 numbers");
    throw nb::python_error();
  }
}

bool Doubles::would_take(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return false;
  }
  const bool good = view.itemsize == 8 && view.format && std::string_view(view.format) == "d";
  PyBuffer_Release(&view);
  return good;
}

Doubles::~Doubles() {
  if (!view_.obj) return;
  nb::gil_scoped_acquire lock;
  PyBuffer_Release(&view_);
}

namespace {

NewArray filled_by(nb::object array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0)
    throw nb::python_error();
  NewArray result{std::move(array), static_cast<double*>(view.buf)};
  PyBuffer_Release(&view);  // the array stays where it is
  return result;
}

/// numpy.empty, looked up once.
nb::handle numpy_empty() {
  static PyObject* const function =
      nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  return function;
}

}  // namespace

NewArray new_array(long size) { return filled_by(nb::object(numpy_empty()(size))); }
NewArray new_array(long rows, long columns) {
  return filled_by(nb::object(numpy_empty()(nb::make_tuple(rows, columns))));
}

nb::object to_array(std::span<const double> values) {
  NewArray result = new_array(static_cast<long>(values.size()));
  std::copy(values.begin(), values.end(), result.data);
  return result.array;
}

nb::object to_array(const Matrix& matrix) {
  NewArray result = new_array(matrix.rows(), matrix.cols());
  std::copy_n(matrix.data(), matrix.size(), result.data);
  return result.array;
}

std::string word(nb::handle value) {
  if (nb::isinstance<nb::str>(value) || PyBool_Check(value.ptr()))
    return nb::cast<std::string>(nb::str(value));
  if (PyFloat_Check(value.ptr())) return format_number(PyFloat_AsDouble(value.ptr()));
  std::string list;
  if (nb::isinstance<nb::dict>(value)) {
    for (const auto [key, part] : nb::cast<nb::dict>(value))
      list += (list.empty() ? "" : ",") + word(key) + "=" + word(part);
    return list;
  }
  if (PySequence_Check(value.ptr())) {
    if (const nb::object parts = nb::steal(PySequence_List(value.ptr())); parts.is_valid()) {
      bool first = true;
      for (const nb::handle part : parts) {
        const bool text = nb::isinstance<nb::str>(part);
        list += (first ? "" : ",") + (text ? csv_cell(word(part)) : word(part));
        first = false;
      }
      return list;
    }
    PyErr_Clear();  // an array without dimensions
  }
  if (const nb::object whole = nb::steal(PyNumber_Index(value.ptr())); whole.is_valid())
    return nb::cast<std::string>(nb::str(whole));
  PyErr_Clear();
  const double number = PyFloat_AsDouble(value.ptr());
  if (!PyErr_Occurred()) return format_number(number);
  PyErr_Clear();
  return nb::cast<std::string>(nb::str(value));
}

nb::object to_python(const cli::Json& json) {
  if (json.is_object()) {
    nb::dict dict;
    for (const auto& [key, value] : json.items()) dict[nb::str(key.c_str())] = to_python(value);
    return dict;
  }
  if (json.is_array()) {
    nb::list list;
    for (const auto& value : json) list.append(to_python(value));
    return list;
  }
  if (json.is_string()) return nb::cast(json.get<std::string>());
  if (json.is_boolean()) return nb::cast(json.get<bool>());
  if (json.is_number_unsigned()) return nb::cast(json.get<std::uint64_t>());
  if (json.is_number_integer()) return nb::cast(json.get<std::int64_t>());
  if (json.is_number() && std::isfinite(json.get<double>())) return nb::cast(json.get<double>());
  return nb::none();
}

namespace {

bool of_name(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

void replace_all(std::string& text, std::string_view old, std::string_view by) {
  for (std::size_t at = text.find(old); at != text.npos; at = text.find(old, at + by.size()))
    text.replace(at, old.size(), by);
}

/// by(the rest of `text` behind it) for every keyword `name=`.
template <class By>
void replace_keyword(std::string& text, const std::string& name, const By& by) {
  for (std::size_t at = text.find(name + "="); at != text.npos;
       at = text.find(name + "=", at + name.size() + 1))
    if (at == 0 || !of_name(text[at - 1]))
      text.replace(at, name.size() + 1, by(std::string_view(text).substr(at + name.size() + 1)));
}

}  // namespace

std::string in_python(std::string_view marked) {
  std::string text = spelled(marked, Spelling::keywords);
  // time= NAME, step= 0.1: the value follows at once.
  for (std::size_t at = text.find("= "); at != text.npos; at = text.find("= ", at + 1)) {
    const std::string_view value = std::string_view(text).substr(at + 2);
    const auto is = [&](std::size_t k, char first, char last) {
      return k < value.size() && value[k] >= first && value[k] <= last;
    };
    const bool word = is(0, 'A', 'Z') && !is(1, 'a', 'z');
    if (at > 0 && of_name(text[at - 1]) && (word || is(0, '0', '9'))) text.erase(at + 1, 1);
  }
  for (const char* flag : {"sort", "observations", "calibrate", "raw", "robust", "all"})
    replace_keyword(text, flag, [&](std::string_view rest) {
      const bool bare = rest.empty() || std::string_view(".,;) ").find(rest[0]) != rest.npos;
      return std::string(flag) + (bare ? "=True" : "=");
    });
  replace_keyword(text, "from", [](std::string_view) { return "from_="; });
  if (text.starts_with("odecast ") && text.find(':') == text.find_first_of(" :", 8))
    text.erase(0, 8);
  replace_all(text, "(odecast calibrate)", "(model.calibrate)");
  replace_all(text, "`odecast systems`", "odecast.systems()");
  const std::string_view about = "`odecast systems ";
  if (const auto at = text.find(about), end = text.find('`', at + 1);
      at != text.npos && end != text.npos)
    text = text.substr(0, at) + "odecast.systems('" +
           text.substr(at + about.size(), end - at - about.size()) + "')" + text.substr(end + 1);
  replace_all(text, ", separated by commas", "");
  replace_all(text, " with -o", "");
  return text;
}

std::vector<std::string> names_of(nb::handle value, const char* argument) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::str>(value)) return {nb::cast<std::string>(value)};
  const nb::object parts = nb::steal(PySequence_List(value.ptr()));
  std::vector<std::string> names;
  if (parts.is_valid())
    for (const nb::handle part : parts) {
      if (!nb::isinstance<nb::str>(part)) {
        PyErr_Format(
            PyExc_TypeError,
            "%s: found %R, expected names, which are of type str. Write %s=[\"x\", \"y\"].",
            argument, part.ptr(), argument);
        throw nb::python_error();
      }
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(part.ptr(), &size);
      if (!text) throw nb::python_error();  // a lone surrogate
      names.emplace_back(text, static_cast<std::size_t>(size));
    }
  else
    throw nb::python_error();
  return names;
}

cli::Arguments words(const cli::Command& command, const std::string& positional,
                     nb::dict keywords) {
  std::vector<std::string> options;
  for (const auto [key, value] : keywords) {
    std::string name = nb::cast<std::string>(key);
    if (name.ends_with('_')) name.pop_back();
    std::replace(name.begin(), name.end(), '_', '-');
    name = "--" + name;
    if (value.is_none()) continue;
    const bool is_switch =
        std::any_of(command.options.begin(), command.options.end(),
                    [&](const cli::Option& o) { return o.name == name && o.value.empty(); });
    if (!is_switch)
      options.push_back(name + "=" + word(value));
    else if (nb::cast<bool>(nb::bool_(value)))
      options.push_back(name);
  }
  options.push_back("--");
  for (const auto& p : command.positionals) options.push_back(p.required ? positional : "");
  return cli::Arguments(command, options);
}

const cli::Command& fit_words() {
  static const cli::Command command = cli::fit_command();
  return command;
}

void Watch::operator()(std::string_view what, double fraction) {
  const auto now = Clock::now();
  if (now - checked_ < std::chrono::milliseconds(20)) return;
  checked_ = now;
  nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw Interrupted(SIGINT);
  if (!progress_ || fraction < 0 || now - told_ < std::chrono::milliseconds(100)) return;
  told_ = now;
  try {
    const nb::handle progress(progress_);
    progress(nb::str(what.data(), what.size()), fraction);
  } catch (nb::python_error& raised) {
    raised.restore();
    throw Interrupted(SIGINT);
  }
}

}  // namespace odecast::python
