#include "odecast/forecast/forecast.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/model/model_file.hpp"
#include "support/models.hpp"
#include "support/predators.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

ForecastOptions until(double end, double step = 0.25) {
  ForecastOptions o;
  o.init = Vector::Ones(1);
  o.times = regular_times(0, end, step);
  o.draws = 200;
  return o;
}

/// The number of kept units decides the trajectory: u' = -(kept/2) u in every variable.
TEST(ForecastTest, MeanAndSdAreThoseOfTheMixture) {
  const double r = 0.3;
  const Model model = decaying_model(1, r);
  ForecastOptions o = until(2);
  o.draws = 4000;
  o.solver = SolverOptions{.rtol = 1e-8, .atol = 1e-8};
  const Forecast f = forecast(model, o, ignore_progress);
  for (std::size_t t = 1; t < f.times.size(); ++t) {
    // Two units: kept 0, 1, 2 with weights r², 2qr, q².
    const double q = 1 - r, weights[] = {r * r, 2 * q * r, q * q};
    double mean = 0, square = 0, fourth = 0;
    for (int kept = 0; kept < 3; ++kept) mean += weights[kept] * std::exp(-0.5 * kept * f.times[t]);
    for (int kept = 0; kept < 3; ++kept) {
      const double d = std::exp(-0.5 * kept * f.times[t]) - mean;
      square += weights[kept] * d * d;
      fourth += weights[kept] * d * d * d * d;
    }
    const auto row = static_cast<Eigen::Index>(t);
    EXPECT_NEAR(f.mean(row, 0), mean, 5 * std::sqrt(square / o.draws));
    EXPECT_NEAR(f.sd(row, 0) * f.sd(row, 0), square,
                5 * std::sqrt((fourth - square * square) / o.draws));
    EXPECT_NEAR(f.upper(row, 0) - f.mean(row, 0), 1.959963984540054 * f.sd(row, 0), 1e-12);
    // The quantiles of three values are among them: 2.5 % is the fastest decay (weight q² = .49).
    EXPECT_NEAR(f.q_lower(row, 0), std::exp(-f.times[t]), 1e-6);
    EXPECT_NEAR(f.q_upper(row, 0), 1, 1e-6);
  }
  EXPECT_EQ(f.discarded, 0);
  EXPECT_EQ(f.alive, std::vector<double>(f.times.size(), 1.0));
}

TEST(ForecastTest, FunctionsGiveTheSameBytesFromAFile) {
  const Model model = model_with_functions();
  ForecastOptions o;
  o.times = regular_times(2, 12, 0.25);
  o.draws = 300;
  const Forecast f = forecast(model, o, ignore_progress),
                 g = forecast(model_from_text(model_to_text(model), "test"), o, ignore_progress);
  EXPECT_EQ(f.discarded, 0);
  EXPECT_EQ(f.mean, g.mean);
  EXPECT_EQ(f.sd, g.sd);
  EXPECT_EQ(f.q_upper, g.q_upper);
  // The pendulum swings with less than its first amplitude, and S falls below it.
  EXPECT_LT(f.mean.col(0).cwiseAbs().maxCoeff(), 1.001);
  EXPECT_LT(f.mean(f.mean.rows() - 1, 2), 0.1);
}

TEST(ForecastTest, WhatIsDrawnBetweenTheTimesIsTheSameForecast) {
  for (const Model& model : {decaying_model(1, 0.3), forced_model(-1, 0.25, 0.1)}) {
    ForecastOptions o = until(2, 0.5);
    o.samples = 2;
    const Forecast f = forecast(model, o), fine = drawn_forecast(model, o).value();
    EXPECT_EQ(fine.times.size(), 4u * 12 + 1);
    for (std::size_t t = 0, k = 0; t < fine.times.size(); ++t) {
      if (fine.times[t] != f.times[k]) continue;
      const auto at = static_cast<Eigen::Index>(t), row = static_cast<Eigen::Index>(k++);
      EXPECT_EQ(fine.mean.row(at), f.mean.row(row));
      EXPECT_EQ(fine.upper.row(at), f.upper.row(row));
      EXPECT_EQ(fine.q_lower.row(at), f.q_lower.row(row));
      EXPECT_EQ(fine.samples[1].row(at), f.samples[1].row(row));
    }
    EXPECT_EQ(fine.times.back(), f.times.back());
    EXPECT_FALSE(drawn_forecast(model, until(2, 0.005)).has_value()) << "times enough";
  }
  const Model model = decaying_model(1, 0.3);
  ForecastOptions noisy = until(2), stepped = until(2);
  noisy.transition_noise = true;
  stepped.solver = SolverOptions{.method = SolverMethod::rk4, .fixed_step = 0.3};
  EXPECT_FALSE(drawn_forecast(model, noisy).has_value());
  EXPECT_FALSE(drawn_forecast(model, stepped).has_value());
}

TEST(ForecastTest, WhatIsPositiveStaysSo) {
  // du/dt = -u from a start of 1 ± 1: one draw of six begins below 0 and is left out; those left
  // are normal above 0, of mean 1 + φ(1)/Φ(1) = 1.2876 and variance 1 - 0.2876 (1 + 0.2876).
  Model model = forced_model(-1, 0.1, 1);
  model.trajectory->forcing = {};
  model.positive = {true};
  ForecastOptions o = until(1, 0.5);
  o.init_sd = Vector::Ones(1);
  o.noise = Vector::Constant(1, 0.5);
  o.draws = 4000;
  o.samples = 50;
  o.solver = SolverOptions{.rtol = 1e-9, .atol = 1e-9};
  const Forecast f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.kept, 4000);
  EXPECT_EQ(f.discarded, 0);
  const double below = 0.158655;
  EXPECT_NEAR(static_cast<double>(f.below_zero) / static_cast<double>(f.kept + f.below_zero), below,
              5 * std::sqrt(below * (1 - below) / 4000));
  const double variance = 1 - 0.2876 * 1.2876;
  EXPECT_NEAR(f.mean(2, 0), 1.2876 * std::exp(-1), 5 * std::sqrt(variance / 4000) * std::exp(-1));
  for (const Matrix* part : {&f.mean, &f.lower, &f.q_lower, &f.observed_lower, &f.observed_q_lower})
    EXPECT_GE(part->minCoeff(), 0);
  for (const Matrix& sample : f.samples) EXPECT_GT(sample.minCoeff(), 0);
}

