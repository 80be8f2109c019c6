#include "odecast/report/fit_page.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "odecast/core/random.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/report/detail/fit_sections.hpp"
#include "odecast/report/forecast_page.hpp"
#include "odecast/report/settings.hpp"
#include "support/models.hpp"

namespace odecast {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string ids(const Page& page) {
  std::string text;
  for (const Section& section : page.sections) text += section.id + " ";
  return text;
}

/// The parts of a kind, in their order.
template <class Kind>
std::vector<Kind> parts(const Page& page, const std::string& section) {
  std::vector<Kind> found;
  for (const Section& s : page.sections)
    if (s.id == section)
      for (const Part& part : s.parts)
        if (const auto* one = std::get_if<Kind>(&part)) found.push_back(*one);
  return found;
}

Figure figure(const Page& page, const std::string& id) {
  for (const Section& s : page.sections)
    for (const Figure& f : parts<Figure>(page, s.id))
      if (f.id == id) return f;
  ADD_FAILURE() << "no figure " << id;
  return {};
}

std::string text(const std::vector<Cell>& row) {
  std::string all;
  for (const Cell& cell : row) all += "|" + cell.text;
  return all;
}

double number(const Cell& cell) {
  return cell.text.starts_with("−") ? -std::stod(cell.text.substr(3)) : std::stod(cell.text);
}

std::string value(const Settings& settings, const std::string& name) {
  for (const auto& [key, value] : settings)
    if (key == name) return value;
  return "none";
}

/// x = e^{-t/10} cos t, y = -e^{-t/10} sin t: dx/dt = y - x/10, dy/dt = -x - y/10.
Vector spiral(double t) {
  Vector u(2);
  u << std::exp(-0.1 * t) * std::cos(t), -std::exp(-0.1 * t) * std::sin(t);
  return u;
}

Dataset spiral_data(int rows, double step, double noise, double from = 0) {
  Dataset data{.variables = {"x", "y"}, .trajectories = {{"", {}, Matrix(rows, 2)}}};
  for (int k = 0; k < rows; ++k) {
    data.trajectories[0].times.push_back(from + step * k);
    data.trajectories[0].states.row(k) = spiral(from + step * k).transpose();
  }
  if (noise > 0) add_noise(data, Vector::Constant(2, noise), 7);
  return data;
}

FitOptions trajectory(int degree = 1) { return {.method = TrajectoryMethod{.degree = degree}}; }
FitOptions regression(int degree) { return {.method = RegressionMethod{.degree = degree}}; }

struct Learnt {
  Fit result;
  Page page;
};

Learnt learn(const Dataset& data, const FitOptions& options) {
  Learnt l{fit(data, options, ignore_progress), {}};
  l.page = fit_page(data, l.result, options, {});
  return l;
}

TEST(FitPageTest, ATrajectoryFitShowsThePathAndWhatItLeaves) {
  const double noise = 0.02;
  const Dataset data = spiral_data(201, 0.1, noise);
  const Learnt l = learn(data, trajectory());
  EXPECT_EQ(ids(l.page), "summary equations path residuals terms origin ");
  EXPECT_EQ(l.page.warning.headline, "");
  // The path is a solution: nearer to the truth than the data, by far.
  const Figure path = figure(l.page, "path-in-time");
  ASSERT_EQ(path.panels.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const Panel& panel = path.panels[static_cast<std::size_t>(i)];
    ASSERT_EQ(panel.lines.size(), 2u);
    const Line &observed = panel.lines[0], &curve = panel.lines[1];
    EXPECT_TRUE(observed.points);
    EXPECT_EQ(observed.x, data.trajectories[0].times);
    EXPECT_EQ(observed.y, (std::vector<double>(data.trajectories[0].states.col(i).begin(),
                                               data.trajectories[0].states.col(i).end())));
    for (std::size_t k = 0; k < curve.x.size(); ++k)
      EXPECT_NEAR(curve.y[k], spiral(curve.x[k])[i], 0.75 * noise) << curve.x[k];
  }
  // Residuals are the noise: sd known to 1/√(2N), and inside the band of ± 2 sd.
  const Table table = parts<Table>(l.page, "residuals")[0];
  EXPECT_EQ(table.header[3], "noise found");
  for (const auto& row : table.rows)
    for (const std::size_t column : {2, 3})
      EXPECT_NEAR(std::stod(row[column].text), noise, 5 * noise / std::sqrt(2 * 201.0));
  const Figure left = figure(l.page, "residuals-in-time");
  ASSERT_EQ(left.panels[0].lines[0].y.size(), 201u);
  EXPECT_NEAR(left.panels[0].bands[0].upper[0], 2 * noise, 0.3 * noise);
  // They have no memory: of 40 correlations at most a few leave ±2/√n.
  const Figure memory = figure(l.page, "residual-memory");
  int outside = 0, lags = 0;
  for (const Panel& panel : memory.panels)
    for (const double r : panel.bars[0].heights) {
      outside += std::abs(r) > panel.lines[0].y[0];
      ++lags;
    }
  EXPECT_GE(lags, 40);
  EXPECT_LE(outside, 0.05 * lags + 5 * std::sqrt(0.05 * lags));
}

TEST(FitPageTest, BetweenFewRowsThePathIsTheSolution) {
  const Dataset data = spiral_data(25, 0.5, 0);
  const Learnt l = learn(data, trajectory());
  for (int i = 0; i < 2; ++i) {
    const Line curve = figure(l.page, "path-in-time").panels[static_cast<std::size_t>(i)].lines[1];
    EXPECT_GT(curve.x.size(), 200u);
    // A cubic errs by h⁴ |u''''| / 384 at most.
    for (std::size_t k = 0; k < curve.x.size(); ++k)
      EXPECT_NEAR(curve.y[k], spiral(curve.x[k])[i], 1.1 * std::pow(0.5, 4) / 384) << curve.x[k];
  }
}

TEST(FitPageTest, TheRowsOfSeveralTrajectoriesAreNotMixedAndMissingOnesAreNotDrawn) {
  Dataset data = spiral_data(80, 0.1, 0.01);
  data.trajectories.push_back(spiral_data(60, 0.1, 0.01, 3).trajectories[0]);
  data.trajectories[0].id = "a";
  data.trajectories[1].id = "b";
  data.trajectories[0].states(5, 1) = kNan;
  const Learnt l = learn(data, trajectory());
  const Figure path = figure(l.page, "path-in-time");
  ASSERT_EQ(path.panels[1].lines.size(), 4u);
  EXPECT_TRUE(std::isnan(path.panels[1].lines[0].y[5]));
  EXPECT_FALSE(std::isnan(path.panels[0].lines[0].y[5]));
  for (const double y : path.panels[1].lines[2].y) EXPECT_TRUE(std::isfinite(y));
  EXPECT_EQ(path.panels[1].lines[1].x, data.trajectories[1].times);
  const auto residuals = path_residuals(data, *l.result.summary.path);
  ASSERT_EQ(residuals.size(), 2u);
  EXPECT_TRUE(std::isnan(residuals[0](5, 1)));
  EXPECT_EQ(residuals[1].rows(), 60);
  // Rows that were held out have no path.
  Dataset longer = data;
  longer.trajectories[1] = spiral_data(90, 0.1, 0.01, 3).trajectories[0];
  const Page page = fit_page(longer, l.result, trajectory(), FitPageContent{});
  EXPECT_EQ(figure(page, "path-in-time").panels[0].lines[1].x.size(), 60u);
}

TEST(CorrelogramTest, IsItsDefinition) {
  // Σ r_k r_{k-1} = 1·2 + 2·(-1) = 0, and in the other trajectory 3·1 = 3 across no gap.
  Matrix a(3, 1), b(4, 1);
  a << 1, 2, -1;
  b << 3, 1, kNan, 2;
  const Correlogram c = correlogram({a, b}, 0, 3);
  const double squares = 1 + 4 + 1 + 9 + 1 + 4;
  EXPECT_EQ(c.count, 6);
  ASSERT_EQ(c.correlations.size(), 3u);
  EXPECT_DOUBLE_EQ(c.correlations[0], (2 - 2 + 3) / squares);
  EXPECT_DOUBLE_EQ(c.correlations[1], (-1 + 2) / squares);  // 2 and -1's neighbour, then 1 and 2
  EXPECT_DOUBLE_EQ(c.correlations[2], 6 / squares);
}

TEST(CorrelogramTest, OfAnAutoregressionFallsByItsFactor) {
  // r_k = φ r_{k-1} + ε has correlations φ^l, with a standard error of at most
  // √((1 + φ²) / (1 - φ²) / n) (Bartlett).
  const int n = 40'000;
  const double phi = 0.7;
  Stream stream(3, Purpose::observation_noise, 0);
  Matrix r(n, 1);
  for (int k = 0; k < n; ++k) r(k, 0) = (k > 0 ? phi * r(k - 1, 0) : 0) + stream.normal();
  const Correlogram c = correlogram({r}, 0, 5);
  for (int lag = 1; lag <= 5; ++lag)
    EXPECT_NEAR(c.correlations[static_cast<std::size_t>(lag - 1)], std::pow(phi, lag),
                5 * std::sqrt((1 + phi * phi) / (1 - phi * phi) / n));
}

/// dx/dt in x of degree 2 as a mixture of two sets: x alone, and x with x².
Fit mixture() {
  Fit fit;
  Model& m = fit.model;
  m = forced_model(-1, 0.1, 0.5);
  CoefficientSet plain{{{0, 1}}, Vector::Constant(1, -1), Matrix::Constant(1, 1, 0.01)};
  plain.weight = 0.75;
  CoefficientSet more{{{0, 1}, {0, 2}}, Vector::Constant(2, -1), Matrix::Identity(2, 2) * 0.01};
  more.weight = 0.25;
  m.law = PolynomialPart{2, {more, plain}};  // the weight sorts them
  m.trajectory = {1.02, 0.01, 0, 0, false, {}};
  m.sd = Vector::Ones(1);
  m.noise = Vector::Constant(1, 0.1);
  m.training.trainer = "trajectory";
  m.training.derivative = "none";
  fit.summary.trusted = fit.summary.usable = true;
  fit.summary.status = "converged";
  fit.summary.path = {{{"", {0, 1, 2}, Matrix::Zero(3, 1)}}, {}, Vector::Constant(1, 0.09)};
  return fit;
}

Dataset three_rows() {
  Dataset data{.variables = {"x"}, .trajectories = {{"", {0, 1, 2}, Matrix(3, 1)}}};
  data.trajectories[0].states << 0.1, -0.1, 0.1;
  return data;
}

TEST(FitPageTest, SetsOfTermsHaveTheirWeightsAndTermsTheirProbabilities) {
  const Page page = fit_page(three_rows(), mixture(), trajectory(), {});
  const auto tables = parts<Table>(page, "terms");
  ASSERT_EQ(tables.size(), 2u);
  ASSERT_EQ(tables[0].rows.size(), 2u);
  EXPECT_EQ(text(tables[0].rows[0]), "|75 %|1|the most probable");
  EXPECT_EQ(text(tables[0].rows[1]), "|25 %|2|+ x^2 in dx/dt");
  ASSERT_EQ(tables[1].rows.size(), 2u);
  EXPECT_EQ(text(tables[1].rows[0]).substr(0, 15), "|dx/dt|x|100 %|");
  EXPECT_EQ(text(tables[1].rows[1]).substr(0, 16), "|dx/dt|x^2|25 %|");
  // Mean over the mixture: 0.25 × -1.
  EXPECT_TRUE(tables[1].rows[1][3].text.starts_with("−0.25")) << tables[1].rows[1][3].text;
}

TEST(FitPageTest, FunctionsAreTypesetWithTheNumbersInside) {
  const Model model = model_with_functions();
  const std::string html = render_equations(equation_list(model, Centre::best));
  EXPECT_NE(html.find("sin"), html.npos);
  EXPECT_NE(html.find("<mfrac>"), html.npos);
  EXPECT_NE(html.find("<mi>k</mi><mo>=</mo>"), html.npos) << html;
  Page page;
  page.sections = {term_section(model)};
  const auto tables = parts<Table>(page, "terms");
  ASSERT_EQ(tables.size(), 3u);  // sets, terms, numbers
  EXPECT_EQ(tables[1].rows.size(), 4u);
  EXPECT_EQ(tables[1].rows[1][1].text.empty(), false);
  EXPECT_EQ(tables[2].rows.size(), 1u);
}

TEST(FitPageTest, ForcingIsSaidInUnitsOfTheDataAndInWords) {
  Fit fit = mixture();
  fit.model.scaling.scale = Vector::Constant(1, 4);
  fit.model.scaling.time = 2;
  fit.model.sd = Vector::Constant(1, 8);
  fit.model.trajectory = {2, 0.5, 0, 3, true, {Vector::Constant(1, 0.1), 0.25}};
  fit.summary.path->forced_runs = fit.summary.path->runs;
  fit.summary.trusted = false;
  fit.summary.status = "misfit";
  fit.summary.reason = "REASON";
  const Page page = fit_page(three_rows(), fit, trajectory(), {});
  EXPECT_EQ(ids(page), "summary equations path residuals forcing terms origin ");
  // 0.1 × 4 every 0.25 × 2, of 8, over a noise of 0.1.
  EXPECT_EQ(text(parts<Table>(page, "forcing")[0].rows[0]).substr(0, 13), "|x|0.4|5 %|4|");
  EXPECT_TRUE(parts<Prose>(page, "forcing")[0].text.find("in every 0.5 of time") !=
              std::string::npos);
  // What is not to be trusted says so before its title, and why.
  const std::string html = render_page(page);
  const auto warned = html.find("class=\"warning\"");
  ASSERT_NE(warned, html.npos);
  EXPECT_LT(html.find("<body>"), warned);
  EXPECT_LT(warned, html.find("<h1>"));
  EXPECT_LT(html.find("do not explain the data"), html.find("<h1>"));
  EXPECT_LT(html.find("REASON"), html.find("<h1>"));
}

TEST(FitPageTest, EveryStatusThatIsNotTrustedIsTheHeadline) {
  for (const char* status : {"misfit", "noise_too_small", "mostly_noise", "short_run",
                             "underdetermined", "stopped", "not_converged"}) {
    Fit fit = mixture();
    fit.summary.trusted = false;
    fit.summary.status = fit.model.training.status = status;
    fit.summary.reason = fit.model.training.reason = "so and so";
    const Warning w = fit_page(three_rows(), fit, trajectory(), {}).warning;
    EXPECT_TRUE(w.headline.starts_with("Do not trust this model: it")) << w.headline;
    EXPECT_EQ(w.detail, "so and so.");
    // A forecast of it says so, too.
    ForecastOptions o;
    o.init = Vector::Ones(1);
    o.times = {0.1, 0.2};
    o.draws = 10;
    const Forecast f = forecast(fit.model, o, ignore_progress);
    const Warning of_forecast = forecast_page(fit.model, f, {}).warning;
    EXPECT_TRUE(of_forecast.headline.starts_with("Do not trust this forecast; of its model"))
        << of_forecast.headline;
    fit.model.training.status = "converged";
    EXPECT_EQ(forecast_page(fit.model, f, {}).warning.headline, "");
  }
}

TEST(FitPageTest, TwoFrequenciesAreAMisfitOfLinearEquations) {
  Dataset data = spiral_data(301, 0.1, 0);
  for (int k = 0; k < 301; ++k) {
    const double t = 0.1 * k;
    data.trajectories[0].states.row(k) << std::cos(t) + 0.3 * std::cos(2.3 * t),
        -std::sin(t) + 0.2 * std::cos(2.3 * t);
  }
  add_noise(data, Vector::Constant(2, 0.01), 5);
  const Learnt l = learn(data, trajectory());
  ASSERT_EQ(l.result.summary.status, "misfit");
  EXPECT_EQ(ids(l.page), "summary equations path residuals forcing terms origin ");
  EXPECT_NE(l.page.warning.headline, "");
  EXPECT_TRUE(parts<Prose>(l.page, "residuals")[0].text.find("do not explain") !=
              std::string::npos);
  // The nearest solution leaves what the page says, with a memory; with pushes the path follows.
  const Figure path = figure(l.page, "path-in-time");
  ASSERT_EQ(path.panels[0].lines.size(), 3u);
  const auto off = [&](std::size_t line) {
    double sum = 0;
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t k = 0; k < 301; ++k)
        sum += std::pow(path.panels[i].lines[line].y[k] - path.panels[i].lines[0].y[k], 2);
    return std::sqrt(sum / 602);
  };
  EXPECT_GT(off(1), 0.1);
  EXPECT_LT(off(2), 0.05);
  const Vector& noise = l.result.summary.path->smoothed_noise;
  EXPECT_NEAR(off(1) / noise.mean(), l.result.model.trajectory->noise_ratio,
              0.1 * l.result.model.trajectory->noise_ratio);
  EXPECT_GT(figure(l.page, "residual-memory").panels[0].bars[0].heights[0], 0.5);
}

