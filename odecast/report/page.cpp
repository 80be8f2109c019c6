#include "odecast/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "odecast/core/encoding.hpp"
#include "odecast/report/detail/assets.hpp"
#include "odecast/report/detail/page_data.hpp"
#include "odecast/report/markup.hpp"

namespace odecast {
namespace {

using Json = nlohmann::ordered_json;
using Index = Eigen::Index;

/// Invalid UTF-8 of users' names must not throw.
std::string dumped(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;  // nothing in a data block may end it
  for (const char c : text) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

std::string_view ink_name(Ink ink) {
  switch (ink) {
    case Ink::truth: return "truth";
    case Ink::forecast: return "forecast";
    case Ink::second: return "second";
    case Ink::third: return "third";
    case Ink::muted: return "muted";
  }
  return "truth";
}

/// What is being written: the body, and the numbers and descriptions its scripts need.
struct Writer {
  bool compact = false;
  std::string body = {};
  std::size_t figure_bytes = 0;
  ColumnPool pool = {};
  Json figures = Json::array(), attractors = Json::array();

  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(body), format, std::forward<Args>(args)...);
  }
};

// ---- words and tables ------------------------------------------------------------------------

void write(Writer& w, const Prose& p) { w.add("<p>{}</p>\n", escaped(p.text)); }

void write(Writer& w, const Notice& p) {
  w.add("<p class=\"notice\" role=\"note\">{}</p>\n", escaped(p.text));
}

void write(Writer& w, const Tiles& p) {
  w.add("<dl class=\"tiles\">\n");
  for (const auto& t : p.tiles)
    w.add("<div><dt>{}</dt><dd><strong>{}</strong>{}</dd></div>\n", escaped(t.label),
          escaped(t.value), t.note.empty() ? "" : "<small>" + escaped(t.note) + "</small>");
  w.add("</dl>\n");
}

void write(Writer& w, const KeyValues& p) {
  w.add("<dl class=\"facts\">\n");
  for (const auto& [key, value] : p.rows)
    w.add("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(key), escaped(value));
  w.add("</dl>\n");
}

std::string_view class_of(CellKind kind) {
  switch (kind) {
    case CellKind::text: return "";
    case CellKind::number: return "number";
    case CellKind::share: return "number share";
    case CellKind::holds: return "verdict holds";
    case CellKind::fails: return "verdict fails";
    case CellKind::depends: return "verdict depends";
  }
  return "";
}

std::string share_bar(double share) {
  return fmt::format(
      "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
      "<rect width=\"{:.4g}\" height=\"10\"/></svg>",
      100 * std::clamp(share, 0.0, 1.0));
}

void write(Writer& w, const Table& p) {
  w.add("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n",
        escaped(p.caption.empty() ? "table" : p.caption));
  if (!p.caption.empty()) w.add("<caption>{}</caption>\n", escaped(p.caption));
  const auto open = [](std::string_view tag, std::string_view name, std::string_view more) {
    return name.empty() ? fmt::format("<{}{}>", tag, more)
                        : fmt::format("<{}{} class=\"{}\">", tag, more, name);
  };
  w.add("<thead><tr>");
  for (std::size_t c = 0; c < p.header.size(); ++c) {
    const bool numbers =
        !p.rows.empty() && c < p.rows[0].size() &&
        (p.rows[0][c].kind == CellKind::number || p.rows[0][c].kind == CellKind::share);
    w.add("{}{}</th>", open("th", numbers ? "number" : "", " scope=\"col\""), escaped(p.header[c]));
  }
  w.add("</tr></thead>\n<tbody>\n");
  for (const auto& row : p.rows) {
    w.add("<tr>");
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool head = c == 0 && row[c].kind == CellKind::text;
      const bool sentence = head && row[c].text.size() > 60;
      w.add("{}{}{}{}",
            open(head ? "th" : "td", sentence ? "long" : class_of(row[c].kind),
                 head ? " scope=\"row\"" : ""),
            escaped(row[c].text), row[c].kind == CellKind::share ? share_bar(row[c].share) : "",
            head ? "</th>" : "</td>");
    }
    w.add("</tr>\n");
  }
  w.add("</tbody></table></div>\n");
}

void write(Writer& w, const CommandLine& p) {
  w.add("<div class=\"command\"><pre tabindex=\"0\"><code>{}</code></pre></div>\n",
        escaped(p.text));
}

// ---- equations -------------------------------------------------------------------------------

std::string math_name(const std::string& name) {
  // "x1" and "x_1" as x with an index; other names upright where longer than a letter.
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  std::string stem = name.substr(0, digits);
  if (digits < name.size() && stem.ends_with('_')) stem.pop_back();
  if (digits < name.size() && !stem.empty())
    return fmt::format("<msub><mi>{}</mi><mn>{}</mn></msub>", escaped(stem),
                       escaped(name.substr(digits)));
  return fmt::format("<mi>{}</mi>", escaped(name));
}

std::string monomial_math(const std::vector<int>& powers, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t v = 0; v < powers.size(); ++v) {
    if (powers[v] == 0) continue;
    text += text.empty() ? "" : "<mspace width=\"0.15em\"/>";
    text += powers[v] == 1 ? math_name(names[v])
                           : fmt::format("<msup><mrow>{}</mrow><mn>{}</mn></msup>",
                                         math_name(names[v]), powers[v]);
  }
  return text;
}

