#include "odecast/filter/filter.hpp"

#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cmath>

#include "odecast/core/files.hpp"
#include "odecast/core/text.hpp"
#include "odecast/filter/filter_file.hpp"
#include "odecast/filter/lagged_rows.hpp"
#include "odecast/filter/model_after.hpp"
#include "odecast/filter/state_file.hpp"
#include "odecast/observations/times.hpp"
#include "python/bindings/model.hpp"

namespace odecast::python {
namespace {

const cli::Command& filter_words() {
  static const cli::Command command = cli::filter_command();
  return command;
}

nb::object array(const Vector& v) { return to_array(std::span(v.data(), v.data() + v.size())); }

ModelPointer after(const Filter& filter) {
  return std::make_shared<FittedModel>(model_after(filter));
}

nb::dict in_python_words(const StateBand& band) {
  nb::dict d;
  d["mean"] = array(band.mean);
  d["sd"] = array(band.sd);
  d["lower"] = array(band.lower);
  d["upper"] = array(band.upper);
  return d;
}

/// A filter that is given its rows one by one.
struct RunningFilter {
  RunningFilter(ModelPointer m, const std::vector<std::string>& columns, nb::dict keywords)
      : model(std::move(m)),
        plan(cli::filter_plan(words(filter_words(), "model", keywords), model->model, columns,
                              "the columns")),
        filter(model->model, plan.observing, plan.options) {}

  nb::dict update(double time, nb::handle observed, nb::handle inputs) {
    const Vector y = Doubles(observed).vector(), w = Doubles(inputs).vector();
    const auto require = [](long found, std::size_t expected, const char* what) {
      if (found != static_cast<long>(expected))
        throw_usage({what, fmt::format("{} values", found), fmt::format("{}", expected),
                     "Give one for each; NaN where nothing was observed."});
    };
    require(y.size(), plan.observed.size(), "what was observed");
    require(w.size(), plan.inputs.size(), "the inputs");
    if (!std::isfinite(time) || !w.allFinite())
      throw_usage({"time and inputs", "one that is not finite", "numbers",
                   "What drives a system is not estimated."});
    const FilterRow row = unlocked(nb::none(), [&](Watch&) { return filter.update(time, y, w); });
    summary.add(row, plan.options.level);
    last = row;
    nb::dict d = in_python_words(row.state);
    d["t"] = row.time;
    d["forecast"] = array(row.forecast);
    d["forecast_sd"] = array(row.forecast_sd);
    d["surprise"] = row.surprise;
    d["log_score"] = row.log_score;
    d["used"] = row.used;
    d["status"] = std::string(kFilterStatusNames[static_cast<std::size_t>(row.status)]);
    d["past"] = row.past ? nb::object(in_python_words(*row.past)) : nb::object(nb::none());
    d["ahead"] = row.ahead ? nb::object(in_python_words(*row.ahead)) : nb::object(nb::none());
    return d;
  }

  void save(const std::string& path) const {
    write_file(path,
               filter_state_to_text(filter.state(), model->model, plan.observing, plan.options));
  }
  void load(const std::string& path) {
    filter.continue_from(filter_state_from_text(read_file(path), "'" + path + "'", model->model,
                                                plan.observing, plan.options));
  }

