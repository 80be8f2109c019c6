#pragma once

// Eight segments side by side: the flow, its sensitivities, and the normal equations of their
// observations. Compiled once per instruction set by segments_<isa>.cpp. See pack.hpp for the rules
// of such sources.

#include "odecast/core/detail/pack.hpp"
#include "odecast/field/detail/tape_kernel.hpp"
#include "odecast/shooting/detail/segment_job.hpp"
#include "odecast/solver/tableau.hpp"

namespace odecast {
namespace {

/// The solver's tables, with addresses in this source alone.
struct Rk4 {
  static constexpr Tableau table = kRungeKutta4;
};
struct Rk8 {
  static constexpr Tableau table = kFehlberg8;
};

/// One copy for all the loops below.
[[gnu::noinline]] void run_functions(const Node* tape, int nodes, const Pack* arguments,
                                     const Pack* parameters, Pack* values) {
  run_tape(tape, nodes, arguments, parameters, values);
}

/// N is the number of variables where it is known to the compiler, 0 otherwise. Without inputs
/// (Driven false) there is no trace of them in the loops.
template <int N, class Method, bool Driven>
struct Segments {
  static constexpr int kStages = Method::table.stages;
  const SegmentJob& job;
  const int n, columns, values;
  Pack *u, *stage_u, *slope, *phi, *jacobian, *S, *history, *normal, *K, *parameters;

  explicit Segments(const SegmentJob& j)
      : job(j),
        n(N ? N : j.variables),
        columns(n + j.terms + j.numbers + 1),
        values(j.monomials + j.nodes) {
    Pack* at = reinterpret_cast<Pack*>(job.work);
    const auto take = [&at](long size) {
      Pack* begin = at;
      at += size;
      return begin;
    };
    u = take(n);
    stage_u = take(Driven ? n + job.inputs : n);
    slope = take(static_cast<long>(kStages) * n);
    phi = take(static_cast<long>(kStages) * values);
    jacobian = take(static_cast<long>(kStages) * n * n);
    K = take(static_cast<long>(kStages + 1) * n);
    S = take(static_cast<long>(columns) * n);
    history = take(static_cast<long>(columns) * n * kHistory);
    normal = take(static_cast<long>(columns) * (columns + 1) / 2);
    parameters = take(job.parameters);
    for (int k = 0; k < job.parameters; ++k) parameters[k] = job.parameter_values[k];
  }

  /// Σ_{j < s} a_sj k_j of one component; the loop is unrolled and the zeros are gone.
  static ODECAST_INLINE Pack combine(const double* a, int count, const Pack* k, int stride) {
    Pack sum = 0.0;
#pragma GCC unroll 16
    for (int j = 0; j < count; ++j)
      if (a[j] != 0) sum = sum + Pack(a[j]) * k[j * stride];
    return sum;
  }

  template <bool Sensitive>
  ODECAST_INLINE void evaluate(const Pack* at, Pack* f, Pack* p) {
    p[0] = 1.0;
    for (int m = 1; m < job.monomials; ++m) p[m] = p[job.parent[m]] * at[job.variable[m]];
    if (job.nodes > 0)
      run_functions(job.tape, Sensitive ? job.nodes : job.value_nodes, at, parameters,
                    p + job.monomials);
    for (int i = 0; i < n; ++i) f[i] = 0.0;
    for (int c = 0; c < job.summed; ++c)
      f[job.summed_equation[c]] =
          f[job.summed_equation[c]] + Pack(job.summed_theta[c]) * p[job.summed_term[c]];
  }

