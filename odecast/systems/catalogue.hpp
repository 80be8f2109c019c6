#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/field/vector_field.hpp"

namespace odecast {

struct Parameter {
  std::string name;
  double value;
};

/// A known dynamical system: its equations, and what is needed to simulate it and to judge
/// forecasts of it.
struct System {
  std::string name;   ///< as in the dysts collection, where it has the system
  std::string title;  ///< one line for people
  std::vector<std::string> variables;
  /// "dx/dt = y z", one per variable, with parameters by name. Lorenz96 has a single line for the
  /// general variable.
  std::vector<std::string> equations;
  std::vector<Parameter> parameters;
  /// On the attractor or close to it, at the default parameters. The orbit stays bounded.
  Vector start;
  /// Sampling step, one of 1, 2, 5 times a power of ten: the largest at which fourth-order central
  /// differences of the orbit give du/dt to 1e-5 of its root mean square, in every variable, at
  /// the default parameters.
  double step;
  /// Largest Lyapunov exponent. Known for the default parameters and size only.
  std::optional<double> lyapunov;
  std::string lyapunov_source;  ///< empty where the exponent is unknown
  std::string source;           ///< where the equations come from
  VectorField field;
  /// u_{k+1} = f(u_k) instead of du/dt = f; `step` is then the time of an iteration, and the
  /// exponent per iteration.
  bool map = false;
  /// What drives it, as functions of time: "F = gamma cos(omega t)".
  std::vector<std::string> inputs = {}, input_equations = {};
  std::function<void(double t, double* values)> drive = {};
};

/// Names in catalogue order.
const std::vector<std::string>& system_names();

/// The system of that name, in any case. `size` is the number of variables, for Lorenz96 only:
/// 4 to 10000, or 0 for its default of 40. `parameters` replaces values by name; of several for one
/// name the last counts.
/// Throws Error (usage) for an unknown name, an unknown or non-finite parameter, or a bad size.
System find_system(std::string_view name, int size = 0,
                   const std::vector<Parameter>& parameters = {});

}  // namespace odecast
