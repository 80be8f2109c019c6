#pragma once

// The lane solver's inner loop, compiled once per instruction set by lanes_<isa>.cpp. See pack.hpp
// for the rules of such sources.

#include "odecast/field/detail/monomial_tree.hpp"
#include "odecast/field/detail/tape_kernel.hpp"
#include "odecast/solver/detail/lane_job.hpp"
#include "odecast/solver/detail/stepper.hpp"

namespace odecast {
namespace {

/// Out of the solver's loops, which stay small.
[[gnu::noinline]] void run_functions(const LaneJob& job, const Pack* u, const Pack* numbers,
                                     Pack* values) {
  run_tape(job.tape, job.nodes, u, numbers, values);
}

/// The members of a LaneJob as a Problem of integrate(). N and P are the number of variables and
/// the degree where they are known to the compiler, 0 otherwise. Without functions there is no
/// trace of them in the loops.
template <int N, int P, bool Functions>
struct LaneProblem {
  const LaneJob& job;
  Pack* coefficients;      ///< variable × term, of the members now in the lanes
  Pack* phi;               ///< monomials
  Pack *values, *numbers;  ///< nodes of the functions' tape, and what is inside them
  double* buffer;
  int next = 0;
  int member[kLanes] = {};
  unsigned passes = 0;

  ODECAST_INLINE void evaluate(const Pack&, const Pack* u, Pack* dudt) {
    if constexpr (N > 0) {
      constexpr MonomialTree<N, P> basis;
      constexpr int F = basis.size;
      Pack f[F];
      f[0] = 1.0;
#pragma GCC unroll 64
      for (int m = 1; m < F; ++m) f[m] = f[basis.parent[m]] * u[basis.variable[m]];
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        const Pack* c = coefficients + i * F;
        Pack sum = c[0];
#pragma GCC unroll 64
        for (int m = 1; m < F; ++m) sum = sum + c[m] * f[m];
        dudt[i] = sum;
      }
      return;
    }
    const int F = job.monomials;
    for (int m = 1; m < F; ++m) phi[m] = phi[job.parent[m]] * u[job.variable[m]];
    if constexpr (Functions) run_functions(job, u, numbers, values);
    for (int i = 0; i < job.variables; ++i) {
      const Pack* c = coefficients + i * (Functions ? job.terms : F);
      Pack sum = c[0];
      for (int m = 1; m < F; ++m) sum = sum + c[m] * phi[m];
      if constexpr (Functions)  // one without a coefficient need not be defined
        for (int f = F; f < job.terms; ++f)
          sum = select(c[f] == Pack(0.0), sum, sum + c[f] * values[job.roots[f - F]]);
      dudt[i] = sum;
    }
  }
  bool load(int l, double* t0, Pack* y) {
    if (next == job.members) return false;
    const int k = member[l] = next++;
    const int n = job.variables, size = n * job.terms;
    for (int c = 0; c < size; ++c)
      set_lane(coefficients[c], l, job.coefficients[static_cast<long>(k) * size + c]);
    for (int q = 0; q < job.numbers; ++q)
      set_lane(numbers[q], l, job.number_values[static_cast<long>(k) * job.numbers + q]);
    for (int i = 0; i < n; ++i) set_lane(y[i], l, job.starts[k * n + i]);
    job.ends[k] = TrajectoryEnd{{}, 0, job.t0, 0};
    *t0 = job.t0;
    return true;
  }
  void pass() {
    if ((++passes & 255) == 0) job.pulse();
  }
  double interval(int) const { return job.times[job.outputs - 1] - job.t0; }
  double limit(int) const { return job.times[job.outputs - 1]; }
  bool before_step(int) const { return false; }
  ODECAST_INLINE bool wants(int l, double t_new) const {
    return job.times[job.ends[member[l]].outputs] <= t_new;
  }
  ODECAST_INLINE void step(int l, double t, double h, double t_new, const Pack* y, const Pack* Q,
                           const Pack*) {
    TrajectoryEnd& end = job.ends[member[l]];
    const int n = N ? N : job.variables;
    const double per_step = 1 / h;
    double* out = job.states + static_cast<long>(member[l]) * n * lane_stride(job.outputs);
    // Eight output times at once. Those beyond t_new are overwritten by later steps.
    int k = end.outputs;
    while (k < job.outputs && job.times[k] <= t_new) {
      Pack times;
      __builtin_memcpy(&times, job.times + k, sizeof(Pack));
      const Pack x = (times - Pack(t)) * Pack(per_step);
      for (int i = 0; i < n; ++i) {
        const Pack q0 = lane(Q[i], l), q1 = lane(Q[n + i], l), q2 = lane(Q[2 * n + i], l),
                   q3 = lane(Q[3 * n + i], l);
        const Pack u = Pack(lane(y[i], l)) + Pack(h) * (x * (q0 + x * (q1 + x * (q2 + x * q3))));
        __builtin_memcpy(out + i * lane_stride(job.outputs) + k, &u, sizeof(Pack));
      }
      const int room = job.outputs - k;
      unsigned inside = bits_of(times <= Pack(t_new)) & (room < kLanes ? (1u << room) - 1 : 0xffu);
      k += __builtin_popcount(inside);
      if (inside != 0xffu) break;
    }
    end.outputs = k;
  }
  bool at_end(int, double t) const { return t >= job.times[job.outputs - 1]; }
  void finish(int l, int status, double t, const Pack*, double) {
    job.ends[member[l]].status = static_cast<SolveStatus>(status);
    job.ends[member[l]].time = t;
  }
  void count(int l, bool) { ++job.ends[member[l]].steps; }
  double* scratch() { return buffer; }
};

template <int N, int P, bool Functions = false>
void run_members(const LaneJob& job) {
  const int n = job.variables;
  Pack* work = reinterpret_cast<Pack*>(job.work);
  Pack* coefficients = work + workspace_size(n);
  Pack* phi = coefficients + n * job.terms;
  Pack* values = phi + job.monomials;
  Pack* numbers = values + job.nodes;
  Pack* tail = numbers + job.numbers;
  for (int c = 0; c < n * job.terms; ++c) coefficients[c] = 0.0;
  for (int q = 0; q < job.numbers; ++q) numbers[q] = 0.0;
  phi[0] = 1.0;
  LaneProblem<N, P, Functions> problem{job,    coefficients, phi,
                                       values, numbers,      reinterpret_cast<double*>(tail)};
  integrate<N>(
      problem, n,
      StepLimits{job.rtol, job.atol, job.first_step, job.max_step, job.bound, job.max_steps}, work);
}

}  // namespace

void ODECAST_THIS_ISA::run_lanes(const LaneJob& job) {
  if (job.terms > job.monomials) return run_members<0, 0, true>(job);
  if (job.variables == 3 && job.monomials == MonomialTree<3, 2>::size)
    return run_members<3, 2>(job);
  if (job.variables == 2 && job.monomials == MonomialTree<2, 2>::size)
    return run_members<2, 2>(job);
  run_members<0, 0>(job);
}

}  // namespace odecast
