// filter [CASE …] [--cycles N] [--seeds K] [--first S]: how well filters follow Lorenz's system, in
// the settings of the data-assimilation literature (DAPPER's, Raanes et al. 2018): root mean square
// error of the analysis, one-row forecasts' coverage, spread over skill, normalised error squared,
// longest time lost, rows per second of one core.
#include "odecast/filter/filter.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>

#include "odecast/learning/fit.hpp"
#include "odecast/solver/solve.hpp"

namespace {

using namespace odecast;

constexpr int kSpinUp = 64;

/// dx/dt = 10 (y - x), dy/dt = x (28 - z) - y, dz/dt = x y - 8/3 z as a model without doubt.
Model lorenz_model(const Vector& noise) {
  const MonomialBasis basis(3, 2);
  Model model;
  model.variables = {"x", "y", "z"};
  model.scaling = {Vector::Zero(3), Eigen::Vector3d(8.4, 9, 25), 0.0625};
  model.size = Eigen::Vector3d(7.9, 9, 25);
  model.sd = Eigen::Vector3d(7.9, 9, 8.6);
  model.noise = noise;
  model.data_scale = 3;
  model.step = 0.01;
  model.last_time = -1e9;
  model.last_state = Eigen::Vector3d(1.5, 1.5, 25);
  CoefficientSet set;
  const auto add = [&](int equation, std::vector<int> powers, double c) {
    std::vector<int> p = std::move(powers);
    double unit = model.scaling.time / model.scaling.scale[equation];
    for (int i = 0; i < 3; ++i)
      unit *= std::pow(model.scaling.scale[i], p[static_cast<std::size_t>(i)]);
    set.support.push_back({equation, basis.find(p)});
    set.theta.conservativeResize(set.theta.size() + 1);
    set.theta[set.theta.size() - 1] = c * unit;
  };
  add(0, {1, 0, 0}, -10), add(0, {0, 1, 0}, 10);
  add(1, {1, 0, 0}, 28), add(1, {0, 1, 0}, -1), add(1, {1, 0, 1}, -1);
  add(2, {0, 0, 1}, -8.0 / 3), add(2, {1, 1, 0}, 1);
  set.weight = 1;
  set.covariance = 1e-24 * Matrix::Identity(7, 7);
  model.law = PolynomialPart{2, {set}, nullptr};
  return model;
}

/// dx_i/dt = (x_i+1 - x_i-2) x_i-1 - x_i + 8, i = 1 … 40 (Lorenz 1996), without doubt.
Model lorenz96_model(const Vector& noise) {
  constexpr int n = 40;
  const MonomialBasis basis(n, 2);
  Model model;
  CoefficientSet set;
  const auto add = [&](int equation, std::vector<int> variables, double c) {
    std::vector<int> powers(n, 0);
    for (const int v : variables) ++powers[static_cast<std::size_t>((v + n) % n)];
    set.support.push_back({equation, basis.find(powers)});
    set.theta.conservativeResize(set.theta.size() + 1);
    set.theta[set.theta.size() - 1] = c;
  };
  for (int i = 0; i < n; ++i) {
    model.variables.push_back(fmt::format("x{}", i + 1));
    add(i, {}, 8), add(i, {i}, -1), add(i, {i + 1, i - 1}, 1), add(i, {i - 2, i - 1}, -1);
  }
  model.scaling = {Vector::Zero(n), Vector::Ones(n), 1};
  model.size = model.sd = Vector::Constant(n, 3.6);
  model.noise = noise;
  model.data_scale = 13;
  model.step = 0.05;
  model.last_time = -1e9;
  model.last_state = Vector::Constant(n, 2.3);
  set.covariance = 1e-24 * Matrix::Identity(set.theta.size(), set.theta.size());
  model.law = PolynomialPart{2, {set}, nullptr};
  return model;
}

enum class Change { none, jump, ramp };
/// Of Lorenz' system at a part of the rows: ρ is 28, and 32 at the end: from 3/8 on, or linearly
/// from 1/4 to 3/4.
double rho_at(Change change, double part) {
  if (change == Change::jump && part > 0.375) return 32;
  if (change == Change::ramp) return 28 + 4 * std::clamp(2 * (part - 0.25), 0.0, 1.0);
  return 28;
}

/// States `gap` apart along the attractor, and rows seen with noise.
struct Experiment {
  Matrix truth, rows;
};
Experiment experiment(int variables, int cycles, double gap, double sd, std::uint64_t seed,
                      Change change = Change::none) {
  Experiment e{Matrix(cycles, variables), Matrix(cycles, variables)};
  Stream stream(seed, Purpose::observation_noise, 0);
  Vector u = Vector::Constant(variables, 1.5);
  if (variables == 3) u[2] = 25;
  u[0] += stream.normal();
  const auto lorenz = [](double rho) {
    return VectorField(3, [rho](double, const double* x, double* f) {
      f[0] = 10 * (x[1] - x[0]), f[1] = x[0] * (rho - x[2]) - x[1],
      f[2] = x[0] * x[1] - 8.0 / 3 * x[2];
    });
  };
  const VectorField lorenz96(variables, [n = variables](double, const double* x, double* f) {
    for (int i = 0; i < n; ++i)
      f[i] = (x[(i + 1) % n] - x[(i + n - 2) % n]) * x[(i + n - 1) % n] - x[i] + 8;
  });
  for (int k = -100; k < cycles; ++k) {
    SolverOptions o;
    o.rtol = o.atol = 1e-8;
    const double t[] = {gap};
    const VectorField field =
        variables == 3 ? lorenz(rho_at(change, static_cast<double>(k) / cycles)) : lorenz96;
    u = solve(field, 0, u, t, o).states.row(0).transpose();
    if (k < 0) continue;
    e.truth.row(k) = u.transpose();
    for (int i = 0; i < variables; ++i) e.rows(k, i) = u[i] + sd * stream.normal();
  }
  return e;
}

struct Result {
  double error = 0, spread = 0, nees = 0, cover = 0, forecast_cover = 0, score = 0, seconds = 0;
  long longest = 0;
  /// Root mean square over parts of the rows: before 3/8, from 100 rows after that on; rows 1000 to
  /// 2000; rows after 3/8 until the change is said.
  double before = 0, after = 0, learnt = 0, said = 0;
};

Result follow(const Model& model, const Experiment& e, double gap, double sd,
              const std::vector<int>& columns, FilterOptions o) {
  Observing observing;
  const auto n = static_cast<double>(model.dimension());
  observing.H = Matrix::Zero(static_cast<Eigen::Index>(columns.size()), model.dimension());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    observing.columns.push_back(model.variables[static_cast<std::size_t>(columns[j])]);
    observing.H(static_cast<Eigen::Index>(j), columns[j]) = 1;
  }
  o.noise = Vector::Constant(observing.H.rows(), sd);
  Filter filter(model, observing, o);
  FilterSummary summary;
  Result r;
  double count = 0, square = 0;
  long lost = 0;
  const std::clock_t begin = std::clock();
  for (Eigen::Index k = 0; k < e.rows.rows(); ++k) {
    const FilterRow row =
        filter.update(gap * static_cast<double>(k), observing.H * e.rows.row(k).transpose());
    if (k < kSpinUp) continue;
    summary.add(row, o.level);
    const Vector d = row.state.mean - e.truth.row(k).transpose();
    const double rms = d.norm() / std::sqrt(n);
    r.error += rms;
    square += d.squaredNorm() / n;
    r.spread += row.state.sd.squaredNorm() / n;
    r.nees += d.cwiseQuotient(row.state.sd).squaredNorm() / n;
    for (int i = 0; i < model.dimension(); ++i)
      r.cover += (e.truth(k, i) >= row.state.lower[i] && e.truth(k, i) <= row.state.upper[i]) / n;
    const auto change = 3 * e.rows.rows() / 8;
    if (k <= change) r.before += rms / static_cast<double>(change + 1 - kSpinUp);
    if (k > change + 100) r.after += rms / static_cast<double>(e.rows.rows() - change - 101);
    if (k >= 1000 && k < 2000) r.learnt += rms / 1000;
    if (k > change && r.said == 0 && row.status != FilterStatus::ok)
      r.said = static_cast<double>(k - change);
    lost = rms > 3 ? lost + 1 : 0;
    r.longest = std::max(r.longest, lost);
    ++count;
  }
  r.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  r.error /= count, r.spread = std::sqrt(r.spread / square), r.nees /= count, r.cover /= count;
  r.forecast_cover = summary.coverage();
  r.score = summary.log_score;
  return r;
}

