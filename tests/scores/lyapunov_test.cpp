#include "odecast/scores/lyapunov.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/systems/catalogue.hpp"
#include "support/predators.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

TEST(LyapunovTest, OfALinearSystemAreTheRealPartsOfItsEigenvalues) {
  // Eigenvalues -0.1 ± 2i and -0.7.
  const VectorField field(3, [](double, const double* u, double* dudt) {
    dudt[0] = -0.1 * u[0] - 2 * u[1];
    dudt[1] = 2 * u[0] - 0.1 * u[1] + 0.3 * u[2];
    dudt[2] = -0.7 * u[2];
  });
  const auto s = lyapunov_spectrum(field, Vector::Ones(3), {.until = 500, .transient = 0});
  ASSERT_EQ(s.status, SolveStatus::finished);
  EXPECT_NEAR(s.exponents[0], -0.1,
              0.003);  // the rotation's wobble within an interval averages out as 1/time
  EXPECT_NEAR(s.exponents[1], -0.1, 0.003);
  EXPECT_NEAR(s.exponents[2], -0.7, 0.003);
  EXPECT_NEAR(s.divergence, -0.9, 1e-8);
}

TEST(LyapunovTest, JacobiansByDifferencesAndByCoefficientsAgree) {
  const auto basis = std::make_shared<MonomialBasis>(2, 3);
  Matrix c(2, basis->size());
  for (Eigen::Index i = 0; i < c.size(); ++i) c.data()[i] = std::sin(1.0 + static_cast<double>(i));
  const VectorField exact(PolynomialField{basis, c});
  const VectorField opaque(2, [&](double t, const double* u, double* dudt) { exact(t, u, dudt); });
  const Vector u = (Vector(2) << 0.7, -1.3).finished();
  EXPECT_LT((jacobian(exact, u) - jacobian(opaque, u)).cwiseAbs().maxCoeff(), 1e-10);
}

TEST(LyapunovTest, DimensionOfKaplanAndYorke) {
  EXPECT_NEAR(kaplan_yorke(Eigen::Vector3d(0.906, 0, -14.572)), 2 + 0.906 / 14.572,
              1e-12);  // Lorenz
  EXPECT_EQ(kaplan_yorke(Eigen::Vector2d(-0.1, -2)), 0);
  EXPECT_EQ(kaplan_yorke(Eigen::Vector2d(0.3, -0.3)), 2);                           // keeps volume
  EXPECT_NEAR(kaplan_yorke(Eigen::Vector2d(0.42, -1.62)), 1 + 0.42 / 1.62, 1e-12);  // Henon
}

// λ of each draw N(1, 0.3²), its estimate off by N(0, 0.4²): 0.5 in all. Relative standard errors
// of sds from 4000: 1 / √8000, of the difference of variances √2 0.25 / √4000 over 2 × 0.09.
TEST(LyapunovTest, ScatterOfDrawsIsThePosteriorsAndTheFiniteTimes) {
  Stream stream(1, Purpose::evaluation, 0);
  std::vector<LyapunovSpectrum> spectra(4001);
  for (LyapunovSpectrum& s : spectra) {
    s.exponents = Vector::Constant(1, 1 + 0.3 * stream.normal() + 0.4 * stream.normal());
    s.standard_error = Vector::Constant(1, 0.4);
  }
  spectra[7].status = SolveStatus::left_bound;
  const SpectraOfDraws all = spectra_of_draws(spectra);
  EXPECT_EQ(all.bounded, 4000);
  EXPECT_NEAR(all.mean[0], 1, 5 * 0.5 / std::sqrt(4000.0));
  EXPECT_NEAR(all.sd[0], 0.5, 5 * 0.5 / std::sqrt(8000.0));
  EXPECT_NEAR(all.standard_error[0], 0.4, 1e-12);
  EXPECT_NEAR(all.posterior_sd[0], 0.3, 5 * 0.3 * std::sqrt(2.0) * 0.25 / std::sqrt(4000.0) / 0.18);
  // Nothing but the finite time: no posterior.
  for (LyapunovSpectrum& s : spectra) s.standard_error[0] = 0.6;
  EXPECT_EQ(spectra_of_draws(spectra).posterior_sd[0], 0);
  EXPECT_EQ(spectra_of_draws({}).bounded, 0);
}

