#include "cli/bad_input.hpp"

#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

// --- options

TEST_F(BadInputTest, WrongLengthOfInit) {
  make_model();
  for (const auto& [init, found] :
       {std::pair{"1,1", "2 values"}, std::pair{"1,1,1,1", "4 values"}}) {
    const Words parts = {"--init", found, "3 (x, y, z)"};
    refused({"forecast", "model.json", "--init", init, "--until", "2", "-o", "old.out"}, kUsage,
            parts);
    refused({"simulate", "SprottB", "--init", init, "-o", "old.out"}, kUsage, parts);
  }
  refused({"forecast", "model.json", "--init-sd", "1", "--until", "2", "-o", "old.out"}, kUsage,
          {"--init-sd", "1 values", "3 (x, y, z)"});
  refused({"predict", "model.json", "--at", "1,1"}, kUsage, {"--at", "2 values", "3"});
  refused({"predict", "model.json"}, kUsage, {"--at"});
}

TEST_F(BadInputTest, InitThatIsNoNumber) {
  make_model();
  for (const std::string init : {"1,one,1", "1,,1", "1,nan,1", "1,inf,1"}) {
    refused({"forecast", "model.json", "--init", init, "--until", "2", "-o", "old.out"}, kUsage,
            {"--init", "'" + init + "'", "finite numbers"});
    refused({"simulate", "SprottB", "--init", init, "-o", "old.out"}, kUsage,
            {"--init", "'" + init + "'", "finite numbers"});
  }
}

TEST_F(BadInputTest, UnknownSystem) {
  refused({"simulate", "Lorens", "-o", "old.out"}, kUsage, {"system", "'Lorens'", "Lorenz"});
  refused({"simulate", "sprotb", "-o", "old.out"}, kUsage, {"system", "'sprotb'", "SprottB"});
  refused({"systems", "Roessler"}, kUsage, {"system", "'Roessler'", "Rossler"});
}

TEST_F(BadInputTest, UnknownParameterOfASystem) {
  refused({"simulate", "Lorenz", "--set", "roh=24", "-o", "old.out"}, kUsage,
          {"parameter", "'roh'", "rho"});
  refused({"simulate", "Lorenz", "--set", "rho", "-o", "old.out"}, kUsage, {"--set", "'rho'"});
}

TEST_F(BadInputTest, NegativeStep) {
  make_model();
  refused({"simulate", "SprottB", "--step", "-0.02", "-o", "old.out"}, kUsage,
          {"--step", "-0.02", "> 0"});
  refused({"forecast", "model.json", "--until", "2", "--step", "-0.02", "-o", "old.out"}, kUsage,
          {"--step", "-0.02", "> 0"});
}

TEST_F(BadInputTest, ZeroStep) {
  make_model();
  refused({"simulate", "SprottB", "--step", "0", "-o", "old.out"}, kUsage, {"--step", "> 0"});
  refused({"forecast", "model.json", "--until", "2", "--step", "0", "-o", "old.out"}, kUsage,
          {"--step", "found 0", "> 0"});
  refused({"forecast", "model.json", "--until", "2", "--method", "rk4", "--fixed-step", "0", "-o",
           "old.out"},
          kUsage, {"fixed", "found 0", "> 0"});
}

TEST_F(BadInputTest, TinyStep) {
  refused({"simulate", "SprottB", "--step", "1e-300", "--until", "1", "-o", "old.out"}, kUsage,
          {"--step", "1e-300"});
}

TEST_F(BadInputTest, FixedStepThatDoesNotMoveTime) {
  make_model();
  // 1 + 1e-300 == 1. Two seconds are plenty to see that; the step caps alone would take hours.
  const Result result = run({"forecast", "model.json", "--until", "2", "--method", "rk4",
                             "--fixed-step", "1e-300", "-o", "old.out"},
                            {.limit = 2});
  EXPECT_TRUE(result.code == kNotTrusted || result.code == kUsage) << result.code;
  EXPECT_EQ(read("old.out"), "the old file\n");
}

