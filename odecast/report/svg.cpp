#include "odecast/report/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "odecast/core/numbers.hpp"
#include "odecast/report/axes.hpp"
#include "odecast/report/markup.hpp"

namespace odecast {
namespace {

constexpr double kMargin = 16, kGap = 22;
constexpr double kTitleSize = 18, kSubtitleSize = 13, kLegendSize = 12.5, kPanelTitleSize = 13;
constexpr double kLabelSize = 12.5, kTickSize = 11.5, kCaptionSize = 11.5;
constexpr double kSwatch = 26, kBandOpacity = 0.22;
constexpr std::string_view kText = "#222", kSoftText = "#555", kAxis = "#777", kGrid = "#e4e4e4";
constexpr std::string_view kFonts =
    "Helvetica Neue,Helvetica,Arial,Liberation Sans,DejaVu Sans,sans-serif";

std::string_view color(Ink ink) { return ink_color(ink); }

// ---- text ------------------------------------------------------------------------------------

/// Approximate, and rather too wide: the reader's font is not known.
double text_width(std::string_view text, double size) {
  double ems = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0u) == 0x80u) continue;  // rest of a UTF-8 sequence
    if (std::string_view("ijl.,:;'|!I").find(c) != std::string_view::npos)
      ems += 0.31;
    else if (std::string_view(" ftr()[]/-").find(c) != std::string_view::npos)
      ems += 0.38;
    else if (std::string_view("mwMW@%").find(c) != std::string_view::npos)
      ems += 0.94;
    else
      ems += c >= 'A' && c <= 'Z' ? 0.7 : 0.61;
  }
  return ems * size;
}

double bold_width(std::string_view text, double size) { return 1.1 * text_width(text, size); }

/// The largest font size up to `size` at which the text fits, but never too small to read.
double fitting_size(std::string_view text, double size, double available) {
  return size * std::clamp(available / std::max(1.0, text_width(text, size)), 0.6, 1.0);
}

std::vector<std::string> wrapped(std::string_view text, double size, double available) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (lines.empty() || text_width(lines.back(), size) + text_width(word, size) > available)
      lines.emplace_back(word);
    else
      lines.back().append(" ").append(word);
  }
  return lines;
}

// ---- SVG -------------------------------------------------------------------------------------

void append_coordinate(std::string& out, double value) {
  const double rounded = std::round(value * 100) / 100 + 0.0;  // + 0.0: no "-0"
  fmt::format_to(std::back_inserter(out), "{}", rounded);
}

std::string px(double value) {
  std::string out;
  append_coordinate(out, value);
  return out;
}

void append_text(std::string& out, double x, double y, double size, std::string_view attributes,
                 std::string_view text) {
  out += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\"{}{}>{}</text>\n", px(x), px(y),
                     px(size), attributes.empty() ? "" : " ", attributes, escaped(text));
}

struct Point {
  double x, y;
};

/// With a space after the last. A `grid` of 2 rounds to half pixels, 1 to whole ones, and gives the
/// way from point to point instead of the points; 0 gives the points.
void append_points(std::string& out, const std::vector<Point>& points, int grid) {
  if (grid > 0) {
    long x = 0, y = 0;
    bool first = true;
    for (const Point& p : points) {
      const long next_x = std::lround(grid * p.x), next_y = std::lround(grid * p.y);
      if (!first && next_x == x && next_y == y) continue;
      append_coordinate(out, static_cast<double>(next_x - x) / grid);
      if (next_y >= y) out += ' ';
      append_coordinate(out, static_cast<double>(next_y - y) / grid);
      out += first ? "l" : " ";
      first = false;
      x = next_x;
      y = next_y;
    }
    if (out.back() == 'l') out += "0 0 ";
    return;
  }
  for (const Point& p : points) {
    append_coordinate(out, p.x);
    out += ' ';
    append_coordinate(out, p.y);
    out += ' ';
  }
}

// ---- ticks -----------------------------------------------------------------------------------

double widest(const Ticks& ticks) {
  double width = 0;
  for (const std::string& label : ticks.labels)
    width = std::max(width, text_width(label, kTickSize));
  return width;
}

