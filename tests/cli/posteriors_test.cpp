#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "cli/commands.hpp"
#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

TEST_F(CommandsTest, RegressionAndBootstrapFromFitToForecast) {
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "20", "--step", "0.02", "--noise",
            "0.02", "-o", "noisy.csv"});
  const Json fit = json_of({"fit", "noisy.csv", "--posterior", "regression", "--degree", "auto",
                            "--report", "page.html", "-o", "model.json"});
  EXPECT_EQ(fit["status"], "posterior");
  EXPECT_EQ(fit["derivative"], "weak");
  EXPECT_EQ(fit["terms"], 5);
  EXPECT_TRUE(fit["log_evidence"].is_number());
  ASSERT_GE(fit["degrees"].size(), 2u);
  EXPECT_GT(fit["degrees"][1]["log_evidence"].get<double>(),
            fit["degrees"][0]["log_evidence"].get<double>());
  expect_keys(fit["degrees"][0], {"degree", "terms", "log_evidence", "log_prior"});
  EXPECT_TRUE(contains(read("page.html"), "dx/dt"));
  const Result said = run_well(
      {"fit", "noisy.csv", "--posterior", "regression", "--degree", "auto", "-o", "model.json"});
  EXPECT_TRUE(contains(said.out + said.err, "log evidence")) << said.out << said.err;
  const Json equations = json_of({"equations", "model.json", "--format", "json"})["equations"];
  ASSERT_EQ(equations[0]["terms"].size(), 1u);
  EXPECT_NEAR(equations[0]["terms"][0]["mean"].get<double>(), 1,
              5 * equations[0]["terms"][0]["sd"].get<double>());
  // A forecast that continues the data starts in doubt; one from a given start does not.
  run_well({"forecast", "model.json", "--until", "21", "--draws", "100", "-o", "ahead.csv"});
  EXPECT_GT(number(csv_column(read("ahead.csv"), "x_sd").front()), 0);

  const Json blocks = json_of(
      {"fit", "noisy.csv", "--posterior", "bootstrap", "--replicates", "30", "-o", "blocks.json"});
  EXPECT_EQ(blocks["status"], "posterior");
  // All 30 can be enumerated from a known start.
  const Json all = json_of({"forecast", "blocks.json", "--init=-1,-1,-1", "--until", "2", "--masks",
                            "enumerated", "-o", "all.csv"});
  EXPECT_EQ(all["draws"], 30);
  run_well({"equations", "blocks.json"});
  run_well({"fit", "noisy.csv", "--posterior", "bootstrap", "--derivative", "spline", "--terms",
            "all", "-o", "spline.json"});
}

TEST_F(CommandsTest, WhatIsNotToBeTrustedIsSaidAgain) {
  ODECAST_NOT_UNDER_SANITIZERS();
  run_well({"simulate", "VanDerPol", "--until", "50", "--step", "0.05", "--noise", "0.02", "-o",
            "noisy.csv"});
  for (const std::string posterior : {"regression", "bootstrap", "trajectory"}) {
    const Result fit =
        run({"fit", "noisy.csv", "--posterior", posterior, "--degree", "1", "-o", "model.json"});
    EXPECT_EQ(fit.code, 1) << posterior;
    EXPECT_TRUE(contains(fit.err, "do not explain all of the motion")) << fit.err;
    for (const Words& words : {Words{"predict", "model.json", "--at", "2,2"},
                               {"equations", "model.json"},
                               {"attractor", "model.json", "noisy.csv"}})
      EXPECT_TRUE(contains(run(words).err, "fit said: do not trust it")) << posterior << words[0];
    const Result ahead =
        run({"forecast", "model.json", "--until", "51", "--draws", "20", "-o", "f.csv"});
    EXPECT_TRUE(contains(ahead.out + ahead.err,
                         posterior == "trajectory" ? "Random forcing" : "do not trust"))
        << ahead.out << ahead.err;
    EXPECT_EQ(run({"predict", "model.json", "--at", "2,2", "-q"}).err, "");
  }
  // The right degree is trusted; with a noise that is too small it is not.
  for (const std::string posterior : {"regression", "bootstrap", "trajectory"})
    run_well({"fit", "noisy.csv", "--posterior", posterior, "--degree", "3", "-o", "model.json"});
  EXPECT_EQ(run_well({"equations", "model.json"}).err, "");
  const Result small =
      run({"fit", "noisy.csv", "--degree", "3", "--noise", "0.005", "-o", "small.json"});
  EXPECT_EQ(small.code, 1);
  EXPECT_TRUE(contains(small.err, "times the sd that was given")) << small.err;
  EXPECT_TRUE(contains(run({"equations", "small.json"}).err, "noise was given smaller"));
}

