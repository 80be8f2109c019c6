#include "odecast/shooting/offered_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

/// The prior of z, sd 1000, in units of what it stands for: ln of a positive number has sd 2.
constexpr double kLogSpread = 2e-3, kSpread = 1e-3;
/// Rows at which the size of a function is looked at.
constexpr long kMostRows = 2000;
/// Functions that stand for themselves, and columns of numbers, that are offered at most.
constexpr std::size_t kMostFunctions = 4000;
/// What decays to 0 is about positive still where the smoother leaves a tenth of it a little below:
/// so far, in root mean squares.
constexpr double kAboutZero = 0.05;

/// Rows of all runs, evenly thinned, in the user's units, inputs included.
struct Rows {
  Matrix smoothed, observed;  ///< a value that was not observed is the smoothed one
  std::vector<long> number;   ///< of each row in its run, from 1
};

Rows rows_of(const std::vector<ObservedRun>& runs, const Smoothed& smoothed, const Vector& offset,
             const Vector& scale, int variables, long most) {
  long all = 0;
  for (const ObservedRun& run : runs) all += run.values.rows();
  const long every = std::max(1L, (all + most - 1) / most), arguments = offset.size();
  std::vector<std::pair<std::size_t, long>> places;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (long k = 0; k < runs[r].values.rows(); k += every) places.push_back({r, k});
  Rows rows{Matrix(static_cast<long>(places.size()), arguments),
            Matrix(static_cast<long>(places.size()), arguments),
            {}};
  for (std::size_t at = 0; at < places.size(); ++at) {
    const auto [r, k] = places[at];
    const ObservedRun& run = runs[r];
    Vector u(arguments);
    u.head(variables) = smoothed.values[r].row(k).transpose();
    if (arguments > variables) {
      const auto between = pieces(run, std::max(1L, k));
      u.tail(arguments - variables) = k == 0 ? between.front().from : between.back().to;
    }
    const auto to_user = [&](const Vector& v) {
      return (offset + scale.cwiseProduct(v)).transpose().eval();
    };
    rows.smoothed.row(static_cast<long>(at)) = to_user(u);
    for (int i = 0; i < variables; ++i)
      if (run.weights(k, i) > 0) u[i] = run.values(k, i);
    rows.observed.row(static_cast<long>(at)) = to_user(u);
    rows.number.push_back(k + 1);
  }
  return rows;
}

/// The root mean square of a node over rows; empty where one of its values is not finite.
std::optional<double> size_over(const Tape& tape, int node, const Matrix& rows,
                                const std::vector<double>& numbers) {
  const Matrix values = evaluate_rows(tape, {node}, rows, numbers);
  const double mean = values.squaredNorm() / static_cast<double>(values.size());
  if (!std::isfinite(mean)) return std::nullopt;
  return std::sqrt(mean);
}

/// A number and the values at which the search begins.
struct Grid {
  InnerNumber number;
  std::vector<double> values;
};

struct Spread {
  double mean, sd, rms;
  double least, low;  ///< value, and tenth part of the values
};

Spread spread_of(const Matrix& rows, int argument) {
  const auto x = rows.col(argument).array();
  const double mean = x.mean();
  std::vector<double> sorted(x.begin(), x.end());
  const auto tenth = sorted.begin() + static_cast<long>(sorted.size() / 10);
  std::nth_element(sorted.begin(), tenth, sorted.end());
  return {mean, std::sqrt((x - mean).square().mean()), std::sqrt(x.square().mean()), x.minCoeff(),
          *tenth};
}

