#pragma once

// The nodes of a tape one after another, for a number and for eight: the same bits. See
// core/detail/pack.hpp for the rules of the sources that include this.

#include "odecast/core/detail/functions_kernel.hpp"
#include "odecast/field/node.hpp"

namespace odecast {
namespace {

template <class Real>
ODECAST_INLINE Real power_logarithm(const Real& x, const Real& c) {
  const Real value = power(x, c) * logarithm(x);
  return select(x == Real(0.0), select(c > Real(0.0), Real(0.0), value), value);
}

/// What one node makes of the values of its operands.
template <class Real>
ODECAST_INLINE Real apply(Op op, double value, const Real& a, const Real& b) {
  switch (op) {
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return a / b;
    case Op::negate: return -a;
    case Op::whole_power: {
      Real product = a;
      for (int i = static_cast<int>(value); i > 1; --i) product = product * a;
      return product;
    }
    case Op::power: return power(a, b);
    case Op::power_logarithm: return power_logarithm(a, b);
    case Op::sine: return sine(a);
    case Op::cosine: return cosine(a);
    case Op::tangent: return tangent(a);
    case Op::exponential: return exponential(a);
    case Op::logarithm: return logarithm(a);
    case Op::square_root: return square_root(a);
    case Op::hyperbolic_tangent: return hyperbolic_tangent(a);
    case Op::absolute: return absolute(a);
    case Op::sign: return sign(a);
    case Op::number:
    case Op::argument:
    case Op::parameter: break;
  }
  return value;
}

/// values[i] of every node i < count. No argument is read beyond those that occur.
template <class Real>
ODECAST_INLINE void run_tape(const Node* nodes, int count, const Real* arguments,
                             const Real* parameters, Real* values) {
  for (int i = 0; i < count; ++i) {
    const Node& node = nodes[i];
    switch (node.op) {
      case Op::number: values[i] = node.value; break;
      case Op::argument: values[i] = arguments[node.left]; break;
      case Op::parameter: values[i] = parameters[node.left]; break;
      default:
        values[i] = apply(node.op, node.value, values[node.left],
                          values[node.right < 0 ? node.left : node.right]);
    }
  }
}

}  // namespace
}  // namespace odecast
