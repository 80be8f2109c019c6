#pragma once

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <vector>

#include "odecast/core/functions.hpp"
#include "odecast/field/vector_field.hpp"
#include "odecast/solver/detail/stepper.hpp"

// Included by solve.cpp alone; like stepper.hpp it keeps to an unnamed namespace.

namespace odecast {
namespace {

/// Radau IIA of order 5 (Hairer & Wanner, Solving ODEs II, IV.8), L-stable: for stiff fields, whose
/// explicit steps are small long after the motion that asks for it has died out.
///   Z_i = h Σ_j a_ij f(t + c_j h, y + Z_j),   y_new = y + Z_3
/// by Newton's method with one Jacobian for all stages, (1 - h A ⊗ J) ΔZ = h A f - Z; the error by
///   (γ/h - J)⁻¹ (f(t, y) + Σ e_i Z_i / h),   γ = 3 + 3^⅔ - 3^⅓,
/// a method of order 3, damped; between the ends the collocation polynomial through the stages.
class Radau {
 public:
  Radau(const VectorField& field, const StepLimits& limits)
      : field_(field), o_(limits), n_(field.dimension()), Z_(Matrix::Zero(3, n_)) {}

  /// A Problem is one of integrate() of stepper.hpp, of one lane.
  template <class Problem>
  void integrate(Problem& problem);

 private:
  static constexpr double kRoot6 = 2.449489742783178;
  static constexpr double kC[3] = {(4 - kRoot6) / 10, (4 + kRoot6) / 10, 1};
  static constexpr double kA[3][3] = {
      {(88 - 7 * kRoot6) / 360, (296 - 169 * kRoot6) / 1800, (-2 + 3 * kRoot6) / 225},
      {(296 + 169 * kRoot6) / 1800, (88 + 7 * kRoot6) / 360, (-2 - 3 * kRoot6) / 225},
      {(16 - kRoot6) / 36, (16 + kRoot6) / 36, 1.0 / 9}};
  static constexpr double kE[3] = {(-13 - 7 * kRoot6) / 3, (-13 + 7 * kRoot6) / 3, -1.0 / 3};
  static constexpr double kGamma = 3.6378342527444957;
  static constexpr int kMostRounds = 6;

  using Dense = Eigen::MatrixXd;

  /// ∂f/∂u at (t, y), exact for polynomials, of others by differences.
  Dense slope(double t, const Vector& y, const Vector& f) const {
    if (field_.polynomial()) return jacobian(*field_.polynomial(), y);
    Dense J(n_, n_);
    Vector at = y, moved(n_);
    for (Eigen::Index j = 0; j < n_; ++j) {
      const double h = 1.5e-8 * std::max(std::abs(y[j]), o_.atol / o_.rtol);
      at[j] = y[j] + h;
      field_(t, at.data(), moved.data());
      J.col(j) = (moved - f) / (at[j] - y[j]);
      at[j] = y[j];
    }
    return J;
  }

  /// Root mean square of x_i / (atol + rtol |size_i|).
  double norm(const Vector& x, const Vector& size) const {
    return std::sqrt((x.array() / (o_.atol + o_.rtol * size.array().abs())).square().sum() /
                     static_cast<double>(n_));
  }

  void factor(double h, const Dense& J) {
    Dense stages = Dense::Identity(3 * n_, 3 * n_);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) stages.block(i * n_, j * n_, n_, n_) -= h * kA[i][j] * J;
    stages_.compute(stages);
    error_.compute(kGamma / h * Dense::Identity(n_, n_) - J);
  }

  /// Newton's rounds for Z_ from where it is; false where they do not converge.
  bool solve_stages(double t, double h, const Vector& y) {
    const double enough =
        std::max(10 * 2.220446049250313e-16 / o_.rtol, std::min(0.03, std::sqrt(o_.rtol)));
    double before = 0, rate = 1;
    for (rounds_ = 1; rounds_ <= kMostRounds; ++rounds_) {
      Matrix F(3, n_);
      Vector at(n_), f(n_);
      for (int i = 0; i < 3; ++i) {
        at = y + Z_.row(i).transpose();
        field_(t + kC[i] * h, at.data(), f.data());
        ++evaluations_;
        F.row(i) = f.transpose();
      }
      if (!F.allFinite()) return false;
      Vector right(3 * n_);
      for (int i = 0; i < 3; ++i)
        right.segment(i * n_, n_) =
            h * (kA[i][0] * F.row(0) + kA[i][1] * F.row(1) + kA[i][2] * F.row(2)).transpose() -
            Z_.row(i).transpose();
      const Vector change = stages_.solve(right);
      double square = 0;
      for (int i = 0; i < 3; ++i) {
        const double one = norm(change.segment(i * n_, n_), y);
        square += one * one / 3;
      }
      const double size = std::sqrt(square);
      if (!std::isfinite(size)) return false;
      if (rounds_ > 1) {
        rate = size / before;
        const double left = integer_power(rate, kMostRounds - rounds_) / (1 - rate) * size;
        if (rate >= 1 || left > enough) return false;
      }
      for (int i = 0; i < 3; ++i) Z_.row(i) += change.segment(i * n_, n_).transpose();
      if (size == 0 || (rounds_ > 1 && rate / (1 - rate) * size < enough)) return true;
      before = size;
    }
    return false;
  }

