// Driven systems, maps and systems that are no polynomials: learnt, and forecast from starts that
// were not seen.

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

std::vector<double> even_times(int rows, double step) {
  std::vector<double> times;
  for (int i = 0; i < rows; ++i) times.push_back(i * step);
  return times;
}

/// A run of a catalogue system, its inputs with it.
Trajectory run(const System& system, const Vector& start, const std::vector<double>& times) {
  Trajectory t{"", times, {}};
  if (system.map) {
    t.states = solve(system.field, times[0], start, times,
                     {.method = SolverMethod::iterate, .fixed_step = system.step})
                   .states;
  } else {
    t.states = solve_certified(system.field, times[0], start, times).solution.states;
  }
  if (system.drive) {
    t.inputs.resize(t.states.rows(), static_cast<Eigen::Index>(system.inputs.size()));
    for (Eigen::Index i = 0; i < t.inputs.rows(); ++i)
      system.drive(times[static_cast<std::size_t>(i)], t.inputs.row(i).data());
  }
  return t;
}

Dataset data_of(const System& system, const Vector& start, const std::vector<double>& times) {
  Dataset data{system.variables, {run(system, start, times)}};
  data.inputs = system.inputs;
  return data;
}

using Coefficients = std::map<std::vector<int>, double>;
/// Largest error of a coefficient, those of absent terms included.
double largest_error(const Model& model, const std::vector<Coefficients>& truth) {
  double largest = 0;
  const auto learnt = equations(model);
  for (std::size_t e = 0; e < truth.size(); ++e) {
    Coefficients rest = truth[e];
    for (const Term& t : learnt[e].terms) {
      largest =
          std::max(largest, std::abs(t.mean - (rest.contains(t.powers) ? rest[t.powers] : 0)));
      rest.erase(t.powers);
    }
    for (const auto& [powers, value] : rest) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

FitOptions least_squares(int degree, DerivativeMethod method = DerivativeMethod::forward) {
  return {.method = DropoutMethod{.degree = degree, .dropout = 0, .rows = {.derivative = method}}};
}

TEST(OtherSystemsTest, ForcedDuffingIsRecovered) {
  const System system = find_system("ForcedDuffing");
  const Dataset data = data_of(system, system.start, even_times(2001, 0.05));
  const std::vector<Coefficients> truth = {
      {{{0, 1, 0}, 1}}, {{{1, 0, 0}, 1}, {{0, 1, 0}, -0.3}, {{3, 0, 0}, -1}, {{0, 0, 1}, 1}}};
  for (const auto method : {DerivativeMethod::central8, DerivativeMethod::weak}) {
    const FitOptions o = least_squares(3, method);
    const Fit learnt = fit(data, o, ignore_progress);
    const double error = largest_error(learnt.model, truth);
    printf("%s: largest coefficient error %.1e\n", std::string(derivative_name(method)).c_str(),
           error);
    EXPECT_LE(error, 1e-6);
  }
}

TEST(OtherSystemsTest, TheTrajectoryPosteriorContinuesADrivenSystemWithinItsBand) {
  // 2 % noise on the first 60 time units; the next 10, driven by what came then. Over ten draws of
  // the noise the band of 95 % should hold the truth 95 % of the time; the times of one draw are
  // not independent, so the bound is loose.
  const System system = find_system("ForcedDuffing");
  const Dataset all = data_of(system, system.start, even_times(1401, 0.05));
  const Trajectory& truth = all.trajectories[0];
  double inside = 0, worst = 0, widest = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Dataset data{
        all.variables,
        {{"", even_times(1201, 0.05), truth.states.topRows(1201), truth.inputs.topRows(1201)}}};
    data.inputs = all.inputs;
    add_noise(data, noise_level(data, 0.02, NoiseOf::sd), seed);
    const FitOptions o{.method = TrajectoryMethod{.degree = 3}};
    const Model model = fit(data, o, ignore_progress).model;
    ForecastOptions f;
    f.times.assign(truth.times.begin() + 1201, truth.times.end());
    f.inputs = InputSignal{truth.times, truth.inputs};
    f.draws = 200;
    f.solver = default_solver(model);
    const Forecast result = forecast(model, f, ignore_progress);
    for (Eigen::Index k = 1; k < result.mean.rows(); ++k)
      for (Eigen::Index i = 0; i < 2; ++i) {
        inside += result.lower(k, i) <= truth.states(1200 + k, i) &&
                  truth.states(1200 + k, i) <= result.upper(k, i);
        worst = std::max(worst, std::abs(result.mean(k, i) - truth.states(1200 + k, i)));
      }
    widest = std::max(widest, (result.upper - result.lower).maxCoeff());
  }
  printf("driven Duffing by trajectory: %.3f inside, largest error %.3f, widest band %.3f\n",
         inside / 4000, worst, widest);
  EXPECT_GT(inside / 4000, 0.85);
  EXPECT_LT(worst, 0.1);
  EXPECT_LT(widest, 0.3);
}

TEST(OtherSystemsTest, HenonAndOtherMapsAreRecovered) {
  const std::map<std::string, std::vector<Coefficients>> maps = {
      {"Henon", {{{{0, 0}, 1}, {{2, 0}, -1.4}, {{0, 1}, 1}}, {{{1, 0}, 0.3}}}},
      {"Logistic", {{{{1}, 4}, {{2}, -4}}}},
      {"Tinkerbell",
       {{{{2, 0}, 1}, {{0, 2}, -1}, {{1, 0}, 0.9}, {{0, 1}, -0.6013}},
        {{{1, 1}, 2}, {{1, 0}, 2}, {{0, 1}, 0.5}}}},
      {"HolmesCubic", {{{{0, 1}, 1}}, {{{1, 0}, -0.2}, {{0, 1}, 2.77}, {{0, 3}, -1}}}}};
  for (const auto& [name, truth] : maps) {
    const System system = find_system(name);
    FitOptions o = least_squares(name == "HolmesCubic" ? 3 : 2);
    o.kind = ModelKind::map;
    const Fit learnt = fit(data_of(system, system.start, even_times(1000, 1)), o, ignore_progress);
    const double error = largest_error(learnt.model, truth);
    printf("%s: largest coefficient error %.1e\n", name.c_str(), error);
    EXPECT_LE(error, 1e-6) << name;
  }
}

TEST(OtherSystemsTest, AForecastOfAMapIteratesIt) {
  const System system = find_system("Henon");
  FitOptions o = least_squares(2);
  o.kind = ModelKind::map;
  const Model model =
      fit(data_of(system, system.start, even_times(500, 1)), o, ignore_progress).model;
  ForecastOptions f;
  f.init = Eigen::Vector2d(0.2, 0.1);
  f.times = {1, 2, 5, 9};
  f.draws = 2;
  const Forecast forecast_of_it = forecast(model, f, ignore_progress);
  const Trajectory truth = run(system, *f.init, even_times(10, 1));
  for (std::size_t k = 0; k < f.times.size(); ++k)
    for (Eigen::Index i = 0; i < 2; ++i)
      EXPECT_NEAR(forecast_of_it.mean(static_cast<Eigen::Index>(k + 1), i),
                  truth.states(static_cast<Eigen::Index>(f.times[k]), i), 1e-9);
  f.times = {1.5};
  EXPECT_THROW(forecast(model, f, ignore_progress), Error);
}

// Rows with a hole in time between them are no pair of neighbours: a pair across would teach a
// wrong map.
TEST(OtherSystemsTest, AMapIsNotLearntAcrossAGap) {
  const System system = find_system("Henon");
  Dataset data = data_of(system, system.start, even_times(60, 1));
  Trajectory& t = data.trajectories[0];
  t.times.erase(t.times.begin() + 30);
  Matrix states(59, 2);
  states << t.states.topRows(30), t.states.bottomRows(29);
  t.states = states;
  FitOptions o = least_squares(2);
  o.kind = ModelKind::map;
  const Fit learnt = fit(data, o, ignore_progress);
  EXPECT_EQ(learnt.model.training.rows, 57);
  EXPECT_LE(*learnt.model.training.objective, 1e-25);
}

// Between rows the input is linear or held: with one draw the forecast is the truth of that very
// input.
TEST(OtherSystemsTest, InputsBetweenRowsAreLinearOrHeld) {
  // dx/dt = w: x is the integral of the input.
  Dataset data{{"x"}, {}};
  data.inputs = {"w"};
  Trajectory t{"", even_times(41, 0.25), Matrix(41, 1), Matrix(41, 1)};
  for (int i = 0; i < 41; ++i) {
    t.inputs(i, 0) = i % 2;
    t.states(i, 0) = i == 0 ? 0 : t.states(i - 1, 0) + 0.25 * t.inputs(i - 1, 0);  // held
  }
  data.trajectories = {t};
  FitOptions o = least_squares(1);
  ForecastOptions f;
  f.init = Vector::Zero(1);
  f.times = {1, 2, 4};
  f.draws = 2;
  f.solver = SolverOptions{.rtol = 1e-9, .atol = 1e-9};
  f.solver->max_step = 0.1;
  f.inputs = InputSignal{{0, 1, 2, 3}, (Matrix(4, 1) << 0, 1, 0, 4).finished()};
  for (const bool held : {true, false}) {
    o.hold_inputs = held;
    const Model model = model_from_text(model_to_text(fit(data, o, ignore_progress).model), "test");
    EXPECT_EQ(model.inputs.held, held);
    const Forecast result = forecast(model, f, ignore_progress);
    // ∫ w: held 0, 1, 1 and 5; linear .5, 1, 3 and beyond the last row its value, 7.
    EXPECT_NEAR(result.mean(1, 0), held ? 0 : 0.5, 1e-6);
    EXPECT_NEAR(result.mean(2, 0), held ? 1 : 1, 1e-6);
    EXPECT_NEAR(result.mean(3, 0), held ? 5 : 7, 1e-6);
  }
  f.times = {1, 2, 8};
  EXPECT_THROW(forecast(fit(data, o, ignore_progress).model, f, ignore_progress), Error)
      << "inputs end before";
  f.inputs.reset();
  EXPECT_THROW(forecast(fit(data, o, ignore_progress).model, f, ignore_progress), Error)
      << "no inputs at all";
}

TEST(OtherSystemsTest, TimeCanBeAnInput) {
  // dx/dt = 2 t - 1 has x = t² - t.
  Dataset data{{"x"}, {{"", even_times(101, 0.05), Matrix(101, 1)}}};
  for (int i = 0; i <= 100; ++i) data.trajectories[0].states(i, 0) = 0.05 * i * (0.05 * i - 1);
  FitOptions o = least_squares(1, DerivativeMethod::central2);
  o.time_name = "t";
  const Model model = fit(data, o, ignore_progress).model;
  EXPECT_LE(largest_error(model, {{{{0, 0}, -1}, {{0, 1}, 2}}}), 1e-9);
  ForecastOptions f;
  f.times = {6, 8};
  f.draws = 2;
  const Forecast result = forecast(model, f, ignore_progress);
  EXPECT_NEAR(result.mean(2, 0), 56, 1e-3);
}

// Scaling the input's unit changes nothing but its coefficient.
TEST(OtherSystemsTest, UnitsOfInputsDoNotMatter) {
  const System system = find_system("ForcedDuffing");
  Dataset data = data_of(system, system.start, even_times(1001, 0.05));
  FitOptions o{.method = DropoutMethod{.degree = 3, .hidden = 8, .starts = 1}};
  const Model one = fit(data, o, ignore_progress).model;
  ForecastOptions f;
  f.times = regular_times(50, 52, 0.05);
  f.draws = 20;
  f.inputs =
      InputSignal{even_times(1101, 0.05), run(system, system.start, even_times(1101, 0.05)).inputs};
  const Forecast a = forecast(one, f, ignore_progress);
  data.trajectories[0].inputs *= 1024;
  f.inputs->values *= 1024;
  const Forecast b = forecast(fit(data, o, ignore_progress).model, f, ignore_progress);
  EXPECT_EQ(a.mean, b.mean);
}

TEST(OtherSystemsTest, ATanhNetworkForecastsAPendulumWithinItsBand) {
  // Swings of several energies; a start between them is held out.
  const System system = find_system("Pendulum");
  Dataset data{system.variables, {}};
  for (int k = 0; k < 6; ++k) {
    data.trajectories.push_back(
        run(system, Eigen::Vector2d(0.4 + 0.4 * k, 0), even_times(201, 0.05)));
    data.trajectories.back().id = std::to_string(k);
  }
  const FitOptions o{.method = DropoutMethod{.dropout = 0.02,
                                             .layers = {32, 32},
                                             .rows = {.derivative = DerivativeMethod::central4},
                                             .training = {.batches = 30}}};
  const Fit learnt = fit(data, o, ignore_progress);
  ASSERT_TRUE(learnt.summary.usable);
  const Vector start = Eigen::Vector2d(1.4, 0);
  const double period = 2 * M_PI * (1 + 1.4 * 1.4 / 16 + 11 * std::pow(1.4, 4) / 3072);
  ForecastOptions f;
  f.init = start;
  f.times = regular_times(0, 2 * period, 0.05);
  f.draws = 500;
  const Forecast result = forecast(learnt.model, f, ignore_progress);
  const Trajectory truth = run(system, start, result.times);
  long inside = 0;
  for (Eigen::Index i = 1; i < result.mean.rows(); ++i)
    for (Eigen::Index j = 0; j < 2; ++j)
      inside +=
          result.lower(i, j) <= truth.states(i, j) && truth.states(i, j) <= result.upper(i, j);
  const double coverage =
      static_cast<double>(inside) / static_cast<double>(2 * (result.mean.rows() - 1));
  printf(
      "pendulum: %.3f inside the band over two periods, mean width %.3f of theta, %ld discarded\n",
      coverage, (result.upper - result.lower).col(0).mean(), result.discarded);
  EXPECT_GE(coverage, 0.95);
  EXPECT_LT((result.upper - result.lower).col(0).mean(), 2.8) << "narrower than the swing";
}

// x ~ a mixture of two points, observed with noise: the band of an observation in closed form.
TEST(OtherSystemsTest, BandsOfObservationsAreThoseOfTheMixtureWithNoise) {
  const System system = find_system("HarmonicOscillator");
  Dataset data = data_of(system, system.start, even_times(301, 0.1));
  add_noise(data, Vector::Constant(2, 0.05), 3);
  const FitOptions o{.method = DropoutMethod{.degree = 1}};
  const Model model = fit(data, o, ignore_progress).model;
  // The median of N absolute values has relative standard deviation 1.17/√N.
  for (int i = 0; i < 2; ++i)
    EXPECT_NEAR(model.noise[i], 0.05, 5 * 0.05 * 1.17 / std::sqrt(299.0))
        << "estimated from 301 rows";
  ForecastOptions f;
  f.times = {30.5, 31, 33};
  f.masks = MaskSource::enumerated;
  f.samples = 1000;
  f.noise = Vector::Zero(model.dimension());
  const Forecast state = forecast(model, f, ignore_progress);
  EXPECT_EQ(state.observed_lower.size(), 0);
  f.noise = model.noise;
  const Forecast both = forecast(model, f, ignore_progress);
  EXPECT_EQ(both.q_lower, state.q_lower) << "the state's band is what it was";
  f.bands = Bands::sd;
  const Forecast gaussian = forecast(model, f, ignore_progress);
  const DropoutPosterior posterior(model.network());
  for (Eigen::Index t = 1; t < both.mean.rows(); ++t)
    for (Eigen::Index i = 0; i < 2; ++i) {
      const double sd = std::hypot(both.sd(t, i), model.noise[i]);
      EXPECT_NEAR(gaussian.observed_upper(t, i) - gaussian.mean(t, i), 1.959963984540054 * sd,
                  1e-9);
      EXPECT_EQ(gaussian.observed_upper(t, i), both.observed_upper(t, i));
      // P(observation below the upper end) = 0.975, summed over the trajectories with their
      // probabilities.
      double below = 0, total = 0;
      for (std::uint64_t a = 0; a < posterior.atoms(); ++a) {
        const Solution one =
            solve(posterior.atom_field(a), model.last_time / model.scaling.time,
                  model.scaling.to_model(model.last_state),
                  std::vector{both.times[static_cast<std::size_t>(t)] / model.scaling.time}, {});
        const double x = model.scaling.to_user(one.states.row(0).transpose())[i];
        below +=
            posterior.atom_weight(a) *
            (0.5 * std::erfc(-(both.observed_q_upper(t, i) - x) / model.noise[i] * std::sqrt(0.5)));
        total += posterior.atom_weight(a);
      }
      EXPECT_NEAR(below / total, 0.975,
                  1e-3);  // solutions here end on the output time, there they interpolate
    }
}

}  // namespace
}  // namespace odecast
