#include "odecast/model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/model/ensemble_posterior.hpp"

namespace odecast {

std::unique_ptr<Posterior> make_posterior(const Model& model, MaskChange change) {
  if (model.polynomial()) return std::make_unique<PolynomialPosterior>(polynomial_posterior(model));
  if (const NetworkEnsemble* members = model.ensemble())
    return std::make_unique<EnsemblePosterior>(*members);
  return std::make_unique<DropoutPosterior>(model.network(), change);
}

bool Model::has_equations() const {
  if (polynomial()) return true;
  const NetworkEnsemble* members = ensemble();
  return polynomial_kernel(members ? members->front() : network()).has_value();
}

PolynomialPosterior polynomial_posterior(const Model& model) {
  assert(model.polynomial());
  return {{std::make_shared<MonomialBasis>(model.dimension() + model.inputs.size(),
                                           model.polynomial()->degree),
           model.polynomial()->functions},
          model.polynomial()->sets,
          model.dimension()};
}

double share_of_fit(const Model& model, const Dataset& rows) {
  return model.observed ? share_kept(*model.observed, model.measured_variables(), rows) : 0;
}

std::string fit_in_words(double share, const std::string& source) {
  if (!(share > 0)) return {};
  return fmt::format(
      "{} of {} that the model was fitted to: they tell how well it learnt, not how well it "
      "foretells what it has not seen",
      share > 0.99 ? std::string("these are the rows")
                   : fmt::format("about {:.0f} % of these are rows", 100 * share),
      source);
}

std::vector<std::string> Model::arguments() const {
  std::vector<std::string> names = variables;
  names.insert(names.end(), inputs.names.begin(), inputs.names.end());
  return names;
}

Vector Model::term_offsets() const {
  Vector offset = Vector::Zero(dimension() + inputs.size());
  if (!polynomial()) return offset;
  offset.head(dimension()) = scaling.offset;
  offset.tail(inputs.size()) = inputs.offset;
  return offset;
}

Vector Model::to_model(const Vector& u) const {
  assert(u.size() == dimension() + inputs.size());
  Vector v(u.size());
  v.head(dimension()) = scaling.to_model(u.head(dimension()));
  if (inputs.size() > 0)
    v.tail(inputs.size()) = (u.tail(inputs.size()) - inputs.offset).cwiseQuotient(inputs.scale);
  return v;
}

Vector Model::noise_at(const Vector& u) const {
  if (relative_noise.size() == 0) return noise;
  Vector size_of_noise = noise;
  for (Eigen::Index i = 0; i < size_of_noise.size(); ++i)
    if (const double q = relative_noise[i]; q > 0 && size[i] > 0)
      size_of_noise[i] *= std::sqrt(1 - q + q * (u[i] / size[i]) * (u[i] / size[i]));
  return size_of_noise;
}

Vector Model::base() const {
  return kind == ModelKind::map ? scaling.offset : Vector(Vector::Zero(dimension()));
}

Vector Model::rate() const { return kind == ModelKind::map ? scaling.scale : scaling.rate(); }

Prediction prediction(const Model& model, const Moments& moments) {
  const Prediction p{model.base() + model.rate().cwiseProduct(moments.mean),
                     model.rate().cwiseProduct(moments.sd())};
  for (Eigen::Index i = 0; i < p.mean.size(); ++i)  // no level has a c of 10
    if (!std::isfinite(std::abs(p.mean[i]) + 10 * p.sd[i]))
      throw_data({"prediction of " + model.left_side(model.variables[static_cast<std::size_t>(i)]),
                  "a mean or a spread that overflows", "finite numbers",
                  "Choose a state nearer to the data (`at`), or fit again with columns in units in "
                  "which their values are near 1."});
  return p;
}

std::string_view bands_name(Bands bands) {
  return bands == Bands::both ? "both" : bands == Bands::sd ? "sd" : "quantiles";
}

double CalibrationPart::factor(double lead, Eigen::Index variable) const {
  const auto next = std::lower_bound(leads.begin(), leads.end(), lead) - leads.begin();
  if (next == 0) return factors(0, variable);
  if (next == static_cast<std::ptrdiff_t>(leads.size()))
    return factors(factors.rows() - 1, variable);
  const auto at = static_cast<std::size_t>(next);
  const double share = (lead - leads[at - 1]) / (leads[at] - leads[at - 1]);
  return factors(next - 1, variable) +
         share * (factors(next, variable) - factors(next - 1, variable));
}

std::string Model::left_side(const std::string& variable) const {
  return kind == ModelKind::map ? "next " + variable : "d" + variable + "/dt";
}

VectorField driven_field(const Model& model, const VectorField& field,
                         std::shared_ptr<const InputSignal> signal) {
  if (model.inputs.size() == 0) return field;
  const int n = model.dimension();
  const InputPart& part = model.inputs;
  std::vector<double> arguments(static_cast<std::size_t>(n + part.size()));
  // Solvers ask at times close to each other: the interval of the last call is tried first.
  auto function = [field, part, signal = std::move(signal), n, unit = model.scaling.time, arguments,
                   at = std::size_t{0}](double t, const double* u, double* dudt) mutable {
    double* w = std::copy_n(u, n, arguments.data());
    if (signal) {
      const auto& knots = signal->times;
      if (!(knots[at] <= t && (at + 1 == knots.size() || t < knots[at + 1])))
        at = static_cast<std::size_t>(
            std::max<std::ptrdiff_t>(
                1, std::upper_bound(knots.begin(), knots.end(), t) - knots.begin()) -
            1);
      const auto row = static_cast<Eigen::Index>(at);
      const bool last = at + 1 == knots.size();
      const double share =
          part.held || last ? 0 : std::max(0.0, (t - knots[at]) / (knots[at + 1] - knots[at]));
      for (Eigen::Index j = 0; j < part.measured(); ++j)
        *w++ = signal->values(row, j) +
               (share > 0 ? share * (signal->values(row + 1, j) - signal->values(row, j)) : 0);
    }
    if (part.time) *w = (t * unit - part.offset[part.size() - 1]) / part.scale[part.size() - 1];
    field(t, arguments.data(), dudt);
  };
  return VectorField(n, std::move(function), field.step_hook());
}

double kicked(const Model& model, int i, double v, double sd, double z) {
  if (!model.is_positive(i)) return v + sd * z;
  const double zero = -model.scaling.offset[i] / model.scaling.scale[i], u = v - zero;
  if (!(u > 0)) return v;
  const double s2 = std::log1p((sd / u) * (sd / u));
  return zero + u * std::exp(std::sqrt(s2) * z - 0.5 * s2);
}

}  // namespace odecast
