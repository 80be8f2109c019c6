#include "odecast/training/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "odecast/core/aligned.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/isa.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/network/polynomial_kernel.hpp"
#include "odecast/training/gradient_job.hpp"
#include "odecast/training/optimiser.hpp"

namespace odecast {
namespace {

/// Rows are summed in runs of this many, and the runs in order: the same bits for any number of
/// threads.
constexpr long kRowsPerRun = 64 * kRowsPerBlock;
/// Below this a step is shorter than starting a thread.
constexpr long kRowsWorthThreads = 100'000;

void check(const TrainOptions& o) {
  const auto require = [](bool good, const char* name, double value, const char* expected) {
    if (!good)
      throw_usage({std::string("option --") + name, fmt::format("{}", value), expected,
                   "Give a value in that range; the defaults are the paper's."});
  };
  require(o.batches > 0, "batches", o.batches, "a whole number > 0");
  require(o.noise_samples > 0, "noise-samples", o.noise_samples, "a whole number > 0");
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

/// Gradient steps of a polynomial kernel, in lanes.
class KernelGradient {
 public:
  KernelGradient(const Network& network, const Matrix& states, const TrainOptions& options)
      : hidden_(network.layers[0]),
        n_(network.inputs()),
        k_(static_cast<int>(hidden_.biases.size())),
        outputs_(network.outputs()),
        rows_(states.rows()),
        stride_((rows_ + kRowsPerBlock - 1) / kRowsPerBlock * kRowsPerBlock),
        options_(options),
        states_(transposed(states)),
        threads_(rows_ >= kRowsWorthThreads ? options.threads : 1) {
    const auto runs = static_cast<std::size_t>((rows_ + kRowsPerRun - 1) / kRowsPerRun);
    for (std::size_t i = 0; i < runs; ++i) {
      runs_.emplace_back();
      Run& run = runs_.back();
      const long first = static_cast<long>(i) * kRowsPerRun;
      const long rows = std::min(kRowsPerRun, rows_ - first);
      run.words = (rows + kRowsPerBlock - 1) / kRowsPerBlock * k_;
      run.masks.resize(static_cast<std::size_t>(run.words + kMaskWords - 1));
      run.gradient.resize(static_cast<Eigen::Index>(k_) * n_ + k_ + outputs_ * k_ + outputs_);
      run.work = aligned_doubles(gradient_work_size(n_, k_, outputs_));
      run.job = GradientJob{n_,
                            k_,
                            outputs_,
                            hidden_.power,
                            rows,
                            stride_,
                            states_.data() + first,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr,
                            nullptr,
                            hidden_.mask_value(),
                            run.masks.data(),
                            run.gradient.data(),
                            0,
                            run.work.get()};
    }
    switch (active_isa()) {
      case Isa::sse2: kernel_ = run_gradient_sse2, mask_kernel_ = run_masks_sse2; break;
      case Isa::avx2: kernel_ = run_gradient_avx2, mask_kernel_ = run_masks_avx2; break;
      case Isa::avx512: kernel_ = run_gradient_avx512, mask_kernel_ = run_masks_avx512; break;
    }
    scaled_.resize(static_cast<Eigen::Index>(k_) * n_ + k_);
  }

  void set_targets(const Matrix& targets) { targets_ = transposed(targets); }

  double operator()(const Vector& theta, std::uint64_t step, Vector& gradient) {
    std::vector<std::uint32_t> one_mask;
    if (options_.mask_per_batch && hidden_.dropout > 0) one_mask = whole_batch_mask(step);
    scaled_ = theta.head(scaled_.size()) * hidden_.mask_value();
    const auto one_run = [&](std::size_t i) {
      Run& run = runs_[i];
      fill_masks(run, static_cast<long>(i) * (kRowsPerRun / kRowsPerBlock), step, one_mask);
      GradientJob& job = run.job;
      job.targets = targets_.data() + static_cast<long>(i) * kRowsPerRun;
      job.W1 = scaled_.data();
      job.B1 = job.W1 + k_ * n_;
      job.W2 = theta.data() + k_ * n_ + k_;
      job.B2 = job.W2 + outputs_ * k_;
      kernel_(job);
    };
    if (threads_ > 1)
      parallel_for(threads_, runs_.size(), one_run);
    else
      for (std::size_t i = 0; i < runs_.size(); ++i) one_run(i);  // allocates nothing
    gradient.setZero(theta.size());
    double loss = 0;
    for (const Run& run : runs_) {
      gradient += run.gradient;
      loss += run.job.loss;
    }
    gradient *= 2 / static_cast<double>(rows_);
    return loss / static_cast<double>(rows_);
  }

 private:
  struct Run {
    long words;
    std::vector<std::uint32_t> masks;
    Vector gradient;
    AlignedDoubles work;
    GradientJob job;
  };

  std::vector<double> transposed(const Matrix& m) const {
    std::vector<double> columns(static_cast<std::size_t>(m.cols() * stride_), 0.0);
    for (Eigen::Index j = 0; j < m.cols(); ++j)
      for (Eigen::Index i = 0; i < m.rows(); ++i)
        columns[static_cast<std::size_t>(j * stride_ + i)] = m(i, j);
    return columns;
  }

  std::vector<std::uint32_t> whole_batch_mask(std::uint64_t step) const {
    std::vector<std::uint32_t> words;
    std::uint32_t bits = 0;
    for (int j = 0; j < k_; ++j) {
      if (j % 32 == 0)
        bits = bernoulli_word(options_.seed, Purpose::training_mask, step,
                              static_cast<std::uint32_t>(j / 32), hidden_.keep());
      words.push_back(bits >> (j % 32) & 1 ? ~0u : 0u);
    }
    return words;
  }

  void fill_masks(Run& run, long first_block, std::uint64_t step,
                  const std::vector<std::uint32_t>& one_mask) const {
    const auto probability = static_cast<std::uint64_t>(std::nearbyint(hidden_.keep() * 0x1p32));
    if (hidden_.dropout == 0 || probability >> 32) {
      std::fill(run.masks.begin(), run.masks.end(), ~0u);
    } else if (!one_mask.empty()) {
      for (long w = 0; w < run.words; w += k_)
        std::copy(one_mask.begin(), one_mask.end(), run.masks.begin() + w);
    } else {
      mask_kernel_({options_.seed, static_cast<std::uint32_t>(Purpose::training_mask), step,
                    first_block * k_, run.words, static_cast<std::uint32_t>(probability),
                    run.masks.data()});
    }
  }

  Layer hidden_;
  int n_, k_, outputs_;
  long rows_, stride_;
  const TrainOptions& options_;
  std::vector<double> states_, targets_;
  int threads_;
  std::vector<Run> runs_;
  void (*kernel_)(GradientJob&) = nullptr;
  void (*mask_kernel_)(const MaskJob&) = nullptr;
  Vector scaled_;  // W1 and B1 times the value of a mask
};

/// The mean of B draws of N(f_γ, σ_γ) for each entry.
void draw_targets(const DerivativeRows& rows, const TrainOptions& o, int batch, Matrix& targets) {
  Stream stream(o.seed, Purpose::derivative_noise, static_cast<std::uint64_t>(batch));
  for (Eigen::Index i = 0; i < targets.size(); ++i) {
    double noise = 0;
    for (int b = 0; b < o.noise_samples; ++b) noise += stream.normal();
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
  double total = 0;
  for (const Phase& phase : o.schedule) total += static_cast<double>(phase.steps) * o.batches;
  for (int batch = 0; batch < o.batches; ++batch) {
    draw_targets(rows, o, batch, targets);
    loss_and_gradient.set_targets(targets);
    double loss = 0;
    for (const Phase& phase : o.schedule) {
      for (int step = 0; step < phase.steps; ++step, ++summary.iterations) {
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
              "the loss is not finite at step {}; try a smaller learning rate or --scale standard",
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
    summary.reason = "a weight is not finite; try a smaller learning rate or --scale standard";
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
  summary.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace odecast
