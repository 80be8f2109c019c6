#include "odecast/training/exact.hpp"

#include <fmt/format.h>

#include <Eigen/LU>
#include <Eigen/QR>
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/training/lbfgs.hpp"

namespace odecast {
namespace {

/// p! / (α_0! … α_n!), α_0 = p - |α|.
double multinomial(const std::vector<int>& powers, int p) {
  double result = 1;
  int left = p;
  for (const int power : powers)
    for (int i = 1; i <= power; ++i, --left) result = result * left / i;
  return result;
}

int degree_of(const std::vector<int>& powers) {
  int sum = 0;
  for (const int p : powers) sum += p;
  return sum;
}

/// Weights that make the kernel equal to Σ_m C_om φ_m(u), for k >= F: units α with w = α and
/// b = p - |α|, one per monomial u^α. The p-th powers of these forms span all polynomials of degree p
/// (the lattice of a simplex determines its polynomials); for p = 2 they are the polarisation identity.
void set_polynomial(Network& network, const MonomialBasis& basis, const Eigen::MatrixXd& C) {
  const int F = basis.size(), n = basis.variables(), p = basis.degree();
  Layer &hidden = network.layers[0], &out = network.layers[1];
  hidden.weights.setZero();
  hidden.biases.setZero();
  Eigen::MatrixXd P(F, F);
  for (int m = 0; m < F; ++m) {
    for (int i = 0; i < n; ++i)
      hidden.weights(m, i) = basis.powers(m)[static_cast<std::size_t>(i)];
    hidden.biases[m] = p - degree_of(basis.powers(m));
    P.col(m) = basis.expand_power(hidden.weights.row(m), hidden.biases[m]);
  }
  out.weights.setZero();
  out.biases.setZero();
  const Eigen::MatrixXd W2 = P.partialPivLu().solve(C.transpose());  // P W2ᵀ = Cᵀ
  out.weights.leftCols(F) = W2.transpose();
}

}  // namespace

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
  const MonomialBasis lower(n_, degree_ - 1);
  below_ = lower.size();
  for (int m = 0; m < F; ++m) {
    multinomial_.push_back(multinomial(basis_.powers(m), degree_));
    degree_of_.push_back(degree_of(basis_.powers(m)));
  }
  // Monomials of degree < p come first and in the same order in both bases.
  for (int m = 0; m < below_; ++m) {
    multinomial_below_.push_back(multinomial(lower.powers(m), degree_ - 1));
    for (int i = 0; i < n_; ++i) {
      auto powers = lower.powers(m);
      ++powers[static_cast<std::size_t>(i)];
      int found = 0;
      while (basis_.powers(found) != powers) ++found;
      product_.push_back(found);
    }
  }
  P_.resize(F, k_);
  S_ = dS_ = dP_ = phi_ = P_;
  E_.resize(F, outputs_);
  S_norm_.resize(k_);
  W2_norm_.resize(k_);
  b_power_.resize(degree_ + 1);
}

void ExactObjective::expand(const double* theta) {
  const int F = basis_.size();
  const double* b = theta + k_ * n_;
  for (int j = 0; j < k_; ++j) {
    double *phi = phi_.col(j).data(), *column = P_.col(j).data();
    basis_.evaluate(theta + j * n_, phi);
    b_power_[0] = 1;
    for (int i = 1; i <= degree_; ++i) b_power_[i] = b_power_[i - 1] * b[j];
    for (int m = 0; m < F; ++m)
      column[m] = multinomial_[static_cast<std::size_t>(m)] * phi[m] *
                  b_power_[degree_ - degree_of_[static_cast<std::size_t>(m)]];
  }
  S_.noalias() = R_.triangularView<Eigen::Upper>() * P_;
  S_norm_ = S_.colwise().squaredNorm();
}

double ExactObjective::weighted(const Vector& theta, const Vector& weights) {
  expand(theta.data());
  const Eigen::Map<const Matrix> W2(theta.data() + k_ * n_ + k_, outputs_, k_);
  const Eigen::Map<const Vector> B2(theta.data() + k_ * n_ + k_ + outputs_ * k_, outputs_);
  E_.noalias() = q_ * S_ * W2.transpose() - Rg_;
  E_.noalias() += R_.col(0) * B2.transpose();
  double sum = 0;
  for (int o = 0; o < outputs_; ++o)
    sum += weights[o] * (E_.col(o).squaredNorm() + rest_[o] +
                         q_ * r_ * W2.row(o).cwiseAbs2().dot(S_norm_));
  return sum / weight_;
}

