#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/field/detail/expression_names.hpp"
#include "odecast/field/expression.hpp"

namespace odecast {
namespace {

/// How tightly what was written last holds together.
enum Strength { kSum = 1, kProduct, kPower, kAtom };

/// What is written of a node so far.
struct Written {
  std::string text;
  Strength strength = kAtom;
  bool minus = false;   ///< begins with one
  bool number = false;  ///< the first factor is a number
};

const FunctionName& function_name(Op op) {
  return *std::find_if(kFunctionNames.begin(), kFunctionNames.end(),
                       [&](const FunctionName& f) { return f.op == op; });
}

bool is_named(const Tape& tape, std::string_view name) {
  const auto& a = tape.arguments();
  const auto& p = tape.parameters();
  return std::find(a.begin(), a.end(), name) != a.end() ||
         std::find(p.begin(), p.end(), name) != p.end();
}

/// π as such where nothing else is called so.
bool is_pi(const Tape& tape, double size) {
  return size == std::numbers::pi && !is_named(tape, kPiName);
}

void bound_size(const Tape& tape, int node) {
  constexpr double most = 100'000;
  if (expression_size(tape, node) > most)
    throw_usage({"expression", "more than 100000 operations, numbers and names", "fewer",
                 "Print its parts."});
}

/// Only what the nodes need, with values for the parameters where there are any.
Tape lean_tape(const Tape& tape, std::vector<int>& nodes, std::span<const double> values) {
  for (const int node : nodes) bound_size(tape, node);
  if (values.empty()) return extracted(tape, nodes);
  const Tape valued = with_values(tape, nodes, values);
  return extracted(valued, nodes);
}

bool has_operands(const Node& node) {
  return node.op != Op::number && node.op != Op::argument && node.op != Op::parameter;
}

/// Nodes one after another; `write(node, left, right)` gets what was written of the operands, which
/// is moved where nobody else needs it: a long sum costs its length and not the square of that.
template <class Write>
std::string written(const Tape& whole, int node, std::span<const double> values,
                    const Write& write) {
  std::vector<int> nodes = {node};
  const Tape tape = lean_tape(whole, nodes, values);
  std::vector<int> uses(index(tape.size()), 0);
  for (const Node& of : tape.nodes()) {
    if (!has_operands(of)) continue;
    ++uses[index(of.left)];
    if (of.right >= 0) ++uses[index(of.right)];
  }
  std::vector<Written> all(index(tape.size()));
  const auto take = [&](int i) {
    if (--uses[index(i)] > 0) return all[index(i)];
    return std::move(all[index(i)]);
  };
  for (int i = 0; i < tape.size(); ++i) {
    const Node& of = tape[i];
    Written left, right;
    if (has_operands(of)) left = take(of.left);
    if (has_operands(of) && of.right >= 0) right = take(of.right);
    all[index(i)] = write(tape, of, std::move(left), std::move(right));
  }
  return std::move(all[index(nodes[0])].text);
}

/// In brackets where it holds together less than `least`, or begins with a minus that may not
/// stand.
std::string held(Written piece, Strength least, bool minus_may_stand, std::string_view open = "(",
                 std::string_view shut = ")") {
  if (piece.strength >= least && (minus_may_stand || !piece.minus)) return std::move(piece.text);
  return std::string(open) + piece.text + std::string(shut);
}

std::string appended(std::string text, std::string_view middle, std::string_view end) {
  text += middle;
  text += end;
  return text;
}

// ------------------------------------------------------------------------------------------ text

std::string name_text(const std::string& name) {
  if (is_plain_name(name)) return name;
  const char quote = name.find('"') == name.npos || name.find('`') != name.npos ? '"' : '`';
  std::string text(1, quote);
  for (const char c : name) {
    if (c == quote) text += c;
    text += c;
  }
  return text + quote;
}

Written text_of_number(const Tape& tape, double value) {
  const double size = std::abs(value);
  const std::string digits = is_pi(tape, size) ? std::string(kPiName) : format_number(size);
  return {(value < 0 ? "-" : "") + digits, kAtom, value < 0, true};
}

Written write_text(const Tape& tape, const Node& of, Written a, Written b) {
  const auto pair = [&](std::string_view sign, Strength strength, Strength right) -> Written {
    const bool minus = a.minus, number = strength == kProduct && a.number;
    return {appended(held(std::move(a), strength, true), sign, held(std::move(b), right, false)),
            strength, minus, number};
  };
  switch (of.op) {
    case Op::number: return text_of_number(tape, of.value);
    case Op::argument: return {name_text(tape.arguments()[index(of.left)])};
    case Op::parameter: return {name_text(tape.parameters()[index(of.left)])};
    case Op::add: return pair(" + ", kSum, kProduct);
    case Op::subtract: return pair(" - ", kSum, kProduct);
    case Op::multiply: return pair("*", kProduct, kPower);
    case Op::divide: return pair("/", kProduct, kPower);
    case Op::negate:  // -2*x*y would be (-2)*x*y
      return {"-" + held(std::move(a), a.number ? kPower : kProduct, false), kProduct, true};
    case Op::whole_power:
      return {appended(held(std::move(a), kAtom, false), "^", format_number(of.value)), kPower};
    case Op::power:
      return {appended(held(std::move(a), kAtom, false), "^", held(std::move(b), kPower, false)),
              kPower};
    case Op::power_logarithm: {
      const std::string log = "*log(" + a.text + ")";
      return {
          appended(held(std::move(a), kAtom, false), "^", held(std::move(b), kPower, false)) + log,
          kProduct};
    }
    default: return {std::string(function_name(of.op).name) + "(" + a.text + ")"};
  }
}

// ----------------------------------------------------------------------------------------- LaTeX

/// "1.5", or for 1.5e-07 the number and the exponent.
std::pair<std::string, std::string> mantissa_and_exponent(double size) {
  const std::string digits = format_number(size);
  const std::size_t e = digits.find('e');
  if (e == digits.npos) return {digits, ""};
  std::string exponent = digits.substr(e + 1);
  const bool negative = exponent.starts_with('-');
  exponent.erase(0, exponent.find_first_not_of("+-0"));
  return {digits.substr(0, e), (negative ? "-" : "") + exponent};
}

Written write_latex(const Tape& tape, const Node& of, Written a, Written b) {
  const auto bracketed = [](Written piece, Strength least, bool minus) {
    return held(std::move(piece), least, minus, "\\left(", "\\right)");
  };
  const auto raised = [&](Written base, const std::string& exponent) {
    return bracketed(std::move(base), kAtom, false) + "^{" + exponent + "}";
  };
  switch (of.op) {
    case Op::number: {
      const bool minus = of.value < 0;
      const double size = std::abs(of.value);
      const std::string sign = minus ? "-" : "";
      if (is_pi(tape, size)) return {sign + "\\pi", kAtom, minus};
      const auto [digits, exponent] = mantissa_and_exponent(size);
      if (exponent.empty()) return {sign + digits, kAtom, minus, true};
      return {sign + digits + " \\cdot 10^{" + exponent + "}", kProduct, minus, true};
    }
    case Op::argument: return {latex_name(tape.arguments()[index(of.left)])};
    case Op::parameter: return {latex_name(tape.parameters()[index(of.left)])};
    case Op::add:
    case Op::subtract: {
      const bool minus = a.minus;
      return {appended(bracketed(std::move(a), kSum, true), of.op == Op::add ? " + " : " - ",
                       bracketed(std::move(b), of.op == Op::add ? kSum : kProduct, false)),
              kSum, minus};
    }
    case Op::multiply: {
      const bool minus = a.minus, number = a.number, digits = b.number && !b.minus;
      return {appended(bracketed(std::move(a), kProduct, true), digits ? " \\cdot " : "\\,",
                       bracketed(std::move(b), kProduct, false)),
              kProduct, minus, number};
    }
    case Op::divide: return {"\\frac{" + a.text + "}{" + b.text + "}", kPower};
    case Op::negate: return {"-" + bracketed(std::move(a), kProduct, false), kProduct, true};
    case Op::whole_power: return {raised(std::move(a), format_number(of.value)), kPower};
    case Op::power: return {raised(std::move(a), b.text), kPower};
    case Op::power_logarithm: {
      const std::string log = "\\,\\ln\\left(" + a.text + "\\right)";
      return {raised(std::move(a), b.text) + log, kProduct};
    }
    case Op::exponential: return {"e^{" + a.text + "}", kPower};
    case Op::square_root: return {"\\sqrt{" + a.text + "}"};
    case Op::absolute: return {"\\left|" + a.text + "\\right|"};
    default: return {std::string(function_name(of.op).latex) + "\\left(" + a.text + "\\right)"};
  }
}

// ---------------------------------------------------------------------------------------- MathML

std::string element(std::string_view tag, std::string_view inside) {
  return "<" + std::string(tag) + ">" + std::string(inside) + "</" + std::string(tag) + ">";
}

std::string mathml_name(const std::string& name) {
  std::string text;
  for (const char c : printable(name)) {
    switch (c) {
      case '&': text += "&amp;"; break;
      case '<': text += "&lt;"; break;
      case '>': text += "&gt;"; break;
      default: text += c;
    }
  }
  return element("mi", text);
}

Written write_mathml(const Tape& tape, const Node& of, Written a, Written b) {
  const std::string open = "<mrow><mo>(</mo>", shut = "<mo>)</mo></mrow>";
  const std::string minus_sign = "<mo>-</mo>", applied = "<mo>&#x2061;</mo>";
  const auto bracketed = [&](Written piece, Strength least, bool minus) {
    return held(std::move(piece), least, minus, open, shut);
  };
  const auto row = [](std::string_view inside) { return element("mrow", inside); };
  const auto raised = [&](Written base, std::string_view exponent) {
    return element("msup", row(bracketed(std::move(base), kAtom, false)) + row(exponent));
  };
  switch (of.op) {
    case Op::number: {
      const bool minus = of.value < 0;
      const double size = std::abs(of.value);
      const std::string sign = minus ? minus_sign : "";
      if (is_pi(tape, size)) return {sign + "<mi>π</mi>", kAtom, minus};
      const auto [digits, exponent] = mantissa_and_exponent(size);
      if (exponent.empty()) return {sign + element("mn", digits), kAtom, minus, true};
      std::string power = exponent;
      if (power.starts_with('-'))
        power = minus_sign + element("mn", power.substr(1));
      else
        power = element("mn", power);
      return {
          sign + element("mn", digits) + "<mo>⋅</mo>" + element("msup", "<mn>10</mn>" + row(power)),
          kProduct, minus, true};
    }
    case Op::argument: return {mathml_name(tape.arguments()[index(of.left)])};
    case Op::parameter: return {mathml_name(tape.parameters()[index(of.left)])};
    case Op::add:
    case Op::subtract: {
      const bool minus = a.minus;
      return {appended(bracketed(std::move(a), kSum, true),
                       of.op == Op::add ? "<mo>+</mo>" : minus_sign,
                       bracketed(std::move(b), of.op == Op::add ? kSum : kProduct, false)),
              kSum, minus};
    }
    case Op::multiply: {
      const bool minus = a.minus, number = a.number, digits = b.number && !b.minus;
      return {appended(bracketed(std::move(a), kProduct, true),
                       digits ? "<mo>⋅</mo>" : "<mo>&#x2062;</mo>",
                       bracketed(std::move(b), kProduct, false)),
              kProduct, minus, number};
    }
    case Op::divide: return {element("mfrac", row(a.text) + row(b.text)), kPower};
    case Op::negate: return {minus_sign + bracketed(std::move(a), kProduct, false), kProduct, true};
    case Op::whole_power:
      return {raised(std::move(a), element("mn", format_number(of.value))), kPower};
    case Op::power: return {raised(std::move(a), b.text), kPower};
    case Op::power_logarithm: {
      const std::string log =
          "<mo>&#x2062;</mo><mrow><mi>ln</mi>" + applied + open + a.text + shut + "</mrow>";
      return {raised(std::move(a), b.text) + log, kProduct};
    }
    case Op::exponential: return {element("msup", "<mi>e</mi>" + row(a.text)), kPower};
    case Op::square_root: return {element("msqrt", a.text)};
    case Op::absolute: return {row("<mo>|</mo>" + a.text + "<mo>|</mo>")};
    default: {
      const std::string_view name = of.op == Op::logarithm ? "ln"
                                    : of.op == Op::sign    ? "sgn"
                                                           : function_name(of.op).name;
      return {row(element("mi", name) + applied + open + a.text + shut)};
    }
  }
}

// --------------------------------------------------------------------------------------------- C

std::string c_digits(double size) {
  const std::string digits = format_number(size);
  return digits.find_first_of(".e") == digits.npos ? digits + ".0" : digits;
}

Written write_c(const Node& of, Written a, Written b) {
  const auto pair = [&](std::string_view sign, Strength strength, Strength right) -> Written {
    const bool minus = a.minus;
    return {appended(held(std::move(a), strength, true), sign, held(std::move(b), right, false)),
            strength, minus};
  };
  switch (of.op) {
    case Op::number:
      return {(of.value < 0 ? "-" : "") + c_digits(std::abs(of.value)), kAtom, of.value < 0};
    case Op::argument: return {"u[" + std::to_string(of.left) + "]"};
    case Op::parameter: return {"c[" + std::to_string(of.left) + "]"};
    case Op::add: return pair(" + ", kSum, kProduct);
    case Op::subtract: return pair(" - ", kSum, kProduct);
    case Op::multiply: return pair(" * ", kProduct, kPower);
    case Op::divide: return pair(" / ", kProduct, kPower);
    case Op::negate: return {"-" + held(std::move(a), kPower, false), kProduct, true};
    case Op::whole_power: {
      const std::string factor = held(std::move(a), kAtom, false);
      std::string product = factor;
      for (int i = 1; i < static_cast<int>(of.value); ++i) product += " * " + factor;
      return {product, kProduct};
    }
    case Op::power: return {"pow(" + a.text + ", " + b.text + ")"};
    case Op::power_logarithm:
      return {"(" + a.text + " == 0.0 && " + b.text + " > 0.0 ? 0.0 : pow(" + a.text + ", " +
              b.text + ") * log(" + a.text + "))"};
    case Op::sign: return {"((double)((" + a.text + " > 0.0) - (" + a.text + " < 0.0)))"};
    default: return {std::string(function_name(of.op).c) + "(" + a.text + ")"};
  }
}

}  // namespace

std::string expression_text(const Tape& tape, int node, std::span<const double> values) {
  return written(tape, node, values, write_text);
}
std::string expression_latex(const Tape& tape, int node, std::span<const double> values) {
  return written(tape, node, values, write_latex);
}
std::string expression_mathml(const Tape& tape, int node, std::span<const double> values) {
  return element("mrow", written(tape, node, values, write_mathml));
}

CExpressions expressions_c(const Tape& whole, const std::vector<int>& which,
                           std::span<const double> values) {
  std::vector<int> nodes = which;
  const Tape tape = lean_tape(whole, nodes, values);
  std::vector<int> uses(index(tape.size()), 0);
  for (const int node : nodes) ++uses[index(node)];
  for (const Node& of : tape.nodes()) {
    if (!has_operands(of)) continue;
    const bool several = of.op == Op::whole_power || of.op == Op::sign ||
                         of.op == Op::power_logarithm;  // writes its operands several times
    uses[index(of.left)] += several ? 2 : 1;
    if (of.right >= 0) uses[index(of.right)] += several ? 2 : 1;
  }
  CExpressions result;
  std::vector<Written> all(index(tape.size()));
  int names = 0;
  for (int i = 0; i < tape.size(); ++i) {
    const Node& of = tape[i];
    if (!has_operands(of)) {
      all[index(i)] = write_c(of, {}, {});
      continue;
    }
    Written piece =
        write_c(of, all[index(of.left)], of.right >= 0 ? all[index(of.right)] : Written{});
    if (uses[index(i)] > 1) {
      const std::string name = "a" + std::to_string(names++);
      result.statements += "  const double " + name + " = " + piece.text + ";\n";
      piece = {name};
    }
    all[index(i)] = std::move(piece);
  }
  for (const int node : nodes) result.values.push_back(all[index(node)].text);
  return result;
}

}  // namespace odecast
