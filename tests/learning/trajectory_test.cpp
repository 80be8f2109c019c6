#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/smoother.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

Dataset orbit(const char* name, const Vector& start, double until, double step) {
  const System system = find_system(name);
  std::vector<double> times = regular_times(0, until, step);
  times.insert(times.begin(), 0.0);
  return {system.variables,
          {{"", times, solve_certified(system.field, 0, start, times).solution.states}}};
}

Dataset noisy(Dataset data, double part, std::uint64_t seed) {
  add_noise(data, noise_level(data, part, NoiseOf::sd), seed);
  return data;
}

Fit fit_by_trajectory(const Dataset& data, int degree = 2, TrajectoryOptions options = {},
                      int threads = 1) {
  const FitOptions o{.method = TrajectoryMethod{.degree = degree,
                                                .robust = options.robust,
                                                .terms = std::move(options.terms)},
                     .noise = options.noise.value_or(Vector()),
                     .threads = threads};
  return fit(data, o, ignore_progress);
}

std::vector<Equation> best_equations(Model model) {
  model.polynomial()->sets.resize(1);
  model.polynomial()->sets[0].weight = 1;
  return equations(model);
}

TEST(TrajectoryTest, CleanDataGiveTheEquationsToRoundOff) {
  const auto found =
      best_equations(fit_by_trajectory(orbit("SprottB", Vector::Ones(3), 10, 0.02)).model);
  // dx = y z, dy = x - y, dz = 1 - x y and nothing else.
  ASSERT_EQ(found[0].terms.size(), 1u);
  ASSERT_EQ(found[1].terms.size(), 2u);
  ASSERT_EQ(found[2].terms.size(), 2u);
  EXPECT_EQ(found[0].terms[0].powers, (std::vector<int>{0, 1, 1}));
  const double expected[] = {1, 1, -1, 1, -1};
  int at = 0;
  for (const Equation& e : found)
    for (const Term& t : e.terms) EXPECT_NEAR(t.mean, expected[at++], 1e-12);
}

TEST(TrajectoryTest, NoisyLorenzHasItsSevenTermsAmongThoseOfDegreeThree) {
  const Dataset data = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 10, 0.01), 0.05, 3);
  const auto found = best_equations(fit_by_trajectory(data, 3).model);
  ASSERT_EQ(found[0].terms.size(), 2u);
  ASSERT_EQ(found[1].terms.size(), 3u);
  ASSERT_EQ(found[2].terms.size(), 2u);
  const double expected[] = {-10, 10, 28, -1, -1, -8.0 / 3, 1};
  int at = 0;
  for (const Equation& e : found)
    for (const Term& t : e.terms) {
      EXPECT_NEAR(t.mean, expected[at], 5 * t.sd);
      EXPECT_LT(t.sd, 0.1 * std::abs(expected[at]));
      ++at;
    }
}

TEST(TrajectoryTest, AMisfitOfDegreeTwoClimbsToThree) {
  const Dataset data = noisy(orbit("VanDerPol", Eigen::Vector2d(0.1, 0.1), 20, 0.05), 0.02, 3);
  const Fit found = fit_by_trajectory(data);
  EXPECT_EQ(found.summary.taken_degree, 3);
  EXPECT_TRUE(found.summary.trusted) << found.summary.reason;
  EXPECT_NE(found.summary.reason.find("of degree 3"), std::string::npos);
  EXPECT_NE(std::find(found.model.settings.begin(), found.model.settings.end(),
                      std::pair<std::string, std::string>("degree", "3")),
            found.model.settings.end());
  // What a given degree of three finds.
  EXPECT_EQ(equations(found.model)[1].terms.size(),
            equations(fit_by_trajectory(data, 3).model)[1].terms.size());
}

/// Every `every`-th state of u' = slope(u) by Runge and Kutta's steps of h, after `before` of them.
template <class Slope, class State>
Dataset solved(std::vector<std::string> names, Slope slope, State u, double h, int before, int rows,
               int every) {
  Dataset data{std::move(names), {{"", {}, Matrix(rows, u.size())}}};
  for (int k = -before; k < every * rows; ++k) {
    if (k >= 0 && k % every == 0) {
      data.trajectories[0].times.push_back(h * k);
      data.trajectories[0].states.row(k / every) = u.transpose();
    }
    const State a = slope(u), b = slope(u + h / 2 * a), c = slope(u + h / 2 * b),
                d = slope(u + h * c);
    u += h / 6 * (a + 2 * b + 2 * c + d);
  }
  return data;
}

