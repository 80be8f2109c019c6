#include "odecast/forecast/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "odecast/core/error.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"
#include "odecast/forecast/moments.hpp"
#include "odecast/solver/lanes.hpp"

namespace odecast {
namespace {

constexpr long kDrawsPerBlock = 128, kDrawsPerWave = 256 * kDrawsPerBlock;
constexpr double kMaxStoredBytes = 8e9;

void require(bool good, const char* option, const std::string& found, const char* expected,
             const char* remedy) {
  if (!good) throw_usage({option, found, expected, remedy});
}

void check_options(const Model& model, const ForecastOptions& o, const ForecastStart& start) {
  const auto number = [](double x) { return fmt::format("{}", x); };
  const auto is_state = [&](const Vector& v, const char* option) {
    require(v.size() == model.dimension(), option, fmt::format("{} values", v.size()),
            fmt::format("{} ({})", model.dimension(), fmt::join(model.variables, ", ")).c_str(),
            "Give one value per variable, separated by commas.");
    require(v.allFinite(), option, "a value that is not finite", "finite numbers",
            "Check the values.");
  };
  is_state(start.state, "--init");
  is_state(start.sd, "--init-sd");
  require((start.sd.array() >= 0).all(), "--init-sd", "a negative value", "values >= 0",
          "A standard deviation is not negative.");
  require(o.draws >= 2, "--draws", fmt::format("{}", o.draws), "a whole number >= 2",
          "A band needs at least two trajectories; the paper uses 1000.");
  require(o.level > 0 && o.level < 1, "--level", number(o.level), "a number between 0 and 1",
          "0.95 is usual.");
  require(o.bound_factor > 0, "--bound", number(o.bound_factor), "a number > 0",
          "The default is 1e6.");
  require(o.attempts_per_draw >= 1, "--attempts", fmt::format("{}", o.attempts_per_draw),
          "a whole number >= 1", "The default is 20.");
  require(!o.times.empty(), "output times", "none", "at least one after the start",
          "Give a larger --until or a smaller --step.");
  double before = start.time;
  for (const double t : o.times) {
    require(t > before && std::isfinite(t), "output times", fmt::format("{} after {}", t, before),
            "increasing times after the start", "Check --from, --until and --at.");
    before = t;
  }
  check(o.solver);
  if (o.bands != Bands::sd)
    require(8.0 * o.draws * static_cast<double>(o.times.size()) * model.dimension() <=
                kMaxStoredBytes,
            "quantiles", fmt::format("{} draws at {} times", o.draws, o.times.size()),
            "at most 8 GB of stored values",
            "Use --bands sd, fewer draws, or a larger --step.");
}

/// Everything one draw needs; shared by all threads, changed by none.
struct Setting {
  const Model& model;
  const ForecastOptions& options;
  const Posterior& posterior;
  ForecastStart start;
  SolverOptions solver;
  int n, times;
  double t0;                         // of the start, in model time
  std::vector<double> output_times;  // in model time