TEST(ForecastTest, KicksOfWhatIsPositiveKeepMeanAndVariance) {
  // du/dt = 0 and one kick of 1.5 from 1: log-normal of mean 1 and sd 1.5, never below 0.
  Model model = forced_model(0, 1.5, 1);
  model.positive = {true};
  ForecastOptions o = until(1, 1);
  o.draws = 20'000;
  const Forecast f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.below_zero, 0);
  EXPECT_NEAR(f.mean(1, 0), 1, 5 * 1.5 / std::sqrt(20'000.0));
  const double s2 = std::log(1 + 1.5 * 1.5);
  EXPECT_NEAR(std::log(f.q_median(1, 0)), -s2 / 2, 5 * 1.2533 * std::sqrt(s2 / 20'000));
  EXPECT_GT(f.q_lower(1, 0), 0);
}

TEST(ForecastTest, OfAnEmbeddingTheMeasuredVariableIsForecast) {
  Model model = decaying_model(2, 0);
  model.embedding = {EmbeddingKind::delays, 2, 1, 0.25};
  ForecastOptions o = until(1);
  o.init = Vector::Ones(2);
  o.samples = 2;
  const Forecast f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.variables, (std::vector<std::string>{model.variables[0]}));
  EXPECT_EQ(f.mean.cols(), 1);
  EXPECT_EQ(f.q_upper.cols(), 1);
  EXPECT_EQ(f.samples[0].cols(), 1);
}

TEST(ForecastTest, ForcingHasTheVarianceOfItsKicks) {
  const double sd = 0.3, interval = 0.4;
  const Model model = forced_model(-1, sd, interval);
  ForecastOptions o = until(2.3, 0.23);  // at times between kicks, and after several at once
  o.times = {0.1, 0.5, 0.7, 2.1, 2.3};
  o.draws = 4000;
  o.solver = SolverOptions{.rtol = 1e-9, .atol = 1e-9};
  o.samples = 20;
  const Forecast f = forecast(model, o, ignore_progress);
  for (std::size_t t = 1; t < f.times.size(); ++t) {
    double variance = 0;
    for (int k = 1; (k - 0.5) * interval < f.times[t]; ++k)
      variance += sd * sd * std::exp(-2 * (f.times[t] - (k - 0.5) * interval));
    const auto row = static_cast<Eigen::Index>(t);
    EXPECT_NEAR(f.mean(row, 0), std::exp(-f.times[t]), 5 * std::sqrt(variance / o.draws) + 1e-7);
    EXPECT_NEAR(f.sd(row, 0) * f.sd(row, 0), variance,
                5 * variance * std::sqrt(2.0 / o.draws) + 1e-14);
  }
  o.threads = 2;
  const Forecast again = forecast(model, o, ignore_progress);
  EXPECT_EQ(again.mean, f.mean);
  EXPECT_EQ(again.sd, f.sd);
  // The same kicks where time is an input that does nothing, which takes trajectories one by one.
  Model driven = model;
  driven.inputs = {{"t"}, Vector::Zero(1), Vector::Ones(1), false, true};
  driven.polynomial()->sets[0].support = {{0, 1}};
  const Forecast alone = forecast(driven, o, ignore_progress);
  ASSERT_EQ(alone.samples.size(), f.samples.size());
  for (std::size_t k = 0; k < f.samples.size(); ++k)
    EXPECT_LT((alone.samples[k] - f.samples[k]).cwiseAbs().maxCoeff(), 1e-7);
  o.transition_noise = true;
  EXPECT_THROW(forecast(model, o, ignore_progress), Error);
}

TEST(ForecastTest, ForcedTrajectoriesEndWithTheLastOutput) {
  // e^(4t) leaves the bound soon after the last output, and long before the next kick.
  Model model = forced_model(4, 0.01, 10);
  ForecastOptions o = until(1, 0.25);
  o.bound_factor = 100;
  const Forecast f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.discarded, 0);
  // Ten kicks in ten intervals, whose ends are output times.
  model = forced_model(0, 0.5, 0.1);
  o.times = regular_times(0, 1, 0.1);
  o.bound_factor = 1e6;
  o.draws = 4000;
  const Forecast g = forecast(model, o, ignore_progress);
  for (Eigen::Index k = 1; k <= 10; ++k) {
    const double variance = 0.25 * static_cast<double>(k);
    EXPECT_NEAR(g.sd(k, 0) * g.sd(k, 0), variance, 5 * variance * std::sqrt(2.0 / 4000)) << k;
  }
  // Intervals without number are taken together.
  model = forced_model(0, 0.5, 1e-9);
  o.times = {1e-3};
  o.draws = 100;
  EXPECT_NEAR(forecast(model, o, ignore_progress).sd(1, 0), 500, 5 * 500 / std::sqrt(200.0));
}

TEST(ForecastTest, AForcedTrajectoryThatBlowsUpIsCounted) {
  Model model = forced_model(1, 1e-3, 0.5);
  ForecastOptions o = until(20, 0.5);
  o.draws = 10;
  o.bound_factor = 100;  // e^t leaves it at t = ln 100
  o.blow_up = BlowUp::until;
  const Forecast f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.discarded, 10);
  for (const double t : f.blow_up_times) EXPECT_NEAR(t, std::log(100), 0.6);
  EXPECT_GE(f.times.back(), 4);  // a step that ends beyond the bound has no outputs
  EXPECT_LE(f.times.back(), 4.5);
}

TEST(ForecastTest, WithoutDropoutTheBandHasNoWidth) {
  const Forecast f = forecast(
      decaying_model(2, 0),
      [] {
        ForecastOptions o = until(2);
        o.init = Eigen::Vector2d(1, 2);
        return o;
      }(),
      ignore_progress);
  // The mean of equal numbers is their value up to round-off of the running mean.
  EXPECT_LT(f.sd.maxCoeff(), 1e-14);
  EXPECT_NEAR(f.mean(4, 0), std::exp(-1), 1e-3);
}

TEST(ForecastTest, DiscardProbabilityIsTheMixtures) {
  // u' = (d1 + d2) u²: with both units dropped u stays at 1; otherwise it has a pole by t = 1.
  const double r = 0.5;
  ForecastOptions o = until(2);
  o.draws = 1000;
  const Forecast f = forecast(exploding_model(r, 2), o, ignore_progress);
  EXPECT_EQ(f.kept, 1000);
  EXPECT_EQ(f.status, ForecastStatus::complete);
  EXPECT_EQ(f.blow_up_times.size(), static_cast<std::size_t>(f.discarded));
  const double p = r * r, n = 1000;  // kept with probability p: negative binomial
  EXPECT_NEAR(static_cast<double>(f.discarded), n * (1 - p) / p, 5 * std::sqrt(n * (1 - p)) / p);
  EXPECT_EQ(f.mean(4, 0), 1);
  for (const double t : f.blow_up_times) {
    const double distance = std::min(std::abs(t - 1), std::abs(t - 0.5));
    EXPECT_LT(distance, 0.02);
  }
}

TEST(ForecastTest, UntilCountsARunUpToItsBlowUp) {
  ForecastOptions o = until(2);
  o.blow_up = BlowUp::until;
  o.draws = 1000;
  const Forecast f = forecast(exploding_model(0.5, 2), o, ignore_progress);
  EXPECT_EQ(f.kept, 1000);
  EXPECT_NEAR(static_cast<double>(f.discarded), 750, 5 * std::sqrt(1000 * 0.75 * 0.25));
  for (std::size_t t = 1; t < f.alive.size(); ++t) EXPECT_LE(f.alive[t], f.alive[t - 1]);
  EXPECT_EQ(f.alive[1], 1);  // t = 0.25: nobody has gone
  EXPECT_NEAR(f.alive.back(), 1 - static_cast<double>(f.discarded) / 1000, 1e-12);
  EXPECT_EQ(f.status, ForecastStatus::complete);
}

TEST(ForecastTest, AnAlwaysExplodingModelEndsWithinItsCaps) {
  ForecastOptions o = until(1000, 1);
  o.draws = 50;
  long calls = 0;
  const Forecast f = forecast(exploding_model(0), o, [&](std::string_view, double) { ++calls; });
  EXPECT_EQ(f.status, ForecastStatus::too_few);
  EXPECT_EQ(f.kept, 0);
  EXPECT_EQ(f.discarded, 50 * 20);
  EXPECT_EQ(f.times.size(), 1u);
  EXPECT_NE(f.reason.find("0 of 50"), std::string::npos) << f.reason;
  o.blow_up = BlowUp::until;
  EXPECT_EQ(forecast(exploding_model(0), o, ignore_progress).status, ForecastStatus::too_few);
}

TEST(ForecastTest, ThreadsDoNotChangeTheBits) {
  for (const double rate : {0.25, 0.5}) {
    Model model = exploding_model(rate, 3, 0.4);
    ForecastOptions o = until(2);
    o.draws = 700;
    o.init_sd = Vector::Constant(1, 0.1);
    std::string first;
    for (const int threads : {1, 2, 3, 8}) {
      o.threads = threads;
      const std::string text = format_forecast(forecast(model, o, ignore_progress));
      if (threads == 1) first = text;
      EXPECT_EQ(text, first) << threads;
    }
  }
}

