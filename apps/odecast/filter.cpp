#include "odecast/filter/filter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/stop.hpp"
#include "odecast/core/text.hpp"
#include "odecast/filter/filter_file.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/observations/times.hpp"

namespace odecast::cli {
namespace {

FilterOptions filter_options(const Arguments& a, const Model& model) {
  FilterOptions o;
  const auto names = kFilterMethodNames;
  o.method = static_cast<FilterMethod>(std::find(names.begin(), names.end(), a.text("--method")) -
                                       names.begin());
  if (a.given("--members")) o.members = static_cast<int>(a.whole("--members", 3, 1'000'000));
  if (a.given("--init")) o.init = to_vector(a.numbers("--init"));
  if (a.given("--init-sd")) o.init_sd = to_vector(a.numbers("--init-sd"));
  if (a.given("--from")) o.from = time_given(a, "--from", model);
  needs(a, {"--init-sd", "--from"}, a.given("--init"), "`init`");
  o.robust = a.given("--robust");
  needs(a, {"--gate"}, o.robust, "`robust`");
  o.gate = a.number("--gate");
  o.level = a.number("--level");
  o.seed = a.seed();
  o.threads = a.threads();
  return o;
}

/// One or one per observed column.
std::optional<Vector> noise_given(const Arguments& a, Eigen::Index columns) {
  if (!a.given("--noise")) return std::nullopt;
  const Vector noise = to_vector(a.numbers("--noise"));
  return noise.size() == 1 ? Vector(Vector::Constant(columns, noise[0])) : noise;
}

/// Where the columns of a table go.
struct Columns {
  Observing observing;
  std::vector<std::size_t> observed, inputs;  ///< places in a row of the table

  Columns(const Arguments& a, const Model& model, const std::vector<std::string>& names,
          const std::string& source) {
    std::vector<std::string> sums;
    if (a.given("--observe")) sums = a.words("--observe");
    std::vector<std::string> known = names;
    const auto is_variable = [&](const std::string& name) {
      const auto variables = model.measured_variables();
      return std::find(variables.begin(), variables.end(), name) != variables.end();
    };
    if (!sums.empty() && std::none_of(names.begin(), names.end(), is_variable))
      observing.H.resize(0, model.dimension());
    else
      observing = observing_variables(model, names, source);
    for (const std::string& text : sums) add_observing(observing, model, text);
    const auto place = [&](const std::string& name) {
      const auto at = std::find(names.begin(), names.end(), name);
      if (at == names.end())
        throw_data({source, fmt::format("no column {}", name),
                    fmt::format("one among {}", fmt::join(names, ", ")), "Name it in the table."});
      return static_cast<std::size_t>(at - names.begin());
    };
    for (const std::string& name : observing.columns) observed.push_back(place(name));
    for (int j = 0; j < model.inputs.measured(); ++j)
      inputs.push_back(place(model.inputs.names[static_cast<std::size_t>(j)]));
  }
};

/// The filters of all trajectories, and where their rows go.
class Following {
 public:
  Following(const Arguments& a, const Model& model)
      : a_(a), model_(model), options_(filter_options(a, model)) {}

  /// Before the first row.
  void begin(const std::vector<std::string>& names, const std::string& source) {
    columns_.emplace(a_, model_, names, source);
    options_.noise = noise_given(a_, static_cast<Eigen::Index>(columns_->observed.size()));
    Filter(model_, columns_->observing, options_);  // refuses what is wrong before any row
  }
  bool has_begun() const { return columns_.has_value(); }

  FilterRow row(std::size_t trajectory, double time, const double* values,
                const std::string& where) {
    Vector observed(static_cast<Eigen::Index>(columns_->observed.size())),
        inputs(static_cast<Eigen::Index>(columns_->inputs.size()));
    for (Eigen::Index j = 0; j < observed.size(); ++j)
      observed[j] = values[columns_->observed[index(j)]];
    for (Eigen::Index j = 0; j < inputs.size(); ++j) {
      inputs[j] = values[columns_->inputs[index(j)]];
      if (!std::isfinite(inputs[j]))
        throw_data({where, fmt::format("no value of the input {}", model_.inputs.names[index(j)]),
                    "one in every row: what drives a system is not estimated", "Fill it in."});
    }
    auto found = filters_.find(trajectory);
    if (found == filters_.end())
      found = filters_.emplace(trajectory, Filter(model_, columns_->observing, options_)).first;
    const FilterRow row = found->second.update(time, observed, inputs);
    summary_.add(row, options_.level);
    last_ = row;
    return row;
  }

