#include "odecast/training/weak_regression.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "odecast/core/banded.hpp"
#include "odecast/core/error.hpp"
#include "odecast/training/selection.hpp"

namespace odecast {
namespace {

/// Rows [first, last) of one segment.
struct Range {
  Eigen::Index first, last;
};

std::vector<Range> ranges(const WeakRows& rows) {
  std::vector<Range> all;
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    const auto segment = rows.functionals[static_cast<std::size_t>(k)].segment;
    if (all.empty() ||
        rows.functionals[static_cast<std::size_t>(all.back().first)].segment != segment)
      all.push_back({k, k});
    all.back().last = k + 1;
  }
  return all;
}

/// J_i of every observation of a segment, n equations × all variables each; empty for coefficients that are 0.
Matrix jacobians(const WeakRows& rows, std::size_t segment, const MonomialBasis& basis,
                 const Matrix& coefficients) {
  if (coefficients.isZero(0)) return {};
  const Matrix& states = rows.states[segment];
  const int n = rows.dimension(), variables = basis.variables();
  Matrix J(states.rows() * n, variables), slopes(basis.size(), variables);
  Vector phi(basis.size());
  for (Eigen::Index i = 0; i < states.rows(); ++i) {
    debiased_monomials(basis, states.row(i).data(), rows.noise, phi.data(), &slopes);
    J.middleRows(i * n, n).noalias() = coefficients * slopes;
  }
  return J;
}

/// Test functions a quarter of a radius apart nearly depend on each other; so much of each diagonal
/// entry is added that the factor exists.
constexpr double kNugget = 1e-9;

BandedCholesky factored(BandedCholesky covariance) {
  for (double nugget = kNugget;; nugget *= 10) {
    BandedCholesky trial = covariance;
    for (Eigen::Index i = 0; i < trial.size(); ++i) trial.at(i, i) *= 1 + nugget;
    if (trial.factor()) return trial;
  }
}

/// Calls visit(k, l, first, last) for the pairs l <= k of a range that share observations, with the first of them and one past
/// the last. Firsts and lasts never decrease along the rows, so that those which meet row k follow each other.
template <class Visit>
void for_each_pair(const WeakRows& rows, const Range& range, Visit visit) {
  for (Eigen::Index k = range.first; k < range.last; ++k)
    for (Eigen::Index l = k; l >= range.first; --l) {
      const auto &a = rows.functionals[static_cast<std::size_t>(k)],
                 &b = rows.functionals[static_cast<std::size_t>(l)];
      const int first = std::max(a.first, b.first), last = std::min(a.last(), b.last());
      if (first >= last) break;
      visit(k, l, first, last);
    }
}

Eigen::Index overlap(const WeakRows& rows, const Range& range) {
  Eigen::Index most = 0;
  for_each_pair(rows, range, [&](Eigen::Index k, Eigen::Index l, int, int) { most = std::max(most, k - l); });
  return most;
}

/// The covariance of all equations of a segment: entry (k n + o, l n + p).
BandedCholesky joint_covariance(const WeakRows& rows, const Range& range, const Matrix& J) {
  const int n = rows.dimension();
  const Vector S = rows.noise.cwiseAbs2();
  BandedCholesky C((range.last - range.first) * n, overlap(rows, range) * n + n - 1);
  Matrix JS, JSJ;
  if (J.size() > 0) {
    JS = J * S.asDiagonal();
    JSJ.resize(J.rows(), n);
    for (Eigen::Index i = 0; i < J.rows(); i += n)
      JSJ.middleRows(i, n).noalias() = JS.middleRows(i, n) * J.middleRows(i, n).transpose();
  }
  Matrix block(n, n);
  for_each_pair(rows, range, [&](Eigen::Index k, Eigen::Index l, int first, int last) {
    const auto &a = rows.functionals[static_cast<std::size_t>(k)],
               &b = rows.functionals[static_cast<std::size_t>(l)];
    block.setZero();
    double ss = 0;
    for (int i = first; i < last; ++i) {
      const double sk = a.rule.slope[static_cast<std::size_t>(i - a.first)],
                   vk = a.rule.value[static_cast<std::size_t>(i - a.first)],
                   sl = b.rule.slope[static_cast<std::size_t>(i - b.first)],
                   vl = b.rule.value[static_cast<std::size_t>(i - b.first)];
      ss += sk * sl;
      if (J.size() > 0)
        block.noalias() += vk * vl * JSJ.middleRows(i * n, n) -
                           sk * vl * JS.block(i * n, 0, n, n).transpose() -
                           vk * sl * JS.block(i * n, 0, n, n);
    }
    block.diagonal() += ss * S.head(n);
    if (k == l) block.diagonal() += rows.truncation.row(k).cwiseAbs2().transpose();
    for (int o = 0; o < n; ++o)
      for (int p = 0; p < n && (k > l || p <= o); ++p)
        C.at((k - range.first) * n + o, (l - range.first) * n + p) = block(o, p);
  });
  return C;
}

/// The mean over equations of the same, each in units of its own σ².
BandedCholesky mean_covariance(const WeakRows& rows, const Range& range, const Matrix& J) {
  const int n = rows.dimension();
  const Vector S = rows.noise.cwiseAbs2();
  BandedCholesky C(range.last - range.first, overlap(rows, range));
  Vector trace, square;  // tr J and Σ_oj J_oj² σ_j² / σ_o²
  const Eigen::Index count = J.rows() / n;
  trace = square = Vector::Zero(count);
  for (Eigen::Index i = 0; i < count; ++i)
    for (int o = 0; o < n; ++o) {
      trace[i] += J(i * n + o, o);
      square[i] += (J.row(i * n + o).cwiseAbs2().transpose().cwiseProduct(S)).sum() / S[o];
    }
  for_each_pair(rows, range, [&](Eigen::Index k, Eigen::Index l, int first, int last) {
    const auto &a = rows.functionals[static_cast<std::size_t>(k)],
               &b = rows.functionals[static_cast<std::size_t>(l)];
    double sum = 0;
    for (int i = first; i < last; ++i) {
      const double sk = a.rule.slope[static_cast<std::size_t>(i - a.first)],
                   vk = a.rule.value[static_cast<std::size_t>(i - a.first)],
                   sl = b.rule.slope[static_cast<std::size_t>(i - b.first)],
                   vl = b.rule.value[static_cast<std::size_t>(i - b.first)];
      sum += sk * sl;
      if (count > 0) sum += (vk * vl * square[i] - (sk * vl + vk * sl) * trace[i]) / n;
    }
    C.at(k - range.first, l - range.first) = sum + (k == l ? rows.truncation.row(k).cwiseAbs2().transpose().cwiseQuotient(S.head(n)).mean() : 0);
  });
  return C;
}

Eigen::MatrixXd triangle_of(const Eigen::MatrixXd& above, const Matrix& below) {
  Eigen::MatrixXd stacked(std::max<Eigen::Index>(above.rows() + below.rows(), below.cols()), below.cols());
  stacked.setZero();
  if (above.rows() > 0) stacked.topRows(above.rows()) = above;
  stacked.middleRows(above.rows(), below.rows()) = below;
  Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(stacked);
  return stacked.topRows(below.cols()).triangularView<Eigen::Upper>();
}

/// The triangular factor of the whitened [A | d] of all segments; unknown o F + m is the coefficient of φ_m in
/// equation o.
Eigen::MatrixXd joint_triangle(const WeakRows& rows, const MonomialBasis& basis,
                               const Matrix& coefficients) {
  const int n = rows.dimension(), F = basis.size();
  Eigen::MatrixXd triangle;
  for (const Range& range : ranges(rows)) {
    const auto segment = rows.functionals[static_cast<std::size_t>(range.first)].segment;
    const BandedCholesky L = factored(
        joint_covariance(rows, range, jacobians(rows, segment, basis, coefficients)));
    Matrix A = Matrix::Zero(L.size(), n * F + 1);
    for (Eigen::Index k = range.first; k < range.last; ++k)
      for (int o = 0; o < n; ++o) {
        A.row((k - range.first) * n + o).segment(o * F, F) = rows.integrals.row(k);
        A((k - range.first) * n + o, n * F) = rows.increments(k, o);
      }
    L.solve_lower(A);
    triangle = triangle_of(triangle, A);
  }
  return triangle;
}

/// Least squares for the terms named, from the triangle of [A | d]; the misfit, χ² per degree of freedom.
double solve(const Eigen::MatrixXd& triangle, double rows, Estimate& e) {
  const auto P = triangle.cols() - 1, terms = static_cast<Eigen::Index>(e.terms.size());
  Eigen::MatrixXd R(P + 1, terms);
  for (Eigen::Index q = 0; q < terms; ++q)
    R.col(q) = triangle.col(e.terms[static_cast<std::size_t>(q)]);
  Vector length = R.colwise().norm();
  for (auto& l : length) l = l > 0 ? l : 1;
  R = R * length.cwiseInverse().asDiagonal();
  const Vector d = triangle.col(P);
  const Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> solver(R);
  e.x = solver.solve(d);
  const double misfit =
      (d - R * e.x).squaredNorm() / std::max(1.0, rows - static_cast<double>(terms));
  const Eigen::MatrixXd inverse = solver.pseudoInverse();
  const Vector unit = length.cwiseInverse();
  e.x = e.x.cwiseProduct(unit);
  e.covariance =
      std::max(1.0, misfit) * (unit.asDiagonal() * (inverse * inverse.transpose()) * unit.asDiagonal());
  for (Eigen::Index q = 0; q < terms; ++q) e.covariance(q, q) = std::max(e.covariance(q, q), 1e-300);
  return misfit;
}

/// The term not in `e` whose addition lowers χ² by most above its penalty, or -1. With r the residual and a a column less its
/// projection on those in, χ² falls by (a·r)² / |a|².
int best_addition(const Eigen::MatrixXd& triangle, const Estimate& e, double misfit,
                  const std::vector<double>& penalty) {
  const auto P = triangle.cols() - 1, terms = static_cast<Eigen::Index>(e.terms.size());
  Eigen::MatrixXd R(P + 1, terms);
  std::vector<bool> in(static_cast<std::size_t>(P));
  for (Eigen::Index q = 0; q < terms; ++q) {
    R.col(q) = triangle.col(e.terms[static_cast<std::size_t>(q)]).normalized();
    in[static_cast<std::size_t>(e.terms[static_cast<std::size_t>(q)])] = true;
  }
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(R);
  const Eigen::MatrixXd rest = (qr.householderQ().transpose() * triangle).bottomRows(P + 1 - terms);
  int best = -1;
  double highest = 0;
  for (Eigen::Index q = 0; q < P; ++q) {
    const double size = rest.col(q).squaredNorm();
    if (in[static_cast<std::size_t>(q)] || !(size > 1e-20 * triangle.col(q).squaredNorm())) continue;
    const double slope = rest.col(q).dot(rest.col(P));
    const double score =
        slope * slope / size / std::max(1.0, misfit) - penalty[static_cast<std::size_t>(q)];
    if (score > highest) {
      highest = score;
      best = static_cast<int>(q);
    }
  }
  return best;
}

}  // namespace