/// Prey and predators whose appetite is limited: x' = x (1 - x/4) - x y/(1 + x), y' = 0.8 x y/(1 +
/// x) - 0.3 y.
Dataset rosenzweig_macarthur(int rows) {
  const auto slope = [](const Eigen::Vector2d& u) -> Eigen::Vector2d {
    const double eaten = u[0] * u[1] / (1 + u[0]);
    return {u[0] * (1 - u[0] / 4) - eaten, 0.8 * eaten - 0.3 * u[1]};
  };
  return solved({"x", "y"}, slope, Eigen::Vector2d(1, 1), 0.016, 10'000, rows, 20);
}

TEST(TrajectoryTest, WhatIsLackingBelowTheNoiseIsAMisfit) {
  const Fit found = fit_by_trajectory(noisy(rosenzweig_macarthur(1500), 0.01, 2), 3);
  const TrajectoryPart& part = found.model.trajectory.value();
  // Nothing in the residuals tells.
  EXPECT_LT(part.persistence, 6);
  EXPECT_LT(part.autocorrelation, 4 / std::sqrt(3000.0));
  EXPECT_EQ(found.summary.status, "misfit");
  EXPECT_FALSE(found.summary.trusted);
  EXPECT_GT(found.summary.path->lacking, 4);
  EXPECT_TRUE(part.forcing.present());
  EXPECT_NE(found.summary.reason.find("below the noise"), std::string::npos)
      << found.summary.reason;
}

TEST(TrajectoryTest, ADegreeThatNobodyGaveIsAsSharpAsTheOneThatIsRight) {
  for (const auto& [data, degree] :
       {std::pair(noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 10, 0.01), 0.05, 3), 2),
        std::pair(noisy(orbit("VanDerPol", Eigen::Vector2d(0.1, 0.1), 20, 0.05), 0.02, 3), 3)}) {
    const Fit found = fit_by_trajectory(data, kAutomaticDegree);
    const Fit given = fit_by_trajectory(data, degree);
    EXPECT_EQ(found.model.training.trainer, "trajectory");
    EXPECT_TRUE(found.summary.trusted) << found.summary.reason;
    EXPECT_GE(found.summary.degrees.size(), 2u);
    // Settings have a degree that gives the same bits.
    const Fit again = fit_by_trajectory(data, found.summary.taken_degree);
    EXPECT_EQ(found.model.last_state_sd, again.model.last_state_sd);
    const auto best = best_equations(found.model), asked = best_equations(given.model);
    for (std::size_t i = 0; i < best.size(); ++i) {
      ASSERT_EQ(best[i].terms.size(), asked[i].terms.size());
      for (std::size_t k = 0; k < best[i].terms.size(); ++k) {
        EXPECT_EQ(best[i].terms[k].powers, asked[i].terms[k].powers);
        EXPECT_NEAR(best[i].terms[k].sd, asked[i].terms[k].sd, 0.05 * asked[i].terms[k].sd);
      }
    }
    const Vector sd = found.model.last_state_sd.value(),
                 of_given = given.model.last_state_sd.value();
    for (Eigen::Index i = 0; i < sd.size(); ++i) EXPECT_NEAR(sd[i], of_given[i], 0.2 * of_given[i]);
  }
}

TEST(TrajectoryTest, ADegreeThatIsTooLowIsLeftSoon) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // Moore and Spiegel's x''' = -x'' + 14 x' - 20 x² x' - 6 x: no path of quadratic equations comes
  // near it.
  const auto slope = [](const Eigen::Vector3d& u) -> Eigen::Vector3d {
    return {u[1], u[2], 14 * u[1] - u[2] - 20 * u[0] * u[0] * u[1] - 6 * u[0]};
  };
  const Dataset data =
      noisy(solved({"x", "y", "z"}, slope, Eigen::Vector3d(0.1, 0.1, 0.1), 0.001, 50'000, 1500, 20),
            0.05, 2);
  const Fit found = fit_by_trajectory(data, 3);
  EXPECT_TRUE(found.summary.trusted) << found.summary.reason;
  EXPECT_LT(found.model.training.iterations, 2500);
  const auto best = best_equations(found.model);
  EXPECT_EQ(best[0].terms.size(), 1u);
  EXPECT_EQ(best[1].terms.size(), 1u);
  EXPECT_EQ(best[2].terms.size(), 4u);
}

TEST(TrajectoryTest, AVariableThatIsMostlyNoiseIsTold) {
  const Dataset clear = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 10, 0.01), 0.4, 3);
  const Fit loud = fit_by_trajectory(clear);
  EXPECT_TRUE(loud.summary.trusted) << loud.summary.reason;  // .4/√(1 + .4²) = .37 of its sd
  EXPECT_EQ(loud.summary.path->noise_share, 0);
  Dataset data = noisy(orbit("HarmonicOscillator", Eigen::Vector2d(1, 0), 40, 0.05), 0.02, 3);
  data.variables.push_back("w");
  Stream stream(8, Purpose::observation_noise, 0);
  Trajectory& run = data.trajectories[0];
  run.states.conservativeResize(Eigen::NoChange, 3);
  for (int k = 0; k < run.rows(); ++k) run.states(k, 2) = 5 + stream.normal();
  const Fit found = fit_by_trajectory(data);
  EXPECT_EQ(found.summary.status, "mostly_noise");
  EXPECT_FALSE(found.summary.trusted);
  EXPECT_NEAR(found.summary.path->noise_share, 1, 0.02);
  EXPECT_NE(found.summary.reason.find("the sd of w is called noise"), std::string::npos)
      << found.summary.reason;
}

TEST(TrajectoryTest, PartOfAPeriodIsTold) {
  Dataset data = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 10, 0.01), 0.02, 3);
  EXPECT_EQ(fit_by_trajectory(data).summary.status, "converged");
  Trajectory& run = data.trajectories[0];
  run.times.resize(30);
  run.states.conservativeResize(30, Eigen::NoChange);
  const Fit found = fit_by_trajectory(data);
  EXPECT_EQ(found.summary.status, "short_run") << found.summary.reason;
  EXPECT_FALSE(found.summary.trusted);
}

TEST(TrajectoryTest, HeavyTailsOfResidualsAreTold) {
  Dataset data = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 10, 0.01), 0.01, 3);
  const double sd = 0.01 * 9;
  for (int k = 50; k < 1000; k += 100) data.trajectories[0].states(k, 1) += 10 * sd;
  const Fit found = fit_by_trajectory(data);
  EXPECT_TRUE(found.summary.trusted) << found.summary.reason;
  EXPECT_GT(found.summary.path->kurtosis, 3);
  EXPECT_NE(found.summary.reason.find("residuals of y have heavy tails"), std::string::npos)
      << found.summary.reason;
}

