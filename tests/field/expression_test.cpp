#include "odecast/field/expression.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "field/random_expression.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/functions.hpp"
#include "odecast/field/detail/rows_job.hpp"

namespace odecast {
namespace {

double value_of(const Tape& tape, int node, const std::vector<double>& arguments,
                const std::vector<double>& parameters = {}) {
  std::vector<double> values(index(tape.size()));
  evaluate(tape, arguments.data(), parameters.data(), values.data());
  return values[index(node)];
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
/// Of any two that are not numbers it does not matter which.
bool same(double a, double b) { return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b)); }

std::string message_of(const std::string& text, Tape tape = Tape({"x", "y"})) {
  try {
    parse_expression(text, tape);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "";
}

TEST(ExpressionTest, PrecedenceIsThatOfMathematics) {
  const double x = 3, y = 5, z = 2, k = 7;
  const struct {
    const char* text;
    double value;
  } table[] = {
      {"x + y*z", x + y * z},
      {"(x + y)*z", (x + y) * z},
      {"x - y - z", x - y - z},
      {"x - (y - z)", x - (y - z)},
      {"x/y/z", x / y / z},
      {"x/(y/z)", x / (y / z)},
      {"x/y*z", x / y * z},
      {"-x^2", -9},
      {"(-x)^2", 9},
      {"-x*y", -15},
      {"x*-y", -15},
      {"x--y", 8},
      {"x-+y", -2},
      {"--x", 3},
      {"2^3^2", 512},
      {"(2^3)^2", 64},
      {"2**3**2", 512},
      {"x^-1", 1 / x},
      {"x^-2*y", 1 / (x * x) * y},
      {"-2^2", -4},
      {"2^-x", 0.125},
      {"k*x^2/z", k * (x * x) / z},
      {" x\t+\ny ", x + y},
      {"1.5e1*.5", 7.5},
      {"2*pi", 6.283185307179586},
      {"abs(-x) + sqrt(y^2)", 8},
      {"log(exp(1)) + ln(exp(2))", 3},
      {"hill(x, z, 2)", x * x / (z * z + x * x)},
      {"logistic(0*x)", 0.5},
      {"sign(-x)*sign(y) + sign(0)", -1},
  };
  for (const auto& row : table) {
    Tape tape({"x", "y", "z"});
    const int node = parse_expression(row.text, tape);
    EXPECT_DOUBLE_EQ(value_of(tape, node, {x, y, z}, {k}), row.value) << row.text;
  }
}

TEST(ExpressionTest, FunctionsAreOurOwn) {
  const std::pair<const char*, double (*)(double)> all[] = {
      {"sin(x)", sine_of},        {"cos(x)", cosine_of},    {"tan(x)", tangent_of},
      {"exp(x)", exponential_of}, {"log(x)", logarithm_of}, {"tanh(x)", hyperbolic_tangent_of},
      {"sqrt(x)", std::sqrt},     {"abs(x)", std::fabs},    {"sign(x)", sign_of},
  };
  for (const auto& [text, function] : all)
    for (const double x : {0.3, -1.7, 4e5, 0.0}) {
      Tape tape({"x"});
      const int node = parse_expression(text, tape);
      EXPECT_TRUE(same(value_of(tape, node, {x}), function(x))) << text << ' ' << x;
    }
  Tape tape({"x"});
  const int node = parse_expression("x^2.5", tape);
  EXPECT_EQ(bits(value_of(tape, node, {1.7})), bits(power_of(1.7, 2.5)));
}

TEST(ExpressionTest, NamesAreArgumentsOrUnknownNumbers) {
  Tape tape({"x", "Temp (K)", "θ", "a\"b", "log", "x₁"});
  const int node =
      parse_expression("k*\"Temp (K)\" + `Temp (K)`*θ - \"a\"\"b\" + `a\"b`*log + β*x₁ + k", tape);
  const Occurring found = occurring(tape, node);
  EXPECT_EQ(found.arguments, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(tape.parameters(), (std::vector<std::string>{"k", "β"}));
  EXPECT_EQ(found.parameters, (std::vector<int>{0, 1}));
  EXPECT_TRUE(occurring(tape, parse_expression("log(2)", tape)).arguments.empty());
  // pi is a number unless it is a column.
  EXPECT_TRUE(tape.is(parse_expression("pi", tape), Op::number));
  Tape other({"pi"});
  EXPECT_TRUE(other.is(parse_expression("pi", other), Op::argument));
}

TEST(ExpressionTest, EqualPartsAreOneNode) {
  Tape tape({"x", "y"});
  const int first = parse_expression("sin(x*y) + sin(x*y)^2", tape);
  const int size = tape.size();
  EXPECT_EQ(parse_expression("sin( x * y ) + (sin((x*y)))**2", tape), first);
  EXPECT_EQ(tape.size(), size);
  EXPECT_EQ(expression_size(tape, first), 1 + 4 + 5);
  for (int i = 0; i < tape.size(); ++i) {
    if (tape[i].op == Op::argument || tape[i].op == Op::parameter) continue;
    EXPECT_LT(tape[i].left, i);
    EXPECT_LT(tape[i].right, i);
  }
}

TEST(ExpressionTest, WhatIsMadeIsSimplifiedALittle) {
  const std::pair<const char*, const char*> same_node[] = {
      {"0 + x", "x"},
      {"x - 0", "x"},
      {"0 - x", "-x"},
      {"1*x", "x"},
      {"x*1", "x"},
      {"x/1", "x"},
      {"0*x", "0"},
      {"0/x", "0"},
      {"x^1", "x"},
      {"x^0", "1"},
      {"1^x", "1"},
      {"--x", "x"},
      {"x + -y", "x - y"},
      {"x - -y", "x + y"},
      {"-x*y", "-(x*y)"},
      {"x*-y", "-(x*y)"},
      {"x/-y", "-(x/y)"},
      {"-x/-y", "x/y"},
      {"x*2", "2*x"},
      {"x + -2", "x - 2"},
      {"x - -2*y", "x + 2*y"},
      {"2*(3*x)", "6*x"},
      {"-(2*x)", "-2*x"},
      {"-1*x", "-x"},
      {"x^0.5", "sqrt(x)"},
      {"x^-3", "1/x^3"},
      {"2 + 3*4", "14"},
      {"x - -2/y", "x + 2/y"},
      {"2^10", "1024"},
      {"2*(3/x)", "6/x"},
      {"sqrt(16)*x", "4*x"},
      {"exp(0)", "1"},
  };
  for (const auto& [a, b] : same_node) {
    Tape tape({"x", "y"});
    EXPECT_EQ(parse_expression(a, tape), parse_expression(b, tape)) << a << " and " << b;
  }
  Tape tape({"x"});
  EXPECT_NE(parse_expression("x - x", tape), tape.number(0));
  // What is not finite is no number: it is left to be found where it is evaluated.
  EXPECT_FALSE(tape.is(parse_expression("log(-1)", tape), Op::number));
  EXPECT_FALSE(tape.is(parse_expression("1/0", tape), Op::number));
  EXPECT_FALSE(tape.is(parse_expression("0/0", tape), Op::number));
}

TEST(ExpressionTest, ErrorsShowThePlace) {
  const struct {
    const char *text, *caret, *says;
  } table[] = {
      {"x + * y", "\n  x + * y\n      ^\n", "found '*', expected a number, a name or '('"},
      {"2x", "\n  2x\n   ^\n", "Write * between factors"},
      {"x y", "\n  x y\n    ^\n", "found 'y', expected an operator"},
      {"(x + y", "\n  (x + y\n  ^\n", "a '(' that is not closed"},
      {"x + y)", "\n  x + y)\n       ^\n", "Open the bracket"},
      {"x +", "\n  x +\n     ^\n", "found the end of the text"},
      {"", "character 1", "Write an expression"},
      {"y*sine(x)", "\n  y*sine(x)\n    ^\n", "The nearest is sin;"},
      {"y*x(3)", "\n  y*x(3)\n     ^\n", "Write * between factors: x*(…)."},
      {"exp + 1", "\n  exp + 1\n  ^\n", "Write exp(x)."},
      {"hill(x, 2)", "\n  hill(x, 2)\n  ^\n", "2 arguments of 'hill', expected 3"},
      {"sin(x, y)", "\n  sin(x, y)\n  ^\n", "2 arguments of 'sin', expected 1"},
      {"1e999*x", "\n  1e999*x\n  ^\n", "the number '1e999'"},
      {"θβ + \"z\"", "\n  θβ + \"z\"\n       ^\n", "The nearest is 'x'"},
      {"x + `y", "\n  x + 'y\n      ^\n", "a quote that is not closed"},
      {"x − y", "\n  x − y\n    ^\n", "found '−', expected an operator"},
      {"x + \xff", "\n  x + ?\n      ^\n", "a byte that is no UTF-8"},
      {"1,5*x", "\n  1,5*x\n   ^\n", "A decimal has a point"},
      {"x ? y", "\n  x ? y\n    ^\n", "found '?'"},
      {"x^^2", "\n  x^^2\n    ^\n", "found '^'"},
      {"()", "\n  ()\n   ^\n", "found ')'"},
      {"x\n+ $", "\n  x?+ $\n      ^\n", "found '$'"},
  };
  for (const auto& row : table) {
    const std::string message = message_of(row.text);
    EXPECT_NE(message.find(row.caret), message.npos) << row.text << ":\n" << message;
    EXPECT_NE(message.find(row.says), message.npos) << row.text << ":\n" << message;
  }
  // Of a long text what is around the place.
  const std::string message = message_of(std::string(300, '+') + "x + $" + std::string(300, 'x'));
  EXPECT_NE(message.find("inside each other"), message.npos) << message;
  std::string sum = "x";
  for (int i = 0; i < 100; ++i) sum += " + x";
  const std::string longer = message_of(sum + " $ y");
  const std::size_t line = longer.find("\n  …"), caret = longer.rfind('^');
  ASSERT_NE(line, longer.npos);
  const std::size_t end = longer.find('\n', line + 1);
  // The ellipsis has three bytes.
  EXPECT_EQ(longer[line + 1 + (caret - end - 1) + 2], '$') << longer;
}

TEST(ExpressionTest, NothingIsUnbounded) {
  EXPECT_NE(message_of(std::string(100'000, '(')).find("bytes"), std::string::npos);
  EXPECT_NE(message_of(std::string(4000, '(')).find("inside each other"), std::string::npos);
  EXPECT_NE(message_of(std::string(4000, '-') + "x").find("inside each other"), std::string::npos);
  std::string powers = "x";
  for (int i = 0; i < 1000; ++i) powers += "^x";
  EXPECT_NE(message_of(powers).find("inside each other"), std::string::npos);
  std::string calls;
  for (int i = 0; i < 700; ++i) calls += "sin(";
  EXPECT_NE(message_of(calls).find("inside each other"), std::string::npos);
  // Shared parts that are 2^60 nodes as a tree.
  std::string hills = "x";
  for (int i = 0; i < 60; ++i) hills = "hill(" + hills + ",y,n)";
  EXPECT_NE(message_of(hills).find("4096"), std::string::npos);
  // The longest that may be: its sums are deep as a tree.
  std::string sum = "x";
  while (sum.size() + 2 <= static_cast<std::size_t>(kLongestExpression)) sum += "+y";
  Tape tape({"x", "y"});
  const int node = parse_expression(sum, tape);
  EXPECT_EQ(value_of(tape, node, {1, 1}), (kLongestExpression - 1) / 2 + 1);
  EXPECT_TRUE(tape.is_number(slope(tape, node, tape.argument(0)), 1));
}

TEST(ExpressionTest, WhatIsAcceptedIsReadBack) {
  // Texts have more brackets than what was typed: a sign in a power stands in some.
  for (const auto& [first, last] : {std::pair<std::string, std::string>{"2**-", ""},
                                    {"-2**", ""},
                                    {"x*-", ""},
                                    {"x-", ""},
                                    {"-(x+", ")"},
                                    {"sin(-", ")"},
                                    {"hill(", ",-2,-3)"},
                                    {"(", ")^-2"}}) {
    int accepted = 0;
    for (int n = 1; n <= 220; ++n) {
      std::string text;
      for (int i = 0; i < n; ++i) text += first;
      text += "y";
      for (int i = 0; i < n; ++i) text += last;
      Tape tape({"x", "y"});
      try {
        const int node = parse_expression(text, tape);
        const std::string written = expression_text(tape, node);
        if (written.size() > static_cast<std::size_t>(kLongestExpression)) continue;
        EXPECT_EQ(parse_expression(written, tape), node) << text;
        ++accepted;
      } catch (const Error& error) {
        EXPECT_GT(n, 3) << error.what();
        EXPECT_EQ(message_of(text), error.what());
      }
    }
    EXPECT_GT(accepted, 3) << first;
  }
}

TEST(ExpressionTest, SlopesFollowTheRules) {
  const struct {
    const char *text, *slope;
  } table[] = {
      {"7", "0"},
      {"y", "0"},
      {"x", "1"},
      {"3*x", "3"},
      {"x*y", "y"},
      {"x^2", "2*x"},
      {"x^5*y", "5*x^4*y"},
      {"1/x", "-1/x/x"},
      {"y/x", "-(y/x/x)"},
      {"x/(k + x)", "(1 - x/(k + x))/(k + x)"},
      {"sin(x)", "cos(x)"},
      {"cos(2*x)", "-2*sin(2*x)"},
      {"tan(x)", "1 + tan(x)^2"},
      {"exp(-x)", "-exp(-x)"},
      {"log(x)", "1/x"},
      {"sqrt(x)", "1/(2*sqrt(x))"},
      {"tanh(x)", "1 - tanh(x)^2"},
      {"abs(x)", "sign(x)"},
      {"sign(x)", "0"},
      {"x^n", "n*x^(n - 1)"},
      {"x^2.5", "2.5*x^1.5"},
      {"k^x", "k^x*log(k)"},
  };
  for (const auto& row : table) {
    Tape tape({"x", "y"});
    const int node = parse_expression(row.text, tape);
    const int d = slope(tape, node, tape.argument(0));
    const int expected = parse_expression(row.slope, tape);
    std::vector<int> a = {d}, b = {expected};
    EXPECT_EQ(extracted(tape, a).nodes(), extracted(tape, b).nodes())
        << row.text << ": " << expression_text(tape, d) << ", not " << row.slope;
  }
  Tape tape({"x"});
  const int hill = parse_expression("hill(x, k, n)", tape);
  const int dn = slope(tape, hill, tape.parameter("n"));
  EXPECT_EQ(value_of(tape, dn, {0}, {0.5, 2.5}), 0);  // and not 0 × log 0
}

/// Five points, fourth order: the error of differences is h⁴ f⁽⁵⁾/30 and ε f/h; where the step
/// makes neither small (poles, kinks, cancellation) two steps do not agree, and nothing can be
/// said.
TEST(ExpressionTest, SlopesAgreeWithDifferences) {
  RandomExpressions random(3);
  int compared = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Tape tape({"x", "y"});
    tape.parameter("p0"), tape.parameter("p1"), tape.parameter("p2");
    const int node = random.draw(tape, 4);
    const bool argument = random.below(2) == 0;
    const int k = random.below(2);
    const int leaf = argument ? tape.argument(k) : tape.parameter("p" + std::to_string(k));
    const int d = slope(tape, node, leaf);
    const std::vector<double> u = {0.2 + random.stream.uniform(), 0.2 + random.stream.uniform()};
    const std::vector<double> c = {0.2 + random.stream.uniform(), 1 + random.stream.uniform(), 0.7};
    const auto moved = [&](double h) {
      auto v = u, w = c;
      (argument ? v : w)[index(k)] += h;
      return value_of(tape, node, v, w);
    };
    const auto difference = [&](double h) {
      return (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
    };
    std::vector<double> values(index(tape.size()));
    evaluate(tape, u.data(), c.data(), values.data());
    if (!std::all_of(values.begin(), values.begin() + node + 1,
                     [](double x) { return std::isfinite(x); }))
      continue;  // powers of infinity have values but no slopes
    const double one = difference(1e-3), other = difference(5e-4), exact = value_of(tape, d, u, c);
    const double scale = std::abs(one) + 1e-6 * std::abs(moved(0)) + 1e-12;
    if (!(std::abs(one - other) < 1e-7 * scale)) continue;
    // The one with half of the step has an error 16 times smaller, or one of rounding twice as
    // large: a tenth of what was asked of their agreement is left in no case.
    EXPECT_NEAR(exact, other, 3e-7 * scale) << expression_text(tape, node);
    ++compared;
  }
  EXPECT_GT(compared, 2000);
}

TEST(ExpressionTest, RowsHaveTheBitsOfOne) {
  RandomExpressions random(5);
  for (int trial = 0; trial < 300; ++trial) {
    Tape tape({"x", "y", "z"});
    tape.parameter("p0"), tape.parameter("p1"), tape.parameter("p2");
    const std::vector<int> nodes = {random.draw(tape, 5), random.draw(tape, 5)};
    const std::vector<double> c = {0.4, -1.3, 2.2};
    Matrix rows(1 + random.below(20), 3);
    for (Eigen::Index i = 0; i < rows.size(); ++i) rows.data()[i] = 3 * random.stream.normal();
    const Matrix results = evaluate_rows(tape, nodes, rows, c);
    ASSERT_EQ(results.rows(), rows.rows());
    for (Eigen::Index i = 0; i < rows.rows(); ++i)
      for (std::size_t k = 0; k < 2; ++k)
        EXPECT_TRUE(same(results(i, static_cast<Eigen::Index>(k)),
                         value_of(tape, nodes[k], {rows(i, 0), rows(i, 1), rows(i, 2)}, c)))
            << expression_text(tape, nodes[k]);
  }
}

struct OneIsa {
  const char* name;
  bool here;
  void (*run)(const RowsJob&);
};
#define ODECAST_TEST_ISA(isa, has, ...) {#isa, has, isa::run_rows},

/// Every function in packs of every instruction set of this machine, and one by one.
TEST(ExpressionTest, EveryInstructionSetHasTheSameBits) {
  const OneIsa isas[] = {ODECAST_ISAS(ODECAST_TEST_ISA, )};
  const char* texts[] = {"sin(x)",  "cos(x)",  "tan(x)", "exp(x)",  "log(x)",
                         "sqrt(x)", "tanh(x)", "abs(x)", "sign(x)", "x^y",
                         "x^3",     "x/y",     "-x",     "x*y + x", "x^y*log(x)"};
  Tape tape({"x", "y"});
  std::vector<int> roots;
  for (const char* text : texts) roots.push_back(parse_expression(text, tape));
  constexpr long kRows = 100'000;
  std::vector<double> rows(2 * kRows);
  Stream stream(9, Purpose::evaluation, 0);
  const double inf = std::numeric_limits<double>::infinity();
  const double odd[] = {0, -0.0, inf, -inf, std::nan(""), 5e-324, -5e-324, 0x1p20, 0x1.8p1023, 1};
  for (long i = 0; i < kRows; ++i) {
    double* x = rows.data() + 2 * i;
    const int wide = static_cast<int>(stream.uniform() * 40) - 20;
    x[0] = i % 10 == 0 ? odd[i / 10 % 10] : std::ldexp(stream.normal(), i % 3 ? wide : 0);
    x[1] = i % 10 == 1 ? odd[i / 10 % 10] : i % 2 ? 5 * stream.normal() : std::floor(x[0]);
    if (i % 7 == 0) x[0] = std::ldexp(x[0], 50 * wide);
  }
  std::vector<double> expected(roots.size() * kRows), values(index(tape.size()));
  for (std::size_t i = 0; i < kRows; ++i) {
    evaluate(tape, rows.data() + 2 * i, nullptr, values.data());
    for (std::size_t k = 0; k < roots.size(); ++k)
      expected[i * roots.size() + k] = values[index(roots[k])];
  }
  alignas(64) double work[8 * 64];
  ASSERT_LE(rows_work_size(tape.size(), 2, 0), 8 * 64);
  int tried = 0;
  for (const OneIsa& isa : isas) {
    if (!isa.here) continue;
    ++tried;
    std::vector<double> results(expected.size());
    isa.run(RowsJob{tape.nodes().data(), tape.size(), 2, 0, rows.data(), kRows, nullptr,
                    roots.data(), static_cast<int>(roots.size()), results.data(), work});
    long different = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (!same(expected[i], results[i]) && ++different < 5)
        ADD_FAILURE() << isa.name << ' ' << texts[i % roots.size()] << " at "
                      << rows[2 * (i / roots.size())] << ", " << rows[2 * (i / roots.size()) + 1]
                      << ": " << results[i] << ", not " << expected[i];
    EXPECT_EQ(different, 0) << isa.name;
  }
  EXPECT_GE(tried, 1);
}

TEST(ExpressionTest, ExtractedTapesHoldWhatIsNeeded) {
  RandomExpressions random(8);
  for (int trial = 0; trial < 500; ++trial) {
    Tape tape({"x", "y"});
    for (int i = 0; i < 3; ++i) tape.parameter("p" + std::to_string(i));
    random.draw(tape, 4);
    const int node = random.draw(tape, 4);
    std::vector<int> nodes = {node}, own = {node};
    const Tape lean = extracted(tape, nodes);
    EXPECT_LE(lean.size(), tape.size());
    EXPECT_EQ(nodes[0], lean.size() - 1);
    const std::vector<double> u = {0.3, -1.1}, c = {0.5, 2, -0.25};
    EXPECT_TRUE(same(value_of(lean, nodes[0], u, c), value_of(tape, node, u, c)));
    const Tape valued = with_values(tape, own, c);
    EXPECT_TRUE(occurring(valued, own[0]).parameters.empty());
  }
}

}  // namespace
}  // namespace odecast
