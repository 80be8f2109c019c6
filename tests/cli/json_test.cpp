#include "cli/commands.hpp"

namespace odecast::cli_test {
namespace {

TEST_F(CommandsTest, SimulateJson) {
  const Json json = json_of({"simulate", "sprottb", "--init", "1,1,1", "--until", "1", "--step",
                             "0.02", "-o", "train.csv"});
  expect_keys(json, {"system", "variables", "rows", "until", "certified_until", "output"});
  EXPECT_EQ(json["system"], "SprottB");
  EXPECT_EQ(json["variables"], Json({"x", "y", "z"}));
  EXPECT_EQ(json["rows"], 51);
  EXPECT_EQ(json["until"], 1);
  EXPECT_EQ(json["certified_until"], 1);
  EXPECT_EQ(csv_rows(read("train.csv")).size(), 52u);
  EXPECT_TRUE(json_of({"simulate", "Lorenz", "--until", "1"}).contains("rows"));
}

TEST_F(CommandsTest, FitJson) {
  make_data();
  const Json json = json_of(
      {"fit", "train.csv", "--trainer", "adam", "--batches", "3", "--seed", "7", "-o", "m.json"});
  expect_keys(json, {"objective", "rows", "seconds", "iterations", "status"});
  EXPECT_EQ(json["rows"], 50);             // a derivative between each two of 51 rows
  EXPECT_EQ(json["iterations"], 3 * 110);  // the default schedule has 10 + 100 steps
  EXPECT_EQ(json["seed"], 7);
  EXPECT_GT(json["objective"], 0);
  EXPECT_GE(json["seconds"], 0);
  EXPECT_TRUE(json["status"].is_string());
  EXPECT_TRUE(exists("m.json"));
}

TEST_F(CommandsTest, ObjectiveIsInTheUnitsOfTheData) {
  // Standardised inside, both fits are the same one; a square is 100 times as large in the second.
  make_data();
  const auto t = csv_column(read("train.csv"), "t"), x = csv_column(read("train.csv"), "x");
  std::string small = "t,x\n", large = "t,x\n";
  for (std::size_t i = 0; i < t.size(); ++i) {
    small += t[i] + "," + x[i] + "\n";
    large += t[i] + "," + number_text(10 * number(x[i])) + "\n";
  }
  write("small.csv", small);
  write("large.csv", large);
  const auto objective = [&](const std::string& file) {
    return json_of(
               {"fit", file, "--trainer", "adam", "--batches", "2", "-o", "m.json"})["objective"]
        .get<double>();
  };
  const double one = objective("small.csv");
  EXPECT_NEAR(objective("large.csv") / one, 100, 1e-6);
}

TEST_F(CommandsTest, ForecastJson) {
  make_model();
  const Json json =
      json_of({"forecast", "model.json", "--until", "1.1", "--draws", "30", "--seed", "3"});
  expect_keys(json, {"draws", "kept", "discarded", "seconds", "status"});
  EXPECT_EQ(json["draws"], 30);
  EXPECT_EQ(json["kept"], 30);
  EXPECT_EQ(json["seed"], 3);
  EXPECT_GE(json["discarded"], 0);
  EXPECT_EQ(json["status"], "complete");
  EXPECT_TRUE(exists("forecast.csv"));  // the default output
  const Json one = json_of({"forecast", "model.json", "--until", "1.1", "--field", "mean"});
  expect_keys(one, {"status", "output"});
}

TEST_F(CommandsTest, ForecastThatFailsStillPrintsJson) {
  make_model();
  // A bound below the data's own values: every run "blows up" at once.
  const Result result = run({"forecast", "model.json", "--until", "2", "--draws", "20", "--bound",
                             "1e-6", "-o", "new.csv", "--json"});
  EXPECT_EQ(result.code, 1);
  const Json json = Json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["status"], "too_few");
  EXPECT_EQ(json["kept"], 0);
  EXPECT_EQ(json["discarded"], 400);
  EXPECT_FALSE(json.contains("output"));
  EXPECT_FALSE(exists("new.csv"));
}

TEST_F(CommandsTest, ScoreJson) {
  // Errors 0 and 3 in x, -1 and 3 in y; the sd of the truth is 2 in x and 1 in y.
  write("forecast.csv",
        "t,x_mean,x_sd,x_lower,x_upper,y_mean,y_sd,y_lower,y_upper\n"
        "0,9,0,9,9,9,0,9,9\n"
        "1,1,1,-1,3,1,1,-1,3\n"
        "2,8,1,6,10,3,1,0,6\n");
  write("truth.csv", "t,y,x\n0,0,0\n0.5,7,7\n1,2,1\n2,2,5\n3,7,7\n");
  write("moving.csv", "t,x,y\n1,1,2\n2,5,0\n");
  const Json json = json_of({"score", "forecast.csv", "moving.csv"});
  expect_keys(json, {"coverage", "width", "crps", "rmse", "nrmse", "vpt", "level"});
  for (const std::string score : {"coverage", "width", "crps", "rmse", "nrmse"}) {
    SCOPED_TRACE(score);
    expect_keys(json[score], {"x", "y", "all"});
    EXPECT_EQ(json[score].size(), 3u);
  }
  EXPECT_DOUBLE_EQ(json["coverage"]["x"], 0.5);
  EXPECT_DOUBLE_EQ(json["coverage"]["y"], 1);
  EXPECT_DOUBLE_EQ(json["coverage"]["all"], 0.75);
  EXPECT_DOUBLE_EQ(json["width"]["x"], 4);
  EXPECT_DOUBLE_EQ(json["width"]["y"], 5);
  EXPECT_DOUBLE_EQ(json["rmse"]["x"], std::sqrt(4.5));
  EXPECT_DOUBLE_EQ(json["rmse"]["y"], std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(json["nrmse"]["x"], std::sqrt(4.5) / 2);
  EXPECT_DOUBLE_EQ(json["nrmse"]["y"], std::sqrt(5.0));
  EXPECT_DOUBLE_EQ(json["vpt"]["threshold"], 0.4);
  EXPECT_DOUBLE_EQ(json["vpt"]["time"], 1);  // off by one sd of y at once
  EXPECT_TRUE(json["vpt"]["lyapunov_times"].is_null());
  EXPECT_EQ(json["points"], 2) << "the start does not count";

  // Columns are matched by name, and only times that both files have are compared.
  EXPECT_EQ(json_of({"score", "forecast.csv", "truth.csv"})["points"], 2);
  const Json late =
      json_of({"score", "forecast.csv", "moving.csv", "--threshold", "9", "--lyapunov", "0.5"});
  EXPECT_DOUBLE_EQ(late["vpt"]["time"], 2) << "never exceeded: the last time";
  EXPECT_DOUBLE_EQ(late["vpt"]["lyapunov_times"], 1);
  const double exponent = json_of({"systems", "SprottB"})["lyapunov"];
  const Json named = json_of({"score", "forecast.csv", "moving.csv", "--system", "SprottB"});
  EXPECT_DOUBLE_EQ(named["vpt"]["lyapunov_times"], exponent);
}

TEST_F(CommandsTest, ScoreTellsTheLevelOfTheBand) {
  make_model();
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "1.2", "--step", "0.02", "-o",
            "truth.csv"});
  for (const std::string bands : {"both", "sd", "quantiles"}) {
    forecast({"--bands", bands, "--level", "0.8"});
    const Json json = json_of({"score", "forecast.csv", "truth.csv"});
    EXPECT_NEAR(json["level"].get<double>(), 0.8, 1e-9) << bands;
    EXPECT_EQ(json["points"], 10) << bands;
  }
}

