#include "odecast/solver/lanes.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "odecast/core/aligned.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/field/function_terms.hpp"
#include "odecast/solver/detail/lane_job.hpp"

namespace odecast {
void solve_lanes(const LaneProblems& problems, const SolverOptions& options, double* states,
                 std::span<TrajectoryEnd> ends) {
  check(options);
  const MonomialBasis& basis = *problems.basis;
  const auto n = static_cast<std::size_t>(basis.variables());
  const auto members = problems.starts.size() / n;
  assert(options.method == SolverMethod::rk45 && !options.land_on_outputs);
  const FunctionTerms* functions = problems.functions;
  const int terms = basis.size() + (functions ? functions->size() : 0),
            nodes = functions ? functions->values().size() : 0,
            numbers = functions ? static_cast<int>(functions->numbers().size()) : 0;
  assert(problems.coefficients.size() == members * n * static_cast<std::size_t>(terms));
  assert(problems.numbers.size() == members * static_cast<std::size_t>(numbers));
  assert(!problems.times.empty() && problems.times.front() > problems.t0);
  assert(ends.size() == members);

  std::vector<double> times(problems.times.begin(), problems.times.end());
  times.resize(times.size() + 8, times.back());
  const long work_size = lane_work_size(basis.variables(), basis.size(), terms, nodes + numbers);
  const AlignedDoubles work = aligned_doubles(static_cast<std::size_t>(work_size));
  run_lanes({.variables = basis.variables(),
             .monomials = basis.size(),
             .terms = terms,
             .nodes = nodes,
             .numbers = numbers,
             .outputs = static_cast<int>(problems.times.size()),
             .members = static_cast<int>(members),
             .parent = basis.parents().data(),
             .variable = basis.last_variables().data(),
             .tape = functions ? functions->values().nodes().data() : nullptr,
             .roots = functions ? functions->roots().data() : nullptr,
             .times = times.data(),
             .coefficients = problems.coefficients.data(),
             .starts = problems.starts.data(),
             .number_values = problems.numbers.data(),
             .t0 = problems.t0,
             .rtol = std::max(options.rtol, 100 * std::numeric_limits<double>::epsilon()),
             .atol = options.atol,
             .first_step = options.first_step,
             .max_step = options.max_step,
             .bound = options.bound,
             .max_steps = options.max_steps,
             .states = states,
             .ends = ends.data(),
             .work = work.get(),
             .pulse = &pulse});
}

}  // namespace odecast