RowFactor weak_factor(const WeakRows& rows, const MonomialBasis& basis, const Matrix& coefficients) {
  RowFactor factor(basis.variables(), basis.degree(), rows.dimension());
  for (const Range& range : ranges(rows)) {
    const auto segment = rows.functionals[static_cast<std::size_t>(range.first)].segment;
    const BandedCholesky L =
        factored(mean_covariance(rows, range, jacobians(rows, segment, basis, coefficients)));
    Matrix features = rows.integrals.middleRows(range.first, L.size());
    Matrix targets = rows.increments.middleRows(range.first, L.size());
    L.solve_lower(features);
    L.solve_lower(targets);
    factor.add_features(features, targets);
  }
  return factor;
}

WeakRegression weak_regression(const WeakRows& rows, const MonomialBasis& basis,
                               const WeakRegressionOptions& options, const std::string& source,
                               const Observer& observer) {
  const int n = rows.dimension(), F = basis.size(), P = n * F;
  WeakRegression result;
  result.coefficients = result.sd = Matrix::Zero(n, F);
  result.joint = P <= kMostJointUnknowns;
  if (rows.rows() < F)
    throw_data({source, fmt::format("room for {} test functions", rows.rows()),
                fmt::format("at least {}, one for each monomial", F),
                fmt::format("Give longer trajectories (at least {} rows each) or choose a lower --degree.",
                            kWeakRows)});
  if (options.select && !result.joint)
    throw_usage({"option --terms", fmt::format("select with {} coefficients", P),
                 fmt::format("at most {} coefficients", kMostJointUnknowns),
                 "Choose a lower --degree, or --terms all."});
  double observations = 0;
  for (const Matrix& states : rows.states) observations += static_cast<double>(states.rows());

  if (!result.joint) {
    for (int round = 0; round < 2; ++round) {
      observer("weighting rows", round / 2.0);
      const Eigen::MatrixXd triangle = weak_factor(rows, basis, result.coefficients).triangle();
      for (int o = 0; o < n; ++o) {
        Eigen::MatrixXd own(triangle.rows(), F + 1);
        own << triangle.leftCols(F), triangle.col(F + o);
        Estimate e;
        for (int m = 0; m < F; ++m) e.terms.push_back(m);
        result.misfit = solve(own, static_cast<double>(rows.rows()), e);
        result.coefficients.row(o) = e.x.transpose();
        result.sd.row(o) = e.covariance.diagonal().cwiseSqrt().transpose();
      }
    }
    result.terms = P;
    return result;
  }

  std::vector<double> penalty;
  for (int q = 0; q < P; ++q) {
    int degree = 0;
    for (const int p : basis.powers(q % F)) degree += p;
    penalty.push_back(term_penalty(degree, basis.variables(), observations));
  }
  // Selection starts from the terms up to degree 2: from all of a high degree the first coefficients, and so
  // the covariance they give, are too far off. Where they leave much unexplained it starts from all after all.
  const int low = options.select && basis.degree() > 2
                      ? static_cast<int>(monomial_count(basis.variables(), 2))
                      : F;
  const auto row_count = static_cast<double>(rows.rows() * n);
  const auto regress = [&](int first_monomials) {
    WeakRegression r = result;
    Estimate e;
    for (int q = 0; q < P; ++q)
      if (q % F < first_monomials) e.terms.push_back(q);
    const auto store = [&] {
      r.coefficients.setZero();
      r.sd.setZero();
      for (std::size_t q = 0; q < e.terms.size(); ++q) {
        const int o = e.terms[q] / F, m = e.terms[q] % F;
        const auto at = static_cast<Eigen::Index>(q);
        r.coefficients(o, m) = e.x[at];
        r.sd(o, m) = std::sqrt(e.covariance(at, at));
      }
    };
    // Coefficients and covariance of the rows in turn until they agree to a tenth of a standard deviation.
    const auto settle = [&] {
      for (int round = 0; round < options.rounds; ++round) {
        observer("weighting rows", 1 - static_cast<double>(e.terms.size()) / (P + 1));
        const Matrix before = r.coefficients;
        r.misfit = solve(joint_triangle(rows, basis, before), row_count, e);
        store();
        if (((r.coefficients - before).array().abs() <= 0.1 * r.sd.array() + 0.0).all()) break;
      }
    };
    settle();
    const auto prune = [&] {
      while (!e.terms.empty() && eliminate(e, penalty, std::max(1, P / 10)) > 0) {
        store();
        if (e.terms.empty()) break;
        r.misfit = solve(joint_triangle(rows, basis, r.coefficients), row_count, e);
        store();
      }
    };
    if (options.select) prune();
    // Then one term at a time comes in, and those it makes superfluous go; no term comes in twice.
    std::vector<bool> tried(static_cast<std::size_t>(P));
    while (options.select && !e.terms.empty()) {
      const Eigen::MatrixXd triangle = joint_triangle(rows, basis, r.coefficients);
      r.misfit = solve(triangle, row_count, e);
      const int added = best_addition(triangle, e, r.misfit, penalty);
      if (added < 0 || tried[static_cast<std::size_t>(added)]) break;
      tried[static_cast<std::size_t>(added)] = true;
      e.terms.insert(std::lower_bound(e.terms.begin(), e.terms.end(), added), added);
      r.misfit = solve(triangle, row_count, e);
      store();
      prune();
    }
    if (options.select && !e.terms.empty()) settle();
    r.terms = static_cast<int>(e.terms.size());
    return r;
  };
  WeakRegression best = regress(low);
  constexpr double much = 2;  // χ² per degree of freedom
  if (low < F && (best.terms == 0 || best.misfit > much)) {
    WeakRegression other = regress(F);
    if (best.terms == 0 || other.misfit < best.misfit) best = std::move(other);
  }
  return best;
}

}  // namespace odecast
