#pragma once

// The trainers' inner loop over groups of rows with equal masks, compiled once per instruction set
// by gradient_<isa>.cpp. See pack.hpp for the rules of such sources.

#include "odecast/core/pack.hpp"
#include "odecast/training/gradient_job.hpp"

namespace odecast {
namespace {

/// Sorts the rows of a job by their masks: order[…, ends[d] - 1] are the rows of pattern d, whose
/// bit j is unit j. ends[] is zero before.
void sort_rows(const PatternJob& job) {
  typedef std::uint16_t Rows __attribute__((vector_size(32)));
  constexpr int kHalf = kRowsPerBlock / 2;
  Rows row_bit;
  for (int i = 0; i < kHalf; ++i) row_bit[i] = static_cast<std::uint16_t>(1u << i);
  const std::uint32_t* masks = job.masks;
  for (long block = 0; block < job.rows; block += kRowsPerBlock, masks += job.k) {
    Rows low = Rows{}, high = Rows{};
    for (int j = 0; j < job.k; ++j) {
      const auto unit_bit = static_cast<std::uint16_t>(1u << j);
      const Rows a = Rows{} + static_cast<std::uint16_t>(masks[j]);
      const Rows b = Rows{} + static_cast<std::uint16_t>(masks[j] >> kHalf);
      low |= (Rows)((a & row_bit) != 0) & unit_bit;
      high |= (Rows)((b & row_bit) != 0) & unit_bit;
    }
    __builtin_memcpy(job.patterns + block, &low, sizeof(low));
    __builtin_memcpy(job.patterns + block + kHalf, &high, sizeof(high));
    const long end = job.rows - block < kRowsPerBlock ? job.rows : block + kRowsPerBlock;
    for (long i = block; i < end; ++i) ++job.ends[job.patterns[i]];
  }
  unsigned begin = 0;
  for (int d = 0; d < 1 << job.k; ++d) {
    const unsigned count = job.ends[d];
    job.ends[d] = static_cast<std::uint16_t>(begin);
    begin += count;
  }
  for (long i = 0; i < job.rows; ++i)
    job.order[job.ends[job.patterns[i]]++] = static_cast<std::uint16_t>(i);
}

typedef double Quad __attribute__((vector_size(32)));  // one lane per output

/// table[s] = table[0] + Σ of the units in s, for every set s of `count` units.
ODECAST_INLINE void sums_of_sets(const Quad* units, int count, int F, Quad* table) {
  for (int s = 1; s < 1 << count; ++s) {
    const Quad* rest = table + (s & (s - 1)) * F;
    const Quad* unit = units + __builtin_ctz(static_cast<unsigned>(s)) * F;
    for (int m = 0; m < F; ++m) table[s * F + m] = rest[m] + unit[m];
  }
}

/// units[j] = Σ of table[s] over the sets s that hold unit j.
ODECAST_INLINE void sums_over_sets(const Quad* table, int count, int F, Quad* units) {
  for (int j = 0; j < count; ++j) {
    for (int m = 0; m < F; ++m) units[j * F + m] = Quad{};
    for (int s = 1 << j; s < 1 << count; s = (s + 1) | 1 << j)
      for (int m = 0; m < F; ++m) units[j * F + m] += table[s * F + m];
  }
}

/// Σ c_m φ_m over m = First … First + Count - 1 as a balanced tree, less g where it begins with 0.
template <int First, int Count>
ODECAST_INLINE void sum_products(const Quad* c, const double* phi, const Quad& g, Quad& sum) {
  if constexpr (Count == 1) {
    sum = c[First] * phi[First];
    if (First == 0) sum -= g;
  } else {
    Quad right;
    sum_products<First, Count / 2>(c, phi, g, sum);
    sum_products<First + Count / 2, Count - Count / 2>(c, phi, g, right);
    sum += right;
  }
}

/// e = C_d φ - g of a row.
template <int F>
ODECAST_INLINE void residual(const Quad* c, const double* phi, Quad& e) {
  Quad g;
  __builtin_memcpy(&g, phi + F, sizeof(Quad));
  sum_products<0, F>(c, phi, g, e);
}

ODECAST_INLINE void prefetch_row(const double* phi) {
  __builtin_prefetch(phi);
  __builtin_prefetch(phi + 8);
}

/// Loss and gradient of Σ_i |C_d φ_i - g_i|² over the rows of a job, d the mask of row i and
/// C_d = C_0 + Σ_j d_j C_j the coefficients of the masked network:
///   e = C_d φ - g,  G_d = Σ_{rows of d} e φᵀ,  H_0 = Σ_d G_d,  H_j = Σ_{d with unit j} G_d.
/// Units are split in two halves, so that C_d is the sum of two entries of small tables, and G_d is
/// added to two. The number of monomials is known to the compiler: C_d and G_d stay in registers
/// while the rows of d pass. A row is added to G_d while the residual of the next one is under way,
/// so that no product waits for a chain of sums.
template <int F>
void pattern_rows(PatternJob& job) {
  const int low_units = job.k / 2, high_units = job.k - low_units;
  const int low_sets = 1 << low_units, high_sets = 1 << high_units;
  const Quad* C = reinterpret_cast<const Quad*>(job.coefficients);
  Quad* C_low = reinterpret_cast<Quad*>(job.work);
  Quad* C_high = C_low + low_sets * F;
  Quad* G_low = C_high + high_sets * F;
  Quad* G_high = G_low + low_sets * F;
  Quad* G_group = G_high + high_sets * F;
  int lows[1 << 8];
  for (int m = 0; m < F; ++m) C_low[m] = Quad{}, C_high[m] = C[m];
  sums_of_sets(C + F, low_units, F, C_low);
  sums_of_sets(C + (1 + low_units) * F, high_units, F, C_high);
  for (int i = 0; i < (low_sets + high_sets) * F; ++i) G_low[i] = Quad{};

  sort_rows(job);
  Quad loss = Quad{};
  const std::uint16_t* at = job.order;
  const double* const numbers = job.numbers;
  const long stride = job.stride;
  const std::uint16_t* ends = job.ends;
  for (int high = 0; high < high_sets; ++high) {
    Quad* to = G_group;
    for (int low = 0; low < low_sets; ++low) {
      const std::uint16_t* const end = job.order + *ends++;
      if (at == end) continue;
      Quad c[F], sum[F], e;
#pragma GCC unroll 32
      for (int m = 0; m < F; ++m) c[m] = C_high[high * F + m] + C_low[low * F + m];
      const double* phi = numbers + *at * stride;
      prefetch_row(numbers + at[kAhead] * stride);
      residual<F>(c, phi, e);
#pragma GCC unroll 32
      for (int m = 0; m < F; ++m) sum[m] = Quad{};
      while (++at != end) {
        const double* next_phi = numbers + *at * stride;
        prefetch_row(numbers + at[kAhead] * stride);
        Quad next_e;
        residual<F>(c, next_phi, next_e);
        loss += e * e;
#pragma GCC unroll 32
        for (int m = 0; m < F; ++m) sum[m] += e * phi[m];
        phi = next_phi;
        e = next_e;
        __asm__("" : "+r"(phi));  // φ is loaded again: there are no registers to keep it in
      }
      loss += e * e;
#pragma GCC unroll 32
      for (int m = 0; m < F; ++m) to[m] = sum[m] + e * phi[m];
      lows[(to - G_group) / F] = low;
      to += F;
    }
    Quad sum_high[F];
    for (int m = 0; m < F; ++m) sum_high[m] = Quad{};
    const int* low = lows;
    for (const Quad* from = G_group; from != to; from += F, ++low) {
      Quad* into = G_low + *low * F;
      for (int m = 0; m < F; ++m) {
        into[m] += from[m];
        sum_high[m] += from[m];
      }
    }
    for (int m = 0; m < F; ++m) G_high[high * F + m] = sum_high[m];
  }
  for (int d = 0; d < low_sets * high_sets; ++d) job.ends[d] = 0;

  Quad* H = reinterpret_cast<Quad*>(job.gradient);
  for (int m = 0; m < F; ++m) H[m] = Quad{};
  for (int i = 0; i < high_sets; ++i)
    for (int m = 0; m < F; ++m) H[m] += G_high[i * F + m];
  sums_over_sets(G_low, low_units, F, H + F);
  sums_over_sets(G_high, high_units, F, H + (1 + low_units) * F);
  job.loss = 0;
  for (int o = 0; o < job.outputs; ++o) job.loss += loss[o];
}

void run_patterns(PatternJob& job) {
  switch (job.monomials) {
    case 2: return pattern_rows<2>(job);
    case 3: return pattern_rows<3>(job);
    case 4: return pattern_rows<4>(job);
    case 5: return pattern_rows<5>(job);
    case 6: return pattern_rows<6>(job);
    case 10: return pattern_rows<10>(job);
    case 15: return pattern_rows<15>(job);
    case 20: return pattern_rows<20>(job);
  }
}

}  // namespace
}  // namespace odecast