  Vector start_of(std::uint64_t index) const {
    Vector u = start.state;
    if ((start.sd.array() > 0).any()) {
      Stream stream(options.seed, Purpose::initial_state, index);
      for (Eigen::Index i = 0; i < u.size(); ++i) u[i] += start.sd[i] * stream.normal();
    }
    return model.scaling.to_model(u);
  }
};

/// The paper's Markov chain with ε at the output times: one integration per interval.
void solve_with_transition_noise(const Setting& s, const VectorField& field, Vector u,
                                 std::uint64_t index, double* states, LaneSolutions::End& end) {
  Stream stream(s.options.seed, Purpose::transition_noise, index);
  const int order = s.options.solver.method == Method::euler ? 1 : 4;
  SolverOptions solver = s.solver;
  double t = s.t0;
  // Steps are counted along the whole trajectory, for fields that change from step to step.
  std::uint64_t accepted = 0;
  VectorField::StepHook hook;
  if (field.step_hook())
    hook = [&](std::uint64_t in_part) { field.step_hook()(accepted + in_part); };
  const VectorField whole(
      s.n, [&](double at, const double* x, double* dudt) { field(at, x, dudt); }, hook);
  for (int k = 0; k < s.times; ++k) {
    const double target = s.output_times[static_cast<std::size_t>(k)];
    const Solution part = solve(whole, t, u, std::span(&target, 1), solver);
    accepted += static_cast<std::uint64_t>(part.accepted);
    end.steps += part.accepted + part.rejected;
    end.status = part.status;
    end.time = part.reached;
    if (part.status != SolveStatus::finished) return;
    solver.first_step = part.next_step;
    solver.max_steps = std::max(1L, s.solver.max_steps - end.steps);
    u = part.states.row(0).transpose();
    const double sigma = std::pow(target - t, order);
    for (int i = 0; i < s.n; ++i) u[i] += sigma * stream.normal();
    for (int i = 0; i < s.n; ++i) states[i * s.times + k] = u[i];
    end.outputs = k + 1;
    t = target;
  }
}

/// Draws first … first + count - 1, integrated in model units.
void integrate_block(const Setting& s, long first, long count, LaneSolutions& out) {
  const auto n = static_cast<std::size_t>(s.n);
  LaneProblems problems;
  problems.t0 = s.t0;
  problems.times = s.output_times;
  std::vector<VectorField> fields;
  bool lanes = s.solver.method == Method::rk45 && !s.options.transition_noise;
  for (long k = 0; k < count; ++k) {
    fields.push_back(s.posterior.draw(s.options.seed, static_cast<std::uint64_t>(first + k)));
    lanes = lanes && fields.back().polynomial();
  }
  if (lanes) {
    problems.basis = fields[0].polynomial()->basis.get();
    for (long k = 0; k < count; ++k) {
      const Matrix& c = fields[static_cast<std::size_t>(k)].polynomial()->coefficients;
      problems.coefficients.insert(problems.coefficients.end(), c.data(), c.data() + c.size());
      const Vector u = s.start_of(static_cast<std::uint64_t>(first + k));
      problems.starts.insert(problems.starts.end(), u.begin(), u.end());
    }
    solve_lanes(problems, s.solver, out);
    return;
  }
  const std::size_t size = n * static_cast<std::size_t>(s.times);
  out.states.resize(static_cast<std::size_t>(count) * size);
  out.ends.assign(static_cast<std::size_t>(count), {});
  for (long k = 0; k < count; ++k) {
    double* states = out.states.data() + static_cast<std::size_t>(k) * size;
    auto& end = out.ends[static_cast<std::size_t>(k)];
    const auto index = static_cast<std::uint64_t>(first + k);
    const VectorField& field = fields[static_cast<std::size_t>(k)];
    if (s.options.transition_noise) {
      solve_with_transition_noise(s, field, s.start_of(index), index, states, end);
      continue;
    }
    const Solution one = solve(field, s.t0, s.start_of(index), s.output_times, s.solver);
    end = {one.status, one.outputs, one.reached, one.accepted + one.rejected};
    for (int t = 0; t < one.outputs; ++t)
      for (int i = 0; i < s.n; ++i) states[i * s.times + t] = one.states(t, i);
  }
}

/// What is kept of a block of draws.
struct Block {
  explicit Block(const Setting& s) : moments(s.n, s.times) {}
  RunningMoments moments;
  std::vector<double> stored;   // member × variable × time, of the counted ones
  std::vector<int> outputs;     // of the stored
  std::vector<double> blow_up_times;
  long tried = 0, kept = 0;
};

/// Integrates draws from `first` on: `count` of them, or until `enough` count.
Block run_block(const Setting& s, long first, long count, long enough) {
  thread_local LaneSolutions solutions;
  integrate_block(s, first, count, solutions);
  Block block(s);
  const std::size_t size = static_cast<std::size_t>(s.n) * static_cast<std::size_t>(s.times);
  for (long k = 0; k < count && block.kept < enough; ++k) {
    const auto& end = solutions.ends[static_cast<std::size_t>(k)];
    ++block.tried;
    const bool finished = end.status == SolveStatus::finished;
    if (!finished) block.blow_up_times.push_back(end.time * s.model.scaling.time);
    if (!finished && s.options.blow_up == BlowUp::discard) continue;
    ++block.kept;
    const double* states = solutions.states.data() + static_cast<std::size_t>(k) * size;
    block.moments.add(states, end.outputs);
    if (s.options.bands != Bands::sd) {
      block.stored.insert(block.stored.end(), states, states + size);
      block.outputs.push_back(end.outputs);
    }
  }
  return block;
}

/// All blocks that count, merged in draw order.
struct Ensemble {
  explicit Ensemble(const Setting& s) : total(s) {}
  Block total;
  std::vector<std::vector<double>> stored;
  std::vector<std::vector<int>> outputs;

