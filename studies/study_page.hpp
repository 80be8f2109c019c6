#pragma once

#include "odecast/report/page_parts.hpp"
#include "studies/claims.hpp"
#include "studies/figures.hpp"

namespace odecast {

/// The study as a page: claims, the nine figures in the readings, what the text leaves out.
Page study_page(const Setting& setting, const StudyOptions& options,
                const std::vector<Claim>& claims, const std::vector<Finding>& findings,
                const std::vector<StudyFigure>& figures, const Origin& origin);

}  // namespace odecast
