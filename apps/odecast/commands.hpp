#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/odecast/arguments.hpp"
#include "odecast/core/observer.hpp"
#include "odecast/core/matrix.hpp"
#include "odecast/observations/reading.hpp"
#include "odecast/report/results.hpp"
#include "odecast/scores/evaluate.hpp"

namespace odecast::cli {

/// The exit codes of every command (DESIGN §5).
enum Exit { kDone = 0, kNotTrusted = 1, kUsage = 2, kBadData = 3, kFileFailure = 4 };

Command inspect_command();
Command simulate_command();
Command fit_command();
Command forecast_command();
Command score_command();
Command equations_command();
Command predict_command();
Command split_command();
Command plot_command();
Command systems_command();
Command lyapunov_command();
Command evaluate_command();
Command calibrate_command();
Command reproduce_command();

// What commands share.

/// --json, --quiet, --help
std::vector<Option> with_common(std::vector<Option> options);
Option seed_option();
Option threads_option();
/// What every command that reads observations takes: which columns, how the text is written.
std::vector<Option> reading_options();
ReadOptions reading(const Arguments& arguments);
/// How the data were read, where that is not the plainest way.
void say_reading(const Arguments& arguments, const TableInfo& table);

/// A bar on a terminal, nothing elsewhere; throws Interrupted after a signal.
Observer progress(const Arguments& arguments);

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
/// Command, settings and versions, for a page.
Origin origin(const Arguments& arguments);

// What evaluate and calibrate share.
EvaluateOptions evaluate_options(const Arguments& arguments, const Model& model);
std::vector<Option> evaluate_option_list();
/// The file with the model's variables and inputs.
Dataset read_truth(const Arguments& arguments, const Model& model, const std::string& path);
nlohmann::ordered_json evaluation_json(const Evaluation& evaluation, const EvaluateOptions& options);
std::string evaluation_text(const Evaluation& evaluation, const EvaluateOptions& options);

Vector to_vector(const std::vector<double>& values);

/// Message for people on standard output, unless --json or --quiet.
void say(const Arguments& arguments, const std::string& text);
/// On standard error, unless --quiet.
void warn(const Arguments& arguments, const std::string& text);
/// On standard error, always: why the exit code is not 0.
void complain(const std::string& text);

void install_signal_handlers();

}  // namespace odecast::cli
