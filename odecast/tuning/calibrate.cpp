#include "odecast/tuning/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {

Fit fit_calibrated(const Dataset& data, double holdout, const FitOptions& options,
                   const Observer& observer, Evaluation* judged) {
  const Split split = split_last(data, holdout);
  double longest = 0;
  for (const Trajectory& t : split.test.trajectories)
    longest = std::max(longest, t.times.back() - t.times.front());
  EvaluateOptions e;
  e.starts = 200;
  e.horizon = longest / 4;
  e.leads = 20;
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

}  // namespace odecast
