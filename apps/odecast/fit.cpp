#include "odecast/learning/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/learning/fields.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/report/fit_page.hpp"
#include "odecast/tuning/calibrate.hpp"
#include "odecast/tuning/embed.hpp"

namespace odecast::cli {
namespace {

/// Whether an input is the time column, which the reader takes as the time.
bool is_time(const Arguments& a, const std::string& name) {
  if (a.given("--time")) return name == a.text("--time");
  return lower_case(name) == "t" || lower_case(name) == "time";
}

/// Fewer than this leave no room for a look at held-out ones.
constexpr long kFewRows = 50;

/// As the command line spells a field's name.
std::string option_name(const std::string& field) {
  return spelled("`" + field + "`", Spelling::options);
}

}  // namespace

std::string time_input(const Arguments& a) {
  for (const auto& name : a.words("--inputs"))
    if (is_time(a, name)) return name;
  return {};
}

void check_data(const FitOptions& o, bool keeps_missing, bool driven, bool calibrate) {
  if (o.hold_inputs && !driven)
    throw_usage({"option `between`", "it without effect here", "`inputs`",
                 "Remove the option, or add what it needs."});
  if (keeps_missing && !std::holds_alternative<TrajectoryMethod>(o.method))
    throw_usage({"option `missing`", fmt::format("keep with `posterior={}`", method_name(o.method)),
                 "`posterior=trajectory`", "Derivatives need whole rows: use `missing=drop`."});
  if (keeps_missing && calibrate)
    throw_usage({"option `calibrate`", "`missing=keep`", "whole rows",
                 "Forecasts are judged row by row: use `missing=drop`."});
}

FitOptions fit_options(const Arguments& a) {
  std::map<std::string, std::string> given;
  for (const Field& f : fit_fields())
    if (const std::string name = option_name(f.name); a.given(name))
      given[f.name] = f.type == FieldType::flag ? "yes" : a.text(name);
  FitOptions o = odecast::fit_options(given);
  o.threads = a.threads();
  o.time_name = time_input(a);
  check_data(o, a.text("--missing") == "keep", a.given("--inputs"), a.given("--calibrate"));
  return o;
}

ReadOptions fit_columns(const Arguments& a) {
  ReadOptions read = reading(a);
  std::erase_if(read.inputs, [&](const std::string& name) { return is_time(a, name); });
  return read;
}

namespace {

/// The equations of one of the model's sets of terms.
std::string alone(const Model& model, std::size_t set) {
  Model one = model;
  PolynomialPart& part = *one.polynomial();
  part.sets = {part.sets[set]};
  part.sets[0].weight = 1;
  return format_equations(one, EquationFormat::text);
}

}  // namespace

Json fit_json(const Fit& fit) {
  const auto& record = fit.model.training;
  Json j = {{"status", record.status},
            {"reason", spelled(record.reason, Spelling::options)},
            {"objective", record.objective ? Json(*record.objective) : nullptr},
            {"rows", record.rows},
            {"trajectories", record.trajectories},
            {"variables", fit.model.variables},
            {"derivative", record.derivative},
            {"derivative_reason", fit.summary.derivative},
            {"iterations", record.iterations},
            {"seconds", fit.summary.seconds},
            {"seed", record.seed}};
  if (!fit.summary.minima.empty()) {
    j["minima"] = Json::array();
    for (const auto& m : fit.summary.minima)
      j["minima"].push_back({{"objective", m.objective}, {"starts", m.count}});
    j["seeds"] = fit.summary.seeds;
  }
  if (fit.summary.log_evidence) j["log_evidence"] = *fit.summary.log_evidence;
  for (const DegreeTrial& t : fit.summary.degrees)
    j["degrees"].push_back({{"degree", t.degree},
                            {"terms", t.terms},
                            {"log_evidence", t.log_evidence},
                            {"log_prior", t.log_prior}});
  if (fit.summary.terms > 0) j["terms"] = fit.summary.terms;
  if (const auto& r = fit.summary.rivals)
    j["rivals"] = {
        {"count", r->count}, {"probability", r->probability}, {"next", alone(fit.model, r->next)}};
  if (const auto& c = fit.summary.conserved)
    j["conserved"] = {{"combination", in_words(*c, fit.model.variables)},
                      {"weights", std::vector<double>(c->weights.begin(), c->weights.end())},
                      {"value", c->value}};
  if (const auto& part = fit.model.trajectory) {
    j["noise"] = std::vector<double>(fit.model.noise.begin(), fit.model.noise.end());
    if (const Vector& q = fit.model.relative_noise; q.size() > 0)
      j["relative_noise"] = std::vector<double>(q.begin(), q.end());
    if (const auto& logs = fit.model.log_noise; !logs.empty()) {
      j["log_noise"] = Json::array();
      for (std::size_t i = 0; i < logs.size(); ++i)
        if (logs[i]) j["log_noise"].push_back(fit.model.variables[i]);
    }
    if (part->precision > 0) j["precision"] = part->precision;
    j["noise_ratio"] = part->noise_ratio;
    j["autocorrelation"] = part->autocorrelation;
    j["continuity"] = part->continuity;
    j["misfit"] = part->misfit;
    if (const auto& path = fit.summary.path) {
      if (path->lacking > 0) j["lacking"] = path->lacking;
      if (path->noise_share > 0) j["noise_share"] = path->noise_share;
      if (path->kurtosis > 0) j["kurtosis"] = path->kurtosis;
    }
    if (const Forcing& forcing = part->forcing; forcing.present()) {
      const Vector sd = fit.model.scaling.scale.cwiseProduct(forcing.sd);
      j["forcing"] = {{"sd", std::vector<double>(sd.begin(), sd.end())},
                      {"interval", forcing.interval * fit.model.scaling.time}};
    }
    j["sets"] = fit.model.polynomial()->sets.size();
  }
  if (const auto& e = fit.model.embedding)
    j["embedding"] = {
        {"coordinates", embedding_name(*e)}, {"lag", e->lag}, {"delay", e->lag * e->step}};
  if (const auto& c = fit.model.calibration) j["calibration"] = calibration_json(*c);
  return j;
}

namespace {

std::string rivals_in_words(const Rivals& rivals, const Model& model) {
  const auto& sets = model.polynomial()->sets;
  return fmt::format(
      "Equations that explain the rows as well, and differ elsewhere: {} set{}, of probability "
      "{:.2g}{}. The {} ({:.2g}):\n{}",
      rivals.count, rivals.count == 1 ? "" : "s", rivals.probability,
      rivals.count == 1 ? "" : " together", rivals.count == 1 ? "other one" : "next",
      sets[rivals.next].weight, alone(model, rivals.next));
}

/// "The noise grows with the state: of x 5 % of its value, and 0.02 besides. It is that of
/// logarithms: of y a factor of 1.2."; empty for constant noise.
std::string relative_noise_in_words(const Model& model) {
  std::string words, logs;
  for (Eigen::Index i = 0; i < model.relative_noise.size(); ++i) {
    const double q = model.relative_noise[i], sd = model.noise[i];
    if (!(q > 0) || !(model.size[i] > 0)) continue;
    if (const double s = model.log_noise_sd(i); s > 0) {
      logs += fmt::format("{} of {} by a factor of {:.3g}", logs.empty() ? "" : ",",
                          model.variables[static_cast<std::size_t>(i)], std::exp(s));
      continue;
    }
    words += fmt::format("{} of {} {:.2g} % of its value", words.empty() ? "" : ",",
                         model.variables[static_cast<std::size_t>(i)],
                         100 * sd * std::sqrt(q) / model.size[i]);
    if (q < 0.999) words += fmt::format(" and {:.2g} besides", sd * std::sqrt(1 - q));
  }
  if (!words.empty()) words = "The noise grows with the state:" + words + ".";
  if (!logs.empty())
    words += (words.empty() ? "" : " ") +
             ("The noise is that of logarithms:" + logs + " (one standard deviation).");
  return words;
}

int run_fit(const Arguments& a) {
  FitOptions options = fit_options(a);
  const std::string output = a.text("--output");
  const auto inputs = a.paths(0);
  check_output(output, inputs);
  const std::string report = a.text("--report");
  if (a.given("--report")) {
    check_two_outputs("--output", output, "--report", report);
    check_output(report, inputs);
  }
  needs(a, {"--title"}, a.given("--report"), "`report`");
  const bool calibrate = a.given("--calibrate");
  needs(a, {"--holdout"}, calibrate, "`calibrate` (odecast split only cuts)");
  Fit result;
  TableInfo table;
  Evaluation judged;
  std::optional<Dataset> data;  // where a page shows it, or the trainer needs it
  {
    const Observer observer = progress(a);
    ReadOptions read = fit_columns(a);
    read.may_keep = std::holds_alternative<TrajectoryMethod>(options.method) && !calibrate;
    if (a.text("--posterior") == "trajectory" && !a.given("--missing") && read.may_keep)
      read.missing = MissingRule::keep;
    // Files are gone through row by row; a pipe can be read only once.
    const bool again = std::all_of(inputs.begin(), inputs.end(), can_be_read_again);
    if (options.embed) {
      data.emplace(read_observations(inputs, read, &table));
      options = choose_embedding(*data, options, observer);
    }
    if (calibrate) {
      if (!data) data.emplace(read_observations(inputs, read, &table));
      result = fit_calibrated(*data, a.number("--holdout"), options, observer, &judged);
    } else if (data) {
      result = fit(*data, options, observer);
    } else if (again && streams(options.method)) {
      const ObservationSource source = source_of_files(inputs, read);
      result = fit(source, options, observer);
      table = *source.table;
    } else {
      result = fit(data.emplace(read_observations(inputs, read, &table)), options, observer);
    }
  }
  say_reading(a, table);
  const FitSummary& summary = result.summary;
  const bool good = summary.usable;
  if (judged.blown_up > 0.05)
    warn(a, fmt::format(
                "{:.0f} % of the trajectories that calibrate blow up, and bands are of the others",
                100 * judged.blown_up));
  const bool with_page = good && a.given("--report");
  if (good) {
    const std::string text = checked_model_text(result.model);
    std::vector<FileText> files = {{output, text}};
    std::string page;
    if (with_page) {
      if (!data) data = read_observations(inputs, fit_columns(a));
      Origin made = origin(a);
      if (calibrate) made.settings.emplace_back("held out to calibrate", a.text("--holdout"));
      page = render_page(fit_page(*data, result, options, {a.text("--title"), std::move(made)}));
      files.push_back({report, page});
    }
    write_files(files);
  }

  const auto& record = result.model.training;
  if (a.json()) {
    Json j = fit_json(result);
    if (good) j["output"] = output;
    if (with_page) j["report"] = report;
    put_json(j);
  } else if (good) {
    const std::string by =
        result.model.polynomial() ? record.trainer
        : result.model.ensemble()
            ? "ensemble, trainer " + record.trainer
            : fmt::format("dropout {:g}, trainer {}",
                          std::get<DropoutMethod>(options.method).dropout, record.trainer);
    say(a, fmt::format("Fitted {} rows in {} trajector{} by {} in {:.3g} s{}.", record.rows,
                       record.trajectories, record.trajectories == 1 ? "y" : "ies", by,
                       summary.seconds, summary.trusted ? ": " + record.reason : ""));
    if (a.text("--derivative") == "auto") say(a, "Derivative: " + summary.derivative + ".");
    if (record.objective) {
      say(a, fmt::format("Expected dropout objective {:.7g} (mean squared error of {}, masks "
                         "averaged exactly).",
                         *record.objective,
                         options.kind == ModelKind::map ? "the next row" : "du/dt"));
      say(a, fmt::format("\nMean {}, with the standard deviation over the masks:",
                         options.kind == ModelKind::map ? "map" : "field"));
      say(a, format_equations(result.model, EquationFormat::text));
    }
    if (!summary.degrees.empty()) {
      say(a, "Degree  terms  log evidence  log prior");
      for (const DegreeTrial& t : summary.degrees)
        say(a, fmt::format("{:6}  {:5}  {:12.2f}  {:9.2f}", t.degree, t.terms, t.log_evidence,
                           t.log_prior));
    } else if (summary.log_evidence) {
      say(a, fmt::format("Log evidence {:.7g}.", *summary.log_evidence));
    }
    if (result.model.polynomial()) {
      std::string noise;
      for (int i = 0; i < result.model.noise.size(); ++i)
        noise +=
            fmt::format("{}{} {:.3g}", i ? ", " : "",
                        result.model.variables[static_cast<std::size_t>(i)], result.model.noise[i]);
      // A smoother can tell the noise where rows stand close, and there is some.
      if (const auto& part = result.model.trajectory;
          part && !part->misfit && part->precision == 0 && part->noise_ratio > 0.1 &&
          part->noise_ratio < 10)
        noise += options.noise.size() > 0
                     ? fmt::format(" (residuals: {:.2f} times that)", part->noise_ratio)
                     : fmt::format(" ({:.2f} times the smoother's)", part->noise_ratio);
      if (const auto& part = result.model.trajectory; part && part->precision > 0)
        say(a, fmt::format("The data are right to {:.1g} of their size, and what they err by is "
                           "smooth, as a solver's is: it counts neither as noise nor as motion.",
                           part->precision));
      else if (!noise.empty())
        say(a, "Standard deviation of the noise: " + noise + ".");
      if (const std::string said = relative_noise_in_words(result.model); !said.empty())
        say(a, said);
      if (const auto& e = result.model.embedding)
        say(a, fmt::format(
                   "Embedded as {}{}: {}. These are equations of the embedding, not of "
                   "nature's variables; forecasts are of {}.",
                   embedding_name(*e),
                   a.text("--embed") == "auto"
                       ? " by " + record.trainer + ", of the least energy score on held-out rows"
                       : "",
                   fmt::join(result.model.variables, ", "), result.model.variables[0]));
      say(a, "\n" + describe_equations(result.model));
      if (summary.rivals) say(a, rivals_in_words(*summary.rivals, result.model));
      if (const auto& c = summary.conserved)
        say(a, fmt::format("{}{} is constant within the noise: the equations are not unique; leave "
                           "one of these variables out (--variables).\n",
                           in_words(*c, result.model.variables),
                           record.trajectories == 1 ? fmt::format(" = {:.4g}", c->value)
                                                    : " of each trajectory"));
    }
    if (!summary.perhaps_positive.empty())
      say(a, fmt::format("{} {} positive in all rows, and bands of observations near the least "
                         "reach below 0: --positive keeps them above.\n",
                         fmt::join(summary.perhaps_positive, ", "),
                         summary.perhaps_positive.size() == 1 ? "is" : "are"));
    if (result.model.trajectory && record.rows < kFewRows)
      say(a, fmt::format("The bands rest on {} rows, too few to be checked on rows that are held "
                         "out (--calibrate asks for some 40): trust them for short times.\n",
                         record.rows));
    if (const auto& c = result.model.calibration) {
      say(a,
          fmt::format("{} {:g} % of the rows were held out: of {} forecasts there the {:g} % band "
                      "of the draws holds {:.3f} of the {}.",
                      c->smoothed ? "One after another," : "The last", 100 * a.number("--holdout"),
                      c->starts, 100 * c->level, mean_of(c->before).value,
                      c->smoothed   ? "smoothed rows, but for what the smoother does not know"
                      : c->observed ? "observations"
                                    : "rows"));
      say(a, calibration_text(*c));
      say(a, guarantee_text(*c) + (c->observed ? " These are bands of observations." : ""));
      if (!c->smoothed)
        say(a, fmt::format("Forecasts continue from {}, where the held-out rows begin, unless "
                           "--init is given.",
                           moment_text(result.model.calendar, result.model.last_time)));
    }
    if (!result.model.last_trajectory.empty())
      say(a, fmt::format("Forecasts continue trajectory '{}', the last one; to continue another, "
                         "give its last row with --init and its time with --from.",
                         result.model.last_trajectory));
    say(a, "Model written to " + output);
    if (with_page) say(a, "Page written to " + report);
  }
  if (summary.trusted) return kDone;
  complain("training: " + summary.reason +
           (good ? "; the model was written, but do not trust it" : "; no model was written"));
  return kNotTrusted;
}

/// The table of the library's fields as options.
std::vector<Option> field_options() {
  std::vector<Option> options;
  for (const Field& f : fit_fields()) {
    Option o{.name = option_name(f.name),
             .value = f.value,
             .help = wrapped(spelled(f.help, Spelling::options), 60),
             .initial = f.type == FieldType::flag ? "" : f.initial,
             .bare = f.bare,
             .group = spelled(f.group, Spelling::options)};
    if (f.type == FieldType::choice) o.choices = f.choices;
    options.push_back(std::move(o));
  }
  return options;
}

}  // namespace

Command fit_command() {
  std::vector<Option> options = field_options();
  for (Option& o : reading_options()) {
    if (o.name == "--missing") {
      o.help +=
          ";\nkeep what else was observed (trajectory only, its\ndefault where --posterior names "
          "it)";
      o.choices.push_back("keep");
    }
    options.push_back(o);
  }
  options.push_back(threads_option());
  options.push_back(
      {"--calibrate", "",
       "hold one part of the rows after another out and calibrate the bands\nthere; the model is "
       "that of all rows",
       ""});
  options.push_back({"--holdout", "F", "the share of the rows that is held out at a time", "0.2"});
  options.push_back(report_option());
  options.push_back({"--title", "TEXT", "title of the page", ""});
  options.push_back({"--output", "FILE", "model to write", "model.json", 'o'});
  return {
      "fit",
      "learn a model from observed trajectories",
      "Learns du/dt = f(u) from observed trajectories. Without further options: the polynomial "
      "equations that the\n"
      "observations support, with the posterior of their coefficients. With --dropout: the paper's "
      "Bayesian\n"
      "polynomial-kernel network, trained on derivatives taken from the data. docs/choosing.md "
      "says which when.",
      "odecast fit train.csv -o model.json\n"
      "odecast fit train.csv --dropout 0.25 -o model.json                  # the paper's method\n"
      "odecast fit train.csv --posterior regression --degree auto -o model.json\n"
      "odecast fit train.csv --scale none --trainer adam -o paper.json     # as in the paper\n"
      "odecast fit driven.csv --inputs F --degree 3",
      {{"DATA",
        "a table with a time column and one column per variable: CSV,\n"
        "                         .npy or .npz; - is standard input; several files are\n"
        "                         several trajectories",
        true, true}},
      with_common(std::move(options)),
      run_fit};
}

}  // namespace odecast::cli
