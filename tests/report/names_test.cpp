#include "support/names.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "odecast/report/forecast_page.hpp"
#include "odecast/report/page.hpp"
#include "odecast/report/svg.hpp"
#include "support/xml.hpp"

namespace odecast {
namespace {

RC_GTEST_PROP(ReportNamesTest, AFigureIsWellFormedWhateverIsWrittenInIt, ()) {
  const std::string text = *any_text();
  Panel panel{.title = text,
              .x_label = text,
              .y_label = text,
              .lines = {{.label = text, .x = {0, 1}, .y = {0, 1}}}};
  panel.bands = {{text, {0, 1}, {0, 0}, {1, 1}}};
  panel.marks = {{0.5, text}};
  const std::string svg =
      draw_svg({panel, panel}, {.title = text, .subtitle = text, .caption = text});
  RC_ASSERT(xml_fault(svg) == "");
}

/// The body as XML: without what HTML does not close, scripts and styles taken out.
std::string body_of(const std::string& html) {
  std::string body = html.substr(html.find("<body"));
  body = body.substr(0, body.find("</body>") + 7);
  for (std::size_t at; (at = body.find("<script")) != body.npos;)
    body.erase(at, body.find("</script>", at) + 9 - at);
  return std::regex_replace(body, std::regex("<(br|hr|img|input)[^>]*>"), "");
}

/// One of every part.
std::string page_with(const std::string& text) {
  Matrix states(3, 3);
  states << 0, 1, 2, 1, 2, 0, 2, 0, 1;
  Section section{"all", text};
  section.parts = {Prose{text},
                   Notice{text},
                   Tiles{{{text, text, text}}},
                   KeyValues{{{text, text}}},
                   Table{text, {text, "n"}, {{{text}, number_cell(1.5)}}},
                   EquationList{{"x", text}, {{text, {{{2, 1}, -1.5, 0.1, 1}}, 3}}, text},
                   Figure{.id = "fig",
                          .title = text,
                          .caption = text,
                          .panels = {{.x_label = text,
                                      .y_label = text,
                                      .lines = {{.label = text, .x = {0, 1}, .y = {0, 1}}}}},
                          .names = {text}},
                   Attractor{.id = "space",
                             .title = text,
                             .variables = {"x", "y", text},
                             .curves = {{text, Ink::truth, {0, 1, 2}, states}}},
                   CommandLine{text}};
  return render_page({text, text, {section}, {text, text}});
}

RC_GTEST_PROP(ReportNamesTest, APageIsWellFormedWhateverIsWrittenInIt, ()) {
  const std::string html = page_with(*any_text()), plain = page_with("x");
  RC_ASSERT(xml_fault(body_of(html)) == "");
  const auto count = [](const std::string& in, const std::string& what) {
    int n = 0;
    for (std::size_t at = in.find(what); at != in.npos; at = in.find(what, at + 1)) ++n;
    return n;
  };
  for (const char* tag :
       {"<script", "</script", "<style", "</style", "<title", "</title", "</head", "</html"})
    RC_ASSERT(count(html, tag) == count(plain, tag));
}

}  // namespace
}  // namespace odecast
