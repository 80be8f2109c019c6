// Terms beside monomials, from the data to the equations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "odecast/core/error.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/solver/solve.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

using Slope = std::function<void(const double* u, double* f)>;

Dataset runs_of(const Slope& slope, std::vector<std::string> variables,
                const std::vector<Vector>& starts, double until, double step, double sd,
                std::uint64_t seed) {
  const VectorField field(static_cast<int>(variables.size()),
                          [slope](double, const double* u, double* f) { slope(u, f); });
  std::vector<double> times = regular_times(0, until, step);
  times.insert(times.begin(), 0.0);
  Dataset data{std::move(variables), {}};
  for (const Vector& start : starts)
    data.trajectories.push_back({std::to_string(data.trajectories.size()), times,
                                 solve_certified(field, 0, start, times).solution.states});
  add_noise(data, Vector::Constant(data.dimension(), sd), seed);
  return data;
}

void pendulum(const double* u, double* f) {
  f[0] = u[1];
  f[1] = -2 * std::sin(u[0]) - 0.2 * u[1];
}

Dataset swinging(double sd, std::uint64_t seed) {
  return runs_of(pendulum, {"x", "v"}, {Eigen::Vector2d(2.6, 0)}, 12, 0.1, sd, seed);
}

Dataset saturating(double sd, std::uint64_t seed) {
  std::vector<Vector> starts;
  for (const double x : {0.2, 0.5, 1.0, 2.0, 3.0}) starts.push_back(Vector::Constant(1, x));
  return runs_of([](const double* u, double* f) { f[0] = 0.4 - 1.2 * u[0] / (0.3 + u[0]); }, {"x"},
                 starts, 3, 0.05, sd, seed);
}

Model learnt(const Dataset& data, FunctionWishes functions, int degree = 3) {
  const FitOptions o{
      .method = TrajectoryMethod{.degree = degree, .functions = std::move(functions)},
      .threads = 1};
  return fit(data, o, ignore_progress).model;
}

/// The terms of the most probable set, equation by equation.
std::vector<std::vector<std::string>> best_terms(const Model& model) {
  std::vector<std::vector<std::string>> found;
  for (const ReadableEquation& e : readable_equations(model, 0, Centre::best)) {
    found.emplace_back();
    for (const Term& t : e.terms) found.back().push_back(term_text(model, t));
    std::sort(found.back().begin(), found.back().end());
  }
  return found;
}
using Terms = std::vector<std::vector<std::string>>;

