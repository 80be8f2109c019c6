#include "odecast/regression/weak.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>

#include "odecast/regression/selection.hpp"

namespace odecast {
namespace {

constexpr int kPower =
    8;  // of ψ: smooth enough for the trapezoidal rule at 8 observations per radius
constexpr double kRadii = 1.5, kStride = 0.25;
constexpr int kSpacingsPerRadius = 8;

// Gauss–Legendre nodes and weights on [-1, 1], exact to degree 11 (Abramowitz & Stegun,
// table 25.4).
constexpr std::array<double, 6> kNodes = {-0.932469514203152, -0.661209386466265,
                                          -0.238619186083197, 0.238619186083197,
                                          0.661209386466265,  0.932469514203152};
constexpr std::array<double, 6> kWeights = {0.171324492379170, 0.360761573048139,
                                            0.467913934572691, 0.467913934572691,
                                            0.360761573048139, 0.171324492379170};

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

/// How observations at uneven times are taken together: on each interval the polynomial of some
/// degree that fits best the given number of observations around it. As many points as coefficients
/// would interpolate, and blow up the noise where two observations are close together.
struct LocalFit {
  int degree = 0, points = 0;  // none: even times, trapezoidal rule

  LocalFit next() const { return {degree + 2, points + (degree == 1 ? 4 : 2)}; }
};
constexpr std::array<LocalFit, 9> kFits = {
    {{1, 2}, {1, 4}, {3, 8}, {3, 12}, {3, 16}, {5, 12}, {5, 20}, {7, 16}, {7, 8}}};

/// The integration rules of one segment for one kind of fit.
class UnevenRules {
 public:
  UnevenRules(const Segment& segment, LocalFit fit)
      : segment_(segment),
        points_(std::min(fit.points, segment.rows)),
        degree_(std::min(fit.degree, points_ - 1)),
        fits_(static_cast<std::size_t>(segment.rows - 1)) {}

  /// v_i = ∫ ψ ℓ_i, s_i = -∫ ψ' ℓ_i by six Gauss–Legendre nodes on each of the intervals between
  /// the observations first … last - 1. Sets `first` to the first observation the rule uses.
  WeakRows::Rule rule(const Bump& bump, int& first, int last) {
    const double* t = segment_.times();
    const int from = stencil(first), to = stencil(last - 2) + points_;
    longest_ = std::max(longest_, last - first);
    WeakRows::Rule rule{std::vector<double>(static_cast<std::size_t>(to - from)),
                        std::vector<double>(static_cast<std::size_t>(to - from))};
    Vector value(degree_ + 1), slope(degree_ + 1);
    for (int i = first; i + 1 < last; ++i) {
      const double a = std::max(t[i], bump.centre - bump.radius);
      const double b = std::min(t[i + 1], bump.centre + bump.radius);
      if (!(b > a)) continue;
      const Fit& fit = fit_of(i);
      // ∫ ψ x^k and -∫ ψ' x^k, then the coefficients of x^k from the observations.
      value.setZero();
      slope.setZero();
      for (std::size_t g = 0; g < kNodes.size(); ++g) {
        const double at = (a + b) / 2 + (b - a) / 2 * kNodes[g], weight = (b - a) / 2 * kWeights[g];
        const double x = (at - fit.centre) / fit.scale;
        double power = weight;
        const double psi = bump.value(at), dpsi = bump.slope(at);
        for (int k = 0; k <= degree_; ++k, power *= x) {
          value[k] += psi * power;
          slope[k] -= dpsi * power;
        }
      }
      const int offset = stencil(i) - from;
      for (int j = 0; j < points_; ++j) {
        rule.value[static_cast<std::size_t>(offset + j)] += fit.coefficients.col(j).dot(value);
        rule.slope[static_cast<std::size_t>(offset + j)] += fit.coefficients.col(j).dot(slope);
      }
    }
    first = from;
    return rule;
  }

