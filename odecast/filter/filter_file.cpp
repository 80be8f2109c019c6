#include "odecast/filter/filter_file.hpp"

#include <cmath>

#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"

namespace odecast {

std::string filter_header(const Model& model, bool ids) {
  std::string text = ids ? "trajectory," : "";
  text += csv_cell(model.time_name);
  for (const std::string& v : model.variables)
    for (const char* part : {"_mean", "_sd", "_lower", "_upper", "_forecast", "_forecast_sd"})
      text += ',' + csv_cell(v + part);
  return text + ",surprise,log_score,used,status\n";
}

std::string format_filter_row(const Model& model, const FilterRow& row, const std::string* id) {
  std::string text = id ? csv_cell(*id) + ',' : "";
  if (model.calendar)
    text += time_text(*model.calendar, row.time);
  else
    append_number(text, row.time);
  const auto number = [&](double x) {
    text += ',';
    if (std::isfinite(x)) append_number(text, x);
  };
  for (Eigen::Index i = 0; i < row.mean.size(); ++i)
    for (const Vector* part :
         {&row.mean, &row.sd, &row.lower, &row.upper, &row.forecast, &row.forecast_sd})
      number((*part)[i]);
  const bool judged = row.used > 0 || row.status == FilterStatus::gated;
  number(judged ? row.surprise : NAN);
  number(judged ? row.log_score : NAN);
  text += ',' + std::to_string(row.used) + ',';
  text += kFilterStatusNames[static_cast<std::size_t>(row.status)];
  return text + '\n';
}

}  // namespace odecast