std::string refusal(const Dataset& data, FunctionWishes functions) {
  try {
    learnt(data, std::move(functions));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(LearntFunctionsTest, ASineAmongWavesAndFractions) {
  const Model model = learnt(swinging(0.1, 1), {.kinds = {"sin", "cos", "hill"}});
  EXPECT_EQ(best_terms(model), (Terms{{"v"}, {"sin(x)", "v"}}));
  const std::vector<ReadableEquation> equations = readable_equations(model, 0, Centre::best);
  for (const Term& t : equations[1].terms)
    if (t.function) {
      EXPECT_NEAR(t.mean, -2, 4 * t.sd);
    }
}

TEST(LearntFunctionsTest, FunctionsWithoutNumbersInside) {
  EXPECT_EQ(best_terms(learnt(swinging(0.05, 3), {.kinds = {"sin"}})),
            (Terms{{"v"}, {"sin(x)", "v"}}));
  EXPECT_EQ(best_terms(learnt(swinging(0.05, 4), {.candidates = {"sin(x)"}})),
            (Terms{{"v"}, {"sin(x)", "v"}}));
}

/// The function whose share is the largest, with its coefficient and sd, in an equation.
Term function_in(const Model& model, std::size_t equation) {
  const auto equations = readable_equations(model, 0, Centre::mean);
  for (const Term& t : equations[equation].terms)
    if (t.function) return t;
  ADD_FAILURE() << "no function in equation " << equation;
  return {};
}

bool has(const std::vector<std::string>& terms, const std::string& name) {
  return std::find(terms.begin(), terms.end(), name) != terms.end();
}

TEST(LearntFunctionsTest, RegressionTakesFunctionsWithoutNumbersInside) {
  for (const DerivativeMethod rows : {DerivativeMethod::weak, DerivativeMethod::spline}) {
    const FitOptions o{
        .method = RegressionMethod{.rows = {.derivative = rows},
                                   .functions = {.kinds = {"auto"}, .candidates = {"sin(2*x)"}}}};
    const Model model = fit(swinging(0.05, 1), o, ignore_progress).model;
    // Rows of derivatives share observations, and take a term more for what that leaves.
    const Terms found = best_terms(model);
    if (rows == DerivativeMethod::weak) {
      EXPECT_EQ(found, (Terms{{"v"}, {"sin(x)", "v"}}));
    }
    EXPECT_TRUE(has(found[0], "v") && has(found[1], "sin(x)") && has(found[1], "v"));
    const Term sine = function_in(model, 1);
    EXPECT_NEAR(sine.mean, -2, rows == DerivativeMethod::weak ? 4 * sine.sd : 0.2);
    EXPECT_EQ(model_to_text(model_from_text(model_to_text(model), "m")), model_to_text(model));
  }
}

TEST(LearntFunctionsTest, RegressionChoosesADegreeBesideFunctions) {
  for (const DerivativeMethod rows : {DerivativeMethod::weak, DerivativeMethod::spline}) {
    const FitOptions o{.method = RegressionMethod{.degree = kAutomaticDegree,
                                                  .rows = {.derivative = rows},
                                                  .functions = {.kinds = {"sin"}}}};
    const Fit found = fit(swinging(0.05, 1), o, ignore_progress);
    EXPECT_EQ(found.model.polynomial()->degree, 1) << static_cast<int>(rows);
    EXPECT_TRUE(has(best_terms(found.model)[1], "sin(x)"));
  }
}

TEST(LearntFunctionsTest, BootstrapTakesFunctionsWithoutNumbersInside) {
  for (const DerivativeMethod rows : {DerivativeMethod::weak, DerivativeMethod::spline}) {
    const FitOptions o{.method = BootstrapMethod{.rows = {.derivative = rows},
                                                 .functions = {.candidates = {"sin(x)"}},
                                                 .replicates = 30}};
    double squares = 0;  // of (estimate - truth) / sd
    constexpr int draws = 40;
    for (std::uint64_t seed = 101; seed <= 100 + draws; ++seed) {
      const Model model = fit(swinging(0.05, seed), o, ignore_progress).model;
      ASSERT_EQ(model.polynomial()->sets.size(), 30U);
      const Term sine = function_in(model, 1);
      squares += std::pow((sine.mean + 2) / sine.sd, 2);
    }
    // 1 where the spread of replicates is the error of the estimate, with a standard error of
    // (2 / 40)^½; rows of derivatives share observations, and their replicates spread more.
    EXPECT_LT(squares / draws, 1 + 5 * std::sqrt(2.0 / draws)) << static_cast<int>(rows);
    EXPECT_GT(squares / draws, 0.1) << static_cast<int>(rows);
  }
}

TEST(LearntFunctionsTest, MapsWithFunctions) {
  // The sine circle map, lifted: x' = x + 0.6 - 0.9 sin(x).
  Dataset data{{"x"}, {{"0", {}, Matrix(200, 1)}}};
  double x = 0.1;
  for (int k = 0; k < 200; ++k) {
    data.trajectories[0].times.push_back(k);
    data.trajectories[0].states(k, 0) = x;
    x = x + 0.6 - 0.9 * std::sin(x);
  }
  const FitOptions o{.method = RegressionMethod{.functions = {.kinds = {"sin", "cos"}}},
                     .kind = ModelKind::map};
  const Model model = fit(data, o, ignore_progress).model;
  const auto equations = readable_equations(model, 0, Centre::mean);
  ASSERT_EQ(equations[0].terms.size(), 3U);
  EXPECT_NEAR(function_in(model, 0).mean, -0.9, 1e-6);
}

TEST(LearntFunctionsTest, RegressionRefusesNumbersInside) {
  const auto refused = [](FunctionWishes wishes) {
    try {
      fit(swinging(0.05, 1), {.method = RegressionMethod{.functions = std::move(wishes)}},
          ignore_progress);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused({.candidates = {"x/(k + x)"}}).find("with a number k to estimate"),
            std::string::npos);
  EXPECT_NE(refused({.kinds = {"hill"}}).find("hill, which has numbers inside"), std::string::npos);
}

TEST(LearntFunctionsTest, AFunctionThatTwoEquationsShare) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // What the substrate loses the product gains; it decays. The same constant in both.
  const auto enzyme = [](const double* u, double* f) {
    const double turnover = 1.5 * u[0] / (0.5 + u[0]);
    f[0] = 0.4 - turnover;
    f[1] = turnover - 0.8 * u[1];
  };
  const std::vector<Vector> starts = {Eigen::Vector2d(3, 0.2), Eigen::Vector2d(1, 2),
                                      Eigen::Vector2d(0.1, 1)};
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Model model = learnt(runs_of(enzyme, {"s", "p"}, starts, 6, 0.05, 0.04, seed),
                               {.kinds = {"hill", "sin", "tanh"}}, 2);
    const Terms terms = best_terms(model);
    ASSERT_EQ(terms[0].size(), 2u) << seed;
    ASSERT_EQ(terms[1].size(), 2u) << seed;
    EXPECT_EQ(terms[0][0], "1");
    EXPECT_EQ(terms[1][0], "p");
    for (const std::vector<std::string>& equation : terms)
      EXPECT_TRUE(equation[1].starts_with("s/(k")) << equation[1];
  }
}

TEST(LearntFunctionsTest, RivalsThatDifferElsewhereAreCounted) {
  // On one swing x v² and x³ are nearly the same, by the conservation of energy.
  const FitOptions o{.method = TrajectoryMethod{.degree = 3}, .threads = 1};
  const Fit swing = fit(runs_of(
                            [](const double* u, double* f) {
                              f[0] = u[1];
                              f[1] = -0.9 * std::sin(u[0]);
                            },
                            {"x", "v"}, {Eigen::Vector2d(1.9, 0)}, 10, 0.02, 0.07, 1),
                        o, ignore_progress);
  ASSERT_TRUE(swing.summary.rivals);
  const Rivals& rivals = *swing.summary.rivals;
  const auto& sets = swing.model.polynomial()->sets;
  EXPECT_GE(rivals.count, 1);
  EXPECT_NE(sets[rivals.next].support, sets[0].support);
  EXPECT_GE(rivals.probability, sets[rivals.next].weight);
  EXPECT_LE(rivals.probability, 1 - sets[0].weight + 1e-12);
  // Equations that the rows tell have none.
  const Fit oscillator = fit(runs_of(
                                 [](const double* u, double* f) {
                                   f[0] = u[1];
                                   f[1] = u[1] - u[0] * u[0] * u[1] - u[0];
                                 },
                                 {"x", "v"}, {Eigen::Vector2d(1, 0)}, 15, 0.1, 0.05, 2),
                             o, ignore_progress);
  EXPECT_FALSE(oscillator.summary.rivals);
}

TEST(LearntFunctionsTest, PolynomialsStayPolynomialsWhereFunctionsAreOffered) {
  // Van der Pol's oscillator.
  const Dataset data = runs_of(
      [](const double* u, double* f) {
        f[0] = u[1];
        f[1] = u[1] - u[0] * u[0] * u[1] - u[0];
      },
      {"x", "v"}, {Eigen::Vector2d(1, 0)}, 15, 0.1, 0.05, 2);
  EXPECT_EQ(best_terms(learnt(data, {.kinds = {"sin", "hill"}})),
            (Terms{{"v"}, {"v", "x", "x^2 v"}}));
}

TEST(LearntFunctionsTest, TheNumberInsideIsEstimatedWithItsError) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // z² over draws of data has mean 1; of 20 its standard error is √(2/20). One set of data in some
  // twenty has a term too many.
  const int draws = 20;
  int right = 0;
  double sum = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const Model model = learnt(saturating(0.02, 100 + static_cast<std::uint64_t>(draw)),
                               {.candidates = {"x/(k + x)"}}, 2);
    if (best_terms(model) != Terms{{"1", "x/(k + x)"}}) continue;
    ++right;
    const auto k = numbers_inside(model, Centre::best);
    ASSERT_EQ(k.size(), 1u);
    EXPECT_EQ(k[0].name, "k");
    sum += std::pow((k[0].mean - 0.3) / k[0].sd, 2);
  }
  EXPECT_GE(right, 17);
  EXPECT_NEAR(sum / right, 1, 3 * std::sqrt(2.0 / right));
}

