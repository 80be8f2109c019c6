#include "odecast/shooting/function_search.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "odecast/core/random.hpp"

namespace odecast {
namespace {

constexpr int kFinerWindows = 4;           ///< parts of a segment in which functions are looked for
constexpr int kBeside = 3;                 ///< terms beside a function that another equation has
constexpr std::size_t kFitted = 4;         ///< functions that equations may share, that are fitted
constexpr std::size_t kMostColumns = 300;  ///< of the dictionary, over all equations
constexpr std::size_t kMostOfOne = 24;     ///< of a user's function, in each equation

/// The best of a list, by what it lowers.
const QuadraticModel::Move* best_of(const std::vector<QuadraticModel::Move>& moves) {
  const auto best = std::min_element(moves.begin(), moves.end());
  return best == moves.end() ? nullptr : &*best;
}

}  // namespace

Support FunctionSearch::with_functions(const Support& monomials, const FittedPath& path,
                                       std::optional<Family> family) const {
  const TermLibrary& library = this->library();
  if (!library.functions) return monomials;
  const IntegralForm form = short_form(all_numbers(library, path.support, path.theta));
  Support all = monomials;
  for (int i = 0; i < search_.dimension(); ++i) {
    if (active_[i] == 0) continue;
    // What the terms of the path leave, and what a column explains of it.
    std::vector<int> own;
    for (const FieldTerm& t : path.support)
      if (t.equation == i) own.push_back(t.term);
    Eigen::MatrixXd X(form.terms.rows(), static_cast<long>(own.size()));
    for (std::size_t c = 0; c < own.size(); ++c)
      X.col(static_cast<long>(c)) = form.terms.col(own[c]);
    Eigen::MatrixXd gram = X.transpose() * X;
    gram.diagonal() *= 1 + 1e-9;
    gram.diagonal().array() += 1e-300;
    const Eigen::LDLT<Eigen::MatrixXd> factor(gram);
    const auto rest = [&](const Vector& v) -> Vector {
      return own.empty() ? v : Vector(v - X * factor.solve(X.transpose() * v));
    };
    const Vector left = rest(form.change.col(i));
    using Gains = std::vector<std::pair<double, int>>;
    Gains gains;
    std::map<int, Gains> of_given;  // by the function whose numbers they give values
    for (int f = 0; f < library.functions->size(); ++f) {
      const OfferedFunctions::Offer& offer = offered_.offers[index(f)];
      if (!offer.column || (family && !offer.given() && offer.family != family)) continue;
      const int term = library.basis->size() + f;
      const Vector column = rest(form.terms.col(term));
      const double dot = column.dot(left), square = column.squaredNorm();
      if (offer.given() && offer.free.empty())
        all.push_back({i, term});
      else if (std::isfinite(dot) && square > 1e-9 * form.terms.col(term).squaredNorm())
        (offer.given() ? of_given[offer.free[index(i)]] : gains)
            .push_back({-dot * dot / square, term});
    }
    const auto take = [&](Gains& some, std::size_t most) {
      std::stable_sort(some.begin(), some.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t k = 0; k < std::min(some.size(), most); ++k)
        all.push_back({i, some[k].second});
    };
    take(gains, kMostColumns / index(search_.dimension()));
    for (auto& [free, some] : of_given) take(some, kMostOfOne);
  }
  std::sort(all.begin(), all.end());
  return all;
}

QuadraticModel FunctionSearch::integral_model(const IntegralForm& form, int equation,
                                              const Support& own, const Support& beside) const {
  Support monomials;
  for (const FieldTerm& t : own)
    if (!library().is_function(t.term)) monomials.push_back(t);
  // The error of a window: that of the smoothed ends, or what monomials leave if that is less.
  const Vector theta = integral_regression(form, monomials, 1e-9);
  Vector left = form.change.col(equation);
  for (std::size_t c = 0; c < monomials.size(); ++c)
    left -= theta[static_cast<long>(c)] * form.terms.col(monomials[c].term);
  const auto count = static_cast<double>(form.terms.rows());
  const double noise = search_.initial_noise()[equation];
  const double variance = std::min(left.squaredNorm() / count, 0.5 * noise * noise) + 1e-300;
  QuadraticModel model;
  Eigen::MatrixXd X(form.terms.rows(), static_cast<long>(own.size()));
  for (std::size_t c = 0; c < own.size(); ++c) {
    X.col(static_cast<long>(c)) = form.terms.col(own[c].term);
    model.penalty.push_back(search_.penalty(own[c], beside));
  }
  model.Q = X.transpose() * X / variance;
  model.b = X.transpose() * form.change.col(equation) / variance;
  model.Q.diagonal().array() += 1e-300;
  return model;
}

IntegralForm FunctionSearch::short_form(const std::vector<double>& z) const {
  const Shooting& shooting = search_.shooting();
  const Shooting windows(shooting.runs(), shooting.library(),
                         std::max(1, shooting.per_segment() / kFinerWindows), shooting.flow(),
                         shooting.threads());
  return integral_form(windows, smoothed_.values, &z, false);
}

FittedPath FunctionSearch::guess(const Support& all) {
  const IntegralForm form =
      short_form(std::vector<double>(library().functions->numbers().size(), 0));
  Support chosen;
  for (int i = 0; i < search_.dimension(); ++i) {
    Support own;
    for (const FieldTerm& t : all)
      if (t.equation == i) own.push_back(t);
    if (own.empty()) continue;
    const QuadraticModel model = integral_model(form, i, own, chosen);
    std::vector<int> plain, set;
    std::vector<std::vector<int>> functions;
    for (int c = 0; c < static_cast<int>(own.size()); ++c)
      if (library().is_function(own[index(c)].term))
        functions.push_back({c});
      else
        plain.push_back(c);
    model.settle(set);
    for (const std::vector<int>& other : model.settled_from_each(functions, plain, kRestarts))
      if (model.value(other) < model.value(set)) set = other;
    for (const int c : set) chosen.push_back(own[index(c)]);
  }
  FittedPath path = search_.start(chosen);
  search_.settle(path);
  return path;
}

FunctionSearch::Equation FunctionSearch::equation_beside(const QuadraticModel& model,
                                                         const std::vector<int>& monomials,
                                                         int function) {
  const QuadraticModel rest = model.beside({function}, monomials);
  budget_.spend(QuadraticModel::kMostMoves * rest.work(8));
  Equation one;
  rest.settle(one.more);
  for (int k = 0; k < 2; ++k) {
    const auto moves = rest.moves(one.few);
    if (const auto* next = best_of(moves)) QuadraticModel::apply(one.few, *next);
  }
  one.few.push_back(function);
  one.more.push_back(function);
  one.worth = model.value(one.more);
  return one;
}

FittedPath FunctionSearch::guess_shared(const Support& all) {
  const TermLibrary& library = this->library();
  const IntegralForm form = short_form(std::vector<double>(library.functions->numbers().size(), 0));
  std::set<int> functions;
  for (const FieldTerm& t : all)
    if (library.is_function(t.term)) functions.insert(t.term);
  struct Shared {
    double worth = 0;
    int takers = 0;
    Support few, more;
  };
  std::map<int, Shared> shared;  // by the function
  for (int i = 0; i < search_.dimension(); ++i) {
    Support own;
    for (const FieldTerm& t : all)
      if (t.equation == i && !library.is_function(t.term)) own.push_back(t);
    std::vector<int> monomials(own.size()), alone;
    std::iota(monomials.begin(), monomials.end(), 0);
    if (monomials.empty()) continue;
    for (const int term : functions) own.push_back({i, term});
    const QuadraticModel model = integral_model(form, i, own, {});
    const QuadraticModel without = model.beside({}, monomials);
    without.settle(alone);
    const double least = without.value(alone);
    auto c = static_cast<int>(monomials.size());
    for (const int term : functions) {
      if (budget_.over()) break;
      Equation one = equation_beside(model, monomials, c++);
      Shared& s = shared[term];
      if (one.worth - least < kBlurred) {
        ++s.takers;
        s.worth += one.worth - least;
      } else {
        one = {0, alone, alone};
      }
      for (const int k : one.few) s.few.push_back(own[index(k)]);
      for (const int k : one.more) s.more.push_back(own[index(k)]);
    }
  }
  std::map<int, Shared> best_of_form;  // among the values of its numbers
  for (auto& [term, s] : shared) {
    if (s.takers < 2) continue;
    Shared& best = best_of_form[offered_.offers[index(library.function(term))].form];
    if (best.takers == 0 || s.worth < best.worth) best = std::move(s);
  }
  std::vector<Shared> ranked;
  for (auto& [f, s] : best_of_form) ranked.push_back(std::move(s));
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Shared& a, const Shared& b) { return a.worth < b.worth; });
  FittedPath best;
  for (std::size_t k = 0; k < std::min(ranked.size(), kFitted); ++k)
    for (Support* support : {&ranked[k].few, &ranked[k].more}) {
      if (budget_.over()) break;
      std::sort(support->begin(), support->end());
      FittedPath path = search_.start(*support);
      search_.settle(path);
      if (path.score < best.score) best = std::move(path);
    }
  return best;
}

