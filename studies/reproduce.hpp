#pragma once

#include <filesystem>

#include "odecast/core/observer.hpp"
#include "odecast/report/page_parts.hpp"
#include "studies/claims.hpp"

namespace odecast {

struct Reproduction {
  std::vector<Claim> claims;
  int units = 0, found = 0;  ///< of work; found done from an earlier run
};

/// The study of the paper's section 6, into a folder: claims.json, claims.csv, reproduction.md,
/// figures/*.svg, report.html. Each unit of work is kept in units/ as soon as it is done; a study
/// that was interrupted goes on there and ends with the same bytes. Throws Error (usage) when the
/// folder holds a study with other settings.
Reproduction reproduce(const std::filesystem::path& folder, const StudyOptions& options,
                       const Origin& origin, const Observer& observer);

}  // namespace odecast
