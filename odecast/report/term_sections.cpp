#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "odecast/model/equations.hpp"
#include "odecast/report/detail/fit_sections.hpp"
#include "odecast/report/page_parts.hpp"

namespace odecast {
namespace {

constexpr std::size_t kShownSets = 10, kShownTerms = 80, kShownCoefficients = 24;
constexpr int kReplicateBins = 16;
constexpr double kRare = 0.2;     ///< of the replicates with a term: fewer are not drawn
constexpr double kHopeless = 60;  ///< odds of 10²⁶

std::string text_of(const FieldTerm& term, const Model& model, const MonomialBasis& basis) {
  Term one;
  if (term.term < basis.size())
    one.powers = basis.powers(term.term);
  else
    one.function = term.term - basis.size();
  return term_text(model, one) + " in " +
         model.left_side(model.variables[static_cast<std::size_t>(term.equation)]);
}

/// What one set has that another has not, and the other way round.
std::string difference(const Support& best, const Support& other, const Model& model,
                       const MonomialBasis& basis) {
  std::string text;
  const auto add = [&](const Support& from, const Support& without, const char* sign) {
    for (const FieldTerm& term : from)
      if (!std::binary_search(without.begin(), without.end(), term))
        text += (text.empty() ? "" : ", ") + std::string(sign) + text_of(term, model, basis);
  };
  add(other, best, "+ ");
  add(best, other, "− ");
  return text;
}

Table set_table(const Model& model) {
  const MonomialBasis basis(model.dimension() + model.inputs.size(), model.polynomial()->degree);
  std::vector<CoefficientSet> sets = model.polynomial()->sets;
  for (CoefficientSet& set : sets) std::sort(set.support.begin(), set.support.end());
  std::stable_sort(sets.begin(), sets.end(),
                   [](const auto& a, const auto& b) { return a.weight > b.weight; });
  Table table{.caption = "Sets of terms, by their weight in the average",
              .header = {"weight", "terms", "beside the first"},
              .rows = {}};
  double rest = 0;
  for (std::size_t k = 0; k < sets.size(); ++k) {
    if (k >= kShownSets) {
      rest += sets[k].weight;
      continue;
    }
    table.rows.push_back({share_cell(sets[k].weight),
                          {fmt::format("{}", sets[k].support.size()), CellKind::number},
                          {k == 0 ? "the most probable"
                                  : difference(sets[0].support, sets[k].support, model, basis)}});
  }
  if (sets.size() > kShownSets)
    table.rows.push_back({share_cell(rest),
                          {"", CellKind::number},
                          {fmt::format("{} more", sets.size() - kShownSets)}});
  return table;
}

Cell coefficient_cell(double mean, double sd) {
  const auto [value, error] = rounded_coefficient(std::abs(mean), sd);
  return {(mean < 0 ? "−" : "") + value + (sd > 0 ? " ± " + error : ""), CellKind::number};
}

Table number_table(const std::vector<NumberInside>& numbers) {
  Table table{.caption = "Numbers inside functions, over the sets that have them",
              .header = {"number", "value"},
              .rows = {}};
  for (const NumberInside& k : numbers)
    if (table.rows.size() < kShownTerms)
      table.rows.push_back({{k.name}, coefficient_cell(k.mean, k.sd)});
  return table;
}

Table term_table(const Model& model, bool probabilities) {
  Table table{.caption = probabilities ? "Every term that one of the sets has"
                                       : "The terms, and how far from zero they are",
              .header = {"", "term", probabilities ? "probability" : "|mean| / sd", "coefficient"},
              .rows = {}};
  std::size_t left_out = 0;
  for (const Equation& e : equations(model)) {
    std::vector<Term> terms = e.terms;
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Term& a, const Term& b) { return a.probability > b.probability; });
    for (const Term& t : terms) {
      if (table.rows.size() >= kShownTerms) {
        ++left_out;
        continue;
      }
      table.rows.push_back(
          {{model.left_side(e.variable)},
           {term_text(model, t)},
           probabilities ? share_cell(t.probability) : number_cell(std::abs(t.mean) / t.sd),
           coefficient_cell(t.mean, t.sd)});
    }
  }
  if (left_out > 0)
    table.caption +=
        fmt::format("; {} more by odecast equations --all", counted(static_cast<long>(left_out)));
  return table;
}

/// A coefficient over the replicates, 0 in those without the term.
struct Replicated {
  std::string variable, term;
  std::vector<double> values;
  double present = 0;  ///< share of the replicates with the term
};

std::vector<Replicated> replicated(const Model& model) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> found;
  std::vector<std::pair<std::string, std::string>> order;
  for (const Equation& e : equations(model))
    for (const Term& t : e.terms) order.emplace_back(e.variable, term_text(model, t));
  Model one = model;
  for (const CoefficientSet& set : model.polynomial()->sets) {
    one.polynomial()->sets = {set};
    one.polynomial()->sets[0].weight = 1;
    for (const Equation& e : equations(one))
      for (const Term& t : e.terms) found[{e.variable, term_text(model, t)}].push_back(t.mean);
  }
  std::vector<Replicated> all;
  const std::size_t replicates = model.polynomial()->sets.size();
  for (const auto& key : order) {
    std::vector<double>& values = found[key];
    const double present = static_cast<double>(values.size()) / static_cast<double>(replicates);
    values.resize(replicates, 0);
    std::sort(values.begin(), values.end());
    all.push_back({key.first, key.second, values, present});
  }
  return all;
}

