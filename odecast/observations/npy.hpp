#pragma once

#include <string>
#include <string_view>

#include "odecast/observations/table.hpp"

namespace odecast {

/// Rows from the bytes of a .npy or .npz file.
///
/// npy: an array of rows × columns, the first column being the time, or all of them variables with
/// `step`; trajectories × rows × columns for several. The variables are named x1, x2, ….
/// npz: `t` (or `time`) has the times, each other array is a variable of its name with as many
/// entries, or rows × columns of variables name1, name2, …; an array `trajectory` (`series`, `id`)
/// tells trajectories apart. Scalars are passed over.
/// Numbers are float32, float64, integers or booleans, of either byte order, in C or Fortran order;
/// a NaN is a missing cell. Stored and deflated archives are read, nothing is unpickled. Sizes are
/// checked against the length of the file before memory is taken. Throws Error (data).
TableInfo stream_arrays(std::string_view bytes, const std::string& name, const ReadOptions& options,
                        const RowVisitor& visit);

/// One array of t and the variables, float64; throws Error (usage) for several trajectories.
std::string format_npy(const Dataset& data);
/// An archive with `t` and an array per variable and input, and `trajectory` when there are
/// several.
std::string format_npz(const Dataset& data);

}  // namespace odecast
