// Commands that work long: tune and compare.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class StudyCommandTest : public ProgramTest {
 protected:
  StudyCommandTest() {
    run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "30", "--step", "0.05",
              "--noise", "0.02", "-o", "data.csv"});
  }
};

TEST_F(StudyCommandTest, TuneGivesTheCommandOfTheModelItWrites) {
  const Json found = Json::parse(
      run_well({"tune", "data.csv", "--dropout", "0.02,0.5", "--derivative", "weak", "--posterior",
                "dropout", "--starts", "12", "--leads", "5", "--draws", "20", "--json"})
          .out);
  ASSERT_EQ(found["rows"].size(), 2u);
  EXPECT_EQ(found["rows"][0]["settings"], "--posterior dropout --dropout 0.02 --derivative weak");
  EXPECT_LT(found["rows"][0]["energy"], found["rows"][1]["energy"]);
  EXPECT_EQ(found["rows"][0]["crps"].size(), 3u);
  const std::string model = read("tuning/model.json");
  // What it says is what it did.
  std::istringstream words(found["command"].get<std::string>());
  std::vector<std::string> line;
  for (std::string word; words >> word;) line.push_back(word);
  line.erase(line.begin());
  line.back() = "again.json";
  run_well(line);
  EXPECT_EQ(read("again.json"), model);
  EXPECT_TRUE(contains(read("tuning/table.csv"), "crps_z"));
  EXPECT_TRUE(contains(read("tuning/tuning.svg"), "climatology"));
  const std::string text =
      run_well({"tune", "data.csv", "--dropout", "0.02,0.5", "--derivative", "weak", "--posterior",
                "dropout", "--starts", "12", "--leads", "5", "--draws", "20"})
          .out;
  EXPECT_TRUE(contains(text, "behind the best")) << text;
  EXPECT_TRUE(contains(
      text, "odecast fit data.csv --posterior dropout --dropout 0.02 --derivative weak -o"))
      << text;
}

TEST_F(StudyCommandTest, TuneRefusesWhatFitRefuses) {
  EXPECT_EQ(run({"tune", "data.csv", "--dropout", "1.5"}).code, 2);
  EXPECT_EQ(run({"tune", "data.csv", "--posterior", "magic"}).code, 2);
  EXPECT_EQ(run({"tune", "data.csv", "--horizon", "29"}).code, 3);
  EXPECT_EQ(run({"tune", "missing.csv"}).code, 4);
  const Json few =
      Json::parse(run_well({"tune", "data.csv", "--posterior", "dropout", "--dropout",
                            "0.01,0.02,0.05", "--degree", "1,2", "--random", "2", "--starts", "6",
                            "--leads", "3", "--draws", "10", "-o", "few", "--json"})
                      .out);
  EXPECT_EQ(few["rows"].size(), 2u);
}

TEST_F(StudyCommandTest, TuneTriesFunctionsBesidePowers) {
  const std::string terms = "x*sin(y), z/(1 + z^2)" + std::string(200, ' ');  // no file's name
  const Json found =
      Json::parse(run_well({"tune", "data.csv", "--posterior", "trajectory,regression",
                            "--functions", "sin", "--candidates", terms, "--starts", "6", "--leads",
                            "3", "--draws", "10", "-o", "with", "--json"})
                      .out);
  std::set<std::string> settings;
  for (const Json& row : found["rows"]) settings.insert(row["settings"]);
  EXPECT_EQ(settings, (std::set<std::string>{"--posterior regression", "--posterior trajectory",
                                             "--posterior trajectory --functions=sin "
                                             "'--candidates=" +
                                                 terms + "'"}));
  const auto without = run({"tune", "data.csv", "--posterior", "dropout", "--functions", "sin"});
  EXPECT_EQ(without.code, 2);
  EXPECT_TRUE(contains(without.err, "--posterior trajectory")) << without.err;
}

