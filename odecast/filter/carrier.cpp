#include "odecast/filter/carrier.hpp"

#include <algorithm>
#include <cmath>

#include "odecast/core/parallel.hpp"

namespace odecast {
namespace {

constexpr Eigen::Index kPerBlock = 128;
constexpr double kBound = 1e6, kMostKicks = 1e4;

}  // namespace

Carrier::Carrier(const Model& model, Eigen::Index members, double tolerance, std::uint64_t seed,
                 int threads)
    : model_(model), threads_(threads), signal_(std::make_shared<InputSignal>()) {
  solver_.rtol = solver_.atol = tolerance;
  solver_.bound = kBound * model.data_scale;
  if (model.kind == ModelKind::map) {
    solver_.method = SolverMethod::iterate;
    solver_.fixed_step = model.step / model.scaling.time;
  }
  const auto posterior = make_posterior(model);
  std::vector<VectorField> fields;
  for (Eigen::Index i = 0; i < members; ++i)
    fields.push_back(posterior->draw(seed, static_cast<std::uint64_t>(i)));
  if (model.kind == ModelKind::flow && model.inputs.size() == 0 && fields.front().polynomial()) {
    for (Eigen::Index first = 0; first < members; first += kPerBlock) {
      LaneProblems& block = blocks_.emplace_back();
      block.basis = fields.front().polynomial()->basis.get();
      block.functions = fields.front().polynomial()->functions.get();
      for (Eigen::Index i = first; i < std::min(members, first + kPerBlock); ++i) {
        const PolynomialField& field = *fields[index(i)].polynomial();
        block.coefficients.insert(block.coefficients.end(), field.coefficients.data(),
                                  field.coefficients.data() + field.coefficients.size());
        block.numbers.insert(block.numbers.end(), field.numbers.begin(), field.numbers.end());
      }
    }
    keeps_terms_.assign(fields.begin(), fields.begin() + 1);
    return;
  }
  const auto measured = model.inputs.measured() > 0 ? signal_ : nullptr;
  for (const VectorField& field : fields) fields_.push_back(driven_field(model, field, measured));
}

void Carrier::carry_part(Matrix& members, double t, double until, std::vector<char>& alive) {
  const Eigen::Index n = members.cols();
  const double times[] = {until};
  if (!blocks_.empty()) {
    parallel_for(threads_, blocks_.size(), [&](std::size_t b) {
      const Eigen::Index first = static_cast<Eigen::Index>(b) * kPerBlock,
                         size = std::min(kPerBlock, members.rows() - first);
      LaneProblems& block = blocks_[b];
      block.t0 = t;
      block.times = times;
      block.starts.assign(members.row(first).data(), members.row(first).data() + size * n);
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
    const Solution one = solve(fields_[k], t, members.row(i).transpose(), times, solver_);
    if (one.outputs == 0)
      alive[k] = 0;
    else
      members.row(i) = one.states.row(0);
  });
}

long Carrier::carry(Matrix& members, double t, double until, const InputSignal& inputs,
                    Stream& kicks) {
  *signal_ = inputs;
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
    for (Eigen::Index i = 0, next = 0; i < members.rows(); ++i) {
      if (next < static_cast<Eigen::Index>(left.size()) && left[index(next)] == i) {
        ++next;
        continue;
      }
      const double place = kicks.uniform() * static_cast<double>(left.size());
      members.row(i) = after.row(left[static_cast<std::size_t>(place)]);
    }
  }
  return dead;
}

}  // namespace odecast