 private:
  /// Coefficients of ((t - centre) / scale)^k = matrix × observations.
  struct Fit {
    double centre = 0, scale = 0;
    Eigen::MatrixXd coefficients;
  };
  int stencil(int i) const { return std::clamp(i - points_ / 2 + 1, 0, segment_.rows - points_); }
  const Fit& fit_of(int i) {
    Fit& fit = fits_[static_cast<std::size_t>(i)];
    if (fit.coefficients.size() > 0) return fit;
    // Test functions come in order: what lies more than two of them back is not needed again.
    for (; forgotten_ + 2 * longest_ < i; ++forgotten_)
      fits_[static_cast<std::size_t>(forgotten_)] = {};
    const double* t = segment_.times() + stencil(i);
    fit.centre = (segment_.times()[i] + segment_.times()[i + 1]) / 2;
    fit.scale = std::max(fit.centre - t[0], t[points_ - 1] - fit.centre);
    Eigen::MatrixXd V(points_, degree_ + 1);
    for (int j = 0; j < points_; ++j) {
      V(j, 0) = 1;
      for (int k = 1; k <= degree_; ++k) V(j, k) = V(j, k - 1) * (t[j] - fit.centre) / fit.scale;
    }
    fit.coefficients =
        Eigen::HouseholderQR<Eigen::MatrixXd>(V).solve(Eigen::MatrixXd::Identity(points_, points_));
    return fit;
  }