TEST_F(CommandsTest, NoisyTruthIsNotTakenForTheState) {
  run_well({"simulate", "SprottB", "--until", "30", "--step", "0.02", "--noise", "0.05", "-o",
            "all.csv"});
  run_well({"split", "all.csv", "--train", "train.csv", "--test", "test.csv"});
  run_well({"fit", "train.csv", "-o", "model.json"});
  // The horizon is a quarter of the 6 time units.
  const Result bare =
      run_well({"evaluate", "model.json", "test.csv", "--starts", "20", "--leads", "5"});
  EXPECT_TRUE(contains(bare.err, "look noisy") && contains(bare.err, "--observations")) << bare.err;
  EXPECT_TRUE(contains(bare.out, "forecasts of 1.4")) << bare.out;
  EXPECT_TRUE(contains(bare.err, "20 starts overlap and tell as much as 3."))
      << bare.err;  // 4.5 time units of starts, 1.5 of horizon
  const Result seen = run_well({"evaluate", "model.json", "test.csv", "--starts", "20", "--leads",
                                "5", "--observations", "--horizon", "0.2"});
  EXPECT_EQ(seen.err, "");
  EXPECT_TRUE(contains(run_well({"calibrate", "model.json", "test.csv", "-o", "c.json"}).err,
                       "look noisy"));
  run_well({"forecast", "model.json", "--at", "test.csv", "--draws", "50", "-o", "f.csv"});
  const Json chosen = Json::parse(run_well({"score", "f.csv", "test.csv", "--json"}).out);
  EXPECT_EQ(chosen["band"], "observed");
  EXPECT_TRUE(contains(run_well({"score", "f.csv", "test.csv"}).out, "looks measured"));
  const Json state =
      Json::parse(run_well({"score", "f.csv", "test.csv", "--band", "sd", "--json"}).out);
  EXPECT_GT(chosen["coverage"]["all"], 0.85);
  EXPECT_LT(state["coverage"]["all"], 0.6);
  // Nothing to say of the true states.
  run_well({"simulate", "SprottB", "--until", "30", "--step", "0.02", "-o", "true.csv"});
  run_well({"split", "true.csv", "--train", "early.csv", "--test", "late.csv"});
  EXPECT_EQ(run_well({"evaluate", "model.json", "late.csv", "--starts", "20", "--leads", "5",
                      "--horizon", "0.2"})
                .err,
            "");
  EXPECT_EQ(run_well({"score", "f.csv", "late.csv"}).err, "");
  // Options that would change nothing, or the meaning of a time.
  EXPECT_EQ(
      run({"forecast", "model.json", "--until", "31", "--mask-change", "step", "-o", "g.csv"}).code,
      2);
  EXPECT_EQ(run({"forecast", "model.json", "--from", "3", "--until", "31", "-o", "g.csv"}).code, 2);
}

