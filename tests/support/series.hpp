#pragma once

#include "odecast/observations/dataset.hpp"

namespace odecast {

inline std::vector<double> evenly(int rows, double step) {
  std::vector<double> times;
  for (int i = 0; i < rows; ++i) times.push_back(i * step);
  return times;
}

/// One trajectory of one or more functions of time.
template <class... F>
Dataset series(const std::vector<double>& times, F... functions) {
  const auto rows = static_cast<Eigen::Index>(times.size());
  Dataset d{{}, {{"", times, Matrix(rows, sizeof...(F))}}, {}};
  for (std::size_t j = 0; j < sizeof...(F); ++j) d.variables.push_back("x" + std::to_string(j));
  for (Eigen::Index i = 0; i < rows; ++i) {
    Eigen::Index j = 0;
    ((d.trajectories[0].states(i, j++) = functions(times[static_cast<std::size_t>(i)])), ...);
  }
  return d;
}

}  // namespace odecast
