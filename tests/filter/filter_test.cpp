#include "odecast/filter/filter.hpp"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>

#include "filter/lorenz.hpp"
#include "odecast/core/error.hpp"
#include "odecast/filter/filter_file.hpp"

namespace odecast {
namespace {

TEST(FilterTest, OfALinearMapIsKalmansFilter) {
  const Model model = turning();
  Filter filter(model, all_of(model),
                {.method = FilterMethod::kalman, .members = 12, .inflation = 1});
  filter.update(0, Eigen::Vector2d(kNaN, kNaN));
  EnsembleMoments state = ensemble_moments(filter.state().members);
  Eigen::Matrix2d M;
  M << 0.95, 0.2, -0.25, 0.9;
  Stream stream(3, Purpose::observation_noise, 0);
  double time = 0;
  for (int k = 0; k < 60; ++k) {
    const int steps = 1 + k % 3;  // uneven
    for (int s = 0; s < steps; ++s) {
      state.mean = M * state.mean;
      state.covariance = (M * state.covariance * M.transpose()).eval();
    }
    time += steps;
    Vector y = 0.5 * Eigen::Vector2d(stream.normal(), stream.normal());
    if (k % 4 == 1) y[k % 8 == 1] = kNaN;
    const FilterRow row = filter.update(time, y);
    EXPECT_LT((row.forecast - state.mean).cwiseAbs().maxCoeff(), 1e-10) << k;
    for (int i = 0; i < 2; ++i) {  // values one after another, as independent noise allows
      if (std::isnan(y[i])) continue;
      const Vector gain = state.covariance.col(i) / (state.covariance(i, i) + 0.25);
      state.mean += gain * (y[i] - state.mean[i]);
      state.covariance -= (gain * state.covariance.row(i)).eval();
    }
    EXPECT_LT((row.state.mean - state.mean).cwiseAbs().maxCoeff(), 1e-10) << k;
    EXPECT_LT((row.state.sd - state.covariance.diagonal().cwiseSqrt()).cwiseAbs().maxCoeff(), 1e-10)
        << k;
    EXPECT_EQ(row.used, 2 - std::isnan(y[0]) - std::isnan(y[1]));
  }
}

TEST(FilterTest, TwoRowsOfOneTimeAreOneOfHalfTheVariance) {
  const Model model = turning();
  for (const FilterMethod method : {FilterMethod::kalman, FilterMethod::iterated}) {
    FilterOptions o{.method = method, .members = 12, .inflation = 1};
    Filter twice(model, all_of(model), o);
    o.noise = Eigen::Vector2d(0.5 / std::sqrt(2.0), 0.5 / std::sqrt(2.0));
    Filter once(model, all_of(model), o);
    const Vector y = Eigen::Vector2d(0.3, -0.4);
    for (Filter* filter : {&twice, &once}) filter->update(0, Eigen::Vector2d(kNaN, kNaN));
    twice.update(1, y);
    const FilterRow a = twice.update(1, y), b = once.update(1, y);
    EXPECT_LT((a.state.mean - b.state.mean).cwiseAbs().maxCoeff(), 1e-10);
    EXPECT_LT((a.state.sd - b.state.sd).cwiseAbs().maxCoeff(), 1e-10);
  }
}

TEST(FilterTest, AValueOfHugeNoiseIsAMissingOne) {
  const Model model = lorenz();
  const Matrix rows = lorenz_rows(30, 0.1, 1, 1);
  for (const FilterMethod method :
       {FilterMethod::kalman, FilterMethod::iterated, FilterMethod::particle}) {
    FilterOptions o{.method = method, .members = method == FilterMethod::particle ? 1000 : 60};
    o.init = rows.row(0).transpose();
    o.init_sd = Vector::Ones(3);
    o.noise = Eigen::Vector3d(1, 1e9, 1);
    Filter huge(model, all_of(model), o);
    o.noise = Eigen::Vector3d(1, 1, 1);
    Filter missing(model, all_of(model), o);
    for (int k = 0; k < 12; ++k) {  // a value that says nothing lowers the mean surprise later on
      Vector y = rows.row(k).transpose();
      const FilterRow a = huge.update(0.1 * k, y);
      y[1] = kNaN;
      const FilterRow b = missing.update(0.1 * k, y);
      EXPECT_LT((a.state.mean - b.state.mean).cwiseAbs().maxCoeff(), 1e-4) << k;
    }
  }
}

/// 400 rows of Lorenz's system: bands hold their level, of the state and of rows not seen yet. A
/// row is nearly independent of the next, so that a share of 1200 values has a standard error below
/// √(0.05 · 0.95 / 400) = 0.011.
TEST(FilterTest, BandsHoldTheirLevelAlongLorenz) {
  const Model model = lorenz();
  Matrix truth;
  const Matrix rows = lorenz_rows(400, 0.15, 1, 2, &truth);
  for (const FilterMethod method : {FilterMethod::particle, FilterMethod::iterated}) {
    Filter filter(model, all_of(model), {.method = method});
    FilterSummary summary;
    double inside = 0, squares = 0;
    for (int k = 0; k < 400; ++k) {
      const FilterRow row = filter.update(0.15 * k, rows.row(k).transpose());
      summary.add(row, 0.95);
      for (int i = 0; i < 3; ++i) {
        inside += truth(k, i) >= row.state.lower[i] && truth(k, i) <= row.state.upper[i];
        squares += std::pow(row.state.mean[i] - truth(k, i), 2);
      }
    }
    EXPECT_NEAR(inside / 1200, 0.95, 5 * 0.011);
    EXPECT_NEAR(summary.coverage(), 0.95, 5 * 0.011);
    EXPECT_NEAR(summary.surprise, 1, 5 * std::sqrt(2.0 / 1200));
    EXPECT_LT(std::sqrt(squares / 1200), 0.5) << "half of the noise";
    EXPECT_EQ(summary.distrust(), "");
  }
}

TEST(FilterTest, OneVariableShowsTheOthers) {
  const Model model = lorenz();
  Matrix truth;
  const Matrix rows = lorenz_rows(300, 0.1, 1, 3, &truth);
  Filter filter(model, observing_variables(model, {"t", "x"}, "rows"), {});
  EXPECT_EQ(filter.method(), FilterMethod::particle);
  double squares = 0;
  for (int k = 0; k < 300; ++k) {
    const FilterRow row = filter.update(0.1 * k, rows.row(k).head(1).transpose());
    if (k >= 50) squares += std::pow(row.state.mean[2] - truth(k, 2), 2) / 250;
  }
  EXPECT_LT(std::sqrt(squares), 0.25 * 9) << "z has an sd of 9 and is never seen";
}

/// A row that no particle is near must not leave one that all others become: with weights alone
/// 200 particles lost Lorenz' system in two of three runs.
TEST(FilterTest, FewParticlesDoNotCollapse) {
  const Model model = lorenz();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Matrix rows = lorenz_rows(150, 0.1, 1, 20 + seed);
    Filter filter(model, all_of(model), {.members = 150, .seed = seed});
    FilterSummary summary;
    for (int k = 0; k < 150; ++k)
      summary.add(filter.update(0.1 * k, rows.row(k).transpose()), 0.95);
    EXPECT_EQ(summary.lost, 0) << seed;
    EXPECT_NEAR(summary.surprise, 1, 5 * std::sqrt(2.0 / 450)) << seed;
  }
}

TEST(FilterTest, TheSameBitsForAnyNumberOfThreads) {
  const Model model = lorenz();
  const Matrix rows = lorenz_rows(20, 0.2, 1, 4);
  for (const FilterMethod method : {FilterMethod::particle, FilterMethod::iterated}) {
    std::vector<std::string> texts;
    for (const int threads : {1, 2, 7}) {
      Filter filter(model, all_of(model), {.method = method, .members = 600, .threads = threads});
      std::string text = filter_header(model, false, false);
      for (int k = 0; k < 20; ++k)
        text += format_filter_row(model, filter.update(0.2 * k, rows.row(k).transpose()), nullptr);
      texts.push_back(text);
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(texts[0], texts[2]);
  }
}

TEST(FilterTest, SaysWhatBecameOfEachRow) {
  const Model model = lorenz();
  Matrix rows = lorenz_rows(60, 0.1, 1, 5);
  Filter filter(model, all_of(model), {.method = FilterMethod::iterated, .robust = true});
  for (int k = 0; k < 60; ++k) {
    Vector y = rows.row(k).transpose();
    if (k == 20) y[0] += 40;
    if (k >= 30 && k < 33) y[2] += 60;  // the third in a row is taken
    if (k == 40) y.setConstant(kNaN);
    const FilterRow row = filter.update(0.1 * k, y);
    const FilterStatus expected = k == 20 || k == 30 || k == 31 ? FilterStatus::gated
                                  : k == 40                     ? FilterStatus::unobserved
                                                                : FilterStatus::ok;
    if (k < 32 || k == 40) {
      EXPECT_EQ(row.status, expected) << k;
    }
    EXPECT_NE(k == 32 ? row.status : FilterStatus::ok, FilterStatus::gated);
  }
  const FilterRow late = filter.update(1, rows.row(0).transpose());
  EXPECT_EQ(late.status, FilterStatus::late);
  EXPECT_EQ(late.used, 0);
  EXPECT_TRUE(late.state.mean.allFinite());
}

TEST(FilterTest, RowsOfAnotherSystemAreSaidToBe) {
  const Matrix rows = lorenz_rows(200, 0.25, 1, 6);
  for (const FilterMethod method : {FilterMethod::particle, FilterMethod::iterated}) {
    const Model model = lorenz(60);
    Filter filter(model, all_of(model), {.method = method, .members = 100});
    FilterSummary summary;
    for (int k = 0; k < 200; ++k)
      summary.add(filter.update(0.25 * k, rows.row(k).transpose()), 0.95);
    EXPECT_GT(summary.lost, 0);
    EXPECT_NE(summary.distrust(), "");
  }
}

TEST(FilterTest, WrongNoiseIsSaid) {
  const Model model = lorenz();
  const Matrix rows = lorenz_rows(300, 0.1, 1, 7);
  for (const double factor : {1 / 3.0, 3.0}) {
    Filter filter(model, all_of(model), {.members = 300, .noise = Vector::Constant(3, factor)});
    FilterSummary summary;
    for (int k = 0; k < 300; ++k)
      summary.add(filter.update(0.1 * k, rows.row(k).transpose()), 0.95);
    EXPECT_NE(summary.distrust().find(factor < 1 ? "larger" : "smaller"), std::string::npos)
        << summary.distrust();
  }
}

TEST(FilterTest, ComesBackAfterAGapInWhichTheStateJumped) {
  const Model model = lorenz();
  const Matrix before = lorenz_rows(100, 0.1, 1, 8), after = lorenz_rows(100, 0.1, 1, 9);
  for (const FilterMethod method : {FilterMethod::particle, FilterMethod::iterated}) {
    Filter filter(model, all_of(model), {.method = method});
    FilterRow row;
    for (int k = 0; k < 200; ++k)
      row = filter.update(0.1 * k, (k < 100 ? before.row(k) : after.row(k - 100)).transpose());
    EXPECT_EQ(row.status, FilterStatus::ok);
    EXPECT_LT(filter.state().averaged, 2);
  }
}

TEST(FilterTest, ADrivenModelTakesItsInputsFromRowToRow) {
  // u' = -u + w, w a ramp: u = w - 1 + (u0 + 1 - w0) e^-t.
  CoefficientSet set{{{0, 1}, {0, 2}}, Eigen::Vector2d(-1, 1), 1e-30 * Matrix::Identity(2, 2)};
  set.weight = 1;
  Model m = make_model(decaying_model(1, 0).network());
  m.law = PolynomialPart{1, {set}, nullptr};
  m.inputs.names = {"w"};
  m.inputs.offset = Vector::Zero(1);
  m.inputs.scale = Vector::Ones(1);
  m.size = Vector::Ones(2);
  m.sd = Vector::Ones(1);
  m.noise = Vector::Constant(1, 1e-3);
  Filter filter(m, all_of(m), {.method = FilterMethod::kalman, .init = Vector::Constant(1, 2)});
  for (int k = 0; k <= 20; ++k) {
    const double t = 0.25 * k, u = t - 1 + 3 * std::exp(-t);
    const FilterRow row = filter.update(t, Vector::Constant(1, kNaN), Vector::Constant(1, t));
    EXPECT_NEAR(row.state.mean[0], u, 1e-5) << k;
  }
}

TEST(ObservingTest, SumsOfVariables) {
  const Model model = lorenz();
  Observing o = observing_variables(model, {"z", "other"}, "rows");
  add_observing(o, model, "total = x + 2*y - z/4");
  EXPECT_EQ(o.columns, (std::vector<std::string>{"z", "total"}));
  Matrix expected(2, 3);
  expected << 0, 0, 1, 1, 2, -0.25;
  EXPECT_EQ(o.H, expected);
  for (const char* bad : {"total", "s = x*y", "s = x + 1", "s = 3", "z = x", "s = k*x", "s = x +"})
    EXPECT_THROW(add_observing(o, model, bad), Error) << bad;
  EXPECT_THROW(observing_variables(model, {"a", "b"}, "rows"), Error);
}

TEST(FilterTest, RefusesWhatCannotBe) {
  Model model = lorenz();
  const auto refused = [&](const FilterOptions& o) {
    EXPECT_THROW(Filter(model, all_of(model), o), Error);
  };
  refused({.members = 2});
  refused({.noise = Vector::Constant(3, 0.0)});
  refused({.noise = Vector::Constant(2, 1.0)});
  refused({.init = Vector::Constant(2, 1.0)});
  refused({.gate = 0.7});
  refused({.level = 1});
  Observing sums = all_of(model);
  add_observing(sums, model, "total = x + y");
  EXPECT_THROW(Filter(model, sums, {}), Error) << "the noise of a sum is not known";
  model.noise = {};
  refused({});
}

}  // namespace
}  // namespace odecast