TEST_F(BadInputTest, DropoutOutOfRange) {
  make_data();
  for (const std::string rate : {"1", "-0.1", "nan", "1.5", "inf", "a quarter", ""})
    refused({"fit", "train.csv", "--dropout", rate, "-o", "old.out"}, kUsage,
            {"--dropout", rate, rate == "1" || rate == "-0.1" ? "[0, 1)" : ""});
}

TEST_F(BadInputTest, DrawsOutOfRange) {
  make_model();
  for (const std::string draws : {"0", "1", "-5", "many", "2.5", "1e3", "99999999999999999999"})
    refused({"forecast", "model.json", "--until", "2", "--draws", draws, "-o", "old.out"}, kUsage,
            {"--draws", "'" + draws + "'", "whole number from 2"});
}

TEST_F(BadInputTest, LevelOutOfRange) {
  make_model();
  for (const std::string level : {"0", "1", "-0.5", "95"}) {
    refused({"forecast", "model.json", "--until", "2", "--level", level, "-o", "old.out"}, kUsage,
            {"--level", level, "between 0 and 1"});
    refused({"predict", "model.json", "--at", "1,1,1", "--level", level}, kUsage,
            {"--level", level, "between 0 and 1"});
  }
}

TEST_F(BadInputTest, UntilBeforeStart) {
  make_model();  // its last observation is at t = 1
  for (const std::string until : {"0.5", "1", "-3"})
    refused({"forecast", "model.json", "--until", until, "-o", "old.out"}, kUsage,
            {"--until", until, "after the start (1)"});
  refused(
      {"forecast", "model.json", "--init", "1,1,1", "--from", "7", "--until", "6", "-o", "old.out"},
      kUsage, {"--until", "found 6", "after the start (7)"});
  refused({"simulate", "SprottB", "--until", "-1", "-o", "old.out"}, kUsage,
          {"--until", "-1", "after the start (0)"});
}

TEST_F(BadInputTest, ForecastWithoutTimes) {
  make_model();
  refused({"forecast", "model.json", "-o", "old.out"}, kUsage, {"--until", "--at", "t = 1"});
  refused({"forecast", "model.json", "--at", "train.csv", "--until", "2", "-o", "old.out"}, kUsage,
          {"--at", "--until"});
  // All times of the file are those of the data, none after the last observation.
  refused({"forecast", "model.json", "--at", "train.csv", "-o", "old.out"}, kUsage, {"times"});
}

TEST_F(BadInputTest, UnknownOption) {
  make_data();
  refused({"fit", "train.csv", "--dropuot", "0.1", "-o", "old.out"}, kUsage,
          {"--dropuot", "perhaps --dropout"});
  refused({"forecast", "model.json", "--draw=10", "-o", "old.out"}, kUsage,
          {"option --draw:", "perhaps --draws"});
  refused({"fit", "train.csv", "--xyzzy", "-o", "old.out"}, kUsage,
          {"--xyzzy", "odecast fit --help"});
  refused({"fit", "train.csv", "-x", "-o", "old.out"}, kUsage, {"-x"});
}

TEST_F(BadInputTest, UnknownCommand) {
  refused({"forcast", "model.json"}, kUsage, {"'forcast'", "perhaps forecast"});
  refused({"xyzzy"}, kUsage, {"'xyzzy'", "odecast --help"});
  refused({""}, kUsage, {"''"});
}

TEST_F(BadInputTest, OptionWithoutValue) {
  make_data();
  refused({"fit", "train.csv", "-o", "old.out", "--degree"}, kUsage, {"--degree", "nothing"});
  refused({"fit", "train.csv", "--degree", "-o", "old.out"}, kUsage, {"--degree", "-o"});
  refused({"fit", "train.csv", "--degree=", "-o", "old.out"}, kUsage, {"--degree", "''"});
  refused({"fit", "train.csv", "-o"}, kUsage, {"-o", "nothing", "FILE"});
}

TEST_F(BadInputTest, ValueForASwitch) {
  make_data();
  refused({"fit", "train.csv", "--json=yes", "-o", "old.out"}, kUsage, {"--json", "switch"});
}

