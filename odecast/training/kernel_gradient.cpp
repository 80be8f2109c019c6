#include "odecast/training/detail/kernel_gradient.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/parallel.hpp"
#include "odecast/field/polynomial.hpp"

namespace odecast {
namespace {

/// Rows are summed in runs of this many, and the runs in order: the same bits for any number of
/// threads.
constexpr long rows_per_run(GradientForm form) {
  return form == GradientForm::units ? 64 * kRowsPerBlock : 256 * kRowsPerBlock;
}
/// Below this a step is shorter than starting a thread.
constexpr long kRowsWorthThreads = 100'000;

long whole_blocks(long rows) { return (rows + kRowsPerBlock - 1) / kRowsPerBlock * kRowsPerBlock; }

}  // namespace

struct KernelGradient::Run {
  long first, rows;
  long words = 0;
  std::vector<std::uint32_t> masks;
};

/// A sum over the rows in one of the forms.
class KernelGradient::Sum {
 public:
  virtual ~Sum() = default;
  virtual void set_targets(const Matrix& targets) = 0;
  /// Before the runs of a step.
  virtual void begin(const Vector& theta) = 0;
  virtual void add(std::size_t run) = 0;
  /// Σ |e|² after them, and the gradient of its half.
  virtual double end(const Vector& theta, Vector& gradient) = 0;
};

class KernelGradient::UnitSum : public Sum {
 public:
  UnitSum(const Layer& hidden, const Matrix& states, int outputs, const std::vector<Run>& runs)
      : mask_value_(hidden.mask_value()),
        stride_(whole_blocks(states.rows())),
        states_(transposed(states)) {
    const int n = static_cast<int>(states.cols()), k = static_cast<int>(hidden.biases.size());
    scaled_.resize(static_cast<Eigen::Index>(k) * n + k);
    for (const Run& run : runs) {
      parts_.emplace_back();
      Part& part = parts_.back();
      part.first = run.first;
      part.gradient.resize(scaled_.size() + static_cast<Eigen::Index>(outputs) * k + outputs);
      part.work = aligned_doubles(gradient_work_size(n, k, outputs));
      GradientJob& job = part.job;
      job.n = n, job.k = k, job.outputs = outputs, job.degree = hidden.power;
      job.rows = run.rows;
      job.stride = stride_;
      job.states = states_.data() + run.first;
      job.W1 = scaled_.data();
      job.B1 = job.W1 + k * n;
      job.mask_value = mask_value_;
      job.masks = run.masks.data();
      job.gradient = part.gradient.data();
      job.work = part.work.get();
    }
  }

  void set_targets(const Matrix& targets) override {
    targets_ = transposed(targets);
    for (Part& part : parts_) part.job.targets = targets_.data() + part.first;
  }

  void begin(const Vector& theta) override {
    scaled_ = theta.head(scaled_.size()) * mask_value_;
    for (Part& part : parts_) {
      part.job.W2 = theta.data() + scaled_.size();
      part.job.B2 = part.job.W2 + part.job.outputs * part.job.k;
    }
  }

  void add(std::size_t run) override { run_gradient(parts_[run].job); }

  double end(const Vector&, Vector& gradient) override {
    double loss = 0;
    for (const Part& part : parts_) {
      gradient += part.gradient;
      loss += part.job.loss;
    }
    return loss;
  }

 private:
  struct Part {
    long first = 0;
    Vector gradient;
    AlignedDoubles work;
    GradientJob job{};
  };

  std::vector<double> transposed(const Matrix& m) const {
    std::vector<double> columns(static_cast<std::size_t>(m.cols() * stride_), 0.0);
    for (Eigen::Index j = 0; j < m.cols(); ++j)
      for (Eigen::Index i = 0; i < m.rows(); ++i)
        columns[static_cast<std::size_t>(j * stride_ + i)] = m(i, j);
    return columns;
  }

