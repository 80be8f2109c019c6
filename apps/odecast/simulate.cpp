#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/core/times.hpp"
#include "odecast/observations/csv.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast::cli {
namespace {

std::vector<Parameter> parameters(const Arguments& a) {
  std::vector<Parameter> result;
  for (const auto& word : a.words("--set")) {
    const auto equals = word.find('=');
    const auto value = equals == word.npos ? std::nullopt : parse_number(word.substr(equals + 1));
    if (!value) throw_usage({"option `set`", shown(word), "NAME=NUMBER", "For example rho=24."});
    result.push_back({word.substr(0, equals), *value});
  }
  return result;
}

/// A map from its start, certified by a second orbit that starts one unit in the last place away.
CertifiedSolution iterate_certified(const System& system, const Vector& start,
                                    const std::vector<double>& times) {
  SolverOptions options;
  options.method = SolverMethod::iterate;
  options.fixed_step = system.step;
  options.bound = 1e100;
  Vector beside = start;
  for (double& x : beside) x = std::nextafter(x, 1e300);
  CertifiedSolution result{solve(system.field, 0, start, times, options), 0};
  result.certified_until =
      agreed_until(result.solution, solve(system.field, 0, beside, times, options), 0, times);
  return result;
}

System system_of(const Arguments& a) {
  return find_system(a.positional(0),
                     a.given("--size") ? static_cast<int>(a.whole("--size", 4, 10000)) : 0,
                     parameters(a));
}

}  // namespace

Simulation simulate(const Arguments& a, const Observer& observer) {
  const System system = system_of(a);
  const Vector start = a.given("--init") ? to_vector(a.numbers("--init")) : system.start;
  if (start.size() != system.start.size())
    throw_usage({"option `init`", fmt::format("{} values", start.size()),
                 fmt::format("{} ({})", system.start.size(), fmt::join(system.variables, ", ")),
                 "Give one value per variable, separated by commas."});
  const double step = a.given("--step") ? a.number("--step") : system.step;
  const double until = a.given("--until") ? a.number("--until") : (system.map ? 1000 : 5000) * step;
  std::vector<double> times = regular_times(0, until, step);
  times.insert(times.begin(), 0.0);
  const double noise = a.number("--noise");
  if (noise < 0)
    throw_usage({"option `noise`", a.text("--noise"), "a number >= 0", "0.01 means one per cent."});

  CertifiedSolution truth;
  if (system.map) {
    const double iterations = step / system.step;
    if (std::abs(iterations - std::round(iterations)) > 1e-9 * iterations || iterations < 0.5)
      throw_usage({"option `step`", fmt::format("{}", step),
                   "a whole number: " + system.name + " is a map",
                   "Leave it out for a row per iteration."});
    truth = iterate_certified(system, start, times);
  } else {
    // Two integrations, each from 0 to the end; time going back means the second has begun.
    double run = 0, last = 0;
    const VectorField watched(system.field.dimension(),
                              [&](double t, const double* u, double* dudt) {
                                if (t < last - until / 2) run = 0.5;
                                last = t;
                                observer("simulating", run + t / until / 2);
                                system.field(t, u, dudt);
                              });
    truth = solve_certified(watched, 0, start, times);
  }
  Simulation result;
  result.status = truth.solution.status;
  result.reached = truth.solution.reached;
  result.certified_until = truth.certified_until;
  if (result.status != SolveStatus::finished) return result;
  Dataset& data = result.data;
  data = {system.variables, {{"", times, truth.solution.states}}};
  if (system.drive) {
    data.inputs = system.inputs;
    Matrix& inputs = data.trajectories[0].inputs;
    inputs.resize(static_cast<Eigen::Index>(times.size()),
                  static_cast<Eigen::Index>(system.inputs.size()));
    for (std::size_t i = 0; i < times.size(); ++i)
      system.drive(times[i], inputs.row(static_cast<Eigen::Index>(i)).data());
  }
  if (truth.certified_until < times.back()) data.certified_until = truth.certified_until;
  result.noise = Vector::Zero(data.dimension());
  if (noise > 0) {
    result.noise =
        noise_level(data, noise, a.text("--noise-of") == "rms" ? NoiseOf::rms : NoiseOf::sd);
    add_noise(data, result.noise, a.seed());
  }
  return result;
}

std::string simulate_complaint(const Arguments& a, const Simulation& simulation) {
  return fmt::format(
      "{} from this start {} at t = {:.6g}: nothing was written. Choose another "
      "`init` or an earlier `until`.",
      system_of(a).name, status_name(simulation.status), simulation.reached);
}

namespace {

int run_simulate(const Arguments& a) {
  const std::string output = a.text("--output");
  if (!output.empty()) check_output(output, {});
  Simulation made;
  {
    const Observer observer = progress(a);
    made = simulate(a, observer);
  }
  if (made.status != SolveStatus::finished) {
    complain(simulate_complaint(a, made));
    return kNotTrusted;
  }
  const Dataset& data = made.data;
  if (!output.empty())
    write_observations(output, data);
  else if (!a.json())
    put("{}", format_csv(data));

  if (a.json()) {
    const System system = system_of(a);
    Json j = {{"system", system.name},
              {"variables", system.variables},
              {"rows", data.rows()},
              {"until", data.trajectories[0].times.back()},
              {"certified_until", made.certified_until},
              {"noise_sd", std::vector<double>(made.noise.begin(), made.noise.end())},
              {"lyapunov", system.lyapunov ? Json(*system.lyapunov) : nullptr}};
    if (!output.empty()) j["output"] = output;
    put_json(j);
  } else if (!output.empty()) {
    say(a, fmt::format("{}: {} rows, t = 0 … {}, written to {}", system_of(a).name, data.rows(),
                       data.trajectories[0].times.back(), output));
  }
  if (data.certified_until)
    warn(a, fmt::format("the solution is certified until t = {} only; later rows depend on "
                        "round-off and cannot be used as truth",
                        made.certified_until));
  return kDone;
}

}  // namespace

Command simulate_command() {
  return {
      "simulate",
      "make data from a known system",
      "Makes data from a system of the catalogue (`odecast systems` lists them), integrated at\n"
      "two tight tolerances: until when the two agree is certified and recorded.",
      "odecast simulate SprottB --init 1,1,1 --until 10 --step 0.002 -o train.csv\n"
      "odecast simulate Lorenz --noise 0.01 --seed 7 -o noisy.csv",
      {{"SYSTEM", "name, in any case"}},
      with_common({
          {"--init", "A,B,…", "start (default: the catalogue's)", ""},
          {"--until", "T", "end time (default: 5000 steps; 1000 iterations of a map)", ""},
          {"--step", "H", "spacing of the rows (default: the catalogue's)", ""},
          {"--noise", "F", "add Gaussian noise of sd F × …", "0"},
          {"--noise-of",
           "WHAT",
           "… each variable's sd, or the rms over all variables",
           "sd",
           0,
           {"sd", "rms"}},
          {"--set", "P=V,…", "parameters of the system", ""},
          {"--size", "N", "number of variables (Lorenz96)", ""},
          seed_option(),
          {"--output", "FILE", "CSV to write (default: standard output)", "", 'o'},
      }),
      run_simulate};
}

}  // namespace odecast::cli
