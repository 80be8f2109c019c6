#include "python/bindings/data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/derivatives/derivatives.hpp"
#include "odecast/observations/inspection.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/observations/times.hpp"
#include "odecast/report/svg.hpp"

namespace odecast::python {

long Data::rows() const {
  long total = 0;
  for (const Run& r : runs) total += r.rows;
  return total;
}

ObservationSource Data::source(const std::function<void()>& poll) const {
  constexpr long kBetweenPolls = 1 << 16;
  ObservationSource s;
  s.variables = variables;
  s.inputs = inputs;
  s.name = name;
  s.table->time_name = time_name;
  s.table->calendar = calendar;
  for (const Run& r : runs) s.ids->push_back(r.id);
  s.replay = [this, poll](const ObservationSource::Visitor& visit) {
    const std::size_t n = variables.size(), m = inputs.size();
    std::vector<double> row(n + m);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const Run& r = runs[k];
      for (long i = 0; i < r.rows; ++i) {
        const double* state = r.states + i * r.state_stride;
        if (r.inputs) {
          std::copy_n(r.inputs + i * r.input_stride, m, std::copy_n(state, n, row.begin()));
          state = row.data();
        }
        if (!visit(k, r.time(i), state)) return;
        if ((i + 1) % kBetweenPolls == 0) poll();
      }
    }
  };
  return s;
}

Dataset Data::columns() const {
  return {variables, {}, certified_until, name, time_name, inputs, calendar};
}

std::shared_ptr<const Dataset> Data::dataset() const {
  if (owned) return owned;
  auto copy = std::make_shared<Dataset>(columns());
  const auto n = static_cast<Eigen::Index>(variables.size()),
             m = static_cast<Eigen::Index>(inputs.size());
  for (const Run& r : runs) {
    Trajectory& t = copy->trajectories.emplace_back();
    t.id = r.id;
    t.times.resize(static_cast<std::size_t>(r.rows));
    t.states.resize(r.rows, n);
    t.inputs.resize(r.inputs ? r.rows : 0, r.inputs ? m : 0);
    for (long i = 0; i < r.rows; ++i) {
      t.times[static_cast<std::size_t>(i)] = r.time(i);
      std::copy_n(r.states + i * r.state_stride, n, t.states.row(i).data());
      if (r.inputs) std::copy_n(r.inputs + i * r.input_stride, m, t.inputs.row(i).data());
    }
  }
  return copy;
}

std::vector<std::string> Data::input_words() const {
  std::vector<std::string> words = inputs;
  if (!time_input.empty()) words.push_back(time_input);
  return words;
}

Data data_of(Dataset given, std::string time_input) {
  const auto dataset = std::make_shared<const Dataset>(std::move(given));
  Data d;
  d.variables = dataset->variables;
  d.inputs = dataset->inputs;
  d.time_input = std::move(time_input);
  d.name = dataset->source;
  d.time_name = dataset->time_name;
  d.calendar = dataset->calendar;
  d.certified_until = dataset->certified_until;
  d.owned = dataset;
  for (const Trajectory& t : dataset->trajectories)
    d.runs.push_back({t.id, t.rows(), t.times.data(), 1, t.states.data(), t.states.cols(),
                      t.inputs.size() > 0 ? t.inputs.data() : nullptr, t.inputs.cols()});
  return d;
}

