#pragma once

#include <string>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/field/expression.hpp"

namespace odecast {

/// An unknown number inside functions. It is estimated as z, which is 0 at `centre`:
///   value = centre exp(spread z) where it is positive, centre + spread z elsewhere.
/// z has the prior of a coefficient in model units, N(0, 1000²), which sets `spread`.
struct InnerNumber {
  std::string name;
  double centre = 1, spread = 1e-3;
  bool positive = false;

  double value(double z) const;
  double z(double value) const;
  double slope(double z) const;  ///< of the value in z
};

/// Functions of the arguments (state, inputs, time) that stand beside monomials as terms of a
/// field. They are written in the user's units, g(x), and evaluated in the model's: term f is
///   φ_f(v) = g_f(offset + scale ∘ v; numbers) / unit_f.
class FunctionTerms {
 public:
  struct Term {
    int node;         ///< of the tape
    double unit = 1;  ///< about its size over the data
  };
  /// `offset` and `scale` are those of all arguments of the tape, the first `variables` of which
  /// are the state; `numbers` are its parameters, in their order.
  FunctionTerms(Tape tape, std::vector<Term> terms, std::vector<InnerNumber> numbers,
                const Vector& offset, const Vector& scale, int variables);

  int size() const { return static_cast<int>(terms_.size()); }
  int variables() const { return variables_; }
  const Tape& tape() const { return tape_; }
  const Term& term(int f) const { return terms_[static_cast<std::size_t>(f)]; }
  const std::vector<Term>& terms() const { return terms_; }
  const std::vector<InnerNumber>& numbers() const { return numbers_; }
  /// Which numbers are inside a term, in ascending order.
  const std::vector<int>& numbers_of(int f) const { return inside_[static_cast<std::size_t>(f)]; }

  /// φ_f and its slopes in the variables and in z of numbers_of(f), as nodes of model(); -1 where a
  /// slope is zero. Parameters of model() are the z.
  struct Nodes {
    int value;
    std::vector<int> variables, numbers;
  };
  const Tape& model() const { return model_; }
  const Nodes& nodes(int f) const { return nodes_[static_cast<std::size_t>(f)]; }

  /// The values alone: φ_f is node roots()[f] of values().
  const Tape& values() const { return values_; }
  const std::vector<int>& roots() const { return roots_; }

 private:
  Tape tape_, model_, values_;
  std::vector<Term> terms_;
  std::vector<InnerNumber> numbers_;
  int variables_;
  std::vector<std::vector<int>> inside_;
  std::vector<Nodes> nodes_;
  std::vector<int> roots_;
};

}  // namespace odecast
