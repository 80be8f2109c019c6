#pragma once

#include <optional>
#include <string_view>

namespace odecast {

/// How a fit ended. A model of the first four is what was asked for.
enum class FitStatus {
  converged,
  least_squares,  ///< in closed form
  posterior,      ///< in closed form
  schedule_done,  ///< of steps of a given number
  misfit,
  noise_too_small,
  mostly_noise,  ///< a variable of which more than half is noise: what is fast may be called so
  short_run,     ///< less than two oscillations, which many equations explain
  underdetermined,
  stopped,
  not_converged,
  diverged,
};

/// As files, JSON and messages have it.
std::string_view status_name(FitStatus status);
std::optional<FitStatus> fit_status_from_name(std::string_view name);

/// Why a model of that status is not to be trusted, as a clause about the model; empty where it is.
/// The one place of these sentences.
std::string_view distrust(FitStatus status);
/// Of a name; empty for one that is not known.
std::string_view distrust(std::string_view status);

}  // namespace odecast