namespace {

const cli::Command& simulate_words() {
  static const cli::Command command = cli::simulate_command();
  return command;
}
const cli::Command& split_words() {
  static const cli::Command command = cli::split_command();
  return command;
}

/// What `read` makes of words that say how to read.
template <class Read>
Data read_data(const std::string& name, nb::dict keywords, const Read& read) {
  const cli::Arguments a = words(fit_words(), name, keywords);
  const ReadOptions options = cli::fit_columns(a);
  return unlocked(nb::none(), [&](Watch&) {
    Data d = data_of(read(options), cli::time_input(a));
    d.keeps_missing = options.missing == MissingRule::keep;
    return d;
  });
}

Data read_files(const std::vector<std::string>& paths, nb::dict keywords) {
  return read_data(paths.at(0), keywords, [&](const ReadOptions& options) {
    return read_observations(std::vector<std::filesystem::path>(paths.begin(), paths.end()),
                             options);
  });
}

Data read_bytes(nb::bytes bytes, const std::string& name, nb::dict keywords) {
  const std::string_view text(bytes.c_str(), bytes.size());
  return read_data(name, keywords, [&](const ReadOptions& options) {
    return parse_observations(text, name, options);
  });
}

std::string shape_text(const Doubles& a) {
  std::vector<long> shape;
  for (int i = 0; i < a.dimensions(); ++i) shape.push_back(a.size(i));
  return fmt::format("an array of shape ({})", fmt::join(shape, ", "));
}

/// Names for columns that have none: x1, x2, … as for .npy files.
std::vector<std::string> names_for(std::vector<std::string> given, long count, const char* what,
                                   const char* letter) {
  if (given.empty())
    for (long i = 1; i <= count; ++i) given.push_back(fmt::format("{}{}", letter, i));
  if (static_cast<long>(given.size()) != count)
    throw_usage({what, fmt::format("{} names ({})", given.size(), fmt::join(given, ", ")),
                 fmt::format("{}, one per column", count), "Name every column of the arrays."});
  return given;
}

/// Rows of the caller's arrays, checked as those of files are; a missing value splits a trajectory
/// where that is asked for.
class ArrayRows {
 public:
  ArrayRows(Data& data, const ReadOptions& options, Watch& watch)
      : data_(data), watch_(watch), rows_(table_, checked(options), visit_, "row") {
    table_.source = data.name;
    std::vector<std::string> columns = {time_name()};
    columns.insert(columns.end(), data.variables.begin(), data.variables.end());
    columns.insert(columns.end(), data.inputs.begin(), data.inputs.end());
    rows_.name_columns(std::move(columns), {});
    data.time_name = table_.time_name;
  }

  void add(const Data::Run& whole) {
    rows_.new_block();
    const std::size_t n = data_.variables.size(), m = data_.inputs.size();
    const auto& places = rows_.places();
    for (long i = 0; i < whole.rows; ++i) {
      const Place place{++number_};
      std::optional<std::size_t> missing;
      const auto put = [&](std::size_t column, double value) {
        *places[column] = value;
        if (std::isfinite(value)) return;
        if (!std::isnan(value))
          throw_data({rows_.where(place, column), format_number(value), "a finite number",
                      "Correct the value or remove the row."});
        if (!missing) missing = column;
      };
      put(0, whole.time(i));
      for (std::size_t c = 0; c < n; ++c)
        put(1 + c, whole.states[i * whole.state_stride + static_cast<long>(c)]);
      for (std::size_t c = 0; c < m; ++c)
        put(1 + n + c, whole.inputs[i * whole.input_stride + static_cast<long>(c)]);
      at_ = i;
      whole_ = &whole;
      if (missing)
        rows_.missing(*missing, "nan", "", place);
      else
        rows_.row("", place);
      if (number_ % 65536 == 0) watch_.poll();
    }
  }

  void finish() {
    if (rows_.count() == 0)
      throw_data({data_.name, fmt::format("{} rows, each with a missing cell", table_.dropped),
                  "rows of numbers", "Check that the arrays were filled."});
    rows_.finish();
    for (std::size_t k = 0; k < data_.runs.size(); ++k) data_.runs[k].id = table_.ids[k];
  }

 private:
  std::string time_name() const {
    return options_.time.empty() ? time_column(data_.columns()) : options_.time;
  }
  const ReadOptions& checked(const ReadOptions& given) {
    options_ = given;
    options_.time = time_name();
    options_.id.clear();
    options_.variables = data_.variables;
    options_.inputs = data_.inputs;
    if (given.sort || given.duplicates != DuplicateRule::error || !given.id.empty())
      throw_usage(
          {given.sort          ? "`sort`"
           : !given.id.empty() ? "`id`"
                               : "`duplicates`",
           "it with arrays", "a file or a DataFrame",
           "Arrays are used where they are: put them in order first, a trajectory an array."});
    return options_;
  }
  void take(const TableRow& row) {
    if (row.trajectory == data_.runs.size()) {
      Data::Run run = *whole_;
      run.rows = 0;
      run.first = at_;
      if (run.times) run.times += at_ * run.time_stride;
      run.states += at_ * run.state_stride;
      if (run.inputs) run.inputs += at_ * run.input_stride;
      data_.runs.push_back(run);
    }
    ++data_.runs.back().rows;
  }