/// As many ticks as fit beside each other.
Ticks make_x_ticks(const AxisRange& range, double width, const Panel& panel) {
  int most = std::max(5, static_cast<int>(width / 60));
  if (panel.whole_x) most = std::min(most, static_cast<int>(std::min(1e6, range.span())) + 1);
  for (;; --most) {
    Ticks ticks = panel.calendar ? make_calendar_ticks(range, most, *panel.calendar) : Ticks{};
    if (ticks.values.empty()) ticks = make_ticks(range, most);
    const double room = width / std::max(1.0, static_cast<double>(ticks.values.size()));
    if (most <= 3 || widest(ticks) + 14 <= room) return ticks;
  }
}

// ---- layout ----------------------------------------------------------------------------------

/// Where one panel's axes stand on the page.
struct Frame {
  AxisRange x, y;
  double left = 0, top = 0, width = 0, height = 0;
  bool compact = false;

  bool thins(std::size_t points) const {
    return compact && static_cast<double>(points) > 4 * width;
  }
  int grid(std::size_t points) const { return thins(points) ? 1 : compact ? 2 : 0; }

  // Renderers compute in fixed point: what is far outside must not be farther than this.
  static double bounded(double pixel) { return std::clamp(pixel, -1e5, 1e5); }
  double pixel_x(double value) const { return bounded(left + (value - x.lo) / x.span() * width); }
  double pixel_y(double value) const { return bounded(top + (y.hi - value) / y.span() * height); }
};

struct PlacedCaption {
  double x, caption_x;
  std::string_view text;
  std::size_t row;
};

/// Captions of the marks inside the frame, each centred on its rule as far as the frame allows, in
/// rows (0 is next to the frame) so that none covers another.
std::vector<PlacedCaption> place_captions(const Panel& panel, const Frame& frame) {
  std::vector<const Mark*> marks;
  for (const Mark& mark : panel.marks)
    if (mark.x >= frame.x.lo && mark.x <= frame.x.hi) marks.push_back(&mark);
  std::stable_sort(marks.begin(), marks.end(), [](auto* a, auto* b) { return a->x < b->x; });
  std::vector<double> row_ends;
  std::vector<PlacedCaption> placed;
  for (const Mark* mark : marks) {
    const double x = frame.pixel_x(mark->x), half = text_width(mark->label, kTickSize) / 2;
    const double middle = std::max(frame.left + half, std::min(x, frame.left + frame.width - half));
    std::size_t row = 0;
    if (half > 0) {
      while (row < row_ends.size() && row_ends[row] + 8 > middle - half) ++row;
      row_ends.resize(std::max(row_ends.size(), row + 1));
      row_ends[row] = middle + half;
    }
    placed.push_back({x, middle, mark->label, row});
  }
  return placed;
}

struct LegendEntry {
  std::string_view label;
  Ink ink;
  int layers;  ///< of a band: itself and the bands of its ink below it; 0 for a line
  bool dashed;
  double width;
  bool points = false;
};

std::vector<LegendEntry> legend_entries(const std::vector<Panel>& panels) {
  std::vector<LegendEntry> entries;
  const auto add = [&](const LegendEntry& entry) {
    const bool known = std::any_of(entries.begin(), entries.end(), [&](const LegendEntry& e) {
      return e.label == entry.label && e.ink == entry.ink && e.dashed == entry.dashed &&
             (e.layers > 0) == (entry.layers > 0);
    });
    if (!entry.label.empty() && !known) entries.push_back(entry);
  };
  for (const Panel& panel : panels)
    for (const Line& line : panel.lines)
      add({line.label, line.ink, 0, line.dashed, line.width, line.points});
  for (const Panel& panel : panels) {
    std::array<int, 5> layers = {};
    for (const Band& band : panel.bands)
      add({band.label, band.ink, ++layers[static_cast<std::size_t>(band.ink)], false, 0});
    for (const Bars& bars : panel.bars) add({bars.label, bars.ink, 5, false, 0});
  }
  return entries;
}

