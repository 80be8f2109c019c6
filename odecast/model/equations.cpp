#include "odecast/model/equations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/coefficients.hpp"
#include "odecast/network/polynomial_kernel.hpp"

namespace odecast {
namespace {

/// "name" or "(name - offset)".
std::string shifted(const std::string& name, double offset) {
  if (offset == 0) return name;
  return fmt::format("({} {} {})", name, offset < 0 ? "+" : "-", std::abs(offset));
}

/// Of names that are LaTeX.
std::string latex_monomial(const std::vector<int>& powers, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t v = 0; v < powers.size(); ++v) {
    if (powers[v] == 0) continue;
    text += (text.empty() ? "" : "\\,") + names[v];
    if (powers[v] > 1) text += fmt::format("^{{{}}}", powers[v]);
  }
  return text;
}

/// Root mean square of what each argument is in the terms.
Vector term_sizes(const Model& model) {
  Vector sizes = model.size;
  const Vector offset = model.term_offsets();
  const Eigen::Index n = model.dimension();
  for (Eigen::Index v = 0; v < sizes.size(); ++v)
    if (offset[v] != 0) sizes[v] = v < n ? model.scaling.scale[v] : model.inputs.scale[v - n];
  return sizes;
}

/// How much a term can contribute over the data.
double size_of(const Term& term, const Vector& sizes, const Model& model) {
  double size = std::abs(term.mean) + term.sd;
  if (size == 0) return 0;  // and not 0 × ∞
  if (term.function) size *= model.polynomial()->functions->term(*term.function).unit;
  for (std::size_t v = 0; v < term.powers.size(); ++v)
    size *= integer_power(sizes[static_cast<Eigen::Index>(v)], term.powers[v]);
  return std::min(size, std::numeric_limits<double>::max());
}

/// The equations of the most probable set of terms. `all` has the probability of each term.
std::vector<Equation> of_best_set(std::vector<Equation> all, const Model& model) {
  const auto best = best_set(model);
  if (!best)
    throw_usage({"equations", "a model without sets of terms",
                 "one of fit's default, or regression", "Ask for the mean."});
  const CoefficientSet& set = *best->set;
  const TermLibrary library = term_library(model);
  std::map<FieldTerm, std::size_t> place;
  for (std::size_t k = 0; k < set.support.size(); ++k) place[set.support[k]] = k;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Term> terms;
    for (Term& t : all[i].terms) {
      const auto at =
          place.find({static_cast<int>(i), t.function ? library.basis->size() + *t.function
                                                      : library.basis->find(t.powers)});
      if (at == place.end()) continue;
      const auto k = static_cast<Eigen::Index>(at->second);
      const double unit = user_unit(model, library, at->first);
      t.mean = unit * set.theta[k];
      t.sd = std::abs(unit) * std::sqrt(std::max(0.0, set.covariance(k, k)));
      terms.push_back(std::move(t));
    }
    all[i].terms = std::move(terms);
  }
  return all;
}

/// With that centre in the place of the mean, and without terms whose centre is zero.
std::vector<Equation> centred(std::vector<Equation> all, const Model& model, Centre centre) {
  if (centre == Centre::mean) return all;
  if (centre == Centre::best) return of_best_set(std::move(all), model);
  for (Equation& e : all) {
    for (Term& t : e.terms) {
      if (!t.median)
        throw_usage({"equations", "a median of coefficients that are not points",
                     "a model of fit `posterior=bootstrap`",
                     "Ask for the mean; the other posteriors are symmetric around it."});
      t.mean = *t.median;
    }
    std::erase_if(e.terms, [](const Term& t) { return t.mean == 0; });
  }
  return all;
}

/// A function behind its coefficient, as text or LaTeX.
std::string function_text(const Model& model, int function, bool latex) {
  const FunctionTerms& all = *model.polynomial()->functions;
  const int node = all.term(function).node;
  const std::string text =
      latex ? expression_latex(all.tape(), node) : printable(expression_text(all.tape(), node));
  if (!in_brackets(all.tape(), node)) return text;
  return latex ? "\\left(" + text + "\\right)" : "(" + text + ")";
}

