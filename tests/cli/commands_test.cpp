#include "cli/commands.hpp"

#include <cstdlib>
#include <regex>

#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

// --- the same bytes everywhere

TEST_F(CommandsTest, SameBytesOfFit) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_data();
  expect_same({"fit", "train.csv", "--trainer", "adam", "--batches", "5"});
  expect_same({"fit", "train.csv", "--trainer", "adam", "--batches", "5", "--scale", "none",
               "--degree", "3"});
  expect_same({"fit", "train.csv", "--trainer", "adam", "--batches", "5", "--mask-per", "batch",
               "--masks", "3"});
  expect_same({"fit", "train.csv", "--trainer", "adam", "--batches", "2", "--layers", "8,8"});
  run_well({"simulate", "SprottB", "--until", "5", "--step", "0.02", "--noise", "0.05", "-o",
            "noisy.csv"});
  expect_same({"fit", "noisy.csv", "--posterior", "trajectory"});
  expect_same({"fit", "noisy.csv", "--posterior", "regression"});
  expect_same({"fit", "noisy.csv", "--posterior", "bootstrap", "--replicates", "20"});
}

TEST_F(CommandsTest, SameBytesOfFitOfManyRows) {
  ODECAST_NOT_UNDER_SANITIZERS();
  // Training starts threads from 100 000 rows on.
  std::string text = "t,x,y\n";
  for (int i = 0; i <= 120'000; ++i) {
    const double t = 0.01 * i;
    text += number_text(t) + "," + number_text(std::sin(t)) + "," + number_text(std::cos(t)) + "\n";
  }
  write("many.csv", text);
  expect_same({"fit", "many.csv", "--trainer", "adam", "--batches", "2", "--schedule", "5@0.01"});
}

TEST_F(CommandsTest, SameBytesOfForecast) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_model();
  const Words call = {"forecast", "model.json", "--until", "1.5", "--draws", "1000"};
  const auto with = [&](const Words& more) {
    Words words = call;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  expect_same(call);
  expect_same(with({"--blow-up", "until", "--init-sd", "0.1,0.1,0.1"}));
  expect_same(with({"--bands", "sd", "--method", "rk4"}));
  expect_same(with({"--mask-change", "step"}));
  expect_same(with({"--transition-noise"}));
}

TEST_F(CommandsTest, SameBytesOfForecastWithDiscardedDraws) {
  // Draws that are replaced are where the number of threads could show.
  make_model();
  const Words args = {"forecast", "model.json", "--until", "2", "--draws", "500"};
  Words json = args;
  json.push_back("--json");
  ASSERT_GT(Json::parse(run_well(json).out)["discarded"], 500);
  expect_same(args);
}

// --- forecasts

TEST_F(CommandsTest, ForecastContinuesFromTheLastObservation) {
  make_model();
  forecast({});
  const auto data = csv_rows(read("train.csv"));
  const std::string text = read("forecast.csv");
  EXPECT_EQ(csv_column(text, "t").front(), data.back()[0]);
  // From the smoothed last state, which of clean data is the last row but for the smoother's own
  // error.
  for (const std::string name : {"x", "y", "z"}) {
    const double sd = number(csv_column(text, name + "_sd").front());
    EXPECT_NEAR(number(csv_column(text, name + "_mean").front()),
                number(csv_column(read("train.csv"), name).back()), 5 * sd);
    EXPECT_GT(sd, 0);
    EXPECT_LT(sd, 1e-5);
    EXPECT_GT(number(csv_column(text, name + "_sd").back()), sd);
  }
  // All masks are from one point.
  run_well(
      {"forecast", "model.json", "--until", "1.2", "--masks", "enumerated", "-o", "forecast.csv"});
  EXPECT_EQ(csv_column(read("forecast.csv"), "x_sd").front(), "0");
  EXPECT_EQ(csv_column(text, "t").size(), 11u);  // the data's spacing: 1, 1.02, …, 1.2
  EXPECT_EQ(csv_column(text, "t").back(), "1.2");
}

