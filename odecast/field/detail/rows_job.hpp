#pragma once

#include "odecast/core/detail/kernel.hpp"
#include "odecast/field/node.hpp"

namespace odecast {

/// A tape at many points, in packs.
struct RowsJob {
  const Node* nodes;
  int count;
  int arguments, parameters;
  const double* rows;  ///< row × argument
  long row_count;
  const double* parameter_values;
  const int* roots;
  int root_count;
  double* results;  ///< row × root
  double* work;     ///< rows_work_size() doubles, aligned to 64 bytes
};

constexpr long rows_work_size(int count, int arguments, int parameters) {
  return 8L * (count + arguments + parameters);
}

ODECAST_KERNEL(run_rows, const RowsJob)

}  // namespace odecast
