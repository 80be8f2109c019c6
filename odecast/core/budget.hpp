#pragma once

#include <chrono>
#include <limits>

namespace odecast {

/// How much a computation may cost before it ends with what it has: an amount of work that it
/// counts itself, the same on every machine, or seconds on the clock. Loops ask over(); nothing is
/// thrown.
class Budget {
 public:
  /// Without a bound.
  Budget() = default;
  /// About so many operations.
  static Budget of_work(double operations) {
    Budget b;
    b.work_ = operations;
    return b;
  }
  static Budget of_seconds(double seconds) {
    Budget b;
    if (!(seconds < 1e9)) return b;  // longer than any program runs, and than clocks count
    b.end_ = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    b.timed_ = true;
    return b;
  }

  void spend(double operations) { spent_ += operations; }
  double spent() const { return spent_; }
  bool over() const { return spent_ > work_ || (timed_ && Clock::now() > end_); }

 private:
  using Clock = std::chrono::steady_clock;
  double work_ = std::numeric_limits<double>::infinity(), spent_ = 0;
  bool timed_ = false;
  Clock::time_point end_ = {};
};

}  // namespace odecast
