#include "odecast/observations/inspection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/observations/scaling.hpp"

namespace odecast {
namespace {

constexpr int kWindow = 9;
constexpr std::array<int, 4> kOrders = {2, 4, 6, 8};

/// The last rows of a trajectory, times first.
struct Window {
  std::vector<double> rows;
  long seen = 0;
};

/// Median of |value|, as the standard deviation of a Gaussian. Reorders the values.
double spread_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle / 0.6744897501960817;
}

/// Divided differences of windows spread evenly over the rows: when the store is full, every second
/// one is dropped and from then on half as many are taken.
class NoiseEstimate {
 public:
  explicit NoiseEstimate(std::size_t columns)
      : columns_(columns), capacity_(std::max<std::size_t>(200, 100'000 / columns)) {
    for (auto& s : store_) s.resize(columns);
  }

  void window(const Window& w) {
    if (++offered_ % stride_ != 0) return;
    const std::size_t width = columns_ + 1;
    const auto row = [&](int back) {  // 0 is the newest
      return w.rows.data() + static_cast<std::size_t>((w.seen - 1 - back) % kWindow) * width;
    };
    for (std::size_t o = 0; o < kOrders.size(); ++o) {
      const int k = kOrders[o];
      std::array<double, kWindow> weight;
      const double unit = (row(0)[0] - row(k)[0]) / k;
      double squares = 0;
      for (int i = 0; i <= k; ++i) {
        double product = 1;
        for (int j = 0; j <= k; ++j)
          if (j != i) product *= (row(i)[0] - row(j)[0]) / unit;
        weight[static_cast<std::size_t>(i)] = 1 / product;
        squares += weight[static_cast<std::size_t>(i)] * weight[static_cast<std::size_t>(i)];
      }
      const double norm = 1 / std::sqrt(squares);
      for (std::size_t c = 0; c < columns_; ++c) {
        double sum = 0;
        for (int i = 0; i <= k; ++i) sum += weight[static_cast<std::size_t>(i)] * row(i)[c + 1];
        if (!std::isnan(sum)) store_[o][c].push_back(std::abs(sum * norm));
      }
    }
    // The lowest order has the fewest missing.
    if (std::none_of(store_[0].begin(), store_[0].end(),
                     [&](const auto& values) { return values.size() >= capacity_; }))
      return;
    stride_ *= 2;
    for (auto& order : store_)
      for (auto& values : order) {
        for (std::size_t i = 0; 2 * i + 1 < values.size(); ++i) values[i] = values[2 * i + 1];
        values.resize(values.size() / 2);
      }
  }

  Vector result() {
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    Vector noise = Vector::Constant(static_cast<Eigen::Index>(columns_), unknown);
    for (std::size_t c = 0; c < columns_; ++c)
      for (auto& order : store_)
        if (order[c].size() >= (&order == store_.data()
                                    ? 1u
                                    : 30u)) {  // a high order of few windows would win by chance
          double& best = noise[static_cast<Eigen::Index>(c)];
          best = std::fmin(best, spread_of(order[c]));
        }
    return noise;
  }

 private:
  std::size_t columns_, capacity_;
  long offered_ = 0, stride_ = 1;
  std::array<std::vector<std::vector<double>>, kOrders.size()> store_;
};

/// Steps: the first ones wait until their median says what a gap is.
class Sampling {
 public:
  void step(double h) {
    ++pairs_;
    if (waiting_.size() < kWaiting) {
      waiting_.push_back(h);
      if (waiting_.size() == kWaiting) settle();
    } else {
      count(h);
    }
  }

  void finish(Inspection& to) {
    if (waiting_.size() < kWaiting) settle();
    to.pairs = pairs_;
    to.step = median_;
    to.smallest_step = pairs_ > 0 ? smallest_ : 0;
    to.largest_step = largest_;
    to.gaps = gaps_;
    to.largest_gap = largest_gap_;
    to.even = pairs_ > 0 && largest_ - smallest_ <= 1e-6 * median_;
  }

