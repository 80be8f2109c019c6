#include "odecast/field/dictionary.hpp"

#include <algorithm>
#include <array>

namespace odecast {
namespace {

using enum NumberKind;

// The forms of textbooks of modelling: pendulums and oscillators that are coupled, drag,
// saturation and inhibition (Monod, Holling, Hill, Haldane), switches, growth of Gompertz,
// allometry and escape over a barrier; docs/decisions/0028 says how they were chosen. What another
// form and a monomial say as well costs one more: 1/(k + x) = (1 - x/(k + x))/k.
constexpr std::array kForms = {
    FunctionForm{"sin", "sin(x)", 2},
    FunctionForm{"sin", "y*sin(x)", 3},
    FunctionForm{"sin", "sin(x - y)", 3, none, none, false},
    FunctionForm{"cos", "cos(x)", 2},
    FunctionForm{"cos", "y*cos(x)", 3},
    FunctionForm{"cos", "cos(x - y)", 3, none, none, false},
    FunctionForm{"cos", "sin(x)*cos(x)", 3},
    FunctionForm{"cos", "sin(x)*cos(y)", 4},
    FunctionForm{"tan", "tan(x)", 2},
    FunctionForm{"exp", "exp(k*x)", 2, rate},
    FunctionForm{"exp", "y*exp(k*x)", 3, rate},
    FunctionForm{"log", "log(x)", 2},
    FunctionForm{"log", "x*log(x)", 2},
    FunctionForm{"log", "y*log(x)", 3},
    FunctionForm{"sqrt", "sqrt(x)", 2},
    FunctionForm{"sqrt", "y*sqrt(x)", 3},
    FunctionForm{"power", "x^k", 2, exponent},
    FunctionForm{"power", "y*x^k", 3, exponent},
    FunctionForm{"inverse", "1/x", 2},
    FunctionForm{"inverse", "y/x", 3},
    FunctionForm{"hill", "x/(k + x)", 2, NumberKind::size},
    FunctionForm{"hill", "y*x/(k + x)", 3, NumberKind::size},
    FunctionForm{"hill", "x^2/(k^2 + x^2)", 3, NumberKind::size},
    FunctionForm{"hill", "y*x^2/(k^2 + x^2)", 4, NumberKind::size},
    FunctionForm{"hill", "1/(k + x)", 3, NumberKind::size},
    FunctionForm{"hill", "y/(k + x)", 4, NumberKind::size},
    FunctionForm{"hill", "1/(k^2 + x^2)", 4, NumberKind::size},
    FunctionForm{"hill", "x/(k^2 + x^2)", 3, NumberKind::size},
    FunctionForm{"hill", "y*x/(k^2 + x^2)", 4, NumberKind::size},
    FunctionForm{"logistic", "logistic(k*(x - m))", 3, rate, level},
    FunctionForm{"tanh", "tanh(k*x)", 2, steep},
    FunctionForm{"abs", "x*abs(x)", 2},
    FunctionForm{"abs", "abs(x)", 2},
};

constexpr std::array kKinds = {
    FunctionKind{"sin", "sin(x), y sin(x), sin(x - y)", Family::waves},
    FunctionKind{"cos", "cos(x), y cos(x), cos(x - y), sin(x) cos(x), sin(x) cos(y)",
                 Family::waves},
    FunctionKind{"tan", "tan(x)", Family::waves},
    FunctionKind{"exp", "exp(k x), y exp(k x)", Family::growth},
    FunctionKind{"log", "log(x), x log(x), y log(x)", Family::growth},
    FunctionKind{"sqrt", "sqrt(x), y sqrt(x)", Family::growth},
    FunctionKind{"power", "x^k, y x^k", Family::growth},
    FunctionKind{"inverse", "1/x, y/x", Family::fractions},
    FunctionKind{"hill", "x/(k + x), 1/(k + x), x^2/(k^2 + x^2), x/(k^2 + x^2), also times y",
                 Family::fractions},
    FunctionKind{"logistic", "1/(1 + exp(-k (x - m)))", Family::switches},
    FunctionKind{"tanh", "tanh(k x)", Family::switches},
    FunctionKind{"abs", "|x|, x |x|", Family::switches},
};

}  // namespace

Domain domain_of(const FunctionForm& form) {
  if (form.kind == "log" || form.kind == "sqrt" || form.kind == "power" || form.kind == "inverse")
    return Domain::positive;
  return form.text.find("k + x") != form.text.npos ? Domain::about_positive : Domain::everywhere;
}

Family family_of(const FunctionForm& form) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const FunctionKind& k) { return k.name == form.kind; });
  return kind->family;
}

std::span<const FunctionForm> function_forms() { return kForms; }
std::span<const FunctionKind> function_kinds() { return kKinds; }

}  // namespace odecast
