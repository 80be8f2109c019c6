#include <algorithm>

#include "odecast/core/isa.hpp"
#include "odecast/core/text.hpp"
#include "odecast/learning/fields.hpp"
#include "python/bindings/python.hpp"

namespace odecast::python {
namespace {

/// What an option's value is, by the help's word for it.
std::string type_of(const cli::Option& o) {
  if (o.value.empty()) return "flag";
  if (!o.choices.empty()) return "choice";
  if (o.value == "P=V,…") return "values";
  if (o.value == "NAME" || o.value == "ID" || o.value == "HOW,…" || o.value == "SUM,…" ||
      o.name == "--variables" || o.name == "--inputs" || o.name == "--posterior")
    return "text";
  return o.value.ends_with("…") ? "numbers" : o.value == "N" || o.value == "M" ? "whole" : "number";
}

/// The field of the library's table that an option of fit sets, or null.
const Field* field_of(const cli::Option& o) {
  for (const Field& f : fit_fields())
    if (cli::marked(o.name) == "`" + f.name + "`") return &f;
  return nullptr;
}

/// The options of a command, for signatures and documentation.
nb::list options_of(const std::string& name) {
  static const cli::Command commands[] = {cli::fit_command(),       cli::forecast_command(),
                                          cli::score_command(),     cli::evaluate_command(),
                                          cli::simulate_command(),  cli::split_command(),
                                          cli::tune_command(),      cli::lyapunov_command(),
                                          cli::attractor_command(), cli::filter_command()};
  const auto command = std::find_if(std::begin(commands), std::end(commands),
                                    [&](const cli::Command& c) { return c.name == name; });
  nb::list list;
  for (const cli::Option& o : command->options) {
    constexpr const char* types[] = {"flag", "whole", "number", "numbers", "choice", "text"};
    const Field* field = name == "fit" ? field_of(o) : nullptr;
    nb::dict d;
    d["name"] = o.name.substr(2);
    d["type"] = field ? types[static_cast<int>(field->type)] : type_of(o);
    d["value"] = o.value;
    d["help"] = o.help;
    d["group"] = o.group;
    d["initial"] = o.initial;
    d["choices"] = field ? field->choices : o.choices;
    list.append(d);
  }
  return list;
}

}  // namespace
}  // namespace odecast::python

NB_MODULE(_core, m) {
  using namespace odecast;
  using namespace odecast::python;
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& e) {
      PyErr_SetString(e.kind() == ErrorKind::file ? PyExc_OSError : PyExc_ValueError,
                      in_python(e.marked()).c_str());
    } catch (const std::bad_cast&) {
      PyErr_SetString(PyExc_TypeError,
                      "an argument, or a part of one, is of another type than expected");
    }
  });
  m.attr("version") = ODECAST_VERSION;
  m.def("options_of", &options_of);
  m.def("nearest", [](const std::string& word, const std::vector<std::string>& known) {
    return cli::nearest(word, known);
  });
  active_isa();  // a wrong ODECAST_ISA is found here
  bind_data(m);
  bind_model(m);
  bind_forecast(m);
  bind_filter(m);
  bind_evaluate(m);
  bind_systems(m);
}
