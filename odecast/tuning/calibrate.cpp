#include "odecast/tuning/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/observations/noise_law.hpp"

namespace odecast {

namespace {

constexpr int kStarts = 200, kLeads = 20;

/// On the rows of the last part as they are.
Fit calibrated_on_rows(const Dataset& data, double holdout, const FitOptions& options,
                       const Observer& observer, Evaluation* judged) {
  const Split split = split_last(data, holdout);
  double longest = 0;
  for (const Trajectory& t : split.test.trajectories)
    longest = std::max(longest, t.times.back() - t.times.front());
  EvaluateOptions e;
  e.starts = kStarts;
  e.horizon = longest / 4;
  e.leads = kLeads;
  long starts = 0;
  for (const Trajectory& t : split.test.trajectories)
    starts += std::count_if(t.times.begin(), t.times.end(),
                            [&](double time) { return time + e.horizon <= t.times.back(); });
  if (!(longest > 0) ||
      !enough(static_cast<double>(std::min<long>(starts, e.starts)), e.forecast.level))
    throw_data(
        {data.source,
         fmt::format("{} held-out rows, {} of them with a quarter of the longest part after them",
                     split.test.rows(), starts),
         fmt::format("at least {:.0f} such rows to calibrate {:g} % bands on",
                     std::ceil(e.forecast.level / (1 - e.forecast.level) * (1 - 1e-12)),
                     100 * e.forecast.level),
         "Hold out more (`holdout`), or give longer trajectories."});
  Fit result = fit(split.train, options, observer);
  if (!result.summary.usable) return result;
  e.forecast.blow_up = BlowUp::until;
  e.forecast.seed = options.seed;
  e.threads = options.threads;
  // The held-out rows are observations: so are the starts.
  e.observations = observation_noise(result.model, {}).size() > 0;
  const Evaluation found = evaluate(result.model, split.test, e, observer);
  result.model.calibration = conformal(found);
  if (judged) *judged = found;
  return result;
}

/// Starts in a part of the rows, each a trajectory of its own, and as states of another dataset the
/// sd of theirs.
struct Paths {
  Dataset states, sd;
  std::vector<StartPlace> places;
};

/// A start at a row, and the rows behind it up to the horizon.
struct Cut {
  std::size_t trajectory;
  int row, end;  ///< end: one behind the last
};

/// Starts evenly among the rows from..until, counted over all trajectories, that have some rows
/// before them and a horizon of that part behind them.
std::vector<Cut> cuts(const Dataset& data, long from, long until, double horizon, int wanted) {
  constexpr int kBefore = 8;
  std::vector<Cut> all, chosen;
  long first = 0;
  for (std::size_t k = 0; k < data.trajectories.size(); ++k) {
    const std::vector<double>& times = data.trajectories[k].times;
    const auto size = static_cast<long>(times.size());
    const int begin = static_cast<int>(std::clamp(from - first, 0L, size)),
              stop = static_cast<int>(std::clamp(until - first, 0L, size));
    for (int i = std::max(begin, kBefore); i < stop; ++i) {
      const double start = times[static_cast<std::size_t>(i)];
      const auto end =
          std::lower_bound(times.begin() + i, times.begin() + stop, start + horizon * (1 - 1e-9));
      if (end == times.begin() + stop) break;
      all.push_back({k, i, static_cast<int>(end - times.begin()) + 1});
    }
    first += size;
  }
  for (int k = 0; k < std::min<int>(wanted, static_cast<int>(all.size())); ++k)
    chosen.push_back(
        all[all.size() * static_cast<std::size_t>(k) / static_cast<std::size_t>(wanted)]);
  return all.size() < static_cast<std::size_t>(wanted) ? all : chosen;
}

/// The state at a cut is smoothed from the rows up to it, as that of a forecast which continues the
/// data, and the path behind it from the rows behind it: their errors are independent. All are
/// smoothed together, by one λ, with weights that follow the noise.
Paths paths_at(const Dataset& data, const std::vector<Cut>& cuts) {
  constexpr int kWindow = 300;
  Paths paths{data, data, {}};
  paths.states.trajectories.clear();
  std::vector<ObservedRun> runs;
  for (const Cut& cut : cuts) {
    const Trajectory& t = data.trajectories[cut.trajectory];
    const auto add = [&](int begin, int end) {
      runs.push_back(observed_run({t.times.begin() + begin, t.times.begin() + end},
                                  t.states.middleRows(begin, end - begin)));
    };
    add(std::max(0, cut.row + 1 - kWindow), cut.row + 1);
    add(cut.row + 1, std::min(t.rows(), cut.end + kWindow));
  }
  const Eigen::Index n = data.dimension();
  Smoothed smoothed = smooth(runs, false);
  weigh_by_noise(runs, smoothed, NoiseLaw::automatic, Vector::Zero(n), Vector::Ones(n));
  for (std::size_t k = 0; k < cuts.size(); ++k) {
    const Cut& cut = cuts[k];
    const Trajectory& t = data.trajectories[cut.trajectory];
    const int rows = cut.end - cut.row;
    Trajectory path{fmt::format("{}", k),
                    {t.times.begin() + cut.row, t.times.begin() + cut.end},
                    Matrix(rows, n)};
    if (t.inputs.size() > 0) path.inputs = t.inputs.middleRows(cut.row, rows);
    Trajectory sd = path;
    for (const auto& [to, from] :
         {std::pair{&path.states, &smoothed.values}, {&sd.states, &smoothed.sd}}) {
      to->row(0) = (*from)[2 * k].bottomRows(1);
      to->bottomRows(rows - 1) = (*from)[2 * k + 1].topRows(rows - 1);
    }
    paths.states.trajectories.push_back(std::move(path));
    paths.sd.trajectories.push_back(std::move(sd));
    paths.places.push_back(
        {static_cast<int>(cut.trajectory), t.times[static_cast<std::size_t>(cut.row)]});
  }
  paths.sd.trajectories.erase(
      paths.sd.trajectories.begin(),
      paths.sd.trajectories.end() - static_cast<std::ptrdiff_t>(cuts.size()));
  return paths;
}

/// Adds what another part says, at the same leads.
void join(Evaluation& all, const Evaluation& part) {
  const double before = all.starts, more = part.starts, both = before + more;
  const auto mean = [&](double& a, double b) { a = (before * a + more * b) / both; };
  for (std::size_t j = 0; j < all.leads.size(); ++j) {
    Matrix rows(all.scores[j].rows() + part.scores[j].rows(), all.scores[j].cols());
    rows << all.scores[j], part.scores[j];
    all.scores[j] = std::move(rows);
    mean(all.coverage[j].value, part.coverage[j].value);
  }
  mean(all.model.coverage.value, part.model.coverage.value);
  mean(all.blown_up, part.blown_up);
  all.effective += part.effective;
  all.starts += part.starts;
}

/// Whether forecasts of two parts are judged at the same times.
bool same_leads(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](double x, double y) {
           return std::abs(x - y) < 1e-3 * a.front();
         });
}

}  // namespace

