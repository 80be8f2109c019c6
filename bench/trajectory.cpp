// What the trajectory posterior measures to, one row per claim: fresh noise draws each time, with
// their seeds in the output. odecast_trajectory [--draws N] [--seed S] [--regression | --bootstrap]
// [ROW …]; without a row, all of them. The last two say the same of those posteriors.

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "odecast/core/random.hpp"
#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast {
namespace {

struct Settings {
  int draws = 10;
  std::uint64_t seed = 1;
};

/// Which posterior the rows are about.
Method method = TrajectoryMethod{};

using Terms = std::vector<TrajectoryOptions::KnownTerm>;

/// A system with its true coefficients in the order of its terms.
struct Truth {
  System system;
  Terms terms;
  std::vector<double> values;
};

Truth lorenz() {
  return {find_system("Lorenz"),
          {{0, {1, 0, 0}},
           {0, {0, 1, 0}},
           {1, {1, 0, 0}},
           {1, {0, 1, 0}},
           {1, {1, 0, 1}},
           {2, {0, 0, 1}},
           {2, {1, 1, 0}}},
          {-10, 10, 28, -1, -1, -8.0 / 3, 1}};
}

Truth sprott_b() {
  return {find_system("SprottB"),
          {{0, {0, 1, 1}}, {1, {1, 0, 0}}, {1, {0, 1, 0}}, {2, {0, 0, 0}}, {2, {1, 1, 0}}},
          {1, 1, -1, 1, -1}};
}

/// Start included.
Dataset orbit(const System& system, const Vector& start, double until, double step) {
  std::vector<double> times = regular_times(0, until, step);
  times.insert(times.begin(), 0.0);
  return {system.variables,
          {{"", times, solve_certified(system.field, 0, start, times).solution.states}}};
}

Dataset first_rows(const Dataset& data, long rows) {
  Dataset part = data;
  Trajectory& t = part.trajectories[0];
  t.times.resize(static_cast<std::size_t>(rows));
  t.states = Matrix(data.trajectories[0].states.topRows(rows));
  return part;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x.empty() ? NAN : x[x.size() / 2];
}
double quantile(std::vector<double> x, double p) {
  std::sort(x.begin(), x.end());
  return x.empty() ? NAN : x[static_cast<std::size_t>(p * static_cast<double>(x.size() - 1))];
}

/// What one fit says of the truth.
struct Outcome {
  bool exact_support = false;
  double error = 0;  ///< |coefficients - truth| / |truth|
  double largest_error = 0;
  std::vector<double> z;  ///< of the true terms that are there
  double seconds = 0;     ///< of one processor
};

Outcome judge(const Model& model, const Truth& truth) {
  Outcome o;
  o.exact_support = true;
  Model best = model;  // the most probable set alone
  if (!std::holds_alternative<BootstrapMethod>(method)) {
    best.polynomial()->sets.resize(1);
    best.polynomial()->sets[0].weight = 1;
  }
  const auto found = equations(best);
  double off = 0, size = 0;
  std::size_t matched = 0, there = 0;
  for (std::size_t c = 0; c < truth.terms.size(); ++c) {
    const auto& term = truth.terms[c];
    double mean = 0;
    for (const Term& t : found[static_cast<std::size_t>(term.equation)].terms)
      if (t.powers == term.powers) {
        mean = t.mean;
        ++matched;
        o.z.push_back((t.mean - truth.values[c]) / t.sd);
      }
    off += (mean - truth.values[c]) * (mean - truth.values[c]);
    size += truth.values[c] * truth.values[c];
    o.largest_error = std::max(o.largest_error, std::abs(mean - truth.values[c]));
  }
  for (const Equation& e : found)
    for (const Term& t : e.terms) {
      ++there;
      bool known = false;
      for (const auto& term : truth.terms)
        known = known || (e.variable == model.variables[static_cast<std::size_t>(term.equation)] &&
                          t.powers == term.powers);
      if (known) continue;
      off += t.mean * t.mean;
      o.largest_error = std::max(o.largest_error, std::abs(t.mean));
    }
  o.exact_support = matched == truth.terms.size() && there == matched;
  o.error = std::sqrt(off / size);
  return o;
}

struct Fitted {
  Model model;
  Outcome outcome;
};

Fitted fit_one(const Dataset& data, const Truth& truth, int degree, bool known_terms = false,
               bool robust = false) {
  FitOptions options{.method = method};
  std::visit(
      [&](auto& m) {
        if constexpr (requires { m.degree; }) m.degree = degree;
        if constexpr (requires { m.terms; })
          if (known_terms) m.terms = truth.terms;
        if constexpr (requires { m.robust; }) m.robust = robust;
      },
      options.method);
  const double begin = cpu_seconds();
  Fitted result{fit(data, options, ignore_progress).model, {}};
  const double seconds = cpu_seconds() - begin;
  result.outcome = judge(result.model, truth);
  result.outcome.seconds = seconds;
  return result;
}

/// Share of the truth inside the band, and the band's mean width of the first variable.
struct Cover {
  double cover = 0, width = 0;
};

Cover band(const Model& model, std::optional<Vector> init, const Dataset& truth, double from,
           double until, std::uint64_t seed, int draws = 500) {
  ForecastOptions o;
  o.init = init;
  o.draws = draws;
  o.bands = Bands::quantiles;
  o.solver = default_solver(model);
  o.seed = seed;
  const Trajectory& t = truth.trajectories[0];
  std::vector<long> rows;
  // About 200 times; the outputs count from the forecast's own start.
  const double start = init ? 0 : model.last_time;
  for (long k = 0; k < t.rows(); ++k) {
    const double at = t.times[static_cast<std::size_t>(k)];
    if (at > from + 1e-9 && at <= until + 1e-9 && at > start) rows.push_back(k);
  }
  const std::size_t every = std::max<std::size_t>(1, rows.size() / 200);
  std::vector<long> used;
  for (std::size_t k = every - 1; k < rows.size(); k += every) {
    used.push_back(rows[k]);
    o.times.push_back(t.times[static_cast<std::size_t>(rows[k])]);
  }
  const Forecast f = forecast(model, o, ignore_progress);
  Cover c;
  long inside = 0, all = 0;
  for (long k = 1; k < f.q_lower.rows(); ++k)
    for (long i = 0; i < f.q_lower.cols(); ++i) {
      const double u = t.states(used[static_cast<std::size_t>(k - 1)], i);
      inside += f.q_lower(k, i) <= u && u <= f.q_upper(k, i);
      ++all;
      if (i == 0) c.width += f.q_upper(k, 0) - f.q_lower(k, 0);
    }
  const auto n = static_cast<long>(o.times.size());
  c.cover = static_cast<double>(inside) / static_cast<double>(n * f.mean.cols());
  c.width /= static_cast<double>(std::max(1L, f.q_lower.rows() - 1));
  return c;
}

/// First time at which the error of the most probable field's path, over the truth's sd, passes
/// 0.4.
double valid_time(const Model& model, const Vector& init, const Dataset& truth) {
  ForecastOptions o;
  o.init = init;
  o.solver = default_solver(model);
  o.solver->max_steps = 10'000'000;
  o.times.assign(truth.trajectories[0].times.begin() + 1, truth.trajectories[0].times.end());
  const auto path = single_trajectory(model, SingleField::point, o);
  const Spread s = spread(truth);
  for (long k = 1; k < path.states.rows(); ++k) {
    const Vector e =
        (path.states.row(k) - truth.trajectories[0].states.row(k)).transpose().cwiseQuotient(s.sd);
    if (!(std::sqrt(e.squaredNorm() / static_cast<double>(e.size())) <= 0.4))
      return path.times[static_cast<std::size_t>(k)];
  }
  return path.times.back();
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}
double sd_of(const std::vector<double>& x) {
  const double m = mean_of(x);
  double sum = 0;
  for (const double v : x) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<double>(x.size() - 1));
}
double share(const std::vector<double>& z) {
  return static_cast<double>(
             std::count_if(z.begin(), z.end(), [](double x) { return std::abs(x) < 1.959964; })) /
         static_cast<double>(z.size());
}

