#pragma once

#include "odecast/report/svg.hpp"
#include "studies/claims.hpp"

namespace odecast {

struct StudyFigure {
  int number = 0;    ///< of the paper's figure
  std::string name;  ///< of the file, without ending
  Reading reading = Reading::paper;
  std::string caption;
  std::vector<Panel> panels;
  FigureOptions options;
};

/// The paper's nine figures, each in the readings.
std::vector<StudyFigure> study_figures(const Setting& setting, const UnitResults& results);

}  // namespace odecast
