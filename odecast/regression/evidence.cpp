#include "odecast/regression/evidence.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace odecast {
namespace {

/// The factor of [A_S / s; t^-½], and what it leaves of all columns.
struct Solved {
  Vector prior;  ///< t of the terms
  Estimate posterior;
  double log_determinant;  ///< ln det(s² I + A diag(t) Aᵀ)
  double quadratic;        ///< yᵀ (s² I + A diag(t) Aᵀ)⁻¹ y
};

double prior_variance(const EvidenceProblem& p, const EvidenceFit& fit, int q) {
  const auto at = static_cast<std::size_t>(q);
  const double sd = fit.prior[static_cast<std::size_t>(p.group[at])] / p.size[at];
  return sd * sd;
}

Eigen::MatrixXd stacked(const EvidenceProblem& p, const EvidenceFit& fit, Vector& prior) {
  const auto& terms = fit.posterior.terms;
  const auto rows = p.triangle.rows(), count = static_cast<Eigen::Index>(terms.size());
  const double s = std::sqrt(fit.variance);
  Eigen::MatrixXd B = Eigen::MatrixXd::Zero(rows + count, count);
  prior.resize(count);
  for (Eigen::Index c = 0; c < count; ++c) {
    const int q = terms[static_cast<std::size_t>(c)];
    prior[c] = prior_variance(p, fit, q);
    B.col(c).head(q + 1) = p.triangle.col(q).head(q + 1) / s;
    B(rows + c, c) = 1 / std::sqrt(prior[c]);
  }
  return B;
}

Solved solve(const EvidenceProblem& p, const EvidenceFit& fit) {
  Solved result;
  Eigen::MatrixXd B = stacked(p, fit, result.prior);
  const auto count = B.cols();
  Eigen::VectorXd y = Eigen::VectorXd::Zero(B.rows());
  y.head(p.triangle.rows()) = p.triangle.col(p.triangle.cols() - 1) / std::sqrt(fit.variance);
  const Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(B);
  y.applyOnTheLeft(qr.householderQ().adjoint());
  const auto R = B.topRows(count).triangularView<Eigen::Upper>();
  const Eigen::MatrixXd root = R.solve(Eigen::MatrixXd::Identity(count, count));
  result.posterior.terms = fit.posterior.terms;
  result.posterior.x = R.solve(y.head(count));
  result.posterior.covariance = root * root.transpose();  // Σ = R⁻¹ R⁻ᵀ
  result.log_determinant = p.rows * std::log(fit.variance) + result.prior.array().log().sum() +
                           2 * B.topRows(count).diagonal().array().abs().log().sum();
  result.quadratic = y.tail(y.size() - count).squaredNorm();
  return result;
}

/// One round of the fixed point; how much it moved, relative.
double renew(const EvidenceProblem& p, const Solved& solved, EvidenceFit& fit) {
  const auto& terms = solved.posterior.terms;
  std::vector<double> square(fit.prior.size()), determined(fit.prior.size());
  const auto P = p.triangle.cols() - 1;
  Eigen::VectorXd rest = p.triangle.col(P);
  double all = 0;
  for (std::size_t c = 0; c < terms.size(); ++c) {
    const auto at = static_cast<Eigen::Index>(c);
    const auto q = static_cast<std::size_t>(terms[c]), g = static_cast<std::size_t>(p.group[q]);
    const double x = solved.posterior.x[at];
    rest.head(terms[c] + 1) -= x * p.triangle.col(terms[c]).head(terms[c] + 1);
    square[g] += p.size[q] * p.size[q] * x * x;
    determined[g] += 1 - solved.posterior.covariance(at, at) / solved.prior[at];
  }
  double moved = 0;
  const auto set = [&moved](double& value, double next) {
    moved = std::max(moved, std::abs(next / value - 1));
    value = next;
  };
  for (std::size_t g = 0; g < square.size(); ++g) {
    if (!(square[g] > 0 && determined[g] > 0)) continue;
    all += determined[g];
    set(fit.prior[g], std::sqrt(square[g] / determined[g]));
  }
  fit.misfit = rest.squaredNorm() / std::max(1.0, p.rows - all);
  // The factor itself errs by round-off of |y| in every entry: residuals below say nothing.
  constexpr double round_off = 4 * 0x1p-52;
  const double floor = std::max(1e-290, round_off * round_off * p.triangle.col(P).squaredNorm());
  set(fit.variance, std::max({p.least_variance, fit.misfit, floor}));
  return moved;
}

/// Posterior, τ and s for the terms in `fit`.
Solved settle(const EvidenceProblem& p, EvidenceFit& fit) {
  constexpr int most = 50;
  constexpr double enough = 1e-3;  // of a scale
  Solved solved = solve(p, fit);
  for (int round = 0; round < most && renew(p, solved, fit) > enough; ++round)
    solved = solve(p, fit);
  solved = solve(p, fit);
  fit.posterior = solved.posterior;
  fit.log_evidence = -0.5 * (p.rows * std::log(2 * std::numbers::pi) + solved.log_determinant +
                             p.log_determinant + solved.quadratic);
  fit.log_prior = 0;
  for (const int q : fit.posterior.terms) fit.log_prior -= p.price[static_cast<std::size_t>(q)];
  return solved;
}

/// Where the fixed point starts: all of y is explained by each group, and s as small as it may be.
EvidenceFit started(const EvidenceProblem& p, std::vector<int> terms) {
  EvidenceFit fit;
  const auto P = p.triangle.cols() - 1;
  const int groups = p.group.empty() ? 0 : 1 + *std::max_element(p.group.begin(), p.group.end());
  // |A_q x_q| = |y| for the column of most weight in its group.
  const double y = p.triangle.col(P).norm();
  std::vector<double> weight(static_cast<std::size_t>(groups));
  for (Eigen::Index q = 0; q < P; ++q) {
    const auto at = static_cast<std::size_t>(q);
    double& most = weight[static_cast<std::size_t>(p.group[at])];
    most = std::max(most, p.triangle.col(q).norm() / p.size[at]);
  }
  for (const double w : weight) fit.prior.push_back(w > 0 && y > 0 ? y / w : 1);
  fit.variance = p.least_variance > 0 ? p.least_variance : std::max(1e-290, 1e-6 * y * y / p.rows);
  fit.posterior.terms = std::move(terms);
  return fit;
}

}  // namespace

