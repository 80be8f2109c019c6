#include "odecast/learning/fit.hpp"

#include "odecast/learning/detail/methods.hpp"
#include "odecast/learning/fields.hpp"

namespace odecast {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

/// What ran becomes part of the model.
Fit recorded(Fit fit, const FitOptions& options) {
  fit.model.settings = settings(options);
  return fit;
}

}  // namespace

Fit fit(const Dataset& data, const FitOptions& options, const Observer& observer) {
  if (const auto* method = std::get_if<TrajectoryMethod>(&options.method)) {
    const auto inputs = static_cast<int>(data.inputs.size()) + (options.time_name.empty() ? 0 : 1);
    check(options, data.dimension(), inputs);
    return recorded(learn(data, *method, options, observer), options);
  }
  return fit(source_of(data), options, observer);
}

Fit fit(const ObservationSource& source, const FitOptions& options, const Observer& observer) {
  const auto inputs = static_cast<int>(source.inputs.size()) + (options.time_name.empty() ? 0 : 1);
  check(options, source.dimension(), inputs);
  const auto rows = [&](const auto& method) { return learn(source, method, options, observer); };
  return recorded(std::visit(Overloaded{[&](const TrajectoryMethod& method) {
                                          return learn(dataset_of(source), method, options,
                                                       observer);
                                        },
                                        rows},
                             options.method),
                  options);
}

}  // namespace odecast
