#include "odecast/model/polynomial_posterior.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/random.hpp"

namespace odecast {
PolynomialPosterior::PolynomialPosterior(TermLibrary library, std::vector<CoefficientSet> sets,
                                         int outputs)
    : library_(std::move(library)), sets_(std::move(sets)), outputs_(outputs) {
  assert(!sets_.empty());
  for (const CoefficientSet& m : sets_) {
    theta_roots_.push_back(covariance_root(m.covariance));
    start_roots_.push_back(covariance_root(m.last_covariance));
  }
}

VectorField PolynomialPosterior::field(const Support& support, const Vector& theta) const {
  return VectorField(dense({library_, support, theta}, dimension()));
}

PolynomialPosterior::Draw PolynomialPosterior::draw_all(std::uint64_t seed,
                                                        std::uint64_t index) const {
  Stream stream(seed, Purpose::trajectory_draw, index);
  double left = stream.uniform();
  std::size_t k = 0;
  while (k + 1 < sets_.size() && left >= sets_[k].weight) left -= sets_[k++].weight;
  const CoefficientSet& m = sets_[k];
  const auto normals = [&stream](Eigen::Index size) {
    Vector z(size);
    for (auto& x : z) x = stream.normal();
    return z;
  };
  if (m.covariance.size() == 0 && m.last_state.size() == 0) return {k, m.theta, {}};  // a point
  const Vector shift = theta_roots_[k] * normals(m.theta.size());
  if (m.last_state.size() == 0) return {k, m.theta + shift, {}};
  return {k, m.theta + shift,
          m.last_state + m.last_slope * shift + start_roots_[k] * normals(m.last_state.size())};
}

VectorField PolynomialPosterior::draw(std::uint64_t seed, std::uint64_t index) const {
  const Draw d = draw_all(seed, index);
  return field(sets_[d.set].support, d.theta);
}

std::optional<Vector> PolynomialPosterior::draw_start(std::uint64_t seed,
                                                      std::uint64_t index) const {
  if (sets_.front().last_state.size() == 0) return std::nullopt;
  return draw_all(seed, index).start;
}

VectorField PolynomialPosterior::mean_field() const {
  if (library_.functions) {
    // The same function with other numbers inside is another: the mean is over whole fields.
    std::vector<VectorField> fields;
    for (const CoefficientSet& m : sets_) fields.push_back(field(m.support, m.theta));
    std::vector<double> weights;
    for (const CoefficientSet& m : sets_) weights.push_back(m.weight);
    return {dimension(),
            [fields, weights, f = std::vector<double>(static_cast<std::size_t>(dimension()))](
                double t, const double* u, double* dudt) mutable {
              for (std::size_t i = 0; i < f.size(); ++i) dudt[i] = 0;
              for (std::size_t k = 0; k < fields.size(); ++k) {
                fields[k](t, u, f.data());
                for (std::size_t i = 0; i < f.size(); ++i) dudt[i] += weights[k] * f[i];
              }
            }};
  }
  PolynomialField f{library_.basis, Matrix::Zero(dimension(), library_.size())};
  for (const CoefficientSet& m : sets_)
    for (std::size_t c = 0; c < m.support.size(); ++c)
      f.coefficients(m.support[c].equation, m.support[c].term) +=
          m.weight * m.theta[static_cast<Eigen::Index>(c)];
  return VectorField(std::move(f));
}

VectorField PolynomialPosterior::point_field() const {
  if (atoms() > 0)
    return VectorField(PolynomialField{library_.basis, median_coefficients(), library_.functions,
                                       median_numbers()});
  return field(sets_.front().support, sets_.front().theta);
}

namespace {

/// A covariance that is singular to round-off gives variances that may be a little below 0.
void not_negative(Moments& m) { m.covariance.diagonal() = m.covariance.diagonal().cwiseMax(0); }

}  // namespace

Moments PolynomialPosterior::moments(const Vector& u) const {
  const int n = dimension();
  // E f = Σ w f_k;  Cov f = Σ w (Φ C Φ' + f_k f_k') - E f E f', Φ = ∂f/∂θ.
  Moments total{Vector::Zero(n), Matrix::Zero(n, n)};
  std::vector<Vector> means;
  for (const CoefficientSet& m : sets_) {
    const Matrix Phi = design({library_, m.support, m.theta}, u, n);
    const auto terms = static_cast<Eigen::Index>(m.support.size());
    means.push_back(Phi.leftCols(terms) * m.theta.head(terms));
    total.mean += m.weight * means.back();
    if (m.covariance.size() > 0)
      total.covariance += m.weight * Phi * m.covariance * Phi.transpose();
  }
  for (std::size_t k = 0; k < sets_.size(); ++k) {
    const Vector away = means[k] - total.mean;
    total.covariance += sets_[k].weight * away * away.transpose();
  }
  not_negative(total);
  return total;
}

Moments PolynomialPosterior::last_state() const {
  const int n = dimension();
  Moments total{Vector::Zero(n), Matrix::Zero(n, n)};
  for (const CoefficientSet& m : sets_) total.mean += m.weight * m.last_state;
  for (const CoefficientSet& m : sets_) {
    const Vector away = m.last_state - total.mean;
    total.covariance += m.weight * (m.last_covariance + away * away.transpose());
    total.covariance += m.weight * m.last_slope * m.covariance * m.last_slope.transpose();
  }
  not_negative(total);
  return total;
}

PolynomialPosterior::Coefficients PolynomialPosterior::coefficients() const {
  const Matrix none = Matrix::Zero(outputs_, library_.size());
  Coefficients all{none, none, none};
  for (const CoefficientSet& m : sets_)
    for (std::size_t c = 0; c < m.support.size(); ++c) {
      const FieldTerm& t = m.support[c];
      all.probability(t.equation, t.term) += m.weight;
      all.mean(t.equation, t.term) += m.weight * m.theta[static_cast<Eigen::Index>(c)];
    }
  Matrix square = none;
  for (const CoefficientSet& m : sets_) {
    Matrix away = -all.mean, own = none;
    for (std::size_t c = 0; c < m.support.size(); ++c) {
      const auto at = static_cast<Eigen::Index>(c);
      away(m.support[c].equation, m.support[c].term) += m.theta[at];
      if (m.covariance.size() > 0)
        own(m.support[c].equation, m.support[c].term) = m.covariance(at, at);
    }
    square += m.weight * (own + away.cwiseAbs2());
  }
  all.sd = square.cwiseSqrt();
  return all;
}

PolynomialPosterior::Joint PolynomialPosterior::joint(double probability) const {
  Joint all;
  const Matrix weights = coefficients().probability;
  for (const CoefficientSet& m : sets_)
    all.support.insert(all.support.end(), m.support.begin(), m.support.end());
  std::sort(all.support.begin(), all.support.end());
  all.support.erase(std::unique(all.support.begin(), all.support.end()), all.support.end());
  std::erase_if(all.support,
                [&](const FieldTerm& t) { return weights(t.equation, t.term) < probability; });
  const auto terms = static_cast<Eigen::Index>(all.support.size());
  const std::vector<int> numbers = numbers_inside(library_, all.support);
  const Eigen::Index size = terms + static_cast<Eigen::Index>(numbers.size());

  /// Where a set's coefficients and numbers stand among all; -1: nowhere.
  std::vector<std::vector<Eigen::Index>> places;
  Vector weight = Vector::Zero(size);
  all.mean = Vector::Zero(size);
  const auto place_in = [](const auto& sorted, const auto& one) -> Eigen::Index {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), one);
    return at != sorted.end() && *at == one ? at - sorted.begin() : -1;
  };
  for (const CoefficientSet& m : sets_) {
    std::vector<Eigen::Index>& place = places.emplace_back();
    for (const FieldTerm& t : m.support) place.push_back(place_in(all.support, t));
    for (const int k : numbers_inside(library_, m.support)) {
      const Eigen::Index at = place_in(numbers, k);
      place.push_back(at < 0 ? -1 : terms + at);
    }
    for (std::size_t c = 0; c < place.size(); ++c) {
      if (place[c] < 0) continue;
      weight[place[c]] += m.weight;
      all.mean[place[c]] += m.weight * m.theta[static_cast<Eigen::Index>(c)];
    }
  }
  for (Eigen::Index c = terms; c < size; ++c) all.mean[c] /= weight[c];
  all.covariance = Matrix::Zero(size, size);
  for (std::size_t k = 0; k < sets_.size(); ++k) {
    const CoefficientSet& m = sets_[k];
    Vector away = Vector::Zero(size);
    away.head(terms) = -all.mean.head(terms);
    for (std::size_t c = 0; c < places[k].size(); ++c) {
      const Eigen::Index at = places[k][c];
      if (at < 0) continue;
      away[at] = m.theta[static_cast<Eigen::Index>(c)] - all.mean[at];
      for (std::size_t d = 0; d < places[k].size() && m.covariance.size() > 0; ++d)
        if (places[k][d] >= 0)
          all.covariance(at, places[k][d]) +=
              m.weight * m.covariance(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(d));
    }
    all.covariance += m.weight * away * away.transpose();
  }
  return all;
}