TEST_F(CommandsTest, EvaluateTellsOfGapsAndOfTrajectoriesThatBlowUp) {
  run_well({"simulate", "SprottB", "--until", "60", "--step", "0.05", "-o", "all.csv"});
  run_well({"fit", "all.csv", "--dropout", "0.25", "-o", "model.json"});
  const Result wild = run_well(
      {"evaluate", "model.json", "all.csv", "--horizon", "10", "--starts", "20", "--draws", "50"});
  EXPECT_TRUE(contains(wild.err, "of the trajectories blow up before t+10")) << wild.err;
  EXPECT_TRUE(contains(wild.out, "scores at each lead are of those left there")) << wild.out;
  std::istringstream lines(read("all.csv"));
  std::string line, kept;
  while (std::getline(lines, line)) {
    const double time = std::atof(line.c_str());
    if (!(time > 20.01 && time < 24.9)) kept += line + "\n";
  }
  write("gap.csv", kept);
  const Json e =
      Json::parse(run_well({"evaluate", "model.json", "gap.csv", "--horizon", "5", "--leads", "20",
                            "--starts", "20", "--draws", "20", "--json"})
                      .out);
  EXPECT_NEAR(e["leads"].back().get<double>(), 5, 1e-9);
  EXPECT_EQ(e["gaps"], 100) << "rows at t = 15.05 … 20";
  EXPECT_GT(e["blown_up"].get<double>(), 0);
  const Result close = run({"evaluate", "model.json", "all.csv", "--horizon", "0.01"});
  EXPECT_EQ(close.code, 3);
  EXPECT_TRUE(contains(close.err, "larger --horizon")) << close.err;
  EXPECT_TRUE(contains(
      run_well({"calibrate", "model.json", "all.csv", "--horizon", "1", "-o", "c.json"}).out,
      "holds at least 95 % if the forecast to come is exchangeable with the 100 held-out"));
}

TEST_F(CommandsTest, ExponentsFollowTheUnitOfTime) {
  ODECAST_NOT_UNDER_SANITIZERS();
  run_well({"simulate", "SprottB", "--until", "30", "--step", "0.02", "--noise", "0.01", "-o",
            "one.csv"});
  std::string micro = "t,x,y,z\n";
  const auto rows = csv_rows(read("one.csv"));
  for (std::size_t k = 1; k < rows.size(); ++k)
    micro += rows[k][0] + "e-6," + rows[k][1] + "," + rows[k][2] + "," + rows[k][3] + "\n";
  write("micro.csv", micro);
  double first[2];
  for (int k = 0; k < 2; ++k) {
    run_well({"fit", k == 0 ? "one.csv" : "micro.csv", "-o", "model.json"});
    const double unit = k == 0 ? 1 : 1e-6;
    const Json found = json_of({"lyapunov", "model.json"});
    first[k] = found["exponents"][0].get<double>() * unit;
    const double error = found["standard_error"][0].get<double>() * unit;
    EXPECT_LT(error, 0.01);
    EXPECT_NEAR(first[k], 0.21, 5 * error) << found;
  }
  EXPECT_NEAR(first[0], first[1], 5 * std::sqrt(2) * 0.01);
}

TEST_F(CommandsTest, ForecastsSayHowFarTheyCanBeUsed) {
  run_well({"simulate", "SprottB", "--until", "30", "--step", "0.05", "--noise", "0.05", "-o",
            "one.csv"});
  Json sd;
  for (const char* posterior : {"regression", "trajectory"}) {
    run_well({"fit", "one.csv", "--posterior", posterior, "-o", "model.json"});
    const Json found = Json::parse(read("model.json"))["sd"];
    for (std::size_t i = 0; i < 3 && !sd.is_null(); ++i)
      EXPECT_NEAR(found[i].get<double>(), sd[i].get<double>(), 1e-9);
    sd = found;
  }
  const std::vector<std::string> words = {"forecast", "model.json", "--until",   "130", "--draws",
                                          "50",       "--report",   "page.html", "-o",  "f.csv"};
  EXPECT_TRUE(contains(run_well(words).out, "Predictability horizon"));
  const std::string page = read("page.html");
  for (const char* word :
       {"predictability horizon", "from a short run of the learnt equations", "expected growth"})
    EXPECT_TRUE(contains(page, word)) << word;
  const double horizon = json_of(words)["horizon"];
  EXPECT_GT(horizon, 1);
  // At the times of the file: the first with a spread beyond 0.4 of the data's.
  const auto rows = csv_rows(read("f.csv"));
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(rows[0].begin(), rows[0].end(), name) -
                                    rows[0].begin());
  };
  for (std::size_t k = 1; k < rows.size(); ++k) {
    double square = 0;
    const std::vector<std::string> names = {"x", "y", "z"};
    for (std::size_t i = 0; i < 3; ++i) {
      const double width = std::stod(rows[k][column(names[i] + "_q97.5")]) -
                           std::stod(rows[k][column(names[i] + "_q2.5")]);
      square += std::pow(width / (2 * 1.959963984540054) / sd[i].get<double>(), 2) / 3;
    }
    if (std::sqrt(square) <= 0.4) continue;
    EXPECT_NEAR(std::stod(rows[k][0]) - std::stod(rows[1][0]), horizon, 1e-9);
    break;
  }
  EXPECT_TRUE(
      json_of({"forecast", "model.json", "--until", "30.5", "-o", "f.csv"})["horizon"].is_null());
}

