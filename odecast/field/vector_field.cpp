#include "odecast/field/vector_field.hpp"

#include <vector>

namespace odecast {

VectorField::VectorField(PolynomialField field)
    : dimension_(static_cast<int>(field.coefficients.rows())),
      polynomial_(std::make_shared<const PolynomialField>(std::move(field))) {
  // The terms are added from the first to the last, as the lane code does: the same bits.
  const auto size = static_cast<std::size_t>(polynomial_->basis->size());
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

}  // namespace odecast