/// "1.5e-05" as 1.5 × 10⁻⁵.
std::string number_math(const std::string& text) {
  const auto e = text.find('e');
  if (e == text.npos) return fmt::format("<mn>{}</mn>", escaped(text));
  const bool negative = text[e + 1] == '-';
  const auto first = text.find_first_not_of("+-0", e + 1);
  return fmt::format("<mn>{}</mn><mo>×</mo><msup><mn>10</mn><mrow>{}<mn>{}</mn></mrow></msup>",
                     text.substr(0, e), negative ? "<mo>−</mo>" : "",
                     first == text.npos ? "0" : text.substr(first));
}

/// "(mean ± sd)", or the mean alone.
std::string value_math(const std::string& mean, const std::string& sd, bool known) {
  return known ? fmt::format(
                     "<mo stretchy=\"false\">(</mo>{}<mrow class=\"sd\"><mo form=\"infix\" "
                     "lspace=\"0.2em\" "
                     "rspace=\"0.2em\">±</mo>{}</mrow><mo stretchy=\"false\">)</mo>",
                     number_math(mean), number_math(sd))
               : number_math(mean);
}

std::string function_math(const FunctionTerms& functions, int function) {
  const int node = functions.term(function).node;
  const std::string text = expression_mathml(functions.tape(), node);
  if (!in_brackets(functions.tape(), node)) return text;
  return "<mrow><mo>(</mo>" + text + "<mo>)</mo></mrow>";
}

void write(Writer& w, const EquationList& p) {
  w.add("<div class=\"equations\"{}>\n",
        p.latex.empty() ? "" : fmt::format(" data-latex=\"{}\"", escaped(p.latex)));
  std::size_t hidden = 0;
  for (const ReadableEquation& e : p.equations) {
    hidden += e.left_out;
    w.add("<div class=\"equation\"><math displaystyle=\"true\">");
    if (p.map)
      w.add("<msub>{}<mrow><mi>k</mi><mo>+</mo><mn>1</mn></mrow></msub>", math_name(e.variable));
    else
      w.add(
          "<mfrac><mrow><mi mathvariant=\"normal\">d</mi>{}</mrow><mrow>"
          "<mi mathvariant=\"normal\">d</mi><mi>t</mi></mrow></mfrac>",
          math_name(e.variable));
    w.add("<mo>=</mo></math><div>");
    for (std::size_t i = 0; i < e.terms.size(); ++i) {
      const Term& t = e.terms[i];
      const auto [mean, sd] = rounded_coefficient(std::abs(t.mean), t.sd);
      const std::string sign = t.mean < 0 ? R"(<mo form="infix" lspace="0" rspace="0.2em">−</mo>)"
                               : i > 0    ? R"(<mo form="infix" lspace="0" rspace="0.2em">+</mo>)"
                                          : "";
      // A term whose uncertainty reaches zero is set softer: the sign is not known.
      w.add("<math{}><mrow>{}{}{}{}</mrow></math> ",
            std::abs(t.mean) <= 2 * t.sd ? " class=\"unsure\"" : "", sign,
            value_math(mean, sd, t.sd > 0), t.constant() ? "" : "<mspace width=\"0.2em\"/>",
            t.function ? function_math(*p.functions, *t.function)
                       : monomial_math(t.powers, p.variables));
    }
    if (e.terms.empty()) w.add("<math><mn>0</mn></math>");
    w.add("</div></div>\n");
  }
  for (const NumberInside& k : p.numbers) {
    const auto [mean, sd] = rounded_coefficient(std::abs(k.mean), k.sd);
    w.add(
        "<div class=\"equation\"><math>{}<mo>=</mo></math><div><math><mrow>{}{}</mrow></math>"
        "</div></div>\n",
        math_name(k.name), k.mean < 0 ? "<mo>−</mo>" : "", value_math(mean, sd, k.sd > 0));
  }
  w.add(
      "</div>\n<p class=\"hint\">Mean ± standard deviation of each coefficient over the draws. "
      "Terms in grey are within two standard deviations of zero.{}</p>\n",
      hidden == 0 ? ""
                  : fmt::format(" {} small term{} left out; <code>odecast equations --all</code> "
                                "shows every one.",
                                hidden, hidden == 1 ? " is" : "s are"));
}

