// Benchmarks of the loops that decide how long odecast takes, one thread each, and of how their
// cost grows. `odecast_bench --benchmark_filter=fit` runs a part; docs/performance.md has numbers.

#include <benchmark/benchmark.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <vector>

#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/observations/csv.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/solver/lanes.hpp"
#include "odecast/systems/catalogue.hpp"
#include "odecast/training/exact.hpp"
#include "odecast/training/train.hpp"

namespace odecast {
namespace {

using benchmark::Counter;
using benchmark::State;

/// Sprott B from (1, 1, 1), t = 0 … 10, 5001 rows: the paper's training data.
const Dataset& sprott_b() {
  static const Dataset data = [] {
    const System system = find_system("SprottB");
    const auto times = regular_times(0, 10, 1.0 / 500);
    const Vector start = Vector::Ones(3);
    const Solution run = solve_certified(system.field, 0, start, times).solution;
    Dataset d;
    d.variables = system.variables;
    d.trajectories.emplace_back();
    Trajectory& t = d.trajectories.back();
    t.times = times;
    t.times.insert(t.times.begin(), 0.0);
    t.states.resize(t.rows(), 3);
    t.states.row(0) = start.transpose();
    t.states.bottomRows(run.states.rows()) = run.states;
    return d;
  }();
  return data;
}

const DerivativeRows& sprott_rows() {
  static const DerivativeRows rows = forward_differences(sprott_b(), {});
  return rows;
}

/// Normal states and a random polynomial of them: the cost of the linear algebra depends on sizes
/// alone.
DerivativeRows random_rows(long count, int n, int degree) {
  DerivativeRows rows;
  rows.states.resize(count, n);
  rows.derivatives.resize(count, n);
  rows.sigma = Matrix::Zero(count, n);
  Stream stream(1, Purpose::observation_noise, 0);
  for (long i = 0; i < count; ++i)
    for (int j = 0; j < n; ++j) rows.states(i, j) = stream.normal();
  const MonomialBasis basis(n, degree);
  Matrix c(n, basis.size());
  for (int j = 0; j < n; ++j)
    for (int m = 0; m < basis.size(); ++m) c(j, m) = stream.normal();
  Vector phi(basis.size());
  for (long i = 0; i < count; ++i) {
    basis.evaluate(rows.states.row(i).data(), phi.data());
    rows.derivatives.row(i) = (c * phi).transpose();
  }
  return rows;
}

Network kernel_network(int n, int units, int degree, double dropout) {
  HiddenLayer hidden;
  hidden.units = units;
  hidden.power = degree;
  hidden.dropout = dropout;
  return make_network(n, {hidden}, n, 1);
}

int monomials(int n, int degree) { return static_cast<int>(monomial_count(n, degree)); }

// ---- Fit ------------------------------------------------------------------------------------

/// From rows in memory to the fitted network: factor, starts, best kept.
void exact(State& state, const DerivativeRows& rows, int units, int degree, double dropout,
           int starts) {
  ExactSummary summary;
  for (auto _ : state) {
    RowFactor factor(rows.dimension(), degree, rows.dimension());
    factor.add(rows.states, rows.derivatives);
    Network network = kernel_network(rows.dimension(), units, degree, dropout);
    ExactOptions options;
    options.starts = starts;
    summary = train_exact(network, factor, options, ignore_progress);
    benchmark::DoNotOptimize(network);
  }
  state.counters["objective"] = summary.objective;
  state.counters["iterations"] = static_cast<double>(summary.iterations);
  if (!summary.converged) state.SkipWithError(summary.reason.c_str());
}

void fit_exact(State& state) {
  exact(state, sprott_rows(), 10, 2, static_cast<double>(state.range(0)) / 100,
        static_cast<int>(state.range(1)));
}
BENCHMARK(fit_exact)
    ->ArgNames({"r%", "starts"})
    ->ArgsProduct({{25, 5}, {8, 1}})
    ->Unit(benchmark::kMillisecond);

void fit_exact_units(State& state) {
  exact(state, sprott_rows(), static_cast<int>(state.range(0)), 2, 0.25, 1);
}
BENCHMARK(fit_exact_units)
    ->ArgName("k")
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Arg(40)
    ->Arg(80)
    ->Unit(benchmark::kMillisecond);

void fit_exact_degree(State& state) {
  const int degree = static_cast<int>(state.range(0));
  exact(state, sprott_rows(), monomials(3, degree), degree, 0.25, 1);
}
BENCHMARK(fit_exact_degree)->ArgName("p")->DenseRange(2, 4)->Unit(benchmark::kMillisecond);

void factor(State& state, const DerivativeRows& rows, int degree) {
  for (auto _ : state) {
    RowFactor f(rows.dimension(), degree, rows.dimension());
    f.add(rows.states, rows.derivatives);
    benchmark::DoNotOptimize(f.triangle());
  }
  const double m = monomials(rows.dimension(), degree) + rows.dimension();
  const double count = static_cast<double>(rows.rows());
  state.SetItemsProcessed(state.iterations() * rows.rows());
  // Householder QR of N × m: 2 m² (N - m/3).
  state.counters["flops"] =
      Counter(2 * m * m * (count - m / 3), Counter::kIsIterationInvariantRate, Counter::kIs1000);
}
void factor_sprott_b(State& state) { factor(state, sprott_rows(), 2); }
BENCHMARK(factor_sprott_b)->Unit(benchmark::kMicrosecond);
void factor_rows(State& state) { factor(state, random_rows(state.range(0), 3, 2), 2); }
BENCHMARK(factor_rows)
    ->ArgName("rows")
    ->RangeMultiplier(10)
    ->Range(1000, 1'000'000)
    ->Unit(benchmark::kMicrosecond);
void factor_variables(State& state) {
  factor(state, random_rows(5000, static_cast<int>(state.range(0)), 2), 2);
}
BENCHMARK(factor_variables)
    ->ArgName("n")
    ->Arg(2)
    ->Arg(3)
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Unit(benchmark::kMicrosecond);
void factor_degree(State& state) {
  const int degree = static_cast<int>(state.range(0));
  factor(state, random_rows(5000, 3, degree), degree);
}
BENCHMARK(factor_degree)->ArgName("p")->DenseRange(2, 5)->Unit(benchmark::kMicrosecond);

/// One value and gradient of the exact objective; does not depend on the number of rows.
void objective(State& state, int n, int units, int degree) {
  const DerivativeRows rows = random_rows(5000, n, degree);
  RowFactor f(n, degree, n);
  f.add(rows.states, rows.derivatives);
  ExactObjective value(f, units, 0.25);
  Vector theta(units * n + units), gradient(theta.size());
  Stream stream(1, Purpose::initial_weights, 0);
  for (auto& x : theta) x = 2 * stream.uniform() - 1;
  for (auto _ : state) benchmark::DoNotOptimize(value(theta, gradient));
}
void objective_units(State& state) { objective(state, 3, static_cast<int>(state.range(0)), 2); }
BENCHMARK(objective_units)
    ->ArgName("k")
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Arg(40)
    ->Arg(80)
    ->Unit(benchmark::kMicrosecond);
void objective_variables(State& state) {
  const int n = static_cast<int>(state.range(0));
  objective(state, n, monomials(n, 2), 2);
}
BENCHMARK(objective_variables)
    ->ArgName("n")
    ->Arg(2)
    ->Arg(3)
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Unit(benchmark::kMicrosecond);
void objective_degree(State& state) {
  const int degree = static_cast<int>(state.range(0));
  objective(state, 3, monomials(3, degree), degree);
}
BENCHMARK(objective_degree)->ArgName("p")->DenseRange(2, 5)->Unit(benchmark::kMicrosecond);

/// Processor time of this thread: what others do on the machine does not count.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Time per step of Adam with a mask for each row, its share of drawing the targets included. The
/// rate is zero but for rounding, so that no weight runs away from random data.
void adam(State& state, const DerivativeRows& rows, int units, int degree) {
  const int n = rows.dimension();
  Network network = kernel_network(n, units, degree, 0.25);
  const double count = static_cast<double>(rows.rows());
  TrainOptions options;  // the paper's 110 steps for each draw of the targets
  options.batches = std::max(1, static_cast<int>(2e6 / 110 / count));
  options.schedule = {{110, 1e-12}};
  for (auto _ : state) {
    const double begin = thread_seconds();
    const TrainSummary summary = train(network, rows, options, ignore_progress);
    state.SetIterationTime((thread_seconds() - begin) / static_cast<double>(summary.iterations));
  }
  // Forward and backward of one row, mask and Philox aside: per unit n multiply-adds for a,
  // p - 1 multiplications, `outputs` multiply-adds each for e, W̄2 and ā, one product, one sum
  // and n multiply-adds for W̄1; per output the residual, its square and B̄2.
  const double flops = units * (2.0 * n + (degree - 1) + 6.0 * n + 2 + 2.0 * n) + 4.0 * n;
  state.counters["flops"] =
      Counter(flops * count, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.SetItemsProcessed(state.iterations() * rows.rows());
}
void adam_step(State& state) { adam(state, sprott_rows(), 10, 2); }
BENCHMARK(adam_step)->UseManualTime()->Iterations(15)->Unit(benchmark::kMicrosecond);
void adam_rows(State& state) { adam(state, random_rows(state.range(0), 3, 2), 10, 2); }
BENCHMARK(adam_rows)
    ->ArgName("rows")
    ->RangeMultiplier(10)
    ->Range(1000, 1'000'000)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);
void adam_units(State& state) { adam(state, sprott_rows(), static_cast<int>(state.range(0)), 2); }
BENCHMARK(adam_units)
    ->ArgName("k")
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Arg(40)
    ->Arg(80)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);
void adam_variables(State& state) {
  const int n = static_cast<int>(state.range(0));
  adam(state, random_rows(5000, n, 2), monomials(n, 2), 2);
}
BENCHMARK(adam_variables)
    ->ArgName("n")
    ->Arg(2)
    ->Arg(3)
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);
void adam_degree(State& state) {
  const int degree = static_cast<int>(state.range(0));
  adam(state, random_rows(5000, 3, degree), monomials(3, degree), degree);
}
BENCHMARK(adam_degree)
    ->ArgName("p")
    ->DenseRange(2, 5)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMicrosecond);

