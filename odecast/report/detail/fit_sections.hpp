#pragma once

// The sections of a fit's page, each where the fit has what it shows: path_sections.cpp,
// term_sections.cpp, derivative_section.cpp.

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/report/page.hpp"

namespace odecast {

constexpr std::size_t kShownTrajectories = 12;

/// Every so many-th row.
Trajectory every(const Trajectory& t, long stride);

// A trajectory fit: fit.summary.path is there.

/// The data and the path of the fitted equations through them.
Section path_section(const Dataset& data, const Fit& fit);
/// What is left: its size beside the noise, over time, and its memory.
Section residual_section(const Dataset& data, const Fit& fit);
/// Random motion that stands for what the equations do not explain.
Section forcing_section(const Model& model);

/// Observed less path, trajectory by trajectory; NaN where nothing was observed.
std::vector<Matrix> path_residuals(const Dataset& data, const PathSummary& path);
/// Σ r_k r_{k-l} / Σ r_k² of a variable at lags l = 1 …, over all trajectories; a lag counts rows,
/// and pairs of which one is missing are left out. `count` is the number of residuals: those of
/// white noise are within ±2/√count at 95 of 100 lags.
struct Correlogram {
  std::vector<double> correlations;
  double count = 0;
};
Correlogram correlogram(const std::vector<Matrix>& residuals, Eigen::Index variable, int lags);

// Coefficients.

/// The sets of terms with their weights, and every term with its probability; for one set its
/// terms.
Section term_section(const Model& model);
/// What the rows say of every degree that was tried.
Section evidence_section(const FitSummary& summary);
/// How the coefficients spread over the replicates of a bootstrap.
Section replicate_section(const Model& model);

// Derivatives.

/// Estimated from the data, and the model's; of a map the next row.
Section derivative_section(const Dataset& data, const Model& model,
                           const DerivativeOptions& options);

}  // namespace odecast