const Vector kLorenzStart = Eigen::Vector3d(-8, 7, 27);

void support_row(const Settings& s, double T, double dt, double noise, int degree,
                 const char* target) {
  const Truth truth = lorenz();
  const Dataset whole = orbit(truth.system, kLorenzStart, 10, dt);
  const Vector sd = noise_level(whole, noise, NoiseOf::rms);
  const Dataset clean = first_rows(whole, std::lround(T / dt) + (dt < 0.005 ? 1 : 0));
  int right = 0;
  std::vector<double> errors, seconds;
  for (int k = 0; k < s.draws; ++k) {
    Dataset data = clean;
    add_noise(data, sd, s.seed + static_cast<std::uint64_t>(k));
    const Outcome o = fit_one(data, truth, degree).outcome;
    right += o.exact_support;
    errors.push_back(o.error);
    seconds.push_back(o.seconds);
  }
  fmt::print(
      "Lorenz T={} dt={} noise {} % degree {}: exact support {:.3f}, error median {:.5f} q90 "
      "{:.5f}, {:.3f} s; "
      "target {} (n={}, seeds {}…)\n",
      T, dt, 100 * noise, degree, static_cast<double>(right) / s.draws, median(errors),
      quantile(errors, 0.9), median(seconds), target, s.draws, s.seed);
}