// ---- figures ---------------------------------------------------------------------------------

bool forward(const std::vector<double>& x) {
  return std::is_sorted(x.begin(), x.end()) &&
         std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
}

bool forward(const Panel& panel) {
  return std::all_of(panel.lines.begin(), panel.lines.end(),
                     [](const Line& l) { return forward(l.x); }) &&
         std::all_of(panel.bands.begin(), panel.bands.end(),
                     [](const Band& b) { return forward(b.x); });
}

Json panel_json(Writer& w, const Panel& panel) {
  const Rounding rounding = panel.log_y ? Rounding::significant : Rounding::decimals;
  Json j = {{"title", panel.title}, {"x", panel.x_label}, {"y", panel.y_label}};
  if (panel.log_y) j["log"] = true;
  if (panel.whole_x) j["whole"] = true;
  if (const auto& c = panel.calendar) {
    const auto origin = static_cast<double>(c->origin.seconds + 60 * c->offset.value_or(0)) +
                        1e-9 * c->origin.nanoseconds;
    const double unit = to_number({.origin = {}}, to_instant({c->unit}, 1));
    j["calendar"] = {{"unit", c->unit == TimeUnit::civil_year ? 0 : unit},
                     {"origin", origin},
                     {"detail", static_cast<int>(c->detail)}};
  }
  if (panel.y_range) j["range"] = {panel.y_range->first, panel.y_range->second};
  j["lines"] = Json::array();
  j["bands"] = Json::array();
  std::vector<int> curves;
  for (const Line& line : panel.lines) {
    const int x = w.pool.add(line.x, Rounding::none);
    const int y = w.pool.add(line.y, rounding);
    curves.push_back(y);
    Json l = {{"label", line.label}, {"ink", ink_name(line.ink)}, {"x", x}, {"y", y}};
    if (line.dashed) l["dashed"] = true;
    if (line.points) l["points"] = true;
    if (line.width != 1.6) l["width"] = line.width;
    j["lines"].push_back(std::move(l));
  }
  for (const Band& band : panel.bands) {
    const int x = w.pool.add(band.x, Rounding::none);
    const int lower = w.pool.add(band.lower, rounding);
    const int upper = w.pool.add_upper(band.upper, rounding, curves, lower);
    j["bands"].push_back({{"label", band.label},
                          {"ink", ink_name(band.ink)},
                          {"x", x},
                          {"lower", lower},
                          {"upper", upper}});
  }
  for (const Bars& bars : panel.bars)
    j["bars"].push_back({{"label", bars.label},
                         {"ink", ink_name(bars.ink)},
                         {"edges", w.pool.add(bars.edges, Rounding::none)},
                         {"heights", w.pool.add(bars.heights, rounding)}});
  for (const Mark& mark : panel.marks) j["marks"].push_back({{"x", mark.x}, {"label", mark.label}});
  return j;
}

void open_figure(Writer& w, const std::string& id, const std::string& title, std::string_view kind,
                 std::size_t number) {
  w.add(
      "<figure class=\"figure\" id=\"{}\" data-{}=\"{}\" aria-labelledby=\"{}-title\">\n"
      "<h3 id=\"{}-title\">{}</h3>\n",
      escaped(id), kind, number, escaped(id), escaped(id), escaped(title));
}

