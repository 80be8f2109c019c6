#include "odecast/regression/weak_regression.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "odecast/core/banded.hpp"
#include "odecast/core/error.hpp"
#include "odecast/regression/selection.hpp"

namespace odecast {

/// Rows [first, last) of one segment.
struct WeakRange {
  Eigen::Index first, last;
};

namespace {

std::vector<WeakRange> ranges(const WeakRows& rows) {
  std::vector<WeakRange> all;
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    const auto segment = rows.functionals[static_cast<std::size_t>(k)].segment;
    if (all.empty() ||
        rows.functionals[static_cast<std::size_t>(all.back().first)].segment != segment)
      all.push_back({k, k});
    all.back().last = k + 1;
  }
  return all;
}

/// J_i of every observation of a segment, n equations × all variables each; empty for coefficients
/// that are 0. Where `values` is given, φ̃ of every observation into its first columns.
void jacobians(const LinearTerms& all, const Matrix& states, const Vector& noise,
               const Matrix& coefficients, Matrix& J, Matrix* values = nullptr) {
  if (coefficients.isZero(0) && values == nullptr) {
    J.resize(0, 0);
    return;
  }
  const auto n = coefficients.rows();
  const int variables = all.variables();
  std::vector<std::pair<Eigen::Index, Eigen::Index>> terms;
  for (Eigen::Index o = 0; o < n; ++o)
    for (Eigen::Index m = 0; m < coefficients.cols(); ++m)
      if (coefficients(o, m) != 0) terms.emplace_back(o, m);
  J.setZero(states.rows() * n, variables);
  Matrix slopes(all.size(), variables);
  Vector phi(all.size());
  DebiasedTerms debiased(all, noise);
  for (Eigen::Index i = 0; i < states.rows(); ++i) {
    debiased(states.row(i).data(), values ? values->row(i).data() : phi.data(), &slopes);
    for (const auto& [o, m] : terms) J.row(i * n + o) += coefficients(o, m) * slopes.row(m);
  }
}

/// Test functions a quarter of a radius apart nearly depend on each other; so much of each diagonal
/// entry is added that the factor exists.
constexpr double kNugget = 1e-9;

void factor_into(BandedCholesky& root, const BandedCholesky& covariance) {
  for (double nugget = kNugget; nugget < 10; nugget *= 10) {
    root = covariance;
    for (Eigen::Index i = 0; i < root.size(); ++i) root.at(i, i) *= 1 + nugget;
    if (root.factor()) return;
  }
  throw_data(
      {"integrals of the rows", "a covariance that overflows or vanishes",
       "values whose powers are numbers",
       "Give columns in units in which their values are near 1, or leave `scale` at standard."});
}

/// Calls visit(k, l, first, last) for the pairs l <= k of a range that share observations, with the
/// first of them and one past the last. Firsts and lasts never decrease along the rows, so that
/// those which meet row k follow each other.
template <class Visit>
void for_each_pair(const WeakRows& rows, const WeakRange& range, Visit visit) {
  for (Eigen::Index k = range.first; k < range.last; ++k)
    for (Eigen::Index l = k; l >= range.first; --l) {
      const auto &a = rows.functionals[static_cast<std::size_t>(k)],
                 &b = rows.functionals[static_cast<std::size_t>(l)];
      const int first = std::max(a.first, b.first), last = std::min(a.last(), b.last());
      if (first >= last) break;
      visit(k, l, first, last);
    }
}

Eigen::Index overlap(const WeakRows& rows, const WeakRange& range) {
  Eigen::Index most = 0;
  for_each_pair(rows, range,
                [&](Eigen::Index k, Eigen::Index l, int, int) { most = std::max(most, k - l); });
  return most;
}

/// The covariance of all equations of a segment: entry (k n + o, l n + p).
void joint_covariance(const WeakRows& rows, const WeakRange& range, const Matrix& J, Matrix& terms,
                      BandedCholesky& C) {
  const int n = rows.dimension(), square = n * n;
  const Vector S = rows.noise.cwiseAbs2();
  C.clear();
  // J S Jᵀ, (J S)ᵀ and J S of every observation, a row each.
  const Eigen::Index count = J.rows() / n;
  terms.resize(3 * count, square);
  for (Eigen::Index i = 0; i < count; ++i)
    for (int o = 0; o < n; ++o)
      for (int p = 0; p < n; ++p) {
        const double *a = &J(i * n + o, 0), *b = &J(i * n + p, 0);
        double sum = 0;
        for (Eigen::Index j = 0; j < S.size(); ++j) sum += a[j] * b[j] * S[j];
        terms(3 * i, o * n + p) = sum;
        terms(3 * i + 1, p * n + o) = terms(3 * i + 2, o * n + p) = a[p] * S[p];
      }
  Matrix block(n, n);
  Eigen::Map<Eigen::RowVectorXd> flat(block.data(), square);
  Eigen::RowVectorXd weights;
  for_each_pair(rows, range, [&](Eigen::Index k, Eigen::Index l, int first, int last) {
    const auto &a = rows.functionals[static_cast<std::size_t>(k)],
               &b = rows.functionals[static_cast<std::size_t>(l)];
    double ss = 0;
    weights.resize(3 * (last - first));
    for (int i = first; i < last; ++i) {
      const double sk = a.rule.slope[static_cast<std::size_t>(i - a.first)],
                   vk = a.rule.value[static_cast<std::size_t>(i - a.first)],
                   sl = b.rule.slope[static_cast<std::size_t>(i - b.first)],
                   vl = b.rule.value[static_cast<std::size_t>(i - b.first)];
      ss += sk * sl;
      weights.segment<3>(3 * (i - first)) << vk * vl, -sk * vl, -vk * sl;
    }
    block.setZero();
    if (count > 0) flat.noalias() += weights * terms.middleRows(3 * first, 3 * (last - first));
    block.diagonal() += ss * S.head(n);
    if (k == l) block.diagonal() += rows.truncation.row(k).cwiseAbs2().transpose();
    for (int o = 0; o < n; ++o)
      for (int p = 0; p < n && (k > l || p <= o); ++p)
        C.at((k - range.first) * n + o, (l - range.first) * n + p) = block(o, p);
  });
}

/// The mean over equations of the same, each in units of its own σ².
BandedCholesky mean_covariance(const WeakRows& rows, const WeakRange& range, const Matrix& J) {
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
    C.at(k - range.first, l - range.first) =
        sum + (k == l
                   ? rows.truncation.row(k).cwiseAbs2().transpose().cwiseQuotient(S.head(n)).mean()
                   : 0);
  });
  return C;
}