/// Five stations of the viridis map, the last one darkened to show on white.
std::string tone_color(double tone) {
  constexpr int map[5][3] = {
      {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {220, 200, 30}};
  const double at = std::clamp(tone, 0.0, 1.0) * 4;
  const int i = std::min(3, static_cast<int>(at));
  int rgb[3];
  for (int c = 0; c < 3; ++c)
    rgb[c] = static_cast<int>(std::lround(map[i][c] + (at - i) * (map[i + 1][c] - map[i][c])));
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

std::string stroke(std::string_view paint, double width, bool dashed) {
  return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}", paint, px(width),
                     dashed ? " stroke-dasharray=\"6 4\"" : "");
}

/// How `layers` bands over each other look.
std::string fill(Ink ink, int layers) {
  return fmt::format("fill=\"{}\" fill-opacity=\"{}\"", color(ink),
                     px(1 - std::pow(1 - kBandOpacity, layers)));
}

/// Returns the height used.
double append_legend(std::string& out, const std::vector<LegendEntry>& entries, double top,
                     double width) {
  if (entries.empty()) return 0;
  double x = kMargin, y = top + 14;
  for (const LegendEntry& entry : entries) {
    const double size = fitting_size(entry.label, kLegendSize, width - kSwatch - 7);
    const double used = kSwatch + 7 + text_width(entry.label, size);
    if (x > kMargin && x + used > kMargin + width) {
      x = kMargin;
      y += 20;
    }
    if (entry.layers > 0)
      out += fmt::format("<path d=\"M{} {}h{}v11h-{}Z\" {}/>\n", px(x), px(y - 10), px(kSwatch),
                         px(kSwatch), fill(entry.ink, entry.layers));
    else if (entry.points)
      out += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{}\"/>\n", px(x + kSwatch / 2),
                         px(y - 4.5), color(entry.ink));
    else
      out += fmt::format("<path d=\"M{} {}h{}\" {}/>\n", px(x), px(y - 4.5), px(kSwatch),
                         stroke(color(entry.ink), std::max(entry.width, 1.6), entry.dashed));
    append_text(out, x + kSwatch + 7, y, size, "", entry.label);
    x += used + 20;
  }
  return y + 6 - top;
}

// ---- curves ----------------------------------------------------------------------------------

using Run = std::vector<Point>;

double distance_to_segment(const Point& p, const Point& a, const Point& b) {
  const double dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
  const double along = square > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / square : 0;
  const double s = std::clamp(along, 0.0, 1.0);
  return root_sum_square(p.x - a.x - s * dx, p.y - a.y - s * dy);
}

/// Without the points that a straight line passes closer than anyone can see.
Run simplified(const Run& run) {
  constexpr double kInvisible = 0.04;
  constexpr std::size_t kLongest = 32;  // bounds the work per point
  Run kept;
  std::size_t from = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    bool straight = i > 0 && i - from < kLongest;
    for (std::size_t j = from + 1; straight && j < i; ++j)
      straight = distance_to_segment(run[j], run[from], run[i]) <= kInvisible;
    if (straight) continue;
    from = i > 0 ? i - 1 : 0;
    kept.push_back(run[from]);
  }
  if (run.size() > 1) kept.push_back(run.back());
  return kept;
}

/// The curve in pixels, broken where it is not finite, thinned per pixel column.
std::vector<Run> make_runs(std::span<const double> x, std::span<const double> y,
                           const Frame& frame) {
  struct Column {
    double pixel = 0;
    std::size_t first = 0, last = 0, lowest = 0, highest = 0, leftmost = 0, rightmost = 0;
  };
  std::vector<Run> runs;
  Column column;
  bool open = false, gap = false;
  const bool thin = frame.thins(x.size());
  // In a long series a gap narrower than a pixel cannot be seen, and thousands of them would make
  // thousands of dots.
  const bool close_gaps =
      static_cast<double>(x.size()) > 8 * frame.width && std::is_sorted(x.begin(), x.end());
  const auto flush = [&] {
    std::array<std::size_t, 6> kept = {column.first,   column.last,     column.lowest,
                                       column.highest, column.leftmost, column.rightmost};
    std::sort(kept.begin(), kept.end());
    const auto end = std::unique(kept.begin(), kept.end());
    for (auto i = kept.begin(); i != end; ++i)
      runs.back().push_back({frame.pixel_x(x[*i]), frame.pixel_y(y[*i])});
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) {
      gap = true;
      continue;
    }
    const double pixel = std::floor(frame.pixel_x(x[i]) / (thin ? 3 : 1));
    if (open && pixel == column.pixel && (!gap || close_gaps)) {
      if (y[i] < y[column.lowest]) column.lowest = i;
      if (y[i] > y[column.highest]) column.highest = i;
      if (x[i] < x[column.leftmost]) column.leftmost = i;
      if (x[i] > x[column.rightmost]) column.rightmost = i;
      column.last = i;
    } else {
      if (open) flush();
      if (!open || gap) runs.emplace_back();
      column = {pixel, i, i, i, i, i, i};
      open = true;
    }
    gap = false;
  }
  if (open) flush();
  for (Run& run : runs) run = simplified(run);
  return runs;
}

