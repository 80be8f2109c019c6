#include "odecast/filter/carrier.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "odecast/core/parallel.hpp"

namespace odecast {
namespace {

constexpr Eigen::Index kPerBlock = 128;
constexpr double kBound = 1e6, kMostKicks = 1e4;

}  // namespace

Carrier::Carrier(const Model& model, Eigen::Index members, double tolerance, std::uint64_t seed,
                 int threads, Carried carried)
    : model_(model),
      posterior_(make_posterior(model)),
      carried_(carried),
      seed_(seed),
      draws_(index(members)),
      threads_(threads),
      signal_(std::make_shared<InputSignal>()) {
  solver_.rtol = solver_.atol = tolerance;
  solver_.bound = kBound * model.data_scale;
  if (model.kind == ModelKind::map) {
    solver_.method = SolverMethod::iterate;
    solver_.fixed_step = model.step / model.scaling.time;
  }
  std::iota(draws_.begin(), draws_.end(), 0);
  std::vector<VectorField> fields;
  for (Eigen::Index i = 0; i < members; ++i)
    fields.push_back(posterior_->draw(seed, static_cast<std::uint64_t>(i)));
  drawn_.resize(members, 0);
  if (carried == Carried::coefficients) {
    const PolynomialPosterior sets = polynomial_posterior(model);
    joint_ = sets.joint(kLeastCarried);
    library_ = sets.library();
    numbers_ = numbers_inside(library_, joint_.support);
    drawn_.resize(members, joint_.mean.size());
    for (Eigen::Index i = 0; i < members; ++i) {
      const PolynomialField& field = *fields[index(i)].polynomial();
      Eigen::Index c = 0;
      for (const FieldTerm& t : joint_.support)
        drawn_(i, c++) = field.coefficients(t.equation, t.term);
      // A draw without the function has no number in it.
      for (const int k : numbers_) {
        const double z = field.numbers[static_cast<std::size_t>(k)];
        drawn_(i, c) = z != 0 ? z : joint_.mean[c];
        ++c;
      }
    }
  }
  const PolynomialField* first = fields.front().polynomial();
  if (model.kind == ModelKind::flow && model.inputs.size() == 0 && first) {
    keeps_terms_.assign(fields.begin(), fields.begin() + 1);
    for (Eigen::Index begin = 0; begin < members; begin += kPerBlock) {
      const std::size_t size = index(std::min(kPerBlock, members - begin));
      LaneProblems& block = blocks_.emplace_back();
      block.basis = first->basis.get();
      block.functions = first->functions.get();
      block.coefficients.resize(size * index(first->coefficients.size()));
      block.numbers.resize(size * first->numbers.size());
    }
  } else {
    fields_ = fields;
  }
  for (Eigen::Index i = 0; i < members; ++i) set_field(i, fields[index(i)]);
  // Of the terms of a draw those that are not carried are none.
  if (carried == Carried::coefficients)
    for (LaneProblems& block : blocks_) std::ranges::fill(block.coefficients, 0.0);
}

void Carrier::set_field(Eigen::Index member, const VectorField& field) {
  if (blocks_.empty()) {
    fields_[index(member)] =
        driven_field(model_, field, model_.inputs.measured() > 0 ? signal_ : nullptr);
    return;
  }
  const PolynomialField& terms = *field.polynomial();
  LaneProblems& block = blocks_[index(member / kPerBlock)];
  const Eigen::Index at = member % kPerBlock;
  std::copy_n(terms.coefficients.data(), terms.coefficients.size(),
              block.coefficients.begin() + at * terms.coefficients.size());
  std::copy(terms.numbers.begin(), terms.numbers.end(),
            block.numbers.begin() + at * static_cast<Eigen::Index>(terms.numbers.size()));
}

void Carrier::take_draws(const std::vector<int>& draws) {
  for (std::size_t k = 0; k < draws.size(); ++k)
    if (draws[k] != draws_[k])
      set_field(static_cast<Eigen::Index>(k),
                posterior_->draw(seed_, static_cast<std::uint64_t>(draws[k])));
  draws_ = draws;
}

/// The fields of the members' own coefficients, behind their states.
void Carrier::take_coefficients(const Matrix& members) {
  const int n = model_.dimension();
  const auto terms = static_cast<Eigen::Index>(joint_.support.size());
  if (blocks_.empty()) {
    for (Eigen::Index i = 0; i < members.rows(); ++i) {
      const Vector theta = members.row(i).segment(n, joint_.mean.size()).transpose();
      set_field(i, VectorField(dense({library_, joint_.support, theta}, n)));
    }
    return;
  }
  const int all_terms = library_.size();
  const std::size_t all_numbers = library_.functions ? library_.functions->numbers().size() : 0;
  for (Eigen::Index i = 0; i < members.rows(); ++i) {
    LaneProblems& block = blocks_[index(i / kPerBlock)];
    const Eigen::Index at = i % kPerBlock;
    const double* theta = members.row(i).data() + n;
    for (std::size_t c = 0; c < joint_.support.size(); ++c) {
      const FieldTerm& t = joint_.support[c];
      block.coefficients[index((at * n + t.equation) * all_terms + t.term)] = theta[c];
    }
    for (std::size_t k = 0; k < numbers_.size(); ++k)
      block.numbers[index(at) * all_numbers + static_cast<std::size_t>(numbers_[k])] =
          theta[terms + static_cast<Eigen::Index>(k)];
  }
}

void Carrier::carry_part(Matrix& members, double t, double until, std::vector<char>& alive) {
  const Eigen::Index n = model_.dimension();
  const double times[] = {until};
  if (!blocks_.empty()) {
    parallel_for(threads_, blocks_.size(), [&](std::size_t b) {
      const Eigen::Index first = static_cast<Eigen::Index>(b) * kPerBlock,
                         size = std::min(kPerBlock, members.rows() - first);
      LaneProblems& block = blocks_[b];
      block.t0 = t;
      block.times = times;
      block.starts.resize(index(size * n));
      for (Eigen::Index i = 0; i < size; ++i)
        for (Eigen::Index j = 0; j < n; ++j) block.starts[index(i * n + j)] = members(first + i, j);
      const int stride = lane_stride(1);
      std::vector<double> states(index(size * n * stride));
      std::vector<TrajectoryEnd> ends(index(size));
      solve_lanes(block, solver_, states.data(), ends);
      for (Eigen::Index i = 0; i < size; ++i) {
        if (ends[index(i)].outputs == 0) alive[index(first + i)] = 0;
        for (Eigen::Index j = 0; j < n; ++j)
          members(first + i, j) = states[index((i * n + j) * stride)];
      }
    });
    return;
  }
  parallel_for(threads_, fields_.size(), [&](std::size_t k) {
    const auto i = static_cast<Eigen::Index>(k);
    const Solution one = solve(fields_[k], t, members.row(i).head(n).transpose(), times, solver_);
    if (one.outputs == 0)
      alive[k] = 0;
    else
      members.row(i).head(n) = one.states.row(0);
  });
}

long Carrier::carry(Matrix& members, double t, double until, const InputSignal& inputs,
                    Stream& kicks) {
  *signal_ = inputs;
  if (drawn_.cols() > 0) take_coefficients(members);
  const Matrix before = members;
  std::vector<char> alive(index(members.rows()), 1);
  const bool forced = model_.trajectory && model_.trajectory->forcing.present();
  if (!forced) {
    carry_part(members, t, until, alive);
  } else {
    const Forcing& forcing = model_.trajectory->forcing;
    const double legs =
        std::clamp(std::ceil((until - t) / forcing.interval - 1e-9), 1.0, kMostKicks);
    const double leg = (until - t) / legs;
    const Vector sd = forcing.sd * std::sqrt(leg / forcing.interval);
    double at = t;
    for (double k = 0; k <= legs; ++k) {
      const double to = k < legs ? t + (k + 0.5) * leg : until;
      carry_part(members, at, to, alive);
      at = to;
      if (k == legs) break;
      for (Eigen::Index i = 0; i < members.rows(); ++i)
        for (int j = 0; j < model_.dimension(); ++j)
          members(i, j) = kicked(model_, j, members(i, j), sd[j], kicks.normal());
    }
  }
  std::vector<Eigen::Index> left;
  for (Eigen::Index i = 0; i < members.rows(); ++i)
    if (alive[index(i)] && members.row(i).allFinite()) left.push_back(i);
  const long dead = static_cast<long>(members.rows()) - static_cast<long>(left.size());
  if (left.empty()) {
    members = before;
  } else if (dead > 0) {
    const Matrix after = members;
    std::vector<int> draws = draws_;
    for (Eigen::Index i = 0, next = 0; i < members.rows(); ++i) {
      if (next < static_cast<Eigen::Index>(left.size()) && left[index(next)] == i) {
        ++next;
        continue;
      }
      const double place = kicks.uniform() * static_cast<double>(left.size());
      const Eigen::Index from = left[static_cast<std::size_t>(place)];
      members.row(i) = after.row(from);
      if (carried_ == Carried::draws) draws[index(i)] = draws_[index(from)];
    }
    take_draws(draws);
  }
  return dead;
}

}  // namespace odecast
