#pragma once

// The lane solver's inner loop, compiled once per instruction set by lanes_<isa>.cpp. See pack.hpp
// for the rules of such sources.

#include "odecast/solver/lane_job.hpp"
#include "odecast/solver/stepper.hpp"

namespace odecast {
namespace {

/// The members of a LaneJob as a Problem of integrate().
struct LaneProblem {
  const LaneJob& job;
  Pack* coefficients;  ///< variable × monomial, of the members now in the lanes
  Pack* phi;           ///< monomials
  double* buffer;
  int next = 0;
  int member[kLanes] = {};

  ODECAST_INLINE void evaluate(const Pack&, const Pack* u, Pack* dudt) {
    const int F = job.monomials;
    for (int m = 1; m < F; ++m) phi[m] = phi[job.parent[m]] * u[job.variable[m]];
    for (int i = 0; i < job.variables; ++i) {
      const Pack* c = coefficients + i * F;
      Pack sum = c[0];
      for (int m = 1; m < F; ++m) sum = sum + c[m] * phi[m];
      dudt[i] = sum;
    }
  }
  bool load(int l, double* t0, Pack* y) {
    if (next == job.members) return false;
    const int k = member[l] = next++;
    const int n = job.variables, size = n * job.monomials;
    for (int c = 0; c < size; ++c)
      set_lane(coefficients[c], l, job.coefficients[static_cast<long>(k) * size + c]);
    for (int i = 0; i < n; ++i) set_lane(y[i], l, job.starts[k * n + i]);
    job.ends[k] = LaneEnd{0, 0, job.t0, 0};
    *t0 = job.t0;
    return true;
  }
  double interval(int) const { return job.times[job.outputs - 1] - job.t0; }
  double limit(int) const { return job.times[job.outputs - 1]; }
  bool before_step(int) const { return false; }
  ODECAST_INLINE bool wants(int l, double t_new) const {
    return job.times[job.ends[member[l]].outputs] <= t_new;
  }
  ODECAST_INLINE void step(int l, double t, double h, double t_new, const Pack* y, const Pack* Q,
                           const Pack*) {
    LaneEnd& end = job.ends[member[l]];
    const int first = end.outputs;
    int last = first;
    while (last < job.outputs && job.times[last] <= t_new) ++last;
    if (last == first) return;
    const int n = job.variables;
    const double* __restrict times = job.times;
    const double per_step = 1 / h;
    for (int i = 0; i < n; ++i) {
      const double y0 = lane(y[i], l), q0 = lane(Q[i], l), q1 = lane(Q[n + i], l),
                   q2 = lane(Q[2 * n + i], l), q3 = lane(Q[3 * n + i], l);
      double* __restrict out = job.states + (static_cast<long>(member[l]) * n + i) * job.outputs;
      for (int k = first; k < last; ++k) {
        const double x = (times[k] - t) * per_step;
        out[k] = y0 + h * (x * (q0 + x * (q1 + x * (q2 + x * q3))));
      }
    }
    end.outputs = last;
  }
  bool at_end(int, double t) const { return t >= job.times[job.outputs - 1]; }
  void finish(int l, int status, double t, const Pack*, double) {
    job.ends[member[l]].status = status;
    job.ends[member[l]].time = t;
  }
  void count(int l, bool) { ++job.ends[member[l]].steps; }
  double* scratch() { return buffer; }
};

void run_lanes(const LaneJob& job) {
  const int n = job.variables;
  Pack* work = reinterpret_cast<Pack*>(job.work);
  Pack* coefficients = work + workspace_size(n);
  Pack* phi = coefficients + n * job.monomials;
  Pack* tail = phi + job.monomials;
  for (int c = 0; c < n * job.monomials; ++c) coefficients[c] = 0.0;
  phi[0] = 1.0;
  LaneProblem problem{job, coefficients, phi, reinterpret_cast<double*>(tail)};
  integrate(problem, n,
            StepLimits{job.rtol, job.atol, job.first_step, job.max_step, job.bound, job.max_steps},
            work);
}

}  // namespace
}  // namespace odecast