std::string number_line(const NumberInside& k, bool latex) {
  const auto [mean, sd] = rounded_coefficient(std::abs(k.mean), k.sd);
  const std::string value = (k.mean < 0 ? "-" : "") + mean;
  if (latex)
    return fmt::format("{} &= {}{}", latex_name(k.name), value,
                       k.sd > 0 ? " \\pm " + sd : std::string());
  return fmt::format("{} = {}{}\n", printable(k.name), value,
                     k.sd > 0 ? "(±" + sd + ")" : std::string());
}

std::string people_text(const Model& model, bool latex, double smallest, Centre centre) {
  auto names = model.arguments();
  const Vector offset = model.term_offsets();
  for (std::size_t v = 0; v < names.size(); ++v)
    names[v] = shifted(latex ? latex_name(names[v]) : printable(names[v]),
                       offset[static_cast<Eigen::Index>(v)]);
  std::string text;
  std::size_t hidden = 0;
  bool first_line = true;
  const std::vector<ReadableEquation> readable = readable_equations(model, smallest, centre);
  for (const ReadableEquation& e : readable) {
    const auto& terms = e.terms;
    hidden += e.left_out;
    if (latex && !first_line) text += " \\\\\n";
    if (latex && model.kind == ModelKind::map)
      text += latex_name(e.variable) + "_{k+1} &= ";
    else if (latex)
      text += fmt::format("\\dot{{{}}} &= ", latex_name(e.variable));
    else
      text += model.left_side(printable(e.variable)) + " =";
    first_line = false;
    if (terms.empty()) text += " 0";
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Term& t = terms[i];
      const bool negative = t.mean < 0;
      const auto [mean, sd] = rounded_coefficient(std::abs(t.mean), t.sd);
      if (latex) {
        text += i == 0 ? (negative ? "-" : "") : (negative ? " - " : " + ");
        text += t.sd > 0 ? fmt::format("({} \\pm {})", mean, sd) : mean;
        if (!t.constant())
          text += "\\," + (t.function ? function_text(model, *t.function, true)
                                      : latex_monomial(t.powers, names));
      } else {
        text += i == 0 ? (negative ? " -" : " ") : (negative ? " - " : " + ");
        text += t.sd > 0 ? fmt::format("{}(±{})", mean, sd) : mean;
        if (!t.constant())
          text += " " + (t.function ? function_text(model, *t.function, false)
                                    : monomial_text(t.powers, names));
      }
    }
    if (!latex) text += '\n';
  }
  for (const NumberInside& k : numbers_inside(model, readable, centre))
    text += (latex ? " \\\\\n" : "") + number_line(k, latex);
  const std::string note =
      hidden == 0 ? ""
                  : fmt::format(
                        "{} term{} below {:g} % of the largest in their equation left out; "
                        "`all` shows them",
                        hidden, hidden == 1 ? "" : "s", 100 * smallest);
  if (latex)
    return "\\begin{aligned}\n" + text + "\n\\end{aligned}\n" + (hidden ? "% " + note + "\n" : "");
  return text + (hidden ? "(" + note + ")\n" : "");
}

/// Mean, sd and probability of every coefficient over the mixture, in the user's units.
std::vector<Equation> polynomial_equations(const Model& model) {
  const PolynomialPosterior posterior = polynomial_posterior(model);
  const TermLibrary& library = posterior.library();
  const PolynomialPosterior::Coefficients all = posterior.coefficients();
  const Matrix median = posterior.atoms() > 0 ? posterior.median_coefficients() : Matrix();
  std::vector<Equation> result;
  for (int i = 0; i < model.dimension(); ++i) {
    Equation equation{model.variables[static_cast<std::size_t>(i)], {}};
    for (int m = 0; m < library.size(); ++m) {
      if (all.probability(i, m) == 0) continue;
      const bool function = library.is_function(m);
      const double unit = user_unit(model, library, {i, m});
      equation.terms.push_back({function ? std::vector<int>() : library.basis->powers(m),
                                unit * all.mean(i, m), std::abs(unit) * all.sd(i, m),
                                std::min(1.0, all.probability(i, m))});
      if (function) equation.terms.back().function = library.function(m);
      if (median.size() > 0) equation.terms.back().median = unit * median(i, m);
    }
    result.push_back(std::move(equation));
  }
  return result;
}

std::vector<Equation> kernel_equations(const Model& model);

