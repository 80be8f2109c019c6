#include "odecast/systems/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "odecast/core/error.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"

namespace odecast {
namespace {

constexpr std::string_view kSized = "Lorenz96";
constexpr int kDefaultSize = 40, kMinSize = 4, kMaxSize = 10000;

using Values = std::span<const double>;
/// d = f(u) with parameter values p; inputs stand behind the state in u.
using RightHandSide = void (*)(Values p, Values u, double* d);
/// The inputs at time t.
using Drive = void (*)(Values p, double t, double* w);

struct Entry {
  System system;
  RightHandSide right_hand_side;
  Drive drive = nullptr;
};

struct Exponent {
  double value;
  std::string source;
};

/// By the growth of tangent vectors along one long orbit (RK4, orthonormalised again and again);
/// the standard error is that of the mean over 20 blocks of it.
Exponent measured(double value, double standard_error) {
  return {value, fmt::format("measured, standard error {}", standard_error)};
}

Exponent published(double value, std::string_view source, double again, double standard_error) {
  return {value,
          fmt::format("{}; measured {:.4f}, standard error {}", source, again, standard_error)};
}

Exponent periodic() { return {0.0, "periodic: exactly 0"}; }

Exponent unknown() { return {std::numeric_limits<double>::quiet_NaN(), ""}; }

std::vector<double> values_of(const std::vector<Parameter>& parameters) {
  std::vector<double> p;
  for (const Parameter& parameter : parameters) p.push_back(parameter.value);
  return p;
}

/// Field, and drive where there is one, with these parameters.
void set_equations(System& system, RightHandSide right_hand_side, Drive drive, int dimension);

VectorField make_field(RightHandSide right_hand_side, int dimension,
                       const std::vector<Parameter>& parameters) {
  const std::vector<double> p = values_of(parameters);
  return {dimension, [=](double, const double* u, double* d) {
            right_hand_side(p, {u, static_cast<std::size_t>(dimension)}, d);
          }};
}

Entry entry(std::string name, std::string title, std::vector<std::string> variables,
            std::vector<std::string> equations, std::vector<Parameter> parameters,
            const std::vector<double>& start, double step, Exponent exponent, std::string source,
            RightHandSide right_hand_side) {
  const auto n = static_cast<int>(start.size());
  VectorField field = make_field(right_hand_side, n, parameters);
  const std::optional<double> value =
      std::isnan(exponent.value) ? std::nullopt : std::optional(exponent.value);
  return {{std::move(name), std::move(title), std::move(variables), std::move(equations),
           std::move(parameters), Eigen::Map<const Vector>(start.data(), n), step, value,
           std::move(exponent.source), std::move(source), std::move(field)},
          right_hand_side};
}

void set_equations(System& system, RightHandSide right_hand_side, Drive drive, int dimension) {
  if (drive == nullptr) {
    system.field = make_field(right_hand_side, dimension, system.parameters);
    return;
  }
  const std::vector<double> p = values_of(system.parameters);
  system.drive = [=](double t, double* w) { drive(p, t, w); };
  const auto n = static_cast<std::size_t>(dimension), all = n + system.inputs.size();
  system.field = {dimension, [=, u = std::vector<double>(all)](double t, const double* state,
                                                               double* d) mutable {
                    drive(p, t, std::copy_n(state, n, u.data()));
                    right_hand_side(p, u, d);
                  }};
}

/// The entry driven by inputs.
Entry driven(Entry e, std::vector<std::string> inputs, std::vector<std::string> input_equations,
             Drive drive) {
  e.system.inputs = std::move(inputs);
  e.system.input_equations = std::move(input_equations);
  e.drive = drive;
  set_equations(e.system, e.right_hand_side, drive, static_cast<int>(e.system.start.size()));
  return e;
}

Entry map(Entry e) {
  e.system.map = true;
  return e;
}

/// The simplest quadratic flows that are chaotic, by exhaustive search. Cases A to E have five
/// terms, two of them quadratic; F to S have six and one.
Entry sprott(char letter, const char* dx, const char* dy, const char* dz,
             std::vector<Parameter> parameters, const std::vector<double>& start, double step,
             Exponent exponent, RightHandSide right_hand_side) {
  const char* terms =
      letter <= 'E' ? "five terms, two of them quadratic" : "six terms, one of them quadratic";
  return entry(
      fmt::format("Sprott{}", letter),
      fmt::format("Sprott's case {}: {}chaos with {}", letter, letter == 'A' ? "conservative " : "",
                  terms),
      {"x", "y", "z"},
      {fmt::format("dx/dt = {}", dx), fmt::format("dy/dt = {}", dy), fmt::format("dz/dt = {}", dz)},
      std::move(parameters), start, step, std::move(exponent),
      fmt::format("J. C. Sprott, Phys. Rev. E 50 (1994) R647, case {}", letter), right_hand_side);
}

std::vector<std::string> lorenz96_variables(int size) {
  std::vector<std::string> names;
  for (int i = 1; i <= size; ++i) names.push_back(fmt::format("x{}", i));
  return names;
}

/// A sawtooth between -4 and 9 with 4.7 variables to the wave: mean, spread and wavelength are
/// close to the attractor's at F = 8. The pattern repeats after 13001 variables only, so that no
/// size has a start with a symmetry, which the orbit would keep for ever.
std::vector<double> lorenz96_start(int size) {
  std::vector<double> x;
  for (int i = 1; i <= size; ++i) x.push_back((2777 * i % 13001 - 4000) / 1000.0);
  return x;
}

std::vector<Entry> make_catalogue() {
  std::vector<Entry> all;
  const auto sprott94 = [](double value, double again, double standard_error) {
    return published(value, "Sprott 1994", again, standard_error);
  };

  all.push_back(sprott('A', "y", "-x + y z", "1 - y^2", {}, {0, 5, 0}, 0.01,
                       sprott94(0.014, 0.0142, 0.0007), [](Values, Values u, double* d) {
                         d[0] = u[1];
                         d[1] = -u[0] + u[1] * u[2];
                         d[2] = 1 - u[1] * u[1];
                       }));
  all.push_back(sprott('B', "y z", "x - y", "1 - x y", {}, {1, 1, 1}, 0.02,
                       sprott94(0.210, 0.2100, 0.0004), [](Values, Values u, double* d) {
                         d[0] = u[1] * u[2];
                         d[1] = u[0] - u[1];
                         d[2] = 1 - u[0] * u[1];
                       }));
  all.push_back(sprott('C', "y z", "x - y", "1 - x^2", {}, {-0.9, -1.2, -0.9}, 0.02,
                       sprott94(0.163, 0.1634, 0.0010), [](Values, Values u, double* d) {
                         d[0] = u[1] * u[2];
                         d[1] = u[0] - u[1];
                         d[2] = 1 - u[0] * u[0];
                       }));
  all.push_back(sprott('D', "-y", "x + z", "x z + 3 y^2", {}, {-1.7, 1.2, 2}, 0.02,
                       sprott94(0.103, 0.1031, 0.0003), [](Values, Values u, double* d) {
                         d[0] = -u[1];
                         d[1] = u[0] + u[2];
                         d[2] = u[0] * u[2] + 3 * u[1] * u[1];
                       }));
  all.push_back(sprott('E', "y z", "x^2 - y", "1 - 4 x", {}, {0.3, 0, 4.3}, 0.02,
                       sprott94(0.078, 0.0777, 0.0003), [](Values, Values u, double* d) {
                         d[0] = u[1] * u[2];
                         d[1] = u[0] * u[0] - u[1];
                         d[2] = 1 - 4 * u[0];
                       }));
  all.push_back(sprott('F', "y + z", "-x + a y", "x^2 - z", {{"a", 0.5}}, {-1, -0.9, 2.2}, 0.02,
                       sprott94(0.117, 0.1174, 0.0005), [](Values p, Values u, double* d) {
                         d[0] = u[1] + u[2];
                         d[1] = -u[0] + p[0] * u[1];
                         d[2] = u[0] * u[0] - u[2];
                       }));
  all.push_back(sprott('G', "a x + z", "x z - y", "-x + y", {{"a", 0.4}}, {-0.3, -0.2, 0.6}, 0.05,
                       sprott94(0.034, 0.0338, 0.0001), [](Values p, Values u, double* d) {
                         d[0] = p[0] * u[0] + u[2];
                         d[1] = u[0] * u[2] - u[1];
                         d[2] = -u[0] + u[1];
                       }));
  all.push_back(sprott('H', "-y + z^2", "x + a y", "x - z", {{"a", 0.5}}, {1.5, 1.4, 1.1}, 0.05,
                       measured(0.1166, 0.0005), [](Values p, Values u, double* d) {
                         d[0] = -u[1] + u[2] * u[2];
                         d[1] = u[0] + p[0] * u[1];
                         d[2] = u[0] - u[2];
                       }));
  all.push_back(sprott('I', "-a y", "x + z", "x + y^2 - z", {{"a", 0.2}}, {0.1, 0.1, 0.2}, 0.05,
                       measured(0.0126, 0.0001), [](Values p, Values u, double* d) {
                         d[0] = -p[0] * u[1];
                         d[1] = u[0] + u[2];
                         d[2] = u[0] + u[1] * u[1] - u[2];
                       }));
  all.push_back(sprott('J', "2 z", "-2 y + z", "-x + y + y^2", {}, {-5.9, -1.5, -0.6}, 0.02,
                       measured(0.0752, 0.0007), [](Values, Values u, double* d) {
                         d[0] = 2 * u[2];
                         d[1] = -2 * u[1] + u[2];
                         d[2] = -u[0] + u[1] + u[1] * u[1];
                       }));
  all.push_back(sprott('K', "x y - z", "x - y", "x + a z", {{"a", 0.3}}, {0.9, 0.3, -0.2}, 0.02,
                       measured(0.0374, 0.0002), [](Values p, Values u, double* d) {
                         d[0] = u[0] * u[1] - u[2];
                         d[1] = u[0] - u[1];
                         d[2] = u[0] + p[0] * u[2];
                       }));
  all.push_back(sprott('L', "y + b z", "a x^2 - y", "1 - x", {{"a", 0.9}, {"b", 3.9}},
                       {5.9, 15.5, -3.3}, 0.02, measured(0.0606, 0.0003),
                       [](Values p, Values u, double* d) {
                         d[0] = u[1] + p[1] * u[2];
                         d[1] = p[0] * u[0] * u[0] - u[1];
                         d[2] = 1 - u[0];
                       }));
  all.push_back(sprott('M', "-z", "-x^2 - y", "a + a x + y", {{"a", 1.7}}, {1.6, -4.4, 0.9}, 0.05,
                       measured(0.0430, 0.0003), [](Values p, Values u, double* d) {
                         d[0] = -u[2];
                         d[1] = -u[0] * u[0] - u[1];
                         d[2] = p[0] + p[0] * u[0] + u[1];
                       }));
  all.push_back(sprott('N', "-2 y", "x + z^2", "1 + y - 2 z", {}, {-4.9, 1.8, 1.5}, 0.02,
                       measured(0.0762, 0.0006), [](Values, Values u, double* d) {
                         d[0] = -2 * u[1];
                         d[1] = u[0] + u[2] * u[2];
                         d[2] = 1 + u[1] - 2 * u[2];
                       }));
  all.push_back(sprott('O', "y", "x - z", "x + x z + a y", {{"a", 2.7}}, {0, -0.6, 0.4}, 0.05,
                       measured(0.0485, 0.0003), [](Values p, Values u, double* d) {
                         d[0] = u[1];
                         d[1] = u[0] - u[2];
                         d[2] = u[0] + u[0] * u[2] + p[0] * u[1];
                       }));
  all.push_back(sprott('P', "a y + z", "-x + y^2", "x + y", {{"a", 2.7}}, {0.3, -0.2, 0.4}, 0.05,
                       measured(0.0873, 0.0004), [](Values p, Values u, double* d) {
                         d[0] = p[0] * u[1] + u[2];
                         d[1] = -u[0] + u[1] * u[1];
                         d[2] = u[0] + u[1];
                       }));
  all.push_back(sprott('Q', "-z", "x - y", "a x + y^2 + b z", {{"a", 3.1}, {"b", 0.5}},
                       {0.4, 0.4, 1.7}, 0.05, measured(0.1084, 0.0006),
                       [](Values p, Values u, double* d) {
                         d[0] = -u[2];
                         d[1] = u[0] - u[1];
                         d[2] = p[0] * u[0] + u[1] * u[1] + p[1] * u[2];
                       }));
  all.push_back(sprott('R', "a - y", "b + z", "x y - z", {{"a", 0.9}, {"b", 0.4}},
                       {1.9, -0.1, -0.2}, 0.02, measured(0.0625, 0.0004),
                       [](Values p, Values u, double* d) {
                         d[0] = p[0] - u[1];
                         d[1] = p[1] + u[2];
                         d[2] = u[0] * u[1] - u[2];
                       }));
  all.push_back(sprott('S', "-x - 4 y", "x + z^2", "1 + x", {}, {-0.7, -0.4, 0.5}, 0.02,
                       measured(0.1887, 0.0005), [](Values, Values u, double* d) {
                         d[0] = -u[0] - 4 * u[1];
                         d[1] = u[0] + u[2] * u[2];
                         d[2] = 1 + u[0];
                       }));

  all.push_back(entry(
      "Lorenz", "Lorenz 1963: convection between a warm and a cold plate, three modes",
      {"x", "y", "z"}, {"dx/dt = sigma (y - x)", "dy/dt = x (rho - z) - y", "dz/dt = x y - beta z"},
      {{"sigma", 10.0}, {"rho", 28.0}, {"beta", 8.0 / 3.0}}, {-8, 8, 27}, 0.005,
      published(0.906, "Sprott, sprott.physics.wisc.edu/chaos/lorenzle.htm", 0.9062, 0.0003),
      "E. N. Lorenz, J. Atmos. Sci. 20 (1963) 130", [](Values p, Values u, double* d) {
        d[0] = p[0] * (u[1] - u[0]);
        d[1] = u[0] * (p[1] - u[2]) - u[1];
        d[2] = u[0] * u[1] - p[2] * u[2];
      }));
  all.push_back(
      entry("Rossler", "Rössler 1976: a spiral that folds back, one quadratic term",
            {"x", "y", "z"}, {"dx/dt = -y - z", "dy/dt = x + a y", "dz/dt = b + z (x - c)"},
            {{"a", 0.2}, {"b", 0.2}, {"c", 5.7}}, {-3.2, 7.6, 0}, 0.01,
            published(0.0714, "Sprott 2003", 0.0711, 0.0003),
            "O. E. Rössler, Phys. Lett. A 57 (1976) 397", [](Values p, Values u, double* d) {
              d[0] = -u[1] - u[2];
              d[1] = u[0] + p[0] * u[1];
              d[2] = p[1] + u[2] * (u[0] - p[2]);
            }));
  all.push_back(entry(
      std::string(kSized), "Lorenz 1996: a ring of weather, any number of variables",
      lorenz96_variables(kDefaultSize),
      {"dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + F, indices modulo the number of variables"},
      {{"F", 8.0}}, lorenz96_start(kDefaultSize), 0.005, measured(1.694, 0.005),
      "E. N. Lorenz, Predictability: a problem partly solved, Proc. Seminar on Predictability, "
      "ECMWF (1996)",
      [](Values p, Values u, double* d) {
        const std::size_t n = u.size();
        for (std::size_t i = 0; i < n; ++i)
          d[i] = (u[(i + 1) % n] - u[(i + n - 2) % n]) * u[(i + n - 1) % n] - u[i] + p[0];
      }));
  all.push_back(entry("VanDerPol", "Van der Pol's oscillator: a limit cycle", {"x", "y"},
                      {"dx/dt = y", "dy/dt = mu (1 - x^2) y - x"}, {{"mu", 1.0}}, {2, 0}, 0.02,
                      periodic(), "B. van der Pol, Phil. Mag. 2 (1926) 978",
                      [](Values p, Values u, double* d) {
                        d[0] = u[1];
                        d[1] = p[0] * (1 - u[0] * u[0]) * u[1] - u[0];
                      }));
  all.push_back(entry(
      "LotkaVolterra", "Lotka and Volterra: prey x and predators y", {"x", "y"},
      {"dx/dt = alpha x - beta x y", "dy/dt = delta x y - gamma y"},
      {{"alpha", 1.5}, {"beta", 1.0}, {"gamma", 3.0}, {"delta", 1.0}}, {1, 1}, 0.01, periodic(),
      "A. J. Lotka, Elements of Physical Biology (1925); V. Volterra, Nature 118 (1926) 558",
      [](Values p, Values u, double* d) {
        d[0] = p[0] * u[0] - p[1] * u[0] * u[1];
        d[1] = p[3] * u[0] * u[1] - p[2] * u[1];
      }));
  all.push_back(entry("HarmonicOscillator", "A mass on a spring: position x, velocity v",
                      {"x", "v"}, {"dx/dt = v", "dv/dt = -omega^2 x"}, {{"omega", 1.0}}, {1, 0},
                      0.1, periodic(), "textbook", [](Values p, Values u, double* d) {
                        d[0] = u[1];
                        d[1] = -p[0] * p[0] * u[0];
                      }));
  all.push_back(entry("Pendulum", "A pendulum without friction: angle theta, its velocity omega",
                      {"theta", "omega"}, {"dtheta/dt = omega", "domega/dt = -omega0^2 sin(theta)"},
                      {{"omega0", 1.0}}, {2, 0}, 0.05, periodic(), "textbook",
                      [](Values p, Values u, double* d) {
                        d[0] = u[1];
                        d[1] = -p[0] * p[0] * std::sin(u[0]);
                      }));
  all.push_back(entry("Thomas", "Thomas's cyclically symmetric labyrinth", {"x", "y", "z"},
                      {"dx/dt = sin(y) - b x", "dy/dt = sin(z) - b y", "dz/dt = sin(x) - b z"},
                      {{"b", 0.18}}, {-2.4, -1.5, -3.7}, 0.1, measured(0.0350, 0.0002),
                      "R. Thomas, Int. J. Bifurcation and Chaos 9 (1999) 1889",
                      [](Values p, Values u, double* d) {
                        d[0] = std::sin(u[1]) - p[0] * u[0];
                        d[1] = std::sin(u[2]) - p[0] * u[1];
                        d[2] = std::sin(u[0]) - p[0] * u[2];
                      }));
  const Drive cosine = [](Values p, double t, double* w) { w[0] = p[0] * std::cos(p[1] * t); };
  all.push_back(driven(
      entry("ForcedDuffing", "Duffing's oscillator with two wells, driven by a force F", {"x", "v"},
            {"dx/dt = v", "dv/dt = -delta v - alpha x - beta x^3 + F"},
            {{"gamma", 0.5}, {"omega", 1.2}, {"delta", 0.3}, {"alpha", -1.0}, {"beta", 1.0}},
            {1, 0}, 0.05, unknown(), "F. C. Moon and P. J. Holmes, J. Sound Vib. 65 (1979) 275",
            [](Values p, Values u, double* d) {
              d[0] = u[1];
              d[1] = -p[2] * u[1] - p[3] * u[0] - p[4] * u[0] * u[0] * u[0] + u[2];
            }),
      {"F"}, {"F = gamma cos(omega t)"}, cosine));
  all.push_back(driven(entry("ForcedVanDerPol", "Van der Pol's oscillator driven by a force F",
                             {"x", "y"}, {"dx/dt = y", "dy/dt = mu (1 - x^2) y - x + F"},
                             {{"gamma", 1.2}, {"omega", 0.8}, {"mu", 2.0}}, {1, 0}, 0.01, unknown(),
                             "B. van der Pol and J. van der Mark, Nature 120 (1927) 363",
                             [](Values p, Values u, double* d) {
                               d[0] = u[1];
                               d[1] = p[2] * (1 - u[0] * u[0]) * u[1] - u[0] + u[2];
                             }),
                       {"F"}, {"F = gamma cos(omega t)"}, cosine));
  all.push_back(
      map(entry("Henon", "Hénon's map: stretched, folded, contracted", {"x", "y"},
                {"next x = 1 - a x^2 + y", "next y = b x"}, {{"a", 1.4}, {"b", 0.3}}, {0.1, 0.1}, 1,
                Exponent{0.41922, "M. Hénon's parameters; G. Benettin's method, many authors"},
                "M. Hénon, Commun. Math. Phys. 50 (1976) 69", [](Values p, Values u, double* d) {
                  d[0] = 1 - p[0] * u[0] * u[0] + u[1];
                  d[1] = p[1] * u[0];
                })));
  all.push_back(map(entry(
      "Logistic", "The logistic map at full chaos", {"x"}, {"next x = r x (1 - x)"}, {{"r", 4.0}},
      {0.3}, 1, Exponent{0.6931471805599453, "exactly log 2"}, "R. M. May, Nature 261 (1976) 459",
      [](Values p, Values u, double* d) { d[0] = p[0] * u[0] * (1 - u[0]); })));
  all.push_back(
      map(entry("Tinkerbell", "The tinkerbell map: a quadratic relative of Ikeda's", {"x", "y"},
                {"next x = x^2 - y^2 + a x + b y", "next y = 2 x y + c x + d y"},
                {{"a", 0.9}, {"b", -0.6013}, {"c", 2.0}, {"d", 0.5}}, {-0.72, -0.64}, 1, unknown(),
                "H. E. Nusse and J. A. Yorke, Dynamics: Numerical Explorations (1994)",
                [](Values p, Values u, double* d) {
                  d[0] = u[0] * u[0] - u[1] * u[1] + p[0] * u[0] + p[1] * u[1];
                  d[1] = 2 * u[0] * u[1] + p[2] * u[0] + p[3] * u[1];
                })));
  all.push_back(
      map(entry("HolmesCubic", "Holmes's cubic map, a Duffing oscillator in discrete time",
                {"x", "y"}, {"next x = y", "next y = -b x + d y - y^3"}, {{"b", 0.2}, {"d", 2.77}},
                {1.6, 0}, 1, unknown(), "P. Holmes, Phil. Trans. R. Soc. A 292 (1979) 419",
                [](Values p, Values u, double* d) {
                  const double y = u[1];
                  d[0] = y;
                  d[1] = -p[0] * u[0] + p[1] * y - y * y * y;
                })));
  return all;
}

const std::vector<Entry>& catalogue() {
  static const std::vector<Entry> all = make_catalogue();
  return all;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string nearest_names(std::string_view name) {
  constexpr std::size_t most = 5;  // "Sprott" is as near to all of SprottA … SprottS
  std::vector<std::string> nearest;
  std::size_t smallest = std::numeric_limits<std::size_t>::max();
  for (const std::string& known : system_names()) {
    const std::size_t distance = edit_distance(lower_case(name), lower_case(known));
    if (distance < smallest) nearest.clear();
    smallest = std::min(smallest, distance);
    if (distance == smallest && nearest.size() < most) nearest.push_back(known);
  }
  return fmt::format("{}", fmt::join(nearest, ", "));
}

const Entry& find_entry(std::string_view name) {
  for (const Entry& e : catalogue())
    if (lower_case(e.system.name) == lower_case(name)) return e;
  throw_usage({"system", shown(name),
               fmt::format("a name of the catalogue, such as {}", nearest_names(name)),
               "`odecast systems` lists all."});
}

void resize(System& system, int size) {
  if (system.name != kSized)
    throw_usage({fmt::format("size of system {}", system.name), fmt::format("{}", size), "none",
                 fmt::format("Leave the size out; only {} has one.", kSized)});
  if (size < kMinSize || size > kMaxSize)
    throw_usage({fmt::format("size of system {}", system.name), fmt::format("{}", size),
                 fmt::format("a number from {} to {}", kMinSize, kMaxSize),
                 fmt::format("The usual size is {}.", kDefaultSize)});
  system.variables = lorenz96_variables(size);
  system.start = Eigen::Map<const Vector>(lorenz96_start(size).data(), size);
}

void set_parameter(System& system, const Parameter& given) {
  const auto known = std::ranges::find(system.parameters, given.name, &Parameter::name);
  if (known == system.parameters.end()) {
    std::vector<std::string> names;
    for (const Parameter& p : system.parameters) names.push_back(p.name);
    throw_usage({fmt::format("parameter of system {}", system.name), shown(given.name),
                 names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")),
                 fmt::format("`odecast systems {}` shows the equations.", system.name)});
  }
  if (!std::isfinite(given.value))
    throw_usage({fmt::format("parameter {} of system {}", given.name, system.name),
                 format_number(given.value), "a finite number",
                 fmt::format("The usual value is {}.", known->value)});
  known->value = given.value;
}

bool same_values(const std::vector<Parameter>& a, const std::vector<Parameter>& b) {
  return std::ranges::equal(a, b, {}, &Parameter::value, &Parameter::value);
}

}  // namespace

const std::vector<std::string>& system_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Entry& e : catalogue()) list.push_back(e.system.name);
    return list;
  }();
  return names;
}

System find_system(std::string_view name, int size, const std::vector<Parameter>& parameters) {
  const Entry& found = find_entry(name);
  System system = found.system;
  if (size != 0) resize(system, size);
  for (const Parameter& p : parameters) set_parameter(system, p);

  const auto dimension = static_cast<int>(system.start.size());
  const bool usual = dimension == found.system.start.size() &&
                     same_values(system.parameters, found.system.parameters);
  if (!usual) {
    set_equations(system, found.right_hand_side, found.drive, dimension);
    system.lyapunov.reset();
    system.lyapunov_source.clear();
  }
  return system;
}

}  // namespace odecast
