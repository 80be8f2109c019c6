#include "odecast/shooting/shooting.hpp"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "odecast/core/parallel.hpp"
#include "odecast/shooting/detail/segment_job.hpp"

namespace odecast {
namespace {

constexpr int kLanes = 8;
constexpr int kBlocksPerJob = 32;  ///< sums run over jobs in order, whatever thread ran them

/// Equal steps of at most that length.
int steps_of(const Flow& flow, double h) {
  return flow.substeps *
         static_cast<int>(std::min(1e6, std::ceil(h / flow.longest_step * (1 - 1e-9))));
}

}  // namespace

Shooting::Shooting(std::vector<ObservedRun> runs, TermLibrary library, int per_segment, Flow flow,
                   int threads, Budget* budget)
    : runs_(std::move(runs)),
      library_(std::move(library)),
      flow_(flow),
      per_segment_(per_segment),
      threads_(threads),
      budget_(budget),
      noise_(Vector::Ones(dimension())) {
  assert(per_segment >= 1);
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const int rows = static_cast<int>(runs_[r].times.size());
    assert(rows >= 1 && runs_[r].inputs.values.cols() == inputs());
    const int pieces =
        std::max(1, static_cast<int>(std::lround(static_cast<double>(rows) / per_segment)));
    for (int k = 0; k < pieces; ++k) {
      const auto cut = [&](int i) {
        return static_cast<int>(static_cast<long>(rows) * i / pieces);
      };
      segments_.push_back({static_cast<int>(r), cut(k), cut(k + 1) - cut(k), k + 1 == pieces});
    }
  }
  for (const Segment& s : segments_) slots_ = std::max(slots_, s.intervals() + 1);
  blocks_ = (segments() + kLanes - 1) / kLanes;
  lay_out();
}

void Shooting::set_flow(const Flow& flow) {
  flow_ = flow;
  lay_out();
}

void Shooting::set_noise(const Vector& sd) {
  noise_ = sd;
  lay_out_weights();
}

void Shooting::set_weights(const std::vector<Matrix>& weights) {
  for (std::size_t r = 0; r < runs_.size(); ++r) runs_[r].weights = weights[r];
  lay_out_weights();
}

void Shooting::lay_out() {
  const int n = dimension();
  const long places = static_cast<long>(blocks_) * slots_;
  length_ = aligned_doubles(index(places * kLanes));
  observed_ = aligned_doubles(index(places * n * kLanes));
  root_weight_ = aligned_doubles(index(places * n * kLanes));
  std::fill_n(length_.get(), places * kLanes, 0.0);
  std::fill_n(observed_.get(), places * n * kLanes, 0.0);
  substeps_.assign(index(places), flow_.substeps);
  for (int j = 0; j < segments(); ++j) {
    const Segment& s = segment(j);
    const ObservedRun& data = runs_[index(s.run)];
    for (int k = 0; k <= s.intervals(); ++k) {
      const long slot = static_cast<long>(j / kLanes) * slots_ + k;
      const int row = s.first + k, l = j % kLanes;
      if (k > 0) {
        const double h = data.times[index(row)] - data.times[index(row - 1)];
        length_[index(slot * kLanes + l)] = h;
        if (flow_.longest_step > 0)
          substeps_[index(slot)] = std::max(substeps_[index(slot)], steps_of(flow_, h));
      }
      if (k < s.count)
        for (int i = 0; i < n; ++i)
          if (data.weights(row, i) > 0)
            observed_[index((slot * n + i) * kLanes + l)] = data.values(row, i);
    }
  }
  lay_out_inputs();
  lay_out_weights();
}