/// The triangle of rows, empty at first, with more rows below it.
void fold(Eigen::MatrixXd& triangle, const Eigen::Ref<const Matrix>& below,
          Eigen::MatrixXd& stacked) {
  stacked.setZero(std::max<Eigen::Index>(triangle.rows() + below.rows(), below.cols()),
                  below.cols());
  if (triangle.rows() > 0) stacked.topRows(triangle.rows()) = triangle;
  stacked.middleRows(triangle.rows(), below.rows()) = below;
  Eigen::HouseholderQR<Eigen::Ref<Eigen::MatrixXd>> qr(stacked);
  triangle = stacked.topRows(below.cols()).triangularView<Eigen::Upper>();
}

}  // namespace

struct WeakLinearisation::Part {
  WeakRange range;
  std::size_t segment;
  Matrix features, targets;  // rows × terms, rows × equations
  Matrix J;                  // empty: 0
  BandedCholesky covariance, root;
  Matrix at,
      products;  // of every observation: [φ̃(û_i) | J_i (y_i - û_i)]; what joint_covariance works in
};

WeakLinearisation::~WeakLinearisation() = default;

WeakLinearisation::WeakLinearisation(const WeakRows& rows, const LinearTerms& terms,
                                     const Matrix& coefficients, const WeakPath& path)
    : rows_(rows), terms_(terms) {
  const int n = rows.dimension();
  for (const WeakRange& range : ranges(rows)) {
    const BandedCholesky empty((range.last - range.first) * n, overlap(rows, range) * n + n - 1);
    parts_.push_back({range,
                      rows.functionals[static_cast<std::size_t>(range.first)].segment,
                      {},
                      {},
                      {},
                      empty,
                      empty,
                      {},
                      {}});
  }
  move_to(coefficients, path);
}

