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
#include "odecast/filter/lagged_rows.hpp"
#include "odecast/filter/model_after.hpp"
#include "odecast/filter/state_file.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/observations/times.hpp"
#include "odecast/report/filter_page.hpp"

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
  o.bank = a.given("--bank");
  o.learn = a.given("--learn");
  needs(a, {"--drift", "--coefficients"}, o.learn, "`learn`");
  if (a.text("--drift") != "auto") o.drift = a.number("--drift");
  if (a.given("--lag")) o.lag = static_cast<int>(a.whole("--lag", 0, 1000));
  if (a.given("--ahead")) o.ahead = a.number("--ahead");
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

/// The filters of all trajectories.
class Following {
 public:
  Following(const Arguments& a, const Model& model) : a_(a), model_(model) {
    filter_options(a, model);  // refuses what is wrong before a table is read
  }

  /// Before the first row.
  void begin(const std::vector<std::string>& names, const std::string& source) {
    plan_ = filter_plan(a_, model_, names, source);
    Filter(model_, plan_->observing, plan_->options);  // refuses what is wrong before any row
  }
  bool has_begun() const { return plan_.has_value(); }

  FilterRow row(std::size_t trajectory, double time, const double* values,
                const std::string& where) {
    Vector observed(static_cast<Eigen::Index>(plan_->observed.size())),
        inputs(static_cast<Eigen::Index>(plan_->inputs.size()));
    for (Eigen::Index j = 0; j < observed.size(); ++j)
      observed[j] = values[plan_->observed[index(j)]];
    for (Eigen::Index j = 0; j < inputs.size(); ++j) {
      inputs[j] = values[plan_->inputs[index(j)]];
      if (!std::isfinite(inputs[j]))
        throw_data({where, fmt::format("no value of the input {}", model_.inputs.names[index(j)]),
                    "one in every row: what drives a system is not estimated", "Fill it in."});
    }
    Filter& filter = of(trajectory, where);
    const FilterRow row = filter.update(time, observed, inputs);
    summary_.add(row, options().level);
    last_ = row;
    observed_ = std::move(observed);
    return row;
  }

  const FilterSummary& summary() const { return summary_; }
  const FilterOptions& options() const { return plan_->options; }
  const FilterRow& last() const { return last_; }
  const Vector& observed() const { return observed_; }  ///< in it
  /// That of the last row.
  const Filter& filter() const { return filters_.at(now_); }
  const std::map<std::size_t, Filter>& all() const { return filters_; }

 private:
  /// Of a trajectory; what it knows of coefficients is what the one before has learnt.
  Filter& of(std::size_t trajectory, const std::string& where) {
    auto found = filters_.find(trajectory);
    if (found == filters_.end()) {
      if (a_.given("--state") && !filters_.empty())
        throw_data({where, "a second trajectory", "one, with `state`",
                    "Follow each with a state of its own."});
      found = filters_.emplace(trajectory, Filter(model_, plan_->observing, options())).first;
      if (filters_.size() > 1)
        found->second.learn_from(filters_.at(now_));
      else if (a_.given("--state") && std::filesystem::exists(a_.text("--state")))
        found->second.continue_from(filter_state_from_text(read_file(a_.text("--state")),
                                                           a_.text("--state"), model_,
                                                           plan_->observing, options()));
    }
    now_ = trajectory;
    return found->second;
  }

  const Arguments& a_;
  const Model& model_;
  std::optional<FilterPlan> plan_;
  std::map<std::size_t, Filter> filters_;
  std::size_t now_ = 0;
  FilterSummary summary_;
  FilterRow last_;
  Vector observed_;
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
      const double d = row.state.mean[i] - truth[i];
      squares += d * d, spread += row.state.sd[i] * row.state.sd[i], ++values;
      if (row.state.sd[i] > 0) nees += d * d / (row.state.sd[i] * row.state.sd[i]);
      inside += truth[i] >= row.state.lower[i] && truth[i] <= row.state.upper[i];
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
  const Dataset& data() const { return data_; }

 private:
  Dataset data_;
  AgainstTruth against_;
};

