#include "odecast/forecast/detail/ensemble.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_map>

#include "odecast/core/parallel.hpp"
#include "odecast/core/random.hpp"

namespace odecast {
namespace {

constexpr long kPerBlock = 128, kPerWave = 64 * kPerBlock;
/// Up to here the fields of a finite posterior are integrated once each and kept.
constexpr std::uint64_t kMaxRemembered = 4096;
constexpr double kMostKicks = 1e4;

/// The paper's Markov chain with ε at the output times: one integration per interval.
void solve_with_transition_noise(const EnsembleSetting& s, const VectorField& field, Vector u,
                                 std::uint64_t index, double* states, TrajectoryEnd& end) {
  Stream stream(s.options.seed, Purpose::transition_noise, index);
  const int order = s.solver.method == SolverMethod::euler ? 1 : 4;
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
    for (int i = 0; i < s.n; ++i) states[i * s.stride() + k] = u[i];
    end.outputs = k + 1;
    t = target;
  }
}

/// Whether all trajectories can run in lanes.
bool in_lanes(const EnsembleSetting& s) {
  return s.solver.method == SolverMethod::rk45 && !s.options.transition_noise && s.autonomous() &&
         s.posterior.draw(s.options.seed, 0).polynomial();
}

/// A field, the index of its start and noise, and what it counts for.
struct Member {
  VectorField field;
  std::uint64_t index;
  double weight;
};

/// Members on their way: field, driven where it has inputs, and state at a time they share.
struct Underway {
  bool lanes;  ///< all have their terms
  std::vector<const VectorField*> fields = {};
  std::vector<double> states = {};  ///< member × variable
};

/// From t0 to the given times. `states` has member × variable × lane_stride(times).
void advance(const EnsembleSetting& s, const Underway& now, double t0,
             std::span<const double> times, double* states, std::span<TrajectoryEnd> ends) {
  if (now.lanes) {
    LaneProblems problems;
    problems.t0 = t0;
    problems.times = times;
    problems.basis = now.fields[0]->polynomial()->basis.get();
    problems.functions = now.fields[0]->polynomial()->functions.get();
    for (const VectorField* field : now.fields) {
      const Matrix& c = field->polynomial()->coefficients;
      problems.coefficients.insert(problems.coefficients.end(), c.data(), c.data() + c.size());
      const std::vector<double>& z = field->polynomial()->numbers;
      problems.numbers.insert(problems.numbers.end(), z.begin(), z.end());
    }
    problems.starts = now.states;
    solve_lanes(problems, s.solver, states, ends);
    return;
  }
  const int stride = lane_stride(static_cast<int>(times.size()));
  for (std::size_t k = 0; k < now.fields.size(); ++k, states += s.n * stride) {
    const Vector start =
        Eigen::Map<const Vector>(now.states.data() + k * static_cast<std::size_t>(s.n), s.n);
    const Solution one = solve(*now.fields[k], t0, start, times, s.solver);
    ends[k] = {one.status, one.outputs, one.reached, one.accepted + one.rejected};
    for (int t = 0; t < one.outputs; ++t)
      for (int i = 0; i < s.n; ++i) states[i * stride + t] = one.states(t, i);
  }
}

/// The same with the model's forcing: a kick in the middle of every interval, so that k intervals
/// have k kicks; of several together where they are very many.
void advance_forced(const EnsembleSetting& s, const std::vector<Member>& members, Underway now,
                    double* all_states, std::span<TrajectoryEnd> all_ends) {
  const Forcing& forcing = s.model.trajectory->forcing;
  const double interval = std::max(forcing.interval, (s.output_times.back() - s.t0) / kMostKicks);
  const Vector kick = forcing.sd * std::sqrt(interval / forcing.interval);
  std::vector<Stream> streams;
  std::vector<std::size_t> place;  // of those that have not blown up
  for (const Member& m : members) {
    streams.emplace_back(s.options.seed, Purpose::forcing, m.index);
    place.push_back(place.size());
  }
  const auto n = static_cast<std::size_t>(s.n);
  double from = s.t0;
  int done = 0;
  for (long leg = 1; done < s.times && !place.empty(); ++leg) {
    pulse();
    const double to = s.t0 + (static_cast<double>(leg) - 0.5) * interval;
    std::vector<double> times;
    while (done + static_cast<int>(times.size()) < s.times &&
           s.output_times[static_cast<std::size_t>(done) + times.size()] <= to)
      times.push_back(s.output_times[static_cast<std::size_t>(done) + times.size()]);
    const int outputs = static_cast<int>(times.size());
    if (done + outputs < s.times && (times.empty() || times.back() < to)) times.push_back(to);
    const int stride = lane_stride(static_cast<int>(times.size()));
    const AlignedDoubles states =
        aligned_doubles(place.size() * n * static_cast<std::size_t>(stride));
    std::vector<TrajectoryEnd> ends(place.size());
    advance(s, now, from, times, states.get(), ends);
    Underway next{now.lanes};
    std::vector<std::size_t> left;
    for (std::size_t k = 0; k < place.size(); ++k) {
      const std::size_t at = place[k];
      TrajectoryEnd& end = all_ends[at];
      const long steps = end.steps + ends[k].steps;
      const int good = std::min(ends[k].outputs, outputs);
      end = {ends[k].status, done + good, ends[k].time, steps};
      const double* row = states.get() + k * n * static_cast<std::size_t>(stride);
      double* out = all_states + at * s.trajectory_size() + done;
      for (int i = 0; i < s.n; ++i, row += stride, out += s.stride()) std::copy_n(row, good, out);
      if (end.status != SolveStatus::finished) continue;
      left.push_back(at);
      next.fields.push_back(now.fields[k]);
      row = states.get() + k * n * static_cast<std::size_t>(stride) + times.size() - 1;
      for (int i = 0; i < s.n; ++i, row += stride)
        next.states.push_back(kicked(s.model, i, *row, kick[i], streams[at].normal()));
    }
    done += outputs;
    from = times.back();
    place = std::move(left);
    now = std::move(next);
  }
}

/// Integrates the members in model units.
void integrate(const EnsembleSetting& s, const std::vector<Member>& members, double* all_states,
               std::span<TrajectoryEnd> ends) {
  if (members.empty()) return;
  if (s.options.transition_noise) {
    for (std::size_t k = 0; k < members.size(); ++k)
      solve_with_transition_noise(s, s.driven(members[k].field), s.start_of(members[k].index),
                                  members[k].index, all_states + k * s.trajectory_size(), ends[k]);
    return;
  }
  Underway now{in_lanes(s)};
  std::vector<VectorField> driven;
  driven.reserve(members.size());
  for (const Member& m : members) {
    now.fields.push_back(now.lanes ? &m.field : &driven.emplace_back(s.driven(m.field)));
    const Vector u = s.start_of(m.index);
    now.states.insert(now.states.end(), u.begin(), u.end());
  }
  if (s.forced())
    advance_forced(s, members, std::move(now), all_states, ends);
  else
    advance(s, now, s.t0, s.output_times, all_states, ends);
  for (std::size_t k = 0; k < members.size(); ++k)
    if (const int left = s.leaves(all_states + k * s.trajectory_size(), ends[k].outputs);
        left < ends[k].outputs) {
      ends[k].status = SolveStatus::left_bound;
      ends[k].outputs = left;
      ends[k].time = s.output_times[static_cast<std::size_t>(left)];
    }
}

/// Keeps the sample where it is among the first ones asked for.
void add_sample(const EnsembleSetting& s, Ensemble& e, SampleTrajectory sample) {
  const auto before = std::upper_bound(
      e.samples.begin(), e.samples.end(), sample.weight,
      [](double weight, const SampleTrajectory& other) { return weight > other.weight; });
  e.samples.insert(before, std::move(sample));
  if (e.samples.size() > static_cast<std::size_t>(s.options.samples)) e.samples.pop_back();
}

/// Whether a trajectory of that weight would be kept as a sample.
bool wants_sample(const EnsembleSetting& s, const Ensemble& e, double weight) {
  return e.samples.size() < static_cast<std::size_t>(s.options.samples) ||
         (!e.samples.empty() && weight > e.samples.back().weight);
}

/// Counts one trajectory, or its blow-up. Returns whether it is kept.
bool count(const EnsembleSetting& s, Ensemble& e, const double* states, const TrajectoryEnd& end,
           double weight, std::uint64_t index) {
  ++e.tried;
  if (s.below_zero(states, end.outputs, index)) {
    ++e.below_zero;
    return false;
  }
  e.tried_weight += weight;
  const bool finished = end.status == SolveStatus::finished;
  if (!finished) e.blow_ups.push_back({end.time * s.model.scaling.time, weight});
  if (!finished && s.options.blow_up == BlowUp::discard) return false;
  ++e.kept;
  e.kept_weight += weight;
  e.moments.add(states, s.stride(), end.outputs, weight);
  return true;
}

/// Rooms for the trajectories of blocks, handed from block to block: the first touch of fresh
/// memory costs as much as integrating them.
class Rooms {
 public:
  struct Room {
    AlignedDoubles doubles;
    std::size_t size = 0;
  };

