#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "odecast/field/node.hpp"

namespace odecast {

/// How the functions are called: in a text, in C, in LaTeX.
struct FunctionName {
  Op op;
  std::string_view name, c, latex;
};
inline constexpr std::array<FunctionName, 9> kFunctionNames = {{
    {Op::sine, "sin", "sin", "\\sin"},
    {Op::cosine, "cos", "cos", "\\cos"},
    {Op::tangent, "tan", "tan", "\\tan"},
    {Op::exponential, "exp", "exp", "\\exp"},
    {Op::logarithm, "log", "log", "\\ln"},
    {Op::square_root, "sqrt", "sqrt", "\\sqrt"},
    {Op::hyperbolic_tangent, "tanh", "tanh", "\\tanh"},
    {Op::absolute, "abs", "fabs", ""},
    {Op::sign, "sign", "", "\\operatorname{sgn}"},
}};
inline constexpr std::string_view kPiName = "pi";

/// Whether a name without quotes may have (or begin with) this character.
bool is_name_character(std::uint32_t c, bool first);
/// Whether a name needs no quotes.
bool is_plain_name(std::string_view name);

}  // namespace odecast
