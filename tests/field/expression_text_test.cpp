#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "field/random_expression.hpp"
#include "odecast/core/files.hpp"
#include "odecast/field/expression.hpp"

namespace odecast {
namespace {

TEST(ExpressionTextTest, TextReadsBackAsTheSameNode) {
  RandomExpressions random(1);
  std::size_t longest = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    Tape tape({"x", "Temp (K)", "a\"b`c", "θ"});
    const int node = random.draw(tape, 2 + trial % 9);
    const std::string text = expression_text(tape, node);
    if (text.size() > kLongestExpression) continue;
    ASSERT_EQ(parse_expression(text, tape), node) << text;
    // In a tape of its own, node for node.
    Tape other({"x", "Temp (K)", "a\"b`c", "θ"});
    for (const std::string& name : tape.parameters()) other.parameter(name);
    std::vector<int> a = {node}, b = {parse_expression(text, other)};
    ASSERT_EQ(extracted(tape, a).nodes(), extracted(other, b).nodes()) << text;
    longest = std::max(longest, text.size());
  }
  EXPECT_GT(longest, 200u);
}

TEST(ExpressionTextTest, SlopesReadBackToo) {
  RandomExpressions random(2);
  for (int trial = 0; trial < 2'000; ++trial) {
    Tape tape({"x", "y"});
    const int node = slope(tape, random.draw(tape, 3), tape.argument(0));
    const std::string text = expression_text(tape, node);
    if (text.size() > kLongestExpression || expression_size(tape, node) > kLargestExpression)
      continue;
    ASSERT_EQ(parse_expression(text, tape), node) << text;
  }
}

TEST(ExpressionTextTest, BracketsOnlyWhereTheyAreNeeded) {
  for (const char* text : {"x + y - z",
                           "x - (y - z)",
                           "x + (y + z)",
                           "x*y/z",
                           "x/(y*z)",
                           "x*(y + z)",
                           "(x + y)^2",
                           "x^y^z",
                           "(x^y)^z",
                           "-x^2",
                           "(-x)^2",
                           "-x*y",
                           "-(x + y)",
                           "-2*x",
                           "x - 2*y",
                           "2^-x - 1",
                           "sin(x + y)*cos(x)^2",
                           "x/(k + x)",
                           "-2*x*y",
                           "x*(-2*y*z)",
                           "1/x^2",
                           "0.1*x",
                           "2*pi*x",
                           "\"Temp (K)\"^2",
                           "x^-2.5",
                           "sqrt(x) - abs(-x)",
                           "1e-20*x",
                           "x^y*log(x)"}) {
    Tape tape({"x", "y", "z", "Temp (K)"});
    std::string expected = text;
    if (expected == "2^-x - 1") expected = "2^(-x) - 1";
    if (expected == "x^-2.5") expected = "x^(-2.5)";
    if (expected == "2*pi*x") expected = "6.283185307179586*x";
    EXPECT_EQ(expression_text(tape, parse_expression(text, tape)), expected);
  }
  Tape tape({"x"});
  EXPECT_EQ(expression_text(tape, parse_expression("pi*x", tape)), "pi*x");
}

TEST(ExpressionTextTest, ValuesStandForUnknownNumbers) {
  Tape tape({"x", "y"});
  const int node = parse_expression("a*x + b*y^n - c*x/(k + x)", tape);
  const std::vector<double> values = {1.5, -2, 2, -0.25, 3};
  EXPECT_EQ(expression_text(tape, node, values), "1.5*x - 2*y^2 + 0.25*x/(3 + x)");
  EXPECT_EQ(expression_latex(tape, node, values), "1.5\\,x - 2\\,y^{2} + \\frac{0.25\\,x}{3 + x}");
}

TEST(ExpressionTextTest, LatexIsThatOfBooks) {
  const std::pair<const char*, const char*> table[] = {
      {"x*y/(k + x)", "\\frac{x\\,y}{k + x}"},
      {"-w^2*sin(theta)", "-w^{2}\\,\\sin\\left(\\mathrm{theta}\\right)"},
      {"exp(-x/y)^2", "\\left(e^{-\\frac{x}{y}}\\right)^{2}"},
      {"sqrt(x)*abs(y)", "\\sqrt{x}\\,\\left|y\\right|"},
      {"(x + y)^(n - 1)", "\\left(x + y\\right)^{n - 1}"},
      {"(x/y)^2", "\\left(\\frac{x}{y}\\right)^{2}"},
      {"x*(y*2)", "x \\cdot 2\\,y"},
      {"1.5e-7*x", "1.5 \\cdot 10^{-7}\\,x"},
      {"pi*x - (x - y)", "\\pi\\,x - \\left(x - y\\right)"},
      {"log(\"a_b\")", "\\ln\\left(\\text{a\\_b}\\right)"},
      {"x*(-2*y*x)", "x\\,\\left(-2\\,y\\,x\\right)"},
      {"θ*\"p (%)\"", "\\theta\\,\\text{p (\\%)}"},
  };
  for (const auto& [text, latex] : table) {
    Tape tape({"x", "y", "a_b", "θ", "p (%)"});
    EXPECT_EQ(expression_latex(tape, parse_expression(text, tape)), latex) << text;
  }
}

/// Every random one has as many { as }, \left as \right, and tags that close in order. With the
/// name of a file in ODECAST_LATEX they go there, a line each, for a real compiler (./test latex).
TEST(ExpressionTextTest, LatexAndMathmlAreWellFormed) {
  RandomExpressions random(4);
  std::ofstream file;
  if (const char* name = getenv("ODECAST_LATEX")) file.open(name);
  for (int trial = 0; trial < 10'000; ++trial) {
    Tape tape({"x", "a<b & c>{", "θ", "Größe (°C)"});
    const int node = random.draw(tape, 5);
    const std::string latex = expression_latex(tape, node);
    file << latex << '\n';
    int depth = 0;
    for (std::size_t i = 0; i < latex.size(); ++i) {
      if (latex[i] == '\\' && i + 1 < latex.size() && (latex[i + 1] == '{' || latex[i + 1] == '}'))
        ++i;
      else
        depth += (latex[i] == '{') - (latex[i] == '}');
      ASSERT_GE(depth, 0) << latex;
    }
    ASSERT_EQ(depth, 0) << latex;
    const auto count = [&](std::string_view word) {
      int n = 0;
      for (auto at = latex.find(word); at != latex.npos; at = latex.find(word, at + 1)) ++n;
      return n;
    };
    ASSERT_EQ(count("\\left"), count("\\right")) << latex;
    const std::string mathml = expression_mathml(tape, node);
    std::vector<std::string> open;
    for (std::size_t at = mathml.find('<'); at != mathml.npos; at = mathml.find('<', at + 1)) {
      const std::size_t end = mathml.find('>', at);
      ASSERT_NE(end, mathml.npos);
      const std::string tag = mathml.substr(at + 1, end - at - 1);
      if (tag[0] != '/') {
        open.push_back(tag);
        continue;
      }
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), tag.substr(1)) << mathml;
      open.pop_back();
    }
    ASSERT_TRUE(open.empty()) << mathml;
  }
  Tape tape({"x"});
  EXPECT_EQ(expression_mathml(tape, parse_expression("x/(k + 2)^2", tape)),
            "<mrow><mfrac><mrow><mi>x</mi></mrow><mrow><msup><mrow><mrow><mo>(</mo><mi>k</mi>"
            "<mo>+</mo><mn>2</mn><mo>)</mo></mrow></mrow><mrow><mn>2</mn></mrow></msup></mrow>"
            "</mfrac></mrow>");
}

