// The filter through the command line: files, streams, what it says of rows and of itself.
#include <poll.h>

#include <nlohmann/json.hpp>

#include "cli/bad_input.hpp"

namespace odecast::cli_test {
namespace {

using Json = nlohmann::json;

class FilterVerbTest : public BadInputTest {
 protected:
  FilterVerbTest() {
    run_well({"simulate", "Lorenz", "--until", "10", "--step", "0.02", "--noise", "0.02", "-o",
              "train.csv", "--quiet"});
    run_well({"fit", "train.csv", "-o", "m.json", "--quiet"});
    run_well({"simulate", "Lorenz", "--init", "3,4,20", "--until", "10", "--step", "0.1", "-o",
              "truth.csv", "--quiet"});
    run_well({"simulate", "Lorenz", "--init", "3,4,20", "--until", "10", "--step", "0.1", "--noise",
              "0.1", "--seed", "3", "-o", "rows.csv", "--quiet"});
  }
  Json followed(Words words, int code = 0) const {
    words.insert(words.begin(), "filter");
    words.push_back("--json");
    const Result result = run(words);
    EXPECT_EQ(result.code, code) << result.err;
    return Json::parse(result.out);
  }
  const Words base_ = {"m.json", "rows.csv", "--noise", "0.9", "--members", "200"};
  Words with(Words more) const {
    more.insert(more.begin(), base_.begin(), base_.end());
    return more;
  }
};

TEST_F(FilterVerbTest, AFileIsFollowedRowByRow) {
  const Json j = followed(with({"--truth", "truth.csv", "-o", "f.csv"}));
  EXPECT_EQ(j["rows"], 101);
  EXPECT_EQ(j["values"], 303);
  EXPECT_EQ(j["status"], "followed");
  EXPECT_EQ(j["method"], "particle");
  EXPECT_LT(j["truth"]["rmse"], 0.9) << "nearer to the truth than a row";
  EXPECT_GT(j["truth"]["coverage"], 0.85);
  const std::string text = read("f.csv");
  EXPECT_EQ(csv_column(text, "status").size(), 101U);
  for (const std::string& s : csv_column(text, "status")) EXPECT_EQ(s, "ok");
  EXPECT_EQ(csv_column(text, "t"), csv_column(read("rows.csv"), "t"));
  const Result words = run({"filter", "m.json", "rows.csv", "--noise", "0.9", "--quiet"});
  EXPECT_EQ(words.code, 0);
  EXPECT_EQ(words.out, "");
  EXPECT_TRUE(exists("filtered.csv"));
}

TEST_F(FilterVerbTest, StandardInputGivesTheBytesOfAFile) {
  for (const std::string method : {"particle", "iterated", "kalman"}) {
    run_well({"filter", "m.json", "rows.csv", "--noise", "0.9", "--method", method, "-o", "f.csv"});
    std::string rows = read("rows.csv");
    rows.erase(0, rows.find("t,x"));
    const Result stream =
        run_well({"filter", "m.json", "-", "--noise", "0.9", "--method", method}, {.input = rows});
    EXPECT_EQ(stream.out, read("f.csv")) << method;
    EXPECT_TRUE(contains(stream.err, "Followed 101 rows"));
    for (char& c : rows) c = c == ',' ? ';' : c;
    EXPECT_EQ(
        run_well({"filter", "m.json", "-", "--noise", "0.9", "--method", method, "--threads", "2"},
                 {.input = rows})
            .out,
        stream.out);
  }
}

TEST_F(FilterVerbTest, EachLineIsAnsweredBeforeTheNextIsRead) {
  int to[2], from[2];
  ASSERT_EQ(pipe(to) + pipe(from), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(to[0], 0), dup2(from[1], 1);
    for (const int end : {to[0], to[1], from[0], from[1]}) close(end);
    if (chdir(path(".").c_str()) == 0)
      execl(kProgram, kProgram, "filter", "m.json", "-", "--noise", "0.9", "--quiet", nullptr);
    _exit(99);
  }
  close(to[0]), close(from[1]);
  const auto answer = [&] {
    std::string text;
    pollfd ready{from[0], POLLIN, 0};
    char part[4096];
    while (text.empty() || text.back() != '\n') {
      if (poll(&ready, 1, 60'000) != 1) break;
      const auto size = ::read(from[0], part, sizeof part);
      if (size <= 0) break;
      text.append(part, static_cast<std::size_t>(size));
    }
    return text;
  };
  const auto send = [&](const std::string& line) {
    ASSERT_EQ(::write(to[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
  };
  send("t,x,y,z\n0,3,4,20\n");
  const std::string first = answer();
  EXPECT_EQ(split(first, '\n').size(), 3U) << first;
  send("0.1,,4.5,\n");
  EXPECT_TRUE(answer().ends_with(",1,ok\n"));
  send("0.05,3,4,20\n");
  EXPECT_TRUE(answer().ends_with(",,,0,late\n"));
  send("0.2,,,\n");
  EXPECT_TRUE(answer().ends_with(",,,0,unobserved\n"));
  close(to[1]);
  EXPECT_EQ(answer(), "");
  close(from[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(FilterVerbTest, ColumnsMayLackAndBeSums) {
  const auto rows = csv_rows(read("rows.csv"));
  std::string x = "t,x\n", sums = "t,total\n";
  for (std::size_t k = 1; k < rows.size(); ++k) {
    x += rows[k][0] + "," + (k % 5 ? rows[k][1] : "") + "\n";
    sums +=
        rows[k][0] + "," + std::to_string(std::stod(rows[k][1]) + 2 * std::stod(rows[k][2])) + "\n";
  }
  write("x.csv", x);
  write("sums.csv", sums);
  Json j = followed({"m.json", "x.csv", "--noise", "0.9", "-o", "f.csv"});
  EXPECT_EQ(j["observed"], Json::array({"x"}));
  EXPECT_EQ(j["values"], 101 - 20);
  j = followed(
      {"m.json", "sums.csv", "--noise", "2", "--observe", "total = x + 2*y", "-o", "f.csv"});
  EXPECT_EQ(j["observed"], Json::array({"total"}));
}

TEST_F(FilterVerbTest, ExitsWithOneWhereItDoesNotFollow) {
  Json j = followed({"m.json", "rows.csv", "--noise", "0.5", "-o", "f.csv"}, 1);
  EXPECT_EQ(j["status"], "not_followed");
  EXPECT_TRUE(contains(j["reason"], "the noise is larger"));
  run_well({"simulate", "Rossler", "--until", "60", "--step", "0.5", "-o", "other.csv", "--quiet"});
  j = followed({"m.json", "other.csv", "--noise", "0.9", "-o", "f.csv"}, 1);
  EXPECT_GT(j["surprise"], 2);
}

TEST_F(FilterVerbTest, LearnsOnAndWritesAModel) {
  run_well({"simulate", "Lorenz", "--set", "rho=31", "--init", "3,4,20", "--until", "30", "--step",
            "0.1", "--noise", "0.1", "--seed", "4", "-o", "day2.csv", "--quiet"});
  const Json j = followed({"m.json", "day2.csv", "--noise", "0.95", "--learn", "--model",
                           "day2.json", "--coefficients", "c.csv", "-o", "f.csv"});
  EXPECT_EQ(j["method"], "iterated");
  EXPECT_LT(j["surprise"], 1.5);
  const auto rho = csv_column(read("c.csv"), "dy/dt: x_mean");
  EXPECT_EQ(rho.size(), 301U);
  EXPECT_NEAR(std::stod(rho.front()), 28, 0.5);
  EXPECT_NEAR(std::stod(rho.back()), 31, 1);
  const Json forecast = Json::parse(
      run_well({"forecast", "day2.json", "--until", "31", "-o", "g.csv", "--json"}).out);
  EXPECT_EQ(csv_column(read("g.csv"), "t").front(), "30");
  EXPECT_GT(forecast["horizon"].is_null() ? 1 : forecast["horizon"].get<double>(), 0.5);
}

TEST_F(FilterVerbTest, ALaggedFileHasAllRowsAndIsNearerToTheTruth) {
  const Json now = followed(with({"--truth", "truth.csv", "--method", "iterated", "-o", "f.csv"})),
             late = followed(with({"--truth", "truth.csv", "--method", "iterated", "--lag", "5",
                                   "--ahead", "0.3", "-o", "g.csv"}));
  EXPECT_EQ(csv_column(read("g.csv"), "t"), csv_column(read("f.csv"), "t"));
  EXPECT_LT(late["truth"]["rmse"], now["truth"]["rmse"]);
  EXPECT_EQ(csv_column(read("g.csv"), "x_ahead_upper").size(), 101U);
}

/// Rows in portions, with a service that is killed between them: the answers are those of one that
/// lives, but for rows sent again, which are late.
TEST_F(FilterVerbTest, WritesAPage) {
  followed(with({"--truth", "truth.csv", "--learn", "--report", "p.html", "--title", "A day", "-o",
                 "f.csv"}));
  const std::string page = read("p.html");
  for (const char* part : {"A day", "Coefficients over time", "How far rows are", "Truth inside",
                           "dy/dt: x", "odecast filter m.json rows.csv"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "Do not trust"));
  followed({"m.json", "rows.csv", "--noise", "0.1", "--report", "p.html"}, 1);
  EXPECT_TRUE(contains(read("p.html"), "Do not trust these states"));
}

TEST_F(FilterVerbTest, AStoppedServiceGoesOnWithTheSameBits) {
  std::string rows = read("rows.csv");
  rows.erase(0, rows.find("t,x"));
  const std::vector<std::string> lines = split(rows, '\n');
  const auto portion = [&](std::size_t first, std::size_t last) {
    std::string text = "t,x,y,z\n";
    for (std::size_t k = first; k < last; ++k) text += lines[k] + "\n";
    return text;
  };
  const auto answers = [&](const std::string& input, Words more) {
    Words words = {"filter", "m.json", "-", "--noise", "0.9", "--members", "200", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_well(words, {.input = input}).out;
  };
  for (const Words& method : {Words{"--method", "particle"}, Words{"--learn"}}) {
    Words kept = method;
    kept.insert(kept.end(), {"--state", "s.json"});
    const std::string whole = answers(portion(1, 100), method);
    const std::string a = answers(portion(1, 41), kept), b = answers(portion(36, 100), kept);
    EXPECT_TRUE(whole.starts_with(a));
    EXPECT_TRUE(b.ends_with(whole.substr(a.size())));
    long late = 0;
    for (const std::string& status : csv_column(b, "status")) late += status == "late";
    EXPECT_EQ(late, 5);
    std::filesystem::remove(path("s.json"));
  }
}

TEST_F(FilterVerbTest, RefusesAStateThatIsNotItsOwn) {
  run_well({"filter", "m.json", "rows.csv", "--noise", "0.9", "--state", "s.json", "--quiet"});
  refused({"filter", "m.json", "rows.csv", "--noise", "0.8", "--state", "s.json"}, kBadData,
          {"s.json", "noise"});
  run_well({"fit", "train.csv", "--seed", "2", "-o", "m2.json", "--quiet"});
  refused({"filter", "m2.json", "rows.csv", "--noise", "0.9", "--state", "s.json"}, kBadData,
          {"another model"});
  write("s.json", read("s.json").substr(0, 1000));
  refused({"filter", "m.json", "rows.csv", "--noise", "0.9", "--state", "s.json"}, kBadData,
          {"s.json", "cut off"});
  refused({"filter", "m.json", "rows.csv", "--state", "s.json", "--lag", "2"}, kUsage, {"--lag"});
  refused({"filter", "m.json", "rows.csv", "--drift", "1"}, kUsage, {"--learn"});
  refused({"filter", "m.json", "rows.csv", "--coefficients", "c.csv"}, kUsage, {"--learn"});
  refused({"filter", "m.json", "rows.csv", "--learn", "--members", "5"}, kUsage, {"--members"});
}

TEST_F(FilterVerbTest, BadInput) {
  write("other.csv", "t,a,b\n0,1,2\n1,1,2\n");
  refused({"filter", "m.json", "other.csv"}, kBadData, {"other.csv", "at least one of x, y, z"});
  refused({"filter", "m.json", "rows.csv", "--noise", "0"}, kUsage, {"--noise", "> 0"});
  refused({"filter", "m.json", "rows.csv", "--noise", "1,1"}, kUsage, {"one for each"});
  refused({"filter", "m.json", "rows.csv", "--observe", "s = x*y"}, kUsage, {"not linear"});
  refused({"filter", "m.json", "rows.csv", "--gate", "0.1"}, kUsage, {"--gate", "--robust"});
  refused({"filter", "m.json", "none.csv"}, kFileFailure, {"none.csv"});
  write("back.csv", "t,x\n0,1\n1,1\n0.5,1\n");
  refused({"filter", "m.json", "back.csv", "--noise", "1", "-o", "old.out"}, kBadData, {"line 4"});
  for (const auto& [text, part] :
       {std::pair{"", "no lines"}, std::pair{"a,b\n1,2\n", "one of times"},
        std::pair{"t,x\n0,1,2\n", "3 cells"}, std::pair{"t,x\n0,what\n", "column x"},
        std::pair{"t,x\nnan,1\n", "column t"}})
    refused({"filter", "m.json", "-", "--noise", "1"}, kBadData, {"standard input", part},
            {.input = text});
}

}  // namespace
}  // namespace odecast::cli_test