TEST_F(CommandsTest, ExponentsOfDrawsHaveTwoErrors) {
  run_well({"simulate", "SprottB", "--until", "30", "--step", "0.05", "--noise", "0.01", "-o",
            "one.csv"});
  run_well({"fit", "one.csv", "-o", "model.json"});
  const std::vector<std::string> words = {"lyapunov", "model.json", "--draws",
                                          "3",        "--until",    "200"};
  const Json found = json_of(words);
  const Json& draws = found["draws"];
  ASSERT_EQ(draws["spectra"].size(), 3u);
  for (const char* key : {"mean", "sd", "standard_error", "posterior_sd"})
    EXPECT_EQ(draws[key].size(), 3u) << key;
  double mean = 0;
  for (const Json& s : draws["spectra"]) {
    mean += s["exponents"][0].get<double>() / 3;
    EXPECT_GT(s["standard_errors"][0], 0);
  }
  EXPECT_NEAR(draws["mean"][0].get<double>(), mean, 1e-12);
  EXPECT_GT(found["kaplan_yorke"], 2);
  const std::string text = run_well(words).out;
  for (const char* word : {"3 of 3 draws", "sd over draws", "error by finite time", "posterior sd"})
    EXPECT_TRUE(contains(text, word)) << text;
}

TEST_F(CommandsTest, EnsembleOfNetworks) {
  make_data();
  const Json fit = json_of({"fit", "train.csv", "--posterior", "ensemble", "--members", "3",
                            "--layers", "6", "--batches", "3", "-o", "model.json"});
  EXPECT_EQ(fit["status"], "schedule_done");
  const Json all = json_of({"forecast", "model.json", "--init=1,1,1", "--until", "0.1", "--step",
                            "0.05", "--masks", "enumerated", "-o", "all.csv"});
  EXPECT_EQ(all["draws"], 3);
}

TEST_F(CommandsTest, OptionsOfOtherPosteriorsAreRefused) {
  make_data();
  refused({"--dropout", "0.1", "--degree", "auto"}, "--posterior trajectory");
  refused({"--replicates", "10"}, "--posterior bootstrap");
  refused({"--members", "11"}, "--posterior ensemble");
  refused({"--posterior", "bootstrap", "--replicates", "1"}, "--replicates");
  refused({"--posterior", "regression", "--dropout", "0.1"}, "--posterior dropout");
  refused({"--posterior", "regression", "--missing", "keep"}, "--missing drop");
  refused({"--posterior", "regression", "--degree", "30"}, "--degree");
  refused({"--posterior", "ensemble"}, "--trainer adam");
  refused({"--posterior", "ensemble", "--terms", "select"}, "--terms");
}