TEST_F(BadInputTest, OptionGivenTwice) {
  make_data();
  refused({"fit", "train.csv", "--seed", "1", "--seed=1", "-o", "old.out"}, kUsage,
          {"--seed", "twice"});
  refused({"fit", "train.csv", "--output", "new.out", "-o", "old.out"}, kUsage, {"-o", "twice"});
}

TEST_F(BadInputTest, ValueNotAmongTheChoices) {
  make_data();
  refused({"fit", "train.csv", "--scale", "some", "-o", "old.out"}, kUsage,
          {"--scale", "'some'", "standard, none"});
  refused({"forecast", "model.json", "--bands", "", "-o", "old.out"}, kUsage,
          {"--bands", "''", "both, sd, quantiles"});
  refused({"equations", "model.json", "--format", "fortran"}, kUsage,
          {"--format", "'fortran'", "text, latex, json, c"});
}

TEST_F(BadInputTest, WrongNumberOfArguments) {
  make_data();
  refused({"fit", "-o", "old.out"}, kUsage, {"odecast fit", "0 arguments", "DATA"});
  refused({"score", "a", "b", "c"}, kUsage, {"odecast score", "3 arg"});
  refused({"score", "train.csv"}, kUsage, {"odecast score", "1 arg", "FORECAST TRUTH"});
  refused({"systems", "Lorenz", "Rossler"}, kUsage, {"odecast systems", "2 arg"});
}

TEST_F(BadInputTest, SeedAndThreadsOutOfRange) {
  make_data();
  for (const std::string seed : {"-1", "1.5", "x", "18446744073709551616"})
    refused({"fit", "train.csv", "--seed", seed, "-o", "old.out"}, kUsage,
            {"--seed", "'" + seed + "'", "whole number"});
  for (const std::string threads : {"0", "-2", "two", "1000000"})
    refused({"fit", "train.csv", "--threads", threads, "-o", "old.out"}, kUsage,
            {"--threads", "'" + threads + "'", "whole number"});
}

TEST_F(BadInputTest, ScheduleThatIsNone) {
  make_data();
  for (const std::string schedule : {"10", "@0.1", "0@0.1", "1.5@0.1", "nan@0.1", "10@", "10@x"})
    refused({"fit", "train.csv", "--schedule", schedule, "-o", "old.out"}, kUsage,
            {"--schedule", "'" + schedule + "'", "STEPS@RATE"});
  refused({"fit", "train.csv", "--trainer", "adam", "--batches", "0", "-o", "old.out"}, kUsage,
          {"--batches", "'0'"});
}

TEST_F(BadInputTest, GiantDegree) {
  make_data();
  for (const std::string degree : {"21", "1000000000", "99999999999999999999999"})
    refused({"fit", "train.csv", "--degree", degree, "-o", "old.out"}, kUsage,
            {"--degree", degree, "to 20"});
  // Small enough as a degree, not as a number of monomials: 3108105 and 53130. The time limit also
  // bounds the memory that a program without this check would take.
  std::string header = "t", row;
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    header += "," + name;
    row += ",1";
  }
  write("five.csv", header + "\n0" + row + "\n1" + row + "\n2" + row + "\n");
  write("eight.csv", header + ",f,g,h\n0,1,1,1" + row + "\n1,1,1,1" + row + "\n");
  for (const std::string file : {"eight.csv", "five.csv"})
    refused({"fit", file, "--degree", "20", "--trainer", "adam", "--batches", "1", "--schedule",
             "1@0.001", "-o", "old.out"},
            kUsage, {"--degree", "20", "monomials"}, {.limit = 3});
}

TEST_F(BadInputTest, GiantLayers) {
  make_data();
  refused({"fit", "train.csv", "--layers", "100000,100000", "-o", "old.out"}, kUsage,
          {"weights", "at most"});
  refused({"fit", "train.csv", "--layers", "8,0", "-o", "old.out"}, kUsage, {"--layers", "0"});
  refused({"fit", "train.csv", "--hidden", "1000000", "-o", "old.out"}, kUsage,
          {"--hidden", "'1000000'"});
}

