#include "odecast/regression/weak.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "support/series.hpp"

namespace odecast {
namespace {

/// x' = y, y' = -x: the true coefficients in the basis 1, x, y, ….
Dataset oscillator(const std::vector<double>& times) {
  return series(
      times, [](double t) { return std::sin(t); }, [](double t) { return std::cos(t); });
}

std::vector<double> jittered(int rows, double step) {
  Stream stream(1, Purpose::initial_state, 0);
  std::vector<double> times;
  double t = 0;
  for (int i = 0; i < rows; ++i) times.push_back(t += step * (0.5 + stream.uniform()));
  return times;
}

/// The largest |increment - C integral|, over the size of the increments.
double defect(const Dataset& d) {
  const MonomialBasis basis(2, 2);
  const std::vector<Segment> parts = segments(d, 0);
  const WeakRows rows = weak_rows(parts, basis, estimate_noise(parts, 2));
  EXPECT_GE(rows.rows(), 5 * basis.size());
  Matrix expected(rows.rows(), 2);
  expected << rows.integrals.col(2), -rows.integrals.col(1);
  return (rows.increments - expected).cwiseAbs().maxCoeff() / rows.increments.cwiseAbs().maxCoeff();
}

TEST(WeakTest, CleanDataSatisfyTheIntegralForm) {
  EXPECT_LT(defect(oscillator(evenly(3000, 0.02))), 1e-12)
      << "the trapezoidal rule is spectrally accurate";
  EXPECT_LT(defect(oscillator(jittered(3000, 0.02))), 1e-9);
  // An error of order 8 for uneven times.
  const double ratio =
      defect(oscillator(jittered(600, 0.2))) / defect(oscillator(jittered(1200, 0.1)));
  EXPECT_GT(std::log2(ratio), 6);
}

TEST(WeakTest, RulesIntegratePolynomialsAgainstTheTestFunction) {
  // ∫ (1 - s²)^8 ds = 2 · 8! 2^8 / (17!!): with u = t, -∫ ψ' u = ∫ ψ.
  const Dataset d = series(jittered(400, 0.01), [](double t) { return t; });
  const std::vector<Segment> parts = segments(d, 0);
  const MonomialBasis basis(1, 1);
  const WeakRows rows = weak_rows(parts, basis, Vector::Constant(1, 1e-6));
  const double radius = (d.trajectories[0].times.back() - d.trajectories[0].times.front()) / 4;
  ASSERT_GT(rows.radius, radius) << "a short segment has a shorter one";
  double exact = 2;
  for (int k = 1; k <= 8; ++k) exact *= 2.0 * k / (2 * k + 1);
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    EXPECT_NEAR(rows.integrals(k, 0), radius * exact, 1e-10);
    EXPECT_NEAR(rows.increments(k, 0), radius * exact, 1e-10);
  }
}

TEST(WeakTest, DebiasedMonomialsHaveTheRightMean) {
  // E over Gauss–Hermite nodes, exact for polynomials of degree 9: nodes and weights of He_5.
  const double a = std::sqrt(5 - std::sqrt(10.0)), b = std::sqrt(5 + std::sqrt(10.0));
  const double node[] = {-b, -a, 0, a, b};
  const double wa = (7 + 2 * std::sqrt(10.0)) / 60, wb = (7 - 2 * std::sqrt(10.0)) / 60;
  const double weight[] = {wb, wa, 8.0 / 15, wa, wb};
  const MonomialBasis basis(2, 4);
  const Vector noise = Eigen::Vector2d(0.7, 0.3);
  DebiasedTerms debiased(basis, noise);
  const double u[] = {1.3, -0.8};
  Vector mean = Vector::Zero(basis.size()), truth(basis.size()), phi(basis.size());
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) {
      const double y[] = {u[0] + noise[0] * node[i], u[1] + noise[1] * node[j]};
      debiased(y, phi.data(), nullptr);
      mean += weight[i] * weight[j] * phi;
    }
  basis.evaluate(u, truth.data());
  EXPECT_LT((mean - truth).norm(), 1e-13);
  // Slopes, by differences.
  Matrix slopes(basis.size(), 2);
  debiased(u, phi.data(), &slopes);
  for (int j = 0; j < 2; ++j) {
    double up[] = {u[0], u[1]}, down[] = {u[0], u[1]};
    up[j] += 1e-5;
    down[j] -= 1e-5;
    Vector high(basis.size()), low(basis.size());
    debiased(up, high.data(), nullptr);
    debiased(down, low.data(), nullptr);
    EXPECT_LT(((high - low) / 2e-5 - slopes.col(j)).norm(), 1e-8);
  }
}