TEST(TrajectoryTest, PositiveVariablesAreMarkedAndTheirRowsLookedAt) {
  Dataset data = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 4, 0.02), 0.01, 3);
  FitOptions o{.method = TrajectoryMethod{}, .positive = {"z"}};
  const Fit marked = fit(data, o, ignore_progress);
  EXPECT_EQ(marked.model.positive, (std::vector<bool>{false, false, true}));
  const Fit plain = fit(data, FitOptions{}, ignore_progress);
  EXPECT_EQ(marked.model.polynomial()->sets[0].theta, plain.model.polynomial()->sets[0].theta);
  o.positive = {"all"};
  try {
    fit(data, o, ignore_progress);
    ADD_FAILURE() << "x is negative";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("column x, row 1 (t = 0)"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("positive=z"), std::string::npos) << e.what();
  }
  o.positive = {"w"};
  EXPECT_THROW(fit(data, o, ignore_progress), Error);
}

TEST(TrajectoryTest, AnOscillationOfOneVariableIsEmbedded) {
  // x = cos t and an earlier value of it: any two of its phases move linearly.
  Dataset data{{"x"}, {{"", {}, Matrix(300, 1)}}};
  for (int i = 0; i < 300; ++i) {
    data.trajectories[0].times.push_back(0.1 * i);
    data.trajectories[0].states(i, 0) = std::cos(0.1 * i);
  }
  add_noise(data, Vector::Constant(1, 0.01), 1);
  EXPECT_FALSE(fit_by_trajectory(data).summary.usable);
  FitOptions o;
  o.embed = EmbeddingChoice{.automatic = false, .embedding = {EmbeddingKind::delays, 2}};
  const Fit found = fit(data, o, ignore_progress);
  ASSERT_TRUE(found.summary.usable);
  EXPECT_EQ(found.model.measured_variables(), data.variables);
  EXPECT_NEAR(found.model.embedding->step, 0.1, 1e-12);
  EXPECT_EQ(found.model.dimension(), 2);
  // The two eigenvalues of the linear law are ±i: trace 0, determinant 1.
  Matrix A = Matrix::Zero(2, 2);
  const std::vector<Equation> all = best_equations(found.model);
  for (int i = 0; i < 2; ++i)
    for (const Term& t : all[static_cast<std::size_t>(i)].terms) {
      if (t.powers == std::vector<int>{1, 0}) A(i, 0) = t.mean;
      if (t.powers == std::vector<int>{0, 1}) A(i, 1) = t.mean;
    }
  EXPECT_NEAR(A.trace(), 0, 0.02);
  EXPECT_NEAR(A(0, 0) * A(1, 1) - A(0, 1) * A(1, 0), 1, 0.05);
  o.embed->automatic = true;
  EXPECT_THROW(fit(data, o, ignore_progress), Error);
}

TEST(TrajectoryTest, PosteriorOfADriftIsTheClosedForm) {
  // du/dt = θ, known noise σ: y_k = u_N - θ (t_N - t_k) + ε is a straight line. Least squares in
  // (θ, u_N) has covariance σ² (X'X)⁻¹, exactly normal; the prior of θ has sd 1000 and does not
  // show.
  const int rows = 40;
  const double sigma = 0.3;
  Dataset data{{"u"}, {{"", {}, Matrix(rows, 1)}}};
  Stream stream(2, Purpose::observation_noise, 0);
  Eigen::MatrixXd X(rows, 2);
  for (int k = 0; k < rows; ++k) {
    data.trajectories[0].times.push_back(0.25 * k + 0.1 * stream.uniform());
    data.trajectories[0].states(k, 0) =
        1 + 2 * data.trajectories[0].times.back() + sigma * stream.normal();
  }
  for (int k = 0; k < rows; ++k)
    X.row(k) << data.trajectories[0].times[static_cast<std::size_t>(k)] -
                    data.trajectories[0].times.back(),
        1;
  const Eigen::MatrixXd C = sigma * sigma * (X.transpose() * X).inverse();
  const Vector mean =
      (X.transpose() * X).ldlt().solve(X.transpose() * data.trajectories[0].states.col(0));
  TrajectoryOptions options;
  options.noise = Vector::Constant(1, sigma);
  options.terms = {{0, {0}}};
  const Model model = fit_by_trajectory(data, 1, options).model;
  const Term term = equations(model)[0].terms.at(0);
  // Continuity is held to 1e-3 noise sd per segment, which widens θ by 1e-5 relative.
  EXPECT_NEAR(term.mean, mean[0], 1e-4 * std::sqrt(C(0, 0)));
  EXPECT_NEAR(term.sd, std::sqrt(C(0, 0)), 1e-4 * term.sd);
  EXPECT_NEAR(model.last_state[0], mean[1], 1e-4 * std::sqrt(C(1, 1)));
  EXPECT_NEAR((*model.last_state_sd)[0], std::sqrt(C(1, 1)), 1e-4 * std::sqrt(C(1, 1)));
  // Draws have that joint distribution: correlation of θ and u_N over n = 4000 draws.
  const PolynomialPosterior posterior = polynomial_posterior(model);
  const int draws = 4000;
  double uu = 0, tt = 0, ut = 0;
  for (int k = 0; k < draws; ++k) {
    const double theta =
        posterior.draw(5, static_cast<std::uint64_t>(k)).polynomial()->coefficients(0, 0) *
            model.scaling.rate()[0] -
        mean[0];
    const double u =
        model.scaling.to_user(*posterior.draw_start(5, static_cast<std::uint64_t>(k)))[0] - mean[1];
    uu += u * u, tt += theta * theta, ut += u * theta;
  }
  const double correlation = C(0, 1) / std::sqrt(C(0, 0) * C(1, 1));
  // Standard error of a correlation (1 - ρ²)/√n, of a variance √(2/n) relative.
  EXPECT_NEAR(ut / std::sqrt(uu * tt), correlation,
              5 * (1 - correlation * correlation) / std::sqrt(draws));
  EXPECT_NEAR(tt / draws / C(0, 0), 1, 5 * std::sqrt(2.0 / draws));
  EXPECT_NEAR(uu / draws / C(1, 1), 1, 5 * std::sqrt(2.0 / draws));
}