Matrix PolynomialPosterior::median_coefficients() const {
  assert(atoms() > 0);
  Matrix values = Matrix::Zero(outputs_ * library_.size(), static_cast<Eigen::Index>(sets_.size()));
  for (std::size_t k = 0; k < sets_.size(); ++k)
    for (std::size_t c = 0; c < sets_[k].support.size(); ++c) {
      const FieldTerm& t = sets_[k].support[c];
      values(t.equation * library_.size() + t.term, static_cast<Eigen::Index>(k)) =
          sets_[k].theta[static_cast<Eigen::Index>(c)];
    }
  Matrix median(outputs_, library_.size());
  const Eigen::Index above = values.cols() / 2;
  for (Eigen::Index q = 0; q < median.size(); ++q) {
    double* of = values.row(q).data();
    std::nth_element(of, of + above, of + values.cols());
    median.data()[q] =
        values.cols() % 2 == 1 ? of[above] : 0.5 * (*std::max_element(of, of + above) + of[above]);
  }
  return median;
}

std::vector<double> PolynomialPosterior::median_numbers() const {
  if (!library_.functions) return {};
  std::vector<std::vector<double>> found(library_.functions->numbers().size());
  for (const CoefficientSet& m : sets_) {
    auto at = static_cast<Eigen::Index>(m.support.size());
    for (const int k : numbers_inside(library_, m.support))
      found[static_cast<std::size_t>(k)].push_back(m.theta[at++]);
  }
  std::vector<double> median;
  for (std::vector<double>& z : found) {
    std::sort(z.begin(), z.end());
    median.push_back(z.empty() ? 0 : 0.5 * (z[(z.size() - 1) / 2] + z[z.size() / 2]));
  }
  return median;
}

std::uint64_t PolynomialPosterior::atoms() const {
  for (const CoefficientSet& m : sets_)
    if (m.covariance.size() > 0) return 0;
  return sets_.size();
}

VectorField PolynomialPosterior::atom_field(std::uint64_t atom) const {
  assert(atom < atoms());
  return field(sets_[atom].support, sets_[atom].theta);
}

double PolynomialPosterior::atom_weight(std::uint64_t atom) const { return sets_[atom].weight; }

std::uint64_t PolynomialPosterior::atom_of_draw(std::uint64_t seed, std::uint64_t index) const {
  return draw_all(seed, index).set;
}

}  // namespace odecast
