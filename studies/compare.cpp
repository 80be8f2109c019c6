#include "studies/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"
#include "odecast/core/times.hpp"
#include "odecast/core/work.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {

const std::vector<std::string> kComparedSystems = {
    "SprottA", "SprottB", "SprottC", "SprottD", "SprottE", "SprottF", "SprottG",
    "SprottH", "SprottI", "SprottJ", "SprottK", "SprottL", "SprottM", "SprottN",
    "SprottO", "SprottP", "SprottQ", "SprottR", "SprottS", "Lorenz"};

namespace {

constexpr double kRates[] = {0.01, 0.03, 0.1, 0.25};

struct Contender {
  std::string name;
  std::vector<FitOptions> candidates;  ///< the best of several by their energy score
};

std::vector<Contender> contenders() {
  const auto dropout = [](double r) {
    return FitOptions{
        .method = DropoutMethod{.dropout = r, .rows = {.derivative = DerivativeMethod::automatic}}};
  };
  Contender fixed{"dropout, r = 0.25", {dropout(0.25)}}, tuned{"dropout, r tuned", {}};
  for (const double r : kRates) tuned.candidates.push_back(dropout(r));
  return {fixed,
          tuned,
          {"bootstrap", {{.method = BootstrapMethod{}}}},
          {"regression", {{.method = RegressionMethod{}}}},
          {"trajectory", {{.method = TrajectoryMethod{}}}}};
}

/// One orbit that learns, and true solutions from `starts` states on the attractor.
struct SystemData {
  System system;
  Dataset clean;
  Dataset held_out, test;
  double horizon = 0;
};

SystemData make_data(const std::string& name, const CompareOptions& o) {
  SystemData d{find_system(name), {}, {}, {}, 0};
  const double step = 2 * d.system.step, lyapunov = *d.system.lyapunov;
  d.horizon = o.horizon / lyapunov;
  std::vector<double> times = regular_times(0, step * (o.rows - 1), step);
  times.insert(times.begin(), 0.0);
  d.clean = {
      d.system.variables,
      {{"", times, solve_certified(d.system.field, 0, d.system.start, times).solution.states}}};
  // Starts: states of a long orbit two Lyapunov times apart, in turn for judging and for
  // calibrating; whether the orbit is a true one does not matter.
  const int count = o.starts + o.held_out;
  std::vector<double> leads = regular_times(0, d.horizon, d.horizon / o.leads);
  leads.resize(static_cast<std::size_t>(o.leads));
  SolverOptions fine;
  fine.rtol = fine.atol = 1e-8;
  d.held_out = d.test = Dataset{d.system.variables};
  leads.insert(leads.begin(), 0.0);
  Vector start = d.clean.trajectories[0].states.bottomRows(1).transpose();
  for (int k = 0; k < count; ++k) {
    const Solution next = solve(d.system.field, 0, start, std::array{2 / lyapunov}, fine);
    if (next.status != SolveStatus::finished)
      throw_data({name, "an orbit that ends", "an attractor", "Leave the system out."});
    start = next.states.row(0).transpose();
    const bool judges =
        static_cast<long>(k + 1) * o.starts / count > static_cast<long>(k) * o.starts / count;
    Dataset& to = judges ? d.test : d.held_out;
    to.trajectories.push_back({fmt::format("{}", k), leads,
                               solve_certified(d.system.field, 0, start, leads).solution.states});
  }
  return d;
}

EvaluateOptions evaluation(const SystemData& d, const CompareOptions& o, int starts) {
  EvaluateOptions e;
  e.starts = starts;
  e.horizon = d.horizon;
  e.leads = o.leads;
  e.forecast.draws = o.draws;
  e.forecast.blow_up = BlowUp::until;
  e.forecast.bands = Bands::sd;
  e.forecast.seed = o.seed;
  return e;
}

void keep(Values& v, const std::string& cell, const EvaluationRow& row, double valid,
          double without) {
  const auto put = [&](const char* name, double value) { v.numbers[cell + "/" + name] = value; };
  put("coverage", row.coverage.value);
  put("coverage_se", row.coverage.standard_error);
  put("width", row.width.value);
  put("interval_score", row.interval_score.value);
  put("energy", row.energy.value);
  put("valid", valid);
  put("without", without);
}

void keep(Values& v, const std::string& cell, const Evaluation& e, double lyapunov) {
  keep(v, cell, e.model, e.valid[0].median * lyapunov,
       static_cast<double>(e.discarded) / static_cast<double>(e.discarded + e.starts));
}

std::string cell_name(double noise, const std::string& method, bool calibrated) {
  return fmt::format("{}/{}/{}", noise, method, calibrated ? "calibrated" : "raw");
}

Values run_system(const std::string& name, const CompareOptions& o, const Observer& observer) {
  Values values;
  const SystemData d = make_data(name, o);
  const double lyapunov = *d.system.lyapunov;
  for (const double noise : o.noises) {
    Dataset data = d.clean;
    if (noise > 0) add_noise(data, noise_level(data, noise, NoiseOf::sd), o.seed);
    bool climate = false;
    for (const Contender& method : contenders()) {
      try {
        const auto begin = std::chrono::steady_clock::now();
        std::optional<Model> best;
        double least = 0, setting = 0;
        for (const FitOptions& candidate : method.candidates) {
          const Fit fitted = fit(data, candidate, observer);
          if (!fitted.summary.usable) continue;
          double energy = 0;
          if (method.candidates.size() > 1)
            energy = mean_of(evaluate(fitted.model, d.held_out,
                                      evaluation(d, o, std::min(100, o.held_out)), observer)
                                 .energies)
                         .value;
          if (best && energy >= least) continue;
          best = fitted.model;
          least = energy;
          if (const auto* m = std::get_if<DropoutMethod>(&candidate.method)) setting = m->dropout;
        }
        if (!best) continue;
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        const std::string raw = cell_name(noise, method.name, false),
                          after = cell_name(noise, method.name, true);
        const Evaluation as_is = evaluate(*best, d.test, evaluation(d, o, o.starts), observer);
        keep(values, raw, as_is, lyapunov);
        values.numbers[raw + "/setting"] = setting;
        values.curves[raw + "/seconds"] = {seconds.count()};
        if (!climate) keep(values, cell_name(noise, "climatology", false), as_is.climatology, 0, 0);
        climate = true;
        best->calibration =
            conformal(evaluate(*best, d.held_out, evaluation(d, o, o.held_out), observer));
        keep(values, after, evaluate(*best, d.test, evaluation(d, o, o.starts), observer),
             lyapunov);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data)
          throw;  // this method learns nothing from these rows, or what it learns blows up
      }
    }
  }
  return values;
}