Grid grid_of(NumberKind kind, const Spread& x) {
  Grid g;
  switch (kind) {
    case NumberKind::none: break;
    case NumberKind::size:
      g.number = {"", x.rms, kLogSpread, true};
      for (const double part : {0.1, 0.18, 0.32, 0.56, 1.0, 1.8, 3.2, 5.6, 10.0})
        g.values.push_back(part * x.rms);
      break;
    case NumberKind::rate:
      g.number = {"", 0, 4 * kSpread / x.sd, false};
      for (const double part : {-3.0, -1.0, 1.0, 3.0}) g.values.push_back(part / x.sd);
      break;
    case NumberKind::steep:
      g.number = {"", 1 / x.sd, kLogSpread, true};
      for (const double part : {0.5, 1.5, 5.0}) g.values.push_back(part / x.sd);
      break;
    case NumberKind::level:
      g.number = {"", x.mean, 3 * kSpread * x.sd, false};
      for (const double part : {-1.0, 0.0, 1.0}) g.values.push_back(x.mean + part * x.sd);
      break;
    case NumberKind::exponent:
      g.number = {"", 1, kLogSpread / 2, true};
      g.values = {0.33, 0.6, 1.5, 2.5};
      break;
  }
  return g;
}

/// Of a number of which nothing is known, in a term of arguments of that size.
Grid grid_of_unknown(const std::string& name, double size, std::size_t numbers) {
  std::vector<double> scales = {1};
  if (size > 3 || size < 0.3) scales = {1, size, 1 / size};
  Grid g{{name, 0, kSpread * 10 * *std::max_element(scales.begin(), scales.end()), false}, {}};
  const std::vector<double> parts = numbers == 1   ? std::vector{0.1, 0.3, 1.0, 3.0, 10.0}
                                    : numbers == 2 ? std::vector{0.3, 1.0, 3.0}
                                                   : std::vector{1.0};
  for (const double s : scales)
    for (const double part : parts)
      for (const double sign : {1.0, -1.0})
        if (sign > 0 || numbers <= 2) g.values.push_back(sign * part * s);
  return g;
}

/// All combinations of the grids' values, at most so many.
std::vector<std::vector<double>> combinations(const std::vector<Grid>& grids) {
  constexpr std::size_t kMost = 500;
  std::vector<std::vector<double>> all = {{}};
  for (const Grid& g : grids) {
    std::vector<std::vector<double>> longer;
    for (const auto& begin : all)
      for (const double value : g.values) {
        longer.push_back(begin);
        longer.back().push_back(value);
        if (longer.size() == kMost) break;
      }
    all = std::move(longer);
  }
  return all;
}

/// What is built up: one tape for all.
class Builder {
 public:
  Builder(const std::vector<std::string>& names, int variables, InnerNumbers inner, Rows rows)
      : tape_(names), variables_(variables), inner_(inner), rows_(std::move(rows)) {}

  /// A form, its letters taken for arguments and numbers.
  void add_form(const FunctionForm& form, int x, int y) {
    Tape plain({"x", "y"});
    const int node = parse_expression(form.text, plain);
    const Spread spread = spread_of(rows_.smoothed, x);
    if (!(spread.sd > 0)) return;
    const Domain domain = domain_of(form);
    if (domain == Domain::positive && !(spread.least > 0)) return;
    if (domain == Domain::about_positive && !(spread.low > -kAboutZero * spread.rms)) return;
    std::map<std::string, NumberKind> kinds = {{"k", form.k}, {"m", form.m}};
    std::vector<Grid> grids;
    for (const std::string& name : plain.parameters())
      grids.push_back(grid_of(kinds.at(name), spread));
    // k + x keeps half of k where noise, or a smoother, takes x below 0.
    if (domain == Domain::about_positive)
      std::erase_if(grids[0].values, [&](double k) { return 2 * spread.least + k < 0; });
    const double price = form.size;
    const Family family = family_of(form);
    const std::array arguments = {tape_.argument(x), tape_.argument(y)};
    const auto made = [&](const std::vector<int>& numbers) {
      return copied(plain, {node}, tape_, arguments, numbers)[0];
    };
    if (grids.empty()) {
      add_column(made({}), price, {}, {}, family);
      return;
    }
    std::vector<int> free;
    for (int equation = 0; equation < variables_; ++equation) {
      std::vector<int> numbers;
      for (const Grid& g : grids) numbers.push_back(new_number(g.number));
      free.push_back(add_free(made(numbers), price, family));
    }
    add_grid(grids, price, free, family, made);
  }

