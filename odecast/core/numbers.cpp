#include "odecast/core/numbers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"

namespace odecast {

void append_number(std::string& text, double value) {
  if (std::isnan(value)) {  // to_chars would keep the sign of a NaN
    text += "nan";
    return;
  }
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  text.append(buffer.data(), end.ptr);
}

std::string format_number(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || status == std::errc::invalid_argument)
    return std::nullopt;
  if (status == std::errc::result_out_of_range) {
    // Too large or too small: the sign of the exponent tells which, and strtod is not needed.
    const auto e = text.find_first_of("eE");
    const bool tiny = (e != text.npos && text.substr(e + 1).starts_with('-')) ||
                      (e == text.npos && text.find_first_of("123456789") > text.find('.'));
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    if (text.starts_with('-')) value = -value;
  }
  return value;
}

long checked_size(double value, long most, const std::string& what, const std::string& remedy) {
  if (!(std::abs(value) <= static_cast<double>(most)))
    throw_usage({what, format_number(value), "at most " + format_number(static_cast<double>(most)),
                 remedy});
  return std::lround(value);
}

double root_sum_square(double a, double b) {
  const double larger = std::max(std::abs(a), std::abs(b));
  if (!(larger > 0) || !std::isfinite(larger) || std::isnan(a + b))
    return std::abs(a) + std::abs(b);
  const int exponent = std::ilogb(larger);  // a power of two takes no digit away
  a = std::scalbn(a, -exponent), b = std::scalbn(b, -exponent);
  return std::scalbn(std::sqrt(a * a + b * b), exponent);
}

}  // namespace odecast