  double mask_value_;
  long stride_;
  std::vector<double> states_, targets_;
  Vector scaled_;  // W1 and B1 times the value of a mask
  std::vector<Part> parts_;
};

/// C_0 = B2 and C_j = W2_j times the coefficients c of (b_j + w_j·u)^p, and back from H_j =
/// ∂L/∂C_j:
///   W̄2_oj = Σ_α H_oα c_α,  q_α = Σ_o W2_oj H_oα,
///   b̄ = p Σ_β l_β q_β,  w̄_i = p Σ_β l_β q_{β + e_i},
/// l the coefficients of (b_j + w_j·u)^{p-1}: the derivative of the power by w_i is p u_i times
/// that.
class KernelGradient::PatternSum : public Sum {
 public:
  PatternSum(const Layer& hidden, const Matrix& states, int outputs, const std::vector<Run>& runs)
      : basis_(static_cast<int>(states.cols()), hidden.power),
        n_(basis_.variables()),
        k_(static_cast<int>(hidden.biases.size())),
        outputs_(outputs),
        F_(basis_.size()),
        mask_value_(hidden.mask_value()),
        numbers_(aligned_doubles(states.rows() * kRowStride)),
        coefficients_(aligned_doubles(table_size())) {
    std::fill_n(numbers_.get(), states.rows() * kRowStride, 0.0);
    for (Eigen::Index i = 0; i < states.rows(); ++i)
      std::copy_n(states.row(i).data(), n_, numbers_.get() + i * kRowStride + kOutputSlots);
    std::fill_n(coefficients_.get(), table_size(), 0.0);
    for (int m = 0; m < F_; ++m) {
      terms_.push_back({basis_.degree(m), multinomial(basis_.powers(m), hidden.power),
                        multinomial(basis_.powers(m), hidden.power - 1)});
      if (terms_.back().degree == hidden.power) continue;
      for (int i = 0; i < n_; ++i) times_.push_back(basis_.times(m, i));
      ++lower_size_;
    }
    power_.resize(k_, F_);
    lower_.resize(k_, F_);
    H_.resize(table_size());
    monomials_.resize(F_);
    q_.resize(F_);
    for (const Run& run : runs) {
      parts_.emplace_back();
      Part& part = parts_.back();
      part.next.resize(static_cast<std::size_t>(run.rows));
      part.heads.resize(std::size_t{1} << k_, kNoRow);
      part.groups.resize(part.heads.size() + 1);
      part.gradient = aligned_doubles(table_size());
      part.work = aligned_doubles(pattern_work_size(k_, F_));
      part.job = {.n = n_,
                  .k = k_,
                  .outputs = outputs_,
                  .degree = basis_.degree(),
                  .rows = run.rows,
                  .numbers = numbers_.get() + run.first * kRowStride,
                  .coefficients = coefficients_.get(),
                  .masks = run.masks.data(),
                  .next = part.next.data(),
                  .heads = part.heads.data(),
                  .groups = part.groups.data(),
                  .gradient = part.gradient.get(),
                  .loss = 0,
                  .work = part.work.get()};
    }
  }

  void set_targets(const Matrix& targets) override {
    for (Eigen::Index i = 0; i < targets.rows(); ++i)
      for (int o = 0; o < outputs_; ++o) numbers_.get()[i * kRowStride + o] = targets(i, o);
  }

  void begin(const Vector& theta) override {
    const double* W1 = theta.data();
    const double* B1 = W1 + k_ * n_;
    const double* W2 = B1 + k_;
    const double* B2 = W2 + outputs_ * k_;
    double* C = coefficients_.get();
    for (int o = 0; o < outputs_; ++o) C[o] = B2[o];
    for (int j = 0; j < k_; ++j) {
      expand(W1 + j * n_, B1[j], power_.row(j).data(), lower_.row(j).data());
      C += F_ * kOutputSlots;
      for (int m = 0; m < F_; ++m)
        for (int o = 0; o < outputs_; ++o) C[m * kOutputSlots + o] = W2[o * k_ + j] * power_(j, m);
    }
  }

  void add(std::size_t run) override { run_patterns(parts_[run].job); }