double median(std::vector<double> v) {
  if (v.empty()) return std::nan("");
  std::sort(v.begin(), v.end());
  return (v[v.size() / 2] + v[(v.size() - 1) / 2]) / 2;
}

bool holds(const CompareCell& c) { return c.coverage.value >= 0.93 && c.coverage.value <= 0.97; }

}  // namespace

MethodComparison compare(const std::filesystem::path& folder, const CompareOptions& o,
                         const Observer& observer, FolderClaim* claim) {
  std::vector<Unit> units;
  std::string settings = fmt::format(
      "odecast compare 2\nrows {}\nstarts {}\nheld_out {}\nhorizon {}\nleads {}\ndraws {}\nseed "
      "{}\nnoises",
      o.rows, o.starts, o.held_out, o.horizon, o.leads, o.draws, o.seed);
  for (const double noise : o.noises) settings += fmt::format(" {}", noise);
  for (const std::string& name : o.systems) {
    const System system = find_system(name);
    if (system.map || system.drive || !system.lyapunov || !(*system.lyapunov > 0))
      throw_usage({"system " + name, "no autonomous flow with a positive exponent", "one",
                   "`odecast systems` lists them."});
    units.push_back(
        {system.name, 1 / (*system.lyapunov * system.step),
         [name = system.name, &o](const Observer& watch) { return run_system(name, o, watch); }});
  }
  Work work = run_units(units, {folder, settings + "\n", "comparing", o.threads}, observer);
  if (claim) *claim = std::move(work.claim);
  MethodComparison result;
  result.units = static_cast<int>(units.size());
  result.found = work.found;
  std::vector<std::string> names;
  for (const Contender& m : contenders()) names.push_back(m.name);
  names.push_back("climatology");
  for (const Unit& unit : units)
    for (const double noise : o.noises)
      for (const std::string& method : names)
        for (const bool calibrated : {false, true}) {
          if (calibrated && method == "climatology") continue;
          CompareCell c{
              .system = unit.key, .noise = noise, .method = method, .calibrated = calibrated};
          const Values& v = work.results.at(unit.key);
          const std::string cell = cell_name(noise, method, calibrated);
          const auto get = [&](const char* name) {
            const auto at = v.numbers.find(cell + "/" + name);
            return at == v.numbers.end() ? 0.0 : at->second;
          };
          c.fitted = v.numbers.count(cell + "/coverage") > 0;
          c.coverage = {get("coverage"), get("coverage_se")};
          c.width = get("width");
          c.interval_score = get("interval_score");
          c.energy = get("energy");
          c.valid = get("valid");
          c.without = get("without");
          c.setting = get("setting");
          if (const auto at = v.curves.find(cell + "/seconds"); at != v.curves.end())
            c.seconds = at->second[0];
          result.cells.push_back(c);
        }
  return result;
}