/// Moments over the members, each with its share; a term that a member does not have is 0 in it.
std::vector<Equation> ensemble_equations(const Model& model) {
  Model one = model;
  const NetworkEnsemble& members = *model.ensemble();
  const auto share = 1 / static_cast<double>(members.size());
  std::vector<std::map<std::vector<int>, std::vector<double>>> found(
      static_cast<std::size_t>(model.dimension()));
  for (const Network& member : members) {
    one.law = member;
    const std::vector<Equation> own = kernel_equations(one);
    for (std::size_t i = 0; i < own.size(); ++i)
      for (const Term& t : own[i].terms) found[i][t.powers].push_back(t.mean);
  }
  const MonomialBasis basis(model.dimension() + model.inputs.size(),
                            members.front().layers.front().power);
  std::vector<Equation> result;
  for (std::size_t i = 0; i < found.size(); ++i) {
    Equation equation{model.variables[i], {}};
    for (int m = 0; m < basis.size(); ++m) {
      const auto at = found[i].find(basis.powers(m));
      if (at == found[i].end()) continue;
      const std::vector<double>& values = at->second;
      Term term{basis.powers(m), 0, 0, share * static_cast<double>(values.size())};
      for (const double x : values) term.mean += share * x;
      double square = (1 - term.probability) * term.mean * term.mean;
      for (const double x : values) square += share * (x - term.mean) * (x - term.mean);
      term.sd = std::sqrt(std::max(0.0, square));
      term.probability = std::min(1.0, term.probability);
      equation.terms.push_back(std::move(term));
    }
    result.push_back(std::move(equation));
  }
  return result;
}

std::string c_function(const std::vector<Equation>& all, const Model& model, Centre centre) {
  const char* which = centre == Centre::mean     ? "mean"
                      : centre == Centre::median ? "median"
                                                 : "most probable";
  // Column names may hold anything, such as the end of a comment or characters that show other code
  // than is compiled.
  std::vector<std::string> names = model.arguments();
  for (auto& name : names) {
    name = printable(name);
    for (char& c : name)
      if (c == '*' || c == '\\' || c == '/') c = '_';
  }
  const std::vector<FunctionShare> shares = function_shares(model, centre);
  std::string text = shares.empty() ? "" : "#include <math.h>\n\n";
  text += model.kind == ModelKind::map
              ? fmt::format(
                    "/* The {} map learnt by odecast. u = {{{}}}. */\n"
                    "void odecast_map(const double *u, double *next)\n{{\n",
                    which, fmt::join(names, ", "))
              : fmt::format(
                    "/* The {} field learnt by odecast. u = {{{}}}. */\n"
                    "void odecast_field(double t, const double *u, double *dudt)\n{{\n  (void)t;\n",
                    which, fmt::join(names, ", "));
  const char* result = model.kind == ModelKind::map ? "next" : "dudt";
  const Vector offset = model.term_offsets();
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("  {}[{}] = 0.0", result, i);
    for (const Term& t : all[i].terms) {
      if (t.function) continue;
      text += fmt::format("\n    + {:.17g}", t.mean);
      for (std::size_t v = 0; v < t.powers.size(); ++v)
        for (int p = 0; p < t.powers[v]; ++p)
          text += " * " + shifted(fmt::format("u[{}]", v), offset[static_cast<Eigen::Index>(v)]);
    }
    text += ";\n";
  }
  for (std::size_t first = 0; first < shares.size();) {  // those with the same numbers inside
    std::size_t end = first;
    std::vector<int> nodes;
    const FunctionTerms& functions = *model.polynomial()->functions;
    for (; end < shares.size() && shares[end].numbers == shares[first].numbers; ++end)
      nodes.push_back(functions.term(shares[end].function).node);
    const CExpressions c = expressions_c(functions.tape(), nodes, shares[first].numbers);
    text += "  {\n" + c.statements;
    for (std::size_t k = first; k < end; ++k)
      text += fmt::format("  {}[{}] += {:.17g} * ({});\n", result, shares[k].equation,
                          shares[k].coefficient, c.values[k - first]);
    text += "  }\n";
    first = end;
  }
  return text + "}\n";
}