  void add_candidate(const std::string& text, const std::string& where) {
    const std::size_t known = tape_.parameters().size();
    const int node = parse_expression(text, tape_, where);
    const Occurring in = occurring(tape_, node);
    if (in.arguments.empty())
      throw_usage({where, fmt::format("'{}', which has no variable", text),
                   fmt::format("an expression of {}", fmt::join(tape_.arguments(), ", ")),
                   "A constant is offered anyhow; the time is one of the `inputs`, if it drives."});
    if (inner_ == InnerNumbers::none && !in.parameters.empty())
      throw_usage({where,
                   fmt::format("'{}' with a number {} to estimate", text,
                               tape_.parameters()[static_cast<std::size_t>(in.parameters[0])]),
                   "an expression of columns and numbers alone",
                   "Write a value for it, or take the default, `posterior=trajectory`, which "
                   "estimates it."});
    double size = 0;
    for (const int a : in.arguments) size = std::max(size, spread_of(rows_.smoothed, a).rms);
    for (std::size_t k = known; k < tape_.parameters().size(); ++k) {
      unknown_.push_back(grid_of_unknown(tape_.parameters()[k], size, in.parameters.size()));
      numbers_.push_back(unknown_.back().number);
    }
    if (in.parameters.empty()) {
      check_defined(text, where, node, {});
      add_column(node, 1, {}, {}, {});
      return;
    }
    std::vector<Grid> grids;
    for (const int k : in.parameters) {
      const auto at = std::find_if(unknown_.begin(), unknown_.end(), [&](const Grid& g) {
        return g.number.name == tape_.parameters()[static_cast<std::size_t>(k)];
      });
      grids.push_back(*at);
    }
    check_told(text, where, node, in.parameters, grids);
    if (grids.size() == 1) refine(grids[0], node, in.parameters[0]);
    const std::vector<int> free(static_cast<std::size_t>(variables_), add_free(node, 1, {}));
    const std::size_t before = terms_.size();
    std::vector<int> arguments;
    for (int k = 0; k < static_cast<int>(tape_.arguments().size()); ++k)
      arguments.push_back(tape_.argument(k));
    add_grid(grids, 1, free, {}, [&](const std::vector<int>& values) {
      std::vector<int> numbers(tape_.parameters().size(), -1);
      for (std::size_t k = 0; k < values.size(); ++k)
        numbers[static_cast<std::size_t>(in.parameters[k])] = values[k];
      return copied(tape_, {node}, tape_, arguments, numbers)[0];
    });
    if (terms_.size() == before) check_defined(text, where, node, grids);
  }

  OfferedFunctions finish(const Vector& offset, const Vector& scale, int kinds) {
    OfferedFunctions all;
    if (terms_.empty()) return all;
    all.offers = std::move(offers_);
    for (std::size_t f = 0; f < all.offers.size(); ++f) all.offers[f].form = static_cast<int>(f);
    for (OfferedFunctions::Offer& column : all.offers) {
      if (column.free.empty()) continue;
      column.form = column.free.front();
      for (const int f : column.free) all.offers[static_cast<std::size_t>(f)].form = column.form;
    }
    all.kinds = std::max(1, kinds);
    for (const Grid& g : unknown_) all.given_names.push_back(g.number.name);
    all.functions = std::make_shared<FunctionTerms>(std::move(tape_), std::move(terms_),
                                                    std::move(numbers_), offset, scale, variables_);
    return all;
  }

 private:
  int new_number(InnerNumber number) {
    std::string name;
    const auto& columns = tape_.arguments();
    do {
      name = fmt::format("k{}", ++named_);
    } while (std::find(columns.begin(), columns.end(), name) != columns.end() ||
             std::find(tape_.parameters().begin(), tape_.parameters().end(), name) !=
                 tape_.parameters().end());
    number.name = name;
    numbers_.push_back(number);
    return tape_.parameter(name);
  }