TEST_F(CommandsTest, TrajectoryPosteriorFromFitToForecast) {
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "10", "--step", "0.02", "--noise",
            "0.02", "-o", "noisy.csv"});
  const Json fit = json_of({"fit", "noisy.csv", "--posterior", "trajectory", "--report",
                            "page.html", "-o", "model.json"});
  EXPECT_EQ(fit["status"], "converged");
  EXPECT_EQ(fit["rows"], 501);
  EXPECT_EQ(fit["objective"], nullptr);
  EXPECT_FALSE(fit["misfit"].get<bool>());
  EXPECT_TRUE(contains(read("page.html"), "dx/dt"));
  expect_keys(fit, {"noise", "noise_ratio", "autocorrelation", "continuity", "sets"});
  const Json equations = json_of({"equations", "model.json", "--format", "json"})["equations"];
  EXPECT_GE(equations[0]["terms"].size(), 1u);
  // The term y z of dx/dt: 1, within five of its standard deviations.
  bool found = false;
  for (const Json& term : equations[0]["terms"])
    if (term["powers"] == Json({0, 1, 1})) {
      found = true;
      EXPECT_NEAR(term["mean"].get<double>(), 1, 5 * term["sd"].get<double>());
      EXPECT_LT(term["sd"].get<double>(), 0.02);
    }
  EXPECT_TRUE(found);
  json_of({"predict", "model.json", "--at", "1,1,1"});
  // Continued from the data's end, the start is uncertain; the band of observations is wider by the
  // noise, which the model knows.
  run_well({"forecast", "model.json", "--until", "11", "--draws", "200", "--observations", "-o",
            "ahead.csv"});
  const std::string ahead = read("ahead.csv");
  const auto values = [](const std::string& text, const std::string& name) {
    std::vector<double> list;
    for (const auto& cell : csv_column(text, name)) list.push_back(number(cell));
    return list;
  };
  const auto sd = values(ahead, "x_sd"), lower = values(ahead, "x_q2.5"),
             observed = values(ahead, "x_observed_lower");
  EXPECT_GT(sd.front(), 0);
  for (std::size_t k = 1; k < lower.size(); ++k)
    EXPECT_LT(observed[k], lower[k] - fit["noise"][0].get<double>());
  run_well({"forecast", "model.json", "--field", "point", "--until", "11", "-o", "point.csv"});
  EXPECT_NEAR(values(read("point.csv"), "x").back(), values(ahead, "x_mean").back(), 5 * sd.back());
}

TEST_F(CommandsTest, TrajectoryPosteriorOfADrivenSystem) {
  ODECAST_NOT_UNDER_SANITIZERS();
  run_well({"simulate", "ForcedDuffing", "--until", "45", "--noise", "0.01", "-o", "all.csv"});
  run_well({"split", "all.csv", "--holdout", "0.1", "--train", "train.csv", "--test", "test.csv"});
  const Json fit = json_of({"fit", "train.csv", "--inputs", "F", "--posterior", "trajectory",
                            "--degree", "3", "-o", "model.json"});
  EXPECT_EQ(fit["status"], "converged");
  // dv/dt has the force with coefficient 1.
  const Json equations = json_of({"equations", "model.json", "--format", "json"})["equations"];
  bool found = false;
  for (const Json& term : equations[1]["terms"])
    if (term["powers"] == Json({0, 0, 1})) {
      found = true;
      EXPECT_NEAR(term["mean"].get<double>(), 1, 5 * term["sd"].get<double>());
      EXPECT_LT(term["sd"].get<double>(), 0.05);
    }
  EXPECT_TRUE(found);
  json_of({"predict", "model.json", "--at", "1,0,0.5"});
  // On with the forces that came; without them it does not go.
  run_well({"forecast", "model.json", "--at", "test.csv", "--drive", "all.csv", "--draws", "100",
            "-o", "ahead.csv"});
  const Json scores = json_of({"score", "ahead.csv", "test.csv", "--inputs", "F"});
  EXPECT_LT(scores["nrmse"]["x"].get<double>(), 0.1);
  EXPECT_LT(scores["nrmse"]["v"].get<double>(), 0.1);
  // The model knows the force of its last row: the held-out file, which begins one later, is
  // enough.
  run_well({"forecast", "model.json", "--at", "test.csv", "--draws", "100", "-o", "own.csv"});
  EXPECT_NEAR(number(csv_column(read("own.csv"), "x_mean").back()),
              number(csv_column(read("ahead.csv"), "x_mean").back()), 1e-9);
  EXPECT_EQ(run({"forecast", "model.json", "--until", "46", "-o", "no.csv"}).code, 2);
  const Result late = run({"forecast", "model.json", "--init", "1,0", "--from", "3", "--at",
                           "test.csv", "-o", "no.csv"});
  EXPECT_TRUE(late.code == 2 && contains(late.err, "begins earlier")) << late.err;
  const std::string whole = read("test.csv");
  std::size_t fifth = whole.find('\n') + 1;
  const std::size_t first = fifth;
  for (int k = 0; k < 4; ++k) fifth = whole.find('\n', fifth) + 1;
  write("gap.csv", whole.substr(0, first) + whole.substr(fifth));
  EXPECT_TRUE(contains(run({"forecast", "model.json", "--at", "gap.csv", "-o", "no.csv"}).err,
                       "begins earlier"));
  json_of(
      {"evaluate", "model.json", "test.csv", "--starts", "5", "--horizon", "1", "--observations"});
  EXPECT_EQ(run({"lyapunov", "model.json"}).code, 2);
  // The other rule is another model, which does not explain the motion.
  const Result held = run({"fit", "train.csv", "--inputs", "F", "--between", "held", "--posterior",
                           "trajectory", "--degree", "3", "-o", "held.json"});
  EXPECT_TRUE(held.code == 1 && contains(held.err, "alike along the motion")) << held.err;
  EXPECT_TRUE(Json::parse(read("held.json"))["inputs"]["held"].get<bool>());
  EXPECT_NE(Json::parse(read("held.json"))["law"]["sets"],
            Json::parse(read("model.json"))["law"]["sets"]);
  // A cell of the force is missing: refused with its row, or its row left out.
  std::string holes;
  const auto rows = csv_rows(read("train.csv"));
  for (std::size_t k = 0; k < rows.size(); ++k)
    holes += rows[k][0] + "," + rows[k][1] + "," + rows[k][2] + "," + (k == 100 ? "" : rows[k][3]) +
             "\n";
  write("holes.csv", holes);
  const Words missing = {"fit",        "holes.csv", "--inputs", "F",  "--posterior",
                         "trajectory", "--degree",  "3",        "-o", "holes.json"};
  const Result refused = run(missing);
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("row 100 (t = 4.95)"), refused.err.npos) << refused.err;
  Words dropped = missing;
  dropped.insert(dropped.end(), {"--missing", "drop"});
  run_well(dropped);
}

