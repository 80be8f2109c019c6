#include "odecast/report/page.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "odecast/core/encoding.hpp"
#include "odecast/core/text.hpp"
#include "odecast/report/detail/page_data.hpp"
#include "odecast/report/figure.hpp"
#include "odecast/report/forecast_page.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  if (from == text.npos) return "";
  return text.substr(from + begin.size(),
                     text.find(end, from + begin.size()) - from - begin.size());
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string hash(const std::string& text) {
  const auto digest = sha256(text);
  return "'sha256-" + base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

Line wave(int rows) {
  Line line{.label = "wave"};
  for (int i = 0; i < rows; ++i) {
    line.x.push_back(0.01 * i);
    line.y.push_back(std::sin(0.01 * i));
  }
  return line;
}

/// One of every part, with text that would be markup if it were not escaped.
Page sample_page() {
  const std::string evil = "<script>alert(1)</script>&\"'";
  Matrix states(3, 3);
  states << 0, 1, 2, 1, 2, 0, 2, 0, 1;
  Page page{evil, evil, {}, {evil, evil}};
  Section section{"all", evil};
  section.parts = {
      Prose{evil},
      Notice{evil},
      Tiles{{{evil, evil, evil}}},
      KeyValues{{{evil, evil}}},
      Table{evil,
            {evil, "n"},
            {{{evil}, number_cell(1.23456)},
             {{"b"}, {"yes " + evil, CellKind::holds}},
             {{"c"}, share_cell(0.125)}}},
      EquationList{
          {"x", "y" + evil}, {{"x", {{{2, 1}, -1.5e-7, 2e-8, 1}, {{0, 0}, 2, 0, 1}}, 3}}, evil},
      Figure{.id = "fig",
             .title = evil,
             .caption = evil,
             .panels = {{.x_label = evil, .y_label = evil, .lines = {wave(5)}}},
             .names = {evil}},
      Attractor{.id = "space",
                .title = evil,
                .variables = {"x", "y", evil},
                .curves = {{evil, Ink::truth, {0, 1, 2}, states}}},
      StaticFigures{{{"still", evil, draw_svg({{.lines = {wave(5)}}}), evil}}, 2},
      CommandLine{evil}};
  page.sections.push_back(section);
  return page;
}

TEST(PageTest, TextIsNeverMarkup) {
  const std::string html = render_page(sample_page());
  EXPECT_EQ(count(html, "<script"), 3);  // two data blocks and ours
  EXPECT_EQ(count(html, "</script>"), 3);
  EXPECT_EQ(count(html, "alert(1)"),
            count(html, "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;") +
                count(html, "\\u003cscript>alert(1)\\u003c/script>&\\\"'"));
  EXPECT_GT(count(html, "alert(1)"), 15);
}

TEST(PageTest, PolicyNamesExactlyTheScriptAndStyleInside) {
  for (const bool interactive : {true, false}) {
    const std::string html = render_page(sample_page(), {.interactive = interactive});
    const std::string policy = between(html, "Content-Security-Policy\" content=\"", "\">");
    EXPECT_EQ(policy, "default-src 'none'; script-src " +
                          hash(between(html, "<script>", "</script>")) + "; style-src " +
                          hash(between(html, "<style>", "</style>")) +
                          "; img-src data: blob:; base-uri 'none'; form-action 'none'");
    EXPECT_EQ(count(html, " style=\""), 0);
    EXPECT_EQ(html.find("src=\""), html.npos);
    // Addresses stand in the licence's script only.
    EXPECT_FALSE(std::regex_search(html.substr(0, html.find("<script>")),
                                   std::regex("https?://(?!www\\.w3\\.org/)")));
    // uPlot and its licence come and go together.
    const bool library = interactive && !page_library_version().empty();
    EXPECT_EQ(html.find("Permission is hereby granted") != html.npos, library);
    EXPECT_EQ(html.find("/*! uPlot " + page_library_version()) != html.npos, library);
  }
}

TEST(PageTest, SameInputSameBytes) {
  EXPECT_EQ(render_page(sample_page()), render_page(sample_page()));
}

TEST(PageTest, TablesAndEquationsAreSet) {
  const std::string html = render_page(sample_page());
  EXPECT_EQ(number_cell(1.23456).text, "1.23");
  EXPECT_EQ(number_cell(-0.5).text, "−0.5");
  EXPECT_EQ(number_cell(-5152.4).text, "−5152");
  EXPECT_EQ(number_cell(1.5e7).text, "1.5e+07");
  EXPECT_EQ(number_cell(std::nan("")).text, "–");
  EXPECT_NE(html.find("<td class=\"number\">1.23</td>"), html.npos);
  EXPECT_NE(html.find("12 %<svg viewBox=\"0 0 100 10\""), html.npos);
  EXPECT_NE(html.find("<rect width=\"12.5\" height=\"10\"/></svg></td>"), html.npos);
  for (const auto& [share, said] : std::vector<std::pair<double, std::string>>{{0, "0 %"},
                                                                               {1, "100 %"},
                                                                               {1 - 1e-15, "100 %"},
                                                                               {0.9999, "> 99.9 %"},
                                                                               {1e-5, "< 0.1 %"},
                                                                               {0.034, "3.4 %"}})
    EXPECT_EQ(share_cell(share).text, said);
  EXPECT_NE(html.find("<td class=\"verdict holds\">yes "), html.npos);
  EXPECT_NE(html.find("<th scope=\"col\" class=\"number\">n</th>"), html.npos);
  // −(1.50 ± 0.20) × 10⁻⁷ x² y…, and the note on what is left out.
  EXPECT_NE(html.find("<mn>1.5</mn><mo>×</mo><msup><mn>10</mn><mrow><mo>−</mo><mn>7</mn>"),
            html.npos);
  EXPECT_NE(html.find("<msup><mrow><mi>x</mi></mrow><mn>2</mn></msup>"), html.npos);
  EXPECT_NE(html.find("3 small terms are left out"), html.npos);
  const EquationList indexed{{"x1", "q_12"}, {{"x1", {{{0, 1}, 1, 0.1, 1}}, 0}}};
  const std::string other = render_page({"t", "", {{"s", "S", {indexed}}}});
  EXPECT_NE(other.find("<msub><mi>x</mi><mn>1</mn></msub>"), other.npos);
  EXPECT_NE(other.find("<msub><mi>q</mi><mn>12</mn></msub>"), other.npos);
}

TEST(PageTest, CurvesThatRunBackAreStatic) {
  Line circle{.x = {1, 0, -1, 0, 1}, .y = {0, 1, 0, -1, 0}};
  const std::string html = render_page(
      {"t", "", {{"s", "S", {Figure{.id = "f", .title = "F", .panels = {{.lines = {circle}}}}}}}});
  EXPECT_NE(html.find("\"live\":false"), html.npos);
}

TEST(PageDataTest, EqualColumnsAreHeldOnce) {
  ColumnPool pool;
  const int a = pool.add({1, 2, 3}, Rounding::decimals);
  EXPECT_EQ(pool.add({1, 2, 3}, Rounding::decimals), a);
  EXPECT_EQ(pool.add({1, 2, 3}, Rounding::none), a);  // and then it is never rounded
  EXPECT_EQ(pool.columns()[0].rounding, Rounding::none);
  EXPECT_NE(pool.add({1, 2, 4}, Rounding::decimals), a);
  EXPECT_NE(pool.add({1, 2}, Rounding::decimals), a);
  EXPECT_NE(pool.add({0.0}, Rounding::decimals), pool.add({-0.0}, Rounding::decimals));
}

// That the numbers can be read back, exactly or as near as claimed, is tested in the browser, which
// has the only reader.
TEST(PageDataTest, PackingKeepsToItsBudget) {
  std::vector<PageColumn> columns(1);
  columns[0].rounding = Rounding::none;
  for (int i = 0; i < 50'000; ++i) columns[0].values.push_back(0.01 * i);
  for (int k = 1; k < 5; ++k) {
    PageColumn c;
    for (int i = 0; i < 50'000; ++i)
      c.values.push_back(std::sin(0.05 * k * i) + 0.3 * std::cos(0.21 * i));
    c.values[17] = std::numeric_limits<double>::quiet_NaN();
    columns.push_back(c);
  }
  const PackedColumns exact = pack(columns, 10'000'000);
  EXPECT_EQ(exact.bits, 0);
  EXPECT_EQ(exact.stride, 1);
  std::size_t before = exact.numbers.size();
  int bits = 64;
  for (const std::size_t budget : {400'000u, 200'000u, 120'000u}) {
    const PackedColumns packed = pack(columns, budget);
    EXPECT_LE(packed.numbers.size(), budget);
    EXPECT_LT(packed.numbers.size(), before);
    EXPECT_LT(packed.bits, bits);
    EXPECT_EQ(packed.stride, 1) << budget;
    before = packed.numbers.size();
    bits = packed.bits;
  }
  const PackedColumns last = pack(columns, 3'000);
  EXPECT_LE(last.numbers.size(), 3'000u);
  EXPECT_GT(last.stride, 1);
  EXPECT_NE(last.header.find("\"of\":50000"), std::string::npos);  // what is missing is said
}

TEST(PageDataTest, AnUpperEdgeIsReadOffItsBand) {
  ColumnPool pool;
  const int mean = pool.add({1, 2, 3}, Rounding::decimals);
  const int lower = pool.add({0, 0.5, 1}, Rounding::decimals);
  const int upper = pool.add_upper({2, 3.5, 5}, Rounding::decimals, {lower, mean}, lower);
  EXPECT_EQ(pool.columns()[static_cast<std::size_t>(upper)].centre, mean);
  const int skew = pool.add_upper({2, 3.5, 6}, Rounding::decimals, {mean}, lower);
  EXPECT_EQ(pool.columns()[static_cast<std::size_t>(skew)].centre, -1);
}

Forecast small_forecast(const Model& model, int rows, double step) {
  ForecastOptions o;
  o.init = Vector::Ones(model.dimension());
  for (int i = 1; i <= rows; ++i) o.times.push_back(step * i);
  o.draws = 50;
  o.samples = 3;
  return forecast(model, o, ignore_progress);
}

TEST(ResultsTest, AForecastPageHasEveryPartThatItsContentAllows) {
  const Model model = decaying_model(3, 0.2);
  const Forecast f = small_forecast(model, 20, 0.1);
  const auto ids = [](const Page& page) {
    std::string text;
    for (const Section& section : page.sections) text += section.id + " ";
    return text;
  };
  const Page plain = forecast_page(model, f, {});
  EXPECT_EQ(ids(plain), "summary forecasts blow-ups equations observed origin ");
  Dataset truth{.variables = f.variables, .trajectories = {{"", f.times, f.mean}}};
  const Page scored = forecast_page(model, f, {.truth = truth, .lyapunov = 0.9});
  EXPECT_EQ(ids(scored), "summary forecasts scores blow-ups equations observed origin ");
  const std::string html = render_page(scored);
  EXPECT_NE(html.find("1 Lyapunov time"), html.npos);
  EXPECT_NE(html.find("expected growth"), html.npos);
  EXPECT_NE(html.find("100.0 %"), html.npos);  // the truth is the mean
  // The horizon is marked where the forecast has one.
  EXPECT_NE(html.find("predictability horizon"), html.npos);
  Forecast ending = f;
  ending.horizon = 1;
  const std::string marked = render_page(forecast_page(model, ending, {}));
  EXPECT_NE(marked.find("Dotted rules mark the predictability horizon"), marked.npos);
  EXPECT_EQ(marked.find("Lyapunov time"), marked.npos) << "what decays has none";
  // One variable has no attractor.
  const Model one = decaying_model(1, 0.2);
  EXPECT_EQ(
      render_page(forecast_page(one, small_forecast(one, 5, 0.1), {})).find("data-attractor=\""),
      std::string::npos);
}

TEST(ResultsTest, TruthAtOtherTimesIsShownAtItsOwn) {
  const Model model = decaying_model(1, 0.2);
  const Forecast f = small_forecast(model, 10, 0.1);
  // Twice as fine as the forecast.
  Dataset truth{.variables = {"x"}, .trajectories = {{"", {}, Matrix(21, 1)}}};
  for (int i = 0; i <= 20; ++i) {
    truth.trajectories[0].times.push_back(0.05 * i);
    truth.trajectories[0].states(i, 0) = std::exp(-0.05 * i);
  }
  const Page page = forecast_page(model, f, {.truth = truth});
  const Figure* shown = nullptr;
  for (const Section& section : page.sections)
    for (const Part& part : section.parts)
      if (const auto* figure = std::get_if<Figure>(&part); figure && figure->id == "forecast")
        shown = figure;
  ASSERT_NE(shown, nullptr);
  const Line& line = shown->panels[0].lines.back();
  EXPECT_EQ(line.label, "truth");
  EXPECT_EQ(line.x, truth.trajectories[0].times);
  for (std::size_t k = 0; k < line.x.size(); ++k) EXPECT_EQ(line.y[k], std::exp(-line.x[k]));
}

const Figure& forecast_of(const Page& page) {
  for (const Section& section : page.sections)
    for (const Part& part : section.parts)
      if (const auto* figure = std::get_if<Figure>(&part); figure && figure->id == "forecast")
        return *figure;
  throw std::logic_error("no forecast");
}

TEST(ResultsTest, TheObservationsComeBeforeTheForecastThatContinuesThem) {
  Model model = decaying_model(2, 0.2);
  model.last_time = 10;
  KeptRows kept{0, 10};
  kept.states.resize(101, 2);
  for (int k = 0; k <= 100; ++k) {
    kept.times.push_back(0.1 * k);
    kept.states.row(k) << k, -k;
  }
  model.observed = kept;
  ForecastOptions o;
  for (int i = 1; i <= 20; ++i) o.times.push_back(10 + 0.1 * i);
  o.draws = 20;
  const Forecast f = forecast(model, o);
  ASSERT_TRUE(f.continues);
  const Page whole = forecast_page(model, f, {});
  const Panel& panel = forecast_of(whole).panels[1];
  const Line& before = panel.lines.front();
  EXPECT_EQ(before.label, "observed");
  EXPECT_TRUE(before.points);
  // Twice as long as the forecast.
  EXPECT_NEAR(before.x.front(), 10 - 2 * 2, 1e-9);
  EXPECT_EQ(before.x.back(), 10);
  EXPECT_EQ(before.y.back(), -100);
  EXPECT_EQ(panel.marks.front().x, 10);
  EXPECT_EQ(panel.marks.front().label, "forecast begins");
  // Of a short forecast thirty rows; from a file instead; never from another start.
  o.times.resize(1);
  const Forecast near = forecast(model, o);
  const Page page = forecast_page(model, near, {});
  EXPECT_EQ(forecast_of(page).panels[0].lines.front().x.size(), 30u);
  Dataset file{.variables = {"y", "x"}, .trajectories = {{"", {9, 10, 11}, Matrix(3, 2)}}};
  file.variables = {model.variables[1], model.variables[0]};
  file.trajectories[0].states << 1, 2, 3, 4, 5, 6;
  const Page other = forecast_page(model, near, {.history = file});
  EXPECT_EQ(forecast_of(other).panels[0].lines.front().x, (std::vector<double>{9, 10}));
  EXPECT_EQ(forecast_of(other).panels[0].lines.front().y, (std::vector<double>{2, 4}));
  o.init = Vector::Ones(2);
  o.from = 10;
  const Page elsewhere = forecast_page(model, forecast(model, o), {});
  EXPECT_EQ(forecast_of(elsewhere).panels[0].lines.front().label, "forecast mean");
  // The static figure has the same.
  const std::string svg = forecast_figure({{"", f}}, {.history = history_of(model)});
  EXPECT_NE(svg.find(">forecast begins<"), svg.npos);
  EXPECT_NE(svg.find(">observed<"), svg.npos);
  EXPECT_EQ(forecast_figure({{"", f}}, {}).find("observed"), std::string::npos);
}

TEST(ResultsTest, AForecastThatIsNotToBeTrustedSaysSoFirst) {
  const Model model = exploding_model(0.5, 2);
  ForecastOptions o;
  o.init = Vector::Ones(1);
  o.times = {0.1, 0.2, 5};  // beyond the pole of most draws
  o.draws = 200;
  o.attempts_per_draw = 1;
  const Forecast f = forecast(model, o, ignore_progress);
  ASSERT_EQ(f.status, ForecastStatus::too_few);
  ASSERT_GT(f.times.size(), 1u);
  const Page page = forecast_page(model, f, {});
  EXPECT_EQ(page.warning.headline,
            "Do not trust this forecast: " + spelled(f.reason, Spelling::options) + ".");
  const std::string html = render_page(page);
  EXPECT_LT(html.find("Do not trust this forecast"), html.find("<h1>"));
  // A complete one of which many blew up is of the others, which the summary says.
  o.attempts_per_draw = 100;
  const Forecast whole = forecast(model, o, ignore_progress);
  ASSERT_EQ(whole.status, ForecastStatus::complete);
  const Page replaced = forecast_page(model, whole, {});
  EXPECT_EQ(replaced.warning.headline, "");
  ASSERT_TRUE(std::holds_alternative<Notice>(replaced.sections[0].parts[0]));
  EXPECT_NE(std::get<Notice>(replaced.sections[0].parts[0]).text.find("blew up"),
            std::string::npos);
}

}  // namespace
}  // namespace odecast
