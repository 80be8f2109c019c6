#include "odecast/scores/attractor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast::cli {
namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

Json to_json(const AttractorDistance& d) {
  return {{"state_space_divergence", number(d.divergence)},
          {"spectrum_distance", number(d.spectrum)}};
}

std::string text_of(double value, double sd) {
  if (!std::isfinite(value)) return "–";
  return std::isfinite(sd) ? fmt::format("{:.3g} ± {:.2g}", value, sd)
                           : fmt::format("{:.3g}", value);
}

}  // namespace

AttractorOptions attractor_options(const Arguments& a, const Model& model) {
  AttractorOptions o;
  o.draws = static_cast<int>(a.whole("--draws", 0, 100'000));
  o.pieces = static_cast<int>(a.whole("--pieces", 2, 100'000));
  o.bins = a.text("--bins") == "auto" ? 0 : static_cast<int>(a.whole("--bins", 2, 1000));
  o.smoothing = a.number("--smoothing");
  if (a.given("--noise"))
    o.noise = to_vector(a.numbers("--noise"));
  else if (model.noise.size() > 0)
    o.noise = model.noise;
  if (o.noise && o.noise->size() == 1) o.noise = Vector::Constant(model.dimension(), (*o.noise)[0]);
  o.seed = a.seed();
  o.threads = a.threads();
  return o;
}

const Trajectory& longest(const Dataset& data) {
  return *std::max_element(data.trajectories.begin(), data.trajectories.end(),
                           [](const auto& x, const auto& y) { return x.rows() < y.rows(); });
}

Json attractor_json(const AttractorComparison& c, const AttractorOptions& o) {
  return {{"status", status_name(c.status)},
          {"rows", c.rows},
          {"spectrum_rows", c.spectrum_rows},
          {"smoothing", c.smoothing},
          {"pieces", o.pieces},
          {"bins", c.bins},
          {"halves", to_json(c.halves)},
          {"model", to_json(c.model)},
          {"model_sd", to_json(c.model_sd)},
          {"draws",
           {{"tried", o.draws},
            {"bounded", c.bounded},
            {"mean", to_json(c.draws)},
            {"sd", to_json(c.draws_sd)}}},
          {"seed", o.seed}};
}

std::string attractor_complaint(const AttractorComparison& c) {
  return fmt::format(
      "the mean field's run does not stay bounded ({}): it has no attractor here. Fit again, or "
      "look at draws.",
      status_name(c.status));
}

namespace {

int run_attractor(const Arguments& a) {
  const Model model = load_model(a.positional(0));
  warn_of(a, model);
  const AttractorOptions o = attractor_options(a, model);
  const Dataset data = read_truth(a, model, a.positional(1));
  const Trajectory& observed = longest(data);
  const AttractorComparison c = [&] {
    const Observer observer = progress(a);
    return compare_attractors(model, observed, o, observer);
  }();
  const bool bounded = c.status == SolveStatus::finished;
  if (a.json()) {
    put_json(attractor_json(c, o));
  } else {
    std::string text = fmt::format(
        "{} pieces of {} rows of the model's run against the halves of "
        "{}{}\n\n{:<34}{:>24}{:>24}\n",
        o.pieces, c.rows, data.source, observed.id.empty() ? "" : ", trajectory " + observed.id, "",
        "state-space divergence", "distance of spectra");
    const auto line = [&](const std::string& name, const AttractorDistance& d,
                          const AttractorDistance& sd) {
      text += fmt::format("{:<34}{:>24}{:>24}\n", name, text_of(d.divergence, sd.divergence),
                          text_of(d.spectrum, sd.spectrum));
    };
    if (bounded) line("mean field (± sd over pieces)", c.model, c.model_sd);
    if (o.draws > 0)
      line(fmt::format("{} of {} draws bounded (± sd)", c.bounded, o.draws), c.draws, c.draws_sd);
    line("the halves against each other", c.halves, {NAN, NAN});
    text += "0 for equal; what the halves have is what sampling alone gives";
    if (!c.even)
      text += "\nthe rows are not evenly spaced: no spectra";
    else if (c.spectrum_rows == 0)
      text += fmt::format("\nspectra need {} rows of data: none here", 2 * kSpectrumRows);
    else
      text += fmt::format("\nspectra of {} rows, smoothed over {:.3g} frequencies (sd)",
                          c.spectrum_rows, c.smoothing);
    say(a, text);
  }
  if (bounded) return kDone;
  complain(attractor_complaint(c));
  return kNotTrusted;
}

}  // namespace

Command attractor_command() {
  const AttractorOptions d;
  std::vector<Option> options = {
      {"--draws", "N", "draws of the model to run beside its mean field",
       fmt::format("{}", d.draws)},
      {"--pieces", "N", "length of each run, in halves of the data", fmt::format("{}", d.pieces)},
      {"--bins", "N",
       "boxes along each variable; auto: 30, or fewer for few rows (more\nthan five variables: "
       "mixtures of Gaussians)",
       "auto"},
      {"--smoothing", "F", "of spectra: sd in frequencies, at most a twentieth of them",
       fmt::format("{:g}", d.smoothing)},
      {"--noise", "S,…",
       "sd of the noise that is added to the runs as the data have it,\none or one per variable "
       "(default: the model's; 0 for none)",
       ""}};
  for (Option& o : reading_options_beside_model()) options.push_back(o);
  options.push_back(seed_option());
  options.push_back(threads_option());
  return {"attractor",
          "long runs of a model against data: where it goes, its spectra",
          "Forecasts of chaos part from the truth; a model that is right still spends its time in "
          "the same places and\n"
          "has the same spectrum. Compares long runs of the mean field and of draws with the "
          "data's longest trajectory:\n"
          "the divergence of where they spend their time (Koppe et al. 2019) and the Hellinger "
          "distance of power spectra\n"
          "(Mikhaeil et al. 2022), beside the same distances between the two halves of the data.",
          "odecast attractor model.json data.csv --draws 20",
          {{"MODEL", "file written by odecast fit"}, {"DATA", "data as for fit"}},
          with_common(options),
          run_attractor};
}

}  // namespace odecast::cli
