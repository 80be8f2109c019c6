#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "odecast/model/model.hpp"

namespace odecast {

/// One term of an equation: a monomial, or a function, and what is known of its coefficient over
/// the masks, exactly.
struct Term {
  std::vector<int> powers;  ///< one per argument; empty of a function
  double mean = 0, sd = 0;
  double probability = 0;             ///< that the coefficient is not zero
  std::optional<double> median = {};  ///< over the replicates of a bootstrap
  std::optional<int> function = {};   ///< which of the law's functions

  bool same_as(const Term& other) const {
    return powers == other.powers && function == other.function;
  }
  bool constant() const;
};

struct Equation {
  std::string variable;
  /// In the order of MonomialBasis and behind it of the functions; exactly zero ones are left out.
  std::vector<Term> terms;
};

/// The arguments as the terms have them: "x", or "(x - 300)" where an offset is taken out
/// (Model::term_offsets).
std::vector<std::string> term_arguments(const Model& model);

/// The learnt equations in the user's units, powers of u - term_offsets(). With c_j the share of
/// unit j in a coefficient: mean = B2 [constant term] + q Σ c_j, variance = q r Σ c_j², and the
/// coefficient is zero only when every unit with a share is dropped (shares of independent real
/// weights do not cancel), so P(not zero) = 1 - r^(number of shares), or 1 where B2 contributes.
/// Without dropout shares may cancel: a sum of at most 64 units of their round-off counts as zero.
/// For models known by their coefficients: moments over the mixture, and the weight of the sets
/// with that term. Throws Error (usage) when the network is not a polynomial kernel, and Error
/// (data) when a coefficient overflows.
std::vector<Equation> equations(const Model& model);

/// An equation as people read it: terms by their size over the data, (|mean| + sd) Π size_v^power,
/// of functions (|mean| + sd) unit, which does not depend on units, without those below `smallest`
/// times the largest. A posterior of coefficients keeps what is five sd from 0.
struct ReadableEquation {
  std::string variable;
  std::vector<Term> terms;
  std::size_t left_out = 0;
};
/// What stands for a coefficient that has a distribution: its mean over all of it, which is that of
/// forecasts; its median, for models that are sets of points (bootstrap); or what it is in the most
/// probable set of terms, for models that are mixtures of such sets.
enum class Centre { mean, median, best };

std::vector<ReadableEquation> readable_equations(const Model& model, double smallest = 0.01,
                                                 Centre centre = Centre::mean);

/// Mean and sd with as many digits as the sd supports: two of the sd.
std::pair<std::string, std::string> rounded_coefficient(double mean, double sd);

/// What is known of a number inside functions, in the user's units: its mean and sd over the sets
/// that have it, its median over these, or those of the most probable set.
struct NumberInside {
  int number;  ///< as in FunctionTerms::numbers()
  std::string name;
  double mean = 0, sd = 0;
};
/// Those that some set (the most probable) has, in the order of the law.
std::vector<NumberInside> numbers_inside(const Model& model, Centre centre = Centre::mean);
/// Those of them that stand in these equations.
std::vector<NumberInside> numbers_inside(const Model& model,
                                         const std::vector<ReadableEquation>& equations,
                                         Centre centre = Centre::mean);

/// "x^2 y", "1", "x/(k + x)".
std::string term_text(const Model& model, const Term& term);
/// Whether a function is set in brackets behind its coefficient: sums, and what begins with a
/// number.
bool in_brackets(const Tape& tape, int node);

/// What the functions add to the equations, exactly: coefficient g(u; numbers) in the user's units.
/// The mean over sets whose numbers differ has a share for each of these.
struct FunctionShare {
  int equation, function;
  double coefficient;
  std::vector<double> numbers;  ///< the values of all
};
std::vector<FunctionShare> function_shares(const Model& model, Centre centre = Centre::mean);

enum class EquationFormat { text, latex, c };

/// The probability of the most probable set of terms; empty where the model is not a mixture of
/// normal distributions over sets of terms.
std::optional<double> best_set_probability(const Model& model);

/// What a person is told: the equations of the most probable set of terms and its probability; the
/// terms that are in doubt, with theirs; and the average over all sets, which is what forecasts
/// use. The average alone where there are no sets or one has it all.
std::string describe_equations(const Model& model, double smallest = 0.01);

/// Text and LaTeX show the readable equations and count the terms left out. C is complete.
std::string format_equations(const Model& model, EquationFormat format, double smallest = 0.01,
                             Centre centre = Centre::mean);

}  // namespace odecast