  double end(const Vector& theta, Vector& gradient) override {
    double loss = 0;
    H_.setZero();
    for (const Part& part : parts_) {
      H_ += Eigen::Map<const Vector>(part.gradient.get(), H_.size());
      loss += part.job.loss;
    }
    double* W1 = gradient.data();
    double* B1 = W1 + k_ * n_;
    double* W2 = B1 + k_;
    double* B2 = W2 + outputs_ * k_;
    const double chain = basis_.degree() * mask_value_;
    const double* H = H_.data();
    for (int o = 0; o < outputs_; ++o) B2[o] = H[o];
    for (int j = 0; j < k_; ++j) {
      H += F_ * kOutputSlots;
      double sum[kOutputSlots] = {}, read_out[kOutputSlots] = {};
      for (int o = 0; o < outputs_; ++o) read_out[o] = theta[W2 - W1 + o * k_ + j];
      for (int m = 0; m < F_; ++m) {
        const double* h = H + m * kOutputSlots;
        const double c = power_(j, m);
        for (int o = 0; o < kOutputSlots; ++o) sum[o] += h[o] * c;
        q_[m] =
            (read_out[0] * h[0] + read_out[1] * h[1]) + (read_out[2] * h[2] + read_out[3] * h[3]);
      }
      for (int o = 0; o < outputs_; ++o) W2[o * k_ + j] = sum[o];
      for (int m = 0; m < lower_size_; ++m) {
        const double l = chain * lower_(j, m);
        B1[j] += l * q_[m];
        for (int i = 0; i < n_; ++i)
          W1[j * n_ + i] += l * q_[times_[static_cast<std::size_t>(m * n_ + i)]];
      }
    }
    return loss;
  }

 private:
  struct Part {
    std::vector<std::uint16_t> next, heads, groups;
    AlignedDoubles gradient, work;
    PatternJob job{};
  };

  long table_size() const { return (1L + k_) * F_ * kOutputSlots; }

  /// Of (b + w·u)^p the coefficient of u^α is p! / (α_0! α_1! … α_n!) b^α_0 w^α, α_0 = p - |α|.
  struct Term {
    int degree;           // |α|
    double power, lower;  // p! / (α_0! …), and the same for p - 1
  };

  /// The coefficients of (b + w·u)^p and (b + w·u)^{p-1}, w and b times the value of a mask.
  void expand(const double* w, double b, double* power, double* lower) {
    double powers[kMaxDegree + 1] = {1};
    for (int i = 1; i <= basis_.degree(); ++i) powers[i] = powers[i - 1] * (mask_value_ * b);
    double* phi = monomials_.data();
    for (int m = 0; m < F_; ++m) {
      phi[m] = m == 0 ? 1 : phi[basis_.parent(m)] * (mask_value_ * w[basis_.variable(m)]);
      const Term& term = terms_[static_cast<std::size_t>(m)];
      const int left = basis_.degree() - term.degree;
      power[m] = term.power * powers[left] * phi[m];
      if (left > 0) lower[m] = term.lower * powers[left - 1] * phi[m];
    }
  }