void append_band(std::string& out, const Band& band, const Frame& frame) {
  const std::size_t n = length(band);
  std::vector<double> lower(n), upper(n);
  for (std::size_t i = 0; i < n; ++i) {
    const bool broken = std::isnan(band.lower[i]) || std::isnan(band.upper[i]);
    const double missing = std::numeric_limits<double>::quiet_NaN();
    lower[i] = broken ? missing : std::clamp(band.lower[i], -kLargestDrawn, kLargestDrawn);
    upper[i] = broken ? missing : std::clamp(band.upper[i], -kLargestDrawn, kLargestDrawn);
  }
  // Where runs break depends on x and on what is missing only, so the two edges match.
  const std::span<const double> x(band.x.data(), n);
  const std::vector<Run> top = make_runs(x, upper, frame);
  std::vector<Run> bottom = make_runs(x, lower, frame);
  std::string path;
  for (std::size_t i = 0; i < top.size(); ++i) {
    std::reverse(bottom[i].begin(), bottom[i].end());
    path += 'M';
    Run outline = top[i];
    outline.insert(outline.end(), bottom[i].begin(), bottom[i].end());
    append_points(path, outline, frame.grid(n));
    path.back() = 'Z';
  }
  if (!path.empty()) out += fmt::format("<path d=\"{}\" {}/>\n", path, fill(band.ink, 1));
}

/// Dots, at most one per pixel: zero-length strokes with round ends.
void append_dots(std::string& out, const Line& line, const Frame& frame) {
  std::set<std::pair<long, long>> drawn;
  std::string path;
  for (std::size_t i = 0; i < length(line); ++i) {
    if (!std::isfinite(line.x[i]) || !std::isfinite(line.y[i])) continue;
    const auto at =
        std::pair(std::lround(frame.pixel_x(line.x[i])), std::lround(frame.pixel_y(line.y[i])));
    if (drawn.insert(at).second) path += fmt::format("M{} {}h0", at.first, at.second);
  }
  if (path.empty()) return;
  out += fmt::format("<path d=\"{}\" {} stroke-linecap=\"round\" stroke-opacity=\"0.55\"/>\n", path,
                     stroke(color(line.ink), 2 * line.width, false));
}

void append_bars(std::string& out, const Bars& bars, const Frame& frame) {
  assert(bars.edges.size() == bars.heights.size() + 1 || bars.heights.empty());
  for (std::size_t i = 0; i < bars.heights.size() && i + 1 < bars.edges.size(); ++i) {
    if (!std::isfinite(bars.heights[i])) continue;
    const double left = frame.pixel_x(bars.edges[i]), right = frame.pixel_x(bars.edges[i + 1]);
    const double top = frame.pixel_y(bars.heights[i]), bottom = frame.pixel_y(0);
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.75\"/>\n",
        px(std::min(left, right) + 0.5), px(std::min(top, bottom)),
        px(std::max(0.5, std::abs(right - left) - 1)), px(std::abs(bottom - top)), color(bars.ink));
  }
}