TEST_F(BadInputTest, UnknownInstructionSet) {
  make_model();
  const How how{.environment = {{"ODECAST_ISA", "nonsense"}}};
  const Words parts = {"ODECAST_ISA", "'nonsense'", "sse2"};
  refused({"fit", "train.csv", "-o", "old.out"}, kUsage, parts, how);
  refused({"forecast", "model.json", "--until", "2", "-o", "old.out"}, kUsage, parts, how);
}

// --- model files

TEST_F(BadInputTest, ModelTruncated) {
  make_model();
  const std::string whole = read("model.json");
  std::vector<std::size_t> lengths = {0, 1, 2, 100, whole.size() - 1, whole.size() - 2};
  for (int i = 1; i < 16; ++i) lengths.push_back(whole.size() * static_cast<std::size_t>(i) / 16);
  for (const std::size_t length : lengths) {
    write("cut.json", whole.substr(0, length));
    refused({"forecast", "cut.json", "--until", "2", "-o", "old.out"}, kBadData,
            {"'cut.json'", "again"});
    refused({"equations", "cut.json"}, kBadData, {"'cut.json'"});
    refused({"predict", "cut.json", "--at", "1,1,1"}, kBadData, {"'cut.json'"});
  }
}

TEST_F(BadInputTest, ModelWithOneByteChanged) {
  ODECAST_NOT_UNDER_SANITIZERS();
  make_one_dimensional_model({"--hidden", "1"});
  const std::string whole = read("one.json");
  int tried = 0;
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    for (const char byte : {static_cast<char>(whole[at] ^ 1), '9', '\xff'}) {
      if (byte == whole[at]) continue;
      std::string changed = whole;
      changed[at] = byte;
      write("changed.json", changed);
      SCOPED_TRACE("byte " + std::to_string(at));
      refused({"forecast", "changed.json", "--until", "0.95", "-o", "old.out"}, kBadData,
              {"'changed.json'"});
      if (HasFailure()) return;  // one is enough to read
      ++tried;
    }
  }
  EXPECT_GT(tried, 300);
}

TEST_F(BadInputTest, ModelWithANumberTooLarge) {
  // Damage that is still JSON by its grammar.
  make_one_dimensional_model({"--hidden", "1"});
  std::string changed = read("one.json");
  const auto value = changed.find("\"data_scale\": ");
  ASSERT_NE(value, changed.npos);
  write("changed.json", changed.insert(changed.find(',', value), "e999"));
  refused({"forecast", "changed.json", "--until", "0.95", "-o", "old.out"}, kBadData,
          {"'changed.json'"});
}

TEST_F(BadInputTest, ModelThatIsSomethingElse) {
  make_data();
  refused({"forecast", "train.csv", "--until", "2", "-o", "old.out"}, kBadData,
          {"'train.csv'", "not JSON"});
  write("other.json", "{\"model\": 1}\n");
  refused({"forecast", "other.json", "--until", "2", "-o", "old.out"}, kBadData,
          {"'other.json'", "odecast_model"});
  write("deep.json", std::string(100000, '['));
  refused({"forecast", "deep.json", "--until", "2", "-o", "old.out"}, kBadData,
          {"'deep.json'", "nesting"});
}

TEST_F(BadInputTest, ModelOfANewerVersion) {
  make_model();
  std::string text = read("model.json");
  const std::string version = "\"odecast_model\": 7";
  ASSERT_TRUE(contains(text, version));
  text.replace(text.find(version) + version.size() - 1, 1, "99");
  write("newer.json", text);
  refused({"forecast", "newer.json", "--until", "2", "-o", "old.out"}, kBadData,
          {"'newer.json'", "version 99", "version 12 or older", "newer"});
}

// --- outputs

TEST_F(BadInputTest, UnwritableOutputIsFoundBeforeTheWork) {
  make_model();
  make_long_data();
  fs::create_directory(path("directory"));
  for (const std::string output :
       {"nowhere/out", "old.out/out", "directory", "/proc/odecast.out"}) {
    const Words parts = {"output '" + output + "'"};
    std::vector<Words> calls = {
        {"fit", "long.csv", "-o", output},
        {"forecast", "model.json", "--until", "100", "--draws", "100000", "-o", output},
        {"simulate", "SprottB", "--until", "500", "-o", output},
        {"split", "long.csv", "--train", "new.out", "--test", output}};
    for (const Words& call : calls) {
      const Result result = refused(call, kFileFailure, parts);
      EXPECT_LT(result.seconds, 0.5) << joined(call);
    }
  }
  refused({"fit", "long.csv", "-o", "nowhere/out"}, kFileFailure,
          {"no directory 'nowhere'", "existing directory"});
}

