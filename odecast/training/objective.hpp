#pragma once

#include "odecast/derivatives/derivatives.hpp"
#include "odecast/network/polynomial_kernel.hpp"

namespace odecast {

/// The expected dropout objective, exactly:
///   E_{D(r)} J = mean_i Σ_o w_o [ (g_io - E f_o(u_i))² + q r Σ_j W2_oj² a_j(u_i)^{2p} ].
/// `weights` w_o are 1 for the objective in the units of the rows; squared scales turn it into the
/// user's units. Noise on g would only add the constant Σ_o w_o σ².
double expected_objective(const PolynomialKernel& kernel, const DerivativeRows& rows,
                          const Vector& weights);

/// E J (w = 1) and its gradient with respect to W1, B1, W2, B2, in the order of parameters().
/// With e = E f - g: ∂/∂W2_oj = 2 mean_i [q e_o a_j^p + q r W2_oj a_j^{2p}], and with
/// s_j = Σ_o (q e_o W2_oj + q r W2_oj² a_j^p): ∂/∂a_j = 2 p a_j^{p-1} s_j.
LossGradient expected_objective_gradient(const PolynomialKernel& kernel,
                                         const DerivativeRows& rows);

struct SampledObjective {
  double mean = 0, standard_error = 0;
};

/// (1/K) Σ_k J(T, θ, d_k), d_k ~ D(r) (paper eq. dropoutKApprox), one mask for all rows of a J.
SampledObjective sampled_objective(const Network& network, const DerivativeRows& rows, int masks,
                                   std::uint64_t seed);

}  // namespace odecast
