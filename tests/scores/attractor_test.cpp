#include "odecast/scores/attractor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/scores/lyapunov.hpp"
#include "odecast/systems/catalogue.hpp"
#include "support/predators.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

Matrix normals(Eigen::Index rows, Eigen::Index columns, double mean, double sd,
               std::uint64_t seed) {
  Stream stream(seed, Purpose::evaluation, 0);
  Matrix X(rows, columns);
  for (double& x : X.reshaped()) x = mean + sd * stream.normal();
  return X;
}

Matrix sine(Eigen::Index rows, double frequency) {
  Matrix X(rows, 1);
  for (Eigen::Index k = 0; k < rows; ++k)
    X(k, 0) = std::sin(2 * M_PI * frequency * static_cast<double>(k) + 0.3);
  return X;
}

TEST(AttractorTest, EqualSamplesHaveNoDistance) {
  for (const Eigen::Index n : {1, 3, 7}) {
    const Matrix X = normals(500, n, 1, 2, 1);
    EXPECT_NEAR(state_space_divergence(X, X, X, 30), 0, 1e-14);
    EXPECT_EQ(spectrum_distance(X, X), 0);
    // Occupation does not know the order of the rows.
    EXPECT_NEAR(state_space_divergence(X, X.colwise().reverse(), X, 30), 0, 1e-14);
  }
}

// N(0, 1) against N(m, s²) on the same grid: shares of the boxes by the error function. The
// standard error is that of the mean of log(p/q) over P plus that of q's shares, which is of the
// same size; many rows leave boxes that are all filled but for the tails.
TEST(AttractorTest, DivergenceOfNormalsOnAGrid) {
  constexpr Eigen::Index rows = 400'000;
  const double mean = 0.3, sd = 1.2;
  const Matrix P = normals(rows, 1, 0, 1, 2), Q = normals(rows, 1, mean, sd, 3);
  const double low = P.minCoeff() - 0.1,
               high = P.maxCoeff() + 0.1;  // the sample's sd is 1 to 0.1 %
  const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2)); };
  double exact = 0, square = 0, ratio = 0;
  for (int b = 0; b < 30; ++b) {
    const double left = low + (high - low) * b / 30, right = low + (high - low) * (b + 1) / 30;
    const double p = below(right) - below(left),
                 q = below((right - mean) / sd) - below((left - mean) / sd);
    exact += p * std::log(p / q);
    square += p * std::log(p / q) * std::log(p / q);
    ratio += p * p / q;
  }
  const double error = std::sqrt((square - exact * exact + ratio - 1) / rows);
  EXPECT_NEAR(state_space_divergence(P, Q, P, 30), exact, 5 * error + 30.0 / rows)
      << "30 boxes bias it by up to 30 / rows";
  EXPECT_LT(error, 0.02 * exact);
  // With boxes as small as 1/30 of the range that is nearly the divergence of the densities.
  EXPECT_NEAR(exact, std::log(sd) + (1 + mean * mean) / (2 * sd * sd) - 0.5, 0.02 * exact);
}

// Mixtures of unit Gaussians about draws of N(m, 1) are N(m, 2) but for their finite number: KL =
// |m|² / 4. Of 1000 draws the mean of log(p/q) has standard error |m| / √2 / √1000; 4000 centres in
// six dimensions are the rest of the difference.
TEST(AttractorTest, DivergenceOfNormalsByMixtures) {
  const double m = 1;
  const Matrix P = normals(4000, 6, 0, 1, 4);
  const Matrix Q = normals(4000, 6, m, 1, 5);
  const double size = m * std::sqrt(6.0);
  EXPECT_NEAR(state_space_divergence(P, Q, P, 30), size * size / 4,
              5 * size / std::sqrt(2000.0) + 0.05);
}

TEST(AttractorTest, StatesOutsideTheGridAreFarAway) {
  const Matrix P = normals(1000, 2, 0, 1, 6), far = normals(1000, 2, 100, 1, 7),
               near = normals(1000, 2, 0, 1, 8);
  // Nothing of Q in the boxes of P: Σ p log(p / 1e-5 × rows) up to the boxes' own share.
  EXPECT_GT(state_space_divergence(P, far, P, 30), 10);
  EXPECT_LT(state_space_divergence(P, near, P, 30), state_space_divergence(P, far, P, 30) / 2);
}

