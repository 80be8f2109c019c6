#include "odecast/derivatives/weak.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace odecast {
namespace {

constexpr int kPower = 8;  // of ψ: smooth enough for the trapezoidal rule at 8 observations per radius
constexpr double kRadii = 1.5, kStride = 0.25;
constexpr int kSpacingsPerRadius = 8;

// Gauss–Legendre nodes and weights on [-1, 1], exact to degree 11 (Abramowitz & Stegun, table 25.4).
constexpr std::array<double, 6> kNodes = {-0.932469514203152, -0.661209386466265, -0.238619186083197,
                                          0.238619186083197,  0.661209386466265,  0.932469514203152};
constexpr std::array<double, 6> kWeights = {0.171324492379170, 0.360761573048139, 0.467913934572691,
                                            0.467913934572691, 0.360761573048139, 0.171324492379170};

struct Bump {
  double centre, radius;

  double value(double t) const {
    const double s = (t - centre) / radius, q = 1 - s * s;
    return q > 0 ? integer_power(q, kPower) : 0;
  }
  double slope(double t) const {
    const double s = (t - centre) / radius, q = 1 - s * s;
    return q > 0 ? -2 * kPower * s / radius * integer_power(q, kPower - 1) : 0;
  }
};

bool is_even(const Segment& s) {
  const double* t = s.times();
  const double h = (t[s.rows - 1] - t[0]) / (s.rows - 1);
  for (int i = 1; i < s.rows; ++i)
    if (std::abs(t[i] - t[i - 1] - h) > 1e-6 * h) return false;
  return true;
}

/// Observations inside the support, and one beyond it on each side where there is one.
std::pair<int, int> inside(const Segment& s, const Bump& bump) {
  const double *begin = s.times(), *end = begin + s.rows;
  const auto first = std::upper_bound(begin, end, bump.centre - bump.radius) - begin;
  const auto last = std::lower_bound(begin, end, bump.centre + bump.radius) - begin;
  return {static_cast<int>(std::max<std::ptrdiff_t>(0, first - 1)),
          static_cast<int>(std::min<std::ptrdiff_t>(s.rows, last + 1))};
}

WeakRows::Rule trapezoid(const Segment& s, const Bump& bump, int first, int last) {
  WeakRows::Rule rule;
  const double* t = s.times();
  const double h = (t[s.rows - 1] - t[0]) / (s.rows - 1);
  for (int i = first; i < last; ++i) {
    rule.value.push_back(h * bump.value(t[i]));
    rule.slope.push_back(-h * bump.slope(t[i]));
  }
  return rule;
}

/// v_i = ∫ ψ ℓ_i, s_i = -∫ ψ' ℓ_i, interval by interval; on each, ℓ is the Lagrange interpolation through the degree + 1
/// observations around it. `first` and the rule's length follow what the interpolation reaches.
WeakRows::Rule interpolated(const Segment& s, const Bump& bump, int degree, int& first, int last) {
  const double* t = s.times();
  degree = std::min(degree, s.rows - 1);
  const int reach = (degree - 1) / 2;
  const auto stencil_of = [&](int i) { return std::clamp(i - reach, 0, s.rows - degree - 1); };
  const int from = stencil_of(first), to = stencil_of(last - 2) + degree + 1;
  WeakRows::Rule rule{std::vector<double>(static_cast<std::size_t>(to - from)),
                      std::vector<double>(static_cast<std::size_t>(to - from))};
  for (int i = first; i + 1 < last; ++i) {
    const double a = std::max(t[i], bump.centre - bump.radius);
    const double b = std::min(t[i + 1], bump.centre + bump.radius);
    if (!(b > a)) continue;
    const int stencil = stencil_of(i);
    for (std::size_t g = 0; g < kNodes.size(); ++g) {
      const double x = (a + b) / 2 + (b - a) / 2 * kNodes[g], weight = (b - a) / 2 * kWeights[g];
      const double value = weight * bump.value(x), slope = -weight * bump.slope(x);
      for (int j = stencil; j <= stencil + degree; ++j) {
        double l = 1;
        for (int k = stencil; k <= stencil + degree; ++k)
          if (k != j) l *= (x - t[k]) / (t[j] - t[k]);
        rule.value[static_cast<std::size_t>(j - from)] += value * l;
        rule.slope[static_cast<std::size_t>(j - from)] += slope * l;
      }
    }
  }
  first = from;
  return rule;
}

/// Where the test functions go: all segments cut by the same radius, or by what fits four times into a short one.
struct Placed {
  std::size_t segment;
  Bump bump;
};
std::vector<Placed> place(const std::vector<Segment>& segments, double radius) {
  std::vector<Placed> placed;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const Segment& s = segments[k];
    if (s.rows < kWeakRows) continue;
    const double *t = s.times(), length = t[s.rows - 1] - t[0];
    const double spacing = length / (s.rows - 1);
    const double R = std::min(length / 2, std::max(kSpacingsPerRadius * spacing,
                                                   std::min(radius, length / 4)));
    const int count = 1 + static_cast<int>(std::floor((length - 2 * R) / (kStride * R) * (1 + 1e-9)));
    const double stride = count > 1 ? (length - 2 * R) / (count - 1) : 0;
    for (int i = 0; i < count; ++i) {
      const Bump bump{t[0] + R + i * stride, R};
      const auto [first, last] = inside(s, bump);
      double longest = 0;
      for (int j = first + 1; j < last; ++j) longest = std::max(longest, t[j] - t[j - 1]);
      if (longest <= R / 2) placed.push_back({k, bump});
    }
  }
  return placed;
}

