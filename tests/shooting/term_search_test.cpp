#include "odecast/shooting/term_search.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

constexpr double kDecay = 0.2;
const Support kTruth = {{0, 1}, {0, 2}, {1, 1}, {1, 2}};  // monomials 1, x, y, x², x y, y²
const Eigen::Vector4d kCoefficients(-kDecay, -1, 1, -kDecay);

/// x = 2 exp(-0.2 t) cos t, y = 2 exp(-0.2 t) sin t: x' = -0.2 x - y, y' = x - 0.2 y.
ObservedRun spiral(int rows, double step, double noise, std::uint64_t seed = 1) {
  ObservedRun run{{}, Matrix(rows, 2), Matrix::Ones(rows, 2)};
  Stream stream(seed, Purpose::observation_noise, 0);
  for (int k = 0; k < rows; ++k) {
    const double t = step * k, size = 2 * std::exp(-kDecay * t);
    run.times.push_back(t);
    run.values(k, 0) = size * std::cos(t) + noise * stream.normal();
    run.values(k, 1) = size * std::sin(t) + noise * stream.normal();
  }
  return run;
}

/// A search with what it must not outlive.
struct Searched {
  TrajectoryOptions options = {};
  std::vector<ObservedRun> runs;
  Smoothed smoothed;
  long steps = 0;
  Budget budget = {};
  Observer observer = ignore_progress;
  OfferedFunctions offered = {};
  TermSearch search;

  explicit Searched(const ObservedRun& run, int degree = 2, Vector active = Vector::Ones(2))
      : runs{run},
        smoothed(smooth(runs, false)),
        search(runs, {std::make_shared<MonomialBasis>(2, degree)}, offered, options, active,
               std::nullopt, smoothed, steps, budget, observer) {}
};

TEST(TermSearchTest, CandidatesAreAllTermsOfWhatMoves) {
  Searched both(spiral(60, 0.1, 0.01), 3);
  EXPECT_EQ(both.search.candidates(2).size(), 2u * 6);
  EXPECT_EQ(both.search.candidates(3).size(), 2u * 10);
  Searched one(spiral(60, 0.1, 0.01), 3, Eigen::Vector2d(1, 0));
  EXPECT_EQ(one.search.candidates(3), (Support{{0, 0}, {0, 1}, {0, 3}, {0, 6}}));  // 1, x, x², x³
}

TEST(TermSearchTest, TheIntegralFormExplainsTheMotionAndNotNoise) {
  Searched motion(spiral(120, 0.1, 0.01));
  EXPECT_GT(motion.search.explained(kTruth), 0.99);
  EXPECT_LT(motion.search.explained({{0, 1}, {1, 2}}), 0.5);  // the rotation is missing
  ObservedRun white = spiral(400, 0.1, 0);
  Stream stream(3, Purpose::observation_noise, 0);
  for (auto& x : white.values.reshaped()) x = stream.normal();
  Searched noise(white);
  EXPECT_LT(noise.search.explained(noise.search.candidates(2)), 0.3);
}

TEST(TermSearchTest, CleanDataGiveTheCoefficientsToRoundOff) {
  Searched s(spiral(120, 0.1, 0));
  const FittedPath path = s.search.follow(kTruth);
  EXPECT_EQ(path.support, kTruth);
  EXPECT_LT((path.theta - kCoefficients).cwiseAbs().maxCoeff(), 1e-9);
}

TEST(TermSearchTest, FindsTheTermsAndTheNoiseOfNoisyData) {
  constexpr double sd = 0.03;
  Searched s(spiral(200, 0.08, sd));
  FittedPath path = s.search.find(s.search.candidates(2));
  EXPECT_EQ(path.support, kTruth);
  s.search.converge(path);
  // Per variable 200 values: their sd is known to 1/√400 of itself.
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(path.noise[i] / sd, 1, 5 / std::sqrt(400.0));
  // The residuals are white: 400 values.
  EXPECT_LT(std::abs(s.search.autocorrelation(path)), 5 / std::sqrt(400.0));
  EXPECT_LT(std::abs(s.search.persistence(path)), 5);
  EXPECT_GT(s.steps, 0);
}