void Shooting::lay_out_inputs() {
  const std::size_t m = index(inputs());
  if (m == 0) return;
  std::vector<double> length, values;
  first_piece_ = {0};
  substeps_.assign(substeps_.size(), flow_.substeps);
  for (int block = 0; block < blocks_; ++block)
    for (int k = 0; k < slots_; ++k) {
      const auto first = index(first_piece_.back());
      std::size_t end = first;
      int& substeps = substeps_[index(static_cast<long>(block) * slots_ + k)];
      for (int j = block * kLanes; j < std::min(segments(), (block + 1) * kLanes); ++j) {
        if (k == 0 || k > segment(j).intervals()) continue;
        std::size_t at = first;
        for (const DrivenPiece& p : pieces(runs_[index(segment(j).run)], segment(j).first + k)) {
          if (at == end) {
            ++end;
            length.resize(end * kLanes, 0.0);
            values.resize(end * m * 2 * kLanes, 0.0);
          }
          const auto l = index(j % kLanes);
          const double h = length[at * kLanes + l] = p.end - p.begin;
          if (flow_.longest_step > 0) substeps = std::max(substeps, steps_of(flow_, h));
          for (std::size_t i = 0; i < m; ++i) {
            double* place = values.data() + (at * m + i) * 2 * kLanes + l;
            place[0] = p.from[static_cast<long>(i)];
            place[kLanes] = p.to[static_cast<long>(i)];
          }
          ++at;
        }
      }
      first_piece_.push_back(static_cast<int>(end));
    }
  piece_length_ = aligned_doubles(length.size());
  piece_inputs_ = aligned_doubles(values.size());
  std::copy(length.begin(), length.end(), piece_length_.get());
  std::copy(values.begin(), values.end(), piece_inputs_.get());
}

void Shooting::lay_out_weights() {
  const int n = dimension();
  std::fill_n(root_weight_.get(), static_cast<long>(blocks_) * slots_ * n * kLanes, 0.0);
  counts_ = Vector::Zero(n);
  for (int j = 0; j < segments(); ++j) {
    const Segment& s = segment(j);
    const ObservedRun& data = runs_[index(s.run)];
    for (int k = 0; k < s.count; ++k) {
      const long slot = static_cast<long>(j / kLanes) * slots_ + k;
      for (int i = 0; i < n; ++i) {
        const double w = data.weights(s.first + k, i);
        if (!(w > 0)) continue;
        root_weight_[index((slot * n + i) * kLanes + j % kLanes)] = std::sqrt(w) / noise_[i];
        counts_[i] += 1;
      }
    }
  }
}

double Shooting::work(long theta, bool sensitivities, long nodes) const {
  const double n = dimension(), p = static_cast<double>(theta), columns = n + p + 1,
               stages = flow_.method == FlowMethod::rk4 ? 4 : 13;
  double steps = 0;
  for (const int s : substeps_) steps += s;
  if (inputs() > 0)
    steps *= std::max(1.0, first_piece_.back() / static_cast<double>(substeps_.size()));
  // A node is some ten operations: a few are functions.
  const double step = stages * (2 * p + 10 * static_cast<double>(nodes) +
                                (sensitivities ? columns * n * (n + stages / 2) : 0)),
               slot = sensitivities ? n * columns * columns / 2 : n;
  return kLanes * (steps * step + static_cast<double>(substeps_.size()) * slot);
}

Shooting::Evaluation Shooting::evaluate(const Support& support, const Vector& theta,
                                        const Matrix& starts, bool sensitivities) const {
  return run_jobs(support, theta, starts, sensitivities, nullptr);
}

