#include "odecast/tuning/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/work.hpp"
#include "odecast/observations/inspection.hpp"

namespace odecast {
namespace {

/// Of names, times and values, to notice other data.
std::uint64_t fingerprint(const Dataset& data) {
  std::uint64_t hash = fnv1a("");
  const auto add = [&](const double* values, std::size_t count) {
    hash = fnv1a({reinterpret_cast<const char*>(values), count * sizeof(double)}, hash);
  };
  const auto name = [&](const std::string& text) { hash = fnv1a(text + '\n', hash); };
  for (const auto* names : {&data.variables, &data.inputs}) {
    for (const auto& n : *names) name(n);
    name("");
  }
  for (const Trajectory& t : data.trajectories) {
    name("");
    add(t.times.data(), t.times.size());
    add(t.states.data(), static_cast<std::size_t>(t.states.size()));
    add(t.inputs.data(), static_cast<std::size_t>(t.inputs.size()));
  }
  return hash;
}

/// A file name that no other words and block have: spaces are _, what may not stand in a name is
/// its code, and the end of what is too long for one is its hash.
std::string key_of(const std::string& words, int block) {
  std::string key = fmt::format("block{}_", block + 1);
  for (const char c : words)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+')
      key += c;
    else if (c == ' ')
      key += '_';
    else
      key += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  constexpr std::size_t kLongest = 180;
  if (key.size() > kLongest) key = fmt::format("{}_{:016x}", key.substr(0, kLongest), fnv1a(words));
  return key;
}

/// The shortest time that a held-out block covers without a cut, and is to hold starts and their
/// horizon.
double block_time(const Dataset& data, int blocks) {
  double shortest = 1e300;
  for (int b = 0; b < blocks; ++b) {
    double longest = 0;
    for (const Trajectory& t : hold_out(data, b, blocks).test.trajectories)
      longest = std::max(longest, t.times.back() - t.times.front());
    shortest = std::min(shortest, longest);
  }
  return shortest;
}

Values run_unit(const Split& split, const Candidate& candidate, const EvaluateOptions& options,
                const Observer& observer) {
  Values values;
  std::optional<Evaluation> e;
  try {
    const Fit fitted = fit(split.train, candidate.options, observer);
    if (fitted.summary.usable) e = evaluate(fitted.model, split.test, options, observer);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;  // these rows cannot be learnt from in this way
  }
  values.numbers["fitted"] = e ? 1 : 0;
  if (!e) return values;
  values.curves["energies"] = e->energies;
  for (const StartPlace& at : e->places) {
    values.curves["trajectories"].push_back(at.trajectory);
    values.curves["times"].push_back(at.time);
  }
  for (const double crps : e->crps)
    values.curves["crps"].push_back(std::isnan(crps) ? 0 : crps);  // of a constant
  values.numbers["starts"] = e->starts;
  values.numbers["failed"] = e->discarded;
  values.numbers["coverage"] = e->model.coverage.value;
  values.numbers["coverage_se"] = e->model.coverage.standard_error;
  values.numbers["climatology"] = e->climatology.energy.value;
  return values;
}

}  // namespace

Tuning tune(const Dataset& data, const std::vector<Candidate>& candidates,
            const std::filesystem::path& folder, const TuneOptions& options,
            const Observer& observer, FolderClaim* claim) {
  Tuning result;
  result.noise =
      options.noise ? *options.noise : inspect(source_of(data)).noise.head(data.dimension());
  if (result.noise.size() == 1) result.noise = Vector::Constant(data.dimension(), result.noise[0]);
  for (double& s : result.noise) s = std::isfinite(s) ? s : 0;
  const double available = block_time(data, options.blocks);
  result.horizon = options.horizon.value_or(available / 4);
  if (!(result.horizon > 0) || result.horizon > available / 2)
    throw_data({data.source,
                fmt::format("{} blocks of {:.4g} time units, horizon {:.4g}", options.blocks,
                            available, result.horizon),
                "blocks at least twice as long as the horizon",
                "Give fewer `blocks`, a smaller `horizon` or more data."});
  EvaluateOptions e;
  e.starts = std::max(2, options.starts / options.blocks);
  e.horizon = result.horizon;
  e.leads = options.leads;
  e.observations = true;
  e.forecast.draws = options.draws;
  e.forecast.blow_up = BlowUp::until;
  e.forecast.noise = result.noise;
  e.forecast.seed = options.seed;

  std::vector<Split> splits;
  for (int b = 0; b < options.blocks; ++b) splits.push_back(hold_out(data, b, options.blocks));
  for (const Candidate& c : candidates)
    check(c.options, data.dimension(),
          static_cast<int>(data.inputs.size()) + (c.options.time_name.empty() ? 0 : 1));
  std::vector<Unit> units;
  for (const Candidate& c : candidates)
    for (int b = 0; b < options.blocks; ++b)
      units.push_back({key_of(c.words, b), 1, [&, b](const Observer& o) {
                         return run_unit(splits[static_cast<std::size_t>(b)], c, e, o);
                       }});
  std::string settings = fmt::format(
      "odecast tune 3\ndata {:016x}\nshared {}\nblocks {}\nstarts {}\nhorizon {}\nleads {}\ndraws "
      "{}\nseed {}\nnoise",
      fingerprint(data), options.shared, options.blocks, e.starts, e.horizon, e.leads,
      e.forecast.draws, options.seed);
  for (const double s : result.noise) settings += fmt::format(" {}", s);
  Work work =
      run_units(std::move(units), {folder, settings + "\n", "tuning", options.threads}, observer);
  if (claim) *claim = std::move(work.claim);
  result.units = static_cast<int>(candidates.size()) * options.blocks;
  result.found = work.found;

  std::vector<std::vector<double>> energies(candidates.size());
  std::vector<StartPlace> places;  // the same for all that are fitted
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    TuneRow row;
    row.candidate = c;
    row.crps = Vector::Zero(data.dimension());
    double weight = 0, variance = 0;
    std::vector<StartPlace> starts;
    for (int b = 0; b < options.blocks; ++b) {
      const Values& v = work.results.at(key_of(candidates[c].words, b));
      row.fitted = row.fitted && v.numbers.at("fitted") != 0;
      if (!row.fitted) break;
      const auto& of_block = v.curves.at("energies");
      energies[c].insert(energies[c].end(), of_block.begin(), of_block.end());
      const int first = starts.empty() ? 0 : starts.back().trajectory + 1;
      for (std::size_t k = 0; k < of_block.size(); ++k)
        starts.push_back(
            {first + static_cast<int>(v.curves.at("trajectories")[k]), v.curves.at("times")[k]});
      const double n = v.numbers.at("starts");
      weight += n;
      row.coverage.value += n * v.numbers.at("coverage");
      variance += std::pow(n * v.numbers.at("coverage_se"), 2);
      for (Eigen::Index i = 0; i < row.crps.size(); ++i)
        row.crps[i] += n * v.curves.at("crps")[static_cast<std::size_t>(i)];
      row.failed += static_cast<int>(v.numbers.at("failed"));
      row.climatology += n * v.numbers.at("climatology");
    }
    if (row.fitted) {
      places = starts;
      row.energy = mean_of(energies[c], places, result.horizon);
      row.coverage = {row.coverage.value / weight, std::sqrt(variance) / weight};
      row.crps /= weight;
      row.climatology /= weight;
    }
    result.rows.push_back(row);
  }
  std::stable_sort(result.rows.begin(), result.rows.end(), [](const TuneRow& a, const TuneRow& b) {
    if (a.fitted != b.fitted) return a.fitted;
    return a.energy.value < b.energy.value;
  });
  if (result.rows.empty() || !result.rows[0].fitted)
    throw_data({data.source, "no candidate that learns from every part of it", "at least one",
                "Try other settings, or more data."});
  const auto& best = energies[result.rows[0].candidate];
  result.starts = static_cast<int>(best.size());
  result.climatology = result.rows[0].climatology;
  for (TuneRow& row : result.rows) {
    if (!row.fitted) continue;
    std::vector<double> difference = energies[row.candidate];
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= best[i];
    row.behind = mean_of(difference, places, result.horizon);
  }
  return result;
}

}  // namespace odecast
