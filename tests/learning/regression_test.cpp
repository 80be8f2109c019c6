#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

Dataset lorenz(double part, std::uint64_t seed) {
  const System system = find_system("Lorenz");
  std::vector<double> times = regular_times(0, 10, 0.01);
  times.insert(times.begin(), 0.0);
  Dataset data{
      system.variables,
      {{"", times,
        solve_certified(system.field, 0, Eigen::Vector3d(-8, 7, 27), times).solution.states}}};
  if (part > 0) add_noise(data, noise_level(data, part, NoiseOf::rms), seed);
  return data;
}

FitOptions regression(DerivativeMethod method = DerivativeMethod::weak, int degree = 2) {
  return {.method = RegressionMethod{.degree = degree, .rows = {.derivative = method}}};
}

/// The same rows, drawn again.
FitOptions bootstrap(const FitOptions& o, int replicates = 100) {
  const auto& m = std::get<RegressionMethod>(o.method);
  FitOptions drawn = o;
  drawn.method = BootstrapMethod{m.degree, m.rows, m.select_terms, m.functions, replicates};
  return drawn;
}

Fit run(const Dataset& data, const FitOptions& o) { return fit(data, o, ignore_progress); }

/// The seven terms and nothing else, each within `sds` of its standard deviations.
void expect_lorenz(const Model& model, double sds) {
  const auto found = equations(model);
  ASSERT_EQ(found[0].terms.size(), 2u) << format_equations(model, EquationFormat::text);
  ASSERT_EQ(found[1].terms.size(), 3u) << format_equations(model, EquationFormat::text);
  ASSERT_EQ(found[2].terms.size(), 2u) << format_equations(model, EquationFormat::text);
  const double expected[] = {-10, 10, 28, -1, -1, -8.0 / 3, 1};
  int at = 0;
  for (const Equation& e : found)
    for (const Term& t : e.terms) {
      EXPECT_NEAR(t.mean, expected[at], sds * t.sd);
      EXPECT_GT(t.sd, 0);
      EXPECT_LT(t.sd, 0.1 * std::abs(expected[at]));
      ++at;
    }
}

void expect_lorenz_median(const std::vector<ReadableEquation>& found) {
  const std::map<std::pair<int, std::vector<int>>, double> truth = {
      {{0, {1, 0, 0}}, -10}, {{0, {0, 1, 0}}, 10},       {{1, {1, 0, 0}}, 28}, {{1, {0, 1, 0}}, -1},
      {{1, {1, 0, 1}}, -1},  {{2, {0, 0, 1}}, -8.0 / 3}, {{2, {1, 1, 0}}, 1}};
  std::size_t terms = 0;
  for (int i = 0; i < 3; ++i)
    for (const Term& t : found[static_cast<std::size_t>(i)].terms) {
      ++terms;
      const auto at = truth.find({i, t.powers});
      ASSERT_NE(at, truth.end());
      EXPECT_NEAR(t.mean, at->second, 5 * t.sd);
    }
  EXPECT_EQ(terms, truth.size());
}

TEST(RegressionTest, NoisyLorenzHasItsSevenTerms) {
  const Fit found = run(lorenz(0.05, 3), regression());
  EXPECT_EQ(found.summary.status, "posterior");
  EXPECT_EQ(found.summary.terms, 7);
  ASSERT_TRUE(found.summary.log_evidence);
  expect_lorenz(found.model, 4.5);
}

TEST(RegressionTest, AMisfitIsSeenWhateverTheOffset) {
  const System system = find_system("Pendulum");
  std::vector<double> times = regular_times(0, 50, 0.05);
  times.insert(times.begin(), 0.0);
  for (const double offset : {0.0, 1e4}) {
    Dataset data{
        system.variables,
        {{"", times, solve_certified(system.field, 0, system.start, times).solution.states}}};
    data.trajectories[0].states.col(0).array() += offset;
    add_noise(data, noise_level(data, 0.01, NoiseOf::sd), 3);
    const Fit found = run(data, regression());
    EXPECT_EQ(found.summary.status, "misfit") << offset << found.summary.reason;
    EXPECT_FALSE(found.summary.trusted);
  }
  // Clean data of polynomial equations: rounding and quadrature are no misfit.
  for (const char* name : {"Lorenz", "SprottQ", "Rossler"}) {
    const System clean = find_system(name);
    std::vector<double> at = regular_times(0, 2000 * clean.step, 2 * clean.step);
    at.insert(at.begin(), 0.0);
    const Dataset data{
        clean.variables,
        {{"", at, solve_certified(clean.field, 0, clean.start, at).solution.states}}};
    EXPECT_EQ(run(data, regression()).summary.status, "posterior") << name;
  }
}

