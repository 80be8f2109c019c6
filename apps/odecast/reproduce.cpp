#include "studies/reproduce.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/text.hpp"

namespace odecast::cli {
namespace {

int run(const Arguments& a) {
  StudyOptions options = a.given("--quick") ? kQuickStudy : StudyOptions{};
  if (a.given("--adam-seeds"))
    options.adam_seeds = static_cast<int>(a.whole("--adam-seeds", 2, 99));
  if (a.given("--batches")) options.batches = static_cast<int>(a.whole("--batches", 1, 1000000));
  options.seed = a.seed();
  options.threads = a.threads();
  const std::string folder = a.text("--output");
  keeps_units(folder);
  Reproduction result;
  {
    const Observer observer = progress(a);
    // Neither the folder nor the manner of running shows in the files.
    Origin made{.command = study_command(options), .versions = origin(a).versions};
    result = reproduce(folder, options, made, observer);
  }
  std::map<std::string, int> verdicts;
  for (const Claim& c : result.claims) ++verdicts[c.verdict()];
  if (a.json()) {
    put_json(Json{{"folder", folder},
                  {"claims", result.claims.size()},
                  {"verdicts", verdicts},
                  {"units", result.units},
                  {"units_found", result.found}});
    return kDone;
  }
  if (a.quiet()) return kDone;
  for (const Claim& c : result.claims) put("{:<23} {}\n", c.verdict(), c.claim);
  put("\nFiles in {}:\n"
      "  report.html            the page: figures, claims, what the text leaves out\n"
      "  claims.json claims.csv every claim with statistic, standard error, n and verdict per "
      "reading\n"
      "  reproduction.md        the same to read\n"
      "  figures/*.svg          the paper's nine figures in the readings\n"
      "  units/                 results of the single runs; delete the whole folder to compute "
      "them again\n",
      printable(folder));
  return kDone;
}

}  // namespace

Command reproduce_command() {
  return {
      "reproduce",
      "run the paper's experiments and judge its claims",
      "Runs every experiment of the paper's section 6 (the Sprott B system) in three readings: the "
      "text,\n"
      "the authors' released program, and the exact optimum with every mask enumerated. Says with\n"
      "numbers which claims hold. An interrupted study goes on where it stopped, with the same "
      "result.",
      "odecast reproduce --quick -o reproduction",
      {},
      with_common(
          {{"--quick", "", "--adam-seeds 3 --batches 250: under two minutes on two cores", ""},
           {"--adam-seeds", "N", "networks trained for each setting and reading", "50"},
           {"--batches", "N", "batches of the paper's schedule, 110 steps each", "1000"},
           seed_option(),
           threads_option(),
           {"--output", "FOLDER", "where to write", "reproduction", 'o'}}),
      run};
}

}  // namespace odecast::cli