TEST_F(CommandsTest, TrajectoryPosteriorTakesMissingValuesAndOutliers) {
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "10", "--step", "0.02", "--noise",
            "0.01", "-o", "noisy.csv"});
  // Every seventh y is missing, every thirtieth z off by 5.
  auto rows = csv_rows(read("noisy.csv"));
  std::string holes, outliers;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto& r = rows[k];
    const bool header = k == 0;
    holes += r[0] + "," + r[1] + "," + (!header && k % 7 == 0 ? "" : r[2]) + "," + r[3] + "\n";
    outliers += r[0] + "," + r[1] + "," + r[2] + "," +
                (!header && k % 30 == 0 ? number_text(number(r[3]) + 5) : r[3]) + "\n";
  }
  write("holes.csv", holes);
  write("outliers.csv", outliers);
  run_well({"fit", "holes.csv", "--posterior", "trajectory", "--report", "page.html", "-o",
            "kept.json"});
  run_well(
      {"fit", "holes.csv", "--posterior", "trajectory", "--missing", "keep", "-o", "same.json"});
  EXPECT_EQ(read("kept.json"), read("same.json"));
  run_well({"forecast", "kept.json", "--until", "10.5", "--draws", "20", "-o", "ahead.csv"});
  // Outliers of 3 % at 5 make the plain noise about 5 √0.03 ≈ 0.9; Huber's weights leave it near
  // the 1 % of sd.
  const Result told =
      run({"fit", "outliers.csv", "--posterior", "trajectory", "-o", "plain.json", "--json"});
  EXPECT_EQ(told.code, 1);  // which is half of what z does
  const Json plain = Json::parse(told.out);
  EXPECT_EQ(plain["status"], "mostly_noise");
  EXPECT_GT(plain["kurtosis"].get<double>(), 3);
  EXPECT_TRUE(contains(told.err, "--robust")) << told.err;
  const Json robust = json_of(
      {"fit", "outliers.csv", "--posterior", "trajectory", "--robust", "-o", "robust.json"});
  EXPECT_GT(plain["noise"][2].get<double>(), 0.5);
  EXPECT_LT(robust["noise"][2].get<double>(), 0.1);
  // Noise as given is noise as written.
  const Json known = json_of(
      {"fit", "noisy.csv", "--posterior", "trajectory", "--noise", "0.02", "-o", "known.json"});
  EXPECT_EQ(known["noise"], Json({0.02, 0.02, 0.02}));
}

