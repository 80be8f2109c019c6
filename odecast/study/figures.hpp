#pragma once

#include "odecast/study/claims.hpp"

namespace odecast {

struct StudyFigure {
  int number = 0;       ///< of the paper's figure
  std::string name;     ///< of the file, without ending
  std::string caption;
  std::string svg;
};

/// The paper's nine figures, each in the readings.
std::vector<StudyFigure> study_figures(const Setting& setting, const StudyResults& results);

}  // namespace odecast
