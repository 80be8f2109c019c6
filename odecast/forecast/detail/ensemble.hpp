#pragma once

// How a forecast's trajectories are made and summed up.

#include "odecast/core/aligned.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/forecast/moments.hpp"
#include "odecast/solver/lanes.hpp"

namespace odecast {

/// Everything a trajectory needs; shared by all threads, changed by none. Times in model units.
struct EnsembleSetting {
  const Model& model;
  const ForecastOptions& options;
  const Posterior& posterior;
  ForecastStart start;
  SolverOptions solver;
  int n, times;
  double t0;
  std::vector<double> output_times;
  bool continues;                                  ///< from where the data end
  std::shared_ptr<const InputSignal> inputs = {};  ///< in model units; null where none is measured
  /// What trajectories stay within at each output time, model units: times × variables; empty where
  /// nothing is known (kFarRanges).
  Matrix low = {}, high = {};

  /// The field with its inputs as functions of time.
  VectorField driven(const VectorField& field) const;
  bool autonomous() const { return model.inputs.size() == 0; }
  /// White noise for what the equations do not explain.
  bool forced() const { return model.trajectory && model.trajectory->forcing.present(); }
  /// Trajectories are variable × stride.
  int stride() const { return lane_stride(times); }
  std::size_t trajectory_size() const {
    return static_cast<std::size_t>(n) * static_cast<std::size_t>(stride());
  }

  Vector start_of(std::uint64_t index) const;
  /// Whether a trajectory leaves what is known to be positive, by more than the solver's error, at
  /// its start or an output.
  bool below_zero(const double* states, int outputs, std::uint64_t index) const;
  /// The first output, of so many, that is out of `low` and `high`; their number where none is.
  int leaves(const double* states, int outputs) const;
  bool point_start() const { return (start.sd.array() == 0).all(); }
};

/// A trajectory that is kept for the quantiles.
struct StoredTrajectory {
  const double* states;  ///< variable × stride
  int outputs;
  double weight;
};

struct BlowUpRecord {
  double time;  ///< in the user's units
  double weight;
};

/// A trajectory that the result carries whole.
struct SampleTrajectory {
  std::uint64_t index;  ///< of its start
  double weight;
  int outputs;
  std::vector<double> states;  ///< variable × stride
};

/// The trajectories that count, and what became of the others.
struct Ensemble {
  explicit Ensemble(const EnsembleSetting& s) : moments(s.n, s.times) {}
  RunningMoments moments;
  std::vector<StoredTrajectory> stored;
  std::vector<AlignedDoubles> storage;    ///< what `stored` points into
  std::vector<BlowUpRecord> blow_ups;     ///< in draw order
  std::vector<SampleTrajectory> samples;  ///< heaviest first, then in draw order
  long tried = 0, kept = 0, integrated = 0;
  long below_zero = 0;  ///< of the tried
  double tried_weight = 0, kept_weight = 0;
};

/// Draws in order of their index until enough count or the attempts are used up.
Ensemble run_sampled(const EnsembleSetting& setting, const Observer& observer);
/// Every field of the posterior once.
Ensemble run_enumerated(const EnsembleSetting& setting, const Observer& observer);

}  // namespace odecast