// Which posterior is meant where none is named.
TEST_F(CommandsTest, OptionsChooseThePosterior) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_data();
  run_well({"simulate", "Henon", "-o", "henon.csv"});
  const auto trainer = [&](Words words) {
    words.insert(words.begin(), "fit");
    words.insert(words.end(), {"-o", "chosen.json"});
    EXPECT_LE(run(words).code, 1) << joined(words);  // some of them do not fit
    return Json::parse(read("chosen.json"))["training"]["trainer"].get<std::string>();
  };
  // Clean rows far apart take the search a minute under a sanitizer.
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "20", "--step", "0.05", "--noise",
            "0.01", "-o", "noisy.csv"});
  EXPECT_EQ(trainer({"noisy.csv"}), "trajectory");
  EXPECT_EQ(trainer({"noisy.csv", "--noise", "0.01"}), "trajectory");
  EXPECT_EQ(trainer({"noisy.csv", "--degree", "auto"}), "trajectory");
  EXPECT_EQ(trainer({"train.csv", "--dropout", "0.25"}), "exact");
  EXPECT_EQ(trainer({"train.csv", "--derivative", "central2"}), "exact");
  EXPECT_EQ(trainer({"train.csv", "--layers", "4", "--batches", "2"}), "adam");
  EXPECT_EQ(trainer({"henon.csv", "--kind", "map"}), "regression");
  EXPECT_EQ(trainer({"train.csv", "--terms", "all", "--degree", "1"}), "regression");
}

// What is not to be trusted says so and ends with 1; what cannot be learnt is not written.
TEST_F(CommandsTest, FitsThatAreNotToBeTrusted) {
  run_well({"simulate", "Pendulum", "--noise", "0.02", "--until", "30", "--step", "0.05", "-o",
            "pendulum.csv"});
  for (const Words& noise : {Words{}, Words{"--noise", "0.028,0.022"}}) {
    Words words = {"fit", "pendulum.csv", "--degree", "1", "-o", "m.json"};
    words.insert(words.end(), noise.begin(), noise.end());
    const Result r = run(words);
    EXPECT_EQ(r.code, 1) << joined(words);
    EXPECT_TRUE(contains(r.err, "do not explain all of the motion")) << r.err;
    EXPECT_EQ(Json::parse(read("m.json"))["training"]["status"], "misfit");
    EXPECT_TRUE(contains(run_well({"forecast", "m.json", "--until", "35", "-o", "f.csv"}).out,
                         "Random forcing"));
  }
  run_well({"simulate", "Henon", "--noise", "0.02", "-o", "henon.csv"});
  const Result nothing = run({"fit", "henon.csv", "-o", "none.json"});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_TRUE(contains(nothing.err, "--kind map")) << nothing.err;
  EXPECT_FALSE(exists("none.json"));
  // Eleven rows of three variables: 33 values for up to 33 unknowns.
  run_well({"simulate", "Lorenz", "--noise", "0.02", "--until", "0.5", "--step", "0.05", "--seed",
            "2", "-o", "few.csv"});
  const Result few = run({"fit", "few.csv", "-o", "few.json"});
  EXPECT_EQ(few.code, 1) << few.out << few.err;
  EXPECT_TRUE(contains(few.err, "unknowns from 33 values")) << few.err;
  std::string single = "id,t,x\n";
  for (int k = 0; k < 12; ++k) single += std::to_string(k) + ",0," + std::to_string(k) + "\n";
  write("single.csv", single);
  const Result rows = run({"fit", "single.csv", "-o", "none.json"});
  EXPECT_EQ(rows.code, 3);
  EXPECT_TRUE(contains(rows.err, "no trajectory of two rows")) << rows.err;
}