  template <class Make>
  void add_grid(const std::vector<Grid>& grids, double price, const std::vector<int>& free,
                std::optional<Family> family, const Make& make) {
    for (const std::vector<double>& values : combinations(grids)) {
      std::vector<int> nodes;
      std::vector<double> z;
      for (std::size_t k = 0; k < values.size(); ++k) {
        nodes.push_back(tape_.number(values[k]));
        z.push_back(grids[k].number.z(values[k]));
      }
      add_column(make(nodes), price, free, z, family);
    }
  }

  void add_column(int node, double price, const std::vector<int>& free,
                  const std::vector<double>& z, std::optional<Family> family) {
    if (terms_.size() >= kMostFunctions || tape_.is(node, Op::number)) return;
    const auto size =
        size_over(tape_, node, rows_.smoothed, std::vector<double>(tape_.parameters().size(), 0));
    if (!size || !(*size > 1e-100) || !(*size < 1e100)) return;
    terms_.push_back({node, *size});
    offers_.push_back({price, true, free, z, family});
  }

  int add_free(int node, double price, std::optional<Family> family) {
    terms_.push_back({node, 1});
    offers_.push_back({price, false, {}, {}, family});
    return static_cast<int>(terms_.size()) - 1;
  }

  void check_defined(const std::string& text, const std::string& where, int node,
                     const std::vector<Grid>& grids) {
    std::vector<double> numbers(tape_.parameters().size(), 1);
    const Matrix values = evaluate_rows(tape_, {node}, rows_.observed, numbers);
    for (long k = 0; k < values.rows(); ++k) {
      if (std::isfinite(values(k, 0))) continue;
      std::string at;
      for (const int a : occurring(tape_, node).arguments)
        at += fmt::format("{}{} = {:.6g}", at.empty() ? "" : ", ",
                          tape_.arguments()[static_cast<std::size_t>(a)], rows_.observed(k, a));
      throw_data({where,
                  fmt::format("'{}' at row {}, where {}: no number", text,
                              rows_.number[static_cast<std::size_t>(k)], at),
                  "a number at every row",
                  "Leave such rows out, or write an expression that is defined there."});
    }
    if (!grids.empty())
      throw_data({where, fmt::format("'{}', undefined for all values that were tried", text),
                  "numbers inside for which it is defined at every row",
                  "Write it with another sign, or so that its numbers are near 1."});
  }

  /// A grid whose neighbours are alike over the rows: a frequency times a long time needs values
  /// close together, a saturation few. An interval is halved where its ends correlate by less than
  /// kAlike, until there are kMostValues.
  void refine(Grid& grid, int node, int parameter) const {
    constexpr double kAlike = 0.5;
    constexpr std::size_t kMostValues = 500;
    const long every = 1 + rows_.smoothed.rows() / kMostRows;
    Matrix rows((rows_.smoothed.rows() + every - 1) / every, rows_.smoothed.cols());
    for (long k = 0; k < rows.rows(); ++k) rows.row(k) = rows_.smoothed.row(k * every);
    const auto column = [&](double value) -> Vector {
      std::vector<double> numbers(tape_.parameters().size(), 0);
      numbers[static_cast<std::size_t>(parameter)] = value;
      return Vector(evaluate_rows(tape_, {node}, rows, numbers).col(0)).normalized();
    };
    std::map<double, Vector> known;  // value to column
    for (const double value : grid.values) known.emplace(value, column(value));
    std::erase_if(known, [&](const auto& one) {  // cos(-w t) is cos(w t)
      const auto opposite = known.find(-one.first);
      return one.first < 0 && opposite != known.end() &&
             std::abs(one.second.dot(opposite->second)) > 1 - 1e-12;
    });
    for (bool more = true; more && known.size() < kMostValues;) {
      std::vector<double> between;
      for (auto at = known.begin(), next = std::next(at); next != known.end(); at = next++)
        // of what is not defined nothing is known
        if (const double alike = std::abs(at->second.dot(next->second));
            at->first * next->first > 0 && alike > 0 && alike < kAlike &&
            known.size() + between.size() < kMostValues)
          between.push_back(0.5 * (at->first + next->first));
      for (const double value : between) known.emplace(value, column(value));
      more = !between.empty();
    }
    grid.values.clear();
    for (const auto& [value, _] : known) grid.values.push_back(value);
  }

