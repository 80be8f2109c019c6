#include "odecast/learning/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"
#include "odecast/learning/detail/methods.hpp"
#include "odecast/learning/fields.hpp"

namespace odecast {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// How many of the source's variables are measured, the first: of an embedding one.
int measured(const ObservationSource& source, const FitOptions& options) {
  return options.embed ? 1 : source.dimension();
}

/// The source, whose first whole pass leaves its rows with the keeper; `whole` says that it did.
ObservationSource kept_from(const ObservationSource& source, const FitOptions& options,
                            RowKeeper& keeper, bool& whole) {
  ObservationSource watched = source;
  watched.replay = [&source, &options, &keeper, &whole](const ObservationSource::Visitor& visit) {
    if (whole) return source.replay(visit);
    keeper = RowKeeper(measured(source, options), options.keep_rows);
    bool going = true;
    source.replay([&](std::size_t which, double time, const double* state) {
      keeper.add(which, time, state);
      return going = visit(which, time, state);
    });
    whole = going;
  };
  return watched;
}

/// `data` where the method asks for them.
Fit learnt(const Dataset* data, const ObservationSource& source, const FitOptions& options,
           const Observer& observer) {
  const auto inputs = static_cast<int>(source.inputs.size()) + (options.time_name.empty() ? 0 : 1);
  check(options, source.dimension(), inputs);
  RowKeeper keeper(measured(source, options), options.keep_rows);
  bool whole = false;
  const ObservationSource watched = kept_from(source, options, keeper, whole);
  Fit fit = std::visit(
      Overloaded{[&](const TrajectoryMethod& m) { return learn(*data, m, options, observer); },
                 [&](const auto& m) { return learn(watched, m, options, observer); }},
      options.method);
  if (!whole) watched.replay([](std::size_t, double, const double*) { return true; });
  fit.model.observed = keeper.kept();
  fit.model.time_name = source.table->time_name;
  fit.model.calendar = source.table->calendar;
  FitOptions ran = options;
  if (fit.summary.taken_degree > 0)
    std::get<TrajectoryMethod>(ran.method).degree = fit.summary.taken_degree;
  fit.model.settings = settings(ran);  // what ran becomes part of the model
  if (fit.summary.usable && fit.model.polynomial() && fit.model.kind == ModelKind::flow)
    fit.summary.conserved = conserved(source, fit.model.noise);
  return fit;
}

/// Marks the variables that are named, after a look whether their rows are positive.
std::vector<bool> positive_variables(const Dataset& data, const std::vector<std::string>& names) {
  const bool all = names.size() == 1 && names[0] == kAllPositive &&
                   std::count(data.variables.begin(), data.variables.end(), names[0]) == 0;
  std::vector<bool> positive(data.variables.size(), all);
  for (const std::string& name : names) {
    const auto at = std::find(data.variables.begin(), data.variables.end(), name);
    if (at == data.variables.end() && !all)
      throw_usage({"`positive`", "no variable " + shown(name),
                   fmt::format("some of {}, or all", fmt::join(data.variables, ", ")),
                   "Name columns that are learnt."});
    if (!all) positive[static_cast<std::size_t>(at - data.variables.begin())] = true;
  }
  std::vector<std::string> others;
  for (Eigen::Index i = 0; i < data.dimension(); ++i) {
    const auto& name = data.variables[static_cast<std::size_t>(i)];
    bool good = true;
    for (const Trajectory& t : data.trajectories)
      good = good && !(t.states.col(i).array() <= 0).any();
    if (good && positive[static_cast<std::size_t>(i)]) others.push_back(name);
  }
  for (const Trajectory& t : data.trajectories)
    for (int k = 0; k < t.rows(); ++k)
      for (Eigen::Index i = 0; i < data.dimension(); ++i)
        if (positive[static_cast<std::size_t>(i)] && t.states(k, i) <= 0)
          throw_data(
              {fmt::format("{}, column {}{}, row {} (t = {:.6g})", data.source,
                           data.variables[static_cast<std::size_t>(i)],
                           t.id.empty() ? "" : ", trajectory " + t.id, k + 1,
                           t.times[static_cast<std::size_t>(k)]),
               fmt::format("{:g}", t.states(k, i)), "a number > 0 in what is said to be positive",
               others.empty()
                   ? "Leave `positive` out, or such rows: a state that reaches 0 stays there."
                   : fmt::format("Name the others alone, `positive={}`, or leave such rows out.",
                                 fmt::join(others, ","))});
  return positive;
}

/// Positive in all rows, the least of them within a 95 % band of 0.
std::vector<std::string> perhaps_positive(const Dataset& data, const Model& model) {
  std::vector<std::string> names;
  if (model.noise.size() == 0) return names;
  const ObservationSummary summary = summarise(source_of(data));
  for (Eigen::Index i = 0; i < data.dimension(); ++i)
    if (!summary.constant[static_cast<std::size_t>(i)] && model.log_noise_sd(i) == 0 &&
        summary.smallest[i] > 0 && summary.smallest[i] < 1.96 * model.noise[i])
      names.push_back(data.variables[static_cast<std::size_t>(i)]);
  return names;
}

}  // namespace

bool streams(const Method& method) {
  const auto* network = std::get_if<DropoutMethod>(&method);
  return network ? network->exact()
                 : std::holds_alternative<RegressionMethod>(method) ||
                       std::holds_alternative<BootstrapMethod>(method);
}

Fit fit(const Dataset& data, const FitOptions& options, const Observer& observer) {
  const std::vector<bool> positive =
      options.positive.empty() ? std::vector<bool>() : positive_variables(data, options.positive);
  if (!options.embed) {
    Fit result = learnt(&data, source_of(data), options, observer);
    result.model.positive = positive;
    if (result.summary.usable && positive.empty())
      result.summary.perhaps_positive = perhaps_positive(data, result.model);
    return result;
  }
  if (options.embed->automatic)
    throw_usage({"`embed`", "auto", "a way to embed",
                 "Have choose_embedding of tuning/embed.hpp find one."});
  const Embedding embedding = fitted_embedding(data, options.embed->embedding);
  const Dataset wide = embedded(data, embedding);
  Fit result = learnt(&wide, source_of(wide), options, observer);
  result.model.embedding = embedding;
  result.summary.conserved.reset();  // coordinates of one variable are alike by themselves
  // Delays are the same variable; derivatives have any sign.
  if (!positive.empty()) {
    result.model.positive.assign(wide.variables.size(),
                                 embedding.kind == EmbeddingKind::delays && positive[0]);
    result.model.positive[0] = positive[0];
  }
  return result;
}

Fit fit(const ObservationSource& source, const FitOptions& options, const Observer& observer) {
  if (streams(options.method) && !options.embed && options.positive.empty())
    return learnt(nullptr, source, options, observer);
  return fit(dataset_of(source), options, observer);
}

}  // namespace odecast
