#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "odecast/solver/solve.hpp"
#include "odecast/solver/tableau.hpp"

namespace odecast {
namespace {

/// y' = sin y has the solution y = 2 acot(e^-t cot(y0/2)).
const VectorField kField(1, [](double, const double* y, double* d) { d[0] = std::sin(y[0]); });
double exact(double t) { return 2 * std::atan(std::exp(t) * std::tan(0.5)); }

/// Slope of log error against log step, by least squares.
double slope(const std::vector<double>& steps, const std::function<double(double)>& error) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  const auto n = static_cast<double>(steps.size());
  for (const double h : steps) {
    const double x = std::log(h), y = std::log(error(h));
    sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/// Steps of h: none is rejected with such tolerances.
Solution steps_of(const VectorField& field, double h, const std::vector<double>& times) {
  SolverOptions o;
  o.rtol = 0.99;
  o.atol = 1e6;
  o.first_step = o.max_step = h;
  return solve(field, 0, Vector::Ones(1), times, o);
}

TEST(OrderTest, Rk45StepsHaveOrderFive) {
  // y' = y cos t has y = exp(sin t), and a right-hand side that depends on t. The worst over
  // several ends, because the error changes sign along the way.
  const VectorField field(1,
                          [](double t, const double* y, double* d) { d[0] = y[0] * std::cos(t); });
  const double order = slope({0.1, 0.05, 0.025, 0.0125}, [&](double h) {
    double worst = 0;
    for (double end = 1; end <= 10; ++end)
      worst = std::max(worst,
                       std::abs(steps_of(field, h, {end}).end_state[0] - std::exp(std::sin(end))));
    return worst;
  });
  EXPECT_NEAR(order, 5, 0.2);
}

TEST(OrderTest, DenseOutputHasOrderFour) {
  // Inside the last step; the local error h^5 is what a global error of order 4 is made of.
  const double order = slope({0.4, 0.2, 0.1, 0.05}, [](double h) {
    double worst = 0;
    for (double x = 0.1; x < 1; x += 0.1)
      worst =
          std::max(worst, std::abs(steps_of(kField, h, {x * h, h}).states(0, 0) - exact(x * h)));
    return worst;
  });
  EXPECT_NEAR(order - 1, 4, 0.2);
}

TEST(OrderTest, ErrorEstimateHasOrderFour) {
  // The estimate is the difference to the embedded method: h Σ e_s K_s, of size h^5 in one step.
  const double order = slope({0.2, 0.1, 0.05, 0.025}, [](double h) {
    double K[7], y = 1;
    for (int s = 0; s < 7; ++s) {
      double sum = 0;
      for (int j = 0; j < s; ++j)
        sum += (s == 6 ? kDormandPrince.b[j] : kDormandPrince.a[s][j]) * K[j];
      K[s] = std::sin(y + h * sum);
    }
    double error = 0;
    for (int s = 0; s < 7; ++s) error += kDormandPrince.e[s] * K[s];
    return std::abs(h * error);
  });
  EXPECT_NEAR(order - 1, 4, 0.2);
}

TEST(OrderTest, FixedStepMethodsHaveTheirOrder) {
  for (const auto& [method, expected] :
       {std::pair{SolverMethod::rk4, 4.0}, {SolverMethod::euler, 1.0}}) {
    const double order = slope({0.1, 0.05, 0.025, 0.0125}, [method = method](double h) {
      SolverOptions o;
      o.method = method;
      o.fixed_step = h;
      return std::abs(solve(kField, 0, Vector::Ones(1), std::vector{2.0}, o).end_state[0] -
                      exact(2));
    });
    EXPECT_NEAR(order, expected, 0.1);
  }
}

TEST(OrderTest, OutputsOfFixedStepMethodsNeedNotBeMultiplesOfTheStep) {
  SolverOptions o;
  o.method = SolverMethod::rk4;
  o.fixed_step = 0.01;
  const std::vector<double> times = {0.005, 0.333, 1.0, 1.0001};
  const Solution s = solve(kField, 0, Vector::Ones(1), times, o);
  for (std::size_t k = 0; k < times.size(); ++k)
    EXPECT_NEAR(s.states(static_cast<Eigen::Index>(k), 0), exact(times[k]), 1e-10);
}

TEST(OrderTest, LandingOnOutputsIsMoreAccurateThanInterpolating) {
  SolverOptions o;
  o.rtol = o.atol = 1e-10;
  std::vector<double> times;
  for (int i = 1; i <= 100; ++i) times.push_back(0.03 * i);
  const auto worst = [&] {
    const Solution s = solve(kField, 0, Vector::Ones(1), times, o);
    double error = 0;
    for (std::size_t k = 0; k < times.size(); ++k)
      error =
          std::max(error, std::abs(s.states(static_cast<Eigen::Index>(k), 0) - exact(times[k])));
    return error;
  };
  const double interpolated = worst();
  o.land_on_outputs = true;
  EXPECT_LT(worst(), interpolated);
}

}  // namespace
}  // namespace odecast
