#pragma once

#include <memory>

#include "odecast/model/model.hpp"
#include "python/bindings/data.hpp"

namespace odecast::python {

/// A fitted model, and what only the fit knows of it.
struct FittedModel {
  explicit FittedModel(Model given) : model(std::move(given)), posterior(make_posterior(model)) {}

  Model model;
  std::unique_ptr<Posterior> posterior;
  cli::Json summary;      ///< what fit --json prints; null for a model from a file
  cli::Json calibration;  ///< what calibrate --json prints; null for a model from a file
};
using ModelPointer = std::shared_ptr<FittedModel>;

}  // namespace odecast::python
