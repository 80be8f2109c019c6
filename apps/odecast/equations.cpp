#include "odecast/model/equations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast::cli {

namespace {

/// Powers of a monomial; of a function its expression and what is inside it.
Json term_json(const Model& model, const Term& t, const std::vector<NumberInside>& known) {
  Json j;
  if (t.function) {
    j["expression"] = term_text(model, t);
    j["numbers"] = Json::object();
    const auto& inside = model.polynomial()->functions->numbers_of(*t.function);
    for (const NumberInside& k : known)
      if (std::binary_search(inside.begin(), inside.end(), k.number))
        j["numbers"][k.name] = {{"mean", k.mean}, {"sd", k.sd}};
  } else {
    j["powers"] = t.powers;
  }
  j["mean"] = t.mean;
  j["sd"] = t.sd;
  return j;
}

}  // namespace

Json equations_json(const Model& model) {
  Json list = Json::array();
  const std::vector<NumberInside> mean = numbers_inside(model),
                                  of_best = best_set_probability(model)
                                                ? numbers_inside(model, Centre::best)
                                                : std::vector<NumberInside>();
  for (const Equation& e : equations(model)) {
    Json terms = Json::array();
    for (const Term& t : e.terms) {
      terms.push_back(term_json(model, t, mean));
      terms.back()["probability"] = t.probability;
      if (t.median) terms.back()["median"] = *t.median;
    }
    list.push_back({{"variable", e.variable}, {"terms", terms}});
  }
  Json j = {{"variables", model.variables}, {"equations", list}};
  // Powers are of what is left of a variable without its offset.
  if (const Vector offset = model.term_offsets(); !offset.isZero(0))
    j["offsets"] = std::vector<double>(offset.begin(), offset.end());
  if (const auto probability = best_set_probability(model)) {
    Json best = Json::array();
    for (const ReadableEquation& e : readable_equations(model, 0, Centre::best)) {
      Json terms = Json::array();
      for (const Term& t : e.terms) terms.push_back(term_json(model, t, of_best));
      best.push_back({{"variable", e.variable}, {"terms", terms}});
    }
    j["best"] = {{"probability", *probability}, {"equations", best}};
  }
  return j;
}

std::string equations_text(const Arguments& a, const Model& model, EquationFormat format) {
  needs(a, {"--centre"}, !a.given("--set"), "one of `set` and `centre`");
  const double smallest = a.given("--all") ? 0 : 0.01;
  const bool sets = best_set_probability(model).has_value(), asked = a.given("--set");
  if (format == EquationFormat::text && sets && !asked && !a.given("--centre"))
    return describe_equations(model, smallest);
  // What is read shows the most probable set, what is computed with what forecasts use.
  const bool best = asked ? a.text("--set") == "best"
                          : sets && !a.given("--centre") && format == EquationFormat::latex;
  return format_equations(model, format, smallest,
                          best                             ? Centre::best
                          : a.text("--centre") == "median" ? Centre::median
                                                           : Centre::mean);
}

namespace {

int run_equations(const Arguments& a) {
  const Model model = load_model(a.positional(0));
  warn_of(a, model);
  const std::string format = a.json() ? "json" : a.text("--format");
  if (format == "json") {
    put_json(equations_json(model));
    return kDone;
  }
  const EquationFormat kind = format == "latex" ? EquationFormat::latex
                              : format == "c"   ? EquationFormat::c
                                                : EquationFormat::text;
  print_text(spelled(equations_text(a, model, kind), Spelling::options));
  return kDone;
}

}  // namespace

Command equations_command() {
  return {
      "equations",
      "print the learnt equations",
      "Prints the learnt equations in the units of the data. Every coefficient has its mean and "
      "standard deviation over\n"
      "the posterior (of dropout: exact, over all masks) and its probability of not being zero.",
      "odecast equations model.json\nodecast equations model.json --format latex",
      {{"MODEL", "file written by odecast fit"}},
      with_common({
          {"--format",
           "HOW",
           "c is a function to compile",
           "text",
           0,
           {"text", "latex", "json", "c"}},
          {"--set",
           "WHICH",
           "the most probable set of terms, or the average over all, which forecasts use (default: "
           "text shows both, latex the best, c the average)",
           "",
           0,
           {"best", "average"}},
          {"--all", "", "small terms too", ""},
          {"--centre",
           "OF",
           "of a bootstrap's coefficients; a term that most replicates lack has median 0",
           "mean",
           0,
           {"mean", "median"}},
      }),
      run_equations};
}

}  // namespace odecast::cli