TEST_F(CommandsTest, ForecastFromAGivenStart) {
  make_model();
  forecast({"--init=-1,0.5,2", "--step", "0.1"});
  EXPECT_EQ(csv_column(read("forecast.csv"), "t").front(), "0");
  EXPECT_EQ(csv_column(read("forecast.csv"), "x_mean").front(), "-1");
  EXPECT_EQ(csv_column(read("forecast.csv"), "z_mean").front(), "2");
  EXPECT_EQ(csv_column(read("forecast.csv"), "t").size(), 13u);
  forecast({"--init", "-1,0.5,2", "--from", "0.7", "--step", "0.1"});
  EXPECT_EQ(csv_column(read("forecast.csv"), "t").front(), "0.7");
  EXPECT_EQ(csv_column(read("forecast.csv"), "t").back(), "1.2");
  forecast({"--init", "-1,0.5,2", "--init-sd", "0.5,0,0", "--step", "0.1"});
  EXPECT_EQ(csv_column(read("forecast.csv"), "x_sd").front(), "0.5");
}

TEST_F(CommandsTest, ForecastAtTheTimesOfAFile) {
  make_model();
  write("test.csv", "time,x\n1.05,0\n1.1,0\n1.1000001,0\n1.37,0\n");
  run_well({"forecast", "model.json", "--at", "test.csv", "--draws", "50", "-o", "f.csv"});
  EXPECT_EQ(csv_column(read("f.csv"), "t"), (Words{"1", "1.05", "1.1", "1.1000001", "1.37"}));
  run_well({"forecast", "model.json", "--at", "test.csv", "--field", "mean", "-o", "f.csv"});
  EXPECT_EQ(csv_column(read("f.csv"), "t"), (Words{"1", "1.05", "1.1", "1.1000001", "1.37"}));
}

TEST_F(CommandsTest, BandsGiveTheirColumns) {
  make_model();
  const Words sd = {"mean", "sd", "lower", "upper"};
  const Words both = {"mean", "sd", "lower", "upper", "q5", "q50", "q95"};
  for (const auto& [bands, columns] :
       {std::pair{"sd", sd}, std::pair{"quantiles", both}, std::pair{"both", both}}) {
    Words expected = {"t"};
    for (const std::string variable : {"x", "y", "z"})
      for (const auto& column : columns) expected.push_back(variable + "_" + column);
    expected.push_back("alive");
    forecast({"--bands", bands, "--level", "0.9", "--noise", "0"});
    EXPECT_EQ(csv_rows(read("forecast.csv"))[0], expected) << bands;
  }
  const std::string text = read("forecast.csv");
  const auto column = [&](const std::string& name) { return csv_column(text, name); };
  for (std::size_t i = 0; i < column("t").size(); ++i) {
    const double mean = number(column("x_mean")[i]), spread = number(column("x_sd")[i]);
    EXPECT_NEAR(number(column("x_upper")[i]), mean + 1.6448536269514722 * spread, 1e-9);
    EXPECT_NEAR(number(column("x_lower")[i]), mean - 1.6448536269514722 * spread, 1e-9);
    EXPECT_LE(number(column("x_q5")[i]), number(column("x_q50")[i]));
    EXPECT_LE(number(column("x_q50")[i]), number(column("x_q95")[i]));
  }
}