std::string in_words(const Following& f, const Truth& truth, double seconds) {
  const FilterSummary& s = f.summary();
  std::string text = fmt::format(
      "Followed {} row{} in {:.3g} s: {} of {} values inside their {:g} % band one row ahead "
      "({:.1f} %).\n",
      s.rows, s.rows == 1 ? "" : "s", seconds, s.inside, s.forecasts, 100 * f.options().level,
      100 * s.coverage());
  text += fmt::format(
      "Mean surprise {:.3g} (1 is normal), mean log score {:.4g}, method {} of {} observed.\n",
      s.surprise, s.log_score, kFilterMethodNames[static_cast<std::size_t>(f.filter().method())],
      fmt::join(f.filter().observing().columns, ", "));
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

/// A file that grows, and appears whole at the end; of what is not yet with it only so much is
/// held.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : file_(std::move(path)) {}
  void add(const std::string& text) {
    held_ += text;
    if (held_.size() > kMostHeld) write();
  }
  AtomicFile& finish() {
    write();
    file_.finish();
    return file_;
  }

 private:
  static constexpr std::size_t kMostHeld = 1 << 20;
  void write() {
    file_.write(held_);
    held_.clear();
  }
  AtomicFile file_;
  std::string held_;
};

/// Writes rows as they come out, to a stream at once and to a file that appears at the end; beside
/// them what is learnt, and now and then where the filter is.
class Answers {
 public:
  Answers(const Arguments& a, const Model& model, const Following& following, bool stream,
          std::string output)
      : a_(a),
        model_(model),
        following_(following),
        truth_(a, model),
        stream_(stream),
        to_file_(output != "-") {
    if (to_file_) rows_.emplace(std::move(output));
    if (a.given("--coefficients")) coefficients_.emplace(a.text("--coefficients"));
  }

  /// A row just seen, of a trajectory.
  void add(const FilterRow& row, std::size_t trajectory, const std::string& id) {
    if (!waiting_.empty() && now_ != trajectory) {
      if (a_.given("--report"))
        throw_usage({"--report", "more than one trajectory", "one",
                     "Choose it with --id, or follow them one by one."});
      end_of_trajectory();
    }
    now_ = trajectory;
    const int lag = following_.options().lag;
    waiting_.try_emplace(trajectory, lag, [this, trajectory, id](const FilterRow& out) {
      give(out, trajectory, id);
    });
    if (a_.given("--report") && row.status != FilterStatus::late) {
      record_.observed.add(following_.observed());
      if (following_.options().learn)
        record_.coefficients.add(user_coefficients(following_.filter()));
    }
    waiting_.at(trajectory).add(row);
    if (a_.given("--coefficients")) {
      if (!learning_) coefficients_->add(coefficients_header(following_.filter()));
      learning_ = true;
      coefficients_->add(format_coefficients_row(following_.filter(), row.time));
    }
    const auto now = std::chrono::steady_clock::now();
    if (a_.given("--state") && now - saved_ > std::chrono::seconds(1)) {
      save_state();
      saved_ = now;
    }
    throw_if_stopped();
  }

  void save_state() const {
    if (!a_.given("--state") || following_.all().empty()) return;
    const Filter& filter = following_.filter();
    write_file(a_.text("--state"), filter_state_to_text(filter.state(), model_, filter.observing(),
                                                        following_.options()));
  }

  void end() {
    end_of_trajectory();
    std::vector<FileText> files;
    std::string after;
    if (a_.given("--model") && !following_.all().empty()) {
      after = checked_model_text(model_after(following_.filter()));
      files.push_back({a_.text("--model"), after});
    }
    std::string page;
    if (a_.given("--report") && !record_.rows.kept().empty()) {
      page = render_page(filter_page(following_.filter(), page_content()));
      files.push_back({a_.text("--report"), page});
    }
    std::vector<AtomicFile*> grown;
    for (std::optional<GrowingFile>* one : {&rows_, &coefficients_})
      if (*one) grown.push_back(&(*one)->finish());
    write_files(files);
    for (AtomicFile* one : grown) one->commit();
    save_state();
  }