TEST(TrajectoryTest, IntervalsOfALinearSystemCover) {
  // x' = -0.2 x - y, y' = x - 0.2 y with its four terms known. With C the covariance that a fit
  // gives its coefficients, e' C⁻¹ e of their errors e is chi² with four degrees of freedom: over
  // 150 draws its mean over 4 has standard error sqrt(2/600).
  std::vector<double> times;
  Matrix states(120, 2);
  for (int k = 0; k < 120; ++k) {
    const double t = 0.08 * k, decay = std::exp(-0.2 * t);
    times.push_back(t);
    states.row(k) << 2 * decay * std::cos(t), 2 * decay * std::sin(t);
  }
  TrajectoryOptions options;
  options.terms = {{0, {1, 0}}, {0, {0, 1}}, {1, {1, 0}}, {1, {0, 1}}};
  const double truth[] = {-0.2, -1, 1, -0.2};
  constexpr int draws = 150;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    Dataset data{{"x", "y"}, {{"", times, states}}};
    add_noise(data, Vector::Constant(2, 0.05), seed);
    const Model model = fit_by_trajectory(data, 1, options).model;
    const PolynomialPosterior posterior = polynomial_posterior(model);
    const CoefficientSet& set = posterior.sets()[0];
    const Vector& scale = model.scaling.scale;
    ASSERT_EQ(set.support, (Support{{0, 1}, {0, 2}, {1, 1}, {1, 2}}));
    Vector error = set.theta;
    for (int c = 0; c < 4; ++c)
      error[c] -= truth[c] * model.scaling.time * scale[c % 2] / scale[c / 2];
    sum += error.dot(Eigen::MatrixXd(set.covariance).llt().solve(error)) / 4 / draws;
  }
  EXPECT_NEAR(sum, 1, 5 * std::sqrt(2.0 / (4 * draws)));
}

TEST(TrajectoryTest, SeveralRunsMissingValuesAndUnevenTimes) {
  Dataset data{{"x", "y", "z"}, {}};
  Stream stream(4, Purpose::initial_state, 0);
  const System system = find_system("Lorenz");
  for (int run = 0; run < 3; ++run) {
    std::vector<double> times = {0};
    while (times.size() < 300) times.push_back(times.back() + 0.002 + 0.02 * stream.uniform());
    const Vector start = Eigen::Vector3d(-8 + 3 * run, 7 - 2 * run, 27);
    data.trajectories.push_back({std::to_string(run), times,
                                 solve_certified(system.field, 0, start, times).solution.states});
  }
  data = noisy(data, 0.02, 6);
  for (Trajectory& t : data.trajectories)
    for (long k = 0; k < t.states.rows(); ++k)
      for (long i = 0; i < 3; ++i)
        if (stream.uniform() < 0.3) t.states(k, i) = std::nan("");
  const auto found = best_equations(fit_by_trajectory(data).model);
  const double expected[] = {-10, 10, 28, -1, -1, -8.0 / 3, 1};
  int at = 0;
  for (const Equation& e : found)
    for (const Term& t : e.terms) {
      ASSERT_LT(at, 7);
      EXPECT_NEAR(t.mean, expected[at++], 5 * t.sd);
    }
  EXPECT_EQ(at, 7);
}

TEST(TrajectoryTest, EquationsThatDoNotFitAreReported) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // A cubic oscillator with linear candidates only.
  const Dataset data = noisy(orbit("VanDerPol", Eigen::Vector2d(1, 1), 20, 0.02), 0.02, 1);
  const Fit poor = fit_by_trajectory(data, 1), good = fit_by_trajectory(data, 3);
  EXPECT_EQ(poor.summary.status, "misfit");
  EXPECT_TRUE(poor.model.trajectory->misfit);
  EXPECT_GT(poor.model.trajectory->continuity, 0.1);
  EXPECT_NE(poor.summary.reason.find("higher degree"), std::string::npos);
  EXPECT_EQ(good.summary.status, "converged");
  EXPECT_EQ(good.model.trajectory->continuity, 0);
}

TEST(TrajectoryTest, AConstantVariableDoesNotHoldTheOthers) {
  ODECAST_NOT_UNDER_SANITIZERS();
  Dataset data = noisy(orbit("VanDerPol", Eigen::Vector2d(1, 1), 20, 0.05), 0.02, 1);
  const auto alone = best_equations(fit_by_trajectory(data, 3).model);
  data.variables.push_back("c");
  Trajectory& t = data.trajectories[0];
  t.states.conservativeResize(Eigen::NoChange, 3);
  t.states.col(2).setOnes();
  const Fit both = fit_by_trajectory(data, 3);
  EXPECT_EQ(both.summary.status, "converged");
  const auto found = best_equations(both.model);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(found[i].terms.size(), alone[i].terms.size());
    for (std::size_t m = 0; m < found[i].terms.size(); ++m)
      EXPECT_NEAR(found[i].terms[m].mean, alone[i].terms[m].mean, 0.3 * alone[i].terms[m].sd);
  }
}

