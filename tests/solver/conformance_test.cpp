// RK45 against SciPy's solve_ivp (values recorded from SciPy, see reference in docs/theory.md) and
// against Boost.odeint.

#include <gtest/gtest.h>

#include <boost/numeric/odeint.hpp>
#include <chrono>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

const std::vector<double> kTen = {10.0};
const SolverOptions kRecord = {.record_steps = true};

TEST(ConformanceTest, LinearDecayTakesSciPysSteps) {
  const VectorField f(3, [](double, const double* u, double* d) {
    for (int i = 0; i < 3; ++i) d[i] = -0.5 * u[i];
  });
  const Solution s = solve(f, 0, Eigen::Vector3d(2, 4, 8), kTen, kRecord);
  const double expected[] = {0,          0.11487653, 1.26364188, 3.06061781,
                             4.81611105, 6.57445806, 8.33328988, 10};
  ASSERT_EQ(s.step_times.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(s.step_times[i], expected[i], 5e-9);
  EXPECT_NEAR(s.end_state[0], 0.01350781, 5e-9);
}

TEST(ConformanceTest, SprottBTakesSciPysSteps) {
  const VectorField f = find_system("SprottB").field;
  const Solution a = solve(f, 0, Vector::Constant(3, 1), kTen, kRecord);
  EXPECT_NEAR(a.end_state[0], 1.3606194093073, 1e-12);
  EXPECT_NEAR(a.end_state[1], 0.9702763477777, 1e-12);
  EXPECT_NEAR(a.end_state[2], -1.3336445479607, 1e-12);
  EXPECT_EQ(a.accepted, 18);
  EXPECT_EQ(a.rejected, 3);
  EXPECT_EQ(a.evaluations, 128);
  EXPECT_NEAR(a.step_times[1], 0.10415879366807797, 1e-15);

  const Solution b = solve(f, 0, Vector::Constant(3, -1), kTen, {});
  EXPECT_NEAR(b.end_state[0], 0.7837678830445, 1e-12);
  EXPECT_NEAR(b.end_state[1], 0.8120520523589, 1e-12);
  EXPECT_NEAR(b.end_state[2], 0.1306679626993, 1e-12);
  EXPECT_EQ(b.accepted, 16);
  EXPECT_EQ(b.rejected, 3);
  EXPECT_EQ(b.evaluations, 116);
}

TEST(ConformanceTest, CertifiedTruthIsTheTightSolution) {
  const VectorField f = find_system("SprottB").field;
  const auto a = solve_certified(f, 0, Vector::Constant(3, 1), kTen);
  EXPECT_NEAR(a.solution.end_state[0], 1.3326264625, 1e-9);
  EXPECT_NEAR(a.solution.end_state[1], 0.9784158058, 1e-9);
  EXPECT_NEAR(a.solution.end_state[2], -1.3206311472, 1e-9);
  EXPECT_EQ(a.certified_until, 10);
  const auto b = solve_certified(f, 0, Vector::Constant(3, -1), kTen);
  EXPECT_NEAR(b.solution.end_state[0], 0.7778520129, 1e-9);
}

TEST(ConformanceTest, CertificationEndsWhereChaosTakesOver) {
  std::vector<double> times;
  for (int i = 1; i <= 400; ++i) times.push_back(i);
  const auto s = solve_certified(find_system("SprottB").field, 0, Vector::Constant(3, 1), times);
  EXPECT_EQ(s.solution.status, SolveStatus::finished);
  // An error of 1e-14 grows to 1 % of the spread in ln(1e12)/0.21 = 130 time units, give or take.
  EXPECT_GT(s.certified_until, 90);
  EXPECT_LT(s.certified_until, 200);
}

TEST(ConformanceTest, AgreesWithOdeintAtTightTolerance) {
  using State = std::vector<double>;
  namespace odeint = boost::numeric::odeint;
  for (const char* name : {"SprottB", "Lorenz", "Rossler", "Pendulum"}) {
    const System system = find_system(name);
    const std::vector<double> times = {0.5, 1, 2, 3, 5};
    SolverOptions options;
    options.rtol = options.atol = 1e-12;
    const Solution ours = solve(system.field, 0, system.start, times, options);
    State state(system.start.begin(), system.start.end());
    std::vector<double> grid = {0};
    grid.insert(grid.end(), times.begin(), times.end());
    std::vector<State> theirs;
    odeint::integrate_times(
        odeint::make_dense_output(1e-12, 1e-12, odeint::runge_kutta_dopri5<State>()),
        [&](const State& u, State& d, double t) { system.field(t, u.data(), d.data()); }, state,
        grid.begin(), grid.end(), 0.01, [&](const State& u, double) { theirs.push_back(u); });
    for (std::size_t k = 0; k < times.size(); ++k)
      for (Eigen::Index i = 0; i < system.start.size(); ++i)
        EXPECT_NEAR(ours.states(static_cast<Eigen::Index>(k), i),
                    theirs[k + 1][static_cast<std::size_t>(i)],
                    2e-9 * (1 + std::abs(theirs[k + 1][static_cast<std::size_t>(i)])))
            << name << " t = " << times[k];
  }
}

TEST(ConformanceTest, MirroredStartsGiveMirroredBits) {
  const VectorField f = find_system("SprottB").field;
  Stream stream(1, Purpose::initial_state, 0);
  std::vector<double> times;
  for (int i = 1; i <= 40; ++i) times.push_back(0.5 * i);
  for (int k = 0; k < 200; ++k) {
    const Eigen::Vector3d u(stream.normal(), stream.normal(), stream.normal());
    const Eigen::Vector3d mirrored(-u[0], -u[1], u[2]);
    const Solution a = solve(f, 0, u, times, kRecord), b = solve(f, 0, mirrored, times, kRecord);
    ASSERT_EQ(a.step_times, b.step_times);
    ASSERT_EQ(a.states.col(0), -b.states.col(0));
    ASSERT_EQ(a.states.col(1), -b.states.col(1));
    ASSERT_EQ(a.states.col(2), b.states.col(2));
  }
}

TEST(ConformanceTest, HarmonicOscillatorKeepsItsEnergyToTheTolerance) {
  const VectorField f(2, [](double, const double* u, double* d) { d[0] = u[1], d[1] = -u[0]; });
  const std::vector<double> times = {20 * M_PI};
  SolverOptions options;
  options.rtol = options.atol = 1e-10;
  const Solution s = solve(f, 0, Eigen::Vector2d(1, 0), times, options);
  EXPECT_NEAR(s.end_state[0], 1, 1e-7);
  EXPECT_NEAR(s.end_state.squaredNorm(), 1, 1e-7);
}

/// Fields no solver may hang on: every combination ends, and says how.
TEST(ConformanceTest, NothingRunsForEver) {
  const double nan = std::nan(""), inf = INFINITY;
  const std::vector<VectorField> fields = {
      VectorField(1, [=](double, const double*, double* d) { d[0] = nan; }),
      VectorField(1, [=](double, const double*, double* d) { d[0] = inf; }),
      VectorField(1, [=](double, const double*, double* d) { d[0] = -1e308; }),
      VectorField(1, [=](double t, const double*, double* d) { d[0] = t > 1 ? nan : 1; }),
      VectorField(1, [](double, const double* u, double* d) { d[0] = u[0] * u[0]; }),
      VectorField(1, [](double, const double* u, double* d) { d[0] = 1e200 * u[0]; }),
      VectorField(1, [](double t, const double*, double* d) { d[0] = std::sin(1e9 * t) * 1e9; })};
  SolverOptions options;
  options.max_steps = 10'000;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const double start : {0.0, 1.0, 1e300, -1e-300}) {
      const auto begin = std::chrono::steady_clock::now();
      const Solution s = solve(fields[i], 0, Vector::Constant(1, start), kTen, options);
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << i;
      EXPECT_LE(s.accepted + s.rejected, 10'000);
      if (i < 2) {
        EXPECT_EQ(s.status, SolveStatus::step_too_small) << i << " from " << start;
        EXPECT_EQ(s.outputs, 0);
      }
    }
  }
}