std::string comparison_csv(const MethodComparison& comparison) {
  std::string text =
      "system,noise,method,calibrated,coverage,coverage_se,width,interval_score,energy,valid_"
      "lyapunov_times,without_forecast,rate\n";
  for (const CompareCell& c : comparison.cells) {
    text += fmt::format("{},{},{},{}", csv_cell(c.system), c.noise, csv_cell(c.method),
                        c.calibrated ? 1 : 0);
    if (c.fitted)
      text += fmt::format(
          ",{:.4f},{:.4f},{:.5g},{:.5g},{:.5g},{:.3f},{:.3f},{}\n", c.coverage.value,
          c.coverage.standard_error, c.width, c.interval_score, c.energy, c.valid, c.without,
          c.setting > 0 && c.method.starts_with("dropout") ? fmt::format("{}", c.setting) : "");
    else
      text += ",,,,,,,,\n";
  }
  return text;
}

std::string comparison_markdown(const MethodComparison& comparison, const CompareOptions& o) {
  std::vector<std::string> names;
  for (const CompareCell& c : comparison.cells)
    if (std::find(names.begin(), names.end(), c.method) == names.end()) names.push_back(c.method);
  std::string text;
  int cells = 0, good = 0;
  for (const CompareCell& c : comparison.cells)
    if (c.calibrated) ++cells, good += c.fitted && holds(c);
  for (const double noise : o.noises) {
    text += fmt::format(
        "### {}\n\n| posterior | coverage, median | in .93–.97 | width | interval score | energy "
        "score | valid | "
        "no forecast | calibrated: coverage | in .93–.97 | interval score |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n",
        noise == 0 ? "Clean" : fmt::format("{:g} % noise", 100 * noise));
    for (const std::string& name : names) {
      std::vector<double> value[2][6];
      int count = 0, inside[2] = {0, 0};
      for (const CompareCell& c : comparison.cells) {
        if (c.method != name || c.noise != noise) continue;
        if (!c.calibrated) ++count;
        if (!c.fitted) {
          if (!c.calibrated) value[0][5].push_back(1);
          continue;
        }
        inside[c.calibrated] += holds(c);
        const double numbers[6] = {c.coverage.value, c.width, c.interval_score,
                                   c.energy,         c.valid, c.without};
        for (int i = 0; i < 6; ++i) value[c.calibrated][i].push_back(numbers[i]);
      }
      double without = 0;
      for (const double w : value[0][5]) without += w / count;
      text += fmt::format("| {} | {:.3f} | {} of {} | {:.3g} | {:.3g} | {:.3g} | {} | {:.1f} % |",
                          name, median(value[0][0]), inside[0], count, median(value[0][1]),
                          median(value[0][2]), median(value[0][3]),
                          name == "climatology" ? "–" : fmt::format("{:.2f}", median(value[0][4])),
                          100 * without);
      if (name == "climatology")
        text += " – | – | – |\n";
      else
        text += fmt::format(" {:.3f} | {} of {} | {:.3g} |\n", median(value[1][0]), inside[1],
                            count, median(value[1][2]));
    }
    text += '\n';
  }
  text += fmt::format("Calibrated coverage is within .93–.97 in {} of {} cells ({:.0f} %).\n", good,
                      cells, 100.0 * good / std::max(1, cells));
  return text;
}

}  // namespace odecast
