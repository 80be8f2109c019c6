// Back-propagation against central differences, and against forward-mode derivatives of an
// independent, plain-loop evaluation.

#include <gtest/gtest.h>

#include <cmath>

#include "odecast/network/network.hpp"

namespace odecast {
namespace {

/// A number with its derivative in one direction: forward mode in a few lines.
struct Dual {
  double v = 0, d = 0;
};
Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }

Dual activate(Activation activation, int power, Dual y) {
  switch (activation) {
    case Activation::identity: return y;
    case Activation::power: {
      Dual product = y;
      for (int i = 1; i < power; ++i) product = product * y;
      return product;
    }
    case Activation::tanh: {
      const double c = std::cosh(y.v);
      return {std::tanh(y.v), y.d / (c * c)};
    }
    case Activation::sigmoid: {
      const double e = std::exp(-y.v);
      return {1 / (1 + e), y.d * e / ((1 + e) * (1 + e))};
    }
    case Activation::relu: return y.v > 0 ? y : Dual{};
    case Activation::sin: return {std::sin(y.v), y.d * std::cos(y.v)};
  }
  return y;
}

/// Mean over rows of |g_θ(x|d) - g|², written out with loops; θ in the order of parameters().
Dual plain_loss(const Network& network, const std::vector<Dual>& theta, const Matrix& inputs,
                const Matrix& targets, const Masks& masks) {
  Dual total;
  for (Eigen::Index row = 0; row < inputs.rows(); ++row) {
    std::vector<Dual> x;
    for (Eigen::Index i = 0; i < inputs.cols(); ++i) x.push_back({inputs(row, i), 0});
    std::size_t next = 0;
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
      const Layer& layer = network.layers[l];
      std::vector<Dual> z(static_cast<std::size_t>(layer.weights.rows()));
      for (Dual& value : z)
        for (const Dual& xi : x) value = value + theta[next++] * xi;
      for (Dual& value : z) value = value + theta[next++];
      for (std::size_t j = 0; j < z.size(); ++j) {
        double d = 1;
        if (masks[l].size() > 0)
          d = masks[l](masks[l].rows() == 1 ? 0 : row, static_cast<Eigen::Index>(j)) *
              (layer.rescale ? 1 / (1 - layer.dropout) : 1);
        z[j] = activate(layer.activation, layer.power, z[j] * Dual{d, 0});
      }
      x = z;
    }
    for (std::size_t o = 0; o < x.size(); ++o) {
      const Dual e = x[o] - Dual{targets(row, static_cast<Eigen::Index>(o)), 0};
      total = total + e * e;
    }
  }
  return total * Dual{1 / static_cast<double>(inputs.rows()), 0};
}

struct Case {
  Network network;
  Matrix inputs, targets;
  Masks masks;
};

Matrix random_matrix(Eigen::Index rows, Eigen::Index columns, Stream& stream) {
  Matrix m(rows, columns);
  for (Eigen::Index i = 0; i < m.size(); ++i) m.data()[i] = stream.normal();
  return m;
}

Case make_case(Activation activation, int depth, bool per_row, bool rescale, std::uint64_t seed) {
  std::vector<HiddenLayer> hidden;
  for (int l = 0; l + 1 < depth; ++l)
    hidden.push_back({4 + l, activation, 2 + l % 2, 0.3, rescale});
  Case c{make_network(3, hidden, 2, seed), {}, {}, {}};
  if (depth == 1) c.network.layers[0].activation = activation, c.network.layers[0].power = 2;
  Stream stream(seed, Purpose::derivative_noise, 1);
  for (Layer& layer : c.network.layers)
    for (auto& b : layer.biases) b = stream.normal();
  c.inputs = random_matrix(5, 3, stream);
  c.targets = random_matrix(5, 2, stream);
  for (const Layer& layer : c.network.layers) {
    c.masks.emplace_back();
    if (layer.dropout == 0) continue;
    c.masks.back() =
        random_matrix(per_row ? 5 : 1, layer.weights.rows(), stream).unaryExpr([](double x) {
          return x > -0.5 ? 1.0 : 0.0;
        });
  }
  return c;
}

