#include "odecast/model/status.hpp"

#include <array>

namespace odecast {
namespace {

struct StatusText {
  FitStatus status;
  std::string_view name, distrust;
};

constexpr std::array<StatusText, 12> kStatuses = {{
    {FitStatus::converged, "converged", ""},
    {FitStatus::least_squares, "least_squares", ""},
    {FitStatus::posterior, "posterior", ""},
    {FitStatus::schedule_done, "schedule_done", ""},
    {FitStatus::misfit, "misfit",
     "its equations, or its noise, do not explain the data that they were learnt from"},
    {FitStatus::noise_too_small, "noise_too_small",
     "its noise was given smaller than the residuals are"},
    {FitStatus::mostly_noise, "mostly_noise",
     "it takes more than half of a variable's motion for noise, and jumps would look the same"},
    {FitStatus::short_run, "short_run",
     "its data hold less than two oscillations, and many other equations explain them"},
    {FitStatus::underdetermined, "underdetermined", "it has too many unknowns for its data"},
    {FitStatus::stopped, "stopped", "its fit was stopped before its end"},
    {FitStatus::not_converged, "not_converged", "its fit did not converge"},
    {FitStatus::diverged, "diverged", "its fit found nothing that explains the data"},
}};

const StatusText& text_of(FitStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

}  // namespace

std::string_view status_name(FitStatus status) { return text_of(status).name; }

std::optional<FitStatus> fit_status_from_name(std::string_view name) {
  for (const StatusText& s : kStatuses)
    if (s.name == name) return s.status;
  return std::nullopt;
}

std::string_view distrust(FitStatus status) { return text_of(status).distrust; }

std::string_view distrust(std::string_view status) {
  const auto known = fit_status_from_name(status);
  return known ? distrust(*known) : std::string_view();
}

}  // namespace odecast
