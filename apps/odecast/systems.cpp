#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast::cli {

Json system_json(const System& s) {
  Json parameters = Json::object();
  for (const Parameter& p : s.parameters) parameters[p.name] = p.value;
  return {{"name", s.name},
          {"title", s.title},
          {"variables", s.variables},
          {"kind", s.map ? "map" : "flow"},
          {"equations", s.equations},
          {"inputs", s.inputs},
          {"input_equations", s.input_equations},
          {"parameters", parameters},
          {"start", std::vector<double>(s.start.begin(), s.start.end())},
          {"step", s.step},
          {"lyapunov", s.lyapunov ? Json(*s.lyapunov) : Json(nullptr)},
          {"lyapunov_source", s.lyapunov_source},
          {"source", s.source}};
}

namespace {

std::string details(const System& s) {
  std::string text = fmt::format("{}: {}\n\n", s.name, s.title);
  for (const auto& e : s.equations) text += "  " + e + "\n";
  for (const auto& e : s.input_equations) text += "  " + e + "\n";
  if (!s.parameters.empty()) {
    text += "\nparameters ";
    for (const Parameter& p : s.parameters)
      text += fmt::format(" {} = {}", p.name, format_number(p.value));
  }
  const std::vector<double> start(s.start.begin(), s.start.end());
  if (start.size() <= 8) text += fmt::format("\nstart       {}", fmt::join(start, ", "));
  text += fmt::format("\nstep        {}", s.step);
  if (s.lyapunov) text += fmt::format("\nexponent    {} ({})", *s.lyapunov, s.lyapunov_source);
  return text + fmt::format("\nsource      {}", s.source);
}

int run_systems(const Arguments& a) {
  if (a.positional_count() == 1) {
    const System s = find_system(a.positional(0));
    put("{}\n", a.json() ? system_json(s).dump(2) : details(s));
    return kDone;
  }
  Json list = Json::array();
  if (!a.json()) put("{:<20} {:>9}  {:>8}  {}\n", "name", "variables", "exponent", "");
  for (const auto& name : system_names()) {
    const System s = find_system(name);
    if (a.json())
      list.push_back(system_json(s));
    else
      put("{:<20} {:>9}  {:>8}  {}\n", s.name, s.variables.size(),
          s.lyapunov ? fmt::format("{:g}", *s.lyapunov) : "", s.title);
  }
  if (a.json()) put_json(Json{{"systems", list}});
  return kDone;
}

}  // namespace

Command systems_command() {
  return {
      "systems",
      "list the known systems",
      "Lists the catalogue, or tells all about one system: equations, parameters, start, step,\n"
      "largest Lyapunov exponent and sources.",
      "odecast systems SprottB",
      {{"NAME", "a system, in any case", false}},
      with_common({}),
      run_systems};
}

}  // namespace odecast::cli
