#include "odecast/scores/attractor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <unsupported/Eigen/FFT>

#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"
#include "odecast/scores/lyapunov.hpp"

namespace odecast {
namespace {

constexpr int kMostOnAGrid = 5, kDraws = 1000;
constexpr double kLaplace = 1e-5;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Vector sd_of(const Matrix& X) {
  const Matrix off = X.rowwise() - X.colwise().mean();
  return (off.colwise().squaredNorm() /
          static_cast<double>(std::max<Eigen::Index>(1, X.rows() - 1)))
      .cwiseSqrt()
      .transpose();
}

double binned_divergence(const Matrix& P, const Matrix& Q, const Matrix& reference, int bins) {
  const Vector sd = sd_of(reference);
  const Vector low = reference.colwise().minCoeff().transpose() - 0.1 * sd,
               high = reference.colwise().maxCoeff().transpose() + 0.1 * sd;
  double boxes = 1;
  for (Eigen::Index i = 0; i < sd.size(); ++i) boxes *= sd[i] > 0 ? bins : 1;
  /// Counts of both, in the order of the boxes.
  std::map<long, std::pair<double, double>> counts;
  const auto count = [&](const Matrix& X, double std::pair<double, double>::*which) {
    for (Eigen::Index k = 0; k < X.rows(); ++k) {
      long box = 0;
      bool inside = true;
      for (Eigen::Index i = 0; i < X.cols(); ++i) {
        if (!(sd[i] > 0)) continue;
        const double at = std::floor(bins * (X(k, i) - low[i]) / (high[i] - low[i]));
        inside = inside && at >= 0 && at < bins;
        if (!inside) break;
        box = box * bins + static_cast<long>(at);
      }
      if (inside) counts[box].*which += 1;
    }
  };
  count(P, &std::pair<double, double>::first);
  count(Q, &std::pair<double, double>::second);
  const double all_p = static_cast<double>(P.rows()) + kLaplace * boxes,
               all_q = static_cast<double>(Q.rows()) + kLaplace * boxes;
  const auto term = [&](double in_p, double in_q) {
    const double p = (in_p + kLaplace) / all_p, q = (in_q + kLaplace) / all_q;
    return p * std::log(p / q);
  };
  double sum = (boxes - static_cast<double>(counts.size())) * term(0, 0);
  for (const auto& [box, both] : counts) sum += term(both.first, both.second);
  return sum;
}

double mixture_divergence(const Matrix& P, const Matrix& Q, const Matrix& reference,
                          std::uint64_t seed) {
  const Vector sd = sd_of(reference),
               unit = sd.unaryExpr([](double s) { return s > 0 ? 1 / s : 0.0; });
  const Matrix p = P * unit.asDiagonal(), q = Q * unit.asDiagonal();
  const auto log_density = [](const Matrix& centres, const Vector& x) {
    const Vector exponents = -0.5 * (centres.rowwise() - x.transpose()).rowwise().squaredNorm();
    const double most = exponents.maxCoeff();
    return most + std::log((exponents.array() - most).exp().mean());
  };
  Stream stream(seed, Purpose::attractor, 0);
  double sum = 0;
  for (int k = 0; k < kDraws; ++k) {
    Vector x = p.row(static_cast<Eigen::Index>(stream.uniform() * static_cast<double>(p.rows())))
                   .transpose();
    for (Eigen::Index i = 0; i < x.size(); ++i) x[i] += unit[i] > 0 ? stream.normal() : 0;
    sum += log_density(p, x) - log_density(q, x);
  }
  return sum / kDraws;
}

/// Smoothed and normalised; empty for a constant.
Vector power_spectrum(const Vector& x, double smoothing) {
  const auto n = static_cast<std::size_t>(x.size());
  std::vector<double> time(n);
  const double mean = x.mean();
  for (std::size_t k = 0; k < n; ++k) time[k] = x[static_cast<Eigen::Index>(k)] - mean;
  std::vector<std::complex<double>> frequency;
  Eigen::FFT<double> fft;
  fft.SetFlag(Eigen::FFT<double>::HalfSpectrum);
  fft.fwd(frequency, time);
  Vector power(static_cast<Eigen::Index>(frequency.size()));
  for (Eigen::Index f = 0; f < power.size(); ++f)
    power[f] = std::norm(frequency[static_cast<std::size_t>(f)]);
  if (!(power.sum() > 0)) return {};
  Vector smooth = power;
  if (smoothing > 0) {
    const auto reach = static_cast<Eigen::Index>(
        std::min(std::ceil(4 * smoothing), static_cast<double>(power.size() - 1)));
    Vector kernel(reach + 1);
    for (Eigen::Index d = 0; d <= reach; ++d)
      kernel[d] = std::exp(-0.5 * static_cast<double>(d * d) / (smoothing * smoothing));
    smooth.setZero();
    for (Eigen::Index f = 0; f < power.size(); ++f)  // what would fall off the ends is folded back
      for (Eigen::Index d = -reach; d <= reach; ++d) {
        Eigen::Index to = std::abs(f + d);
        if (to >= power.size()) to = 2 * (power.size() - 1) - to;
        smooth[to] += kernel[std::abs(d)] * power[f];
      }
  }
  return smooth / smooth.sum();
}

/// Of every variable.
using Spectra = std::vector<Vector>;

Spectra power_spectra(const Matrix& X, double smoothing) {
  const long rows = smooth_length(X.rows());
  const double sd = spectrum_smoothing(X.rows(), smoothing);
  Spectra all;
  for (Eigen::Index i = 0; i < X.cols(); ++i)
    all.push_back(power_spectrum(X.col(i).head(rows), sd));
  return all;
}

double distance_of(const Spectra& P, const Spectra& Q) {
  double sum = 0, moving = 0;
  for (std::size_t i = 0; i < P.size(); ++i) {
    const Vector &p = P[i], &q = Q[i];
    if (p.size() == 0 && q.size() == 0) continue;
    // Σ (√p - √q)² / 2 = 1 - Σ √(p q), and nothing is lost where they are nearly equal.
    sum += p.size() == q.size() ? (p.cwiseSqrt() - q.cwiseSqrt()).norm() / std::sqrt(2.0) : 1;
    ++moving;
  }
  return moving > 0 ? sum / moving : 0;
}

AttractorDistance average(const std::vector<AttractorDistance>& all) {
  AttractorDistance m;
  for (const AttractorDistance& d : all) {
    m.divergence += d.divergence / static_cast<double>(all.size());
    m.spectrum += d.spectrum / static_cast<double>(all.size());
  }
  return all.empty() ? AttractorDistance{kNaN, kNaN} : m;
}
AttractorDistance sd_of(const std::vector<AttractorDistance>& all) {
  if (all.size() < 2) return {kNaN, kNaN};
  const AttractorDistance m = average(all);
  AttractorDistance v;
  const double left = static_cast<double>(all.size()) - 1;
  for (const AttractorDistance& d : all) {
    v.divergence += (d.divergence - m.divergence) * (d.divergence - m.divergence) / left;
    v.spectrum += (d.spectrum - m.spectrum) * (d.spectrum - m.spectrum) / left;
  }
  return {std::sqrt(v.divergence), std::sqrt(v.spectrum)};
}

}  // namespace

double state_space_divergence(const Matrix& P, const Matrix& Q, const Matrix& reference, int bins,
                              std::uint64_t seed) {
  return reference.cols() <= kMostOnAGrid ? binned_divergence(P, Q, reference, bins)
                                          : mixture_divergence(P, Q, reference, seed);
}

long smooth_length(long rows) {
  for (long n = rows; n > 1; --n) {
    long rest = n;
    for (const long factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
  return rows;
}

double spectrum_smoothing(long rows, double smoothing) {
  return std::min(smoothing, static_cast<double>(smooth_length(rows)) / 40);
}

double spectrum_distance(const Matrix& P, const Matrix& Q, double smoothing) {
  if (smooth_length(P.rows()) < kSpectrumRows) return kNaN;
  return distance_of(power_spectra(P, smoothing), power_spectra(Q, smoothing));
}

AttractorComparison compare_attractors(const Model& model, const Trajectory& observed,
                                       const AttractorOptions& o, const Observer& observer) {
  const auto require = [](bool good, const char* name, double value, const char* expected) {
    if (!good)
      throw_usage({fmt::format("option `{}`", name), fmt::format("{}", value), expected,
                   "Give a value in that range."});
  };
  require(o.bins == 0 || (o.bins >= 2 && o.bins <= 1000), "bins", o.bins,
          "a whole number from 2 to 1000");
  require(o.smoothing >= 0, "smoothing", o.smoothing, "a number >= 0");
  require(o.pieces >= 2, "pieces", o.pieces, "a whole number >= 2");
  require(o.draws >= 0, "draws", o.draws, "a whole number >= 0");
  if (o.noise && !(o.noise->size() == model.dimension() && (o.noise->array() >= 0).all()))
    throw_usage({"option `noise`", fmt::format("{} values", o.noise->size()),
                 fmt::format("{} values >= 0", model.dimension()),
                 "Give one, or one per variable."});
  if (model.inputs.size() > 0)
    throw_usage({"attractor", "a model that is driven from outside", "one without inputs",
                 "Where a driven system goes depends on what drives it."});
  AttractorComparison result;
  std::vector<Eigen::Index> whole;
  for (Eigen::Index k = 0; k < observed.states.rows(); ++k)
    if (observed.states.row(k).allFinite()) whole.push_back(k);
  result.rows = static_cast<long>(whole.size() / 2);
  if (whole.size() < 40)
    throw_data({"data", fmt::format("{} rows without a missing value", whole.size()), "at least 40",
                "Where a system spends its time takes many rows to know."});
  result.bins =
      o.bins > 0
          ? o.bins
          : std::clamp(static_cast<int>(std::sqrt(static_cast<double>(result.rows) / 10)), 4, 30);
  Matrix states(static_cast<Eigen::Index>(whole.size()), observed.states.cols());
  std::vector<double> spacings;
  for (std::size_t k = 0; k < whole.size(); ++k) {
    states.row(static_cast<Eigen::Index>(k)) = observed.states.row(whole[k]);
    if (k > 0)
      spacings.push_back(observed.times[static_cast<std::size_t>(whole[k])] -
                         observed.times[static_cast<std::size_t>(whole[k - 1])]);
  }
  std::sort(spacings.begin(), spacings.end());
  result.spacing = spacings[spacings.size() / 2];
  result.even = spacings.back() - spacings.front() <= 1e-3 * result.spacing;
  const long smooth = smooth_length(result.rows);
  result.spectrum_rows = result.even && smooth >= kSpectrumRows ? smooth : 0;
  if (result.spectrum_rows > 0) result.smoothing = spectrum_smoothing(result.rows, o.smoothing);
  struct Part {
    Matrix states;
    Spectra spectra;
  };
  const auto part = [&](const Matrix& X) -> Part {
    return {X, result.spectrum_rows > 0 ? power_spectra(X, o.smoothing) : Spectra{}};
  };
  const auto distance = [&](const Part& p, const Part& q) -> AttractorDistance {
    return {state_space_divergence(p.states, q.states, states, result.bins, o.seed),
            result.spectrum_rows > 0 ? distance_of(p.spectra, q.spectra) : kNaN};
  };
  const Part first = part(states.topRows(result.rows)),
             second = part(states.bottomRows(result.rows));
  result.halves = average({distance(first, second), distance(second, first)});

  // Run 0 is the mean field's.
  const double unit = model.scaling.time;
  SolverOptions solver;
  solver.rtol = 1e-6;
  solver.atol = 1e-8;
  solver.max_steps = 10'000'000;
  solver.bound = 1e6 * model.data_scale;
  if (model.kind == ModelKind::map) {
    solver.method = SolverMethod::iterate;
    solver.fixed_step = model.step / unit;
  }
  std::vector<double> times;
  for (long k = 1; k <= result.rows * (o.pieces + 1); ++k)
    times.push_back(static_cast<double>(k) * result.spacing / unit);
  const Vector start = model.scaling.to_model(states.row(0).transpose());
  const auto posterior = make_posterior(model);
  parallel_for(
      1, 1,
      [&](std::size_t) {
        solver = resolving(followed_field(model, *posterior), 0, start, times.back(), solver);
      },
      [&](std::size_t) { observer("following", 0); });
  struct Run {
    SolveStatus status;
    std::vector<AttractorDistance> pieces;
  };
  const auto run = [&](const VectorField& field, std::uint64_t number) -> Run {
    const Solution s = solve(field, 0, start, times, solver);
    Run r{s.status, {}};
    if (s.status != SolveStatus::finished) return r;
    Stream stream(o.seed, Purpose::attractor, number);
    for (int piece = 1; piece <= o.pieces; ++piece) {
      pulse();
      Matrix X(result.rows, states.cols());
      for (Eigen::Index k = 0; k < X.rows(); ++k) {
        X.row(k) =
            model.scaling.to_user(s.states.row(piece * result.rows + k).transpose()).transpose();
        if (o.noise)
          for (Eigen::Index i = 0; i < X.cols(); ++i) X(k, i) += (*o.noise)[i] * stream.normal();
      }
      const Part run_part = part(X);
      r.pieces.push_back(average({distance(first, run_part), distance(second, run_part)}));
    }
    return r;
  };
  std::vector<Run> runs(static_cast<std::size_t>(o.draws) + 1);
  parallel_for(
      o.threads, runs.size(),
      [&](std::size_t k) {
        runs[k] =
            run(k == 0 ? followed_field(model, *posterior) : posterior->draw(o.seed, k - 1), k + 1);
      },
      [&](std::size_t begun) {
        observer("following", static_cast<double>(begun) / static_cast<double>(runs.size()));
      });
  result.status = runs[0].status;
  result.model = average(runs[0].pieces);
  result.model_sd = sd_of(runs[0].pieces);
  std::vector<AttractorDistance> of_draws;
  for (std::size_t k = 1; k < runs.size(); ++k)
    if (runs[k].status == SolveStatus::finished) of_draws.push_back(average(runs[k].pieces));
  result.bounded = static_cast<int>(of_draws.size());
  result.draws = average(of_draws);
  result.draws_sd = sd_of(of_draws);
  // What was not asked for, or has no rows for it, stays NaN; what was computed is a number.
  const auto finite = [&](const AttractorDistance& d) {
    return std::isfinite(d.divergence) && (result.spectrum_rows == 0 || std::isfinite(d.spectrum));
  };
  require_finite(finite(result.halves) &&
                     (result.status != SolveStatus::finished || finite(result.model)) &&
                     (of_draws.empty() || finite(result.draws)),
                 "attractor", "a divergence or a spectrum that overflows",
                 "Fit again, and compare, with columns in units in which their values are near 1.");
  return result;
}

}  // namespace odecast