void WeakLinearisation::move_to(const Matrix& coefficients, const WeakPath& path,
                                bool keep_covariance) {
  const int n = rows_.dimension(), F = terms_.size();
  const bool observed = path.states.empty();
  for (Part& part : parts_) {
    const WeakRange& range = part.range;
    const Matrix& y = rows_.states[part.segment];
    const Eigen::Index count = range.last - range.first;
    const Matrix& u = observed ? y : path.states[part.segment];
    if (!observed) part.at.resize(y.rows(), F + n);
    jacobians(terms_, u, observed ? rows_.noise : path.noise, coefficients, part.J,
              observed ? nullptr : &part.at);
    part.features = rows_.integrals.middleRows(range.first, count);
    part.targets = rows_.increments.middleRows(range.first, count);
    if (!observed) {
      for (Eigen::Index i = 0; i < y.rows(); ++i)
        for (int o = 0; o < n; ++o)
          part.at(i, F + o) = part.J.row(i * n + o).dot(y.row(i) - u.row(i));
      for (Eigen::Index k = 0; k < count; ++k) {
        const auto& f = rows_.functionals[static_cast<std::size_t>(range.first + k)];
        const auto length = static_cast<Eigen::Index>(f.rule.value.size());
        const Eigen::Map<const Eigen::RowVectorXd> v(f.rule.value.data(), length);
        const auto at = part.at.middleRows(f.first, length);
        part.features.row(k).noalias() = v * at.leftCols(F);
        part.targets.row(k).noalias() -= v * at.rightCols(n);
      }
    }
    if (keep_covariance) continue;
    joint_covariance(rows_, range, part.J, part.products, part.covariance);
    factor_into(part.root, part.covariance);
  }
}

/// Rows [begin, end) of a part below those from `from` on that A ends with already.
void WeakLinearisation::whiten(const Part& part, Eigen::Index from, Eigen::Index begin,
                               Eigen::Index end, Matrix& A) const {
  const int n = rows_.dimension(), F = terms_.size();
  Matrix before(begin - from, n * F + 1);
  if (begin > from) before = A.bottomRows(begin - from);
  A.setZero(end - from, n * F + 1);
  A.topRows(begin - from) = before;
  for (Eigen::Index i = begin; i < end; ++i) {
    A.row(i - from).segment(i % n * F, F) = part.features.row(i / n);
    A(i - from, n * F) = part.targets(i / n, i % n);
  }
  part.root.solve_lower(A, from, begin);
}

std::vector<Matrix> WeakLinearisation::whitened() const {
  std::vector<Matrix> all(parts_.size());
  for (std::size_t k = 0; k < parts_.size(); ++k)
    whiten(parts_[k], 0, 0, parts_[k].root.size(), all[k]);
  return all;
}

EvidenceProblem WeakLinearisation::problem() {
  WeakProblem sums;
  add_to(sums);
  return sums.evidence(terms_, rows_.dimension());
}

void WeakLinearisation::add_to(WeakProblem& p) {
  const int n = rows_.dimension(), F = terms_.size();
  if (p.squares.size() == 0) p.squares = Vector::Zero(F);
  constexpr Eigen::Index kNumbers =
      1 << 20;  // whitened at a time: of many equations a row has thousands
  for (const Part& part : parts_) {
    const Eigen::Index size = part.root.size(), reach = part.root.reach();
    const Eigen::Index step = std::max(reach, kNumbers / (n * F + 1));
    for (Eigen::Index begin = 0; begin < size; begin += step) {
      const Eigen::Index from = std::max<Eigen::Index>(0, begin - reach),
                         end = std::min(size, begin + step);
      whiten(part, from, begin, end, rows_of_part_);
      fold(p.triangle, rows_of_part_.bottomRows(end - begin), stacked_);
    }
    p.rows += static_cast<double>(size);
  }
  for (const Part& part : parts_) {
    for (Eigen::Index i = 0; i < part.root.size(); ++i)
      p.log_determinant += 2 * std::log(part.root.at(i, i));
    p.squares += part.features.colwise().squaredNorm().transpose();
    p.constant += part.features.col(0).squaredNorm();
  }
}

