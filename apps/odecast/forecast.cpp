#include "odecast/forecast/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/times.hpp"
#include "odecast/forecast/forecast_file.hpp"
#include "odecast/model/model_file.hpp"
#include "odecast/report/forecast_page.hpp"
#include "odecast/report/settings.hpp"
#include "odecast/systems/catalogue.hpp"

namespace odecast::cli {
namespace {

const ForecastOptions kForecastDefaults;
constexpr int kPageSamples = 5;

}  // namespace

std::optional<double> exponent(const Arguments& a) {
  if (a.given("--lyapunov") && a.given("--system"))
    throw_usage({"option `lyapunov`", "`system` beside it", "one of them", "Remove one."});
  if (a.given("--lyapunov")) {
    const double given = a.number("--lyapunov");
    if (!(given > 0) || !std::isfinite(given))
      throw_usage({"option `lyapunov`", fmt::format("{}", given), "a number > 0",
                   "Lyapunov times exist for chaotic systems only."});
    return given;
  }
  if (!a.given("--system")) return std::nullopt;
  const auto known = find_system(a.text("--system")).lyapunov;
  return known && *known > 0 ? known : std::nullopt;
}

std::optional<Bands> bands_given(const Arguments& a) {
  for (const Bands bands : {Bands::both, Bands::sd, Bands::quantiles})
    if (a.text("--bands") == bands_name(bands)) return bands;
  return std::nullopt;
}

std::optional<Vector> noise_of_observations(const Arguments& a, const Model& model) {
  if (a.given("--observations") && !a.given("--noise") && model.noise.size() == 0)
    throw_usage(
        {"option `observations`", "a model that does not know the noise", "`noise`",
         "Give the standard deviation of an observation: `noise=S`, one or one per variable."});
  if (!a.given("--noise") && !a.given("--observations")) return std::nullopt;
  const Vector noise = a.given("--noise") ? to_vector(a.numbers("--noise")) : model.noise;
  return noise.size() == 1 ? Vector(Vector::Constant(model.dimension(), noise[0])) : noise;
}

ForecastOptions forecast_options(const Arguments& a, const Model& model) {
  ForecastOptions o;
  if (a.given("--init")) o.init = to_vector(a.numbers("--init"));
  if (a.given("--init-sd")) o.init_sd = to_vector(a.numbers("--init-sd"));
  if (a.given("--from")) o.from = time_given(a, "--from", model);
  o.draws = static_cast<int>(a.whole("--draws", 2, 1'000'000'000));
  o.level = a.number("--level");
  o.bands = bands_given(a);
  o.blow_up = a.text("--blow-up") == "until" ? BlowUp::until : BlowUp::discard;
  o.mask = a.text("--mask-change") == "step"   ? MaskChange::step
           : a.text("--mask-change") == "call" ? MaskChange::call
                                               : MaskChange::never;
  o.masks = a.text("--masks") == "enumerated" ? MaskSource::enumerated : MaskSource::sampled;
  o.transition_noise = a.given("--transition-noise");
  SolverOptions& solver = o.solver.emplace(default_solver(model));
  solver.method = a.text("--method") == "rk4"     ? SolverMethod::rk4
                  : a.text("--method") == "euler" ? SolverMethod::euler
                  : a.text("--method") == "radau" ? SolverMethod::radau
                                                  : SolverMethod::rk45;
  o.check_stiffness = a.text("--method") == "auto";
  o.check_tolerances = !a.given("--rtol") && !a.given("--atol");
  if (a.given("--rtol")) solver.rtol = a.number("--rtol");
  if (a.given("--atol")) solver.atol = a.number("--atol");
  solver.max_steps = a.whole("--max-steps", 1, 1'000'000'000);
  o.bound_factor = a.number("--bound");
  o.attempts_per_draw = static_cast<int>(a.whole("--attempts", 1, 1'000'000));
  o.seed = a.seed();
  o.threads = a.threads();

  const bool draws = a.text("--field") == "draws", enumerated = o.masks == MaskSource::enumerated;
  const bool fixed = solver.method == SolverMethod::rk4 || solver.method == SolverMethod::euler;
  needs(a, {"--truth", "--history", "--lyapunov", "--system", "--title"}, a.given("--report"),
        "`report`");
  needs(a, {"--report"}, draws, "`field=draws`");
  needs(a, {"--method", "--rtol", "--atol", "--fixed-step", "--max-steps", "--transition-noise"},
        model.kind == ModelKind::flow, "a model of du/dt, not a map");
  needs(a, {"--mask-change"}, std::holds_alternative<Network>(model.law),
        "a model with masks (fit `dropout`)");
  needs(a, {"--from"}, a.given("--init"), "`init`: the last observation has a time of its own");
  needs(a, {"--drive"}, model.inputs.measured() > 0, "a model with inputs (fit `inputs`)");
  o.calibrated = !a.given("--raw");
  needs(a, {"--raw"}, model.calibration.has_value(),
        "a model with a calibration (odecast calibrate)");
  o.noise = noise_of_observations(a, model);
  needs(a, {"--fixed-step"}, fixed, "`method=rk4` or euler");
  needs(a, {"--rtol", "--atol"}, !fixed, "`method=rk45` or radau");
  needs(a, {"--observations", "--noise"}, draws, "`field=draws`");
  needs(a,
        {"--time", "--time-format", "--id", "--skip", "--header", "--separator", "--decimal",
         "--missing", "--sort", "--duplicates", "--sample-step", "--trajectory"},
        a.given("--at") || a.given("--truth") || a.given("--drive") || a.given("--history"),
        "`at`, `truth`, `history` or `drive`");
  needs(a, {"--draws", "--seed"}, !enumerated, "`masks=sampled`");
  needs(a,
        {"--draws", "--masks", "--level", "--bands", "--blow-up", "--mask-change",
         "--transition-noise", "--init-sd", "--attempts", "--seed"},
        draws, "`field=draws`");
  if (a.given("--at") && (a.given("--until") || a.given("--step")))
    throw_usage({"option `at`", "`until` or `step` beside it", "one way to give the times",
                 "Remove the others."});
  if (fixed) solver.fixed_step = a.given("--fixed-step") ? a.number("--fixed-step") : model.step;
  return o;
}

std::vector<double> even_times(const Arguments& a, const Model& model, const ForecastOptions& o) {
  const double start = forecast_start(model, o).time;
  if (!a.given("--until"))
    throw_usage({"odecast forecast", "neither `until` nor `at`", "an end time",
                 model.calendar
                     ? fmt::format("Give `until=T`, a date later than the start at {}.",
                                   time_text(*model.calendar, start))
                     : fmt::format("Give `until=T`, later than the start at t = {}.", start)});
  const double usual = model.calendar ? tidy_step(*model.calendar, model.step) : model.step,
               until = time_given(a, "--until", model);
  if (model.calendar && !(until > start))
    throw_usage({"`until`", time_text(*model.calendar, until),
                 "a time after the start (" + time_text(*model.calendar, start) + ")",
                 "Give a later end."});
  return regular_times(start, until, a.given("--step") ? a.number("--step") : usual);
}

Json forecast_json(const Forecast& f, const ForecastOptions& options) {
  Json first;
  if (!f.blow_up_times.empty())
    first = *std::min_element(f.blow_up_times.begin(), f.blow_up_times.end());
  return {
      {"status", status_name(f.status)},
      {"reason", f.reason},
      {"draws", f.draws},
      {"kept", f.kept},
      {"discarded", f.discarded},
      {"discard_probability", f.discard_probability},
      {"integrated", f.integrated},
      {"first_blow_up", first},
      {"horizon", std::isfinite(f.horizon) ? Json(f.horizon) : Json(nullptr)},
      {"distance", f.distance ? Json{{"nearest", f.distance->nearest}, {"usual", f.distance->usual}}
                              : Json(nullptr)},
      {"off_surface", std::isfinite(f.off_surface) ? Json(f.off_surface) : Json(nullptr)},
      {"at_rest", std::isfinite(f.at_rest) ? Json(f.at_rest) : Json(nullptr)},
      {"moving", std::isfinite(f.moving) ? Json(f.moving) : Json(nullptr)},
      {"level", f.level},
      {"band", bands_name(f.bands)},
      {"calibrated", f.calibrated},
      {"solver", method_name(f.method)},
      {"seconds", f.seconds},
      {"seed", options.seed}};
}

namespace {

/// The trajectory of a file that belongs to the forecast: the one asked for; by default the one
/// that the model continues, where the file has it.
std::string trajectory_of(const Arguments& a, const Dataset& file, const Model& model) {
  if (!a.given("--trajectory"))
    for (const Trajectory& t : file.trajectories)
      if (t.id == model.last_trajectory) return t.id;
  return a.text("--trajectory");
}

/// The future of the model's measured inputs: of --drive, or of the file with the times or the
/// truth where it has these columns.
std::optional<InputSignal> input_signal(const Arguments& a, const Model& model) {
  const int count = model.inputs.measured();
  for (const std::string option : {"--drive", "--at", "--truth"}) {
    if (count == 0 || !a.given(option)) continue;
    const Dataset file = read_observations(a.text(option), reading(a, model));
    const Trajectory& t = find_trajectory(file, trajectory_of(a, file, model));
    InputSignal signal{t.times, Matrix(t.rows(), count)};
    int found = 0;
    for (; found < count; ++found) {
      const auto& name = model.inputs.names[static_cast<std::size_t>(found)];
      const auto at = std::find(file.variables.begin(), file.variables.end(), name);
      if (at == file.variables.end()) {
        if (option == "--drive")
          throw_data({a.text(option), "no column " + name, "a column for each input of the model",
                      "Give a table with a time column and the inputs."});
        break;
      }
      signal.values.col(found) = t.states.col(at - file.variables.begin());
    }
    if (found == count) return signal;
  }
  return std::nullopt;
}

/// Output times: those of a file, or an even grid.
std::vector<double> output_times(const Arguments& a, const Model& model, const ForecastOptions& o) {
  if (!a.given("--at")) return even_times(a, model, o);
  const double start = forecast_start(model, o).time;
  std::vector<double> times;
  const Dataset file = read_observations(a.text("--at"), reading(a, model));
  for (const double t : find_trajectory(file, trajectory_of(a, file, model)).times)
    if (t > start) times.push_back(t);
  return times;
}

int run_single(const Arguments& a, const Model& model, const ForecastOptions& o) {
  const std::string output = a.text("--output");
  SingleTrajectory one;
  {
    const Observer observer = progress(a);
    one = single_trajectory(
        model, a.text("--field") == "mean" ? SingleField::mean : SingleField::point, o, observer);
  }
  const bool good = one.status == SolveStatus::finished;
  const bool usable = one.times.size() > 1;
  if (usable)
    write_observations(output, {.variables = model.variables,
                                .trajectories = {{"", one.times, one.states}},
                                .time_name = model.time_name,
                                .calendar = model.calendar});
  if (a.json())
    put_json(Json{{"status", status_name(one.status)},
                  {"field", a.text("--field")},
                  {"rows", one.times.size()},
                  {"reached", one.reached},
                  {"output", usable ? output : ""}});
  else if (usable)
    say(a, fmt::format("One trajectory of the {} field to {}, written to {}", a.text("--field"),
                       moment_text(model.calendar, one.reached), output));
  if (!good)
    complain(fmt::format("the trajectory {} at {}", status_name(one.status),
                         moment_text(model.calendar, one.reached)));
  return good ? kDone : kNotTrusted;
}

int run_forecast(const Arguments& a) {
  const std::string input = a.positional(0), output = a.text("--output");
  const std::string report = a.text("--report");
  check_output(output, {input, a.text("--at"), a.text("--truth"), a.text("--history")});
  if (a.given("--report")) {
    check_two_outputs("--output", output, "--report", report);
    check_output(report, {input, a.text("--at"), a.text("--truth"), a.text("--history")});
  }
  const Model model = load_model(input);
  if (!model.trajectory || !model.trajectory->forcing.present()) warn_of(a, model);
  ForecastOptions options = forecast_options(a, model);
  ForecastPageContent content;
  if (a.given("--report")) {
    options.samples = kPageSamples;
    content.title = a.text("--title");
    content.lyapunov = exponent(a);
    content.origin = origin(a);
    if (a.given("--history"))
      content.history = read_observations(a.text("--history"), reading(a, model));
    if (a.given("--truth")) {
      content.truth = read_observations(a.text("--truth"), reading(a, model));
      content.trajectory = trajectory_of(a, *content.truth, model);
      find_trajectory(*content.truth, content.trajectory);  // a wrong id is found before the work
    }
  }
  options.times = output_times(a, model, options);
  options.inputs = input_signal(a, model);
  if (a.text("--field") != "draws") return run_single(a, model, options);

  Forecast f;
  {
    const Observer observer = progress(a);
    f = forecast(model, options, observer);
  }
  ForecastOptions ran = options;
  ran.solver->method = f.method;
  ran.solver->rtol = f.rtol;
  ran.solver->atol = f.atol;
  content.origin.settings = forecast_settings(model, ran);
  const bool usable = f.times.size() > 1;
  if (usable && a.given("--report")) {
    const Observer observer = progress(a);
    content.drawn = drawn_forecast(model, options, observer);
  }
  // Truth that does not match is found before anything is written.
  const bool with_page = usable && a.given("--report");
  const std::string page = with_page ? render_page(forecast_page(model, f, content)) : "";
  if (usable) {
    const std::string text = format_forecast(f);
    std::vector<FileText> files = {{output, text}};
    if (with_page) files.push_back({report, page});
    write_files(files);
  }

  if (content.truth && usable)
    if (const double share = share_of_fit(model, *content.truth); share > 0)
      warn(a, fit_in_words(share, content.truth->source));
  const bool complete = f.status == ForecastStatus::complete;
  const bool enumerated = options.masks == MaskSource::enumerated;
  const double first_blow_up =
      f.blow_up_times.empty() ? 0
                              : *std::min_element(f.blow_up_times.begin(), f.blow_up_times.end());
  if (a.json()) {
    Json j = forecast_json(f, options);
    j["forced"] = model.trajectory && model.trajectory->forcing.present();
    if (usable) j["output"] = output;
    if (with_page) j["report"] = report;
    put_json(j);
  } else if (usable) {
    const std::string last =
        f.calendar ? time_text(*f.calendar, f.times.back()) : fmt::format("{:.6g}", f.times.back());
    say(a, fmt::format("Forecast from {} to {} in {:.3f} s, written to {}",
                       moment_text(f.calendar, f.times.front()), last, f.seconds, output));
    const bool discard = options.blow_up == BlowUp::discard;
    const char* fate = !discard                  ? " and count until then"
                       : complete && !enumerated ? " and were replaced"
                                                 : "";
    say(a,
        fmt::format(
            "{} {} {}; {} blew up{} ({:.1f} %{}).", f.kept, enumerated ? "masks" : "trajectories",
            discard ? "kept" : "drawn", f.discarded, fate, 100 * f.discard_probability,
            !f.discarded ? "" : ", the first at " + moment_text(f.calendar, first_blow_up, 3)));
    if (f.below_zero > 0)
      say(a, fmt::format("Left out: {} more that went below 0, where the state is known to be "
                         "positive.",
                         f.below_zero));
    say(a,
        std::isfinite(f.horizon)
            ? fmt::format(
                  "Predictability horizon {}: there the spread passes {:g} of the data's sd.",
                  duration_text(f.calendar, f.horizon), kHorizon)
            : fmt::format("Within the predictability horizon: the spread stays below {:g} of the "
                          "data's sd.",
                          kHorizon));
    if (f.method == SolverMethod::radau && a.text("--method") == "auto")
      say(a, "The equations are stiff there: integrated by an implicit method (radau).");
    if (f.distance && complete && is_away(*f.distance))
      say(a, "Away from the data: " + away_in_words(*f.distance) + ".");
    if (model.trajectory && model.trajectory->forcing.present())
      say(a, "Random forcing stands for the motion that the equations do not explain.");
    if (const auto& c = model.calibration; c && !a.given("--raw")) {
      const double lead = f.times.back() - f.times.front();
      if (f.calibrated)
        say(a,
            fmt::format(
                "Bands {}are calibrated on {} held-out starts{}; --raw gives those of the draws.",
                c->observed ? "for observations " : "", c->starts,
                lead > c->leads.back() * (1 + 1e-9)
                    ? fmt::format(" up to t+{:g}, and as there beyond", c->leads.back())
                    : ""));
      else
        say(a,
            fmt::format("Bands are those of the draws: the model's calibration is for {}.",
                        c->observed && observation_noise(model, options).size() == 0
                            ? "bands of observations (--observations)"
                            : fmt::format("{} bands of {:g} % (--bands {})",
                                          c->bands == Bands::quantiles ? "quantile" : "mean ± sd",
                                          100 * c->level, bands_name(c->bands))));
    }
    if (with_page) say(a, "Page written to " + report);
  }
  if (!complete) {
    complain(f.reason + (usable ? "" : ". No forecast was written"));
    return kNotTrusted;
  }
  return kDone;
}

std::vector<Option> option_list() {
  const SolverOptions s;
  return {
      {"--init", "A,B,…", "start (default: the last observation)", ""},
      {"--init-sd", "A,B,…",
       "standard deviation of a Gaussian start (default: a point with\n--init, else what is known "
       "of the last state)",
       ""},
      {"--from", "T",
       "time of --init (default: 0), a date where the data have dates; without\n--init a forecast "
       "starts at the last observation",
       ""},
      {"--until", "T", "end time, on the same axis: a number, or a date such as 2024-04-01", ""},
      {"--step", "H", "spacing of the output times (default: that of the data)", ""},
      {"--at", "FILE", "output at the times of this data file instead", ""},
      {"--trajectory", "ID",
       "which one of that file, and of the truth (default: the one the\nmodel continues)", ""},
      {"--drive", "FILE",
       "the future of the inputs of a driven system: time and inputs\n(default: those columns of "
       "--at or --truth)",
       ""},
      {"--observations", "",
       "bands for what would be observed, too, and their quantiles: the state\nand its noise "
       "(default: where the model knows the noise of its data,\nwithout those quantiles)",
       ""},
      {"--noise", "S,…",
       "standard deviation of that noise, one or one per variable; 0: bands\nof the state alone "
       "(default: the model's)",
       ""},
      {"--raw", "", "the band of the draws, without the model's calibration", ""},
      {"--draws", "M", "trajectories that count", fmt::format("{}", kForecastDefaults.draws)},
      {"--masks",
       "WHICH",
       "sampled, or every mask once with its probability: no seed, no\nMonte Carlo error (up to 20 "
       "hidden units)",
       "sampled",
       0,
       {"sampled", "enumerated"}},
      {"--level", "P", "confidence level of the band", fmt::format("{}", kForecastDefaults.level)},
      {"--bands",
       "WHICH",
       "what lower and upper are: quantiles, calibrated where the model is;\nmean ± c sd (the "
       "paper); both: mean ± c sd, quantiles beside it (default:\nquantiles for learnt equations, "
       "both for networks)",
       "",
       0,
       {"both", "sd", "quantiles"}},
      {"--blow-up",
       "RULE",
       "discard: a run that blows up is replaced (the paper; looks\nahead); until: it counts up to "
       "that time",
       "discard",
       0,
       {"discard", "until"}},
      {"--field",
       "WHICH",
       "draws; or one trajectory of the mean over masks, or of the\npoint estimate with all units "
       "kept",
       "draws",
       0,
       {"draws", "mean", "point"}},
      {"--mask-change",
       "WHEN",
       "one mask per trajectory, or a fresh one at every step or\ncall (their spread shrinks with "
       "the step)",
       "never",
       0,
       {"never", "step", "call"}},
      {"--transition-noise", "", "add noise of sd h^m at the output times (paper §5)", ""},
      {"--method",
       "NAME",
       "ODE solver; auto: rk45, or the implicit radau where learnt equations\nare stiff",
       "auto",
       0,
       {"auto", "rk45", "radau", "rk4", "euler"}},
      {"--rtol", "E",
       fmt::format("relative tolerance (default: {} for networks; for equations a\n"
                   "thousandth of the least relative uncertainty of a coefficient, at most 1e-6)",
                   s.rtol),
       ""},
      {"--atol", "E",
       fmt::format("absolute tolerance, in model units (default: {} for\nnetworks; that "
                   "of --rtol for equations)",
                   s.atol),
       ""},
      {"--fixed-step", "H", "step of rk4 and euler (default: the data's spacing)", ""},
      {"--bound", "F", "a run blows up beyond F × the largest value in the data",
       fmt::format("{}", kForecastDefaults.bound_factor)},
      {"--attempts", "N", "at most N × draws trajectories are tried",
       fmt::format("{}", kForecastDefaults.attempts_per_draw)},
      {"--max-steps", "N", "solver steps after which a run counts as blown up",
       fmt::format("{}", s.max_steps)},
      seed_option(),
      threads_option(),
      report_option(),
      {"--truth", "FILE", "what happened, data as for fit: shown and scored on the page", ""},
      {"--history", "FILE",
       "what was observed before, data as for fit: shown on the page\n(default: the rows that the "
       "model kept, where it goes on from them)",
       ""},
      {"--lyapunov", "L",
       "largest exponent: the page marks Lyapunov times and the growth of\nthe band by it "
       "(default: that of the learnt equations)",
       ""},
      {"--system", "NAME", "take the exponent from the catalogue", ""},
      {"--title", "TEXT", "title of the page", ""},
      {"--output", "FILE", "CSV to write", "forecast.csv", 'o'},
  };
}

}  // namespace

Command forecast_command() {
  std::vector<Option> options = option_list();
  for (Option& o : reading_options_beside_model()) options.push_back(o);
  return {
      "forecast",
      "forecast with mean and confidence band",
      "Integrates many draws of a fitted model forward, discards those that blow up, and gives "
      "the\n"
      "mean and confidence band of every variable; of learnt equations also those ten ranges "
      "away from\nthe data and the most probable run. Without --init it continues from the last\n"
      "observation of the data the model was fitted to.",
      "odecast forecast model.json --init=-1,-1,-1 --until 10 --step 0.02 -o forecast.csv\n"
      "odecast forecast model.json --at test.csv -o forecast.csv     # at the times of a file\n"
      "odecast forecast model.json --at test.csv --truth test.csv --report page.html",
      {{"MODEL", "file written by odecast fit"}},
      with_common(std::move(options)),
      run_forecast};
}

}  // namespace odecast::cli