TEST(RegressionTest, TheDegreeOfMostEvidenceIsThatOfTheSystem) {
  for (const DerivativeMethod method : {DerivativeMethod::weak, DerivativeMethod::spline}) {
    const Fit found = run(lorenz(0.025, 4), regression(method, kAutomaticDegree));
    const auto& trials = found.summary.degrees;
    ASSERT_GE(trials.size(), 3u);
    EXPECT_EQ(trials[0].degree, 1);
    EXPECT_GT(trials[1].log_evidence, trials[0].log_evidence + 100);
    EXPECT_EQ(found.model.polynomial()->degree, 2) << derivative_name(method);
    if (method == DerivativeMethod::weak) expect_lorenz(found.model, 4.5);
  }
}

TEST(RegressionTest, IsLeastSquaresWhereThePriorDoesNotShow) {
  // Clean data: the sd of every coefficient is 1e-6 of the prior's and less, so the prior moves it
  // by 1e-12 of itself.
  FitOptions o = regression(DerivativeMethod::central8);
  std::get<RegressionMethod>(o.method).select_terms = false;
  const Dataset data = lorenz(0, 0);
  const FitOptions plain{
      .method = DropoutMethod{.dropout = 0, .rows = {.derivative = DerivativeMethod::central8}}};
  const auto found = equations(run(data, o).model), reference = equations(run(data, plain).model);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(found[i].terms.size(), 10u);  // all up to degree 2
    ASSERT_EQ(reference[i].terms.size(), 10u);
    for (std::size_t m = 0; m < 10; ++m) {
      const Term &t = found[i].terms[m], &r = reference[i].terms[m];
      EXPECT_EQ(t.powers, r.powers);
      EXPECT_NEAR(t.mean, r.mean, 1e-8 * (1 + std::abs(r.mean)));
    }
  }
}

TEST(RegressionTest, DrawsHaveTheMomentsOfThePosterior) {
  const Model model = run(lorenz(0.05, 5), regression()).model;
  const PolynomialPosterior posterior = polynomial_posterior(model);
  EXPECT_EQ(posterior.atoms(), 0u);
  EXPECT_FALSE(posterior.draw_start(1, 1));
  const CoefficientSet& set = posterior.sets()[0];
  const auto p = set.theta.size();
  const int draws = 4000;
  Vector mean = Vector::Zero(p);
  Matrix square = Matrix::Zero(p, p);
  for (std::uint64_t k = 0; k < draws; ++k) {
    const VectorField drawn = posterior.draw(7, k);
    const Matrix& C = drawn.polynomial()->coefficients;
    Vector z(p);
    for (Eigen::Index c = 0; c < p; ++c) {
      const FieldTerm& t = set.support[static_cast<std::size_t>(c)];
      z[c] = (C(t.equation, t.term) - set.theta[c]) / std::sqrt(set.covariance(c, c));
    }
    mean += z / draws;
    square += z * z.transpose() / draws;
  }
  // Standard errors: of a mean 1/√n, of a product of two standard normals with correlation ρ √((1 +
  // ρ²)/n).
  for (Eigen::Index c = 0; c < p; ++c) {
    EXPECT_NEAR(mean[c], 0, 5 / std::sqrt(draws));
    for (Eigen::Index d = 0; d < p; ++d) {
      const double rho =
          set.covariance(c, d) / std::sqrt(set.covariance(c, c) * set.covariance(d, d));
      EXPECT_NEAR(square(c, d), rho, 5 * std::sqrt((1 + rho * rho) / draws));
    }
  }
  // The same of the field itself.
  const Vector u = Vector::Constant(3, 0.3);
  const Moments exact = posterior.moments(u), sampled = sampled_moments(posterior, u, draws, 9);
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(sampled.mean[i], exact.mean[i], 5 * exact.sd()[i] / std::sqrt(draws));
}

