#pragma once

// The units of work of the reproduction study.

#include <string>
#include <vector>

#include "odecast/core/work.hpp"
#include "studies/setting.hpp"

namespace odecast {

/// The key of a cell's unit; `seed` counts from 0 and is ignored by the exact reading.
std::string cell_key(Reading reading, const StudyCell& cell, int seed);

/// All of them. The numbers of a cell's unit, from the paper's test start and for the band mean
/// ± 1.96 sd:
///   objective                  the expected dropout objective (not for the released reading)
///   short_cover_x … _z         share of times in (0, 10] at which the band holds the truth;
///   horizon 10 short_width_x … _z         mean width of the band there short_late_cover_x the same
///   in (6, 10];  short_early_width_x  in (0, 1] short_discard              share of the
///   trajectories that blow up before t = 10 short_held                 time until the truth of x
///   first leaves the band, 10 if it never does short_valid                valid prediction time of
///   the band's mean (error below 0.4 sd) long_cover_A_B, long_width_A_B   x, in (A, B], horizon
///   100;  long_discard long_jagged                median |second difference| of the upper edge in
///   (50, 100], steps of 0.1, in sd starts_cover_x …, starts_width_x, starts_discard   means over
///   100 starts on the attractor, and starts_…_se                their standard errors, the start
///   being the unit
/// The exact reading adds: cover and discards by horizon, the mean field's valid time, its bias.
/// Curves (exact, and seed 0 of the others): times, mean, lower, upper of x, for figures.
std::vector<Unit> study_units(const Setting& setting, const StudyOptions& options);

}  // namespace odecast