void close_figure(Writer& w, const std::string& svg, const std::string& caption) {
  w.figure_bytes += svg.size();
  w.add("<div class=\"static\">{}</div>\n", svg);
  if (!caption.empty()) w.add("<figcaption>{}</figcaption>\n", escaped(caption));
  w.add("</figure>\n");
}

void write(Writer& w, const Figure& p) {
  open_figure(w, p.id, p.title, "figure", w.figures.size());
  Json j = {{"id", p.id}, {"title", p.title}};
  j["live"] = std::all_of(p.panels.begin(), p.panels.end(),
                          [](const Panel& panel) { return forward(panel); });
  if (!p.names.empty()) j["names"] = p.names;
  j["switch"] = p.switch_label;
  if (!p.csv_note.empty()) j["note"] = p.csv_note;
  j["height"] = p.panel_height;
  j["panels"] = Json::array();
  for (const Panel& panel : p.panels) j["panels"].push_back(panel_json(w, panel));
  w.figures.push_back(std::move(j));
  close_figure(w,
               draw_svg(p.panels, {.panel_height = p.panel_height,
                                   .columns = p.columns,
                                   .title = p.title,
                                   .compact = w.compact}),
               p.caption);
}

/// The longest curve that the static figure draws whole: a curve in the plane cannot be thinned by
/// columns.
constexpr Index kLongestPlane = 3000, kStartShown = 800;

/// Every pair of the first three variables, side by side.
std::string plane_figure(const Attractor& p, bool compact) {
  std::vector<Panel> panels;
  std::string caption;
  const std::size_t shown = std::min<std::size_t>(3, p.variables.size());
  for (std::size_t a = 0; a < shown; ++a)
    for (std::size_t b = a + 1; b < shown; ++b) {
      Panel panel{.x_label = p.variables[a], .y_label = p.variables[b]};
      for (const auto& curve : p.curves) {
        Line line{.label = curve.label,
                  .ink = curve.ink,
                  .width = curve.width,
                  .points = curve.points && p.variables.size() == 2};
        const Index rows = curve.states.rows(), drawn = rows > kLongestPlane ? kStartShown : rows;
        if (drawn < rows)
          caption = fmt::format("The first {} times of long curves are drawn.", kStartShown);
        for (Index t = 0; t < drawn; ++t) {
          line.x.push_back(curve.states(t, static_cast<Index>(a)));
          line.y.push_back(curve.states(t, static_cast<Index>(b)));
        }
        panel.lines.push_back(std::move(line));
      }
      panels.push_back(std::move(panel));
    }
  const int columns = static_cast<int>(panels.size());
  return draw_svg(panels, {.panel_height = columns == 1 ? 380.0 : 190.0,
                           .columns = columns,
                           .title = p.title,
                           .caption = caption,
                           .compact = compact});
}

void write(Writer& w, const Attractor& p) {
  assert(p.variables.size() >= 2);
  open_figure(w, p.id, p.title, "attractor", w.attractors.size());
  Json j = {{"id", p.id}, {"title", p.title}, {"variables", p.variables}};
  j["curves"] = Json::array();
  for (const auto& curve : p.curves) {
    Json columns = Json::array();
    for (Index v = 0; v < curve.states.cols(); ++v) {
      std::vector<double> column;
      for (Index t = 0; t < curve.states.rows(); ++t) column.push_back(curve.states(t, v));
      columns.push_back(w.pool.add(std::move(column), Rounding::decimals));
    }
    j["curves"].push_back({{"label", curve.label},
                           {"ink", ink_name(curve.ink)},
                           {"t", w.pool.add(curve.times, Rounding::none)},
                           {"columns", std::move(columns)},
                           {"width", curve.width}});
    if (curve.points) j["curves"].back()["points"] = true;
  }
  w.attractors.push_back(std::move(j));
  close_figure(w, plane_figure(p, w.compact), p.caption);
}

