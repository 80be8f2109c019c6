#include "odecast/tuning/embed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast {
namespace {

constexpr double kHeldOut = 0.3;
constexpr std::array<Embedding, 2> kWays = {
    {{EmbeddingKind::delays, 3}, {EmbeddingKind::derivatives, 2}}};

/// The law of an embedding is no polynomial: a linear one with forcing is stable and knows what it
/// does not know; a cubic one, odd terms among them, is the sharper where the motion is
/// deterministic.
std::vector<Method> methods(const Method& given) {
  const auto* one = std::get_if<TrajectoryMethod>(&given);
  if (!one || one->degree != TrajectoryMethod{}.degree || !one->terms.empty()) return {given};
  TrajectoryMethod linear = *one;
  linear.degree = 1;
  return {linear, RegressionMethod{.degree = 3}};
}

}  // namespace

EmbeddingSearch search_embedding(const Dataset& data, const FitOptions& options,
                                 const Observer& observer) {
  const Split split = split_last(data, kHeldOut);
  EvaluateOptions e;
  e.starts = 40;
  e.leads = 10;
  e.forecast.draws = 100;
  e.forecast.blow_up = BlowUp::until;
  e.forecast.seed = options.seed;
  e.threads = options.threads;
  EmbeddingSearch found;
  std::string reason;
  std::vector<std::pair<Embedding, Method>> candidates;
  for (const Method& method : methods(options.method))
    for (const Embedding& way : kWays) candidates.emplace_back(way, method);
  for (const auto& [way, method] : candidates) {
    EmbeddingTrial trial{way, method, std::numeric_limits<double>::quiet_NaN()};
    FitOptions one = options;
    one.embed = EmbeddingChoice{.automatic = false, .embedding = way};
    one.method = method;
    if (one.budget) *one.budget /= 5;
    try {
      trial.embedding = fitted_embedding(split.train, way);
      // All over the same time: twice that of the longest delays.
      const double memory =
          2 * fitted_embedding(split.train, {EmbeddingKind::delays, 2}).lag * trial.embedding.step;
      e.horizon = 2 * memory;
      const Fit fitted = fit(split.train, one, observer);
      if (fitted.summary.usable) {
        e.observations = observation_noise(fitted.model, {}).size() > 0;
        const Evaluation judged = evaluate(fitted.model, split.test, e, observer);
        double sum = 0;
        for (const double energy : judged.energies) sum += energy;
        trial.energy = sum / static_cast<double>(judged.energies.size());
        found.climatology = judged.climatology.energy.value;
        found.persistence = judged.persistence.energy.value;
      } else {
        reason = fitted.summary.reason;
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      reason = error.what();
    }
    found.trials.push_back(trial);
  }
  std::stable_sort(found.trials.begin(), found.trials.end(),
                   [](const EmbeddingTrial& a, const EmbeddingTrial& b) {
                     return a.energy < b.energy || (std::isnan(b.energy) && !std::isnan(a.energy));
                   });
  if (std::isnan(found.trials.front().energy))
    throw_data({data.source, "no embedding that can be fitted and judged: " + reason,
                "enough rows of one variable that moves", "Give more rows."});
  return found;
}

FitOptions choose_embedding(const Dataset& data, FitOptions options, const Observer& observer) {
  if (!options.embed || !options.embed->automatic) return options;
  const EmbeddingTrial best = search_embedding(data, options, observer).trials.front();
  options.embed = EmbeddingChoice{.automatic = false, .embedding = best.embedding};
  options.method = best.method;
  return options;
}

}  // namespace odecast
