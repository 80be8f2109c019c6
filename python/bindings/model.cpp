#include "python/bindings/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/shared_ptr.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "odecast/core/files.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/report/fit_page.hpp"
#include "odecast/tuning/calibrate.hpp"

namespace odecast::python {

void check_arguments(const Model& model, long given, const char* option) {
  const auto names = model.arguments();
  if (given != static_cast<long>(names.size()))
    throw_usage({std::string("option ") + option, fmt::format("{} values", given),
                 fmt::format("{} ({})", names.size(), fmt::join(names, ", ")),
                 "Give one value for each."});
}

namespace {

struct FitResult {
  ModelPointer model;     ///< null where there is none
  std::string complaint;  ///< empty for one to be trusted
};

/// With a path of a page to write, that too: it goes through the data again.
FitResult fit_data(const Data& data, nb::dict keywords, nb::object report, nb::object progress,
                   const std::string& call) {
  const cli::Arguments a = words(fit_words(), data.name, keywords);
  FitOptions options = cli::fit_options(a);
  const bool calibrate = a.given("--calibrate");
  cli::needs(a, {"--holdout"}, calibrate, "--calibrate");
  const bool with_page = !report.is_none();
  const std::string page = with_page ? nb::cast<std::string>(report) : "";
  FitResult result;
  unlocked(progress, [&](Watch& watch) {
    if (with_page) check_writable(page);
    const Fit learnt =
        calibrate ? fit_calibrated(*data.dataset(), a.number("--holdout"), options, observer(watch))
        : streams(options.method)
            ? fit(data.source([&] { watch.poll(); }), options, observer(watch))
            : fit(*data.dataset(), options, observer(watch));
    if (!learnt.summary.trusted) result.complaint = cli::fit_complaint(learnt.summary);
    if (!learnt.summary.usable) return;
    result.model = std::make_shared<FittedModel>(learnt.model);
    result.model->summary = cli::fit_json(learnt).dump();
    if (with_page) {
      Origin made = cli::origin(a);
      made.command = call;
      std::erase_if(made.settings, [](const auto& s) { return s.first == "--output"; });
      write_file(
          page, render_page(fit_page(*data.dataset(), learnt, options, {a.text("--title"), made})));
    }
  });
  return result;
}

ModelPointer load(const std::string& path) {
  return unlocked(nb::none(),
                  [&](Watch&) { return std::make_shared<FittedModel>(load_model(path)); });
}

/// The function at a state: the user's units, the same numbers as `odecast predict`. False where
/// they are not finite.
bool evaluate(const FittedModel& m, const Vector& u, double* mean, double* sd) {
  const Moments at = m.posterior->moments(m.model.to_model(u));
  const Vector rate = m.model.rate(), base = m.model.base();
  for (Eigen::Index i = 0; i < at.mean.size(); ++i) mean[i] = base[i] + rate[i] * at.mean[i];
  if (sd)
    for (Eigen::Index i = 0; i < at.mean.size(); ++i)
      sd[i] = rate[i] * std::sqrt(at.covariance(i, i));
  bool finite = true;
  for (Eigen::Index i = 0; i < at.mean.size(); ++i)
    finite = finite && std::isfinite(mean[i]) && (!sd || std::isfinite(sd[i]));
  return finite;
}

void warn_of_rows(long bad, long rows) {
  if (bad == 0) return;
  const std::string text = rows == 1 ? "the function is not finite at this state: it overflows, or "
                                       "a number given is not finite"
                                     : fmt::format(
                                           "the function is not finite at {} of {} states: it "
                                           "overflows, or a number given is not finite",
                                           bad, rows);
  nb::module_::import_("warnings")
      .attr("warn")(text, nb::module_::import_("odecast").attr("NotTrusted"), 3);
}

/// One state, or a row for each.
nb::object predict(const FittedModel& m, nb::handle at, bool with_sd) {
  const Doubles u(at);
  const long n = m.model.dimension(), dimensions = u.dimensions();
  check_arguments(m.model,
                  dimensions == 0 || dimensions > 2 ? 0 : u.size(static_cast<int>(dimensions) - 1),
                  "--at");
  if (dimensions == 1) {
    NewArray mean = new_array(n);
    if (!with_sd) {
      warn_of_rows(!evaluate(m, u.vector(), mean.data, nullptr), 1);
      return mean.array;
    }
    NewArray sd = new_array(n);
    warn_of_rows(!evaluate(m, u.vector(), mean.data, sd.data), 1);
    return nb::make_tuple(mean.array, sd.array);
  }
  const long rows = u.size(0), columns = u.size(1);
  NewArray mean = new_array(rows, n),
           sd = with_sd ? new_array(rows, n) : NewArray{nb::none(), nullptr};
  long bad = 0;
  unlocked(nb::none(), [&](Watch& watch) {
    for (long i = 0; i < rows; ++i) {
      bad += !evaluate(m, Eigen::Map<const Vector>(u.data() + i * columns, columns),
                       mean.data + i * n, with_sd ? sd.data + i * n : nullptr);
      if (i % 256 == 255) watch.poll();
    }
  });
  warn_of_rows(bad, rows);
  if (!with_sd) return mean.array;
  return nb::make_tuple(mean.array, sd.array);
}

std::string equations_text(const FittedModel& m, const std::string& format, bool all,
                           const std::string& centre) {
  static const cli::Command command = cli::equations_command();
  nb::dict keywords;
  keywords["format"] = format;
  keywords["centre"] = centre;
  words(command, "model", keywords);  // refuses unknown words
  if (format == "json") return cli::equations_json(m.model).dump();
  return spelled(
      format_equations(m.model,
                       format == "latex" ? EquationFormat::latex
                       : format == "c"   ? EquationFormat::c
                                         : EquationFormat::text,
                       all ? 0 : 0.01, centre == "median" ? Centre::median : Centre::mean),
      Spelling::keywords);
}

}  // namespace

void bind_model(nb::module_& m) {
  nb::class_<FittedModel>(m, "Model")
      .def_prop_ro("variables", [](const FittedModel& f) { return f.model.variables; })
      .def_prop_ro("inputs", [](const FittedModel& f) { return f.model.inputs.names; })
      .def_prop_ro("measured_inputs",
                   [](const FittedModel& f) {
                     const auto& names = f.model.inputs.names;
                     return std::vector<std::string>(names.begin(),
                                                     names.begin() + f.model.inputs.measured());
                   })
      .def_prop_ro("last_trajectory", [](const FittedModel& f) { return f.model.last_trajectory; })
      .def_prop_ro(
          "kind",
          [](const FittedModel& f) { return f.model.kind == ModelKind::map ? "map" : "flow"; })
      .def_prop_ro("last_time", [](const FittedModel& f) { return f.model.last_time; })
      .def_prop_ro("last_state",
                   [](const FittedModel& f) {
                     const Vector& u = f.model.last_state;
                     return to_array(std::span(u.data(), static_cast<std::size_t>(u.size())));
                   })
      .def_prop_ro("step", [](const FittedModel& f) { return f.model.step; })
      .def_prop_ro("polynomial", [](const FittedModel& f) { return f.model.has_equations(); })
      .def_ro("summary", &FittedModel::summary)
      .def_prop_ro(
          "calibration",
          [](const FittedModel& f) -> std::optional<std::string> {
            const auto& part = f.model.calibration;
            if (!part) return std::nullopt;
            if (!f.calibration.empty()) return f.calibration;
            return nlohmann::ordered_json{{"starts", part->starts}, {"level", part->level}}.dump();
          })
      .def_prop_ro("training",
                   [](const FittedModel& f) {
                     nb::dict d;
                     const auto& t = f.model.training;
                     d["status"] = t.status;
                     d["reason"] = t.reason;
                     d["objective"] = t.objective ? nb::object(nb::float_(*t.objective))
                                                  : nb::object(nb::none());
                     d["rows"] = t.rows;
                     d["trajectories"] = t.trajectories;
                     d["variables"] = f.model.variables;
                     d["derivative"] = t.derivative;
                     d["iterations"] = t.iterations;
                     d["seed"] = t.seed;
                     return d;
                   })
      .def("predict", &predict, nb::arg("at"), nb::arg("with_sd") = false)
      .def("equations", &equations_text)
      .def("equations_html",
           [](const FittedModel& f) {
             return render_equations({f.model.arguments(), readable_equations(f.model), "",
                                      f.model.kind == ModelKind::map});
           })
      .def("save",
           [](const FittedModel& f, const std::string& path) {
             unlocked(nb::none(), [&](Watch&) { save_model(f.model, path); });
           })
      .def("to_text", [](const FittedModel& f) { return model_to_text(f.model); });
  nb::class_<FitResult>(m, "FitResult")
      .def_ro("model", &FitResult::model)
      .def_ro("complaint", &FitResult::complaint);
  m.def("fit", &fit_data, nb::arg("data"), nb::arg("keywords"), nb::arg("report").none(),
        nb::arg("progress").none(), nb::arg("call"));
  m.def("load", &load);
  m.def("model_from_text", [](const std::string& text) {
    return std::make_shared<FittedModel>(model_from_text(text, "model"));
  });
}

}  // namespace odecast::python
