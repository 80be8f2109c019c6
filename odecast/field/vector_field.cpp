#include "odecast/field/vector_field.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "odecast/field/function_terms.hpp"

namespace odecast {

VectorField::VectorField(PolynomialField field)
    : dimension_(static_cast<int>(field.coefficients.rows())),
      polynomial_(std::make_shared<const PolynomialField>(std::move(field))) {
  // The terms are added from the first to the last, as the lane code does: the same bits.
  const auto size = static_cast<std::size_t>(polynomial_->basis->size());
  if (polynomial_->functions) {
    const auto nodes = static_cast<std::size_t>(polynomial_->functions->values().size());
    function_ = [p = polynomial_, phi = std::vector<double>(size),
                 values = std::vector<double>(nodes)](double, const double* u,
                                                      double* dudt) mutable {
      const FunctionTerms& functions = *p->functions;
      const Eigen::Index monomials = p->basis->size();
      p->basis->evaluate(u, phi.data());
      evaluate(functions.values(), u, p->numbers.data(), values.data());
      for (Eigen::Index i = 0; i < p->coefficients.rows(); ++i) {
        double sum = p->coefficients(i, 0);
        for (Eigen::Index m = 1; m < monomials; ++m)
          sum += p->coefficients(i, m) * phi[static_cast<std::size_t>(m)];
        for (std::size_t f = 0; f < functions.roots().size(); ++f)
          if (const double c = p->coefficients(i, monomials + static_cast<Eigen::Index>(f)); c != 0)
            sum += c * values[static_cast<std::size_t>(functions.roots()[f])];
        dudt[i] = sum;
      }
    };
    return;
  }
  function_ = [p = polynomial_, phi = std::vector<double>(size)](double, const double* u,
                                                                 double* dudt) mutable {
    p->basis->evaluate(u, phi.data());
    for (Eigen::Index i = 0; i < p->coefficients.rows(); ++i) {
      double sum = p->coefficients(i, 0);
      for (Eigen::Index m = 1; m < p->coefficients.cols(); ++m)
        sum += p->coefficients(i, m) * phi[static_cast<std::size_t>(m)];
      dudt[i] = sum;
    }
  };
}

Matrix jacobian(const VectorField& field, const Vector& u) {
  if (field.polynomial()) return jacobian(*field.polynomial(), u);
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

}  // namespace odecast
