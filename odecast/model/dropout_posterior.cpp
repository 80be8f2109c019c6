#include "odecast/model/dropout_posterior.hpp"

#include <cassert>
#include <cmath>
#include <memory>

namespace odecast {
namespace {

/// Masks that stand for all of them where there is no closed form.
constexpr int kFixedMasks = 1000;
constexpr std::uint64_t kFixedSeed = 0;

VectorField network_field(std::shared_ptr<const Network> network, Masks masks) {
  const int n = network->outputs(), arguments = network->inputs();
  return VectorField(
      n, [network, masks = std::move(masks), n, arguments](double, const double* u, double* dudt) {
        Eigen::Map<Matrix>(dudt, 1, n) =
            evaluate(*network, Eigen::Map<const Matrix>(u, 1, arguments), masks);
      });
}

}  // namespace

DropoutPosterior::DropoutPosterior(Network network, MaskChange change)
    : network_(std::move(network)), change_(change), kernel_(polynomial_kernel(network_)) {
  assert(network_.inputs() >= network_.outputs());
  if (kernel_) expansion_ = expand(*kernel_);
}

VectorField DropoutPosterior::masked(const Masks& masks) const {
  if (!expansion_) return network_field(std::make_shared<const Network>(network_), masks);
  const Vector d = masks.empty() || masks[0].size() == 0 ? Vector(Vector::Ones(kernel_->units()))
                                                         : Vector(masks[0].row(0).transpose());
  return VectorField(masked_field(*expansion_, d));
}

VectorField DropoutPosterior::draw(std::uint64_t seed, std::uint64_t index) const {
  if (change_ == MaskChange::never)
    return masked(sample_mask(network_, seed, Purpose::forecast_mask, index));
  // A field of its own state: mask number m of trajectory `index`. Trajectory and mask number share
  // the 64 bits of a stream's index.
  struct Fresh {
    std::shared_ptr<const Network> network;
    Masks masks;
    std::uint64_t seed, base, calls = 0;
    void redraw(std::uint64_t number) {
      masks = sample_mask(*network, seed, Purpose::forecast_mask, base + number);
    }
  };
  const auto fresh = std::make_shared<Fresh>(
      Fresh{std::make_shared<const Network>(network_), {}, seed, (index + 1) << 32, 0});
  const int n = dimension(), arguments = network_.inputs();
  const bool each_call = change_ == MaskChange::call;
  auto evaluate_fresh = [fresh, n, arguments, each_call](double, const double* u, double* dudt) {
    if (each_call) fresh->redraw(fresh->calls++);
    Eigen::Map<Matrix>(dudt, 1, n) =
        evaluate(*fresh->network, Eigen::Map<const Matrix>(u, 1, arguments), fresh->masks);
  };
  if (each_call) return VectorField(n, std::move(evaluate_fresh));
  fresh->redraw(0);
  return VectorField(n, std::move(evaluate_fresh),
                     [fresh](std::uint64_t accepted) { fresh->redraw(accepted); });
}

std::uint64_t DropoutPosterior::atoms() const {
  Eigen::Index units = 0;
  for (const Layer& layer : network_.layers)
    if (layer.dropout > 0) units += layer.biases.size();
  return units <= 20 && change_ == MaskChange::never ? std::uint64_t{1} << units : 0;
}

VectorField DropoutPosterior::atom_field(std::uint64_t atom) const {
  Masks masks;
  for (const Layer& layer : network_.layers) {
    masks.emplace_back();
    if (layer.dropout == 0) continue;
    masks.back().resize(1, layer.biases.size());
    for (Eigen::Index j = 0; j < layer.biases.size(); ++j, atom >>= 1)
      masks.back()(0, j) = static_cast<double>(atom & 1);
  }
  return masked(masks);
}

double DropoutPosterior::atom_weight(std::uint64_t atom) const {
  double weight = 1;
  for (const Layer& layer : network_.layers)
    if (layer.dropout > 0)
      for (Eigen::Index j = 0; j < layer.biases.size(); ++j, atom >>= 1)
        weight *= atom & 1 ? layer.keep() : layer.dropout;
  return weight;
}

std::uint64_t DropoutPosterior::atom_of_draw(std::uint64_t seed, std::uint64_t index) const {
  std::uint64_t atom = 0, bit = 1;
  for (const Matrix& mask : sample_mask(network_, seed, Purpose::forecast_mask, index))
    for (Eigen::Index j = 0; j < mask.cols(); ++j, bit <<= 1)
      if (mask(0, j) != 0) atom |= bit;
  return atom;
}

VectorField DropoutPosterior::mean_field() const {
  if (kernel_)
    return VectorField(
        masked_field(*expansion_, Vector::Constant(kernel_->units(), kernel_->keep())));
  std::vector<VectorField> draws;
  for (std::uint64_t i = 0; i < kFixedMasks; ++i)
    draws.push_back(masked(sample_mask(network_, kFixedSeed, Purpose::forecast_mask, i)));
  const int n = dimension();
  return VectorField(n, [draws = std::move(draws), n](double t, const double* u, double* dudt) {
    Vector sum = Vector::Zero(n), one(n);
    for (const VectorField& draw : draws) {
      draw(t, u, one.data());
      sum += one;
    }
    Eigen::Map<Vector>(dudt, n) = sum / static_cast<double>(draws.size());
  });
}

Moments DropoutPosterior::moments(const Vector& u) const {
  return kernel_ ? exact_moments(*kernel_, u)
                 : sampled_moments(DropoutPosterior(network_), u, kFixedMasks, kFixedSeed);
}

VectorField DropoutPosterior::point_field() const {
  if (!kernel_) return masked({});
  // W2 of the kernel carries the scale of the mask, which a kept unit does not have.
  const Layer& hidden = network_.layers[0];
  const double unscaled = std::pow(1 / hidden.mask_value(), hidden.power);
  return VectorField(masked_field(*expansion_, Vector::Constant(kernel_->units(), unscaled)));
}

Moments sampled_moments(const Posterior& posterior, const Vector& u, int draws, std::uint64_t seed,
                        const Observer& observer) {
  assert(draws >= 2);
  const auto n = static_cast<Eigen::Index>(posterior.dimension());
  Moments m{Vector::Zero(n), Matrix::Zero(n, n)};
  Vector f(n);
  for (int k = 0; k < draws; ++k) {
    observer("sampling", static_cast<double>(k) / draws);
    posterior.draw(seed, static_cast<std::uint64_t>(k))(0, u.data(), f.data());
    const Vector before = f - m.mean;
    m.mean += before / (k + 1);
    m.covariance += before * (f - m.mean).transpose();
  }
  m.covariance /= draws - 1;
  return m;
}

}  // namespace odecast