TEST(ConformanceTest, APoleIsABlowUpAtItsTime) {
  const VectorField f(1, [](double, const double* u, double* d) { d[0] = u[0] * u[0]; });
  const std::vector<double> times = {0.5, 0.9, 2};
  SolverOptions options;
  options.bound = 1e6;
  const Solution s = solve(f, 0, Vector::Ones(1), times, options);  // u = 1/(1-t)
  EXPECT_EQ(s.status, SolveStatus::left_bound);
  EXPECT_EQ(s.outputs, 2);
  EXPECT_NEAR(s.reached, 1, 1e-2);
  EXPECT_NEAR(s.states(0, 0), 2, 1e-2);
  options.bound = 1e300;
  EXPECT_EQ(solve(f, 0, Vector::Ones(1), times, options).status, SolveStatus::step_too_small);
}

TEST(ConformanceTest, TooManyStepsEndsWithTheStateOfItsTime) {
  const VectorField f(1, [](double, const double* u, double* d) { d[0] = -u[0]; });
  SolverOptions options;
  options.max_steps = 3;
  const Solution s = solve(f, 0, Vector::Ones(1), kTen, options);
  EXPECT_EQ(s.status, SolveStatus::too_many_steps);
  EXPECT_GT(s.reached, 0);
  EXPECT_NEAR(s.end_state[0], std::exp(-s.reached), 1e-3);
}