  Room take(std::size_t needed) {
    Room room;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        room = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (room.size < needed) room = {aligned_doubles(needed), needed};
    return room;
  }
  void give(Room room) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(room));
  }

 private:
  std::mutex mutex_;
  std::vector<Room> free_;
};

/// A block of members, integrated and counted in order until `enough` are kept. Where quantiles are
/// asked for, the block keeps its room.
Ensemble run_block(const EnsembleSetting& s, Rooms& rooms, const std::vector<Member>& members,
                   long enough) {
  const std::size_t size = s.trajectory_size();
  Rooms::Room room = rooms.take(members.size() * size);
  double* const first = room.doubles.get();
  std::vector<TrajectoryEnd> ends(members.size());
  integrate(s, members, first, ends);
  Ensemble block(s);
  block.integrated = static_cast<long>(members.size());
  const bool store = s.options.bands != Bands::sd;
  double* place = first;  // of the next one that is stored
  for (std::size_t k = 0; k < members.size() && block.kept < enough; ++k) {
    pulse();
    const double* states = first + k * size;
    if (!count(s, block, states, ends[k], members[k].weight, members[k].index)) continue;
    if (wants_sample(s, block, members[k].weight))
      add_sample(s, block,
                 {members[k].index, members[k].weight, ends[k].outputs, {states, states + size}});
    if (!store) continue;
    if (place != states) std::copy_n(states, size, place);
    block.stored.push_back({place, ends[k].outputs, members[k].weight});
    place += size;
  }
  if (!store) {
    rooms.give(std::move(room));
  } else if (2 * block.stored.size() >= members.size()) {
    block.storage.push_back(std::move(room.doubles));
  } else if (!block.stored.empty()) {  // most blew up, and their room is for others
    double* kept = block.storage.emplace_back(aligned_doubles(block.stored.size() * size)).get();
    std::copy_n(first, block.stored.size() * size, kept);
    for (StoredTrajectory& t : block.stored) t.states = kept + (t.states - first);
    rooms.give(std::move(room));
  }
  return block;
}