TEST(WeakTest, DebiasedFunctionsHaveTheRightMeanToFourthOrder) {
  // E sin(u + ε) = sin(u) exp(-σ²/2) and E exp(u + ε) = exp(u + σ²/2) for ε ~ N(0, σ²), so that
  // what is left of sin(a) e^b less half of σ_a² and σ_b² times its second slopes is
  //   sin(u_a) exp(u_b) exp((σ_b² - σ_a²)/2) (1 + (σ_a² - σ_b²)/2).
  const MonomialBasis basis(2, 1);
  Tape tape({"a", "b"});
  const int node = parse_expression("sin(a)*exp(b)", tape);
  const FunctionTerms functions(tape, {{node, 1}}, {}, Vector::Zero(2), Vector::Ones(2), 2);
  const LinearTerms terms(basis, &functions, {1});
  const double a = 0.7, b = -0.4, sa = 0.3, sb = 0.2;
  DebiasedTerms debiased(terms, Eigen::Vector2d(sa, sb));
  // The mean over ε by the trapezoidal rule in eight standard deviations, exact to round-off.
  Vector phi(terms.size());
  double mean = 0, weights = 0;
  for (double x = -8; x <= 8; x += 0.25)
    for (double y = -8; y <= 8; y += 0.25) {
      const double at[] = {a + sa * x, b + sb * y}, weight = std::exp(-0.5 * (x * x + y * y));
      debiased(at, phi.data(), nullptr);
      mean += weight * phi[basis.size()];
      weights += weight;
    }
  const double d = 0.5 * (sb * sb - sa * sa);
  EXPECT_NEAR(mean / weights, std::sin(a) * std::exp(b) * std::exp(d) * (1 - d), 1e-12);
  Matrix slopes(terms.size(), 2);
  const double u[] = {a, b};
  debiased(u, phi.data(), &slopes);
  EXPECT_NEAR(slopes(basis.size(), 0), std::cos(a) * std::exp(b) * (1 - d), 1e-12);
  EXPECT_NEAR(slopes(basis.size(), 1), std::sin(a) * std::exp(b) * (1 - d), 1e-12);
  EXPECT_EQ(slopes(1, 0), 1);
}

TEST(WeakTest, TimeScaleOfASineIsOneHoweverFineAndNoisy) {
  // (2 - 2 cos T)/(2 · 1/2 · 2) = (T/τ)² to first order with τ = 1 … , read at T with change 1/4.
  Stream stream(1, Purpose::observation_noise, 0);
  for (const double step : {0.1, 0.001}) {
    Dataset d =
        series(evenly(static_cast<int>(40 / step), step), [](double t) { return std::sin(t); });
    for (Eigen::Index i = 0; i < d.trajectories[0].states.rows(); ++i)
      d.trajectories[0].states(i, 0) += 0.1 * stream.normal();
    EXPECT_NEAR(time_scale(segments(d, 0), Vector::Constant(1, 0.1)), 1, 0.1) << step;
  }
}

TEST(WeakTest, TestFunctionsStayWithinSegments) {
  std::vector<double> times;
  for (int i = 0; i < 400; ++i) times.push_back(i < 200 ? 0.1 * i : 1000 + 0.1 * i);
  Dataset d = oscillator(times);
  d.trajectories[0].states.bottomRows(200).array() += 1e6;  // another level beyond the gap
  const std::vector<Segment> parts = segments(d, 0);
  const WeakRows rows = weak_rows(parts, MonomialBasis(2, 1), Vector::Constant(2, 1e-10));
  EXPECT_GE(rows.rows(), 15);
  EXPECT_LT(rows.increments.cwiseAbs().maxCoeff(), 10) << "a row across the gap would be near 1e6";
  for (const auto& f : rows.functionals) {
    EXPECT_GE(f.first, 0);
    EXPECT_LE(f.last(), parts[f.segment].rows);
  }
}

TEST(WeakTest, ShortSegmentsHaveNoRows) {
  const Dataset d = oscillator(evenly(kWeakRows - 1, 0.1));
  EXPECT_EQ(weak_rows(segments(d, 0), MonomialBasis(2, 1), Vector::Constant(2, 1e-10)).rows(), 0);
}

}  // namespace
}  // namespace odecast
