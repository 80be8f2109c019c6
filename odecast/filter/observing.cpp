#include "odecast/filter/observing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "odecast/core/error.hpp"
#include "odecast/core/text.hpp"
#include "odecast/field/expression.hpp"

namespace odecast {

Observing observing_variables(const Model& model, const std::vector<std::string>& columns,
                              const std::string& source) {
  Observing result;
  const std::vector<std::string> variables = model.measured_variables();
  for (const std::string& name : variables)
    if (std::find(columns.begin(), columns.end(), name) != columns.end())
      result.columns.push_back(name);
  if (result.columns.empty())
    throw_data({source, fmt::format("the columns {}", fmt::join(columns, ", ")),
                fmt::format("at least one of {}", fmt::join(variables, ", ")),
                "Name the columns as the model does, or say what they are: `observe` 'total = x + "
                "y'."});
  result.H = Matrix::Zero(static_cast<Eigen::Index>(result.columns.size()), model.dimension());
  for (std::size_t j = 0; j < result.columns.size(); ++j) {
    const auto at = std::find(variables.begin(), variables.end(), result.columns[j]);
    result.H(static_cast<Eigen::Index>(j), at - variables.begin()) = 1;
  }
  return result;
}

void add_observing(Observing& observing, const Model& model, std::string_view text) {
  const auto equals = text.find('=');
  const std::string name(trimmed(text.substr(0, equals)));
  require_option(equals != std::string_view::npos && !name.empty(), "`observe`", shown(text),
                 "a column and the sum that it is, such as 'total = x + 2*y'",
                 "Write the column's name, = and the sum.");
  require_option(std::find(observing.columns.begin(), observing.columns.end(), name) ==
                     observing.columns.end(),
                 "`observe`", fmt::format("the column {}, which is observed already", name),
                 "a column that is no variable of the model",
                 "Leave it out, or rename the column.");
  Tape tape(model.measured_variables());
  const int sum = parse_expression(text.substr(equals + 1), tape, "`observe`");
  const auto fault = [&](const std::string& what) {
    throw_usage({"`observe`", fmt::format("{}, {}", shown(text), what),
                 fmt::format("a sum of {} with numbers in front",
                             fmt::join(model.measured_variables(), ", ")),
                 "Filters take what is linear in the state."});
  };
  if (!tape.parameters().empty())
    fault(fmt::format("where {} is no variable", tape.parameters().front()));
  Vector row = Vector::Zero(model.dimension());
  std::vector<double> values(static_cast<std::size_t>(tape.size()));
  const std::vector<double> zero(tape.arguments().size(), 0.0);
  evaluate(tape, zero.data(), nullptr, values.data());
  if (values[static_cast<std::size_t>(sum)] != 0) fault("which has a part without a variable");
  for (int i = 0; i < static_cast<int>(tape.arguments().size()); ++i) {
    const int d = slope(tape, sum, tape.argument(i));
    if (!tape.is(d, Op::number)) fault("which is not linear");
    row[i] = tape[d].value;
  }
  if (row.isZero(0)) fault("which has no variable");
  observing.columns.push_back(name);
  observing.H.conservativeResize(observing.H.rows() + 1, model.dimension());
  observing.H.bottomRows(1) = row.transpose();
}

}  // namespace odecast
