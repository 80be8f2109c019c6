#pragma once

#include <optional>

#include "odecast/core/observer.hpp"
#include "odecast/forecast/forecast.hpp"

namespace odecast {

/// Divergence of where P and Q (rows are states) spend their time, KL(P̂ ‖ Q̂) = Σ p̂ log(p̂ / q̂)
/// (Koppe, Toutounji, Kirsch, Lis and Durstewitz, PLoS Comput. Biol. 15 (2019) e1007263). Up to
/// five variables p̂ and q̂ are shares of the boxes of a grid, `bins` along each variable from the
/// least value of `reference` less 0.1 sd to the greatest and as much; every box counts 1e-5 more
/// than it holds, and states of Q beyond the grid count in none. With more variables they are
/// mixtures of Gaussians of unit covariance about the states, in units of the reference's sd, and
/// the mean of log(p̂ / q̂) is over 1000 draws of P̂. 0 for equal samples. It falls with the number of
/// rows: compare samples of one size.
double state_space_divergence(const Matrix& P, const Matrix& Q, const Matrix& reference, int bins,
                              std::uint64_t seed = 1);

/// Hellinger distance of power spectra, (1 - Σ_f √(p_f q_f))^½ with p and q the spectra |FFT|² of
/// each variable after taking off its mean, smoothed by a Gaussian of sd spectrum_smoothing()
/// frequencies and made to sum to 1; the mean over variables that move in both (Mikhaeil, Monfared
/// and Durstewitz, NeurIPS 2022). 0 for equal spectra, 1 for spectra without a frequency in common.
/// Rows are evenly spaced in time, as many in both, and the first smooth_length() of them count;
/// NaN where these are fewer than kSpectrumRows.
double spectrum_distance(const Matrix& P, const Matrix& Q, double smoothing = 20);

/// The largest number up to `rows` with no prime factors but 2, 3 and 5: a Fourier transform takes
/// as many steps per row as its length's largest prime factor.
long smooth_length(long rows);

/// The sd, in frequencies, that spectra of so many rows are smoothed by: `smoothing`, but at most a
/// twentieth of the frequencies. With more of them all spectra are flat, and equal.
double spectrum_smoothing(long rows, double smoothing);

/// With fewer rows a twentieth of the frequencies is less than one of them: what spectra differ by
/// is chance.
inline constexpr long kSpectrumRows = 40;

struct AttractorOptions {
  /// Of each variable. 0: the 30 of the papers, or fewer where a half of the data has less than ten
  /// rows for each of bins² boxes, a surface of them: with a row or none per box the divergence
  /// says little but how few rows there are.
  int bins = 0;
  double smoothing = 20;  ///< of spectra, in frequencies; for few rows less (spectrum_smoothing)
  int pieces = 10;        ///< of the model's run, each as long as half of the data
  int draws = 10;         ///< fields of the posterior that are run beside the mean field
  /// Added to the model's run, sd per variable: data that were observed with noise are compared
  /// with what would be observed.
  std::optional<Vector> noise = {};
  std::uint64_t seed = 1;
  int threads = 1;
};

/// NaN where there is none.
struct AttractorDistance {
  double divergence = 0, spectrum = 0;
};

/// A long run of a model beside data. Both distances depend on the number of rows; therefore the
/// halves of the data are compared with pieces of the run that are as long, and the same distances
/// between the halves are what sampling alone gives.
struct AttractorComparison {
  SolveStatus status = SolveStatus::finished;  ///< of the mean field's run
  long rows = 0;                               ///< of a half and of a piece
  int bins = 0;                                ///< of each variable
  double spacing = 0;                          ///< of rows, the user's time
  bool even = true;                            ///< rows are: otherwise there are no spectra
  long spectrum_rows = 0;  ///< of a half and of a piece that spectra are taken of; 0: no spectra
  double smoothing = 0;    ///< of spectra, in frequencies
  AttractorDistance halves;
  AttractorDistance model, model_sd;  ///< mean and sd over the pieces of the mean field's run
  AttractorDistance draws, draws_sd;  ///< mean and sd over draws
  int bounded = 0;                    ///< draws that stay so
};

/// The run starts at the first row that is whole and its first piece is left out. Throws Error
/// (data) for fewer than 40 whole rows, Error (usage) for options out of range or a model that is
/// driven.
AttractorComparison compare_attractors(const Model& model, const Trajectory& observed,
                                       const AttractorOptions& options, const Observer& observer);

}  // namespace odecast
