#pragma once

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

/// What the rows of a fit depend on.
struct RowPlan {
  ModelKind kind;
  bool hold_inputs;
  std::string time_name;
  DerivativeOptions derivative;
  ScaleKind scale;
  bool shift;  ///< standardise with a shift; without one sparse equations stay sparse
  int degree;  ///< of the polynomials that try derivatives
  std::uint64_t seed;
  int threads;
};
RowPlan row_plan(const FitOptions& options, const RowOptions& rows, bool shift, int degree);

/// Data as the fit sees them: variables and inputs side by side, and how to bring them into model
/// units.
struct FitData {
  ObservationSource source;
  ObservationSummary summary;
  Scaling scaling;
  DerivativeOptions derivative;  ///< its noise for all columns, where given
  Vector noise = {};  ///< sd of all columns as the first rows tell it, where it is not given

  int size() const { return source.dimension(); }
  Dataset in_model_units() const { return to_model_units(dataset_of(source), scaling); }
};

/// How many arguments the function has; known before any row is read.
int argument_count(const ObservationSource& source, const std::string& time_name);
FitData fit_data(const ObservationSource& source, const RowPlan& plan);

/// What the data alone tell.
void describe(Model& model, const ObservationSource& source, const FitData& data,
              const RowPlan& plan);

/// The last state and its sd from smoothing the late rows of a flow, where there are eight of them:
/// what a forecast that continues the data starts from unless the posterior itself knows better.
void smooth_last_state(Model& model, const FitData& data, FitSummary& summary);

/// The plan with a derivative of a name, where it leaves the choice to us.
RowPlan with_derivative(const RowPlan& given, const FitData& data, Model& model,
                        FitSummary& summary, bool pointwise_only, const Observer& observer);

[[noreturn]] void differences_overflow(const std::string& name);

/// Rows with derivatives, or successors for a map, block by block; any method but weak.
void for_rows(const FitData& data, int n, const RowPlan& plan, FitSummary& summary,
              const Observer& observer, const std::function<void(const DerivativeRows&)>& visit);

/// The factor of those rows, weighted by their inverse variance.
RowFactor row_factor(const FitData& data, int n, int degree, const RowPlan& plan,
                     FitSummary& summary, const Observer& observer);

bool is_weak(const RowPlan& plan);

/// What the integral form is made of, in model units.
struct WeakData {
  Dataset scaled;
  std::vector<Segment> parts;
  Vector noise;
};

WeakData weak_data(const FitData& data, const RowPlan& plan);

}  // namespace odecast
