#include <regex>
#include <set>
#include <sstream>

#include "cli/commands.hpp"
#include "support/sanitized.hpp"

namespace odecast::cli_test {
namespace {

/// The words of the command that a page prints; none of those below needs quotes.
Words printed_command(const std::string& html) {
  const auto from = html.find("<code>", html.find("class=\"command\"")) + 6;
  const std::string command = html.substr(from, html.find("</code>", from) - from);
  std::istringstream words(command);
  Words all;
  for (std::string word; words >> word;) all.push_back(word);
  EXPECT_EQ(all.empty() ? "" : all[0], "odecast");
  EXPECT_FALSE(contains(command, "&")) << command;
  all.erase(all.begin());
  return all;
}

/// What stands beside a name in the lists of a page; "" where it does not.
std::string setting(const std::string& html, const std::string& name) {
  const auto at = html.find("<dt>" + name + "</dt><dd>");
  if (at == html.npos) return "";
  const auto from = html.find("<dd>", at) + 4;
  return html.substr(from, html.find("</dd>", from) - from);
}

/// A link to an id leads to one place.
void expect_ids_once(const std::string& html) {
  const std::regex id(" id=\"([^\"]+)\"");
  std::set<std::string> seen;
  for (std::sregex_iterator at(html.begin(), html.end(), id), end; at != end; ++at)
    EXPECT_TRUE(seen.insert((*at)[1]).second) << (*at)[1];
  EXPECT_GT(seen.size(), 3u);
}

class PagesTest : public CommandsTest {
 protected:
  /// Runs a command that writes page.html, then the one that the page prints: the same bytes.
  std::string repeated(const Words& words, int code = 0) const {
    EXPECT_EQ(run(words).code, code) << joined(words);
    const std::string page = read("page.html");
    EXPECT_TRUE(page.starts_with("<!doctype html>")) << joined(words);
    expect_ids_once(page.substr(page.find("<main"), page.find("</main>") - page.find("<main")));
    std::filesystem::remove(path("page.html"));
    const Words again = printed_command(page);
    EXPECT_EQ(run(again).code, code) << joined(again);
    EXPECT_TRUE(read("page.html") == page) << joined(again);
    return page;
  }

  std::string fitted(Words words, int code = 0) const {
    words.insert(words.begin(), "fit");
    words.insert(words.end(), {"-o", "model.json", "--report", "page.html"});
    return repeated(words, code);
  }

  std::string forecasted(Words words) const {
    words.insert(words.begin(), {"forecast", "model.json"});
    words.insert(words.end(), {"--draws", "50", "-o", "f.csv", "--report", "page.html"});
    return repeated(words);
  }
};

TEST_F(PagesTest, PlainCommandsShowWhatWasObservedBeforeTheForecast) {
  ASSERT_EQ(run({"simulate", "SprottB", "--until", "10", "--step", "0.1", "--noise", "0.02", "-o",
                 "run.csv"})
                .code,
            0);
  fitted({"run.csv", "--posterior", "regression"});
  const std::string page = forecasted({"--until", "12"});
  EXPECT_TRUE(contains(page, "\"label\":\"observed\""));
  EXPECT_TRUE(contains(page, ">forecast begins<"));
  EXPECT_FALSE(contains(forecasted({"--init", "1,1,1", "--until", "2"}), "forecast begins"));
  EXPECT_TRUE(contains(
      forecasted({"--init", "1,1,1", "--from", "5", "--until", "6", "--history", "run.csv"}),
      "forecast begins"));
  ASSERT_EQ(run({"plot", "f.csv", "--history", "model.json", "-o", "f.svg"}).code, 0);
  EXPECT_TRUE(contains(read("f.svg"), ">observed<"));
  // A model that keeps no rows has none to show.
  fitted({"run.csv", "--posterior", "regression", "--keep-rows", "none"});
  EXPECT_FALSE(contains(forecasted({"--until", "12"}), "forecast begins"));
  EXPECT_EQ(run({"plot", "f.csv", "--history", "model.json", "-o", "f.svg"}).code, 3);
}

TEST_F(PagesTest, JudgingTheRowsOfTheFitIsTold) {
  for (const auto& [name, start] : {std::pair{"run.csv", "1,1,1"}, {"other.csv", "0.9,1,1"}})
    ASSERT_EQ(
        run({"simulate", "SprottB", "--init", start, "--until", "20", "--step", "0.1", "-o", name})
            .code,
        0);
  fitted({"run.csv", "--posterior", "regression"});
  ASSERT_EQ(run({"forecast", "model.json", "--init", "1,1,1", "--at", "run.csv", "-o", "f.csv",
                 "--draws", "20"})
                .code,
            0);
  const std::string words = "that the model was fitted to";
  const Words few = {"--starts", "20", "--horizon", "2", "--draws", "20"};
  const auto judged = [&](Words words_of, const char* file) {
    for (std::string& word : words_of)
      if (word == "FILE") word = file;
    const auto said = run(words_of);
    EXPECT_EQ(said.code, 0) << joined(words_of);
    words_of.push_back("--json");
    EXPECT_EQ(Json::parse(run(words_of).out).at("share_of_fit") > 0.99, contains(said.err, words));
    return contains(said.err, words);
  };
  for (Words one : {Words{"evaluate", "model.json", "FILE"},
                    Words{"calibrate", "model.json", "FILE", "-o", "calibrated.json"}}) {
    one.insert(one.end(), few.begin(), few.end());
    EXPECT_TRUE(judged(one, "run.csv"));
    EXPECT_FALSE(judged(one, "other.csv"));
  }
  EXPECT_TRUE(judged({"score", "f.csv", "FILE", "--model", "model.json"}, "run.csv"));
  EXPECT_FALSE(judged({"score", "f.csv", "FILE", "--model", "model.json"}, "other.csv"));
  EXPECT_TRUE(
      contains(forecasted({"--init", "1,1,1", "--at", "run.csv", "--truth", "run.csv"}), words));
}

TEST_F(PagesTest, TheCommandThatAPagePrintsGivesItsBytes) {
  ODECAST_NOT_UNDER_SANITIZERS();
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "20", "--step", "0.05", "--noise",
            "0.01", "-o", "noisy.csv"});
  struct Method {
    Words words;
    std::string name;
  };
  for (const Method& method : std::vector<Method>{
           {{}, "trajectory"},
           {{"--posterior", "regression", "--degree", "auto"}, "regression"},
           {{"--posterior", "bootstrap", "--replicates", "10"}, "bootstrap"},
           {{"--dropout", "0.1", "--starts", "2"}, "dropout"},
           {{"--trainer", "adam", "--batches", "3"}, "dropout"},
           {{"--posterior", "ensemble", "--layers", "4", "--members", "2", "--batches", "3"},
            "ensemble"}}) {
    Words words = method.words;
    words.insert(words.begin(), "noisy.csv");
    const std::string fit = fitted(words);
    EXPECT_EQ(setting(fit, "posterior"), method.name);
    EXPECT_EQ(setting(fit, "dropout").empty(), method.name != "dropout");
    EXPECT_EQ(contains(fit, "id=\"path\""), method.name == "trajectory");
    EXPECT_FALSE(contains(fit, "class=\"warning\"")) << joined(words);
    EXPECT_FALSE(contains(forecasted({"--until", "20.5", "--init=1,1,1"}), "class=\"warning\""));
  }
  // A map, what calibrates, and what drives.
  run_well({"simulate", "Henon", "--until", "200", "-o", "map.csv"});
  fitted({"map.csv", "--kind", "map"});
  EXPECT_EQ(setting(forecasted({"--until", "205"}), "solver"), "");
  EXPECT_EQ(setting(fitted({"noisy.csv", "--posterior", "regression", "--calibrate"}),
                    "held out to calibrate"),
            "0.2");
  forecasted({"--until", "20.5", "--observations"});
  run_well({"simulate", "ForcedDuffing", "--until", "30", "--noise", "0.01", "-o", "driven.csv"});
  EXPECT_TRUE(
      contains(fitted({"driven.csv", "--variables", "x,v", "--inputs", "F", "--degree", "3"}),
               "What drove the system"));
}

