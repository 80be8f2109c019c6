// What options may be, apart from the work that they are for.

#include <fmt/format.h>

#include <type_traits>

#include "odecast/core/error.hpp"
#include "odecast/learning/detail/methods.hpp"
#include "odecast/network/polynomial_kernel.hpp"
#include "odecast/regression/weak_regression.hpp"

namespace odecast {
namespace {

/// Network sizes are bounded so that a mistyped option is an error and not an exhausted machine.
constexpr double kMaxUnits = 1e5, kMaxParameters = 1e8;

/// Candidate terms of the trajectory posterior: the search linearises with all of them in.
constexpr double kMaxCandidates = 3000;

struct Shape {
  int variables, inputs;
  int arguments() const { return variables + inputs; }
};

void check_degree(int degree, bool may_be_automatic) {
  require_option(
      (may_be_automatic && degree == kAutomaticDegree) || (degree >= 1 && degree <= 20), "`degree`",
      fmt::format("{}", degree),
      may_be_automatic ? "a whole number from 1 to 20, or auto" : "a whole number from 1 to 20",
      "2 fits most textbook systems.");
}

void check_rows(const RowOptions& rows, const FitOptions& o, const Shape& shape) {
  check(DerivativeOptions{rows.derivative, rows.forward, o.noise, rows.gap}, shape.variables);
}

void check_regression(int degree, const RowOptions& rows, const FitOptions& o, const Shape& shape) {
  check_degree(degree, true);
  const int least = degree == kAutomaticDegree ? 1 : degree;
  require_option(shape.variables * monomial_count(shape.arguments(), least) <= kMostJointUnknowns,
                 "`degree`", fmt::format("{} with {} variables", degree, shape.arguments()),
                 "at most 600 candidate terms, variables × monomials", "Choose a lower degree.");
  check_rows(rows, o, shape);
}

/// A method without fields has nothing to check.
template <class M>
requires std::is_empty_v<M>
void check_method(const M&, const FitOptions&, const Shape&) {}

void check_method(const TrajectoryMethod& m, const FitOptions& o, const Shape& shape) {
  check_degree(m.degree, m.terms.empty());
  require_option(o.kind == ModelKind::flow, "`kind`", "map with `posterior=trajectory`", "flow",
                 "Maps are learnt by `posterior=regression` or `posterior=dropout`.");
  const int least = m.degree == kAutomaticDegree ? 1 : m.degree;
  require_option(shape.variables * monomial_count(shape.arguments(), least) <= kMaxCandidates,
                 "`degree`",
                 fmt::format("{} with {} variables{}", m.degree, shape.variables,
                             shape.inputs > 0 ? fmt::format(" and {} inputs", shape.inputs) : ""),
                 "at most 3000 candidate terms, variables × monomials", "Choose a lower degree.");
  if (o.noise.size() == 0) return;
  require_option(o.noise.size() == 1 || o.noise.size() == shape.variables, "`noise`",
                 fmt::format("{} values", o.noise.size()), "one, or one per variable",
                 "Give the standard deviations in the order of the columns.");
  require_option((o.noise.array() > 0).all() && o.noise.allFinite(), "`noise`",
                 "a value that is not > 0", "standard deviations",
                 "Leave it out to have the noise estimated.");
}

void check_method(const RegressionMethod& m, const FitOptions& o, const Shape& shape) {
  check_regression(m.degree, m.rows, o, shape);
}

void check_method(const BootstrapMethod& m, const FitOptions& o, const Shape& shape) {
  check_regression(m.degree, m.rows, o, shape);
  require_option(m.replicates >= 2 && m.replicates <= 100'000, "`replicates`",
                 fmt::format("{}", m.replicates), "a whole number from 2 to 100000",
                 "100 give a standard deviation to 7 %.");
}

/// The polynomial kernel, or the layers of a general network.
void check_network(const DropoutMethod& m, const Shape& shape) {
  require_option(m.dropout >= 0 && m.dropout < 1, "`dropout`", fmt::format("{}", m.dropout),
                 "a rate in [0, 1)", "The paper uses 0.05, 0.25 and 0.5.");
  const int arguments = shape.arguments();
  const bool power = m.activation == Activation::power;
  for (const int units : m.layers)
    require_option(units >= 1 && units <= kMaxUnits, "`layers`", fmt::format("{}", units),
                   "whole numbers from 1 to 100000", "For example `layers=32,32`.");
  if (m.layers.size() == 1 && power)
    require_option(
        can_expand(arguments, arguments, m.degree, m.layers[0]), "`layers`",
        fmt::format("{} units of degree {} with {} variables", m.layers[0], m.degree, arguments),
        "at most 4e6 powers, units × monomials", "Choose a lower degree or fewer units.");
  if (m.layers.empty()) {
    check_degree(m.degree, false);
    require_option(m.hidden >= 0 && m.hidden <= kMaxUnits, "`hidden`", fmt::format("{}", m.hidden),
                   "a whole number from 1 to 100000, or auto", "auto takes one unit per monomial.");
    const double monomials = monomial_count(arguments, m.degree),
                 units = m.hidden > 0 ? m.hidden : monomials;
    require_option(
        can_expand(arguments, arguments, m.degree, units), "`degree`",
        fmt::format("{} with {} variables ({:.0f} monomials) and {:.0f} hidden units", m.degree,
                    arguments, monomials, units),
        "at most 1e5 coefficients, variables × monomials, and 4e6 powers, units × monomials",
        "Choose a lower degree or fewer hidden units.");
  }
  double parameters = 0, width = arguments;
  for (const HiddenLayer& layer : hidden_layers(m, arguments)) {
    parameters += (width + 1) * layer.units;
    width = layer.units;
  }
  require_option(parameters <= kMaxParameters, "network", fmt::format("{:.0f} weights", parameters),
                 "at most 1e8", "Use fewer or smaller layers.");
}

void check_method(const DropoutMethod& m, const FitOptions& o, const Shape& shape) {
  check_network(m, shape);
  check_rows(m.rows, o, shape);
  const int arguments = shape.arguments();
  if (!m.exact()) {
    require_option(m.rows.derivative != DerivativeMethod::weak, "`derivative`",
                   "weak with `trainer=adam` or sgd", "a derivative at every row",
                   "The integral form has none: choose `derivative=spline` or savgol, or "
                   "`trainer=exact`.");
    require_option(!m.select_terms, "`terms`", "select with `trainer=adam` or sgd",
                   "`trainer=exact`", "Leave `terms` out.");
    return;
  }
  require_option(m.layers.empty() || (m.layers.size() == 1 && m.activation == Activation::power),
                 "`trainer`", "exact with `layers`", "adam or sgd for a general network",
                 "The exact trainer is for polynomial kernels only.");
  const int units = hidden_layers(m, arguments)[0].units;
  const bool least_squares = m.dropout == 0 && units >= monomial_count(arguments, m.degree);
  require_option(!m.select_terms || least_squares, "`terms`",
                 fmt::format("select with dropout {} and {} hidden units", m.dropout, units),
                 "`dropout=0` and at least one hidden unit per monomial",
                 "Dropout draws units, each of them many terms: give `dropout=0`, or `terms=all`.");
}

void check_method(const EnsembleMethod& m, const FitOptions& o, const Shape& shape) {
  require_option(m.members >= 2 && m.members <= 1000, "`members`", fmt::format("{}", m.members),
                 "a whole number from 2 to 1000", "10 are usual.");
  require_option(!m.member.exact(), "`posterior`", "ensemble by the exact trainer",
                 "`trainer=adam` or sgd, or `layers`",
                 "Without dropout the exact trainer gives the same polynomial from every seed: "
                 "choose another trainer, or `posterior=bootstrap`.");
  check_method(m.member, o, shape);
}

}  // namespace

void check(const FitOptions& o, int variables, int inputs) {
  require_option(!o.budget || *o.budget > 0, "`budget`", fmt::format("{}", o.budget.value_or(0)),
                 "seconds > 0", "Leave it out for the default bound on work.");
  const auto* trajectory = std::get_if<TrajectoryMethod>(&o.method);
  const bool grows = o.noise_law == NoiseLaw::relative || o.noise_law == NoiseLaw::logarithmic;
  require_option(!grows || (trajectory && !trajectory->robust), "`noise`",
                 o.noise_law == NoiseLaw::relative ? "relative" : "log",
                 "`posterior=trajectory`, without `robust`",
                 "Leave out what asks for another, or give the noise as numbers.");
  std::visit([&](const auto& m) { check_method(m, o, Shape{variables, inputs}); }, o.method);
}

}  // namespace odecast
