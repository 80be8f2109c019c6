#include "odecast/filter/model_after.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <utility>

#include "odecast/core/error.hpp"

namespace odecast {
namespace {

/// Of the state and the coefficients.
EnsembleMoments joint_moments(const Filter& filter) {
  const FilterState& now = filter.state();
  const Eigen::Index past = filter.options().lag * filter.model().dimension();
  const Matrix members = now.members.leftCols(now.members.cols() - past);
  return filter.method() == FilterMethod::particle ? weighted_moments(members, now.weights)
                                                   : ensemble_moments(members);
}

/// C_ab C_bb⁻¹ for parts of a covariance, scaled to a unit diagonal.
Matrix regression(const Matrix& C_ab, const Matrix& C_bb) {
  const Vector scale = C_bb.diagonal().cwiseMax(1e-300).cwiseSqrt();
  Eigen::MatrixXd R = scale.cwiseInverse().asDiagonal() * C_bb * scale.cwiseInverse().asDiagonal();
  R.diagonal().array() += 1e-12;
  const Eigen::MatrixXd right = scale.cwiseInverse().asDiagonal() * C_ab.transpose();
  const Eigen::MatrixXd solved = Eigen::LDLT<Eigen::MatrixXd>(R).solve(right);
  return (scale.cwiseInverse().asDiagonal() * solved).transpose();
}

Matrix part_of(const Matrix& C, const std::vector<Eigen::Index>& rows,
               const std::vector<Eigen::Index>& columns) {
  return C(rows, columns);
}

Matrix symmetric(const Matrix& C) { return 0.5 * (C + C.transpose()); }

/// What the members have learnt together.
CoefficientSet learnt_set(const Filter& filter, EnsembleMoments m) {
  const Model& model = filter.model();
  const Eigen::Index n = model.dimension();
  const PolynomialPosterior before = polynomial_posterior(model);
  const Matrix probability = before.coefficients().probability;
  std::vector<Eigen::Index> kept, out;
  Support support;
  for (Eigen::Index i = 0; i < n; ++i) kept.push_back(i);
  for (std::size_t c = 0; c < filter.terms().size(); ++c) {
    const FieldTerm& t = filter.terms()[c];
    const Eigen::Index at = n + static_cast<Eigen::Index>(c);
    const bool small = m.mean[at] * m.mean[at] < 4 * m.covariance(at, at);
    if (small && probability(t.equation, t.term) < 0.5) {
      out.push_back(at);
    } else {
      kept.push_back(at);
      support.push_back(t);
    }
  }
  // Numbers stay where a function that has them does.
  const std::vector<int> numbers = numbers_inside(before.library(), filter.terms()),
                         left = numbers_inside(before.library(), support);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    if (std::binary_search(left.begin(), left.end(), numbers[k]))
      kept.push_back(n + static_cast<Eigen::Index>(filter.terms().size() + k));
  Vector mean = m.mean(kept);
  Matrix C = part_of(m.covariance, kept, kept);
  if (!out.empty()) {
    const Matrix slope =
        regression(part_of(m.covariance, kept, out), part_of(m.covariance, out, out));
    mean -= slope * Vector(m.mean(out));
    C = symmetric(C - slope * part_of(m.covariance, out, kept));
  }

  const Eigen::Index P = mean.size() - n;
  CoefficientSet set{std::move(support), mean.tail(P)};
  set.covariance = C.bottomRightCorner(P, P);
  set.last_state = mean.head(n);
  set.last_slope = regression(C.topRightCorner(n, P), set.covariance);
  set.last_covariance =
      symmetric(C.topLeftCorner(n, n) - set.last_slope * C.bottomLeftCorner(P, n));
  return set;
}

}  // namespace

LearntCoefficients learnt_coefficients(const Filter& filter) {
  const EnsembleMoments m = joint_moments(filter);
  const Eigen::Index P = m.mean.size() - filter.model().dimension();
  return {m.mean.tail(P), m.covariance.diagonal().tail(P).cwiseMax(0).cwiseSqrt()};
}

Model model_after(const Filter& filter) {
  require_option(filter.state().rows > 0, "`model`", "a filter before its first row", "rows",
                 "Give it some.");
  Model model = filter.model();
  const Eigen::Index n = model.dimension();
  const EnsembleMoments m = joint_moments(filter);
  if (PolynomialPart* part = model.polynomial(); part && filter.options().learn) {
    part->sets = {learnt_set(filter, m)};
    model.calibration.reset();  // it was that of other coefficients
    model.training.rows += filter.state().rows;
  } else if (part) {
    for (CoefficientSet& set : part->sets) {
      if (set.covariance.size() == 0) continue;
      set.last_state = m.mean.head(n);
      set.last_slope = Matrix::Zero(n, set.theta.size());
      set.last_covariance = symmetric(m.covariance.topLeftCorner(n, n));
    }
  }
  model.last_state = model.scaling.to_user(m.mean.head(n));
  model.last_state_sd =
      model.scaling.scale.cwiseProduct(m.covariance.diagonal().head(n).cwiseMax(0).cwiseSqrt());
  model.last_time = filter.state().time * model.scaling.time;
  if (const Eigen::Index k = model.inputs.measured(); k > 0)
    model.inputs.last = model.inputs.offset.head(k) +
                        model.inputs.scale.head(k).cwiseProduct(filter.state().last_inputs);
  return model;
}

}  // namespace odecast
