#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/files.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/report/figure.hpp"

namespace odecast::cli {
namespace {

int run(const Arguments& a) {
  const std::string input = a.positional(0), output = a.text("--output");
  check_output(output, {input, a.text("--truth")});
  const Forecast forecast = read_forecast(input);
  FigureContent content;
  content.variables = a.words("--variables");
  content.title = a.text("--title");
  content.quantiles = a.text("--band") == "quantiles";
  if (a.given("--truth")) {
    ReadOptions options = reading(a);
    options.variables.clear();  // here they choose the panels
    content.truth = read_observations(a.text("--truth"), options);
  }
  content.trajectory = a.text("--trajectory");
  content.lyapunov = exponent(a);
  write_file(output, forecast_figure(forecast, content));
  say(a, "Figure written to " + output);
  if (a.json()) put_json(Json{{"output", output}});
  return kDone;
}

}  // namespace

Command plot_command() {
  std::vector<Option> options = {
      {"--truth", "FILE", "what happened, data as for fit", ""},
      {"--trajectory", "ID", "which trajectory of it (default: the last)", ""},
      {"--variables", "A,B,…", "one panel each (default: all)", ""},
      {"--band", "WHICH", "the band to draw", "sd", 0, {"sd", "quantiles"}},
      {"--lyapunov", "L", "largest exponent, of odecast lyapunov: mark Lyapunov times", ""},
      {"--system", "NAME", "the same with the exponent of a catalogue system", ""},
      {"--title", "TEXT", "above the figure", ""},
      {"--output", "FILE", "SVG to write", "forecast.svg", 'o'},
  };
  for (Option& o : reading_options())
    if (o.name != "--variables") options.push_back(o);
  return {"plot",
          "draw a forecast with its band as SVG",
          "Draws mean and band of a forecast, over the truth where given, as an SVG figure.",
          "odecast plot forecast.csv --truth test.csv --variables x -o forecast.svg",
          {{"FORECAST", "file written by odecast forecast"}},
          with_common(std::move(options)),
          run};
}

}  // namespace odecast::cli
