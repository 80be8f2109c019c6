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
  std::string summary;      ///< what fit --json prints; empty for a model from a file
  std::string calibration;  ///< what calibrate --json prints; empty for a model from a file
};
using ModelPointer = std::shared_ptr<FittedModel>;

/// The values that an option needs are given, one per argument of the function. Throws Error
/// (usage).
void check_arguments(const Model& model, long given, const char* option);

}  // namespace odecast::python
