#pragma once

#include "odecast/network/polynomial_kernel.hpp"

namespace odecast {

/// A polynomial-kernel network with random weights and biases.
inline Network random_kernel(int n, int k, int degree, double dropout, bool rescale,
                             std::uint64_t seed) {
  Network network = make_network(n, {{k, Activation::power, degree, dropout, rescale}}, n, seed);
  Stream stream(seed, Purpose::derivative_noise, 99);
  for (Layer& layer : network.layers)
    for (auto& b : layer.biases) b = 0.5 * stream.normal();
  return network;
}

inline Vector random_vector(Eigen::Index size, Stream& stream) {
  Vector v(size);
  for (auto& x : v) x = stream.normal();
  return v;
}

/// Calls visit(d, weight) for each of the 2^k masks, weight = q^kept r^dropped.
template <class Visit>
void for_each_mask(const PolynomialKernel& kernel, Visit visit) {
  const int k = kernel.units();
  for (unsigned bits = 0; bits < 1u << k; ++bits) {
    Vector d(k);
    double weight = 1;
    for (int j = 0; j < k; ++j) {
      d[j] = bits >> j & 1;
      weight *= d[j] != 0 ? kernel.keep() : kernel.dropout;
    }
    visit(d, weight);
  }
}

}  // namespace odecast