EvidenceProblem equation_problem(const RowFactor& factor, int output, const LinearTerms& terms) {
  const int F = factor.columns();
  const Eigen::MatrixXd R = factor.triangle();
  EvidenceProblem p;
  p.triangle = Eigen::MatrixXd::Zero(F + 1, F + 1);
  p.triangle.topLeftCorner(F, F) = R.topLeftCorner(F, F);
  p.triangle.col(F).head(F) = R.col(F + output).head(F);
  p.triangle(F, F) = R.col(F + output).tail(R.rows() - F).norm();
  p.rows = static_cast<double>(factor.rows());
  for (int m = 0; m < F; ++m) {
    const double size = R.col(m).norm() / std::sqrt(factor.weight());
    p.group.push_back(0);
    p.size.push_back(size > 0 ? size : 1);
    p.price.push_back(terms.price(m));
  }
  return p;
}

EvidenceFit evidence_fit(const EvidenceProblem& problem, std::vector<int> terms) {
  EvidenceFit fit = started(problem, std::move(terms));
  settle(problem, fit);
  return fit;
}

EvidenceFit evidence_search(const EvidenceProblem& p, std::vector<int> terms,
                            const std::vector<int>& candidates) {
  EvidenceFit fit = started(p, std::move(terms));
  settle(p, fit);
  EvidenceFit best = fit;
  for (std::size_t round = 0; round < 2 * candidates.size() + 2; ++round) {
    // Out, one at a time, at the present τ and s.
    const auto gain = [&](int q, double x, double variance) {
      return 0.5 * (std::log(prior_variance(p, fit, q) / variance) - x * x / variance) +
             p.price[static_cast<std::size_t>(q)];
    };
    bool changed = false;
    for (;;) {
      const Estimate& e = fit.posterior;
      Eigen::Index worst = -1;
      double highest = 0;
      for (Eigen::Index c = 0; c < e.x.size(); ++c) {
        const double g = gain(e.terms[static_cast<std::size_t>(c)], e.x[c], e.covariance(c, c));
        if (g > highest) {
          highest = g;
          worst = c;
        }
      }
      if (worst < 0) break;
      leave_out(fit.posterior, worst);
      changed = true;
    }
    if (changed) settle(p, fit);
    // In: the one of most worth.
    Vector ignored;
    Eigen::MatrixXd B = stacked(p, fit, ignored);
    const auto count = B.cols(), rows = p.triangle.rows();
    const Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(B);
    Eigen::MatrixXd rest =
        Eigen::MatrixXd::Zero(B.rows(), static_cast<Eigen::Index>(candidates.size()) + 1);
    const double s = std::sqrt(fit.variance);
    for (std::size_t c = 0; c < candidates.size(); ++c)
      rest.col(static_cast<Eigen::Index>(c)).head(rows) = p.triangle.col(candidates[c]) / s;
    const auto last = rest.cols() - 1;
    rest.col(last).head(rows) = p.triangle.col(p.triangle.cols() - 1) / s;
    rest.applyOnTheLeft(qr.householderQ().adjoint());
    int added = -1;
    double highest = 0;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const int q = candidates[c];
      if (std::binary_search(fit.posterior.terms.begin(), fit.posterior.terms.end(), q)) continue;
      const auto a = rest.col(static_cast<Eigen::Index>(c)).tail(rest.rows() - count);
      const double t = prior_variance(p, fit, q), lambda = a.squaredNorm(),
                   pull = a.dot(rest.col(last).tail(rest.rows() - count));
      const double worth = 0.5 * (t * pull * pull / (1 + t * lambda) - std::log1p(t * lambda)) -
                           p.price[static_cast<std::size_t>(q)];
      if (worth > highest) {
        highest = worth;
        added = q;
      }
    }
    if (added >= 0) {
      auto& now = fit.posterior.terms;
      now.insert(std::lower_bound(now.begin(), now.end(), added), added);
      settle(p, fit);
    }
    // τ and s move with the set: only what is better in the end counts, so that this ends.
    if (fit.score() > best.score() + 1e-9)
      best = fit;
    else if (round > 0 || (!changed && added < 0))
      break;
  }
  return best;
}

}  // namespace odecast