  const FilterSummary& summary() const { return summary_; }
  const FilterOptions& options() const { return options_; }
  const FilterRow& last() const { return last_; }
  FilterMethod method() const { return filters_.begin()->second.method(); }
  const std::vector<std::string>& observed() const { return columns_->observing.columns; }

 private:
  const Arguments& a_;
  const Model& model_;
  FilterOptions options_;
  std::optional<Columns> columns_;
  std::map<std::size_t, Filter> filters_;
  FilterSummary summary_;
  FilterRow last_;
};

/// Lines of standard input, each as soon as it is there.
class Lines {
 public:
  Lines() : file_("-") {}
  /// Without its end; false after the last one.
  bool next(std::string& line) {
    for (;;) {
      const auto end = held_.find('\n', looked_);
      if (end != std::string::npos) {
        line = held_.substr(0, end);
        held_.erase(0, end + 1);
        looked_ = 0;
        break;
      }
      looked_ = held_.size();
      if (held_.size() > kLongest)
        throw_data({"standard input", "a line of more than a million characters", "rows of a table",
                    "Send one row per line."});
      char part[4096];
      const std::size_t size = file_.read(part, sizeof part);
      if (size == 0) {
        if (held_.empty()) return false;
        line = std::move(held_);
        held_.clear();
        break;
      }
      held_.append(part, size);
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return true;
  }

 private:
  static constexpr std::size_t kLongest = 1'000'000;
  FileReader file_;
  std::string held_;
  std::size_t looked_ = 0;
};

std::vector<std::string> cells(const std::string& line, char separator) {
  std::vector<std::string> result;
  if (separator == ',')
    if (auto list = split_list(line)) return *list;
  for (const std::string& cell : split(line, separator)) result.emplace_back(trimmed(cell));
  return result;
}

/// A table that comes line by line: a header, separated as it is, and rows of numbers; the time is
/// the model's, or called t or time.
void follow_lines(const Model& model, Following& following,
                  const std::function<void(const FilterRow&)>& give) {
  Lines lines;
  std::string line;
  long number = 0;
  char separator = ',';
  std::vector<std::string> names;
  std::size_t time_column = 0;
  std::vector<double> values;
  while (lines.next(line)) {
    ++number;
    if (trimmed(line).empty()) continue;
    const std::string where = fmt::format("standard input, line {}", number);
    if (names.empty()) {
      for (const char c : {';', '\t', '|'})
        if (std::count(line.begin(), line.end(), c) >
            std::count(line.begin(), line.end(), separator))
          separator = c;
      names = cells(line, separator);
      const auto is_time = [&](const std::string& name) {
        return name == model.time_name || lower_case(name) == "t" || lower_case(name) == "time";
      };
      const auto at = std::find_if(names.begin(), names.end(), is_time);
      if (at == names.end())
        throw_data({where, fmt::format("the columns {}", fmt::join(names, ", ")),
                    fmt::format("one of times, {} or t", model.time_name),
                    "Begin the stream with a line of names."});
      time_column = static_cast<std::size_t>(at - names.begin());
      following.begin(names, "standard input");
      values.assign(names.size(), 0);
      continue;
    }
    const std::vector<std::string> row = cells(line, separator);
    if (row.size() != names.size())
      throw_data({where, fmt::format("{} cells", row.size()),
                  fmt::format("{}, as many as the first line has names", names.size()),
                  "Leave cells empty where nothing was observed."});
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (j == time_column && model.calendar) {
        const TimeColumn times{TimeForm::text, *model.calendar};
        std::string fault;
        const auto time = times.number(row[j], &fault);
        if (!time) throw_data({where, shown(row[j]), "a date", "As in the model's data: " + fault});
        values[j] = *time;
        continue;
      }
      const auto value = is_missing(row[j]) ? NAN : parse_number(row[j]).value_or(INFINITY);
      if (std::isinf(value) || (j == time_column && std::isnan(value)))
        throw_data({fmt::format("{}, column {}", where, names[j]), shown(row[j]), "a finite number",
                    "Correct the value, or leave the cell empty."});
      values[j] = value;
    }
    give(following.row(0, values[time_column], values.data(), where));
  }
  if (names.empty())
    throw_data({"standard input", "no lines", "a line of names and rows below it", "Send some."});
}

/// How the states compare with the truth at the same times.
struct AgainstTruth {
  double squares = 0, spread = 0, nees = 0, inside = 0, values = 0;