TEST_F(BadInputTest, OutputThatIsAlsoTheInput) {
  make_model();
  run_well({"forecast", "model.json", "--until", "2", "--draws", "20", "--blow-up", "until", "-o",
            "forecast.csv"});
  write("test.csv", "t,x,y,z\n1.1,0,0,0\n1.2,0,0,0\n");
  fs::create_directory(path("sub"));
  fs::create_symlink("train.csv", path("link.csv"));
  fs::create_hard_link(path("train.csv"), path("hard.csv"));
  const auto same = [&](const Words& args, const std::string& output) {
    refused(args, kUsage, {"'" + output + "'", "also the input"});
  };
  const Words spellings = {"train.csv", "./train.csv", "sub/../train.csv",
                           "link.csv",  "hard.csv",    path("train.csv").string()};
  for (const auto& output : spellings) {
    same({"fit", "train.csv", "-o", output}, output);
    same({"split", "train.csv", "--train", output, "--test", "new.out"}, output);
    same({"split", "train.csv", "--train", "new.out", "--test", output}, output);
  }
  same({"fit", "link.csv", "-o", "train.csv"}, "train.csv");
  same({"forecast", "model.json", "--until", "2", "-o", "sub/../model.json"}, "sub/../model.json");
  same({"forecast", "model.json", "--at", "test.csv", "-o", "./test.csv"}, "./test.csv");
  same({"plot", "forecast.csv", "-o", "./forecast.csv"}, "./forecast.csv");
  same({"plot", "forecast.csv", "--truth", "test.csv", "-o", "test.csv"}, "test.csv");
}

TEST_F(BadInputTest, TwoOutputsInOneFile) {
  make_data();
  for (const std::string test : {"old.out", "./old.out"})
    refused({"split", "train.csv", "--train", "old.out", "--test", test}, kUsage,
            {"--test", "--train", "another file"});
  for (const std::string test : {"new.out", "./new.out"})
    refused({"split", "train.csv", "--train", "new.out", "--test", test}, kUsage,
            {"--test", "--train", "another file"});
}

