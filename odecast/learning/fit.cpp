#include "odecast/learning/fit.hpp"

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

/// The source, whose first whole pass leaves its rows with the keeper; `whole` says that it did.
ObservationSource kept_from(const ObservationSource& source, const FitOptions& options,
                            RowKeeper& keeper, bool& whole) {
  ObservationSource watched = source;
  watched.replay = [&source, &options, &keeper, &whole](const ObservationSource::Visitor& visit) {
    if (whole) return source.replay(visit);
    keeper = RowKeeper(source.dimension(), options.keep_rows);
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
  RowKeeper keeper(source.dimension(), options.keep_rows);
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
  fit.model.settings = settings(options);  // what ran becomes part of the model
  if (fit.summary.usable && fit.model.polynomial() && fit.model.kind == ModelKind::flow)
    fit.summary.conserved = conserved(source, fit.model.noise);
  return fit;
}

}  // namespace

bool streams(const Method& method) {
  const auto* network = std::get_if<DropoutMethod>(&method);
  return network ? network->exact()
                 : std::holds_alternative<RegressionMethod>(method) ||
                       std::holds_alternative<BootstrapMethod>(method);
}

Fit fit(const Dataset& data, const FitOptions& options, const Observer& observer) {
  return learnt(&data, source_of(data), options, observer);
}

Fit fit(const ObservationSource& source, const FitOptions& options, const Observer& observer) {
  if (streams(options.method)) return learnt(nullptr, source, options, observer);
  return fit(dataset_of(source), options, observer);
}

}  // namespace odecast
