#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/posterior/equations.hpp"
#include "odecast/posterior/model_file.hpp"
#include "odecast/scores/lyapunov.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast::cli {
namespace {

std::vector<double> to_list(const Vector& v) { return {v.begin(), v.end()}; }

/// Of the times that a model's field or map is followed in.
double unit_of_time(const Model& model) { return model.kind == ModelKind::map ? model.step : model.scaling.time; }

/// Spectra of the draws of a model that stay bounded, in the user's unit of time.
struct OfDraws {
  std::vector<Vector> exponents;
  long tried = 0;
};
OfDraws of_draws(const Model& model, const Vector& start, const LyapunovOptions& options, long draws,
                 const Arguments& a, const Observer& observer) {
  const auto posterior = make_posterior(model);
  std::vector<LyapunovSpectrum> spectra(static_cast<std::size_t>(draws));
  parallel_for(
      a.threads(), spectra.size(),
      [&](std::size_t k) {
        spectra[k] = lyapunov_spectrum(posterior->draw(a.seed(), k), start, options);
      },
      [&](std::size_t begun) { observer("following", static_cast<double>(begun) / static_cast<double>(draws)); });
  OfDraws result{{}, draws};
  for (const LyapunovSpectrum& s : spectra)
    if (s.status == SolveStatus::finished) result.exponents.push_back(s.exponents / unit_of_time(model));
  return result;
}

int run(const Arguments& a) {
  const std::string name = a.positional(0);
  const bool is_model = std::filesystem::exists(name) || name.ends_with(".json");
  LyapunovOptions options;
  needs(a, {"--draws", "--seed"}, is_model, "a model");

  std::optional<Model> model;
  std::optional<System> system;
  Vector start;
  if (is_model) {
    model = load_model(name);
    warn_of(a, *model);
    start = a.given("--init") ? to_vector(a.numbers("--init")) : model->last_state;
  } else {
    system = find_system(name);
    start = a.given("--init") ? to_vector(a.numbers("--init")) : system->start;
  }
  if ((model && model->inputs.size() > 0) || (system && system->drive))
    throw_usage({"lyapunov", "a system that is driven from outside", "one without inputs",
                 "The exponents of a driven system depend on what drives it."});
  options.map = model ? model->kind == ModelKind::map : system->map;
  needs(a, {"--interval"}, !options.map, "a flow: a map is factored at every iteration");
  const auto dimension = static_cast<Eigen::Index>(is_model ? model->dimension() : system->field.dimension());
  if (start.size() != dimension)
    throw_usage({"option --init", fmt::format("{} values", start.size()), fmt::format("{}", dimension),
                 "Give one value per variable, separated by commas."});

  const auto posterior = is_model ? make_posterior(*model) : nullptr;
  // A model is followed in its own units, and where nothing is given for as long as its motion is quick.
  const double unit = is_model ? unit_of_time(*model) : 1;
  if (is_model && !options.map) {
    const double quick = time_scale(posterior->mean_field(), model->scaling.to_model(start), model->step / unit);
    options = {.until = 16'000 * quick, .transient = 800 * quick, .interval = 2 * quick};
  }
  if (a.given("--until")) options.until = a.number("--until") / unit;
  if (a.given("--transient")) options.transient = a.number("--transient") / unit;
  if (a.given("--interval")) options.interval = a.number("--interval") / unit;
  const Observer observer = progress(a);
  Json json{{"of", name}};
  LyapunovSpectrum s;
  if (is_model) {
    const Vector from = model->scaling.to_model(start);
    s = lyapunov_spectrum(posterior->mean_field(), from, options, observer);
    s.exponents /= unit;
    s.standard_error /= unit;
    s.divergence /= unit;
    s.time *= unit;
    if (const long draws = a.whole("--draws", 0, 100000); draws > 0) {
      const OfDraws all = of_draws(*model, from, options, draws, a, observer);
      Vector mean = Vector::Zero(dimension), sd = Vector::Zero(dimension);
      const auto kept = static_cast<double>(all.exponents.size());
      for (const Vector& e : all.exponents) mean += e / kept;
      for (const Vector& e : all.exponents) sd += (e - mean).cwiseAbs2() / std::max(1.0, kept - 1);
      json["draws"] = {{"tried", all.tried}, {"bounded", all.exponents.size()}, {"mean", to_list(mean)},
                       {"sd", to_list(sd.cwiseSqrt())}};
    }
  } else {
    s = lyapunov_spectrum(system->field, start, options, observer);
  }
  json["status"] = status_name(s.status);
  if (s.status == SolveStatus::finished) {
    json["exponents"] = to_list(s.exponents);
    json["standard_error"] = to_list(s.standard_error);
    json["divergence"] = s.divergence;
    json["time"] = s.time;
    if (system && system->lyapunov) json["catalogue"] = *system->lyapunov;
  }
  if (a.json()) {
    fmt::print("{}\n", json.dump(2));
  } else if (s.status == SolveStatus::finished && !a.quiet()) {
    fmt::print("exponents of {}{}, over {:.6g} time units\n", name, is_model ? " (mean field)" : "", s.time);
    for (Eigen::Index i = 0; i < dimension; ++i) {
      const auto [mean, error] = rounded_coefficient(s.exponents[i], s.standard_error[i]);
      fmt::print("  {}{} ± {}\n", s.exponents[i] < 0 ? "" : "+", mean, error);
    }
    fmt::print("sum {:+.6g}, mean divergence {:+.6g}\n", s.exponents.sum(), s.divergence);
    if (s.exponents[0] > 2 * s.standard_error[0])
      fmt::print("one Lyapunov time is {:.3g}: errors grow e-fold in it\n", 1 / s.exponents[0]);
    if (json.contains("catalogue")) fmt::print("the catalogue has {:+.4f} for the largest\n", *system->lyapunov);
    if (json.contains("draws")) {
      const auto& d = json["draws"];
      fmt::print("draws of the model: {} of {} stay bounded; largest exponent {:+.4f}, sd over draws {:.4f}\n",
                 d["bounded"].get<long>(), d["tried"].get<long>(), d["mean"][0].get<double>(),
                 d["sd"][0].get<double>());
    }
  }
  if (s.status == SolveStatus::finished) return kDone;
  complain(fmt::format("the orbit does not stay bounded ({}): no exponents. Choose another --init or model.",
                       status_name(s.status)));
  return kNotTrusted;
}

}  // namespace

Command lyapunov_command() {
  return {"lyapunov",
          "growth rates of small errors, of a system or a model",
          "Follows an orbit and the displacements along it and gives the Lyapunov exponents with their standard\n"
          "errors. For a model: of its mean field, and of draws.",
          "odecast lyapunov Lorenz\n  odecast lyapunov model.json --draws 50",
          {{"SYSTEM|MODEL", "name in the catalogue, or file written by odecast fit"}},
          with_common({{"--init", "A,B,…", "start (default: the catalogue's, or the last observation)", ""},
                       {"--until", "T", "time to average over (default: 2000; of a model 16000 times\nthe time that its motion takes for a radian)", ""},
                       {"--transient", "T", "time to leave out first (default: 100; 800 such times)", ""},
                       {"--interval", "T", "time between factorisations (default: 0.5; 2 such times)", ""},
                       {"--draws", "N", "draws of a model to follow", "0"},
                       seed_option(),
                       threads_option()}),
          run};
}

}  // namespace odecast::cli