TEST(TrajectoryTest, AConstantVariableStaysConstant) {
  ODECAST_NOT_UNDER_SANITIZERS();
  Dataset data = noisy(orbit("VanDerPol", Eigen::Vector2d(1, 1), 20, 0.05), 0.02, 1);
  data.variables.push_back("c");
  Matrix& states = data.trajectories[0].states;
  states.conservativeResize(Eigen::NoChange, 3);
  states.col(2).setConstant(4);
  const auto found = best_equations(fit_by_trajectory(data, 3).model);
  EXPECT_TRUE(found[2].terms.empty());
  for (const Equation& e : found)
    for (const Term& t : e.terms) EXPECT_EQ(t.powers[2], 0);
  states.setConstant(1);
  EXPECT_THROW(fit_by_trajectory(data), Error);
}

TEST(TrajectoryTest, ModelFileKeepsEveryBitAndThreadsDoNotMatter) {
  const Dataset data = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 3, 0.01), 0.1, 1);
  const Model model = fit_by_trajectory(data).model;
  const std::string text = model_to_text(model);
  EXPECT_EQ(model_to_text(model_from_text(text, "test")), text);
  EXPECT_EQ(model_to_text(fit_by_trajectory(data, 2, {}, 3).model), text);
  const Vector u = Vector::Constant(3, 0.4);
  EXPECT_EQ(polynomial_posterior(model).moments(u).covariance,
            polynomial_posterior(model_from_text(text, "test")).moments(u).covariance);
  // Damage to the sets is refused although the checksum is made to match elsewhere: sizes are
  // checked.
  Model broken = model;
  broken.polynomial()->sets[0].covariance.conservativeResize(1, 1);
  EXPECT_THROW(model_from_text(model_to_text(broken), "test"), Error);
  broken = model;
  broken.polynomial()->sets[0].weight = 0.5 * model.polynomial()->sets[0].weight;
  EXPECT_THROW(model_from_text(model_to_text(broken), "test"), Error);
}

TEST(TrajectoryTest, MomentsOfTheFieldAreThoseOfItsDraws) {
  const Dataset data = noisy(orbit("Lorenz", Eigen::Vector3d(-8, 7, 27), 3, 0.01), 0.2, 2);
  const Model model = fit_by_trajectory(data).model;
  const PolynomialPosterior posterior = polynomial_posterior(model);
  ASSERT_GT(posterior.sets().size(), 1u);
  const Vector u = Eigen::Vector3d(0.5, -0.8, 1.1);
  const int draws = 20'000;
  const Moments exact = posterior.moments(u), sampled = sampled_moments(posterior, u, draws, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(sampled.mean[i], exact.mean[i], 5 * std::sqrt(exact.covariance(i, i) / draws));
    // A mixture's kurtosis is at most a few times the normal's: 5 se of a variance with
    // kurtosis 12.
    EXPECT_NEAR(sampled.covariance(i, i), exact.covariance(i, i),
                5 * std::sqrt(11.0 / draws) * exact.covariance(i, i));
  }
  Vector mean(3);
  posterior.mean_field()(0, u.data(), mean.data());
  EXPECT_LT((mean - exact.mean).norm(), 1e-12 * (1 + mean.norm()));
}

// --- inputs

Fit fit_driven(const Dataset& data, bool held,
               std::vector<TrajectoryOptions::KnownTerm> terms = {}) {
  FitOptions o{.method = TrajectoryMethod{.degree = 3, .terms = std::move(terms)}};
  o.hold_inputs = held;
  return fit(data, o, ignore_progress);
}

/// Duffing's oscillator shaken by a force that changes at some of its rows, held or linear between
/// rows: integrated from row to row, so that it is of the model's kind to round-off.
Trajectory shaken_duffing(int rows, double step, bool held, double change, std::uint64_t seed) {
  Stream stream(seed, Purpose::initial_state, 0);
  Trajectory t{std::to_string(seed), {}, Matrix(rows, 2), Matrix(rows, 1)};
  for (int k = 0; k < rows; ++k) {
    t.times.push_back(k * step);
    t.inputs(k, 0) =
        k == 0 || stream.uniform() < change ? 3 * stream.uniform() - 1.5 : t.inputs(k - 1, 0);
  }
  SolverOptions tight;
  tight.rtol = 1e-13;
  tight.atol = 1e-15;
  t.states.row(0) << 1, 0;
  for (int k = 0; k + 1 < rows; ++k) {
    const double begin = t.times[static_cast<std::size_t>(k)],
                 end = t.times[static_cast<std::size_t>(k + 1)];
    const double from = t.inputs(k, 0), to = held ? from : t.inputs(k + 1, 0);
    const VectorField field(2, [&](double now, const double* u, double* d) {
      d[0] = u[1];
      d[1] = -0.3 * u[1] + u[0] - u[0] * u[0] * u[0] + from +
             (now - begin) / (end - begin) * (to - from);
    });
    t.states.row(k + 1) = solve(field, begin, t.states.row(k).transpose(), std::vector{end}, tight)
                              .end_state.transpose();
  }
  return t;
}

