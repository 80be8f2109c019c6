#include "odecast/posterior/model.hpp"

#include <cassert>

namespace odecast {

std::unique_ptr<Posterior> make_posterior(const Model& model, MaskChange change) {
  if (model.trajectory) return std::make_unique<TrajectoryPosterior>(trajectory_posterior(model));
  return std::make_unique<DropoutPosterior>(model.network, change);
}

TrajectoryPosterior trajectory_posterior(const Model& model) {
  assert(model.trajectory);
  return {std::make_shared<MonomialBasis>(model.dimension(), model.trajectory->degree),
          model.trajectory->members};
}

std::vector<std::string> Model::arguments() const {
  std::vector<std::string> names = variables;
  names.insert(names.end(), inputs.names.begin(), inputs.names.end());
  return names;
}

Vector Model::to_model(const Vector& u) const {
  assert(u.size() == dimension() + inputs.size());
  Vector v(u.size());
  v.head(dimension()) = scaling.to_model(u.head(dimension()));
  if (inputs.size() > 0) v.tail(inputs.size()) = (u.tail(inputs.size()) - inputs.offset).cwiseQuotient(inputs.scale);
  return v;
}

Vector Model::base() const {
  return kind == ModelKind::map ? scaling.offset : Vector(Vector::Zero(dimension()));
}

Vector Model::rate() const { return kind == ModelKind::map ? scaling.scale : scaling.rate(); }

std::string Model::left_side(const std::string& variable) const {
  return kind == ModelKind::map ? "next " + variable : "d" + variable + "/dt";
}

}  // namespace odecast
