// What a user of Boost.odeint would write: the draws of a fitted quadratic field in three variables
// integrated one after the other, Dormand–Prince 5(4) with dense output, mean and sd at every
// output time. bench/compare builds it with -O3 and runs it; nothing of odecast is used.
//
//   odeint COEFFICIENTS DRAWS UNTIL OUTPUTS X0 Y0 Z0 BOUND REPEATS
//
// COEFFICIENTS: doubles, draw × variable × (1, x, y, z, xx, xy, xz, yy, yz, zz). A draw whose state
// leaves |u| <= BOUND counts until then. Prints one JSON object.

#include <array>
#include <boost/numeric/odeint.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace {

using State = std::array<double, 3>;
constexpr int kMonomials = 10;

struct Field {
  const double* c;
  long* calls;
  void operator()(const State& u, State& dudt, double) const {
    ++*calls;
    const double x = u[0], y = u[1], z = u[2];
    const double phi[kMonomials] = {1, x, y, z, x * x, x * y, x * z, y * y, y * z, z * z};
    for (int i = 0; i < 3; ++i) {
      double sum = 0;
      for (int m = 0; m < kMonomials; ++m) sum += c[i * kMonomials + m] * phi[m];
      dudt[i] = sum;
    }
  }
};

struct Result {
  std::vector<double> count;
  std::vector<State> mean, square;
  long calls = 0, blown_up = 0;
};

Result run(const std::vector<double>& coefficients, int draws, const std::vector<double>& times,
           const State& start, double bound) {
  using namespace boost::numeric::odeint;
  const std::size_t outputs = times.size();
  Result r{std::vector<double>(outputs, 0.0), std::vector<State>(outputs, State{}),
           std::vector<State>(outputs, State{})};
  auto stepper = make_dense_output(1e-6, 1e-3, runge_kutta_dopri5<State>());
  for (int d = 0; d < draws; ++d) {
    const Field field{coefficients.data() + 3L * kMonomials * d, &r.calls};
    stepper.initialize(start, 0.0, 0.01);
    std::size_t next = 0;
    State u;
    try {
      for (long steps = 0; next < outputs && steps < 100000; ++steps) {
        stepper.do_step(field);
        const State& now = stepper.current_state();
        bool inside = true;
        for (const double v : now) inside = inside && std::fabs(v) <= bound;
        if (!inside) break;
        for (; next < outputs && times[next] <= stepper.current_time(); ++next) {
          stepper.calc_state(times[next], u);
          const double n = ++r.count[next];
          for (int i = 0; i < 3; ++i) {
            const double delta = u[i] - r.mean[next][i];
            r.mean[next][i] += delta / n;
            r.square[next][i] += delta * (u[i] - r.mean[next][i]);
          }
        }
      }
    } catch (const step_adjustment_error&) {  // a pole: the step went to nothing
    }
    r.blown_up += next < outputs;
  }
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 10) {
    std::fprintf(stderr, "usage: odeint COEFFICIENTS DRAWS UNTIL OUTPUTS X0 Y0 Z0 BOUND REPEATS\n");
    return 2;
  }
  const int draws = std::atoi(argv[2]), outputs = std::atoi(argv[4]), repeats = std::atoi(argv[9]);
  const double until = std::atof(argv[3]), bound = std::atof(argv[8]);
  const State start = {std::atof(argv[5]), std::atof(argv[6]), std::atof(argv[7])};
  std::vector<double> coefficients(3UL * kMonomials * static_cast<std::size_t>(draws));
  std::ifstream file(argv[1], std::ios::binary);
  file.read(reinterpret_cast<char*>(coefficients.data()),
            static_cast<std::streamsize>(coefficients.size() * sizeof(double)));
  if (!file) {
    std::fprintf(stderr, "odeint: %s: fewer than %d draws\n", argv[1], draws);
    return 3;
  }
  std::vector<double> times;
  for (int i = 1; i <= outputs; ++i) times.push_back(until * i / outputs);
  times.back() = until;

  Result r;
  std::printf("{\"seconds\": [");
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    r = run(coefficients, draws, times, start, bound);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::printf("%s%.6g", i ? ", " : "", taken.count());
  }
  const std::size_t last = times.size() - 1;
  const double n = r.count[last];
  std::printf("], \"mean\": [");
  for (int i = 0; i < 3; ++i) std::printf("%s%.17g", i ? ", " : "", r.mean[last][i]);
  std::printf("], \"sd\": [");
  for (int i = 0; i < 3; ++i)
    std::printf("%s%.17g", i ? ", " : "", std::sqrt(r.square[last][i] / (n - 1)));
  std::printf("], \"alive\": %.0f, \"blown_up\": %ld, \"calls\": %ld, \"boost\": \"%d.%d.%d\"}\n",
              n, r.blown_up, r.calls, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
              BOOST_VERSION % 100);
}