Shooting::Evaluation Shooting::run_jobs(const Support& support, const Vector& theta,
                                        const Matrix& starts, bool sensitivities,
                                        double* path) const {
  const int n = dimension(), p = static_cast<int>(theta.size()), columns = n + p + 1;
  assert(starts.rows() == segments() && starts.cols() == n);
  const FieldLists field({library_, support, theta}, n);
  const int monomials = static_cast<int>(field.parent.size()),
            nodes = static_cast<int>(field.tape.size()),
            parameters = static_cast<int>(field.parameters.size());
  spend(work(p, sensitivities, sensitivities ? nodes : field.values));

  const AlignedDoubles packed = aligned_doubles(index(static_cast<long>(blocks_) * n * kLanes));
  // Lanes without a segment have the last one's start: functions need not be defined at 0.
  for (int j = 0; j < blocks_ * kLanes; ++j)
    for (int i = 0; i < n; ++i)
      packed[index((static_cast<long>(j / kLanes) * n + i) * kLanes + j % kLanes)] =
          starts(std::min(j, segments() - 1), i);

  const int jobs = (blocks_ + kBlocksPerJob - 1) / kBlocksPerJob;
  Evaluation result;
  result.ends.resize(segments(), n);
  result.squares = Vector::Zero(n);
  if (sensitivities) {
    result.state_rows.resize(static_cast<long>(segments()) * n, columns);
    result.flow.resize(static_cast<long>(segments()) * n, columns - 1);
    result.theta_theta = Matrix::Zero(p, p);
    result.theta_residual = Vector::Zero(p);
  }
  std::vector<Matrix> theta_rows(index(jobs));
  std::vector<double> costs(index(jobs), 0.0);
  std::vector<Vector> squares(index(jobs), Vector::Zero(n));
  parallel_for(jobs > 1 ? threads_ : 1, index(jobs), [&](std::size_t at) {
    const int first = static_cast<int>(at) * kBlocksPerJob;
    const int blocks = std::min(kBlocksPerJob, blocks_ - first);
    const long state_size = sensitivities ? static_cast<long>(n) * columns * kLanes : 0;
    const long flow_size = sensitivities ? static_cast<long>(n) * (columns - 1) * kLanes : 0;
    const AlignedDoubles cost = aligned_doubles(index(blocks * kLanes));
    const AlignedDoubles square = aligned_doubles(index(static_cast<long>(blocks) * n * kLanes));
    const AlignedDoubles end = aligned_doubles(index(static_cast<long>(blocks) * n * kLanes));
    const AlignedDoubles state_rows = aligned_doubles(index(blocks * state_size));
    const AlignedDoubles flow = aligned_doubles(index(blocks * flow_size));
    const AlignedDoubles work =
        aligned_doubles(index(segment_work_size(n, inputs(), p, monomials + nodes, parameters)));
    if (sensitivities) theta_rows[at] = Matrix::Zero(p, columns);
    const long place = static_cast<long>(first) * slots_;
    run_segments({.variables = n,
                  .slots = slots_,
                  .blocks = blocks,
                  .order = flow_.method == FlowMethod::rk4 ? 4 : 8,
                  .sensitivities = sensitivities,
                  .monomials = monomials,
                  .parent = field.parent.data(),
                  .variable = field.variable.data(),
                  .tape = field.tape.data(),
                  .nodes = nodes,
                  .value_nodes = field.values,
                  .parameters = parameters,
                  .parameter_values = field.parameters.data(),
                  .terms = static_cast<int>(support.size()),
                  .equation = field.equation.data(),
                  .term = field.term.data(),
                  .summed = static_cast<int>(field.summed_term.size()),
                  .summed_equation = field.summed_equation.data(),
                  .summed_term = field.summed_term.data(),
                  .summed_theta = field.summed_theta.data(),
                  .slopes = static_cast<int>(field.slope_place.size()),
                  .slope_place = field.slope_place.data(),
                  .slope_term = field.slope_term.data(),
                  .slope_value = field.slope_value.data(),
                  .numbers = field.numbers(),
                  .first_force = field.first_force.data(),
                  .force_equation = field.force_equation.data(),
                  .force_term = field.force_term.data(),
                  .force_value = field.force_value.data(),
                  .substeps = substeps_.data() + place,
                  .length = length_.get() + place * kLanes,
                  .observed = observed_.get() + place * n * kLanes,
                  .root_weight = root_weight_.get() + place * n * kLanes,
                  .starts = packed.get() + static_cast<long>(first) * n * kLanes,
                  .inputs = inputs(),
                  .first_piece = inputs() > 0 ? first_piece_.data() + place : nullptr,
                  .piece_length = piece_length_.get(),
                  .piece_inputs = piece_inputs_.get(),
                  .cost = cost.get(),
                  .squares = square.get(),
                  .end = end.get(),
                  .path = path ? path + place * n * kLanes : nullptr,
                  .state_rows = state_rows.get(),
                  .flow = flow.get(),
                  .theta_rows = theta_rows[at].data(),
                  .work = work.get()});
    for (int j = first * kLanes; j < std::min(segments(), (first + blocks) * kLanes); ++j) {
      const long block = j / kLanes - first, l = j % kLanes;
      costs[at] += cost[index(block * kLanes + l)];
      for (int i = 0; i < n; ++i) {
        result.ends(j, i) = end[index((block * n + i) * kLanes + l)];
        squares[at][i] += square[index((block * n + i) * kLanes + l)];
        if (!sensitivities) continue;
        for (int c = 0; c < columns; ++c)
          result.state_rows(static_cast<long>(j) * n + i, c) =
              state_rows[index(((block * n + i) * columns + c) * kLanes + l)];
        for (int c = 0; c < columns - 1; ++c)
          result.flow(static_cast<long>(j) * n + i, c) =
              flow[index(((block * n + i) * (columns - 1) + c) * kLanes + l)];
      }
    }
  });
  for (int at = 0; at < jobs; ++at) {
    result.misfit += costs[index(at)];
    result.squares += squares[index(at)];
    if (!sensitivities) continue;
    result.theta_theta += theta_rows[index(at)].middleCols(n, p);
    result.theta_residual += theta_rows[index(at)].col(columns - 1);
  }
  result.squares = result.squares.cwiseProduct(noise_.cwiseAbs2());
  if (sensitivities)
    for (int a = 0; a < p; ++a)
      for (int b = 0; b < a; ++b) result.theta_theta(a, b) = result.theta_theta(b, a);
  return result;
}

