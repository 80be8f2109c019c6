#pragma once

// The trainers' inner loop for polynomial kernels, compiled once per instruction set by
// gradient_<isa>.cpp. See pack.hpp for the rules of such sources.

#include "odecast/core/detail/normal_kernel.hpp"
#include "odecast/core/detail/pack.hpp"
#include "odecast/training/detail/gradient_job.hpp"

namespace odecast {
namespace {

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

/// Philox4x32-10 of eight blocks in 64-bit lanes, whose high halves are ignored: the counters
/// (position + lane step, purpose, index) under the key `seed`.
ODECAST_INLINE void philox(std::uint64_t seed, std::uint32_t purpose, std::uint64_t index,
                           std::uint32_t position, std::int64_t step, Words (&c)[4]) {
  ODECAST_EACH_PART {
    NativeInt offset;
    for (int l = 0; l < kNativeLanes; ++l) offset[l] = (part * kNativeLanes + l) * step;
    c[0].v[part] = offset + static_cast<std::int64_t>(position);
    c[1].v[part] = NativeInt{} + static_cast<std::int64_t>(purpose);
    c[2].v[part] = NativeInt{} + static_cast<std::int64_t>(index & 0xffffffffu);
    c[3].v[part] = NativeInt{} + static_cast<std::int64_t>(index >> 32);
  }
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const Words p0 = multiply(c[0], 0xD2511F53u), p1 = multiply(c[2], 0xCD9E8D57u);
    ODECAST_EACH_PART {
      c[0].v[part] = shift_right(p1.v[part], 32) ^ c[1].v[part] ^ static_cast<std::int64_t>(key0);
      c[2].v[part] = shift_right(p0.v[part], 32) ^ c[3].v[part] ^ static_cast<std::int64_t>(key1);
      c[1].v[part] = p1.v[part];
      c[3].v[part] = p0.v[part];
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

/// Normals number 2 block, …, 2 block + 15 of Stream::normal(): two from each block.
ODECAST_INLINE void normals(const NormalJob& job, std::uint32_t block, double* out) {
  Words c[4];
  philox(job.seed, job.purpose, job.index, block, 1, c);
  Pack x[2];
  for (int half = 0; half < 2; ++half) {
    ODECAST_EACH_PART {
      const NativeInt high = shift_right(c[2 * half].v[part] & 0xffffffffLL, 5);
      const NativeInt low = shift_right(c[2 * half + 1].v[part] & 0xffffffffLL, 6);
      const NativeDouble bits = number_from_word(high) * 0x1p26 + number_from_word(low);  // exact
      x[half].v[part] = (bits + 0.5) * 0x1p-53;
    }
    x[half] = quantile(x[half]);
  }
  for (int l = 0; l < kLanes; ++l) out[2 * l] = lane(x[0], l), out[2 * l + 1] = lane(x[1], l);
}

}  // namespace

void ODECAST_THIS_ISA::run_normals(const NormalJob& job) {
  for (long i = 0; i < job.count; i += kNormals)
    normals(job, static_cast<std::uint32_t>((job.first + i) / 2), job.normals + i);
}

namespace {

/// The words of bernoulli_word() (core/random.hpp), sixteen at a time: lane l gets words 2 (pair +
/// l) in its low half and 2 (pair + l) + 1 in its high half.
ODECAST_INLINE void bernoulli_words(const MaskJob& job, std::uint32_t pair, std::uint32_t* out) {
  NativeInt result[kParts], undecided[kParts];
  ODECAST_EACH_PART {
    result[part] = NativeInt{};
    undecided[part] = NativeInt{} - 1;
  }
  std::uint32_t rest = job.probability;
  for (std::uint32_t group = 0; rest != 0; ++group) {
    Words c[4];
    philox(job.seed, job.purpose, job.index, pair * 16 + group, 16, c);
    for (int digit = 0; digit < 2; ++digit, rest <<= 1) {
      ODECAST_EACH_PART {
        const NativeInt u = (c[digit].v[part] & 0xffffffffLL) | c[2 + digit].v[part] << 32;
        if (rest >> 31) {
          result[part] |= undecided[part] & ~u;
          undecided[part] &= u;
        } else {
          undecided[part] &= ~u;
        }
      }
    }
    if (rest == 0) break;
    std::int64_t left = 0;
    ODECAST_EACH_PART for (int l = 0; l < kNativeLanes; ++l) left |= undecided[part][l];
    if (left == 0) break;
  }
  __builtin_memcpy(out, result, sizeof(result));
}

}  // namespace

void ODECAST_THIS_ISA::run_masks(const MaskJob& job) {
  for (long w = 0; w < job.words; w += kMaskWords)
    bernoulli_words(job, static_cast<std::uint32_t>((job.first_word + w) / 2), job.masks + w);
}

namespace {

/// Loss and gradient of Σ_i |B2 + W2 (d_i ∘ (W1 u_i + B1))^p - g_i|² over the rows of a job, 32
/// rows to a word of mask bits. N and P are n = outputs and p where they are known to the compiler,
/// 0 otherwise. Sums run over the rows pack by pack, in the same order on every instruction set.
///
/// Forward, with y = d ∘ a:  lower_j = y_j^{p-1},  v_j = lower_j y_j,  e = B2 + Σ_j W2_j v_j - g.
/// Backward:  W̄2_oj = e_o v_j,  B̄2 = e,  ā_j = p d_j lower_j Σ_o W2_oj e_o,  W̄1 = ā uᵀ,  B̄1 = ā.
/// For p = 1 lower_j = d_j.
template <int N, int P>
void gradient_blocks(GradientJob& job) {
  constexpr int kMaxN = N ? N : 1;
  constexpr int G = kRowsPerBlock / kLanes;  // packs of a block
  const int n = N ? N : job.n, outputs = N ? N : job.outputs, k = job.k;
  const int degree = P ? P : job.degree;
  Pack* dW1 = reinterpret_cast<Pack*>(job.work);
  Pack* dB1 = dW1 + k * n;
  Pack* dW2 = dB1 + k;  // unit × output here, transposed on the way out
  Pack* dB2 = dW2 + k * outputs;
  Pack* y = dB2 + outputs;  // unit × pack
  Pack* heap = y + G * k;   // e and u where n is not known to the compiler
  const int parameters = k * n + k + k * outputs + outputs;
  for (int i = 0; i < parameters; ++i) dW1[i] = 0.0;
  Pack loss = 0.0;

  const auto lower_power = [&](const Pack& value, unsigned d) {  // y^{p-1}
    if (degree == 1) return keep_bits(d, Pack(1.0));
    Pack power = value;
    for (int i = 2; i < degree; ++i) power = power * value;
    return power;
  };

  const long blocks = (job.rows + kRowsPerBlock - 1) / kRowsPerBlock;
  for (long block = 0; block < blocks; ++block) {
    const long first = block * kRowsPerBlock;
    const std::uint32_t* masks = job.masks + block * k;
    Pack local_u[kMaxN * G], local_e[kMaxN * G];
    Pack* u = N ? local_u : heap;
    Pack* e = N ? local_e : heap + n * G;
    for (int i = 0; i < n; ++i)
      for (int g = 0; g < G; ++g)
        u[i * G + g] = load_rows(job.states + i * job.stride, first + g * kLanes, job.rows);

    // Pack by pack, so that the residuals stay in registers while the units pass.
    for (int g = 0; g < G; ++g) {
      Pack r[kMaxN];
      Pack* residual = N ? r : heap + 2 * n * G;
      for (int o = 0; o < outputs; ++o) residual[o] = job.B2[o];
      for (int j = 0; j < k; ++j) {
        Pack a = job.B1[j];
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) a = fused(job.W1[j * n + i], u[i * G + g], a);
        const unsigned d = masks[j] >> (g * kLanes) & 0xffu;
        const Pack kept = keep_bits(d, a);
        y[j * G + g] = kept;
        const Pack top = degree == 1 ? kept : lower_power(kept, d) * kept;
#pragma GCC unroll 4
        for (int o = 0; o < outputs; ++o) residual[o] = fused(job.W2[o * k + j], top, residual[o]);
      }
      const long row = first + g * kLanes;
      for (int o = 0; o < outputs; ++o) {
        residual[o] = residual[o] - load_rows(job.targets + o * job.stride, row, job.rows);
        if (row + kLanes > job.rows) {  // rows beyond the end do not count
          const long left = job.rows - row;
          residual[o] = keep_bits(left > 0 ? (1u << left) - 1 : 0u, residual[o]);
        }
        e[o * G + g] = residual[o];
        loss = fused(residual[o], residual[o], loss);
        dB2[o] = dB2[o] + residual[o];
      }
    }

    // Unit by unit, so that its sums stay in registers while the rows pass.
    for (int j = 0; j < k; ++j) {
      Pack da[G], top[G];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        Pack back = Pack(job.W2[j]) * e[g];
#pragma GCC unroll 4
        for (int o = 1; o < outputs; ++o) back = fused(job.W2[o * k + j], e[o * G + g], back);
        const Pack kept = y[j * G + g];
        const Pack lower = lower_power(kept, masks[j] >> (g * kLanes) & 0xffu);
        top[g] = degree == 1 ? kept : lower * kept;
        da[g] = back * lower;
      }
#pragma GCC unroll 4
      for (int o = 0; o < outputs; ++o) {
        Pack sum = dW2[j * outputs + o];
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) sum = fused(e[o * G + g], top[g], sum);
        dW2[j * outputs + o] = sum;
      }
      Pack bias = dB1[j];
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) bias = bias + da[g];
      dB1[j] = bias;
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        Pack sum = dW1[j * n + i];
#pragma GCC unroll 4
        for (int g = 0; g < G; ++g) sum = fused(da[g], u[i * G + g], sum);
        dW1[j * n + i] = sum;
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

}  // namespace

void ODECAST_THIS_ISA::run_gradient(GradientJob& job) {
  if (job.n == 3 && job.outputs == 3 && job.degree == 2) return gradient_blocks<3, 2>(job);
  if (job.n == 2 && job.outputs == 2 && job.degree == 2) return gradient_blocks<2, 2>(job);
  return gradient_blocks<0, 0>(job);
}

}  // namespace odecast
