#include "odecast/training/train.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "odecast/training/detail/gradient_job.hpp"
#include "odecast/training/objective.hpp"
#include "odecast/training/optimiser.hpp"
#include "support/kernels.hpp"
#include "support/rows.hpp"

namespace odecast {
namespace {

DerivativeRows sprott_rows(int rows) {
  std::vector<double> times;
  for (int i = 1; i <= rows + 1; ++i) times.push_back(0.01 * i);
  const auto truth = solve_certified(find_system("SprottB").field, 0, Vector::Ones(3), times);
  return forward_differences({{"x", "y", "z"}, {{"", times, truth.solution.states}}, {}}, {});
}

/// The same network seen by the general code: a layer of the identity in front with weight 1.
Network disguised(const Network& kernel) {
  Network n = kernel;
  const int size = kernel.inputs();
  n.layers.insert(n.layers.begin(), Layer{Matrix::Identity(size, size), Vector::Zero(size)});
  return n;
}

TEST(TrainTest, LaneGradientEqualsBackPropagation) {
  // One step of gradient descent through the lane kernel against one through loss_gradient, with
  // masks that are all ones (r = 0), for row counts that do and do not fill blocks.
  for (const auto& [n, k, degree, count] : {std::tuple{3, 10, 2, 70},
                                            {2, 4, 2, 32},
                                            {3, 10, 2, 2100},
                                            {1, 3, 1, 5},
                                            {4, 7, 3, 33},
                                            {3, 5, 1, 40}}) {
    DerivativeRows rows = random_rows(count, n, 1);
    rows.sigma.setZero();
    const Network start = random_kernel(n, k, degree, 0, false, 2);
    Network trained = start;
    TrainOptions o;
    o.optimiser = OptimiserKind::sgd;
    o.batches = 1;
    o.schedule = {{1, 1.0}};
    const TrainSummary summary = train(trained, rows, o, ignore_progress);
    const LossGradient expected = loss_gradient(start, rows.states, rows.derivatives);
    EXPECT_NEAR(summary.history.at(0), expected.loss, 1e-12 * expected.loss);
    const Vector step = parameters(start) - parameters(trained);
    EXPECT_LT((step - expected.gradient).norm(), 1e-11 * expected.gradient.norm())
        << n << ' ' << k << ' ' << degree << ' ' << count;
  }
}

TEST(TrainTest, LanesAndGeneralCodeTakeTheSameStep) {
  // One mask for the whole batch, which the disguised network draws from the same words.
  const DerivativeRows rows = sprott_rows(100);
  for (const bool rescale : {false, true}) {
    Network lanes = random_kernel(3, 6, 3, 0.4, rescale, 4), general = disguised(lanes);
    TrainOptions o;
    o.optimiser = OptimiserKind::sgd;
    o.batches = 1;
    o.schedule = {{1, 1e-3}};
    o.mask_per_batch = true;
    const double a = train(lanes, rows, o, ignore_progress).history[0];
    const double b = train(general, rows, o, ignore_progress).history[0];
    EXPECT_NEAR(a, b, 1e-12 * b);
    EXPECT_LT((lanes.layers[0].weights - general.layers[1].weights).norm(), 1e-12);
    EXPECT_LT((lanes.layers[1].weights - general.layers[2].weights).norm(), 1e-12);
  }
}

TEST(TrainTest, LanesDrawTheMasksOfBernoulliWord) {
  for (const double keep : {0.75, 0.95, 0.5, 1.0 / 3}) {
    for (const int words : {1, 16, 43}) {
      std::vector<std::uint32_t> masks(static_cast<std::size_t>(words + kMaskWords - 1), 7);
      const auto p = static_cast<std::uint32_t>(std::nearbyint(keep * 0x1p32));
      sse2::run_masks({0x123456789abcdefULL, 3, 0x9900000044ULL, 40, words, p, masks.data()});
      for (int w = 0; w < words; ++w)
        ASSERT_EQ(masks[static_cast<std::size_t>(w)],
                  bernoulli_word(0x123456789abcdefULL, Purpose::training_mask, 0x9900000044ULL,
                                 static_cast<std::uint32_t>(40 + w), keep));
    }
  }
}

TEST(TrainTest, SampledLossOfRowMasksHasTheExactExpectation) {
  const DerivativeRows rows = sprott_rows(500);
  for (const double rate : {0.05, 0.25, 0.5}) {
    const Network start = random_kernel(3, 10, 2, rate, false, 4);
    TrainOptions o;
    o.optimiser = OptimiserKind::sgd;
    o.batches = 400;
    o.schedule = {{1, 1e-300}};  // the loss at the start, again and again
    Network n = start;
    DerivativeRows clean = rows;
    clean.sigma.setZero();
    const TrainSummary s = train(n, clean, o, ignore_progress);
    double mean = 0, square = 0;
    for (const double l : s.history) mean += l / 400, square += l * l / 400;
    const double se = std::sqrt((square - mean * mean) / 399);
    EXPECT_NEAR(mean, expected_objective(*polynomial_kernel(start), clean, Vector::Ones(3)), 5 * se)
        << rate;
  }
}

TEST(TrainTest, AdamFollowsItsFormula) {
  Adam adam(2);
  Vector theta = Eigen::Vector2d(1, -2), m = Vector::Zero(2), v = m;
  Vector expected = theta;
  for (int t = 1; t <= 5; ++t) {
    const Vector g = Eigen::Vector2d(0.3 * t, -0.1);
    adam.step(theta, g, 0.01);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g.cwiseAbs2();
    const Vector mh = m / (1 - std::pow(0.9, t)), vh = v / (1 - std::pow(0.999, t));
    expected -= 0.01 * mh.cwiseQuotient((vh.cwiseSqrt().array() + 1e-8).matrix());
  }
  EXPECT_LT((theta - expected).norm(), 1e-14);
}

TEST(TrainTest, ThreadsDoNotChangeTheBits) {
  // Enough rows that threads are used at all.
  DerivativeRows few = sprott_rows(500), rows = few;
  rows.states = few.states.replicate(220, 1);
  rows.derivatives = few.derivatives.replicate(220, 1);
  rows.sigma = few.sigma.replicate(220, 1);
  TrainOptions o;
  o.batches = 2;
  o.schedule = {{3, 0.01}};
  Vector first;
  for (const int threads : {1, 2, 3, 8}) {
    Network n = random_kernel(3, 10, 2, 0.25, false, 1);
    o.threads = threads;
    train(n, rows, o, ignore_progress);
    if (threads == 1) first = parameters(n);
    EXPECT_EQ(parameters(n), first) << threads;
  }
}

TEST(TrainTest, AShortScheduleReachesTheKnownMinimum) {
  const DerivativeRows rows = sprott_rows(999);
  Network n = make_network(3, {{10, Activation::power, 2, 0.25, false}}, 3, 1);
  TrainOptions o;
  o.batches = 30;
  const TrainSummary s = train(n, rows, o, ignore_progress);
  EXPECT_EQ(s.status, TrainStatus::schedule_done);
  EXPECT_EQ(s.iterations, 3300);
  const double after = expected_objective(*polynomial_kernel(n), rows, Vector::Ones(3));
  // The minima are at 1.1784 and near 1.182 (L-BFGS on the exact objective).
  EXPECT_GT(after, 1.178);
  EXPECT_LT(after, 1.21);
}

TEST(TrainTest, GeneralNetworksLearnToo) {
  const DerivativeRows rows = sprott_rows(300);
  Network n = make_network(3, {{16, Activation::tanh, 1, 0.05, false}}, 3, 1);
  TrainOptions o;
  o.batches = 20;
  const TrainSummary s = train(n, rows, o, ignore_progress);
  EXPECT_LT(s.history.back(), s.history.front() / 2);
}

TEST(TrainTest, ADivergingLossIsAStatus) {
  DerivativeRows rows = sprott_rows(50);
  rows.states *= 1e80;
  Network n = random_kernel(3, 10, 2, 0.25, false, 1);
  const TrainSummary s = train(n, rows, {}, ignore_progress);
  EXPECT_EQ(s.status, TrainStatus::diverged);
  EXPECT_NE(s.reason.find("step 0"), std::string::npos) << s.reason;
}

TEST(TrainTest, OptionsOutOfRangeAreRefused) {
  const DerivativeRows rows = sprott_rows(10);
  Network n = random_kernel(3, 4, 2, 0.25, false, 1);
  for (const TrainOptions& o :
       {TrainOptions{.batches = 0}, TrainOptions{.schedule = {}},
        TrainOptions{.schedule = {{0, 1}}}, TrainOptions{.schedule = {{1, -1}}},
        TrainOptions{.noise_samples = 0}, TrainOptions{.masks = 0}})
    EXPECT_THROW(train(n, rows, o, ignore_progress), Error);
}

TEST(TrainTest, TheObserverCanStopIt) {
  Network n = random_kernel(3, 4, 2, 0.25, false, 1);
  EXPECT_THROW(train(n, sprott_rows(10), {},
                     [](std::string_view, double fraction) {
                       if (fraction > 0) throw Interrupted(2);
                     }),
               Interrupted);
}

}  // namespace
}  // namespace odecast
