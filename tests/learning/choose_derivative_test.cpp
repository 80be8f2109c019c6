#include "odecast/learning/choose_derivative.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

/// u = exp(-t)
Dataset decay(int rows, double step) {
  Trajectory t{"", {}, Matrix(rows, 1)};
  for (int k = 0; k < rows; ++k) {
    t.times.push_back(step * k);
    t.states(k, 0) = std::exp(-step * k);
  }
  return {{"u"}, {t}};
}

/// A circle.
Dataset circle(int rows, double step) {
  Trajectory t{"", {}, Matrix(rows, 2)};
  for (int k = 0; k < rows; ++k) {
    t.times.push_back(step * k);
    t.states.row(k) << std::cos(step * k), std::sin(step * k);
  }
  return {{"x", "y"}, {t}};
}

DerivativeChoice choose(const Dataset& data, int degree = 1, bool pointwise_only = false) {
  return choose_derivative(data, data.dimension(), {}, degree, pointwise_only, ignore_progress);
}

double error_of(const DerivativeChoice& choice, DerivativeMethod method) {
  for (const auto& t : choice.trials)
    if (t.method == method) return t.error;
  return NAN;
}

/// A forward difference of exp(-t) is exactly λ u with λ = (exp(-h) - 1) / h: the error of the
/// prediction is known, and so is that of RK4, far below it.
TEST(ChooseDerivativeTest, TheErrorIsThatOfThePrediction) {
  constexpr double h = 0.05;
  const Dataset data = decay(200, h);
  const DerivativeChoice choice = choose(data);
  const double rate = (std::exp(-h) - 1) / h, ahead = choice.ahead;
  double square = 0;
  int starts = 0;
  for (int k = 160; k * h + ahead <= 199 * h * (1 + 1e-12); ++k, ++starts)
    square += std::pow(std::exp(-k * h) * (std::exp(rate * ahead) - std::exp(-ahead)), 2);
  ASSERT_GT(starts, 5);
  const double expected = std::sqrt(square / starts);
  EXPECT_NEAR(error_of(choice, DerivativeMethod::forward), expected, 1e-6 * expected);
}

TEST(ChooseDerivativeTest, OnCleanDataErrorsFallWithTheOrder) {
  const DerivativeChoice choice = choose(circle(400, 0.1));
  using enum DerivativeMethod;
  EXPECT_EQ(choice.trials.size(), 8u);
  double before = error_of(choice, forward);
  for (const DerivativeMethod m : {central2, central4, central6}) {
    EXPECT_LT(error_of(choice, m), before / 5) << derivative_name(m);
    before = error_of(choice, m);
  }
  // Leading error of a central difference of sin: h²/6, so that the circle turns by that share
  // less.
  EXPECT_NEAR(error_of(choice, central2) * std::sqrt(2.0), 0.01 / 6 * choice.ahead,
              0.02 * 0.01 / 6 * choice.ahead);
  double least = INFINITY;
  for (const auto& t : choice.trials) least = std::min(least, t.error);
  EXPECT_LE(error_of(choice, choice.method), 1.01 * least);
  EXPECT_NE(choice.reason.find(derivative_name(choice.method)), std::string::npos);
}

/// The noise of start and target is in every error; what is within a hundredth of the least is as
/// good, and the first of those is taken. Noise in a forward difference pulls towards rest.
TEST(ChooseDerivativeTest, OnNoisyDataTheFirstOfTheBestIsChosen) {
  Dataset data = circle(1000, 0.01);
  add_noise(data, Vector::Constant(2, 0.05), 1);
  using enum DerivativeMethod;
  const DerivativeChoice choice = choose(data);
  double least = INFINITY;
  for (const auto& t : choice.trials) least = std::min(least, t.error);
  EXPECT_NEAR(least, 0.05 * std::sqrt(2.0), 0.2 * 0.05 * std::sqrt(2.0));
  EXPECT_GT(error_of(choice, forward), 2 * least);
  for (const auto& t : choice.trials) {
    if (t.method == choice.method) break;
    EXPECT_GT(t.error, 1.01 * least) << derivative_name(t.method);
  }
  EXPECT_LE(error_of(choice, choice.method), 1.01 * least);
  const DerivativeChoice pointwise = choose(data, 1, true);
  EXPECT_EQ(pointwise.trials.size(), 7u);
  EXPECT_TRUE(std::isnan(error_of(pointwise, weak)));
  EXPECT_NE(pointwise.method, weak);
}

/// What drives is given at both ends: u' = w with w = t is (t² / 2)'.
TEST(ChooseDerivativeTest, InputsAreLinearBetweenStartAndTarget) {
  Trajectory t{"", {}, Matrix(100, 2)};
  for (int k = 0; k < 100; ++k) {
    const double time = 0.1 * k;
    t.times.push_back(time);
    t.states.row(k) << time * time / 2, time;
  }
  const DerivativeChoice choice =
      choose_derivative({{"u", "w"}, {t}}, 1, {}, 1, false, ignore_progress);
  EXPECT_NEAR(choice.ahead, 0.1, 1e-12);
  // Forward differences are w + h/2: off by h²/2 after a row; central ones are exact.
  EXPECT_NEAR(error_of(choice, DerivativeMethod::forward), 0.1 * 0.1 / 2, 1e-9);
  EXPECT_LT(error_of(choice, DerivativeMethod::central2), 1e-9);
  EXPECT_NE(choice.method, DerivativeMethod::forward);
}

TEST(ChooseDerivativeTest, TooFewRowsAreRefused) {
  EXPECT_THROW(choose(decay(9, 0.1)), Error);
  try {
    choose(decay(9, 0.1));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(std::string(e.what()).find("no trajectory of 10 rows"), std::string::npos);
  }
  // Eleven rows leave nine to learn from: some methods fail and count as such.
  const DerivativeChoice few = choose(decay(11, 0.1));
  EXPECT_TRUE(std::isfinite(error_of(few, few.method)));
}

}  // namespace
}  // namespace odecast