/// The degree of interpolation with the least error of the increments, and the variance of its truncation.
struct Interpolation {
  int degree = 0;  // 0: even times, trapezoidal rule
  Vector variance;
};
Interpolation choose_interpolation(const std::vector<Segment>& segments,
                                   const std::vector<Placed>& placed, const Vector& noise) {
  constexpr std::size_t tried = 200;
  Interpolation best;
  best.variance = Vector::Zero(noise.size());
  std::vector<const Placed*> sample;
  const std::size_t every = std::max<std::size_t>(1, placed.size() / tried);
  for (std::size_t k = 0; k < placed.size(); k += every)
    if (!is_even(segments[placed[k].segment])) sample.push_back(&placed[k]);
  if (sample.empty()) return best;
  double least = INFINITY;
  for (int degree = 1; degree <= 7; degree += 2) {
    double size = 0;  // |s|², the noise in units of σ²
    Vector change = Vector::Zero(noise.size());
    for (const Placed* p : sample) {
      const Segment& s = segments[p->segment];
      auto [first, last] = inside(s, p->bump);
      int first_next = first;
      const WeakRows::Rule rule = interpolated(s, p->bump, degree, first, last);
      const WeakRows::Rule next = interpolated(s, p->bump, degree + 2, first_next, last);
      // Weights of the difference, on the rows of the longer rule.
      Vector difference = Eigen::Map<const Vector>(next.slope.data(),
                                                   static_cast<Eigen::Index>(next.slope.size()));
      for (std::size_t i = 0; i < rule.slope.size(); ++i) {
        difference[first - first_next + static_cast<int>(i)] -= rule.slope[i];
        size += rule.slope[i] * rule.slope[i];
      }
      const Vector d =
          s.states().middleRows(first_next, difference.size()).transpose() * difference;
      change += d.cwiseAbs2() - noise.cwiseAbs2() * difference.squaredNorm();
    }
    const auto count = static_cast<double>(sample.size());
    const Vector variance = (change / count).cwiseMax(0);
    const double total = size / count + variance.cwiseQuotient(noise.cwiseAbs2()).mean();
    if (total < least) {
      least = total;
      best.degree = degree;
      best.variance = variance;
    }
  }
  return best;
}

}  // namespace

void debiased_monomials(const MonomialBasis& basis, const double* y, const Vector& noise,
                        double* phi, Matrix* slopes) {
  const int n = basis.variables(), p = basis.degree();
  Matrix H(n, p + 1);
  for (int j = 0; j < n; ++j) {
    H(j, 0) = 1;
    if (p > 0) H(j, 1) = y[j];
    for (int k = 1; k < p; ++k) H(j, k + 1) = y[j] * H(j, k) - k * noise[j] * noise[j] * H(j, k - 1);
  }
  for (int m = 0; m < basis.size(); ++m) {
    const auto& powers = basis.powers(m);
    phi[m] = 1;
    for (int j = 0; j < n; ++j)
      if (powers[static_cast<std::size_t>(j)] > 0) phi[m] *= H(j, powers[static_cast<std::size_t>(j)]);
    if (slopes == nullptr) continue;
    for (int j = 0; j < n; ++j) {
      const int own = powers[static_cast<std::size_t>(j)];
      double d = own == 0 ? 0 : own * H(j, own - 1);  // H_k' = k H_{k-1}
      for (int l = 0; d != 0 && l < n; ++l)
        if (l != j) d *= H(l, powers[static_cast<std::size_t>(l)]);
      (*slopes)(m, j) = d;
    }
  }
}