void append_line(std::string& out, const Line& line, const Frame& frame) {
  if (line.points) return append_dots(out, line, frame);
  const std::size_t n = length(line);
  std::string path, dots;
  for (const Run& run : make_runs({line.x.data(), n}, {line.y.data(), n}, frame)) {
    const bool dot = run.size() <= 2 && root_sum_square(run.back().x - run.front().x,
                                                        run.back().y - run.front().y) < 1;
    if (dot) {
      dots += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>\n", px(run[0].x),
                          px(run[0].y), px(line.width * 1.4), color(line.ink));
      continue;
    }
    path += 'M';
    append_points(path, run, frame.grid(n));
    path.pop_back();
  }
  if (!path.empty())
    out += fmt::format("<path d=\"{}\" {}/>\n", path,
                       stroke(line.tone ? tone_color(*line.tone) : std::string(color(line.ink)),
                              line.width, line.dashed));
  out += dots;
}

// ---- panels ----------------------------------------------------------------------------------

struct PlacedPanel {
  const Panel* panel = nullptr;
  std::optional<Panel> logarithmic = {};  ///< the panel in powers of ten, where its axis is
  Frame frame;
  double label_left = 0;  ///< of the label of y
  Ticks x_ticks, y_ticks;
  std::vector<PlacedCaption> captions;
  double header = 0, footer = 0;
  std::size_t title_row = 0;
};

/// The logarithms of all values of y; NaN where there is none.
Panel in_powers_of_ten(const Panel& panel) {
  Panel result = panel;
  const auto log = [](double y) {
    return y > 0 ? std::log10(y) : std::numeric_limits<double>::quiet_NaN();
  };
  for (Line& line : result.lines)
    for (double& y : line.y) y = log(y);
  for (Band& band : result.bands)
    for (std::size_t i = 0; i < band.lower.size(); ++i) {
      // The lower edge of a band may reach zero, which is at the bottom of any such plot.
      band.lower[i] =
          band.lower[i] <= 0 ? -std::numeric_limits<double>::infinity() : log(band.lower[i]);
      band.upper[i] = log(band.upper[i]);
    }
  if (result.y_range) result.y_range = {log(result.y_range->first), log(result.y_range->second)};
  return result;
}

/// A name of one or two letters is easier to read when it stands upright.
bool upright(std::string_view label) { return text_width(label, kLabelSize) < 20; }

double y_label_width(std::string_view label) {
  if (label.empty()) return 0;
  return (upright(label) ? text_width(label, kLabelSize) : kLabelSize) + 8;
}

constexpr double kHeaderRow = 17;

void place_header(PlacedPanel& placed) {
  const Frame& frame = placed.frame;
  placed.captions = place_captions(*placed.panel, frame);
  std::size_t rows = 0;
  // The title shares the row of the captions if it ends before the first of them.
  double first_caption = frame.left + frame.width;
  for (const PlacedCaption& caption : placed.captions) {
    if (caption.text.empty()) continue;
    rows = std::max(rows, caption.row + 1);
    first_caption =
        std::min(first_caption, caption.caption_x - text_width(caption.text, kTickSize) / 2);
  }
  if (!placed.panel->title.empty()) {
    const double end = frame.left + bold_width(placed.panel->title, kPanelTitleSize);
    if (rows != 1 || end + 12 > first_caption) ++rows;
    placed.title_row = rows - 1;
  }
  placed.header = kHeaderRow * static_cast<double>(rows) + 8;
  placed.footer = 8 + kTickSize + (placed.panel->x_label.empty() ? 2 : 8 + kLabelSize);
}

