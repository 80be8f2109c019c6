#pragma once

#include "odecast/posterior/model.hpp"
#include "odecast/training/train.hpp"

namespace odecast {

enum class ScaleKind { standard, none };

struct FitOptions {
  /// p of the polynomial kernel: the highest degree of the learnt equations.
  int degree = 2;
  /// k, units of the polynomial kernel. 0 means F = C(n+p, p): as many rank-one forms as there are
  /// monomials, which span every polynomial of that degree (10 for n = 3, p = 2, the paper's k).
  int hidden = 0;
  /// r in [0, 1).
  double dropout = 0.25;
  /// Divide masks by 1 - r. The paper does not.
  bool rescale = false;
  /// The dropout objective depends on the units. `none` is the paper's setting.
  ScaleKind scale = ScaleKind::standard;
  /// A general network instead of the polynomial kernel: the units of its hidden layers, each with
  /// `activation` and dropout on every hidden layer. Empty for the polynomial kernel.
  std::vector<int> layers = {};
  Activation activation = Activation::tanh;
  ForwardDifferenceOptions derivative = {};
  TrainOptions training = {};
};

struct Fit {
  Model model;
  TrainSummary summary;
};

/// The data turned into a model: units, derivatives, network, training. Throws Error (usage) for
/// options out of range and Error (data) for data that cannot be learnt from.
Fit fit(const Dataset& data, const FitOptions& options, const Observer& observer);

}  // namespace odecast