TEST(AttractorTest, SpectraOfSines) {
  constexpr Eigen::Index rows = 1000;
  // Frequencies of the grid, no smoothing: nothing in common, and nothing else.
  EXPECT_NEAR(spectrum_distance(sine(rows, 0.05), sine(rows, 0.1), 0), 1, 1e-9);
  // Amplitude, mean and phase do not matter.
  Matrix other = (3 * sine(rows, 0.05).array() + 7).matrix().colwise().reverse();
  EXPECT_NEAR(spectrum_distance(sine(rows, 0.05), other, 0), 0, 1e-6);
  // Two Gaussians of sd s whose centres are d apart: 1 - H² = exp(-d² / (8 s²)). Lines 50 and 62,
  // away from both ends.
  const double H = spectrum_distance(sine(rows, 0.25), sine(rows, 0.262), 6);
  EXPECT_NEAR(H, std::sqrt(1 - std::exp(-144.0 / (8 * 36))), 1e-3);
}

// Steps of a transform grow with the largest prime factor of its length.
TEST(AttractorTest, SpectraHaveLengthsWithoutLargePrimes) {
  for (const long rows : {1, 2, 7, 11, 97, 1000, 10'007, 50'021, 99'991}) {
    const long used = smooth_length(rows);
    EXPECT_LE(used, rows);
    EXPECT_GE(static_cast<double>(used), (rows > 1000 ? 0.97 : 0.8) * static_cast<double>(rows));
    long rest = used;
    for (const long factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    EXPECT_EQ(rest, 1) << used;
  }
  EXPECT_EQ(smooth_length(1000), 1000);
  EXPECT_EQ(smooth_length(1009), 1000);
  const Matrix P = normals(1009, 2, 0, 1, 9), Q = normals(1009, 2, 0, 1, 10);
  EXPECT_EQ(spectrum_distance(P, Q, 6), spectrum_distance(P.topRows(1000), Q.topRows(1000), 6));
}

// Of few rows 20 frequencies are all there are: a spectrum without a peak is told from Lorenz's in
// any case.
TEST(AttractorTest, ShortSpectraAreSmoothedLess) {
  EXPECT_EQ(spectrum_smoothing(2000, 20), 20);
  EXPECT_EQ(spectrum_smoothing(100, 20), 2.5);
  EXPECT_EQ(spectrum_smoothing(100, 1), 1);
  const System system = find_system("Lorenz");
  for (const Eigen::Index rows : {60, 100, 500, 2000}) {
    const std::vector<double> times = regular_times(0, 0.03 * static_cast<double>(rows), 0.03);
    const Matrix lorenz = solve(system.field, 0, Eigen::Vector3d(-8, 7, 27), times, {}).states;
    const double far = spectrum_distance(normals(rows, 3, 0, 1, 11), lorenz);
    const double near = spectrum_distance(normals(rows, 3, 0, 1, 11), normals(rows, 3, 0, 1, 12));
    printf("%ld rows: white noise to Lorenz %.3f, to white noise %.3f\n", static_cast<long>(rows),
           far, near);
    EXPECT_GT(far, 0.4) << rows;
    EXPECT_LT(near, far / 2) << rows;
  }
  EXPECT_TRUE(std::isnan(spectrum_distance(normals(39, 1, 0, 1, 1), normals(39, 1, 0, 1, 2))));
}

class LearntTest : public ::testing::Test {
 protected:
  const System system = find_system("Lorenz");
  const Trajectory data = [&] {
    std::vector<double> times = regular_times(0, 60, 0.03);
    return Trajectory{
        "", times,
        solve_certified(system.field, 0, Eigen::Vector3d(-8, 7, 27), times).solution.states};
  }();
  Model learn() const {
    Dataset train{system.variables, {data}};
    train.trajectories[0].times.resize(500);
    train.trajectories[0].states = Matrix(data.states.topRows(500));
    add_noise(train, noise_level(train, 0.02, NoiseOf::rms), 1);
    return fit(train, {}).model;
  }
  const AttractorOptions options = [] {
    AttractorOptions o;
    o.draws = 3;
    return o;
  }();
};

TEST_F(LearntTest, TheRightEquationsAreAsNearAsTheHalvesOfTheData) {
  const Model model = learn();
  const auto c = compare_attractors(model, data, options, ignore_progress);
  ASSERT_EQ(c.status, SolveStatus::finished);
  EXPECT_EQ(c.rows, 1000);
  EXPECT_EQ(c.bounded, 3);
  printf("halves %.3f %.4f; model %.3f ± %.3f, %.4f ± %.4f; draws %.3f ± %.3f, %.4f ± %.4f\n",
         c.halves.divergence, c.halves.spectrum, c.model.divergence, c.model_sd.divergence,
         c.model.spectrum, c.model_sd.spectrum, c.draws.divergence, c.draws_sd.divergence,
         c.draws.spectrum, c.draws_sd.spectrum);
  // The halves are one draw of what pieces scatter by.
  EXPECT_NEAR(c.model.divergence, c.halves.divergence, 5 * c.model_sd.divergence);
  EXPECT_NEAR(c.model.spectrum, c.halves.spectrum, 5 * c.model_sd.spectrum);
  // Threads change nothing.
  AttractorOptions two = options;
  two.threads = 3;
  const auto again = compare_attractors(model, data, two, ignore_progress);
  EXPECT_EQ(again.model.divergence, c.model.divergence);
  EXPECT_EQ(again.draws_sd.spectrum, c.draws_sd.spectrum);
}

// For pictures: 1600 radians at 3 % and the error of the fit.
TEST_F(LearntTest, LargestExponentOfTheLearntEquations) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const auto found = largest_exponent(learn());
  ASSERT_TRUE(found);
  EXPECT_NEAR(*found, *system.lyapunov, 0.1 * *system.lyapunov);
  Model still = learn();
  for (CoefficientSet& set : still.polynomial()->sets) set.theta *= -1;
  EXPECT_FALSE(largest_exponent(still)) << "time runs backwards: the orbit leaves";
}

// The best set alone, its coefficients changed.
AttractorComparison changed(Model model, const Trajectory& data,
                            const std::function<void(const FieldTerm&, double&)>& change) {
  auto& sets = model.polynomial()->sets;
  sets.resize(1);
  sets[0].weight = 1;
  for (std::size_t c = 0; c < sets[0].support.size(); ++c)
    change(sets[0].support[c], sets[0].theta[static_cast<Eigen::Index>(c)]);
  AttractorOptions o;
  o.draws = 0;
  o.pieces = 4;
  return compare_attractors(model, data, o, ignore_progress);
}

// Half as fast it goes through the same places: only the spectrum tells.
TEST_F(LearntTest, SlowerTimeChangesTheSpectrumOnly) {
  const auto c = changed(learn(), data, [](const FieldTerm&, double& theta) { theta *= 0.5; });
  ASSERT_EQ(c.status, SolveStatus::finished);
  EXPECT_NEAR(c.model.divergence, c.halves.divergence, 5 * c.model_sd.divergence);
  EXPECT_GT(c.model.spectrum, c.halves.spectrum + 5 * c.model_sd.spectrum);
  EXPECT_TRUE(std::isnan(c.draws.divergence)) << "none were asked for";
}

// rho = 0.7 × 28 has no chaos: the run ends in a point.
TEST_F(LearntTest, OtherEquationsGoElsewhere) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const MonomialBasis basis(3, 2);
  const auto c = changed(learn(), data, [&](const FieldTerm& term, double& theta) {
    if (term.equation == 1 && basis.powers(term.term) == std::vector{1, 0, 0}) theta *= 0.7;
  });
  ASSERT_EQ(c.status, SolveStatus::finished);
  EXPECT_GT(c.model.divergence, 10 * c.halves.divergence);
}