TEST_F(PagesTest, TheToleranceOnAPageIsTheOneThatRan) {
  run_well({"simulate", "SprottB", "--init", "1,1,1", "--until", "10", "--step", "0.05", "--noise",
            "0.001", "-o", "noisy.csv"});
  fitted({"noisy.csv"});
  const std::string page = forecasted({"--until", "12"}), bands = read("f.csv");
  const double rtol = number(setting(page, "relative tolerance"));
  EXPECT_LE(rtol, 1e-6);
  // Given in words it changes nothing; what pages said before (1e-3) does.
  const std::string atol = setting(page, "absolute tolerance");
  const auto with = [&](const std::string& r, const std::string& a) {
    run_well({"forecast", "model.json", "--until", "12", "--draws", "50", "--rtol", r, "--atol", a,
              "-o", "f.csv"});
    return read("f.csv");
  };
  EXPECT_TRUE(with(setting(page, "relative tolerance"), atol.substr(0, atol.find(','))) == bands);
  EXPECT_FALSE(with("1e-3", "1e-6") == bands);
}

TEST_F(PagesTest, APageOfAModelThatIsNotToBeTrustedSaysSoFirst) {
  run_well({"simulate", "VanDerPol", "--until", "50", "--step", "0.05", "--noise", "0.02", "-o",
            "noisy.csv"});
  const std::string page = fitted({"noisy.csv", "--degree", "1"}, 1);
  const auto title = page.find("<h1>");
  EXPECT_LT(page.find("Do not trust this model"), title);
  EXPECT_LT(page.find("do not explain all of the motion"), title);
  EXPECT_TRUE(contains(page, "Random forcing"));
  EXPECT_LT(forecasted({"--until", "51"}).find("Do not trust this forecast"), title);
  fitted({"noisy.csv", "--degree", "1", "--posterior", "regression"}, 1);
  EXPECT_LT(forecasted({"--until", "51"}).find("Do not trust this forecast"), title);
}

TEST_F(PagesTest, TheCommandOnThePageOfTheStudyGivesItsBytes) {
  ODECAST_NOT_UNDER_SANITIZERS();
  run_well({"reproduce", "--adam-seeds", "2", "--batches", "1", "-o", "study"}, {.limit = 200});
  const std::string page = read("study/report.html");
  std::filesystem::remove(path("study/report.html"));
  Words again = printed_command(page);
  again.insert(again.end(), {"-o", "study"});  // which refuses other settings; units are found
  run_well(again, {.limit = 200});
  EXPECT_TRUE(read("study/report.html") == page);
}

}  // namespace
}  // namespace odecast::cli_test