TEST(FitPageTest, ARegressionShowsTheEvidenceByDegree) {
  const Learnt l = learn(spiral_data(201, 0.1, 0.02), regression(kAutomaticDegree));
  EXPECT_EQ(ids(l.page), "summary equations evidence terms derivatives observed origin ");
  const auto& trials = l.result.summary.degrees;
  ASSERT_GE(trials.size(), 2u);
  const Table table = parts<Table>(l.page, "evidence")[0];
  ASSERT_EQ(table.rows.size(), trials.size());
  int taken = 0;
  for (std::size_t k = 0; k < trials.size(); ++k) {
    EXPECT_EQ(table.rows[k][0].text, std::to_string(trials[k].degree));
    EXPECT_EQ(table.rows[k][1].text, std::to_string(trials[k].terms));
    if (table.rows[k][4].text != "taken") continue;
    ++taken;
    EXPECT_EQ(trials[k].degree, l.result.model.polynomial()->degree);
  }
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(figure(l.page, "evidence-by-degree").panels[0].lines[0].x.size(), trials.size());
  // Integrals have no derivatives: those of a smoother are shown, not differences of noisy rows,
  // which err by 0.02 × √(65/72) / 0.1 (central4).
  const Table residuals = parts<Table>(l.page, "derivatives")[0];
  for (const auto& row : residuals.rows)
    EXPECT_LT(std::stod(row[2].text), 0.5 * 0.02 * std::sqrt(65.0 / 72) / 0.1);
  const Learnt given = learn(spiral_data(201, 0.1, 0.02), regression(1));
  EXPECT_TRUE(parts<Table>(given.page, "evidence").empty());
  EXPECT_EQ(parts<Prose>(given.page, "evidence").size(), 1u);
}

