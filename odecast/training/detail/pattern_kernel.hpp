#pragma once

// The trainers' inner loop over groups of rows with equal masks, compiled once per instruction set
// by gradient_<isa>.cpp. See pack.hpp for the rules of such sources.

#include "odecast/core/detail/pack.hpp"
#include "odecast/field/detail/monomial_tree.hpp"
#include "odecast/training/detail/gradient_job.hpp"

namespace odecast {
namespace {

/// patterns[i] = the mask of row i of a block, bit j for unit j, from a word of rows for each unit.
ODECAST_INLINE void patterns_of_block(const std::uint32_t* masks, int k, std::uint16_t* patterns) {
#if defined(__AVX512BW__)
  __m512i rows = _mm512_setzero_si512(), unit_bit = _mm512_set1_epi16(1);
  for (int j = 0; j < k; ++j, unit_bit = _mm512_slli_epi16(unit_bit, 1))
    rows = _mm512_mask_add_epi16(rows, masks[j], rows, unit_bit);
  _mm512_storeu_si512(patterns, rows);
#else
  typedef std::uint16_t Rows __attribute__((vector_size(32)));
  constexpr int kHalf = kRowsPerBlock / 2;
  Rows row_bit, low = Rows{}, high = Rows{};
  for (int i = 0; i < kHalf; ++i) row_bit[i] = static_cast<std::uint16_t>(1u << i);
  for (int j = 0; j < k; ++j) {
    const auto unit_bit = static_cast<std::uint16_t>(1u << j);
    const Rows a = Rows{} + static_cast<std::uint16_t>(masks[j]);
    const Rows b = Rows{} + static_cast<std::uint16_t>(masks[j] >> kHalf);
    low |= (Rows)((a & row_bit) != 0) & unit_bit;
    high |= (Rows)((b & row_bit) != 0) & unit_bit;
  }
  __builtin_memcpy(patterns, &low, sizeof(low));
  __builtin_memcpy(patterns + kHalf, &high, sizeof(high));
#endif
}

/// Lists the rows of a job by their masks: heads[d] is a row of pattern d, next[i] the one after
/// row i, kNoRow the end.
void list_rows(const PatternJob& job) {
  const std::uint32_t* masks = job.masks;
  for (long block = 0; block < job.rows; block += kRowsPerBlock, masks += job.k) {
    std::uint16_t patterns[kRowsPerBlock];
    patterns_of_block(masks, job.k, patterns);
    const long left = job.rows - block, count = left < kRowsPerBlock ? left : kRowsPerBlock;
    for (long i = 0; i < count; ++i) {
      std::uint16_t& head = job.heads[patterns[i]];
      job.next[block + i] = head;
      head = static_cast<std::uint16_t>(block + i);
    }
  }
}

/// The patterns that occur, in order, found without a branch on which do; a 0 after them.
int list_groups(const PatternJob& job) {
  int count = 0;
  for (int d = 0; d < 1 << job.k; ++d) {
    job.groups[count] = static_cast<std::uint16_t>(d);
    count += job.heads[d] != kNoRow;
  }
  job.groups[count] = 0;
  return count;
}

typedef double Quad __attribute__((vector_size(32)));  // one lane per output

/// a b + c rounded once, into `result`.
ODECAST_INLINE void fused(const Quad& a, const Quad& b, const Quad& c, Quad& result) {
#if defined(__FMA__)
  result = (Quad)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  for (int o = 0; o < kOutputSlots; ++o) result[o] = __builtin_fma(a[o], b[o], c[o]);
#endif
}

/// Of a set of units: the sum of their coefficients, and of the gradients of the masks with it.
template <int F>
struct Set {
  Quad C[F], G[F];
};

/// C = C of the empty set + Σ of the units, for every set of `count` units; G = 0.
template <int F>
ODECAST_INLINE void begin_sets(const Quad* units, int count, Set<F>* sets) {
  for (int m = 0; m < F; ++m) sets[0].G[m] = Quad{};
  for (int s = 1; s < 1 << count; ++s) {
    const Quad* rest = sets[s & (s - 1)].C;
    const Quad* unit = units + __builtin_ctz(static_cast<unsigned>(s)) * F;
    for (int m = 0; m < F; ++m) {
      sets[s].C[m] = rest[m] + unit[m];
      sets[s].G[m] = Quad{};
    }
  }
}

/// units[j] = Σ of G over the sets that hold unit j.
template <int F>
ODECAST_INLINE void end_sets(const Set<F>* sets, int count, Quad* units) {
  for (int j = 0; j < count; ++j) {
    Quad sum[F];
    for (int m = 0; m < F; ++m) sum[m] = Quad{};
    for (int s = 1 << j; s < 1 << count; s = (s + 1) | 1 << j)
      for (int m = 0; m < F; ++m) sum[m] += sets[s].G[m];
    for (int m = 0; m < F; ++m) units[j * F + m] = sum[m];
  }
}

template <int N, int P>
constexpr MonomialTree<N, P> kMonomials;

/// Σ_m r_m φ_m(u) by Horner's rule, from monomial m down: a monomial adds its part to that of its
/// parent, times the variable between them. The sum ends in r_0.
template <int N, int P, int m>
ODECAST_INLINE void horner(Quad* r, const double* u) {
  if constexpr (m > 0) {
    constexpr int parent = kMonomials<N, P>.parent[m];
    const double x = u[kMonomials<N, P>.variable[m]];
    fused(r[m], Quad{x, x, x, x}, r[parent], r[parent]);
    horner<N, P, m - 1>(r, u);
  }
}

/// sum_m += e φ_m(u) from monomial m on; v_m = e φ_m for those below degree P.
template <int N, int P, int m>
ODECAST_INLINE void add_products(Quad* v, const double* u, Quad* sum) {
  if constexpr (m < kMonomials<N, P>.size) {
    constexpr int parent = kMonomials<N, P>.parent[m];
    const double x = u[kMonomials<N, P>.variable[m]];
    if constexpr (m < kMonomials<N, P>.lower) {
      v[m] = v[parent] * x;
      sum[m] += v[m];
    } else {
      fused(v[parent], Quad{x, x, x, x}, sum[m], sum[m]);
    }
    add_products<N, P, m + 1>(v, u, sum);
  }
}

/// e = C_d φ(u) - g of a row.
template <int N, int P>
ODECAST_INLINE void residual(const Quad* c, const double* row, Quad& e) {
  constexpr int F = kMonomials<N, P>.size;
  Quad r[F];
#pragma GCC unroll 32
  for (int m = 0; m < F; ++m) r[m] = c[m];
  r[0] -= *reinterpret_cast<const Quad*>(row);
  horner<N, P, F - 1>(r, row + kOutputSlots);
  e = r[0];
}

/// sum += e φ(u)ᵀ, loss += |e|², output by output.
template <int N, int P>
ODECAST_INLINE void add_row(const Quad& e, const double* row, Quad* sum, Quad& loss) {
  Quad v[kMonomials<N, P>.lower];
  v[0] = e;
  sum[0] += e;
  add_products<N, P, 1>(v, row + kOutputSlots, sum);
  fused(e, e, loss, loss);
}

/// Loss and gradient of Σ_i |C_d φ_i - g_i|² over the rows of a job, d the mask of row i and
/// C_d = C_0 + Σ_j d_j C_j the coefficients of the masked network:
///   e = C_d φ - g,  G_d = Σ_{rows of d} e φᵀ,  H_0 = Σ_d G_d,  H_j = Σ_{d with unit j} G_d.
/// Units are split in two halves, so that C_d is the sum of two entries of small tables, and G_d is
/// added to two. The monomials are known to the compiler: C_d and G_d stay in registers while the
/// rows of d pass. A row is added to G_d while the residual of the next one is under way, so that
/// no product waits for a chain of sums.
template <int N, int P>
void pattern_rows(PatternJob& job) {
  constexpr int F = kMonomials<N, P>.size;
  const int low_units = job.k / 2, high_units = job.k - low_units;
  const int low_sets = 1 << low_units, high_sets = 1 << high_units;
  const Quad* C = reinterpret_cast<const Quad*>(job.coefficients);
  Set<F>* const lows = reinterpret_cast<Set<F>*>(job.work);
  Set<F>* const highs = lows + low_sets;
  for (int m = 0; m < F; ++m) lows->C[m] = Quad{}, highs->C[m] = C[m];
  begin_sets(C + F, low_units, lows);
  begin_sets(C + (1 + low_units) * F, high_units, highs);

  list_rows(job);
  Quad loss = Quad{};
  const double* const numbers = job.numbers;
  const std::uint16_t* const next = job.next;
  const int groups = list_groups(job);
  for (int t = 0; t < groups; ++t) {
    const int d = job.groups[t];
    Set<F>& low = lows[d & (low_sets - 1)];
    Set<F>& high = highs[d >> low_units];
    unsigned i = job.heads[d];
    job.heads[d] = kNoRow;
    __builtin_prefetch(numbers + job.heads[job.groups[t + 1]] * kRowStride);
    Quad c[F], sum[F], e;
#pragma GCC unroll 32
    for (int m = 0; m < F; ++m) c[m] = high.C[m] + low.C[m];
    const double* row = numbers + i * kRowStride;
    residual<N, P>(c, row, e);
#pragma GCC unroll 32
    for (int m = 0; m < F; ++m) sum[m] = Quad{};
    while ((i = next[i]) != kNoRow) {
      const double* next_row = numbers + i * kRowStride;
      Quad next_e;
      residual<N, P>(c, next_row, next_e);
      add_row<N, P>(e, row, sum, loss);
      row = next_row;
      e = next_e;
      __asm__("" : "+r"(row));  // u is loaded again: there are no registers to keep it in
    }
    add_row<N, P>(e, row, sum, loss);
#pragma GCC unroll 32
    for (int m = 0; m < F; ++m) low.G[m] += sum[m], high.G[m] += sum[m];
  }

  Quad* H = reinterpret_cast<Quad*>(job.gradient);
  for (int m = 0; m < F; ++m) H[m] = Quad{};
  for (int s = 0; s < high_sets; ++s)
    for (int m = 0; m < F; ++m) H[m] += highs[s].G[m];
  end_sets(lows, low_units, H + F);
  end_sets(highs, high_units, H + (1 + low_units) * F);
  job.loss = 0;
  for (int o = 0; o < job.outputs; ++o) job.loss += loss[o];
}

}  // namespace

void ODECAST_THIS_ISA::run_patterns(PatternJob& job) {
  switch (10 * job.n + job.degree) {
    case 11: return pattern_rows<1, 1>(job);
    case 12: return pattern_rows<1, 2>(job);
    case 13: return pattern_rows<1, 3>(job);
    case 21: return pattern_rows<2, 1>(job);
    case 22: return pattern_rows<2, 2>(job);
    case 23: return pattern_rows<2, 3>(job);
    case 31: return pattern_rows<3, 1>(job);
    case 32: return pattern_rows<3, 2>(job);
    case 33: return pattern_rows<3, 3>(job);
    case 41: return pattern_rows<4, 1>(job);
    case 42: return pattern_rows<4, 2>(job);
  }
}

}  // namespace odecast