void sprott_row(const Settings& s, double step, double noise, const char* target) {
  const Truth truth = sprott_b();
  const Dataset whole = orbit(truth.system, Vector::Ones(3), 20, step);
  const Dataset clean = first_rows(whole, std::lround(10 / step) + 1);
  const Dataset known = orbit(truth.system, -Vector::Ones(3), 100, 0.02);
  const Vector sd = noise_level(clean, noise, NoiseOf::sd);
  int right = 0;
  std::vector<double> errors, cover, width, valid, cover_last, seconds;
  for (int k = 0; k < s.draws; ++k) {
    const std::uint64_t seed = s.seed + static_cast<std::uint64_t>(k);
    Dataset data = clean;
    add_noise(data, sd, seed);
    const Fitted f = fit_one(data, truth, 2);
    right += f.outcome.exact_support;
    errors.push_back(f.outcome.error);
    seconds.push_back(f.outcome.seconds);
    const Cover from_known = band(f.model, Vector(-Vector::Ones(3)), known, 0, 10, seed);
    cover.push_back(from_known.cover);
    width.push_back(from_known.width);
    cover_last.push_back(band(f.model, {}, whole, 10, 20, seed).cover);
    valid.push_back(0.21 * valid_time(f.model, -Vector::Ones(3), known));
  }
  fmt::print(
      "Sprott B h={} noise {} %: support {:.2f}, error {:.5f}; known start cover {:.3f} (se "
      "{:.3f}) width {:.4f} "
      "valid {:.1f}; continued cover {:.3f} (se {:.3f}); {:.3f} s; target {} (n={}, seeds {}…)\n",
      step, 100 * noise, static_cast<double>(right) / s.draws, median(errors), mean_of(cover),
      sd_of(cover) / std::sqrt(s.draws), median(width), median(valid), mean_of(cover_last),
      sd_of(cover_last) / std::sqrt(s.draws), median(seconds), target, s.draws, s.seed);
}

void clean_row(double step) {
  const Truth truth = sprott_b();
  const Dataset clean = orbit(truth.system, Vector::Ones(3), 10, step);
  const Dataset known = orbit(truth.system, -Vector::Ones(3), 160, 0.02);
  const Fitted f = fit_one(clean, truth, 2);
  fmt::print(
      "Sprott B h={} clean: support {}, largest error {:.2e}, valid {:.1f} Lyapunov times, {:.3f} "
      "s; target 1e-12, 27\n",
      step, f.outcome.exact_support, f.outcome.largest_error,
      0.21 * valid_time(f.model, -Vector::Ones(3), known), f.outcome.seconds);
}

void calibration_row(const Settings& s, double T, double noise) {
  const Truth truth = lorenz();
  const Dataset whole = orbit(truth.system, kLorenzStart, 20, 0.01);
  const Vector sd = noise_level(first_rows(whole, 1000), noise, NoiseOf::rms);
  const Dataset clean = first_rows(whole, std::lround(T / 0.01));
  std::vector<std::vector<double>> z(truth.terms.size());
  std::vector<double> all, mahalanobis;
  for (int k = 0; k < s.draws; ++k) {
    Dataset data = clean;
    add_noise(data, sd, s.seed + static_cast<std::uint64_t>(k));
    const Fitted f = fit_one(data, truth, 2, true);
    for (std::size_t c = 0; c < f.outcome.z.size(); ++c) {
      z[c].push_back(f.outcome.z[c]);
      all.push_back(f.outcome.z[c]);
    }
    // Squared distance of the last state in its own covariance: chi-square with 3 degrees.
    const Vector truth_last = clean.trajectories[0].states.bottomRows(1).transpose();
    if (!std::holds_alternative<TrajectoryMethod>(method)) {
      mahalanobis.push_back(
          (f.model.last_state - truth_last).cwiseQuotient(*f.model.last_state_sd).squaredNorm());
      continue;
    }
    const Moments last = polynomial_posterior(f.model).last_state();
    const Vector off = f.model.scaling.to_model(truth_last) - last.mean;
    mahalanobis.push_back(off.dot(Eigen::LDLT<Eigen::MatrixXd>(last.covariance).solve(off)));
  }
  double low = 1e9, high = 0;
  for (const auto& one : z) low = std::min(low, sd_of(one)), high = std::max(high, sd_of(one));
  fmt::print(
      "Lorenz T={} noise {} % right terms: 95 % intervals cover {:.3f}, sd of z {:.3f} (terms "
      "{:.2f} to {:.2f}); "
      "last state's squared distance {:.2f} (3 expected); target .94–.96, .95–1.05 (n={}, seeds "
      "{}…)\n",
      T, 100 * noise, share(all), sd_of(all), low, high, mean_of(mahalanobis), s.draws, s.seed);
}

