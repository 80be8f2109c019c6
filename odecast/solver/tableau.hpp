#pragma once

namespace odecast {

constexpr int kMaxStages = 12;

/// An explicit Runge–Kutta method as data:
///   K_s = f(t + c_s h, y + h Σ_{j<s} a_sj K_j),   y_new = y + h Σ_s b_s K_s,
///   error estimate  h Σ_s e_s K_s,
///   dense output    y(t + x h) = y + h Σ_s K_s (p_s0 x + p_s1 x² + p_s2 x³ + p_s3 x⁴).
/// A method without an embedded one (adaptive = false) has no e and no p.
struct Tableau {
  int stages;     ///< of the step itself; a FSAL method has one more, f(t+h, y_new)
  int order;      ///< of y_new
  bool adaptive;  ///< has e and p, and is first-same-as-last: K_{stages} = f(t+h, y_new)
  double c[kMaxStages];
  double a[kMaxStages][kMaxStages];
  double b[kMaxStages];
  double e[kMaxStages];
  double p[kMaxStages][4];
};

/// Dormand & Prince, J. Comput. Appl. Math. 6 (1980) 19, RK5(4)7M: order 5 with an embedded order
/// 4, steps taken with the order-5 value. The quartic interpolant is Shampine's (Math. Comp. 46
/// (1986) 135), of order 4 for every x and continuously differentiable. Signs, weights and
/// interpolant are those of SciPy's RK45.
inline constexpr Tableau kDormandPrince = {
    .stages = 6,
    .order = 5,
    .adaptive = true,
    .c = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1},
    .a = {{},
          {1.0 / 5},
          {3.0 / 40, 9.0 / 40},
          {44.0 / 45, -56.0 / 15, 32.0 / 9},
          {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
          {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
          {}},
    .b = {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0},
    .e = {-71.0 / 57600, 0, 71.0 / 16695, -71.0 / 1920, 17253.0 / 339200, -22.0 / 525, 1.0 / 40},
    .p = {{1, -8048581381.0 / 2820520608, 8663915743.0 / 2820520608, -12715105075.0 / 11282082432},
          {0, 0, 0, 0},
          {0, 131558114200.0 / 32700410799, -68118460800.0 / 10900136933,
           87487479700.0 / 32700410799},
          {0, -1754552775.0 / 470086768, 14199869525.0 / 1410260304, -10690763975.0 / 1880347072},
          {0, 127303824393.0 / 49829197408, -318862633887.0 / 49829197408,
           701980252875.0 / 199316789632},
          {0, -282668133.0 / 205662961, 2019193451.0 / 616988883, -1453857185.0 / 822651844},
          {0, 40617522.0 / 29380423, -110615467.0 / 29380423, 69997945.0 / 29380423}}};

/// The classical method of order 4 (Kutta 1901).
inline constexpr Tableau kRungeKutta4 = {.stages = 4,
                                         .order = 4,
                                         .adaptive = false,
                                         .c = {0, 0.5, 0.5, 1},
                                         .a = {{}, {0.5}, {0, 0.5}, {0, 0, 1}},
                                         .b = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6},
                                         .e = {},
                                         .p = {}};

/// Fehlberg's RK7(8) (NASA TR R-287, 1968) with its order-8 weights, less the stage that only the
/// order-7 ones use.
inline constexpr Tableau kFehlberg8 = {
    .stages = 12,
    .order = 8,
    .adaptive = false,
    .c = {0, 2.0 / 27, 1.0 / 9, 1.0 / 6, 5.0 / 12, 1.0 / 2, 5.0 / 6, 1.0 / 6, 2.0 / 3, 1.0 / 3, 0,
          1},
    .a = {{},
          {2.0 / 27},
          {1.0 / 36, 1.0 / 12},
          {1.0 / 24, 0, 1.0 / 8},
          {5.0 / 12, 0, -25.0 / 16, 25.0 / 16},
          {1.0 / 20, 0, 0, 1.0 / 4, 1.0 / 5},
          {-25.0 / 108, 0, 0, 125.0 / 108, -65.0 / 27, 125.0 / 54},
          {31.0 / 300, 0, 0, 0, 61.0 / 225, -2.0 / 9, 13.0 / 900},
          {2, 0, 0, -53.0 / 6, 704.0 / 45, -107.0 / 9, 67.0 / 90, 3},
          {-91.0 / 108, 0, 0, 23.0 / 108, -976.0 / 135, 311.0 / 54, -19.0 / 60, 17.0 / 6,
           -1.0 / 12},
          {3.0 / 205, 0, 0, 0, 0, -6.0 / 41, -3.0 / 205, -3.0 / 41, 3.0 / 41, 6.0 / 41},
          {-1777.0 / 4100, 0, 0, -341.0 / 164, 4496.0 / 1025, -289.0 / 82, 2193.0 / 4100, 51.0 / 82,
           33.0 / 164, 12.0 / 41, 1}},
    .b = {0, 0, 0, 0, 0, 34.0 / 105, 9.0 / 35, 9.0 / 35, 9.0 / 280, 9.0 / 280, 41.0 / 840,
          41.0 / 840},
    .e = {},
    .p = {}};

inline constexpr Tableau kEuler = {
    .stages = 1, .order = 1, .adaptive = false, .c = {0}, .a = {{}}, .b = {1}, .e = {}, .p = {}};

namespace detail {
constexpr double magnitude(double x) { return x < 0 ? -x : x; }
/// Σ b = 1, Σ e = 0, Σ_j a_sj = c_s, and the interpolant meets y_new: Σ_k p_sk = b_s.
constexpr bool consistent(const Tableau& m) {
  double b = -1, e = 0;
  for (int s = 0; s < kMaxStages; ++s) {
    b += m.b[s];
    e += m.e[s];
    double row = 0, end = 0;
    for (int j = 0; j < s; ++j) row += m.a[s][j];
    for (int k = 0; k < 4; ++k) end += m.p[s][k];
    if (s < m.stages && magnitude(row - m.c[s]) > 1e-14) return false;
    if (m.adaptive && magnitude(end - m.b[s]) > 1e-14) return false;
  }
  return magnitude(b) < 1e-15 && magnitude(e) < 1e-15;
}
}  // namespace detail
static_assert(detail::consistent(kDormandPrince));
static_assert(detail::consistent(kRungeKutta4));
static_assert(detail::consistent(kFehlberg8));
static_assert(detail::consistent(kEuler));

}  // namespace odecast