EvidenceProblem WeakProblem::evidence(const LinearTerms& terms, int equations) const {
  EvidenceProblem p;
  p.triangle = triangle;
  p.rows = rows;
  p.log_determinant = log_determinant;
  p.least_variance = 1;
  const int F = terms.size();
  for (int q = 0; q < equations * F; ++q) {
    const double size = std::sqrt(squares[q % F] / constant);
    p.group.push_back(q / F);
    p.size.push_back(size > 0 ? size : 1);
    p.price.push_back(terms.price(q % F));
  }
  return p;
}

std::vector<Matrix> WeakLinearisation::states(const Matrix& coefficients, Vector& removed,
                                              double& count) const {
  const int n = rows_.dimension();
  std::vector<Matrix> path = rows_.states;
  for (const Part& part : parts_) {
    Matrix pull = part.targets - part.features * coefficients.transpose();
    part.root.solve(Eigen::Map<Matrix>(pull.data(), pull.size(), 1));
    Matrix& u = path[part.segment];
    const auto all = u.cols();
    const Vector S = rows_.noise.cwiseAbs2();
    for (Eigen::Index k = 0; k < pull.rows(); ++k) {
      const auto& f = rows_.functionals[static_cast<std::size_t>(part.range.first + k)];
      for (int i = f.first; i < f.last(); ++i) {
        const double s = f.rule.slope[static_cast<std::size_t>(i - f.first)],
                     v = f.rule.value[static_cast<std::size_t>(i - f.first)];
        // ε̂_i = S Σ_k (s_ki - v_ki J_i)ᵀ (V⁻¹ r)_k
        for (Eigen::Index j = 0; j < all; ++j) {
          double sum = j < n ? s * pull(k, j) : 0;
          for (int o = 0; part.J.size() > 0 && o < n; ++o)
            sum -= v * part.J(i * n + o, j) * pull(k, o);
          u(i, j) -= S[j] * sum;
        }
      }
    }
  }
  for (std::size_t s = 0; s < path.size(); ++s) {
    removed += (path[s] - rows_.states[s]).colwise().squaredNorm().transpose();
    count += static_cast<double>(path[s].rows());
  }
  return path;
}

namespace {

Vector noise_left(const Vector& noise, const Vector& removed, double count) {
  return (noise.cwiseAbs2() - removed / count).cwiseMax(0).cwiseSqrt();
}

}  // namespace

WeakPath WeakLinearisation::path(const Matrix& coefficients) const {
  Vector removed = Vector::Zero(rows_.noise.size());
  double count = 0;
  std::vector<Matrix> along = states(coefficients, removed, count);
  return {std::move(along), noise_left(rows_.noise, removed, count)};
}

namespace {

/// The triangular factor of the whitened [A | d] of all segments; unknown o F + m is the
/// coefficient of φ_m in equation o.
Eigen::MatrixXd joint_triangle(const WeakRows& rows, const MonomialBasis& basis,
                               const Matrix& coefficients) {
  return WeakLinearisation(rows, basis, coefficients, {}).problem().triangle;
}

/// Least squares for the terms named, from the triangle of [A | d]; the misfit, χ² per degree of
/// freedom.
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
  e.covariance = std::max(1.0, misfit) *
                 (unit.asDiagonal() * (inverse * inverse.transpose()) * unit.asDiagonal());
  for (Eigen::Index q = 0; q < terms; ++q)
    e.covariance(q, q) = std::max(e.covariance(q, q), 1e-300);
  return misfit;
}

/// The term not in `e` whose addition lowers χ² by most above its penalty, or -1. With r the
/// residual and a a column less its projection on those in, χ² falls by (a·r)² / |a|².
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
    if (in[static_cast<std::size_t>(q)] || !(size > 1e-20 * triangle.col(q).squaredNorm()))
      continue;
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

