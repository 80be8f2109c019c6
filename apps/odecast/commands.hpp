#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "apps/odecast/arguments.hpp"
#include "odecast/core/matrix.hpp"
#include "odecast/core/observer.hpp"
#include "odecast/filter/filter.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/report/page_parts.hpp"
#include "odecast/scores/attractor.hpp"
#include "odecast/scores/evaluate.hpp"
#include "odecast/scores/lyapunov.hpp"
#include "odecast/scores/scores.hpp"
#include "odecast/systems/catalogue.hpp"
#include "odecast/tuning/tune.hpp"

namespace odecast::cli {

using Json = nlohmann::ordered_json;

/// The exit codes of every command (DESIGN §5).
enum Exit { kDone = 0, kNotTrusted = 1, kUsage = 2, kBadData = 3, kFileFailure = 4 };

Command inspect_command();
Command simulate_command();
Command fit_command();
Command forecast_command();
Command filter_command();
Command score_command();
Command equations_command();
Command predict_command();
Command split_command();
Command plot_command();
Command systems_command();
Command lyapunov_command();
Command attractor_command();
Command evaluate_command();
Command calibrate_command();
Command reproduce_command();
Command compare_command();
Command tune_command();

// Words turned into options, and results into the object that --json prints: what the Python
// package shares with the command line. Options that name files are not looked at.

FitOptions fit_options(const Arguments& arguments);
/// Throws Error (usage) for options that such data do not go with.
void check_data(const FitOptions& options, bool keeps_missing, bool driven, bool calibrate);
/// The input that is the time column; empty where none is.
std::string time_input(const Arguments& arguments);
/// The columns to read; an input that is the time column is left to the fit.
ReadOptions fit_columns(const Arguments& arguments);
Json fit_json(const Fit& fit);

/// All but times and inputs.
ForecastOptions forecast_options(const Arguments& arguments, const Model& model);
/// --observations and --noise: the standard deviation of an observation, per variable.
/// Of `bands`; nothing where it is not given.
std::optional<Bands> bands_given(const Arguments& arguments);
std::optional<Vector> noise_of_observations(const Arguments& arguments, const Model& model);
/// The output times that --until and --step give.
std::vector<double> even_times(const Arguments& arguments, const Model& model,
                               const ForecastOptions& options);
/// The largest Lyapunov exponent by --lyapunov or --system, where it is known and positive.
std::optional<double> exponent(const Arguments& arguments);
Json forecast_json(const Forecast& forecast, const ForecastOptions& options);

ScoreOptions score_options(const Arguments& arguments);
Json score_json(const Scores& scores);

Json equations_json(const Model& model);
/// As the options ask for.
std::string equations_text(const Arguments& arguments, const Model& model, EquationFormat format);

Json system_json(const System& system);

/// Exponents of a system, or of a model's mean field and of draws of it.
struct Exponents {
  LyapunovSpectrum spectrum;
  std::vector<LyapunovSpectrum> draws = {};
  std::optional<double> catalogue = {};  ///< what it has for the largest
};
/// Of the model; where there is none, of the system that the arguments name.
Exponents lyapunov(const Arguments& arguments, const Model* model, const Observer& observer);
Json lyapunov_json(const std::string& of, const Exponents& exponents);
/// Why there are no exponents.
std::string lyapunov_complaint(const LyapunovSpectrum& spectrum);

AttractorOptions attractor_options(const Arguments& arguments, const Model& model);
const Trajectory& longest(const Dataset& data);
Json attractor_json(const AttractorComparison& comparison, const AttractorOptions& options);
/// Why the mean field has no attractor.
std::string attractor_complaint(const AttractorComparison& comparison);

/// What a filter follows, by its options and the columns of a table, and where in a row these are.
struct FilterPlan {
  FilterOptions options = {};
  Observing observing = {};
  std::vector<std::size_t> observed = {}, inputs = {};
};
FilterPlan filter_plan(const Arguments& arguments, const Model& model,
                       const std::vector<std::string>& columns, const std::string& source);
Json filter_json(const FilterSummary& summary, const Filter& filter, const FilterRow& last,
                 double seconds);

struct Tuned {
  Tuning tuning;
  std::vector<Candidate> candidates;
  TuneOptions options;
  std::vector<std::string> variables;
  Fit best;  ///< to all rows
};
/// What `tune` does before it prints: model, table and picture are in the folder. The data are read
/// once the options are known to be good.
Tuned tune(const Arguments& arguments, const std::function<Dataset()>& read,
           const std::filesystem::path& folder, const Observer& observer);
Json tuning_json(const Tuned& made);

/// A known system, integrated; its noise added. The certified end is in the data.
struct Simulation {
  Dataset data;
  SolveStatus status = SolveStatus::finished;
  double reached = 0;  ///< the time of a blow-up; there are no data then
  Vector noise;        ///< sd of what was added, per variable
  double certified_until = 0;
};
Simulation simulate(const Arguments& arguments, const Observer& observer);
/// Why there are no data.
std::string simulate_complaint(const Arguments& arguments, const Simulation& simulation);

// What commands share.

/// --json, --quiet, --help
std::vector<Option> with_common(std::vector<Option> options);
Option seed_option();
Option threads_option();
/// What every command that reads observations takes: which columns, how the text is written.
std::vector<Option> reading_options();
ReadOptions reading(const Arguments& arguments);
/// The same for what belongs to a model or a forecast: its column of times where the file has it,
/// counted as it counts.
ReadOptions reading(const Arguments& arguments, const Model& model);
ReadOptions reading(const Arguments& arguments, const Forecast& forecast);
/// Of commands that have a model, which knows columns and units.
std::vector<Option> reading_options_beside_model();
/// A point in time: a number, or a date where the model has a calendar.
double time_given(const Arguments& arguments, std::string_view option, const Model& model);
/// How the data were read, where that is not the plainest way.
void say_reading(const Arguments& arguments, const TableInfo& table);

/// A bar on a terminal, nothing elsewhere; throws Interrupted after a signal.
Observer progress(const Arguments& arguments);

/// Whether the command writes a file to standard output (-o -): messages then go beside it.
bool output_is_standard(const Arguments& arguments);
/// Before any work: throws when the place cannot be written to, or is one of the inputs.
void check_output(const std::filesystem::path& output,
                  const std::vector<std::filesystem::path>& inputs);

/// Throws when two outputs are the same file.
void check_two_outputs(const std::string& option, const std::string& output,
                       const std::string& other_option, const std::string& other);

/// Throws when one of the options is given although `condition` does not hold: it would do nothing.
void needs(const Arguments& arguments, std::initializer_list<const char*> options, bool condition,
           const std::string& what);

/// --report: the page to write
Option report_option();
/// Of odecast and what it is made with, for a page.
std::vector<std::pair<std::string, std::string>> versions();
/// Command and versions, for a page.
Origin origin(const Arguments& arguments);

// What evaluate and calibrate share.
EvaluateOptions evaluate_options(const Arguments& arguments, const Model& model);
/// Warns where noisy rows were judged as states.
void warn_of(const Arguments& arguments, const Dataset& truth, const Evaluation& evaluation);
std::vector<Option> evaluate_option_list();
/// The file with the model's variables and inputs.
Dataset read_truth(const Arguments& arguments, const Model& model, const std::string& path);
Json evaluation_json(const Evaluation& evaluation, const EvaluateOptions& options);
std::string evaluation_text(const Evaluation& evaluation, const EvaluateOptions& options);
/// Coverage before and, judged on the other half of the starts, after; by how much bands become
/// wider.
Json calibration_json(const CalibrationPart& calibration);
/// With the standard error over the starts.
Json calibration_json(const Evaluation& evaluation, const CalibrationPart& calibration);
/// How much the bands change, and what halves of the starts say of that.
std::string calibration_text(const CalibrationPart& calibration);
/// What the calibration promises, and on what condition.
std::string guarantee_text(const CalibrationPart& calibration);

Vector to_vector(const std::vector<double>& values);

/// Message for people on standard output, unless --json or --quiet.
void say(const Arguments& arguments, const std::string& text);
/// On standard error, unless --quiet.
void warn(const Arguments& arguments, const std::string& text);
/// Warns of a model that its fit said not to trust.
void warn_of(const Arguments& arguments, const Model& model);
/// On standard error, always: why the exit code is not 0.
void complain(const std::string& text);

/// On standard error as it is. What cannot be written there is lost, and nothing else is.
void print_error(const std::string& text);
/// On standard output; throws Error (file) where that fails.
void print_text(std::string_view text);
template <class... T>
void put(fmt::format_string<T...> format, T&&... arguments) {
  print_text(fmt::format(format, std::forward<T>(arguments)...));
}
/// The object that --json prints. Names of files need not be UTF-8; what is not shows as U+FFFD.
void put_json(const Json& json);
void flush_output();

/// For work in units (core/work.hpp): an interruption says that they are kept there, and
/// how to go on.
void keeps_units(const std::filesystem::path& folder);
/// What it says; "" for work that keeps nothing, or not yet. For a signal handler, too.
const char* kept_work();

}  // namespace odecast::cli
