// What the derivatives are worth: equations learnt from clean, noisy, uneven and divided data. Each
// test prints its figures.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/dropout_posterior.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

/// The system at the given times, the first of them the time of the start.
Dataset simulate(const System& system, const Vector& start, const std::vector<double>& times) {
  const auto truth = solve_certified(system.field, times.front(), start, times);
  EXPECT_EQ(truth.solution.status, SolveStatus::finished);
  return {system.variables, {{"", times, truth.solution.states}}, truth.certified_until};
}

std::vector<double> even_times(int rows, double step) {
  std::vector<double> times;
  for (int i = 0; i < rows; ++i) times.push_back(i * step);
  return times;
}

/// |C - C*| / |C*| over all coefficients of all equations; the true ones by powers.
struct Truth {
  int equation;
  std::vector<int> powers;
  double value;
};
const std::vector<Truth> kLorenz = {{0, {1, 0, 0}, -10},     {0, {0, 1, 0}, 10}, {1, {1, 0, 0}, 28},
                                    {1, {0, 1, 0}, -1},      {1, {1, 0, 1}, -1}, {2, {1, 1, 0}, 1},
                                    {2, {0, 0, 1}, -8.0 / 3}};
const std::vector<Truth> kSprottB = {{0, {0, 1, 1}, 1},
                                     {1, {1, 0, 0}, 1},
                                     {1, {0, 1, 0}, -1},
                                     {2, {0, 0, 0}, 1},
                                     {2, {1, 1, 0}, -1}};

struct Recovered {
  double error = 0;    ///< relative, of all coefficients together
  double largest = 0;  ///< absolute, of one
  int terms = 0;
  bool exact = true;  ///< the true terms and no other
};

Recovered compare(const Model& model, const std::vector<Truth>& truth) {
  Recovered r;
  double size = 0, square = 0;
  for (const Truth& t : truth) size += t.value * t.value;
  std::size_t found = 0;
  const auto learnt = equations(model);
  for (std::size_t e = 0; e < learnt.size(); ++e)
    for (const Term& term : learnt[e].terms) {
      double expected = 0;
      for (const Truth& t : truth)
        if (t.equation == static_cast<int>(e) && t.powers == term.powers) {
          expected = t.value;
          ++found;
        }
      r.exact = r.exact && expected != 0;
      ++r.terms;
      r.largest = std::max(r.largest, std::abs(term.mean - expected));
      square += (term.mean - expected) * (term.mean - expected);
    }
  for (const Truth& t : truth) {
    bool there = false;
    for (const Term& term : learnt[static_cast<std::size_t>(t.equation)].terms)
      there = there || term.powers == t.powers;
    if (!there) {
      square += t.value * t.value;
      r.largest = std::max(r.largest, std::abs(t.value));
    }
  }
  r.exact = r.exact && found == truth.size();
  r.error = std::sqrt(square / size);
  return r;
}