 private:
  static constexpr std::size_t kWaiting = 10'000;

  void settle() {
    if (waiting_.empty()) return;
    std::vector<double> sorted(waiting_);
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    median_ = *middle;
    for (const double h : waiting_) count(h);
  }
  void count(double h) {
    if (h > 1.5 * median_) {
      ++gaps_;
      largest_gap_ = std::max(largest_gap_, h);
    } else {
      smallest_ = std::min(smallest_, h);
      largest_ = std::max(largest_, h);
    }
  }

  std::vector<double> waiting_;
  long pairs_ = 0, gaps_ = 0;
  double median_ = 0, smallest_ = std::numeric_limits<double>::infinity(), largest_ = 0,
         largest_gap_ = 0;
};

}  // namespace

Inspection inspect(const ObservationSource& source) {
  const std::size_t n = source.variables.size() + source.inputs.size();
  const auto size = static_cast<Eigen::Index>(n);
  Inspection result;
  result.missing.resize(n);
  result.mean = Vector::Zero(size);
  Vector squares = result.mean;
  result.smallest = Vector::Constant(size, std::numeric_limits<double>::infinity());
  result.largest = -result.smallest;
  result.first_time = std::numeric_limits<double>::infinity();
  result.last_time = -result.first_time;
  std::vector<Window> windows;
  NoiseEstimate noise(n);
  Sampling sampling;
  source.replay([&](std::size_t which, double time, const double* values) {
    if (which >= windows.size())
      windows.resize(which + 1, {std::vector<double>(kWindow * (n + 1)), 0});
    Window& w = windows[which];
    if (w.seen > 0) {
      const auto last = static_cast<std::size_t>((w.seen - 1) % kWindow);
      sampling.step(time - w.rows[last * (n + 1)]);
    }
    double* row = w.rows.data() + static_cast<std::size_t>(w.seen % kWindow) * (n + 1);
    row[0] = time;
    std::copy(values, values + n, row + 1);
    if (++w.seen >= kWindow) noise.window(w);
    result.first_time = std::min(result.first_time, time);
    result.last_time = std::max(result.last_time, time);
    const double share = 1 / static_cast<double>(++result.rows);
    for (Eigen::Index i = 0; i < size; ++i) {
      const double x = values[i], delta = x - result.mean[i];
      long& missing = result.missing[static_cast<std::size_t>(i)];
      if (std::isnan(x)) {
        ++missing;
        continue;
      }
      result.mean[i] +=
          delta * (missing == 0 ? share : 1 / static_cast<double>(result.rows - missing));
      squares[i] += delta * (x - result.mean[i]);
      result.smallest[i] = std::min(result.smallest[i], x);
      result.largest[i] = std::max(result.largest[i], x);
    }
  });
  for (const Window& w : windows) result.trajectory_rows.push_back(w.seen);
  sampling.finish(result);
  result.sd = result.mean;
  for (Eigen::Index i = 0; i < size; ++i) {
    const long observed = result.rows - result.missing[static_cast<std::size_t>(i)];
    result.sd[i] = std::sqrt(squares[i] / static_cast<double>(observed));
    if (observed == 0)
      result.mean[i] = result.smallest[i] = result.largest[i] =
          std::numeric_limits<double>::quiet_NaN();
    require_finite(
        observed == 0 || (std::isfinite(result.mean[i]) && std::isfinite(result.sd[i])),
        source.name,
        fmt::format("values of {} whose squares overflow",
                    i < source.dimension()
                        ? source.variables[static_cast<std::size_t>(i)]
                        : source.inputs[static_cast<std::size_t>(i - source.dimension())]),
        "Rescale the column, or remove the outliers.");
    result.constant.push_back(observed > 0 && is_constant(observed, result.mean[i], result.sd[i]));
  }
  result.noise = noise.result();
  return result;
}

}  // namespace odecast