  Data& data_;
  Watch& watch_;
  TableInfo table_;
  ReadOptions options_;
  RowVisitor visit_ = [this](const TableInfo&, const TableRow& row) {
    take(row);
    return true;
  };
  Rows rows_;
  const Data::Run* whole_ = nullptr;
  long at_ = 0, number_ = 0;
};

/// `times` may be None: then the first column, or with `sample_step` none. Each list has an array
/// per trajectory.
Data from_arrays(nb::object times, nb::list states, nb::object inputs, nb::dict keywords,
                 const std::string& name, std::optional<Calendar> calendar) {
  nb::dict reading;
  for (const auto [key, value] : keywords)
    if (nb::cast<std::string>(key) != "variables" && nb::cast<std::string>(key) != "inputs")
      reading[key] = value;
  const ReadOptions options = cli::fit_columns(words(fit_words(), name, reading));
  const auto list_of = [&](const char* key) {
    return keywords.contains(key) ? names_of(nb::object(keywords[key]), key)
                                  : std::vector<std::string>{};
  };

  Data d;
  d.name = name;
  d.calendar = calendar;
  d.keeps_missing = options.missing == MissingRule::keep;
  std::vector<std::string> input_names = list_of("inputs");
  const std::string time_name = options.time.empty() ? "t" : options.time;
  std::erase_if(input_names, [&](const std::string& input) {
    const bool time = options.time.empty()
                          ? input == "t" || input == "time" || input == "T" || input == "Time"
                          : input == options.time;
    if (time) d.time_input = input;
    return time;
  });
  const auto hold = [&](nb::handle array) {
    return d.arrays.emplace_back(std::make_shared<const Doubles>(array)).get();
  };
  const bool timeless = times.is_none() && options.step > 0;
  if (!times.is_none() && options.step > 0)
    throw_usage(
        {"option `sample_step`", "it beside the times", "one of them", "Remove the option."});
  std::vector<Data::Run> wholes;
  long width = -1, input_width = -1;
  const auto same_width = [&](long& known, long found, const char* what) {
    if (known < 0) known = found;
    if (known != found)
      throw_data({name + ", " + what, fmt::format("{} columns after {}", found, known),
                  "the same in every trajectory", "Give every trajectory the same columns."});
  };
  for (std::size_t k = 0; k < states.size(); ++k) {
    const Doubles& u = *hold(states[k]);
    const Doubles* t = times.is_none() ? nullptr : hold(times[k]);
    const Doubles* w = inputs.is_none() ? nullptr : hold(inputs[k]);
    const int skip = t || timeless ? 0 : 1;  // the first column is the time
    if (u.dimensions() < 1 || u.dimensions() > 3 || (u.dimensions() == 1 && skip) ||
        (u.dimensions() == 3 && (t || w)) || u.size() == 0 ||
        (skip && u.size(u.dimensions() - 1) < 2))
      throw_data(
          {name, shape_text(u), "rows × columns, with at least one row and one variable",
           skip ? "Without times the first column is the time, or give the spacing: sample_step=H."
                : "Give an array for each trajectory."});
    const long blocks = u.dimensions() == 3 ? u.size(0) : 1;
    const long rows = u.dimensions() == 3 ? u.size(1) : u.size(0);
    const long columns = u.dimensions() == 1 ? 1 : u.size(u.dimensions() - 1);
    same_width(width, columns - skip, "variables");
    if (columns > 10'000)
      throw_data({name, shape_text(u), "rows × at most 10000 columns",
                  "Give the array the other way round: a.T."});
    if (t && (t->size() != rows || t->dimensions() > 1))
      throw_data({name, shape_text(*t) + " as times", fmt::format("{} times, one per row", rows),
                  "Give a time for every row."});
    if (w) {
      if (w->dimensions() < 1 || w->dimensions() > 2 || w->size(0) != rows)
        throw_data({name, shape_text(*w) + " as inputs", fmt::format("{} rows, one per time", rows),
                    "Give the inputs at every time."});
      same_width(input_width, w->dimensions() == 1 ? 1 : w->size(1), "inputs");
    }
    for (long b = 0; b < blocks; ++b) {
      const double* base = u.data() + b * rows * columns;
      wholes.push_back({"", rows,
                        t      ? t->data()
                        : skip ? base
                               : nullptr,
                        t ? 1 : columns, base + skip, columns, w ? w->data() : nullptr,
                        w && w->dimensions() == 2 ? w->size(1) : 1, 0, options.step});
    }
  }
  d.variables = names_for(list_of("variables"), width, "`variables`", "x");
  d.inputs = names_for(input_names, std::max(0L, input_width), "`inputs`", "w");
  unlocked(nb::none(), [&](Watch& watch) {
    ArrayRows checked(d, options, watch);
    for (const Data::Run& whole : wholes) checked.add(whole);
    checked.finish();
  });
  return d;
}

nb::object states_of(const Data& d, std::size_t k) {
  const Data::Run& r = d.runs.at(k);
  NewArray a = new_array(r.rows, static_cast<long>(d.variables.size()));
  for (long i = 0; i < r.rows; ++i)
    std::copy_n(r.states + i * r.state_stride, d.variables.size(),
                a.data + i * static_cast<long>(d.variables.size()));
  return a.array;
}

nb::object inputs_of(const Data& d, std::size_t k) {
  const Data::Run& r = d.runs.at(k);
  NewArray a = new_array(r.rows, static_cast<long>(d.inputs.size()));
  for (long i = 0; i < r.rows; ++i)
    if (r.inputs)
      std::copy_n(r.inputs + i * r.input_stride, d.inputs.size(),
                  a.data + i * static_cast<long>(d.inputs.size()));
  return a.array;
}

nb::object times_of(const Data& d, std::size_t k) {
  const Data::Run& r = d.runs.at(k);
  NewArray a = new_array(r.rows);
  for (long i = 0; i < r.rows; ++i) a.data[i] = r.time(i);
  return a.array;
}

/// All of it, for pickle.
nb::tuple data_state(const Data& d) {
  nb::list runs;
  for (std::size_t k = 0; k < d.runs.size(); ++k)
    runs.append(nb::make_tuple(d.runs[k].id, times_of(d, k), states_of(d, k), inputs_of(d, k)));
  return nb::make_tuple(d.variables, d.inputs, d.time_input, d.name, d.time_name, d.certified_until,
                        d.keeps_missing, runs);
}

/// What data_state took apart. A damaged pickle is refused: every array has a row for each time.
Data data_from_state(nb::tuple state) {
  const auto refuse = [](bool good) {
    if (!good)
      throw_data({"pickle", "parts that do not fit together", "data of this version of odecast",
                  "Read the data again."});
  };
  refuse(state.size() == 8);
  const auto text = [&](std::size_t k) { return nb::cast<std::string>(nb::object(state[k])); };
  Dataset set{.variables = names_of(nb::object(state[0]), "variables")};
  set.inputs = names_of(nb::object(state[1]), "inputs");
  set.source = text(3);
  set.time_name = text(4);
  set.certified_until = nb::cast<std::optional<double>>(nb::object(state[5]));
  const auto columns = static_cast<long>(set.variables.size()),
             driving = static_cast<long>(set.inputs.size());
  for (const nb::handle part : nb::cast<nb::list>(nb::object(state[7]))) {
    const auto run = nb::cast<nb::tuple>(part);
    refuse(run.size() == 4);
    const nb::object parts[] = {run[1], run[2], run[3]};
    const Doubles times(parts[0]), states(parts[1]), inputs(parts[2]);
    refuse(times.dimensions() == 1 && states.dimensions() == 2 && inputs.dimensions() == 2);
    const long rows = times.size();
    refuse(rows > 0 && states.size(0) == rows && states.size(1) == columns &&
           inputs.size(0) == rows && inputs.size(1) == driving);
    Trajectory& t = set.trajectories.emplace_back();
    t.id = nb::cast<std::string>(nb::object(run[0]));
    t.times.assign(times.values().begin(), times.values().end());
    t.states = Eigen::Map<const Matrix>(states.data(), rows, columns);
    if (driving > 0) t.inputs = Eigen::Map<const Matrix>(inputs.data(), rows, driving);
  }
  refuse(columns > 0 && !set.trajectories.empty());
  Data d = data_of(std::move(set), text(2));
  d.keeps_missing = nb::cast<bool>(nb::object(state[6]));
  return d;
}

/// A panel per variable, at most six; long lines are thinned.
std::string data_figure(const Data& d) {
  constexpr std::size_t kPanels = 6;
  constexpr long kPoints = 20'000;
  std::vector<Panel> panels;
  for (std::size_t v = 0; v < std::min(kPanels, d.variables.size()); ++v) {
    Panel& panel = panels.emplace_back();
    panel.y_label = d.variables[v];
    panel.x_label = d.time_name;
    panel.calendar = d.calendar;
    for (const Data::Run& r : d.runs) {
      Line& line = panel.lines.emplace_back();
      line.ink = Ink::truth;
      line.width = 1.2;
      const long step = std::max(1L, r.rows / kPoints);
      for (long i = 0; i < r.rows; i += step) {
        line.x.push_back(r.time(i));
        line.y.push_back(r.states[i * r.state_stride + static_cast<long>(v)]);
      }
    }
  }
  return draw_svg(panels, {.panel_height = 110, .compact = true});
}

/// Moments as seconds since 1970 and nanoseconds, both whole: in the unit that their spacing or the
/// keywords choose, or as `calendar` counts.
std::pair<Calendar, nb::list> count_times(nb::list seconds, nb::list nanoseconds, bool zoned,
                                          nb::dict keywords, std::optional<Calendar> calendar) {
  std::vector<std::vector<Instant>> moments;
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    const Doubles whole(seconds[k]), part(nanoseconds[k]);
    auto& list = moments.emplace_back();
    for (std::size_t i = 0; i < whole.values().size(); ++i)
      list.push_back({static_cast<std::int64_t>(whole.values()[i]),
                      static_cast<std::int32_t>(part.values()[i])});
  }
  ReadOptions options = cli::fit_columns(words(fit_words(), "data", keywords));
  if (calendar) options.time_count = *calendar;
  const TimeColumn column = time_column_of(moments.at(0), zoned, "times", options);
  const std::int64_t shift = zoned ? 0 : -60 * column.calendar.offset.value_or(0);
  nb::list numbers;
  for (auto& list : moments) {
    NewArray a = new_array(static_cast<long>(list.size()));
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i].seconds += shift;
      a.data[i] = to_number(column.calendar, list[i]);
    }
    numbers.append(a.array);
  }
  return {column.calendar, numbers};
}

