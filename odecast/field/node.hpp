#pragma once

// What an expression is made of, as kernels see it: nothing of the standard library.

namespace odecast {

enum class Op {
  number,           ///< value
  argument,         ///< number `left` of the arguments: state, inputs, time
  parameter,        ///< number `left` of the unknown numbers
  add,              ///< left + right
  subtract,         ///< left - right
  multiply,         ///< left right
  divide,           ///< left / right
  negate,           ///< -left
  whole_power,      ///< left^value by multiplication from the left, value = 2 … 16
  power,            ///< left^right
  power_logarithm,  ///< left^right log(left), the slope of a power; its limit 0 at 0^right, right >
                    ///< 0
  sine,
  cosine,
  tangent,
  exponential,
  logarithm,
  square_root,
  hyperbolic_tangent,
  absolute,
  sign,  ///< -1, 0, 1: the slope of the absolute value
};

/// One operation of a tape. `left` and `right` are the numbers of earlier nodes, -1 where there is
/// none, and for arguments and parameters `left` is which.
struct Node {
  Op op;
  int left = -1, right = -1;
  double value = 0;
  bool operator==(const Node&) const = default;
};

}  // namespace odecast
