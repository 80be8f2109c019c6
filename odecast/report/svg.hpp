#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "odecast/core/calendar.hpp"

namespace odecast {

/// What a mark on paper stands for. The colours are Okabe and Ito's, which colour-blind readers
/// tell apart.
enum class Ink { truth, forecast, second, third, muted };

/// A curve through (x, y), in order; x need not increase. A non-finite value breaks it. A point
/// between two breaks is drawn as a dot.
struct Line {
  std::string label = {};  ///< empty: not in the legend
  std::vector<double> x = {}, y = {};
  Ink ink = Ink::forecast;
  bool dashed = false;
  double width = 1.6;
  bool points = false;  ///< dots at the points instead of a curve through them
  /// 0 to 1, dark to light, instead of the ink: for curves in pieces that are coloured along time.
  std::optional<double> tone = {};
};

/// The area between two curves. NaN breaks it; an infinite edge goes to the edge of the plot.
/// Nested bands of one ink darken inwards; give the widest first.
struct Band {
  std::string label = {};
  std::vector<double> x = {}, lower = {}, upper = {};
  Ink ink = Ink::forecast;
};

/// A histogram: a bar of height heights[i] over [edges[i], edges[i + 1]].
struct Bars {
  std::string label = {};
  std::vector<double> edges = {}, heights = {};
  Ink ink = Ink::forecast;
};

/// A vertical rule with a caption above the plot. It never widens the range of x.
struct Mark {
  double x = 0;
  std::string label = {};
};

struct Panel {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<Band> bands = {};
  std::vector<Line> lines = {};
  std::vector<Bars> bars = {};
  std::vector<Mark> marks = {};
  bool log_y = false;    ///< axis of powers of ten; what is not positive breaks a line
  bool whole_x = false;  ///< x counts: ticks at whole numbers only
  std::optional<Calendar> calendar = {};  ///< x is time: ticks are dates
  /// Unset: what the lines cover and the bands with it, except that a band which would make this
  /// more than four times the range of the lines runs out of the plot instead of flattening them.
  std::optional<std::pair<double, double>> y_range = {};
};

/// Sizes are in pixels of 1/96 inch.
struct FigureOptions {
  double width = 760;         ///< of the whole figure
  double panel_height = 300;  ///< between the axes of one panel; titles and labels come on top
  int columns = 1;            ///< panels fill row by row
  std::string title = {}, subtitle = {}, caption = {};
  /// A few kilobytes per curve at most: coordinates are rounded to half a pixel; long curves are
  /// thinned to columns three pixels wide and rounded to whole ones. For pages with many figures.
  bool compact = false;
};

/// The colour of an ink, such as "#0072b2".
std::string_view ink_color(Ink ink);

/// The figure as SVG text: no scripts, no fonts to load, the same bytes for the same input. One
/// legend for all panels stands above them. Long lines are thinned to the outermost points of
/// each pixel column, so that peaks stay and the size depends on the width, not on the data.
std::string draw_svg(const std::vector<Panel>& panels, const FigureOptions& options = {});

}  // namespace odecast
