#include "odecast/scores/lyapunov.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast::cli {
namespace {

std::vector<double> to_list(const Vector& v) { return {v.begin(), v.end()}; }

/// Of the times that a model's field or map is followed in.
double unit_of_time(const Model& model) {
  return model.kind == ModelKind::map ? model.step : model.scaling.time;
}

/// In the user's unit of time.
LyapunovSpectrum in_units(LyapunovSpectrum s, double unit) {
  s.exponents /= unit;
  s.standard_error /= unit;
  s.divergence /= unit;
  s.time *= unit;
  return s;
}

std::vector<LyapunovSpectrum> of_draws(const Model& model, const Vector& start,
                                       const LyapunovOptions& options, long draws,
                                       const Arguments& a, const Observer& observer) {
  const auto posterior = make_posterior(model);
  std::vector<LyapunovSpectrum> spectra(static_cast<std::size_t>(draws));
  parallel_for(
      a.threads(), spectra.size(),
      [&](std::size_t k) {
        spectra[k] = in_units(lyapunov_spectrum(posterior->draw(a.seed(), k), start, options),
                              unit_of_time(model));
      },
      [&](std::size_t begun) {
        observer("following", static_cast<double>(begun) / static_cast<double>(draws));
      });
  return spectra;
}

Json to_json(const std::vector<LyapunovSpectrum>& spectra, const SpectraOfDraws& all) {
  auto list = Json::array();
  for (const LyapunovSpectrum& s : spectra)
    if (s.status == SolveStatus::finished)
      list.push_back(
          {{"exponents", to_list(s.exponents)}, {"standard_errors", to_list(s.standard_error)}});
  return {{"tried", spectra.size()},
          {"bounded", all.bounded},
          {"mean", to_list(all.mean)},
          {"sd", to_list(all.sd)},
          {"standard_error", to_list(all.standard_error)},
          {"posterior_sd", to_list(all.posterior_sd)},
          {"spectra", list}};
}

std::string text_of(std::size_t tried, const SpectraOfDraws& all) {
  std::string text = fmt::format("{} of {} draws of the model stay bounded", all.bounded, tried);
  if (all.bounded == 0) return text + "\n";
  text += fmt::format("\n{:>12}{:>16}{:>22}{:>16}\n", "mean", "sd over draws",
                      "error by finite time", "posterior sd");
  for (Eigen::Index i = 0; i < all.mean.size(); ++i)
    text += fmt::format("{:>+12.4g}{:>16.2g}{:>22.2g}{:>16.2g}\n", all.mean[i], all.sd[i],
                        all.standard_error[i], all.posterior_sd[i]);
  return text +
         "(the sd over draws has both parts; a posterior sd of 0 is hidden by the finite time: "
         "give a longer --until)\n";
}

}  // namespace