double ExactObjective::operator()(const Vector& theta, Vector& gradient) {
  expand(theta.data());
  const Eigen::Index w2 = k_ * n_ + k_, b2 = w2 + outputs_ * k_;
  const Eigen::Map<const Matrix> W2(theta.data() + w2, outputs_, k_);
  const Eigen::Map<const Vector> B2(theta.data() + b2, outputs_);
  const double scale = 2 / weight_;

  E_.noalias() = S_.lazyProduct(W2.transpose());
  E_ *= q_;
  E_ -= Rg_;
  for (int o = 0; o < outputs_; ++o) E_.col(o) += B2[o] * R_.col(0);
  W2_norm_ = W2.colwise().squaredNorm();
  const double value =
      (E_.squaredNorm() + rest_.sum() + q_ * r_ * W2_norm_.dot(S_norm_)) / weight_;

  Eigen::Map<Matrix> dW2(gradient.data() + w2, outputs_, k_);
  dW2.noalias() = E_.transpose().lazyProduct(S_);
  dW2 = scale * (q_ * dW2 + q_ * r_ * (W2 * S_norm_.asDiagonal()));
  for (int o = 0; o < outputs_; ++o) gradient[b2 + o] = scale * E_.col(o).dot(R_.col(0));

  dS_.noalias() = E_.lazyProduct(W2);
  for (int j = 0; j < k_; ++j)
    dS_.col(j) = scale * (q_ * dS_.col(j) + q_ * r_ * W2_norm_[j] * S_.col(j));
  dP_.noalias() = R_.transpose().triangularView<Eigen::Lower>() * dS_;

  const double* b = theta.data() + k_ * n_;
  for (int j = 0; j < k_; ++j) {
    const double *phi = phi_.col(j).data(), *dP = dP_.col(j).data();
    double* dw = gradient.data() + j * n_;
    for (int i = 0; i < n_; ++i) dw[i] = 0;
    double db = 0;
    b_power_[0] = 1;
    for (int i = 1; i < degree_; ++i) b_power_[i] = b_power_[i - 1] * b[j];
    for (int m = 0; m < below_; ++m) {
      const double e = degree_ * multinomial_below_[static_cast<std::size_t>(m)] * phi[m] *
                       b_power_[degree_ - 1 - degree_of_[static_cast<std::size_t>(m)]];
      db += e * dP[m];
      for (int i = 0; i < n_; ++i) dw[i] += e * dP[product_[static_cast<std::size_t>(m * n_ + i)]];
    }
    gradient[k_ * n_ + j] = db;
  }
  return value;
}

ExactSummary train_exact(Network& network, const RowFactor& factor, const ExactOptions& options,
                         const Observer& observer) {
  if (options.starts < 1 || options.starts > 100'000)
    throw_usage({"option --starts", fmt::format("{}", options.starts), "a number from 1 to 100000",
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
    summary.reason = "the monomials of the data overflow; use --scale standard";
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
    summary.objective = objective.floor();
    Vector ignored(parameter_count(network));
    summary.objective = objective(parameters(network), ignored);
    summary.minima = {{summary.objective, 1}};
    summary.reason = fmt::format("least squares, solved directly (rank {} of {})", solver.rank(), F);
    return finish();
  }

  struct Start {
    Vector theta;
    LbfgsResult result;
  };
  std::vector<Start> starts(static_cast<std::size_t>(options.starts));
  for (std::size_t s = 0; s < starts.size(); ++s) summary.seeds.push_back(options.seed + s);
  parallel_for(
      options.threads, starts.size(),
      [&](std::size_t s) {
        Start& start = starts[s];
        ExactObjective own = objective;
        start.theta = parameters(make_network(
            n, {{k, Activation::power, p, hidden.dropout, false}}, outputs, summary.seeds[s]));
        start.result = minimise(
            [&](const Vector& theta, Vector& gradient) { return own(theta, gradient); }, start.theta,
            {.max_iterations = options.max_iterations,
             .gradient_tolerance = options.gradient_tolerance});
      },
      [&](std::size_t begun) {
        observer("training", static_cast<double>(begun) / static_cast<double>(starts.size()));
      });
  std::vector<std::size_t> order(starts.size());
  for (std::size_t s = 0; s < order.size(); ++s) order[s] = s;
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
  const Start& best = starts[order.front()];
  summary.objective = best.result.value;
  summary.converged = best.result.converged;
  summary.reason = fmt::format(
      "{}; {} of {} starts end in the best of {} minim{}, gradient {:.1e} of the objective",
      summary.converged ? "converged" : "did not converge", summary.minima.front().count,
      starts.size(), summary.minima.size(), summary.minima.size() == 1 ? "um" : "a",
      best.result.gradient);
  set_parameters(network, best.theta);
  network.layers[1].weights /= mask_scale;  // the kernel's W2 carries the scale of the mask
  return finish();
}

}  // namespace odecast