/// Of sorted values, linear between them.
double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Bars histogram(const std::vector<double>& sorted) {
  double lo = sorted.front(), hi = sorted.back();
  if (!(hi > lo)) {
    const double air = std::max(std::abs(lo) * 0.1, 1e-12);
    lo -= air;
    hi += air;
  }
  Bars bars{"share of the replicates", {}, std::vector<double>(kReplicateBins)};
  for (int k = 0; k <= kReplicateBins; ++k)
    bars.edges.push_back(lo + k * (hi - lo) / kReplicateBins);
  for (const double v : sorted) {
    const int bin =
        std::min(kReplicateBins - 1, static_cast<int>((v - lo) / (hi - lo) * kReplicateBins));
    bars.heights[static_cast<std::size_t>(bin)] += 1 / static_cast<double>(sorted.size());
  }
  return bars;
}

}  // namespace

Section term_section(const Model& model) {
  Section section{"terms", "Terms"};
  const std::size_t sets = model.polynomial()->sets.size();
  if (sets > 1) {
    section.parts.push_back(
        Prose{"Which terms the equations have is not certain: sets of terms that explain the data "
              "nearly as well are averaged, and a forecast draws one of them, then its "
              "coefficients."});
    section.parts.push_back(set_table(model));
  }
  section.parts.push_back(term_table(model, sets > 1));
  if (const std::vector<NumberInside> numbers = numbers_inside(model); !numbers.empty())
    section.parts.push_back(number_table(numbers));
  return section;
}

Section evidence_section(const FitSummary& summary) {
  Section section{"evidence", "Evidence"};
  if (summary.degrees.empty()) {
    section.parts.push_back(Prose{fmt::format(
        "ln p(rows | terms) = {:.6g}, in the model's units: to compare with other fits of the same "
        "rows. With --degree auto the degree of the most evidence is taken.",
        *summary.log_evidence)});
    return section;
  }
  const auto total = [](const DegreeTrial& t) { return t.log_evidence + t.log_prior; };
  double best = total(summary.degrees.front());
  for (const DegreeTrial& t : summary.degrees) best = std::max(best, total(t));
  Table table{.caption = "Every degree that was tried, all on the same rows",
              .header = {"degree", "terms", "ln evidence", "ln prior", "beside the best"},
              .rows = {}};
  Line line{.label = "ln evidence + ln prior, less that of the best", .x = {}, .y = {}};
  bool taken = false;
  for (const DegreeTrial& t : summary.degrees) {
    const double less = total(t) - best;
    const bool first = less == 0 && !taken;
    taken = taken || first;
    table.rows.push_back({{fmt::format("{}", t.degree), CellKind::number},
                          {fmt::format("{}", t.terms), CellKind::number},
                          number_cell(t.log_evidence, 7),
                          number_cell(t.log_prior, 4),
                          first       ? Cell{"taken", CellKind::holds}
                          : less == 0 ? Cell{"the same terms", CellKind::number}
                                      : number_cell(less)});
    line.x.push_back(t.degree);
    line.y.push_back(less);
  }
  section.parts.push_back(Prose{
      "The evidence is the probability of the rows under a set of terms, its coefficients averaged "
      "over: a term that explains nothing lowers it. The prior charges every term for its "
      "degree."});
  section.parts.push_back(std::move(table));
  if (line.x.size() > 1) {
    Line dots = line;
    dots.label = "";
    dots.points = true;
    dots.width = 3;
    Panel panel{.x_label = "degree", .y_label = "less than the best", .lines = {line, dots}};
    panel.whole_x = true;
    const double least = *std::min_element(line.y.begin(), line.y.end());
    panel.y_range = {std::max(least, -kHopeless) * 1.1 - 1, std::max(1.0, 0.05 * kHopeless)};
    section.parts.push_back(Figure{.id = "evidence-by-degree",
                                   .title = "Evidence by degree",
                                   .caption = "A difference of 3 is odds of 20 to 1; what is far "
                                              "below leaves the plot.",
                                   .panels = {panel},
                                   .panel_height = 200});
  }
  return section;
}

Section replicate_section(const Model& model) {
  Section section{"replicates", "Replicates"};
  const std::vector<Replicated> all = replicated(model);
  section.parts.push_back(Prose{fmt::format(
      "The equations were learnt again from {} redraws of the rows in blocks. How far their "
      "coefficients spread is how well the rows determine them.",
      counted(static_cast<long>(model.polynomial()->sets.size())))});
  Table table{.caption = "Coefficients over the replicates, 0 in those without the term",
              .header = {"", "term", "in the replicates", "2.5 %", "median", "97.5 %"},
              .rows = {}};
  Figure figure{.id = "coefficients",
                .title = "Coefficients over the replicates",
                .switch_label = "Coefficient",
                .panel_height = 120,
                .columns = 4};
  for (const Replicated& r : all) {
    if (table.rows.size() < kShownTerms)
      table.rows.push_back({{model.left_side(r.variable)},
                            {r.term},
                            share_cell(r.present),
                            number_cell(quantile(r.values, 0.025), 4),
                            number_cell(quantile(r.values, 0.5), 4),
                            number_cell(quantile(r.values, 0.975), 4)});
    if (r.present < kRare || figure.panels.size() >= kShownCoefficients) continue;
    const std::string name = r.term + " in " + model.left_side(r.variable);
    figure.names.push_back(name);
    figure.panels.push_back({.title = name,
                             .x_label = "coefficient",
                             .y_label = "share",
                             .bars = {histogram(r.values)}});
  }
  if (all.size() > figure.panels.size())
    figure.caption = fmt::format(
        "Of {} coefficients those that at least {:.0f} % of the replicates "
        "have, {} at most.",
        all.size(), 100 * kRare, kShownCoefficients);
  section.parts.push_back(std::move(table));
  if (!figure.panels.empty()) section.parts.push_back(std::move(figure));
  return section;
}

}  // namespace odecast
