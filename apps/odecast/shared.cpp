#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/numbers.hpp"
#include "odecast/core/stop.hpp"
#include "odecast/core/text.hpp"
#include "odecast/model/status.hpp"

namespace odecast::cli {
namespace {

std::array<char, 1024> kept{};  // text of keeps_units(), where a signal handler may read it
std::array<char, 4096> kept_settings{};  // the file that is there once the folder is claimed

/// The bar. It is drawn at most ten times a second, first after a second, and wiped at the end.
class Bar {
 public:
  ~Bar() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
  }
  void update(std::string_view what, double fraction) {
    const auto now = std::chrono::steady_clock::now();
    if (now - begin_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(100))
      return;
    last_ = now;
    drawn_ = true;
    const double elapsed = std::chrono::duration<double>(now - begin_).count();
    if (!(fraction > 0)) {  // how much there is to do is not known
      print_error(
          fmt::format("\r\x1b[K{} {} {:.0f} s", printable(what), "|/-\\"[turn_++ % 4], elapsed));
      return;
    }
    const int width = 30, full = static_cast<int>(std::min(1.0, fraction) * width);
    print_error(fmt::format("\r\x1b[K{} [{:=<{}}{:<{}}] {:3.0f} %  {:.0f} s left", printable(what),
                            "", full, "", width - full, 100 * fraction,
                            elapsed * (1 - fraction) / fraction));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
  bool drawn_ = false;
  unsigned turn_ = 0;
};

[[noreturn]] void output_failed() {
  if (errno == EPIPE) throw PipeClosed();
  throw_file({"standard output", errno != 0 ? std::strerror(errno) : "a failure",
              "a place with room", "Free space or write to another place."});
}

}  // namespace

std::vector<Option> with_common(std::vector<Option> options) {
  options.push_back({"--json", "", "print one JSON object on standard output, nothing else", ""});
  options.push_back({"--quiet", "", "no progress and no messages but errors", "", 'q'});
  options.push_back({"--help", "", "this text; -h: its most used options", "", 'h'});
  return options;
}

Option seed_option() {
  return {"--seed", "N", "seed of all random numbers; same seed, same bytes", "1"};
}

Option threads_option() {
  return {"--threads", "N", "threads to use; results do not depend on it", "all"};
}

std::vector<Option> reading_options() {
  std::vector<Option> options = {
      {"--time", "NAME",
       "the time column (default: t or time, or the one whose name speaks of "
       "it:\nyear, day, date, …)",
       ""},
      {"--time-format",
       "HOW",
       "how times are written: auto finds dates and epochs; number: as they\nstand; dmy, mdy: what "
       "comes first in 3/4/2024; excel: its days",
       "auto",
       0,
       {"auto", "number", "dmy", "mdy", "excel"}},
      {"--time-unit",
       "UNIT",
       "what dates are counted in (auto: by their spacing)",
       "auto",
       0,
       {"auto", "s", "min", "h", "d", "y"}},
      {"--id", "NAME",
       "the column that tells trajectories apart\n(default: trajectory, series or id)", ""},
      {"--variables", "A,B,…", "the columns to use (default: all others)", ""},
      {"--inputs", "A,B,…",
       "columns that drive the system, the time among them if it does\n(default: none)", ""},
      {"--skip", "N", "lines before the table (default: found where a header follows)", ""},
      {"--header",
       "WHAT",
       "whether the first line names the columns",
       "sniff",
       0,
       {"sniff", "yes", "no"}},
      {"--separator",
       "WHICH",
       "what stands between the columns",
       "sniff",
       0,
       {"sniff", ",", ";", "tab", "|"}},
      {"--decimal",
       "WHICH",
       "the decimal mark of the numbers",
       "sniff",
       0,
       {"sniff", "point", "comma"}},
      {"--missing",
       "RULE",
       "a missing cell: an error, or drop its row and split the\ntrajectory there",
       "error",
       0,
       {"error", "drop"}},
      {"--sort", "", "sort rows by time (default: time that goes back is an error)", ""},
      {"--duplicates",
       "RULE",
       "several rows of one time: an error, or keep the first or\ntheir mean",
       "error",
       0,
       {"error", "first", "mean"}},
      {"--sample-step", "H", "spacing of the rows of a .npy array that has no times", ""}};
  for (Option& o : options)
    if (o.name != "--variables" && o.name != "--inputs") o.group = "Reading the data";
  return options;
}

ReadOptions reading(const Arguments& a) {
  ReadOptions o;
  o.time = a.text("--time");
  const std::string format = a.text("--time-format");
  o.time_format = format == "number"  ? TimeFormat::number
                  : format == "dmy"   ? TimeFormat::day_first
                  : format == "mdy"   ? TimeFormat::month_first
                  : format == "excel" ? TimeFormat::excel
                                      : TimeFormat::found;
  if (a.declares("--time-unit"))
    if (const auto unit = unit_from_name(a.text("--time-unit"))) o.time_count = *unit;
  o.id = a.text("--id");
  if (a.declares("--variables")) o.variables = a.words("--variables");
  if (a.declares("--inputs")) o.inputs = a.words("--inputs");
  if (a.given("--skip")) o.skip = a.whole("--skip", 0, 1'000'000);
  // forecast chooses no columns but the time.
  const std::string header = a.text("--header"), separator = a.text("--separator"),
                    decimal = a.text("--decimal"), duplicates = a.text("--duplicates");
  o.header = header == "yes"  ? HeaderRule::yes
             : header == "no" ? HeaderRule::no
                              : HeaderRule::sniffed;
  o.separator = separator == "sniff" ? '\0' : separator == "tab" ? '\t' : separator[0];
  o.decimal = decimal == "sniff" ? '\0' : decimal == "comma" ? ',' : '.';
  o.missing = a.text("--missing") == "drop"   ? MissingRule::drop
              : a.text("--missing") == "keep" ? MissingRule::keep
                                              : MissingRule::error;
  o.sort = a.given("--sort");
  o.duplicates = duplicates == "first"  ? DuplicateRule::first
                 : duplicates == "mean" ? DuplicateRule::mean
                                        : DuplicateRule::error;
  if (a.given("--sample-step")) {
    o.step = a.number("--sample-step");
    if (!(o.step > 0))
      throw_usage({"option `sample_step`", a.text("--sample-step"), "a number > 0",
                   "It is the time between two rows."});
  }
  return o;
}

namespace {

ReadOptions reading(const Arguments& a, const std::string& time_name,
                    const std::optional<Calendar>& calendar) {
  ReadOptions o = reading(a);
  o.likely_time = time_name;
  if (calendar)
    o.time_count = *calendar;
  else
    o.time_format = TimeFormat::number;
  return o;
}

}  // namespace

ReadOptions reading(const Arguments& a, const Model& model) {
  return reading(a, model.time_name, model.calendar);
}

ReadOptions reading(const Arguments& a, const Forecast& forecast) {
  return reading(a, forecast.time_name, forecast.calendar);
}

std::vector<Option> reading_options_beside_model() {
  std::vector<Option> options;
  for (Option& o : reading_options())
    if (o.name != "--variables" && o.name != "--inputs" && o.name != "--time-unit") {
      if (o.name == "--time")
        o.help = "the time column (default: that of the model, or as for fit)";
      options.push_back(o);
    }
  return options;
}

double time_given(const Arguments& a, std::string_view option, const Model& model) {
  const std::string text = a.text(option);
  if (!model.calendar || parse_number(text)) return a.number(option);
  std::string fault;
  const auto time = parse_time(text, TimeForm::text, &fault);
  const Calendar& c = *model.calendar;
  require_option(
      time && (!time->offset || c.offset), "option " + marked(option),
      shown(text) + (time ? ", which has a zone" : ": " + fault),
      fmt::format("a date such as {}{}, or a number of {}", time_text(c, model.last_time),
                  time ? ", without a zone as in the data" : "", unit_words(c.unit)),
      "Write it in one of these ways.");
  Instant instant = time->instant;
  if (!time->offset && c.offset) instant.seconds -= 60 * *c.offset;
  return to_number(c, instant);
}

void say_reading(const Arguments& a, const TableInfo& table) {
  const Dialect& d = table.dialect;
  if (table.format == "csv" && (d.separator != ',' || d.decimal != '.' || !d.header))
    say(a, fmt::format(
               "Read {}: {}{}.", table.source, in_words(d),
               d.header ? "" : fmt::format(", variables {}", fmt::join(table.variables, ", "))));
  for (const std::string& note : table.notes) say(a, note + ".");
  if (table.dropped > 0)
    say(a, fmt::format("{} row{} with a missing cell left out; {} trajector{} remain.",
                       table.dropped, table.dropped == 1 ? "" : "s", table.ids.size(),
                       table.ids.size() == 1 ? "y" : "ies"));
}

Observer progress(const Arguments& a) {
  std::shared_ptr<Bar> bar;
  if (!a.quiet() && isatty(STDERR_FILENO)) bar = std::make_shared<Bar>();
  return [bar](std::string_view what, double fraction) {
    throw_if_stopped();
    if (bar) bar->update(what, fraction);
  };
}

void check_output(const std::filesystem::path& output,
                  const std::vector<std::filesystem::path>& inputs) {
  for (const auto& input : inputs)
    if (same_file(output, input))
      throw_usage({"output '" + output.string() + "'", "the file that is also the input",
                   "another file", "Choose another name with -o."});
  check_writable(output);
}

bool output_is_standard(const Arguments& a) {
  for (const char* option : {"--output", "--report", "--train", "--test"})
    if (a.declares(option) && is_standard_stream(a.text(option))) return true;
  return false;
}

void check_two_outputs(const std::string& option, const std::string& output,
                       const std::string& other_option, const std::string& other) {
  const auto place = [](const std::string& name) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(name));
  };
  if (place(output) == place(other))
    throw_usage({"option " + other_option, "the file of " + option + ", '" + output + "'",
                 "another file", "Choose two names."});
}