  ModelPointer model;
  cli::FilterPlan plan;
  Filter filter;
  FilterSummary summary;
  FilterRow last;
};

/// All rows of data, as the command line answers them.
struct FilteredData {
  std::string text, coefficients;
  nb::object summary;
  std::string complaint;
  ModelPointer model;
};

FilteredData filter_data(ModelPointer m, const Data& data, nb::dict keywords, nb::object progress) {
  const Model& model = m->model;
  const Dataset rows = counted_as(*data.dataset(), model.calendar);
  const cli::Arguments a = words(filter_words(), "model", keywords);
  std::vector<std::string> names = rows.variables;
  names.insert(names.end(), rows.inputs.begin(), rows.inputs.end());
  const cli::FilterPlan plan = cli::filter_plan(a, model, names, data.name);
  FilteredData result;
  cli::Json json;
  unlocked(progress, [&](Watch& watch) {
    FilterSummary summary;
    FilterRow last;
    std::optional<Filter> filter;
    const bool several = rows.trajectories.size() > 1;
    result.text = filter_header(model, several, plan.options.ahead > 0);
    const auto begun = std::chrono::steady_clock::now();
    double done = 0;
    for (const Trajectory& t : rows.trajectories) {
      Filter next(model, plan.observing, plan.options);
      if (filter) next.learn_from(*filter);
      filter.emplace(std::move(next));
      LaggedRows out(plan.options.lag, [&](const FilterRow& row) {
        result.text += format_filter_row(model, row, several ? &t.id : nullptr);
      });
      for (Eigen::Index k = 0; k < t.states.rows(); ++k) {
        Vector row(static_cast<Eigen::Index>(names.size()));
        row << t.states.row(k).transpose(),
            t.inputs.size() > 0 ? Vector(t.inputs.row(k).transpose()) : Vector();
        const auto part = [&row](const std::vector<std::size_t>& places) {
          Vector values(static_cast<Eigen::Index>(places.size()));
          for (std::size_t j = 0; j < places.size(); ++j)
            values[static_cast<Eigen::Index>(j)] = row[static_cast<Eigen::Index>(places[j])];
          return values;
        };
        last = filter->update(t.times[static_cast<std::size_t>(k)], part(plan.observed),
                              part(plan.inputs));
        summary.add(last, plan.options.level);
        out.add(last);
        if (plan.options.learn) {
          if (result.coefficients.empty()) result.coefficients = coefficients_header(*filter);
          result.coefficients += format_coefficients_row(*filter, last.time);
        }
        watch("following", ++done / static_cast<double>(data.rows()));
      }
      out.end(*filter);
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    json = cli::filter_json(summary, *filter, last, seconds);
    result.complaint = in_python(summary.distrust());
    result.model = after(*filter);
  });
  result.summary = to_python(json);
  return result;
}

}  // namespace

void bind_filter(nb::module_& m) {
  nb::class_<RunningFilter>(m, "Filter")
      .def(nb::init<ModelPointer, const std::vector<std::string>&, nb::dict>())
      .def("update", &RunningFilter::update)
      .def("save", &RunningFilter::save)
      .def("load", &RunningFilter::load)
      .def("after", [](const RunningFilter& f) { return after(f.filter); })
      .def_prop_ro("observed", [](const RunningFilter& f) { return f.plan.observing.columns; })
      .def_prop_ro("time",
                   [](const RunningFilter& f) {
                     return f.filter.state().time * f.model->model.scaling.time;
                   })
      .def_prop_ro("summary",
                   [](const RunningFilter& f) {
                     return f.summary.rows == 0
                                ? nb::object(nb::dict())
                                : to_python(cli::filter_json(f.summary, f.filter, f.last, 0));
                   })
      .def_prop_ro("members", [](const RunningFilter& f) {
        const Model& model = f.model->model;
        Matrix states = f.filter.state().members.leftCols(model.dimension());
        for (Eigen::Index k = 0; k < states.rows(); ++k)
          states.row(k) = model.scaling.to_user(states.row(k).transpose()).transpose();
        return to_array(states);
      });
  nb::class_<FilteredData>(m, "FilteredData")
      .def_ro("text", &FilteredData::text)
      .def_ro("coefficients", &FilteredData::coefficients)
      .def_ro("summary", &FilteredData::summary)
      .def_ro("complaint", &FilteredData::complaint)
      .def_ro("model", &FilteredData::model);
  m.def("filter_data", &filter_data, nb::arg("model"), nb::arg("data"), nb::arg("keywords"),
        nb::arg("progress").none());
}

}  // namespace odecast::python