TEST_F(CommandsTest, BlowUpUntilCountsTheLiving) {
  make_model();
  const Words call = {"forecast", "model.json", "--until", "2", "--draws", "200"};
  Words until = call;
  until.insert(until.end(), {"--blow-up", "until"});
  const Json json = json_of(until);
  EXPECT_EQ(json["kept"], 200);
  const auto alive = csv_column(read("forecast.csv"), "alive");
  ASSERT_EQ(alive.size(), 51u);
  EXPECT_EQ(alive.front(), "1");
  for (std::size_t i = 1; i < alive.size(); ++i)
    EXPECT_LE(number(alive[i]), number(alive[i - 1])) << "row " << i;
  // What is missing at the end are the runs that blew up.
  EXPECT_GT(json["discarded"], 0);
  EXPECT_NEAR(number(alive.back()), 1 - json["discarded"].get<double>() / 200, 1e-12);

  // With `discard` the column tells the same of all runs that were tried.
  const Json discard = json_of(call);
  EXPECT_NEAR(number(csv_column(read("forecast.csv"), "alive").back()),
              1 - discard["discarded"].get<double>() / (200 + discard["discarded"].get<double>()),
              1e-12);
}

TEST_F(CommandsTest, MeanAndPointFieldDiffer) {
  make_model();
  const auto last_x = [&](const std::string& field) {
    run_well({"forecast", "model.json", "--until", "1.2", "--field", field, "-o", field + ".csv"});
    EXPECT_EQ(csv_rows(read(field + ".csv"))[0], (Words{"t", "x", "y", "z"}));
    EXPECT_NEAR(number(csv_rows(read(field + ".csv"))[1][1]),
                number(csv_rows(read("train.csv")).back()[1]), 1e-5);
    return number(csv_column(read(field + ".csv"), "x").back());
  };
  EXPECT_GT(std::abs(last_x("mean") - last_x("point")), 1e-3);
  // Without dropout they are one and the same field.
  run_well({"fit", "train.csv", "--trainer", "adam", "--batches", "5", "--dropout", "0", "-o",
            "model.json"});
  EXPECT_NEAR(last_x("mean"), last_x("point"), 1e-9);
}

// --- derivatives

TEST_F(CommandsTest, DerivativesByName) {
  run_well({"simulate", "SprottB", "--until", "10", "--step", "0.01", "-o", "clean.csv"});
  double before = 1e9;
  // Each is far better than the one before on clean data.
  for (const std::string name : {"forward", "central2", "central4", "central8"}) {
    const Json fit =
        json_of({"fit", "clean.csv", "--dropout", "0", "--derivative", name, "-o", "model.json"});
    EXPECT_EQ(fit["derivative"], name);
    const double error = fit["objective"];
    EXPECT_LT(error, 0.1 * before) << name;
    before = error;
  }
  for (const std::string name : {"savgol", "spline", "weak"})
    for (const std::string rate : {"0", "0.25"})
      run_well({"fit", "clean.csv", "--dropout", rate, "--derivative", name, "-o", "model.json"});
  // The file and the pipe, streamed or not, are the same data.
  for (const std::string name : {"central4", "weak"}) {
    run_well({"fit", "clean.csv", "--derivative", name, "--threads", "1", "-o", "a.json"});
    run_well({"fit", "clean.csv", "--derivative", name, "--threads", "2", "-o", "b.json"});
    EXPECT_EQ(read("a.json"), read("b.json"));
  }
}

TEST_F(CommandsTest, AutoSaysWhatItChoseAndWhy) {
  run_well({"simulate", "SprottB", "--until", "20", "--step", "0.01", "--noise", "0.02", "-o",
            "noisy.csv"});
  const Json fit =
      json_of({"fit", "noisy.csv", "--dropout", "0", "--derivative", "auto", "-o", "model.json"});
  const std::string chosen = fit["derivative"], reason = fit["derivative_reason"];
  EXPECT_TRUE(chosen == "weak" || chosen == "spline" || chosen == "savgol") << reason;
  for (const char* name : {"forward", "central8", "savgol", "spline", "weak", "held-out"})
    EXPECT_NE(reason.find(name), reason.npos) << reason;
  // Networks that need a derivative at every row have all but the integral form.
  const Json adam = json_of({"fit", "noisy.csv", "--layers", "4", "--batches", "1", "--derivative",
                             "auto", "-o", "model.json"});
  EXPECT_NE(adam["derivative"], "weak");
}

