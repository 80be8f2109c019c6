#include "odecast/tuning/tune.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/times.hpp"
#include "odecast/core/work.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "studies/compare.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

class TuneTest : public ::testing::Test {
 protected:
  TuneTest() {
    std::vector<double> times = regular_times(0, 30, 0.05);
    times.insert(times.begin(), 0.0);
    const System system = find_system("SprottB");
    data = {
        system.variables,
        {{"", times, solve_certified(system.field, 0, Vector::Ones(3), times).solution.states}}};
    add_noise(data, noise_level(data, 0.02, NoiseOf::sd), 1);
    std::filesystem::remove_all(folder);
  }
  ~TuneTest() override { std::filesystem::remove_all(folder); }

  static Candidate dropout(double rate) {
    return {
        "--dropout " + std::to_string(rate),
        {.method = DropoutMethod{.dropout = rate, .rows = {.derivative = DerivativeMethod::weak}}}};
  }

  Dataset data;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("odecast-tune-" + std::to_string(::getpid()));
  const TuneOptions quick{.starts = 12, .leads = 5, .draws = 20};
};

TEST_F(TuneTest, BlocksHoldEveryRowOutOnceAndNothingCrossesACut) {
  Dataset two = data;
  two.trajectories.push_back(data.trajectories[0]);
  two.trajectories[0].id = "a";
  two.trajectories[1].id = "b";
  long held_out = 0;
  for (int b = 0; b < 3; ++b) {
    const Split s = hold_out(two, b, 3);
    EXPECT_EQ(s.train.rows() + s.test.rows(), two.rows());
    held_out += s.test.rows();
    for (const Dataset* part : {&s.train, &s.test})
      for (const Trajectory& t : part->trajectories)
        for (std::size_t i = 1; i < t.times.size(); ++i)
          EXPECT_NEAR(t.times[i] - t.times[i - 1], 0.05, 1e-9)
              << t.id << ": a neighbour of a row is its neighbour in the data";
  }
  EXPECT_EQ(held_out, two.rows());
}

TEST_F(TuneTest, RanksByHeldOutForecastsAndGoesOnWhereItStopped) {
  const std::vector<Candidate> some = {dropout(0.5), dropout(0.02)};
  const Tuning first = tune(data, some, folder, quick, ignore_progress);
  EXPECT_EQ(first.rows[0].candidate, 1u) << "a rate of a half is a wide band";
  EXPECT_EQ(first.rows[0].behind.value, 0);
  EXPECT_GT(first.rows[1].behind.value, 0);
  EXPECT_LT(first.rows[0].energy.value, first.climatology);
  EXPECT_EQ(first.found, 0);
  // The same work is found; one more candidate is added to it.
  std::vector<Candidate> more = some;
  more.push_back(dropout(0.1));
  const Tuning second = tune(data, more, folder, quick, ignore_progress);
  EXPECT_EQ(second.found, 6);
  EXPECT_EQ(second.units, 9);
  EXPECT_EQ(second.rows[0].energy.value, first.rows[0].energy.value);
  // Two threads, from nothing: the same bits.
  std::filesystem::remove_all(folder);
  TuneOptions threads = quick;
  threads.threads = 2;
  const Tuning again = tune(data, more, folder, threads, ignore_progress);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_EQ(again.rows[k].energy.value, second.rows[k].energy.value);
  // Other data are noticed.
  Dataset other = data;
  other.trajectories[0].states(5, 0) += 1e-9;
  EXPECT_THROW(tune(other, more, folder, quick, ignore_progress), Error);
}

TEST_F(TuneTest, WorkIsFoundForItsOwnSettingsOnly) {
  // Words that differ by a sign are other units.
  Candidate low = dropout(0.02), high = dropout(0.5);
  low.words = "--dropout 1e-3";
  high.words = "--dropout 1e+3";
  const Tuning both = tune(data, {low, high}, folder, quick, ignore_progress);
  EXPECT_NE(both.rows[0].energy.value, both.rows[1].energy.value);
  EXPECT_EQ(tune(data, {high}, folder, quick, ignore_progress).found, 3);
  // What all candidates share is not in their words.
  TuneOptions other = quick;
  other.shared = "--kind=map";
  EXPECT_THROW(tune(data, {low, high}, folder, other, ignore_progress), Error);
  Dataset driven = data;
  driven.inputs = {"F"};
  for (Trajectory& t : driven.trajectories) t.inputs = Matrix::Zero(t.rows(), 1);
  EXPECT_THROW(tune(driven, {low, high}, folder, quick, ignore_progress), Error);
}

TEST_F(TuneTest, ClimatologyIsJudgedFromAllStarts) {
  const Tuning found = tune(data, {dropout(0.1)}, folder, quick, ignore_progress);
  double sum = 0, starts = 0, last = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "units")) {
    if (entry.path().extension() != ".json") continue;
    const Values v =
        parse_values(read_file(entry.path()), read_file(folder / "units" / "settings"), "");
    sum += v.numbers.at("starts") * v.numbers.at("climatology");
    starts += v.numbers.at("starts");
    if (entry.path().filename().string().starts_with("block3")) last = v.numbers.at("climatology");
  }
  EXPECT_EQ(starts, 12);
  EXPECT_NEAR(found.climatology, sum / starts, 1e-12);
  EXPECT_GT(std::abs(found.climatology - last), 1e-6) << "blocks differ";
}

TEST_F(TuneTest, OptionsOutOfRangeAreToldBeforeAnyWork) {
  Candidate wide = dropout(0.1);
  wide.options.method = TrajectoryMethod{.degree = 21};
  for (const Candidate& bad : {dropout(1.5), wide}) {
    EXPECT_THROW(tune(data, {dropout(0.02), bad}, folder, quick, ignore_progress), Error);
    EXPECT_FALSE(std::filesystem::exists(folder / "units"));
  }
}

TEST_F(TuneTest, BlocksMustBeLongerThanTheHorizon) {
  TuneOptions far = quick;
  far.horizon = 8;
  EXPECT_THROW(tune(data, {dropout(0.1)}, folder, far, ignore_progress), Error);
}

// Calibrated on starts of the same attractor a band holds its level: the mean over leads and
// variables has the standard error of the judging starts, and that of the 95 % point of the
// calibrating ones about as much.
TEST_F(TuneTest, CalibratedBandsOfAComparisonHoldTheirLevel) {
  ODECAST_NOT_UNDER_SANITIZERS();
  CompareOptions o{.systems = {"SprottS"},
                   .noises = {0.05},
                   .rows = 600,
                   .starts = 150,
                   .held_out = 300,
                   .horizon = 3,
                   .leads = 6,
                   .draws = 40};
  const MethodComparison c = compare(folder, o, ignore_progress);
  int calibrated = 0;
  for (const CompareCell& cell : c.cells) {
    ASSERT_TRUE(cell.fitted) << cell.method;
    if (!cell.calibrated) continue;
    ++calibrated;
    EXPECT_NEAR(cell.coverage.value, 0.95, 5 * std::hypot(cell.coverage.standard_error, 0.0126))
        << cell.method;
  }
  EXPECT_GE(calibrated, 3);
  const std::string csv = comparison_csv(c);
  std::filesystem::remove_all(folder);
  o.threads = 2;
  EXPECT_EQ(comparison_csv(compare(folder, o, ignore_progress)), csv);
  EXPECT_EQ(compare(folder, o, ignore_progress).found, 1);
}

}  // namespace
}  // namespace odecast
