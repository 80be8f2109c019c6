#include "odecast/forecast/forecast.hpp"

#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "odecast/core/files.hpp"
#include "odecast/core/text.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/times.hpp"
#include "odecast/report/figure.hpp"
#include "odecast/report/forecast_page.hpp"
#include "odecast/report/settings.hpp"
#include "odecast/scores/scores.hpp"
#include "python/bindings/model.hpp"

namespace odecast::python {
namespace {

/// A forecast, and what its page needs beside it.
struct FinishedForecast {
  Forecast forecast;
  ModelPointer model = {};  ///< null for one from a file or of a user's posterior
  std::optional<cli::Arguments> arguments = {};  ///< how it was asked for; none of a file
  std::string call = {};                         ///< the same in Python

  /// What forecast --json prints; empty for one from a file.
  nb::object summary() const {
    if (!arguments) return nb::dict();
    ForecastOptions options;
    options.seed = arguments->seed();
    return to_python(cli::forecast_json(forecast, options));
  }
};
using ForecastPointer = std::shared_ptr<FinishedForecast>;

const cli::Command& forecast_words() {
  static const cli::Command command = cli::forecast_command();
  return command;
}
const cli::Command& score_words() {
  static const cli::Command command = cli::score_command();
  return command;
}

/// A Python object that threads without the interpreter's lock may pass around and drop.
class SharedObject {
 public:
  explicit SharedObject(nb::object object) : object_(std::move(object)) {}
  ~SharedObject() {
    nb::gil_scoped_acquire lock;
    object_.reset();
  }
  SharedObject(const SharedObject&) = delete;
  nb::handle get() const { return object_; }

 private:
  nb::object object_;
};

/// Draws made in Python: draw(seed, index) gives f with f(t, u) = du/dt. Knows no mean field.
class CallablePosterior : public Posterior {
 public:
  CallablePosterior(nb::object draw, int dimension)
      : draw_(std::make_shared<SharedObject>(std::move(draw))), dimension_(dimension) {}

  int dimension() const override { return dimension_; }
  VectorField draw(std::uint64_t seed, std::uint64_t index) const override {
    nb::gil_scoped_acquire lock;
    const auto f = std::make_shared<SharedObject>(nb::object(draw_->get()(seed, index)));
    const auto n = static_cast<std::size_t>(dimension_);
    return {dimension_, [f, n](double t, const double* u, double* dudt) {
              nb::gil_scoped_acquire held;
              const nb::object answer = nb::object(f->get()(t, to_array(std::span(u, n))));
              read_numbers(answer, n, dudt);
            }};
  }
  VectorField mean_field() const override { no_moments(); }
  VectorField point_field() const override { no_moments(); }
  Moments moments(const Vector&) const override { no_moments(); }
  std::uint64_t atoms() const override { return 0; }
  VectorField atom_field(std::uint64_t) const override { no_moments(); }
  double atom_weight(std::uint64_t) const override { no_moments(); }
  std::uint64_t atom_of_draw(std::uint64_t, std::uint64_t) const override { no_moments(); }

