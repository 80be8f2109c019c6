#include "odecast/report/svg.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "odecast/core/numbers.hpp"
#include "odecast/report/axes.hpp"
#include "support/xml.hpp"

namespace odecast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// Well-formed, and every coordinate is a finite number.
void expect_sound(const std::string& svg) {
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const std::string_view attribute : {" d=\"", " x=\"", " y=\"", " width=\"", " height=\""})
    for (std::size_t at = svg.find(attribute); at != svg.npos; at = svg.find(attribute, at + 1)) {
      const std::size_t begin = at + attribute.size();
      const std::string value = svg.substr(begin, svg.find('"', begin) - begin);
      EXPECT_EQ(value.find("nan"), value.npos) << value;
      EXPECT_EQ(value.find("inf"), value.npos) << value;
      EXPECT_EQ(value.find('e'), value.npos) << value;
    }
}

int count(std::string_view text, std::string_view what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// The d attributes of the curves of the first panel: what stands inside its clipped group.
std::vector<std::string> curves(const std::string& svg) {
  const std::size_t begin = svg.find("<g clip-path=");
  const std::string group = svg.substr(begin, svg.find("</g>", begin) - begin);
  std::vector<std::string> paths;
  for (std::size_t at = group.find(" d=\""); at != group.npos; at = group.find(" d=\"", at + 1))
    paths.push_back(group.substr(at + 4, group.find('"', at + 4) - at - 4));
  return paths;
}

/// The y coordinates of a path of absolute points.
std::vector<double> heights(const std::string& path) {
  std::vector<double> numbers;
  std::string word;
  for (const char c : path + " ") {
    if (c == '-' && !word.empty()) {  // compact paths have no space before a sign
      numbers.push_back(parse_number(word).value());
      word.clear();
    }
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '-') {
      word += c;
    } else if (!word.empty()) {
      numbers.push_back(parse_number(word).value());
      word.clear();
    }
  }
  std::vector<double> y;
  for (std::size_t i = 1; i < numbers.size(); i += 2) y.push_back(numbers[i]);
  return y;
}

std::vector<std::string> tick_labels(const std::string& svg, const std::string& axis) {
  const std::size_t begin = svg.find("<g class=\"" + axis + "-ticks\"");
  const std::string group = svg.substr(begin, svg.find("</g>", begin) - begin);
  std::vector<std::string> labels;
  for (std::size_t end = group.find("</text>"); end != group.npos;
       end = group.find("</text>", end + 1)) {
    const std::size_t from = group.rfind('>', end) + 1;
    labels.push_back(group.substr(from, end - from));
  }
  return labels;
}

using Labels = std::vector<std::string>;

Panel panel_of(std::vector<double> x, std::vector<double> y) {
  Panel panel;
  panel.lines.push_back({.label = "line", .x = std::move(x), .y = std::move(y)});
  return panel;
}

TEST(SvgTest, FigureIsWellFormedAndComplete) {
  Panel panel = panel_of({0, 1, 2}, {1, -1, 0.5});
  panel.title = "first";
  panel.x_label = "time";
  panel.y_label = "position";
  panel.bands.push_back({"band", {0, 1, 2}, {0, -2, -1}, {2, 0, 1}, Ink::forecast});
  panel.marks = {{1, "one Lyapunov time"}, {99, "outside"}};
  Panel other = panel;
  other.title = "second";
  FigureOptions options;
  options.title = "A title";
  options.subtitle = "a subtitle";
  options.caption = "a caption";
  for (const int columns : {1, 2, 3}) {
    options.columns = columns;
    const std::string svg = draw_svg({panel, other, panel}, options);
    expect_sound(svg);
    EXPECT_NE(svg.find("role=\"img\""), svg.npos);
    for (const char* text : {"<title>A title</title>", ">a subtitle<", ">a caption<", ">first<",
                             ">second<", ">time<", ">position<", ">one Lyapunov time<"})
      EXPECT_NE(svg.find(text), svg.npos) << text;
    EXPECT_EQ(svg.find("outside"), svg.npos);
    // The legend names a curve once however many panels show it.
    EXPECT_EQ(count(svg, ">line<"), 1);
    EXPECT_EQ(count(svg, ">band<"), 1);
    EXPECT_EQ(svg, draw_svg({panel, other, panel}, options));
  }
}

