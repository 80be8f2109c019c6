#include "odecast/learning/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/equations.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/observations/rows.hpp"
#include "odecast/report/fit_page.hpp"
#include "odecast/tuning/calibrate.hpp"

namespace odecast::cli {
namespace {

const FitOptions kFitDefaults;

std::string schedule_text(const std::vector<Phase>& schedule) {
  std::string text;
  for (const Phase& p : schedule)
    text += fmt::format("{}{}@{}", text.empty() ? "" : ",", p.steps, p.rate);
  return text;
}

std::vector<Phase> read_schedule(const Arguments& a) {
  std::vector<Phase> schedule;
  for (const auto& word : a.words("--schedule")) {
    const auto at = word.find('@');
    const auto steps = parse_number(word.substr(0, at));
    const auto rate = at == word.npos ? std::nullopt : parse_number(word.substr(at + 1));
    if (!steps || !rate || *steps < 1 || *steps > 1e9 || *steps != static_cast<int>(*steps))
      throw_usage({"option --schedule", shown(word), "STEPS@RATE, separated by commas",
                   "The paper's is 10@0.01,100@0.001."});
    schedule.push_back({static_cast<int>(*steps), *rate});
  }
  return schedule;
}

/// Whether an input is the time column, which the reader takes as the time.
bool is_time(const Arguments& a, const std::string& name) {
  if (a.given("--time")) return name == a.text("--time");
  return lower_case(name) == "t" || lower_case(name) == "time";
}

constexpr std::initializer_list<const char*> kNetworkOptions = {
    "--hidden",  "--layers",   "--activation",   "--trainer",
    "--batches", "--schedule", "--noise-samples"};
constexpr std::initializer_list<const char*> kDropoutOptions = {
    "--dropout", "--rescale", "--starts", "--max-iterations", "--masks", "--mask-per"};
constexpr std::initializer_list<const char*> kDerivativeOptions = {
    "--scale", "--derivative", "--noise-factor", "--noise-order"};

/// --posterior, or what the other options ask for: that of docs/choosing.md unless they belong to
/// the paper's network.
std::string posterior_word(const Arguments& a) {
  if (a.text("--posterior") != "auto") return a.text("--posterior");
  const auto any = [&a](std::initializer_list<const char*> options) {
    return std::any_of(options.begin(), options.end(), [&a](const char* o) { return a.given(o); });
  };
  if (any(kNetworkOptions) || any(kDropoutOptions) || any(kDerivativeOptions)) return "dropout";
  const bool rows =
      a.text("--kind") == "map" || a.text("--degree") == "auto" || any({"--gap", "--terms"});
  return rows ? "regression" : "trajectory";
}

}  // namespace

FitOptions fit_options(const Arguments& a) {
  FitOptions o;
  const std::string posterior = posterior_word(a);
  o.posterior = posterior == "trajectory"   ? PosteriorKind::trajectory
                : posterior == "regression" ? PosteriorKind::regression
                : posterior == "bootstrap"  ? PosteriorKind::bootstrap
                : posterior == "ensemble"   ? PosteriorKind::ensemble
                                            : PosteriorKind::dropout;
  const bool trajectory = o.posterior == PosteriorKind::trajectory,
             dropout = o.posterior == PosteriorKind::dropout,
             ensemble = o.posterior == PosteriorKind::ensemble, network = dropout || ensemble;
  needs(a, {"--robust"}, trajectory, "--posterior trajectory");
  needs(a, kDerivativeOptions, !trajectory, "another --posterior than trajectory");
  needs(a, {"--gap"}, !trajectory, "another --posterior than trajectory");
  needs(a, {"--terms"}, !trajectory && !ensemble, "--posterior dropout, regression or bootstrap");
  needs(a, kNetworkOptions, network, "--posterior dropout or ensemble");
  needs(a, kDropoutOptions, dropout, "--posterior dropout");
  needs(a, {"--replicates"}, o.posterior == PosteriorKind::bootstrap, "--posterior bootstrap");
  needs(a, {"--members"}, ensemble, "--posterior ensemble");
  o.replicates = static_cast<int>(a.whole("--replicates", 2, 100'000));
  o.members = static_cast<int>(a.whole("--members", 2, 1000));
  o.trajectory.robust = a.given("--robust");
  if (a.text("--missing") == "keep" && !trajectory)
    throw_usage({"option --missing", "keep with --posterior " + posterior, "--posterior trajectory",
                 "Derivatives need whole rows: use --missing drop."});
  o.kind = a.text("--kind") == "map" ? ModelKind::map : ModelKind::flow;
  o.hold_inputs = a.text("--between") == "held";
  needs(a, {"--between"}, a.given("--inputs"), "--inputs");
  needs(a, {"--derivative", "--noise-factor", "--noise-order", "--gap"}, o.kind == ModelKind::flow,
        "--kind flow");
  for (const auto& name : a.words("--inputs"))
    if (is_time(a, name)) o.time_name = name;
  const bool automatic = a.text("--degree") == "auto";
  if (automatic && (network || trajectory))
    throw_usage(
        {"option --degree", "auto with --posterior " + posterior,
         "--posterior regression or bootstrap",
         "Degrees are compared by the evidence: have regression choose one, then give it here."});
  o.degree = automatic ? kAutomaticDegree : static_cast<int>(a.whole("--degree", 1, 20));
  o.hidden = a.text("--hidden") == "auto" ? 0 : static_cast<int>(a.whole("--hidden", 1, 100000));
  o.dropout = a.number("--dropout");
  o.rescale = a.given("--rescale");
  o.scale = a.text("--scale") == "none" ? ScaleKind::none : ScaleKind::standard;
  for (const double units : a.numbers("--layers")) {
    const long whole =
        checked_size(units, 1'000'000, "option --layers", "For example --layers 32,32.");
    if (units != static_cast<double>(whole))
      throw_usage({"option --layers", fmt::format("{}", units), "whole numbers",
                   "For example --layers 32,32."});
    o.layers.push_back(static_cast<int>(whole));
  }
  o.activation = *activation_from_name(a.text("--activation"));
  // Rows with a posterior of their own are integrals unless told otherwise: their errors are known.
  o.derivative.method = network || a.given("--derivative")
                            ? *derivative_from_name(a.text("--derivative"))
                            : DerivativeMethod::weak;
  o.derivative.forward.noise_factor = a.number("--noise-factor");
  o.derivative.forward.noise_order = a.number("--noise-order");
  if (a.given("--noise")) {
    o.derivative.noise = to_vector(a.numbers("--noise"));
    o.trajectory.noise = o.derivative.noise;
  }
  if (a.given("--gap")) o.derivative.gap = a.number("--gap");
  o.select_terms = network || a.given("--terms") ? a.text("--terms") == "select" : !trajectory;
  o.trainer = a.text("--trainer") == "exact"  ? Trainer::exact
              : a.text("--trainer") == "adam" ? Trainer::adam
              : a.text("--trainer") == "sgd"  ? Trainer::sgd
                                              : Trainer::automatic;
  o.starts = static_cast<int>(a.whole("--starts", 1, 100000));
  o.max_iterations = static_cast<int>(a.whole("--max-iterations", 1, 1'000'000'000));
  o.training.batches = static_cast<int>(a.whole("--batches", 1, 1'000'000'000));
  o.training.schedule = read_schedule(a);
  o.training.noise_samples = static_cast<int>(a.whole("--noise-samples", 1, 1'000'000));
  o.training.masks = static_cast<int>(a.whole("--masks", 1, 1'000'000));
  o.training.mask_per_batch = a.text("--mask-per") == "batch";
  o.seed = a.seed();
  o.threads = a.threads();
  if (a.given("--budget")) {
    o.budget = a.number("--budget");
    require_option(*o.budget > 0, "option --budget", a.text("--budget"), "seconds > 0",
                   "Leave it out for the default bound on work.");
  }
  const bool general = a.given("--layers");
  needs(a, {"--activation"}, general, "--layers");
  needs(a, {"--hidden", "--starts"}, !general, "no --layers");
  needs(a, {"--degree"}, !general || o.activation == Activation::power,
        "no --layers, or --activation power");
  const bool exact = o.trainer == Trainer::exact || (o.trainer == Trainer::automatic && !general);
  needs(a, {"--noise-factor", "--noise-order"}, o.derivative.method == DerivativeMethod::forward,
        "--derivative forward");
  needs(a, {"--starts", "--max-iterations"}, exact, "--trainer exact");
  needs(a, {"--batches", "--schedule", "--noise-samples", "--masks", "--mask-per"}, !exact,
        "--trainer adam or sgd");
  return o;
}

ReadOptions fit_columns(const Arguments& a) {
  ReadOptions read = reading(a);
  std::erase_if(read.inputs, [&](const std::string& name) { return is_time(a, name); });
  return read;
}

Json fit_json(const Fit& fit) {
  const auto& record = fit.model.training;
  Json j = {{"status", record.status},
            {"reason", record.reason},
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
  if (const auto& part = fit.model.trajectory) {
    j["noise"] = std::vector<double>(fit.model.noise.begin(), fit.model.noise.end());
    j["noise_ratio"] = part->noise_ratio;
    j["autocorrelation"] = part->autocorrelation;
    j["continuity"] = part->continuity;
    j["misfit"] = part->misfit;
    if (const Forcing& forcing = part->forcing; forcing.present()) {
      const Vector sd = fit.model.scaling.scale.cwiseProduct(forcing.sd);
      j["forcing"] = {{"sd", std::vector<double>(sd.begin(), sd.end())},
                      {"interval", forcing.interval * fit.model.scaling.time}};
    }
    j["sets"] = fit.model.polynomial->sets.size();
  }
  if (const auto& c = fit.model.calibration) j["calibration"] = calibration_json(*c);
  return j;
}

std::string fit_complaint(const FitSummary& summary) {
  return "training: " + summary.reason +
         (summary.usable ? "; the model was written, but do not trust it"
                         : "; no model was written");
}

namespace {

int run_fit(const Arguments& a) {
  const FitOptions options = fit_options(a);
  const std::string output = a.text("--output");
  const auto inputs = a.paths(0);
  check_output(output, inputs);
  const std::string report = a.text("--report");
  if (a.given("--report")) {
    check_two_outputs("--output", output, "--report", report);
    check_output(report, inputs);
  }
  needs(a, {"--title"}, a.given("--report"), "--report");
  const bool calibrate = a.given("--calibrate");
  if (calibrate && a.text("--missing") == "keep")
    throw_usage({"option --calibrate", "--missing keep", "whole rows",
                 "Forecasts are judged row by row: use --missing drop."});
  needs(a, {"--holdout"}, calibrate, "--calibrate (odecast split only cuts)");
  Fit result;
  TableInfo table;
  Evaluation judged;
  std::optional<Dataset> data;  // where a page shows it, or the trainer needs it
  {
    const Observer observer = progress(a);
    std::error_code ignored;
    ReadOptions read = fit_columns(a);
    if (a.text("--posterior") == "trajectory" && !a.given("--missing") && !calibrate)
      read.missing = MissingRule::keep;
    read.may_keep = options.posterior == PosteriorKind::trajectory && !calibrate;
    // Files are gone through row by row; a pipe can be read only once.
    const bool again = std::all_of(inputs.begin(), inputs.end(), [&](const auto& path) {
      return std::filesystem::is_regular_file(path, ignored);
    });
    if (calibrate) {
      result = fit_calibrated(data.emplace(read_observations(inputs, read, &table)),
                              a.number("--holdout"), options, observer, &judged);
    } else if (fits_source(options) && again) {
      const ObservationSource source = source_of_files(inputs, read);
      result = fit_source(source, options, observer);
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
      page = render_page(fit_page(*data, result, options, {a.text("--title"), origin(a)}));
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
        result.model.polynomial ? record.trainer
        : !result.model.members.empty()
            ? "ensemble, trainer " + record.trainer
            : fmt::format("dropout {:g}, trainer {}", options.dropout, record.trainer);
    say(a, fmt::format("Fitted {} rows in {} trajector{} by {} in {:.3g} s{}.", record.rows,
                       record.trajectories, record.trajectories == 1 ? "y" : "ies", by,
                       summary.seconds, summary.trusted ? ": " + record.reason : ""));
    if (options.derivative.method == DerivativeMethod::automatic)
      say(a, "Derivative: " + summary.derivative + ".");
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
    if (result.model.polynomial) {
      std::string noise;
      for (int i = 0; i < result.model.noise.size(); ++i)
        noise +=
            fmt::format("{}{} {:.3g}", i ? ", " : "",
                        result.model.variables[static_cast<std::size_t>(i)], result.model.noise[i]);
      // A smoother can tell the noise where rows stand close, and there is some.
      if (const auto& part = result.model.trajectory;
          part && !part->misfit && part->noise_ratio > 0.1 && part->noise_ratio < 10)
        noise += a.given("--noise")
                     ? fmt::format(" (residuals: {:.2f} times that)", part->noise_ratio)
                     : fmt::format(" ({:.2f} times the smoother's)", part->noise_ratio);
      if (!noise.empty()) say(a, "Standard deviation of the noise: " + noise + ".");
      say(a, fmt::format("\nMean {}, with the standard deviation of the posterior:",
                         options.kind == ModelKind::map ? "map" : "field"));
      say(a, format_equations(result.model, EquationFormat::text));
    }
    if (const auto& c = result.model.calibration) {
      say(a, fmt::format("The last {:g} % of the rows were held out: of {} forecasts there the "
                         "{:g} % band of the draws holds {:.3f} of the observations.",
                         100 * a.number("--holdout"), c->starts, 100 * c->level,
                         mean_of(c->before).value));
      say(a, calibration_text(*c));
      say(a, guarantee_text(*c) +
                 (c->observed ? " These are bands of observations: forecast --observations." : ""));
      say(a, fmt::format("Forecasts continue from t = {:g}, where the held-out rows begin, unless "
                         "--init is given.",
                         result.model.last_time));
    }
    if (!result.model.last_trajectory.empty())
      say(a, "Forecasts continue trajectory '" + result.model.last_trajectory + "'.");
    say(a, "Model written to " + output);
    if (with_page) say(a, "Page written to " + report);
  }
  if (summary.trusted) return kDone;
  complain(fit_complaint(summary));
  return kNotTrusted;
}

}  // namespace

Command fit_command() {
  const auto& t = kFitDefaults.training;
  std::vector<Option> options = {
      {"--posterior",
       "WHAT",
       "where the spread comes from. trajectory: the likelihood of the\nobservations, sparse "
       "equations; regression: Bayesian regression\non integrals of the data, sparse equations, in "
       "milliseconds;\nbootstrap: the same integrals drawn again in blocks; dropout:\nthe paper's "
       "masks; ensemble: networks trained from different\nseeds; auto: trajectory, but regression "
       "for maps and with\n--degree auto, --terms or --gap, and dropout with options of\nnetworks "
       "or derivatives",
       "auto",
       0,
       {"auto", "trajectory", "regression", "bootstrap", "dropout", "ensemble"}},
      {"--replicates", "N", "of the bootstrap: how often the rows are drawn again",
       fmt::format("{}", kFitDefaults.replicates)},
      {"--members", "N", "networks of the ensemble", fmt::format("{}", kFitDefaults.members)},
      {"--robust", "", "Huber weights against outliers (trajectory only)", ""},
      {"--kind",
       "WHAT",
       "flow: learn du/dt; map: learn the next row from each, in discrete\ntime",
       "flow",
       0,
       {"flow", "map"}},
      {"--between",
       "HOW",
       "inputs between rows: linear, or held until the next row",
       "linear",
       0,
       {"linear", "held"}},
      {"--degree", "P",
       "degree of the polynomial kernel, or of the candidate terms;\nauto: that of the most "
       "evidence (regression, bootstrap)",
       fmt::format("{}", kFitDefaults.degree)},
      {"--hidden", "K",
       "its hidden units; auto: one per monomial (10 for three\nvariables at degree 2)", "auto"},
      {"--dropout", "R", "dropout rate r in [0, 1): sets the spread of the draws",
       fmt::format("{}", kFitDefaults.dropout)},
      {"--rescale", "", "divide masks by 1 - r (the paper does not)", ""},
      {"--scale",
       "WHAT",
       "standardise variables inside, or not (the paper's setting)",
       "standard",
       0,
       {"standard", "none"}},
      {"--derivative",
       "HOW",
       "how derivatives are taken from the data: forward (the paper);\ncentral2 … central8 for "
       "clean data; savgol, spline smooth;\nweak integrates instead, the default of regression "
       "and\nbootstrap; auto tries them on held-out rows",
       "forward",
       0,
       {"forward", "central2", "central4", "central6", "central8", "savgol", "spline", "weak",
        "auto"}},
      {"--noise", "S,…",
       "sd of the observation noise, one or one per variable, in the\nunits of the data (default: "
       "estimated)",
       ""},
      {"--gap", "T",
       "a longer spacing is a gap that nothing crosses (default: 30\ntimes the usual spacing of "
       "the trajectory)",
       ""},
      {"--terms",
       "WHICH",
       "select: only terms that the data support; for dropout it needs\n--dropout 0, for "
       "regression and bootstrap it is the default",
       "all",
       0,
       {"all", "select"}},
      {"--noise-factor", "C", "error of forward derivatives: C·h^M (paper: h²), in model units",
       fmt::format("{}", kFitDefaults.derivative.forward.noise_factor)},
      {"--noise-order", "M", "the M of that",
       fmt::format("{}", kFitDefaults.derivative.forward.noise_order)},
      {"--layers", "A,B,…",
       "a general network with these hidden layers instead of the\npolynomial kernel; no "
       "equations, same forecasts",
       ""},
      {"--activation",
       "NAME",
       "of those layers",
       "tanh",
       0,
       {"identity", "power", "tanh", "sigmoid", "relu", "sin"}},
      {"--trainer",
       "NAME",
       "exact: L-BFGS on the exact objective, for polynomial kernels;\nadam, sgd: the paper's "
       "schedule; auto: exact, or adam with\n--layers",
       "auto",
       0,
       {"auto", "exact", "adam", "sgd"}},
      {"--starts", "N", "starting points of the exact trainer, the best is kept",
       fmt::format("{}", kFitDefaults.starts)},
      {"--max-iterations", "N", "of the exact trainer, per start",
       fmt::format("{}", kFitDefaults.max_iterations)},
      {"--batches", "N", "how often the targets are drawn anew", fmt::format("{}", t.batches)},
      {"--schedule", "S@A,…", "for each batch S steps at learning rate A, and so on",
       schedule_text(t.schedule)},
      {"--noise-samples", "B", "draws of the derivative noise per row and batch",
       fmt::format("{}", t.noise_samples)},
      {"--masks", "K", "masks averaged in each step", fmt::format("{}", t.masks)},
      {"--mask-per",
       "WHAT",
       "a mask for each row, or one for all rows of a step",
       "row",
       0,
       {"row", "batch"}},
  };
  for (Option& o : reading_options()) {
    if (o.name == "--missing") {
      o = keeping(std::move(o), " (trajectory only, its\ndefault where --posterior names it)");
    }
    options.push_back(o);
  }
  options.push_back(seed_option());
  options.push_back(threads_option());
  options.push_back(
      {"--budget", "SECONDS",
       "end after that time with what was found, exit code 1 (default:\nafter an amount of work, "
       "about ten seconds' for most data,\nthat is the same on every machine)",
       ""});
  options.push_back(
      {"--calibrate", "", "hold the last rows out and calibrate the bands there", ""});
  options.push_back(
      {"--holdout", "F", "the share of each trajectory that is held out for it", "0.2"});
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