TEST(LyapunovTest, CatalogueValuesAndLiouville) {
  ODECAST_NOT_UNDER_SANITIZERS();
  for (const char* name : {"SprottB", "Lorenz", "Rossler"}) {
    const System system = find_system(name);
    const auto s = lyapunov_spectrum(system.field, system.start, {.until = 3000});
    ASSERT_EQ(s.status, SolveStatus::finished) << name;
    EXPECT_NEAR(s.exponents.sum(), s.divergence, 1e-5) << name;
    EXPECT_NEAR(s.exponents[0], *system.lyapunov, 4 * s.standard_error[0] + 0.0005) << name;
    // The flow's own direction neither grows nor shrinks.
    EXPECT_NEAR(s.exponents[1], 0, 4 * s.standard_error[1] + 0.002) << name;
  }
}

TEST(LyapunovTest, ABlowUpIsAStatus) {
  const VectorField field(1, [](double, const double* u, double* dudt) { dudt[0] = u[0] * u[0]; });
  EXPECT_NE(lyapunov_spectrum(field, Vector::Ones(1), {}).status, SolveStatus::finished);
}

TEST(LyapunovTest, TimeScaleOfAnOscillator) {
  // x'' = -9 x: a radian takes a third. 1000 steps are 24 periods; a part of one is left over.
  const VectorField field(2, [](double, const double* u, double* f) {
    f[0] = 3 * u[1];
    f[1] = -3 * u[0];
  });
  EXPECT_NEAR(time_scale(field, Eigen::Vector2d(1, 0), 0.05), 1.0 / 3, 0.01 / 3);
  EXPECT_EQ(time_scale(field, Eigen::Vector2d(0, 0), 0.05), 0.05);  // at rest
}

TEST(LyapunovTest, AMapThatForgetsHasNoExponents) {
  const VectorField constant(1, [](double, const double*, double* next) { next[0] = 0.5; });
  const LyapunovSpectrum s = lyapunov_spectrum(
      constant, Vector::Ones(1), {.until = 100, .transient = 10, .map = true}, ignore_progress);
  EXPECT_NE(s.status, SolveStatus::finished);
}

TEST(LyapunovTest, AnOrbitThatNearlyDiesOutAndReturnsIsFollowed) {
  const Model model = predator_model();
  const LyapunovSpectrum s = lyapunov_spectrum(make_posterior(model)->point_field(),
                                               model.last_state, {.until = 1950, .bound = 1e3});
  ASSERT_EQ(s.status, SolveStatus::finished);
  // A closed orbit: ln x and ln y do not drift, so that the mean of div f = x - y is 0.
  EXPECT_NEAR(s.divergence, 0, 0.05);
  EXPECT_NEAR(s.exponents.sum(), s.divergence, 1e-7);
  SolverOptions coarse;
  coarse.atol = 1e-8;
  EXPECT_LT(resolving(make_posterior(model)->point_field(), 0, model.last_state, 200, coarse).atol,
            1e-13);
  // What passes through 0, or stays near it, asks for nothing.
  const VectorField turn(2, [](double, const double* u, double* dudt) {
    dudt[0] = u[1];
    dudt[1] = -u[0];
  });
  EXPECT_EQ(resolving(turn, 0, Eigen::Vector2d(1, 0), 200, coarse).atol, 1e-8);
  const VectorField decay(1, [](double, const double* u, double* dudt) { dudt[0] = -u[0]; });
  EXPECT_EQ(resolving(decay, 0, Vector::Ones(1), 200, coarse).atol, 1e-8);
  EXPECT_LT(s.exponents[0], 0.05);
}

}  // namespace
}  // namespace odecast