/// The other way round.
std::pair<nb::object, nb::object> moments_of(const Calendar& calendar, nb::handle numbers) {
  const Doubles times(numbers);
  NewArray seconds = new_array(times.size()), nanoseconds = new_array(times.size());
  for (long i = 0; i < times.size(); ++i) {
    const Instant moment = to_instant(calendar, times.data()[i]);
    seconds.data[i] = static_cast<double>(moment.seconds);
    nanoseconds.data[i] = moment.nanoseconds;
  }
  return {seconds.array, nanoseconds.array};
}

nb::dict inspect_data(const Data& d) {
  const Inspection i =
      unlocked(nb::none(), [&](Watch& watch) { return inspect(d.source([&] { watch.poll(); })); });
  nb::dict result;
  result["rows"] = i.rows;
  result["first_time"] = i.first_time;
  result["last_time"] = i.latest_time;
  result["step"] = i.step;
  result["even"] = i.even;
  result["gaps"] = i.gaps;
  result["missing"] = i.missing;
  const auto list = [](const Vector& v) {
    return to_array(std::span(v.data(), static_cast<std::size_t>(v.size())));
  };
  result["smallest"] = list(i.smallest);
  result["largest"] = list(i.largest);
  result["mean"] = list(i.mean);
  result["sd"] = list(i.sd);
  result["noise"] = list(i.noise);
  result["relative_noise"] = list(i.relative_noise);
  return result;
}

}  // namespace

