#pragma once

#include <optional>
#include <string>
#include <vector>

#include "odecast/network/network.hpp"
#include "odecast/observations/scaling.hpp"
#include "odecast/posterior/trajectory_posterior.hpp"

namespace odecast {

/// A fitted model: all that a forecast needs, and a record of where it came from.
struct Model {
  std::vector<std::string> variables;
  Scaling scaling;
  Network network;  ///< in model units; no layers where the field is known as `trajectory`

  /// What `fit --posterior trajectory` found, in model units but for the noise.
  struct TrajectoryPart {
    int degree = 1;  ///< of the basis that numbers the members' monomials
    std::vector<TrajectoryMember> members;
    Vector noise;                ///< sd of the observations, user's units
    double noise_ratio = 1;      ///< over the smoother's
    double autocorrelation = 0;  ///< of neighbouring residuals
    double continuity = 0;       ///< error per segment over the noise, 0 where the equations fit
    bool misfit = false;
  };
  std::optional<TrajectoryPart> trajectory;

  /// Where the data end: forecasts continue from here unless told otherwise. User's units.
  std::string last_trajectory;  ///< its id; empty where there is only one
  double last_time = 0;
  Vector last_state;
  std::optional<Vector> last_state_sd;  ///< its uncertainty, where known
  double step = 0;        ///< median spacing of the observations
  double data_scale = 0;  ///< largest |v| of the data, in model units
  Vector size;            ///< root mean square of each variable, user's units

  struct Training {
    std::string trainer, derivative, status, reason;
    double noise_factor = 0, noise_order = 0;  ///< c and m of σ_γ = c h^m
    long rows = 0, trajectories = 0, iterations = 0;
    std::optional<double> objective;  ///< exact expected dropout objective, user's units
    std::uint64_t seed = 0;
  } training;

  int dimension() const { return static_cast<int>(variables.size()); }
};

/// The posterior of a model with a `trajectory` part.
TrajectoryPosterior trajectory_posterior(const Model& model);

}  // namespace odecast
