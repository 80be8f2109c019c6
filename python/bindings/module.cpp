#include "odecast/core/isa.hpp"
#include "odecast/core/text.hpp"
#include "odecast/systems/catalogue.hpp"
#include "python/bindings/python.hpp"

namespace odecast::python {
namespace {

/// The options of a command, for signatures and documentation.
nb::list options_of(const std::string& name) {
  const cli::Command command = name == "fit"        ? cli::fit_command()
                               : name == "forecast" ? cli::forecast_command()
                               : name == "score"    ? cli::score_command()
                               : name == "evaluate" ? cli::evaluate_command()
                               : name == "simulate" ? cli::simulate_command()
                                                    : cli::split_command();
  nb::list list;
  for (const cli::Option& o : command.options) {
    nb::dict d;
    d["name"] = o.name.substr(2);
    d["value"] = o.value;
    d["help"] = o.help;
    d["initial"] = o.initial;
    d["choices"] = o.choices;
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
                      spelled(e.marked(), Spelling::keywords).c_str());
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
  m.def("system_names", [] { return system_names(); });
  active_isa();  // a wrong ODECAST_ISA is found here
  bind_data(m);
  bind_model(m);
  bind_forecast(m);
  bind_evaluate(m);
}