void needs(const Arguments& a, std::initializer_list<const char*> options, bool condition,
           const std::string& what) {
  for (const char* option : options)
    if (a.given(option) && !condition)
      throw_usage({"option " + marked(option), "it without effect here", what,
                   "Remove the option, or add what it needs."});
}

Option report_option() {
  return {
      "--report", "FILE",
      "also write a page about the result: one HTML file that opens\nanywhere and loads nothing",
      ""};
}

std::vector<std::pair<std::string, std::string>> versions() {
  std::vector<std::pair<std::string, std::string>> all = {
      {"odecast", ODECAST_VERSION},
      {"Compiler", __VERSION__},
      {"Eigen",
       fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)}};
  if (const std::string version = page_library_version(); !version.empty())
    all.emplace_back("uPlot", version);
  return all;
}

Origin origin(const Arguments& a) { return {.command = a.command_line(), .versions = versions()}; }

Vector to_vector(const std::vector<double>& values) {
  return Eigen::Map<const Vector>(values.data(), static_cast<Eigen::Index>(values.size()));
}

void say(const Arguments& a, const std::string& text) {
  if (a.json() || a.quiet()) return;
  const std::string line = printable_lines(spelled(text, Spelling::options)) + "\n";
  if (output_is_standard(a))
    print_error(line);
  else
    print_text(line);
}