TEST_F(CommandsTest, SelectedTermsAreTheTrueOnes) {
  run_well({"simulate", "SprottB", "--until", "20", "--step", "0.01", "--noise", "0.02", "-o",
            "noisy.csv"});
  run_well({"fit", "noisy.csv", "--dropout", "0", "--derivative", "weak", "--terms", "select", "-o",
            "model.json"});
  const Json equations = json_of({"equations", "model.json", "--format", "json"})["equations"];
  EXPECT_EQ(equations[0]["terms"].size(), 1u);
  EXPECT_EQ(equations[1]["terms"].size(), 2u);
  EXPECT_EQ(equations[2]["terms"].size(), 2u);
  EXPECT_NEAR(equations[0]["terms"][0]["mean"].get<double>(), 1, 0.05);
}

TEST_F(CommandsTest, DerivativesThatCannotBe) {
  run_well({"simulate", "SprottB", "--until", "1", "--step", "0.01", "-o", "clean.csv"});
  refused({"--derivative", "weak", "--trainer", "adam"}, "spline", "clean.csv");
  refused({"--terms", "select", "--dropout", "0.25"}, "--dropout 0", "clean.csv");
  refused({"--derivative", "backward"}, "central8", "clean.csv");
  refused({"--noise=-1", "--derivative", "weak"}, "--noise", "clean.csv");
  refused({"--noise", "1,2", "--derivative", "weak"}, "3 variables", "clean.csv");
  refused({"--derivative", "central2", "--noise-factor", "2"}, "--derivative forward", "clean.csv");
}

// --- data in and out

TEST_F(CommandsTest, SeveralTrajectories) {
  const std::string a = "a,0,1,2\na,1,2,3\na,2,4,4\n", b = "b,0,5,1\nb,0.5,4,1\n";
  write("two.csv", "trajectory,t,x,y\n" + a + b);
  const Json json =
      json_of({"fit", "two.csv", "--trainer", "adam", "--batches", "2", "-o", "two.json"});
  EXPECT_EQ(json["trajectories"], 2);
  EXPECT_EQ(json["rows"], 3) << "no derivative across the boundary";
  EXPECT_EQ(json["variables"], Json({"x", "y"}));

  // Rows of the two may alternate, and the column may have any name.
  write("mixed.csv", "run,t,x,y\na,0,1,2\nb,0,5,1\nb,0.5,4,1\na,1,2,3\na,2,4,4\n");
  run_well({"fit", "mixed.csv", "--id", "run", "--trainer", "adam", "--batches", "2", "-o",
            "mixed.json"});
  EXPECT_EQ(read("mixed.json"), read("two.json"));

  // The forecast continues the last trajectory.
  run_well({"forecast", "two.json", "--until", "0.6", "--draws", "10", "-o", "f.csv"});
  EXPECT_EQ(csv_column(read("f.csv"), "t").front(), "0.5");
  EXPECT_EQ(csv_column(read("f.csv"), "x_mean").front(), "4");

  run_well({"split", "two.csv", "--holdout", "0.4"});
  EXPECT_EQ(read("train.csv"), "trajectory,t,x,y\na,0,1,2\na,1,2,3\nb,0,5,1\n");
  EXPECT_EQ(read("test.csv"), "trajectory,t,x,y\na,2,4,4\nb,0.5,4,1\n");
}

TEST_F(CommandsTest, ColumnsByName) {
  make_data();
  std::string moved = "z,clock,x,y\n";
  const auto rows = csv_rows(read("train.csv"));
  for (std::size_t i = 1; i < rows.size(); ++i)
    moved += rows[i][3] + "," + rows[i][0] + "," + rows[i][1] + "," + rows[i][2] + "\r\n";
  write("moved.csv", "\xef\xbb\xbf# a note\n\n" + moved);
  run_well({"fit", "train.csv", "--variables", "x,z", "--trainer", "adam", "--batches", "2", "-o",
            "a.json"});
  run_well({"fit", "moved.csv", "--time", "clock", "--variables", "x,z", "--trainer", "adam",
            "--batches", "2", "-o", "b.json"});
  Json a = Json::parse(read("a.json")), b = Json::parse(read("b.json"));
  EXPECT_EQ(b["time"], (Json{{"name", "clock"}}));
  b.erase("time");
  for (Json* model : {&a, &b}) model->erase("checksum");
  EXPECT_EQ(a, b);
}