TEST(SvgTest, AnyTextIsEscaped) {
  Panel panel = panel_of({0, 1}, {0, 1});
  panel.title = "a<b & \"c\" > 'd'";
  panel.y_label = "</text><script>";
  panel.marks = {{0.5, "&"}};
  panel.lines[0].label = "<line>";
  FigureOptions options;
  options.title = "]]>";
  // A control character, a stray byte, an overlong form and a truncated sequence.
  options.caption = "x\x01y \xff z\xc0\xaf \xe2\x88";
  const std::string svg = draw_svg({panel}, options);
  expect_sound(svg);
  EXPECT_NE(svg.find(">a&lt;b &amp; &quot;c&quot; &gt; &#39;d&#39;<"), svg.npos);
  EXPECT_EQ(svg.find("<script"), svg.npos);
  EXPECT_NE(svg.find(">x\uFFFDy \uFFFD z\uFFFD\uFFFD \uFFFD\uFFFD<"), svg.npos);
}

TEST(SvgTest, ThinningKeepsPeaksAndBoundsTheSize) {
  const std::size_t n = 1'000'000;
  Panel panel;
  Line line{.label = "noise"};
  Band band{.label = "band"};
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    line.x.push_back(static_cast<double>(i));
    line.y.push_back(static_cast<double>(state) / 4294967296.0);
  }
  line.y[123'456] = 7;
  line.y[654'321] = -3;
  band.x = line.x;
  band.lower = line.y;
  band.upper.assign(n, 8);
  panel.lines = {line};
  panel.bands = {band};
  panel.y_range = {-3, 7};
  const std::string svg = draw_svg({panel});
  expect_sound(svg);
  EXPECT_LT(svg.size(), 200'000u);
  const std::vector<std::string> paths = curves(svg);
  ASSERT_EQ(paths.size(), 2u);
  const std::vector<double> y = heights(paths[1]);
  // The range is exact, so the peaks lie on its edges, the panel's height apart.
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()) - *std::min_element(y.begin(), y.end()), 300,
              0.011);
}

TEST(SvgTest, SmoothCurvesStayWithinAFractionOfAPixel) {
  Panel panel;
  Line line;
  for (int i = 0; i <= 20'000; ++i) {
    line.x.push_back(i * 1e-3);
    line.y.push_back(std::sin(i * 1e-3));
  }
  panel.lines = {line};
  panel.y_range = {-1, 1};
  const std::vector<double> y = heights(curves(draw_svg({panel}))[0]);
  EXPECT_LT(y.size(), 600u);
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()) - *std::min_element(y.begin(), y.end()), 300,
              0.1);
}

TEST(SvgTest, NonFiniteValuesBreakLines) {
  const std::string svg = draw_svg(
      {panel_of({0, 1, 2, 3, 4, 5, 6, 7, kNan, 9}, {0, 1, kNan, 3, kInf, 5, 6, -kInf, 1, 2})});
  expect_sound(svg);
  const std::vector<std::string> paths = curves(svg);
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(count(paths[0], "M"), 2);   // 0–1 and 5–6
  EXPECT_EQ(count(svg, "<circle"), 2);  // 3 and 9 stand alone
  EXPECT_EQ(tick_labels(svg, "x").back(), "9");
}