/// dx/dt = v, dv/dt = x - 0.3 v + F - x³ and nothing else.
void expect_duffing(const std::vector<Equation>& found, double relative, double sds) {
  ASSERT_EQ(found[0].terms.size(), 1u);
  ASSERT_EQ(found[1].terms.size(), 4u);
  const std::vector<int> powers[] = {{0, 1, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {3, 0, 0}};
  const double expected[] = {1, 1, -0.3, 1, -1};
  int at = 0;
  for (const Equation& e : found)
    for (const Term& t : e.terms) {
      EXPECT_EQ(t.powers, powers[at]);
      EXPECT_NEAR(t.mean, expected[at], relative * std::abs(expected[at]) + sds * t.sd) << at;
      ++at;
    }
}

TEST(TrajectoryTest, CleanDrivenDataGiveTheEquationsAndTellHeldFromLinear) {
  ODECAST_NOT_UNDER_SANITIZERS();
  for (const bool held : {true, false}) {
    Dataset data{
        {"x", "v"},
        {shaken_duffing(300, 0.05, held, 0.3, 1), shaken_duffing(200, 0.05, held, 0.3, 2)}};
    data.inputs = {"F"};
    const Fit found = fit_driven(data, held);
    expect_duffing(best_equations(found.model), 1e-11, 0);
    EXPECT_LT(found.model.noise.maxCoeff(), 1e-10);
    EXPECT_EQ(found.model.inputs.held, held);
    const std::vector<TrajectoryOptions::KnownTerm> truth = {
        {0, {0, 1, 0}}, {1, {1, 0, 0}}, {1, {0, 1, 0}}, {1, {0, 0, 1}}, {1, {3, 0, 0}}};
    EXPECT_LT(fit_driven(data, held, truth).model.noise.maxCoeff(), 1e-10);
    EXPECT_GT(fit_driven(data, !held, truth).model.noise.maxCoeff(), 1e-4);
    // Each run has its own inputs: exchanged, they explain nothing.
    std::swap(data.trajectories[0].inputs, data.trajectories[1].inputs);
    data.trajectories[0].inputs.conservativeResize(300, 1);
    for (int k = 200; k < 300; ++k) data.trajectories[0].inputs(k, 0) = 0;
    data.trajectories[1].inputs.conservativeResize(200, 1);
    EXPECT_GT(fit_driven(data, held, truth).model.noise.maxCoeff(), 1e-3);
  }
}

TEST(TrajectoryTest, NoisyForcedDuffingHasItsTerms) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const System system = find_system("ForcedDuffing");
  Dataset data = orbit("ForcedDuffing", system.start, 100, 0.05);
  data.inputs = system.inputs;
  Trajectory& t = data.trajectories[0];
  t.inputs.resize(t.rows(), 1);
  for (int k = 0; k < t.rows(); ++k)
    system.drive(t.times[static_cast<std::size_t>(k)], t.inputs.row(k).data());
  data = noisy(data, 0.02, 1);
  const Fit found = fit_driven(data, false);
  EXPECT_EQ(found.summary.status, "converged");
  expect_duffing(best_equations(found.model), 0, 4);
  for (const Equation& e : best_equations(found.model))
    for (const Term& term : e.terms) EXPECT_LT(term.sd, 0.05 * std::abs(term.mean));
  // The file keeps it.
  const std::string text = model_to_text(found.model);
  EXPECT_EQ(model_to_text(model_from_text(text, "test")), text);
}

TEST(TrajectoryTest, GroupsOfObservationsAreDrivenByTheInputsBetweenThem) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // So dense that terms are found on groups of rows, three of them or more; the force jumps within
  // these.
  const double step = 0.002;
  Dataset data{{"x", "v"}, {shaken_duffing(9000, step, true, 0.02, 3)}};
  data.inputs = {"F"};
  data = noisy(data, 0.005, 1);
  const Matrix& states = data.trajectories[0].states;
  const Matrix units = states * root_mean_square(data).cwiseInverse().asDiagonal();
  ASSERT_GT(smooth({{data.trajectories[0].times, units, Matrix::Ones(units.rows(), 2)}}, false)
                .time_scale,
            3 * 30 * step);
  const Fit found = fit_driven(data, true);
  EXPECT_EQ(found.summary.status, "converged");
  expect_duffing(best_equations(found.model), 0, 4);
}

TEST(TrajectoryTest, AnInputThatDoesNothingIsNotATerm) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const Dataset alone = noisy(orbit("VanDerPol", Eigen::Vector2d(1, 1), 20, 0.05), 0.02, 1);
  Dataset data = alone;
  data.inputs = {"w"};
  Trajectory& t = data.trajectories[0];
  t.inputs.resize(t.rows(), 1);
  Stream stream(8, Purpose::initial_state, 0);
  for (auto& w : t.inputs.reshaped()) w = stream.normal();
  const auto with = best_equations(fit_driven(data, false).model),
             without = best_equations(fit_by_trajectory(alone, 3).model);
  for (std::size_t e = 0; e < 2; ++e) {
    ASSERT_EQ(with[e].terms.size(), without[e].terms.size());
    for (std::size_t c = 0; c < with[e].terms.size(); ++c) {
      const Term &a = with[e].terms[c], &b = without[e].terms[c];
      EXPECT_EQ(a.powers, (std::vector<int>{b.powers[0], b.powers[1], 0}));
      EXPECT_NEAR(a.mean, b.mean, 0.01 * b.sd);
      EXPECT_NEAR(a.sd, b.sd, 0.01 * b.sd);
    }
  }
}

/// u = t - 1 + (u_0 + 1) exp(-t), the solution of du/dt = t - u, from several starts and begins.
Dataset pulled_by_time() {
  Dataset data{{"u"}, {}};
  for (int run = 0; run < 3; ++run) {
    Trajectory t{std::to_string(run), {}, Matrix(60, 1)};
    for (int k = 0; k < 60; ++k) {
      const double since = 0.05 * k, now = run + since;
      t.times.push_back(now);
      t.states(k, 0) = now - 1 + (2 - run) * std::exp(-since);
    }
    data.trajectories.push_back(t);
  }
  return data;
}