TEST_F(StudyCommandTest, TuneGoesOnWithTheSameOptionsOnly) {
  const auto tune = [this](const Words& more) {
    Words words = {"tune",    "data.csv", "--posterior", "regression", "--starts", "6",
                   "--leads", "3",        "--draws",     "10",         "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  EXPECT_EQ(Json::parse(tune({}).out)["units_found"], 0);
  EXPECT_EQ(Json::parse(tune({"--kind", "flow"}).out)["units_found"], 3) << "the default, said";
  EXPECT_EQ(tune({"--kind", "map"}).code, 2);
  EXPECT_EQ(tune({"--gap", "0.5"}).code, 2);
  EXPECT_EQ(tune({"--inputs", "t"}).code, 2);
}

TEST_F(StudyCommandTest, ComparePutsPosteriorsBesideEachOther) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const std::string text =
      run_well({"compare", "--systems", "SprottS", "--noise", "0.05", "--rows", "400", "--starts",
                "40", "--held-out", "40", "--horizon", "2", "--leads", "4", "--draws", "20"})
          .out;
  for (const char* word : {"trajectory", "dropout, r tuned", "climatology", "5 % noise"})
    EXPECT_TRUE(contains(text, word)) << text;
  EXPECT_TRUE(contains(read("comparison/cells.csv"), "SprottS,0.05,trajectory,1,"));
  EXPECT_EQ(run({"compare", "--systems", "Henon"}).code, 2);
  EXPECT_EQ(run({"compare", "--systems", "SprottS", "--rows", "500"}).code, 2)
      << "the folder holds other work";
}

// The model is that of all rows, its bands those of the parts that were held out in turn; the page
// shows what they hold before and after.
TEST_F(StudyCommandTest, FitCalibratesOnTheRowsItHoldsOut) {
  ODECAST_NOT_UNDER_SANITIZERS();
  const Json fit = Json::parse(run_well({"fit", "data.csv", "--derivative", "weak", "--calibrate",
                                         "--holdout", "0.4", "-o", "model.json", "--json"})
                                   .out);
  run_well({"fit", "data.csv", "--derivative", "weak", "-o", "plain.json"});
  EXPECT_EQ(fit["calibration"]["of"], "smoothed_states");
  EXPECT_EQ(fit["calibration"]["band"], "sd") << "of networks";
  Json model = Json::parse(read("model.json")), plain = Json::parse(read("plain.json"));
  ASSERT_TRUE(model.contains("calibration"));
  for (const char* part : {"law", "last", "observed"}) EXPECT_EQ(model[part], plain[part]) << part;
  // The bands of states are calibrated, and those of observations follow them.
  run_well({"simulate", "SprottB", "--init=-1,-1,-1", "--until", "4", "--step", "0.1", "-o",
            "truth.csv"});
  const Words forecast = {"forecast", "model.json", "--init=-1,-1,-1", "--until", "4",    "--step",
                          "0.1",      "--report",   "page.html",       "-o",      "f.csv"};
  const auto with = [&](const Words& more) {
    Words words = forecast;
    words.insert(words.end(), more.begin(), more.end());
    return run_well(words).out;
  };
  EXPECT_TRUE(contains(with({"--truth", "truth.csv"}), "Bands are calibrated"));
  EXPECT_TRUE(contains(read("page.html"), "Coverage before and after calibration"));
  const auto column = [&](const std::string& name) { return csv_column(read("f.csv"), name); };
  const auto lower = column("x_lower"), middle = column("x_mean"),
             seen = column("x_observed_lower");
  const double sigma = plain["noise"][0];
  for (std::size_t k = 1; k < lower.size(); ++k) {
    const double reach = std::stod(middle[k]) - std::stod(lower[k]);
    EXPECT_NEAR(std::stod(middle[k]) - std::stod(seen[k]),
                std::hypot(reach, 1.959963984540054 * sigma), 1e-9);
  }
  EXPECT_TRUE(contains(with({"--level", "0.9"}), "bands of 95 %"));
  EXPECT_FALSE(contains(with({"--raw"}), "calibrated"));
  EXPECT_FALSE(contains(read("page.html"), "Coverage before and after calibration"));
  // Calibrated by hand, on rows with their noise, as before.
  run_well({"split", "data.csv", "--holdout", "0.4"});
  run_well({"fit", "train.csv", "--derivative", "weak", "-o", "long.json"});
  EXPECT_EQ(
      Json::parse(
          run_well({"calibrate", "long.json", "test.csv", "--observations", "--json"}).out)["of"],
      "observations");
  EXPECT_EQ(run({"fit", "data.csv", "--holdout", "0.4", "-o", "m.json"}).code, 2)
      << "--holdout does nothing alone";
  std::string few_rows = "t,x\n";
  for (int k = 0; k < 16; ++k) few_rows += fmt::format("{},{}\n", k, std::exp(-0.1 * k));
  write("few.csv", few_rows);
  const Result few = run({"fit", "few.csv", "--degree", "1", "--calibrate", "-o", "m.json"});
  EXPECT_EQ(few.code, 3);
  EXPECT_TRUE(contains(few.err, "--holdout")) << few.err;
}

}  // namespace
}  // namespace odecast::cli_test
