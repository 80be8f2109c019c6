#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/field/node.hpp"

namespace odecast {

/// Expressions that share their parts. A node stands behind its operands, and equal nodes are one:
/// an expression is the number of a node, and equal numbers are equal expressions.
///
/// What is made is simplified a little, always in the same way: numbers are folded where the result
/// is finite; 0 + x, 1 x, x / 1, x^1 are x; 0 x, 0 / x are 0 and x^0 is 1; signs move outwards
/// (-x y is -(x y), x + -y is x - y, x - -2 y is x + 2 y); numbers stand in front of products and
/// become one; x^0.5 is √x; x^-n is 1/x^n for n up to 16, by multiplication.
class Tape {
 public:
  /// Of these arguments: names of columns, inputs, the time.
  explicit Tape(std::vector<std::string> arguments = {}) : arguments_(std::move(arguments)) {}

  const std::vector<std::string>& arguments() const { return arguments_; }
  /// Names of the unknown numbers, in the order in which they came.
  const std::vector<std::string>& parameters() const { return parameters_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& operator[](int node) const { return nodes_[static_cast<std::size_t>(node)]; }

  int number(double value);  ///< a finite one
  int argument(int which);
  /// The unknown number of that name, a new one where there is none yet.
  int parameter(const std::string& name);
  /// An operation on nodes of this tape; whole_power is made as power.
  int make(Op op, int left, int right = -1);

  bool is(int node, Op op) const { return (*this)[node].op == op; }
  bool is_number(int node, double value) const {
    return is(node, Op::number) && (*this)[node].value == value;
  }

 private:
  friend Tape extracted(const Tape& tape, std::vector<int>& nodes);
  struct Hash {
    std::size_t operator()(const Node& node) const;
  };
  int add(const Node& node);
  int fold(Op op, int left, int right);
  int make_sum(Op op, int left, int right);
  int make_product(int left, int right);
  int make_quotient(int left, int right);
  int make_power(int left, int right);
  int make_negative(int node);
  bool is_negative_number(int node) const;
  /// The number that a product or quotient begins with, at most 16 factors deep; -1 where it begins
  /// with another. A number is its own.
  int first_factor(int node) const;
  /// With the sign of that number turned.
  int with_other_sign(int node);
  /// x of -x, and 2 x of -2 x; -1 where there is no minus in front.
  int without_minus(int node);

  std::vector<std::string> arguments_, parameters_;
  std::vector<Node> nodes_;
  std::unordered_map<Node, int, Hash> place_;
};

/// Bounds of what is read: bytes, brackets and powers inside each other, nodes counted as a tree.
constexpr int kLongestExpression = 4096, kDeepestExpression = 200, kLargestExpression = 4096;

/// Adds what a text says to a tape and returns its node.
///
///   sum      product + product - product …
///   product  factor * factor / factor …
///   factor   - factor, or value ^ factor (or **): -x^2 is -(x^2), x^y^z is x^(y^z)
///   value    a number, pi, a name, "a name" or `a name` (a quote inside it doubled), f(sum), (sum)
///
/// f: sin cos tan exp log (or ln) sqrt tanh abs sign; hill(x, k, n) = x^n/(k^n + x^n) and
/// logistic(x) = 1/(1 + exp(-x)). A name of an argument is that argument; any other name that
/// stands without quotes is an unknown number. Names without quotes have letters, digits and _.
/// Throws Error (usage) with the place under a caret; `where` says what the text is.
int parse_expression(std::string_view text, Tape& tape, const std::string& where = "expression");

/// ∂node/∂leaf, exact, as a node of the same tape; leaf is an argument or parameter.
int slope(Tape& tape, int node, int leaf);

/// The values of all nodes: values[tape.size()].
void evaluate(const Tape& tape, const double* arguments, const double* parameters, double* values);

/// The values of some nodes (columns) at many points, whose coordinates are the rows of
/// `arguments`: eight rows at a time, the same bits as evaluate().
Matrix evaluate_rows(const Tape& tape, const std::vector<int>& nodes, const Matrix& arguments,
                     const std::vector<double>& parameters);

/// The number of nodes as a tree, where what is shared counts each time: x^2 + x^2 has 5. Infinite
/// where no double holds it.
double expression_size(const Tape& tape, int node);

/// How many brackets, signs and powers the node's text has inside each other, at the most: that
/// text is read back where this is at most kDeepestExpression.
int expression_depth(const Tape& tape, int node);

/// Which arguments and parameters occur, in ascending order.
struct Occurring {
  std::vector<int> arguments, parameters;
};
Occurring occurring(const Tape& tape, int node);

/// A tape of what these nodes need and no more, the first need first, with the same arguments and
/// parameters; the numbers in `nodes` become those of the new tape. It does not depend on what else
/// the old one holds, nor on the order in which that was made.
Tape extracted(const Tape& tape, std::vector<int>& nodes);

/// These nodes made on another tape, or the same, simplified anew, with nodes of that in the places
/// of arguments and parameters; those that do not occur may be -1. Returns where they are.
std::vector<int> copied(const Tape& from, std::vector<int> nodes, Tape& to,
                        std::span<const int> arguments, std::span<const int> parameters);

/// The same with values in the places of the parameters, simplified anew.
Tape with_values(const Tape& tape, std::vector<int>& nodes, std::span<const double> parameters);

/// An expression for people and programs, with as few brackets as there can be. Given values of the
/// parameters, which must be finite, these stand in the places of the names. Throws Error (usage)
/// for one of more than 100,000 nodes.
///
/// Text reads back as the same node by parse_expression. Numbers are the shortest that read back.
std::string expression_text(const Tape& tape, int node, std::span<const double> values = {});
std::string expression_latex(const Tape& tape, int node, std::span<const double> values = {});
/// Presentation MathML: one <mrow>, without <math> around it.
std::string expression_mathml(const Tape& tape, int node, std::span<const double> values = {});

/// C for <math.h>, with u[k] for argument k and c[k] for parameter k. `statements` define what is
/// used several times ("  const double a0 = …;\n", each a line), `values` has an expression for
/// each node. Where all functions are + - * / √ and |x| it computes the bits of evaluate(), if the
/// compiler does not contract.
struct CExpressions {
  std::string statements;
  std::vector<std::string> values;
};
CExpressions expressions_c(const Tape& tape, const std::vector<int>& nodes,
                           std::span<const double> values = {});

}  // namespace odecast
