#pragma once

#include <optional>
#include <vector>

#include "odecast/core/observer.hpp"
#include "odecast/model/model.hpp"
#include "odecast/solver/solve.hpp"

namespace odecast {

/// More are an error of whoever asks for them.
inline constexpr long kMostIntervals = 10'000'000;

struct LyapunovOptions {
  double until = 2000;     ///< time averaged over
  double transient = 100;  ///< left out first; the displacements turn along in it
  double interval = 0.5;   ///< between factorisations; there are at most kMostIntervals
  double rtol = 1e-8, atol = 1e-10;
  double bound = 1e8;           ///< leaving |u_i| <= bound is a blow-up
  long max_steps = 10'000'000;  ///< of an interval; more are a blow-up
  /// f is a map: V <- J(u) V at every iteration, times are iterations, and `divergence` is the mean
  /// of log |det J|.
  bool map = false;
};

/// The Lyapunov exponents of an orbit: the mean growth rates of small displacements along it.
struct LyapunovSpectrum {
  /// How the orbit ended; the numbers are good for `finished` only.
  SolveStatus status = SolveStatus::finished;
  Vector exponents;       ///< largest first
  Vector standard_error;  ///< from 40 batches of the time averaged over and their neighbours; not
                          ///< the solver's error
  /// Mean of div f along the orbit. It equals the sum of the exponents (Liouville).
  double divergence = 0;
  double time = 0;  ///< averaged over
};

/// Benettin, Galgani, Giorgilli, Strelcyn (1980): the displacements V obey dV/dt = J(u) V; after
/// each interval V = Q R, V <- Q, and λ_i is the mean of log R_ii / interval. J is exact for
/// polynomial fields; for others it is taken by central differences of fourth order. Throws Error
/// (usage) for options out of range.
LyapunovSpectrum lyapunov_spectrum(const VectorField& field, const Vector& start,
                                   const LyapunovOptions& options,
                                   const Observer& observer = ignore_progress);

/// What a long run of a model follows: its mean field, and the point field of one with functions,
/// whose mean over sets is no field of the posterior and has no slopes.
VectorField followed_field(const Model& model, const Posterior& posterior);

/// The largest exponent of that field from a run of 1600 times the time that its motion
/// takes for a radian, per unit of the user's time: for pictures, to about 3 %. Nothing where it is
/// not positive by three standard errors, and for maps, driven models and fields that are not
/// polynomials of up to ten variables, where it is not quick.
std::optional<double> largest_exponent(const Model& model);

/// The dimension of Kaplan and Yorke (1979), j + Σ_{i <= j} λ_i / |λ_{j+1}| with j the most
/// exponents, the largest first, whose sum is not negative.
double kaplan_yorke(const Vector& exponents);

/// Spectra of draws of a posterior, those that finished. What estimates scatter by has two parts:
/// draws have different exponents, and each is averaged over a finite time.
struct SpectraOfDraws {
  int bounded = 0;
  Vector mean, sd;        ///< of the estimates; empty where none is bounded
  Vector standard_error;  ///< of one estimate by its finite time, root mean square over draws
  Vector posterior_sd;    ///< (sd² - standard_error²)^½, or 0: of the exponents themselves
};
SpectraOfDraws spectra_of_draws(const std::vector<LyapunovSpectrum>& spectra);

/// (Σ var u_i / Σ mean f_i²)^½ along 1000 steps of an orbit: the time in which an oscillation goes
/// through a radian. The step where it does not move.
double time_scale(const VectorField& field, const Vector& start, double step);

}  // namespace odecast