TEST_F(CommandsTest, SimulateRoundTrip) {
  const Words call = {"simulate", "Lorenz", "--until", "2"};
  const std::string printed = run_well(call).out;
  Words to_file = call;
  to_file.insert(to_file.end(), {"-o", "train.csv"});
  run_well(to_file);
  EXPECT_EQ(read("train.csv"), printed);
  // Every number is the shortest text that reads back as the same number.
  const auto rows = csv_rows(printed);
  EXPECT_EQ(rows[0], (Words{"t", "x", "y", "z"}));
  for (std::size_t i = 1; i < rows.size(); ++i)
    for (const auto& field : rows[i]) EXPECT_EQ(number_text(number(field)), field);
  // Read and written again in two parts, it is the same text.
  run_well({"split", "train.csv", "--train", "early.csv", "--test", "late.csv"});
  const std::string late = read("late.csv");
  EXPECT_EQ(read("early.csv") + late.substr(late.find('\n') + 1), printed);
}

TEST_F(CommandsTest, SplitWritesWhatCanBeRead) {
  // The time column is written as t; here a variable has that name already.
  write("data.csv", "time,t,x\n0,1,2\n1,2,3\n2,3,5\n3,5,7\n4,8,9\n");
  const Result result = run({"split", "data.csv", "--time", "time"});
  if (result.code == 0) {
    const Words header = csv_rows(read("train.csv"))[0];
    EXPECT_EQ(std::set(header.begin(), header.end()).size(), header.size()) << joined(header);
  } else {
    EXPECT_TRUE(result.code == 2 || result.code == 3) << result.code;
  }
}

TEST_F(CommandsTest, DataThroughAPipe) {
  make_data();
  run_well({"fit", "train.csv", "--trainer", "adam", "--batches", "2", "-o", "a.json"});
  run_well({"fit", "-", "--trainer", "adam", "--batches", "2", "-o", "b.json"},
           {.input = read("train.csv")});
  EXPECT_EQ(read("a.json"), read("b.json"));
  // The exact trainer streams a file and holds a pipe in memory: the same bytes.
  run_well({"fit", "train.csv", "--trainer", "exact", "--starts", "2", "-o", "c.json"});
  run_well({"fit", "-", "--trainer", "exact", "--starts", "2", "-o", "d.json"},
           {.input = read("train.csv")});
  EXPECT_EQ(read("c.json"), read("d.json"));
  const std::string equations = run_well({"equations", "a.json"}).out;
  EXPECT_EQ(run_well({"equations", "-"}, {.input = read("a.json")}).out, equations);
}

TEST_F(CommandsTest, NoiseFollowsItsSeed) {
  const auto noisy = [&](const std::string& seed, const std::string& of) {
    return run_well({"simulate", "SprottB", "--until", "10", "--noise", "0.1", "--noise-of", of,
                     "--seed", seed})
        .out;
  };
  const std::string first = noisy("1", "sd");
  EXPECT_TRUE(noisy("1", "sd") == first);
  EXPECT_FALSE(noisy("2", "sd") == first);
  EXPECT_FALSE(noisy("1", "rms") == first);
  const Json sd = json_of({"simulate", "SprottB", "--noise", "0.1"})["noise_sd"];
  const Json rms =
      json_of({"simulate", "SprottB", "--noise", "0.1", "--noise-of", "rms"})["noise_sd"];
  EXPECT_NE(sd[0], sd[1]);
  EXPECT_EQ(rms[0], rms[1]);
}

