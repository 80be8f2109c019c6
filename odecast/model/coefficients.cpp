#include "odecast/model/coefficients.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {
namespace {

/// State and inputs are offset + scale ∘ their values in model units.
Scaling argument_scaling(const Model& model) {
  Scaling all = model.scaling;
  const Eigen::Index n = model.dimension(), m = model.inputs.size();
  all.offset.conservativeResize(n + m);
  all.scale.conservativeResize(n + m);
  if (m > 0) {
    all.offset.tail(m) = model.inputs.offset;
    all.scale.tail(m) = model.inputs.scale;
  }
  return all;
}

/// T with (coefficients in v) T = coefficients in u: T(α, β) = Π_v C(α_v, β_v) (-o_v)^(α_v-β_v)
/// s_v^-α_v.
Matrix change_of_units(const MonomialBasis& basis, const Scaling& scaling) {
  Matrix T = Matrix::Zero(basis.size(), basis.size());
  for (int a = 0; a < basis.size(); ++a)
    for (int b = 0; b < basis.size(); ++b) {
      double product = 1;
      for (int v = 0; v < basis.variables() && product != 0; ++v) {
        const int p = basis.powers(a)[static_cast<std::size_t>(v)],
                  q = basis.powers(b)[static_cast<std::size_t>(v)];
        double choose = q <= p ? 1 : 0;
        for (int k = 0; k < q && q <= p; ++k) choose = choose * (p - k) / (k + 1);
        product *= choose * integer_power(-scaling.offset[v], std::max(0, p - q)) /
                   integer_power(scaling.scale[v], p);
      }
      T(a, b) = product;
    }
  return T;
}

}  // namespace

double user_unit(const Model& model, int equation, const std::vector<int>& powers) {
  double unit = model.rate()[equation];
  for (std::size_t v = 0; v < powers.size(); ++v) {
    const auto at = static_cast<Eigen::Index>(v), n = static_cast<Eigen::Index>(model.dimension());
    unit /= integer_power(at < n ? model.scaling.scale[at] : model.inputs.scale[at - n], powers[v]);
  }
  return unit;
}

TermLibrary term_library(const Model& model) {
  const PolynomialPart& part = *model.polynomial();
  return {std::make_shared<MonomialBasis>(model.dimension() + model.inputs.size(), part.degree),
          part.functions};
}

double user_unit(const Model& model, const TermLibrary& library, const FieldTerm& term) {
  if (!library.is_function(term.term))
    return user_unit(model, term.equation, library.basis->powers(term.term));
  return model.rate()[term.equation] / library.functions->term(library.function(term.term)).unit;
}

std::optional<BestSet> best_set(const Model& model) {
  const PolynomialPart* part = model.polynomial();
  if (!part || part->sets.empty() || part->sets.front().covariance.size() == 0) return std::nullopt;
  std::map<Support, BestSet> by_terms;
  double all = 0;
  for (const CoefficientSet& set : part->sets) {
    Support terms = set.support;
    std::sort(terms.begin(), terms.end());
    BestSet& at = by_terms[terms];
    if (!at.set || set.weight > at.set->weight) at.set = &set;
    at.probability += set.weight;
    all += set.weight;
  }
  BestSet best;
  for (const auto& [terms, found] : by_terms)
    if (found.probability > best.probability) best = found;
  best.probability = std::min(1.0, best.probability / all);
  return best;
}

SetOfTerms most_probable_terms(const Model& model) {
  const auto best = best_set(model);
  if (!best)
    throw_usage({"covariance", "a model without sets of terms",
                 "one of fit's default, or regression", "Take that of many draws."});
  const CoefficientSet& set = *best->set;
  const TermLibrary library = term_library(model);
  Vector unit(set.theta.size());
  for (std::size_t k = 0; k < set.support.size(); ++k)
    unit[static_cast<Eigen::Index>(k)] = user_unit(model, library, set.support[k]);
  Vector mean = unit.cwiseProduct(set.theta);
  const std::vector<int> numbers = numbers_inside(library, set.support);
  auto at = static_cast<Eigen::Index>(set.support.size());
  for (const int k : numbers) {
    const InnerNumber& number = library.functions->numbers()[static_cast<std::size_t>(k)];
    mean[at] = number.value(set.theta[at]);
    unit[at] = number.slope(set.theta[at]);
    ++at;
  }
  return {set.support, std::move(mean), unit.asDiagonal() * set.covariance * unit.asDiagonal(),
          numbers};
}

std::shared_ptr<const MonomialBasis> monomials(const Model& model) {
  if (!model.has_equations())
    throw_usage({"coefficients", "a general network", "a polynomial",
                 "Only polynomial models have coefficients: fit without `layers`."});
  return make_posterior(model)->draw(0, 0).polynomial()->basis;
}

CoefficientDraws draw_coefficients(const Model& model, long draws, std::uint64_t seed,
                                   const Observer& observer) {
  const auto basis = monomials(model);
  const auto posterior = make_posterior(model);
  const Eigen::Index n = model.dimension();
  const FunctionTerms* functions =
      model.polynomial() ? model.polynomial()->functions.get() : nullptr;
  const Eigen::Index more = functions ? functions->size() : 0;
  const auto inside =
      functions ? static_cast<Eigen::Index>(functions->numbers().size()) : Eigen::Index{0};
  checked_size(
      static_cast<double>(draws) * static_cast<double>(n * (basis->size() + more) + inside),
      100'000'000, "coefficients", "Ask for fewer draws.");
  const Matrix T = change_of_units(*basis, argument_scaling(model));
  const Vector rate = model.rate(), base = model.base();
  CoefficientDraws result;
  if (functions)
    result.numbers = Matrix::Constant(draws, inside, std::numeric_limits<double>::quiet_NaN());
  for (long k = 0; k < draws; ++k) {
    if (k % 256 == 0) observer("drawing", static_cast<double>(k) / static_cast<double>(draws));
    const auto index = static_cast<std::uint64_t>(k);
    const VectorField field = posterior->draw(seed, index);
    const PolynomialField& drawn = *field.polynomial();
    Matrix& c = result.coefficients.emplace_back(
        rate.asDiagonal() * (functions ? Matrix(drawn.coefficients.leftCols(basis->size()) * T)
                                       : Matrix(drawn.coefficients * T)));
    c.col(0) += base;
    if (functions) {
      c.conservativeResize(n, basis->size() + more);
      for (int f = 0; f < functions->size(); ++f) {
        const auto column = drawn.coefficients.col(basis->size() + f);
        c.col(basis->size() + f) = rate.cwiseProduct(column) / functions->term(f).unit;
        if ((column.array() == 0).all()) continue;
        for (const int q : functions->numbers_of(f)) {
          const auto at = static_cast<std::size_t>(q);
          result.numbers(k, q) = functions->numbers()[at].value(drawn.numbers[at]);
        }
      }
    }
    const auto start = posterior->draw_start(seed, index);
    if (!start) continue;
    if (k == 0) result.starts.resize(draws, n);
    result.starts.row(k) = model.scaling.to_user(*start).transpose();
  }
  return result;
}

}  // namespace odecast
