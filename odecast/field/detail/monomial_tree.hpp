#pragma once

// The numbering of monomials, for MonomialBasis and for kernels that know its size when they are
// compiled. See core/detail/pack.hpp for the rules of headers that kernels include.

namespace odecast {
namespace {

/// The monomials of n variables up to degree p by degree and then lexicographically: φ_0 = 1, and
/// φ_m = φ_parent[m] u_variable[m] for m > 0. Those of degree d + 1 are those of degree d times a
/// variable that does not come before their last one, so that each arises once.
constexpr void grow_monomials(int n, int p, int* parent, int* variable) {
  parent[0] = variable[0] = 0;
  int begin = 0, end = 1;
  for (int d = 0; d < p; ++d) {
    int m = end;
    for (int from = begin; from < end; ++from)
      for (int v = variable[from]; v < n; ++v, ++m) parent[m] = from, variable[m] = v;
    begin = end;
    end = m;
  }
}

/// C(n + p, p)
constexpr int count_monomials(int n, int p) {
  int count = 1;
  for (int i = 1; i <= p; ++i) count = count * (n + i) / i;
  return count;
}

/// MonomialBasis(N, P) as the compiler knows it.
template <int N, int P>
struct MonomialTree {
  static constexpr int size = count_monomials(N, P), lower = count_monomials(N, P - 1);
  int parent[size] = {}, variable[size] = {};
  constexpr MonomialTree() { grow_monomials(N, P, parent, variable); }
};

}  // namespace
}  // namespace odecast
