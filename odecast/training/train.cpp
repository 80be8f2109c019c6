#include "odecast/training/train.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>

#include "odecast/core/budget.hpp"
#include "odecast/core/error.hpp"
#include "odecast/network/polynomial_kernel.hpp"
#include "odecast/training/detail/kernel_gradient.hpp"
#include "odecast/training/optimiser.hpp"

namespace odecast {
namespace {

void check(const TrainOptions& o) {
  const auto require = [](bool good, const char* name, double value, const char* expected) {
    if (!good)
      throw_usage({fmt::format("option `{}`", name), fmt::format("{}", value), expected,
                   "Give a value in that range; the defaults are the paper's."});
  };
  require(o.batches > 0, "batches", o.batches, "a whole number > 0");
  require(o.noise_samples > 0, "noise_samples", o.noise_samples, "a whole number > 0");
  require(o.masks > 0, "masks", o.masks, "a whole number > 0");
  require(!o.schedule.empty(), "schedule", 0, "at least one phase");
  for (const Phase& phase : o.schedule) {
    require(phase.steps > 0, "schedule", phase.steps, "a whole number of steps > 0");
    require(phase.rate > 0 && std::isfinite(phase.rate), "schedule", phase.rate,
            "a finite learning rate > 0");
  }
}

/// Gradient steps of any network, by back-propagation through Eigen.
class GeneralGradient {
 public:
  GeneralGradient(const Network& network, const Matrix& states, const TrainOptions& options)
      : network_(network), states_(states), options_(options) {}

  void set_targets(const Matrix& targets) { targets_ = &targets; }

  double operator()(const Vector& theta, std::uint64_t step, Vector& gradient) {
    set_parameters(network_, theta);
    const auto result = loss_gradient(network_, states_, *targets_, masks(step));
    gradient = result.gradient;
    return result.loss;
  }

 private:
  Masks masks(std::uint64_t step) const {
    if (options_.mask_per_batch)
      return sample_mask(network_, options_.seed, Purpose::training_mask, step);
    // Row i in unit j of all units: bit i % 32 of word (i / 32) × units + j of the step.
    Masks masks(network_.layers.size());
    Eigen::Index all_units = 0, unit = 0;
    for (const Layer& layer : network_.layers) all_units += layer.biases.size();
    for (std::size_t l = 0; l < masks.size(); ++l) {
      const Layer& layer = network_.layers[l];
      const auto units = layer.biases.size();
      if (layer.dropout > 0) {
        masks[l].resize(states_.rows(), units);
        for (Eigen::Index j = 0; j < units; ++j) {
          std::uint32_t bits = 0;
          for (Eigen::Index i = 0; i < states_.rows(); ++i) {
            if (i % kRowsPerBlock == 0)
              bits = bernoulli_word(
                  options_.seed, Purpose::training_mask, step,
                  static_cast<std::uint32_t>(i / kRowsPerBlock * all_units + unit + j),
                  layer.keep());
            masks[l](i, j) = bits >> (i % kRowsPerBlock) & 1;
          }
        }
      }
      unit += units;
    }
    return masks;
  }

  Network network_;
  const Matrix& states_;
  const Matrix* targets_ = nullptr;
  const TrainOptions& options_;
};

/// The mean of B draws of N(f_γ, σ_γ) for each entry.
void draw_targets(const DerivativeRows& rows, const TrainOptions& o, int batch, Matrix& targets) {
  std::array<double, 32 * kNormals> normals;
  long drawn = 0;
  std::size_t used = normals.size();
  for (Eigen::Index i = 0; i < targets.size(); ++i) {
    double noise = 0;
    for (int b = 0; b < o.noise_samples; ++b) {
      if (used == normals.size()) {
        draw_normals(o.seed, Purpose::derivative_noise, static_cast<std::uint64_t>(batch), drawn,
                     static_cast<long>(normals.size()), normals.data());
        drawn += static_cast<long>(normals.size());
        used = 0;
      }
      noise += normals[used++];
    }
    targets.data()[i] =
        rows.derivatives.data()[i] + rows.sigma.data()[i] * (noise / o.noise_samples);
  }
}

template <class Gradient>
TrainSummary run_schedule(Network& network, Gradient& loss_and_gradient, const DerivativeRows& rows,
                          const TrainOptions& o, const Observer& observer) {
  TrainSummary summary;
  Vector theta = parameters(network), gradient(theta.size()), part(theta.size());
  Adam adam(theta.size());
  Matrix targets(rows.rows(), rows.dimension());
  std::uint64_t mask_index = 0;
  const Budget budget = o.budget ? Budget::of_seconds(*o.budget) : Budget();
  double total = 0;
  for (const Phase& phase : o.schedule) total += static_cast<double>(phase.steps) * o.batches;
  for (int batch = 0; batch < o.batches && !budget.over(); ++batch) {
    draw_targets(rows, o, batch, targets);
    loss_and_gradient.set_targets(targets);
    double loss = 0;
    for (const Phase& phase : o.schedule) {
      for (int step = 0; step < phase.steps && !budget.over(); ++step, ++summary.iterations) {
        observer("training", static_cast<double>(summary.iterations) / total);
        loss = 0;
        gradient.setZero();
        for (int k = 0; k < o.masks; ++k) {
          loss += loss_and_gradient(theta, mask_index++, part) / o.masks;
          gradient += part / o.masks;
        }
        if (!std::isfinite(loss)) {
          summary.status = TrainStatus::diverged;
          summary.reason = fmt::format(
              "the loss is not finite at step {}; try a smaller learning rate or `scale` standard",
              summary.iterations);
          return summary;
        }
        if (o.optimiser == OptimiserKind::adam)
          adam.step(theta, gradient, phase.rate);
        else
          sgd_step(theta, gradient, phase.rate);
      }
    }
    summary.history.push_back(loss);
  }
  set_parameters(network, theta);
  if (!theta.allFinite()) {
    summary.status = TrainStatus::diverged;
    summary.reason = "a weight is not finite; try a smaller learning rate or `scale` standard";
    return summary;
  }
  if (static_cast<double>(summary.iterations) < total) {
    summary.status = TrainStatus::stopped;
    summary.reason =
        fmt::format("stopped at its budget of {:g} s after {} of {:.0f} steps of the schedule",
                    *o.budget, summary.iterations, total);
    return summary;
  }
  summary.reason = fmt::format("took all {} steps of the schedule", summary.iterations);
  observer("training", 1);
  return summary;
}

}  // namespace

TrainSummary train(Network& network, const DerivativeRows& rows, const TrainOptions& options,
                   const Observer& observer) {
  check(options);
  const auto start = std::chrono::steady_clock::now();
  TrainSummary summary;
  if (polynomial_kernel(network)) {
    KernelGradient gradient(network, rows.states, options);
    summary = run_schedule(network, gradient, rows, options, observer);
  } else {
    GeneralGradient gradient(network, rows.states, options);
    summary = run_schedule(network, gradient, rows, options, observer);
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace odecast
