#pragma once

#include "odecast/core/matrix.hpp"

namespace odecast {

/// Stochastic gradient descent: θ <- θ - α g.
void sgd_step(Vector& theta, const Vector& gradient, double rate);

/// Adam (Kingma & Ba, 2015, algorithm 1):
///   m <- β1 m + (1-β1) g,  v <- β2 v + (1-β2) g²,
///   θ <- θ - α m̂ / (sqrt(v̂) + ε),  m̂ = m / (1-β1^t),  v̂ = v / (1-β2^t).
class Adam {
 public:
  explicit Adam(Eigen::Index size) : m_(Vector::Zero(size)), v_(Vector::Zero(size)) {}
  void step(Vector& theta, const Vector& gradient, double rate);

 private:
  static constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  Vector m_, v_;
  double power1_ = 1, power2_ = 1;  // β1^t, β2^t
};

}  // namespace odecast
