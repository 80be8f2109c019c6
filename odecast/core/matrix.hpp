#pragma once

#include <Eigen/Core>
#include <cstddef>

namespace odecast {

/// Rows are contiguous: a row is a time or a unit, a column a variable.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// A count or place of Eigen's as the standard library has it.
inline std::size_t index(long i) { return static_cast<std::size_t>(i); }

}  // namespace odecast