std::vector<Matrix> Shooting::path(const Support& support, const Vector& theta,
                                   const Matrix& starts) const {
  const int n = dimension();
  const AlignedDoubles states =
      aligned_doubles(index(static_cast<long>(blocks_) * slots_ * n * kLanes));
  run_jobs(support, theta, starts, false, states.get());
  std::vector<Matrix> result;
  for (const ObservedRun& r : runs_) result.emplace_back(static_cast<long>(r.times.size()), n);
  for (int j = 0; j < segments(); ++j)
    for (int k = 0; k < segment(j).count; ++k)
      for (int i = 0; i < n; ++i)
        result[index(segment(j).run)](segment(j).first + k, i) = states[index(
            ((static_cast<long>(j / kLanes) * slots_ + k) * n + i) * kLanes + j % kLanes)];
  return result;
}

double Shooting::segment_time() const {
  double time = 0, many = 0;
  for (const Segment& s : segments_) {
    if (s.last) continue;
    const auto& times = runs_[index(s.run)].times;
    time += times[index(s.first + s.intervals())] - times[index(s.first)];
    many += 1;
  }
  return many > 0 ? time / many : 0;
}

Vector Shooting::flow_error(const Flow& other, const Support& support, const Vector& theta,
                            const Matrix& starts) const {
  const Shooting finer(runs_, library_, per_segment_, other, threads_, budget_);
  const Matrix a = evaluate(support, theta, starts, false).ends;
  const Matrix b = finer.evaluate(support, theta, starts, false).ends;
  return (a - b).cwiseAbs().colwise().maxCoeff().transpose();
}

double continuity_cost(const Shooting& shooting, const Shooting::Evaluation& e,
                       const Matrix& starts, const Vector& gap_sd) {
  double sum = 0;
  for (int j = 0; j + 1 < shooting.segments(); ++j) {
    if (shooting.segment(j).last) continue;
    for (int i = 0; i < shooting.dimension(); ++i) {
      const double gap = (e.ends(j, i) - starts(j + 1, i)) / gap_sd[i];
      sum += gap * gap;
    }
  }
  return sum;
}

double total_cost(const Shooting& shooting, const Shooting::Evaluation& e, const Vector& theta,
                  const Matrix& starts, const Vector& gap_sd) {
  return e.misfit + continuity_cost(shooting, e, starts, gap_sd) +
         kThetaPrior * theta.squaredNorm();
}

