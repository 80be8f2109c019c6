#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/report/svg.hpp"

namespace odecast {

// A page is one HTML file that needs nothing else: no network, no other file. Its parts are values;
// all text in them is plain and gets escaped. Ids are made of letters, digits and '-', and are
// unique in a page; files that its buttons save are named after them.

/// A paragraph.
struct Prose {
  std::string text;
};

/// A paragraph that must not be overlooked.
struct Notice {
  std::string text;
};

/// The few numbers a reader looks for first, large.
struct Tiles {
  struct Tile {
    std::string value, label, note = {};
  };
  std::vector<Tile> tiles;
};

struct KeyValues {
  std::vector<std::pair<std::string, std::string>> rows;
};

/// A cell's kind sets its look: numbers stand right, verdicts have a sign and a colour of their
/// own.
enum class CellKind { text, number, share, holds, fails, depends };
struct Cell {
  std::string text;
  CellKind kind = CellKind::text;
  double share = 0;  ///< 0 to 1: the bar beside a CellKind::share
};
/// The number with so many significant digits; a dash for NaN.
Cell number_cell(double value, int digits = 3);
/// In percent, with a bar; neither 0 % nor 100 % unless it is.
Cell share_cell(double share);

struct Table {
  std::string caption = {};
  std::vector<std::string> header;
  std::vector<std::vector<Cell>> rows;
};

/// Learnt equations, typeset, each coefficient with its uncertainty; `latex` behind a copy button.
struct EquationList {
  std::vector<std::string> variables;  ///< of the monomials
  std::vector<ReadableEquation> equations;
  std::string latex = {};
  bool map = false;                                          ///< x_{k+1} = …, not dx/dt
  std::shared_ptr<const FunctionTerms> functions = nullptr;  ///< that terms may be
  std::vector<NumberInside> numbers = {};                    ///< inside these
};
/// Those of a model, without what is smaller than a hundredth in its equation.
EquationList equation_list(const Model& model, Centre centre);

/// Panels drawn by the browser where it can (zoom, read-out, one panel at a time), and as a static
/// figure for print and where scripts do not run. Panels whose lines run back in x stay static.
/// Buttons save the static figure as SVG and the numbers as CSV.
struct Figure {
  std::string id, title;
  std::string caption = {};
  std::vector<Panel> panels = {};
  /// Of the panels, for the switch between them; empty: no switch.
  std::vector<std::string> names = {};
  std::string switch_label = "Variable";
  /// Lines held thinned by the caller, said beside the CSV button.
  std::string csv_note = {};
  double panel_height = 220;
  int columns = 1;  ///< of the static figure
};

/// Curves in space for the browser to turn, and in planes as static figure. At least two variables;
/// with more than three the reader chooses.
struct Attractor {
  struct Curve {
    std::string label;
    Ink ink = Ink::forecast;
    std::vector<double> times = {};
    Matrix states = {};  ///< times × variables
    double width = 1.6;
    bool points = false;  ///< in the plane dots at the points instead of a curve through them
  };
  std::string id, title;
  std::string caption = {};
  std::vector<std::string> variables = {};
  std::vector<Curve> curves = {};
};

/// Finished figures, as draw_svg makes them, side by side where there is room. A button saves each.
struct StaticFigures {
  struct Item {
    std::string id, title, svg, caption = {};
  };
  std::vector<Item> items;
  int columns = 1;
};

/// A command to repeat, with a button that copies it.
struct CommandLine {
  std::string text;
};

using Part = std::variant<Prose, Notice, Tiles, KeyValues, Table, EquationList, Figure, Attractor,
                          StaticFigures, CommandLine>;

struct Section {
  std::string id, heading;
  std::vector<Part> parts = {};
};

/// Why what a page shows is not to be trusted; said before all else.
struct Warning {
  std::string headline = {};  ///< empty: it is to be trusted
  std::string detail = {};
};

struct Page {
  std::string title, subtitle = {};
  std::vector<Section> sections = {};
  Warning warning = {};
};

struct PageOptions {
  /// Include uPlot where the build has it. Without it figures are static; all else works.
  bool interactive = true;
  /// Characters for the numbers of all figures. All rows are held; values are rounded where exact
  /// ones would take more, and the page says so.
  std::size_t data_budget = 520'000;
  /// Characters of static figures above which they are drawn in their compact form.
  std::size_t figure_budget = 180'000;
};

/// The page as HTML. The same bytes for the same input.
std::string render_page(const Page& page, const PageOptions& options = {});

/// The equations as a piece of HTML, typeset as on a page: for documents of others, such as
/// notebooks.
std::string render_equations(const EquationList& equations);

/// Version of the uPlot that is built in; empty without.
std::string page_library_version();

}  // namespace odecast
