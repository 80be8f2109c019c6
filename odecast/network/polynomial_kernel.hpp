#pragma once

#include <memory>
#include <optional>

#include "odecast/field/vector_field.hpp"
#include "odecast/network/network.hpp"

namespace odecast {

/// The paper's network (eq. paraPolyKernel), f(u|d) = B2 + W2 (d ∘ (W1 u + B1))^p.
///
/// With d_j in {0, 1}, d_j^p = d_j: the network is linear in its mask. Write a = W1 u + B1 and
/// q = 1 - r; the columns W2_j carry a factor q^-p when the mask is rescaled. Then exactly
///   E f   = B2 + q Σ_j W2_j a_j^p
///   Cov f = q r Σ_j W2_j W2_jᵀ a_j^{2p}
/// and every draw is a polynomial of degree p. docs/theory.md derives these.
struct PolynomialKernel {
  Matrix W1;  ///< k × n
  Vector B1;  ///< k
  Matrix W2;  ///< outputs × k, mask scale included
  Vector B2;  ///< outputs
  int degree = 2;
  double dropout = 0;  ///< r

  int units() const { return static_cast<int>(B1.size()); }
  double keep() const { return 1 - dropout; }
};

/// The network as a polynomial kernel, when it is one: a power layer with or without dropout, then
/// a linear read-out without.
std::optional<PolynomialKernel> polynomial_kernel(const Network& network);

/// Exact mean and covariance of f(u|d) over the masks.
Moments exact_moments(const PolynomialKernel& kernel, const Vector& u);

/// Every unit's share of the field, expanded: f(u|d) = B2 + Σ_j d_j share_j φ(u), share_j = W2_j
/// power_jᵀ with (a_j)^p = power_j · φ(u).
struct KernelExpansion {
  std::shared_ptr<const MonomialBasis> basis;
  Vector constant;  ///< B2
  Matrix W2;        ///< outputs × units
  Matrix powers;    ///< units × monomials

  double share(Eigen::Index unit, Eigen::Index output, Eigen::Index monomial) const {
    return W2(output, unit) * powers(unit, monomial);
  }
};
KernelExpansion expand(const PolynomialKernel& kernel);
/// What a kernel may have, so that expanding it takes tens of MB: outputs × monomials, and units ×
/// monomials.
inline constexpr double kMostCoefficients = 1e5, kMostUnitPowers = 4e6;
bool can_expand(int arguments, int outputs, int degree, double units);

/// Σ over kept units; `d` has one 0/1 entry per unit (or weights, such as q for the mean field).
PolynomialField masked_field(const KernelExpansion& expansion, const Vector& d);

/// The same field in other coordinates: u = offset + scale ∘ v, du/dt = rate ∘ (the kernel's
/// value).
PolynomialKernel change_units(const PolynomialKernel& kernel, const Vector& offset,
                              const Vector& scale, const Vector& rate);

}  // namespace odecast
