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

/// `data` where the method asks for them.
Fit learnt(const Dataset* data, const ObservationSource& source, const FitOptions& options,
           const Observer& observer) {
  const auto inputs = static_cast<int>(source.inputs.size()) + (options.time_name.empty() ? 0 : 1);
  check(options, source.dimension(), inputs);
  Fit fit = std::visit(
      Overloaded{[&](const TrajectoryMethod& m) { return learn(*data, m, options, observer); },
                 [&](const auto& m) { return learn(source, m, options, observer); }},
      options.method);
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
