#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "odecast/core/calendar.hpp"
#include "odecast/model/dropout_posterior.hpp"
#include "odecast/model/polynomial_posterior.hpp"
#include "odecast/network/network.hpp"
#include "odecast/observations/embedding.hpp"
#include "odecast/observations/kept_rows.hpp"
#include "odecast/observations/scaling.hpp"

namespace odecast {

/// What the learnt function gives: du/dt, or the next state.
enum class ModelKind { flow, map };

/// What drives a system beside its own state.
struct InputPart {
  std::vector<std::string> names = {};  ///< empty for an autonomous system
  Vector offset = {}, scale = {};       ///< w = offset + scale ∘ its value in model units
  bool held = false;                    ///< between rows: the last value, or else linear
  bool time = false;                    ///< the last one is the time itself
  Vector last = {};  ///< those that are measured, in the last row; empty: not known

  int size() const { return static_cast<int>(names.size()); }
  /// Those that must be measured.
  int measured() const { return size() - (time ? 1 : 0); }
};

/// What the ends of a band are: mean ± c sd, or quantiles; `both`: mean ± c sd, and the quantiles
/// beside them.
enum class Bands { both, sd, quantiles };
std::string_view bands_name(Bands bands);

/// How much wider or narrower bands must be to hold held-out truth at their level, by time after
/// the start; `odecast calibrate` finds it. The band is
///   mean ± factor (sd + floor size)                     of Bands::sd,
///   median - factor (median - q_lower + floor size),
///   median + factor (q_upper - median + floor size)     of Bands::quantiles,
/// of the state or, where the truth was observed with noise, of an observation. Between leads the
/// factors are linear, beyond the last its own.
inline constexpr double kCalibrationFloor = 1e-3;
struct CalibrationPart {
  double level = 0.95;
  int starts = 0;           ///< it rests on
  Bands bands = Bands::sd;  ///< sd or quantiles
  /// Of states that are smoothed held-out rows, with the uncertainty of that path taken off.
  bool smoothed = false;
  bool observed = false;  ///< it is for bands of observations
  std::vector<double> leads = {};
  Matrix factors = {};  ///< leads × variables
  /// Share of the held-out truth inside the band at each lead, over all variables: of the band of
  /// the draws, and of bands calibrated on one half of the starts and judged on the other (empty
  /// where the halves are too few).
  std::vector<double> before = {}, after = {};

  double factor(double lead, Eigen::Index variable) const;
};

/// Networks of one kind, each as likely as the others.
using NetworkEnsemble = std::vector<Network>;

/// A mixture of fields, known by the coefficients of their terms in model units: monomials, and
/// functions where there are any.
struct PolynomialPart {
  int degree = 1;  ///< of the basis that numbers the sets' monomials
  std::vector<CoefficientSet> sets;
  std::shared_ptr<const FunctionTerms> functions = nullptr;
};

/// How well the equations that `fit --posterior trajectory` found explain the data.
struct TrajectoryPart {
  double noise_ratio = 1;      ///< noise over the smoother's
  double autocorrelation = 0;  ///< of neighbouring residuals
  /// Of residuals along the motion, in standard errors of white noise: what decides a misfit that
  /// their size does not show.
  double persistence = 0;
  double continuity = 0;  ///< error per segment over the noise, 0 where the equations fit
  bool misfit = false;
  Forcing forcing = {};
  /// Error of the solver that made the data, as a part of the variables' sizes; 0: they have noise.
  double precision = 0;
};

/// A fitted model: all that a forecast needs, and a record of where it came from.
struct Model {
  std::vector<std::string> variables;
  Scaling scaling;
  /// What was learnt, in model units, of the state and behind it the inputs: one network, whose
  /// draws are its masks; several; or sets of coefficients.
  std::variant<Network, NetworkEnsemble, PolynomialPart> law;
  ModelKind kind = ModelKind::flow;
  InputPart inputs;
  /// The column of times in the data, and what its numbers count; nothing: numbers.
  std::string time_name = "t";
  std::optional<Calendar> calendar = {};

  std::optional<TrajectoryPart> trajectory;

  /// Where the data end: forecasts continue from here unless told otherwise. User's units.
  std::string last_trajectory;  ///< its id; empty where there is only one
  double last_time = 0;
  Vector last_state;
  std::optional<Vector> last_state_sd;  ///< its uncertainty, where known
  double step = 0;                      ///< median spacing of the observations
  double data_scale = 0;                ///< largest |v| of the data, in model units
  Vector size;   ///< root mean square of each variable and input, user's units
  Vector sd;     ///< standard deviation of each variable, user's units, 0 for a constant; empty in
                 ///< files of old
  Vector noise;  ///< sd of the observations, as given or estimated, user's units; empty where not
                 ///< known
  /// The share q of each variable's noise variance that grows as u²:
  ///   noise² ((1 - q) + q u² / size²);   empty where the noise is constant.
  Vector relative_noise = {};
  /// Of each variable whether its noise is that of the logarithm, ln y = ln u + (noise/size) ε; its
  /// q is 1. Empty where none is.
  std::vector<bool> log_noise = {};

