#include "odecast/systems/catalogue.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "odecast/core/error.hpp"
#include "support/sanitized.hpp"

namespace odecast {
namespace {

Vector derivative(const System& system, const Vector& u, double t = 0) {
  Vector d(u.size());
  system.field(t, u.data(), d.data());
  return d;
}

Vector random_state(Eigen::Index size, std::mt19937& generator) {
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  Vector u(size);
  for (double& x : u) x = uniform(generator);
  return u;
}

/// Sum of ∂f_i/∂u_i by central differences, exact up to rounding for quadratic fields.
double divergence(const System& system, const Vector& u) {
  const double h = 1e-3;
  double sum = 0;
  for (Eigen::Index i = 0; i < u.size(); ++i) {
    Vector right = u, left = u;
    right[i] += h;
    left[i] -= h;
    sum += (derivative(system, right)[i] - derivative(system, left)[i]) / (2 * h);
  }
  return sum;
}

Vector runge_kutta_step(const System& system, const Vector& u, double h, double t = 0) {
  const Vector k1 = derivative(system, u, t), k2 = derivative(system, u + h / 2 * k1, t + h / 2),
               k3 = derivative(system, u + h / 2 * k2, t + h / 2),
               k4 = derivative(system, u + h * k3, t + h);
  return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

std::string complaint(std::string_view name, int size = 0,
                      const std::vector<Parameter>& parameters = {}) {
  try {
    find_system(name, size, parameters);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  ADD_FAILURE() << name << " was accepted";
  return "";
}

TEST(CatalogueTest, EveryEntryIsComplete) {
  EXPECT_EQ(system_names().size(), 33u);
  std::set<std::string> titles;
  for (const std::string& name : system_names()) {
    SCOPED_TRACE(name);
    const System s = find_system(name);
    EXPECT_EQ(s.name, name);
    EXPECT_TRUE(titles.insert(s.title).second);
    EXPECT_FALSE(s.source.empty());
    EXPECT_EQ(s.start.size(), s.field.dimension());
    EXPECT_EQ(s.variables.size(), static_cast<std::size_t>(s.field.dimension()));
    EXPECT_EQ(s.equations.size(), name == "Lorenz96" ? 1 : s.variables.size());
    EXPECT_TRUE(s.start.allFinite());
    EXPECT_TRUE(derivative(s, s.start).allFinite());
    EXPECT_GT(s.step, 0);
    EXPECT_EQ(s.lyapunov.has_value(), !s.lyapunov_source.empty());
    for (std::size_t i = 0; i < s.equations.size() && name != "Lorenz96"; ++i)
      EXPECT_TRUE(s.equations[i].starts_with(s.map ? "next " + s.variables[i] + " = "
                                                   : "d" + s.variables[i] + "/dt = "))
          << s.equations[i];
    EXPECT_EQ(s.inputs.size(), s.input_equations.size());
    EXPECT_EQ(s.inputs.empty(), !s.drive);
    for (const Parameter& p : s.parameters) {
      bool shown = false;
      for (const auto* equations : {&s.equations, &s.input_equations})
        for (const std::string& equation : *equations)
          shown = shown || equation.find(p.name) != std::string::npos;
      EXPECT_TRUE(shown) << p.name;
    }
  }
}

TEST(CatalogueTest, DivergenceOfSystemsWithAConstantOne) {
  const std::map<std::string, double> constant = {
      {"SprottB", -1},   {"SprottC", -1},           {"SprottE", -1},        {"SprottF", -0.5},
      {"SprottG", -0.6}, {"SprottH", -0.5},         {"SprottI", -1},        {"SprottJ", -2},
      {"SprottL", -1},   {"SprottM", -1},           {"SprottN", -2},        {"SprottQ", -0.5},
      {"SprottR", -1},   {"SprottS", -1},           {"Thomas", -0.54},      {"Lorenz96", -40},
      {"Pendulum", 0},   {"HarmonicOscillator", 0}, {"Lorenz", -41.0 / 3.0}};
  std::mt19937 generator(1);
  for (const auto& [name, expected] : constant) {
    const System s = find_system(name);
    for (int i = 0; i < 20; ++i)
      EXPECT_NEAR(divergence(s, random_state(s.start.size(), generator)), expected, 1e-9) << name;
  }
}

TEST(CatalogueTest, DivergenceOfSystemsWhereItVaries) {
  using Expected = double (*)(const Vector&);
  const std::map<std::string, Expected> varying = {
      {"SprottA", [](const Vector& u) { return u[2]; }},
      {"SprottD", [](const Vector& u) { return u[0]; }},
      {"SprottK", [](const Vector& u) { return u[1] - 0.7; }},
      {"SprottO", [](const Vector& u) { return u[0]; }},
      {"SprottP", [](const Vector& u) { return 2 * u[1]; }},
      {"Rossler", [](const Vector& u) { return 0.2 + u[0] - 5.7; }},
      {"VanDerPol", [](const Vector& u) { return 1 - u[0] * u[0]; }},
      {"LotkaVolterra", [](const Vector& u) { return 1.5 - u[1] + u[0] - 3; }}};
  std::mt19937 generator(2);
  for (const auto& [name, expected] : varying) {
    const System s = find_system(name);
    for (int i = 0; i < 20; ++i) {
      const Vector u = random_state(s.start.size(), generator);
      EXPECT_NEAR(divergence(s, u), expected(u), 1e-9) << name;
    }
  }
}

// The table of published equations, with numbers where the catalogue has parameters.
TEST(CatalogueTest, FieldsAreThePublishedEquations) {
  std::mt19937 generator(3);
  const Vector u = random_state(3, generator);
  const double x = u[0], y = u[1], z = u[2];
  const std::map<std::string, std::vector<double>> published = {
      {"SprottA", {y, -x + y * z, 1 - std::pow(y, 2)}},
      {"SprottB", {y * z, x - y, 1 - x * y}},
      {"SprottC", {y * z, x - y, 1 - std::pow(x, 2)}},
      {"SprottD", {-y, x + z, x * z + 3 * std::pow(y, 2)}},
      {"SprottE", {y * z, std::pow(x, 2) - y, 1 - 4 * x}},
      {"SprottF", {y + z, -x + 0.5 * y, std::pow(x, 2) - z}},
      {"SprottG", {0.4 * x + z, x * z - y, -x + y}},
      {"SprottH", {-y + std::pow(z, 2), x + 0.5 * y, x - z}},
      {"SprottI", {-0.2 * y, x + z, x + std::pow(y, 2) - z}},
      {"SprottJ", {2 * z, -2 * y + z, -x + y + std::pow(y, 2)}},
      {"SprottK", {x * y - z, x - y, x + 0.3 * z}},
      {"SprottL", {y + 3.9 * z, 0.9 * std::pow(x, 2) - y, 1 - x}},
      {"SprottM", {-z, -std::pow(x, 2) - y, 1.7 + 1.7 * x + y}},
      {"SprottN", {-2 * y, x + std::pow(z, 2), 1 + y - 2 * z}},
      {"SprottO", {y, x - z, x + x * z + 2.7 * y}},
      {"SprottP", {2.7 * y + z, -x + std::pow(y, 2), x + y}},
      {"SprottQ", {-z, x - y, 3.1 * x + std::pow(y, 2) + 0.5 * z}},
      {"SprottR", {0.9 - y, 0.4 + z, x * y - z}},
      {"SprottS", {-x - 4 * y, x + std::pow(z, 2), 1 + x}},
      {"Lorenz", {10 * y - 10 * x, 28 * x - x * z - y, x * y - 8 * z / 3}},
      {"Rossler", {-y - z, x + 0.2 * y, 0.2 + x * z - 5.7 * z}},
      {"Thomas", {std::sin(y) - 0.18 * x, std::sin(z) - 0.18 * y, std::sin(x) - 0.18 * z}},
      {"VanDerPol", {y, y - x * x * y - x}},
      {"LotkaVolterra", {1.5 * x - x * y, x * y - 3 * y}},
      {"HarmonicOscillator", {y, -x}},
      {"Pendulum", {y, -std::sin(x)}},
      {"ForcedDuffing", {y, -0.3 * y + x - x * x * x + 0.5}},  // at t = 0
      {"ForcedVanDerPol", {y, 2 * y - 2 * x * x * y - x + 1.2}},
      {"Henon", {1 - 1.4 * x * x + y, 0.3 * x}},
      {"Logistic", {4 * x - 4 * x * x}},
      {"Tinkerbell", {x * x - y * y + 0.9 * x - 0.6013 * y, 2 * x * y + 2 * x + 0.5 * y}},
      {"HolmesCubic", {y, -0.2 * x + 2.77 * y - y * y * y}}};
  EXPECT_EQ(published.size() + 1, system_names().size());  // all but Lorenz96
  for (const auto& [name, expected] : published) {
    const System s = find_system(name);
    const Vector d = derivative(s, u.head(s.start.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(d[static_cast<Eigen::Index>(i)], expected[i], 1e-13) << name << " " << i;
  }
}

TEST(CatalogueTest, SprottBIsMirrorSymmetricToTheLastBit) {
  const System s = find_system("SprottB");
  std::mt19937 generator(4);
  Vector u = random_state(3, generator), mirrored = u;
  mirrored.head(2) *= -1;
  for (int i = 0; i < 1000; ++i) {
    u = runge_kutta_step(s, u, 0.01);
    mirrored = runge_kutta_step(s, mirrored, 0.01);
    Vector back = mirrored;
    back.head(2) *= -1;
    ASSERT_EQ(std::memcmp(u.data(), back.data(), 3 * sizeof(double)), 0) << "step " << i;
  }
}

// Along 1000 time units from the start: bounded, not at rest, and resolved by the step as promised.
TEST(CatalogueTest, OrbitsStayBoundedAndStepsResolveThem) {
  ODECAST_NOT_UNDER_SANITIZERS();
  for (const std::string& name : system_names()) {
    SCOPED_TRACE(name);
    const System s = find_system(name);
    const double h = s.step;
    std::vector<Vector> orbit = {s.start};
    for (long k = 0; static_cast<double>(k) * h < 1000; ++k) {
      const double t = static_cast<double>(k) * h;
      orbit.push_back(s.map ? derivative(s, orbit.back())
                            : runge_kutta_step(s, runge_kutta_step(s, orbit.back(), h / 2, t),
                                               h / 2, t + h / 2));
      ASSERT_LT(orbit.back().cwiseAbs().maxCoeff(), 1e3) << "at " << t;
    }
    if (s.map) {
      EXPECT_GT((orbit[1000] - orbit[999]).norm() + (orbit[999] - orbit[998]).norm(), 1e-3)
          << "at rest";
      continue;
    }
    Vector error = Vector::Zero(s.start.size()), size = error;
    for (std::size_t k = 2; k + 2 < orbit.size(); ++k) {
      const Vector exact = derivative(s, orbit[k], static_cast<double>(k) * h);
      const Vector difference =
          (8 * (orbit[k + 1] - orbit[k - 1]) - (orbit[k + 2] - orbit[k - 2])) / (12 * h);
      error += (difference - exact).cwiseAbs2();
      size += exact.cwiseAbs2();
    }
    EXPECT_LT((error.array() / size.array()).sqrt().maxCoeff(), 1e-5);
    // Still moving in the last tenth as much as it did over all.
    double last = 0;
    for (std::size_t k = orbit.size() * 9 / 10; k < orbit.size(); ++k)
      last += derivative(s, orbit[k], static_cast<double>(k) * h).squaredNorm();
    EXPECT_GT(last, 0.3 * 0.1 * size.sum());
  }
}

TEST(CatalogueTest, NamesAreFoundInAnyCase) {
  EXPECT_EQ(find_system("sprottb").name, "SprottB");
  EXPECT_EQ(find_system("LORENZ").name, "Lorenz");
  EXPECT_EQ(find_system("vanDerPOL").name, "VanDerPol");
}

TEST(CatalogueTest, UnknownNamesGetTheNearestOnes) {
  EXPECT_NE(complaint("Roessler").find("such as Rossler."), std::string::npos);
  EXPECT_NE(complaint("pendulumm").find("such as Pendulum."), std::string::npos);
  EXPECT_NE(complaint("lorenz63").find("Lorenz96"), std::string::npos);
  EXPECT_NE(complaint("Sprott").find("SprottA, SprottB, "), std::string::npos);
  EXPECT_NE(complaint("").find("`odecast systems` lists all"), std::string::npos);
}

TEST(CatalogueTest, Lorenz96OfAnySize) {
  EXPECT_EQ(find_system("Lorenz96").field.dimension(), 40);
  EXPECT_EQ(find_system("Lorenz96", 40).lyapunov, find_system("Lorenz96").lyapunov);

  const System five = find_system("lorenz96", 5);
  EXPECT_EQ(five.variables, (std::vector<std::string>{"x1", "x2", "x3", "x4", "x5"}));
  EXPECT_FALSE(five.lyapunov.has_value());
  EXPECT_TRUE(five.lyapunov_source.empty());
  const Vector d = derivative(five, Vector{{1.0, 2.0, 3.0, 5.0, 7.0}});
  EXPECT_EQ(d, (Vector{{(2.0 - 5.0) * 7.0 - 1.0 + 8.0, (3.0 - 7.0) * 1.0 - 2.0 + 8.0,
                        (5.0 - 1.0) * 2.0 - 3.0 + 8.0, (7.0 - 2.0) * 3.0 - 5.0 + 8.0,
                        (1.0 - 3.0) * 5.0 - 7.0 + 8.0}}));

  EXPECT_EQ(find_system("Lorenz96", 4).start.size(), 4);
  for (const int size : {-1, 1, 3, 10001})
    EXPECT_NE(complaint("Lorenz96", size).find("a number from 4 to 10000"), std::string::npos);
  EXPECT_NE(complaint("SprottB", 3).find("only Lorenz96"), std::string::npos);
}

// A shift of the ring that leaves the start as it is would be kept by the orbit for ever.
TEST(CatalogueTest, Lorenz96StartsHaveNoSymmetry) {
  for (const int size : {4, 5, 6, 8, 12, 36, 40, 60, 10000}) {
    const Vector start = find_system("Lorenz96", size).start;
    const std::set<double> values(start.begin(), start.end());
    EXPECT_EQ(values.size(), static_cast<std::size_t>(size));
  }
}

TEST(CatalogueTest, ParametersAreReplacedByName) {
  const Vector u{{1.0, 2.0, 3.0}};
  const System usual = find_system("Lorenz");
  const System other = find_system("Lorenz", 0, {{"rho", 24.5}, {"rho", 24.0}});
  EXPECT_EQ(derivative(other, u)[0], derivative(usual, u)[0]);
  EXPECT_EQ(derivative(other, u)[1], 24.0 - 3.0 - 2.0);
  EXPECT_EQ(other.parameters[1].value, 24.0);
  EXPECT_FALSE(other.lyapunov.has_value());
  EXPECT_EQ(find_system("Lorenz", 0, {{"rho", 28.0}}).lyapunov, usual.lyapunov);
  EXPECT_EQ(find_system("Lorenz").parameters[1].value, 28.0);
  EXPECT_EQ(derivative(find_system("Lorenz96", 4, {{"F", 10.0}}), Vector::Zero(4)),
            Vector::Constant(4, 10.0));
}

TEST(CatalogueTest, BadParametersAreRefused) {
  EXPECT_NE(complaint("Lorenz", 0, {{"tau", 1.0}}).find("sigma, rho, beta"), std::string::npos);
  EXPECT_NE(complaint("SprottB", 0, {{"a", 1.0}}).find("expected none"), std::string::npos);
  EXPECT_NE(complaint("Lorenz", 0, {{"rho", std::nan("")}}).find("found nan"), std::string::npos);
}

}  // namespace
}  // namespace odecast
