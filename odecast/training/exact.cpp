#include "odecast/training/exact.hpp"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"
#include "odecast/training/lbfgs.hpp"

namespace odecast {
void set_polynomial(Network& network, const MonomialBasis& basis, const Eigen::MatrixXd& C) {
  const int F = basis.size(), n = basis.variables(), p = basis.degree();
  Layer &hidden = network.layers[0], &out = network.layers[1];
  hidden.weights.setZero();
  hidden.biases.setZero();
  Eigen::MatrixXd P(F, F);
  for (int m = 0; m < F; ++m) {
    for (int i = 0; i < n; ++i) hidden.weights(m, i) = basis.powers(m)[static_cast<std::size_t>(i)];
    hidden.biases[m] = p - basis.degree(m);
    P.col(m) = basis.expand_power(hidden.weights.row(m), hidden.biases[m]);
  }
  out.weights.setZero();
  out.biases.setZero();
  const Eigen::MatrixXd W2 = P.partialPivLu().solve(C.transpose());  // P W2ᵀ = Cᵀ
  out.weights.leftCols(F) = W2.transpose();
}

ExactObjective::ExactObjective(const RowFactor& factor, int units, double dropout)
    : basis_(factor.basis()),
      n_(basis_.variables()),
      k_(units),
      degree_(basis_.degree()),
      q_(1 - dropout),
      r_(dropout),
      weight_(factor.weight()) {
  const Eigen::MatrixXd triangle = factor.triangle();
  const int F = basis_.size();
  outputs_ = static_cast<int>(triangle.cols()) - F;
  R_ = triangle.topLeftCorner(F, F);
  Rg_ = triangle.topRightCorner(F, outputs_);
  rest_ = triangle.bottomRightCorner(outputs_, outputs_).colwise().squaredNorm();
  for (int m = 0; m < F; ++m) multinomial_.push_back(multinomial(basis_.powers(m), degree_));
  for (; basis_.degree(below_) < degree_; ++below_) {
    multinomial_below_.push_back(multinomial(basis_.powers(below_), degree_ - 1));
    for (int i = 0; i < n_; ++i) product_.push_back(basis_.times(below_, i));
  }
  P_.resize(F, k_);
  S_ = dS_ = dP_ = phi_ = unit_ = P_;
  E_.resize(F, outputs_);
  A_.resize(k_, k_);
  readout_.resize(k_, outputs_);
  W2_.resize(outputs_, k_);
  B2_.resize(outputs_);
  length_.resize(k_);
  b_power_.resize(degree_ + 1);
  cholesky_.compute(Eigen::MatrixXd::Identity(k_, k_));  // sized and, for copies, initialised
}

void ExactObjective::expand(const double* W1, const double* B1) {
  const int F = basis_.size();
  for (int j = 0; j < k_; ++j) {
    double *phi = phi_.col(j).data(), *column = P_.col(j).data();
    basis_.evaluate(W1 + j * n_, phi);
    b_power_[0] = 1;
    for (int i = 1; i <= degree_; ++i) b_power_[i] = b_power_[i - 1] * B1[j];
    for (int m = 0; m < F; ++m)
      column[m] =
          multinomial_[static_cast<std::size_t>(m)] * phi[m] * b_power_[degree_ - basis_.degree(m)];
  }
  S_.noalias() = R_.triangularView<Eigen::Upper>() * P_;
  length_ = S_.colwise().norm();
}

double ExactObjective::weighted(const PolynomialKernel& kernel, const Vector& weights) {
  expand(kernel.W1.data(), kernel.B1.data());
  E_.noalias() = q_ * S_ * kernel.W2.transpose() - Rg_;
  E_.noalias() += R_.col(0) * kernel.B2.transpose();
  double sum = 0;
  for (int o = 0; o < outputs_; ++o)
    sum += weights[o] * (E_.col(o).squaredNorm() + rest_[o] +
                         q_ * r_ * kernel.W2.row(o).cwiseAbs2().dot(length_.cwiseAbs2()));
  return sum / weight_;
}

double ExactObjective::operator()(const Vector& theta, Vector& gradient) {
  const double* B1 = theta.data() + k_ * n_;
  expand(theta.data(), B1);
  const Eigen::Index rows = S_.rows() - 1;

  // The best read-out, for columns of length 1: Ŵ2_j = |S_j| W2_j.
  for (int j = 0; j < k_; ++j) unit_.col(j) = S_.col(j) / (length_[j] > 0 ? length_[j] : 1);
  A_.setZero();
  A_.diagonal().setConstant(q_ * r_);
  A_.selfadjointView<Eigen::Lower>().rankUpdate(unit_.bottomRows(rows).transpose(), q_ * q_);
  cholesky_.compute(A_);
  readout_.noalias() = q_ * unit_.bottomRows(rows).transpose() * Rg_.bottomRows(rows);
  cholesky_.solveInPlace(readout_);

  // E, its first row zero, and J.
  E_.row(0).setZero();
  E_.bottomRows(rows).noalias() = q_ * unit_.bottomRows(rows) * readout_;
  E_.bottomRows(rows) -= Rg_.bottomRows(rows);
  const double value =
      (E_.squaredNorm() + rest_.sum() + q_ * r_ * readout_.squaredNorm()) / weight_;
  for (int j = 0; j < k_; ++j)
    W2_.col(j) = readout_.row(j).transpose() / (length_[j] > 0 ? length_[j] : 1);
  B2_ = (Rg_.row(0) - q_ * S_.row(0) * W2_.transpose()).transpose() / R_(0, 0);

  dS_.noalias() = E_ * W2_;
  for (int j = 0; j < k_; ++j)
    dS_.col(j) = (2 / weight_) * (q_ * dS_.col(j) + q_ * r_ * W2_.col(j).squaredNorm() * S_.col(j));
  dP_.noalias() = R_.transpose().triangularView<Eigen::Lower>() * dS_;

  for (int j = 0; j < k_; ++j) {
    const double *phi = phi_.col(j).data(), *dP = dP_.col(j).data();
    double* dw = gradient.data() + j * n_;
    for (int i = 0; i < n_; ++i) dw[i] = 0;
    double db = 0;
    b_power_[0] = 1;
    for (int i = 1; i < degree_; ++i) b_power_[i] = b_power_[i - 1] * B1[j];
    for (int m = 0; m < below_; ++m) {
      const double e = degree_ * multinomial_below_[static_cast<std::size_t>(m)] * phi[m] *
                       b_power_[degree_ - 1 - basis_.degree(m)];
      db += e * dP[m];
      for (int i = 0; i < n_; ++i) dw[i] += e * dP[product_[static_cast<std::size_t>(m * n_ + i)]];
    }
    gradient[k_ * n_ + j] = db;
  }
  return value;
}

namespace {

/// Unknowns up to which the Hessian is worth its four gradients per unknown.
constexpr Eigen::Index kMostPolished = 200;

/// Newton's method for ∇J = 0 from a minimum that L-BFGS has found. Near it J is flat to round-off
/// where its gradient is not: J decides a step only to the square root of that. The length of (w_j,
/// b_j) does not matter, as W2_j undoes it: it is set to 1, and c Σ_j n_j n_jᵀ with n_j along it
/// makes the Hessian regular there. The Hessian is by differences of the gradient, of fourth order,
/// and is kept while steps shorten the gradient. What depends on the minimum then does so nearly to
/// round-off, whatever the units of the data were.
void polish(ExactObjective& objective, int n, int k, Vector& theta, const Observer& observer) {
  const auto size = theta.size();
  if (size > kMostPolished) return;
  const auto normalise = [&](Vector& x) {
    for (int j = 0; j < k; ++j) {
      const double length = root_sum_square(x.segment(j * n, n).norm(), x[k * n + j]);
      if (!(length > 0)) continue;
      x.segment(j * n, n) /= length;
      x[k * n + j] /= length;
    }
  };
  Vector start = theta, gradient(size), next_gradient(size), beside;
  normalise(start);
  const double value = objective(start, gradient);
  for (int round = 0; round < 3 && gradient.norm() > 1e-13 * value; ++round) {
    Eigen::MatrixXd H(size, size);
    for (Eigen::Index i = 0; i < size; ++i) {
      constexpr double h = 1e-3;
      observer("training", 1);
      H.col(i).setZero();
      for (const auto& [steps, weight] : {std::pair{-2, 1.0}, {-1, -8.0}, {1, 8.0}, {2, -1.0}}) {
        beside = start;
        beside[i] += steps * h;
        objective(beside, next_gradient);
        H.col(i) += weight / (12 * h) * next_gradient;
      }
    }
    H = (0.5 * (H + H.transpose())).eval();
    const double large = H.cwiseAbs().maxCoeff();
    for (int j = 0; j < k; ++j) {
      Vector along = Vector::Zero(size);
      along.segment(j * n, n) = start.segment(j * n, n);
      along[k * n + j] = start[k * n + j];
      H += large * along * along.transpose();
    }
    const Eigen::LDLT<Eigen::MatrixXd> factor(H);
    const double before = gradient.norm();
    for (int step = 0; step < 20; ++step) {
      Vector next = start - factor.solve(gradient);
      if (!next.allFinite()) break;
      normalise(next);
      objective(next, next_gradient);
      if (!(next_gradient.norm() < 0.7 * gradient.norm())) break;
      start = next;
      gradient = next_gradient;
    }
    theta = start;
    if (!(gradient.norm() < 0.01 * before)) return;
  }
}

}  // namespace

ExactSummary train_exact(Network& network, const RowFactor& factor, const ExactOptions& options,
                         const Observer& observer) {
  if (options.starts < 1 || options.starts > 100'000)
    throw_usage({"option `starts`", fmt::format("{}", options.starts), "a number from 1 to 100000",
                 "8 is usual."});
  const auto begin = std::chrono::steady_clock::now();
  Layer& hidden = network.layers[0];
  const int n = network.inputs(), k = static_cast<int>(hidden.biases.size());
  const int outputs = network.outputs(), p = hidden.power;
  const MonomialBasis& basis = factor.basis();
  assert(basis.degree() == p && basis.variables() == n);
  const double mask_scale = std::pow(hidden.mask_value(), p);
  ExactSummary summary;
  ExactObjective objective(factor, k, hidden.dropout);
  const auto finish = [&] {
    summary.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return summary;
  };
  if (!std::isfinite(objective.floor())) {
    summary.reason = "the monomials of the data overflow; use `scale` standard";
    return finish();
  }

  if (hidden.dropout == 0 && k >= basis.size()) {
    const Eigen::MatrixXd triangle = factor.triangle();
    const int F = basis.size();
    // Columns to unit length first: monomials of the same data differ by orders of magnitude.
    Eigen::MatrixXd R = triangle.topLeftCorner(F, F);
    Vector length = R.colwise().norm();
    for (auto& l : length) l = l > 0 ? l : 1;
    R = R * length.cwiseInverse().asDiagonal();
    const Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> solver(R);
    const Eigen::MatrixXd C =
        length.cwiseInverse().asDiagonal() * solver.solve(triangle.topRightCorner(F, outputs));
    set_polynomial(network, basis, C.transpose());
    summary.least_squares = summary.converged = true;
    summary.objective = objective.weighted(*polynomial_kernel(network), Vector::Ones(outputs));
    summary.minima = {{summary.objective, 1}};
    summary.reason =
        fmt::format("least squares, solved directly (rank {} of {})", solver.rank(), F);
    return finish();
  }

  struct Start {
    Vector theta;  // W1, B1
    Matrix W2;
    Vector B2;
    LbfgsResult result;
    bool stopped = false;
  };
  std::vector<Start> starts(static_cast<std::size_t>(options.starts));
  const double F = basis.size(), evaluation = 6 * F * F * k;
  const auto bound = [&] {
    return options.budget
               ? Budget::of_seconds(*options.budget - std::chrono::duration<double>(
                                                          std::chrono::steady_clock::now() - begin)
                                                          .count())
               : Budget::of_work(std::max(kExactWork / options.starts, 3 * evaluation));
  };
  for (std::size_t s = 0; s < starts.size(); ++s) summary.seeds.push_back(options.seed + s);
  parallel_for(
      options.threads, starts.size(),
      [&](std::size_t s) {
        Start& start = starts[s];
        ExactObjective own = objective;
        Budget budget = bound();
        // Biases are drawn too: from zero they would have zero slope at even degrees.
        start.theta.resize(static_cast<Eigen::Index>(k) * n + k);
        Stream stream(summary.seeds[s], Purpose::initial_weights, 0);
        for (auto& x : start.theta) x = 2 * stream.uniform() - 1;
        start.result = minimise(
            [&](const Vector& theta, Vector& gradient) {
              pulse();
              budget.spend(evaluation);
              return own(theta, gradient);
            },
            start.theta,
            {.max_iterations = options.max_iterations,
             .gradient_tolerance = options.gradient_tolerance,
             .budget = &budget});
        start.stopped = budget.over();
        Vector ignored(start.theta.size());
        own(start.theta, ignored);
        start.W2 = own.W2();
        start.B2 = own.B2();
      },
      [&](std::size_t begun) {
        observer("training", static_cast<double>(begun) / static_cast<double>(starts.size()));
      });
  std::vector<std::size_t> order;  // of the starts that had any time
  for (std::size_t s = 0; s < starts.size(); ++s) {
    if (starts[s].result.iterations > 0 || !starts[s].stopped) order.push_back(s);
    summary.stopped = summary.stopped || (starts[s].stopped && !starts[s].result.converged);
  }
  if (order.empty()) order.push_back(0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return starts[a].result.value < starts[b].result.value;
  });
  for (const std::size_t s : order) {
    summary.iterations += starts[s].result.iterations;
    const double value = starts[s].result.value;
    // Starts that agree to six digits ended in the same minimum.
    if (!summary.minima.empty() &&
        std::abs(value - summary.minima.back().objective) <= 1e-6 * std::abs(value))
      ++summary.minima.back().count;
    else
      summary.minima.push_back({value, 1});
  }
  // Of starts that end in the same minimum the first is taken, whichever round-off makes the least.
  std::size_t chosen = order.front();
  for (const std::size_t s : order)
    if (starts[s].result.converged && s < chosen &&
        starts[s].result.value <= starts[order.front()].result.value * (1 + 1e-10))
      chosen = s;
  Start& best = starts[chosen];
  if (best.result.converged) {
    polish(objective, n, k, best.theta, observer);
    Vector gradient(best.theta.size());
    best.result.value = objective(best.theta, gradient);
    best.result.gradient =
        best.theta.cwiseProduct(gradient).cwiseAbs().maxCoeff() / best.result.value;
    best.W2 = objective.W2();
    best.B2 = objective.B2();
  }
  summary.objective = best.result.value;
  summary.converged = best.result.converged && !summary.stopped;
  summary.reason = fmt::format(
      "{}; {} of {} starts end in the best of {} minim{}, gradient {:.1e} of the objective",
      summary.converged ? "converged"
      : summary.stopped
          ? fmt::format(
                "stopped at its {} after {} iterations",
                options.budget ? fmt::format("budget of {:g} s", *options.budget) : "bound on work",
                best.result.iterations)
          : "did not converge",
      summary.minima.front().count, starts.size(), summary.minima.size(),
      summary.minima.size() == 1 ? "um" : "a", best.result.gradient);
  hidden.weights = Eigen::Map<const Matrix>(best.theta.data(), k, n);
  hidden.biases = best.theta.tail(k);
  network.layers[1].weights =
      best.W2 / mask_scale;  // the kernel's W2 carries the scale of the mask
  network.layers[1].biases = best.B2;
  return finish();
}

}  // namespace odecast
