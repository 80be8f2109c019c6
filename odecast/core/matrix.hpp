#pragma once

#include <Eigen/Core>

namespace odecast {

/// Rows are contiguous: a row is a time or a unit, a column a variable.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

}  // namespace odecast