void write(Writer& w, const StaticFigures& p) {
  w.add("<div class=\"grid columns-{}\">\n", std::clamp(p.columns, 1, 4));
  for (const auto& item : p.items) {
    w.add("<figure class=\"figure\" id=\"{}\" data-still aria-label=\"{}\">\n", escaped(item.id),
          escaped(item.title));
    close_figure(w, item.svg, item.caption);
  }
  w.add("</div>\n");
}

// ---- the whole -------------------------------------------------------------------------------

Writer written(const Page& page, bool compact) {
  Writer w{.compact = compact};
  for (const Section& section : page.sections) {
    w.add("<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n",
          escaped(section.id), escaped(section.heading));
    for (const Part& part : section.parts) std::visit([&](const auto& p) { write(w, p); }, part);
    w.add("</section>\n");
  }
  return w;
}

std::string warning_text(const Warning& w) {
  if (w.headline.empty()) return "";
  return fmt::format("<div class=\"warning\" role=\"note\"><p><strong>{}</strong></p>{}</div>\n",
                     escaped(w.headline),
                     w.detail.empty() ? "" : "<p>" + escaped(w.detail) + "</p>");
}

std::string policy_hash(std::string_view text) {
  const auto digest = sha256(text);
  return fmt::format("'sha256-{}'",
                     base64({reinterpret_cast<const char*>(digest.data()), digest.size()}));
}

/// The template with every {{name}} replaced, once: what is put in is not looked at again.
std::string filled(std::string_view text,
                   const std::vector<std::pair<std::string, std::string>>& values) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find("{{");
    out += text.substr(0, open);
    if (open == text.npos) break;
    const auto close = text.find("}}", open);
    const auto name = text.substr(open + 2, close - open - 2);
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    assert(found != values.end());
    out += found->second;
    text.remove_prefix(close + 2);
  }
  return out;
}

}  // namespace

Cell number_cell(double value, int digits) {
  if (std::isnan(value)) return {"–", CellKind::number};
  const bool whole = std::abs(value) >= std::pow(10.0, digits) && std::abs(value) < 1e6;
  std::string text = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return {text, CellKind::number};
}

Cell share_cell(double share) {
  const double percent =
      share > 1 - 1e-9 ? 100 : 100 * share;  // weights sum to 1 but for round-off
  return {percent <= 0 || percent >= 100 ? fmt::format("{:.0f} %", percent)
          : percent < 0.1                ? std::string("< 0.1 %")
          : percent > 99.9               ? std::string("> 99.9 %")
          : percent < 10 || percent > 90 ? fmt::format("{:.1f} %", percent)
                                         : fmt::format("{:.0f} %", percent),
          CellKind::share, share};
}

std::string page_library_version() { return std::string(page_assets().library_version); }

std::string render_equations(const EquationList& equations) {
  Writer w;
  write(w, equations);
  return w.body;
}

std::string render_page(const Page& page, const PageOptions& options) {
  Writer w = written(page, false);
  if (w.figure_bytes > options.figure_budget) w = written(page, true);
  const PackedColumns packed = pack(w.pool.columns(), options.data_budget);
  const PageAssets assets = page_assets();
  const bool library = options.interactive && !assets.library_script.empty();

  std::string style(assets.style), script(assets.script);
  if (library) {
    style = std::string(assets.library_style) + "\n" + style;
    script = fmt::format("/*! uPlot {}\n{}*/\n{}\n{}", assets.library_version,
                         assets.library_licence, assets.library_script, script);
  }
  std::string navigation;
  for (const Section& section : page.sections)
    navigation +=
        fmt::format("<a href=\"#{}\">{}</a>\n", escaped(section.id), escaped(section.heading));
  Json data = {
      {"columns", Json::parse(packed.header)}, {"bits", packed.bits}, {"stride", packed.stride}};
  data["figures"] = std::move(w.figures);
  data["attractors"] = std::move(w.attractors);
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'",
      policy_hash(script), policy_hash(style));
  return filled(assets.html,
                {{"policy", policy},
                 {"title", escaped(page.title)},
                 {"warning", warning_text(page.warning)},
                 {"subtitle", page.subtitle.empty() ? "" : "<p>" + escaped(page.subtitle) + "</p>"},
                 {"style", style},
                 {"navigation", navigation},
                 {"body", w.body},
                 {"data", dumped(data)},
                 {"numbers", packed.numbers},
                 {"script", script}});
}

}  // namespace odecast
