#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/scores/evaluate.hpp"
#include "odecast/scores/scores.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast::cli {
namespace {

Json row_json(const Scores& s, const ScoreRow& row) {
  Json j;
  for (std::size_t i = 0; i < s.variables.size(); ++i)
    j[s.variables[i]] = row.variables[i];  // null: relative to a constant
  j["all"] = row.all;
  return j;
}

std::string table(const Scores& s) {
  const std::vector<std::pair<std::string, const ScoreRow*>> rows = {
      {fmt::format("coverage of the {:g} % band", 100 * s.level), &s.coverage},
      {"mean width of the band", &s.width},
      {"CRPS (Gaussian)", &s.crps},
      {"rmse of the mean", &s.rmse},
      {"rmse / sd of the truth", &s.nrmse}};
  std::string text = fmt::format("{:<28}", "");
  for (const auto& v : s.variables) text += fmt::format(" {:>9}", v);
  text += fmt::format(" {:>9}\n", "all");
  for (const auto& [name, row] : rows) {
    text += fmt::format("{:<28}", name);
    for (const double x : row->variables)  // only that of a truth that does not move is none
      text += std::isnan(x) ? fmt::format(" {:>9}", "constant") : fmt::format(" {:>9.3g}", x);
    text += fmt::format(" {:>9.3g}\n", row->all);
  }
  text += fmt::format("valid prediction time {:.3g}", s.vpt_time);
  if (s.vpt_lyapunov_times) text += fmt::format(" = {:.2f} Lyapunov times", *s.vpt_lyapunov_times);
  text += fmt::format(" (error of the mean below {:g} sd), {} times in ({:g}, {:g}]",
                      s.vpt_threshold, s.points, s.from, s.until);
  return s.trajectory.empty() ? text : text + " of trajectory '" + s.trajectory + "'";
}

}  // namespace

ScoreOptions score_options(const Arguments& a) {
  ScoreOptions options;
  options.band = a.text("--band") == "quantiles"  ? ScoredBand::quantiles
                 : a.text("--band") == "observed" ? ScoredBand::observed
                                                  : ScoredBand::sd;
  options.threshold = a.number("--threshold");
  options.trajectory = a.text("--trajectory");
  if (a.given("--lyapunov")) options.lyapunov = a.number("--lyapunov");
  if (a.given("--system")) {
    const auto exponent = find_system(a.text("--system")).lyapunov;
    if (exponent && *exponent > 0) options.lyapunov = *exponent;
  }
  return options;
}

Json score_json(const Scores& s) {
  return Json{
      {"coverage", row_json(s, s.coverage)},
      {"width", row_json(s, s.width)},
      {"crps", row_json(s, s.crps)},
      {"rmse", row_json(s, s.rmse)},
      {"nrmse", row_json(s, s.nrmse)},
      {"vpt",
       {{"time", s.vpt_time},
        {"lyapunov_times", s.vpt_lyapunov_times ? Json(*s.vpt_lyapunov_times) : Json(nullptr)},
        {"threshold", s.vpt_threshold}}},
      {"level", s.level},
      {"band", band_name(s.band)},
      {"trajectory", s.trajectory},
      {"points", s.points},
      {"from", s.from},
      {"until", s.until}};
}

namespace {

/// Those columns of the data, which has them.
Dataset columns(const Dataset& data, const std::vector<std::string>& names) {
  Dataset chosen{names, data.trajectories};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto from =
        std::find(data.variables.begin(), data.variables.end(), names[i]) - data.variables.begin();
    for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
      chosen.trajectories[k].inputs = {};
      chosen.trajectories[k].states.col(static_cast<Eigen::Index>(i)) =
          data.trajectories[k].states.col(from);
    }
  }
  for (Trajectory& t : chosen.trajectories)
    t.states.conservativeResize(Eigen::NoChange, static_cast<Eigen::Index>(names.size()));
  return chosen;
}

int run_score(const Arguments& a) {
  const ScoreOptions options = score_options(a);
  const Forecast forecast = read_forecast(a.positional(0));
  const Dataset truth = read_observations(a.positional(1), reading(a));
  const Scores s = score(forecast, truth, options);
  if (options.band == ScoredBand::sd && forecast.observed_upper.size() > 0) {
    // mean ± c (sd² + σ²)^½ is widest over mean ± c sd where it begins; c is about 2.
    const Vector wide = (forecast.observed_upper - forecast.observed_lower).row(0),
                 narrow = (forecast.upper - forecast.lower).row(0);
    if (looks_noisy(columns(truth, forecast.variables),
                    (wide.cwiseAbs2() - narrow.cwiseAbs2()).cwiseMax(0).cwiseSqrt() / 4))
      warn(a, fmt::format("the rows of {} look noisy, and bands of the state do not hold noise: "
                          "give --band observed",
                          truth.source));
  }
  if (a.json())
    put_json(score_json(s));
  else
    say(a, table(s));
  return kDone;
}

}  // namespace

Command score_command() {
  std::vector<Option> options = {
      {"--band",
       "WHICH",
       "the band to judge; observed: that of an observation, where the\ntruth is a noisy one "
       "(forecast --observations)",
       "sd",
       0,
       {"sd", "quantiles", "observed"}},
      {"--threshold", "E", "of the valid prediction time, in sd of the truth", "0.4"},
      {"--lyapunov", "L", "largest exponent: gives that time in Lyapunov times", ""},
      {"--system", "NAME", "take the exponent from the catalogue", ""},
      {"--trajectory", "ID", "which trajectory of the truth (default: the last)", ""}};
  for (Option& o : reading_options()) options.push_back(o);
  return {
      "score",
      "compare a forecast with what happened",
      "Compares a forecast with the truth at the times both have: coverage and width of the band,\n"
      "CRPS, errors of the mean, valid prediction time. The start is given and does not count.",
      "odecast score forecast.csv test.csv --system SprottB",
      {{"FORECAST", "file written by odecast forecast"}, {"TRUTH", "data as for fit"}},
      with_common(std::move(options)),
      run_score};
}

}  // namespace odecast::cli