/// Largest relative difference between a gradient and central differences of a loss.
double difference_from_central(const Case& c, const Vector& gradient) {
  const Vector theta = parameters(c.network);
  Network moved = c.network;
  double worst = 0;
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    const double h = 1e-5;
    const auto loss_at = [&](double step) {
      Vector t = theta;
      t[i] += step;
      set_parameters(moved, t);
      return loss_gradient(moved, c.inputs, c.targets, c.masks).loss;
    };
    const double central = (loss_at(h) - loss_at(-h)) / (2 * h);
    worst = std::max(worst, std::abs(central - gradient[i]) / (gradient.norm() + 1e-12));
  }
  return worst;
}

TEST(GradientTest, AgreesWithDifferencesAndForwardModeForAllActivationsAndDepths) {
  for (const Activation activation : {Activation::identity, Activation::power, Activation::tanh,
                                      Activation::sigmoid, Activation::relu, Activation::sin}) {
    for (int depth = 1; depth <= 4; ++depth) {
      for (const bool per_row : {false, true}) {
        const Case c = make_case(activation, depth, per_row, per_row, 3);
        const LossGradient ours = loss_gradient(c.network, c.inputs, c.targets, c.masks);
        const std::string name =
            std::string(activation_name(activation)) + " depth " + std::to_string(depth);
        EXPECT_LT(difference_from_central(c, ours.gradient), 1e-6) << name;

        const Vector theta = parameters(c.network);
        std::vector<Dual> duals;
        for (const double value : theta) duals.push_back({value, 0});
        Vector forward(theta.size());
        for (std::size_t i = 0; i < duals.size(); ++i) {
          duals[i].d = 1;
          const Dual loss = plain_loss(c.network, duals, c.inputs, c.targets, c.masks);
          EXPECT_NEAR(ours.loss, loss.v, 1e-12 * loss.v) << name;
          forward[static_cast<Eigen::Index>(i)] = loss.d;
          duals[i].d = 0;
        }
        EXPECT_LT((ours.gradient - forward).norm(), 1e-12 * forward.norm()) << name;
      }
    }
  }
}

TEST(GradientTest, TheCheckRejectsAWrongGradient) {
  const Case c = make_case(Activation::tanh, 3, true, false, 3);
  Vector gradient = loss_gradient(c.network, c.inputs, c.targets, c.masks).gradient;
  Eigen::Index i = 0;
  gradient.cwiseAbs().maxCoeff(&i);
  gradient[i] *= 1 + 1e-4;
  EXPECT_GT(difference_from_central(c, gradient), 1e-6);
}

TEST(GradientTest, ParametersRoundTrip) {
  Case c = make_case(Activation::sin, 4, true, false, 9);
  const Vector theta = parameters(c.network);
  Network other = make_case(Activation::sin, 4, true, false, 10).network;
  set_parameters(other, theta);
  EXPECT_EQ(parameters(other), theta);
  EXPECT_EQ(evaluate(other, c.inputs), evaluate(c.network, c.inputs));
}

TEST(GradientTest, GlorotWeightsFillTheirInterval) {
  const Network n = make_network(30, {{200, Activation::tanh, 1, 0, false}}, 30, 1);
  const double a = std::sqrt(6.0 / 230);
  const Matrix& w = n.layers[0].weights;
  EXPECT_LE(w.cwiseAbs().maxCoeff(), a);
  // Uniform on (-a, a): mean 0, variance a²/3; standard errors for 6000 weights.
  EXPECT_NEAR(w.mean(), 0, 5 * a / std::sqrt(3.0 * 6000));
  EXPECT_NEAR(w.cwiseAbs2().mean(), a * a / 3, 5 * a * a * std::sqrt(4.0 / 45 / 6000));
  EXPECT_TRUE(n.layers[0].biases.isZero(0));
}

TEST(GradientTest, ActivationNamesRoundTrip) {
  for (const Activation a : {Activation::identity, Activation::power, Activation::tanh,
                             Activation::sigmoid, Activation::relu, Activation::sin})
    EXPECT_EQ(activation_from_name(activation_name(a)), a);
  EXPECT_FALSE(activation_from_name("softmax"));
}

}  // namespace
}  // namespace odecast