TEST(ForecastTest, KeepingExactlyWhatIsNeededEqualsGoingOneByOne) {
  // Blocks overshoot; the result must be that of the first `draws` survivors.
  const Model model = exploding_model(0.5, 3, 0.4);
  ForecastOptions o = until(2);
  o.draws = 300;
  const Forecast f = forecast(model, o, ignore_progress);
  const DropoutPosterior posterior(model.network());
  double mean = 0;
  long kept = 0, tried = 0;
  SolverOptions solver = o.solver.value_or(SolverOptions{});
  solver.bound = 1e6;
  while (kept < 300) {
    const Solution s = solve(posterior.draw(1, static_cast<std::uint64_t>(tried++)), 0,
                             Vector::Ones(1), o.times, solver);
    if (s.status != SolveStatus::finished) continue;
    ++kept;
    mean += s.states(3, 0);
  }
  EXPECT_EQ(f.discarded, tried - kept);
  EXPECT_NEAR(f.mean(4, 0), mean / 300, 1e-12);
}

/// A model of Sprott-B-like size whose draws spread, cross and sometimes blow up.
Model mixed_model(double rate) {
  Model model = make_model(random_kernel(2, 7, 2, rate, false, 12));
  for (Layer& layer : model.network().layers) layer.weights *= 0.8;
  return model;
}

TEST(ForecastTest, EnumeratedEqualsAMillionDraws) {
  ODECAST_NOT_UNDER_SANITIZERS();
  for (const double rate : {0.1, 0.4}) {
    const Model model = mixed_model(rate);
    ForecastOptions o;
    o.init = Eigen::Vector2d(0.5, -0.5);
    o.times = regular_times(0, 3, 0.25);
    o.masks = MaskSource::enumerated;
    const Forecast exact = forecast(model, o, ignore_progress);
    EXPECT_EQ(exact.draws, 128);
    EXPECT_EQ(exact.kept + exact.discarded, 128);
    EXPECT_GT(exact.discard_probability, 0);
    o.masks = MaskSource::sampled;
    o.draws = 1'000'000;
    const Forecast sampled = forecast(model, o, ignore_progress);
    EXPECT_LE(sampled.integrated, 128);
    const double n = 1e6, tried = n + static_cast<double>(sampled.discarded);
    const double p = exact.discard_probability;
    EXPECT_NEAR(sampled.discard_probability, p, 5 * std::sqrt(p * (1 - p) / tried));

    // Fourth moments and distribution functions by enumeration of the survivors.
    const DropoutPosterior posterior(model.network());
    SolverOptions solver = o.solver.value_or(SolverOptions{});
    solver.bound = 1e6;
    std::vector<std::pair<Solution, double>> all;
    double survive = 0;
    for (std::uint64_t a = 0; a < 128; ++a) {
      Solution s = solve(posterior.atom_field(a), 0, *o.init, o.times, solver);
      if (s.status != SolveStatus::finished) continue;
      survive += posterior.atom_weight(a);
      all.emplace_back(std::move(s), posterior.atom_weight(a));
    }
    EXPECT_NEAR(1 - survive, p, 1e-12);
    for (Eigen::Index t = 1; t < exact.mean.rows(); ++t) {
      for (int i = 0; i < 2; ++i) {
        double mean = 0, square = 0, fourth = 0;
        for (const auto& [s, w] : all) mean += w / survive * s.states(t - 1, i);
        for (const auto& [s, w] : all) {
          const double d = s.states(t - 1, i) - mean;
          square += w / survive * d * d;
          fourth += w / survive * d * d * d * d;
        }
        EXPECT_NEAR(exact.mean(t, i), mean, 1e-12 * (1 + std::abs(mean)));
        EXPECT_NEAR(exact.sd(t, i), std::sqrt(square), 1e-10 * std::sqrt(square));
        EXPECT_NEAR(sampled.mean(t, i), mean, 5 * std::sqrt(square / n));
        EXPECT_NEAR(sampled.sd(t, i) * sampled.sd(t, i), square,
                    5 * std::sqrt((fourth - square * square) / n));
        // A sampled quantile lies where the exact distribution function is within five standard
        // errors of the level.
        const auto cdf = [&](double x, bool including) {
          double sum = 0;
          for (const auto& [s, w] : all)
            if (s.states(t - 1, i) < x || (including && s.states(t - 1, i) == x))
              sum += w / survive;
          return sum;
        };
        const double slack = 5 * std::sqrt(0.025 * 0.975 / n) + 1e-6;
        EXPECT_LE(cdf(sampled.q_lower(t, i), false), 0.025 + slack);
        EXPECT_GE(cdf(sampled.q_lower(t, i), true), 0.025 - slack);
        EXPECT_LE(cdf(exact.q_upper(t, i), false), 0.975);
        EXPECT_GE(cdf(exact.q_upper(t, i), true), 0.975 - 1e-9);
        EXPECT_LE(cdf(exact.q_median(t, i), false), 0.5);
        EXPECT_GE(cdf(exact.q_median(t, i), true), 0.5 - 1e-9);
      }
    }
  }
}

TEST(ForecastTest, EnumerationKnowsNoSeedAndNoThreads) {
  ForecastOptions o;
  o.init = Eigen::Vector2d(0.5, -0.5);
  o.times = regular_times(0, 3, 0.25);
  o.masks = MaskSource::enumerated;
  const std::string first = format_forecast(forecast(mixed_model(0.3), o, ignore_progress));
  for (const std::uint64_t seed : {2, 77}) {
    o.seed = seed;
    for (const int threads : {1, 2, 3, 8}) {
      o.threads = threads;
      EXPECT_EQ(format_forecast(forecast(mixed_model(0.3), o, ignore_progress)), first);
    }
  }
}

TEST(ForecastTest, EqualMasksAreIntegratedOnceAndTheResultIsThatOfAllDraws) {
  // The same draws with a start that is random but has (almost) no spread take the other path.
  const Model model = mixed_model(0.3);
  ForecastOptions o;
  o.init = Eigen::Vector2d(0.5, -0.5);
  o.times = regular_times(0, 3, 0.25);
  o.draws = 500;
  const Forecast remembered = forecast(model, o, ignore_progress);
  o.init_sd = Vector::Constant(2, 1e-300);
  const Forecast one_by_one = forecast(model, o, ignore_progress);
  EXPECT_LT(remembered.integrated, 129);
  EXPECT_GT(one_by_one.integrated, 499);
  EXPECT_EQ(remembered.discarded, one_by_one.discarded);
  EXPECT_EQ(remembered.alive, one_by_one.alive);
  const double size = one_by_one.mean.cwiseAbs().maxCoeff();
  EXPECT_LT((remembered.mean - one_by_one.mean).norm(), 1e-11 * size);
  EXPECT_LT((remembered.sd - one_by_one.sd).norm(), 1e-10 * size);
  EXPECT_EQ(remembered.q_lower.bottomRows(12), one_by_one.q_lower.bottomRows(12));
  EXPECT_EQ(remembered.q_upper.bottomRows(12), one_by_one.q_upper.bottomRows(12));
}

TEST(ForecastTest, EnumerationRefusesWhatItCannotDo) {
  ForecastOptions o = until(1);
  o.masks = MaskSource::enumerated;
  EXPECT_THROW(forecast(exploding_model(0.5, 21), o, ignore_progress), Error);
  o.init_sd = Vector::Ones(1);
  EXPECT_THROW(forecast(decaying_model(1, 0.3), o, ignore_progress), Error);
}

