#pragma once

#include <string>

#include "odecast/learning/fit.hpp"
#include "odecast/report/page_parts.hpp"

namespace odecast {

struct FitPageContent {
  std::string title = {};  ///< empty: "Model of x, y, z"
  Origin origin = {};
};

/// A fit: the data, the equations, estimated derivatives against the model's.
Page fit_page(const Dataset& data, const Fit& fit, const FitOptions& options,
              const FitPageContent& content);

}  // namespace odecast