TEST(RegressionTest, ThreadsAndUnitsDoNotMatter) {
  const Dataset data = lorenz(0.05, 6);
  FitOptions o = regression(DerivativeMethod::central4);
  const std::string one = model_to_text(run(data, o).model);
  o.threads = 4;
  EXPECT_EQ(model_to_text(run(data, o).model), one);
  // Other units: the same terms, and coefficients that convert.
  Dataset other = data;
  other.trajectories[0].states.col(2) *= 1000;
  for (double& t : other.trajectories[0].times) t /= 60;
  o = regression();
  const auto before = equations(run(data, o).model), after = equations(run(other, o).model);
  const double size[] = {1, 1, 1000};
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(before[i].terms.size(), after[i].terms.size());
    for (std::size_t k = 0; k < before[i].terms.size(); ++k) {
      double unit = 60 * size[i];
      for (std::size_t v = 0; v < 3; ++v) unit /= std::pow(size[v], before[i].terms[k].powers[v]);
      EXPECT_NEAR(after[i].terms[k].mean, unit * before[i].terms[k].mean,
                  1e-6 * std::abs(unit * before[i].terms[k].mean));
    }
  }
}

TEST(RegressionTest, ModelFilesKeepEveryBit) {
  const Model model = run(lorenz(0.05, 7), regression()).model;
  const std::string text = model_to_text(model);
  const Model back = model_from_text(text, "m");
  EXPECT_EQ(model_to_text(back), text);
  EXPECT_EQ(back.polynomial()->sets[0].covariance, model.polynomial()->sets[0].covariance);
  EXPECT_EQ(back.polynomial()->sets[0].support, model.polynomial()->sets[0].support);
  EXPECT_FALSE(back.trajectory);
  const Vector u = Vector::Constant(3, 0.3);
  Vector a(3), b(3);
  make_posterior(model)->draw(3, 5)(0, u.data(), a.data());
  make_posterior(back)->draw(3, 5)(0, u.data(), b.data());
  EXPECT_EQ(a, b);
}

TEST(RegressionTest, MapsAndInputs) {
  // x' = 1 - 1.4 x² + y, y' = 0.3 x, seen with noise in the successor only.
  Dataset henon{{"x", "y"}, {{"", {}, Matrix(300, 2)}}};
  double x = 0.1, y = 0.1;
  for (int i = 0; i < 300; ++i) {
    henon.trajectories[0].times.push_back(i);
    henon.trajectories[0].states.row(i) << x, y;
    const double next = 1 - 1.4 * x * x + y;
    y = 0.3 * x;
    x = next;
  }
  FitOptions o = regression();
  o.kind = ModelKind::map;
  const Model map = run(henon, o).model;
  const auto found = equations(map);
  ASSERT_EQ(found[0].terms.size(), 3u);
  ASSERT_EQ(found[1].terms.size(), 1u);
  EXPECT_NEAR(found[0].terms[0].mean, 1, 1e-10);
  EXPECT_NEAR(found[0].terms[2].mean, -1.4, 1e-10);
  EXPECT_NEAR(found[1].terms[0].mean, 0.3, 1e-10);
  EXPECT_EQ(model_to_text(model_from_text(model_to_text(map), "m")), model_to_text(map));

  // u' = -u + 2 w with w = sin 3t: u = (2/10)(sin 3t - 3 cos 3t) + c e^-t.
  Dataset driven{{"u"}, {{"", {}, Matrix(500, 1)}}};
  driven.inputs = {"w"};
  driven.trajectories[0].inputs.resize(500, 1);
  for (int i = 0; i < 500; ++i) {
    const double t = 0.02 * i;
    driven.trajectories[0].times.push_back(t);
    driven.trajectories[0].states(i, 0) =
        0.2 * (std::sin(3 * t) - 3 * std::cos(3 * t)) + 2 * std::exp(-t);
    driven.trajectories[0].inputs(i, 0) = std::sin(3 * t);
  }
  const Model model = run(driven, regression(DerivativeMethod::central6)).model;
  double of_u = 0, of_w = 0;
  const Equation equation = equations(model)[0];
  for (const Term& t : equation.terms) {
    if (t.powers == std::vector<int>{1, 0}) of_u = t.mean;
    if (t.powers == std::vector<int>{0, 1}) of_w = t.mean;
  }
  EXPECT_NEAR(of_u, -1, 1e-6);
  EXPECT_NEAR(of_w, 2, 1e-6);
  EXPECT_EQ(model_to_text(model_from_text(model_to_text(model), "m")), model_to_text(model));
}

