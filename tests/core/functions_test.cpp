#include "odecast/core/functions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "odecast/core/encoding.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/random.hpp"

namespace odecast {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Of `got` in units in the last place of the true value, which 64 bits hold to 2^-11 of one.
double error(double got, long double truth) {
  const auto nearest = static_cast<double>(truth);
  if (!std::isfinite(nearest)) return got == nearest ? 0 : kInf;
  int exponent;
  std::frexp(nearest, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs((static_cast<long double>(got) - truth) / unit));
}

struct Draw {
  Stream stream{7, Purpose::evaluation, 0};
  double uniform(double a, double b) { return a + (b - a) * stream.uniform(); }
  /// A random mantissa with an exponent from a to b.
  double wide(int a, int b) {
    const double mantissa = uniform(1, 2);
    return std::ldexp(mantissa, a + static_cast<int>((b - a) * stream.uniform()));
  }
  double either(double x) { return stream.bits() & 1 ? x : -x; }
  /// Near a multiple of π/2 up to 2^20.
  double turn() { return either(static_cast<double>(std::floor(uniform(1, 667'000)) * M_PI_2l)); }
};

/// 10⁶ arguments: a quarter of each kind.
void expect_errors_below(double bound, double (*own)(double), long double (*truth)(long double),
                         const std::vector<std::function<double(Draw&)>>& kinds) {
  Draw draw;
  double worst = 0, where = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double x = kinds[static_cast<std::size_t>(i) % kinds.size()](draw);
    const double e = error(own(x), truth(x));
    if (!(e <= worst)) worst = e, where = x;
  }
  EXPECT_LT(worst, bound) << "at " << where;
  ::testing::Test::RecordProperty("ulp", std::to_string(worst));
}

const std::vector<std::function<double(Draw&)>> kAngles = {
    [](Draw& d) { return d.either(d.wide(-40, 20)); },
    [](Draw& d) { return d.uniform(-10, 10); },
    [](Draw& d) { return d.uniform(-0x1p20, 0x1p20); },
    [](Draw& d) { return d.turn(); },
};

// The bounds are those that functions_kernel.hpp states; below 2 was asked for.
TEST(FunctionsTest, Sine) { expect_errors_below(1, sine_of, std::sin, kAngles); }
TEST(FunctionsTest, Cosine) { expect_errors_below(1, cosine_of, std::cos, kAngles); }
TEST(FunctionsTest, Tangent) { expect_errors_below(1.4, tangent_of, std::tan, kAngles); }

TEST(FunctionsTest, Exponential) {
  expect_errors_below(
      0.7, exponential_of, std::exp,
      {[](Draw& d) { return d.uniform(-708, 709.7); }, [](Draw& d) { return d.uniform(-1, 1); },
       [](Draw& d) { return d.either(d.wide(-60, 9)); },
       [](Draw& d) { return d.uniform(-20, 20); }});
  expect_errors_below(1.2, exponential_of, std::exp,
                      {[](Draw& d) { return d.uniform(-745.2, -708); }});
}

TEST(FunctionsTest, Logarithm) {
  expect_errors_below(
      1, logarithm_of, std::log,
      {[](Draw& d) { return d.wide(-1022, 1024); }, [](Draw& d) { return d.uniform(0.5, 2); },
       [](Draw& d) { return 1 + d.either(d.wide(-52, -2)); },
       [](Draw& d) { return d.uniform(0, 0x1p-1022); }});
}

TEST(FunctionsTest, HyperbolicTangent) {
  expect_errors_below(
      1, hyperbolic_tangent_of, std::tanh,
      {[](Draw& d) { return d.either(d.wide(-60, 6)); }, [](Draw& d) { return d.uniform(-1, 1); },
       [](Draw& d) { return d.uniform(-0.3, 0.3); }, [](Draw& d) { return d.uniform(-22, 22); }});
}

TEST(FunctionsTest, Power) {
  Draw draw;
  double worst = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const double x = i & 1 ? draw.uniform(0.3, 3) : draw.wide(-1022, 1023);
    // A moderate exponent, or one that brings the result anywhere among the normal numbers.
    const double c = i & 2 ? draw.uniform(-3, 3) : draw.uniform(-708, 709) / std::log(x);
    const long double truth = std::pow(static_cast<long double>(x), static_cast<long double>(c));
    if (!(std::abs(c) < 1e18) || truth < 0x1p-1022L || truth > 0x1.fffffep1023L) continue;
    worst = std::max(worst, error(power_of(x, c), truth));
  }
  EXPECT_LT(worst, 1.5);
  RecordProperty("ulp", std::to_string(worst));
}

/// Whatever the compiler and the processor.
TEST(FunctionsTest, TheBitsAreThoseRecorded) {
  const struct {
    const char* name;
    std::uint64_t recorded;
    double (*function)(double x, double c);
  } all[] = {
      {"sine", 0x34e9079602ec72c8, [](double x, double) { return sine_of(x); }},
      {"cosine", 0xdb70deed9565be3d, [](double x, double) { return cosine_of(x); }},
      {"tangent", 0xdb73947c1f574a8b, [](double x, double) { return tangent_of(x); }},
      {"exponential", 0xf59ff687e794af11, [](double x, double) { return exponential_of(x); }},
      {"logarithm", 0xccbcbf6ffdb6747f, [](double x, double) { return logarithm_of(x); }},
      {"tanh", 0x9e2ea9a346a9abf2, [](double x, double) { return hyperbolic_tangent_of(x); }},
      {"power", 0x3222718ff217cb6b, [](double x, double c) { return power_of(x, c); }},
  };
  for (const auto& f : all) {
    Draw draw;
    std::string bytes;
    for (int i = 0; i < 100'000; ++i) {
      const double x = i % 2 ? draw.wide(-30, 19) : draw.uniform(0, 700);
      const double c = draw.uniform(-20, 20), value = f.function(i % 4 < 2 ? x : 1 / x, c);
      bytes += std::isnan(value) ? "nan" : format_number(value);
    }
    EXPECT_EQ(fnv1a(bytes), f.recorded) << f.name;
  }
}

TEST(FunctionsTest, TheEndsOfTheirDomains) {
  const double nan = std::nan("");
  for (const auto f : {sine_of, cosine_of, tangent_of, exponential_of, logarithm_of,
                       hyperbolic_tangent_of, sign_of})
    EXPECT_TRUE(std::isnan(f(nan)));
  for (const auto f : {sine_of, cosine_of, tangent_of}) {
    EXPECT_TRUE(std::isfinite(f(0x1p20)) && std::isfinite(f(-0x1p20)));
    for (const double x : {std::nextafter(0x1p20, kInf), -0x1.1p20, 1e300, kInf, -kInf})
      EXPECT_TRUE(std::isnan(f(x)));
  }
  for (const auto f : {sine_of, tangent_of, hyperbolic_tangent_of})
    for (const double x : {0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-9})
      EXPECT_EQ(std::bit_cast<std::uint64_t>(f(x)), std::bit_cast<std::uint64_t>(x));
  EXPECT_EQ(cosine_of(0), 1);
  EXPECT_EQ(exponential_of(0), 1);
  EXPECT_EQ(exponential_of(709.782712893384), std::exp(709.782712893384));
  EXPECT_EQ(exponential_of(709.7827128933841), kInf);
  EXPECT_EQ(exponential_of(kInf), kInf);
  EXPECT_EQ(exponential_of(-kInf), 0);
  EXPECT_EQ(exponential_of(-745.13), 5e-324);
  EXPECT_EQ(exponential_of(-745.14), 0);
  EXPECT_EQ(logarithm_of(0), -kInf);
  EXPECT_EQ(logarithm_of(-0.0), -kInf);
  EXPECT_EQ(logarithm_of(1), 0);
  EXPECT_EQ(logarithm_of(kInf), kInf);
  EXPECT_TRUE(std::isnan(logarithm_of(-5e-324)) && std::isnan(logarithm_of(-kInf)));
  EXPECT_EQ(hyperbolic_tangent_of(kInf), 1);
  EXPECT_EQ(hyperbolic_tangent_of(-kInf), -1);
  EXPECT_EQ(sign_of(-3), -1);
  EXPECT_EQ(sign_of(0), 0);
}

/// As C's, but that what is not a number stays none, and -inf has no roots.
TEST(FunctionsTest, PowersOfWhatIsNoOrdinaryNumber) {
  for (const double x : {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, kInf, -kInf, 5e-324, -1e300})
    for (const double c : {0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -0.5, 2.5, 1e300, -1e300, kInf,
                           -kInf, 0x1.0000000000001p52, 0x1p53, 1e-300}) {
      if (x == -kInf && (c == 0.5 || c == -0.5 || c == 2.5 || c == 1e-300)) continue;
      const double expected = std::pow(x, c), got = power_of(x, c);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(got)) << x << '^' << c;
      else
        EXPECT_DOUBLE_EQ(got, expected) << x << '^' << c;
      EXPECT_EQ(std::signbit(got) && !std::isnan(got), std::signbit(expected) && !std::isnan(got));
    }
  EXPECT_TRUE(std::isnan(power_of(std::nan(""), 0)) && std::isnan(power_of(1, std::nan(""))));
}

}  // namespace
}  // namespace odecast