void doubt_row(const Settings& s, double T, double noise) {
  const Truth truth = lorenz();
  const Dataset whole = orbit(truth.system, kLorenzStart, 20, 0.01);
  const Vector sd = noise_level(first_rows(whole, 1000), noise, NoiseOf::rms);
  const long rows = std::lround(T / 0.01);
  std::vector<double> near, far;
  for (int k = 0; k < s.draws; ++k) {
    const std::uint64_t seed = s.seed + static_cast<std::uint64_t>(k);
    Dataset data = first_rows(whole, rows);
    add_noise(data, sd, seed);
    const Fitted f = fit_one(data, truth, 2);
    near.push_back(band(f.model, {}, whole, T - 0.01, T + 1, seed).cover);
    far.push_back(band(f.model, {}, whole, T - 0.01, T + 5, seed).cover);
  }
  fmt::print(
      "Lorenz T={} noise {} % continued: cover to +1 {:.3f}, to +5 {:.3f} (se {:.3f}); target "
      ".92–.98 (n={}, seeds {}…)\n",
      T, 100 * noise, mean_of(near), mean_of(far), sd_of(far) / std::sqrt(s.draws), s.draws,
      s.seed);
}

/// Uneven times, 30 % of the values missing, 5 % of the rest off by ten sd; beside as many clean
/// values.
void rough_row(const Settings& s) {
  const Truth truth = lorenz();
  std::vector<double> rough, plain, cover, z;
  int right = 0;
  for (int k = 0; k < s.draws; ++k) {
    const std::uint64_t seed = s.seed + static_cast<std::uint64_t>(k);
    Stream stream(seed, Purpose::initial_state, 1);
    std::vector<double> times = {0};
    while (times.back() < 10) times.push_back(times.back() + 0.02 * stream.uniform() + 1e-4);
    const auto rows = static_cast<long>(times.size());
    std::vector<double> ahead = times;
    for (int j = 1; j <= 100; ++j) ahead.push_back(times.back() + 0.01 * j);
    Dataset whole{
        truth.system.variables,
        {{"", ahead, solve_certified(truth.system.field, 0, kLorenzStart, ahead).solution.states}}};
    Dataset data = first_rows(whole, rows);
    const Vector sd = noise_level(data, 0.02, NoiseOf::rms);
    add_noise(data, sd, seed);
    Matrix& u = data.trajectories[0].states;
    double values = 0;
    for (long r = 0; r < u.rows(); ++r)
      for (long i = 0; i < 3; ++i) {
        const double missing = stream.uniform(), outlier = stream.uniform(),
                     side = stream.uniform();
        if (outlier < 0.05) u(r, i) += (side < 0.5 ? -10 : 10) * sd[i];
        if (missing < 0.3) u(r, i) = NAN;
        values += missing >= 0.3;
      }
    const Fitted f = fit_one(data, truth, 2, false, true);
    rough.push_back(f.outcome.error);
    right += f.outcome.exact_support;
    z.insert(z.end(), f.outcome.z.begin(), f.outcome.z.end());
    cover.push_back(
        band(f.model, {}, whole, data.trajectories[0].times.back(), ahead.back(), seed).cover);
    // The same span with as many values, even times, nothing wrong with them.
    Dataset even = orbit(truth.system, kLorenzStart, 10, 10 / (values / 3));
    add_noise(even, sd, seed);
    plain.push_back(fit_one(even, truth, 2).outcome.error);
  }
  fmt::print(
      "Lorenz uneven times, 30 % missing, 5 % outliers of ten sd, noise 2 %: exact support {:.2f}, "
      "error median {:.5f}, clean {:.5f}, ratio {:.2f}, sd of z {:.2f}; "
      "cover to +1 {:.3f} (se {:.3f}); target ratio 2.5, .90–.98 (n={}, seeds {}…)\n",
      static_cast<double>(right) / s.draws, median(rough), median(plain),
      median(rough) / median(plain), sd_of(z), mean_of(cover), sd_of(cover) / std::sqrt(s.draws),
      s.draws, s.seed);
}