/// How far the value of each node may be from the true one when every operation has an error of
/// `unit`: δ(f) = Σ |∂f/∂operand| δ(operand) + unit |f|, by symbolic slopes of one operation.
double bound_of(const Tape& tape, int node, const std::vector<double>& u,
                const std::vector<double>& c, double unit) {
  std::vector<double> values(index(tape.size())), bound(index(tape.size()), 0);
  evaluate(tape, u.data(), c.data(), values.data());
  for (int i = 0; i <= node; ++i) {
    const Node& of = tape[i];
    if (of.op == Op::number || of.op == Op::argument || of.op == Op::parameter) continue;
    const double a = values[index(of.left)], b = of.right < 0 ? 0 : values[index(of.right)];
    const double da = bound[index(of.left)], db = of.right < 0 ? 0 : bound[index(of.right)];
    const double f = values[index(i)];
    double moved = 0;
    switch (of.op) {
      case Op::add:
      case Op::subtract: moved = da + db; break;
      case Op::multiply: moved = std::abs(b) * da + std::abs(a) * db; break;
      case Op::divide: moved = da / std::abs(b) + std::abs(f / b) * db; break;
      case Op::negate:
      case Op::absolute: moved = da; break;
      case Op::whole_power: moved = std::abs(of.value * f / a) * da; break;
      case Op::power:
        moved = std::abs(b * f / a) * da + std::abs(f * std::log(std::abs(a))) * db;
        break;
      case Op::sine: moved = std::abs(std::cos(a)) * da; break;
      case Op::cosine: moved = std::abs(std::sin(a)) * da; break;
      case Op::tangent: moved = (1 + f * f) * da; break;
      case Op::exponential: moved = f * da; break;
      case Op::logarithm: moved = da / a; break;
      case Op::square_root: moved = da / (2 * f); break;
      case Op::hyperbolic_tangent: moved = (1 - f * f) * da; break;
      default: moved = da > 0 ? INFINITY : 0;  // a sign that may turn
    }
    // A slope that changes over the error of its operand is worth nothing.
    if (da > 1e-6 * std::abs(a) || db > 1e-6 * std::abs(b)) moved = INFINITY;
    bound[index(i)] = moved + unit * std::abs(f);
  }
  return bound[index(node)];
}

