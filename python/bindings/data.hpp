#pragma once

#include <functional>
#include <memory>

#include "odecast/observations/source.hpp"
#include "python/bindings/python.hpp"

namespace odecast::python {

/// Observations where they are: in arrays of the caller, or in a Dataset of our own.
struct Data {
  /// One trajectory. Strides count doubles.
  struct Run {
    std::string id;
    long rows;
    const double* times;  ///< null: (first + i) · step
    long time_stride;
    const double* states;
    long state_stride;
    const double* inputs;  ///< null where nothing drives the system
    long input_stride;
    long first = 0;
    double step = 0;

    double time(long i) const {
      return times ? times[i * time_stride] : static_cast<double>(first + i) * step;
    }
  };

  std::vector<std::string> variables, inputs;
  std::string time_input;  ///< where the time itself drives the system: its name
  std::string name = "data";
  std::string time_name = "t";
  std::optional<Calendar> calendar = {};  ///< what the times count; nothing: numbers
  std::optional<double> certified_until = {};
  bool keeps_missing = false;  ///< a value may be NaN: not observed
  std::vector<Run> runs;

  std::shared_ptr<const Dataset> owned;  ///< what `runs` point into, or these:
  std::vector<std::shared_ptr<const Doubles>> arrays;

  long rows() const;
  /// `poll` is called every few thousand rows. The data must outlive the source.
  ObservationSource source(const std::function<void()>& poll) const;
  /// Names and no rows.
  Dataset columns() const;
  /// A copy, unless there is a Dataset already.
  std::shared_ptr<const Dataset> dataset() const;
  /// All that drives the system, as --inputs has it.
  std::vector<std::string> input_words() const;
};

Data data_of(Dataset dataset, std::string time_input = {});

}  // namespace odecast::python