std::vector<Equation> kernel_equations(const Model& model) {
  const auto scaled = polynomial_kernel(model.network());
  Vector offset = model.scaling.offset, scale = model.scaling.scale;
  if (const int inputs = model.inputs.size(); inputs > 0) {
    offset.conservativeResize(offset.size() + inputs);
    scale.conservativeResize(scale.size() + inputs);
    offset.tail(inputs) = model.inputs.offset;
    scale.tail(inputs) = model.inputs.scale;
  }
  PolynomialKernel kernel = change_units(*scaled, offset, scale, model.rate());
  kernel.B2 += model.base();
  const KernelExpansion e = expand(kernel);
  const double q = kernel.keep(), r = kernel.dropout;
  std::vector<Equation> result;
  for (int i = 0; i < model.dimension(); ++i) {
    Equation equation{model.variables[static_cast<std::size_t>(i)], {}};
    for (int m = 0; m < e.basis->size(); ++m) {
      double sum = 0, size = 0, squares = 0, all_dropped = 1;
      for (Eigen::Index j = 0; j < e.powers.rows(); ++j) {
        const double share = e.share(j, i, m);
        sum += share;
        size += std::abs(share);
        squares += share * share;
        if (share != 0) all_dropped *= r;
      }
      const double constant = m == 0 ? kernel.B2[i] : 0;
      // Without dropout shares add up for certain; what is left of those that cancel is round-off.
      if (r == 0 && std::abs(constant + sum) <=
                        64 * std::numeric_limits<double>::epsilon() * (std::abs(constant) + size))
        continue;
      Term term{e.basis->powers(m), constant + q * sum, std::sqrt(q * r * squares),
                constant != 0 ? 1.0 : 1 - all_dropped};
      if (term.probability > 0) equation.terms.push_back(std::move(term));
    }
    result.push_back(std::move(equation));
  }
  return result;
}

}  // namespace

bool Term::constant() const {
  return !function && std::all_of(powers.begin(), powers.end(), [](int p) { return p == 0; });
}

bool in_brackets(const Tape& tape, int node) {
  const Op op = tape[node].op;
  if (op == Op::add || op == Op::subtract || op == Op::negate) return true;
  while (tape.is(node, Op::multiply) || tape.is(node, Op::divide)) node = tape[node].left;
  return tape.is(node, Op::number) || tape.is(node, Op::negate);
}

std::string term_text(const Model& model, const Term& term) {
  if (!term.function) return monomial_text(term.powers, term_arguments(model));
  const FunctionTerms& all = *model.polynomial()->functions;
  return expression_text(all.tape(), all.term(*term.function).node);
}

std::vector<NumberInside> numbers_inside(const Model& model, Centre centre) {
  std::vector<NumberInside> result;
  const PolynomialPart* part = model.polynomial();
  if (!part || !part->functions) return result;
  const TermLibrary library = term_library(model);
  const auto best = centre == Centre::best ? best_set(model) : std::nullopt;
  const std::vector<double> median = centre == Centre::median
                                         ? polynomial_posterior(model).median_numbers()
                                         : std::vector<double>();
  for (std::size_t q = 0; q < part->functions->numbers().size(); ++q) {
    const InnerNumber& number = part->functions->numbers()[q];
    struct Known {
      double weight, value, sd;
    };
    std::vector<Known> known;
    double weight = 0, mean = 0, square = 0;
    for (const CoefficientSet& set : part->sets) {
      if (best && best->set != &set) continue;
      const std::vector<int> inside = numbers_inside(library, set.support);
      const auto found = std::find(inside.begin(), inside.end(), static_cast<int>(q));
      if (found == inside.end()) continue;
      const auto at = static_cast<Eigen::Index>(set.support.size()) + (found - inside.begin());
      const double variance = set.covariance.size() > 0 ? set.covariance(at, at) : 0;
      known.push_back({set.weight, number.value(set.theta[at]),
                       std::abs(number.slope(set.theta[at])) * std::sqrt(std::max(0.0, variance))});
      weight += set.weight;
    }
    if (known.empty() || !(weight > 0)) continue;
    for (const Known& k : known) mean += k.weight / weight * k.value;
    for (const Known& k : known)
      square += k.weight / weight * (k.sd * k.sd + (k.value - mean) * (k.value - mean));
    result.push_back({static_cast<int>(q), number.name,
                      median.empty() ? mean : number.value(median[q]), std::sqrt(square)});
  }
  return result;
}