double time_scale(const std::vector<Segment>& segments, const Vector& noise) {
  const auto n = noise.size();
  Vector mean = Vector::Zero(n), square = mean;
  double rows = 0, longest = 0;
  int most = 0;
  for (const Segment& s : segments) {
    mean += s.states().colwise().sum().transpose();
    rows += s.rows;
    most = std::max(most, s.rows);
    longest = std::max(longest, s.times()[s.rows - 1] - s.times()[0]);
  }
  mean /= rows;
  for (const Segment& s : segments)
    square += (s.states().rowwise() - mean.transpose()).colwise().squaredNorm().transpose();
  const Vector variance = square / rows - noise.cwiseAbs2();
  for (int lag = 1; lag < most; lag = std::max(lag + 1, lag + lag / 8)) {
    Vector sum = Vector::Zero(n);
    double time = 0, pairs = 0;
    for (const Segment& s : segments)
      for (int i = 0; i + lag < s.rows; ++i) {
        sum += (s.states().row(i + lag) - s.states().row(i)).cwiseAbs2().transpose();
        time += s.times()[i + lag] - s.times()[i];
        ++pairs;
      }
    double change = 0;
    int counted = 0;
    for (Eigen::Index j = 0; j < n; ++j)
      if (variance[j] > 0) {
        change += (sum[j] / pairs - 2 * noise[j] * noise[j]) / variance[j];
        ++counted;
      }
    if (counted == 0) break;
    change /= counted;
    if (change >= 0.25) return time / pairs / std::sqrt(change);
  }
  return longest;
}

WeakRows weak_rows(const std::vector<Segment>& segments, const MonomialBasis& basis,
                   const Vector& noise) {
  const int n = static_cast<int>(noise.size()), F = basis.size();
  assert(basis.variables() == n);
  WeakRows rows;
  rows.noise = noise;
  rows.radius = kRadii * time_scale(segments, noise);
  std::vector<Placed> placed = place(segments, rows.radius);
  // A shorter radius, while it brings more test functions.
  while (placed.size() < 5 * static_cast<std::size_t>(F)) {
    const double shorter = 0.8 * rows.radius;
    std::vector<Placed> more = place(segments, shorter);
    if (more.size() <= placed.size()) break;
    rows.radius = shorter;
    placed = std::move(more);
  }
  const Interpolation interpolation = choose_interpolation(segments, placed, noise);
  rows.truncation = interpolation.variance.cwiseSqrt();

  const auto K = static_cast<Eigen::Index>(placed.size());
  rows.integrals = Matrix::Zero(K, F);
  rows.increments = Matrix::Zero(K, n);
  for (const Segment& s : segments) rows.states.push_back(s.states());
  std::size_t current = segments.size();
  Matrix phi;
  bool even = false;
  for (Eigen::Index k = 0; k < K; ++k) {
    const auto& [which, bump] = placed[static_cast<std::size_t>(k)];
    const Segment& s = segments[which];
    if (which != current) {
      current = which;
      even = is_even(s);
      phi.resize(s.rows, F);
      for (int i = 0; i < s.rows; ++i)
        debiased_monomials(basis, rows.states[which].row(i).data(), noise, phi.row(i).data(), nullptr);
    }
    auto [first, last] = inside(s, bump);
    WeakRows::Rule rule = even ? trapezoid(s, bump, first, last)
                               : interpolated(s, bump, interpolation.degree, first, last);
    const auto size = static_cast<Eigen::Index>(rule.value.size());
    const Eigen::Map<const Vector> v(rule.value.data(), size), slope(rule.slope.data(), size);
    rows.integrals.row(k) = v.transpose() * phi.middleRows(first, size);
    rows.increments.row(k) = slope.transpose() * rows.states[which].middleRows(first, size);
    rows.functionals.push_back({which, first, std::move(rule)});
  }
  return rows;
}

}  // namespace odecast