  /// One step of length h. With v' = J v + ∂f/∂θ along the same stages, S keeps the exact
  /// derivative of the discrete flow. Inputs are w = begin + x (end - begin) with x from `from` to
  /// from + part.
  template <bool Sensitive>
  ODECAST_INLINE void step(const Pack& h, const Pack* inputs = nullptr, double from = 0,
                           double part = 1) {
    for (int s = 0; s < kStages; ++s) {
      if constexpr (Driven) {
        const Pack x = from + part * Method::table.c[s];
        for (int j = 0; j < job.inputs; ++j)
          stage_u[n + j] = inputs[2 * j] + x * (inputs[2 * j + 1] - inputs[2 * j]);
      }
      for (int i = 0; i < n; ++i)
        stage_u[i] = u[i] + h * combine(Method::table.a[s], s, slope + i, n);
      Pack* p = phi + static_cast<long>(s) * values;
      evaluate<Sensitive>(stage_u, slope + s * n, p);
      if constexpr (Sensitive) {
        Pack* J = jacobian + s * n * n;
        for (int e = 0; e < n * n; ++e) J[e] = 0.0;
        for (int e = 0; e < job.slopes; ++e)
          J[job.slope_place[e]] =
              J[job.slope_place[e]] + Pack(job.slope_value[e]) * p[job.slope_term[e]];
      }
    }
    if constexpr (Sensitive) {
      const int terms = n + job.terms;
      for (int c = 0; c < terms; ++c) {
        const int equation = c < n ? -1 : job.equation[c - n];
        const Pack* force = c < n ? nullptr : phi + job.term[c - n];
        advance_column(S + static_cast<long>(c) * n, h, equation, force);
      }
      for (int c = terms; c < columns - 1; ++c)
        advance_number(S + static_cast<long>(c) * n, h, c - terms);
    }
    for (int i = 0; i < n; ++i) u[i] = u[i] + h * combine(Method::table.b, kStages, slope + i, n);
  }