 private:
  static void read_numbers(nb::handle answer, std::size_t n, double* to) {
    const auto wrong = [&](std::size_t found) {
      throw_usage({"the right-hand side", fmt::format("{} numbers", found),
                   fmt::format("{}, one per variable", n),
                   "Let it return du/dt for every variable."});
    };
    if (PyList_Check(answer.ptr()) || PyTuple_Check(answer.ptr())) {
      if (nb::len(answer) != n) wrong(nb::len(answer));
      for (std::size_t i = 0; i < n; ++i) {
        to[i] = PyFloat_AsDouble(nb::object(answer[i]).ptr());
        if (to[i] == -1 && PyErr_Occurred()) throw nb::python_error();
      }
      return;
    }
    if (answer.is_none()) throw nb::type_error("the right-hand side returned None, not du/dt");
    static PyObject* const contiguous =
        nb::object(nb::module_::import_("numpy").attr("ascontiguousarray")).release().ptr();
    static PyObject* const float_type = reinterpret_cast<PyObject*>(&PyFloat_Type);
    const bool ready = Doubles::would_take(answer);
    if (!ready && nb::hasattr(answer, "dtype") &&
        nb::cast<std::string>(nb::str(answer.attr("dtype").attr("kind"))) == "c")
      throw nb::type_error("the right-hand side returned complex numbers, expected real ones");
    const nb::object array =
        ready ? nb::borrow(answer)
              : nb::object(nb::handle(contiguous)(answer, nb::handle(float_type)));
    const Doubles values(array);
    if (values.values().size() != n) wrong(values.values().size());
    std::copy_n(values.data(), n, to);
  }
  [[noreturn]] static void no_moments() {
    throw_usage(
        {"posterior", "draws only", "a mean field or finitely many fields", "Use draws of it."});
  }
  std::shared_ptr<SharedObject> draw_;
  int dimension_;
};

/// What a user's right-hand side stands in for: no scaling, no data.
Model bare_model(const std::vector<std::string>& variables, const Vector& init, double step) {
  Model m;
  m.variables = variables;
  const auto n = static_cast<int>(variables.size());
  m.scaling = no_scaling(n);
  m.last_state = init;
  m.step = step;
  m.size = init.cwiseAbs();
  m.data_scale = std::max(1.0, init.cwiseAbs().maxCoeff());
  return m;
}

/// Times and inputs that Python gives as arrays instead of files.
void take_arrays(const cli::Arguments& a, const Model& model, nb::handle at, nb::handle drive,
                 ForecastOptions& o) {
  if (at.is_none()) {
    o.times = cli::even_times(a, model, o);
  } else {
    const Doubles times(at);
    const double start = forecast_start(model, o).time;
    for (const double t : times.values())
      if (t > start) o.times.push_back(t);
  }
  if (drive.is_none()) return;
  const nb::tuple pair = nb::cast<nb::tuple>(drive);
  const Doubles times(pair[0]), values(pair[1]);
  InputSignal signal;
  signal.times.assign(times.values().begin(), times.values().end());
  const long columns = values.dimensions() == 1 ? 1 : values.size(1);
  if (values.size(0) != times.size())
    throw_usage({"option `drive`", fmt::format("{} rows at {} times", values.size(0), times.size()),
                 "a row for every time", "Give times and values of the same length."});
  signal.values = Eigen::Map<const Matrix>(values.data(), values.size(0), columns);
  o.inputs = std::move(signal);
}

/// `at` and `drive` are None or arrays; `keywords` name them too, where given, as the command line
/// does.
ForecastPointer forecast_model(ModelPointer m, nb::dict keywords, nb::object at, nb::object drive,
                               int samples, nb::object progress, const std::string& call) {
  const cli::Arguments a = words(forecast_words(), "model", keywords);
  ForecastOptions o = cli::forecast_options(a, m->model);
  take_arrays(a, m->model, at, drive, o);
  o.samples = samples;
  auto result = std::make_shared<FinishedForecast>();
  unlocked(progress,
           [&](Watch& watch) { result->forecast = forecast(m->model, o, observer(watch)); });
  result->arguments = a;
  result->call = call;
  result->model = std::move(m);
  return result;
}

ForecastPointer forecast_draws(nb::object draw, nb::object names, nb::dict keywords, nb::object at,
                               int samples, nb::object progress, const std::string& call) {
  const std::vector<std::string> variables = names_of(names, "variables");
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const char* fault = name_fault(variables[i]);
    if (fault || std::find(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(i),
                           variables[i]) -
                         variables.begin() <
                     static_cast<std::ptrdiff_t>(i))
      throw_usage({"variables", fault ? fault : shown(variables[i]) + " twice",
                   "different names of one line without blanks at their ends",
                   "Name every variable."});
  }
  const cli::Arguments a = words(forecast_words(), "draws", keywords);
  const std::vector<double> start = a.numbers("--init");
  if (start.size() != variables.size())
    throw_usage({"option `init`", fmt::format("{} values", start.size()),
                 fmt::format("{}, one per variable", variables.size()),
                 "Give the start of the forecast."});
  if (at.is_none() && !a.given("--step"))
    throw_usage({"option `step`", "nothing", "the spacing of the output times",
                 "There are no data to take it from."});
  const Model model =
      bare_model(variables, cli::to_vector(start), a.given("--step") ? a.number("--step") : 1);
  ForecastOptions o = cli::forecast_options(a, model);
  take_arrays(a, model, at, nb::none(), o);
  o.samples = samples;
  o.threads = 1;  // the interpreter runs one at a time
  const CallablePosterior posterior(std::move(draw), model.dimension());
  auto result = std::make_shared<FinishedForecast>();
  unlocked(progress, [&](Watch& watch) {
    result->forecast = forecast(posterior, model, o, observer(watch));
  });
  result->arguments = a;
  result->call = call;
  return result;
}

struct SingleResult {
  Data data;
  std::string complaint;
};

SingleResult forecast_single(ModelPointer m, nb::dict keywords, nb::object at, nb::object drive,
                             nb::object progress) {
  const cli::Arguments a = words(forecast_words(), "model", keywords);
  ForecastOptions o = cli::forecast_options(a, m->model);
  take_arrays(a, m->model, at, drive, o);
  const auto field = a.text("--field") == "mean" ? SingleField::mean : SingleField::point;
  SingleTrajectory one = unlocked(progress, [&](Watch& watch) {
    return single_trajectory(m->model, field, o, observer(watch));
  });
  SingleResult result;
  if (one.status != SolveStatus::finished)
    result.complaint =
        fmt::format("the trajectory {} at t = {:.6g}", status_name(one.status), one.reached);
  result.data = data_of({.variables = m->model.variables,
                         .trajectories = {{"", one.times, one.states}},
                         .source = "forecast",
                         .time_name = m->model.time_name,
                         .calendar = m->model.calendar});
  return result;
}

FigureContent figure_content(const Forecast& f, const Data* truth, const std::string& trajectory) {
  FigureContent content;
  if (truth) content.truth = counted_as(*truth->dataset(), f.calendar);
  content.trajectory = trajectory;
  return content;
}

std::string figure(const FinishedForecast& f, const Data* truth, const std::string& trajectory) {
  FigureContent content = figure_content(f.forecast, truth, trajectory);
  if (f.model && f.forecast.continues) content.history = history_of(f.model->model);
  return forecast_figure({{"", f.forecast}}, content);
}

void report(const FinishedForecast& f, const std::string& path, const Data* truth,
            nb::dict keywords) {
  if (!f.model)
    throw_usage({"report", "a forecast without its model", "one that a model made",
                 "Forecast with a model; a forecast from a file or of a function of yours has no "
                 "equations to show."});
  keywords["report"] = path;
  if (truth) keywords["truth"] = truth->name;
  const cli::Arguments a = words(forecast_words(), "model", keywords);
  ForecastPageContent content;
  content.title = a.text("--title");
  content.trajectory = a.text("--trajectory");
  content.lyapunov = cli::exponent(a);
  content.origin = cli::origin(*f.arguments);
  content.origin.command = f.call;
  ForecastOptions ran = cli::forecast_options(*f.arguments, f.model->model);
  ran.times.assign(f.forecast.times.begin() + 1, f.forecast.times.end());
  ran.solver->method = f.forecast.method;
  ran.solver->rtol = f.forecast.rtol;
  ran.solver->atol = f.forecast.atol;
  content.origin.settings = forecast_settings(f.model->model, ran);
  ran.samples = static_cast<int>(f.forecast.samples.size());
  unlocked(nb::none(), [&](Watch&) {
    if (truth) content.truth = counted_as(*truth->dataset(), f.forecast.calendar);
    if (f.model->model.inputs.measured() == 0)  // others are not kept with the forecast
      content.drawn = drawn_forecast(f.model->model, ran);
    check_writable(path);
    write_file(path, render_page(forecast_page(f.model->model, f.forecast, content)));
  });
}

nb::object score_forecast(const FinishedForecast& f, const Data& truth, nb::dict keywords) {
  const ScoreOptions options = cli::score_options(words(score_words(), "forecast", keywords));
  return to_python(cli::score_json(
      score(f.forecast, counted_as(*truth.dataset(), f.forecast.calendar), options)));
}

constexpr Matrix Forecast::*kMatrices[] = {&Forecast::mean,
                                           &Forecast::sd,
                                           &Forecast::lower,
                                           &Forecast::upper,
                                           &Forecast::q_lower,
                                           &Forecast::q_median,
                                           &Forecast::q_upper,
                                           &Forecast::observed_lower,
                                           &Forecast::observed_upper,
                                           &Forecast::observed_q_lower,
                                           &Forecast::observed_q_upper};

/// All of it, for pickle.
nb::tuple state_of(const FinishedForecast& f) {
  const Forecast& c = f.forecast;
  nb::list matrices, samples;
  for (const auto part : kMatrices) matrices.append(to_array(c.*part));
  for (const Matrix& s : c.samples) samples.append(to_array(s));
  nb::object calendar = nb::none();
  if (const auto& k = c.calendar)
    calendar = nb::make_tuple(static_cast<int>(k->unit), k->origin.seconds, k->origin.nanoseconds,
                              k->offset, static_cast<int>(k->detail));
  return nb::make_tuple(
      c.variables, matrices, samples, to_array(std::span(c.times)), to_array(std::span(c.alive)),
      to_array(std::span(c.blow_up_times)),
      nb::make_tuple(c.level, c.discard_probability, c.horizon, c.seconds,
                     c.distance ? c.distance->nearest : -1, c.distance ? c.distance->usual : -1,
                     c.at_rest, c.moving, c.off_surface),
      nb::make_tuple(c.draws, c.kept, c.discarded, c.integrated),
      nb::make_tuple(static_cast<int>(c.status), static_cast<int>(c.bands), c.calibrated,
                     c.continues),
      c.reason, f.model ? nb::cast(model_to_text(f.model->model)) : nb::none(),
      f.arguments ? nb::cast(f.arguments->spelled()) : nb::none(), f.call, c.time_name, calendar,
      nb::make_tuple(static_cast<int>(c.method), c.rtol, c.atol));
}

/// What state_of took apart. A damaged pickle is refused: every array has the rows of the times and
/// the columns of the variables.
ForecastPointer from_state(nb::tuple state) {
  const auto refuse = [](bool good) {
    if (!good)
      throw_data({"pickle", "parts that do not fit together",
                  "a forecast of this version of odecast", "Make the forecast again."});
  };
  refuse(state.size() == 16);
  const auto list = [](nb::handle array) {
    const Doubles values(array);
    return std::vector<double>(values.values().begin(), values.values().end());
  };
  auto result = std::make_shared<FinishedForecast>();
  Forecast& c = result->forecast;
  c.variables = names_of(nb::object(state[0]), "variables");
  c.times = list(nb::object(state[3]));
  c.alive = list(nb::object(state[4]));
  c.blow_up_times = list(nb::object(state[5]));
  const auto rows = static_cast<long>(c.times.size()),
             columns = static_cast<long>(c.variables.size());
  refuse(rows > 0 && columns > 0 && (c.alive.empty() || c.alive.size() == c.times.size()));
  const auto matrix_of = [&](nb::handle array, long fewest) {
    const Doubles values(array);
    refuse(values.dimensions() == 2 && values.size(1) == columns && values.size(0) >= fewest &&
           values.size(0) <= rows);
    return Matrix(Eigen::Map<const Matrix>(values.data(), values.size(0), values.size(1)));
  };
  const auto matrices = nb::cast<nb::list>(nb::object(state[1]));
  refuse(matrices.size() == std::size(kMatrices));
  for (std::size_t k = 0; k < std::size(kMatrices); ++k)
    if (const nb::object part = matrices[k]; k < 2 || Doubles(part).size() > 0)
      c.*kMatrices[k] = matrix_of(part, rows);
  for (const nb::handle sample : nb::cast<nb::list>(nb::object(state[2])))
    c.samples.push_back(matrix_of(sample, 0));
  DistanceFromRows distance;
  std::tie(c.level, c.discard_probability, c.horizon, c.seconds, distance.nearest, distance.usual,
           c.at_rest, c.moving, c.off_surface) =
      nb::cast<std::tuple<double, double, double, double, double, double, double, double, double>>(
          nb::object(state[6]));
  if (distance.nearest >= 0) c.distance = distance;
  std::tie(c.draws, c.kept, c.discarded, c.integrated) =
      nb::cast<std::tuple<long, long, long, long>>(nb::object(state[7]));
  int status = 0, bands = 0;
  std::tie(status, bands, c.calibrated, c.continues) =
      nb::cast<std::tuple<int, int, bool, bool>>(nb::object(state[8]));
  refuse(bands == static_cast<int>(Bands::sd) ||
         (bands == static_cast<int>(Bands::quantiles) && c.q_lower.size() > 0));
  c.bands = static_cast<Bands>(bands);
  refuse(status >= 0 && status <= static_cast<int>(kLastForecastStatus));
  c.status = static_cast<ForecastStatus>(status);
  c.reason = nb::cast<std::string>(nb::object(state[9]));
  if (const nb::object text = state[10]; !text.is_none())
    result->model =
        std::make_shared<FittedModel>(model_from_text(nb::cast<std::string>(text), "pickle"));
  if (const nb::object given = state[11]; !given.is_none())
    result->arguments.emplace(forecast_words(), nb::cast<std::vector<std::string>>(given));
  result->call = nb::cast<std::string>(nb::object(state[12]));
  c.time_name = nb::cast<std::string>(nb::object(state[13]));
  if (const nb::object given = state[14]; !given.is_none()) {
    const auto [unit, seconds, nanoseconds, offset, detail] =
        nb::cast<std::tuple<int, std::int64_t, std::int32_t, std::optional<int>, int>>(given);
    refuse(unit >= 0 && unit <= static_cast<int>(TimeUnit::civil_year) && nanoseconds >= 0 &&
           nanoseconds < 1'000'000'000 && detail >= 0 &&
           detail <= static_cast<int>(TimeDetail::clock));
    c.calendar = Calendar{static_cast<TimeUnit>(unit),
                          {seconds, nanoseconds},
                          offset,
                          static_cast<TimeDetail>(detail)};
  }
  int method = 0;
  std::tie(method, c.rtol, c.atol) =
      nb::cast<std::tuple<int, double, double>>(nb::object(state[15]));
  refuse(method >= 0 && method <= static_cast<int>(SolverMethod::iterate) &&
         std::isfinite(c.rtol) && std::isfinite(c.atol));
  c.method = static_cast<SolverMethod>(method);
  return result;
}

template <auto member>
nb::object matrix(const FinishedForecast& f) {
  const Matrix& m = f.forecast.*member;
  return m.size() == 0 ? nb::object(nb::none()) : to_array(m);
}

template <auto member>
auto value(const FinishedForecast& f) {
  return f.forecast.*member;
}

}  // namespace

