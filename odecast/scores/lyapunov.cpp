#include "odecast/scores/lyapunov.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {
namespace {

constexpr int kBatches = 20;

/// ∂φ_m/∂u_j by the rule of products: φ_m = φ_parent u_v.
Matrix polynomial_jacobian(const PolynomialField& f, const Vector& u) {
  const MonomialBasis& basis = *f.basis;
  const auto n = static_cast<Eigen::Index>(basis.variables());
  Vector phi(basis.size());
  basis.evaluate(u.data(), phi.data());
  Matrix slope = Matrix::Zero(basis.size(), n);
  for (int m = 1; m < basis.size(); ++m) {
    slope.row(m) = slope.row(basis.parent(m)) * u[basis.variable(m)];
    slope(m, basis.variable(m)) += phi[basis.parent(m)];
  }
  return f.coefficients * slope;
}

Matrix difference_jacobian(const VectorField& field, const Vector& u) {
  const auto n = u.size();
  Matrix J(n, n);
  Vector at = u, f(n), column(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const double h = 1e-3 * std::max(1.0, std::abs(u[j]));
    column.setZero();
    for (const auto& [steps, weight] : {std::pair{-2, 1.0}, {-1, -8.0}, {1, 8.0}, {2, -1.0}}) {
      at[j] = u[j] + steps * h;
      field(0, at.data(), f.data());
      column += weight * f;
    }
    at[j] = u[j];
    J.col(j) = column / (12 * h);
  }
  return J;
}

}  // namespace

Matrix jacobian(const VectorField& field, const Vector& u) {
  return field.polynomial() ? polynomial_jacobian(*field.polynomial(), u) : difference_jacobian(field, u);
}

LyapunovSpectrum lyapunov_spectrum(const VectorField& field, const Vector& start, const LyapunovOptions& given,
                                   const Observer& observer) {
  LyapunovOptions o = given;
  if (o.map) o.interval = 1;
  const auto require = [](bool good, const char* name, double value, const char* expected) {
    if (!good)
      throw_usage({std::string("option --") + name, format_number(value), expected, "Give a value in that range."});
  };
  require(o.interval > 0, "interval", o.interval, "a number > 0");
  require(o.transient >= 0, "transient", o.transient, "a number >= 0");
  require(o.until >= kBatches * o.interval, "until", o.until, "at least 20 intervals");
  const auto n = start.size();
  SolverOptions solver;
  solver.rtol = o.rtol;
  solver.atol = o.atol;
  solver.bound = o.bound;
  solver.max_steps = 10'000'000;
  if (o.map) {
    solver.method = Method::iterate;
    solver.fixed_step = 1;
  }

  LyapunovSpectrum result;
  result.exponents = result.standard_error = Vector::Zero(n);
  Vector u = start;
  if (o.transient > 0) {
    const Solution s = solve(field, 0, u, std::vector{o.map ? std::max(1.0, std::round(o.transient)) : o.transient}, solver);
    if ((result.status = s.status) != SolveStatus::finished) return result;
    u = s.end_state;
  }

  // State, displacements column by column, and the integral of div f, as one system. Displacements grow and
  // shrink; the tolerance is relative to their own size, and the bound is checked on the state.
  const VectorField extended(static_cast<int>(n + n * n + 1), [&](double t, const double* x, double* dxdt) {
    field(t, x, dxdt);
    const Matrix J = jacobian(field, Eigen::Map<const Vector>(x, n));
    using Columns = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
    Eigen::Map<Columns>(dxdt + n, n, n).noalias() = J * Eigen::Map<const Columns>(x + n, n, n);
    dxdt[n + n * n] = J.trace();
  });
  solver.bound = 1e300;
  Matrix V = Matrix::Identity(n, n);
  const long intervals = std::lround(o.until / o.interval);
  Matrix sums = Matrix::Zero(kBatches, n);
  std::vector<double> times(kBatches, 0.0);
  const std::vector<double> end = {o.interval};
  for (long k = 0; k < intervals; ++k) {
    if (k % 64 == 0) observer("following", static_cast<double>(k) / static_cast<double>(intervals));
    if (o.map) {
      const Matrix J = jacobian(field, u);
      V = (J * V).eval();
      result.divergence += std::log(std::abs(J.determinant()));
      Vector next(n);
      field(0, u.data(), next.data());
      u = next;
    } else {
      Vector x(n + n * n + 1);
      x.head(n) = u;
      for (Eigen::Index j = 0; j < n; ++j) x.segment(n + j * n, n) = V.col(j);
      x[n + n * n] = 0;
      const Solution s = solve(extended, 0, x, end, solver);
      if ((result.status = s.status) != SolveStatus::finished) return result;
      solver.first_step = std::min(o.interval, s.next_step);
      u = s.end_state.head(n);
      for (Eigen::Index j = 0; j < n; ++j) V.col(j) = s.end_state.segment(n + j * n, n);
      result.divergence += s.end_state[n + n * n];
    }
    if (!(u.cwiseAbs().maxCoeff() <= o.bound)) {
      result.status = SolveStatus::left_bound;
      return result;
    }
    // Gram–Schmidt in the order of the columns, twice for orthogonality to round-off.
    const auto batch = static_cast<Eigen::Index>(k * kBatches / intervals);
    for (Eigen::Index j = 0; j < n; ++j) {
      double growth = 1;
      for (int pass = 0; pass < 2; ++pass) {
        for (Eigen::Index i = 0; i < j; ++i) V.col(j) -= V.col(i).dot(V.col(j)) * V.col(i);
        const double norm = V.col(j).norm();
        V.col(j) /= norm;
        growth *= norm;
      }
      sums(batch, j) += std::log(growth);
    }
    times[static_cast<std::size_t>(batch)] += o.interval;
  }
  result.time = static_cast<double>(intervals) * o.interval;
  result.divergence /= result.time;
  for (Eigen::Index j = 0; j < n; ++j) {
    result.exponents[j] = sums.col(j).sum() / result.time;
    double square = 0;
    for (Eigen::Index b = 0; b < kBatches; ++b) {
      const double rate = sums(b, j) / times[static_cast<std::size_t>(b)];
      square += (rate - result.exponents[j]) * (rate - result.exponents[j]);
    }
    result.standard_error[j] = std::sqrt(square / (kBatches * (kBatches - 1.0)));
  }
  std::vector<Eigen::Index> order(static_cast<std::size_t>(n));
  for (Eigen::Index j = 0; j < n; ++j) order[static_cast<std::size_t>(j)] = j;
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return result.exponents[a] > result.exponents[b]; });
  const Vector exponents = result.exponents, errors = result.standard_error;
  for (Eigen::Index j = 0; j < n; ++j) {
    result.exponents[j] = exponents[order[static_cast<std::size_t>(j)]];
    result.standard_error[j] = errors[order[static_cast<std::size_t>(j)]];
  }
  return result;
}

}  // namespace odecast
