#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/report/figure.hpp"

namespace odecast::cli {
namespace {

/// Of a table, or what a model kept of its data.
Dataset read_history(const std::string& path, const ReadOptions& options) {
  if (!path.ends_with(".json")) return read_observations(path, options);
  const auto kept = history_of(load_model(path));
  if (!kept)
    throw_data({"model file '" + path + "'", "no rows of its data", "a model that kept some",
                "Give the data themselves, or fit again without `keep_rows=none`."});
  return *kept;
}

int run(const Arguments& a) {
  const std::string output = a.text("--output");
  auto inputs = a.paths(0);
  const auto titles = a.words("--titles");
  require_option(titles.empty() || titles.size() == inputs.size(), "option `titles`",
                 fmt::format("{} titles", titles.size()),
                 fmt::format("one for each of {} forecasts", inputs.size()),
                 "Separate them by commas.");
  std::vector<NamedForecast> forecasts;
  TimeCount count = reading(a).time_count;  // all as the first
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    forecasts.push_back({!titles.empty()      ? titles[k]
                         : inputs.size() == 1 ? ""
                                              : inputs[k].stem().string(),
                         read_forecast(inputs[k], count)});
    if (const auto& calendar = forecasts.front().forecast.calendar) count = *calendar;
  }
  inputs.emplace_back(a.text("--truth"));
  inputs.emplace_back(a.text("--history"));
  check_output(output, inputs);
  FigureContent content;
  content.variables = a.words("--variables");
  content.title = a.text("--title");
  if (a.text("--band") == "quantiles") content.bands = Bands::quantiles;
  if (a.text("--band") == "sd") content.bands = Bands::sd;
  ReadOptions options = reading(a, forecasts.front().forecast);
  options.variables.clear();  // here they choose the panels
  if (a.given("--truth")) content.truth = read_observations(a.text("--truth"), options);
  if (a.given("--history")) content.history = read_history(a.text("--history"), options);
  content.trajectory = a.text("--trajectory");
  content.lyapunov = exponent(a);
  write_file(output, forecast_figure(forecasts, content));
  say(a, "Figure written to " + output);
  if (a.json()) put_json(Json{{"output", output}});
  return kDone;
}

}  // namespace

Command plot_command() {
  std::vector<Option> options = {
      {"--truth", "FILE", "what happened, data as for fit", ""},
      {"--history", "FILE",
       "what was observed before: data as for fit, or the model (.json),\nwhich keeps the last "
       "rows",
       ""},
      {"--trajectory", "ID", "which trajectory of it (default: the last)", ""},
      {"--variables", "A,B,…", "one panel each (default: all)", ""},
      {"--band",
       "WHICH",
       "the band to draw (default: the forecast's own, lower and upper)",
       "",
       0,
       {"sd", "quantiles"}},
      {"--lyapunov", "L", "largest exponent, of odecast lyapunov: mark Lyapunov times", ""},
      {"--system", "NAME", "the same with the exponent of a catalogue system", ""},
      {"--title", "TEXT", "above the figure", ""},
      {"--titles", "A,B,…", "above each forecast (default: the files' names, where several)", ""},
      {"--output", "FILE", "SVG to write", "forecast.svg", 'o'},
  };
  for (Option& o : reading_options())
    if (o.name != "--variables") options.push_back(o);
  return {
      "plot",
      "draw a forecast with its band as SVG",
      "Draws mean and band of forecasts, after what was observed and over the truth where these "
      "are\ngiven, as an SVG figure.",
      "odecast plot forecast.csv --history model.json --truth test.csv -o forecast.svg\n"
      "odecast plot ours.csv theirs.csv --truth test.csv --variables x -o both.svg",
      {{"FORECAST", "files written by odecast forecast, one below the other", true, true}},
      with_common(std::move(options)),
      run};
}

}  // namespace odecast::cli
