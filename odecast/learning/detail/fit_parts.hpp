#pragma once

// Parts of fit(), apart for their size.

#include <chrono>
#include <functional>
#include <limits>

#include "odecast/core/budget.hpp"
#include "odecast/core/error.hpp"
#include "odecast/derivatives/factor.hpp"
#include "odecast/learning/fit.hpp"

namespace odecast {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Data as the fit sees them: variables and inputs side by side, and how to bring them into model
/// units.
struct FitData {
  ObservationSource source;
  ObservationSummary summary;
  Scaling scaling;
  DerivativeOptions derivative;  ///< its noise for all columns, where given
  Vector noise = {};  ///< sd of all columns as the first rows tell it, where it is not given

  int size() const { return source.dimension(); }
  Dataset in_model_units() const {
    return to_model_units(first_rows(source, std::numeric_limits<long>::max()), scaling);
  }
};

/// How many arguments the function has; known before any row is read.
int argument_count(const ObservationSource& source, const FitOptions& o);
FitData fit_data(const ObservationSource& source, const FitOptions& o);

/// What the data alone tell.
void describe(Model& model, const ObservationSource& source, const FitData& data,
              const FitOptions& o);

/// The last state and its sd from smoothing the late rows of a flow, where there are eight of them:
/// what a forecast that continues the data starts from unless the posterior itself knows better.
void smooth_last_state(Model& model, const FitData& data, FitSummary& summary);

/// The options with a derivative of a name, where they leave the choice to us.
FitOptions with_derivative(const FitOptions& options, const FitData& data, Model& model,
                           FitSummary& summary, bool pointwise_only, const Observer& observer);

[[noreturn]] void differences_overflow(const std::string& name);

/// Rows with derivatives, or successors for a map, block by block; any method but weak.
void for_rows(const FitData& data, int n, const FitOptions& o, FitSummary& summary,
              const Observer& observer, const std::function<void(const DerivativeRows&)>& visit);

/// The factor of those rows, weighted by their inverse variance.
RowFactor row_factor(const FitData& data, int n, int degree, const FitOptions& o,
                     FitSummary& summary, const Observer& observer);

bool is_weak(const FitOptions& o);

/// What the integral form is made of, in model units.
struct WeakData {
  Dataset scaled;
  std::vector<Segment> parts;
  Vector noise;
};

WeakData weak_data(const FitData& data, const FitOptions& o);

/// By regression or bootstrap.
Fit fit_regression(const ObservationSource& source, const FitOptions& options,
                   const Observer& observer);

}  // namespace odecast