namespace {

Matrix coefficients_of(const Estimate& e, int n, int F) {
  Matrix C = Matrix::Zero(n, F);
  for (std::size_t q = 0; q < e.terms.size(); ++q)
    C(e.terms[q] / F, e.terms[q] % F) = e.x[static_cast<Eigen::Index>(q)];
  return C;
}

/// The unknowns of all monomials up to a degree.
std::vector<int> monomials_up_to(const LinearTerms& terms, int n, int degree) {
  std::vector<int> unknowns;
  const auto count =
      static_cast<int>(monomial_count(terms.variables(), std::min(degree, terms.basis.degree())));
  for (int o = 0; o < n; ++o)
    for (int m = 0; m < count; ++m) unknowns.push_back(o * terms.size() + m);
  return unknowns;
}

/// These and those of all functions, in ascending order.
std::vector<int> candidates_up_to(const LinearTerms& terms, int n, int degree) {
  std::vector<int> unknowns = monomials_up_to(terms, n, degree);
  for (int o = 0; o < n; ++o)
    for (int f = terms.basis.size(); f < terms.size(); ++f)
      unknowns.push_back(o * terms.size() + f);
  std::sort(unknowns.begin(), unknowns.end());
  return unknowns;
}

void check_rows(Eigen::Index rows, int terms, const std::string& source) {
  if (rows < terms)
    throw_data({source, fmt::format("room for {} test functions", rows),
                fmt::format("at least {}, one for each term", terms),
                "Give more rows, which make room for more of them, or choose a lower `degree`."});
}

}  // namespace

namespace {

void add_weak_rows(RowFactor& factor, const WeakRows& rows, const LinearTerms& terms,
                   const Matrix& coefficients) {
  for (const WeakRange& range : ranges(rows)) {
    const auto segment = rows.functionals[static_cast<std::size_t>(range.first)].segment;
    Matrix J;
    jacobians(terms, rows.states[segment], rows.noise, coefficients, J);
    BandedCholesky L(0, 0);
    factor_into(L, mean_covariance(rows, range, J));
    Matrix features = rows.integrals.middleRows(range.first, L.size());
    Matrix targets = rows.increments.middleRows(range.first, L.size());
    L.solve_lower(features);
    L.solve_lower(targets);
    factor.add_features(features, targets);
  }
}

/// Coefficients of the terms named, each equation by itself and its rows weighted as if
/// coefficients were 0: a start for the joint rounds at a fraction of the price of one.
Matrix first_coefficients(WeakBlocks& blocks, const LinearTerms& terms,
                          const std::vector<int>& unknowns) {
  const int n = blocks.dimension(), F = terms.size();
  Matrix C = Matrix::Zero(n, F);
  RowFactor factor(terms.variables(), terms.basis.degree(), n, F - terms.basis.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) add_weak_rows(factor, blocks.block(b), terms, C);
  for (int o = 0; o < n; ++o) {
    std::vector<int> own;
    for (const int q : unknowns)
      if (q / F == o) own.push_back(q % F);
    if (own.empty()) continue;
    const Estimate e = evidence_fit(equation_problem(factor, o, terms), own).posterior;
    for (std::size_t c = 0; c < e.terms.size(); ++c)
      C(o, e.terms[c]) = e.x[static_cast<Eigen::Index>(c)];
  }
  return C;
}

}  // namespace

WeakPosterior weak_posterior(const WeakRows& rows, const LinearTerms& terms,
                             const WeakPosteriorOptions& options, const std::string& source,
                             const Observer& observer) {
  WeakBlocks blocks(rows);
  return weak_posterior(blocks, terms, options, source, observer);
}

EvidenceProblem weak_problem(WeakBlocks& blocks, const LinearTerms& terms,
                             const Matrix& coefficients, const std::vector<WeakPath>& paths) {
  WeakProblem sums;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    WeakLinearisation(blocks.block(b), terms, coefficients, paths[b]).add_to(sums);
  return sums.evidence(terms, blocks.dimension());
}