TEST(LearntFunctionsTest, TheFrequencyOfADriveIsFoundAmongMany) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // The time is the input; frequencies are told apart to 2π/15.
  Dataset data = runs_of(
      [](const double* u, double* f) {
        f[0] = u[1];
        f[1] = -u[0] - 0.3 * u[1] + 0.8 * std::cos(2.7 * u[2]);
        f[2] = 1;
      },
      {"x", "v", "s"}, {Eigen::Vector3d(1, 0, 0)}, 15, 0.1, 0, 1);
  Trajectory& run = data.trajectories[0];
  data.variables = {"x", "v"};
  data.inputs = {"s"};
  run.inputs = run.states.rightCols(1);
  run.states = run.states.leftCols(2).eval();
  add_noise(data, Vector::Constant(2, 0.03), 6);
  const Model model = learnt(data, {.candidates = {"cos(w*s)"}}, 2);
  EXPECT_EQ(best_terms(model), (Terms{{"v"}, {"cos(w*s)", "v", "x"}}));
  const auto w = numbers_inside(model, Centre::best);
  ASSERT_EQ(w.size(), 1u);
  EXPECT_NEAR(w[0].mean, 2.7, 4 * w[0].sd);
  EXPECT_LT(w[0].sd, 0.01);
}

TEST(LearntFunctionsTest, FractionsOfWhatNoiseTakesBelowZero) {
  // Down to 0: a tenth of the observed values are negative.
  const Dataset data =
      runs_of([](const double* u, double* f) { f[0] = -u[0] / (0.5 + u[0]); }, {"x"},
              {Vector::Constant(1, 3.0), Vector::Constant(1, 2.0)}, 7, 0.05, 0.03, 3);
  ASSERT_LT(data.trajectories[0].states.minCoeff(), 0);
  const Terms found = best_terms(learnt(data, {.kinds = {"hill"}}));
  ASSERT_EQ(found[0].size(), 1u);
  EXPECT_EQ(found[0][0], "x/(k1 + x)");
}