  void add(const FilterRow& row, const Eigen::VectorXd& truth) {
    for (Eigen::Index i = 0; i < truth.size(); ++i) {
      if (!std::isfinite(truth[i])) continue;
      const double d = row.mean[i] - truth[i];
      squares += d * d, spread += row.sd[i] * row.sd[i], ++values;
      if (row.sd[i] > 0) nees += d * d / (row.sd[i] * row.sd[i]);
      inside += truth[i] >= row.lower[i] && truth[i] <= row.upper[i];
    }
  }
  Json json() const {
    return {{"rmse", std::sqrt(squares / values)},
            {"spread_error", std::sqrt(spread / squares)},
            {"nees", nees / values},
            {"coverage", inside / values},
            {"values", values}};
  }
};

/// Rows of the truth by trajectory and time.
class Truth {
 public:
  Truth(const Arguments& a, const Model& model) {
    if (a.given("--truth")) data_ = read_truth(a, model, a.text("--truth"));
  }
  void compare(const FilterRow& row, std::size_t trajectory) {
    if (trajectory >= data_.trajectories.size()) return;
    const Trajectory& t = data_.trajectories[trajectory];
    const double slack = 1e-9 * std::max(1.0, std::abs(row.time));
    const auto at = std::lower_bound(t.times.begin(), t.times.end(), row.time - slack);
    if (at == t.times.end() || *at > row.time + slack) return;
    against_.add(row, t.states.row(at - t.times.begin()).transpose());
  }
  const AgainstTruth& against() const { return against_; }