void bind_data(nb::module_& m) {
  nb::class_<Calendar>(m, "Calendar")
      .def_prop_ro("unit", [](const Calendar& c) { return std::string(unit_name(c.unit)); })
      .def_ro("offset", &Calendar::offset)
      .def("text", [](const Calendar& c, double time) { return time_text(c, time); });
  nb::class_<Data>(m, "Data")
      .def_ro("variables", &Data::variables)
      .def_prop_ro("inputs", &Data::input_words)
      .def_ro("time_input", &Data::time_input)
      .def_ro("name", &Data::name)
      .def_prop_ro("time_column", [](const Data& d) { return time_column(d.columns()); })
      .def_prop_ro("id_column", [](const Data& d) { return id_column(d.columns()); })
      .def_ro("certified_until", &Data::certified_until)
      .def_ro("calendar", &Data::calendar)
      .def(
          "times_as",
          [](const Data& d, std::size_t k, std::optional<Calendar> calendar) {
            Dataset one = d.columns();
            Trajectory& t = one.trajectories.emplace_back();
            for (long i = 0; i < d.runs.at(k).rows; ++i) t.times.push_back(d.runs[k].time(i));
            one = counted_as(std::move(one), calendar);
            return to_array(std::span<const double>(one.trajectories[0].times));
          },
          nb::arg("k"), nb::arg("calendar").none())
      .def_ro("keeps_missing", &Data::keeps_missing)
      .def_prop_ro("rows", &Data::rows)
      .def_prop_ro("ids",
                   [](const Data& d) {
                     std::vector<std::string> ids;
                     for (const auto& r : d.runs) ids.push_back(r.id);
                     return ids;
                   })
      .def_prop_ro("run_rows",
                   [](const Data& d) {
                     std::vector<long> rows;
                     for (const auto& r : d.runs) rows.push_back(r.rows);
                     return rows;
                   })
      .def("address",
           [](const Data& d, std::size_t k) {
             return reinterpret_cast<std::uintptr_t>(d.runs.at(k).states);
           })
      .def("find",
           [](const Data& d, const std::string& id) {
             Dataset ids{.source = d.name};
             for (const auto& r : d.runs) ids.trajectories.push_back({r.id, {}, {}});
             return &find_trajectory(ids, id) - ids.trajectories.data();
           })
      .def("times", &times_of)
      .def("states", &states_of)
      .def("input_values", &inputs_of)
      .def("write",
           [](const Data& d, const std::string& path) {
             unlocked(nb::none(), [&](Watch&) { write_observations(path, *d.dataset()); });
           })
      .def("split",
           [](const Data& d, nb::dict keywords) {
             const double holdout = words(split_words(), d.name, keywords).number("--holdout");
             Split parts =
                 unlocked(nb::none(), [&](Watch&) { return split_last(*d.dataset(), holdout); });
             return std::pair(data_of(std::move(parts.train), d.time_input),
                              data_of(std::move(parts.test), d.time_input));
           })
      .def("inspect", &inspect_data)
      .def("derivatives",
           [](const Data& d, const std::string& method) {
             const DerivativeRows rows = unlocked(nb::none(), [&](Watch&) {
               return derivative_rows(*d.dataset(), {.method = *derivative_from_name(method)});
             });
             return std::pair(to_array(rows.states), to_array(rows.derivatives));
           })
      .def("svg", &data_figure)
      .def("state", &data_state);
  m.def("data_from_state", &data_from_state);
  m.def("read_files", &read_files);
  m.def("read_bytes", &read_bytes);
  m.def("from_arrays", &from_arrays, nb::arg("times").none(), nb::arg("states"),
        nb::arg("inputs").none(), nb::arg("keywords"), nb::arg("name"),
        nb::arg("calendar").none() = nb::none());
  m.def("count_times", &count_times, nb::arg("seconds"), nb::arg("nanoseconds"), nb::arg("zoned"),
        nb::arg("keywords"), nb::arg("calendar").none());
  m.def("moments_of", &moments_of);
  m.def("is_date", [](const std::string& text) { return is_date(text); });
  m.def(
      "simulate",
      [](const std::string& system, nb::dict keywords, nb::object progress) {
        const cli::Arguments a = words(simulate_words(), system, keywords);
        cli::Simulation made =
            unlocked(progress, [&](Watch& watch) { return cli::simulate(a, observer(watch)); });
        if (made.status != SolveStatus::finished)
          throw std::runtime_error(in_python(cli::simulate_complaint(a, made)));
        made.data.source = system;
        return data_of(std::move(made.data));
      },
      nb::arg("system"), nb::arg("keywords"), nb::arg("progress").none());
}

}  // namespace odecast::python
