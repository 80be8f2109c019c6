#include "odecast/core/numbers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/random.hpp"

namespace odecast {
namespace {

TEST(NumbersTest, PrintedNumbersReadBackAsTheSameBits) {
  Stream stream(1, Purpose::observation_noise, 0);
  for (int i = 0; i < 200'000; ++i) {
    const auto high = static_cast<std::uint64_t>(stream.bits());
    const double x = std::bit_cast<double>(high << 32 | stream.bits());
    if (!std::isfinite(x)) continue;
    const auto back = parse_number(format_number(x));
    ASSERT_TRUE(back);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(*back), std::bit_cast<std::uint64_t>(x));
  }
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(-0.0), "-0");
}

TEST(NumbersTest, OnlyWholeNumbersAreNumbers) {
  for (const char* text : {"", " 1", "1 ", "1,5", "abc", "1e", "--1", "+-1", "0x10", "1.2.3", "+"})
    EXPECT_FALSE(parse_number(text)) << '"' << text << '"';
  EXPECT_EQ(parse_number("+1.5"), 1.5);
  EXPECT_EQ(parse_number("-1e-3"), -1e-3);
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_TRUE(std::isnan(*parse_number("nan")));
  EXPECT_TRUE(std::isinf(*parse_number("-inf")));
}

TEST(NumbersTest, OutOfRangeIsInfinityOrZero) {
  EXPECT_EQ(parse_number("1e400"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_number("-1e400"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_number("1e-400"), 0.0);
  EXPECT_EQ(parse_number("0." + std::string(400, '0') + "1"), 0.0);
  EXPECT_EQ(parse_number("1" + std::string(400, '0')), std::numeric_limits<double>::infinity());
}

TEST(NumbersTest, SizesThatDoNotFitAreRefused) {
  EXPECT_EQ(checked_size(2.6, 10, "", ""), 3);
  EXPECT_EQ(checked_size(-3, 10, "", ""), -3);
  for (const double bad : {11.0, 1e19, -1e300, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(checked_size(bad, 10, "", ""), Error) << bad;
}

TEST(NumbersTest, RootSumSquareIsThatOfMoreDigits) {
  Stream stream(3, Purpose::observation_noise, 0);
  for (int i = 0; i < 10'000; ++i) {
    const double a = stream.normal(), b = stream.normal() * std::pow(10, i % 9);
    const auto exact = static_cast<double>(
        std::sqrt(static_cast<long double>(a) * a + static_cast<long double>(b) * b));
    // Squares and sum err by 2⁻⁵³ each, which the root halves; it and `exact` are rounded, too.
    EXPECT_NEAR(root_sum_square(a, b), exact, 1.5 * 0x1p-52 * exact) << a << ' ' << b;
    for (const int exponent : {-1000, -700, 900})
      EXPECT_EQ(root_sum_square(std::ldexp(a, exponent), std::ldexp(b, exponent)),
                std::ldexp(root_sum_square(a, b), exponent));
  }
}

TEST(NumbersTest, RootSumSquareOfZeroInfinityAndNaN) {
  constexpr double infinity = std::numeric_limits<double>::infinity(),
                   none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(root_sum_square(0, -0.0), 0);
  EXPECT_EQ(root_sum_square(-3, 4), 5);
  EXPECT_EQ(root_sum_square(infinity, -infinity), infinity);
  EXPECT_EQ(root_sum_square(1, -infinity), infinity);
  EXPECT_TRUE(std::isnan(root_sum_square(none, 1)));
  EXPECT_TRUE(std::isnan(root_sum_square(0, none)));
}

}  // namespace
}  // namespace odecast
