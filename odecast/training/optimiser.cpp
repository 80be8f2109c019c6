#include "odecast/training/optimiser.hpp"

#include <cmath>

namespace odecast {

void sgd_step(Vector& theta, const Vector& gradient, double rate) { theta -= rate * gradient; }

void Adam::step(Vector& theta, const Vector& gradient, double rate) {
  power1_ *= beta1;
  power2_ *= beta2;
  const double c1 = rate / (1 - power1_), c2 = 1 / (1 - power2_);
  for (Eigen::Index i = 0; i < theta.size(); ++i) {
    const double g = gradient[i];
    m_[i] = beta1 * m_[i] + (1 - beta1) * g;
    v_[i] = beta2 * v_[i] + (1 - beta2) * g * g;
    theta[i] -= c1 * m_[i] / (std::sqrt(v_[i] * c2) + epsilon);
  }
}

}  // namespace odecast
