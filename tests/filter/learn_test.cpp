// Filters whose coefficients move: linear systems against Kalman's filter and the smoother of
// Rauch, Tung and Striebel, changes of a chaotic one, and the models that come out.
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "filter/lorenz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/filter/filter_file.hpp"
#include "odecast/filter/model_after.hpp"
#include "odecast/filter/state_file.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast {
namespace {

/// du/dt = θ: what is known of θ is linear in u, so that filters are exact.
Model drifting() {
  CoefficientSet set{{{0, 0}}, Vector::Constant(1, 0.7), Matrix::Constant(1, 1, 0.04)};
  Model m = known({set}, 1, 1);
  m.noise = Vector::Constant(1, 0.1);
  m.sd = Vector::Ones(1);
  return m;
}

/// With z = (u, θ): z ← F z, F = (1 Δ; 0 1), θ's variance grows by what it drifts; then a row.
TEST(LearningFilterTest, OfALinearSystemIsKalmansFilter) {
  const Model model = drifting();
  for (const FilterMethod method : {FilterMethod::kalman, FilterMethod::iterated}) {
    for (const double drift : {0.0, 0.3}) {
      Filter filter(model, all_of(model),
                    {.method = method,
                     .members = 12,
                     .init = Vector::Constant(1, 0.2),
                     .init_sd = Vector::Constant(1, 0.5),
                     .learn = true,
                     .drift = drift,
                     .inflation = 1});
      filter.update(0, Vector::Constant(1, kNaN));
      EnsembleMoments z = ensemble_moments(filter.state().members);
      Stream stream(5, Purpose::observation_noise, 0);
      double time = 0;
      for (int k = 0; k < 40; ++k) {
        const double gap = 0.1 * (1 + k % 3);
        time += gap;
        Eigen::Matrix2d F;
        F << 1, gap, 0, 1;
        z.covariance(1, 1) += drift * drift * gap * 0.04;
        z.mean = F * z.mean;
        z.covariance = (F * z.covariance * F.transpose()).eval();
        const double y = time + 0.1 * stream.normal();
        filter.update(time, Vector::Constant(1, y));
        const Vector gain = z.covariance.col(0) / (z.covariance(0, 0) + 0.01);
        z.mean += gain * (y - z.mean[0]);
        z.covariance -= (gain * z.covariance.row(0)).eval();
        const EnsembleMoments found = ensemble_moments(filter.state().members);
        ASSERT_LT((found.mean - z.mean).cwiseAbs().maxCoeff(), 1e-10) << k;
        ASSERT_LT((found.covariance - z.covariance).cwiseAbs().maxCoeff(), 1e-10) << k;
      }
      const LearntCoefficients learnt = learnt_coefficients(filter);
      EXPECT_NEAR(learnt.mean[0], 1, 4 * learnt.sd[0]) << "it is 1 in the rows";
    }
  }
}

TEST(LearningFilterTest, ALagIsTheSmootherOfRauchTungAndStriebel) {
  const Model model = turning();
  Eigen::Matrix2d M;
  M << 0.95, 0.2, -0.25, 0.9;
  constexpr int kLag = 4;
  for (const FilterMethod method : {FilterMethod::kalman, FilterMethod::iterated}) {
    Filter filter(model, all_of(model),
                  {.method = method, .members = 20, .lag = kLag, .inflation = 1});
    filter.update(0, Eigen::Vector2d(kNaN, kNaN));
    EnsembleMoments start = ensemble_moments(filter.state().members);
    start = {start.mean.head(2), start.covariance.topLeftCorner(2, 2)};
    std::vector<EnsembleMoments> before = {start}, after = {start};
    Stream stream(3, Purpose::observation_noise, 0);
    for (int k = 1; k <= 30; ++k) {
      const Matrix C = M * after.back().covariance * M.transpose();
      before.push_back({M * after.back().mean, C});
      EnsembleMoments now = before.back();
      Vector y = 0.5 * Eigen::Vector2d(stream.normal(), stream.normal());
      if (k % 3 == 1) y[k % 2] = kNaN;
      for (int i = 0; i < 2; ++i) {
        if (std::isnan(y[i])) continue;
        const Vector gain = now.covariance.col(i) / (now.covariance(i, i) + 0.25);
        now.mean += gain * (y[i] - now.mean[i]);
        now.covariance -= (gain * now.covariance.row(i)).eval();
      }
      after.push_back(now);
      const FilterRow row = filter.update(k, y);
      ASSERT_EQ(row.past.has_value(), k >= kLag);
      if (!row.past) continue;
      EnsembleMoments smooth = now;
      for (int j = k - 1; j >= k - kLag; --j) {
        const auto J = static_cast<std::size_t>(j);
        const Matrix gain =
            after[J].covariance * M.transpose() * before[J + 1].covariance.inverse();
        smooth = {after[J].mean + gain * (smooth.mean - before[J + 1].mean),
                  after[J].covariance +
                      gain * (smooth.covariance - before[J + 1].covariance) * gain.transpose()};
      }
      ASSERT_LT((row.past->mean - smooth.mean).cwiseAbs().maxCoeff(), 1e-10) << k;
      ASSERT_LT((row.past->sd - smooth.covariance.diagonal().cwiseSqrt()).cwiseAbs().maxCoeff(),
                1e-10)
          << k;
    }
    const std::vector<StateBand> rest = filter.recent();
    EXPECT_EQ(rest.size(), static_cast<std::size_t>(kLag));
  }
}

TEST(LearningFilterTest, WhatIsAheadIsWhatTheNextRowFinds) {
  const Model model = lorenz();
  const Matrix rows = lorenz_rows(20, 0.1, 1, 1);
  Filter filter(model, all_of(model), {.method = FilterMethod::kalman, .ahead = 0.1});
  std::optional<StateBand> before;
  for (int k = 0; k < 20; ++k) {
    const FilterRow row = filter.update(0.1 * k, rows.row(k).transpose());
    if (before) {
      EXPECT_LT((before->mean - row.forecast).cwiseAbs().maxCoeff(), 1e-9);
      EXPECT_LT((before->sd - row.forecast_sd).cwiseAbs().maxCoeff(), 1e-9);
    }
    before = row.ahead;
  }
}

/// What the rows are of has ρ = 33; the model says 28, with an sd of 0.05.
TEST(LearningFilterTest, CoefficientsFollowAChangeAndSayIt) {
  const Model model = doubtful_lorenz();
  const Matrix before = lorenz_rows(300, 0.1, 1, 7),
               after = lorenz_rows(300, 0.1, 1, 8, nullptr, 33);
  Filter filter(model, all_of(model), {.learn = true});
  EXPECT_EQ(filter.method(), FilterMethod::iterated);
  int said = 0;
  double squares = 0;
  for (int k = 0; k < 600; ++k) {
    const Vector y = (k < 300 ? before.row(k) : after.row(k - 300)).transpose();
    const FilterRow row = filter.update(0.1 * k, y);
    // The state jumps, too: that is one surprise more, of the first row.
    if (k > 20 && k < 300) {
      EXPECT_NE(row.status, FilterStatus::lost) << k;
    } else if (k >= 300 && said == 0 && row.status != FilterStatus::ok) {
      said = k - 299;
    }
    if (k >= 400) squares += (row.forecast - y).cwiseAbs2().sum() / (200 * 3);
  }
  EXPECT_GE(said, 1);
  EXPECT_LE(said, 10);
  EXPECT_LT(std::sqrt(squares), 1.5) << "rows have an sd of 1";
  const LearntCoefficients learnt = learnt_coefficients(filter);
  const auto rho = std::find(filter.terms().begin(), filter.terms().end(), FieldTerm{1, 1});
  const auto at = rho - filter.terms().begin();
  EXPECT_NEAR(learnt.mean[at], 33, 4 * learnt.sd[at]);
  EXPECT_LT(learnt.sd[at], 1);

  const Model now = model_after(filter);
  EXPECT_NEAR(now.last_time, 59.9, 1e-9);
  EXPECT_EQ(now.polynomial()->sets.size(), 1U);
  const Model read = model_from_text(checked_model_text(now), "text");
  EXPECT_EQ(model_to_text(read), model_to_text(now));
  // State and coefficients of its draws are as far apart as the members.
  const PolynomialPosterior posterior = polynomial_posterior(now);
  EXPECT_LT((posterior.last_state().sd() -
             ensemble_moments(filter.state().members.leftCols(3)).covariance.diagonal().cwiseSqrt())
                .cwiseAbs()
                .maxCoeff(),
            1e-6);
}

TEST(ModelAfterTest, OfAFilterThatDoesNotLearnHasItsState) {
  const Model model = doubtful_lorenz();
  const Matrix rows = lorenz_rows(30, 0.1, 1, 1);
  Filter filter(model, all_of(model), {.members = 200});
  FilterRow row;
  for (int k = 0; k < 30; ++k) row = filter.update(0.1 * k, rows.row(k).transpose());
  const Model after = model_from_text(checked_model_text(model_after(filter)), "text");
  EXPECT_EQ(after.polynomial()->sets[0].theta, model.polynomial()->sets[0].theta);
  EXPECT_NEAR(after.last_time, 2.9, 1e-12);
  const PolynomialPosterior posterior = polynomial_posterior(after);
  const Vector sd = after.scaling.scale.cwiseProduct(posterior.last_state().sd());
  EXPECT_LT((sd - *after.last_state_sd).cwiseAbs().maxCoeff(), 1e-9);
}

/// u' = -θ u + w: coefficients of a driven model are carried with its inputs, whatever stands
/// behind them.
TEST(LearningFilterTest, OfADrivenModelWithALag) {
  CoefficientSet set{{{0, 1}, {0, 2}}, Eigen::Vector2d(-1, 1), 0.01 * Matrix::Identity(2, 2)};
  Model m = known({set}, 1, 1);
  m.inputs.names = {"w"};
  m.inputs.offset = Vector::Zero(1);
  m.inputs.scale = Vector::Ones(1);
  m.size = Vector::Ones(2);
  m.noise = Vector::Constant(1, 1e-2);
  Filter filter(m, all_of(m),
                {.init = Vector::Constant(1, 2), .learn = true, .drift = 0, .lag = 2});
  Stream stream(2, Purpose::observation_noise, 0);
  double u = 2, t = 0;
  for (int k = 0; k <= 200; ++k, t += 0.25) {
    // Exactly, of u' = -1.1 u + w with w held at its value in the middle of the interval.
    const double w = std::sin(t);
    filter.update(t, Vector::Constant(1, u + 0.01 * stream.normal()), Vector::Constant(1, w));
    constexpr int kSteps = 1000;
    for (int s = 0; s < kSteps; ++s) {
      const double part = (s + 0.5) / kSteps, h = 0.25 / kSteps,
                   driven = w + part * (std::sin(t + 0.25) - w);
      u = driven / 1.1 + (u - driven / 1.1) * std::exp(-1.1 * h);
    }
  }
  const LearntCoefficients learnt = learnt_coefficients(filter);
  EXPECT_NEAR(learnt.mean[0], -1.1, 4 * learnt.sd[0]);
  EXPECT_NEAR(learnt.mean[1], 1, 4 * learnt.sd[1]);
  EXPECT_LT(learnt.sd[0], 0.02);
}

/// Of two fields, of which one is right, the draws that survive are those.
TEST(FilterTest, ABankWeighsItsDraws) {
  Model m = lorenz();
  CoefficientSet right = m.polynomial()->sets[0], wrong = right;
  right.covariance = wrong.covariance = {};
  wrong.theta[2] = 24;
  right.weight = wrong.weight = 0.5;
  m.polynomial()->sets = {right, wrong};
  const Matrix rows = lorenz_rows(60, 0.1, 1, 1);
  const FilterOptions o{.members = 400, .bank = true};
  Filter filter(m, all_of(m), o);
  std::string state;
  FilterRow row, resumed;
  for (int k = 0; k < 60; ++k) {
    if (k == 40) state = filter_state_to_text(filter.state(), m, all_of(m), o);
    row = filter.update(0.1 * k, rows.row(k).transpose());
  }
  const PolynomialPosterior posterior = polynomial_posterior(m);
  long of_wrong = 0;
  for (const int draw : filter.state().draws)
    of_wrong += static_cast<long>(posterior.atom_of_draw(o.seed, static_cast<std::uint64_t>(draw)));
  EXPECT_LT(of_wrong, 20);
  Filter again(m, all_of(m), o);
  again.continue_from(filter_state_from_text(state, "state", m, all_of(m), o));
  for (int k = 40; k < 60; ++k) resumed = again.update(0.1 * k, rows.row(k).transpose());
  EXPECT_EQ(resumed.state.mean, row.state.mean);
  EXPECT_THROW(Filter(lorenz(), all_of(m), o), Error) << "infinitely many draws";
  Filter own(m, all_of(m), {.members = 400});
  own.update(0, rows.row(0).transpose());
  EXPECT_TRUE(own.state().draws.empty());
}

/// u' = -u, or u' = u², which is infinite one time unit after u = 1: looking two ahead changes
/// nothing of the filter, though half of its draws blow up there.
TEST(FilterTest, LookingAheadChangesNothing) {
  CoefficientSet falls{{{0, 1}}, Vector::Constant(1, -1)}, rises{{{0, 2}}, Vector::Ones(1)};
  falls.weight = rises.weight = 0.5;
  Model m = known({falls, rises}, 1, 2);
  m.noise = Vector::Constant(1, 0.5);
  for (const bool bank : {true, false}) {
    FilterOptions o{.members = 100, .init = Vector::Ones(1), .bank = bank};
    Filter blind(m, all_of(m), o);
    o.ahead = 2;
    Filter looks(m, all_of(m), o);
    for (int k = 0; k < 8; ++k) {
      const Vector y = Vector::Ones(1);
      const FilterRow a = blind.update(0.1 * k, y), b = looks.update(0.1 * k, y);
      EXPECT_EQ(a.state.mean, b.state.mean) << k;
      EXPECT_EQ(a.state.sd, b.state.sd) << k;
    }
    EXPECT_EQ(blind.state().draws, looks.state().draws);
  }
}

TEST(LearningFilterTest, TheNextTrajectoryBeginsWithWhatWasLearnt) {
  const Model model = doubtful_lorenz();
  const Matrix rows = lorenz_rows(200, 0.1, 1, 8, nullptr, 33);
  Filter first(model, all_of(model), {.learn = true});
  for (int k = 0; k < 200; ++k) first.update(0.1 * k, rows.row(k).transpose());
  Filter second(model, all_of(model), {.learn = true});
  second.learn_from(first);
  EXPECT_EQ(learnt_coefficients(first).mean, learnt_coefficients(second).mean);
  EXPECT_EQ(learnt_coefficients(first).sd, learnt_coefficients(second).sd);
}

TEST(FilterStateTest, GoesOnWithTheSameBits) {
  const Model model = doubtful_lorenz();
  const Matrix rows = lorenz_rows(40, 0.1, 1, 1);
  std::vector<FilterOptions> all = {{.method = FilterMethod::particle, .members = 100},
                                    {.method = FilterMethod::iterated, .lag = 3},
                                    {.method = FilterMethod::kalman, .learn = true}};
  all.push_back({.robust = true, .learn = true, .ahead = 0.3});
  for (const FilterOptions& o : all) {
    Filter whole(model, all_of(model), o);
    const auto text_of = [&](const FilterRow& row) {
      return format_filter_row(model, row, nullptr);
    };
    std::vector<std::string> expected;
    for (int k = 0; k < 40; ++k)
      expected.push_back(text_of(whole.update(0.1 * k, rows.row(k).transpose())));
    std::string state;
    for (int k = 0; k < 40; ++k) {  // a new filter for every row
      Filter next(model, all_of(model), o);
      if (k > 0)
        next.continue_from(filter_state_from_text(state, "state", model, all_of(model), o));
      EXPECT_EQ(text_of(next.update(0.1 * k, rows.row(k).transpose())),
                expected[static_cast<std::size_t>(k)])
          << k;
      state = filter_state_to_text(next.state(), model, all_of(model), o);
    }
    EXPECT_EQ(state, filter_state_to_text(whole.state(), model, all_of(model), o));
  }
}

TEST(FilterStateTest, RefusesWhatIsAnothers) {
  const Model model = lorenz();
  const FilterOptions o{.members = 50};
  Filter filter(model, all_of(model), o);
  filter.update(0, Eigen::Vector3d(1, 2, 20));
  const std::string text = filter_state_to_text(filter.state(), model, all_of(model), o);
  const auto refused = [&](const std::string& changed, const Model& of, const FilterOptions& with) {
    EXPECT_THROW(filter_state_from_text(changed, "state", of, all_of(of), with), Error);
  };
  refused(text.substr(0, text.size() / 2), model, o);
  std::string flipped = text;
  flipped[text.size() / 3] ^= 1;
  refused(flipped, model, o);
  refused("", model, o);
  refused("{}", model, o);
  refused(text, lorenz(30), o);
  FilterOptions other = o;
  other.seed = 2;
  refused(text, model, other);
  other = o;
  other.noise = Vector::Ones(3);
  refused(text, model, other);
  Filter larger(model, all_of(model), {.members = 60});
  EXPECT_THROW(larger.continue_from(filter.state()), Error);
}

TEST(LearningFilterTest, RefusesWhatCannotBe) {
  const Model model = lorenz();
  const auto refused = [&](const Model& m, const FilterOptions& o) {
    EXPECT_THROW(Filter(m, all_of(m), o), Error);
  };
  refused(model, {.members = 10, .learn = true});
  refused(model, {.drift = 1});
  refused(model, {.learn = true, .drift = -1});
  refused(model, {.lag = -1});
  refused(model, {.ahead = -1});
  Model network = make_model(decaying_model(2, 0).network());
  network.noise = Vector::Ones(2);
  refused(network, {.learn = true});
  Filter unseen(model, all_of(model), {.learn = true});
  EXPECT_THROW(model_after(unseen), Error);
}

}  // namespace
}  // namespace odecast