  /// Of each variable whether it is known to be positive; empty where none is. Draws that leave
  /// that region are none of the posterior's, and bands end at 0.
  std::vector<bool> positive = {};

  /// Where one measured variable was made several: that is the first, and the others are made of
  /// its rows.
  std::optional<Embedding> embedding = {};

  std::optional<CalibrationPart> calibration;

  /// What is kept of the rows it learnt from; not in files of old.
  std::optional<KeptRows> observed;

  /// The settings of the fit as they ran, by the names of learning/fields.hpp; none in files of
  /// old.
  std::vector<std::pair<std::string, std::string>> settings = {};

  struct Training {
    std::string trainer, derivative, status, reason;
    double noise_factor = 0, noise_order = 0;  ///< c and m of σ_γ = c h^m
    long rows = 0, trajectories = 0, iterations = 0;
    std::optional<double> objective;  ///< exact expected dropout objective, user's units
    std::uint64_t seed = 0;
  } training;

  /// The sd of an observation of the state u, user's units.
  Vector noise_at(const Vector& u) const;
  /// Null where the law is of another kind.
  PolynomialPart* polynomial() { return std::get_if<PolynomialPart>(&law); }
  const PolynomialPart* polynomial() const { return std::get_if<PolynomialPart>(&law); }
  const NetworkEnsemble* ensemble() const { return std::get_if<NetworkEnsemble>(&law); }
  /// That of a law of one network.
  Network& network() { return std::get<Network>(law); }
  const Network& network() const { return std::get<Network>(law); }
  /// Whether the learnt function is polynomial, so that there are equations.
  bool has_equations() const;

  int dimension() const { return static_cast<int>(variables.size()); }
  /// How many of the variables are measured, the first.
  int measured() const { return embedding ? 1 : dimension(); }
  std::vector<std::string> measured_variables() const {
    return {variables.begin(), variables.begin() + measured()};
  }
  /// The standard deviation of ln y, where the noise of variable i is that of the logarithm; 0
  /// elsewhere.
  double log_noise_sd(Eigen::Index i) const {
    return !log_noise.empty() && log_noise[static_cast<std::size_t>(i)] && size[i] > 0
               ? noise[i] / size[i]
               : 0;
  }
  bool is_positive(Eigen::Index i) const {
    return !positive.empty() && positive[static_cast<std::size_t>(i)];
  }
  /// What a variable is off by if nothing is known but the data's distribution: sd, or its size
  /// where that is all that is known.
  Vector climatological_sd() const { return sd.size() > 0 ? sd : Vector(size.head(dimension())); }
  /// Names of what the function depends on: the variables, then the inputs.
  std::vector<std::string> arguments() const;
  /// What is taken out of each argument in the terms of equations: of a law that is known by its
  /// coefficients (u - offset)^power, of others 0.
  Vector term_offsets() const;
  /// State and inputs in model units.
  Vector to_model(const Vector& arguments) const;
  /// The function's value in the user's units is base() + rate() ∘ (that in model units).
  Vector base() const;
  Vector rate() const;
  /// "dx/dt", or "next x" for a map.
  std::string left_side(const std::string& variable) const;
};

/// The share of the rows that the model learnt from them, as it remembers: judging these says how
/// well it learnt, not how well it foretells. 0 where it kept nothing.
double share_of_fit(const Model& model, const Dataset& rows);
/// The same in words, a sentence without its end; empty where none of the rows are known.
std::string fit_in_words(double share_of_fit, const std::string& source);

/// Mean and standard deviation of du/dt (of a map: of the next state) in the user's units, of
/// moments in the model's. Throws Error (data) where they overflow, so that an interval mean ± c sd
/// of any level is finite.
struct Prediction {
  Vector mean, sd;
};
Prediction prediction(const Model& model, const Moments& moments);

/// The field with its inputs as functions of time, all in model units: `signal` has those that are
/// measured, linear or held between its times; null where none is.
VectorField driven_field(const Model& model, const VectorField& field,
                         std::shared_ptr<const InputSignal> signal);

/// The state v of variable i in model units after a kick of that sd and normal number. A positive
/// variable u has its logarithm kicked, so that mean u and sd stay: u exp(s z - s²/2), s² = ln(1 +
/// (sd / u)²).
double kicked(const Model& model, int i, double v, double sd, double z);

/// The posterior of a model; `change` is for dropout.
std::unique_ptr<Posterior> make_posterior(const Model& model,
                                          MaskChange change = MaskChange::never);
/// That of a model with a `polynomial` part.
PolynomialPosterior polynomial_posterior(const Model& model);

}  // namespace odecast