TEST(ForecastTest, GaussianStartsSpreadTheBand) {
  ForecastOptions o = until(2);
  o.draws = 4000;
  o.init_sd = Vector::Constant(1, 0.2);
  o.solver = SolverOptions{.rtol = 1e-8, .atol = 1e-8};
  const Forecast f = forecast(decaying_model(1, 0), o, ignore_progress);  // u = u0 e^-t
  for (Eigen::Index t = 1; t < f.mean.rows(); ++t) {
    const double decay = std::exp(-f.times[static_cast<std::size_t>(t)]);
    EXPECT_NEAR(f.mean(t, 0), decay, 5 * 0.2 * decay / std::sqrt(4000));
    EXPECT_NEAR(f.sd(t, 0), 0.2 * decay, 5 * 0.2 * decay / std::sqrt(8000));
  }
  EXPECT_EQ(f.sd(0, 0), 0.2);
}

TEST(ForecastTest, TransitionNoiseAccumulatesAsTheMarkovChainSays) {
  // u' = -u with ε ~ N(0, h^m) at each output: variance v <- v e^{-2h} + h^{2m}.
  ForecastOptions o = until(5, 0.5);
  o.draws = 3000;
  o.transition_noise = true;
  o.solver = SolverOptions{.rtol = 1e-8, .atol = 1e-8};
  const Forecast f = forecast(decaying_model(1, 0), o, ignore_progress);
  double variance = 0;
  for (Eigen::Index t = 1; t < f.mean.rows(); ++t) {
    variance = variance * std::exp(-1.0) + std::pow(0.5, 8);
    EXPECT_NEAR(f.sd(t, 0), std::sqrt(variance), 5 * std::sqrt(variance / 6000));
  }
}

TEST(ForecastTest, FreshMasksShrinkWithTheStep) {
  const Model model = decaying_model(1, 0.3);
  ForecastOptions o = until(1, 0.5);
  o.draws = 400;
  o.mask = MaskChange::step;
  o.solver = SolverOptions{.method = SolverMethod::rk4};
  const auto spread_at = [&](double h) {
    o.solver->fixed_step = h;
    return forecast(model, o, ignore_progress).sd(2, 0);
  };
  // White noise averages out as sqrt(step); the ratio of two sds of 400 draws has a standard error
  // of 2 · 5 %, and is off by O(step) itself.
  EXPECT_NEAR(spread_at(0.1) / spread_at(0.025), 2, 0.5);
}

TEST(ForecastTest, FreshMasksStayFreshWithTransitionNoise) {
  // Each output interval is an integration of its own; the masks must not start again with each.
  const Model model = decaying_model(1, 0.3);
  ForecastOptions o = until(2, 0.01);
  o.draws = 400;
  o.mask = MaskChange::step;
  o.solver = SolverOptions{.method = SolverMethod::rk4};
  o.solver->fixed_step = 0.01;
  const double without = forecast(model, o, ignore_progress).sd(200, 0);
  o.transition_noise = true;  // 1e-8: no spread of its own
  // Two sds of 400 draws: a relative standard error of 5 %.
  EXPECT_NEAR(forecast(model, o, ignore_progress).sd(200, 0) / without, 1, 0.25);
}

TEST(ForecastTest, ContinuesFromTheLastObservation) {
  Model model = decaying_model(2, 0.2);
  ForecastOptions o;
  o.times = regular_times(2, 3, 0.5);
  o.draws = 10;
  Forecast f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.times.front(), model.last_time);
  EXPECT_EQ(f.mean.row(0).transpose(), model.last_state);
  EXPECT_EQ(f.sd.row(0).norm(), 0);
  model.last_state_sd = Vector::Constant(2, 0.1);
  f = forecast(model, o, ignore_progress);
  EXPECT_EQ(f.sd(0, 0), 0.1);
  EXPECT_GT(f.sd(1, 0), 0.01);
}

TEST(ForecastTest, UnitsOfTheUserComeBack) {
  Model model = decaying_model(1, 0.25);
  ForecastOptions o = until(2);
  const Forecast plain = forecast(model, o, ignore_progress);
  model.scaling = {Vector::Constant(1, 100.0), Vector::Constant(1, 8.0)};  // u = 100 + 8 v
  o.init = Vector::Constant(1, 108.0);
  const Forecast scaled = forecast(model, o, ignore_progress);
  EXPECT_LT((scaled.mean - (100 + 8 * plain.mean.array()).matrix()).norm(), 1e-10);
  EXPECT_LT((scaled.sd - 8 * plain.sd).norm(), 1e-12);
}

TEST(ForecastTest, QuantilesAreNumPysDefault) {
  // Ten starts through a still field: the draws are the starts.
  Model model = decaying_model(1, 0);
  model.network().layers[1].weights.setZero();
  ForecastOptions o = until(0.5, 0.5);
  o.draws = 10;
  o.level = 0.5;
  o.init_sd = Vector::Ones(1);
  const Forecast f = forecast(model, o, ignore_progress);
  std::vector<double> starts;
  for (std::uint64_t k = 0; k < 10; ++k)
    starts.push_back(1 + Stream(1, Purpose::initial_state, k).normal());
  std::sort(starts.begin(), starts.end());
  EXPECT_NEAR(f.q_lower(1, 0), starts[2] + 0.25 * (starts[3] - starts[2]), 1e-14);
  EXPECT_NEAR(f.q_median(1, 0), (starts[4] + starts[5]) / 2, 1e-14);
  EXPECT_NEAR(f.q_upper(1, 0), starts[6] + 0.75 * (starts[7] - starts[6]), 1e-14);
}

TEST(ForecastTest, FilesReadBackBitForBit) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("odecast-forecast-test-" + std::to_string(::getpid()) + ".csv");
  for (const Bands bands : {Bands::both, Bands::sd, Bands::quantiles}) {
    for (const double level : {0.95, 0.9, 0.5, 0.99}) {
      ForecastOptions o = until(2);
      o.bands = bands;
      o.level = level;
      const Forecast f = forecast(decaying_model(1, 0.3), o, ignore_progress);
      write_file(path, format_forecast(f));
      const Forecast back = read_forecast(path);
      EXPECT_EQ(back.times, f.times);
      EXPECT_EQ(back.mean, f.mean);
      EXPECT_EQ(back.sd, f.sd);
      EXPECT_EQ(back.lower, f.lower);
      EXPECT_EQ(back.bands, f.bands);
      EXPECT_EQ(back.bands == Bands::quantiles, bands == Bands::quantiles);
      EXPECT_EQ(back.q_upper, f.q_upper);
      EXPECT_EQ(back.alive, f.alive);
      EXPECT_NEAR(back.level, level, 1e-9);
    }
  }
  std::filesystem::remove(path);
}

TEST(ForecastTest, MeanAndPointFieldAreSingleTrajectories) {
  ForecastOptions o = until(2);
  o.solver = SolverOptions{.rtol = 1e-9, .atol = 1e-9};
  const Model model = decaying_model(1, 0.25);
  const auto mean = single_trajectory(model, SingleField::mean, o);
  const auto point = single_trajectory(model, SingleField::point, o);
  EXPECT_NEAR(mean.states(8, 0), std::exp(-0.75 * 2), 1e-7);
  EXPECT_NEAR(point.states(8, 0), std::exp(-2.0), 1e-7);
}

TEST(ForecastTest, RegularTimesEndWhereTheyShould) {
  const auto times = regular_times(0, 10, 0.02);
  EXPECT_EQ(times.size(), 500u);
  EXPECT_EQ(times.back(), 10);
  EXPECT_EQ(regular_times(0, 1, 0.3).size(), 3u);
  EXPECT_EQ(regular_times(5, 5.01, 1).back(), 5.01);
  for (const auto& [start, end, step] : {std::tuple{0.0, 1.0, 0.0},
                                         {0.0, 1.0, -1.0},
                                         {1.0, 1.0, 0.1},
                                         {0.0, 1e9, 1e-9},
                                         {0.0, double(NAN), 0.1}})
    EXPECT_THROW(regular_times(start, end, step), Error);
}

