#include "odecast/study/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <thread>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/study/figures.hpp"
#include "odecast/study/study_page.hpp"

namespace odecast {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw_file({"folder '" + folder.string() + "'", error ? error.message() : "a file of that name",
                "a folder that can be made", "Choose another with -o."});
}

/// What the units depend on; a study goes on only with the same.
void check_settings(const fs::path& file, const StudyOptions& o) {
  const std::string settings = fmt::format("odecast reproduce 1\nadam-seeds {}\nbatches {}\nseed {}\n", o.adam_seeds,
                                             o.batches, o.seed);
  if (!fs::exists(file)) return write_file(file, settings);
  if (read_file(file) != settings)
    throw_usage({"folder '" + file.parent_path().parent_path().string() + "'",
                 "a study with other settings (--quick, --adam-seeds, --batches, --seed)", "a new folder, or the same settings",
                 "Choose another folder with -o, or delete this one."});
}

}  // namespace

Reproduction reproduce(const fs::path& folder, const StudyOptions& options, const Origin& origin,
                       const Observer& observer) {
  const fs::path unit_folder = folder / "units";
  make_folder(unit_folder);
  make_folder(folder / "figures");
  check_settings(unit_folder / "settings", options);
  // What a study that was killed left behind.
  for (const auto& entry : fs::directory_iterator(unit_folder))
    if (entry.path().extension() != ".json" && entry.path().filename() != "settings") fs::remove(entry.path());
  observer("preparing", 0);
  const Setting setting = make_setting();
  std::vector<Unit> units = study_units(setting, options);
  // The longest first, so that no thread is left alone with one at the end.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.cost > b.cost; });

  Reproduction result{{}, static_cast<int>(units.size()), 0};
  StudyResults results;
  std::vector<const Unit*> open;
  for (const Unit& unit : units) {
    const fs::path file = unit_folder / (unit.key + ".json");
    if (fs::exists(file)) {
      results[unit.key] = parse_values(read_file(file), file.string());
      ++result.found;
    } else {
      open.push_back(&unit);
    }
  }

  double total = 0;
  for (const Unit* unit : open) total += unit->cost;
  std::atomic<double> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  const auto caller = std::this_thread::get_id();
  parallel_for(options.threads, open.size(), [&](std::size_t i) {
    const Unit& unit = *open[i];
    // The observer belongs to the calling thread; the others stop when it has thrown. A unit in several
    // parts reports from 0 to 1 more than once; the bar never goes back.
    double furthest = 0;
    const Observer watch = [&](std::string_view, double fraction) {
      if (std::this_thread::get_id() != caller) {
        if (stop) throw Interrupted(0);
        return;
      }
      furthest = std::max(furthest, fraction);
      try {
        observer("reproducing", std::min(1.0, (done + furthest * unit.cost) / total));
      } catch (...) {
        stop = true;
        throw;
      }
    };
    Values values = unit.run(watch);
    write_file(unit_folder / (unit.key + ".json"), format_values(values));
    const std::lock_guard lock(mutex);
    done = done + unit.cost;
    results[unit.key] = std::move(values);
  });

  observer("writing", 1);
  result.claims = paper_claims(setting, options, results);
  const std::vector<Finding> found = findings(setting, options, results);
  const std::string json = claims_json(setting, options, result.claims, found);
  write_file(folder / "claims.json", json);
  write_file(folder / "claims.csv", claims_csv(result.claims));
  write_file(folder / "reproduction.md", claims_markdown(json));
  const std::vector<StudyFigure> figures = study_figures(setting, results);
  for (const StudyFigure& figure : figures)
    write_file(folder / "figures" / (figure.name + ".svg"), draw_svg(figure.panels, figure.options));
  write_file(folder / "report.html",
             render_page(study_page(setting, options, result.claims, found, figures, origin)));
  return result;
}

}  // namespace odecast
