#include "odecast/filter/filter_file.hpp"

#include <cmath>

#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/coefficients.hpp"
#include "odecast/model/equations.hpp"

namespace odecast {
namespace {

void append_time(std::string& text, const Model& model, double time) {
  if (model.calendar)
    text += time_text(*model.calendar, time);
  else
    append_number(text, time);
}

}  // namespace

std::string filter_header(const Model& model, bool ids, bool ahead) {
  std::string text = ids ? "trajectory," : "";
  text += csv_cell(model.time_name);
  for (const std::string& v : model.variables)
    for (const char* part : {"_mean", "_sd", "_lower", "_upper", "_forecast", "_forecast_sd"})
      text += ',' + csv_cell(v + part);
  for (const std::string& v : model.variables)
    for (const char* part : {"_ahead", "_ahead_sd", "_ahead_lower", "_ahead_upper"})
      if (ahead) text += ',' + csv_cell(v + part);
  return text + ",surprise,log_score,used,status\n";
}

std::string format_filter_row(const Model& model, const FilterRow& row, const std::string* id) {
  std::string text = id ? csv_cell(*id) + ',' : "";
  append_time(text, model, row.time);
  const auto number = [&](double x) {
    text += ',';
    if (std::isfinite(x)) append_number(text, x);
  };
  for (Eigen::Index i = 0; i < row.forecast.size(); ++i)
    for (const Vector* part : {&row.state.mean, &row.state.sd, &row.state.lower, &row.state.upper,
                               &row.forecast, &row.forecast_sd})
      number((*part)[i]);
  if (row.ahead)
    for (Eigen::Index i = 0; i < row.forecast.size(); ++i)
      for (const Vector* part :
           {&row.ahead->mean, &row.ahead->sd, &row.ahead->lower, &row.ahead->upper})
        number((*part)[i]);
  const bool judged = row.used > 0 || row.status == FilterStatus::gated;
  number(judged ? row.surprise : NAN);
  number(judged ? row.log_score : NAN);
  text += ',' + std::to_string(row.used) + ',';
  text += kFilterStatusNames[static_cast<std::size_t>(row.status)];
  return text + '\n';
}

std::vector<std::string> coefficient_names(const Filter& filter) {
  const Model& model = filter.model();
  const TermLibrary library = term_library(model);
  std::vector<std::string> names;
  for (const FieldTerm& t : filter.terms()) {
    Term term;
    if (library.is_function(t.term))
      term.function = library.function(t.term);
    else
      term.powers = library.basis->powers(t.term);
    names.push_back(model.left_side(model.variables[static_cast<std::size_t>(t.equation)]) + ": " +
                    term_text(model, term));
  }
  return names;
}

LearntCoefficients user_coefficients(const Filter& filter) {
  const TermLibrary library = term_library(filter.model());
  const LearntCoefficients learnt = learnt_coefficients(filter);
  const auto terms = static_cast<Eigen::Index>(filter.terms().size());
  LearntCoefficients user{learnt.mean.head(terms), learnt.sd.head(terms)};
  Eigen::Index c = 0;
  for (const FieldTerm& t : filter.terms()) {
    const double unit = user_unit(filter.model(), library, t);
    user.mean[c] *= unit;
    user.sd[c++] *= unit;
  }
  return user;
}

std::string coefficients_header(const Filter& filter) {
  std::string text = csv_cell(filter.model().time_name);
  for (const std::string& name : coefficient_names(filter))
    for (const char* part : {"_mean", "_sd"}) text += ',' + csv_cell(name + part);
  return text + '\n';
}

std::string format_coefficients_row(const Filter& filter, double time) {
  const LearntCoefficients user = user_coefficients(filter);
  std::string text;
  append_time(text, filter.model(), time);
  for (Eigen::Index c = 0; c < user.mean.size(); ++c)
    for (const double value : {user.mean[c], user.sd[c]}) {
      text += ',';
      append_number(text, value);
    }
  return text + '\n';
}

}  // namespace odecast
