#include "odecast/model/ensemble_posterior.hpp"

#include <cassert>

#include "odecast/core/random.hpp"
#include "odecast/model/dropout_posterior.hpp"

namespace odecast {

EnsemblePosterior::EnsemblePosterior(std::vector<Network> members) : members_(std::move(members)) {
  assert(!members_.empty());
}

VectorField EnsemblePosterior::atom_field(std::uint64_t atom) const {
  return DropoutPosterior(members_[atom]).point_field();
}

std::uint64_t EnsemblePosterior::atom_of_draw(std::uint64_t seed, std::uint64_t index) const {
  const double u = Stream(seed, Purpose::ensemble_member, index).uniform();  // below 1
  return static_cast<std::uint64_t>(u * static_cast<double>(members_.size()));
}

VectorField EnsemblePosterior::draw(std::uint64_t seed, std::uint64_t index) const {
  return atom_field(atom_of_draw(seed, index));
}

VectorField EnsemblePosterior::mean_field() const {
  std::vector<VectorField> fields;
  for (std::uint64_t k = 0; k < atoms(); ++k) fields.push_back(atom_field(k));
  const int n = dimension();
  return VectorField(n, [fields = std::move(fields), n](double t, const double* u, double* dudt) {
    Vector sum = Vector::Zero(n), one(n);
    for (const VectorField& field : fields) {
      field(t, u, one.data());
      sum += one;
    }
    Eigen::Map<Vector>(dudt, n) = sum / static_cast<double>(fields.size());
  });
}

Moments EnsemblePosterior::moments(const Vector& u) const {
  const int n = dimension();
  Moments m{Vector::Zero(n), Matrix::Zero(n, n)};
  Matrix values(static_cast<Eigen::Index>(atoms()), n);
  for (std::uint64_t k = 0; k < atoms(); ++k)
    atom_field(k)(0, u.data(), values.row(static_cast<Eigen::Index>(k)).data());
  m.mean = values.colwise().mean().transpose();
  values.rowwise() -= m.mean.transpose();
  m.covariance = values.transpose() * values / static_cast<double>(atoms());
  return m;
}

}  // namespace odecast