WeakPosterior weak_posterior(WeakBlocks& blocks, const LinearTerms& terms,
                             const WeakPosteriorOptions& options, const std::string& source,
                             const Observer& observer) {
  const int n = blocks.dimension(), F = terms.size();
  const std::vector<int> candidates = options.terms.empty()
                                          ? candidates_up_to(terms, n, options.degree)
                                          : options.terms,
                         low = monomials_up_to(terms, n, std::min(options.degree, 2));
  const bool select = options.select && options.terms.empty();
  check_rows(blocks.rows(), static_cast<int>(candidates.size()) / n, source);
  constexpr int most = 20;
  constexpr double kSettled = 0.2, kFar = std::numeric_limits<double>::infinity();
  // With so little change since it was computed a covariance does as well as a new one:
  // coefficients differ by hundredths of their sd. Not with all terms in, which are determined too
  // badly for that.
  constexpr double kNear = 3;
  WeakPosterior result;
  // Terms up to degree 2 first: from all of a high degree the first coefficients are too far off.
  Matrix C = first_coefficients(blocks, terms, select ? low : candidates);
  std::vector<WeakPath> paths(blocks.size());
  // Of one block the linearisation stays; of many each is made twice in a round, before its
  // coefficients are known and after.
  const bool one = blocks.size() == 1;
  std::optional<WeakLinearisation> around;
  double moved =
      kFar;  // the largest change of a coefficient in the round before, in units of its sd
  double moved_since = 0;  // since the covariance was computed
  for (int round = 0; round < most; ++round) {
    const auto progress = [&](std::size_t b) {
      observer("weighting rows",
               (round + static_cast<double>(b) / static_cast<double>(2 * blocks.size())) / most);
    };
    const bool keep = select && round >= 2 && moved_since < kNear;
    if (!keep) moved_since = 0;
    WeakProblem sums;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      progress(b);
      if (one && around)
        around->move_to(C, paths[b], keep);
      else
        around.emplace(blocks.block(b), terms, C, paths[b]);
      around->add_to(sums);
    }
    const EvidenceProblem problem = sums.evidence(terms, n);
    const std::vector<int> before = std::move(result.fit.posterior.terms);
    result.fit = select ? evidence_search(problem, round < 2 ? low : before, candidates)
                        : evidence_fit(problem, candidates);
    const Estimate& now = result.fit.posterior;
    const Matrix next = coefficients_of(now, n, F);
    moved = now.terms == before ? 0 : kFar;
    for (std::size_t q = 0; q < now.terms.size(); ++q) {
      const int o = now.terms[q] / F, m = now.terms[q] % F;
      const auto at = static_cast<Eigen::Index>(q);
      const double change = std::abs(next(o, m) - C(o, m)), sd = std::sqrt(now.covariance(at, at));
      moved = std::isfinite(change / sd) || change == 0
                  ? std::max(moved, change == 0 ? 0 : change / sd)
                  : kFar;
    }
    moved_since += moved;
    const Matrix linearised = std::exchange(C, next);
    result.rounds = round + 1;
    result.settled = moved <= kSettled && round > 0;
    if (result.settled) break;
    Vector removed = Vector::Zero(terms.variables());
    double count = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      progress(blocks.size() + b);
      if (!one) around.emplace(blocks.block(b), terms, linearised, paths[b]);
      paths[b].states = around->states(C, removed, count);
    }
    for (WeakPath& path : paths) path.noise = noise_left(blocks.noise(), removed, count);
  }
  result.paths = std::move(paths);
  result.coefficients = C;
  return result;
}

RowFactor weak_factor(const WeakRows& rows, const MonomialBasis& basis,
                      const Matrix& coefficients) {
  RowFactor factor(basis.variables(), basis.degree(), rows.dimension());
  add_weak_rows(factor, rows, basis, coefficients);
  return factor;
}

WeakRegression weak_regression(const WeakRows& rows, const MonomialBasis& basis,
                               const WeakRegressionOptions& options, const std::string& source,
                               const Observer& observer) {
  const int n = rows.dimension(), F = basis.size(), P = n * F;
  WeakRegression result;
  result.coefficients = result.sd = Matrix::Zero(n, F);
  result.joint = P <= kMostJointUnknowns;
  check_rows(rows.rows(), F, source);
  if (options.select && !result.joint)
    throw_usage({"option `terms`", fmt::format("select with {} coefficients", P),
                 fmt::format("at most {} coefficients", kMostJointUnknowns),
                 "Choose a lower `degree`, or `terms=all`."});
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
  for (int q = 0; q < P; ++q)
    penalty.push_back(term_penalty(basis.degree(q % F), basis.variables(), observations));
  // Selection starts from the terms up to degree 2: from all of a high degree the first
  // coefficients, and so the covariance they give, are too far off. Where they leave much
  // unexplained it starts from all after all.
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
    // Coefficients and covariance of the rows in turn until they agree to a tenth of a standard
    // deviation.
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
