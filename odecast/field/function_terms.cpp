#include "odecast/field/function_terms.hpp"

#include <cassert>

#include "odecast/core/functions.hpp"

namespace odecast {

double InnerNumber::value(double z) const {
  return positive ? centre * exponential_of(spread * z) : centre + spread * z;
}

double InnerNumber::z(double value) const {
  return positive ? logarithm_of(value / centre) / spread : (value - centre) / spread;
}

double InnerNumber::slope(double z) const { return positive ? spread * value(z) : spread; }

FunctionTerms::FunctionTerms(Tape tape, std::vector<Term> terms, std::vector<InnerNumber> numbers,
                             const Vector& offset, const Vector& scale, int variables)
    : tape_(std::move(tape)),
      model_(tape_.arguments()),
      terms_(std::move(terms)),
      numbers_(std::move(numbers)),
      variables_(variables) {
  assert(numbers_.size() == tape_.parameters().size());
  assert(offset.size() == static_cast<long>(tape_.arguments().size()));
  const auto scaled = [&](double factor, int node) {
    return factor == 1 ? node : model_.make(Op::multiply, model_.number(factor), node);
  };
  const auto shifted = [&](double by, int node) {
    return by == 0 ? node : model_.make(Op::add, model_.number(by), node);
  };
  std::vector<int> argument, parameter, user_argument, value, roots;
  for (int k = 0; k < static_cast<int>(tape_.arguments().size()); ++k) {
    argument.push_back(model_.argument(k));
    user_argument.push_back(shifted(offset[k], scaled(scale[k], argument.back())));
  }
  for (const InnerNumber& number : numbers_) {
    parameter.push_back(model_.parameter(number.name));
    const int z = scaled(number.spread, parameter.back());
    value.push_back(number.positive ? scaled(number.centre, model_.make(Op::exponential, z))
                                    : shifted(number.centre, z));
  }
  for (const Term& term : terms_) roots.push_back(term.node);
  roots = copied(tape_, roots, model_, user_argument, value);
  const auto slope_of = [&](int node, int leaf) {
    const int made = slope(model_, node, leaf);
    return model_.is_number(made, 0) ? -1 : made;
  };
  for (std::size_t f = 0; f < terms_.size(); ++f) {
    inside_.push_back(occurring(tape_, terms_[f].node).parameters);
    Nodes nodes{scaled(1 / terms_[f].unit, roots[f]), {}, {}};
    for (int v = 0; v < variables; ++v)
      nodes.variables.push_back(slope_of(nodes.value, argument[static_cast<std::size_t>(v)]));
    for (const int k : inside_.back())
      nodes.numbers.push_back(slope_of(nodes.value, parameter[static_cast<std::size_t>(k)]));
    roots_.push_back(nodes.value);
    nodes_.push_back(std::move(nodes));
  }
  values_ = extracted(model_, roots_);
}

}  // namespace odecast
