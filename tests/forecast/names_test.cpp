#include "support/names.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/observations/reading.hpp"

namespace odecast {
namespace {

/// Three rows with every band there is, each number different.
Forecast with_all_bands(const std::vector<std::string>& names) {
  Forecast f;
  f.variables = names;
  f.times = {0, 0.5, 1};
  f.alive = {1, 1, 0.75};
  f.level = 0.9;
  const auto n = static_cast<Eigen::Index>(names.size());
  double next = 1;
  for (Matrix* m :
       {&f.mean, &f.sd, &f.lower, &f.upper, &f.q_lower, &f.q_median, &f.q_upper, &f.observed_lower,
        &f.observed_upper, &f.observed_q_lower, &f.observed_q_upper}) {
    m->resize(3, n);
    for (double& x : m->reshaped()) x = next++;
  }
  return f;
}

Forecast through_a_file(const Forecast& f) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("odecast-names-test-" + std::to_string(::getpid()) + ".csv");
  write_file(path, format_forecast(f));
  Forecast back = read_forecast(path);
  std::filesystem::remove(path);
  return back;
}

void expect_survives(const Forecast& f) {
  const Forecast back = through_a_file(f);
  RC_ASSERT(back.variables == f.variables);
  RC_ASSERT(back.times == f.times);
  RC_ASSERT(back.alive == f.alive);
  RC_ASSERT(std::abs(back.level - f.level) < 1e-9);
  for (const auto part :
       {&Forecast::mean, &Forecast::sd, &Forecast::lower, &Forecast::upper, &Forecast::q_lower,
        &Forecast::q_median, &Forecast::q_upper, &Forecast::observed_lower,
        &Forecast::observed_upper, &Forecast::observed_q_lower, &Forecast::observed_q_upper})
    RC_ASSERT((back.*part) == (f.*part));
}

RC_GTEST_PROP(ForecastNamesTest, AnyNameSurvivesAForecastFile, ()) {
  expect_survives(with_all_bands(*any_names()));
}

/// Names that are made of the ends of column names are where two columns could be one.
RC_GTEST_PROP(ForecastNamesTest, NamesLikeColumnsSurvive, ()) {
  const auto name = rc::gen::map(
      rc::gen::resize(
          3, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
                 rc::gen::element<std::string>("x", "_", "_mean", "_sd", "_lower", "_upper",
                                               "_observed", "_q5", "_q50", "_q95", "t", "alive")))),
      [](const std::vector<std::string>& parts) {
        std::string text;
        for (const auto& p : parts) text += p;
        return text;
      });
  auto names =
      *rc::gen::resize(5, rc::gen::nonEmpty(rc::gen::unique<std::vector<std::string>>(name)));
  expect_survives(with_all_bands(names));
}

TEST(ForecastNamesTest, NamesAreQuotedAndObservationsKeepApart) {
  const std::string text = format_forecast(with_all_bands({"x, m", "a\"b", "x, m_observed"}));
  EXPECT_TRUE(
      text.starts_with("t,\"x, m_mean\",\"x, m_sd\",\"x, m_lower\",\"x, m_upper\",\"x, m_q5\",\"x, "
                       "m_q50\",\"x, m_q95\","
                       "\"x, m__observed_lower\","))
      << text.substr(0, 200);
  EXPECT_NE(text.find(",\"a\"\"b_mean\","), std::string::npos);
}

}  // namespace
}  // namespace odecast