Sweep sweep(const Shooting& shooting, const Shooting::Evaluation& e, const Vector& theta,
            const Matrix& starts, const Vector& gap_sd, double damping) {
  const int n = shooting.dimension(), p = static_cast<int>(theta.size());
  const long rows = static_cast<long>(shooting.segments()) * n;
  shooting.spend(static_cast<double>(rows) * (2.0 * p * p + 4.0 * n * p + 10.0 * n * n));
  Sweep s;
  s.m.resize(rows, 1);
  s.a = Matrix::Zero(rows, 1);
  s.E.resize(rows, p);
  s.D = Matrix::Zero(rows, p);
  s.G = Matrix::Zero(rows, n);
  s.M.resize(rows, n);
  s.information = Matrix::Zero(rows, n);
  Matrix X(rows, p);     // H_ss E + H_sθ
  Matrix rest(rows, 1);  // H_ss m - g_s
  Matrix information = Matrix::Zero(n, n);
  const Vector W = gap_sd.cwiseAbs2(), variance = shooting.noise().cwiseAbs2();
  for (int j = 0; j < shooting.segments(); ++j) {
    const long at = static_cast<long>(j) * n;
    const auto& segment = shooting.segment(j);
    Matrix Hss = e.state_rows.block(at, 0, n, n);
    const auto Hst = e.state_rows.block(at, n, n, p);
    const auto gs = e.state_rows.block(at, n + p, n, 1);
    const auto A = e.flow.block(at, 0, n, n);
    const auto P = e.flow.block(at, n, n, p);
    const auto a = s.a.middleRows(at, n);
    const auto D = s.D.middleRows(at, n);
    if (segment.first == 0) information.setZero();
    if (damping > 0)
      for (int i = 0; i < n; ++i)
        Hss(i, i) += damping * segment.count / (shooting.noise()[i] * shooting.noise()[i]);
    // Directions of the state that nothing observes are left where they are.
    Matrix total = information + Hss;
    total.diagonal().array() +=
        1e-13 * (total.diagonal().cwiseProduct(variance)).maxCoeff() / variance.array() + 1e-300;
    const Eigen::LLT<Eigen::MatrixXd> factor(total);
    const Matrix M = factor.solve(Eigen::MatrixXd::Identity(n, n));
    s.M.middleRows(at, n) = M;
    s.information.middleRows(at, n) = information;
    s.E.middleRows(at, n).noalias() = D - M * (Hss * D + Hst);
    s.m.middleRows(at, n) = a + M * (gs - Hss * a);
    X.middleRows(at, n).noalias() = Hss * s.E.middleRows(at, n) + Hst;
    rest.middleRows(at, n) = Hss * s.m.middleRows(at, n) - gs;
    const Matrix AM = A * M;
    if (segment.last) {
      s.ends.push_back(
          {A * s.m.middleRows(at, n), A * s.E.middleRows(at, n) + P, AM * A.transpose()});
      continue;
    }
    Matrix V = AM * A.transpose();
    V.diagonal() += W;
    information = Eigen::LLT<Eigen::MatrixXd>(V).solve(Eigen::MatrixXd::Identity(n, n));
    information = (0.5 * (information + information.transpose())).eval();
    s.G.middleRows(at, n) = AM.transpose() * information;
    s.a.middleRows(at + n, n) =
        A * s.m.middleRows(at, n) + (e.ends.row(j) - starts.row(j + 1)).transpose();
    s.D.middleRows(at + n, n).noalias() = A * s.E.middleRows(at, n) + P;
  }
  const auto Hst = e.state_rows.middleCols(n, p);
  s.Q = e.theta_theta;
  s.Q.noalias() += s.D.transpose() * X;
  s.Q.noalias() += Hst.transpose() * s.E;
  s.Q = (0.5 * (s.Q + s.Q.transpose())).eval();
  s.Q.diagonal().array() += kThetaPrior;
  s.gamma = e.theta_residual - s.D.transpose() * rest.col(0) - Hst.transpose() * s.m.col(0) -
            kThetaPrior * theta;
  return s;
}

Vector theta_step(const Sweep& s, double damping) {
  Eigen::MatrixXd Q = s.Q;
  // Scaled to a unit diagonal: coefficients of high monomials differ by many orders.
  const Vector scale = Q.diagonal().cwiseSqrt().cwiseInverse();
  Q = scale.asDiagonal() * Q * scale.asDiagonal();
  Q.diagonal().array() += damping;
  return scale.cwiseProduct(Eigen::LDLT<Eigen::MatrixXd>(Q).solve(scale.cwiseProduct(s.gamma)));
}

Matrix state_steps(const Shooting& shooting, const Sweep& s, const Vector& dtheta) {
  const int n = shooting.dimension();
  const Vector given = s.m.col(0) + s.E * dtheta, expected = s.a.col(0) + s.D * dtheta;
  Matrix steps(shooting.segments(), n);
  for (int j = shooting.segments() - 1; j >= 0; --j) {
    const long at = static_cast<long>(j) * n;
    Vector ds = given.segment(at, n);
    if (!shooting.segment(j).last)
      ds += s.G.middleRows(at, n) * (steps.row(j + 1).transpose() - expected.segment(at + n, n));
    steps.row(j) = ds.transpose();
  }
  return steps;
}