  /// c g(u; k) changes by g dc + Σ c ∂g/∂k_i dk_i: a slope that is a combination of g and the
  /// slopes before it, at all values tried, belongs to a number that no data can tell.
  void check_told(const std::string& text, const std::string& where, int node,
                  const std::vector<int>& parameters, const std::vector<Grid>& grids) const {
    constexpr double kNothing = 1e-9;
    Tape tape = tape_;
    std::vector<int> nodes = {node};
    for (const int k : parameters)
      nodes.push_back(
          slope(tape, node, tape.parameter(tape_.parameters()[static_cast<std::size_t>(k)])));
    std::set<std::size_t> hidden;  // by every value so far
    for (std::size_t k = 0; k < parameters.size(); ++k) hidden.insert(k);
    bool any = false;
    for (const std::vector<double>& values : combinations(grids)) {
      std::vector<double> numbers(tape.parameters().size(), 0);
      for (std::size_t k = 0; k < values.size(); ++k)
        numbers[static_cast<std::size_t>(parameters[k])] = values[k];
      Matrix columns = evaluate_rows(tape, nodes, rows_.smoothed, numbers);
      if (!columns.allFinite() || !(columns.col(0).norm() > 0)) continue;
      any = true;
      columns.col(0).normalize();
      for (Eigen::Index c = 1; c < columns.cols(); ++c) {
        const double size = columns.col(c).norm();
        for (int twice = 0; twice < 2; ++twice)  // Gram–Schmidt, again for round-off
          for (Eigen::Index b = 0; b < c; ++b)
            columns.col(c) -= columns.col(b).dot(columns.col(c)) * columns.col(b);
        const double left = columns.col(c).norm();
        if (left > kNothing * size) {
          hidden.erase(static_cast<std::size_t>(c - 1));
          columns.col(c) /= left;
        } else {
          columns.col(c).setZero();
        }
      }
      if (hidden.empty()) return;
    }
    if (!any) return;
    const std::string& name =
        tape_.parameters()[static_cast<std::size_t>(parameters[*hidden.begin()])];
    throw_usage(
        {where,
         fmt::format("'{}', in which no data can tell {} from the coefficient in front of the "
                     "term and the other numbers",
                     text, name),
         "numbers that each change the shape of the term",
         fmt::format("Leave {} out or write a value for it; a coefficient in front is "
                     "estimated anyhow.",
                     name)});
  }

  Tape tape_;
  int variables_;
  InnerNumbers inner_;
  Rows rows_;
  std::vector<FunctionTerms::Term> terms_;
  std::vector<InnerNumber> numbers_;
  std::vector<OfferedFunctions::Offer> offers_;
  std::vector<Grid> unknown_;
  int named_ = 0;
};

/// The same functions without those that none of the terms `kept` (ascending) is.
std::shared_ptr<const FunctionTerms> restricted(const FunctionTerms& functions,
                                                const std::vector<int>& kept,
                                                const std::vector<std::string>& taken_names,
                                                const Vector& offset, const Vector& scale) {
  if (kept.empty()) return nullptr;
  // The numbers that are left, renamed where the search named them.
  std::set<int> numbers;
  for (const int f : kept)
    numbers.insert(functions.numbers_of(f).begin(), functions.numbers_of(f).end());
  std::vector<InnerNumber> list;
  std::vector<int> arguments, place(functions.numbers().size(), -1), roots;
  Tape tape(functions.tape().arguments());
  for (int k = 0; k < static_cast<int>(tape.arguments().size()); ++k)
    arguments.push_back(tape.argument(k));
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  int named = 0;
  for (const int k : numbers) {
    InnerNumber number = functions.numbers()[static_cast<std::size_t>(k)];
    if (!is_in(taken_names, number.name)) do {
        number.name = fmt::format("k{}", ++named);
      } while (is_in(tape.arguments(), number.name) || is_in(taken_names, number.name));
    place[static_cast<std::size_t>(k)] = tape.parameter(number.name);
    list.push_back(number);
  }
  for (const int f : kept) roots.push_back(functions.term(f).node);
  const std::vector<int> nodes = copied(functions.tape(), roots, tape, arguments, place);
  std::vector<FunctionTerms::Term> terms;
  for (std::size_t k = 0; k < kept.size(); ++k)
    terms.push_back({nodes[k], functions.term(kept[k]).unit});
  return std::make_shared<FunctionTerms>(std::move(tape), std::move(terms), std::move(list), offset,
                                         scale, functions.variables());
}