FittedPath FunctionSearch::shared(const FittedPath& path, const FieldTerm& from,
                                  const FieldTerm& to, const Support& monomials) {
  const TermLibrary& library = this->library();
  std::map<int, double> numbers = search_.numbers_of(path);
  const auto& theirs = library.functions->numbers_of(library.function(from.term));
  const auto& its = library.functions->numbers_of(library.function(to.term));
  for (std::size_t k = 0; k < theirs.size(); ++k) numbers[its[k]] = numbers.at(theirs[k]);
  std::vector<double> z(library.functions->numbers().size(), 0);
  for (const auto& [k, value] : numbers) z[index(k)] = value;
  Support own;
  for (const FieldTerm& t : monomials)
    if (t.equation == to.equation) own.push_back(t);
  const int function = static_cast<int>(own.size());
  own.push_back(to);
  const QuadraticModel model = integral_model(short_form(z), to.equation, own, path.support);
  std::vector<int> plain(index(function)), others;
  std::iota(plain.begin(), plain.end(), 0);
  const QuadraticModel rest = model.beside({function}, plain);
  FittedPath best;
  for (int few = 0; few <= kBeside && !budget_.over(); ++few) {
    std::vector<int> set = others;
    set.push_back(function);
    const Vector theta = model.minimiser(set);
    std::vector<std::pair<FieldTerm, double>> terms;
    for (std::size_t k = 0; k < path.support.size(); ++k)
      if (path.support[k].equation != to.equation)
        terms.push_back({path.support[k], path.theta[static_cast<long>(k)]});
    for (std::size_t k = 0; k < set.size(); ++k)
      terms.push_back({own[index(set[k])], theta[static_cast<long>(k)]});
    FittedPath other = path;
    search_.set_terms(other, terms, numbers);
    search_.settle(other);
    if (other.score < best.score) best = std::move(other);
    const auto moves = rest.moves(others);
    const auto* next = best_of(moves);
    if (!next || next->change >= -1e-6) break;
    QuadraticModel::apply(others, *next);
  }
  return best;
}