TEST_F(BadInputTest, ReportThatIsAnotherFileOrDoesNothing) {
  make_model();
  write("test.csv", "t,x,y,z\n1.1,0,0,0\n1.2,0,0,0\n");
  const Words forecast = {"forecast", "model.json", "--until", "1.2", "--draws", "20"};
  const auto with = [&](Words more) {
    Words words = forecast;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused(with({"--report", "./forecast.csv"}), kUsage, {"--report", "--output", "another file"});
  refused(with({"--report", "model.json"}), kUsage, {"'model.json'", "also the input"});
  refused(with({"--truth", "test.csv", "--report", "test.csv"}), kUsage,
          {"'test.csv'", "also the input"});
  refused(with({"--truth", "test.csv"}), kUsage, {"--truth", "--report"});
  refused(with({"--system", "SprottB"}), kUsage, {"--system", "--report"});
  refused(with({"--report", "new.out", "--lyapunov", "-1"}), kUsage, {"--lyapunov", "> 0"});
  refused(with({"--report", "new.out", "--lyapunov", "1", "--system", "Lorenz"}), kUsage,
          {"--lyapunov", "--system"});
  refused(with({"--report", "nowhere/page.html"}), kFileFailure, {"nowhere"});
  refused(with({"--report", "new.out", "--field", "mean"}), kUsage, {"--report", "--field draws"});
  refused({"fit", "train.csv", "-o", "new.out", "--report", "./new.out"}, kUsage,
          {"--report", "--output"});
  refused({"fit", "train.csv", "--report", "train.csv"}, kUsage, {"also the input"});
  refused({"fit", "train.csv", "--title", "x"}, kUsage, {"--title", "--report"});
  // Truth that does not match is found before anything is written.
  write("other.csv", "t,x,q\n1.1,0,0\n1.2,0,0\n");
  refused(with({"--truth", "other.csv", "--report", "new.out"}), kBadData,
          {"other.csv", "variable 'y'"});
  write("late.csv", "t,x,y,z\n7,0,0,0\n8,0,0,0\n");
  refused(with({"--truth", "late.csv", "--report", "new.out"}), kBadData, {"late.csv", "--at"});
}

TEST_F(BadInputTest, OutputThatIsAPipeIsNotReplacedByAFile) {
  // Renaming a file over it would do the same to /dev/null.
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const Result result = run({"simulate", "SprottB", "--until", "0.1", "-o", "pipe"}, {.limit = 5});
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  // Either it is refused, or the data came through.
  char first[2] = {};
  if (result.code == 0)
    EXPECT_EQ(std::string(first, static_cast<std::size_t>(
                                     std::max<ssize_t>(0, ::read(reader, first, sizeof first)))),
              "t,");
  else
    EXPECT_TRUE(result.code == kUsage || result.code == kFileFailure) << result.code;
  ::close(reader);
}

TEST_F(BadInputTest, APathThatNoSystemKnows) {
  write("data.csv", "t,x\n0,1\n1,2\n2,3\n3,4\n4,5\n");
  const Result result =
      run({"split", "data.csv", "--train", "a.csv", "--test", std::string(5000, '9')});
  EXPECT_EQ(result.code, kFileFailure);
  EXPECT_TRUE(contains(result.err, "File name too long")) << result.err;
  EXPECT_LT(result.err.size(), 400u);
}

TEST_F(BadInputTest, FullDisk) {
  const How full{.output_to = "/dev/full"};
  make_model();
  for (const Words& args : {Words{"systems"},
                            {"systems", "--json"},
                            {"simulate", "SprottB"},
                            {"equations", "model.json"},
                            {"--help"},
                            {"--version"},
                            {"fit", "--help"}}) {
    const Result result = run(args, full);
    EXPECT_EQ(result.code, kFileFailure) << joined(args);
    EXPECT_TRUE(contains(result.err, "standard output")) << joined(args) << "\n" << result.err;
  }
}

// --- scores

TEST_F(BadInputTest, ScoreNoCommonTimes) {
  make_forecast();
  write("truth.csv", "t,x\n0.5,1\n5.5,1\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "0.5 to 5.5", "0 to 6"});
}

TEST_F(BadInputTest, ScoreOnlyTheStartInCommon) {
  make_forecast();
  write("truth.csv", "t,x\n0,0\n5.5,1\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "0 to 5.5", "0 to 6"});
}

TEST_F(BadInputTest, ScoreDifferentVariables) {
  make_forecast();
  write("truth.csv", "t,y,z\n5,1,1\n6,1,1\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "y, z", "'x'"});
}

TEST_F(BadInputTest, ScoreBeyondTheCertifiedTime) {
  make_forecast();
  write("truth.csv", "# certified until 5\nt,x\n5,1\n6,2\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv", "until t = 5", "t = 6"});
  write("truth.csv", "# certified until 6\nt,x\n5,1\n6,2\n");
  run_well({"score", "forecast.csv", "truth.csv"});
}

TEST_F(BadInputTest, ScoreCertifiedTimeThatIsNoNumber) {
  make_forecast();
  // Read as "certified everywhere" it would turn the refusal off.
  write("truth.csv", "# certified until noon\nt,x\n5,1\n6,2\n");
  refused({"score", "forecast.csv", "truth.csv"}, kBadData, {"truth.csv, line 1", "noon"});
}

TEST_F(BadInputTest, ScoreForecastIsSomethingElse) {
  make_forecast();
  write("truth.csv", "t,x\n5,1\n6,2\n");
  refused({"score", "truth.csv", "forecast.csv"}, kBadData, {"'truth.csv'", "x_mean"});
}

TEST_F(BadInputTest, ScoreSeveralTrajectories) {
  make_forecast();
  write("truth.csv", "trajectory,t,x\na,5,1\nb,5,1\n");
  refused({"score", "forecast.csv", "truth.csv", "--trajectory", "c"}, kUsage,
          {"--trajectory", "'c'", "a, b"});
}

TEST_F(BadInputTest, ScoreThresholdAndExponent) {
  make_forecast();
  write("truth.csv", "t,x\n5,1\n6,2\n");
  refused({"score", "forecast.csv", "truth.csv", "--threshold", "0"}, kUsage,
          {"--threshold", "found 0", "> 0"});
  refused({"score", "forecast.csv", "truth.csv", "--lyapunov", "-1"}, kUsage,
          {"--lyapunov", "-1", "> 0"});
  refused({"score", "forecast.csv", "truth.csv", "--system", "Lorens"}, kUsage, {"Lorenz"});
}

// --- runs that end badly

TEST_F(BadInputTest, EveryTrajectoryExplodes) {
  // du/dt = u² with no mask to stop it: no draw passes the pole at t = 1.
  make_one_dimensional_model({"--dropout", "0"});
  const auto before = snapshot();
  const Words call = {"forecast", "one.json", "--draws", "20", "--until", "1000", "--step", "1"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), call.begin(), call.end());
    return run(more);
  };
  const Result result = with({"-o", "new.out"});
  EXPECT_EQ(result.code, kNotTrusted);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "only 0 of 20")) << result.err;
  EXPECT_TRUE(contains(result.err, "400 attempts")) << result.err;
  EXPECT_TRUE(contains(result.err, "--until")) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_LT(result.seconds, 5);
  EXPECT_EQ(changes(before), "");

  EXPECT_EQ(with({"-o", "old.out"}).code, kNotTrusted);
  EXPECT_EQ(with({"-o", "old.out", "--blow-up", "until"}).code, kNotTrusted);
  for (const std::string method : {"rk4", "euler"})
    EXPECT_EQ(with({"-o", "old.out", "--method", method}).code, kNotTrusted) << method;
  // Quiet means no messages but errors, and this is one.
  EXPECT_TRUE(contains(with({"-o", "old.out", "--quiet"}).err, "only 0 of 20"));
  EXPECT_EQ(changes(before), "");
}