TEST(TrajectoryTest, TimeIsAnInputAndInputsMayDependOnEachOther) {
  FitOptions o;
  o.time_name = "t";
  o.hold_inputs = true;  // the time goes on between rows all the same
  Dataset data = pulled_by_time();
  const Model model = fit(data, o, ignore_progress).model;
  EXPECT_TRUE(model.inputs.time);
  EXPECT_EQ(model.inputs.names, (std::vector<std::string>{"t"}));
  const auto found = best_equations(model);
  ASSERT_EQ(found[0].terms.size(), 2u);
  EXPECT_EQ(found[0].terms[0].powers, (std::vector<int>{1, 0}));
  EXPECT_NEAR(found[0].terms[0].mean, -1, 1e-10);
  EXPECT_NEAR(found[0].terms[1].mean, 1, 1e-10);
  // Beside the time a copy of it in other units, a shifted one and a constant: one of many ways to
  // write the same field.
  data.inputs = {"copy", "shifted", "constant"};
  for (Trajectory& t : data.trajectories) {
    t.inputs.resize(t.rows(), 3);
    for (int k = 0; k < t.rows(); ++k) {
      const double now = t.times[static_cast<std::size_t>(k)];
      t.inputs.row(k) << 2 * now, 3 + now, 7;
    }
  }
  o.hold_inputs = false;
  for (const double part : {0.0, 0.01}) {
    const Fit tied = fit(part > 0 ? noisy(data, part, 1) : data, o, ignore_progress);
    ASSERT_TRUE(tied.summary.usable);
    EXPECT_EQ(tied.summary.status, "converged");
    for (const Equation& e : equations(tied.model))
      for (const Term& t : e.terms) EXPECT_EQ(t.powers[3], 0);  // a constant is not a term beside 1
    // du/dt at u = 1, t = 2 is 1.
    Vector at(5);
    at << 1, 4, 5, 7, 2;
    const Moments moments = polynomial_posterior(tied.model).moments(tied.model.to_model(at));
    const double rate = tied.model.scaling.rate()[0];
    EXPECT_NEAR(rate * moments.mean[0], 1, part > 0 ? 5 * rate * moments.sd()[0] : 1e-8);
    EXPECT_LT(rate * moments.sd()[0], 0.1);
  }
}

TEST(TrajectoryTest, AMissingInputIsRefusedByItsRow) {
  Dataset data{{"x", "v"}, {shaken_duffing(60, 0.1, true, 0.3, 1)}};
  data.inputs = {"F"};
  data.trajectories[0].inputs(6, 0) = std::nan("");
  try {
    fit_driven(data, true);
    FAIL();
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("input F"), what.npos) << what;
    EXPECT_NE(what.find("row 7 (t = 0.6)"), what.npos) << what;
    EXPECT_NE(what.find("missing=drop"), what.npos) << what;
  }
}

TEST(TrajectoryTest, TooFewValuesAreRefused) {
  const Dataset data{{"x"}, {{"", {0, 1, 2}, Matrix::Ones(3, 1)}}};
  EXPECT_THROW(fit_by_trajectory(data), Error);
  TrajectoryOptions options;
  options.noise = Vector::Constant(1, -1.0);
  EXPECT_THROW(fit_by_trajectory(orbit("VanDerPol", Eigen::Vector2d(1, 1), 2, 0.05), 2, options),
               Error);
}

// Short, clean transients have no memory in their rows, and are no noise.
TEST(TrajectoryTest, ShortTransientsAreNoNoise) {
  const auto learns = [](int rows, double step, const std::function<Vector(double)>& u) {
    Dataset data{{}, {{"", {}, Matrix(rows, u(0).size())}}};
    for (Eigen::Index i = 0; i < u(0).size(); ++i)
      data.variables.push_back("x" + std::to_string(i));
    for (int k = 0; k < rows; ++k) {
      data.trajectories[0].times.push_back(k * step);
      data.trajectories[0].states.row(k) = u(k * step).transpose();
    }
    return fit_trajectory(data, {}, ignore_progress).usable;
  };
  const auto one = [](double x) { return Vector(Vector::Constant(1, x)); };
  const auto two = [](double x, double y) { return Vector(Eigen::Vector2d(x, y)); };
  EXPECT_TRUE(learns(20, 1, [&](double t) { return one(std::exp(-t)); }));
  EXPECT_TRUE(learns(8, 0.25, [&](double t) { return one(std::exp(-t)); }));
  EXPECT_TRUE(learns(8, 1, [&](double t) { return one(1 / (1 + std::exp(3 - t))); }));
  EXPECT_TRUE(learns(12, M_PI / 2, [&](double t) { return two(std::cos(t), std::sin(t)); }));
  EXPECT_TRUE(learns(30, 1.5, [&](double t) {
    return two(std::exp(-t), 2 * (std::exp(-0.5 * t) - std::exp(-t)));
  }));
}

TEST(TrajectoryTest, DataOfALooseSolverGiveTheEquationsAndNoMore) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // RK45 is SciPy's, so these are what solve_ivp makes.
  const System lorenz = find_system("Lorenz");
  const std::vector<double> times = regular_times(0, 10, 0.01);
  for (const auto& [rtol, atol] : {std::pair{1e-3, 1e-6}, {1e-5, 1e-6}, {1e-9, 1e-9}}) {
    SolverOptions loose;
    loose.rtol = rtol;
    loose.atol = atol;
    const Dataset data{
        lorenz.variables,
        {{"", times, solve(lorenz.field, 0, Eigen::Vector3d(-8, 7, 27), times, loose).states}}};
    const Fit found = fit_by_trajectory(data);
    EXPECT_EQ(found.summary.status, "converged") << rtol << ": " << found.summary.reason;
    EXPECT_TRUE(found.summary.trusted);
    EXPECT_GT(found.model.trajectory->precision, 1e-10);
    EXPECT_LT(found.model.trajectory->precision, 10 * rtol);
    const auto equations = best_equations(found.model);
    const double expected[] = {-10, 10, 28, -1, -1, -8.0 / 3, 1};
    int at = 0;
    ASSERT_EQ(equations[0].terms.size() + equations[1].terms.size() + equations[2].terms.size(),
              7u);
    for (const Equation& e : equations)
      for (const Term& t : e.terms) {
        EXPECT_NEAR(t.mean, expected[at], 5 * t.sd);
        ++at;
      }
  }
}

