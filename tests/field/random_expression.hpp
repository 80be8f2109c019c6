#pragma once

#include <cmath>

#include "odecast/core/random.hpp"
#include "odecast/field/expression.hpp"

namespace odecast {

/// Expressions of any shape, drawn one after another.
struct RandomExpressions {
  Stream stream;
  bool plain = false;  ///< of + - * / √ |x| and whole powers alone

  explicit RandomExpressions(std::uint64_t seed) : stream(seed, Purpose::evaluation, 0) {}

  int below(int n) { return static_cast<int>(stream.bits() % static_cast<unsigned>(n)); }

  double number() {
    switch (below(5)) {
      case 0: return below(7) - 3;
      case 1: return stream.normal();
      case 2: return 0.5 * below(9) - 2;
      case 3: {
        const int exponent = below(80) - 40;
        return std::ldexp(stream.normal(), exponent);
      }
      default: return 3.141592653589793;
    }
  }

  int draw(Tape& tape, int depth) {
    if (depth == 0 || below(6) == 0) {
      switch (below(3)) {
        case 0: return tape.number(number());
        case 1: return tape.argument(below(static_cast<int>(tape.arguments().size())));
        default: return tape.parameter("p" + std::to_string(below(3)));
      }
    }
    static constexpr Op kPlain[] = {Op::add,    Op::subtract,    Op::multiply, Op::divide,
                                    Op::negate, Op::square_root, Op::absolute};
    static constexpr Op kAll[] = {Op::add,
                                  Op::subtract,
                                  Op::multiply,
                                  Op::divide,
                                  Op::negate,
                                  Op::power,
                                  Op::sine,
                                  Op::cosine,
                                  Op::tangent,
                                  Op::exponential,
                                  Op::logarithm,
                                  Op::square_root,
                                  Op::add,
                                  Op::multiply,
                                  Op::absolute,
                                  Op::sign,
                                  Op::hyperbolic_tangent};
    const Op op = plain ? kPlain[below(7)] : kAll[below(17)];
    const int left = draw(tape, depth - 1);
    if (below(8) == 0) return tape.make(Op::power, left, tape.number(below(9) - 4));
    const bool two = op == Op::add || op == Op::subtract || op == Op::multiply ||
                     op == Op::divide || op == Op::power;
    return tape.make(op, left, two ? draw(tape, depth - 1) : -1);
  }
};

}  // namespace odecast