/// A C program of some hundreds of expressions, compiled and run, beside evaluate().
TEST(ExpressionTextTest, CComputesTheSame) {
  char folder[] = "/tmp/odecast-expression-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string base = folder;
  const std::vector<double> u = {0.7, -1.3}, c = {0.4, 1.9, -0.6};
  constexpr int kCount = 400;
  RandomExpressions random(6);
  std::vector<Tape> tapes;
  std::vector<int> nodes;
  std::string source = "#include <math.h>\n#include <stdio.h>\n";
  for (int k = 0; k < kCount; ++k) {
    random.plain = k % 2 == 0;
    Tape& tape = tapes.emplace_back(std::vector<std::string>{"x", "y"});
    for (int i = 0; i < 3; ++i) tape.parameter("p" + std::to_string(i));
    nodes.push_back(random.draw(tape, 5));
    const CExpressions text = expressions_c(tape, {nodes.back()});
    source += "static double f" + std::to_string(k) +
              "(const double *u, const double *c)\n{\n  (void)u; (void)c;\n" + text.statements +
              "  return " + text.values[0] + ";\n}\n";
  }
  source += "int main(void)\n{\n  const double u[] = {0.7, -1.3}, c[] = {0.4, 1.9, -0.6};\n";
  for (int k = 0; k < kCount; ++k)
    source += "  printf(\"%a\\n\", f" + std::to_string(k) + "(u, c));\n";
  source += "  return 0;\n}\n";
  write_file(base + "/all.c", source);
  const std::string build = "cc -std=c99 -O1 -ffp-contract=off -Wall -Wextra -Werror -o " + base +
                            "/all " + base + "/all.c -lm && " + base + "/all > " + base + "/out";
  ASSERT_EQ(std::system(build.c_str()), 0);
  std::ifstream out(base + "/out");
  int exact = 0, near = 0;
  for (int k = 0; k < kCount; ++k) {
    const Tape& tape = tapes[index(k)];
    std::string word;
    ASSERT_TRUE(out >> word);
    const double got = std::strtod(word.c_str(), nullptr);
    std::vector<double> values(index(tape.size()));
    evaluate(tape, u.data(), c.data(), values.data());
    const double own = values[index(nodes[index(k)])];
    if (std::isnan(own)) {
      // Where theirs is a number ours has left its domain: angles beyond 2^20, a sign of none.
      EXPECT_TRUE(std::isnan(got) || k % 2 == 1) << expression_text(tape, nodes[index(k)]);
      continue;
    }
    if (k % 2 == 0) {
      EXPECT_EQ(got, own) << expression_text(tape, nodes[index(k)]);
      ++exact;
      continue;
    }
    // An ulp is at most 2^-52 of a number: four for ours and theirs together, each operation.
    const double bound = bound_of(tape, nodes[index(k)], u, c, 4 * 0x1p-52);
    if (!std::isfinite(bound) || !std::isfinite(own)) continue;
    EXPECT_NEAR(got, own, bound) << expression_text(tape, nodes[index(k)]);
    ++near;
  }
  EXPECT_GT(exact, 100);
  EXPECT_GT(near, 80);
  std::remove((base + "/all.c").c_str());
  std::remove((base + "/all").c_str());
  std::remove((base + "/out").c_str());
  ASSERT_EQ(std::remove(base.c_str()), 0);
}

TEST(ExpressionTextTest, CNamesWhatIsUsedTwice) {
  Tape tape({"x", "y"});
  const int node = parse_expression("(x + y)^3 + sin(x + y)/2 - 1/y^k", tape);
  const CExpressions text = expressions_c(tape, {node, tape.argument(1)}, std::vector{-1.0});
  EXPECT_EQ(text.statements, "  const double a0 = u[0] + u[1];\n");
  EXPECT_EQ(text.values[0], "a0 * a0 * a0 + sin(a0) / 2.0 - 1.0 / (1.0 / u[1])");
  EXPECT_EQ(text.values[1], "u[1]");
}

}  // namespace
}  // namespace odecast
