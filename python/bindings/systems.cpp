#include <nanobind/stl/shared_ptr.h>

#include "odecast/core/text.hpp"
#include "python/bindings/model.hpp"

namespace odecast::python {
namespace {

/// What a command prints as JSON, and why that is not to be trusted; empty where it is.
using Told = std::pair<nb::object, std::string>;

Told lyapunov(const FittedModel* m, const std::string& name, nb::dict keywords,
              nb::object progress) {
  static const cli::Command command = cli::lyapunov_command();
  const cli::Arguments a = words(command, name, keywords);
  const cli::Exponents found = unlocked(progress, [&](Watch& watch) {
    return cli::lyapunov(a, m ? &m->model : nullptr, observer(watch));
  });
  const bool good = found.spectrum.status == SolveStatus::finished;
  return {to_python(cli::lyapunov_json(name, found)),
          good ? "" : in_python(cli::lyapunov_complaint(found.spectrum))};
}

Told attractor(const FittedModel& m, const Data& data, nb::dict keywords, nb::object progress) {
  static const cli::Command command = cli::attractor_command();
  const cli::Arguments a = words(command, "model", keywords);
  const AttractorOptions options = cli::attractor_options(a, m.model);
  const AttractorComparison found = unlocked(progress, [&](Watch& watch) {
    return compare_attractors(m.model, cli::longest(*data.dataset()), options, observer(watch));
  });
  const bool good = found.status == SolveStatus::finished;
  return {to_python(cli::attractor_json(found, options)),
          good ? "" : cli::attractor_complaint(found)};
}

std::pair<ModelPointer, nb::object> tune(const Data& data, const std::string& folder,
                                         nb::dict keywords, nb::object progress) {
  static const cli::Command command = cli::tune_command();
  const cli::Arguments a = words(command, data.name, keywords);
  const cli::Tuned made = unlocked(progress, [&](Watch& watch) {
    return cli::tune(
        a, [&] { return *data.dataset(); }, folder, observer(watch));
  });
  auto model = std::make_shared<FittedModel>(made.best.model);
  model->summary = cli::fit_json(made.best);
  return {model, to_python(cli::tuning_json(made))};
}

}  // namespace

void bind_systems(nb::module_& m) {
  m.def("system_names", [] { return system_names(); });
  m.def("system",
        [](const std::string& name) { return to_python(cli::system_json(find_system(name))); });
  m.def("lyapunov", &lyapunov, nb::arg("model").none(), nb::arg("name"), nb::arg("keywords"),
        nb::arg("progress").none());
  m.def("attractor", &attractor, nb::arg("model"), nb::arg("data"), nb::arg("keywords"),
        nb::arg("progress").none());
  m.def("tune", &tune, nb::arg("data"), nb::arg("folder"), nb::arg("keywords"),
        nb::arg("progress").none());
}

}  // namespace odecast::python