void take(const EnsembleSetting& s, Ensemble& total, Ensemble&& block) {
  total.moments.merge(block.moments);
  total.tried += block.tried;
  total.kept += block.kept;
  total.integrated += block.integrated;
  total.below_zero += block.below_zero;
  total.tried_weight += block.tried_weight;
  total.kept_weight += block.kept_weight;
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(total.blow_ups, block.blow_ups);
  append(total.stored, block.stored);
  append(total.storage, block.storage);
  for (SampleTrajectory& sample : block.samples)
    if (wants_sample(s, total, sample.weight)) add_sample(s, total, std::move(sample));
}

long attempt_limit(const EnsembleSetting& s) {
  const long wanted = s.options.draws;
  return s.options.blow_up == BlowUp::discard || !s.model.positive.empty()
             ? wanted * static_cast<long>(s.options.attempts_per_draw)
             : wanted;
}

/// How many draws to try next: those missing, at the rate of survival so far.
long next_wave(const EnsembleSetting& s, long kept, long tried) {
  const double share =
      tried == 0 ? 1 : std::max(0.05, static_cast<double>(kept) / static_cast<double>(tried));
  const long tries = std::lround(static_cast<double>(s.options.draws - kept) / share);
  return std::max(1L, std::min({tries, attempt_limit(s) - tried, kPerWave}));
}