Vector likelier_gaps(const Shooting& shooting, const Shooting::Evaluation& e, const Sweep& s,
                     const Matrix& starts, const Vector& gap_sd, const Matrix& covariance) {
  const int n = shooting.dimension();
  const Vector W = gap_sd.cwiseAbs2();
  Vector squares = Vector::Zero(n), determined = Vector::Zero(n);
  Matrix P = s.M.bottomRows(n),
         Z = s.E.bottomRows(
             n);  // of the state at the start of segment j + 1: its covariance given θ, its slope
  for (int j = shooting.segments() - 2; j >= 0; --j) {
    const long at = static_cast<long>(j) * n;
    if (shooting.segment(j).last) {
      P = s.M.middleRows(at, n);
      Z = s.E.middleRows(at, n);
      continue;
    }
    const auto information = s.information.middleRows(at + n, n);  // V⁻¹
    const Matrix away = Z - s.D.middleRows(at + n, n);
    // Cov(η | data) = W - W V⁻¹ (V - P - X Q⁻¹ Xᵀ) V⁻¹ W, X = ∂(s - a)/∂θ.
    const Matrix left =
        information - information * (P + away * covariance * away.transpose()) * information;
    for (int i = 0; i < n; ++i) {
      const double gap = e.ends(j, i) - starts(j + 1, i);
      squares[i] += gap * gap;
      determined[i] += W[i] * left(i, i);
    }
    const auto G = s.G.middleRows(at, n);
    const auto M = s.M.middleRows(at, n);
    const auto A = e.flow.block(at, 0, n, n);
    P = (M - M * A.transpose() * G.transpose() + G * P * G.transpose()).eval();  // G V = M Aᵀ
    Z = (s.E.middleRows(at, n) + G * away).eval();
  }
  Vector likelier = gap_sd;
  for (int i = 0; i < n; ++i)
    if (determined[i] > 0) likelier[i] = std::sqrt(squares[i] / determined[i]);
  return likelier;
}

double gaps_needed(const Shooting& shooting, const Support& support, const Vector& theta,
                   const Matrix& starts, const Vector& gap_sd, const Matrix& covariance,
                   const Vector& active) {
  constexpr double kLevel = 0.95, kNormal = 1.959964;
  const int n = shooting.dimension(), segments = shooting.segments();
  const long rows = static_cast<long>(segments) * n, p = theta.size();
  // Of the forecasts that are at the start of segment j now: state, covariance from gaps, slope in
  // θ.
  Matrix now = starts, S = Matrix::Zero(rows, n), Z = Matrix::Zero(rows, p);
  std::vector<char> under_way(index(segments), 1);
  std::vector<double> needed;
  int counted = 1;
  constexpr int kMostLeads = 100;
  for (int lead = 1; lead <= std::min(segments / 4, kMostLeads); ++lead) {
    if (std::find(under_way.begin(), under_way.end(), 1) == under_way.end()) break;
    const auto e = shooting.evaluate(support, theta, now, true);
    // Backwards, so that each moves on to a place that has been left.
    for (int j = segments - 2; j >= 0; --j) {
      const long at = static_cast<long>(j) * n;
      const auto A = e.flow.block(at, 0, n, n);
      now.row(j + 1) = e.ends.row(j);
      S.middleRows(at + n, n) = (A * S.middleRows(at, n) * A.transpose()).eval();
      S.middleRows(at + n, n).diagonal() += gap_sd.cwiseAbs2();
      Z.middleRows(at + n, n) = (A * Z.middleRows(at, n) + e.flow.block(at, n, n, p)).eval();
      under_way[index(j + 1)] = under_way[index(j)] && !shooting.segment(j).last &&
                                now.row(j + 1).allFinite() && S.middleRows(at + n, n).allFinite() &&
                                Z.middleRows(at + n, n).allFinite();
      if (!under_way[index(j + 1)]) {
        now.row(j + 1) = starts.row(j + 1);
        S.middleRows(at + n, n).setZero();
        Z.middleRows(at + n, n).setZero();
      } else if (lead == counted) {
        for (int i = 0; i < n; ++i) {
          if (active[i] == 0) continue;
          const double error = (now(j + 1, i) - starts(j + 1, i)) / kNormal;
          const auto slope = Z.row(at + n + i);
          needed.push_back((error * error - slope.dot(covariance * slope.transpose())) /
                           S(at + n + i, i));
        }
      }
    }
    under_way[0] = 0;
    if (lead == counted) counted = std::max(lead + 1, lead * 3 / 2);
  }
  if (needed.empty()) return 1;
  const auto place =
      needed.begin() + static_cast<long>(kLevel * static_cast<double>(needed.size() - 1));
  std::nth_element(needed.begin(), place, needed.end());
  return std::max(1.0, *place);
}

}  // namespace odecast