  void take(Block&& block) {
    total.moments.merge(block.moments);
    total.tried += block.tried;
    total.kept += block.kept;
    total.blow_up_times.insert(total.blow_up_times.end(), block.blow_up_times.begin(),
                               block.blow_up_times.end());
    stored.push_back(std::move(block.stored));
    outputs.push_back(std::move(block.outputs));
  }
};

/// Draws in order of their index until enough count or the attempts are used up. Waves of blocks run
/// in parallel; a block that would overshoot is run again for the part that is needed, so that the
/// result is that of one thread going through the draws one by one.
Ensemble run_draws(const Setting& s, const Observer& observer) {
  Ensemble ensemble(s);
  const long wanted = s.options.draws;
  const long limit = s.options.blow_up == BlowUp::discard
                         ? wanted * static_cast<long>(s.options.attempts_per_draw)
                         : wanted;
  while (ensemble.total.kept < wanted && ensemble.total.tried < limit) {
    const long missing = wanted - ensemble.total.kept, first = ensemble.total.tried;
    const double share = first == 0 ? 1
                                    : std::max(0.05, static_cast<double>(ensemble.total.kept) /
                                                         static_cast<double>(first));
    // Waves are short, so that memory does not grow with the draws.
    const long tries = std::lround(static_cast<double>(missing) / share);
    const long count = std::max(1L, std::min({tries, limit - first, kDrawsPerWave}));
    std::vector<std::optional<Block>> blocks(
        static_cast<std::size_t>((count + kDrawsPerBlock - 1) / kDrawsPerBlock));
    const double done = static_cast<double>(ensemble.total.kept) / static_cast<double>(wanted);
    parallel_for(
        s.options.threads, blocks.size(),
        [&](std::size_t b) {
          const long begin = static_cast<long>(b) * kDrawsPerBlock;
          const long size = std::min(kDrawsPerBlock, count - begin);
          blocks[b].emplace(run_block(s, first + begin, size, size));
        },
        [&](std::size_t begun) {
          const double wave = std::min(1.0, static_cast<double>(count) * share /
                                                static_cast<double>(wanted));
          observer("forecasting", std::min(1.0, done + wave * static_cast<double>(begun) /
                                                           static_cast<double>(blocks.size())));
        });
    for (auto& block : blocks) {
      const long still = wanted - ensemble.total.kept;
      if (still == 0) break;
      if (block->kept > still) block = run_block(s, ensemble.total.tried, block->tried, still);
      ensemble.take(std::move(*block));
    }
  }
  return ensemble;
}

/// Quantile of sorted-enough data by linear interpolation between order statistics (type 7 of
/// Hyndman & Fan 1996, NumPy's default). Reorders `values`.
double quantile(std::vector<double>& values, double p) {
  const double position = p * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(position);
  std::nth_element(values.begin(), values.begin() + below, values.end());
  const double low = values[static_cast<std::size_t>(below)];
  const double weight = position - static_cast<double>(below);
  if (weight == 0) return low;
  const double high = *std::min_element(values.begin() + below + 1, values.end());
  return low + weight * (high - low);
}

void fill_quantiles(const Setting& s, const Ensemble& e, int rows, Forecast& f) {
  f.q_lower.resize(rows + 1, s.n);
  f.q_median.resize(rows + 1, s.n);
  f.q_upper.resize(rows + 1, s.n);
  const double tail = (1 - f.level) / 2;
  const std::size_t size = static_cast<std::size_t>(s.n) * static_cast<std::size_t>(s.times);
  constexpr int chunk = 16;
  const int chunks = (rows + chunk - 1) / chunk;
  parallel_for(s.options.threads, static_cast<std::size_t>(chunks), [&](std::size_t c) {
    std::vector<std::vector<double>> columns(chunk);
    const int begin = static_cast<int>(c) * chunk, end = std::min(rows, begin + chunk);
    for (int i = 0; i < s.n; ++i) {
      for (auto& column : columns) column.clear();
      for (std::size_t b = 0; b < e.stored.size(); ++b)
        for (std::size_t k = 0; k < e.outputs[b].size(); ++k) {
          const double* x = e.stored[b].data() + k * size + static_cast<std::size_t>(i * s.times);
          for (int t = begin; t < std::min(end, e.outputs[b][k]); ++t)
            columns[static_cast<std::size_t>(t - begin)].push_back(x[t]);
        }
      const double offset = s.model.scaling.offset[i], scale = s.model.scaling.scale[i];
      for (int t = begin; t < end; ++t) {
        auto& column = columns[static_cast<std::size_t>(t - begin)];
        f.q_lower(t + 1, i) = offset + scale * quantile(column, tail);
        f.q_median(t + 1, i) = offset + scale * quantile(column, 0.5);
        f.q_upper(t + 1, i) = offset + scale * quantile(column, 1 - tail);
      }
    }
  });
}

Setting make_setting(const Model& model, const ForecastOptions& o, const Posterior& posterior) {
  const ForecastStart start = forecast_start(model, o);
  check_options(model, o, start);
  SolverOptions solver = o.solver;
  solver.bound = o.bound_factor * model.data_scale;
  // Fields do not depend on time, so that a forecast may run in model time.
  const double unit = model.scaling.time;
  solver.fixed_step /= unit;
  std::vector<double> times = o.times;
  for (double& t : times) t /= unit;
  return {model, o, posterior, start, solver, model.dimension(), static_cast<int>(times.size()),
          start.time / unit, times};
}

}  // namespace

ForecastStart forecast_start(const Model& model, const ForecastOptions& o) {
  ForecastStart start;
  start.time = o.from.value_or(o.init ? 0.0 : model.last_time);
  start.state = o.init.value_or(model.last_state);
  start.sd = o.init_sd ? *o.init_sd
             : !o.init && model.last_state_sd
                 ? *model.last_state_sd
                 : Vector(Vector::Zero(model.dimension()));
  return start;
}

Forecast forecast(const Model& model, const ForecastOptions& options, const Observer& observer) {
  return forecast(DropoutPosterior(model.network, options.mask), model, options, observer);
}

Forecast forecast(const Posterior& posterior, const Model& model, const ForecastOptions& options,
                  const Observer& observer) {
  const auto begin = std::chrono::steady_clock::now();
  const Setting s = make_setting(model, options, posterior);
  const Ensemble ensemble = run_draws(s, observer);
  const Block& total = ensemble.total;

  Forecast f;
  f.variables = model.variables;
  f.level = options.level;
  f.draws = options.draws;
  f.kept = total.kept;
  f.discarded = static_cast<long>(total.blow_up_times.size());
  f.blow_up_times = total.blow_up_times;

  // Times reached by two draws at least; with `discard` that is all of them or none.
  int rows = 0;
  while (rows < s.times && total.moments.count(rows) >= 2) ++rows;
  if (total.kept < options.draws) {
    f.status = ForecastStatus::too_few;
    f.reason = fmt::format(
        "only {} of {} trajectories survive {} attempts: the model blows up too often; forecast a "
        "shorter time (--until), use --blow-up until, or fit again with another degree or dropout "
        "rate", total.kept, options.draws, total.tried);
  } else if (rows < s.times) {
    f.status = ForecastStatus::too_few;
    f.reason = fmt::format("fewer than two trajectories are alive after t = {}; later times are left "
                           "out",
                           rows > 0 ? options.times[static_cast<std::size_t>(rows - 1)]
                                    : s.start.time);
  } else {
    f.reason = fmt::format("{} trajectories, {} blew up", total.kept, f.discarded);
  }

  const double c = normal_quantile((1 + options.level) / 2);
  const bool sd_band = options.bands != Bands::quantiles, q_band = options.bands != Bands::sd;
  f.times.push_back(s.start.time);
  f.times.insert(f.times.end(), options.times.begin(), options.times.begin() + rows);
  f.mean.resize(rows + 1, s.n);
  f.sd.resize(rows + 1, s.n);
  f.mean.row(0) = s.start.state.transpose();
  f.sd.row(0) = s.start.sd.transpose();
  f.alive.push_back(1);
  for (int t = 0; t < rows; ++t) {
    f.alive.push_back(total.moments.count(t) / static_cast<double>(total.kept));
    for (int i = 0; i < s.n; ++i) {
      const double scale = model.scaling.scale[i];
      f.mean(t + 1, i) = model.scaling.offset[i] + scale * total.moments.mean(i, t);
      f.sd(t + 1, i) = scale * total.moments.sd(i, t);
    }
  }
  if (sd_band) {
    f.lower = f.mean - c * f.sd;
    f.upper = f.mean + c * f.sd;
  }
  if (q_band) {
    fill_quantiles(s, ensemble, rows, f);
    f.q_median.row(0) = f.mean.row(0);
    f.q_lower.row(0) = f.mean.row(0) - c * f.sd.row(0);
    f.q_upper.row(0) = f.mean.row(0) + c * f.sd.row(0);
  }
  f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return f;
}

SingleTrajectory single_trajectory(const Model& model, SingleField which,
                                   const ForecastOptions& options) {
  const DropoutPosterior posterior(model.network);
  ForecastOptions one = options;  // no band: its limits do not apply
  one.bands = Bands::sd;
  const Setting s = make_setting(model, one, posterior);
  const VectorField field =
      which == SingleField::mean ? posterior.mean_field() : posterior.point_field();
  const Solution solution =
      solve(field, s.t0, model.scaling.to_model(s.start.state), s.output_times, s.solver);
  SingleTrajectory result{{s.start.time}, Matrix(solution.outputs + 1, s.n), solution.status,
                          solution.reached * model.scaling.time};
  result.states.row(0) = s.start.state.transpose();
  for (int t = 0; t < solution.outputs; ++t) {
    result.times.push_back(options.times[static_cast<std::size_t>(t)]);
    result.states.row(t + 1) =
        model.scaling.to_user(solution.states.row(t).transpose()).transpose();
  }
  return result;
}

}  // namespace odecast