TEST(ForecastTest, OptionsOutOfRangeAreRefused) {
  const Model model = decaying_model(2, 0.2);
  const auto refused = [&](auto change) {
    ForecastOptions o = until(1);
    o.init = Eigen::Vector2d(1, 2);
    change(o);
    EXPECT_THROW(forecast(model, o, ignore_progress), Error);
  };
  refused([](auto& o) { o.init = Vector::Ones(3); });
  refused([](auto& o) { o.init = Eigen::Vector2d(1, NAN); });
  refused([](auto& o) { o.init_sd = Eigen::Vector2d(1, -1); });
  refused([](auto& o) { o.draws = 0; });
  refused([](auto& o) { o.level = 1; });
  refused([](auto& o) { o.times = {}; });
  refused([](auto& o) { o.times = {1, 1}; });
  refused([](auto& o) { o.times = {-1, 1}; });
  refused([](auto& o) { o.bound_factor = 0; });
  refused([](auto& o) { o.attempts_per_draw = 0; });
  refused([](auto& o) { o.draws = 1'000'000'000; });
}

TEST(ForecastTest, SamplesAreDrawsAndChangeNothing) {
  // Few masks (each integrated once), many masks (one by one), random starts: the same rule.
  for (const int n : {1, 8}) {
    const Model model = decaying_model(n, 0.3);
    ForecastOptions o;
    o.init = Vector::Ones(n);
    o.times = regular_times(0, 1, 0.25);
    o.draws = 200;
    for (const bool random : {false, true}) {
      o.init_sd = random ? std::optional<Vector>(Vector::Constant(n, 0.1)) : std::nullopt;
      o.samples = 0;
      const Forecast without = forecast(model, o, ignore_progress);
      EXPECT_TRUE(without.samples.empty());
      o.samples = 7;
      o.threads = 2;
      const Forecast with = forecast(model, o, ignore_progress);
      EXPECT_EQ(with.mean, without.mean);
      EXPECT_EQ(with.q_upper, without.q_upper);
      ASSERT_EQ(with.samples.size(), 7u);
      // The same draws as a forecast of just two keeps: the first ones.
      o.draws = 2;
      o.samples = 2;
      const Forecast two = forecast(model, o, ignore_progress);
      o.draws = 200;
      for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(two.samples[k], with.samples[k]);
      // Lanes sum in another order than matrices.
      EXPECT_LT(
          ((two.samples[0] + two.samples[1]) / 2 - two.mean).bottomRows(4).cwiseAbs().maxCoeff(),
          1e-14);
      for (const Matrix& sample : with.samples) {
        ASSERT_EQ(sample.rows(), 5);
        if (!random) {
          EXPECT_EQ(sample.row(0), Vector::Ones(n).transpose());
        }
        EXPECT_TRUE((sample.row(4).array() <= sample.row(0).array()).all());
      }
    }
  }
}

TEST(ForecastTest, SamplesOfEnumeratedMasksAreTheMostProbable) {
  ForecastOptions o = until(1);
  o.masks = MaskSource::enumerated;
  o.samples = 3;
  o.solver = SolverOptions{.rtol = 1e-8, .atol = 1e-8};
  const Forecast f = forecast(decaying_model(1, 0.3), o, ignore_progress);
  ASSERT_EQ(f.samples.size(), 3u);  // both units kept (.49), then one of them (.21 each)
  EXPECT_NEAR(f.samples[0](4, 0), std::exp(-1.0), 1e-6);
  EXPECT_NEAR(f.samples[1](4, 0), std::exp(-0.5), 1e-6);
  EXPECT_NEAR(f.samples[2](4, 0), std::exp(-0.5), 1e-6);
}

TEST(ForecastTest, SamplesThatBlowUpAreShortOrLeftOut) {
  ForecastOptions o = until(2, 0.1);
  o.samples = 20;
  o.draws = 20;
  const Model model = exploding_model(0.5);  // half of the draws have a pole at t = 1
  for (const Matrix& sample : forecast(model, o, ignore_progress).samples)
    EXPECT_EQ(sample.rows(), 21);
  o.blow_up = BlowUp::until;
  int ended = 0;
  for (const Matrix& sample : forecast(model, o, ignore_progress).samples) {
    ended += sample.rows() < 21;
    EXPECT_GE(sample.rows(), 10);
  }
  EXPECT_GT(ended, 0);
  EXPECT_LT(ended, 20);
  o.samples = -1;
  EXPECT_THROW(forecast(model, o, ignore_progress), Error);
}

// du/dt = u from N(0, 0.1²): the spread is 0.1 eᵗ and passes 0.4 of the data's sd 1 at ln 4. The sd
// of 1000 draws has a relative error of 1 / √2000, and so has eᵗ.
TEST(HorizonTest, IsWhereTheSpreadPassesAShareOfTheDatasSd) {
  Model model = decaying_model(1, 0);
  model.network().layers[1].weights *= -1;
  model.sd = Vector::Ones(1);
  model.size = Vector::Constant(1, 50);  // far from 0 it says nothing of what the data vary by
  ForecastOptions o;
  o.init = Vector::Zero(1);
  o.init_sd = Vector::Constant(1, 0.1);
  for (int k = 1; k <= 300; ++k) o.times.push_back(0.01 * k);
  EXPECT_NEAR(forecast(model, o, ignore_progress).horizon, std::log(4),
              0.01 + 5 / std::sqrt(2000.0));
  o.init_sd = Vector::Constant(1, 0.5);
  EXPECT_EQ(forecast(model, o, ignore_progress).horizon, 0);
  model.sd[0] = 100;
  EXPECT_TRUE(std::isinf(forecast(model, o, ignore_progress).horizon));
  model.sd = {};
  o.init_sd = Vector::Constant(1, 5);
  EXPECT_NEAR(forecast(model, o, ignore_progress).horizon, std::log(4),
              0.01 + 5 / std::sqrt(2000.0))
      << "the size stands in";
}

TEST(ForecastTest, NoNumberThatIsNoneLeaves) {
  Model model = decaying_model(1, 0.3);
  model.scaling.scale[0] = 1.7e308;  // mean + c sd is more than any double
  ForecastOptions o = until(1);
  o.init = Vector::Constant(1, 1.7e308);
  o.level = 0.999999;
  EXPECT_THROW(forecast(model, o, ignore_progress), Error);
  model.scaling.scale[0] = 1;
  o.init = Vector::Ones(1);
  o.level = 1 - 0x1p-53;  // (1 + level) / 2 is 1
  EXPECT_THROW(forecast(model, o, ignore_progress), Error);
}

TEST(ForecastTest, ASingleTrajectoryThatOverflowsIsAnError) {
  Model model = decaying_model(1, 0);
  model.network().layers[1].weights *= -1;  // grows
  model.scaling.scale[0] = 1e308;
  ForecastOptions o = until(2);
  o.init = Vector::Constant(1, 1e308);
  EXPECT_THROW(single_trajectory(model, SingleField::mean, o), Error);
}

TEST(ForecastTest, BandsOfObservationsWhereTheModelKnowsItsNoise) {
  Model model = forced_model(-1, 0.01, 0.1);
  ForecastOptions o;
  o.times = {2.5, 3};
  o.draws = 50;
  EXPECT_EQ(forecast(model, o).observed_lower.size(), 0);
  model.noise = Vector::Constant(1, 0.3);
  Forecast f = forecast(model, o);
  const double c = normal_quantile(0.975);
  ASSERT_EQ(f.bands, Bands::quantiles);
  for (int t = 0; t < 3; ++t)
    EXPECT_NEAR(f.observed_upper(t, 0) - f.q_median(t, 0),
                std::hypot(f.q_upper(t, 0) - f.q_median(t, 0), c * 0.3), 1e-12);
  o.bands = Bands::sd;
  f = forecast(model, o);
  for (int t = 0; t < 3; ++t)
    EXPECT_NEAR(f.observed_upper(t, 0) - f.mean(t, 0), c * std::hypot(f.sd(t, 0), 0.3), 1e-12);
  o.bands = Bands::both;
  // Their quantiles cost more and are for those who ask.
  EXPECT_EQ(f.observed_q_lower.size(), 0);
  o.noise = model.noise;
  EXPECT_GT(forecast(model, o).observed_q_lower.size(), 0);
  o.noise = Vector::Zero(1);
  EXPECT_EQ(forecast(model, o).observed_lower.size(), 0);
  // Round-off is not noise.
  o.noise.reset();
  model.noise = Vector::Constant(1, 1e-13);
  EXPECT_EQ(forecast(model, o).observed_lower.size(), 0);
}

TEST(ForecastTest, BandsOfObservationsFollowNoiseThatGrowsWithTheState) {
  Model model = forced_model(-1, 0.01, 0.1);
  model.noise = Vector::Constant(1, 0.3);
  model.size = Vector::Constant(1, 2);
  model.relative_noise = Vector::Constant(1, 0.75);
  ForecastOptions o;
  o.bands = Bands::sd;
  o.times = {2.5, 3};
  o.draws = 50;
  const Forecast f = forecast(model, o);
  const double c = normal_quantile(0.975);
  for (int t = 0; t < 3; ++t) {
    const double u = f.mean(t, 0), noise = 0.3 * std::sqrt(0.25 + 0.75 * u * u / 4);
    EXPECT_NEAR(f.observed_upper(t, 0) - u, c * std::hypot(f.sd(t, 0), noise), 1e-12);
  }
  // Noise that is given is what it is.
  o.noise = Vector::Constant(1, 0.2);
  const Forecast given = forecast(model, o);
  EXPECT_NEAR(given.observed_upper(1, 0) - given.mean(1, 0), c * std::hypot(given.sd(1, 0), 0.2),
              1e-12);
}

TEST(ForecastTest, BandsOfObservationsWithNoiseOfTheLogarithm) {
  // s = noise/size = 0.3: an observation of u is u exp(0.3 ε).
  Model model = forced_model(-1, 1e-9, 0.1);
  model.noise = Vector::Constant(1, 0.6);
  model.size = Vector::Constant(1, 2);
  model.relative_noise = Vector::Ones(1);
  model.log_noise = {true};
  ForecastOptions o;
  o.times = {2.5, 3};
  o.draws = 50;
  const double factor = std::exp(normal_quantile(0.975) * 0.3);
  Forecast f = forecast(model, o);
  for (int t = 0; t < 3; ++t) {
    EXPECT_NEAR(f.observed_upper(t, 0), f.mean(t, 0) * factor, 1e-8);
    EXPECT_NEAR(f.observed_lower(t, 0), f.mean(t, 0) / factor, 1e-8);
  }
  const auto normal = [](double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); };
  // Where the draws differ, the quantiles are those of the mixture: Σ Φ((ln q - ln u_k)/s) = p.
  model.trajectory->forcing.sd[0] = 0.05;
  o.noise = model.noise;
  o.samples = o.draws;
  f = forecast(model, o);
  ASSERT_EQ(f.samples.size(), 50u);
  for (int t = 1; t < 3; ++t) {
    double below = 0, above = 0;
    for (const Matrix& u : f.samples) {
      below += normal(std::log(f.observed_q_lower(t, 0) / u(t, 0)) / 0.3) / 50;
      above += normal(std::log(u(t, 0) / f.observed_q_upper(t, 0)) / 0.3) / 50;
    }
    EXPECT_NEAR(below, 0.025, 1e-6);
    EXPECT_NEAR(above, 0.025, 1e-6);
    EXPECT_LT(f.observed_lower(t, 0), f.lower(t, 0));
    EXPECT_GT(f.observed_upper(t, 0), f.upper(t, 0));
  }
  // Noise that is given is what it is.
  o.noise = Vector::Constant(1, 0.2);
  o.bands = Bands::sd;
  f = forecast(model, o);
  EXPECT_NEAR(f.observed_upper(1, 0) - f.mean(1, 0), f.mean(1, 0) - f.observed_lower(1, 0), 1e-12);
}

TEST(ForecastTest, ABandWiderThanThreeClimatologiesIsNotToBeTrusted) {
  // u' = a u from 0.5 with a = ±2: half of the draws grow, half decay.
  Model model = forced_model(-1, 1e-9, 0.1);
  model.trajectory->forcing = {};
  model.law = PolynomialPart{1,
                             {{{{0, 1}}, Vector::Constant(1, 2), Matrix::Zero(1, 1)},
                              {{{0, 1}}, Vector::Constant(1, -2), Matrix::Zero(1, 1)}}};
  for (CoefficientSet& set : model.polynomial()->sets) set.weight = 0.5;
  model.sd = Vector::Constant(1, 0.3);
  ForecastOptions o;
  o.draws = 200;
  // The sd is about half of the larger, 0.25 e^(2t): where the mean has moved as far, it counts.
  o.times = regular_times(2, 3, 0.1);
  EXPECT_EQ(forecast(model, o).status, ForecastStatus::complete);
  // u' = ±20: the mean stays, and the draws leave.
  model.law = PolynomialPart{1,
                             {{{{0, 0}}, Vector::Constant(1, 20), Matrix::Zero(1, 1)},
                              {{{0, 0}}, Vector::Constant(1, -20), Matrix::Zero(1, 1)}}};
  for (CoefficientSet& set : model.polynomial()->sets) set.weight = 0.5;
  const Forecast wide = forecast(model, o);
  EXPECT_EQ(wide.status, ForecastStatus::wide) << wide.reason;
  EXPECT_NE(wide.reason.find("times as far as the data do"), std::string::npos);
}

/// u' = u v - 8 u, v' = 1 from (1, 0): u = exp(t²/2 - 8 t) falls to 1e-14 at t = 8 and is 1 again
/// at t = 16. An error of 1e-9 at t = 8 is one of 1e5 then.
TEST(ForecastTest, WhatDecaysAndReturnsIsFollowedAllTheWay) {
  Model model = make_model(decaying_model(2, 0).network());
  const Matrix covariance = Eigen::Vector3d(1e-10, 1e-10, 1e-10).asDiagonal();
  model.law = PolynomialPart{2,
                             {{{{0, 1}, {0, 4}, {1, 0}},
                               Eigen::Vector3d(-8, 1, 1),
                               covariance}}};  // monomials 1, u, v, u², u v, v²
  model.sd = Eigen::Vector2d(0.3, 4);
  ForecastOptions o;
  o.init = Eigen::Vector2d(1, 0);
  o.times = regular_times(0, 16, 0.5);
  o.draws = 200;
  const Forecast f = forecast(model, o);
  const Eigen::Index end = f.mean.rows() - 1;
  // At t = 16 sd(ln u) = (t²/2 + t) 1e-5 or so.
  EXPECT_NEAR(f.mean(end, 0), 1, 0.01);
  EXPECT_LT(f.sd(end, 0), 0.01);
  EXPECT_LT(f.atol, 1e-6 * default_solver(model).atol);
  o.check_tolerances = false;
  const Forecast rough = forecast(model, o);
  EXPECT_EQ(rough.atol, default_solver(model).atol);
  EXPECT_GT(std::abs(rough.mean(end, 0) - 1), 10 * std::abs(f.mean(end, 0) - 1));
  // Where nothing of the kind happens, nothing changes.
  o.times = regular_times(0, 2, 0.5);
  const Forecast unchecked = forecast(model, o);
  o.check_tolerances = true;
  EXPECT_EQ(forecast(model, o).mean, unchecked.mean);
}

/// u' = a u from 1 with a = -1, of one draw in eleven or so 1: the mean and its sd follow those,
/// the quantiles at 5 and 95 % and the median do not until t = 3, say.
Model with_few_that_grow() {
  Model model = forced_model(-1, 1e-9, 0.1);
  model.trajectory->forcing = {};
  model.law = PolynomialPart{1,
                             {{{{0, 1}}, Vector::Constant(1, -1), Matrix::Zero(1, 1)},
                              {{{0, 1}}, Vector::Constant(1, 1), Matrix::Zero(1, 1)}}};
  model.polynomial()->sets[0].weight = 0.97;
  model.polynomial()->sets[1].weight = 0.03;
  model.last_state = Vector::Ones(1);
  return model;
}

TEST(ForecastTest, QuantilesAreTheBandOfLearntEquationsAndMeanAndSdThatOfNetworks) {
  const Model learnt = with_few_that_grow(), network = decaying_model(1, 0.3);
  EXPECT_EQ(default_bands(learnt), Bands::quantiles);
  EXPECT_EQ(default_bands(network), Bands::both);
  ForecastOptions o;
  o.times = {3, 5};
  o.level = 0.9;
  Forecast f = forecast(learnt, o);
  EXPECT_EQ(f.bands, Bands::quantiles);
  EXPECT_EQ(f.lower, f.q_lower);
  EXPECT_EQ(f.upper, f.q_upper);
  EXPECT_NEAR(f.upper(2, 0), std::exp(-3), 1e-6) << "3 in 100 are beyond the quantile";
  EXPECT_GT(f.mean(2, 0) + f.sd(2, 0), 1);
  EXPECT_NEAR(spread_of(f)(2, 0), 0, 1e-6);
  o.bands = Bands::sd;
  f = forecast(learnt, o);
  EXPECT_EQ(f.bands, Bands::sd);
  EXPECT_EQ(f.q_lower.size(), 0);
  EXPECT_GT(f.upper(2, 0), 1);
  o.bands.reset();
  f = forecast(network, o);
  EXPECT_EQ(f.bands, Bands::sd);
  EXPECT_EQ(f.upper, f.mean + band_factor(0.9) * f.sd);
  EXPECT_GT(f.q_lower.size(), 0);
}

TEST(ForecastTest, CalibrationWidensTheDistancesOfTheQuantiles) {
  Model model = forced_model(-1, 0.05, 0.1);
  model.calibration = CalibrationPart{.level = 0.95, .starts = 100, .bands = Bands::quantiles};
  model.calibration->leads = {1};
  model.calibration->factors = Matrix::Constant(1, 1, 1.5);
  model = model_from_text(model_to_text(model), "test");
  ForecastOptions o;
  o.times = {2.5, 3};
  const Forecast f = forecast(model, o);
  ASSERT_TRUE(f.calibrated);
  for (Eigen::Index t = 1; t < 3; ++t) {
    const double middle = f.q_median(t, 0), floor = kCalibrationFloor * model.size[0];
    EXPECT_NEAR(f.upper(t, 0), middle + 1.5 * (f.q_upper(t, 0) - middle + floor), 1e-12);
    EXPECT_NEAR(f.lower(t, 0), middle - 1.5 * (middle - f.q_lower(t, 0) + floor), 1e-12);
  }
  // Factors of one kind of band say nothing of the other.
  o.bands = Bands::sd;
  EXPECT_FALSE(forecast(model, o).calibrated);
  model.calibration->bands = Bands::sd;
  EXPECT_TRUE(forecast(model, o).calibrated);
  EXPECT_EQ(default_bands(model), Bands::both);
}

TEST(ForecastTest, DrawsTenRangesFromTheDataHaveBlownUp) {
  Model model = with_few_that_grow();
  model.observed = KeptRows{.from = 0, .until = 2};
  model.observed->low = Vector::Zero(1);
  model.observed->high = Vector::Ones(1);  // 11 is ten ranges away: u = e^t there at t = 2.4
  ForecastOptions o;
  for (int k = 1; k <= 50; ++k) o.times.push_back(2 + 0.1 * k);
  o.blow_up = BlowUp::until;
  const Forecast f = forecast(model, o);
  ASSERT_GT(f.discarded, 0);
  for (const double t : f.blow_up_times) EXPECT_NEAR(t, 4.4, 1e-9);
  EXPECT_EQ(f.alive[24], 1 - f.discard_probability);
  EXPECT_EQ(f.alive[23], 1);
  EXPECT_LT(f.mean.col(0).maxCoeff(), 1 + 0.1 * 11);
  // Where the equations themselves go there, nothing is cut, nor without the range of the data.
  std::swap(model.polynomial()->sets[0].theta, model.polynomial()->sets[1].theta);
  EXPECT_EQ(forecast(model, o).discarded, 0);
  std::swap(model.polynomial()->sets[0].theta, model.polynomial()->sets[1].theta);
  model.observed->low = model.observed->high = {};
  EXPECT_EQ(forecast(model, o).discarded, 0);
}

TEST(ForecastTest, AStartFarFromAllRowsIsSaid) {
  Model model = predator_model();
  model.observed = KeptRows{.from = 0, .until = 20};
  model.observed->sample = predators(100, 0.2).states;  // one orbit, in steps of up to an sd or so
  ForecastOptions o;
  o.init = model.observed->sample.row(7).transpose();
  o.from = 0;
  o.times = {0.1, 0.2};
  EXPECT_EQ(forecast(model, o).status, ForecastStatus::complete);
  EXPECT_LT(forecast(model, o).distance->nearest, 1e-5);
  o.init = Eigen::Vector2d(35, 35);
  Forecast f = forecast(model, o);
  EXPECT_EQ(f.status, ForecastStatus::far);
  EXPECT_TRUE(is_away(*f.distance));
  EXPECT_NE(f.reason.find("nearest row"), std::string::npos);
  // By the definition.
  double nearest = 1e300;
  for (Eigen::Index j = 0; j < 100; ++j)
    nearest = std::min(
        nearest,
        (*o.init - model.observed->sample.row(j).transpose()).cwiseQuotient(model.sd).norm());
  EXPECT_NEAR(f.distance->nearest, nearest, 1e-12);
  // Nearer it is said without distrust.
  o.init = Eigen::Vector2d(10, 10);
  f = forecast(model, o);
  EXPECT_EQ(f.status, ForecastStatus::complete);
  EXPECT_TRUE(is_away(*f.distance)) << f.distance->nearest << " " << f.distance->usual;
  // One that continues is where the data end.
  o.init.reset();
  o.from.reset();
  o.times = {2.1};
  EXPECT_FALSE(forecast(model, o).distance.has_value());
}

/// Rows on the unit circle with noise. The centre u' = v, v' = -u keeps it; the circle is the limit
/// cycle of x' = x - y - x r², y' = x + y - y r² as well, and starts off it tell them apart.
TEST(ForecastTest, AStartOffTheSurfaceThatAllRowsLieOnIsSaid) {
  Model model = predator_model();
  const auto law = [](double damping) {
    CoefficientSet set{
        {{0, 2}, {1, 1}, {1, 2}}, Eigen::Vector3d(1, -1, damping), 1e-8 * Matrix::Identity(3, 3)};
    return PolynomialPart{1, {set}};
  };
  model.law = law(0);
  model.sd = Eigen::Vector2d(0.7, 0.7);
  model.noise = Eigen::Vector2d(0.03, 0.03);
  model.observed = KeptRows{.from = 0, .until = 20};
  Matrix& rows = model.observed->sample = Matrix(128, 2);
  Stream stream(1, Purpose::observation_noise, 0);
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    const double angle = 2 * std::numbers::pi * stream.uniform();
    rows.row(k) << std::cos(angle) + 0.03 * stream.normal(),
        std::sin(angle) + 0.03 * stream.normal();
  }
  ForecastOptions o;
  o.times = {0.1, 0.2};
  for (const auto& [radius, off] :
       {std::pair{1.0, false}, {1.02, false}, {1.15, true}, {0.5, true}}) {
    o.init = radius * Eigen::Vector2d(0.6, -0.8);
    const Forecast f = forecast(model, o);
    EXPECT_EQ(f.status == ForecastStatus::off_surface, off) << radius << " " << f.off_surface;
    // g = r² - 1 has the slope 2 r: (r² - 1) / (2 r σ), known from 128 rows to a few per cent.
    const double expected = std::abs(radius * radius - 1) / (2 * radius * 0.03);
    EXPECT_NEAR(f.off_surface, expected, 0.3 + 0.1 * expected);
  }
  // Equations that do not keep it know what happens off it, and rows elsewhere are no such surface.
  model.law = law(-0.3);
  EXPECT_TRUE(std::isnan(forecast(model, o).off_surface));
  model.law = law(0);
  rows.topRows(64) *= 0.7;
  EXPECT_TRUE(std::isnan(forecast(model, o).off_surface));
  EXPECT_EQ(forecast(model, o).status, ForecastStatus::complete);
}

