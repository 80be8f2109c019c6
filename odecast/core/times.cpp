#include "odecast/core/times.hpp"

#include <cmath>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"

namespace odecast {

std::vector<double> regular_times(double start, double until, double step) {
  if (!(step > 0) || !std::isfinite(step))
    throw_usage(
        {"`step`", format_number(step), "a number > 0", "It is the spacing of the output times."});
  if (!(until > start) || !std::isfinite(until))
    throw_usage({"`until`", format_number(until),
                 "a time after the start (" + format_number(start) + ")", "Give a later end."});
  const double pieces = (until - start) / step;
  checked_size(pieces, 1'000'000'000, "`step` " + format_number(step) + ", output times",
               "Give a larger step.");
  const auto count = static_cast<long>(std::floor(pieces * (1 + 1e-12) + 1e-9));
  std::vector<double> times;
  for (long i = 1; i <= count; ++i) times.push_back(start + static_cast<double>(i) * step);
  if (times.empty()) times.push_back(until);
  // i·step carries round-off; the end is where the user said it is.
  if (std::abs(times.back() - until) < 1e-6 * step) times.back() = until;
  return times;
}

}  // namespace odecast
