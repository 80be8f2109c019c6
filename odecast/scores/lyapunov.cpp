#include "odecast/scores/lyapunov.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/parallel.hpp"

namespace odecast {
namespace {

constexpr int kBatches = 40;

/// Standard error of the mean of steps x_1 … x_N that depend on their neighbours. Sums over K
/// batches have variance γ₀ and covariance γ₁ with the next: K γ₀ + 2 (K - 1) γ₁ is the variance of
/// the whole sum (3/K of γ₀ + 2 γ₁ is lost by taking the mean from the same batches). Growth that
/// is made up for after the end of a batch, as by the turn of a displacement along a cycle, has γ₁
/// < 0; without it the error would be up to four times too large (Logistic, SprottI). In a periodic
/// orbit nothing else is left, and batches may meet the cycle in step: what the ends themselves may
/// be off by is therefore added, twice the mean square of a batch's running sum about the straight
/// line between its ends. And where the halves differ by more than twice what that allows, the mean
/// has not settled (neighbours in a field without chaos drift apart in proportion to time: growth
/// falls as 1/t) and their difference is part of the error.
double error_of_mean(const Vector& steps) {
  constexpr double K = kBatches;
  const double mean = steps.mean();
  Vector sums = Vector::Zero(kBatches);
  double ends = 0;
  for (long b = 0; b < kBatches; ++b) {
    const long begin = steps.size() * b / kBatches,
               size = steps.size() * (b + 1) / kBatches - begin;
    const auto batch = steps.segment(begin, size);
    sums[b] = (batch.array() - mean).sum();
    double running = 0;
    for (long k = 0; k < size; ++k) {
      running += batch[k] - mean - sums[b] / static_cast<double>(size);
      ends += 2 * running * running / static_cast<double>(steps.size());
    }
  }
  const double variance = sums.squaredNorm() / K,
               next = sums.head(kBatches - 1).dot(sums.tail(kBatches - 1)) / K;
  double all = std::max(0.0, K * variance + 2 * (K - 1) * next) / (1 - 3 / K) + ends;
  const double drift = sums.head(kBatches / 2).sum() - sums.tail(kBatches / 2).sum();
  if (drift * drift > 4 * all) all += drift * drift;
  return std::sqrt(all) / static_cast<double>(steps.size());
}

}  // namespace

LyapunovSpectrum lyapunov_spectrum(const VectorField& field, const Vector& start,
                                   const LyapunovOptions& given, const Observer& observer) {
  LyapunovOptions o = given;
  if (o.map) o.interval = 1;
  const auto require = [](bool good, const char* name, double value, const char* expected) {
    if (!good)
      throw_usage({"option `" + std::string(name) + "`", format_number(value), expected,
                   "Give a value in that range."});
  };
  require(o.interval > 0, "interval", o.interval, "a number > 0");
  require(o.transient >= 0, "transient", o.transient, "a number >= 0");
  require(o.until >= kBatches * o.interval, "until", o.until, "at least 40 intervals");
  const auto n = start.size();
  SolverOptions solver;
  solver.rtol = o.rtol;
  solver.atol = o.atol;
  solver.bound = o.bound;
  solver.max_steps = o.max_steps;
  if (o.map) {
    solver.method = SolverMethod::iterate;
    solver.fixed_step = 1;
  }

  LyapunovSpectrum result;
  result.exponents = result.standard_error = Vector::Zero(n);
  Vector u = start;
  // State, displacements column by column, and the integral of div f, as one system. Displacements
  // grow and shrink; the tolerance is relative to their own size, and the bound is checked on the
  // state.
  const VectorField extended(
      static_cast<int>(n + n * n + 1), [&](double t, const double* x, double* dxdt) {
        field(t, x, dxdt);
        const Matrix J = jacobian(field, Eigen::Map<const Vector>(x, n));
        using Columns = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
        Eigen::Map<Columns>(dxdt + n, n, n).noalias() = J * Eigen::Map<const Columns>(x + n, n, n);
        dxdt[n + n * n] = J.trace();
      });
  parallel_for(
      1, 1,
      [&](std::size_t) {
        solver.atol = resolving(field, 0, start, o.transient + o.until, solver).atol;
      },
      [&](std::size_t) { observer("following", 0); });
  solver.bound = 1e300;
  Matrix V = Matrix::Identity(n, n);
  // Displacements turn along during the transient: what they lean towards at first would count as
  // 1/until.
  const auto count = [&](double time, const char* option) {
    return checked_size(time / o.interval, kMostIntervals, std::string(option) + " over `interval`",
                        "Each is an integration: give a shorter time or a longer `interval`.");
  };
  const long intervals = count(o.until, "`until`"), before = count(o.transient, "`transient`");
  Matrix growth(intervals, n);  // log R_jj
  const std::vector<double> end = {o.interval};
  for (long k = -before; k < intervals; ++k) {
    if (k % 64 == 0)
      observer("following",
               static_cast<double>(k + before) / static_cast<double>(intervals + before));
    if (k == 0) result.divergence = 0;
    if (o.map) {
      const Matrix J = jacobian(field, u);
      V = (J * V).eval();
      result.divergence += std::log(std::abs(J.determinant()));
      Vector next(n);
      field(0, u.data(), next.data());
      u = next;
    } else {
      Vector x(n + n * n + 1);
      x.head(n) = u;
      for (Eigen::Index j = 0; j < n; ++j) x.segment(n + j * n, n) = V.col(j);
      x[n + n * n] = 0;
      const Solution s = solve(extended, 0, x, end, solver);
      if ((result.status = s.status) != SolveStatus::finished) return result;
      solver.first_step = std::min(o.interval, s.next_step);
      u = s.end_state.head(n);
      for (Eigen::Index j = 0; j < n; ++j) V.col(j) = s.end_state.segment(n + j * n, n);
      result.divergence += s.end_state[n + n * n];
    }
    if (!(u.cwiseAbs().maxCoeff() <= o.bound)) {
      result.status = SolveStatus::left_bound;
      return result;
    }
    // Gram–Schmidt in the order of the columns, twice for orthogonality to round-off.
    for (Eigen::Index j = 0; j < n; ++j) {
      double stretch = 1;
      for (int pass = 0; pass < 2; ++pass) {
        for (Eigen::Index i = 0; i < j; ++i) V.col(j) -= V.col(i).dot(V.col(j)) * V.col(i);
        const double norm = V.col(j).norm();
        V.col(j) /= norm;
        stretch *= norm;
      }
      if (k >= 0) growth(k, j) = std::log(stretch);
    }
  }
  result.time = static_cast<double>(intervals) * o.interval;
  result.divergence /= result.time;
  for (Eigen::Index j = 0; j < n; ++j) {
    result.exponents[j] = growth.col(j).sum() / result.time;
    result.standard_error[j] = error_of_mean(growth.col(j)) / o.interval;
  }
  // A displacement that vanishes (a singular Jacobian of a map) or overflows between two
  // factorisations has no logarithm.
  if (!result.exponents.allFinite() || !result.standard_error.allFinite() ||
      !std::isfinite(result.divergence)) {
    result.status = SolveStatus::step_too_small;
    return result;
  }
  std::vector<Eigen::Index> order(static_cast<std::size_t>(n));
  for (Eigen::Index j = 0; j < n; ++j) order[static_cast<std::size_t>(j)] = j;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return result.exponents[a] > result.exponents[b]; });
  const Vector exponents = result.exponents, errors = result.standard_error;
  for (Eigen::Index j = 0; j < n; ++j) {
    result.exponents[j] = exponents[order[static_cast<std::size_t>(j)]];
    result.standard_error[j] = errors[order[static_cast<std::size_t>(j)]];
  }
  return result;
}