TEST(ForecastTest, DrawsOfTwoKindsAreSaid) {
  // u' = v, v' = -u + a v: with a = -1 at rest after t = 10, with a = 0 never.
  Model model = predator_model();
  const auto damped = [](double a) {
    return CoefficientSet{{{0, 2}, {1, 1}, {1, 2}}, Eigen::Vector3d(1, -1, a), Matrix::Zero(3, 3)};
  };
  model.law = PolynomialPart{1, {damped(-1), damped(0)}};
  for (CoefficientSet& set : model.polynomial()->sets) set.weight = 0.5;
  model.sd = Eigen::Vector2d(0.7, 0.7);
  model.last_state = Eigen::Vector2d(1, 0);
  ForecastOptions o;
  o.times = regular_times(2, 42, 0.5);
  o.draws = 200;
  const Forecast f = forecast(model, o);
  EXPECT_EQ(f.status, ForecastStatus::kinds) << f.reason;
  EXPECT_NEAR(f.at_rest, 0.5, 5 * 0.5 / std::sqrt(200.0));
  EXPECT_NEAR(f.at_rest + f.moving, 1, 1e-12);
  // While both still move they are one.
  o.times = regular_times(2, 5, 0.05);
  EXPECT_EQ(forecast(model, o).status, ForecastStatus::complete);
  for (const double a : {-1.0, 0.0}) {
    model.law = PolynomialPart{1, {damped(a)}};
    model.polynomial()->sets[0].weight = 1;
    o.times = regular_times(2, 42, 0.5);
    EXPECT_EQ(forecast(model, o).status, ForecastStatus::complete) << a;
  }
}