Exponents lyapunov(const Arguments& a, const Model* model, const Observer& observer) {
  needs(a, {"--draws", "--seed"}, model, "a model");
  std::optional<System> system;
  if (!model) system = find_system(a.positional(0));
  const Vector start = a.given("--init") ? to_vector(a.numbers("--init"))
                       : model           ? model->last_state
                                         : system->start;
  if ((model && model->inputs.size() > 0) || (system && system->drive))
    throw_usage({"lyapunov", "a system that is driven from outside", "one without inputs",
                 "The exponents of a driven system depend on what drives it."});
  LyapunovOptions options;
  options.map = model ? model->kind == ModelKind::map : system->map;
  needs(a, {"--interval"}, !options.map, "a flow: a map is factored at every iteration");
  const int dimension = model ? model->dimension() : system->field.dimension();
  if (start.size() != dimension)
    throw_usage({"option `init`", fmt::format("{} values", start.size()),
                 fmt::format("{}", dimension),
                 "Give one value per variable, separated by commas."});

  const auto posterior = model ? make_posterior(*model) : nullptr;
  // A model is followed in its own units, and where nothing is given for as long as its motion is
  // quick.
  const double unit = model ? unit_of_time(*model) : 1;
  if (model && !options.map) {
    const double quick = time_scale(followed_field(*model, *posterior),
                                    model->scaling.to_model(start), model->step / unit);
    options = {.until = 16'000 * quick, .transient = 800 * quick, .interval = 2 * quick};
  }
  if (a.given("--until")) options.until = a.number("--until") / unit;
  if (a.given("--transient")) options.transient = a.number("--transient") / unit;
  if (a.given("--interval")) options.interval = a.number("--interval") / unit;
  if (!model)
    return {lyapunov_spectrum(system->field, start, options, observer), {}, system->lyapunov};
  const Vector from = model->scaling.to_model(start);
  Exponents found{in_units(
      lyapunov_spectrum(followed_field(*model, *posterior), from, options, observer), unit)};
  if (const long count = a.whole("--draws", 0, 100000); count > 0)
    found.draws = of_draws(*model, from, options, count, a, observer);
  return found;
}

Json lyapunov_json(const std::string& of, const Exponents& found) {
  Json json{{"of", of}};
  const LyapunovSpectrum& s = found.spectrum;
  if (!found.draws.empty()) json["draws"] = to_json(found.draws, spectra_of_draws(found.draws));
  json["status"] = status_name(s.status);
  if (s.status != SolveStatus::finished) return json;
  json["exponents"] = to_list(s.exponents);
  json["standard_error"] = to_list(s.standard_error);
  json["divergence"] = s.divergence;
  json["kaplan_yorke"] = kaplan_yorke(s.exponents);
  json["time"] = s.time;
  if (found.catalogue) json["catalogue"] = *found.catalogue;
  return json;
}

std::string lyapunov_complaint(const LyapunovSpectrum& s) {
  return fmt::format(
      "the orbit, or an error along it, does not stay bounded or vanishes ({}): no exponents. "
      "Choose another `init` or model, or a smaller `interval`.",
      status_name(s.status));
}

namespace {

int run_lyapunov(const Arguments& a) {
  const std::string name = a.positional(0);
  std::optional<Model> model;
  if (std::filesystem::exists(name) || name.ends_with(".json")) {
    model = load_model(name);
    warn_of(a, *model);
  }
  const Exponents found = [&] {
    const Observer observer = progress(a);
    return lyapunov(a, model ? &*model : nullptr, observer);
  }();
  const LyapunovSpectrum& s = found.spectrum;
  if (a.json()) {
    put_json(lyapunov_json(name, found));
  } else if (s.status == SolveStatus::finished && !a.quiet()) {
    put("exponents of {}{}, over {:.6g} time units\n", printable(name),
        model ? " (mean field)" : "", s.time);
    for (Eigen::Index i = 0; i < s.exponents.size(); ++i) {
      const auto [mean, error] = rounded_coefficient(s.exponents[i], s.standard_error[i]);
      put("  {}{} ± {}\n", s.exponents[i] < 0 ? "" : "+", mean, error);
    }
    put("sum {:+.6g}, mean divergence {:+.6g}\n", s.exponents.sum(), s.divergence);
    if (s.exponents[0] > 2 * s.standard_error[0])
      put("dimension of Kaplan and Yorke {:.4g}\none Lyapunov time is {:.3g}: errors grow e-fold "
          "in it\n",
          kaplan_yorke(s.exponents), 1 / s.exponents[0]);
    if (found.catalogue) put("the catalogue has {:+.4f} for the largest\n", *found.catalogue);
    if (!found.draws.empty()) put("{}", text_of(found.draws.size(), spectra_of_draws(found.draws)));
  }
  if (s.status == SolveStatus::finished) return kDone;
  complain(lyapunov_complaint(s));
  return kNotTrusted;
}

}  // namespace

Command lyapunov_command() {
  return {"lyapunov",
          "growth rates of small errors, of a system or a model",
          "Follows an orbit and the displacements along it and gives the Lyapunov exponents with "
          "their standard\n"
          "errors. For a model: of its mean field, and of draws, whose scatter is told apart from "
          "the error of a finite time.",
          "odecast lyapunov Lorenz\nodecast lyapunov model.json --draws 50",
          {{"SYSTEM|MODEL", "name in the catalogue, or file written by odecast fit"}},
          with_common(
              {{"--init", "A,B,…", "start (default: the catalogue's, or the last observation)", ""},
               {"--until", "T",
                "time to average over (default: 2000; of a model 16000 times\nthe time that its "
                "motion takes for a radian)",
                ""},
               {"--transient", "T", "time to leave out first (default: 100; 800 such times)", ""},
               {"--interval", "T", "time between factorisations (default: 0.5; 2 such times)", ""},
               {"--draws", "N", "draws of a model to follow", "0"},
               seed_option(),
               threads_option()}),
          run_lyapunov};
}

}  // namespace odecast::cli
