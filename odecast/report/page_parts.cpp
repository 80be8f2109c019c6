#include "odecast/report/page_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "odecast/core/text.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/status.hpp"

namespace odecast {

std::string joined(const std::vector<std::string>& names) {
  if (names.size() <= 6) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, … {} ({} variables)", names[0], names.back(), names.size());
}

std::string counted(long number) {
  std::string text = fmt::format("{}", number);
  for (auto i = static_cast<long>(text.size()) - 3; i > 0; i -= 3)
    text.insert(text.begin() + i, ',');
  return text;
}

std::string plural(long number, const char* one, const char* many) {
  return counted(number) + " " + (number == 1 ? one : many);
}

KeyValues observed_facts(const Model& m) {
  const auto& t = m.training;
  KeyValues facts;
  facts.rows = {
      {"Variables", joined(m.variables)},
      {"Trajectories", counted(t.trajectories)},
      {"Rows learnt from", counted(t.rows)},
      {"Spacing of the data", duration_text(m.calendar, m.step) + " (median)"},
      {"Data end",
       moment_text(m.calendar, m.last_time) +
           (m.last_trajectory.empty() ? "" : " of trajectory '" + m.last_trajectory + "'")},
      {"Kind", m.kind == ModelKind::map ? "map: each row from the one before" : "flow: du/dt"},
      {"Driven by", m.inputs.size() == 0 ? "nothing: autonomous" : joined(m.inputs.names)},
      {"Learnt by", t.trainer}};
  if (t.derivative != "none") facts.rows.emplace_back("Derivatives", t.derivative);
  // Where it is not to be trusted, the reason stands above all.
  if (distrust(t.status).empty())
    facts.rows.emplace_back("Outcome", spelled(t.reason, Spelling::options));
  if (t.objective)
    facts.rows.emplace_back("Expected objective", fmt::format("{:.6g}", *t.objective));
  return facts;
}

EquationList equation_list(const Model& model, Centre centre) {
  EquationList all{term_arguments(model), readable_equations(model, 0.01, centre), "",
                   model.kind == ModelKind::map};
  if (!model.polynomial()) return all;
  all.functions = model.polynomial()->functions;
  all.numbers = numbers_inside(model, all.equations, centre);
  return all;
}

Section equation_section(const Model& model) {
  Section section{"equations", "The learnt equations"};
  if (!model.has_equations()) {
    section.parts.push_back(Prose{
        "The model is a general network, not a polynomial kernel: it has no equations to read."});
    return section;
  }
  const auto list = [&](Centre centre) {
    EquationList all = equation_list(model, centre);
    all.latex =
        spelled(format_equations(model, EquationFormat::latex, 0.01, centre), Spelling::options);
    return all;
  };
  if (const auto probability = best_set_probability(model);
      probability && model.polynomial()->sets.size() > 1) {
    section.parts.push_back(
        Prose{fmt::format("The most probable set of terms, of probability {:.2g}:", *probability)});
    section.parts.push_back(list(Centre::best));
    section.parts.push_back(Prose{fmt::format("The average over {} sets, which forecasts use:",
                                              model.polynomial()->sets.size())});
  }
  section.parts.push_back(list(Centre::mean));
  return section;
}

Section origin_section(const Origin& origin) {
  Section section{"origin", "How this was made"};
  section.parts.push_back(CommandLine{origin.command});
  if (!origin.settings.empty()) {
    section.parts.push_back(Prose{"Settings, as they ran:"});
    section.parts.push_back(KeyValues{origin.settings});
  }
  if (!origin.versions.empty()) section.parts.push_back(KeyValues{origin.versions});
  return section;
}

}  // namespace odecast