TEST(SvgTest, ManyGapsInALongSeriesDoNotGrowTheFigure) {
  std::vector<double> x, y;
  for (int i = 0; i < 200'000; ++i) {
    x.push_back(i);
    y.push_back(i % 2 == 0 ? std::sin(i * 0.3) : kNan);
  }
  EXPECT_LT(draw_svg({panel_of(x, y)}).size(), 200'000u);
}

TEST(SvgTest, DegenerateInputGivesFiniteFigures) {
  expect_sound(draw_svg({}));
  expect_sound(draw_svg({Panel{}}));
  expect_sound(draw_svg({panel_of({}, {})}));
  expect_sound(draw_svg({panel_of({kNan, kInf}, {kNan, 1})}));
  const std::vector<double> values = {0.0,   1.0,   -5.0,   1e-9,   -1e-9, 1e15,
                                      1e300, 1e308, -1e308, 1e-300, 5e-324};
  for (const double a : values) {
    expect_sound(draw_svg({panel_of({a}, {a})}));
    expect_sound(draw_svg({panel_of({0, 1, 2}, {a, a, a})}));
    for (const double b : values) {
      SCOPED_TRACE(format_number(a) + " " + format_number(b));
      Panel panel = panel_of({0, a, b}, {1, b, a});
      panel.bands.push_back({"band", {a, b, 0}, {-kInf, a, kNan}, {b, kInf, a}, Ink::second});
      panel.marks = {{a, "a"}, {b, "b"}, {kNan, "c"}};
      expect_sound(draw_svg({panel}));
      panel.y_range = {a, b};
      expect_sound(draw_svg({panel}, {.width = 60, .panel_height = 10, .columns = 3}));
    }
  }
  EXPECT_NE(draw_svg({Panel{}}).find(">no data<"), std::string::npos);
  EXPECT_EQ(count(draw_svg({panel_of({3}, {4})}), "<circle"), 1);
}

TEST(SvgTest, TicksAreRoundNumbers) {
  const auto y_ticks = [](double lo, double hi) {
    Panel panel = panel_of({0, 1}, {lo, hi});
    panel.y_range = {lo, hi};
    return tick_labels(draw_svg({panel}, {.panel_height = 180}), "y");
  };
  EXPECT_EQ(y_ticks(0, 1), (Labels{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(y_ticks(-10, 10), (Labels{"−10", "−5", "0", "5", "10"}));
  EXPECT_EQ(y_ticks(0.03, 0.31), (Labels{"0.05", "0.10", "0.15", "0.20", "0.25", "0.30"}));
  EXPECT_EQ(y_ticks(-1e-9, 2e-9), (Labels{"−1e−9", "0", "1e−9", "2e−9"}));
  EXPECT_EQ(y_ticks(0, 2.1e-9), (Labels{"0", "5e−10", "1e−9", "1.5e−9", "2e−9"}));
  EXPECT_EQ(y_ticks(0, 1e12), (Labels{"0", "2e11", "4e11", "6e11", "8e11", "1e12"}));
  EXPECT_EQ(y_ticks(0, 250000), (Labels{"0", "50000", "100000", "150000", "200000", "250000"}));
  EXPECT_EQ(y_ticks(100, 100.0004),
            (Labels{"100.0000", "100.0001", "100.0002", "100.0003", "100.0004"}));
  // Always enough of them to read a scale.
  for (double hi = 1; hi < 10; hi *= 1.013) {
    EXPECT_GE(y_ticks(-hi, hi).size(), 2u) << hi;
    EXPECT_LE(y_ticks(-hi, hi).size(), 6u) << hi;
  }
}

TEST(SvgTest, AnExplodingBandDoesNotFlattenTheLines) {
  Panel panel = panel_of({0, 1, 2}, {-1, 1, 0});
  panel.bands.push_back({"band", {0, 1, 2}, {-2, -3, -4}, {2, 3, 4}, Ink::forecast});
  EXPECT_EQ(tick_labels(draw_svg({panel}), "y").back(), "4");  // exactly four times: in full
  panel.bands[0].upper[2] = 1e9;
  const std::string svg = draw_svg({panel});
  expect_sound(svg);
  EXPECT_EQ(tick_labels(svg, "y").back(), "2.0");  // the lines and half their range
  panel.lines.clear();
  EXPECT_EQ(tick_labels(draw_svg({panel}), "y").back(), "1e9");
}

TEST(SvgTest, BandsBreakAtNanAndReachTheEdgeAtInfinity) {
  Panel panel = panel_of({0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0, 1});
  panel.bands.push_back({"band",
                         {0, 1, 2, 3, 4, 5},
                         {-1, -1, kNan, -1, -1, -1},
                         {1, 1, 1, 1, kInf, kInf},
                         Ink::forecast});
  const std::vector<std::string> paths = curves(draw_svg({panel}));
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(count(paths[0], "M"), 2);
  EXPECT_EQ(count(paths[0], "Z"), 2);
  const std::vector<double> y = heights(paths[0]);
  EXPECT_LT(*std::min_element(y.begin(), y.end()), 0);
}

TEST(SvgTest, LogarithmicAxisHasPowersOfTen) {
  Panel panel{.y_label = "error", .log_y = true};
  Line line{.label = "a"};
  for (int i = 0; i <= 100; ++i) {
    line.x.push_back(i);
    line.y.push_back(std::pow(10.0, -4 + 0.05 * i));  // 1e-4 … 10, a straight line on this axis
  }
  line.y[50] = 0;  // breaks it
  panel.lines.push_back(line);
  const std::string svg = draw_svg({panel});
  expect_sound(svg);
  EXPECT_EQ(tick_labels(svg, "y"), (std::vector<std::string>{"1e\u22124", "1e\u22123", "1e\u22122",
                                                             "1e\u22121", "1e0", "1e1"}));
  const auto y = heights(curves(svg)[0]);
  ASSERT_LE(y.size(), 8u);                            // straight but for the break
  EXPECT_NEAR(y.front() - y.back(), 300 / 1.1, 0.1);  // the range and 5 % on both sides
  panel.lines[0].y.assign(101, 3.0);
  panel.lines[0].y[3] = 4;
  EXPECT_GE(tick_labels(draw_svg({panel}), "y").size(), 2u);
}

TEST(SvgTest, BarsStandOnZeroAndPointsAreDots) {
  Panel panel{.x_label = "x"};
  panel.bars.push_back({"share", {0, 0.5, 1}, {0.2, 0.8}});
  panel.lines.push_back(
      {.label = "dots", .x = {0.2, 0.1, kNan}, .y = {0.3, 0.4, 1}, .points = true});
  const std::string svg = draw_svg({panel});
  expect_sound(svg);
  EXPECT_EQ(count(svg, "fill-opacity=\"0.75\""), 2);
  EXPECT_EQ(count(curves(svg).back(), "h0"), 2);  // the third is not finite
  EXPECT_EQ(tick_labels(svg, "y").front(), "0.0");
  EXPECT_TRUE(svg.find(">share<") != svg.npos && svg.find(">dots<") != svg.npos);
}

TEST(SvgTest, CompactFiguresAreTheSameCurvesInFewerBytes) {
  Panel panel;
  Line line{.label = "a"};
  Band band{.label = "b"};
  for (int i = 0; i < 100'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(std::sin(0.31 * i) * std::cos(1e-4 * i));
    band.x.push_back(i);
    band.lower.push_back(line.y.back() - 1);
    band.upper.push_back(line.y.back() + 1);
  }
  panel.lines.push_back(line);
  panel.bands.push_back(band);
  const std::string whole = draw_svg({panel}), compact = draw_svg({panel}, {.compact = true});
  expect_sound(compact);
  EXPECT_LT(compact.size(), 20'000u);
  EXPECT_LT(compact.size(), whole.size() / 3);
  // A short curve is off by half a pixel at most: add up the steps.
  panel.bands.clear();
  panel.lines[0].x = {0, 1, 2, 3, 4};
  panel.lines[0].y = {0, 5.1, -2.2, 3.3, 0.4};
  const auto absolute = heights(curves(draw_svg({panel}))[0]);
  auto relative = heights(curves(draw_svg({panel}, {.compact = true}))[0]);
  ASSERT_EQ(absolute.size(), relative.size());
  for (std::size_t i = 1; i < relative.size(); ++i) relative[i] += relative[i - 1];
  for (std::size_t i = 0; i < relative.size(); ++i) EXPECT_NEAR(relative[i], absolute[i], 0.26);
}

/// Labels of a calendar axis, which has at most so many, all within it.
std::vector<std::string> calendar_labels(const Calendar& calendar, double from, double until,
                                         int most) {
  AxisRange range;
  range.add(from);
  range.add(until);
  const Ticks ticks = make_calendar_ticks(range, most, calendar);
  EXPECT_LE(static_cast<int>(ticks.values.size()), most);
  for (const double value : ticks.values) {
    EXPECT_GE(value, from);
    EXPECT_LE(value, until);
  }
  return ticks.labels;
}

TEST(SvgTest, CalendarTicksAreWhatPeopleCountBy) {
  const Calendar hours{.unit = TimeUnit::hour, .origin = instant_of({2024, 2, 28, 22})};
  EXPECT_EQ(calendar_labels(hours, 0, 12, 5), (Labels{"2024 Feb 29", "03:00", "06:00", "09:00"}));
  EXPECT_EQ(calendar_labels(hours, 0, 72, 4), (Labels{"2024 Feb 29", "Mar 1", "Mar 2"}));
  EXPECT_EQ(calendar_labels(hours, 0, 24 * 80, 4), (Labels{"Mar 2024", "Apr", "May"}));
  EXPECT_EQ(calendar_labels(hours, 0, 0.05, 7),
            (Labels{"2024 Feb 28 22:00:00", "22:00:30", "22:01:00", "22:01:30", "22:02:00",
                    "22:02:30", "22:03:00"}));
  const Calendar years{.unit = TimeUnit::civil_year};
  EXPECT_EQ(calendar_labels(years, 1949.5, 1961, 4), (Labels{"1950", "1955", "1960"}));
  EXPECT_EQ(calendar_labels(years, 1949.99, 1951.01, 4), (Labels{"Jan 1950", "Jul", "Jan 1951"}));
  EXPECT_EQ(calendar_labels(years, 0, 9000, 5), (Labels{"0", "2000", "4000", "6000", "8000"}));
  // Ticks are whole in the zone of the data.
  const Calendar zoned{.unit = TimeUnit::hour, .origin = {0, 0}, .offset = 330};
  EXPECT_EQ(calendar_labels(zoned, 0, 12, 3), (Labels{"1970 Jan 1 06:00", "12:00"}));
  EXPECT_TRUE(calendar_labels(hours, 0, 1e-5, 5).empty());  // shorter than a second
}

TEST(SvgTest, ACalendarAxisSaysDates) {
  Panel panel{.x_label = "when"};
  panel.calendar = Calendar{.unit = TimeUnit::day, .origin = instant_of({2024, 3, 1})};
  panel.lines.push_back({.x = {0, 30, 60, 90}, .y = {1, 2, 3, 4}});
  const std::string svg = draw_svg({panel});
  expect_sound(svg);
  for (const char* label : {">2024 Mar 4<", ">Apr 1<", ">May 13<"})
    EXPECT_EQ(count(svg, label), 1) << label;
}

}  // namespace
}  // namespace odecast
