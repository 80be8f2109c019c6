#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "odecast/field/polynomial.hpp"

namespace odecast {

/// du/dt = f(t, u). A value; cheap to move. Polynomial fields are known as such, so that a solver
/// can evaluate many of them side by side in lanes. One object serves one thread at a time.
class VectorField {
 public:
  using Function = std::function<void(double t, const double* u, double* dudt)>;
  /// Told the number of steps accepted so far before each step, for fields that change from step
  /// to step. The field must not change while a step is being tried again.
  using StepHook = std::function<void(std::uint64_t accepted)>;

  VectorField(int dimension, Function function, StepHook hook = nullptr)
      : dimension_(dimension), function_(std::move(function)), hook_(std::move(hook)) {}
  explicit VectorField(PolynomialField field);

  int dimension() const { return dimension_; }
  void operator()(double t, const double* u, double* dudt) const { function_(t, u, dudt); }
  const PolynomialField* polynomial() const { return polynomial_.get(); }
  const StepHook& step_hook() const { return hook_; }

 private:
  int dimension_;
  std::shared_ptr<const PolynomialField> polynomial_;
  Function function_;
  StepHook hook_;
};

/// ∂f_i/∂u_j at u and t = 0: exact for polynomials, of others by central differences of fourth
/// order.
Matrix jacobian(const VectorField& field, const Vector& u);

/// Of the value of a field over the draws of a posterior.
struct Moments {
  Vector mean;
  Matrix covariance;
  Vector sd() const { return covariance.diagonal().cwiseSqrt(); }
};

}  // namespace odecast
