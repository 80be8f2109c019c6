#pragma once

// All that users of the library need. Each room's headers can be included alone, too.

#include "odecast/core/error.hpp"
#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/inspection.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/report/figure.hpp"
#include "odecast/report/fit_page.hpp"
#include "odecast/report/forecast_page.hpp"
#include "odecast/scores/attractor.hpp"
#include "odecast/scores/evaluate.hpp"
#include "odecast/scores/lyapunov.hpp"
#include "odecast/scores/scores.hpp"
#include "odecast/solver/solve.hpp"
#include "odecast/systems/catalogue.hpp"
#include "odecast/tuning/calibrate.hpp"
#include "odecast/tuning/tune.hpp"