TEST_F(BadInputTest, SingleTrajectoryExplodes) {
  make_one_dimensional_model({"--dropout", "0"});
  const auto before = snapshot();
  const Result result = run({"forecast", "one.json", "--field", "mean", "--until", "1000", "--step",
                             "1", "-o", "old.out"});
  EXPECT_EQ(result.code, kNotTrusted);
  EXPECT_TRUE(contains(result.err, "t = ")) << result.err;
  EXPECT_EQ(changes(before), "") << "no output time was reached";
}

TEST_F(BadInputTest, TrainingThatDiverges) {
  make_data();
  const auto before = snapshot();
  const Result result = run({"fit", "train.csv", "--trainer", "sgd", "--batches", "20",
                             "--schedule", "100@1e6", "-o", "old.out"});
  EXPECT_EQ(result.code, kNotTrusted);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "no model was written")) << result.err;
  EXPECT_EQ(changes(before), "");
}

TEST_F(BadInputTest, InterruptedFit) {
  make_long_data();
  for (const std::string output : {"old.out", "new.out"})
    interrupted({"fit", "long.csv", "--trainer", "adam", "--batches", "1000000", "-o", output},
                SIGINT);
}

TEST_F(BadInputTest, TerminatedFit) {
  make_long_data();
  interrupted({"fit", "long.csv", "--trainer", "adam", "--batches", "1000000", "-o", "old.out"},
              SIGTERM);
}

TEST_F(BadInputTest, InterruptedForecast) {
  make_model();
  interrupted({"forecast", "model.json", "--init", "1,1,1", "--until", "1", "--draws", "1000000000",
               "--bands", "sd", "--blow-up", "until", "-o", "old.out"},
              SIGINT);
}

TEST_F(BadInputTest, InterruptedSimulation) {
  interrupted({"simulate", "Lorenz", "--until", "100000", "--step", "1", "-o", "old.out"}, SIGINT);
}

}  // namespace
}  // namespace odecast::cli_test