/// Refuses words all of whose forms have numbers inside.
void check_kinds_without_numbers(const std::vector<std::string>& kinds) {
  const auto without = [](std::string_view kind) {
    return std::ranges::any_of(function_forms(), [&](const FunctionForm& form) {
      return form.kind == kind && form.k == NumberKind::none;
    });
  };
  std::string known;
  for (const FunctionKind& kind : function_kinds())
    if (without(kind.name)) known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
  for (const std::string& kind : kinds)
    if (kind != kAutomaticFunctions && !without(kind))
      throw_usage({"`functions`", fmt::format("{}, which has numbers inside", kind),
                   fmt::format("functions without numbers to estimate: {}", known),
                   "Take the default, `posterior=trajectory`, which estimates them, or write one "
                   "with its numbers as one of the `candidates`."});
}

}  // namespace

OfferedFunctions offer_functions(const FunctionWishes& wishes,
                                 const std::vector<std::string>& names, int variables,
                                 const std::vector<ObservedRun>& runs, const Smoothed& smoothed,
                                 const Vector& active, const Vector& offset, const Vector& scale,
                                 InnerNumbers inner) {
  if (wishes.kinds.empty() && wishes.candidates.empty()) return {};
  if (inner == InnerNumbers::none) check_kinds_without_numbers(wishes.kinds);
  Builder builder(names, variables, inner,
                  rows_of(runs, smoothed, offset, scale, variables,
                          wishes.candidates.empty() ? kMostRows : 1'000'000'000));
  // The user's first: their numbers keep their names.
  for (const std::string& text : wishes.candidates) builder.add_candidate(text, "`candidates`");
  std::set<std::string_view> kinds(wishes.kinds.begin(), wishes.kinds.end());
  if (kinds.contains(kAutomaticFunctions))
    for (const FunctionKind& kind : function_kinds()) kinds.insert(kind.name);
  const auto arguments = static_cast<int>(names.size());
  for (const FunctionForm& form : function_forms()) {
    if (!kinds.contains(form.kind)) continue;
    if (inner == InnerNumbers::none && form.k != NumberKind::none) continue;
    Tape plain({"x", "y"});
    const auto in = occurring(plain, parse_expression(form.text, plain)).arguments;
    for (int x = 0; x < arguments; ++x) {
      if (active[x] == 0) continue;
      if (in.size() == 1) {
        builder.add_form(form, x, x);
        continue;
      }
      for (int y = form.ordered ? 0 : x + 1; y < arguments; ++y)
        if (y != x && active[y] != 0) builder.add_form(form, x, y);
    }
  }
  return builder.finish(offset, scale, static_cast<int>(kinds.size()));
}

void keep_used(TermLibrary& library, std::vector<CoefficientSet>& sets,
               const std::vector<std::string>& taken_names, const Vector& offset,
               const Vector& scale) {
  if (!library.functions) return;
  std::vector<int> kept;
  for (const CoefficientSet& m : sets)
    for (const FieldTerm& t : m.support)
      if (library.is_function(t.term)) kept.push_back(library.function(t.term));
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  for (CoefficientSet& m : sets)
    for (FieldTerm& t : m.support)
      if (library.is_function(t.term))
        t.term =
            library.basis->size() +
            static_cast<int>(std::lower_bound(kept.begin(), kept.end(), library.function(t.term)) -
                             kept.begin());
  library.functions = restricted(*library.functions, kept, taken_names, offset, scale);
}

}  // namespace odecast
