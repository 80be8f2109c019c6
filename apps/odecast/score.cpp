#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/model/model_file.hpp"
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

std::string table(const Scores& s, const std::optional<Calendar>& calendar) {
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
  text += "valid prediction time " + duration_text(calendar, s.vpt_time, 3);
  if (s.vpt_lyapunov_times) text += fmt::format(" = {:.2f} Lyapunov times", *s.vpt_lyapunov_times);
  const auto time = [&](double t) {
    return calendar ? time_text(*calendar, t) : fmt::format("{:g}", t);
  };
  text += fmt::format(" (error of the mean below {:g} sd{}), {} times in ({}, {}]", s.vpt_threshold,
                      s.vpt_ends_by_noise ? "; the noise of one row ends it" : "", s.points,
                      time(s.from), time(s.until));
  return s.trajectory.empty() ? text : text + " of trajectory '" + s.trajectory + "'";
}

}  // namespace

ScoreOptions score_options(const Arguments& a) {
  ScoreOptions options;
  for (const ScoredBand band : {ScoredBand::sd, ScoredBand::quantiles, ScoredBand::observed})
    if (a.text("--band") == band_name(band)) options.band = band;
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
      {"measured", s.measured},
      {"trajectory", s.trajectory},
      {"points", s.points},
      {"from", s.from},
      {"until", s.until}};
}

namespace {

int run_score(const Arguments& a) {
  const ScoreOptions options = score_options(a);
  const Forecast forecast = read_forecast(a.positional(0), reading(a).time_count);
  const Dataset truth = read_observations(a.positional(1), reading(a, forecast));
  const Scores s = score(forecast, truth, options);
  Json j = score_json(s);
  if (a.given("--model")) {
    const double share = share_of_fit(load_model(a.text("--model")), truth);
    j["share_of_fit"] = share;
    if (share > 0) warn(a, fit_in_words(share, truth.source));
  }
  if (a.json())
    put_json(j);
  else
    say(a, table(s, forecast.calendar) +
               (s.measured ? "\nThe truth looks measured, with noise: it is judged by the "
                             "band of an observation (--band sd: of the state)."
                           : ""));
  return kDone;
}

}  // namespace

Command score_command() {
  std::vector<Option> options = {
      {"--band",
       "WHICH",
       "the band to judge: of the state, mean ± c sd or quantiles, or of an\nobservation; auto: "
       "the last where the forecast has it and the truth\nlooks noisy",
       "auto",
       0,
       {"auto", "sd", "quantiles", "observed"}},
      {"--threshold", "E", "of the valid prediction time, in sd of the truth", "0.4"},
      {"--lyapunov", "L", "largest exponent: gives that time in Lyapunov times", ""},
      {"--system", "NAME", "take the exponent from the catalogue", ""},
      {"--trajectory", "ID", "which trajectory of the truth (default: the last)", ""},
      {"--model", "FILE",
       "that of the forecast: says where the truth has rows that it was\nfitted to", ""}};
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