TEST(FitPageTest, ABootstrapShowsTheSpreadOfItsReplicates) {
  const Learnt l = learn(spiral_data(201, 0.1, 0.02),
                         {.method = BootstrapMethod{.degree = 1, .replicates = 20}});
  EXPECT_EQ(ids(l.page), "summary equations evidence replicates derivatives observed origin ");
  const Table table = parts<Table>(l.page, "replicates")[0];
  ASSERT_GE(table.rows.size(), 4u);
  // Terms of the truth are in every replicate, and the interval holds it: dx/dt = y - x/10.
  EXPECT_EQ(text(table.rows[0]).substr(0, 15), "|dx/dt|x|100 %|");
  for (const auto& row : table.rows) {
    EXPECT_LE(number(row[3]), number(row[4])) << text(row);
    EXPECT_LE(number(row[4]), number(row[5])) << text(row);
  }
  const Term y = equations(l.result.model)[0].terms[1];
  EXPECT_EQ(table.rows[1][1].text, "y");
  EXPECT_EQ(table.rows[1][4].text, number_cell(*y.median, 4).text);
  EXPECT_NEAR(number(table.rows[1][4]), 1, 5 * y.sd);
  // Four sd between the ends of a normal distribution's 95 %; of 20 values known to a fifth or so.
  EXPECT_NEAR(number(table.rows[1][5]) - number(table.rows[1][3]), 4 * y.sd, 2 * y.sd);
  const Figure spread = figure(l.page, "coefficients");
  EXPECT_GE(spread.panels.size(), 4u);
  EXPECT_LE(spread.panels.size(), table.rows.size());
  for (const Panel& panel : spread.panels) {
    double total = 0;
    for (const double height : panel.bars[0].heights) total += height;
    EXPECT_NEAR(total, 1, 1e-12);
  }
}

