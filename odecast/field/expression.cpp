#include "odecast/field/expression.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>
#include <utility>

#include "odecast/core/aligned.hpp"
#include "odecast/field/detail/rows_job.hpp"
#include "odecast/field/detail/tape_kernel.hpp"

namespace odecast {

std::size_t Tape::Hash::operator()(const Node& node) const {
  std::uint64_t h = std::bit_cast<std::uint64_t>(node.value);
  for (const int part : {static_cast<int>(node.op), node.left, node.right})
    h = (h ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
  return h;
}

int Tape::add(const Node& node) {
  const auto [at, fresh] = place_.try_emplace(node, size());
  if (fresh) nodes_.push_back(node);
  return at->second;
}

int Tape::number(double value) {
  assert(std::isfinite(value));
  return add({Op::number, -1, -1, value == 0 ? 0 : value});  // and not -0
}

int Tape::argument(int which) {
  assert(which >= 0 && index(which) < arguments_.size());
  return add({Op::argument, which});
}

int Tape::parameter(const std::string& name) {
  const auto at = std::find(parameters_.begin(), parameters_.end(), name);
  const auto which = static_cast<int>(at - parameters_.begin());
  if (at == parameters_.end()) parameters_.push_back(name);
  return add({Op::parameter, which});
}

bool Tape::is_negative_number(int node) const {
  return is(node, Op::number) && (*this)[node].value < 0;
}

/// The number that operations on numbers give, -1 where an operand is none or the result not
/// finite.
int Tape::fold(Op op, int left, int right) {
  if (!is(left, Op::number) || (right >= 0 && !is(right, Op::number))) return -1;
  const double value = apply(op, 0, (*this)[left].value, right >= 0 ? (*this)[right].value : 0.0);
  return std::isfinite(value) ? number(value) : -1;
}

int Tape::first_factor(int node) const {
  constexpr int far = 16;
  for (int i = 0; i < far && (is(node, Op::multiply) || is(node, Op::divide)); ++i)
    node = (*this)[node].left;
  return is(node, Op::number) ? node : -1;
}

int Tape::with_other_sign(int node) {
  const Node of = (*this)[node];
  if (of.op == Op::number) return number(-of.value);
  return make(of.op, with_other_sign(of.left), of.right);
}

int Tape::make_negative(int node) {
  if (is(node, Op::negate)) return (*this)[node].left;
  return first_factor(node) >= 0 ? with_other_sign(node) : add({Op::negate, node});
}

int Tape::without_minus(int node) {
  if (is(node, Op::negate)) return (*this)[node].left;
  const int first = first_factor(node);
  return first >= 0 && is_negative_number(first) ? with_other_sign(node) : -1;
}

int Tape::make_sum(Op op, int left, int right) {
  if (is_number(right, 0)) return left;
  if (is_number(left, 0)) return op == Op::add ? right : make_negative(right);
  if (const int positive = without_minus(right); positive >= 0)
    return make(op == Op::add ? Op::subtract : Op::add, left, positive);
  return add({op, left, right});
}

int Tape::make_product(int left, int right) {
  if (is_number(left, 0) || is_number(right, 0)) return number(0);
  if (is(right, Op::number) && !is(left, Op::number)) std::swap(left, right);
  if (is_number(left, 1)) return right;
  if (is_number(left, -1)) return make_negative(right);
  if (is(left, Op::negate)) return make_negative(make(Op::multiply, (*this)[left].left, right));
  if (is(right, Op::negate)) return make_negative(make(Op::multiply, left, (*this)[right].left));
  const Node of = (*this)[right];
  if (is(left, Op::number) && (of.op == Op::multiply || of.op == Op::divide))
    if (const int both = fold(Op::multiply, left, of.left); both >= 0 && !is_number(both, 0))
      return make(of.op, both, of.right);
  // x^n log x has a limit at 0.
  const Node base = (*this)[left];
  if (base.op == Op::power && of.op == Op::logarithm && of.left == base.left)
    return add({Op::power_logarithm, base.left, base.right});
  return add({Op::multiply, left, right});
}

int Tape::make_quotient(int left, int right) {
  if (is_number(left, 0) && !is_number(right, 0)) return left;
  if (is_number(right, 1)) return left;
  if (is(left, Op::negate)) return make_negative(make(Op::divide, (*this)[left].left, right));
  if (is(right, Op::negate) || is_negative_number(right))
    return make_negative(make(Op::divide, left, make_negative(right)));
  return add({Op::divide, left, right});
}

int Tape::make_power(int left, int right) {
  constexpr double most = 16;
  if (is_number(left, 1)) return left;
  if (!is(right, Op::number)) return add({Op::power, left, right});
  const double value = (*this)[right].value, size = std::abs(value);
  if (value == 0) return number(1);
  if (value == 1) return left;
  if (value == 0.5) return make(Op::square_root, left);
  if (size > most || size != std::floor(size)) {
    const int folded = fold(Op::power, left, right);
    return folded >= 0 ? folded : add({Op::power, left, right});
  }
  if (value < 0) return make(Op::divide, number(1), make(Op::power, left, number(size)));
  if (is(left, Op::number)) {
    const double product = apply(Op::whole_power, value, (*this)[left].value, 0.0);
    if (std::isfinite(product)) return number(product);
  }
  return add({Op::whole_power, left, -1, value});
}

int Tape::make(Op op, int left, int right) {
  assert(op != Op::whole_power && left >= 0 && left < size() && right < size());
  if (op == Op::power) return make_power(left, right);
  if (op == Op::power_logarithm)
    return make_product(make_power(left, right), make(Op::logarithm, left));
  if (const int value = fold(op, left, right); value >= 0) return value;
  switch (op) {
    case Op::add:
    case Op::subtract: return make_sum(op, left, right);
    case Op::multiply: return make_product(left, right);
    case Op::divide: return make_quotient(left, right);
    case Op::negate: return make_negative(left);
    default: return add({op, left});
  }
}

namespace {

/// Which nodes up to `node` it needs.
std::vector<char> needed_by(const Tape& tape, std::span<const int> nodes) {
  std::vector<char> needed(index(tape.size()), 0);
  for (const int node : nodes) needed[index(node)] = 1;
  for (int i = tape.size() - 1; i >= 0; --i) {
    const Node& node = tape[i];
    if (!needed[index(i)] || node.op == Op::argument || node.op == Op::parameter) continue;
    if (node.left >= 0) needed[index(node.left)] = 1;
    if (node.right >= 0) needed[index(node.right)] = 1;
  }
  return needed;
}

bool is_leaf(const Node& node) {
  return node.op == Op::number || node.op == Op::argument || node.op == Op::parameter;
}

}  // namespace

int slope(Tape& tape, int node, int leaf) {
  assert(tape.is(leaf, Op::argument) || tape.is(leaf, Op::parameter));
  const std::vector<char> needed = needed_by(tape, std::span(&node, 1));
  const int zero = tape.number(0), one = tape.number(1);
  std::vector<int> slopes(index(node + 1), zero);
  const auto times = [&](int a, int b) { return tape.make(Op::multiply, a, b); };
  const auto plus = [&](int a, int b) { return tape.make(Op::add, a, b); };
  const auto minus = [&](int a, int b) { return tape.make(Op::subtract, a, b); };
  const auto over = [&](int a, int b) { return tape.make(Op::divide, a, b); };
  const auto square = [&](int a) { return tape.make(Op::power, a, tape.number(2)); };
  for (int i = 0; i <= node; ++i) {
    if (!needed[index(i)]) continue;
    const Node of = tape[i];  // a copy: the tape grows
    if (is_leaf(of)) {
      slopes[index(i)] = i == leaf ? one : zero;
      continue;
    }
    const int a = of.left, b = of.right;
    const int da = slopes[index(a)], db = b >= 0 ? slopes[index(b)] : zero;
    if (da == zero && db == zero) continue;
    int& d = slopes[index(i)];
    switch (of.op) {
      case Op::number:
      case Op::argument:
      case Op::parameter:
      case Op::sign: break;
      case Op::add: d = plus(da, db); break;
      case Op::subtract: d = minus(da, db); break;
      case Op::multiply: d = plus(times(da, b), times(a, db)); break;
      case Op::divide:  // (a' - (a/b) b') / b
        d = over(minus(da, times(i, db)), b);
        break;
      case Op::negate: d = tape.make(Op::negate, da); break;
      case Op::whole_power: {
        const int lower = tape.make(Op::power, a, tape.number(of.value - 1));
        d = times(times(tape.number(of.value), lower), da);
        break;
      }
      case Op::power: {  // b a^(b-1) a' + a^b log(a) b'
        const int lower = da == zero ? zero : tape.make(Op::power, a, minus(b, one));
        const int more = db == zero ? zero : times(i, tape.make(Op::logarithm, a));
        d = plus(times(times(b, lower), da), times(more, db));
        break;
      }
      case Op::power_logarithm: {  // (b a^(b-1) log a + a^(b-1)) a' + a^b log(a)^2 b'
        const int log = tape.make(Op::logarithm, a);
        const int lower = da == zero ? zero : tape.make(Op::power, a, minus(b, one));
        d = plus(times(plus(times(b, times(lower, log)), lower), da), times(times(i, log), db));
        break;
      }
      case Op::sine: d = times(tape.make(Op::cosine, a), da); break;
      case Op::cosine: d = tape.make(Op::negate, times(tape.make(Op::sine, a), da)); break;
      case Op::tangent: d = times(plus(one, square(i)), da); break;
      case Op::exponential: d = times(i, da); break;
      case Op::logarithm: d = over(da, a); break;
      case Op::square_root: d = over(da, times(tape.number(2), i)); break;
      case Op::hyperbolic_tangent: d = times(minus(one, square(i)), da); break;
      case Op::absolute: d = times(tape.make(Op::sign, a), da); break;
    }
  }
  return slopes[index(node)];
}

void evaluate(const Tape& tape, const double* arguments, const double* parameters, double* values) {
  run_tape(tape.nodes().data(), tape.size(), arguments, parameters, values);
}

Matrix evaluate_rows(const Tape& tape, const std::vector<int>& nodes, const Matrix& arguments,
                     const std::vector<double>& parameters) {
  assert(index(arguments.cols()) == tape.arguments().size());
  assert(parameters.size() == tape.parameters().size());
  std::vector<int> roots = nodes;
  const Tape lean = extracted(tape, roots);
  const auto columns = static_cast<int>(arguments.cols());
  const auto unknowns = static_cast<int>(parameters.size());
  Matrix results(arguments.rows(), static_cast<Eigen::Index>(nodes.size()));
  const AlignedDoubles work =
      aligned_doubles(index(rows_work_size(lean.size(), columns, unknowns)));
  run_rows(RowsJob{.nodes = lean.nodes().data(),
                   .count = lean.size(),
                   .arguments = columns,
                   .parameters = unknowns,
                   .rows = arguments.data(),
                   .row_count = arguments.rows(),
                   .parameter_values = parameters.data(),
                   .roots = roots.data(),
                   .root_count = static_cast<int>(roots.size()),
                   .results = results.data(),
                   .work = work.get()});
  return results;
}

double expression_size(const Tape& tape, int node) {
  std::vector<double> size(index(node + 1), 1);
  for (int i = 0; i <= node; ++i) {
    if (is_leaf(tape[i])) continue;
    size[index(i)] += size[index(tape[i].left)];
    if (tape[i].right >= 0) size[index(i)] += size[index(tape[i].right)];
  }
  return size[index(node)];
}

int expression_depth(const Tape& tape, int node) {
  const auto is_sum = [&](int i) { return tape.is(i, Op::add) || tape.is(i, Op::subtract); };
  std::vector<int> depth(index(node + 1), 1);
  for (int i = 0; i <= node; ++i) {
    const Node& of = tape[i];
    if (of.op == Op::number && of.value < 0) depth[index(i)] = 2;
    if (is_leaf(of)) continue;
    // a + b + c is read from the left, at one depth; all else may stand in brackets.
    const bool chain =
        is_sum(i) || ((of.op == Op::multiply || of.op == Op::divide) && !is_sum(of.left));
    const int left = chain ? 0 : of.op == Op::negate ? 2 : 1;                      // -(…)
    const int right = of.op == Op::power || of.op == Op::power_logarithm ? 2 : 1;  // a^(…)
    depth[index(i)] = depth[index(of.left)] + left;
    if (of.right >= 0) depth[index(i)] = std::max(depth[index(i)], depth[index(of.right)] + right);
  }
  return depth[index(node)];
}

Occurring occurring(const Tape& tape, int node) {
  const std::vector<char> needed = needed_by(tape, std::span(&node, 1));
  Occurring result;
  for (int i = 0; i <= node; ++i) {
    if (!needed[index(i)]) continue;
    if (tape.is(i, Op::argument)) result.arguments.push_back(tape[i].left);
    if (tape.is(i, Op::parameter)) result.parameters.push_back(tape[i].left);
  }
  std::sort(result.arguments.begin(), result.arguments.end());
  std::sort(result.parameters.begin(), result.parameters.end());
  return result;
}

namespace {

/// What `nodes` need, operands first and the left one first; `visit(node)` in that order, once
/// each.
template <class Visit>
void visit_operands_first(const Tape& tape, std::span<const int> nodes, const Visit& visit) {
  std::vector<char> seen(index(tape.size()), 0);
  std::vector<std::pair<int, int>> open;  // a node, and how many of its operands were opened
  for (const int root : nodes) {
    open.push_back({root, 0});
    while (!open.empty()) {
      auto& [node, opened] = open.back();
      const Node& of = tape[node];
      const int operand = is_leaf(of) ? -1 : opened == 0 ? of.left : opened == 1 ? of.right : -1;
      if (seen[index(node)] || operand < 0) {
        if (!std::exchange(seen[index(node)], char{1})) visit(node);
        open.pop_back();
      } else {
        ++opened;
        open.push_back({operand, 0});
      }
    }
  }
}

}  // namespace

Tape extracted(const Tape& tape, std::vector<int>& nodes) {
  Tape lean(tape.arguments());
  for (const std::string& name : tape.parameters()) lean.parameters_.push_back(name);
  std::vector<int> place(index(tape.size()), -1);
  visit_operands_first(tape, nodes, [&](int node) {
    Node of = tape[node];
    if (!is_leaf(of)) {
      of.left = place[index(of.left)];
      if (of.right >= 0) of.right = place[index(of.right)];
    }
    place[index(node)] = lean.add(of);
  });
  for (int& node : nodes) node = place[index(node)];
  return lean;
}

std::vector<int> copied(const Tape& from, std::vector<int> nodes, Tape& to,
                        std::span<const int> arguments, std::span<const int> parameters) {
  const Tape lean = extracted(from, nodes);  // operands first, and not what grows meanwhile
  std::vector<int> place;
  const auto at = [&](int operand) { return operand < 0 ? -1 : place[index(operand)]; };
  for (const Node& of : lean.nodes()) switch (of.op) {
      case Op::number: place.push_back(to.number(of.value)); break;
      case Op::argument: place.push_back(arguments[index(of.left)]); break;
      case Op::parameter: place.push_back(parameters[index(of.left)]); break;
      case Op::whole_power:
        place.push_back(to.make(Op::power, at(of.left), to.number(of.value)));
        break;
      default: place.push_back(to.make(of.op, at(of.left), at(of.right)));
    }
  for (int& node : nodes) node = place[index(node)];
  return nodes;
}

Tape with_values(const Tape& tape, std::vector<int>& nodes, std::span<const double> parameters) {
  assert(parameters.size() == tape.parameters().size());
  Tape result(tape.arguments());
  std::vector<int> own, numbers;
  for (int k = 0; k < static_cast<int>(tape.arguments().size()); ++k)
    own.push_back(result.argument(k));
  for (const double value : parameters) numbers.push_back(result.number(value));
  nodes = copied(tape, nodes, result, own, numbers);
  return extracted(result, nodes);
}

}  // namespace odecast
