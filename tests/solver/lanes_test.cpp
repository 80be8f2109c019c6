#include "odecast/solver/lanes.hpp"

#include <gtest/gtest.h>

#include "odecast/core/random.hpp"
#include "odecast/field/function_terms.hpp"

namespace odecast {
namespace {

struct Ensemble {
  std::shared_ptr<const MonomialBasis> basis;
  LaneProblems problems;
  std::vector<double> times;
  int members;

  VectorField field(int k) const {
    const int n = basis->variables(), F = basis->size();
    return VectorField(PolynomialField{
        basis, Eigen::Map<const Matrix>(problems.coefficients.data() + k * n * F, n, F)});
  }
  Vector start(int k) const {
    return Eigen::Map<const Vector>(problems.starts.data() + k * basis->variables(),
                                    basis->variables());
  }
};

/// Random polynomial fields: some settle, many blow up.
Ensemble random_ensemble(int n, int degree, int members, double size, std::uint64_t seed) {
  Ensemble e{std::make_shared<const MonomialBasis>(n, degree), {}, {}, members};
  Stream stream(seed, Purpose::initial_weights, 0);
  for (int i = 1; i <= 50; ++i) e.times.push_back(0.1 * i);
  e.problems.basis = e.basis.get();
  e.problems.times = e.times;
  for (int k = 0; k < members * n * e.basis->size(); ++k)
    e.problems.coefficients.push_back(size * stream.normal());
  for (int k = 0; k < members * n; ++k) e.problems.starts.push_back(stream.normal());
  return e;
}

struct LaneSolutions {
  LaneSolutions(const LaneProblems& problems, const SolverOptions& options)
      : states(problems.starts.size() *
               static_cast<std::size_t>(lane_stride(static_cast<int>(problems.times.size())))),
        ends(problems.starts.size() / static_cast<std::size_t>(problems.basis->variables())) {
    solve_lanes(problems, options, states.data(), ends);
  }
  std::vector<double> states;
  std::vector<TrajectoryEnd> ends;
};

TEST(LanesTest, EveryMemberHasTheBitsOfALoneTrajectory) {
  for (const auto& [n, degree, members, size] : {std::tuple{1, 3, 5, 0.6},
                                                 {2, 2, 8, 0.6},
                                                 {3, 2, 61, 0.6},
                                                 {3, 3, 17, 0.15},
                                                 {5, 2, 9, 0.15}}) {
    Ensemble e = random_ensemble(n, degree, members, size, 11);
    SolverOptions options;
    options.bound = 1e6;
    options.max_steps = 500;
    const LaneSolutions lanes(e.problems, options);
    int blown_up = 0;
    for (int k = 0; k < members; ++k) {
      const Solution one = solve(e.field(k), 0, e.start(k), e.times, options);
      const auto& end = lanes.ends[static_cast<std::size_t>(k)];
      ASSERT_EQ(end.status, one.status) << n << ' ' << degree << ' ' << k;
      ASSERT_EQ(end.outputs, one.outputs);
      ASSERT_EQ(end.time, one.reached);
      ASSERT_EQ(end.steps, one.accepted + one.rejected);
      blown_up += one.status != SolveStatus::finished;
      for (int i = 0; i < n; ++i)
        for (int t = 0; t < one.outputs; ++t)
          ASSERT_EQ(lanes.states[static_cast<std::size_t>((k * n + i) * lane_stride(50) + t)],
                    one.states(t, i));
    }
    EXPECT_GT(blown_up, 0);
    EXPECT_LT(blown_up, members);
  }
}

TEST(LanesTest, FunctionsHaveTheBitsOfALoneTrajectory) {
  const auto basis = std::make_shared<const MonomialBasis>(2, 2);
  Tape tape({"x", "y"});
  std::vector<FunctionTerms::Term> terms;
  for (const char* text : {"sin(k*x + y)", "y/(k + abs(y))", "log(x)", "exp(-a*x^2)*tanh(y)"})
    terms.push_back({parse_expression(text, tape), 0.7});
  const auto functions = std::make_shared<const FunctionTerms>(
      tape, terms, std::vector<InnerNumber>{{"k", 0.5, 0.1, true}, {"a", 0.2, 0.3, false}},
      Eigen::Vector2d(0.1, 0), Eigen::Vector2d(2, 0.5), 2);
  constexpr int members = 29, width = 6 + 4;
  LaneProblems problems;
  problems.basis = basis.get();
  problems.functions = functions.get();
  std::vector<double> times;
  for (int i = 1; i <= 50; ++i) times.push_back(0.1 * i);
  problems.times = times;
  Stream stream(3, Purpose::initial_weights, 0);
  for (int c = 0; c < members * 2 * width; ++c)  // log(x), which is not finite, in some alone
    problems.coefficients.push_back(c % width == 8 && (c / width / 2) % 3 ? 0
                                                                          : 0.4 * stream.normal());
  for (int c = 0; c < members * 2; ++c) problems.starts.push_back(stream.normal());
  for (int c = 0; c < members * 2; ++c) problems.numbers.push_back(stream.normal());
  SolverOptions options;
  options.bound = 1e6;
  options.max_steps = 500;
  const LaneSolutions lanes(problems, options);
  int finished = 0;
  for (int k = 0; k < members; ++k) {
    const double *c = problems.coefficients.data() + k * 2 * width,
                 *z = problems.numbers.data() + 2 * k;
    const VectorField field(
        PolynomialField{basis, Eigen::Map<const Matrix>(c, 2, width), functions, {z, z + 2}});
    const Solution one = solve(
        field, 0, Eigen::Map<const Vector>(problems.starts.data() + 2 * k, 2), times, options);
    const auto& end = lanes.ends[static_cast<std::size_t>(k)];
    ASSERT_EQ(end.status, one.status) << k;
    ASSERT_EQ(end.outputs, one.outputs);
    ASSERT_EQ(end.steps, one.accepted + one.rejected);
    finished += one.status == SolveStatus::finished;
    for (int i = 0; i < 2; ++i)
      for (int t = 0; t < one.outputs; ++t)
        ASSERT_EQ(lanes.states[static_cast<std::size_t>((k * 2 + i) * lane_stride(50) + t)],
                  one.states(t, i));
  }
  EXPECT_GT(finished, members / 4);
}

TEST(LanesTest, MembersDoNotDependOnTheirNeighbours) {
  Ensemble all = random_ensemble(3, 2, 40, 0.6, 5);
  SolverOptions options;
  options.bound = 1e6;
  const LaneSolutions together(all.problems, options);
  Ensemble one = all;
  one.problems.times = one.times;
  one.problems.basis = one.basis.get();
  one.problems.coefficients.assign(all.problems.coefficients.begin() + 7 * 30,
                                   all.problems.coefficients.begin() + 8 * 30);
  one.problems.starts.assign(all.problems.starts.begin() + 21, all.problems.starts.begin() + 24);
  const LaneSolutions alone(one.problems, options);
  EXPECT_EQ(alone.ends[0].steps, together.ends[7].steps);
  const std::size_t stride = lane_stride(50);
  for (std::size_t i = 0; i < 3 * stride; ++i)
    if (static_cast<int>(i % stride) < alone.ends[0].outputs) {
      EXPECT_EQ(alone.states[i], together.states[7 * 3 * stride + i]);
    }
}

TEST(LanesTest, AFieldThatIsNotFiniteEndsAndHurtsNobody) {
  Ensemble e = random_ensemble(2, 2, 16, 0.1, 3);
  const LaneSolutions clean(e.problems, {});
  for (int c = 0; c < 12; ++c) e.problems.coefficients[static_cast<std::size_t>(12 * 3 + c)] = NAN;
  const LaneSolutions damaged(e.problems, {});
  EXPECT_EQ(damaged.ends[3].status, SolveStatus::step_too_small);
  for (std::size_t k = 0; k < 16; ++k)
    if (k != 3) {
      EXPECT_EQ(damaged.ends[k].steps, clean.ends[k].steps);
    }
}

}  // namespace
}  // namespace odecast