/// Van der Pol's oscillator at μ = 1000, known to 1e-6 of each coefficient: the slow part and a
/// jump.
TEST(ForecastTest, StiffEquationsAreIntegratedImplicitly) {
  constexpr double mu = 1000;
  Model m = make_model(decaying_model(2, 0).network());
  const MonomialBasis basis(2, 3);
  CoefficientSet set{{{0, basis.find({0, 1})},
                      {1, basis.find({1, 0})},
                      {1, basis.find({0, 1})},
                      {1, basis.find({2, 1})}},
                     Eigen::Vector4d(1, -1, mu, -mu)};
  set.covariance = (1e-6 * set.theta).cwiseAbs2().asDiagonal();
  m.law = PolynomialPart{3, {set}};
  m.sd = m.size = Eigen::Vector2d(1.6, 30);
  m.data_scale = 1500;
  ForecastOptions o;
  o.init = Eigen::Vector2d(2, 0);
  o.times = regular_times(0, 1600, 20);
  o.draws = 20;
  const Forecast f = forecast(m, o);
  EXPECT_EQ(f.status, ForecastStatus::complete);
  EXPECT_EQ(f.method, SolverMethod::radau);
  // The jump is at 807.
  SolverOptions explicitly;
  explicitly.rtol = explicitly.atol = 1e-10;
  explicitly.max_steps = 100'000'000;
  const auto mean = make_posterior(m)->point_field();
  const double times[] = {600, 1000};
  const Solution truth = solve(mean, 0, *o.init, times, explicitly);
  ASSERT_EQ(truth.status, SolveStatus::finished);
  for (int k = 0; k < 2; ++k) {
    const auto at = std::find(f.times.begin(), f.times.end(), times[k]) - f.times.begin();
    EXPECT_NEAR(f.mean(at, 0), truth.states(k, 0), 1e-3);
    EXPECT_GE(truth.states(k, 0), f.lower(at, 0) - 1e-6);
    EXPECT_LE(truth.states(k, 0), f.upper(at, 0) + 1e-6);
  }
  o.check_stiffness = false;
  o.draws = 2;
  EXPECT_NE(forecast(m, o).status, ForecastStatus::complete) << "100,000 steps are not enough";
}

