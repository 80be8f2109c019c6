#include "odecast/solver/lanes.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

#include "odecast/core/aligned.hpp"
#include "odecast/core/isa.hpp"
#include "odecast/core/parallel.hpp"
#include "odecast/solver/lane_job.hpp"

namespace odecast {
void solve_lanes(const LaneProblems& problems, const SolverOptions& options, double* states,
                 std::span<TrajectoryEnd> ends) {
  check(options);
  const MonomialBasis& basis = *problems.basis;
  const auto n = static_cast<std::size_t>(basis.variables());
  const auto members = problems.starts.size() / n;
  assert(options.method == Method::rk45 && !options.land_on_outputs);
  assert(problems.coefficients.size() == members * n * static_cast<std::size_t>(basis.size()));
  assert(!problems.times.empty() && problems.times.front() > problems.t0);
  assert(ends.size() == members);

  std::vector<int> parent, variable;
  for (int m = 0; m < basis.size(); ++m) {
    parent.push_back(basis.parent(m));
    variable.push_back(basis.variable(m));
  }
  std::vector<double> times(problems.times.begin(), problems.times.end());
  times.resize(times.size() + 8, times.back());
  const long work_size = lane_work_size(basis.variables(), basis.size());
  const AlignedDoubles work = aligned_doubles(static_cast<std::size_t>(work_size));
  const LaneJob job{basis.variables(),
                    basis.size(),
                    static_cast<int>(problems.times.size()),
                    static_cast<int>(members),
                    parent.data(),
                    variable.data(),
                    times.data(),
                    problems.coefficients.data(),
                    problems.starts.data(),
                    problems.t0,
                    std::max(options.rtol, 100 * std::numeric_limits<double>::epsilon()),
                    options.atol,
                    options.first_step,
                    options.max_step,
                    options.bound,
                    options.max_steps,
                    states,
                    ends.data(),
                    work.get(),
                    &pulse};
  switch (active_isa()) {
    case Isa::sse2: run_lanes_sse2(job); break;
    case Isa::avx2: run_lanes_avx2(job); break;
    case Isa::avx512: run_lanes_avx512(job); break;
  }
}

}  // namespace odecast