TEST(BootstrapPosteriorTest, EveryReplicateIsAnAtom) {
  FitOptions o = bootstrap(regression(), 40);
  const Dataset data = lorenz(0.025, 8);
  const Fit found = run(data, o);
  const PolynomialPosterior posterior = polynomial_posterior(found.model);
  ASSERT_EQ(posterior.atoms(), 40u);
  double weight = 0;
  const Vector u = Vector::Constant(3, 0.4);
  Vector mean = Vector::Zero(3), a(3), b(3);
  for (std::uint64_t k = 0; k < 40; ++k) {
    weight += posterior.atom_weight(k);
    posterior.atom_field(k)(0, u.data(), a.data());
    mean += posterior.atom_weight(k) * a;
  }
  EXPECT_NEAR(weight, 1, 1e-12);
  posterior.mean_field()(0, u.data(), b.data());
  EXPECT_LT((mean - b).norm(), 1e-12 * mean.norm());
  EXPECT_LT((mean - posterior.moments(u).mean).norm(), 1e-12 * mean.norm());
  posterior.atom_field(posterior.atom_of_draw(3, 17))(0, u.data(), a.data());
  posterior.draw(3, 17)(0, u.data(), b.data());
  EXPECT_EQ(a, b);
  // The terms of the regression are in nearly every replicate.
  const auto own = equations(found.model), reference = equations(run(data, regression()).model);
  for (std::size_t i = 0; i < 3; ++i)
    for (const Term& r : reference[i].terms) {
      double probability = 0;
      for (const Term& t : own[i].terms)
        if (t.powers == r.powers) probability = t.probability;
      EXPECT_GT(probability, 0.9);
    }
  // Half of the replicates lie on either side of a median, and those without the term at 0.
  posterior.point_field()(0, u.data(), a.data());
  const Matrix median = posterior.median_coefficients();
  for (Eigen::Index i = 0; i < 3; ++i)
    for (Eigen::Index m = 0; m < median.cols(); ++m) {
      int below = 0, above = 0;
      for (const CoefficientSet& set : posterior.sets()) {
        double value = 0;
        for (std::size_t c = 0; c < set.support.size(); ++c)
          if (set.support[c].equation == i && set.support[c].term == m)
            value = set.theta[static_cast<Eigen::Index>(c)];
        below += value < median(i, m);
        above += value > median(i, m);
      }
      EXPECT_LE(below, 20);
      EXPECT_LE(above, 20);
    }
  VectorField(PolynomialField{posterior.library().basis, median})(0, u.data(), b.data());
  EXPECT_EQ(a, b);
  // In the user's units, with the terms that most replicates have: the true ones.
  expect_lorenz_median(readable_equations(found.model, 0, Centre::median));
  EXPECT_THROW(readable_equations(run(data, regression()).model, 0, Centre::median), Error);
  // Files and threads.
  const std::string text = model_to_text(found.model);
  EXPECT_EQ(model_to_text(model_from_text(text, "m")), text);
  o.threads = 4;
  EXPECT_EQ(model_to_text(run(data, o).model), text);
  std::get<BootstrapMethod>(o.method).replicates = 1;
  EXPECT_THROW(run(data, o), Error);
}

TEST(BootstrapPosteriorTest, SpreadIsThatOfTheRegression) {
  // Whitened rows are independent, so both estimate the same. All terms in: the sd of 100
  // replicates is right to 1/√200 = 7 %, from some 30 blocks to 1/√60 = 13 %; a factor 2 either way
  // is more than four of their root sum of squares.
  FitOptions o = regression();
  std::get<RegressionMethod>(o.method).select_terms = false;
  const Dataset data = lorenz(0.025, 10);
  const auto normal = equations(run(data, o).model);
  const auto drawn = equations(run(data, bootstrap(o)).model);
  double ratio = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(drawn[i].terms.size(), 10u);
    for (std::size_t m = 0; m < 10; ++m) {
      EXPECT_NEAR(drawn[i].terms[m].mean, normal[i].terms[m].mean, 2 * normal[i].terms[m].sd);
      ratio += std::log(drawn[i].terms[m].sd / normal[i].terms[m].sd) / 30;
    }
  }
  EXPECT_LT(std::abs(ratio), std::log(2.0));
}