TEST(ForecastTest, PredatorsAndPreyThatNearlyDieOutReturn) {
  const Model model = predator_model();
  const Trajectory truth = predators(301, 0.5);
  EXPECT_LT(truth.states.minCoeff(), 2e-12);
  ForecastOptions o;
  o.init = model.last_state;
  o.times.assign(truth.times.begin() + 1, truth.times.end());
  o.draws = 50;
  o.solver = default_solver(model);
  const Forecast f = forecast(model, o);
  EXPECT_EQ(f.status, ForecastStatus::complete) << f.reason;
  EXPECT_EQ(f.discarded, 0);
  // sd of the logarithms: times up to 150 and coefficients known to 1e-6.
  const auto off = ((f.q_median.array() / truth.states.array()).log()).abs();
  EXPECT_LT(off.maxCoeff(), 0.01);
  EXPECT_TRUE((f.q_lower.array() > 0).all());
  // With the tolerance in units of the data they do not.
  o.check_tolerances = false;
  const Forecast rough = forecast(model, o);
  EXPECT_FALSE(rough.times.size() == f.times.size() && (rough.q_lower.array() > 0).all() &&
               ((rough.q_median.array() / truth.states.array()).log()).abs().maxCoeff() < 0.01);
}

TEST(ForecastTest, EquationsThatMostlyBlowUpAreNotToBeTrusted) {
  // u' = θ u² from 1: a pole at t = 1/θ where θ > 0, which half of the draws have before t = 10.
  Model model = make_model(decaying_model(1, 0).network());
  model.law = PolynomialPart{2, {{{{0, 2}}, Vector::Zero(1), Matrix::Constant(1, 1, 1)}}};
  model.last_state = Vector::Ones(1);
  ForecastOptions o;
  o.times = {12};
  o.draws = 100;
  const Forecast f = forecast(model, o);
  EXPECT_GT(f.discard_probability, kMostBlowUps);
  EXPECT_EQ(f.status, ForecastStatus::unstable);
  EXPECT_NE(f.reason.find("blew up"), std::string::npos);
  // The paper's masks do so often, and are discarded as the paper says.
  EXPECT_EQ(forecast(exploding_model(0.5), o).status, ForecastStatus::complete);
}

}  // namespace
}  // namespace odecast
