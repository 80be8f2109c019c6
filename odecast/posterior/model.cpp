#include "odecast/posterior/model.hpp"

#include <cassert>

namespace odecast {

TrajectoryPosterior trajectory_posterior(const Model& model) {
  assert(model.trajectory);
  return {std::make_shared<MonomialBasis>(model.dimension(), model.trajectory->degree),
          model.trajectory->members};
}

}  // namespace odecast
