#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/random.hpp"
#include "odecast/posterior/model_file.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast::cli {
namespace {

int run(const Arguments& a) {
  Model model = load_model(a.positional(0));
  const std::string output = a.given("--output") ? a.text("--output") : a.positional(0);
  if (a.given("--output")) check_output(output, {a.positional(0), a.positional(1)});
  EvaluateOptions options = evaluate_options(a, model);
  options.forecast.calibrated = false;
  const Dataset truth = read_truth(a, model, a.positional(1));
  const Observer observer = progress(a);
  const Evaluation all = evaluate(model, truth, options, observer);
  model.calibration = conformal(all);
  const double halves = judged_coverage(all);
  save_model(model, output);
  double narrowest = 1e300, widest = 0;
  const double c = normal_quantile((1 + all.level) / 2);
  for (const double f : model.calibration->factors.reshaped()) {
    narrowest = std::min(narrowest, f / c);
    widest = std::max(widest, f / c);
  }
  if (a.json()) {
    fmt::print("{}\n", nlohmann::ordered_json{{"starts", all.starts},
                                              {"level", all.level},
                                              {"coverage_before", all.model.coverage.value},
                                              {"coverage_before_se", all.model.coverage.standard_error},
                                              {"coverage_after_cross", halves},
                                              {"smallest_factor", narrowest},
                                              {"largest_factor", widest},
                                              {"output", output}}
                           .dump(2));
    return kDone;
  }
  say(a, fmt::format("{} starts, {} lead times to t+{:g}: the {:g} % band of the draws holds {:.3f} ± {:.3f}.", all.starts,
                     all.leads.size(), all.leads.back(), 100 * all.level, all.model.coverage.value,
                     all.model.coverage.standard_error));
  say(a, fmt::format("Bands become {:.2g} to {:.2g} times as wide. Calibrated on one half of the starts they hold {:.3f} of the other.",
                     narrowest, widest, halves));
  say(a, "The guarantee holds at each time by itself, if the forecast to come is like these starts: same system, same noise.");
  say(a, "Model written to " + output);
  return kDone;
}

}  // namespace

Command calibrate_command() {
  auto options = evaluate_option_list();
  options.push_back({"--output", "FILE", "model to write (default: MODEL itself)", "", 'o'});
  return {"calibrate",
          "make bands hold what they say, from held-out data",
          "Forecasts from many rows of a held-out file and finds, for each time after the start, the factor by which the\n"
          "band must be wider or narrower to hold its level (conformal prediction). The model keeps the table; forecast applies it.",
          "odecast calibrate model.json heldout.csv --starts 200 --horizon 10 -o calibrated.json",
          {{"MODEL", "file written by odecast fit"}, {"TRUTH", "data as for fit, held out from it"}},
          with_common(std::move(options)),
          run};
}

}  // namespace odecast::cli