FitOptions least_squares(DerivativeMethod method, bool select, int degree = 2) {
  return {
      .method = DropoutMethod{
          .degree = degree, .dropout = 0, .rows = {.derivative = method}, .select_terms = select}};
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

TEST(RecoveryTest, CleanSprottBHoldsTheTruthForAHundredTimeUnits) {
  const System system = find_system("SprottB");
  const Dataset data = simulate(system, Vector::Ones(3), even_times(5001, 0.002));
  const Vector start = -Vector::Ones(3);
  const std::vector<double> times = regular_times(0, 110, 0.1);
  const auto truth = solve_certified(system.field, 0, start, times);
  ASSERT_GE(truth.certified_until, 100);
  for (const auto method : {DerivativeMethod::central8, DerivativeMethod::weak}) {
    const Fit learnt = fit(data, least_squares(method, false), ignore_progress);
    const Recovered r = compare(learnt.model, kSprottB);
    const DropoutPosterior posterior(learnt.model.network());
    const VectorField field = posterior.mean_field();
    const Scaling& scaling = learnt.model.scaling;
    std::vector<double> scaled = times;
    for (double& t : scaled) t /= scaling.time;
    const Solution forecast =
        solve(field, 0, scaling.to_model(start), scaled,
              {.rtol = 2.3e-14, .atol = 2.3e-14, .max_steps = 10'000'000, .land_on_outputs = true});
    // Valid time: normalised root mean square error 0.4.
    const Matrix& u = truth.solution.states;
    const Eigen::RowVectorXd mean = u.colwise().mean();
    const Eigen::RowVectorXd sd =
        ((u.rowwise() - mean).colwise().squaredNorm() / static_cast<double>(u.rows())).cwiseSqrt();
    double valid = 0;
    for (Eigen::Index i = 0; i < u.rows(); ++i) {
      const Eigen::RowVectorXd e =
          (scaling.to_user(forecast.states.row(i).transpose()).transpose() - u.row(i))
              .cwiseQuotient(sd);
      if (std::sqrt(e.squaredNorm() / 3) > 0.4) break;
      valid = times[static_cast<std::size_t>(i)];
    }
    printf("%s: largest coefficient error %.1e, holds the truth until t = %.1f of %.1f certified\n",
           std::string(derivative_name(method)).c_str(), r.largest, valid, truth.certified_until);
    EXPECT_LE(r.largest, 1e-9);
    EXPECT_GE(valid, 100);
  }
}

/// Errors over noise draws: the median, how often exactly the true terms were found.
struct Study {
  std::vector<double> errors;
  int exact = 0;
};
Study noisy_lorenz(const Dataset& clean, double noise, int draws, const FitOptions& options) {
  Study study;
  const Vector sigma = noise_level(clean, noise, NoiseOf::rms);
  for (int draw = 1; draw <= draws; ++draw) {
    Dataset data = clean;
    add_noise(data, sigma, static_cast<std::uint64_t>(draw));
    const Recovered r = compare(fit(data, options, ignore_progress).model, kLorenz);
    study.errors.push_back(r.error);
    study.exact += r.exact;
  }
  return study;
}

TEST(RecoveryTest, WeakFormOfNoisyLorenzBeatsThePublishedError) {
  const Dataset clean =
      simulate(find_system("Lorenz"), Eigen::Vector3d(-8, 7, 27), even_times(10001, 0.001));
  const auto report = [](const char* what, const Study& s) {
    printf("%s: median error %.4f, largest %.4f, exact terms in %d of %zu draws\n", what,
           median(s.errors), *std::max_element(s.errors.begin(), s.errors.end()), s.exact,
           s.errors.size());
  };
  const Study two = noisy_lorenz(clean, 0.1, 50, least_squares(DerivativeMethod::weak, true));
  report("degree 2, 10 % noise, terms selected", two);
  EXPECT_LE(median(two.errors), 0.0084);  // Messenger & Bortz 2021
  report("degree 5, 10 % noise, terms selected",
         noisy_lorenz(clean, 0.1, 10, least_squares(DerivativeMethod::weak, true, 5)));
  report("degree 2, 10 % noise, all terms",
         noisy_lorenz(clean, 0.1, 10, least_squares(DerivativeMethod::weak, false)));
}

TEST(RecoveryTest, UnevenTimesWithMissingRowsLoseLessThanAFactorOfTwo) {
  // Exponential spacings of mean 1/200 over 10 time units, then 30 % of the rows dropped at random.
  const System system = find_system("Lorenz");
  Stream stream(1, Purpose::initial_state, 5);
  std::vector<double> times = {0};
  for (double t = 0;;) {
    t -= portable_log(stream.uniform()) / 200;
    if (t > 10) break;
    if (stream.uniform() >= 0.3) times.push_back(t);
  }
  const int rows = static_cast<int>(times.size());
  const Vector start = Eigen::Vector3d(-8, 7, 27);
  const Dataset uneven = simulate(system, start, times);
  const Dataset even = simulate(system, start, even_times(rows, 10.0 / (rows - 1)));
  for (const bool select : {true, false}) {
    const FitOptions options = least_squares(DerivativeMethod::weak, select);
    const double a = median(noisy_lorenz(uneven, 0.01, 25, options).errors);
    const double b = median(noisy_lorenz(even, 0.01, 25, options).errors);
    printf("%d rows, %s terms: median error uneven %.5f, even %.5f, ratio %.2f\n", rows,
           select ? "selected" : "all", a, b, a / b);
    EXPECT_LT(a, 2 * b);
  }
}

TEST(RecoveryTest, AHundredShortTrajectoriesLearnWhatOneLongOneDoes) {
  const Dataset whole =
      simulate(find_system("Lorenz"), Eigen::Vector3d(-8, 7, 27), even_times(10000, 0.01));
  Dataset pieces = whole;
  pieces.trajectories.clear();
  const Trajectory& t = whole.trajectories[0];
  for (int k = 0; k < 100; ++k)
    pieces.trajectories.push_back({std::to_string(k),
                                   {t.times.begin() + 100 * k, t.times.begin() + 100 * (k + 1)},
                                   t.states.middleRows(100 * k, 100)});
  // The integral form follows the noise along a trajectory, and so learns more from an uncut one
  // than from its pieces.
  const std::vector<std::pair<DerivativeMethod, double>> bounds = {
      {DerivativeMethod::central4, 1.5},
      {DerivativeMethod::savgol, 1.5},
      {DerivativeMethod::spline, 1.5},
      {DerivativeMethod::weak, 2.5}};
  for (const auto& [method, bound] : bounds) {
    const FitOptions options = least_squares(method, true);
    const double one = median(noisy_lorenz(whole, 0.01, 15, options).errors);
    const double hundred = median(noisy_lorenz(pieces, 0.01, 15, options).errors);
    printf("%s: median error of one trajectory %.5f, of a hundred %.5f, ratio %.2f\n",
           std::string(derivative_name(method)).c_str(), one, hundred, hundred / one);
    EXPECT_LT(hundred, bound * one);
  }
}

}  // namespace
}  // namespace odecast
