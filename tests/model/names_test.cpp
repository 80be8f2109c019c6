#include "support/names.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>

#include "odecast/core/error.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

/// A model of these variables; of several the last may be an input.
Model named(std::vector<std::string> names, bool input) {
  Model m = decaying_model(static_cast<int>(names.size()), 0.25);
  if (input && names.size() > 1) {
    const auto n = static_cast<int>(names.size()) - 1;
    m = make_model(make_network(n + 1, {{3, Activation::power, 2, 0.25, false}}, n, 1));
    m.variables.pop_back();
    m.scaling = no_scaling(n);
    m.last_state = Vector::Ones(n);
    m.inputs.names = {names.back()};
    m.inputs.offset = Vector::Zero(1);
    m.inputs.scale = m.inputs.last = Vector::Ones(1);
    names.pop_back();
  }
  m.variables = std::move(names);
  return m;
}

RC_GTEST_PROP(ModelNamesTest, AnyNameSurvivesTheModelFile, ()) {
  const Model m = named(*any_names(), *rc::gen::arbitrary<bool>());
  const Model back = model_from_text(model_to_text(m), "m");
  RC_ASSERT(back.variables == m.variables);
  RC_ASSERT(back.inputs.names == m.inputs.names);
  const auto all = equations(back);
  for (std::size_t i = 0; i < all.size(); ++i) RC_ASSERT(all[i].variable == m.variables[i]);
}

RC_GTEST_PROP(ModelNamesTest, NamesThatNoFileCanHoldAreRefused, ()) {
  const std::string name =
      *rc::gen::suchThat(any_text(), [](const std::string& s) { return name_fault(s) != nullptr; });
  for (const bool input : {false, true})
    RC_ASSERT_THROWS_AS(model_from_text(model_to_text(named({"x", name}, input)), "m"), Error);
}

TEST(ModelNamesTest, EqualAndEmptyNamesAreRefused) {
  for (const bool input : {false, true}) {
    for (const auto& [name, why] : {std::pair{"x", "found 'x' twice, expected different names"},
                                    std::pair{"", "found an empty name"}}) {
      try {
        model_from_text(model_to_text(named({"x", name}, input)), "m");
        FAIL() << name;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::data);
        EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
      }
    }
  }
}

/// What is wrong with the LaTeX of equations, or nothing: only commands of ours, braces in pairs,
/// and no character that acts.
std::string latex_fault(std::string_view text) {
  static const std::set<std::string, std::less<>> known = {
      "begin",          "end",      "dot",           "mathrm",
      "text",           "pm",       "textbackslash", "textasciicircum",
      "textasciitilde", "textless", "textgreater",   "textbar",
      "symbol"};
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      std::size_t end = i + 1;
      while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end]))) ++end;
      if (end == i + 1) {
        if (end == text.size() ||
            std::string_view("\\,{}$&#_%").find(text[end]) == std::string_view::npos)
          return "unknown escape";
        ++i;
      } else if (!known.contains(text.substr(i + 1, end - i - 1))) {
        return "command " + std::string(text.substr(i + 1, end - i - 1));
      } else {
        i = end - 1;
      }
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (--depth < 0) return "a brace too many";
    } else if (std::string_view("%#$~\"<>|").find(c) != std::string_view::npos) {
      return "an active character";
    } else if (const char next = i + 1 < text.size() ? text[i + 1] : '\0';
               (c == '&' && next != '=') || ((c == '^' || c == '_') && next != '{')) {
      return "a loose & ^ or _";
    }
  }
  return depth == 0 ? "" : "a brace too few";
}

/// Undoes the escapes of a name.
std::string read_latex(std::string text) {
  for (const char* wrap : {"\\text{", "\\mathrm{"})
    if (text.starts_with(wrap))
      text = text.substr(std::string_view(wrap).size(),
                         text.size() - std::string_view(wrap).size() - 1);
  static const std::vector<std::pair<std::string, char>> words = {
      {"\\textbackslash{}", '\\'}, {"\\textasciicircum{}", '^'}, {"\\textasciitilde{}", '~'},
      {"\\textless{}", '<'},       {"\\textgreater{}", '>'},     {"\\textbar{}", '|'},
      {"\\symbol{34}", '"'}};
  std::string name;
  for (std::size_t i = 0; i < text.size();) {
    const auto word = std::find_if(words.begin(), words.end(), [&](const auto& w) {
      return text.compare(i, w.first.size(), w.first) == 0;
    });
    if (word != words.end()) {
      name += word->second;
      i += word->first.size();
    } else {
      i += text[i] == '\\';
      name += text[i++];
    }
  }
  return name;
}

RC_GTEST_PROP(EquationNamesTest, LatexShowsNamesAndRunsNone, ()) {
  Model m = exploding_model(0);
  m.variables = {*any_name()};
  const std::string text = format_equations(m, EquationFormat::latex);
  RC_ASSERT(latex_fault(text) == "");
  const std::string begin = "\\begin{aligned}\n\\dot{", middle = "} &= 1.0000\\,",
                    end = "^{2}\n\\end{aligned}\n";
  RC_ASSERT(text.starts_with(begin));
  RC_ASSERT(text.ends_with(end));
  const std::size_t both = text.size() - begin.size() - middle.size() - end.size();
  RC_ASSERT(both % 2 == 0u);
  RC_ASSERT(read_latex(text.substr(begin.size(), both / 2)) == printable(m.variables[0]));
  RC_ASSERT(text.substr(begin.size(), both / 2) ==
            text.substr(begin.size() + both / 2 + middle.size(), both / 2));
}

RC_GTEST_PROP(EquationNamesTest, TextAndCHoldNamesInTheirPlace, ()) {
  Model plain = exploding_model(0), m = plain;
  m.variables = {*any_name()};
  const std::string shown_name = printable(m.variables[0]);
  RC_ASSERT(format_equations(m, EquationFormat::text) ==
            "d" + shown_name + "/dt = 1.0000 " + shown_name + "^2\n");
  const auto code = [](const Model& model) {
    const std::string text = format_equations(model, EquationFormat::c);
    return text.substr(text.find("*/"));
  };
  RC_ASSERT(code(m) == code(plain));
}

TEST(EquationNamesTest, UsualNamesStayReadable) {
  const std::map<std::string, std::string> expected = {
      {"x", "x"},
      {"x1", "\\mathrm{x1}"},
      {"speed", "\\mathrm{speed}"},
      {"a_b", "\\text{a\\_b}"},
      {"a%", "\\text{a\\%}"},
      {"λ", "\\lambda"},
      {"λ₁", "\\text{λ₁}"},
      {"\\input{/etc/passwd}", "\\text{\\textbackslash{}input\\{/etc/passwd\\}}"}};
  for (const auto& [name, latex] : expected) {
    Model m = exploding_model(0);
    m.variables = {name};
    EXPECT_NE(format_equations(m, EquationFormat::latex).find("\\dot{" + latex + "} &= "),
              std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace odecast
