#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/model/model.hpp"
#include "odecast/network/network.hpp"
#include "odecast/shooting/trajectory_fit.hpp"
#include "odecast/training/train.hpp"

namespace odecast {

/// The likelihood of the observations, by multiple shooting; sparse polynomial fields, normal
/// coefficients and last state, averaged over sets of terms (docs/theory.md). Flows only.
struct TrajectoryMethod {
  int degree = 2;       ///< of the candidate terms
  bool robust = false;  ///< Huber weights against outliers
  /// Terms beside monomials that the search is offered.
  FunctionWishes functions = {};
  /// Only these terms, without a search, where given.
  std::vector<TrajectoryOptions::KnownTerm> terms = {};
};

enum class ScaleKind { standard, none };

/// How rows are made of the data, for the methods that learn from rows.
struct RowOptions {
  DerivativeMethod derivative = DerivativeMethod::forward;
  ForwardDifferenceOptions forward = {};  ///< error of forward differences
  /// A longer spacing is a gap that nothing crosses. 0: kGapFactor times the usual spacing.
  double gap = 0;
  /// The dropout objective depends on the units. `none` is the paper's setting.
  ScaleKind scale = ScaleKind::standard;
};

inline constexpr int kAutomaticDegree = 0, kHighestDegree = 5;

/// Bayesian regression on integrals of the data or on other rows (regression/evidence.hpp): sparse
/// polynomial fields, normal coefficients.
struct RegressionMethod {
  /// kAutomaticDegree: that of the most evidence, up to kHighestDegree.
  int degree = 2;
  RowOptions rows = {.derivative = DerivativeMethod::weak};
  bool select_terms = true;       ///< only terms that the data support, the others exactly 0
  FunctionWishes functions = {};  ///< terms beside monomials, without numbers inside
  std::vector<TrajectoryOptions::KnownTerm> terms = {};  ///< of integrals: only these, if any
};

/// Least squares on blocks of the rows drawn again (regression/bootstrap.hpp): polynomial fields.
struct BootstrapMethod {
  int degree = 2;  ///< as of RegressionMethod
  RowOptions rows = {.derivative = DerivativeMethod::weak};
  bool select_terms = true;
  FunctionWishes functions = {};
  int replicates = 100;
};

enum class Trainer {
  automatic,  ///< exact for polynomial kernels, adam for general networks
  exact,      ///< L-BFGS on the exact objective, from the factor of the rows
  adam,       ///< the paper's Algorithm 1
  sgd,
};

/// The paper's: masks of a network trained on derivatives.
struct DropoutMethod {
  int degree = 2;  ///< p of the polynomial kernel: that of the learnt equations
  /// k, units of the polynomial kernel. 0 means F = C(n+p, p): as many rank-one forms as there are
  /// monomials, which span every polynomial of that degree (10 for n = 3, p = 2, the paper's k).
  int hidden = 0;
  double dropout = 0.25;  ///< r in [0, 1)
  bool rescale = false;   ///< divide masks by 1 - r; the paper does not
  /// A general network instead of the polynomial kernel: the units of its hidden layers, each with
  /// `activation` (power: to the `degree`) and dropout on every hidden layer.
  std::vector<int> layers = {};
  Activation activation = Activation::tanh;
  RowOptions rows = {};
  /// Keep only the terms that the data support (regression/selection.hpp). For dropout 0 and the
  /// exact trainer: dropout draws units, not terms.
  bool select_terms = false;
  Trainer trainer = Trainer::automatic;
  int starts = 8;               ///< of the exact trainer; the best minimum is kept
  int max_iterations = 10'000;  ///< of the exact trainer, per start
  TrainOptions training = {};   ///< schedule of adam and sgd; seed, threads, budget are the fit's

  bool exact() const {
    return trainer == Trainer::exact || (trainer == Trainer::automatic && layers.empty());
  }
};

/// Networks trained from the seeds seed, seed + 1, …, without dropout.
struct EnsembleMethod {
  int members = 10;
  DropoutMethod member = {.dropout = 0};
};

/// How to learn.
using Method = std::variant<TrajectoryMethod, RegressionMethod, BootstrapMethod, DropoutMethod,
                            EnsembleMethod>;
struct MethodName {
  std::string_view name, what;
};
/// In the order of the variant; `what` is for help.
inline constexpr std::array<MethodName, std::variant_size_v<Method>> kMethodNames{{
    {"trajectory", "the likelihood of the observations, sparse equations"},
    {"regression",
     "Bayesian regression on integrals of the data, sparse equations, in milliseconds"},
    {"bootstrap", "the same integrals drawn again in blocks"},
    {"dropout", "the paper's masks"},
    {"ensemble", "networks trained from different seeds"},
}};
static_assert(!kMethodNames.back().name.empty(), "a method without a name");
inline std::string_view method_name(const Method& method) {
  return kMethodNames[method.index()].name;
}

/// Whether it learns from rows one after another: regression, bootstrap, the exact trainer.
bool streams(const Method& method);

inline constexpr std::string_view kAllPositive = "all";

/// Kind and count, or what choose_embedding of tuning/embed.hpp finds best.
struct EmbeddingChoice {
  bool automatic = false;
  Embedding embedding = {};
};

struct FitOptions {
  Method method = TrajectoryMethod{};
  /// map: learn u_{i+1} = f(u_i) from rows that are evenly spaced; no derivative is taken.
  ModelKind kind = ModelKind::flow;
  /// Inputs of the data drive the system, held from row to row or linear between them; with
  /// `time_name` the time is one more, of that name.
  bool hold_inputs = false;
  std::string time_name = {};
  /// Standard deviation of the observation noise, one or one per variable, in the units of the
  /// data; empty: estimated.
  Vector noise = {};
  /// Whether noise that is estimated grows with the state; of the trajectory method.
  NoiseLaw noise_law = NoiseLaw::automatic;
  /// Variables that are known to be positive, by name; kAllPositive alone: all.
  std::vector<std::string> positive = {};
  /// One measured variable is made several (fitted_embedding chooses the lag).
  std::optional<EmbeddingChoice> embed = {};
  /// Rows of the last trajectory that the model keeps, so that a forecast can be drawn after them:
  /// the last so many, before them every 2nd, 4th, … of as many each; 0: none.
  int keep_rows = 100;
  std::uint64_t seed = 1;
  int threads = 1;
  /// Seconds after which the fit ends with what it has, status `stopped`. Where not given, searches
  /// and minimisers end after an amount of work that is the same on every machine, about ten
  /// seconds' or, for much data, so many passes over it (docs/theory.md).
  std::optional<double> budget = {};
};

/// Throws Error (usage) for options out of range, or that do not go together, for data of so many
/// variables and inputs, the time among these where it is one.
void check(const FitOptions& options, int variables, int inputs);

}  // namespace odecast
