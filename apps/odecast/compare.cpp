#include "studies/compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/files.hpp"

namespace odecast::cli {
namespace {

int run(const Arguments& a) {
  CompareOptions o;
  if (a.given("--systems")) o.systems = a.words("--systems");
  o.noises = a.numbers("--noise");
  o.rows = static_cast<int>(a.whole("--rows", 50, 1'000'000));
  o.starts = static_cast<int>(a.whole("--starts", 20, 100'000));
  o.held_out = static_cast<int>(a.whole("--held-out", 20, 100'000));
  o.horizon = a.number("--horizon");
  o.leads = static_cast<int>(a.whole("--leads", 1, 1000));
  o.draws = static_cast<int>(a.whole("--draws", 2, 1000));
  o.seed = a.seed();
  o.threads = a.threads();
  const std::filesystem::path folder = a.text("--output");
  keeps_units(folder);
  FolderClaim claim;
  const MethodComparison result = [&] {
    const Observer observer = progress(a);
    return compare(folder, o, observer, &claim);
  }();
  const std::string table = comparison_markdown(result, o);
  write_files({{folder / "cells.csv", comparison_csv(result)}, {folder / "table.md", table}});
  if (a.json())
    put_json(Json{{"folder", folder.string()},
                  {"cells", result.cells.size()},
                  {"units", result.units},
                  {"units_found", result.found}});
  else
    say(a, table + fmt::format("\nAll cells in {}", (folder / "cells.csv").string()));
  return kDone;
}

}  // namespace

Command compare_command() {
  const CompareOptions d;
  return {"compare",
          "measure the posteriors beside each other",
          "Fits each posterior to noisy rows of known systems, forecasts from many starts on the "
          "attractor and judges the bands\n"
          "against the true solution, raw and calibrated. The table in docs/choosing.md comes from "
          "here. Interrupted work\n"
          "goes on where it stopped.",
          "odecast compare --systems Lorenz,SprottB --noise 0,0.05 --starts 100 --held-out 100 -o "
          "comparison",
          {},
          with_common(
              {{"--systems", "A,B,…", "of the catalogue (default: Lorenz and all of Sprott's)", ""},
               {"--noise", "F,…", "sd of the noise over each variable's sd", "0,0.01,0.05,0.1"},
               {"--rows", "N", "learnt from, two of the catalogue's steps apart",
                fmt::format("{}", d.rows)},
               {"--starts", "N", "forecasts that judge", fmt::format("{}", d.starts)},
               {"--held-out", "N", "further ones that calibrate", fmt::format("{}", d.held_out)},
               {"--horizon", "L", "of each, in Lyapunov times", fmt::format("{}", d.horizon)},
               {"--leads", "N", "times of each that are scored", fmt::format("{}", d.leads)},
               {"--draws", "M", "trajectories of each, up to 1000", fmt::format("{}", d.draws)},
               seed_option(),
               threads_option(),
               {"--output", "FOLDER", "for the table, the cells and the units of work",
                "comparison", 'o'}}),
          run};
}

}  // namespace odecast::cli
