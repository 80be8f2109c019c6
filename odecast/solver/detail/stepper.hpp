#pragma once

// The Runge–Kutta stepper. One text serves a single trajectory (Real = double) and eight lanes
// (Real = Pack); lane i of a pack does what a lone trajectory does, bit for bit.
//
// Included only by the sources that instantiate it (solve.cpp, lane_kernel.hpp). Like pack.hpp it
// keeps to an unnamed namespace and calls nothing from the standard library.

#include "odecast/core/detail/pack.hpp"
#include "odecast/solver/tableau.hpp"

namespace odecast {
namespace {

/// x^(-1/5) for x in [1e-6, 3e4], by Newton's method for y^-5 = x: y <- y (6 - x y^5) / 5, which
/// takes a relative error e to about 3 e². Only + - * /, so that lanes and machines agree.
template <class Real>
ODECAST_INLINE Real inverse_fifth_root(Real x) {
  // Bring x into [1, 32) by factors of 32 = 2^5, each of which moves the root by exactly 2.
  Real root = 1.0;
  for (int i = 0; i < 4; ++i) {
    const auto small = x < Real(1.0);
    root = select(small, root * Real(2.0), root);
    x = select(small, x * Real(32.0), x);
  }
  for (int i = 0; i < 3; ++i) {
    const auto large = Real(32.0) <= x;
    root = select(large, root * Real(0.5), root);
    x = select(large, x * Real(1.0 / 32), x);
  }
  Real y = Real(0.5) + Real(1.5) / (x + Real(2.0));  // within 9 %
  for (int i = 0; i < 5; ++i) {
    const Real y2 = y * y;
    y = y * (Real(1.2) - Real(0.2) * (x * (y2 * y2 * y)));
  }
  return y * root;
}

/// The stages of one step from (t, y) with K_0 = f(t, y) given. K holds stages × n.
///   y_new = y + h Σ b_s K_s
template <const Tableau& M, class Real, class Problem>
ODECAST_INLINE void take_stages(Problem& problem, int n, const Real& t, const Real& h,
                                const Real* y, Real* K, Real* stage, Real* y_new) {
#pragma GCC unroll 8
  for (int s = 1; s < M.stages; ++s) {
    for (int i = 0; i < n; ++i) {
      Real sum = K[i] * Real(M.a[s][0]);
#pragma GCC unroll 8
      for (int j = 1; j < s; ++j)
        if (M.a[s][j] != 0) sum = sum + K[j * n + i] * Real(M.a[s][j]);
      stage[i] = y[i] + sum * h;
    }
    problem.evaluate(t + Real(M.c[s]) * h, stage, K + s * n);
  }
  for (int i = 0; i < n; ++i) {
    Real sum = K[i] * Real(M.b[0]);
#pragma GCC unroll 8
    for (int s = 1; s < M.stages; ++s)
      if (M.b[s] != 0) sum = sum + K[s * n + i] * Real(M.b[s]);
    y_new[i] = y[i] + h * sum;
  }
}

struct StepLimits {
  double rtol, atol, first_step, max_step, bound;
  long max_steps;
};

/// The first step, from the sizes of u, f and a difference of f after one Euler step
/// (Hairer, Nørsett, Wanner, Solving ODEs I, II.4, for order 4):
///   d0 = |u0|, d1 = |f0|, h0 = 0.01 d0/d1, d2 = |f(u0 + h0 f0) - f0| / h0,
///   h1^5 max(d1, d2) = 0.01, h = min(100 h0, h1), all norms scaled by atol + rtol |u0|.
/// Split in two because the lanes evaluate f between the halves.
ODECAST_INLINE double first_step_probe(int n, const double* u, const double* f, double interval,
                                       const StepLimits& o, double* d1_out) {
  double d0 = 0, d1 = 0;
  for (int i = 0; i < n; ++i) {
    const double scale = o.atol + absolute(u[i]) * o.rtol;
    d0 += (u[i] / scale) * (u[i] / scale);
    d1 += (f[i] / scale) * (f[i] / scale);
  }
  d0 = __builtin_sqrt(d0 / n);
  d1 = __builtin_sqrt(d1 / n);
  *d1_out = d1;
  const double h0 = d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1;
  return smaller(h0, interval);
}

ODECAST_INLINE double first_step(int n, const double* u, const double* f0, const double* f1,
                                 double h0, double d1, double interval, const StepLimits& o) {
  double d2 = 0;
  for (int i = 0; i < n; ++i) {
    const double scale = o.atol + absolute(u[i]) * o.rtol;
    d2 += ((f1[i] - f0[i]) / scale) * ((f1[i] - f0[i]) / scale);
  }
  d2 = __builtin_sqrt(d2 / n) / h0;
  double h1;
  if (d1 <= 1e-15 && d2 <= 1e-15) {
    h1 = larger(1e-6, h0 * 1e-3);
  } else {
    // (0.01 / d)^(1/5) with d brought into the range of the root; beyond it h0 decides.
    double d = larger(d1, d2) * 100, unit = 1;
    for (; d > 1e4 && d < 1e300; unit *= 0x1p-5) d *= 0x1p-25;
    for (; d < 1e-4; unit *= 0x1p5) d *= 0x1p25;
    h1 = d < 1e300 ? inverse_fifth_root(d) * unit : 0.0;
  }
  return smaller(smaller(100 * h0, h1), smaller(interval, o.max_step));
}

/// How the lanes of integrate() ended: the values of SolveStatus.
enum LaneStatus { kFinished = 0, kLeftBound = 1, kStepTooSmall = 2, kTooManySteps = 3 };

/// The work space integrate() needs, in Reals.
ODECAST_INLINE int workspace_size(int n) { return (3 + 7 + 4) * n; }

/// Adaptive integration with Dormand–Prince 5(4) and SciPy's controller, each lane with its own
/// time, step and end. A Problem has
///   void evaluate(const Real& t, const Real* u, Real* dudt)
///   bool load(int lane, double* t0, Real* u0)   the next trajectory for a lane; false: no more
///   void pass()                 before every step of the lanes together; may throw
///   double interval(int lane)   from its start to its end
///   double limit(int lane)      where the next step must not go beyond (an output time or the end)
///   bool before_step(int lane)  true when f has changed since the last evaluation
///   bool wants(int lane, double t_new)            whether the step to t_new carries output
///   void step(int lane, double t, double h, double t_new, const Real* y, const Real* Q,
///             const Real* y_new)      an accepted step; Q (4 × n) when some lane wants it
///   bool at_end(int lane, double t)
///   void finish(int lane, int status, double t, const Real* y, double h)
///   void count(int lane, bool accepted)
///   double* scratch()           3 n doubles
/// Every loop ends: each pass costs each lane one of its max_steps.
/// N is the number of variables where the compiler knows it, 0 otherwise.
template <int N = 0, class Real, class Problem>
void integrate(Problem& problem, int variables, const StepLimits& o, Real* work) {
  const int n = N ? N : variables;
  constexpr int L = lanes_of<Real>();
  constexpr const Tableau& M = kDormandPrince;
  Real *y = work, *y_new = y + n, *stage = y_new + n, *K = stage + n, *Q = K + 7 * n;
  Real t = 0.0, h_abs = 1.0, limit = 1.0;
  Real rejected = 0.0;  // 1 where the step under way has been rejected before
  long steps[L];
  unsigned active = 0;
  const unsigned all = (1u << L) - 1;
  for (int i = 0; i < n; ++i) y[i] = 0.0;
  for (int i = 0; i < 7 * n; ++i) K[i] = 0.0;

  // Loads trajectories into the idle lanes and finds their first steps.
  const auto refill = [&](unsigned idle) {
    unsigned fresh = 0;
    for (int l = 0; l < L; ++l) {
      if (!(idle >> l & 1)) continue;
      double t0 = 0;
      if (!problem.load(l, &t0, y)) {
        set_lane(t, l, 0.0);
        set_lane(limit, l, 1.0);
        set_lane(h_abs, l, 1.0);
        for (int i = 0; i < n; ++i) set_lane(y[i], l, 0.0), set_lane(K[i], l, 0.0);
        continue;
      }
      set_lane(t, l, t0);
      set_lane(rejected, l, 0.0);
      steps[l] = 0;
      fresh |= 1u << l;
    }
    if (!fresh) return;
    active |= fresh;
    // f at the start, in `stage`; only fresh lanes take it.
    problem.evaluate(t, y, stage);
    for (int l = 0; l < L; ++l)
      if (fresh >> l & 1)
        for (int i = 0; i < n; ++i) set_lane(K[i], l, lane(stage[i], l));
    if (o.first_step > 0) {
      for (int l = 0; l < L; ++l)
        if (fresh >> l & 1) set_lane(h_abs, l, o.first_step);
    } else {
      Real h0 = 0.0, d1 = 0.0;
      double* u_lane = problem.scratch();
      double *f0 = u_lane + n, *f1 = f0 + n;
      const auto gather = [&](int l, const Real* from, double* to) {
        for (int i = 0; i < n; ++i) to[i] = lane(from[i], l);
      };
      for (int l = 0; l < L; ++l) {
        if (!(fresh >> l & 1)) continue;
        gather(l, y, u_lane);
        gather(l, K, f0);
        double d = 0;
        set_lane(h0, l, first_step_probe(n, u_lane, f0, problem.interval(l), o, &d));
        set_lane(d1, l, d);
      }
      for (int i = 0; i < n; ++i) y_new[i] = y[i] + h0 * K[i];
      problem.evaluate(t + h0, y_new, stage);
      for (int l = 0; l < L; ++l) {
        if (!(fresh >> l & 1)) continue;
        gather(l, y, u_lane);
        gather(l, K, f0);
        gather(l, stage, f1);
        set_lane(h_abs, l,
                 first_step(n, u_lane, f0, f1, lane(h0, l), lane(d1, l), problem.interval(l), o));
      }
    }
  };

  refill(all);
  while (active) {
    problem.pass();
    unsigned changed = 0;
    for (int l = 0; l < L; ++l) {
      if (!(active >> l & 1)) continue;
      set_lane(limit, l, problem.limit(l));
      if (lane(rejected, l) == 0 && problem.before_step(l)) changed |= 1u << l;
    }
    if (changed) {  // f is not what it was at the end of the last step
      problem.evaluate(t, y, stage);
      for (int l = 0; l < L; ++l)
        if (changed >> l & 1)
          for (int i = 0; i < n; ++i) set_lane(K[i], l, lane(stage[i], l));
    }

    // A new step is at least ten spacings of t and at most max_step; one that was rejected below
    // the former has failed. Written so that a NaN step counts as too small.
    const Real min_step = Real(10.0) * spacing(t);
    const Real clamped = smaller(larger(h_abs, min_step), Real(o.max_step));
    const auto large_enough = min_step <= h_abs;
    h_abs = select(rejected == Real(0.0), clamped, h_abs);
    const Real planned = h_abs;
    Real t_new = t + h_abs;
    const unsigned cut = bits_of(t_new > limit);
    t_new = select(t_new > limit, limit, t_new);
    const Real h = t_new - t;
    h_abs = absolute(h);

    take_stages<M>(problem, n, t, h, y, K, stage, y_new);
    problem.evaluate(t + h, y_new, K + 6 * n);

    // Mean square of (h Σ e_s K_s)_i / (atol + rtol max(|y_i|, |y_new_i|)), and the size of y_new.
    Real square = 0.0, size = 0.0;
    for (int i = 0; i < n; ++i) {
      Real error = K[i] * Real(M.e[0]);
#pragma GCC unroll 8
      for (int s = 2; s < 7; ++s) error = error + K[s * n + i] * Real(M.e[s]);
      const Real y_abs = absolute(y[i]), new_abs = absolute(y_new[i]);
      const Real scale = Real(o.atol) + larger(y_abs, new_abs) * Real(o.rtol);
      const Real ratio = error * h / scale;
      square = square + ratio * ratio;
      size = larger(new_abs, size);
    }
    square = square * Real(1.0 / n);
    const auto accept = square < Real(1.0);  // false for a NaN

    // The factors 10 and 0.2 are reached at norms 5.9e-6 and 1845: the norm can be clamped outside.
    // A NaN is not below the upper clamp and shrinks the step by 0.2.
    const Real inside = select(square < Real(9e8), larger(square, Real(1e-12)), Real(9e8));
    const Real power = inverse_fifth_root(square_root(inside));
    const Real grow =
        select(square == Real(0.0), Real(10.0), smaller(Real(10.0), Real(0.9) * power));
    const Real calm = select(rejected == Real(0.0), grow, smaller(Real(1.0), grow));
    const Real shrink = larger(Real(0.9) * power, Real(0.2));
    const Real h_next = h_abs * select(accept, calm, shrink);

    const unsigned accepted = bits_of(accept) & active;
    const unsigned too_small = ~(bits_of(large_enough) | bits_of(rejected == Real(0.0))) & active;
    const unsigned inside_bound = bits_of(size <= Real(o.bound));

    bool wanted = false;
    for (int l = 0; l < L; ++l)
      wanted = wanted || ((accepted >> l & 1) && problem.wants(l, lane(t_new, l)));
    if (wanted) {
      for (int i = 0; i < n; ++i) {
        for (int k = 0; k < 4; ++k) {
          Real sum = K[i] * Real(M.p[0][k]);
#pragma GCC unroll 8
          for (int s = 2; s < 7; ++s) sum = sum + K[s * n + i] * Real(M.p[s][k]);
          Q[k * n + i] = sum;
        }
      }
    }

    unsigned idle = 0;
    for (int l = 0; l < L; ++l) {
      if (!(active >> l & 1)) continue;
      const double time = lane(t, l), time_new = lane(t_new, l);
      if (too_small >> l & 1) {
        problem.finish(l, kStepTooSmall, time, y, 0.0);
        idle |= 1u << l;
        continue;
      }
      const bool ok = accepted >> l & 1;
      problem.count(l, ok);
      ++steps[l];
      if (ok && !(inside_bound >> l & 1)) {
        problem.finish(l, kLeftBound, time_new, y_new, 0.0);
        idle |= 1u << l;
        continue;
      }
      // A step cut short by an output time says nothing against the step that was planned.
      double next = lane(h_next, l);
      if (ok && (cut >> l & 1)) next = larger(next, lane(planned, l));
      set_lane(h_abs, l, next);
      set_lane(rejected, l, ok ? 0.0 : 1.0);
      if (ok) {
        problem.step(l, time, lane(h, l), time_new, y, Q, y_new);
        if (problem.at_end(l, time_new)) {
          problem.finish(l, kFinished, time_new, y_new, next);
          idle |= 1u << l;
          continue;
        }
      }
      if (steps[l] >= o.max_steps) {
        problem.finish(l, kTooManySteps, ok ? time_new : time, ok ? y_new : y, 0.0);
        idle |= 1u << l;
      }
    }
    // Accepted lanes move on; K_6 = f(t_new, y_new) is the next K_0.
    for (int i = 0; i < n; ++i) {
      y[i] = select(accept, y_new[i], y[i]);
      K[i] = select(accept, K[6 * n + i], K[i]);
    }
    t = select(accept, t_new, t);
    if (idle) {
      active &= ~idle;
      refill(idle);
    }
  }
}

}  // namespace
}  // namespace odecast
