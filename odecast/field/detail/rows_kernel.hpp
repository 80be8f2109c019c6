#pragma once

// Eight rows at a time through a tape, compiled once per instruction set by rows_<isa>.cpp. See
// core/detail/pack.hpp for the rules of such sources.

#include "odecast/field/detail/rows_job.hpp"
#include "odecast/field/detail/tape_kernel.hpp"

namespace odecast::ODECAST_THIS_ISA {

void run_rows(const RowsJob& job) {
  Pack* values = reinterpret_cast<Pack*>(job.work);
  Pack* arguments = values + job.count;
  Pack* parameters = arguments + job.arguments;
  for (int k = 0; k < job.parameters; ++k) parameters[k] = job.parameter_values[k];
  for (long row = 0; row < job.row_count; row += kLanes) {
    for (int i = 0; i < kLanes; ++i) {
      const long from = row + i < job.row_count ? row + i : job.row_count - 1;
      for (int k = 0; k < job.arguments; ++k)
        set_lane(arguments[k], i, job.rows[from * job.arguments + k]);
    }
    run_tape(job.nodes, job.count, arguments, parameters, values);
    for (int i = 0; i < kLanes && row + i < job.row_count; ++i)
      for (int r = 0; r < job.root_count; ++r)
        job.results[(row + i) * job.root_count + r] = lane(values[job.roots[r]], i);
  }
}

}  // namespace odecast::ODECAST_THIS_ISA