VectorField followed_field(const Model& model, const Posterior& posterior) {
  const bool functions = model.polynomial() && model.polynomial()->functions;
  return functions ? posterior.point_field() : posterior.mean_field();
}

std::optional<double> largest_exponent(const Model& model) {
  if (model.kind == ModelKind::map || model.inputs.size() > 0 || model.dimension() > 10)
    return std::nullopt;
  const auto posterior = make_posterior(model);
  const VectorField field = followed_field(model, *posterior);
  if (!field.polynomial()) return std::nullopt;
  const Vector start = model.scaling.to_model(model.last_state);
  const double unit = model.scaling.time, quick = time_scale(field, start, model.step / unit);
  const LyapunovSpectrum s = lyapunov_spectrum(field, start,
                                               {.until = 1600 * quick,
                                                .transient = 200 * quick,
                                                .interval = 2 * quick,
                                                .rtol = 1e-6,
                                                .atol = 1e-8,
                                                .max_steps = 2000});
  if (s.status != SolveStatus::finished || !(s.exponents[0] > 3 * s.standard_error[0]))
    return std::nullopt;
  return s.exponents[0] / unit;
}

double kaplan_yorke(const Vector& exponents) {
  double sum = 0;
  for (Eigen::Index j = 0; j < exponents.size(); ++j) {
    if (sum + exponents[j] < 0) return static_cast<double>(j) + sum / -exponents[j];
    sum += exponents[j];
  }
  return static_cast<double>(exponents.size());
}

SpectraOfDraws spectra_of_draws(const std::vector<LyapunovSpectrum>& spectra) {
  SpectraOfDraws all;
  std::vector<const LyapunovSpectrum*> bounded;
  for (const LyapunovSpectrum& s : spectra)
    if (s.status == SolveStatus::finished) bounded.push_back(&s);
  all.bounded = static_cast<int>(bounded.size());
  if (bounded.empty()) return all;
  const auto kept = static_cast<double>(bounded.size());
  const auto n = bounded[0]->exponents.size();
  Vector squares = Vector::Zero(n), variance = Vector::Zero(n);
  all.mean = Vector::Zero(n);
  for (const auto* s : bounded) {
    all.mean += s->exponents / kept;
    squares += s->standard_error.cwiseAbs2() / kept;
  }
  for (const auto* s : bounded)
    variance += (s->exponents - all.mean).cwiseAbs2() / std::max(1.0, kept - 1);
  all.sd = variance.cwiseSqrt();
  all.standard_error = squares.cwiseSqrt();
  all.posterior_sd = (variance - squares).cwiseMax(0).cwiseSqrt();
  return all;
}

double time_scale(const VectorField& field, const Vector& start, double step) {
  std::vector<double> times;
  for (int k = 1; k <= 1000; ++k) times.push_back(k * step);
  const Solution orbit = solve(field, 0, start, times, {});
  const auto states = orbit.states.topRows(orbit.outputs);
  if (orbit.outputs < 2) return step;
  double slopes = 0;
  Vector f(start.size());
  for (Eigen::Index k = 0; k < states.rows(); ++k) {
    const Vector u = states.row(k).transpose();
    field(0, u.data(), f.data());
    slopes += f.squaredNorm();
  }
  const double square = (states.rowwise() - states.colwise().mean()).squaredNorm() / slopes;
  return std::isnormal(square) ? std::sqrt(square) : step;
}

}  // namespace odecast