  const VectorField& field_;
  StepLimits o_;
  Eigen::Index n_;
  Matrix Z_;  ///< stages × variables
  Eigen::PartialPivLU<Dense> stages_, error_;
  int rounds_ = 0;
  long evaluations_ = 0;
};

template <class Problem>
void Radau::integrate(Problem& problem) {
  Vector y(n_), f(n_), y_new(n_), f_new(n_);
  double t = 0;
  problem.load(0, &t, y.data());
  problem.evaluate(t, y.data(), f.data());
  double d1 = 0;
  double h = o_.first_step;
  if (!(h > 0)) {
    h = first_step_probe(static_cast<int>(n_), y.data(), f.data(), problem.interval(0), o_, &d1);
    y_new = y + h * f;
    problem.evaluate(t + h, y_new.data(), f_new.data());
    h = first_step(static_cast<int>(n_), y.data(), f.data(), f_new.data(), h, d1,
                   problem.interval(0), o_);
  }
  Dense J = slope(t, y, f);
  bool fresh = true, rejected = false;
  double factored = 0, h_before = 0, error_before = 0;
  Matrix collocation(3, n_);  // of the step before, for the next guess
  for (long steps = 0;; ++steps) {
    if (steps == o_.max_steps) return problem.finish(0, kTooManySteps, t, y.data(), h);
    h = std::min(h, o_.max_step);
    if (!(h >= 10 * spacing(t))) return problem.finish(0, kStepTooSmall, t, y.data(), h);
    const double limit = problem.limit(0);
    const double t_new = std::min(t + h, limit), step = t_new - t;
    if (h_before > 0) {  // where the last polynomial goes on to
      for (int i = 0; i < 3; ++i) {
        const double x = 1 + kC[i] * step / h_before;
        Z_.row(i) = x * (collocation.row(0) + x * (collocation.row(1) + x * collocation.row(2))) -
                    (collocation.row(0) + collocation.row(1) + collocation.row(2));
      }
    } else {
      Z_.setZero();
    }
    if (step != factored) factor(factored = step, J);
    evaluations_ = 0;
    const bool converged = solve_stages(t, step, y);
    problem.add_evaluations(evaluations_);
    if (!converged) {
      problem.count(0, false);
      if (fresh) {
        h = 0.5 * step;
      } else {
        J = slope(t, y, f);
        fresh = true;
        factored = 0;
      }
      h_before = 0;
      continue;
    }
    y_new = y + Z_.row(2).transpose();
    const Vector from_stages =
        (kE[0] * Z_.row(0) + kE[1] * Z_.row(1) + kE[2] * Z_.row(2)).transpose() / step;
    const Vector size = y.cwiseAbs().cwiseMax(y_new.cwiseAbs());
    Vector error = error_.solve(f + from_stages);
    double found = norm(error, size);
    if (rejected && found > 1) {
      f_new.resize(n_);
      const Vector moved = y + error;
      problem.evaluate(t, moved.data(), f_new.data());
      error = error_.solve(f_new + from_stages);
      found = norm(error, size);
    }
    const double safety = 0.9 * (2 * kMostRounds + 1) / (2 * kMostRounds + rounds_);
    // Gustafsson's predictive controller.
    const auto root = [](double x) { return 1 / std::sqrt(std::sqrt(x)); };
    const double trend = h_before > 0 && error_before > 0 && found > 0
                             ? step / h_before * root(found / error_before)
                             : 1,
                 factor_now = found > 0 ? std::min(1.0, trend) * root(found) : 10;
    if (!(found <= 1)) {
      problem.count(0, false);
      h = step * std::max(0.2, safety * (std::isfinite(factor_now) ? factor_now : 0));
      rejected = true;
      h_before = 0;
      continue;
    }
    problem.count(0, true);
    rejected = false;
    // u(t + x step) = y + x (p_1 + x (p_2 + x p_3)) through the stages.
    const auto row = [&](double a, double b, double c) {
      return (a * Z_.row(0) + b * Z_.row(1) + c * Z_.row(2)).eval();
    };
    collocation.row(0) = row((13 + 7 * kRoot6) / 3, (13 - 7 * kRoot6) / 3, 1.0 / 3);
    collocation.row(1) = row(-(23 + 22 * kRoot6) / 3, (-23 + 22 * kRoot6) / 3, -8.0 / 3);
    collocation.row(2) = row((10 + 15 * kRoot6) / 3, (10 - 15 * kRoot6) / 3, 10.0 / 3);
    Matrix Q = Matrix::Zero(4, n_);
    Q.topRows(3) = collocation / step;
    problem.step(0, t, step, t_new, y.data(), Q.data(), y_new.data());
    h_before = step;
    error_before = found;
    y = y_new;
    t = t_new;
    if (!(y.array().abs() <= o_.bound).all()) return problem.finish(0, kLeftBound, t, y.data(), h);
    const double next = std::min(10.0, safety * factor_now);
    if (problem.at_end(0, t)) return problem.finish(0, kFinished, t, y.data(), step * next);
    problem.before_step(0);
    problem.evaluate(t, y.data(), f.data());
    // A Jacobian serves while Newton's rounds are few, a factorisation while the step stays.
    if (rounds_ > 2) {
      J = slope(t, y, f);
      fresh = true;
      factored = 0;
    } else {
      fresh = false;
    }
    // A step that an output time has cut says nothing against a longer one.
    h = next < 1 ? step * next : std::max(h, next < 1.2 ? step : step * next);
  }
}

}  // namespace
}  // namespace odecast
