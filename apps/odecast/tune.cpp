#include "odecast/tuning/tune.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/text.hpp"
#include "odecast/core/work.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/report/figure.hpp"

namespace odecast::cli {
namespace {

/// An option of `fit` that takes a list here, and the posteriors that it is for.
struct Tried {
  const char* option;
  std::vector<std::string> posteriors;
};
const Tried kTried[] = {
    {"--degree", {"dropout", "trajectory", "regression", "bootstrap", "ensemble"}},
    {"--hidden", {"dropout", "ensemble"}},
    {"--dropout", {"dropout"}},
    {"--derivative", {"dropout", "ensemble"}}};

/// Terms beside powers, for the trajectory posterior: it is tried with and without them.
constexpr const char* kOffered[] = {"--functions", "--candidates"};

/// Options of `fit` that all candidates share; a folder of work is for one value of each.
constexpr const char* kShared[] = {"--kind",   "--between", "--gap", "--noise",
                                   "--inputs", "--time",    "--seed"};

std::string initial(const Command& command, std::string_view option) {
  for (const Option& o : command.options)
    if (o.name == option) return o.initial;
  return {};
}

std::vector<Candidate> candidates(const Arguments& a) {
  static const Command fit = fit_command();
  const std::vector<std::string> posteriors = a.words("--posterior");
  needs(a, {kOffered[0], kOffered[1]},
        std::find(posteriors.begin(), posteriors.end(), "trajectory") != posteriors.end(),
        "`posterior=trajectory`");
  std::vector<std::vector<std::string>> grid;
  for (const std::string& posterior : posteriors) {
    if (posterior == "trajectory" && a.text("--kind") == "map" && !a.given("--posterior"))
      continue;  // it has no maps
    std::vector<std::vector<std::string>> of_this = {{"--posterior", posterior}};
    if (posterior == "ensemble") of_this[0].insert(of_this[0].end(), {"--trainer", "adam"});
    for (const Tried& tried : kTried) {
      if (std::find(tried.posteriors.begin(), tried.posteriors.end(), posterior) ==
          tried.posteriors.end())
        continue;
      if (a.text("--kind") == "map" && std::string_view(tried.option) == "--derivative") continue;
      std::vector<std::vector<std::string>> longer;
      for (const auto& words : of_this)
        for (const std::string& value : a.words(tried.option)) {
          longer.push_back(words);
          if (value != initial(fit, tried.option))
            longer.back().insert(longer.back().end(), {tried.option, value});
        }
      of_this = std::move(longer);
    }
    if (posterior == "trajectory") {  // without functions, and with those that are offered
      std::vector<std::string> offered;
      for (const char* option : kOffered)
        if (a.given(option)) offered.push_back(fmt::format("{}={}", option, a.text(option)));
      const auto without = offered.empty() ? 0 : of_this.size();
      for (std::size_t k = 0; k < without; ++k) {
        of_this.push_back(of_this[k]);
        of_this.back().insert(of_this.back().end(), offered.begin(), offered.end());
      }
    }
    grid.insert(grid.end(), of_this.begin(), of_this.end());
  }
  if (a.given("--random")) {  // Fisher and Yates, as many as are wanted
    const auto wanted =
        std::min(grid.size(), static_cast<std::size_t>(a.whole("--random", 1, 1'000'000)));
    Stream stream(a.seed(), Purpose::evaluation, 0);
    for (std::size_t i = 0; i < wanted; ++i)
      std::swap(grid[i], grid[i + static_cast<std::size_t>(stream.uniform() *
                                                           static_cast<double>(grid.size() - i))]);
    grid.resize(wanted);
  }
  std::vector<Candidate> result;
  for (const auto& words : grid) {
    std::vector<std::string> line = words;
    for (const char* option : kShared)
      if (a.given(option)) line.push_back(fmt::format("{}={}", option, a.text(option)));
    line.push_back("data");
    std::string said;
    for (const std::string& word : words) said += (said.empty() ? "" : " ") + quoted(word);
    result.push_back({said, fit_options(Arguments(fit, line))});
  }
  return result;
}

std::string table_csv(const Tuning& t, const std::vector<Candidate>& all,
                      const std::vector<std::string>& variables) {
  std::string text =
      "rank,settings,energy,energy_se,behind_best,behind_best_se,coverage,coverage_se,without_"
      "forecast";
  for (const auto& v : variables) text += ',' + csv_cell("crps_" + v);
  text += '\n';
  for (std::size_t k = 0; k < t.rows.size(); ++k) {
    const TuneRow& r = t.rows[k];
    text += fmt::format("{},{}", k + 1, csv_cell(all[r.candidate].words));
    if (!r.fitted) {
      text += std::string(7 + variables.size(), ',') + "\n";
      continue;
    }
    text += fmt::format(",{},{},{},{},{},{},{}", r.energy.value, r.energy.standard_error,
                        r.behind.value, r.behind.standard_error, r.coverage.value,
                        r.coverage.standard_error, r.failed);
    for (const double c : r.crps) text += fmt::format(",{}", c);
    text += '\n';
  }
  return text;
}

}  // namespace

Tuned tune(const Arguments& a, const std::function<Dataset()>& read,
           const std::filesystem::path& folder, const Observer& observer) {
  Tuned made;
  TuneOptions& o = made.options;
  o.blocks = static_cast<int>(a.whole("--blocks", 2, 1000));
  o.starts = static_cast<int>(a.whole("--starts", 4, 1'000'000));
  o.leads = static_cast<int>(a.whole("--leads", 1, 100'000));
  o.draws = static_cast<int>(a.whole("--draws", 2, 1000));
  if (a.given("--horizon")) o.horizon = a.number("--horizon");
  require_option(!a.given("--horizon") || o.horizon > 0, "option `horizon`", a.text("--horizon"),
                 "a number > 0", "It is how far each forecast goes, in the units of the times.");
  if (a.given("--noise")) o.noise = to_vector(a.numbers("--noise"));
  o.seed = a.seed();
  o.threads = a.threads();
  o.shared = "version=" ODECAST_VERSION;
  for (const char* option : kShared) o.shared += fmt::format(" {}={}", option, a.text(option));
  made.candidates = candidates(a);
  const Dataset data = read();
  made.variables = data.variables;
  if (o.noise && o.noise->size() != 1 && o.noise->size() != data.dimension())
    throw_usage({"option `noise`", fmt::format("{} values", o.noise->size()),
                 fmt::format("1 or {}", data.dimension()), "Give one, or one per variable."});
  FolderClaim claim;
  made.tuning = tune(data, made.candidates, folder, o, observer, &claim);
  FitOptions chosen = made.candidates[made.tuning.rows[0].candidate].options;
  chosen.threads = o.threads;
  made.best = fit(data, chosen, observer);
  write_files({{folder / "model.json", checked_model_text(made.best.model)},
               {folder / "table.csv", table_csv(made.tuning, made.candidates, data.variables)},
               {folder / "tuning.svg", tuning_figure(made.tuning)}});
  return made;
}

Json tuning_json(const Tuned& made) {
  auto rows = Json::array();
  for (const TuneRow& r : made.tuning.rows) {
    Json row{{"settings", made.candidates[r.candidate].words}};
    if (!r.fitted)
      row["failed"] = true;
    else
      row.update({{"energy", r.energy.value},
                  {"energy_se", r.energy.standard_error},
                  {"behind_best", r.behind.value},
                  {"behind_best_se", r.behind.standard_error},
                  {"coverage", r.coverage.value},
                  {"crps", std::vector<double>(r.crps.begin(), r.crps.end())},
                  {"without_forecast", r.failed}});
    rows.push_back(std::move(row));
  }
  return {{"rows", rows},
          {"climatology", made.tuning.climatology},
          {"horizon", made.tuning.horizon},
          {"starts", made.tuning.starts},
          {"seed", made.options.seed},
          {"units", made.tuning.units},
          {"units_found", made.tuning.found}};
}

namespace {

int run_tune(const Arguments& a) {
  const auto inputs = a.paths(0);
  const std::filesystem::path folder = a.text("--output");
  keeps_units(folder);
  const Tuned made = [&] {
    const Observer observer = progress(a);
    return tune(
        a, [&] { return read_observations(inputs, fit_columns(a)); }, folder, observer);
  }();
  const auto& [result, all, o, variables, best] = made;
  const std::string model = (folder / "model.json").string();
  std::string command = "odecast fit";
  for (const auto& path : inputs) command += " " + quoted(path.string());
  command += " " + all[result.rows[0].candidate].words;
  for (const char* option : kShared)
    if (a.given(option)) command += fmt::format(" {} {}", option, quoted(a.text(option)));
  command += " -o " + quoted(model);
  if (a.json()) {
    Json json = tuning_json(made);
    json["command"] = command;
    json["output"] = folder.string();
    put_json(json);
    return kDone;
  }
  std::string noise;
  for (std::size_t i = 0; i < variables.size(); ++i)
    noise += fmt::format("{}{} {:.2g}", i ? ", " : "", variables[i],
                         result.noise[static_cast<Eigen::Index>(i)]);
  say(a, fmt::format("{} settings, each fitted {} times without a block and judged there: {} "
                     "starts, horizon {:.4g}, noise {}\n",
                     all.size(), o.blocks, result.starts, result.horizon, noise));
  say(a, fmt::format("{:>18} {:>19} {:>9}  {}", "energy score", "behind the best", "coverage",
                     "settings"));
  constexpr std::size_t shown = 20;
  for (std::size_t k = 0; k < std::min(shown, result.rows.size()); ++k) {
    const TuneRow& r = result.rows[k];
    if (!r.fitted)
      say(a, fmt::format("{:>18} {:>19} {:>9}  {}", "cannot be learnt", "", "",
                         all[r.candidate].words));
    else
      say(a,
          fmt::format(
              "{:>18} {:>19} {:>9.3f}  {}{}",
              fmt::format("{:.4g} ± {:.2g}", r.energy.value, r.energy.standard_error),
              k == 0 ? "" : fmt::format("{:.4g} ± {:.2g}", r.behind.value, r.behind.standard_error),
              r.coverage.value, all[r.candidate].words,
              r.failed ? fmt::format("  ({} starts without a forecast)", r.failed) : ""));
  }
  if (result.rows.size() > shown)
    say(a, fmt::format("… {} more in {}", result.rows.size() - shown,
                       (folder / "table.csv").string()));
  say(a, fmt::format("{:>18}  {:>18} {:>9}  climatology", fmt::format("{:.4g}", result.climatology),
                     "", ""));
  say(a,
      "(± standard error over starts; in units of each variable's sd; lower scores are better)\n");
  say(a, "Best, fitted to all rows:\n  " + command);
  say(a, fmt::format("Model, table and picture in {}", folder.string()));
  return kDone;
}

}  // namespace

Command tune_command() {
  const TuneOptions d;
  std::vector<Option> options = {
      {"--posterior", "A,B,…", "to try, as all lists here in every combination that fits",
       "trajectory,regression,dropout"},
      {"--degree", "P,…", "degrees", "2"},
      {"--hidden", "K,…", "hidden units, for dropout", "auto"},
      {"--dropout", "R,…", "dropout rates", "0.05,0.1,0.25,0.5"},
      {"--derivative", "HOW,…", "derivatives, for dropout; savgol and spline smooth", "auto"},
      {"--functions", "WORD,…", "as for fit: trajectory is tried with them as well as without", ""},
      {"--candidates", "TERM,…", "as for fit, likewise", ""},
      {"--random", "N", "only so many combinations, chosen at random (default: all)", ""},
      {"--blocks", "N", "parts of the data, each held out once", fmt::format("{}", d.blocks)},
      {"--starts", "N", "forecasts that judge each setting, over all blocks",
       fmt::format("{}", d.starts)},
      {"--horizon", "T", "how far each goes (default: a quarter of a block)", ""},
      {"--leads", "N", "times of each that are scored", fmt::format("{}", d.leads)},
      {"--draws", "M", "trajectories of each, up to 1000", fmt::format("{}", d.draws)},
      {"--noise", "S,…",
       "sd of the observation noise, one or one per variable\n(default: estimated)", ""},
      {"--kind", "WHAT", "flow or map, as for fit", "flow", 0, {"flow", "map"}},
      {"--between", "HOW", "inputs between rows, as for fit", "linear", 0, {"linear", "held"}},
      {"--gap", "T", "as for fit", ""}};
  for (Option& o : reading_options()) options.push_back(o);
  options.push_back(seed_option());
  options.push_back(threads_option());
  options.push_back(
      {"--output", "FOLDER", "for the model, table, picture and the units of work", "tuning", 'o'});
  return {"tune",
          "choose settings by forecasts of held-out blocks",
          "Fits each combination of settings to the data without one block and forecasts that "
          "block from many rows; the energy\n"
          "score of these forecasts, a proper score of whole states, ranks the settings. "
          "Interrupted work goes on where it\n"
          "stopped, and further settings are added to what is there.",
          "odecast tune data.csv --dropout 0.05,0.1,0.25 --degree 2,3 -o tuning",
          {{"DATA", "as for fit", true, true}},
          with_common(std::move(options)),
          run_tune};
}

}  // namespace odecast::cli
