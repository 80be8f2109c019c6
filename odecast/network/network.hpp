#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "odecast/core/matrix.hpp"
#include "odecast/core/random.hpp"

namespace odecast {

/// σ of a layer, applied entry by entry. `power` is the paper's ∘^m with power = m + 1.
enum class Activation { identity, power, tanh, sigmoid, relu, sin };
std::string_view activation_name(Activation activation);
std::optional<Activation> activation_from_name(std::string_view name);

/// One layer of a compute graph (paper §2.1 and §2.3):
///   z = W x + b,   a = σ(d ∘ z),   d ~ D(r): entries 0 or 1 with P(1) = 1 - r.
/// The mask is not rescaled, as in the paper; with `rescale` it is divided by 1 - r.
struct Layer {
  Matrix weights;  ///< units × inputs
  Vector biases;
  Activation activation = Activation::identity;
  int power = 1;  ///< of Activation::power
  double dropout = 0;
  bool rescale = false;

  double keep() const { return 1 - dropout; }
  double mask_value() const { return rescale ? 1 / keep() : 1; }
};

/// A layered compute graph g_θ = layer_L ∘ … ∘ layer_1.
struct Network {
  std::vector<Layer> layers;

  int inputs() const { return static_cast<int>(layers.front().weights.cols()); }
  int outputs() const { return static_cast<int>(layers.back().weights.rows()); }
};

/// What a network is built from. The defaults are the paper's: one hidden layer, squared.
struct HiddenLayer {
  int units = 10;
  Activation activation = Activation::power;
  int power = 2;
  double dropout = 0.25;
  bool rescale = false;
};

/// Hidden layers and a linear read-out, Glorot-uniform weights (U(-a, a), a² = 6/(inputs + units)),
/// zero biases.
Network make_network(int inputs, const std::vector<HiddenLayer>& hidden, int outputs,
                     std::uint64_t seed);

/// θ as one vector: for each layer the weights row by row, then the biases.
Eigen::Index parameter_count(const Network& network);
Vector parameters(const Network& network);
void set_parameters(Network& network, const Vector& theta);

/// One entry per layer, 0 or 1; rows × units, or empty where every unit is kept.
using Masks = std::vector<Matrix>;

/// One mask d ~ D(r) for all layers, each entry a matrix of one row. Member `index` of the seed.
Masks sample_mask(const Network& network, std::uint64_t seed, Purpose purpose, std::uint64_t index);

/// Outputs for inputs given as rows. A mask of one row serves all rows; empty `masks` keep every
/// unit, which is the paper's "standard dropout" point estimate.
Matrix evaluate(const Network& network, const Matrix& inputs, const Masks& masks = {});

struct LossGradient {
  double loss = 0;
  Vector gradient;
};

/// Mean over the rows of the squared 2-norm (paper eq. trainingDataJTwoNorm) and its gradient by
/// back-propagation: with ā the gradient with respect to a layer's output and y = d ∘ z,
///   z̄ = d ∘ σ'(y) ∘ ā,   W̄ = z̄ xᵀ,   b̄ = z̄,   x̄ = Wᵀ z̄.
LossGradient loss_gradient(const Network& network, const Matrix& inputs, const Matrix& targets,
                           const Masks& masks = {});

}  // namespace odecast