void append_panel(std::string& out, const PlacedPanel& placed) {
  const Panel& panel = *placed.panel;
  const Frame& frame = placed.frame;
  const double right = frame.left + frame.width, bottom = frame.top + frame.height;
  const auto row_y = [&](std::size_t row) {
    return frame.top - 7 - kHeaderRow * static_cast<double>(row);
  };

  std::string grid;
  for (const double value : placed.x_ticks.values)
    grid += fmt::format("M{} {}V{}", px(frame.pixel_x(value)), px(frame.top), px(bottom));
  for (const double value : placed.y_ticks.values)
    grid += fmt::format("M{} {}H{}", px(frame.left), px(frame.pixel_y(value)), px(right));
  out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", grid, kGrid);

  // Frames stand on whole pixels. An id made of the rectangle itself is safe when several figures
  // share a page: equal ids mean equal clips.
  const std::string clip = fmt::format("clip-{}-{}-{}-{}", px(frame.left), px(frame.top),
                                       px(frame.width), px(frame.height));
  out += fmt::format(
      "<clipPath id=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n"
      "<g clip-path=\"url(#{})\" stroke-linejoin=\"round\">\n",
      clip, px(frame.left), px(frame.top), px(frame.width), px(frame.height), clip);
  for (const Band& band : panel.bands) append_band(out, band, frame);
  for (const PlacedCaption& caption : placed.captions)
    out += fmt::format("<path d=\"M{} {}V{}\" stroke=\"{}\" stroke-dasharray=\"2 3\"/>\n",
                       px(caption.x), px(frame.top), px(bottom), kSoftText);
  for (const Bars& bars : panel.bars) append_bars(out, bars, frame);
  for (const Line& line : panel.lines) append_line(out, line, frame);
  out += "</g>\n";
  if (data_x_range(panel).empty())
    append_text(out, frame.left + frame.width / 2, frame.top + frame.height / 2, kLabelSize,
                fmt::format("text-anchor=\"middle\" fill=\"{}\"", kSoftText), "no data");

  std::string axes =
      fmt::format("M{} {}V{}H{}", px(frame.left), px(frame.top), px(bottom), px(right));
  for (const double value : placed.x_ticks.values)
    axes += fmt::format("M{} {}v4", px(frame.pixel_x(value)), px(bottom));
  out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", axes, kAxis);

  out += fmt::format("<g class=\"x-ticks\" text-anchor=\"middle\" fill=\"{}\">\n", kSoftText);
  for (std::size_t i = 0; i < placed.x_ticks.values.size(); ++i)
    append_text(out, frame.pixel_x(placed.x_ticks.values[i]), bottom + 6 + kTickSize, kTickSize, "",
                placed.x_ticks.labels[i]);
  out += fmt::format("</g>\n<g class=\"y-ticks\" text-anchor=\"end\" fill=\"{}\">\n", kSoftText);
  for (std::size_t i = 0; i < placed.y_ticks.values.size(); ++i)
    append_text(out, frame.left - 7, frame.pixel_y(placed.y_ticks.values[i]) + 0.36 * kTickSize,
                kTickSize, "", placed.y_ticks.labels[i]);
  out += "</g>\n";

  for (const PlacedCaption& caption : placed.captions)
    if (!caption.text.empty())
      append_text(out, caption.caption_x, row_y(caption.row), kTickSize,
                  fmt::format("text-anchor=\"middle\" fill=\"{}\"", kSoftText), caption.text);
  if (!panel.title.empty())
    append_text(out, frame.left, row_y(placed.title_row),
                fitting_size(panel.title, kPanelTitleSize, frame.width / 1.1),
                "font-weight=\"bold\"", panel.title);
  if (!panel.x_label.empty())
    append_text(out, frame.left + frame.width / 2, bottom + 12 + kTickSize + kLabelSize,
                fitting_size(panel.x_label, kLabelSize, frame.width), "text-anchor=\"middle\"",
                panel.x_label);
  if (!panel.y_label.empty()) {
    const double y = frame.top + frame.height / 2;
    if (upright(panel.y_label)) {
      append_text(out, placed.label_left, y + 0.36 * kLabelSize, kLabelSize, "", panel.y_label);
    } else {
      const double x = placed.label_left + 0.8 * kLabelSize;
      append_text(
          out, x, y, fitting_size(panel.y_label, kLabelSize, frame.height),
          fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"", px(x), px(y)),
          panel.y_label);
    }
  }
}