TEST(TermSearchTest, AMissingTermComesInAndAWrongOneGoes) {
  Searched s(spiral(200, 0.08, 0.03));
  const Support all = s.search.candidates(2);
  // x² instead of -0.2 x in the first equation.
  FittedPath path = s.search.follow({{0, 2}, {0, 3}, {1, 1}, {1, 2}});
  const double wrong = path.score;
  EXPECT_GT(s.search.persistence(path), 6);  // it misses part of the motion
  s.search.improve(path, all);
  EXPECT_EQ(path.support, kTruth);
  EXPECT_LT(path.score, wrong);
  // Of the sets around it the best comes first, and each is within the window of its weight.
  const auto around = s.search.neighbourhood(path, all);
  ASSERT_GT(around.size(), 1u);
  EXPECT_EQ(around[0].support, kTruth);
  for (std::size_t k = 1; k < around.size(); ++k) {
    EXPECT_GE(around[k].score, around[k - 1].score);
    EXPECT_NE(around[k].support, kTruth);
  }
}

TEST(TermSearchTest, AnEmptyBudgetEndsTheSearch) {
  Searched s(spiral(200, 0.08, 0.03));
  s.budget = Budget::of_work(1);
  const FittedPath path = s.search.find(s.search.candidates(2));
  EXPECT_TRUE(s.budget.over());
  EXPECT_LE(s.steps, 3);
  EXPECT_EQ(path.theta.size(), static_cast<long>(path.support.size()));
}

/// A slow push that the equations lack: gaps between segments take it up.
TEST(TermSearchTest, WhatTheEquationsLackBecomesForcing) {
  ObservedRun run = spiral(300, 0.08, 0.005);
  Searched right(run);
  Stream stream(5, Purpose::observation_noise, 1);
  double push = 0;
  Vector pushed = Vector::Zero(300);
  for (int k = 1; k < 300; ++k) pushed[k] = pushed[k - 1] + 0.02 * stream.normal();
  push = pushed.cwiseAbs().maxCoeff();
  ASSERT_GT(push, 0.1);
  run.values.col(0) += pushed;
  Searched walked(run);
  const auto calm = right.search.loosen(kTruth, true), forced = walked.search.loosen(kTruth, true);
  EXPECT_EQ(forced.path.support, kTruth);
  // A random walk of 0.02 per row is 0.02 √rows of a segment in the gap's sd.
  const double rows = forced.forcing.interval / 0.08;
  EXPECT_GT(forced.forcing.sd[0], 0.02 * std::sqrt(rows) / 3);
  EXPECT_LT(forced.forcing.sd[0], 0.02 * std::sqrt(rows) * 3);
  EXPECT_GT(forced.forcing.sd[0], 3 * calm.forcing.sd[0]);
}

TEST(TermSearchTest, TermsThatNothingLacksScoreAsANormalVariableDoes) {
  constexpr int draws = 200;
  double sum = 0, squares = 0;
  for (int k = 0; k < draws; ++k) {
    Searched right(spiral(150, 0.08, 0.05, 100 + static_cast<std::uint64_t>(k)), 3);
    const FittedPath path = right.search.follow(kTruth);
    const double z = right.search.lacking(path, right.search.candidates(3));
    sum += z, squares += z * z;
  }
  const double mean = sum / draws, sd = std::sqrt(squares / draws - mean * mean);
  // Five standard errors: 1/√n of the mean, 1/√(2n) of the sd.
  EXPECT_NEAR(mean, 0, 5 / std::sqrt(1.0 * draws));
  EXPECT_NEAR(sd, 1, 5 / std::sqrt(2.0 * draws));
}

TEST(TermSearchTest, ACubicTermBelowTheNoiseIsLacking) {
  // x' = y, y' = -x - 0.012 x³ by its first harmonic: x = a cos w t, w² = 1 + 0.009 a²
  // (Lindstedt). The amplitude decays, and the frequency with it.
  ObservedRun run{{}, Matrix(600, 2), Matrix::Ones(600, 2)};
  Stream stream(4, Purpose::observation_noise, 0);
  double phase = 0;
  for (int k = 0; k < 600; ++k) {
    const double a = 2 * std::exp(-0.01 * 0.1 * k), w = std::sqrt(1 + 0.009 * a * a);
    run.times.push_back(0.1 * k);
    run.values(k, 0) = a * std::cos(phase) + 0.1 * stream.normal();
    run.values(k, 1) = -a * w * std::sin(phase) + 0.1 * stream.normal();
    phase += 0.1 * w;
  }
  Searched bent(run, 3);
  const FittedPath linear = bent.search.follow(kTruth);
  EXPECT_LT(std::abs(bent.search.autocorrelation(linear)), 4 / std::sqrt(1200.0));
  EXPECT_LT(bent.search.persistence(linear), 6);
  EXPECT_GT(bent.search.lacking(linear, bent.search.candidates(3)), 4);
}

}  // namespace
}  // namespace odecast