void warn(const Arguments& a, const std::string& text) {
  if (!a.quiet()) complain(text);
}

void warn_of(const Arguments& a, const Model& model) {
  const std::string_view why = distrust(model.training.status);
  if (!why.empty()) warn(a, fmt::format("of this model fit said: do not trust it; {}", why));
}

void complain(const std::string& text) {
  print_error("odecast: " + printable_lines(spelled(text, Spelling::options)) + "\n");
}

void print_error(const std::string& text) {
  std::fputs(text.c_str(), stderr);  // unbuffered; a message that cannot be written is lost
}

void print_text(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  throw_if_stopped();
  output_failed();
}

void put_json(const Json& json) {
  print_text(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void keeps_units(const std::filesystem::path& folder) {
  const std::string text = printable("interrupted; finished units are kept in '" + folder.string() +
                                     "': the same command goes on from there");
  const std::string settings = (folder / "units" / "settings").string();
  kept[text.copy(kept.data(), kept.size() - 1)] = '\0';
  kept_settings[settings.copy(kept_settings.data(), kept_settings.size() - 1)] = '\0';
}

const char* kept_work() {
  return kept[0] != '\0' && ::access(kept_settings.data(), F_OK) == 0 ? kept.data() : "";
}

void flush_output() {
  errno = 0;
  while (std::fflush(stdout) != 0) {
    throw_if_stopped();
    if (errno != EINTR) output_failed();
  }
}

}  // namespace odecast::cli