void bind_forecast(nb::module_& m) {
  nb::class_<FinishedForecast>(m, "Forecast")
      .def_prop_ro("variables", &value<&Forecast::variables>)
      .def_prop_ro("times",
                   [](const FinishedForecast& f) { return to_array(std::span(f.forecast.times)); })
      .def_prop_ro("time_name", &value<&Forecast::time_name>)
      .def_prop_ro("calendar", &value<&Forecast::calendar>)
      .def_prop_ro("alive",
                   [](const FinishedForecast& f) { return to_array(std::span(f.forecast.alive)); })
      .def_prop_ro(
          "blow_up_times",
          [](const FinishedForecast& f) { return to_array(std::span(f.forecast.blow_up_times)); })
      .def_prop_ro("mean", &matrix<&Forecast::mean>)
      .def_prop_ro("sd", &matrix<&Forecast::sd>)
      .def_prop_ro("lower", &matrix<&Forecast::lower>)
      .def_prop_ro("upper", &matrix<&Forecast::upper>)
      .def_prop_ro("q_lower", &matrix<&Forecast::q_lower>)
      .def_prop_ro("q_median", &matrix<&Forecast::q_median>)
      .def_prop_ro("q_upper", &matrix<&Forecast::q_upper>)
      .def_prop_ro("observed_lower", &matrix<&Forecast::observed_lower>)
      .def_prop_ro("observed_upper", &matrix<&Forecast::observed_upper>)
      .def_prop_ro("observed_q_lower", &matrix<&Forecast::observed_q_lower>)
      .def_prop_ro("observed_q_upper", &matrix<&Forecast::observed_q_upper>)
      .def_prop_ro("level", &value<&Forecast::level>)
      .def_prop_ro(
          "band",
          [](const FinishedForecast& f) { return std::string(bands_name(f.forecast.bands)); })
      .def_prop_ro(
          "complete",
          [](const FinishedForecast& f) { return f.forecast.status == ForecastStatus::complete; })
      .def_prop_ro("reason", [](const FinishedForecast& f) { return in_python(f.forecast.reason); })
      .def_prop_ro("samples",
                   [](const FinishedForecast& f) {
                     nb::list list;
                     for (const Matrix& s : f.forecast.samples) list.append(to_array(s));
                     return list;
                   })
      .def_prop_ro("summary", &FinishedForecast::summary)
      .def("to_text", [](const FinishedForecast& f) { return format_forecast(f.forecast); })
      .def("write",
           [](const FinishedForecast& f, const std::string& path) {
             unlocked(nb::none(), [&](Watch&) { write_file(path, format_forecast(f.forecast)); });
           })
      .def("svg", &figure, nb::arg("truth").none(), nb::arg("trajectory"))
      .def("report", &report, nb::arg("path"), nb::arg("truth").none(), nb::arg("keywords"))
      .def("score", &score_forecast)
      .def("state", &state_of);
  m.def("forecast_from_state", &from_state);
  nb::class_<SingleResult>(m, "SingleResult")
      .def_ro("data", &SingleResult::data)
      .def_ro("complaint", &SingleResult::complaint);
  m.def("forecast_model", &forecast_model, nb::arg("model"), nb::arg("keywords"),
        nb::arg("at").none(), nb::arg("drive").none(), nb::arg("samples"),
        nb::arg("progress").none(), nb::arg("call"));
  m.def("forecast_draws", &forecast_draws, nb::arg("draw"), nb::arg("variables"),
        nb::arg("keywords"), nb::arg("at").none(), nb::arg("samples"), nb::arg("progress").none(),
        nb::arg("call"));
  m.def("forecast_single", &forecast_single, nb::arg("model"), nb::arg("keywords"),
        nb::arg("at").none(), nb::arg("drive").none(), nb::arg("progress").none());
  m.def("read_forecast", [](const std::string& path) {
    auto result = std::make_shared<FinishedForecast>();
    result->forecast = read_forecast(path);
    return result;
  });
}

}  // namespace odecast::python