  MonomialBasis basis_;
  int n_, k_, outputs_, F_;
  double mask_value_;
  AlignedDoubles numbers_, coefficients_;
  std::vector<Term> terms_;
  std::vector<int> times_;  // monomial × variable -> monomial, for those below degree p
  int lower_size_ = 0;
  Matrix power_, lower_;  // unit × monomial
  Vector H_, monomials_, q_;
  std::vector<Part> parts_;
};

void draw_normals(std::uint64_t seed, Purpose purpose, std::uint64_t index, long first, long count,
                  double* normals) {
  assert(first % kNormals == 0 && count % kNormals == 0);
  run_normals({.seed = seed,
               .purpose = static_cast<std::uint32_t>(purpose),
               .index = index,
               .first = first,
               .count = count,
               .normals = normals});
}

GradientForm faster_form(int n, int k, int outputs, int degree, long rows) {
  // A polynomial costs a row F products for each output, the units about 6k. There is one to make
  // for each mask that occurs, which wants more rows than masks; and rows are visited in the order
  // of their masks, which is slow once they do not fit the second-level cache. Measured on AVX-512;
  // AVX2 gains more. It must not depend on the instruction set, as the forms round differently.
  const bool faster = patterns_apply(n, k, outputs, degree) && monomial_count(n, degree) <= 2 * k &&
                      rows >= 2L << k && rows <= rows_per_run(GradientForm::patterns);
  return faster ? GradientForm::patterns : GradientForm::units;
}

KernelGradient::KernelGradient(const Network& network, const Matrix& states,
                               const TrainOptions& options)
    : KernelGradient(
          network, states, options,
          faster_form(network.inputs(), static_cast<int>(network.layers[0].biases.size()),
                      network.outputs(), network.layers[0].power, states.rows())) {}

KernelGradient::KernelGradient(const Network& network, const Matrix& states,
                               const TrainOptions& options, GradientForm form)
    : hidden_(network.layers[0]),
      k_(static_cast<int>(hidden_.biases.size())),
      rows_(states.rows()),
      options_(options),
      threads_(rows_ >= kRowsWorthThreads ? options.threads : 1) {
  assert(form == GradientForm::units ||
         patterns_apply(network.inputs(), k_, network.outputs(), hidden_.power));
  const long run_size = rows_per_run(form);
  for (long first = 0; first < rows_; first += run_size) {
    runs_.push_back({first, std::min(run_size, rows_ - first), 0, {}});
    Run& run = runs_.back();
    run.words = whole_blocks(run.rows) / kRowsPerBlock * k_;
    run.masks.resize(static_cast<std::size_t>(run.words + kMaskWords - 1));
  }
  if (form == GradientForm::patterns)
    sum_ = std::make_unique<PatternSum>(hidden_, states, network.outputs(), runs_);
  else
    sum_ = std::make_unique<UnitSum>(hidden_, states, network.outputs(), runs_);
}

KernelGradient::~KernelGradient() = default;

void KernelGradient::set_targets(const Matrix& targets) { sum_->set_targets(targets); }

double KernelGradient::operator()(const Vector& theta, std::uint64_t step, Vector& gradient) {
  std::vector<std::uint32_t> one_mask;
  if (options_.mask_per_batch && hidden_.dropout > 0) one_mask = whole_batch_mask(step);
  sum_->begin(theta);
  const auto one_run = [&](std::size_t i) {
    fill_masks(runs_[i], step, one_mask);
    sum_->add(i);
  };
  if (threads_ > 1)
    parallel_for(threads_, runs_.size(), one_run);
  else
    for (std::size_t i = 0; i < runs_.size(); ++i) one_run(i);  // allocates nothing
  gradient.setZero(theta.size());
  const double loss = sum_->end(theta, gradient);
  gradient *= 2 / static_cast<double>(rows_);
  return loss / static_cast<double>(rows_);
}

std::vector<std::uint32_t> KernelGradient::whole_batch_mask(std::uint64_t step) const {
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

void KernelGradient::fill_masks(Run& run, std::uint64_t step,
                                const std::vector<std::uint32_t>& one_mask) const {
  const auto probability = static_cast<std::uint64_t>(std::nearbyint(hidden_.keep() * 0x1p32));
  if (hidden_.dropout == 0 || probability >> 32) {
    std::fill(run.masks.begin(), run.masks.end(), ~0u);
  } else if (!one_mask.empty()) {
    for (long w = 0; w < run.words; w += k_)
      std::copy(one_mask.begin(), one_mask.end(), run.masks.begin() + w);
  } else {
    run_masks({.seed = options_.seed,
               .purpose = static_cast<std::uint32_t>(Purpose::training_mask),
               .index = step,
               .first_word = run.first / kRowsPerBlock * k_,
               .words = run.words,
               .probability = static_cast<std::uint32_t>(probability),
               .masks = run.masks.data()});
  }
}

}  // namespace odecast
