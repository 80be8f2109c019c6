#include "odecast/training/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace odecast {
namespace {

/// f along a ray: value and slope at a step.
struct Point {
  double step, value, slope;
};

/// Minimum of the cubic through two points with slopes, kept inside the interval.
double cubic_minimum(const Point& a, const Point& b) {
  const double d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step);
  const double square = d1 * d1 - a.slope * b.slope;
  const double low = std::min(a.step, b.step), width = std::abs(b.step - a.step);
  double step = low + width / 2;
  if (square >= 0) {
    const double d2 = std::copysign(std::sqrt(square), b.step - a.step);
    const double cubic =
        b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
    if (std::isfinite(cubic)) step = cubic;
  }
  return std::clamp(step, low + 0.1 * width, low + 0.9 * width);
}

/// Inverse Hessian approximation from the last steps s and gradient differences y.
class History {
 public:
  explicit History(int memory) : memory_(static_cast<std::size_t>(memory)) {}
  void add(const Vector& s, const Vector& y) {
    const double sy = s.dot(y);
    if (!(sy > 1e-300) || !(sy > 1e-16 * s.norm() * y.norm())) return;  // no curvature seen
    if (pairs_.size() == memory_) pairs_.erase(pairs_.begin());
    pairs_.push_back({s, y, 1 / sy});
  }
  void clear() { pairs_.clear(); }
  bool empty() const { return pairs_.empty(); }
  /// -H g by the two-loop recursion (algorithm 7.4).
  Vector direction(const Vector& g) const {
    Vector q = -g;
    std::vector<double> alpha(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      alpha[i] = pairs_[i].rho * pairs_[i].s.dot(q);
      q -= alpha[i] * pairs_[i].y;
    }
    if (!pairs_.empty()) q *= 1 / (pairs_.back().rho * pairs_.back().y.squaredNorm());
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      q += (alpha[i] - pairs_[i].rho * pairs_[i].y.dot(q)) * pairs_[i].s;
    return q;
  }

 private:
  struct Pair {
    Vector s, y;
    double rho;
  };
  std::size_t memory_;
  std::vector<Pair> pairs_;
};

}  // namespace

LbfgsResult minimise(const SmoothFunction& f, Vector& theta, const LbfgsOptions& options) {
  LbfgsResult result;
  Vector gradient(theta.size()), next_theta(theta.size()), next_gradient(theta.size());
  result.value = f(theta, gradient);
  result.evaluations = 1;
  History history(options.memory);
  const auto measure = [&] {
    return theta.cwiseProduct(gradient).cwiseAbs().maxCoeff() / result.value;
  };
  const auto over = [&] { return options.budget && options.budget->over(); };
  for (; result.iterations < options.max_iterations && !over(); ++result.iterations) {
    result.gradient = measure();
    if (result.gradient <= options.gradient_tolerance) {
      result.converged = true;
      return result;
    }
    Vector direction = history.direction(gradient);
    double slope = direction.dot(gradient);
    if (!(slope < 0)) {
      history.clear();
      direction = -gradient;
      slope = -gradient.squaredNorm();
    }
    const auto at = [&](double step) {
      ++result.evaluations;
      next_theta = theta + step * direction;
      const double value = f(next_theta, next_gradient);
      return Point{step, value, next_gradient.dot(direction)};
    };
    const Point zero{0, result.value, slope};
    const auto enough = [&](const Point& p) {
      return p.value <= zero.value + 1e-4 * p.step * zero.slope;
    };
    const auto flat = [&](const Point& p) { return std::abs(p.slope) <= -0.9 * zero.slope; };

    // Bracket a step that meets both conditions (algorithm 3.5), then close in on it (3.6).
    double step = history.empty() ? std::min(1.0, 1 / gradient.norm()) : 1.0;
    Point before = zero, now = at(step);
    std::optional<std::pair<Point, Point>> bracket;  // first the better end
    bool found = false;
    for (int i = 0; i < 30; ++i) {
      if (!std::isfinite(now.value) || !enough(now) || (i > 0 && now.value >= before.value)) {
        bracket = {before, now};
        break;
      }
      if (flat(now)) {
        found = true;
        break;
      }
      if (now.slope >= 0) {
        bracket = {now, before};
        break;
      }
      before = now;
      now = at(now.step * 2.5);
    }
    for (int i = 0; !found && bracket && i < 40; ++i) {
      auto& [low, high] = *bracket;
      now = at(std::isfinite(high.value) ? cubic_minimum(low, high) : (low.step + high.step) / 2);
      if (!std::isfinite(now.value) || !enough(now) || now.value >= low.value) {
        high = now;
      } else {
        if (flat(now)) {
          found = true;
          break;
        }
        if (now.slope * (high.step - low.step) >= 0) high = low;
        low = now;
      }
      if (std::abs(high.step - low.step) * direction.norm() <= 1e-16 * (1 + theta.norm())) break;
    }
    if (!found) {
      // No better step along this ray. Once more along the gradient, else round-off decides.
      if (!history.empty()) {
        history.clear();
        continue;
      }
      result.converged = result.gradient <= 100 * options.gradient_tolerance;
      return result;
    }
    history.add(next_theta - theta, next_gradient - gradient);
    theta = next_theta;
    gradient = next_gradient;
    result.value = now.value;
  }
  result.gradient = measure();
  return result;
}

}  // namespace odecast
