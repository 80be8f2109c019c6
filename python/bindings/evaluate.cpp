#include "odecast/scores/evaluate.hpp"

#include <nanobind/stl/shared_ptr.h>

#include "odecast/observations/times.hpp"
#include "python/bindings/model.hpp"

namespace odecast::python {
namespace {

const cli::Command& evaluate_words() {
  static const cli::Command command = cli::evaluate_command();
  return command;
}

/// What evaluate --json prints.
nb::object evaluate_model(const FittedModel& m, const Data& truth, nb::dict keywords,
                          nb::object progress) {
  const EvaluateOptions options =
      cli::evaluate_options(words(evaluate_words(), "model", keywords), m.model);
  return to_python(unlocked(progress, [&](Watch& watch) {
    return cli::evaluation_json(
        odecast::evaluate(m.model, counted_as(*truth.dataset(), m.model.calendar), options,
                          observer(watch)),
        options);
  }));
}

/// The model that calibrate writes.
ModelPointer calibrate_model(const FittedModel& m, const Data& truth, nb::dict keywords,
                             nb::object progress) {
  EvaluateOptions options =
      cli::evaluate_options(words(evaluate_words(), "model", keywords), m.model);
  options.forecast.calibrated = false;
  return unlocked(progress, [&](Watch& watch) {
    const Evaluation all = odecast::evaluate(
        m.model, counted_as(*truth.dataset(), m.model.calendar), options, observer(watch));
    Model model = m.model;
    model.calibration = conformal(all);
    auto result = std::make_shared<FittedModel>(std::move(model));
    result->summary = m.summary;
    result->calibration = cli::calibration_json(all, *result->model.calibration);
    return result;
  });
}

}  // namespace

void bind_evaluate(nb::module_& m) {
  m.def("evaluate", &evaluate_model, nb::arg("model"), nb::arg("truth"), nb::arg("keywords"),
        nb::arg("progress").none());
  m.def("calibrate", &calibrate_model, nb::arg("model"), nb::arg("truth"), nb::arg("keywords"),
        nb::arg("progress").none());
}

}  // namespace odecast::python