TEST(TrajectoryTest, NoiseThatGrowsWithTheStateIsFoundAndMakesNoMisfit) {
  // Competing species, one of which falls by a factor of fifty: with constant noise this takes ten
  // terms and is called a misfit.
  const VectorField field(2, [](double, const double* u, double* f) {
    f[0] = u[0] * (3 - u[0] - 2 * u[1]);
    f[1] = u[1] * (2 - u[0] - u[1]);
  });
  std::vector<double> times = regular_times(0, 10, 0.02);
  Dataset data{
      {"x", "y"},
      {{"", times, solve_certified(field, 0, Eigen::Vector2d(5, 4.3), times).solution.states}}};
  Stream stream(11, Purpose::observation_noise, 0);
  for (double& u : data.trajectories[0].states.reshaped()) u *= 1 + 0.05 * stream.normal();
  const Fit found = fit_by_trajectory(data);
  EXPECT_EQ(found.summary.status, "converged") << found.summary.reason;
  ASSERT_EQ(found.model.relative_noise.size(), 2);
  const double r =
      found.model.noise[0] * std::sqrt(found.model.relative_noise[0]) / found.model.size[0];
  EXPECT_NEAR(r, 0.05, 5 * 0.05 / std::sqrt(2.0 * 500));
  const auto equations = best_equations(found.model);
  EXPECT_EQ(equations[0].terms.size(), 3u);
  EXPECT_EQ(equations[1].terms.size(), 3u);
  FitOptions constant;
  constant.noise_law = NoiseLaw::constant;
  constant.budget = 0.2;
  EXPECT_EQ(fit(data, constant, ignore_progress).model.relative_noise.size(), 0);
}

TEST(TrajectoryTest, NoiseOfTheLogarithmOfWhatIsPositive) {
  // Lotka and Volterra's law, every value by a factor exp(0.25 ε).
  const VectorField field(2, [](double, const double* u, double* f) {
    f[0] = u[0] * (0.6 - 0.03 * u[1]);
    f[1] = u[1] * (0.025 * u[0] - 0.8);
  });
  std::vector<double> times = regular_times(0, 30, 0.1);
  Dataset data{
      {"h", "l"},
      {{"", times, solve_certified(field, 0, Eigen::Vector2d(30, 6), times).solution.states}}};
  Stream stream(3, Purpose::observation_noise, 0);
  for (double& u : data.trajectories[0].states.reshaped()) u *= std::exp(0.25 * stream.normal());
  FitOptions o;
  o.noise_law = NoiseLaw::logarithmic;
  const Model model = fit(data, o, ignore_progress).model;
  EXPECT_EQ(model.log_noise, (std::vector<bool>{true, true}));
  for (int i = 0; i < 2; ++i)  // an sd of 300 values is known to 1/√600
    EXPECT_NEAR(model.log_noise_sd(i), 0.25, 4 * 0.25 / std::sqrt(600.0));
  const auto equations = best_equations(model);
  ASSERT_EQ(equations[0].terms.size() + equations[1].terms.size(), 4u);
  const double expected[] = {0.6, -0.03, -0.8, 0.025};  // a monomial's number orders them
  int at = 0;
  for (const Equation& e : equations)
    for (const Term& t : e.terms) EXPECT_NEAR(t.mean, expected[at++], 4 * t.sd);
  data.trajectories[0].states(7, 1) = -1;
  try {
    fit(data, o, ignore_progress);
    ADD_FAILURE();
  } catch (const Error& e) {
    const std::string said = e.what();
    for (const char* part : {"column l", "row 8", "-1", "relative"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

/// Liu and Chen's system: y and z jump, and decay to nothing between the jumps. A smoother errs
/// there by more than the noise, which looks like noise that grows with the state, and integrals
/// over windows see little of the motion.
TEST(TrajectoryTest, VariablesThatJumpAndDecayAreLearnt) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const VectorField field(3, [](double, const double* u, double* f) {
    f[0] = 0.4 * u[0] + u[1] * u[2];
    f[1] = -12 * u[1] - u[0] * u[2];
    f[2] = -5 * u[2] - u[0] * u[1];
  });
  std::vector<double> times = regular_times(0, 80, 0.1);
  times.insert(times.begin(), 0.0);
  const Matrix states =
      solve_certified(field, 0, Eigen::Vector3d(-2.9, -1.2, -3), times).solution.states;
  Dataset data{{"x", "y", "z"}, {{"0", times, states}}};
  const Matrix centred = states.rowwise() - states.colwise().mean();
  const Vector sd = (centred.colwise().squaredNorm() / static_cast<double>(states.rows()))
                        .cwiseSqrt()
                        .transpose();
  add_noise(data, 0.01 * sd, 1);
  const Fit found = fit(data, {.threads = 1}, ignore_progress);
  EXPECT_TRUE(found.summary.trusted) << found.summary.reason;
  EXPECT_EQ(found.model.relative_noise.size(), 0);
  Support support = found.model.polynomial()->sets.front().support;
  EXPECT_EQ(support, (Support{{0, 1}, {0, 8}, {1, 2}, {1, 6}, {2, 3}, {2, 5}}));
}

}  // namespace
}  // namespace odecast