TEST_F(LearntTest, UnevenRowsHaveNoSpectrum) {
  ODECAST_NOT_UNDER_SANITIZERS();
  Trajectory uneven = data;
  uneven.states(700, 1) = std::nan("");
  AttractorOptions o = options;
  o.draws = 0;
  const auto c = compare_attractors(learn(), uneven, o, ignore_progress);
  EXPECT_FALSE(c.even);
  EXPECT_TRUE(std::isnan(c.halves.spectrum));
  EXPECT_TRUE(std::isfinite(c.model.divergence));
  uneven.times.resize(30);
  uneven.states = Matrix(data.states.topRows(30));
  EXPECT_THROW(compare_attractors(learn(), uneven, o, ignore_progress), Error);
}

TEST(AttractorTest, RunsFollowWhatNearlyDiesOutAndReturns) {
  const Trajectory truth = predators(1000, 0.5);
  const AttractorComparison c =
      compare_attractors(predator_model(), truth, {.pieces = 3, .draws = 2}, ignore_progress);
  EXPECT_EQ(c.status, SolveStatus::finished);
  EXPECT_EQ(c.bounded, 2);
  // The same orbit as the data's: as far from each half as these are from each other, or so.
  EXPECT_LT(c.model.divergence, 2 * c.halves.divergence + 0.1);
  EXPECT_LT(c.model.spectrum, 2 * c.halves.spectrum + 0.1);
}

}  // namespace
}  // namespace odecast