/// Draws whose fields are all different: waves of blocks run in parallel; a block that would
/// overshoot is run again for the part that is needed, so that the result is that of one thread
/// going through the draws one by one, and memory does not grow with their number.
Ensemble run_one_by_one(const EnsembleSetting& s, const Observer& observer) {
  Ensemble total(s);
  Rooms rooms;
  const long wanted = s.options.draws, limit = attempt_limit(s);
  // Lanes need company; a lone trajectory may take long, and the observer waits for its block.
  const long per_block = in_lanes(s) ? kPerBlock : 4;
  const auto members = [&](long first, long size) {
    std::vector<Member> list;
    for (long k = first; k < first + size; ++k)
      list.push_back({s.posterior.draw(s.options.seed, static_cast<std::uint64_t>(k)),
                      static_cast<std::uint64_t>(k), 1.0});
    return list;
  };
  while (total.kept < wanted && total.tried < limit) {
    const long first = total.tried, size = next_wave(s, total.kept, total.tried);
    const double done = static_cast<double>(total.kept) / static_cast<double>(wanted);
    const double wave = std::min(1 - done, static_cast<double>(size) / static_cast<double>(wanted));
    std::vector<std::optional<Ensemble>> blocks(
        static_cast<std::size_t>((size + per_block - 1) / per_block));
    parallel_for(
        s.options.threads, blocks.size(),
        [&](std::size_t b) {
          const long begin = static_cast<long>(b) * per_block,
                     in_block = std::min(per_block, size - begin);
          blocks[b].emplace(run_block(s, rooms, members(first + begin, in_block), in_block));
        },
        [&](std::size_t begun) {
          observer("forecasting",
                   done + wave * static_cast<double>(begun) / static_cast<double>(blocks.size()));
        });
    for (auto& block : blocks) {
      const long still = wanted - total.kept;
      if (still == 0) break;
      if (block->kept > still)
        block = run_block(s, rooms, members(total.tried, block->tried), still);
      take(s, total, std::move(*block));
    }
  }
  return total;
}

/// Draws from few fields: each field that is drawn is integrated once and counted as often as
/// drawn.
Ensemble run_remembered(const EnsembleSetting& s, const Observer& observer) {
  const std::size_t size = s.trajectory_size();
  std::unordered_map<std::uint64_t, std::size_t> known;  // atom to place
  std::vector<std::uint64_t> atoms;                      // in order of first appearance
  std::vector<const double*> states;
  std::vector<TrajectoryEnd> ends;
  std::vector<long> counts;
  Ensemble total(s);
  const long wanted = s.options.draws, limit = attempt_limit(s);
  std::vector<std::size_t> place;  // of each draw of a wave
  std::vector<std::size_t> samples;
  while (total.kept < wanted && total.tried < limit) {
    observer("forecasting", static_cast<double>(total.kept) / static_cast<double>(wanted));
    const long first = total.tried, wave = next_wave(s, total.kept, total.tried);
    for (long k = first; k < first + wave; ++k) {
      const auto atom = s.posterior.atom_of_draw(s.options.seed, static_cast<std::uint64_t>(k));
      const auto [found, is_new] = known.try_emplace(atom, atoms.size());
      if (is_new) atoms.push_back(atom);
      place.push_back(found->second);
    }
    const std::size_t begin = states.size(), fresh = atoms.size() - begin;
    counts.resize(atoms.size());
    states.resize(atoms.size());
    ends.resize(atoms.size());
    const std::size_t blocks = (fresh + kPerBlock - 1) / kPerBlock;
    double* room = total.storage.emplace_back(aligned_doubles(fresh * size)).get();
    parallel_for(
        s.options.threads, blocks,
        [&](std::size_t b) {
          const std::size_t from = begin + b * kPerBlock,
                            to = std::min(atoms.size(), from + kPerBlock);
          std::vector<Member> members;
          for (std::size_t k = from; k < to; ++k)
            members.push_back({s.posterior.atom_field(atoms[k]), 0, 1.0});
          integrate(s, members, room + (from - begin) * size,
                    std::span(ends).subspan(from, to - from));
          for (std::size_t k = from; k < to; ++k) states[k] = room + (k - begin) * size;
        },
        [&](std::size_t begun) {
          observer("forecasting", (static_cast<double>(total.kept) +
                                   static_cast<double>(wave) * static_cast<double>(begun) /
                                       static_cast<double>(blocks)) /
                                      static_cast<double>(total.kept + wave));
        });
    for (long k = first; k < first + wave && total.kept < wanted; ++k) {
      const std::size_t at = place[static_cast<std::size_t>(k - first)];
      ++total.tried;
      if (s.below_zero(states[at], ends[at].outputs, 0)) {
        ++total.below_zero;
        continue;
      }
      const bool finished = ends[at].status == SolveStatus::finished;
      if (!finished) total.blow_ups.push_back({ends[at].time * s.model.scaling.time, 1.0});
      if (!finished && s.options.blow_up == BlowUp::discard) continue;
      ++total.kept;
      ++counts[at];
      if (samples.size() < static_cast<std::size_t>(s.options.samples)) samples.push_back(at);
    }
    place.clear();
  }
  total.tried_weight = static_cast<double>(total.tried - total.below_zero);
  total.kept_weight = static_cast<double>(total.kept);
  total.integrated = static_cast<long>(atoms.size());
  for (const std::size_t at : samples)
    total.samples.push_back({0, 1, ends[at].outputs, {states[at], states[at] + size}});
  for (std::size_t k = 0; k < atoms.size(); ++k) {
    if (counts[k] == 0) continue;
    total.moments.add(states[k], s.stride(), ends[k].outputs, static_cast<double>(counts[k]));
    if (s.options.bands != Bands::sd)
      total.stored.push_back({states[k], ends[k].outputs, static_cast<double>(counts[k])});
  }
  return total;
}

}  // namespace