TEST(FitPageTest, DropoutShowsDerivatives) {
  const Learnt l = learn(spiral_data(101, 0.1, 0), {.method = DropoutMethod{.degree = 1}});
  EXPECT_EQ(ids(l.page), "summary equations derivatives observed origin ");
  const Figure along = figure(l.page, "derivatives-in-time");
  // Forward differences: at every row but the last.
  const std::vector<double> times = along.panels[0].lines[0].x;
  ASSERT_EQ(times.size(), 100u);
  for (std::size_t k = 0; k < times.size(); ++k) EXPECT_EQ(times[k], 0.1 * static_cast<double>(k));
  // Those of a spline are at all rows, and their times are the data's.
  DropoutMethod splines{.degree = 1};
  splines.rows.derivative = DerivativeMethod::spline;
  const Learnt s = learn(spiral_data(101, 0.1, 0.01), {.method = splines});
  const std::vector<double> all = figure(s.page, "derivatives-in-time").panels[0].lines[0].x;
  ASSERT_EQ(all.size(), 101u);
  for (std::size_t k = 0; k < all.size(); ++k) EXPECT_EQ(all[k], 0.1 * static_cast<double>(k));
}

TEST(FitPageTest, SettingsAreThoseOfTheMethod) {
  const auto shown = [](const Page& page) {
    const auto lists = parts<KeyValues>(page, "origin");
    return lists.empty() ? Settings() : Settings(lists[0].rows);
  };
  FitOptions given = trajectory();
  given.noise = Vector::Constant(1, 0.25);
  const Dataset data = spiral_data(101, 0.1, 0.01);
  const Learnt path = learn(data, given),
               masks = learn(data, {.method = DropoutMethod{.degree = 1}});
  EXPECT_EQ(shown(path.page), path.result.model.settings);
  EXPECT_EQ(value(shown(path.page), "degree"), "1");
  EXPECT_EQ(value(shown(path.page), "noise"), "0.25");
  for (const char* not_ran : {"dropout", "schedule", "replicates", "members", "derivative"})
    EXPECT_EQ(value(shown(path.page), not_ran), "none") << not_ran;
  EXPECT_EQ(value(shown(masks.page), "dropout"), "0.25");
  EXPECT_EQ(value(shown(masks.page), "schedule"), "none") << "of adam, and the exact trainer ran";
}

TEST(SettingsTest, AForecastHasTheTolerancesThatRan) {
  const Model model = mixture().model;
  ForecastOptions o;
  o.init = Vector::Ones(1);
  o.times = {0.5, 1};
  ASSERT_LT(default_solver(model).rtol, 1e-3);
  const Settings s = forecast_settings(model, o);
  EXPECT_EQ(std::stod(value(s, "relative tolerance")), default_solver(model).rtol);
  EXPECT_EQ(value(s, "output times"), "2 to t = 1");
  EXPECT_EQ(value(s, "a new mask"), "none") << "there are no masks";
  EXPECT_EQ(value(s, "step of the solver"), "none");
  EXPECT_EQ(value(forecast_settings(decaying_model(1, 0.2), o), "a new mask"), "never");
  o.solver = {.method = SolverMethod::rk4, .fixed_step = 0.125};
  EXPECT_EQ(value(forecast_settings(model, o), "step of the solver"), "0.125");
  EXPECT_EQ(value(forecast_settings(model, o), "relative tolerance"), "none");
}

}  // namespace
}  // namespace odecast