void other_row(const Settings& s, const char* name, int degree, double noise) {
  const System system = find_system(name);
  const double step = 10 * system.step;
  const Dataset clean = orbit(system, system.start, 1000 * step, step);
  const Vector sd = noise_level(clean, noise, NoiseOf::sd);
  for (int k = 0; k < s.draws; ++k) {
    Dataset data = clean;
    if (noise > 0) add_noise(data, sd, s.seed + static_cast<std::uint64_t>(k));
    const FitOptions options{.method = TrajectoryMethod{.degree = degree}};
    const double begin = cpu_seconds();
    const Fit f = fit(data, options, ignore_progress);
    fmt::print("{} degree {} noise {} % seed {}: {} ({:.3f} s, misfit {})\n{}", name, degree,
               100 * noise, s.seed + static_cast<std::uint64_t>(k), f.summary.reason,
               cpu_seconds() - begin, f.model.trajectory->misfit,
               format_equations(f.model, EquationFormat::text));
  }
}

int run(int argc, char** argv) {
  Settings s;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--draws" && i + 1 < argc)
      s.draws = std::max(2, std::atoi(argv[++i]));
    else if (word == "--seed" && i + 1 < argc)
      s.seed = static_cast<std::uint64_t>(std::atoll(argv[++i]));
    else if (word == "--regression")
      method = RegressionMethod{};
    else if (word == "--bootstrap")
      method = BootstrapMethod{};
    else
      wanted.push_back(word);
  }
  struct Row {
    const char* name;
    std::function<void()> run;
  };
  const std::vector<Row> rows = {
      {"lorenz-2.5", [&] { support_row(s, 10, 0.01, 0.025, 5, "≥ .99, ≤ .003"); }},
      {"lorenz-5", [&] { support_row(s, 10, 0.01, 0.05, 5, "≥ .97, ≤ .006"); }},
      {"lorenz-10", [&] { support_row(s, 10, 0.01, 0.1, 5, "≥ .94, ≤ .012"); }},
      {"lorenz-short", [&] { support_row(s, 3, 0.01, 0.05, 5, "≥ .88"); }},
      {"lorenz-30", [&] { support_row(s, 10, 0.01, 0.3, 2, "≥ .80"); }},
      {"weak-sindy", [&] { support_row(s, 10, 0.001, 0.1, 5, "≥ .95, ≤ .0025, < 0.6 s"); }},
      {"sprott-1", [&] { sprott_row(s, 0.002, 0.01, ".93–.97, ≤ .003, ≥ 9; .93–.98"); }},
      {"sprott-5", [&] { sprott_row(s, 0.002, 0.05, ".93–.97, ≤ .014, ≥ 7; .93–.98"); }},
      {"sprott-10", [&] { sprott_row(s, 0.002, 0.1, ".93–.97, ≤ .028, ≥ 6.5; .93–.98"); }},
      {"clean-500", [&] { clean_row(0.002); }},
      {"clean-50", [&] { clean_row(0.02); }},
      {"calibration-2.5", [&] { calibration_row(s, 10, 0.025); }},
      {"calibration-20", [&] { calibration_row(s, 10, 0.2); }},
      {"calibration-short", [&] { calibration_row(s, 3, 0.05); }},
      {"doubt", [&] { doubt_row(s, 3, 0.2); }},
      {"time-1000", [&] { support_row(s, 10, 0.01, 0.05, 2, "< 0.15 s"); }},
      {"time-10000", [&] { support_row(s, 10, 0.001, 0.05, 2, "< 0.4 s"); }},
      {"rough", [&] { rough_row(s); }},
  };
  int known = 0;
  for (const Row& row : rows)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), row.name) != wanted.end()) {
      ++known;
      row.run();
      std::fflush(stdout);
    }
  // A system of the catalogue by name: its equations.
  for (const std::string& word : wanted)
    if (std::none_of(rows.begin(), rows.end(), [&](const Row& r) { return word == r.name; })) {
      const auto colon = word.find(':');
      other_row(s, word.substr(0, colon).c_str(), 3,
                colon == word.npos ? 0.05 : std::atof(word.c_str() + colon + 1));
      ++known;
    }
  return known > 0 ? 0 : 2;
}

}  // namespace
}  // namespace odecast

int main(int argc, char** argv) { return odecast::run(argc, argv); }
