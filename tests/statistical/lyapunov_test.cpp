// Lyapunov exponents against what is known of them, over long orbits.

#include "odecast/scores/lyapunov.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

/// What the solver's own error may add: a relative 1e-8 per step, about ten steps per unit of time.
constexpr double kSolverError = 1e-7;

TEST(LyapunovStatisticsTest, EveryValueOfTheCatalogueWithinFourStandardErrors) {
  int compared = 0;
  for (const std::string& name : system_names()) {
    SCOPED_TRACE(name);
    const System system = find_system(name);
    if (system.drive) continue;  // exponents of a driven system depend on what drives it
    LyapunovOptions o;
    o.until = name == "Lorenz96" ? 150 : 10'000;
    if (name == "Lorenz96") o.transient = 20;  // forty displacements of forty variables
    o.map = system.map;
    const LyapunovSpectrum s = lyapunov_spectrum(system.field, system.start, o);
    ASSERT_EQ(s.status, SolveStatus::finished);
    // Liouville; the sum of exponents costs no statistics.
    EXPECT_NEAR(s.exponents.sum(), s.divergence, 1e-5);
    if (!system.lyapunov) continue;
    ++compared;
    EXPECT_NEAR(s.exponents[0], *system.lyapunov, 4 * s.standard_error[0] + kSolverError);
    printf("%-18s %+.5f ± %.5f, catalogue %+.5f (%+.1f), sum - divergence %.0e\n", name.c_str(),
           s.exponents[0], s.standard_error[0], *system.lyapunov,
           (s.exponents[0] - *system.lyapunov) / (s.standard_error[0] + kSolverError),
           s.exponents.sum() - s.divergence);
  }
  EXPECT_EQ(compared, 29);
}

// The standard error of one orbit is the scatter over many. That of 50 orbits is itself known to 10
// %: five times that.
TEST(LyapunovStatisticsTest, StandardErrorIsTheScatterOverStarts) {
  constexpr int starts = 50;
  for (const char* name : {"SprottB", "SprottO", "Henon"}) {
    const System system = find_system(name);
    SolverOptions solver;
    if (system.map) {
      solver.method = SolverMethod::iterate;
      solver.fixed_step = 1;
    }
    Vector u = system.start;
    std::vector<double> values;
    double mean = 0, square = 0, claimed = 0;
    for (int k = 0; k < starts; ++k) {
      u = solve(system.field, 0, u, std::vector{300.0}, solver).end_state;
      const auto s =
          lyapunov_spectrum(system.field, u, {.until = 1000, .transient = 50, .map = system.map});
      ASSERT_EQ(s.status, SolveStatus::finished);
      values.push_back(s.exponents[0]);
      mean += s.exponents[0] / starts;
      claimed += s.standard_error[0] * s.standard_error[0] / starts;
    }
    for (const double v : values) square += (v - mean) * (v - mean) / (starts - 1);
    EXPECT_NEAR(std::sqrt(square / claimed), 1, 0.5) << name;
    // And the mean over orbits has no bias.
    EXPECT_NEAR(mean, *system.lyapunov, 5 * std::sqrt(square / starts)) << name;
    printf("%s: scatter %.5f, claimed %.5f\n", name, std::sqrt(square), std::sqrt(claimed));
  }
}

// A limit cycle has no scatter but for the phase at both ends, whatever the batches' length is in
// cycles.
TEST(LyapunovStatisticsTest, OfALimitCycleIsZeroWithinItsError) {
  const System system = find_system("VanDerPol");
  for (const double until : {1000.0, 1333.0, 2000.0, 2665.0}) {
    const auto s = lyapunov_spectrum(system.field, system.start, {.until = until});
    EXPECT_NEAR(s.exponents[0], 0, 4 * s.standard_error[0]) << until;
    EXPECT_LT(s.standard_error[0], 3 / until) << until;
  }
}

// Lorenz with 5 % noise: the largest exponent of what was learnt is within 2 % of the truth's. One
// orbit of 5000 time units knows it to 0.25 %.
TEST(LyapunovStatisticsTest, OfALearntLorenz) {
  const System system = find_system("Lorenz");
  const std::vector<double> times = regular_times(0, 10, 0.01);
  const Dataset clean{
      system.variables,
      {{"", times,
        solve_certified(system.field, 0, Eigen::Vector3d(-8, 7, 27), times).solution.states}}};
  const Vector noise = noise_level(clean, 0.05, NoiseOf::rms);
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    Dataset data = clean;
    add_noise(data, noise, seed);
    const Model model = fit(data, {}).model;
    const double unit = model.scaling.time;
    LyapunovOptions follow;
    follow.until = 5000 / unit;
    follow.transient = 100 / unit;
    follow.interval = 0.5 / unit;
    const auto s = lyapunov_spectrum(make_posterior(model)->mean_field(),
                                     model.scaling.to_model(model.last_state), follow);
    ASSERT_EQ(s.status, SolveStatus::finished);
    EXPECT_NEAR(s.exponents[0] / unit, 0.906, 0.02 * 0.906) << "seed " << seed;
    printf("seed %d: %.4f ± %.4f\n", static_cast<int>(seed), s.exponents[0] / unit,
           s.standard_error[0] / unit);
  }
}

}  // namespace
}  // namespace odecast
