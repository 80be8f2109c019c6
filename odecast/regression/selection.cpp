#include "odecast/regression/selection.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace odecast {

double term_price(const MonomialBasis& basis, int monomial) {
  return std::max(basis.degree(monomial), 1) * std::log(basis.variables() + 1.0);
}

double term_penalty(int degree, int equations, double observations) {
  return std::log(observations * equations) + 2 * std::max(degree, 1) * std::log(equations + 1.0);
}

void leave_out(Estimate& e, Eigen::Index q) {
  const double variance = e.covariance(q, q);
  const Vector column = e.covariance.col(q) / variance;
  e.x -= column * e.x[q];
  e.covariance -= variance * column * column.transpose();
  // Without row and column q.
  const Eigen::Index size = e.x.size(), after = size - q - 1;
  e.x.segment(q, after) = e.x.tail(after).eval();
  e.x.conservativeResize(size - 1);
  e.covariance.middleRows(q, after) = e.covariance.bottomRows(after).eval();
  e.covariance.middleCols(q, after) = e.covariance.rightCols(after).eval();
  e.covariance.conservativeResize(size - 1, size - 1);
  e.terms.erase(e.terms.begin() + q);
}

int eliminate(Estimate& e, const std::vector<double>& penalty, int most) {
  int gone = 0;
  while (gone < most && !e.terms.empty()) {
    Eigen::Index worst = -1;
    double lowest = 0;
    for (Eigen::Index q = 0; q < e.x.size(); ++q) {
      const double score = e.x[q] * e.x[q] / e.covariance(q, q) -
                           penalty[static_cast<std::size_t>(e.terms[static_cast<std::size_t>(q)])];
      if (score < lowest) {
        lowest = score;
        worst = q;
      }
    }
    if (worst < 0) break;
    leave_out(e, worst);
    ++gone;
  }
  return gone;
}

Eigen::MatrixXd select_terms(const RowFactor& factor, double observations) {
  const MonomialBasis& basis = factor.basis();
  const Eigen::MatrixXd triangle = factor.triangle();
  const int F = basis.size();
  const auto outputs = triangle.cols() - F;
  std::vector<double> penalty;
  for (int m = 0; m < F; ++m)
    penalty.push_back(term_penalty(basis.degree(m), static_cast<int>(outputs), observations));
  Eigen::MatrixXd C = Eigen::MatrixXd::Zero(outputs, F);
  for (Eigen::Index o = 0; o < outputs; ++o) {
    Estimate e;
    for (int m = 0; m < F; ++m) e.terms.push_back(m);
    // Least squares with the terms left, and again after each round of eliminations.
    for (;;) {
      const auto terms = static_cast<Eigen::Index>(e.terms.size());
      Eigen::MatrixXd R(F, terms);
      for (Eigen::Index q = 0; q < terms; ++q)
        R.col(q) = triangle.col(e.terms[static_cast<std::size_t>(q)]).head(F);
      Vector length = R.colwise().norm();
      for (auto& l : length) l = l > 0 ? l : 1;
      R = R * length.cwiseInverse().asDiagonal();
      const Vector g = triangle.col(F + o).head(F);
      const Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> solver(R);
      e.x = solver.solve(g);
      const Eigen::MatrixXd inverse = solver.pseudoInverse();
      const double rest =
          (g - R * e.x).squaredNorm() + triangle.col(F + o).tail(outputs).squaredNorm();
      const double variance =
          rest / std::max(1.0, static_cast<double>(factor.rows()) - static_cast<double>(terms));
      e.x = e.x.cwiseQuotient(length);
      e.covariance =
          variance * (length.cwiseInverse().asDiagonal() * (inverse * inverse.transpose()) *
                      length.cwiseInverse().asDiagonal());
      // Never 0 / 0: a perfect fit still has round-off.
      for (Eigen::Index q = 0; q < terms; ++q)
        e.covariance(q, q) = std::max(e.covariance(q, q), 1e-300);
      Estimate trial = e;
      const int gone = eliminate(trial, penalty, std::max(1, F / 10));
      if (gone == 0 || trial.terms.empty()) {
        if (gone != 0) e.terms.clear();
        break;
      }
      e.terms = trial.terms;
    }
    for (std::size_t q = 0; q < e.terms.size(); ++q)
      C(o, e.terms[q]) = e.x[static_cast<Eigen::Index>(q)];
  }
  return C;
}

}  // namespace odecast
