#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/solver/solve.hpp"
#include "studies/claims.hpp"

namespace odecast {
namespace {

Claim with_verdicts(Verdict a, Verdict b, Verdict c) {
  Claim claim;
  claim.readings[0].verdict = a;
  claim.readings[1].verdict = b;
  claim.readings[2].verdict = c;
  return claim;
}

TEST(StudyTest, ReadingsTogetherGiveOneVerdict) {
  using enum Verdict;
  EXPECT_EQ(with_verdicts(holds, holds, holds).verdict(), "holds");
  EXPECT_EQ(with_verdicts(holds, undecided, undecided).verdict(), "holds");
  EXPECT_EQ(with_verdicts(undecided, fails, fails).verdict(), "does not hold");
  EXPECT_EQ(with_verdicts(holds, fails, undecided).verdict(), "depends on the reading");
  EXPECT_EQ(with_verdicts(undecided, undecided, undecided).verdict(), "not decided");
}

TEST(StudyTest, ValuesComeBackWithTheSameBits) {
  Values v;
  v.numbers = {{"third", 1.0 / 3}, {"none", NAN}, {"tiny", 5e-324}};
  v.curves = {{"curve", {0.1, -0.0, 1e300}}};
  const std::string text = format_values(v, "settings");
  const Values back = parse_values(text, "settings", "test");
  EXPECT_EQ(back.numbers.at("third"), 1.0 / 3);
  EXPECT_TRUE(std::isnan(back.numbers.at("none")));
  EXPECT_EQ(back.numbers.at("tiny"), 5e-324);
  EXPECT_EQ(back.curves, v.curves);
  EXPECT_EQ(format_values(back, "settings"), text);
}

TEST(StudyTest, AUnitThatWasChangedIsRefused) {
  Values v;
  v.numbers = {{"third", 1.0 / 3}};
  v.curves = {{"curve", {0.1, 2}}};
  const std::string text = format_values(v, "settings");
  EXPECT_THROW(parse_values(text, "other settings", "test"), Error);
  EXPECT_THROW(parse_values("{\"numbers\": 1}", "settings", "test"), Error);
  EXPECT_THROW(parse_values("half a fi", "settings", "test"), Error);
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char c : {'0', '9', ' ', '}', '\n'}) {
      if (text[i] == c) continue;
      std::string changed = text;
      changed[i] = c;
      EXPECT_THROW(parse_values(changed, "settings", "test"), Error) << i << " to " << c;
    }
}

TEST(StudyTest, ReleasedRowsPairATargetWithTheStateBefore) {
  const Setting s = make_setting();
  const DerivativeRows rows = released_rows(s, 50);
  ASSERT_EQ(rows.rows(), 50);
  std::vector<double> times;
  for (int i = 0; i < 500; ++i) times.push_back(100.0 * i / 499);
  const Matrix u = solve(s.system.field, 0, Vector::Ones(3), times, {}).states;
  EXPECT_EQ(rows.states.row(0), u.row(499));
  for (int i = 1; i < 50; ++i) EXPECT_EQ(rows.states.row(i), u.row(i - 1));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(rows.derivatives.row(i), ((u.row(i + 1) - u.row(i)) / 0.2).eval());
  EXPECT_TRUE((rows.sigma.array() == 0.2).all());
}

TEST(StudyTest, TheAttractorIsSprottBs) {
  const Setting s = make_setting();
  // The averages of d(x²)/dt = 2xyz, d(y²)/dt = 2xy - 2y², dz/dt = 1 - xy vanish along a bounded
  // orbit: the mean of y² is that of xy, 1. By the mirror symmetry (x, y, z) -> (-x, -y, z) the
  // means of x and y are 0; 100,000 time units are about 20,000 Lyapunov times, so 0.02 is more
  // than two standard errors of 1/√20000.
  EXPECT_NEAR(s.attractor_sd[1], 1, 0.01);
  EXPECT_NEAR(s.attractor_mean[0], 0, 0.02);
  EXPECT_NEAR(s.attractor_mean[1], 0, 0.02);
  ASSERT_EQ(s.starts.size(), 100u);
  for (const TestRun& run : s.starts) {
    EXPECT_EQ(run.truth.rows(), 200);
    EXPECT_LT(run.truth.cwiseAbs().maxCoeff(), 20);
  }
}

TEST(StudyTest, TheSummaryInTheDocsIsWhatTheStudyFound) {
  const std::filesystem::path docs = std::filesystem::path(ODECAST_SOURCE) / "docs";
  EXPECT_EQ(read_file(docs / "reproduction.md"),
            claims_markdown(read_file(docs / "reproduction.json")));
}

}  // namespace
}  // namespace odecast
