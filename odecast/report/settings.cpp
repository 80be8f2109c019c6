#include "odecast/report/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "odecast/report/page_parts.hpp"

namespace odecast {
namespace {

std::string yes_or_no(bool value) { return value ? "yes" : "no"; }

/// With every digit; of many the first and the last.
std::string numbers(const Vector& values) {
  if (values.size() > 12)
    return fmt::format("{}, … {} ({} values)", values[0], values[values.size() - 1], values.size());
  return fmt::format("{}", fmt::join(values.begin(), values.end(), ", "));
}

}  // namespace

Settings forecast_settings(const Model& model, const ForecastOptions& o) {
  assert(!o.times.empty());  // as of any forecast that ran
  Settings s;
  const ForecastStart start = forecast_start(model, o);
  s.emplace_back("start", o.init ? numbers(*o.init) : "the last observation");
  s.emplace_back("time of the start", fmt::format("{}", start.time));
  if ((start.sd.array() > 0).any())
    s.emplace_back("sd of the start", o.init_sd ? numbers(*o.init_sd) : "as the model knows it");
  s.emplace_back(
      "output times",
      fmt::format("{} to t = {}", counted(static_cast<long>(o.times.size())), o.times.back()));
  if (o.masks == MaskSource::enumerated) {
    s.emplace_back("draws", "every one, once");
  } else {
    s.emplace_back("draws", counted(o.draws));
    s.emplace_back("seed", fmt::format("{}", o.seed));
    s.emplace_back("attempts, at most", fmt::format("{} for each draw", o.attempts_per_draw));
  }
  s.emplace_back("level", fmt::format("{}", o.level));
  const Bands bands = o.bands.value_or(default_bands(model));
  s.emplace_back("bands", bands == Bands::sd          ? "mean ± c sd"
                          : bands == Bands::quantiles ? "quantiles"
                                                      : "mean ± c sd, quantiles");
  if (model.calibration) s.emplace_back("bands calibrated", yes_or_no(o.calibrated));
  if (const Vector noise = observation_noise(model, o); noise.size() > 0)
    s.emplace_back("noise of an observation", numbers(noise));
  s.emplace_back("a run that blows up",
                 o.blow_up == BlowUp::until ? "counts until then" : "is discarded");
  s.emplace_back("bound", fmt::format("{} times the largest value of the data", o.bound_factor));
  if (!model.polynomial() && !model.ensemble())
    s.emplace_back("a new mask", o.mask == MaskChange::step   ? "at every step"
                                 : o.mask == MaskChange::call ? "at every call"
                                                              : "never");
  if (model.kind == ModelKind::map) return s;
  if (o.transition_noise) s.emplace_back("noise of the solver", "added at the output times");
  const SolverOptions solver = o.solver.value_or(default_solver(model));
  s.emplace_back("solver", std::string(method_name(solver.method)));
  if (solver.method == SolverMethod::rk45 || solver.method == SolverMethod::radau) {
    s.emplace_back("relative tolerance", fmt::format("{}", solver.rtol));
    s.emplace_back("absolute tolerance", fmt::format("{}, in model units", solver.atol));
  } else {
    s.emplace_back("step of the solver", fmt::format("{}", solver.fixed_step));
  }
  s.emplace_back("steps of the solver, at most", counted(solver.max_steps));
  return s;
}

}  // namespace odecast