/// Ranges, ticks, headers and frames; `top` is where the first row begins. Returns where the last
/// one ends. All panels have the same margins, so that axes of time line up.
double place_panels(std::vector<PlacedPanel>& placed, const FigureOptions& options, double top) {
  const std::size_t columns = static_cast<std::size_t>(std::max(1, options.columns));
  const double height = std::max(80.0, std::round(options.panel_height));
  double left = 0;
  std::vector<double> used(columns);  // left of the frames, by labels
  for (std::size_t i = 0; i < placed.size(); ++i) {
    PlacedPanel& p = placed[i];
    p.frame.x = x_range(*p.panel);
    p.frame.y = y_range(*p.panel);
    p.frame.height = height;
    p.frame.compact = options.compact;
    // Five allowed means at least two drawn: steps grow by 2.5 at most.
    const int most = std::max(5, static_cast<int>(height / 30));
    p.y_ticks = p.panel->log_y ? make_log_ticks(p.frame.y, most) : make_ticks(p.frame.y, most);
    double& column = used[i % columns];
    column = std::max(column, std::ceil(y_label_width(p.panel->y_label) + widest(p.y_ticks) + 7));
    left = std::max(left, column);
  }
  const double column_width =
      (options.width - 2 * kMargin - kGap * static_cast<double>(columns - 1)) /
      static_cast<double>(columns);
  double right = 0;
  for (PlacedPanel& p : placed) {
    const double widest_frame = std::max(40.0, std::floor(column_width - left));
    p.x_ticks = make_x_ticks(p.frame.x, widest_frame, *p.panel);
    right = std::max(right, std::ceil(widest(p.x_ticks) / 2 - kMargin + 4));
  }
  for (std::size_t begin = 0; begin < placed.size(); begin += columns) {
    const std::span<PlacedPanel> row(placed.data() + begin,
                                     std::min(columns, placed.size() - begin));
    double header = 0, footer = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      Frame& frame = row[c].frame;
      frame.left = std::round(kMargin + static_cast<double>(c) * (column_width + kGap)) + left;
      row[c].label_left = frame.left - used[c];
      frame.width = std::max(40.0, std::floor(column_width - left - right));
      place_header(row[c]);
      header = std::max(header, row[c].header);
      footer = std::max(footer, row[c].footer);
    }
    for (PlacedPanel& p : row) p.frame.top = std::round(top + header);
    top = std::round(top + header) + height + footer + 10;
  }
  return top;
}

}  // namespace

std::string_view ink_color(Ink ink) {
  switch (ink) {
    case Ink::truth: return "#000000";
    case Ink::forecast: return "#0072b2";
    case Ink::second: return "#d55e00";
    case Ink::third: return "#009e73";
    case Ink::muted: return "#8a8a8a";
  }
  return "#000000";
}

std::string draw_svg(const std::vector<Panel>& panels, const FigureOptions& options) {
  assert(options.width > 0 && options.panel_height > 0 && options.columns > 0);
  const double inner = options.width - 2 * kMargin;
  std::string body;
  double y = kMargin;
  const auto paragraph = [&](std::string_view text, double size, std::string_view attributes,
                             double available) {
    for (const std::string& line : wrapped(text, size, available)) {
      y += std::round(1.3 * size);
      append_text(body, kMargin, y - 0.3 * size, size, attributes, line);
    }
  };
  const std::string soft = fmt::format("fill=\"{}\"", kSoftText);
  paragraph(options.title, kTitleSize, "font-weight=\"bold\"", inner / 1.1);
  paragraph(options.subtitle, kSubtitleSize, soft, inner);
  if (y > kMargin) y += 6;
  y += append_legend(body, legend_entries(panels), y, inner);

  std::vector<PlacedPanel> placed;
  placed.reserve(panels.size());
  for (const Panel& panel : panels) {
    PlacedPanel& p = placed.emplace_back();
    if (panel.log_y) p.logarithmic = in_powers_of_ten(panel);
    p.panel = p.logarithmic ? &*p.logarithmic : &panel;
  }
  y = place_panels(placed, options, y);
  for (const PlacedPanel& panel : placed) append_panel(body, panel);
  paragraph(options.caption, kCaptionSize, soft, inner);
  y += kMargin - 4;

  std::string name = options.title;
  if (name.empty() && !panels.empty()) name = panels.front().title;
  if (name.empty()) name = "Figure";
  std::string description = options.subtitle;
  if (!description.empty() && !options.caption.empty()) description += ' ';
  description += options.caption;

  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" font-family=\"{2}\" "
      "fill=\"{3}\">\n<title>{4}</title>\n",
      px(options.width), px(y), kFonts, kText, escaped(name));
  if (!description.empty()) out += fmt::format("<desc>{}</desc>\n", escaped(description));
  out +=
      fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"#fff\"/>\n", px(options.width), px(y));
  return out + body + "</svg>\n";
}

}  // namespace odecast