Fit fit_calibrated(const Dataset& data, double holdout, const FitOptions& options,
                   const Observer& observer, Evaluation* judged) {
  const bool missing = std::any_of(data.trajectories.begin(), data.trajectories.end(),
                                   [](const Trajectory& t) { return !t.states.allFinite(); });
  if (options.kind == ModelKind::map || options.embed || missing)
    return calibrated_on_rows(data, holdout, options, observer, judged);
  require_option(holdout > 0 && holdout < 1, "`holdout`", fmt::format("{}", holdout),
                 "a number between 0 and 1", "0.2 holds out a fifth at a time.");
  constexpr double kMostParts = 20;
  const int parts = static_cast<int>(std::lround(std::clamp(1 / holdout, 2.0, kMostParts)));
  EvaluateOptions e;
  e.leads = kLeads;
  e.threads = options.threads;
  e.forecast.blow_up = BlowUp::until;
  e.forecast.calibrated = false;
  e.horizon = std::numeric_limits<double>::infinity();
  for (int k = 0; k < parts; ++k) {
    double longest = 0;
    for (const Trajectory& t : hold_out(data, k, parts).test.trajectories)
      longest = std::max(longest, t.times.back() - t.times.front());
    e.horizon = std::min(e.horizon, longest / 4);
  }
  std::optional<Evaluation> all;
  std::vector<double> coverage;
  std::string why = "parts too short to start from";
  for (int k = 0; k < parts && e.horizon > 0; ++k) {
    const long rows = data.rows();
    const std::vector<Cut> starts = cuts(data, rows * k / parts, rows * (k + 1) / parts, e.horizon,
                                         std::max(2, kStarts / parts));
    if (starts.size() < 2) continue;
    const Paths paths = paths_at(data, starts);
    e.starts = static_cast<int>(starts.size());
    e.truth_sd.clear();
    for (const Trajectory& t : paths.sd.trajectories) e.truth_sd.push_back(t.states);
    e.forecast.seed = options.seed + static_cast<std::uint64_t>(1000 * k);
    try {
      const Fit others = fit(hold_out(data, k, parts).train, options, observer);
      if (!others.summary.usable) continue;
      Evaluation found = evaluate(others.model, paths.states, e, observer);
      found.effective = effective_number(paths.places, e.horizon);
      if (all && !same_leads(all->leads, found.leads)) continue;
      coverage.push_back(found.model.coverage.value);
      if (all)
        join(*all, found);
      else
        all = found;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      why = error.what();
    }
  }
  if (!all || !enough(all->starts, e.forecast.level))
    throw_data({data.source,
                fmt::format("{} starts in {} parts of its {} rows ({})", all ? all->starts : 0,
                            parts, data.rows(), why),
                fmt::format("at least {:.0f} to calibrate {:g} % bands on",
                            std::ceil(e.forecast.level / (1 - e.forecast.level) * (1 - 1e-12)),
                            100 * e.forecast.level),
                "Hold out more (`holdout`), or give longer trajectories."});
  all->model.coverage.standard_error = mean_of(coverage).standard_error;
  Fit result = fit(data, options, observer);
  if (result.summary.usable) result.model.calibration = conformal(*all);
  if (judged) *judged = *all;
  return result;
}

}  // namespace odecast