TEST(LearntFunctionsTest, SetsBesideTheBestHaveNumbersThatTheDataTell) {
  const Model model = learnt(swinging(0.1, 1), {.kinds = {"sin", "cos", "hill", "tanh", "exp"}});
  const PolynomialPart& part = *model.polynomial();
  for (std::size_t k = 1; k < part.sets.size(); ++k) {
    const CoefficientSet& set = part.sets[k];
    for (auto q = static_cast<long>(set.support.size()); q < set.theta.size(); ++q)
      EXPECT_LT(set.covariance(q, q), 250.0 * 250.0) << k;  // a quarter of the prior's sd, squared
  }
}

TEST(LearntFunctionsTest, ThreadsDoNotChangeTheBits) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const Dataset data = swinging(0.1, 4);
  const auto text = [&](int threads) {
    const FitOptions o{.method = TrajectoryMethod{.functions = {.kinds = {"sin", "hill"}}},
                       .threads = threads};
    return model_to_text(fit(data, o, ignore_progress).model);
  };
  EXPECT_EQ(text(1), text(3));
}

TEST(LearntFunctionsTest, WhatCannotBeOfferedIsRefusedWithThePlace) {
  const Dataset data = swinging(0.05, 5);
  const auto expect = [&](const char* candidate, std::initializer_list<const char*> words) {
    const std::string said = refusal(data, {.candidates = {candidate}});
    for (const char* word : words)
      EXPECT_NE(said.find(word), said.npos) << candidate << ": " << said;
  };
  expect("sin(x", {"character 4", "not closed", "\n  sin(x\n     ^"});
  expect("sinus(x)", {"'sinus'", "nearest is sin"});
  expect("log(x)", {"'log(x)'", "row ", "x = -"});
  expect("k^2 + 1", {"no variable", "expression of x, v"});
  // No data can tell these numbers from others, whatever their values.
  expect("V*x/(K + x^2)", {"tell V from the coefficient"});
  expect("k*x", {"tell k from the coefficient"});
  expect("exp(a*b*x)", {"tell b from"});
  expect("x/(a + b*x)", {"tell b from"});
}

}  // namespace
}  // namespace odecast
