#include "odecast/network/network.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "odecast/field/polynomial.hpp"

namespace odecast {
namespace {

constexpr std::array<std::pair<Activation, std::string_view>, 6> kNames = {{
    {Activation::identity, "identity"},
    {Activation::power, "power"},
    {Activation::tanh, "tanh"},
    {Activation::sigmoid, "sigmoid"},
    {Activation::relu, "relu"},
    {Activation::sin, "sin"},
}};

Matrix activate(const Layer& layer, const Matrix& y) {
  switch (layer.activation) {
    case Activation::identity: return y;
    case Activation::power:
      return y.unaryExpr([p = layer.power](double x) { return integer_power(x, p); });
    case Activation::tanh: return y.unaryExpr([](double x) { return std::tanh(x); });
    case Activation::sigmoid: return y.unaryExpr([](double x) { return 1 / (1 + std::exp(-x)); });
    case Activation::relu: return y.cwiseMax(0.0);
    case Activation::sin: return y.unaryExpr([](double x) { return std::sin(x); });
  }
  return y;
}

/// σ'(y), with a = σ(y) at hand.
Matrix slope(const Layer& layer, const Matrix& y, const Matrix& a) {
  switch (layer.activation) {
    case Activation::identity: return Matrix::Ones(y.rows(), y.cols());
    case Activation::power:
      return y.unaryExpr([p = layer.power](double x) { return p * integer_power(x, p - 1); });
    case Activation::tanh: return (1 - a.array().square()).matrix();
    case Activation::sigmoid: return (a.array() * (1 - a.array())).matrix();
    case Activation::relu: return (y.array() > 0).cast<double>().matrix();
    case Activation::sin: return y.array().cos().matrix();
  }
  return y;
}

/// d ∘ z for one layer; `mask` has as many rows as z, or one for all.
void apply_mask(const Layer& layer, const Masks& masks, std::size_t l, Matrix& z) {
  if (masks.empty() || masks[l].size() == 0) return;
  const Matrix& d = masks[l];
  assert(d.cols() == z.cols() && (d.rows() == 1 || d.rows() == z.rows()));
  if (d.rows() == 1)
    z.array().rowwise() *= d.row(0).array() * layer.mask_value();
  else
    z.array() *= d.array() * layer.mask_value();
}

}  // namespace

std::string_view activation_name(Activation activation) {
  for (const auto& [value, name] : kNames)
    if (value == activation) return name;
  return "";
}

std::optional<Activation> activation_from_name(std::string_view wanted) {
  for (const auto& [value, name] : kNames)
    if (name == wanted) return value;
  return std::nullopt;
}

Network make_network(int inputs, const std::vector<HiddenLayer>& hidden, int outputs,
                     std::uint64_t seed) {
  Network network;
  const auto add = [&](int units, Layer layer) {
    const auto width = network.layers.empty() ? inputs : network.layers.back().weights.rows();
    Stream stream(seed, Purpose::initial_weights, network.layers.size());
    const double a = std::sqrt(6.0 / static_cast<double>(width + units));
    layer.weights.resize(units, width);
    for (Eigen::Index i = 0; i < layer.weights.size(); ++i)
      layer.weights.data()[i] = a * (2 * stream.uniform() - 1);
    layer.biases = Vector::Zero(units);
    network.layers.push_back(std::move(layer));
  };
  for (const HiddenLayer& h : hidden)
    add(h.units, Layer{{}, {}, h.activation, h.power, h.dropout, h.rescale});
  add(outputs, Layer{});
  return network;
}

Eigen::Index parameter_count(const Network& network) {
  Eigen::Index count = 0;
  for (const Layer& layer : network.layers) count += layer.weights.size() + layer.biases.size();
  return count;
}

Vector parameters(const Network& network) {
  Vector theta(parameter_count(network));
  Eigen::Index next = 0;
  for (const Layer& layer : network.layers) {
    theta.segment(next, layer.weights.size()) =
        Eigen::Map<const Vector>(layer.weights.data(), layer.weights.size());
    next += layer.weights.size();
    theta.segment(next, layer.biases.size()) = layer.biases;
    next += layer.biases.size();
  }
  return theta;
}

void set_parameters(Network& network, const Vector& theta) {
  assert(theta.size() == parameter_count(network));
  Eigen::Index next = 0;
  for (Layer& layer : network.layers) {
    Eigen::Map<Vector>(layer.weights.data(), layer.weights.size()) =
        theta.segment(next, layer.weights.size());
    next += layer.weights.size();
    layer.biases = theta.segment(next, layer.biases.size());
    next += layer.biases.size();
  }
}

Masks sample_mask(const Network& network, std::uint64_t seed, Purpose purpose,
                  std::uint64_t index) {
  Masks masks;
  std::uint32_t word = 0;  // each layer starts a new word: one probability per word
  for (const Layer& layer : network.layers) {
    masks.emplace_back();
    if (layer.dropout == 0) continue;
    Matrix& d = masks.back();
    d.resize(1, layer.biases.size());
    std::uint32_t bits = 0;
    for (Eigen::Index j = 0; j < d.cols(); ++j) {
      if (j % 32 == 0) bits = bernoulli_word(seed, purpose, index, word++, layer.keep());
      d(0, j) = bits >> (j % 32) & 1;
    }
  }
  return masks;
}

Matrix evaluate(const Network& network, const Matrix& inputs, const Masks& masks) {
  Matrix x = inputs;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const Layer& layer = network.layers[l];
    Matrix z = x * layer.weights.transpose();
    z.rowwise() += layer.biases.transpose();
    apply_mask(layer, masks, l, z);
    x = activate(layer, z);
  }
  return x;
}

LossGradient loss_gradient(const Network& network, const Matrix& inputs, const Matrix& targets,
                           const Masks& masks) {
  const std::size_t depth = network.layers.size();
  std::vector<Matrix> a(depth + 1), y(depth);  // a[l] enters layer l; y[l] = d ∘ z
  a[0] = inputs;
  for (std::size_t l = 0; l < depth; ++l) {
    const Layer& layer = network.layers[l];
    y[l] = a[l] * layer.weights.transpose();
    y[l].rowwise() += layer.biases.transpose();
    apply_mask(layer, masks, l, y[l]);
    a[l + 1] = activate(layer, y[l]);
  }
  const double rows = static_cast<double>(inputs.rows());
  const Matrix residual = a[depth] - targets;
  LossGradient result{residual.squaredNorm() / rows, Vector(parameter_count(network))};

  Matrix cotangent = residual * (2 / rows);
  Eigen::Index end = result.gradient.size();
  for (std::size_t l = depth; l-- > 0;) {
    const Layer& layer = network.layers[l];
    Matrix z_bar = cotangent.cwiseProduct(slope(layer, y[l], a[l + 1]));  // σ'(y) ∘ ā
    apply_mask(layer, masks, l, z_bar);                                   // d ∘ …
    end -= layer.biases.size();
    result.gradient.segment(end, layer.biases.size()) = z_bar.colwise().sum().transpose();
    end -= layer.weights.size();
    Eigen::Map<Matrix>(result.gradient.data() + end, layer.weights.rows(), layer.weights.cols()) =
        z_bar.transpose() * a[l];                  // W̄ = z̄ xᵀ
    if (l > 0) cotangent = z_bar * layer.weights;  // x̄ = Wᵀ z̄
  }
  return result;
}

}  // namespace odecast
