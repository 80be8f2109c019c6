// Expressions of any bytes: read or refused with an Error. What is read is written and read back as
// the same node, and has slopes, values and every kind of print.
#include "odecast/field/expression.hpp"

#include "fuzz/fuzz.hpp"
#include "odecast/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace odecast;
  const fuzz::SecondAtMost limit;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  Tape tape({"x", "y", "t", "Temp (K)", "a\"b`c", "θ"});
  int node = -1;
  try {
    node = parse_expression(text, tape);
  } catch (const Error&) {
    return 0;
  }
  const std::string written = expression_text(tape, node);
  if (written.size() <= kLongestExpression) {
    fuzz::require(parse_expression(written, tape) == node);
    Tape other(tape.arguments());
    for (const std::string& name : tape.parameters()) other.parameter(name);
    std::vector<int> own = {node}, theirs = {parse_expression(written, other)};
    fuzz::require(extracted(tape, own).nodes() == extracted(other, theirs).nodes());
  }
  std::vector<int> nodes = {node};
  const Occurring names = occurring(tape, node);
  for (const int k : names.arguments) nodes.push_back(slope(tape, node, tape.argument(k)));
  for (const int k : names.parameters) {
    const std::string name = tape.parameters()[index(k)];
    nodes.push_back(slope(tape, node, tape.parameter(name)));
  }
  const std::vector<double> values(tape.parameters().size(), 0.75);
  const double u[] = {1.5, -0.25, 0, 300, 1e-300, 3};
  std::vector<double> all(index(tape.size()));
  evaluate(tape, u, values.data(), all.data());
  const Matrix rows = Eigen::Map<const Matrix>(u, 1, 6);
  const Matrix packed = evaluate_rows(tape, nodes, rows, values);
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const double a = all[index(nodes[k])], b = packed(0, static_cast<Eigen::Index>(k));
    fuzz::require(a == b || (std::isnan(a) && std::isnan(b)));
  }
  for (const auto& given : {std::vector<double>{}, values}) {
    fuzz::require(!expression_latex(tape, node, given).empty());
    fuzz::require(!expression_mathml(tape, node, given).empty());
    fuzz::require(expressions_c(tape, {node}, given).values.size() == 1);
  }
  return 0;
}
