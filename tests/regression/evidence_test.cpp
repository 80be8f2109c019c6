#include "odecast/regression/evidence.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>
#include <numbers>

#include "odecast/core/random.hpp"
#include "odecast/regression/weak_regression.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "support/sanitized.hpp"
#include "support/series.hpp"

namespace odecast {
namespace {

/// Two groups of three unknowns, of very different sizes; only some of them are not 0.
struct Example {
  Eigen::MatrixXd A;
  Eigen::VectorXd y;
  EvidenceProblem problem;
};

Example example(int rows, double noise, std::uint64_t seed) {
  Example e{Eigen::MatrixXd(rows, 6), Eigen::VectorXd(rows), {}};
  Stream stream(seed, Purpose::observation_noise, 0);
  const double size[] = {1, 100, 1e-3, 1, 2, 5}, truth[] = {2, -0.05, 0, 1, 0, 0};
  for (int i = 0; i < rows; ++i) {
    e.y[i] = noise * stream.normal();
    for (int q = 0; q < 6; ++q) {
      e.A(i, q) = size[q] * stream.normal();
      e.y[i] += truth[q] * e.A(i, q);
    }
  }
  Eigen::MatrixXd all(rows, 7);
  all << e.A, e.y;
  const Eigen::MatrixXd R = Eigen::HouseholderQR<Eigen::MatrixXd>(all).matrixQR();
  e.problem.triangle = R.topRows(7).triangularView<Eigen::Upper>();
  e.problem.rows = rows;
  e.problem.group = {0, 0, 0, 1, 1, 1};
  e.problem.size.assign(size, size + 6);
  e.problem.price.assign(6, 1.0);
  return e;
}

/// ln N(y; 0, s² I + A diag(t) Aᵀ), by the rows themselves.
double marginal(const Example& e, const std::vector<int>& terms, const std::vector<double>& tau,
                double variance) {
  const auto M = e.y.size();
  Eigen::MatrixXd C = variance * Eigen::MatrixXd::Identity(M, M);
  for (const int q : terms) {
    const auto at = static_cast<std::size_t>(q);
    const double sd = tau[static_cast<std::size_t>(e.problem.group[at])] / e.problem.size[at];
    C += sd * sd * e.A.col(q) * e.A.col(q).transpose();
  }
  const Eigen::LLT<Eigen::MatrixXd> L(C);
  const double log_determinant = 2 * Eigen::MatrixXd(L.matrixL()).diagonal().array().log().sum();
  return -0.5 * (static_cast<double>(M) * std::log(2 * std::numbers::pi) + log_determinant +
                 e.y.dot(L.solve(e.y)));
}

TEST(EvidenceTest, IsTheMarginalLikelihoodOfTheRows) {
  const Example e = example(40, 0.5, 1);
  for (const std::vector<int>& terms :
       {std::vector<int>{0, 1, 2, 3, 4, 5}, std::vector<int>{1, 3}, std::vector<int>{5}}) {
    const EvidenceFit fit = evidence_fit(e.problem, terms);
    EXPECT_NEAR(fit.log_evidence, marginal(e, terms, fit.prior, fit.variance), 1e-9 * 40);
    EXPECT_DOUBLE_EQ(fit.log_prior, -static_cast<double>(terms.size()));
  }
}

TEST(EvidenceTest, ScaleOfPriorAndNoiseMaximiseIt) {
  const Example e = example(200, 0.5, 2);
  const std::vector<int> terms = {0, 1, 2, 3, 4, 5};
  const EvidenceFit fit = evidence_fit(e.problem, terms);
  // The fixed point stops at a thousandth, where the evidence is flat to (rows / 2) 1e-6.
  for (const double change : {0.9, 1.1}) {
    for (std::size_t g = 0; g < 2; ++g) {
      std::vector<double> tau = fit.prior;
      tau[g] *= change;
      EXPECT_LT(marginal(e, terms, tau, fit.variance), fit.log_evidence);
    }
    EXPECT_LT(marginal(e, terms, fit.prior, change * fit.variance), fit.log_evidence);
  }
}

TEST(EvidenceTest, PosteriorIsThatOfTheNormalEquations) {
  const Example e = example(60, 0.5, 3);
  const EvidenceFit fit = evidence_fit(e.problem, {0, 1, 3});
  Eigen::MatrixXd A(60, 3);
  A << e.A.col(0), e.A.col(1), e.A.col(3);
  Eigen::MatrixXd H = A.transpose() * A / fit.variance;
  const int groups[] = {0, 0, 1};
  const double sizes[] = {1, 100, 1};
  for (int q = 0; q < 3; ++q)
    H(q, q) += std::pow(sizes[q] / fit.prior[static_cast<std::size_t>(groups[q])], 2);
  const Eigen::MatrixXd covariance = H.llt().solve(Eigen::MatrixXd::Identity(3, 3));
  const Vector mean = covariance * (A.transpose() * e.y) / fit.variance;
  EXPECT_LT((fit.posterior.x - mean).norm(), 1e-12 * mean.norm());
  EXPECT_LT((fit.posterior.covariance - covariance).norm(), 1e-12 * covariance.norm());
}

TEST(EvidenceTest, SearchFindsTheTermsFromAnyStart) {
  // P(a superfluous term is worth it): z² beyond 2 + ln(t/Σ) > 2 + ln(500) = 8.2, 0.4 % each of
  // three; 20 draws.
  int right = 0;
  const std::vector<int> all = {0, 1, 2, 3, 4, 5};
  for (std::uint64_t draw = 1; draw <= 20; ++draw) {
    const Example e = example(500, 0.5, draw);
    const EvidenceFit down = evidence_search(e.problem, all, all),
                      up = evidence_search(e.problem, {}, all);
    EXPECT_EQ(down.posterior.terms, up.posterior.terms);
    EXPECT_GE(down.score(), evidence_fit(e.problem, all).score());
    right += down.posterior.terms == std::vector<int>{0, 1, 3};
  }
  EXPECT_GE(right, 18);
}

TEST(EvidenceTest, UnitsDoNotMatter) {
  Example e = example(100, 0.5, 4);
  const EvidenceFit before = evidence_search(e.problem, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5});
  e.problem.triangle.col(1) *= 1e6;
  e.problem.size[1] *= 1e6;
  const EvidenceFit after = evidence_search(e.problem, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(after.posterior.terms, before.posterior.terms);
  EXPECT_NEAR(after.log_evidence, before.log_evidence, 1e-9 * std::abs(before.log_evidence));
  EXPECT_NEAR(1e6 * after.posterior.x[1], before.posterior.x[1],
              1e-9 * std::abs(before.posterior.x[1]));
}

TEST(EvidenceTest, AnEquationComesFromTheFactorOfItsRows) {
  Matrix states(300, 1), rates(300, 2);
  Stream stream(5, Purpose::observation_noise, 0);
  for (int i = 0; i < 300; ++i) {
    states(i, 0) = stream.normal();
    rates(i, 0) = 1 - 2 * states(i, 0) + 0.1 * stream.normal();
    rates(i, 1) = states(i, 0) * states(i, 0) + 0.01 * stream.normal();
  }
  RowFactor factor(1, 2, 2);
  factor.add(states, rates);
  const EvidenceFit first = evidence_search(equation_problem(factor, 0, factor.basis()), {0, 1, 2},
                                            {0, 1, 2}),
                    second = evidence_search(equation_problem(factor, 1, factor.basis()), {0, 1, 2},
                                             {0, 1, 2});
  EXPECT_EQ(first.posterior.terms, (std::vector<int>{0, 1}));
  EXPECT_EQ(second.posterior.terms, (std::vector<int>{2}));
  // A variance from 300 residuals is right to √(2/300) = 8 %; five of these.
  EXPECT_NEAR(first.variance / 0.01, 1, 0.41);
  EXPECT_NEAR(second.variance / 0.0001, 1, 0.41);
  EXPECT_NEAR(second.posterior.x[0], 1, 5 * std::sqrt(second.posterior.covariance(0, 0)));
}

/// x' = -x/20 + y, y' = -x - y/20.
constexpr double kDecay = 0.05;
Dataset spiral(double noise, std::uint64_t draw) {
  Dataset d = series(
      evenly(1000, 0.04), [](double t) { return std::exp(-kDecay * t) * std::sin(t); },
      [](double t) { return std::exp(-kDecay * t) * std::cos(t); });
  if (noise > 0) add_noise(d, Vector::Constant(2, noise), draw);
  return d;
}

TEST(WeakPosteriorTest, ErrorsInVariablesDoNotBiasIt) {
  // Noise of a fifth of the signal at its start. z of the four coefficients over 60 draws: the mean
  // is 0 ± 5/√60 = 0.65, the mean square 1 ± 5 √(2/240) = 1 ± 0.46. Around the observations instead
  // of the path y's pull on x' is 5 sd too small.
  const double noise = 0.2;
  const MonomialBasis basis(2, 1);
  const int draws = 60;
  Matrix mean = Matrix::Zero(2, 3);
  double square = 0;
  const Matrix truth = (Matrix(2, 3) << 0, -kDecay, 1, 0, -1, -kDecay).finished();
  for (std::uint64_t draw = 1; draw <= draws; ++draw) {
    const Dataset d = spiral(noise, draw);
    const WeakRows rows = weak_rows(segments(d, 0), basis, Vector::Constant(2, noise));
    const WeakPosterior p =
        weak_posterior(rows, basis, {.degree = 1, .select = false}, "test", ignore_progress);
    EXPECT_TRUE(p.settled);
    for (std::size_t q = 0; q < 6; ++q) {
      const auto at = static_cast<Eigen::Index>(q);
      const int o = p.fit.posterior.terms[q] / 3, m = p.fit.posterior.terms[q] % 3;
      const double z =
          (p.fit.posterior.x[at] - truth(o, m)) / std::sqrt(p.fit.posterior.covariance(at, at));
      mean(o, m) += z / draws;
      if (m > 0) square += z * z / (4 * draws);
    }
  }
  EXPECT_LT(mean.cwiseAbs().maxCoeff(), 0.65) << mean;
  EXPECT_NEAR(square, 1, 0.46);
}

TEST(WeakPosteriorTest, BlocksTellWhatAllRowsTell) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // A circle, long enough for several blocks. What is lost at the cuts, a sixtieth of the test
  // functions at most, moves a coefficient by √(1/60) of its sd; five of these are 0.65.
  const int count = 100'000;
  Dataset d = series(
      evenly(count, 0.2), [](double t) { return std::sin(t); },
      [](double t) { return std::cos(t); });
  const Vector noise = Vector::Constant(2, 0.05);
  add_noise(d, noise, 1);
  const MonomialBasis basis(2, 1);
  const std::vector<Segment> parts = segments(d, 0);
  const WeakRows all = weak_rows(parts, basis, noise);
  WeakBlocks blocks(parts, basis, noise);
  ASSERT_GT(blocks.size(), 1u);
  Eigen::Index rows = 0, observations = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    rows += blocks.block(b).rows();
    for (const Matrix& states : blocks.block(b).states) observations += states.rows();
  }
  EXPECT_EQ(rows, blocks.rows());
  EXPECT_EQ(observations, count);
  EXPECT_LE(rows, all.rows());
  EXPECT_GE(static_cast<double>(rows), static_cast<double>(all.rows()) * (1 - 1.0 / 60));
  const WeakPosterior whole = weak_posterior(all, basis, {.degree = 1}, "test", ignore_progress),
                      cut = weak_posterior(blocks, basis, {.degree = 1}, "test", ignore_progress);
  EXPECT_TRUE(cut.settled);
  ASSERT_EQ(cut.fit.posterior.terms, whole.fit.posterior.terms);
  for (Eigen::Index q = 0; q < cut.fit.posterior.x.size(); ++q)
    EXPECT_NEAR(cut.fit.posterior.x[q], whole.fit.posterior.x[q],
                0.65 * std::sqrt(whole.fit.posterior.covariance(q, q)));
}