std::vector<NumberInside> numbers_inside(const Model& model,
                                         const std::vector<ReadableEquation>& equations,
                                         Centre centre) {
  std::vector<NumberInside> all = numbers_inside(model, centre);
  std::erase_if(all, [&](const NumberInside& k) {
    for (const ReadableEquation& e : equations)
      for (const Term& t : e.terms) {
        if (!t.function) continue;
        const auto& inside = model.polynomial()->functions->numbers_of(*t.function);
        if (std::binary_search(inside.begin(), inside.end(), k.number)) return false;
      }
    return true;
  });
  return all;
}

std::vector<FunctionShare> function_shares(const Model& model, Centre centre) {
  std::vector<FunctionShare> result;
  const PolynomialPart* part = model.polynomial();
  if (!part || !part->functions) return result;
  const FunctionTerms& functions = *part->functions;
  const TermLibrary library = term_library(model);
  const auto values = [&](const std::vector<double>& z) {
    std::vector<double> of;
    for (std::size_t k = 0; k < z.size(); ++k) of.push_back(functions.numbers()[k].value(z[k]));
    return of;
  };
  // One share of each term where its numbers are the same in all sets.
  const auto best = centre == Centre::best ? best_set(model) : std::nullopt;
  const std::vector<double> one = best ? all_numbers(library, best->set->support, best->set->theta)
                                  : centre == Centre::median
                                      ? polynomial_posterior(model).median_numbers()
                                      : std::vector<double>(functions.numbers().size(), 0);
  const std::vector<Equation> terms = centred(equations(model), model, centre);
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (const Term& t : terms[i].terms)
      if (t.function && (centre != Centre::mean || functions.numbers_of(*t.function).empty()))
        result.push_back({static_cast<int>(i), *t.function, t.mean, values(one)});
  if (centre != Centre::mean) return result;
  for (const CoefficientSet& set : part->sets) {
    const std::vector<double> own = values(all_numbers(library, set.support, set.theta));
    for (std::size_t c = 0; c < set.support.size(); ++c) {
      const FieldTerm& t = set.support[c];
      if (!library.is_function(t.term)) continue;
      const int f = library.function(t.term);
      if (functions.numbers_of(f).empty()) continue;
      result.push_back(
          {t.equation, f,
           set.weight * user_unit(model, library, t) * set.theta[static_cast<Eigen::Index>(c)],
           own});
    }
  }
  return result;
}

std::vector<std::string> term_arguments(const Model& model) {
  std::vector<std::string> names = model.arguments();
  const Vector offset = model.term_offsets();
  for (std::size_t v = 0; v < names.size(); ++v)
    names[v] = shifted(names[v], offset[static_cast<Eigen::Index>(v)]);
  return names;
}

std::vector<Equation> equations(const Model& model) {
  if (!model.has_equations())
    throw_usage({"equations", "a general network", "a polynomial kernel",
                 "Only polynomial models can be written as equations: fit without `layers`."});
  std::vector<Equation> all = model.polynomial() ? polynomial_equations(model)
                              : model.ensemble() ? ensemble_equations(model)
                                                 : kernel_equations(model);
  for (const Equation& e : all)
    for (const Term& t : e.terms)
      if (!std::isfinite(t.mean) || !std::isfinite(t.sd) || !std::isfinite(t.median.value_or(0)))
        throw_data({"equations, " + model.left_side(e.variable),
                    fmt::format("a coefficient of {} that overflows in the units of the data",
                                term_text(model, t)),
                    "finite numbers",
                    "Fit again with columns in units in which their values are near 1."});
  return all;
}

std::vector<ReadableEquation> readable_equations(const Model& model, double smallest,
                                                 Centre centre) {
  std::vector<ReadableEquation> result;
  const Vector sizes = term_sizes(model);
  for (const Equation& e : centred(equations(model), model, centre)) {
    double largest = 0;
    for (const Term& t : e.terms) largest = std::max(largest, size_of(t, sizes, model));
    std::vector<Term> terms;
    // A posterior of terms that the data support knows a small one from none; masks do not.
    const auto certain = [&](const Term& t) {
      return model.polynomial() && t.sd > 0 && std::abs(t.mean) > 5 * t.sd;
    };
    for (const Term& t : e.terms)
      if (size_of(t, sizes, model) >= smallest * largest || certain(t)) terms.push_back(t);
    std::stable_sort(terms.begin(), terms.end(), [&](const Term& a, const Term& b) {
      return size_of(a, sizes, model) > size_of(b, sizes, model);
    });
    const std::size_t left_out = e.terms.size() - terms.size();
    result.push_back({e.variable, std::move(terms), left_out});
  }
  return result;
}

