#include "odecast/scores/evaluate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast::cli {
namespace {

Json to_json(const Mean& m) { return {{"value", m.value}, {"standard_error", m.standard_error}}; }

Json to_json(const EvaluationRow& r) {
  return {{"coverage", to_json(r.coverage)},
          {"width", to_json(r.width)},
          {"interval_score", to_json(r.interval_score)},
          {"crps", to_json(r.crps)},
          {"energy", to_json(r.energy)},
          {"spread_error", r.spread_error},
          {"spread_error_standard_error", r.spread_error_se}};
}

std::string text_of(const Mean& m) {
  return m.standard_error > 1e-9 * std::abs(m.value)
             ? fmt::format("{:.3g} ± {:.2g}", m.value, m.standard_error)
             : fmt::format("{:.3g}", m.value);
}

int run_evaluate(const Arguments& a) {
  const Model model = load_model(a.positional(0));
  const Dataset truth = read_truth(a, model, a.positional(1));
  const EvaluateOptions options = evaluate_options(a, model);
  warn_of(a, model);
  const Evaluation e = [&] {
    const Observer observer = progress(a);
    return evaluate(model, truth, options, observer);
  }();
  warn_of(a, truth, e);
  if (a.json()) {
    put_json(evaluation_json(e, options));
    return kDone;
  }
  say(a, evaluation_text(e, options));
  return kDone;
}

}  // namespace