void print(const char* name, int cycles, bool change, const std::vector<Result>& all) {
  const auto stat = [&](auto member) {
    double sum = 0, squares = 0;
    for (const Result& r : all) sum += r.*member, squares += r.*member * (r.*member);
    const auto n = static_cast<double>(all.size());
    const double mean = sum / n;
    return std::pair(mean,
                     n > 1 ? std::sqrt(std::max(0.0, squares / n - mean * mean) / (n - 1)) : 0);
  };
  const auto [error, se] = stat(&Result::error);
  const auto [spread, s1] = stat(&Result::spread);
  long longest = 0;
  for (const Result& r : all) longest = std::max(longest, r.longest);
  fmt::print(
      "{:34} rmse {:.3f} ± {:.3f}  s/s {:.2f}  nees {:9.3g}  cover {:.3f}  one row ahead {:.3f}  "
      "log score {:7.3f}  lost {:5}  {:8.0f} rows/s\n",
      name, error, se, spread, stat(&Result::nees).first, stat(&Result::cover).first,
      stat(&Result::forecast_cover).first, stat(&Result::score).first, longest,
      cycles / stat(&Result::seconds).first);
  if (change)
    fmt::print(
        "    before 3/8 {:.3f} ± {:.3f}  from 100 rows after on {:.3f} ± {:.3f}  rows 1000–2000 "
        "{:.3f}  said after {:.1f} rows\n",
        stat(&Result::before).first, stat(&Result::before).second, stat(&Result::after).first,
        stat(&Result::after).second, stat(&Result::learnt).first, stat(&Result::said).first);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  int cycles = 1000, seeds = 3;
  std::uint64_t first = 0;
  std::string only;
  for (int k = 1; k < count; ++k) {
    if (!std::strcmp(words[k], "--cycles"))
      cycles = std::atoi(words[++k]);
    else if (!std::strcmp(words[k], "--seeds"))
      seeds = std::atoi(words[++k]);
    else if (!std::strcmp(words[k], "--first"))
      first = std::strtoull(words[++k], nullptr, 10);
    else
      only = words[k];
  }
  struct Case {
    const char* name;
    FilterMethod method;
    int members;
    double gap, variance;
    std::vector<int> columns;
    double fit_time = 0, fit_noise = 0;
    bool learn = false;
    Change change = Change::none;
    int variables = 3;
  };
  const std::vector<int> all = {0, 1, 2};
  std::vector<int> forty(40);
  std::iota(forty.begin(), forty.end(), 0);
  const std::vector<Case> cases = {
      {"sakov2012 kalman 40", FilterMethod::kalman, 40, 0.25, 2, all},
      {"sakov2012 kalman 10", FilterMethod::kalman, 10, 0.25, 2, all},
      {"sakov2012 iterated 40", FilterMethod::iterated, 40, 0.25, 2, all},
      {"sakov2012 particle 1000", FilterMethod::particle, 1000, 0.25, 2, all},
      {"sakov2012 x particle 1000", FilterMethod::particle, 1000, 0.25, 2, {0}},
      {"wiljes2017 x particle 1000", FilterMethod::particle, 1000, 0.12, 8, {0}},
      {"good iterated 40", FilterMethod::iterated, 40, 0.25, 2, all, 10, 0.05},
      {"good particle 1000", FilterMethod::particle, 1000, 0.25, 2, all, 10, 0.05},
      {"poor iterated 40", FilterMethod::iterated, 40, 0.25, 2, all, 3, 0.2},
      {"poor particle 1000", FilterMethod::particle, 1000, 0.25, 2, all, 3, 0.2},
      {"good learn", FilterMethod::iterated, 0, 0.25, 2, all, 10, 0.05, true},
      {"poor learn", FilterMethod::iterated, 0, 0.25, 2, all, 3, 0.2, true},
      {"jump learn", FilterMethod::iterated, 0, 0.25, 2, all, 10, 0.05, true, Change::jump},
      {"ramp learn", FilterMethod::iterated, 0, 0.25, 2, all, 10, 0.05, true, Change::ramp},
      {.name = "lorenz96 kalman 40",
       .method = FilterMethod::kalman,
       .members = 40,
       .gap = 0.05,
       .variance = 1,
       .columns = forty,
       .variables = 40},
      {.name = "lorenz96 iterated 40",
       .method = FilterMethod::iterated,
       .members = 40,
       .gap = 0.05,
       .variance = 1,
       .columns = forty,
       .variables = 40},
  };
  for (const Case& c : cases) {
    if (!only.empty() && std::string(c.name).find(only) == std::string::npos) continue;
    std::vector<Result> results;
    for (int seed = 1; seed <= seeds; ++seed) {
      const auto s = static_cast<std::uint64_t>(seed);
      const double sd = std::sqrt(c.variance);
      const Experiment e = experiment(c.variables, cycles, c.gap, sd, s + first, c.change);
      Model model = c.variables == 3 ? lorenz_model(Vector::Constant(3, sd))
                                     : lorenz96_model(Vector::Constant(c.variables, sd));
      if (c.fit_time > 0) {
        Dataset data{{"x", "y", "z"}, {{"0", {}, {}}}};
        const int rows = static_cast<int>(std::lround(c.fit_time / 0.01)) + 1;
        const Experiment train = experiment(3, rows, 0.01, 0, 1000 + s + first);
        data.trajectories[0].states = train.truth;
        for (int k = 0; k < rows; ++k) data.trajectories[0].times.push_back(0.01 * k - 1e6);
        add_noise(data, noise_level(data, c.fit_noise, NoiseOf::sd), 2000 + s + first);
        model = fit(data, {}, ignore_progress).model;
      }
      results.push_back(
          follow(model, e, c.gap, sd, c.columns,
                 {.method = c.method, .members = c.members, .learn = c.learn, .seed = s}));
    }
    print(c.name, cycles, c.learn, results);
  }
}