// ---- Forecast -------------------------------------------------------------------------------

const Model& sprott_model() {
  static const Model model = [] {
    return fit(sprott_b(), {.method = DropoutMethod{.rows = {.scale = ScaleKind::none}}}).model;
  }();
  return model;
}

void run_forecast(State& state, ForecastOptions options, double until) {
  options.init = Vector(-Vector::Ones(3));
  options.times = regular_times(0, until, until / 500);
  long tried = 0, integrated = 0;
  for (auto _ : state) {
    const Forecast f = forecast(sprott_model(), options, ignore_progress);
    tried = options.blow_up == BlowUp::until ? f.kept : f.kept + f.discarded;
    integrated = f.integrated;
    benchmark::DoNotOptimize(f.mean.data());
    if (f.status != ForecastStatus::complete) state.SkipWithError(f.reason.c_str());
  }
  state.counters["tried"] = static_cast<double>(tried);
  state.counters["integrated"] = static_cast<double>(integrated);
}
/// 1000 sampled masks, 500 output times; blow-ups count until they happen.
void forecast_tried(State& state) {
  ForecastOptions options;
  options.bands = Bands::sd;
  options.blow_up = BlowUp::until;
  run_forecast(state, options, static_cast<double>(state.range(0)));
}
BENCHMARK(forecast_tried)->ArgName("until")->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);
/// The same until 1000 are kept.
void forecast_sd(State& state) {
  ForecastOptions options;
  options.bands = Bands::sd;
  run_forecast(state, options, static_cast<double>(state.range(0)));
}
BENCHMARK(forecast_sd)->ArgName("until")->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);
void forecast_both(State& state) { run_forecast(state, {}, static_cast<double>(state.range(0))); }
BENCHMARK(forecast_both)->ArgName("until")->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);
void forecast_enumerated(State& state) {
  ForecastOptions options;
  options.bands = Bands::sd;
  options.blow_up = BlowUp::until;
  options.masks = MaskSource::enumerated;
  run_forecast(state, options, static_cast<double>(state.range(0)));
}
BENCHMARK(forecast_enumerated)->ArgName("until")->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);
/// Two threads mean something on a free machine only.
void forecast_draws(State& state) {
  ForecastOptions options;
  options.bands = Bands::sd;
  options.draws = static_cast<int>(state.range(0));
  options.threads = static_cast<int>(state.range(1));
  run_forecast(state, options, 10);
}
BENCHMARK(forecast_draws)
    ->ArgNames({"draws", "threads"})
    ->Args({1000, 1})
    ->Args({10'000, 1})
    ->Args({100'000, 1})
    ->Args({100'000, 2})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// The integration alone; each member its own coefficients. Counters: steps per trajectory, and
/// flops counted as below.
void lanes(State& state, const LaneProblems& problems, long members, double bound) {
  SolverOptions options;
  options.bound = bound;
  std::vector<double> states(
      problems.starts.size() *
      static_cast<std::size_t>(lane_stride(static_cast<int>(problems.times.size()))));
  std::vector<TrajectoryEnd> ends(static_cast<std::size_t>(members));
  for (auto _ : state) {
    solve_lanes(problems, options, states.data(), ends);
    benchmark::DoNotOptimize(states.data());
  }
  double steps = 0, outputs = 0;
  for (const auto& end : ends) {
    steps += static_cast<double>(end.steps);
    outputs += end.outputs;
  }
  state.SetItemsProcessed(state.iterations() * members);
  state.counters["steps"] = steps / static_cast<double>(members);
  state.counters["step_time"] =
      Counter(steps, Counter::kIsIterationInvariantRate | Counter::kInvert, Counter::kIs1000);
  // A step: six evaluations of n polynomials in F monomials (the seventh stage is the next first);
  // 16 multiply-adds and five products with h for the stages, 5 multiply-adds for y_new, 6 for the
  // error and about 8 operations for its norm, 22 multiply-adds for the interpolant, per variable;
  // an output costs 11 operations per variable.
  const double n = problems.basis->variables(), F = problems.basis->size();
  const double flops =
      steps * (6 * ((F - 1) + 2 * n * (F - 1)) + n * (2 * 16 + 5 + 2 * 5 + 2 * 6 + 8 + 2 * 22)) +
      outputs * n * 11;
  state.counters["flops"] = Counter(flops, Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

/// 1000 sampled draws of the fitted Sprott B; about one in ten blows up on the way to t = 10.
void solve_lanes_sprott_b(State& state) {
  const DropoutPosterior posterior(sprott_model().network());
  const auto times = regular_times(0, static_cast<double>(state.range(0)),
                                   static_cast<double>(state.range(0)) / 500);
  LaneProblems problems;
  problems.times = times;
  std::vector<VectorField> fields;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    fields.push_back(posterior.draw(1, i));
    const Matrix& c = fields.back().polynomial()->coefficients;
    problems.coefficients.insert(problems.coefficients.end(), c.data(), c.data() + c.size());
    problems.starts.insert(problems.starts.end(), 3, -1.0);
  }
  problems.basis = fields[0].polynomial()->basis.get();
  lanes(state, problems, 1000, 1e6 * sprott_model().data_scale);
}
BENCHMARK(solve_lanes_sprott_b)->ArgName("until")->Arg(10)->Arg(100)->Unit(benchmark::kMillisecond);

/// n variables that keep |u|: du_i/dt = u_{i+1} - u_{i-1}, written as a full polynomial. 256
/// trajectories to t = 10, 500 output times: the number of steps hardly depends on n or p.
void lanes_rotation(State& state, int n, int degree) {
  const MonomialBasis basis(n, degree);
  const auto times = regular_times(0, 10, 0.02);
  Matrix c = Matrix::Zero(n, basis.size());
  // Monomials 1 … n are the variables.
  for (int i = 0; i + 1 < n; ++i) {
    c(i, 1 + i + 1) = 1;
    c(i + 1, 1 + i) = -1;
  }
  LaneProblems problems;
  problems.basis = &basis;
  problems.times = times;
  Stream stream(1, Purpose::initial_state, 0);
  for (int m = 0; m < 256; ++m) {
    problems.coefficients.insert(problems.coefficients.end(), c.data(), c.data() + c.size());
    for (int i = 0; i < n; ++i) problems.starts.push_back(stream.normal());
  }
  lanes(state, problems, 256, 1e300);
}
void solve_lanes_variables(State& state) {
  lanes_rotation(state, static_cast<int>(state.range(0)), 2);
}
BENCHMARK(solve_lanes_variables)
    ->ArgName("n")
    ->Arg(2)
    ->Arg(3)
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Unit(benchmark::kMillisecond);
void solve_lanes_degree(State& state) {
  lanes_rotation(state, 3, static_cast<int>(state.range(0)));
}
BENCHMARK(solve_lanes_degree)->ArgName("p")->DenseRange(2, 5)->Unit(benchmark::kMillisecond);

// ---- Files ----------------------------------------------------------------------------------

/// 20 copies of the Sprott B run as 20 trajectories: 100,020 rows, numbers of 17 digits.
void csv_read(State& state) {
  Dataset data = sprott_b();
  for (int i = 1; i < 20; ++i) data.trajectories.push_back(data.trajectories[0]);
  for (std::size_t i = 0; i < data.trajectories.size(); ++i)
    data.trajectories[i].id = std::to_string(i);
  const std::string text = format_csv(data);
  const auto path = std::filesystem::temp_directory_path() / "odecast_bench.csv";
  if (state.range(0)) std::ofstream(path, std::ios::binary) << text;
  for (auto _ : state) {
    const Dataset read =
        state.range(0) ? read_observations(path) : parse_observations(text, "memory");
    benchmark::DoNotOptimize(read.trajectories.data());
  }
  std::filesystem::remove(path);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(csv_read)->ArgName("file")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// ---- The core itself, to compare with --------------------------------------------------------

constexpr long kPasses = 100'000;

/// Independent multiply-adds that stay in registers, not fused, as all of odecast is compiled.
#define ODECAST_PEAK(BYTES, TARGET)                                                                \
  [[gnu::noinline, gnu::target(TARGET)]] double multiply_add_##BYTES(double factor, double term) { \
    typedef double V __attribute__((vector_size(BYTES)));                                          \
    const V f = V{} + factor, t = V{} + term;                                                      \
    V a[12];                                                                                       \
    for (int c = 0; c < 12; ++c) a[c] = t * static_cast<double>(c);                                \
    for (long i = 0; i < kPasses; ++i)                                                             \
      _Pragma("GCC unroll 12") for (int c = 0; c < 12; ++c) a[c] = a[c] * f + t;                   \
    double sum = 0;                                                                                \
    for (int c = 0; c < 12; ++c) sum += a[c][0];                                                   \
    return sum;                                                                                    \
  }
ODECAST_PEAK(16, "sse2")
ODECAST_PEAK(32, "avx2")
ODECAST_PEAK(64, "avx512f")
#undef ODECAST_PEAK

void peak_flops(State& state) {
  const auto width = state.range(0);
  double (*loop)(double, double) = multiply_add_16;
  if (width == 32 && __builtin_cpu_supports("avx2"))
    loop = multiply_add_32;
  else if (width == 64 && __builtin_cpu_supports("avx512f"))
    loop = multiply_add_64;
  else if (width != 16)
    return state.SkipWithError("not on this processor");
  for (auto _ : state) {
    double factor = 0.5;
    benchmark::DoNotOptimize(factor);
    benchmark::DoNotOptimize(loop(factor, 1.0));
  }
  state.counters["flops"] =
      Counter(2.0 * 12 * static_cast<double>(kPasses) * static_cast<double>(width) / 8,
              Counter::kIsIterationInvariantRate, Counter::kIs1000);
}
BENCHMARK(peak_flops)->ArgName("bytes")->Arg(16)->Arg(32)->Arg(64)->Unit(benchmark::kMicrosecond);

/// Bytes read and written per second by y <- y + x, arrays of the given number of kB in all.
void bandwidth(State& state) {
  const auto count = static_cast<Eigen::Index>(state.range(0) * 1024 / 16);
  Vector x = Vector::Ones(count), y = Vector::Zero(count);
  for (auto _ : state) {
    y += x;
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * count * 24);
}
BENCHMARK(bandwidth)->ArgName("kB")->Arg(16)->Arg(512)->Arg(262'144)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace odecast

BENCHMARK_MAIN();