// One column in, forecasts and judgements of that column out; no verb is told again.
TEST_F(CommandsTest, OneColumnIsEmbeddedAndTheModelRemembers) {
  std::string train = "t,x\n", test = train;
  for (int k = 0; k < 300; ++k)
    (k < 200 ? train : test) +=
        fmt::format("{},{}\n", k, 5 + std::cos(0.3 * k) + 0.02 * std::sin(k * k * 7.3));
  write("train.csv", train);
  write("test.csv", test);
  const Result alone = run({"fit", "train.csv", "-o", "none.json"});
  EXPECT_EQ(alone.code, 1);
  EXPECT_TRUE(contains(alone.err, "--embed auto")) << alone.err;
  const Result fit = run({"fit", "train.csv", "--embed", "delays:2", "-o", "model.json"});
  EXPECT_LE(fit.code, 1) << fit.err;
  EXPECT_TRUE(contains(fit.out, "not of nature's variables")) << fit.out;
  run({"forecast", "model.json", "--at", "test.csv", "-o", "ahead.csv"});
  EXPECT_TRUE(read("ahead.csv").starts_with("t,x_mean,x_sd")) << read("ahead.csv").substr(0, 80);
  EXPECT_FALSE(contains(read("ahead.csv"), "(t-"));
  EXPECT_GT(json_of({"score", "ahead.csv", "test.csv"})["coverage"]["x"].get<double>(), 0.8);
  const Json judged = Json::parse(  // beside words about starts that overlap
      run({"evaluate", "model.json", "test.csv", "--observations", "--horizon", "10", "--json"})
          .out);
  EXPECT_LT(judged["model"]["energy"]["value"].get<double>(),
            judged["persistence"]["energy"]["value"].get<double>());
  refused({"--embed", "lags:3"}, "delays:N");
}

TEST_F(CommandsTest, PositiveTakesNamesOrNone) {
  std::string train = "t,x,y\n";
  for (int k = 0; k < 60; ++k)
    train += fmt::format("{},{},{}\n", 0.1 * k, 2 * std::exp(-0.1 * k) + 0.003 * (k * k * 7 % 11),
                         std::sin(0.1 * k) + 0.003 * (k * k * 5 % 11));
  write("train.csv", train);
  const Result refusal = run({"fit", "--positive", "train.csv", "-o", "m.json"});
  EXPECT_EQ(refusal.code, 3) << refusal.err;
  EXPECT_TRUE(contains(refusal.err, "column y, row 1 (t = 0)")) << refusal.err;
  EXPECT_TRUE(contains(refusal.err, "--positive x")) << refusal.err;
  run({"fit", "train.csv", "--positive", "x", "--degree", "1", "-o", "m.json"});
  EXPECT_EQ(Json::parse(read("m.json"))["positive"], Json({true, false}));
  EXPECT_EQ(Json::parse(read("m.json"))["settings"]["positive"], "x");
  run({"forecast", "m.json", "--until", "30", "-o", "f.csv"});
  for (const char* column : {"x_lower", "x_observed_lower", "x_q2.5"})
    for (const std::string& value : csv_column(read("f.csv"), column)) EXPECT_GE(number(value), 0);
}

TEST_F(CommandsTest, TrajectoryPosteriorRefusesWhatItDoesNotDo) {
  make_data();
  refused({"--posterior", "trajectory", "--kind", "map"}, "--posterior dropout");
  refused({"--posterior", "trajectory", "--between", "held"}, "--inputs");
  refused({"--posterior", "trajectory", "--inputs", "z", "--degree", "20"},
          "2 variables and 1 inputs");
  refused({"--posterior", "trajectory", "--dropout", "0.1"}, "--posterior dropout");
  refused({"--posterior", "trajectory", "--noise", "0"}, "--noise");
  refused({"--dropout", "0.1", "--robust"}, "--posterior trajectory");
  refused({"--dropout", "0.1", "--missing", "keep"}, "--missing drop");
}

}  // namespace
}  // namespace odecast::cli_test
