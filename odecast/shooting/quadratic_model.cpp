#include "odecast/shooting/quadratic_model.hpp"

#include <Eigen/Cholesky>
#include <algorithm>

namespace odecast {

Eigen::MatrixXd inverse_information(const Matrix& Q) {
  const Vector scale = Q.diagonal().cwiseSqrt().cwiseInverse();
  const Eigen::MatrixXd unit = scale.asDiagonal() * Q * scale.asDiagonal();
  const Eigen::MatrixXd inverse =
      Eigen::LDLT<Eigen::MatrixXd>(unit).solve(Eigen::MatrixXd::Identity(Q.rows(), Q.cols()));
  return scale.asDiagonal() * (0.5 * (inverse + inverse.transpose())) * scale.asDiagonal();
}

std::vector<QuadraticModel::Move> QuadraticModel::moves(const std::vector<int>& S) const {
  const int p = static_cast<int>(S.size()), all = static_cast<int>(b.size());
  Matrix QS(p, p), cross(p, all);
  Vector bS(p);
  for (int a = 0; a < p; ++a) {
    bS[a] = b[S[index(a)]];
    for (int c = 0; c < p; ++c) QS(a, c) = Q(S[index(a)], S[index(c)]);
    for (int j = 0; j < all; ++j) cross(a, j) = Q(S[index(a)], j);
  }
  std::vector<char> in_set(index(all), 0);
  for (const int s : S) in_set[index(s)] = 1;
  std::vector<Move> list;
  const Eigen::MatrixXd inverse = p > 0 ? inverse_information(QS) : Eigen::MatrixXd(0, 0);
  const Eigen::MatrixXd half = inverse * cross;  // Q_SS⁻¹ Q_Sj
  const Vector theta = inverse * bS;
  // Adding j gains (b_j - Q_jS θ)² / (Q_jj - Q_jS Q_SS⁻¹ Q_Sj); dropping i loses θ_i² /
  // (Q_SS⁻¹)_ii.
  Vector slopes(all), rest(all);
  for (int j = 0; j < all; ++j) {
    slopes[j] = b[j] - cross.col(j).dot(theta);
    rest[j] = Q(j, j) - cross.col(j).dot(half.col(j));
  }
  for (int out = -1; out < p; ++out) {
    double lost = 0;
    if (out >= 0) {
      lost = theta[out] * theta[out] / inverse(out, out) - penalty[index(S[index(out)])];
      list.push_back({out, -1, lost});
    }
    for (int j = 0; j < all; ++j) {
      if (in_set[index(j)]) continue;
      double slope = slopes[j], left = rest[j];
      if (out >= 0) {
        // Without i: θ and Q_SS⁻¹ conditioned on θ_i = 0 (rank one).
        slope += half(out, j) * theta[out] / inverse(out, out);
        left += half(out, j) * half(out, j) / inverse(out, out);
      }
      if (!(left > copy * Q(j, j))) continue;
      list.push_back({out, j, lost - slope * slope / left + penalty[index(j)]});
    }
  }
  return list;
}

void QuadraticModel::apply(std::vector<int>& S, const Move& move) {
  if (move.out >= 0) S.erase(S.begin() + move.out);
  if (move.in >= 0) S.insert(std::upper_bound(S.begin(), S.end(), move.in), move.in);
}

Vector QuadraticModel::minimiser(const std::vector<int>& S) const {
  const int p = static_cast<int>(S.size());
  Matrix QS(p, p);
  Vector bS(p);
  for (int a = 0; a < p; ++a) {
    bS[a] = b[S[index(a)]];
    for (int c = 0; c < p; ++c) QS(a, c) = Q(S[index(a)], S[index(c)]);
  }
  return inverse_information(QS) * bS;
}

double QuadraticModel::value(const std::vector<int>& S) const {
  const Vector theta = minimiser(S);
  double value = 0;
  for (std::size_t c = 0; c < S.size(); ++c)
    value += penalty[index(S[c])] - b[S[c]] * theta[static_cast<long>(c)];
  return value;
}

double QuadraticModel::settle(std::vector<int>& S) const {
  double change = 0;
  for (int k = 0; k < kMostMoves; ++k) {
    const auto list = moves(S);
    const auto best = std::min_element(list.begin(), list.end());
    if (best == list.end() || best->change >= -1e-6) break;
    change += best->change;
    apply(S, *best);
  }
  return change;
}

QuadraticModel QuadraticModel::beside(const std::vector<int>& always,
                                      const std::vector<int>& some) const {
  const auto p = static_cast<int>(always.size()), n = static_cast<int>(some.size());
  Matrix inner(p, p), cross(p, n);
  Vector b_always(p);
  QuadraticModel result;
  result.Q.resize(n, n);
  result.b.resize(n);
  result.copy = copy;
  for (int j = 0; j < n; ++j) {
    const int c = some[index(j)];
    for (int k = 0; k < n; ++k) result.Q(j, k) = Q(c, some[index(k)]);
    for (int a = 0; a < p; ++a) cross(a, j) = Q(always[index(a)], c);
    result.b[j] = b[c];
    result.penalty.push_back(penalty[index(c)]);
  }
  if (p == 0) return result;
  for (int a = 0; a < p; ++a) {
    for (int c = 0; c < p; ++c) inner(a, c) = Q(always[index(a)], always[index(c)]);
    b_always[a] = b[always[index(a)]];
  }
  // Q_ss - Q_sa Q_aa⁻¹ Q_as and b_s - Q_sa Q_aa⁻¹ b_a
  const Eigen::MatrixXd follow = inverse_information(inner) * cross;
  result.Q -= cross.transpose() * follow;
  result.b -= follow.transpose() * b_always;
  return result;
}

std::vector<std::vector<int>> QuadraticModel::settled_from_each(
    const std::vector<std::vector<int>>& groups, const std::vector<int>& plain,
    std::size_t most) const {
  using Valued = std::pair<double, std::vector<int>>;
  std::vector<Valued> begun;
  for (const std::vector<int>& group : groups) {
    std::vector<int> some = plain, set;
    for (const int c : group) {
      if (!(Q(c, c) > 0)) continue;
      set.push_back(static_cast<int>(some.size()));
      some.push_back(c);
    }
    const QuadraticModel few = beside({}, some);
    few.settle(set);
    if (set.empty() || set.back() < static_cast<int>(plain.size())) continue;  // none of the group
    const double worth = few.value(set);
    for (int& c : set) c = some[index(c)];
    std::sort(set.begin(), set.end());
    begun.push_back({worth, std::move(set)});
  }
  std::sort(begun.begin(), begun.end());
  std::vector<std::vector<int>> sets;
  for (std::size_t k = 0; k < begun.size() && sets.size() < most; ++k)
    if (sets.empty() || begun[k].second != sets.back()) sets.push_back(std::move(begun[k].second));
  return sets;
}

}  // namespace odecast