TEST_F(CommandsTest, UncertifiedPartIsMarked) {
  const Result result = run_well({"simulate", "Lorenz", "--until", "100", "-o", "long.csv"});
  EXPECT_TRUE(contains(result.err, "certified until")) << result.err;
  const std::string mark = "# certified until ";
  const std::string first = split(read("long.csv"), '\n')[0];
  ASSERT_TRUE(first.starts_with(mark)) << first;
  const double until = number(first.substr(mark.size()));
  EXPECT_GT(until, 20);
  EXPECT_LT(until, 60);  // 36 Lyapunov times lose all 16 digits
  // Parts of the file keep the mark, so that score can refuse.
  run_well({"split", "long.csv", "--train", "early.csv", "--test", "late.csv"});
  EXPECT_TRUE(read("late.csv").starts_with(first + "\n"));
}

// --- everything else

TEST_F(CommandsTest, QuietPrintsNothing) {
  for (const Words& args :
       {Words{"simulate", "SprottB", "--until", "2", "--step", "0.02", "-o", "all.csv"},
        {"split", "all.csv"},
        {"fit", "train.csv", "--trainer", "adam", "--batches", "2"},
        {"forecast", "model.json", "--at", "test.csv", "--draws", "20", "--blow-up", "until"},
        {"plot", "forecast.csv"}}) {
    const Result loud = run(args);
    EXPECT_NE(loud.out, "") << joined(args);
    Words quiet = args;
    quiet.push_back("--quiet");
    const Result result = run(quiet);
    EXPECT_EQ(result.code, loud.code);
    EXPECT_EQ(result.out, "") << joined(args);
    EXPECT_EQ(result.err, "") << joined(args);
  }
  // A warning is a message too.
  EXPECT_EQ(run_well({"simulate", "Lorenz", "--until", "100", "-o", "l.csv", "-q"}).err, "");
}