/// A map to 2·10⁹ iterations, and steps of a billionth: neither sets out.
TEST(ConformanceTest, EqualStepsBeyondTheLimitAreNotTaken) {
  const VectorField henon(2, [](double, const double* u, double* next) {
    next[0] = 1 - 1.4 * u[0] * u[0] + u[1];
    next[1] = 0.3 * u[0];
  });
  const auto run = [&](SolverMethod method, double step, std::vector<double> times) {
    SolverOptions options;
    options.method = method;
    options.fixed_step = step;
    options.max_steps = 1000;
    return solve(henon, 0, Vector::Zero(2), times, options);
  };
  for (const auto& [method, step, far] : {std::tuple{SolverMethod::iterate, 1.0, 2e9},
                                          {SolverMethod::rk4, 1e-9, 1.0},
                                          {SolverMethod::euler, 1e-9, 1.0}}) {
    const Solution none = run(method, step, {far});
    EXPECT_EQ(none.status, SolveStatus::too_many_steps);
    EXPECT_EQ(none.evaluations, 0);
    EXPECT_EQ(none.reached, 0);
    // An output on the way is reached, and the limit is of all steps together.
    const Solution some = run(method, step, {600 * step, 1200 * step});
    EXPECT_EQ(some.status, SolveStatus::too_many_steps);
    EXPECT_EQ(some.outputs, 1);
    EXPECT_EQ(some.accepted, 600);
    EXPECT_EQ(run(method, step, {600 * step, 1000 * step}).status, SolveStatus::finished);
  }
}

TEST(ConformanceTest, OptionsOutOfRangeAreRefused) {
  const VectorField f(1, [](double, const double*, double* d) { d[0] = 0; });
  const auto refused = [&](auto change) {
    SolverOptions o;
    change(o);
    EXPECT_THROW(solve(f, 0, Vector::Ones(1), kTen, o), Error);
  };
  refused([](auto& o) { o.rtol = -1; });
  refused([](auto& o) { o.atol = NAN; });
  refused([](auto& o) { o.max_step = 0; });
  refused([](auto& o) { o.bound = NAN; });
  refused([](auto& o) { o.max_steps = 0; });
  refused([](auto& o) { o.method = SolverMethod::rk4; });
}

TEST(ConformanceTest, StepHookHoldsTheFieldDuringRetries) {
  // A field that jumps from step to step; rejected tries must see the same one.
  std::uint64_t current = 0;
  std::vector<std::uint64_t> told;
  const VectorField f(
      1,
      [&](double, const double* u, double* d) {
        d[0] = -50.0 * u[0] * static_cast<double>(1 + current % 2);
      },
      [&](std::uint64_t accepted) { told.push_back(current = accepted); });
  const Solution s = solve(f, 0, Vector::Ones(1), kTen, {});
  EXPECT_EQ(s.status, SolveStatus::finished);
  EXPECT_GT(s.rejected, 0);
  ASSERT_EQ(told.size(), static_cast<std::size_t>(s.accepted));
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], i);
}

}  // namespace
}  // namespace odecast