/// x'' = -x - x'/10, 300 rows, noise of 2 % of the amplitude.
Dataset spring(std::uint64_t seed) {
  const double damping = 0.05, omega = std::sqrt(1 - damping * damping);
  Dataset data{{"x", "v"}, {{"", {}, Matrix(300, 2)}}};
  for (int k = 0; k < 300; ++k) {
    const double t = 0.05 * k, decay = std::exp(-damping * t);
    data.trajectories[0].times.push_back(t);
    data.trajectories[0].states.row(k)
        << decay * (std::cos(omega * t) + damping / omega * std::sin(omega * t)),
        -decay / omega * std::sin(omega * t);
  }
  add_noise(data, Vector::Constant(2, 0.02), seed);
  return data;
}

TEST(BootstrapPosteriorTest, IntervalsHoldWithFewIntegrals) {
  const FitOptions o = bootstrap(regression());
  const int draws = 200;
  double inside[3] = {};
  for (std::uint64_t seed = 1; seed <= draws; ++seed) {
    const auto found = equations(run(spring(seed), o).model);
    const auto holds = [&](std::size_t equation, std::vector<int> powers, double truth) {
      for (const Term& t : found[equation].terms)
        if (t.powers == powers) return std::abs(t.mean - truth) < 1.96 * t.sd;
      return false;
    };
    inside[0] += holds(0, {0, 1}, 1);
    inside[1] += holds(1, {1, 0}, -1);
    inside[2] += holds(1, {0, 1}, -0.1);
  }
  // A share of 200 is known to .016. The sd from some ten blocks, with four to a block, is 10 % low
  // and known to 20 %: at least .90 hold.
  for (const double count : inside) EXPECT_GT(count / draws, 0.90 - 5 * 0.016);
  std::printf("intervals hold %.3f, %.3f, %.3f\n", inside[0] / draws, inside[1] / draws,
              inside[2] / draws);
}

TEST(BootstrapPosteriorTest, OfPointwiseRowsWithoutErrorIsExact) {
  // u' = 1 - u/2 + w, rows known exactly: every replicate is the truth.
  Dataset map{{"u", "w"}, {{"", {}, Matrix(200, 2)}}};
  double u = 0.3, w = 0.2;
  for (int i = 0; i < 200; ++i) {
    map.trajectories[0].times.push_back(i);
    map.trajectories[0].states.row(i) << u, w;
    u = 1 - u / 2 + w;
    w = 3.7 * w * (1 - w);
  }
  FitOptions o = bootstrap(regression(), 20);
  o.kind = ModelKind::map;
  const auto found = equations(run(map, o).model);
  ASSERT_EQ(found[0].terms.size(), 3u);
  ASSERT_EQ(found[1].terms.size(), 2u);
  const double first[] = {1, -0.5, 1}, second[] = {3.7, -3.7};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(found[0].terms[k].mean, first[k], 1e-10);
    EXPECT_LT(found[0].terms[k].sd, 1e-10);
  }
  for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(found[1].terms[k].mean, second[k], 1e-10);
}