std::pair<std::string, std::string> rounded_coefficient(double mean, double sd) {
  if (!std::isfinite(mean) || !std::isfinite(sd))
    return {fmt::format("{}", mean), fmt::format("{}", sd)};  // no digits to count
  int digits = 4;
  if (sd > 0) digits = static_cast<int>(std::clamp(1 - std::floor(std::log10(sd)), 0.0, 12.0));
  if (std::abs(mean) >= 1e6 || (mean != 0 && std::abs(mean) < 1e-4) || digits > 8) {
    const double known = sd > 0 && mean != 0 ? std::floor(std::log10(std::abs(mean))) -
                                                   std::floor(std::log10(sd)) + 2
                                             : 3;
    return {fmt::format("{:.{}g}", mean, static_cast<int>(std::clamp(known, 3.0, 12.0))),
            fmt::format("{:.2g}", sd)};
  }
  return {fmt::format("{:.{}f}", mean, digits), fmt::format("{:.{}f}", sd, digits)};
}

namespace {

bool same_terms(const std::vector<ReadableEquation>& a, const std::vector<ReadableEquation>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& e, const auto& f) {
    return std::equal(e.terms.begin(), e.terms.end(), f.terms.begin(), f.terms.end(),
                      [](const Term& s, const Term& t) { return s.same_as(t); });
  });
}

}  // namespace

std::optional<double> best_set_probability(const Model& model) {
  const auto best = best_set(model);
  if (!best) return std::nullopt;
  return best->probability;
}

std::string describe_equations(const Model& model, double smallest) {
  constexpr double kAll = 0.995, kDoubt = 0.05;  // of a set; of a term, and as much below 1
  const auto probability = best_set_probability(model);
  const char* function = model.kind == ModelKind::map ? "map" : "equations";
  if (!probability || *probability > kAll)
    return fmt::format("Mean {}, with the standard deviation of the posterior:\n",
                       model.kind == ModelKind::map ? "map" : "field") +
           format_equations(model, EquationFormat::text, smallest);
  std::string text =
      fmt::format(
          "The {} of the most probable set of terms (probability {:.2g}), with standard "
          "deviations:\n",
          function, *probability) +
      format_equations(model, EquationFormat::text, smallest, Centre::best);
  std::string doubts;
  for (const Equation& e : equations(model)) {
    std::vector<Term> open;
    for (const Term& t : e.terms)
      if (t.probability > kDoubt && t.probability < 1 - kDoubt) open.push_back(t);
    std::stable_sort(open.begin(), open.end(),
                     [](const Term& a, const Term& b) { return a.probability > b.probability; });
    std::string own;
    for (const Term& t : open)
      own += fmt::format("{}{} {:.2f}", own.empty() ? "" : ", ",
                         t.constant() ? "constant" : printable(term_text(model, t)), t.probability);
    if (!own.empty())
      doubts += fmt::format("  {}: {}\n", model.left_side(printable(e.variable)), own);
  }
  if (!doubts.empty()) text += "Terms in doubt, with their probabilities:\n" + doubts;
  const auto sets = model.polynomial()->sets.size();
  if (doubts.empty() && smallest > 0 &&
      same_terms(readable_equations(model, smallest, Centre::best),
                 readable_equations(model, smallest)))
    return text + fmt::format(
                      "Forecasts average over {} sets of terms, which differ by terms of less "
                      "than {:g} %.\n",
                      sets, 100 * smallest);
  return text + fmt::format("The average over {} sets of terms, which forecasts use:\n", sets) +
         format_equations(model, EquationFormat::text, smallest);
}

std::string format_equations(const Model& model, EquationFormat format, double smallest,
                             Centre centre) {
  if (format == EquationFormat::c)
    return c_function(centred(equations(model), model, centre), model, centre);
  return people_text(model, format == EquationFormat::latex, smallest, centre);
}

}  // namespace odecast
