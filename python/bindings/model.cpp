#include "python/bindings/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cmath>

#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/learning/fields.hpp"
#include "odecast/model/coefficients.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/report/fit_page.hpp"
#include "odecast/tuning/calibrate.hpp"
#include "odecast/tuning/embed.hpp"

namespace odecast::python {

namespace {

/// What fit() was asked for, but for the data.
struct FitPlan {
  FitOptions options;
  bool keeps_missing;  ///< unless another rule is given
  bool calibrate;
  double holdout;
};

/// Keywords that are fields of the library's table go to it, the others are the command line's.
FitPlan plan_fit(nb::dict keywords) {
  std::map<std::string, std::string> given;
  nb::dict others;
  for (const auto [key, value] : keywords) {
    const auto name = nb::cast<std::string>(key);
    const auto field = std::find_if(fit_fields().begin(), fit_fields().end(),
                                    [&](const Field& f) { return f.name == name; });
    if (value.is_none()) continue;
    if (field == fit_fields().end()) {
      others[key] = value;
      continue;
    }
    std::string text = word(value);
    if (field->type == FieldType::flag) {
      if (text != "True" && text != "False")
        throw_usage({"`" + name + "`", shown(text), "True or False", "Leave it out for False."});
      text = text == "True" ? "yes" : "no";
    }
    given[name] = text;
  }
  const cli::Arguments a = words(fit_words(), "data", others);
  const bool calibrate = a.given("--calibrate");
  FitPlan plan{fit_options(given), given["posterior"] == "trajectory" && !calibrate, calibrate,
               a.number("--holdout")};
  plan.options.threads = a.threads();
  cli::needs(a, {"--holdout"}, plan.calibrate, "`calibrate`");
  return plan;
}

struct FitResult {
  ModelPointer model;     ///< null where there is none
  std::string complaint;  ///< empty for one to be trusted
};

/// With a path of a page to write, that too: it goes through the data again.
FitResult fit_data(const Data& data, const FitPlan& plan, std::optional<std::string> page,
                   const std::string& title, nb::object progress, const std::string& call) {
  FitOptions options = plan.options;
  options.time_name = data.time_input;
  cli::check_data(options, data.keeps_missing, !data.input_words().empty(), plan.calibrate);
  FitResult result;
  unlocked(progress, [&](Watch& watch) {
    if (page) check_writable(*page);
    if (options.embed) options = choose_embedding(*data.dataset(), options, observer(watch));
    const Fit learnt = plan.calibrate
                           ? fit_calibrated(*data.dataset(), plan.holdout, options, observer(watch))
                       : streams(options.method)
                           ? fit(data.source([&] { watch.poll(); }), options, observer(watch))
                           : fit(*data.dataset(), options, observer(watch));
    const FitSummary& summary = learnt.summary;
    if (!summary.trusted)
      result.complaint = "training: " + in_python(summary.reason) +
                         (summary.usable ? "; do not trust the model" : "; there is no model");
    if (!summary.usable) return;
    result.model = std::make_shared<FittedModel>(learnt.model);
    result.model->summary = cli::fit_json(learnt);
    result.model->summary["reason"] = in_python(learnt.model.training.reason);
    if (!page) return;
    Origin made{.command = call, .versions = cli::versions()};
    if (plan.calibrate)
      made.settings.emplace_back("held out to calibrate", format_number(plan.holdout));
    write_file(*page, render_page(fit_page(*data.dataset(), learnt, options, {title, made})));
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
  const auto names = m.model.arguments();
  const long given =
      dimensions == 0 || dimensions > 2 ? 0 : u.size(static_cast<int>(dimensions) - 1);
  if (given != static_cast<long>(names.size()))
    throw_usage({"u", fmt::format("{} values", given),
                 fmt::format("{} ({})", names.size(), fmt::join(names, ", ")),
                 "Give one value for each."});
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

nb::object equations_of(const FittedModel& m, nb::dict keywords) {
  static const cli::Command command = cli::equations_command();
  const cli::Arguments a = words(command, "model", keywords);
  const std::string format = a.text("--format");
  if (format == "json") return to_python(cli::equations_json(m.model));
  return nb::cast(in_python(cli::equations_text(a, m.model,
                                                format == "latex" ? EquationFormat::latex
                                                : format == "c"   ? EquationFormat::c
                                                                  : EquationFormat::text)));
}

const FunctionTerms* functions_of(const FittedModel& m) {
  return m.model.polynomial() ? m.model.polynomial()->functions.get() : nullptr;
}

/// Of every coefficient's term: its name, and the powers of the arguments, 0 for functions, which
/// stand behind the monomials.
nb::list monomials_of(const FittedModel& m) {
  const auto basis = monomials(m.model);
  const auto names = term_arguments(m.model);
  nb::list list;
  for (int k = 0; k < basis->size(); ++k)
    list.append(nb::make_tuple(monomial_text(basis->powers(k), names), basis->powers(k)));
  if (const FunctionTerms* all = functions_of(m))
    for (const FunctionTerms::Term& f : all->terms())
      list.append(
          nb::make_tuple(expression_text(all->tape(), f.node), std::vector<int>(names.size())));
  return list;
}

/// Names of the numbers inside functions.
std::vector<std::string> numbers_of(const FittedModel& m) {
  std::vector<std::string> names;
  if (const FunctionTerms* all = functions_of(m))
    for (const InnerNumber& k : all->numbers()) names.push_back(k.name);
  return names;
}

/// What functions add to the equations, exactly: equation, coefficient, expression and the values
/// of the numbers inside.
nb::list shares_of(const FittedModel& m, const std::string& centre) {
  nb::list list;
  const std::vector<std::string> names = numbers_of(m);
  for (const FunctionShare& s : function_shares(m.model, centre == "best"     ? Centre::best
                                                         : centre == "median" ? Centre::median
                                                                              : Centre::mean)) {
    nb::dict numbers;
    for (std::size_t k = 0; k < names.size(); ++k) numbers[names[k].c_str()] = s.numbers[k];
    const FunctionTerms& all = *functions_of(m);
    list.append(nb::make_tuple(s.equation, s.coefficient,
                               expression_text(all.tape(), all.term(s.function).node), numbers));
  }
  return list;
}

/// draws × variables × terms in one line, the states in which the data end, or None, and the
/// numbers inside functions, or None.
nb::tuple draws_of(const FittedModel& m, long draws, std::uint64_t seed, nb::object progress) {
  const CoefficientDraws drawn = unlocked(progress, [&](Watch& watch) {
    return draw_coefficients(m.model, draws, seed, observer(watch));
  });
  const long each = drawn.coefficients.empty() ? 0 : drawn.coefficients.front().size();
  NewArray values = new_array(draws * each);
  for (long k = 0; k < draws; ++k)
    std::copy_n(drawn.coefficients[static_cast<std::size_t>(k)].data(), each,
                values.data + k * each);
  return nb::make_tuple(values.array, drawn.starts.size() > 0 ? to_array(drawn.starts) : nb::none(),
                        drawn.numbers.size() > 0 ? to_array(drawn.numbers) : nb::none());
}

/// Equation and term of every coefficient of the most probable set, and behind them -1 and which
/// number inside functions; their means and covariance.
nb::tuple covariance_of(const FittedModel& m) {
  const SetOfTerms set = most_probable_terms(m.model);
  std::vector<std::pair<int, int>> places;
  for (const FieldTerm& t : set.support) places.emplace_back(t.equation, t.term);
  for (const int k : set.numbers) places.emplace_back(-1, k);
  return nb::make_tuple(
      places, to_array(std::span(set.mean.data(), static_cast<std::size_t>(set.mean.size()))),
      to_array(set.covariance));
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
      .def_prop_ro("calendar", [](const FittedModel& f) { return f.model.calendar; })
      .def_prop_ro("time_name", [](const FittedModel& f) { return f.model.time_name; })
      .def_prop_ro("last_time", [](const FittedModel& f) { return f.model.last_time; })
      .def_prop_ro("last_state",
                   [](const FittedModel& f) {
                     const Vector& u = f.model.last_state;
                     return to_array(std::span(u.data(), static_cast<std::size_t>(u.size())));
                   })
      .def_prop_ro("step", [](const FittedModel& f) { return f.model.step; })
      .def_prop_ro("polynomial", [](const FittedModel& f) { return f.model.has_equations(); })
      .def_prop_ro(
          "summary",
          [](const FittedModel& f) {
            if (!f.summary.is_null()) return to_python(f.summary);
            const auto& t = f.model.training;
            return to_python({{"status", t.status},
                              {"reason", in_python(t.reason)},
                              {"objective", t.objective ? cli::Json(*t.objective) : cli::Json()},
                              {"rows", t.rows},
                              {"trajectories", t.trajectories},
                              {"variables", f.model.variables},
                              {"derivative", t.derivative},
                              {"iterations", t.iterations},
                              {"seed", t.seed}});
          })
      .def_prop_ro("calibration",
                   [](const FittedModel& f) {
                     const auto& part = f.model.calibration;
                     if (part && f.calibration.is_null())
                       return to_python({{"starts", part->starts}, {"level", part->level}});
                     return to_python(f.calibration);
                   })
      .def("predict", &predict, nb::arg("at"), nb::arg("with_sd") = false)
      .def("equations", &equations_of)
      .def("equations_html",
           [](const FittedModel& f, bool best) {
             return render_equations(equation_list(f.model, best ? Centre::best : Centre::mean));
           })
      .def_prop_ro("best_probability",
                   [](const FittedModel& f) { return best_set_probability(f.model); })
      .def_prop_ro("monomials", &monomials_of)
      .def_prop_ro("numbers", &numbers_of)
      .def_prop_ro("functions",
                   [](const FittedModel& f) {
                     std::vector<std::string> texts;
                     if (const FunctionTerms* all = functions_of(f))
                       for (const FunctionTerms::Term& t : all->terms())
                         texts.push_back(expression_text(all->tape(), t.node));
                     return texts;
                   })
      .def("function_shares", &shares_of)
      .def_prop_ro("covariance", &covariance_of)
      .def("draws", &draws_of, nb::arg("draws"), nb::arg("seed"), nb::arg("progress").none())
      .def("save",
           [](const FittedModel& f, const std::string& path) {
             unlocked(nb::none(), [&](Watch&) { save_model(f.model, path); });
           })
      .def("to_text", [](const FittedModel& f) { return model_to_text(f.model); })
      .def("told",
           [](const FittedModel& f) { return std::pair(f.summary.dump(), f.calibration.dump()); });
  nb::class_<FitResult>(m, "FitResult")
      .def_ro("model", &FitResult::model)
      .def_ro("complaint", &FitResult::complaint);
  nb::class_<FitPlan>(m, "FitPlan").def_ro("keeps_missing", &FitPlan::keeps_missing);
  m.def("plan_fit", &plan_fit);
  m.def("fit", &fit_data, nb::arg("data"), nb::arg("plan"), nb::arg("report").none(),
        nb::arg("title"), nb::arg("progress").none(), nb::arg("call"));
  m.def("load", &load);
  m.def("model_from_text",
        [](const std::string& text, const std::string& summary, const std::string& calibration) {
          auto model = std::make_shared<FittedModel>(model_from_text(text, "pickle"));
          model->summary = cli::Json::parse(summary);
          model->calibration = cli::Json::parse(calibration);
          return model;
        });
}

}  // namespace odecast::python