TEST_F(CommandsTest, EquationsAsACFunction) {
  make_model();
  const std::string code = run_well({"equations", "model.json", "--format", "c"}).out;
  EXPECT_TRUE(contains(code, "void odecast_field(double t, const double *u, double *dudt)"));
  if (std::system("command -v cc >/dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler";
  write("field.c", code);
  write("main.c",
        "#include <stdio.h>\n"
        "void odecast_field(double, const double *, double *);\n"
        "int main(void) {\n"
        "  const double u[3] = {-1, 2, 0.5};\n"
        "  double f[3];\n"
        "  odecast_field(0, u, f);\n"
        "  return printf(\"%.17g,%.17g,%.17g\", f[0], f[1], f[2]) < 0;\n"
        "}\n");
  const std::string shell = "cd " + path("").string() +
                            " && cc -Wall -Werror -c field.c && cc main.c field.o -o field"
                            " && ./field > values";
  ASSERT_EQ(std::system(shell.c_str()), 0);
  const auto values = split(read("values"), ',');
  const Json d = json_of({"predict", "model.json", "--at=-1,2,0.5"})["derivative"];
  std::size_t i = 0;
  for (const std::string name : {"x", "y", "z"}) {
    const double mean = d[name]["mean"], sd = d[name]["sd"];
    EXPECT_NEAR(number(values.at(i++)), mean, 1e-9 * (std::abs(mean) + sd)) << name;
  }
}

TEST_F(CommandsTest, AnyColumnNameIsAllowedInC) {
  write("data.csv", "t,a*/b,\"c\\\"\n0,1,2\n1,2,3\n2,3,5\n");
  run_well({"fit", "data.csv", "--trainer", "adam", "--batches", "2", "-o", "model.json"});
  if (std::system("command -v cc >/dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler";
  write("field.c", run_well({"equations", "model.json", "--format", "c"}).out);
  const std::string shell = "cd " + path("").string() + " && cc -c field.c 2> errors";
  EXPECT_EQ(std::system(shell.c_str()), 0) << read("field.c") << read("errors");
}

TEST_F(CommandsTest, EquationsForPeople) {
  make_model();
  const std::string text = run_well({"equations", "model.json"}).out;
  for (const std::string name : {"x", "y", "z"})
    EXPECT_TRUE(contains(text, "d" + name + "/dt = ")) << text;
  EXPECT_TRUE(contains(text, "±"));
  EXPECT_TRUE(contains(run_well({"equations", "model.json", "--format", "latex"}).out, "\\dot{x}"));
  EXPECT_FALSE(contains(run_well({"equations", "model.json", "--all"}).out, "--all shows"));
}

TEST_F(CommandsTest, GeneralNetwork) {
  make_data();
  run_well({"fit", "train.csv", "--layers", "6", "--trainer", "adam", "--batches", "2", "-o",
            "model.json"});
  forecast({});
  EXPECT_EQ(csv_column(read("forecast.csv"), "t").back(), "1.2");
  const Result result = run({"equations", "model.json"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(contains(result.err, "polynomial")) << result.err;
}

TEST_F(CommandsTest, SettingAParameterChangesTheSystem) {
  const auto end = [&](const Words& more) {
    Words words = {"simulate", "Lorenz", "--until", "5"};
    words.insert(words.end(), more.begin(), more.end());
    return csv_rows(run_well(words).out).back();
  };
  EXPECT_EQ(end({}), end({"--set", "rho=28"}));
  EXPECT_NE(end({}), end({"--set", "rho=10,sigma=9"}));
  const Result seven = run_well({"simulate", "Lorenz96", "--size", "7", "--until", "1"});
  EXPECT_EQ(csv_rows(seven.out)[0].size(), 8u);
}

TEST_F(CommandsTest, LocaleChangesNoNumber) {
  How german{.environment = {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}}};
  // Where the locale is not installed, make it: else the variable would be ignored.
  const std::string make =
      "localedef -i de_DE -f UTF-8 " + path("de_DE.UTF-8").string() + " >/dev/null 2>&1";
  if (std::system(make.c_str()) == 0) german.environment.emplace_back("LOCPATH", path("").string());
  write("truth.csv", "t,x,y,z\n1.02,1.5,1,1\n1.04,1.25,2,1\n");
  std::vector<std::string> first;
  for (const How& how : {How{}, german}) {
    std::vector<std::string> now;
    now.push_back(run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "1", "--step",
                            "0.02", "-o", "train.csv"},
                           how)
                      .out);
    run_well({"fit", "train.csv", "--trainer", "adam", "--batches", "2", "--dropout", "0.125"},
             how);
    run_well({"forecast", "model.json", "--until", "1.1", "--draws", "50"}, how);
    run_well({"plot", "forecast.csv"}, how);
    for (const std::string file : {"train.csv", "model.json", "forecast.csv", "forecast.svg"})
      now.push_back(read(file));
    for (const std::string format : {"text", "latex", "json", "c"})
      now.push_back(run_well({"equations", "model.json", "--format", format}, how).out);
    now.push_back(run_well({"predict", "model.json", "--at", "1.5,1,1", "--json"}, how).out);
    now.push_back(run_well({"score", "forecast.csv", "truth.csv"}, how).out);
    now.push_back(run_well({"systems"}, how).out + run_well({"systems", "Lorenz"}, how).out);
    if (first.empty()) first = now;
    for (std::size_t i = 0; i < now.size(); ++i)
      EXPECT_TRUE(now[i] == first[i]) << "output " << i << ":\n" << now[i].substr(0, 300);
  }
}

/// The words of a page, tags left out.
std::string page_text(const std::string& html) {
  const auto body = html.substr(html.find("<main"), html.find("</main>") - html.find("<main"));
  return std::regex_replace(body, std::regex("<[^>]*>"), " ");
}

TEST_F(CommandsTest, ForecastWritesAPageThatSaysWhatTheFilesSay) {
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "10", "--step", "0.01", "-o",
            "train.csv"});
  run_well({"simulate", "SprottB", "--init=-1,-1,-1", "--until", "5", "--step", "0.05", "-o",
            "test.csv"});
  run_well({"fit", "train.csv", "-o", "model.json"});
  const Words words = {"forecast", "model.json", "--init=-1,-1,-1", "--until", "5",
                       "--step",   "0.05",       "--draws",         "100",     "--truth",
                       "test.csv", "--system",   "SprottB",         "--title", "It's <new>",
                       "--report", "page.html"};
  const Json json = json_of(words);
  EXPECT_EQ(json["report"], "page.html");
  const std::string page = read("page.html"), text = page_text(page);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_TRUE(contains(page, "<title>It&#39;s &lt;new&gt;</title>"));
  const Json scores = json_of({"score", "forecast.csv", "test.csv", "--system", "SprottB"});
  char coverage[32];
  std::snprintf(coverage, sizeof coverage, "%.1f %%",
                100 * scores["coverage"]["all"].get<double>());
  EXPECT_TRUE(contains(text, coverage)) << coverage;
  EXPECT_TRUE(contains(text, "100 times in (0, 5]"));
  EXPECT_TRUE(
      contains(page, "--title &#39;It&#39;\\&#39;&#39;s &lt;new&gt;&#39;"));  // quoted for a shell
  for (const char* word : {"Lyapunov time", "Coverage against nominal level", "PIT", "Blow-ups",
                           "<dt>seed</dt><dd>1", "<dt>odecast</dt><dd>0."})
    EXPECT_TRUE(contains(text, word) || contains(page, word)) << word;
  EXPECT_FALSE(contains(page.substr(0, page.find("<script>")), "https://"))
      << "an address in the page";

  // The forecast's numbers do not depend on whether a page is written; the page has the same bytes
  // again.
  const std::string with_page = read("forecast.csv");
  json_of(words);
  EXPECT_TRUE(read("page.html") == page);
  run_well({"forecast", "model.json", "--init=-1,-1,-1", "--until", "5", "--step", "0.05",
            "--draws", "100"});
  EXPECT_TRUE(read("forecast.csv") == with_page);
  EXPECT_TRUE(contains(
      run_well({"forecast", "model.json", "--until", "11", "--draws", "20", "--report", "p.html"})
          .out,
      "Page written to p.html"));
  EXPECT_FALSE(contains(page_text(read("p.html")), "PIT"));  // no truth, no scores
}

TEST_F(CommandsTest, FitWritesAPage) {
  write("two.csv", "trajectory,t,x\na,0,1\na,0.1,0.9\na,0.2,0.81\nb,0,2\nb,0.1,1.8\nb,0.2,1.62\n");
  const Json json =
      json_of({"fit", "two.csv", "--degree", "1", "--dropout", "0.25", "--report", "page.html"});
  EXPECT_EQ(json["report"], "page.html");
  const std::string text = page_text(read("page.html"));
  EXPECT_TRUE(contains(read("page.html"), "Learnt from 4 rows in 2 trajectories."));
  EXPECT_TRUE(contains(text, "dx/dt"));
  // From a pipe the data can be read only once.
  const std::string model = read("model.json");
  run_well({"fit", "-", "--degree", "1", "--dropout", "0.25", "--report", "piped.html"},
           {.input = read("two.csv")});
  EXPECT_EQ(read("model.json"), model);
  EXPECT_TRUE(contains(read("piped.html"), "in 2 trajectories"));
  // A general network has no equations, and says so.
  run_well({"fit", "two.csv", "--layers", "4", "--batches", "3", "-o", "net.json", "--report",
            "net.html"});
  EXPECT_TRUE(contains(read("net.html"), "no equations to read"));
}

}  // namespace
}  // namespace odecast::cli_test