TEST_F(CommandsTest, EquationsJson) {
  make_model();
  const Json json = json_of({"equations", "model.json"});
  EXPECT_EQ(json["variables"], Json({"x", "y", "z"}));
  ASSERT_EQ(json["equations"].size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& equation = json["equations"][i];
    EXPECT_EQ(equation["variable"], json["variables"][i]);
    ASSERT_EQ(equation["terms"].size(), 10u);  // 1, x, y, z, xx, xy, …
    std::set<Json> different;
    for (const Json& term : equation["terms"]) {
      ASSERT_EQ(term["powers"].size(), 3u);
      int degree = 0;
      for (const Json& power : term["powers"]) degree += power.get<int>();
      EXPECT_LE(degree, 2);
      EXPECT_TRUE(term["mean"].is_number_float());
      EXPECT_GT(term["sd"], 0);
      EXPECT_GT(term["probability"], 0.99);  // ten units, each of them dropped with 0.25
      EXPECT_LE(term["probability"], 1);
      different.insert(term["powers"]);
    }
    EXPECT_EQ(different.size(), 10u);
  }
  EXPECT_EQ(run_well({"equations", "model.json", "--format", "json"}).out,
            run_well({"equations", "model.json", "--json"}).out);
}

/// Mean of du/dt of one variable at u, by the terms of `equations --json`.
double mean_field(const Json& equation, const std::vector<double>& u) {
  double sum = 0;
  for (const Json& term : equation["terms"]) {
    double product = term["mean"];
    for (std::size_t v = 0; v < u.size(); ++v)
      product *= std::pow(u[v], term["powers"][v].get<int>());
    sum += product;
  }
  return sum;
}