bool FunctionSearch::share(FittedPath& path, const Support& monomials) {
  const TermLibrary& library = this->library();
  if (!library.functions) return false;
  const auto in_other = [&](const FieldTerm& t, int equation) -> FieldTerm {
    const int f = library.function(t.term);
    for (const OfferedFunctions::Offer& offer : offered_.offers)
      if (!offer.free.empty() && offer.free[index(t.equation)] == f)
        return {equation, library.basis->size() + offer.free[index(equation)]};
    return {equation, t.term};  // no numbers inside
  };
  const auto has = [](const FittedPath& p, const FieldTerm& t) {
    return std::binary_search(p.support.begin(), p.support.end(), t);
  };
  bool better = false;
  std::set<FieldTerm> tried;
  for (bool again = true; again && !budget_.over();) {
    again = false;
    for (std::size_t c = 0; c < path.support.size() && !again; ++c) {
      const FieldTerm from = path.support[c];
      if (!library.is_function(from.term)) continue;
      for (int i = 0; i < search_.dimension() && !again && !budget_.over(); ++i) {
        const FieldTerm to = in_other(from, i);
        if (active_[i] == 0 || i == from.equation || has(path, to) || !tried.insert(to).second)
          continue;
        FittedPath best = shared(path, from, to, monomials);
        again = best.score < path.score - 1e-6;
        if (again) path = std::move(best);
        better = better || again;
      }
    }
  }
  search_.use(path);
  return better;
}

void FunctionSearch::go_on(FittedPath& best, FittedPath from, const Support& monomials,
                           std::optional<Family> family) {
  if (std::isfinite(from.score)) {
    search_.improve(from, with_functions(monomials, from, family));
    if (share(from, monomials)) search_.improve(from, with_functions(monomials, from, family));
  }
  if (from.score < best.score) best = std::move(from);
  search_.use(best);
}

void FunctionSearch::run(FittedPath& path, const Support& monomials, const Budget& for_family) {
  search_.improve(path, with_functions(monomials, path));
  go_on(path, guess(with_functions(monomials, {})), monomials, {});
  std::set<Family> families;
  for (const OfferedFunctions::Offer& offer : offered_.offers)
    if (offer.family) families.insert(*offer.family);
  if (families.size() > 1 && !budget_.over()) {
    const Budget whole = budget_;
    const double before = path.score;
    for (const Family family : families) {
      budget_ = for_family;
      const Support all = with_functions(monomials, {}, family);
      go_on(path, guess(all), monomials, family);
      if (search_.dimension() > 1) go_on(path, guess_shared(all), monomials, family);
    }
    budget_ = whole;
    if (path.score < before) search_.improve(path, with_functions(monomials, path));
  }
  if (share(path, monomials)) search_.improve(path, with_functions(monomials, path));
}

}  // namespace odecast
