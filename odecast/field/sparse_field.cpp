#include "odecast/field/sparse_field.hpp"

#include <algorithm>
#include <cassert>

namespace odecast {
void TermLibrary::evaluate(const double* arguments, const std::vector<double>& z,
                           double* values) const {
  basis->evaluate(arguments, values);
  if (!functions) return;
  std::vector<double> nodes(index(functions->values().size()));
  odecast::evaluate(functions->values(), arguments, z.data(), nodes.data());
  for (int f = 0; f < functions->size(); ++f)
    values[basis->size() + f] = nodes[index(functions->roots()[index(f)])];
}

std::vector<int> numbers_inside(const TermLibrary& library, const Support& support) {
  std::vector<int> numbers;
  for (const FieldTerm& t : support)
    if (library.is_function(t.term)) {
      const auto& inside = library.functions->numbers_of(library.function(t.term));
      numbers.insert(numbers.end(), inside.begin(), inside.end());
    }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<double> all_numbers(const TermLibrary& library, const Support& support,
                                const Vector& theta) {
  if (!library.functions) return {};
  std::vector<double> z(library.functions->numbers().size(), 0);
  auto at = static_cast<Eigen::Index>(support.size());
  for (const int k : numbers_inside(library, support)) z[index(k)] = theta[at++];
  return z;
}

PolynomialField dense(const SparseField& field, int equations) {
  PolynomialField f{field.library.basis, Matrix::Zero(equations, field.library.size()),
                    field.library.functions,
                    all_numbers(field.library, field.support, field.theta)};
  for (std::size_t c = 0; c < field.support.size(); ++c)
    f.coefficients(field.support[c].equation, field.support[c].term) =
        field.theta[static_cast<Eigen::Index>(c)];
  return f;
}

Matrix design(const SparseField& field, const Vector& u, int equations) {
  const TermLibrary& library = field.library;
  Matrix slopes = Matrix::Zero(equations, field.theta.size());
  std::vector<double> phi(index(library.basis->size())), nodes;
  library.basis->evaluate(u.data(), phi.data());
  if (library.functions) {
    nodes.resize(index(library.functions->model().size()));
    evaluate(library.functions->model(), u.data(),
             all_numbers(library, field.support, field.theta).data(), nodes.data());
  }
  const std::vector<int> numbers = numbers_inside(library, field.support);
  for (std::size_t c = 0; c < field.support.size(); ++c) {
    const FieldTerm& t = field.support[c];
    const auto at = static_cast<Eigen::Index>(c);
    if (!library.is_function(t.term)) {
      slopes(t.equation, at) = phi[index(t.term)];
      continue;
    }
    const int f = library.function(t.term);
    const FunctionTerms::Nodes& of = library.functions->nodes(f);
    slopes(t.equation, at) = nodes[index(of.value)];
    for (std::size_t k = 0; k < of.numbers.size(); ++k) {
      if (of.numbers[k] < 0) continue;
      const auto place =
          std::lower_bound(numbers.begin(), numbers.end(), library.functions->numbers_of(f)[k]) -
          numbers.begin();
      slopes(t.equation, static_cast<Eigen::Index>(field.support.size()) + place) +=
          field.theta[at] * nodes[index(of.numbers[k])];
    }
  }
  return slopes;
}

FieldLists::FieldLists(const SparseField& field, int equations)
    : theta(field.theta.begin(),
            field.theta.begin() + static_cast<Eigen::Index>(field.support.size())) {
  const TermLibrary& library = field.library;
  const MonomialBasis& basis = *library.basis;
  std::vector<char> needed(index(basis.size()), 0);
  needed[0] = 1;
  const auto need = [&](int m) {
    for (; !needed[index(m)]; m = basis.parent(m)) needed[index(m)] = 1;
  };
  for (const FieldTerm& t : field.support) {
    if (library.is_function(t.term)) continue;
    need(t.term);
    for (int v = 0; v < equations; ++v) need(basis.slope(t.term, v).monomial);
  }
  std::vector<int> place(index(basis.size()), -1);
  for (int m = 0; m < basis.size(); ++m) {
    if (!needed[index(m)]) continue;
    place[index(m)] = static_cast<int>(parent.size());
    parent.push_back(place[index(basis.parent(m))]);
    variable.push_back(basis.variable(m));
  }
  // The functions first, each once, then their slopes.
  const std::vector<int> numbers = numbers_inside(library, field.support);
  assert(static_cast<std::size_t>(field.theta.size()) == theta.size() + numbers.size());
  std::vector<int> roots, uses;
  const auto each_function = [&](const auto& visit) {
    for (const FieldTerm& t : field.support)
      if (library.is_function(t.term)) visit(library.functions->nodes(library.function(t.term)));
  };
  each_function([&](const FunctionTerms::Nodes& f) { roots.push_back(f.value); });
  const std::size_t functions = roots.size();
  each_function([&](const FunctionTerms::Nodes& f) {
    for (const auto* list : {&f.variables, &f.numbers})
      for (const int node : *list)
        if (node >= 0) roots.push_back(node);
  });
  if (functions > 0) {
    const Tape lean = extracted(library.functions->model(), roots);
    tape = lean.nodes();
    for (std::size_t k = 0; k < functions; ++k) values = std::max(values, roots[k] + 1);
    for (int& node : roots) node += static_cast<int>(parent.size());
    parameters = all_numbers(library, field.support, field.theta);
  }
  std::size_t next_function = 0, next_slope = functions;
  struct Force {
    int number, equation, term;
    double value;
  };
  std::vector<Force> forces;
  const auto slope_in = [&](int row, int v, int of, double value) {
    if (value == 0) return;
    slope_place.push_back(row * equations + v);
    slope_term.push_back(of);
    slope_value.push_back(value);
  };
  for (std::size_t c = 0; c < field.support.size(); ++c) {
    const FieldTerm& t = field.support[c];
    equation.push_back(t.equation);
    if (!library.is_function(t.term)) {
      term.push_back(place[index(t.term)]);
      for (int v = 0; v < equations; ++v) {
        const MonomialBasis::Slope slope = basis.slope(t.term, v);
        if (slope.factor == 0) continue;
        slope_in(t.equation, v, place[index(slope.monomial)], slope.factor * theta[c]);
      }
      continue;
    }
    const int f = library.function(t.term);
    const FunctionTerms::Nodes& of = library.functions->nodes(f);
    term.push_back(roots[next_function++]);
    for (std::size_t v = 0; v < of.variables.size(); ++v)
      if (of.variables[v] >= 0)
        slope_in(t.equation, static_cast<int>(v), roots[next_slope++], theta[c]);
    for (std::size_t k = 0; k < of.numbers.size(); ++k)
      if (of.numbers[k] >= 0)
        forces.push_back(
            {library.functions->numbers_of(f)[k], t.equation, roots[next_slope++], theta[c]});
  }
  for (std::size_t c = 0; c < theta.size(); ++c) {
    if (theta[c] == 0) continue;
    summed_equation.push_back(equation[c]);
    summed_term.push_back(term[c]);
    summed_theta.push_back(theta[c]);
  }
  for (const int number : numbers) {
    for (const Force& force : forces) {
      if (force.number != number) continue;
      force_equation.push_back(force.equation);
      force_term.push_back(force.term);
      force_value.push_back(force.value);
    }
    first_force.push_back(static_cast<int>(force_equation.size()));
  }
}

}  // namespace odecast