TEST_F(CommandsTest, PredictJson) {
  make_model();
  const Json json = json_of({"predict", "model.json", "--at=-1,2,0.5", "--level", "0.9"});
  EXPECT_DOUBLE_EQ(json["level"], 0.9);
  const Json equations = json_of({"equations", "model.json"})["equations"];
  std::size_t i = 0;
  for (const std::string name : {"x", "y", "z"}) {
    const Json& d = json["derivative"][name];
    expect_keys(d, {"mean", "sd", "lower", "upper"});
    const double mean = d["mean"], sd = d["sd"];
    EXPECT_GT(sd, 0);
    EXPECT_NEAR(mean, mean_field(equations[i++], {-1, 2, 0.5}), 1e-9 * (std::abs(mean) + sd));
    EXPECT_NEAR(d["upper"].get<double>(), mean + 1.6448536269514722 * sd, 1e-9 * sd);
    EXPECT_NEAR(d["lower"].get<double>(), mean - 1.6448536269514722 * sd, 1e-9 * sd);
  }
  // K sampled draws: the mean has a standard error of sd/√K; five of them.
  const Json sampled = json_of({"predict", "model.json", "--at=-1,2,0.5", "--draws", "10000"});
  for (const std::string name : {"x", "y", "z"}) {
    const double mean = json["derivative"][name]["mean"], sd = json["derivative"][name]["sd"];
    EXPECT_NEAR(sampled["derivative"][name]["mean"].get<double>(), mean, 5 * sd / 100);
    EXPECT_NE(sampled["derivative"][name]["mean"].get<double>(), mean);
  }
}

TEST_F(CommandsTest, SplitJson) {
  make_data();
  const Json json = json_of(
      {"split", "train.csv", "--holdout", "0.2", "--train", "early.csv", "--test", "late.csv"});
  EXPECT_EQ(json["train"]["file"], "early.csv");
  EXPECT_EQ(json["train"]["rows"], 41);
  EXPECT_EQ(json["test"]["file"], "late.csv");
  EXPECT_EQ(json["test"]["rows"], 10);
}

TEST_F(CommandsTest, PlotJson) {
  make_model();
  forecast({});
  const std::string name = "a \"figure\" \\ of x.svg";
  EXPECT_EQ(json_of({"plot", "forecast.csv", "-o", name})["output"], name);
  EXPECT_TRUE(contains(read(name), "<svg"));
}

TEST_F(CommandsTest, SystemJson) {
  const Json json = json_of({"systems", "lorenz"});
  expect_keys(json, {"name", "title", "variables", "equations", "parameters", "start", "step",
                     "lyapunov", "lyapunov_source", "source"});
  EXPECT_EQ(json["name"], "Lorenz");
  EXPECT_EQ(json["variables"], Json({"x", "y", "z"}));
  EXPECT_EQ(json["equations"].size(), 3u);
  EXPECT_EQ(json["start"].size(), 3u);
  EXPECT_NEAR(json["lyapunov"].get<double>(), 0.906, 0.01);
}

TEST_F(CommandsTest, SystemsJson) {
  const Json json = json_of({"systems"});  // an object here too, as --help promises
  const std::string text = json.dump();
  for (const std::string name : {"SprottB", "Lorenz", "Rossler"})
    EXPECT_TRUE(contains(text, "\"" + name + "\"")) << name;
}

TEST_F(CommandsTest, AttractorJson) {
  run_well({"simulate", "SprottB", "--until", "40", "--step", "0.1", "--noise", "0.02", "-o",
            "noisy.csv"});
  run_well({"fit", "noisy.csv", "--posterior", "trajectory", "-o", "learnt.json"});
  const Json json =
      json_of({"attractor", "learnt.json", "noisy.csv", "--draws", "2", "--pieces", "3"});
  expect_keys(json,
              {"status", "rows", "pieces", "bins", "halves", "model", "model_sd", "draws", "seed"});
  EXPECT_EQ(json["rows"], 200);
  for (const char* of : {"halves", "model"})
    for (const char* distance : {"state_space_divergence", "spectrum_distance"})
      EXPECT_GT(json[of][distance], 0) << of << distance;
  EXPECT_EQ(json_of({"attractor", "learnt.json", "noisy.csv", "--draws", "2", "--pieces", "3",
                     "--threads", "3"}),
            json);
}

}  // namespace
}  // namespace odecast::cli_test