 private:
  Dataset data_;
  AgainstTruth against_;
};

Json filter_json(const Following& f, const Model& model, const Truth& truth, double seconds) {
  const FilterSummary& s = f.summary();
  Json state;
  for (std::size_t i = 0; i < model.variables.size(); ++i)
    state[model.variables[i]] = {{"mean", f.last().mean[static_cast<Eigen::Index>(i)]},
                                 {"sd", f.last().sd[static_cast<Eigen::Index>(i)]}};
  const std::string why = s.distrust();
  Json j = {{"rows", s.rows},
            {"values", s.values},
            {"observed", f.observed()},
            {"method", kFilterMethodNames[static_cast<std::size_t>(f.method())]},
            {"coverage", s.coverage()},
            {"level", f.options().level},
            {"surprise", s.surprise},
            {"log_score", s.log_score},
            {"ranks", s.ranks},
            {"gated", s.gated},
            {"late", s.late},
            {"lost", s.lost},
            {"blown_up", s.blown_up},
            {"state", state},
            {"status", why.empty() ? "followed" : "not_followed"},
            {"reason", why},
            {"seconds", seconds}};
  if (truth.against().values > 0) j["truth"] = truth.against().json();
  return j;
}

std::string in_words(const Following& f, const Truth& truth, double seconds) {
  const FilterSummary& s = f.summary();
  std::string text = fmt::format(
      "Followed {} row{} in {:.3g} s: {} of {} values inside their {:g} % band one row ahead "
      "({:.1f} %).\n",
      s.rows, s.rows == 1 ? "" : "s", seconds, s.inside, s.forecasts, 100 * f.options().level,
      100 * s.coverage());
  text += fmt::format(
      "Mean surprise {:.3g} (1 is normal), mean log score {:.4g}, method {} of {} observed.\n",
      s.surprise, s.log_score, kFilterMethodNames[static_cast<std::size_t>(f.method())],
      fmt::join(f.observed(), ", "));
  if (s.gated + s.late + s.lost + s.blown_up > 0)
    text += fmt::format(
        "{} rows gated, {} late, the system lost {} time{}; {} members blew up and were "
        "replaced.\n",
        s.gated, s.late, s.lost, s.lost == 1 ? "" : "s", s.blown_up);
  if (const AgainstTruth& t = truth.against(); t.values > 0)
    text += fmt::format(
        "Against the truth: rms error {:.4g}, spread over error {:.3g}, {:.1f} % inside the "
        "band.\n",
        std::sqrt(t.squares / t.values), std::sqrt(t.spread / t.squares),
        100 * t.inside / t.values);
  text.pop_back();
  return text;
}

int run_filter(const Arguments& a) {
  const Model model = load_model(a.positional(0));
  warn_of(a, model);
  const std::string path = a.positional(1);
  const bool stream = path == "-";
  const std::string output = a.given("--output") ? a.text("--output")
                             : stream            ? "-"
                                                 : "filtered.csv";
  const bool to_file = output != "-";
  if (to_file) check_output(output, {a.positional(0), path});
  Following following(a, model);
  Truth truth(a, model);
  std::string text;  // not written yet
  bool begun = false;
  const auto begin = std::chrono::steady_clock::now();
  const auto give = [&](const FilterRow& row, std::size_t trajectory, const std::string* id) {
    if (!begun) text = filter_header(model, id != nullptr);
    begun = true;
    text += format_filter_row(model, row, id);
    truth.compare(row, trajectory);
    throw_if_stopped();
    if (to_file || a.json()) return;
    print_text(text);
    flush_output();  // whoever reads has a row before the next one is read
    text.clear();
  };
  if (stream) {
    follow_lines(model, following, [&](const FilterRow& row) { give(row, 0, nullptr); });
  } else {
    ReadOptions read = reading(a, model);
    if (!a.given("--missing")) read.missing = MissingRule::keep;
    const TableInfo table =
        stream_observations({path}, read, [&](const TableInfo& info, const TableRow& row) {
          if (!following.has_begun()) following.begin(info.variables, info.source);
          const std::string& id = info.ids[row.trajectory];
          give(following.row(row.trajectory, row.time, row.values,
                             fmt::format("{}, line {}", info.source, row.number)),
               row.trajectory, id.empty() ? nullptr : &id);
          return true;
        });
    say_reading(a, table);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (to_file) write_file(output, text);
  if (following.summary().rows == 0) throw_data({path, "no row", "rows to follow", "Give some."});
  if (a.json())
    put_json(filter_json(following, model, truth, seconds));
  else if (to_file)
    say(a, in_words(following, truth, seconds) + "\nRows written to " + output);
  else if (!a.quiet())
    print_error(in_words(following, truth, seconds) + "\n");
  if (const std::string why = following.summary().distrust(); !why.empty()) {
    complain(why);
    return kNotTrusted;
  }
  return kDone;
}

}  // namespace

Command filter_command() {
  const FilterOptions d;
  std::vector<Option> options = {
      {"--method",
       "WHICH",
       "particle: any distribution; iterated: an ensemble, for many\nvariables; kalman: the same "
       "with one linear step per row; auto:\nparticle up to six variables, else iterated",
       "auto",
       0,
       {"auto", "particle", "iterated", "kalman"}},
      {"--members", "N", "states that are followed (default: 1000 particles, 40 members)", ""},
      {"--noise", "S,…",
       "sd of the observations, one or one per observed column (default:\nthe model's)", ""},
      {"--observe", "SUM,…", "columns that are sums of variables, such as 'total = x + 2*y'", ""},
      {"--init", "A,B,…",
       "state at the start (default: the end of the model's data, where the\nfirst row is near it; "
       "else what the first row says)",
       ""},
      {"--init-sd", "A,B,…", "its standard deviation", ""},
      {"--from", "T", "the time of --init (default: that of the first row)", ""},
      {"--robust", "", "do not use rows that are less likely than --gate; a third in a row is", ""},
      {"--gate", "P", "that probability", fmt::format("{}", d.gate)},
      {"--level", "P", "confidence level of the band", fmt::format("{}", d.level)},
      {"--truth", "FILE", "the true states, data as for fit: the filter is compared with them", ""},
      seed_option(),
      threads_option(),
      {"--output", "FILE",
       "CSV to write, - for standard output (default: filtered.csv, and of\na stream standard "
       "output)",
       "", 'o'}};
  for (Option& o : reading_options_beside_model()) {
    if (o.name == "--missing") {
      o.help = "a missing cell: not observed, or an error, or drop its row";
      o.initial = "keep";
      o.choices.insert(o.choices.begin(), "keep");
    }
    options.push_back(o);
  }
  return {"filter",
          "follow a system with a learnt model, row by row",
          "For every row of observations the state and its band, given all rows so far, and what "
          "was foretold\n"
          "before the row was seen. Columns may be missing, cells empty, times uneven. From "
          "standard input each\n"
          "row is answered before the next is read.",
          "odecast filter model.json observations.csv -o filtered.csv\n"
          "sensor | odecast filter model.json - | consumer",
          {{"MODEL", "file written by odecast fit"},
           {"DATA", "observations as for fit, or - for rows as they come"}},
          with_common(std::move(options)),
          run_filter};
}

}  // namespace odecast::cli