TEST(WeakPosteriorTest, FewRowsAreOneBlockWithTheSameBits) {
  const Dataset d = spiral(0.02, 1);
  const MonomialBasis basis(2, 2);
  const Vector noise = Vector::Constant(2, 0.02);
  WeakBlocks blocks(segments(d, 0), basis, noise);
  ASSERT_EQ(blocks.size(), 1u);
  const WeakPosterior one = weak_posterior(blocks, basis, {}, "test", ignore_progress),
                      all = weak_posterior(weak_rows(segments(d, 0), basis, noise), basis, {},
                                           "test", ignore_progress);
  EXPECT_EQ(one.coefficients, all.coefficients);
}

TEST(WeakPosteriorTest, SquaresAreNotBiasedByTheNoiseLeftInThePath) {
  // Sprott F: x' = y + z, y' = -x + y/2, z' = x² - z at 10 % noise. z of the six coefficients over
  // 40 draws: mean 0 ± 5/√40 = 0.79, mean square 1 ± 5 √(2/240) = 1 ± 0.46. Without correction E x²
  // is too large by the noise: 3 sd and more.
  const System system = find_system("SprottF");
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) times.push_back(0.02 * i);
  const Dataset clean{
      system.variables,
      {{"", times, solve_certified(system.field, 0, system.start, times).solution.states}}};
  const Vector noise = noise_level(clean, 0.1, NoiseOf::sd);
  const MonomialBasis basis(3, 2);
  const int F = basis.size(), draws = 40;
  Matrix truth = Matrix::Zero(3, F);
  const auto set = [&](int o, std::vector<int> powers, double value) {
    for (int m = 0; m < F; ++m)
      if (basis.powers(m) == powers) truth(o, m) = value;
  };
  set(0, {0, 1, 0}, 1);
  set(0, {0, 0, 1}, 1);
  set(1, {1, 0, 0}, -1);
  set(1, {0, 1, 0}, 0.5);
  set(2, {2, 0, 0}, 1);
  set(2, {0, 0, 1}, -1);
  std::vector<int> terms;
  for (int q = 0; q < 3 * F; ++q)
    if (truth(q / F, q % F) != 0) terms.push_back(q);
  Vector mean = Vector::Zero(6);
  double square = 0;
  for (std::uint64_t draw = 1; draw <= draws; ++draw) {
    Dataset d = clean;
    add_noise(d, noise, draw);
    const WeakRows rows = weak_rows(segments(d, 0), basis, noise);
    Matrix C = Matrix::Zero(3, F);
    WeakPath path;
    EvidenceFit fit;
    for (int round = 0; round < 5; ++round) {
      WeakLinearisation around(rows, basis, C, path);
      fit = evidence_fit(around.problem(), terms);
      for (std::size_t q = 0; q < 6; ++q)
        C(terms[q] / F, terms[q] % F) = fit.posterior.x[static_cast<Eigen::Index>(q)];
      if (round > 0) path = around.path(C);
    }
    for (std::size_t q = 0; q < 6; ++q) {
      const auto at = static_cast<Eigen::Index>(q);
      const double z = (fit.posterior.x[at] - truth(terms[q] / F, terms[q] % F)) /
                       std::sqrt(fit.posterior.covariance(at, at));
      mean[at] += z / draws;
      square += z * z / (6 * draws);
    }
  }
  EXPECT_LT(mean.cwiseAbs().maxCoeff(), 0.79) << mean.transpose();
  EXPECT_NEAR(square, 1, 0.46);
}

}  // namespace
}  // namespace odecast
