#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/random.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast::cli {
namespace {

int run_calibrate(const Arguments& a) {
  const std::string output = a.given("--output") ? a.text("--output") : a.positional(0);
  std::vector<std::filesystem::path> inputs = {a.positional(1)};
  if (a.given("--output")) inputs.push_back(a.positional(0));
  check_output(output, inputs);
  Model model = load_model(a.positional(0));
  const Dataset truth = read_truth(a, model, a.positional(1));
  EvaluateOptions options = evaluate_options(a, model);
  options.forecast.calibrated = false;
  const Observer observer = progress(a);
  const Evaluation all = evaluate(model, truth, options, observer);
  warn_of(a, truth, all);
  model.calibration = conformal(all);
  save_model(model, output);
  Json result = calibration_json(all, *model.calibration);
  if (a.json()) {
    result["output"] = output;
    put_json(result);
    return kDone;
  }
  say(a,
      fmt::format(
          "{} starts, {} lead times to t+{:g}: the {:g} % band of the draws holds {:.3f} ± {:.3f}.",
          all.starts, all.leads.size(), all.leads.back(), 100 * all.level, all.model.coverage.value,
          all.model.coverage.standard_error));
  say(a, calibration_text(*model.calibration));
  say(a, guarantee_text(*model.calibration));
  say(a, "Model written to " + output);
  return kDone;
}

/// That of the band of the draws.
double factor_of_draws(const CalibrationPart& part) {
  return part.bands == Bands::quantiles ? 1 : normal_quantile((1 + part.level) / 2);
}

}  // namespace

std::string calibration_text(const CalibrationPart& part) {
  const double c = factor_of_draws(part);
  const double least = part.factors.minCoeff() / c, most = part.factors.maxCoeff() / c;
  std::string text = most < 0.01
                         ? fmt::format(
                               "Bands become less than {:.2g} times as wide: the forecasts err far "
                               "less than the draws spread.",
                               most > 1e-3 ? 0.01 : 1e-3)
                         : fmt::format("Bands become {:.2g} to {:.2g} times as wide.", least, most);
  if (!part.after.empty())
    text += fmt::format(" Calibrated on one half of the starts they hold {:.3f} of the other.",
                        mean_of(part.after).value);
  return text;
}

std::string guarantee_text(const CalibrationPart& part) {
  if (part.smoothed)
    return fmt::format(
        "Of {} starts in rows that were held out, foretold by what the others taught, {:g} % of "
        "the "
        "smoothed states lie in the band, at\neach time and for each variable by itself, but for "
        "what the smoother does not know. That a forecast to come does is no\ntheorem: starts of "
        "one "
        "run err together, and the model has since learnt from all rows, so that its band is "
        "rather "
        "too wide.",
        part.starts, 100 * part.level);
  std::string text = fmt::format(
      "At each time and for each variable by itself the band holds at least {:g} % if the forecast "
      "to come is exchangeable with the {} held-out\n"
      "starts: same system, noise and kind of start.",
      100 * part.level, part.starts);
  if (part.observed)
    text +=
        " These start in single noisy rows: one that continues from the smoothed last state knows "
        "its\nstart better, and its band is rather too wide.";
  return text;
}

Json calibration_json(const CalibrationPart& part) {
  const double c = factor_of_draws(part);
  return {{"band", bands_name(part.bands)},
          {"of", part.smoothed   ? "smoothed_states"
                 : part.observed ? "observations"
                                 : "states"},
          {"starts", part.starts},
          {"level", part.level},
          {"coverage_before", mean_of(part.before).value},
          {"coverage_after_cross",
           part.after.empty() ? Json(nullptr) : Json(mean_of(part.after).value)},
          {"smallest_factor", part.factors.minCoeff() / c},
          {"largest_factor", part.factors.maxCoeff() / c}};
}

Json calibration_json(const Evaluation& evaluation, const CalibrationPart& part) {
  Json j = calibration_json(part);
  j["coverage_before_se"] = evaluation.model.coverage.standard_error;
  j["noisy_truth"] = evaluation.noisy_truth;
  j["share_of_fit"] = evaluation.share_of_fit;
  j["blown_up"] = evaluation.blown_up;
  j["effective_starts"] = evaluation.effective;
  return j;
}

Command calibrate_command() {
  auto options = evaluate_option_list();
  options.push_back({"--output", "FILE", "model to write (default: MODEL itself)", "", 'o'});
  return {
      "calibrate",
      "make bands hold what they say, from held-out data",
      "Forecasts from many rows of a held-out file and finds, for each time after the start, the "
      "factor by which the\n"
      "band must be wider or narrower to hold its level (conformal prediction). The model keeps "
      "the table; forecast applies it.",
      "odecast calibrate model.json heldout.csv --starts 200 --horizon 10 -o calibrated.json",
      {{"MODEL", "file written by odecast fit"}, {"TRUTH", "data as for fit, held out from it"}},
      with_common(std::move(options)),
      run_calibrate};
}

}  // namespace odecast::cli
