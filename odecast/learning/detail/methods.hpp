#pragma once

#include "odecast/learning/fit.hpp"

namespace odecast {

// One way each; `options` are checked, and their method is the one named.

Fit learn(const Dataset& data, const TrajectoryMethod& method, const FitOptions& options,
          const Observer& observer);
Fit learn(const ObservationSource& source, const RegressionMethod& method,
          const FitOptions& options, const Observer& observer);
Fit learn(const ObservationSource& source, const BootstrapMethod& method, const FitOptions& options,
          const Observer& observer);
/// By the exact trainer or by a schedule.
Fit learn(const ObservationSource& source, const DropoutMethod& method, const FitOptions& options,
          const Observer& observer);
Fit learn(const ObservationSource& source, const EnsembleMethod& method, const FitOptions& options,
          const Observer& observer);

/// The first of the highest evidence and prior: of degrees that find the same terms the lowest.
int best_degree(const std::vector<DegreeTrial>& trials);

/// The hidden layers that a method asks for, with so many arguments.
std::vector<HiddenLayer> hidden_layers(const DropoutMethod& method, int arguments);

}  // namespace odecast
