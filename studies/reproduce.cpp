#include "studies/reproduce.hpp"

#include <fmt/format.h>

#include "odecast/core/files.hpp"
#include "studies/figures.hpp"
#include "studies/study_page.hpp"

namespace odecast {
namespace {

namespace fs = std::filesystem;

/// What the units depend on.
std::string settings_text(const StudyOptions& o) {
  return fmt::format("odecast reproduce 2\nadam-seeds {}\nbatches {}\nseed {}\n", o.adam_seeds,
                     o.batches, o.seed);
}

}  // namespace

Reproduction reproduce(const fs::path& folder, const StudyOptions& options, const Origin& origin,
                       const Observer& observer) {
  observer("preparing", 0);
  FolderClaim early(folder,
                    settings_text(options));  // refused before the setting is computed, if at all
  const Setting setting = make_setting();
  const std::vector<Unit> units = study_units(setting, options);
  early = {};
  const Work work =
      run_units(units, {folder, settings_text(options), "reproducing", options.threads}, observer);
  Reproduction result{{}, static_cast<int>(units.size()), work.found};
  const UnitResults& results = work.results;

  observer("writing", 1);
  make_folder(folder / "figures");
  result.claims = paper_claims(setting, options, results);
  const std::vector<Finding> found = findings(setting, options, results);
  const std::string json = claims_json(setting, options, result.claims, found);
  write_file(folder / "claims.json", json);
  write_file(folder / "claims.csv", claims_csv(result.claims));
  write_file(folder / "reproduction.md", claims_markdown(json));
  const std::vector<StudyFigure> figures = study_figures(setting, results);
  for (const StudyFigure& figure : figures)
    write_file(folder / "figures" / (figure.name + ".svg"),
               draw_svg(figure.panels, figure.options));
  write_file(folder / "report.html",
             render_page(study_page(setting, options, result.claims, found, figures, origin)));
  return result;
}

}  // namespace odecast
