#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace odecast {

/// The shortest text that reads back as the same double; "nan", "inf", "-inf" otherwise. No locale.
std::string format_number(double value);
void append_number(std::string& text, double value);

/// The number in `text` (no surrounding space; an optional leading '+'), or nothing when the text
/// is anything else. "nan" and "inf" are read as such: whether they are welcome is the caller's
/// question. No locale. A magnitude outside the doubles reads as infinity or zero.
std::optional<double> parse_number(std::string_view text);

/// The nearest whole number, for a size that follows from what a user gave. Throws Error (usage),
/// "`what`: found …, expected at most `most`", beyond that and for what is no number: a conversion
/// that does not fit is undefined.
long checked_size(double value, long most, const std::string& what, const std::string& remedy);

/// √(a² + b²), which does not overflow before the result does. That of the C library is rounded
/// otherwise from one to the next; this has the same bits everywhere.
double root_sum_square(double a, double b);

}  // namespace odecast