  bool to_file() const { return to_file_; }
  const Truth& truth() const { return truth_; }

 private:
  void end_of_trajectory() {
    if (const auto found = waiting_.find(now_); found != waiting_.end())
      found->second.end(following_.all().at(now_));
  }

  FilterPageContent page_content() const {
    FilterPageContent content{.record = record_,
                              .summary = following_.summary(),
                              .title = a_.given("--title") ? a_.text("--title") : "",
                              .origin = origin(a_)};
    const AgainstTruth& against = truth_.against();
    if (against.values == 0) return content;
    content.truth = truth_.data();
    const Json json = against.json();
    const auto number = [&](const char* name) {
      return fmt::format("{:.4g}", json[name].get<double>());
    };
    content.against_truth.rows = {{"Truth inside the band", number("coverage")},
                                  {"Root mean square error", number("rmse")},
                                  {"Spread over error", number("spread_error")},
                                  {"Normalised error squared", number("nees")}};
    return content;
  }

  void give(const FilterRow& row, std::size_t trajectory, const std::string& id) {
    if (a_.given("--report") && row.status != FilterStatus::late) record_.rows.add(row);
    const std::string* shown_id = id.empty() ? nullptr : &id;
    truth_.compare(row, trajectory);
    if (a_.json() && !to_file()) {
      if (stream_) print_text(row_json(row).dump() + "\n"), flush_output();
      return;
    }
    std::string text =
        begun_ ? "" : filter_header(model_, shown_id != nullptr, following_.options().ahead > 0);
    begun_ = true;
    text += format_filter_row(model_, row, shown_id);
    if (to_file()) {
      rows_->add(text);
      return;
    }
    print_text(text);
    flush_output();  // whoever reads has a row before the next one is read
  }

  Json row_json(const FilterRow& row) const {
    Json j = {{"t", row.time}};
    const auto band = [](const StateBand& b, Eigen::Index i) {
      return Json{
          {"mean", b.mean[i]}, {"sd", b.sd[i]}, {"lower", b.lower[i]}, {"upper", b.upper[i]}};
    };
    for (Eigen::Index i = 0; i < row.forecast.size(); ++i) {
      Json& of = j["state"][model_.variables[index(i)]];
      of = band(row.state, i);
      of["forecast"] = row.forecast[i];
      of["forecast_sd"] = row.forecast_sd[i];
      if (row.ahead) of["ahead"] = band(*row.ahead, i);
    }
    j["surprise"] = row.surprise;
    j["log_score"] = row.log_score;
    j["used"] = row.used;
    j["status"] = kFilterStatusNames[static_cast<std::size_t>(row.status)];
    return j;
  }

  const Arguments& a_;
  const Model& model_;
  const Following& following_;
  Truth truth_;
  bool stream_, to_file_;
  std::map<std::size_t, LaggedRows> waiting_;
  std::size_t now_ = 0;
  std::optional<GrowingFile> rows_, coefficients_;
  FilterRecord record_;
  bool begun_ = false, learning_ = false;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
};

