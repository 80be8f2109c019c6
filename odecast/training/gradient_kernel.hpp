#pragma once

// The trainers' inner loop for polynomial kernels, compiled once per instruction set by
// gradient_<isa>.cpp. See pack.hpp for the rules of such sources.

#include "odecast/core/pack.hpp"
#include "odecast/training/gradient_job.hpp"

namespace odecast {
namespace {

constexpr int kPacks = kRowsPerBlock / kLanes;

ODECAST_INLINE Pack load_rows(const double* from, long first, long count) {
  Pack p = 0.0;
  if (first + kLanes <= count) {
    __builtin_memcpy(&p, from + first, sizeof(Pack));
  } else {
    for (int l = 0; l < kLanes; ++l)
      if (first + l < count) set_lane(p, l, from[first + l]);
  }
  return p;
}

/// Loss and gradient of Σ_i |B2 + W2 (d_i ∘ (W1 u_i + B1))^p - g_i|² over the rows of a job, 32 rows
/// at a time, each with a mask of its own. N and P are n = outputs and p where they are known to
/// the compiler, 0 otherwise.
///
/// Forward, with y = d ∘ a:  lower_j = y_j^{p-1},  v_j = lower_j y_j,  e = B2 + Σ_j W2_j v_j - g.
/// Backward:  W̄2_oj = e_o v_j,  B̄2 = e,  ā_j = p d_j lower_j Σ_o W2_oj e_o,  W̄1 = ā uᵀ,  B̄1 = ā.
/// For p = 1 lower_j = 1 also where d_j = 0, so d_j is kept apart in that case.
template <int N, int P>
void gradient_blocks(GradientJob& job) {
  const int n = N ? N : job.n, outputs = N ? N : job.outputs, k = job.k;
  const int degree = P ? P : job.degree;
  Pack* dW1 = reinterpret_cast<Pack*>(job.work);
  Pack* dB1 = dW1 + k * n;
  Pack* dW2 = dB1 + k;  // unit × output here, transposed on the way out
  Pack* dB2 = dW2 + k * outputs;
  Pack* lower = dB2 + outputs;                 // unit × pack
  Pack* v = lower + kPacks * k;                // unit × pack
  Pack* e = v + kPacks * k;                    // output × pack
  Pack* u = e + 2 * kPacks * outputs;          // variable × pack
  const int parameters = k * n + k + k * outputs + outputs;
  for (int i = 0; i < parameters; ++i) dW1[i] = 0.0;
  Pack loss = 0.0;
  const Pack mask_value = job.mask_value;

  const long blocks = (job.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  for (long b = 0; b < blocks; ++b) {
    const long first = b * kRowsPerBlock;
    const std::uint32_t* masks = job.masks + b * k;
    for (int i = 0; i < n; ++i)
      for (int r = 0; r < kPacks; ++r)
        u[i * kPacks + r] = load_rows(job.states + i * job.stride, first + r * kLanes, job.rows);
    for (int o = 0; o < outputs; ++o)
      for (int r = 0; r < kPacks; ++r) e[o * kPacks + r] = job.B2[o];

    for (int j = 0; j < k; ++j) {
      for (int r = 0; r < kPacks; ++r) {
        Pack a = job.B1[j];
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) a = a + Pack(job.W1[j * n + i]) * u[i * kPacks + r];
        const Mask d = mask_from_bits(masks[j] >> (r * kLanes) & 0xffu);
        const Pack y = keep(d, a * mask_value);
        Pack low = degree == 1 ? keep(d, Pack(1.0)) : y;
        for (int i = 2; i < degree; ++i) low = low * y;
        const Pack top = degree == 1 ? y : low * y;
        lower[j * kPacks + r] = low;
        v[j * kPacks + r] = top;
#pragma GCC unroll 4
        for (int o = 0; o < outputs; ++o)
          e[o * kPacks + r] = e[o * kPacks + r] + Pack(job.W2[o * k + j]) * top;
      }
    }
    for (int o = 0; o < outputs; ++o) {
      for (int r = 0; r < kPacks; ++r) {
        const long row = first + r * kLanes;
        Pack residual =
            e[o * kPacks + r] - load_rows(job.targets + o * job.stride, row, job.rows);
        if (row + kLanes > job.rows) {  // rows beyond the end do not count
          const long left = job.rows - row;
          residual = keep(mask_from_bits(left > 0 ? (1u << left) - 1 : 0u), residual);
        }
        e[o * kPacks + r] = residual;
        loss = loss + residual * residual;
        dB2[o] = dB2[o] + residual;
      }
    }
    for (int j = 0; j < k; ++j) {
      for (int r = 0; r < kPacks; ++r) {
        Pack back = 0.0;
        const Pack top = v[j * kPacks + r];
#pragma GCC unroll 4
        for (int o = 0; o < outputs; ++o) {
          const Pack residual = e[o * kPacks + r];
          back = back + Pack(job.W2[o * k + j]) * residual;
          dW2[j * outputs + o] = dW2[j * outputs + o] + residual * top;
        }
        const Pack da = back * lower[j * kPacks + r];
        dB1[j] = dB1[j] + da;
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) dW1[j * n + i] = dW1[j * n + i] + da * u[i * kPacks + r];
      }
    }
  }

  const double chain = degree * job.mask_value;
  double* out = job.gradient;
  for (int i = 0; i < k * n; ++i) *out++ = chain * sum_of_lanes(dW1[i]);
  for (int j = 0; j < k; ++j) *out++ = chain * sum_of_lanes(dB1[j]);
  for (int o = 0; o < outputs; ++o)
    for (int j = 0; j < k; ++j) *out++ = sum_of_lanes(dW2[j * outputs + o]);
  for (int o = 0; o < outputs; ++o) *out++ = sum_of_lanes(dB2[o]);
  job.loss = sum_of_lanes(loss);
}

void run_gradient(GradientJob& job) {
  if (job.n == 3 && job.outputs == 3 && job.degree == 2) return gradient_blocks<3, 2>(job);
  if (job.n == 2 && job.outputs == 2 && job.degree == 2) return gradient_blocks<2, 2>(job);
  return gradient_blocks<0, 0>(job);
}

}  // namespace
}  // namespace odecast