  Segment segment_;
  int points_, degree_;
  std::vector<Fit> fits_;            // made when first needed
  int forgotten_ = 0, longest_ = 0;  // intervals whose fits are gone; of a test function
};

/// Where the test functions go: all segments cut by the same radius, or by what fits four times
/// into a short one.
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
    const double R =
        std::min(length / 2, std::max(kSpacingsPerRadius * spacing, std::min(radius, length / 4)));
    const int count =
        1 + static_cast<int>(std::floor((length - 2 * R) / (kStride * R) * (1 + 1e-9)));
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

/// s' - s, the weights of the next fit less those of one.
double change_of_rule(const Segment& s, const Bump& bump, UnevenRules& rules, UnevenRules& next,
                      Vector& change, int& first) {
  const auto [begin, last] = inside(s, bump);
  int own = begin;
  first = begin;
  const WeakRows::Rule rule = rules.rule(bump, own, last), other = next.rule(bump, first, last);
  change =
      Eigen::Map<const Vector>(other.slope.data(), static_cast<Eigen::Index>(other.slope.size()));
  double size = 0;
  for (std::size_t i = 0; i < rule.slope.size(); ++i) {
    change[own - first + static_cast<int>(i)] -= rule.slope[i];
    size += rule.slope[i] * rule.slope[i];
  }
  return size;
}

/// The fit with the least error of the increments, and c² of each variable.
struct Choice {
  LocalFit fit;
  Vector excess;
};
Choice choose_fit(const std::vector<Segment>& segments, const std::vector<Placed>& placed,
                  const Vector& noise) {
  constexpr std::size_t tried = 50;
  Choice best;
  best.excess = Vector::Zero(noise.size());
  std::vector<const Placed*> sample;
  const std::size_t every = std::max<std::size_t>(1, placed.size() / tried);
  for (std::size_t k = 0; k < placed.size(); k += every)
    if (!is_even(segments[placed[k].segment])) sample.push_back(&placed[k]);
  if (sample.empty()) return best;
  const auto count = static_cast<double>(sample.size());
  double least = INFINITY;
  for (const LocalFit& fit : kFits) {
    double size = 0, change_size = 0;  // mean |s|² and |s' - s|²
    Vector square = Vector::Zero(noise.size()), change;
    for (std::size_t k = 0; k < sample.size();) {
      const std::size_t which = sample[k]->segment;
      const Segment& s = segments[which];
      UnevenRules rules(s, fit), next(s, fit.next());
      for (; k < sample.size() && sample[k]->segment == which; ++k) {
        int first = 0;
        size += change_of_rule(s, sample[k]->bump, rules, next, change, first) / count;
        if (!(change.squaredNorm() > 0)) continue;
        change_size += change.squaredNorm() / count;
        square += (s.states().middleRows(first, change.size()).transpose() * change).cwiseAbs2() /
                  (change.squaredNorm() * count);
      }
    }
    const double chance = 1.2 + 3 * std::sqrt(2 / count);
    const Vector excess = (square - chance * noise.cwiseAbs2()).cwiseMax(0);
    const double total = size + change_size * excess.cwiseQuotient(noise.cwiseAbs2()).mean();
    if (total < least) {
      least = total;
      best = {fit, excess};
    }
  }
  return best;
}

}  // namespace

double LinearTerms::price(int term) const {
  return term < basis.size() ? term_price(basis, term)
                             : prices[static_cast<std::size_t>(term - basis.size())];
}

void LinearTerms::evaluate(const double* arguments, double* values) const {
  basis.evaluate(arguments, values);
  if (!functions) return;
  std::vector<double> nodes(static_cast<std::size_t>(functions->values().size()));
  odecast::evaluate(functions->values(), arguments, nullptr, nodes.data());
  for (int f = 0; f < functions->size(); ++f)
    values[basis.size() + f] =
        nodes[static_cast<std::size_t>(functions->roots()[static_cast<std::size_t>(f)])];
}

DebiasedTerms::DebiasedTerms(const LinearTerms& terms, Vector noise)
    : basis_(terms.basis),
      noise_(std::move(noise)),
      hermite_(Matrix::Ones(terms.variables(), basis_.degree() + 1)) {
  if (!terms.functions) return;
  Tape all = terms.functions->values();
  std::vector<int> needed;
  for (const int value : terms.functions->roots()) {
    int debiased = value;
    for (int j = 0; j < terms.variables(); ++j) {
      const int u = all.argument(j), second = slope(all, slope(all, value, u), u);
      const double part = 0.5 * noise_[j] * noise_[j];
      debiased = all.make(Op::subtract, debiased, all.make(Op::multiply, all.number(part), second));
    }
    needed.push_back(debiased);
  }
  const std::size_t count = needed.size();
  for (std::size_t f = 0; f < count; ++f)
    for (int j = 0; j < terms.variables(); ++j)
      needed.push_back(slope(all, needed[f], all.argument(j)));
  tape_ = extracted(all, needed);
  const auto slopes = needed.begin() + static_cast<std::ptrdiff_t>(count);
  values_.assign(needed.begin(), slopes);
  slopes_.assign(slopes, needed.end());
  nodes_.resize(static_cast<std::size_t>(tape_.size()));
}

void DebiasedTerms::functions(const double* y, double* phi, Matrix* slopes) {
  evaluate(tape_, y, nullptr, nodes_.data());
  const int n = basis_.variables(), F = basis_.size();
  const auto value = [&](int node) { return nodes_[static_cast<std::size_t>(node)]; };
  for (std::size_t f = 0; f < values_.size(); ++f) {
    const int term = F + static_cast<int>(f);
    phi[term] = value(values_[f]);
    for (int j = 0; slopes && j < n; ++j)
      (*slopes)(term, j) =
          value(slopes_[f * static_cast<std::size_t>(n) + static_cast<std::size_t>(j)]);
  }
}

void DebiasedTerms::operator()(const double* y, double* phi, Matrix* slopes) {
  const int n = basis_.variables(), p = basis_.degree();
  Matrix& H = hermite_;
  if (!values_.empty()) functions(y, phi, slopes);
  for (int j = 0; j < n; ++j) {
    if (p > 0) H(j, 1) = y[j];
    for (int k = 1; k < p; ++k)
      H(j, k + 1) = y[j] * H(j, k) - k * noise_[j] * noise_[j] * H(j, k - 1);
  }
  for (int m = 0; m < basis_.size(); ++m) {
    const auto& powers = basis_.powers(m);
    phi[m] = 1;
    for (int j = 0; j < n; ++j)
      if (powers[static_cast<std::size_t>(j)] > 0)
        phi[m] *= H(j, powers[static_cast<std::size_t>(j)]);
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

namespace {

/// What all rows have in common.
struct Layout {
  double radius;
  Choice choice;
};

Layout lay_out(const std::vector<Segment>& segments, double radius, std::size_t least,
               const Vector& noise) {
  std::vector<Placed> placed = place(segments, radius);
  // A shorter radius, while it brings more test functions.
  while (placed.size() < least) {
    const double shorter = 0.8 * radius;
    std::vector<Placed> more = place(segments, shorter);
    if (more.size() <= placed.size()) break;
    radius = shorter;
    placed = std::move(more);
  }
  return {radius, choose_fit(segments, placed, noise)};
}

WeakRows rows_of(const std::vector<Segment>& segments, const Layout& layout,
                 const LinearTerms& terms, const Vector& noise, int targets) {
  const int n = static_cast<int>(noise.size()), F = terms.size();
  assert(terms.variables() == n);
  WeakRows rows;
  rows.noise = noise;
  rows.radius = layout.radius;
  const std::vector<Placed> placed = place(segments, rows.radius);
  const Choice& choice = layout.choice;

  const auto K = static_cast<Eigen::Index>(placed.size());
  rows.integrals = Matrix::Zero(K, F);
  rows.increments = rows.truncation = Matrix::Zero(K, n);
  for (const Segment& s : segments) rows.states.push_back(s.states());
  std::size_t current = segments.size();
  Matrix phi;
  bool even = false;
  std::optional<UnevenRules> rules, next;
  DebiasedTerms debiased(terms, noise);
  for (Eigen::Index k = 0; k < K; ++k) {
    const auto& [which, bump] = placed[static_cast<std::size_t>(k)];
    const Segment& s = segments[which];
    if (which != current) {
      current = which;
      even = is_even(s);
      if (!even) {
        rules.emplace(s, choice.fit);
        next.emplace(s, choice.fit.next());
      }
      phi.resize(s.rows, F);
      for (int i = 0; i < s.rows; ++i)
        debiased(rows.states[which].row(i).data(), phi.row(i).data(), nullptr);
    }
    auto [first, last] = inside(s, bump);
    if (!even && !choice.excess.isZero(0)) {
      Vector change;
      int ignored = 0;
      change_of_rule(s, bump, *rules, *next, change, ignored);
      rows.truncation.row(k) = change.norm() * choice.excess.cwiseSqrt().transpose();
    }
    WeakRows::Rule rule = even ? trapezoid(s, bump, first, last) : rules->rule(bump, first, last);
    const auto size = static_cast<Eigen::Index>(rule.value.size());
    const Eigen::Map<const Vector> v(rule.value.data(), size), slope(rule.slope.data(), size);
    rows.integrals.row(k) = v.transpose() * phi.middleRows(first, size);
    rows.increments.row(k) = slope.transpose() * rows.states[which].middleRows(first, size);
    rows.functionals.push_back({which, first, std::move(rule)});
  }
  if (targets > 0 && targets < n) {
    rows.increments = Matrix(rows.increments.leftCols(targets));
    rows.truncation = Matrix(rows.truncation.leftCols(targets));
  }
  return rows;
}

constexpr double kBlockBytes = 32 << 20;

/// About what regression keeps for each observation, of test functions with so many of them in a
/// radius: covariance and factor of their rows, integrals and rules; of the observation itself
/// states, Jacobians and monomials.
double bytes_of_row(double radius, int n, int variables, int F) {
  const double functions = 1 / (kStride * radius);
  return 8 * (functions * (18.0 * n * n + 2 * F + 3 * n + 10) + 16 + (n + 3) * variables +
              3 * n * n + 2 * F + n);
}

/// Segments that are too long cut to equal parts.
std::vector<Segment> cut(const std::vector<Segment>& segments, double radius,
                         double rows_per_block) {
  std::vector<Segment> parts;
  for (const Segment& s : segments) {
    const double spacing = s.rows > 1 ? (s.times()[s.rows - 1] - s.times()[0]) / (s.rows - 1) : 0;
    const double shortest =
        spacing > 0 ? 128 * std::max<double>(kSpacingsPerRadius, radius / spacing) : 0;
    const auto pieces = static_cast<long>(
        std::max(1.0, std::ceil(s.rows / std::max(rows_per_block, shortest) - 0.5)));
    for (long p = 0; p < pieces; ++p) {
      const auto begin = static_cast<int>(s.rows * p / pieces),
                 end = static_cast<int>(s.rows * (p + 1) / pieces);
      parts.push_back({s.trajectory, s.first + begin, end - begin});
    }
  }
  return parts;
}

}  // namespace

WeakRows weak_rows(const std::vector<Segment>& segments, const LinearTerms& terms,
                   const Vector& noise, int targets) {
  return rows_of(segments,
                 lay_out(segments, kRadii * time_scale(segments, noise),
                         5 * static_cast<std::size_t>(terms.size()), noise),
                 terms, noise, targets);
}

struct WeakBlocks::Plan {
  std::vector<Segment> segments;
  LinearTerms terms;
  Vector noise;
  int targets;
  // Of the layout.
  double radius;
  int degree, points;
  Vector excess;
};

WeakBlocks::WeakBlocks(std::vector<Segment> segments, const LinearTerms& terms, const Vector& noise,
                       int targets) {
  const int variables = static_cast<int>(noise.size());
  dimension_ = targets > 0 ? targets : variables;
  const double radius = kRadii * time_scale(segments, noise);
  double rows = 0, time = 0;
  for (const Segment& s : segments) {
    rows += s.rows;
    time += s.times()[s.rows - 1] - s.times()[0];
  }
  const double in_radius = std::clamp(time > 0 ? radius * rows / time : 0,
                                      static_cast<double>(kSpacingsPerRadius), std::max(rows, 8.0));
  const double per_block =
      kBlockBytes / bytes_of_row(in_radius, dimension_, variables, terms.size());
  if (rows > per_block) segments = cut(segments, radius, per_block);
  const Layout layout =
      lay_out(segments, radius, 5 * static_cast<std::size_t>(terms.size()), noise);
  rows_ = static_cast<Eigen::Index>(place(segments, layout.radius).size());
  double held = 0;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    if (k == 0 || held + segments[k].rows > 1.5 * per_block) {
      begins_.push_back(k);
      held = 0;
    }
    held += segments[k].rows;
  }
  begins_.push_back(segments.size());
  const Choice& choice = layout.choice;
  plan_.reset(new Plan{std::move(segments), terms, noise, targets, layout.radius, choice.fit.degree,
                       choice.fit.points, choice.excess});
  which_ = begins_.size();  // none
  current_.noise = noise;
}

WeakBlocks::WeakBlocks(WeakRows rows)
    : begins_{0, rows.states.size()},
      rows_(rows.rows()),
      dimension_(rows.dimension()),
      current_(std::move(rows)) {}

WeakBlocks::~WeakBlocks() = default;

const WeakRows& WeakBlocks::block(std::size_t b) {
  if (b == which_) return current_;
  current_ = {};
  const auto begin = plan_->segments.begin();
  const Layout layout{plan_->radius, {{plan_->degree, plan_->points}, plan_->excess}};
  current_ =
      rows_of({begin + static_cast<long>(begins_[b]), begin + static_cast<long>(begins_[b + 1])},
              layout, plan_->terms, plan_->noise, plan_->targets);
  which_ = b;
  return current_;
}

}  // namespace odecast
