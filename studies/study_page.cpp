#include "studies/study_page.hpp"

#include <fmt/format.h>

#include <map>

namespace odecast {
namespace {

CellKind kind_of(const std::string& verdict) {
  return verdict == "holds"           ? CellKind::holds
         : verdict == "does not hold" ? CellKind::fails
                                      : CellKind::depends;
}

Section claims_section(const std::vector<Claim>& claims) {
  Table table{.caption =
                  "A verdict needs two standard errors. Values are mean ± standard error over "
                  "seeds, in the "
                  "exact reading over starts where the statistic is a mean over starts. The "
                  "yardstick is the "
                  "same statistic for the constant band, mean ± 1.96 sd of the attractor.",
              .header = {"Claim, and the statistic that decides it", "paper", "released", "exact",
                         "yardstick", "verdict"},
              .rows = {}};
  for (const Claim& c : claims) {
    std::vector<Cell> row = {{fmt::format("{} — {}; holds if {}.", c.claim, c.statistic, c.rule)}};
    for (const ReadingResult& r : c.readings)
      row.push_back(r.estimate ? Cell{rounded(*r.estimate), CellKind::number}
                               : Cell{"–", CellKind::number});
    row.push_back(c.yardstick ? number_cell(*c.yardstick) : Cell{});
    row.push_back({c.verdict(), kind_of(c.verdict())});
    table.rows.push_back(std::move(row));
  }
  return {"claims", "Claims of the paper", {std::move(table)}};
}

Section finding_section(const std::vector<Finding>& findings) {
  Section section{"findings", "What the text leaves out"};
  for (const Finding& f : findings) {
    Table table{.caption = f.heading, .header = f.columns, .rows = {}};
    for (const auto& row : f.rows) {
      std::vector<Cell> cells;
      for (const std::string& text : row) cells.push_back({text, CellKind::number});
      table.rows.push_back(std::move(cells));
    }
    section.parts.push_back(Prose{f.heading + ". " + f.text});
    section.parts.push_back(std::move(table));
  }
  return section;
}

}  // namespace

Page study_page(const Setting& setting, const StudyOptions& options,
                const std::vector<Claim>& claims, const std::vector<Finding>& findings,
                const std::vector<StudyFigure>& figures, const Origin& origin) {
  Page page{"What of the paper reproduces",
            "Green & Rindler, Probabilistic solution of chaotic dynamical system inverse problems "
            "using Bayesian "
            "Artificial Neural Networks, section 6: Sprott B",
            {}};
  std::map<std::string, int> verdicts;
  for (const Claim& c : claims) ++verdicts[c.verdict()];
  Tiles tiles;
  for (const std::string verdict :
       {"holds", "does not hold", "depends on the reading", "not decided"})
    if (verdicts.contains(verdict))
      tiles.tiles.push_back({fmt::format("{}", verdicts[verdict]), verdict,
                             fmt::format("of {} claims", claims.size())});
  page.sections.push_back(
      {"overview",
       "In short",
       {std::move(tiles), Prose{fmt::format("Three readings stand side by side. “paper” is the "
                                            "text, Algorithms 1 and 2 as printed, with {} "
                                            "seeds of Adam for each setting ({} of 1000 batches of "
                                            "110 steps). “released” is the authors' "
                                            "program, which differs from the text: it trains "
                                            "without dropout, pairs each derivative with "
                                            "the state before, takes the data ten times coarser, "
                                            "and draws σ_γ = h instead of h². “exact” "
                                            "is the text's objective at its exact minimum with "
                                            "every mask enumerated: no seed, no Monte "
                                            "Carlo error.",
                                            options.adam_seeds, options.batches)}}});
  page.sections.push_back(claims_section(claims));

  Trajectory run = example_run(setting, Reading::paper);
  Section drawn{"figures", "The paper's figures"};
  drawn.parts.push_back(
      Attractor{.id = "attractor",
                .title = "The Sprott B attractor",
                .caption = "The run of figures 1 and 2, from (0.1, 0.1, -0.1) to t = 100.",
                .variables = setting.system.variables,
                .curves = {{"run", Ink::forecast, run.times, run.states, 1.2}}});
  for (const StudyFigure& f : figures)
    if (f.reading == Reading::exact && (f.number == 4 || f.number == 5)) {
      Figure figure{.id = f.name,
                    .title = fmt::format("Figure {}, exact reading: {}", f.number, f.caption),
                    .panels = f.panels};
      for (const Panel& panel : f.panels)
        if (!panel.title.empty()) figure.names.push_back(panel.title);
      figure.switch_label = "Step";
      drawn.parts.push_back(std::move(figure));
    }
  for (int number = 1; number <= 9; ++number) {
    StaticFigures row{.items = {}, .columns = 3};
    for (const StudyFigure& f : figures)
      if (f.number == number) {
        FigureOptions compact = f.options;
        compact.compact = true;
        row.items.push_back({f.name, fmt::format("Figure {}, {}", number, reading_name(f.reading)),
                             draw_svg(f.panels, compact), f.caption});
      }
    drawn.parts.push_back(std::move(row));
  }
  page.sections.push_back(std::move(drawn));
  page.sections.push_back(finding_section(findings));
  page.sections.push_back(origin_section(origin));
  return page;
}

}  // namespace odecast