VectorField EnsembleSetting::driven(const VectorField& field) const {
  return driven_field(model, field, inputs);
}

Vector EnsembleSetting::start_of(std::uint64_t index) const {
  if (continues)
    if (const auto drawn = posterior.draw_start(options.seed, index)) return *drawn;
  Vector u = start.state;
  if (!point_start()) {
    Stream stream(options.seed, Purpose::initial_state, index);
    for (Eigen::Index i = 0; i < u.size(); ++i) u[i] += start.sd[i] * stream.normal();
  }
  return model.scaling.to_model(u);
}

int EnsembleSetting::leaves(const double* states, int outputs) const {
  for (int t = 0; t < std::min<int>(outputs, static_cast<int>(low.rows())); ++t)
    for (int i = 0; i < static_cast<int>(low.cols()); ++i) {
      const double v = states[i * stride() + t];
      if (!(v >= low(t, i) && v <= high(t, i))) return t;
    }
  return outputs;
}

bool EnsembleSetting::below_zero(const double* states, int outputs, std::uint64_t index) const {
  if (model.positive.empty()) return false;
  constexpr double kErrors = 100;  // of steps, in their sum
  const Vector from = start_of(index);
  for (int i = 0; i < n; ++i) {
    if (!model.is_positive(i)) continue;
    const double zero = -model.scaling.offset[i] / model.scaling.scale[i],
                 least = zero - kErrors * solver.atol;
    if (!(from[i] > zero)) return true;
    for (int t = 0; t < outputs; ++t)
      if (states[i * stride() + t] < least) return true;
  }
  return false;
}

Ensemble run_sampled(const EnsembleSetting& s, const Observer& observer) {
  const std::uint64_t atoms = s.posterior.atoms();
  const bool few = atoms > 0 && atoms <= kMaxRemembered && s.point_start() && !s.forced() &&
                   !s.options.transition_noise;
  return few ? run_remembered(s, observer) : run_one_by_one(s, observer);
}

Ensemble run_enumerated(const EnsembleSetting& s, const Observer& observer) {
  Ensemble total(s);
  Rooms rooms;
  const auto atoms = static_cast<long>(s.posterior.atoms());
  for (long first = 0; first < atoms; first += kPerWave) {
    const long size = std::min(kPerWave, atoms - first);
    std::vector<std::optional<Ensemble>> blocks(
        static_cast<std::size_t>((size + kPerBlock - 1) / kPerBlock));
    parallel_for(
        s.options.threads, blocks.size(),
        [&](std::size_t b) {
          std::vector<Member> members;
          const long begin = first + static_cast<long>(b) * kPerBlock;
          for (long k = begin; k < std::min(first + size, begin + kPerBlock); ++k) {
            const auto atom = static_cast<std::uint64_t>(k);
            if (const double weight = s.posterior.atom_weight(atom); weight > 0)
              members.push_back({s.posterior.atom_field(atom), 0, weight});
          }
          blocks[b].emplace(run_block(s, rooms, members, static_cast<long>(members.size())));
        },
        [&](std::size_t begun) {
          observer("forecasting",
                   (static_cast<double>(first) + static_cast<double>(begun) * kPerBlock) /
                       static_cast<double>(atoms));
        });
    for (auto& block : blocks) take(s, total, std::move(*block));
  }
  return total;
}

}  // namespace odecast