EvaluateOptions evaluate_options(const Arguments& a, const Model& model) {
  EvaluateOptions o;
  o.starts = static_cast<int>(a.whole("--starts", 2, 1'000'000));
  if (a.given("--horizon")) {
    o.horizon = a.number("--horizon");
    require_option(o.horizon > 0, "option `horizon`", a.text("--horizon"), "a number > 0",
                   "It is how far each forecast goes.");
  }
  o.leads = static_cast<int>(a.whole("--leads", 1, 100'000));
  o.forecast.draws = static_cast<int>(a.whole("--draws", 2, 1000));
  o.forecast.level = a.number("--level");
  o.forecast.bands = bands_given(a);
  o.forecast.blow_up = BlowUp::until;
  o.forecast.seed = a.seed();
  o.threads = a.threads();
  o.observations = a.given("--observations");
  needs(a, {"--noise"}, o.observations, "`observations`");
  o.forecast.noise = noise_of_observations(a, model);
  o.lyapunov = exponent(a);
  return o;
}

void warn_of(const Arguments& a, const Dataset& truth, const Evaluation& e) {
  if (e.share_of_fit > 0) warn(a, fit_in_words(e.share_of_fit, truth.source));
  if (e.noisy_truth)
    warn(a, fmt::format("the rows of {} look noisy, and bands of the state do not hold noise: give "
                        "--observations",
                        truth.source));
  if (e.blown_up > 0.05)
    warn(a, fmt::format("{:.0f} % of the trajectories blow up before t+{:g}, and what is said is "
                        "of the others: shorten --horizon, or fit again",
                        100 * e.blown_up, e.leads.back()));
  if (e.effective < 10 && e.effective < 0.5 * e.starts)
    warn(a, fmt::format("the {} starts overlap and tell as much as {:.2g} independent ones: give a "
                        "longer truth, or a smaller --horizon",
                        e.starts, e.effective));
}

std::vector<Option> evaluate_option_list() {
  const EvaluateOptions d;
  std::vector<Option> options = {
      {"--starts", "N", "rows to forecast from, evenly spaced", fmt::format("{}", d.starts)},
      {"--horizon", "T",
       "how far each forecast goes (default: a quarter of the longest\ntrajectory)", ""},
      {"--leads", "N", "times of each forecast that are scored", fmt::format("{}", d.leads)},
      {"--draws", "M", "trajectories of each forecast, up to 1000",
       fmt::format("{}", d.forecast.draws)},
      {"--level", "P", "confidence level of the band", fmt::format("{}", d.forecast.level)},
      {"--bands",
       "WHICH",
       "the band: quantiles, or mean ± c sd (default: that of forecasts with\nthe model)",
       "",
       0,
       {"sd", "quantiles"}},
      {"--observations", "",
       "the file is observed with noise: starts have it too, and\nforecasts of observations are "
       "judged",
       ""},
      {"--noise", "S,…",
       "standard deviation of that noise, one or one per variable\n(default: the model's)", ""},
      {"--lyapunov", "L", "largest exponent: gives valid times in Lyapunov times", ""},
      {"--system", "NAME", "take the exponent from the catalogue", ""}};
  for (Option& o : reading_options_beside_model()) options.push_back(o);
  options.push_back(seed_option());
  options.push_back(threads_option());
  return options;
}

Dataset read_truth(const Arguments& a, const Model& model, const std::string& path) {
  ReadOptions read = reading(a, model);
  read.variables = model.measured_variables();
  read.inputs.assign(model.inputs.names.begin(),
                     model.inputs.names.begin() + model.inputs.measured());
  return read_observations(path, read);
}

Json evaluation_json(const Evaluation& e, const EvaluateOptions& o) {
  Json coverage = Json::array(), valid = Json::array();
  for (const Mean& m : e.coverage) coverage.push_back(to_json(m));
  for (const ValidTime& v : e.valid)
    valid.push_back({{"convention", v.convention},
                     {"median", v.median},
                     {"standard_error", v.standard_error},
                     {"censored", v.censored},
                     {"lower_quartile", v.lower},
                     {"upper_quartile", v.upper}});
  return {
      {"starts", e.starts},
      {"effective_starts", e.effective},
      {"blown_up", e.blown_up},
      {"blown_up_by_lead", e.blown_up_by_lead},
      {"crps_by_variable_standard_error", std::vector<double>(e.crps_se.begin(), e.crps_se.end())},
      {"candidates", e.candidates},
      {"gaps", e.gaps},
      {"discarded", e.discarded},
      {"level", e.level},
      {"band", bands_name(e.bands)},
      {"horizon", e.horizon},
      {"noisy_truth", e.noisy_truth},
      {"share_of_fit", e.share_of_fit},
      {"model", to_json(e.model)},
      {"crps_by_variable", std::vector<double>(e.crps.begin(), e.crps.end())},
      {"climatology", to_json(e.climatology)},
      {"persistence", to_json(e.persistence)},
      {"leads", e.leads},
      {"coverage_by_lead", coverage},
      {"spread_by_lead", e.spread},
      {"error_by_lead", e.error},
      {"valid_time", valid},
      {"ranks", e.ranks},
      {"uniformity_p", e.uniformity},
      {"seed", o.forecast.seed}};
}

std::string evaluation_text(const Evaluation& e, const EvaluateOptions& o) {
  std::string text = fmt::format(
      "{} starts{}, forecasts of {:g} time units, {} lead times to "
      "t+{:g}{}{}\n\n{:<30}{:>20}{:>20}{:>20}\n",
      e.starts,
      e.effective < 0.95 * e.starts ? fmt::format(" (as {:.2g} independent ones)", e.effective)
                                    : "",
      e.horizon, e.leads.size(), e.leads.back(),
      e.gaps ? fmt::format("; not from {} rows with a gap after them", e.gaps) : "",
      e.discarded ? fmt::format("; {} starts left out: too few trajectories survive", e.discarded)
                  : "",
      "", "model", "climatology", "persistence");
  const auto line = [&](const std::string& name, auto value) {
    text += fmt::format("{:<30}{:>20}{:>20}{:>20}\n", name, value(e.model), value(e.climatology),
                        value(e.persistence));
  };
  line(fmt::format("coverage of the {:g} % band", 100 * e.level),
       [](const EvaluationRow& r) { return text_of(r.coverage); });
  line("mean width", [](const EvaluationRow& r) { return text_of(r.width); });
  line("interval score", [](const EvaluationRow& r) { return text_of(r.interval_score); });
  line("CRPS", [](const EvaluationRow& r) { return text_of(r.crps); });
  line("energy score", [](const EvaluationRow& r) { return text_of(r.energy); });
  line("spread / error", [](const EvaluationRow& r) {
    return text_of({r.spread_error, r.spread_error_se});
  });
  text +=
      "(± standard error over starts; lengths in units of each variable's sd; lower scores are "
      "better)\n";
  if (e.blown_up > 0)
    text += fmt::format(
        "{:.2g} % of the trajectories blow up; scores at each lead are of those left there\n",
        100 * e.blown_up);
  text += "\nCRPS by variable:";
  for (std::size_t i = 0; i < e.variables.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    text += fmt::format("  {}: {}", e.variables[i],
                        std::isnan(e.crps[at]) ? "constant" : text_of({e.crps[at], e.crps_se[at]}));
  }
  text += "\ncoverage by lead:";
  for (int k = 1; k <= 5; ++k) {
    const std::size_t at = e.leads.size() * static_cast<std::size_t>(k) / 5 - (k == 0 ? 0 : 1);
    if (at < e.leads.size())
      text += fmt::format("  t+{:.3g}: {:.2f}", e.leads[at], e.coverage[at].value);
  }
  text += fmt::format("\nranks of the truth among the draws, ten bins: {} (uniform: p = {:.2g})\n",
                      fmt::join(e.ranks, " "), e.uniformity);
  for (const ValidTime& v : e.valid) {
    const auto time = [&](double t) {
      return fmt::format("{}{:.3g}", t >= e.leads.back() ? "≥ " : "", t);
    };
    text +=
        fmt::format("valid time, {}: median {}{}, quartiles {} to {}", v.convention, time(v.median),
                    v.standard_error > 0 ? fmt::format(" ± {:.2g}", v.standard_error) : "",
                    time(v.lower), time(v.upper));
    if (o.lyapunov)
      text +=
          fmt::format(" ({}{:.2f} Lyapunov times)", v.censored ? "≥ " : "", v.median * *o.lyapunov);
    text += '\n';
  }
  text.pop_back();
  return text;
}

Command evaluate_command() {
  return {
      "evaluate",
      "score a model from many starts",
      "Forecasts from many rows of a file and scores them together: coverage and width of the "
      "band, proper\n"
      "scores, ranks, valid prediction times, beside climatology (a draw of the file's own states) "
      "and persistence. Starts\n"
      "are the unit of every standard error, which knows that forecasts of one trajectory overlap.",
      "odecast evaluate model.json test.csv --starts 100 --horizon 10",
      {{"MODEL", "file written by odecast fit"}, {"TRUTH", "data as for fit, held out from it"}},
      with_common(evaluate_option_list()),
      run_evaluate};
}

}  // namespace odecast::cli