TEST(EnsembleTest, MembersAreTheFitsOfTheirSeeds) {
  FitOptions o{.method = EnsembleMethod{.members = 3,
                                        .member = {.dropout = 0,
                                                   .trainer = Trainer::adam,
                                                   .training = {.batches = 5}}},
               .seed = 11};
  auto& ensemble = std::get<EnsembleMethod>(o.method);
  Dataset data = lorenz(0, 0);
  data.trajectories[0].times.resize(100);
  data.trajectories[0].states.conservativeResize(100, 3);
  for (const bool general : {false, true}) {
    if (general) ensemble.member.layers = {4};
    const Fit found = run(data, o);
    EXPECT_EQ(found.summary.status, "schedule_done");
    ASSERT_EQ(found.model.ensemble()->size(), 3u);
    const FitOptions one{.method = ensemble.member, .seed = 13};
    EXPECT_EQ(parameters((*found.model.ensemble())[2]), parameters(run(data, one).model.network()));
    const auto posterior = make_posterior(found.model);
    ASSERT_EQ(posterior->atoms(), 3u);
    const Vector u = Vector::Constant(3, 0.2);
    Vector mean = Vector::Zero(3), a(3), b(3);
    Matrix square = Matrix::Zero(3, 3);
    for (std::uint64_t k = 0; k < 3; ++k) {
      posterior->atom_field(k)(0, u.data(), a.data());
      mean += a / 3;
      square += a * a.transpose() / 3;
    }
    const Moments m = posterior->moments(u);
    posterior->mean_field()(0, u.data(), b.data());
    EXPECT_LT((m.mean - mean).norm() + (b - mean).norm(), 1e-12);
    EXPECT_LT((m.covariance - (square - mean * mean.transpose())).norm(), 1e-10);
    EXPECT_GT(m.sd().minCoeff(), 0);
    // 300 draws: each member a third, ± 5 √(2/9/300).
    int first = 0;
    for (std::uint64_t k = 0; k < 300; ++k) first += posterior->atom_of_draw(5, k) == 0;
    EXPECT_NEAR(first / 300.0, 1.0 / 3, 0.14);
    const std::string text = model_to_text(found.model);
    EXPECT_EQ(model_to_text(model_from_text(text, "m")), text);
    if (general) continue;
    // The equations are the mean over those of the members.
    Model only = found.model;
    double sum = 0;
    for (const Network& n : *found.model.ensemble()) {
      only.law = n;
      sum += equations(only)[0].terms[1].mean / 3;
    }
    EXPECT_NEAR(equations(found.model)[0].terms[1].mean, sum, 1e-9 * std::abs(sum));
  }
  ensemble.member.layers.clear();
  ensemble.member.trainer = Trainer::exact;
  EXPECT_THROW(run(data, o), Error);
  ensemble.member.trainer = Trainer::adam;
  ensemble.members = 1;
  EXPECT_THROW(run(data, o), Error);
}

TEST(RegressionTest, AColumnOfZerosDoesNoHarm) {
  Dataset data = lorenz(0.025, 3);
  data.variables.push_back("nothing");
  Matrix& u = data.trajectories[0].states;
  u.conservativeResize(u.rows(), 4);
  u.col(3).setZero();
  const auto found = equations(run(data, regression()).model);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1].terms.size(), 3u);
  for (const Term& t : found[3].terms) EXPECT_LT(std::abs(t.mean), 1e-12);
}

TEST(RegressionTest, PowersThatOverflowAreAnError) {
  Dataset data = lorenz(0, 0);
  data.trajectories[0].states *= 1e60;
  FitOptions o = regression(DerivativeMethod::weak, 3);
  std::get<RegressionMethod>(o.method).rows.scale = ScaleKind::none;
  EXPECT_THROW(run(data, o), Error);
}

TEST(BootstrapPosteriorTest, TooFewRowsToDrawFromAreAnError) {
  // Every replicate of 14 rows in blocks of four chunks held each row once: intervals of 1e-14.
  Dataset few = lorenz(0, 0);
  few.trajectories[0].times.resize(14);
  few.trajectories[0].states.conservativeResize(14, 3);
  const FitOptions o = bootstrap(regression(DerivativeMethod::forward, 1));
  EXPECT_THROW(run(few, o), Error);
}

TEST(RegressionTest, ForecastsStartInASmoothedState) {
  const Dataset noisy = lorenz(0.05, 9), clean = lorenz(0, 0);
  const Model model = run(noisy, regression()).model;
  ASSERT_TRUE(model.last_state_sd);
  const Vector noise = noise_level(clean, 0.05, NoiseOf::rms);
  const Vector truth = clean.trajectories[0].states.bottomRows(1).transpose();
  for (int i = 0; i < 3; ++i) {
    const double sd = (*model.last_state_sd)[i];
    EXPECT_GT(sd, 0.05 * noise[i]);
    EXPECT_LT(sd, noise[i]);
    EXPECT_NEAR(model.last_state[i], truth[i], 4.5 * sd);
  }
}

TEST(RegressionTest, OptionsOutOfRangeAreErrors) {
  const Dataset data = lorenz(0, 0);
  EXPECT_THROW(run(data, regression(DerivativeMethod::weak, 21)), Error);
  EXPECT_THROW(run(data, regression(DerivativeMethod::weak, 12)), Error);  // 1365 candidates
  EXPECT_THROW(run(data, regression(DerivativeMethod::weak, -1)), Error);
  Dataset few = data;
  few.trajectories[0].times.resize(8);
  few.trajectories[0].states.conservativeResize(8, 3);
  EXPECT_THROW(run(few, regression()), Error);
  EXPECT_THROW(run(few, regression(DerivativeMethod::forward)), Error);
}

}  // namespace
}  // namespace odecast