  ODECAST_INLINE void advance_column(Pack* v, const Pack& h, int equation, const Pack* force) {
    if constexpr (N > 0) {
      Pack k[kStages * N], t[N];
#pragma GCC unroll 16
      for (int s = 0; s < kStages; ++s) {
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i)
          t[i] = s == 0 ? v[i] : v[i] + h * combine(Method::table.a[s], s, k + i, N);
        const Pack* J = jacobian + s * N * N;
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) {
          Pack sum = J[i * N] * t[0];
#pragma GCC unroll 4
          for (int j = 1; j < N; ++j) sum = sum + J[i * N + j] * t[j];
          k[s * N + i] = sum;
        }
        if (force) k[s * N + equation] = k[s * N + equation] + force[static_cast<long>(s) * values];
      }
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) v[i] = v[i] + h * combine(Method::table.b, kStages, k + i, N);
    } else {
      Pack* t = K + static_cast<long>(kStages) * n;
      for (int s = 0; s < kStages; ++s) {
        for (int i = 0; i < n; ++i) t[i] = v[i] + h * combine(Method::table.a[s], s, K + i, n);
        const Pack* J = jacobian + s * n * n;
        for (int i = 0; i < n; ++i) {
          Pack sum = J[i * n] * t[0];
          for (int j = 1; j < n; ++j) sum = sum + J[i * n + j] * t[j];
          K[s * n + i] = sum;
        }
        if (force) K[s * n + equation] = K[s * n + equation] + force[static_cast<long>(s) * values];
      }
      for (int i = 0; i < n; ++i) v[i] = v[i] + h * combine(Method::table.b, kStages, K + i, n);
    }
  }

  /// The same for a number, which may be inside terms of several equations.
  void advance_number(Pack* v, const Pack& h, int number) {
    Pack* t = K + static_cast<long>(kStages) * n;
    for (int s = 0; s < kStages; ++s) {
      for (int i = 0; i < n; ++i) t[i] = v[i] + h * combine(Method::table.a[s], s, K + i, n);
      const Pack *J = jacobian + s * n * n, *p = phi + static_cast<long>(s) * values;
      for (int i = 0; i < n; ++i) {
        Pack sum = J[i * n] * t[0];
        for (int j = 1; j < n; ++j) sum = sum + J[i * n + j] * t[j];
        K[s * n + i] = sum;
      }
      for (int f = job.first_force[number]; f < job.first_force[number + 1]; ++f) {
        Pack& k = K[s * n + job.force_equation[f]];
        k = k + Pack(job.force_value[f]) * p[job.force_term[f]];
      }
    }
    for (int i = 0; i < n; ++i) v[i] = v[i] + h * combine(Method::table.b, kStages, K + i, n);
  }

  /// Row a of the upper triangle of the normal matrix begins at column a.
  ODECAST_INLINE Pack* row(int a) {
    return normal + static_cast<long>(a) * columns - a * (a - 1L) / 2 - a;
  }

  /// normal += history' history; history is column × rows. Two rows and two columns at a time.
  void flush(int rows) {
    const int stride = n * kHistory;
    for (int a = 0; a < columns; a += 2) {
      const Pack *a0 = history + static_cast<long>(a) * stride, *a1 = a0 + stride;
      const bool pair = a + 1 < columns;
      Pack *r0 = row(a), *r1 = pair ? row(a + 1) : nullptr;
      if (!pair) {
        Pack sum = r0[a];
        for (int r = 0; r < rows; ++r) sum = sum + a0[r] * a0[r];
        r0[a] = sum;
        break;
      }
      Pack s00 = r0[a], s01 = r0[a + 1], s11 = r1[a + 1];
      for (int r = 0; r < rows; ++r) {
        s00 = s00 + a0[r] * a0[r];
        s01 = s01 + a0[r] * a1[r];
        s11 = s11 + a1[r] * a1[r];
      }
      r0[a] = s00, r0[a + 1] = s01, r1[a + 1] = s11;
      int b = a + 2;
      for (; b + 1 < columns; b += 2) {
        const Pack *b0 = history + static_cast<long>(b) * stride, *b1 = b0 + stride;
        Pack c00 = r0[b], c01 = r0[b + 1], c10 = r1[b], c11 = r1[b + 1];
        for (int r = 0; r < rows; ++r) {
          const Pack x = a0[r], y = a1[r], z = b0[r], w = b1[r];
          c00 = c00 + x * z;
          c01 = c01 + x * w;
          c10 = c10 + y * z;
          c11 = c11 + y * w;
        }
        r0[b] = c00, r0[b + 1] = c01, r1[b] = c10, r1[b + 1] = c11;
      }
      if (b < columns) {
        const Pack* b0 = history + static_cast<long>(b) * stride;
        Pack c0 = r0[b], c1 = r1[b];
        for (int r = 0; r < rows; ++r) {
          c0 = c0 + a0[r] * b0[r];
          c1 = c1 + a1[r] * b0[r];
        }
        r0[b] = c0, r1[b] = c1;
      }
    }
  }

  template <bool Sensitive>
  void run() {
    const long cells = static_cast<long>(columns) * (columns + 1) / 2;
    if constexpr (Sensitive)
      for (long e = 0; e < cells; ++e) normal[e] = 0.0;
    const Pack* length = reinterpret_cast<const Pack*>(job.length);
    const Pack* observed = reinterpret_cast<const Pack*>(job.observed);
    const Pack* root_weight = reinterpret_cast<const Pack*>(job.root_weight);
    for (int block = 0; block < job.blocks; ++block) {
      for (int i = 0; i < n; ++i) u[i] = reinterpret_cast<const Pack*>(job.starts)[block * n + i];
      if constexpr (Sensitive) {
        for (int e = 0; e < columns * n; ++e) S[e] = 0.0;
        for (int i = 0; i < n; ++i) S[i * n + i] = 1.0;
        for (int a = 0; a < n; ++a)
          for (int b = a; b < columns; ++b) row(a)[b] = 0.0;
      }
      Pack cost = 0.0;
      Pack* squares = reinterpret_cast<Pack*>(job.squares) + static_cast<long>(block) * n;
      for (int i = 0; i < n; ++i) squares[i] = 0.0;
      int held = 0;
      for (int k = 0; k < job.slots; ++k) {
        const long slot = static_cast<long>(block) * job.slots + k;
        if (k > 0) {
          const int substeps = job.substeps[slot];
          if constexpr (Driven) {
            const double part = 1.0 / substeps;
            for (int piece = job.first_piece[slot]; piece < job.first_piece[slot + 1]; ++piece) {
              const Pack h = reinterpret_cast<const Pack*>(job.piece_length)[piece] /
                             Pack(static_cast<double>(substeps));
              const Pack* inputs =
                  reinterpret_cast<const Pack*>(job.piece_inputs) + 2L * piece * job.inputs;
              for (int s = 0; s < substeps; ++s) step<Sensitive>(h, inputs, s * part, part);
            }
          } else {
            const Pack h = length[slot] / Pack(static_cast<double>(substeps));
            for (int s = 0; s < substeps; ++s) step<Sensitive>(h);
          }
        }
        if (job.path)
          for (int i = 0; i < n; ++i) reinterpret_cast<Pack*>(job.path)[slot * n + i] = u[i];
        for (int i = 0; i < n; ++i) {
          const Pack w = root_weight[slot * n + i];
          const Pack r = w * (observed[slot * n + i] - u[i]);
          cost = cost + r * r;
          squares[i] = squares[i] + r * r;
          if constexpr (Sensitive) {
            const int place = held * n + i, stride = n * kHistory;
            for (int c = 0; c < columns - 1; ++c)
              history[static_cast<long>(c) * stride + place] = w * S[c * n + i];
            history[static_cast<long>(columns - 1) * stride + place] = r;
          }
        }
        if constexpr (Sensitive) {
          if (++held == kHistory || k + 1 == job.slots) {
            flush(held * n);
            held = 0;
          }
        }
      }
      reinterpret_cast<Pack*>(job.cost)[block] = cost;
      for (int i = 0; i < n; ++i) reinterpret_cast<Pack*>(job.end)[block * n + i] = u[i];
      if constexpr (Sensitive) {
        Pack* out =
            reinterpret_cast<Pack*>(job.state_rows) + static_cast<long>(block) * n * columns;
        for (int a = 0; a < n; ++a)
          for (int b = 0; b < columns; ++b) out[a * columns + b] = b < a ? row(b)[a] : row(a)[b];
        Pack* flow =
            reinterpret_cast<Pack*>(job.flow) + static_cast<long>(block) * n * (columns - 1);
        for (int i = 0; i < n; ++i)
          for (int c = 0; c < columns - 1; ++c) flow[i * (columns - 1) + c] = S[c * n + i];
      }
    }
    if constexpr (Sensitive)
      for (int a = n; a < columns - 1; ++a)
        for (int b = a; b < columns; ++b)
          job.theta_rows[static_cast<long>(a - n) * columns + b] = sum_of_lanes(row(a)[b]);
  }
};

template <int N, class Method, bool Driven>
void run_method(const SegmentJob& job) {
  Segments<N, Method, Driven> segments(job);
  if (job.sensitivities)
    segments.template run<true>();
  else
    segments.template run<false>();
}

template <int N, bool Driven>
void run_sized(const SegmentJob& job) {
  if (job.order == 4)
    run_method<N, Rk4, Driven>(job);
  else
    run_method<N, Rk8, Driven>(job);
}

template <bool Driven>
void run_driven(const SegmentJob& job) {
  if (job.variables == 3) return run_sized<3, Driven>(job);
  if (job.variables == 2) return run_sized<2, Driven>(job);
  run_sized<0, Driven>(job);
}

}  // namespace

void ODECAST_THIS_ISA::run_segments(const SegmentJob& job) {
  if (job.inputs > 0) return run_driven<true>(job);
  run_driven<false>(job);
}

}  // namespace odecast