int run_filter(const Arguments& a) {
  const Model model = load_model(a.positional(0));
  warn_of(a, model);
  const std::string path = a.positional(1);
  const bool stream = path == "-";
  const std::string output = a.given("--output") ? a.text("--output")
                             : stream            ? "-"
                                                 : "filtered.csv";
  std::vector<std::filesystem::path> read_from = {a.positional(0), path};
  needs(a, {"--title"}, a.given("--report"), "`report`");
  for (const char* option : {"--model", "--coefficients", "--state", "--report"})
    if (a.given(option)) {
      check_output(a.text(option), read_from);
      read_from.push_back(a.text(option));
    }
  if (output != "-") check_output(output, read_from);
  if (a.given("--state") && a.given("--lag"))
    throw_usage({"--state", "also --lag", "one of them",
                 "Rows that wait would be lost with a service that is stopped."});
  Following following(a, model);
  Answers answers(a, model, following, stream, output);
  const auto begin = std::chrono::steady_clock::now();
  try {
    if (stream) {
      follow_lines(model, following, [&](const FilterRow& row) { answers.add(row, 0, ""); });
    } else {
      ReadOptions read = reading(a, model);
      if (!a.given("--missing")) read.missing = MissingRule::keep;
      const TableInfo table =
          stream_observations({path}, read, [&](const TableInfo& info, const TableRow& row) {
            if (!following.has_begun()) following.begin(info.variables, info.source);
            answers.add(following.row(row.trajectory, row.time, row.values,
                                      fmt::format("{}, line {}", info.source, row.number)),
                        row.trajectory, info.ids[row.trajectory]);
            return true;
          });
      say_reading(a, table);
    }
  } catch (const Interrupted&) {
    answers.save_state();
    throw;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  answers.end();
  if (following.summary().rows == 0) throw_data({path, "no row", "rows to follow", "Give some."});
  if (a.json()) {
    Json json = filter_json(following.summary(), following.filter(), following.last(), seconds);
    if (answers.truth().against().values > 0) json["truth"] = answers.truth().against().json();
    put_json(json);
  } else if (answers.to_file())
    say(a, in_words(following, answers.truth(), seconds) + "\nRows written to " + output);
  else if (!a.quiet())
    print_error(in_words(following, answers.truth(), seconds) + "\n");
  if (const std::string why = following.summary().distrust(); !why.empty()) {
    complain(why);
    return kNotTrusted;
  }
  return kDone;
}

}  // namespace

FilterPlan filter_plan(const Arguments& a, const Model& model,
                       const std::vector<std::string>& names, const std::string& source) {
  FilterPlan plan{filter_options(a, model)};
  Observing& observing = plan.observing;
  std::vector<std::string> sums;
  if (a.given("--observe")) sums = a.words("--observe");
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
  for (const std::string& name : observing.columns) plan.observed.push_back(place(name));
  for (int j = 0; j < model.inputs.measured(); ++j)
    plan.inputs.push_back(place(model.inputs.names[static_cast<std::size_t>(j)]));
  plan.options.noise = noise_given(a, static_cast<Eigen::Index>(plan.observed.size()));
  return plan;
}

Json filter_json(const FilterSummary& s, const Filter& filter, const FilterRow& last,
                 double seconds) {
  Json state;
  for (std::size_t i = 0; i < filter.model().variables.size(); ++i)
    state[filter.model().variables[i]] = {{"mean", last.state.mean[static_cast<Eigen::Index>(i)]},
                                          {"sd", last.state.sd[static_cast<Eigen::Index>(i)]}};
  const std::string why = s.distrust();
  return {{"rows", s.rows},
          {"values", s.values},
          {"observed", filter.observing().columns},
          {"method", kFilterMethodNames[static_cast<std::size_t>(filter.method())]},
          {"coverage", s.coverage()},
          {"level", filter.options().level},
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
}

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
      {"--bank", "",
       "of models with masks or replicates: weigh the draws, too, as a filter\nbank does; else "
       "each "
       "member keeps its own",
       ""},
      {"--learn", "", "move the coefficients with the data, too; auto is iterated then", ""},
      {"--drift", "Q",
       "how fast they change: sd per root of a time unit, in units of their sd\nin the model; 0: "
       "not at all; auto: slowly, and while rows surprise fast",
       "auto"},
      {"--model", "FILE", "the model from where the rows end, with what was learnt", ""},
      {"--coefficients", "FILE", "CSV of every coefficient's mean and sd, row by row", ""},
      {"--lag", "N", "rows come out N rows later, smoothed by these", ""},
      {"--ahead", "T", "also the forecast T after every row", ""},
      {"--state", "FILE",
       "where the filter is: read at the start, if it is there, and kept as rows\ncome, so that a "
       "stopped service goes on with the same bits",
       ""},
      {"--level", "P", "confidence level of the band", fmt::format("{}", d.level)},
      {"--truth", "FILE", "the true states, data as for fit: the filter is compared with them", ""},
      report_option(),
      {"--title", "TEXT", "title of the page", ""},
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
