#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/odecast/commands.hpp"
#include "odecast/core/text.hpp"
#include "odecast/field/polynomial.hpp"
#include "odecast/learning/fit.hpp"
#include "odecast/observations/inspection.hpp"

namespace odecast::cli {
namespace {

std::string sampling_text(const Inspection& d, const std::optional<Calendar>& calendar) {
  if (d.pairs == 0) return "no two rows of one trajectory";
  std::string text =
      d.even ? "even, step " + duration_text(calendar, d.step, 6)
             : fmt::format("irregular, steps from {:.6g} to {:.6g} (ratio {:.3g}), median {}",
                           d.smallest_step, d.largest_step, d.largest_step / d.smallest_step,
                           duration_text(calendar, d.step, 6));
  if (d.gaps > 0)
    text += fmt::format("; {} gap{}, the longest {}", d.gaps, d.gaps == 1 ? "" : "s",
                        duration_text(calendar, d.largest_gap, 6));
  return text;
}

/// What `odecast fit` does with such data when nothing else is asked for.
std::vector<std::string> plan(const ObservationSource& source, const Inspection& d) {
  const TrajectoryMethod o;  // the default
  std::vector<std::string> lines;
  if (d.pairs == 0) {
    lines.push_back("fit would refuse: it needs two rows of one trajectory.");
    return lines;
  }
  for (int i = 0; i < source.dimension(); ++i)
    if (const long values = d.rows - d.missing[static_cast<std::size_t>(i)]; values < 8) {
      lines.push_back(fmt::format("fit would refuse: it asks for 8 values of {}, and there are {}.",
                                  source.variables[static_cast<std::size_t>(i)], values));
      return lines;
    }
  const double monomials =
      monomial_count(source.dimension() + static_cast<int>(source.inputs.size()), o.degree);
  lines.push_back(
      fmt::format("fit would look for equations of degree {}, {} candidate terms in each, by the "
                  "likelihood of all {} rows, and give the posterior of "
                  "their coefficients.",
                  o.degree, monomials, d.rows));
  for (int i = 0; i < source.dimension(); ++i)
    if (d.constant[static_cast<std::size_t>(i)])
      lines.push_back(fmt::format("{} is constant: it keeps its scale.",
                                  source.variables[static_cast<std::size_t>(i)]));
  const auto lonely = std::count(d.trajectory_rows.begin(), d.trajectory_rows.end(), 1);
  if (lonely > 0)
    lines.push_back(fmt::format("{} of {} trajectories have one row and teach nothing.", lonely,
                                d.trajectory_rows.size()));
  std::vector<std::string> noisy;
  double most = 0;
  for (Eigen::Index i = 0; i < source.dimension(); ++i) {
    const double share = d.noise[i] / d.sd[i];
    if (d.constant[static_cast<std::size_t>(i)] || !(share > 0.01)) continue;
    noisy.push_back(source.variables[static_cast<std::size_t>(i)]);
    most = std::max(most, share);
  }
  if (!noisy.empty())
    lines.push_back(
        fmt::format("{}: up to {:.0f} % of the sd is noise, or motion faster than the "
                    "rows.",
                    fmt::join(noisy, ", "), 100 * most));
  for (Eigen::Index i = 0; i < source.dimension(); ++i)
    if (const double q = d.relative_noise[i]; q > 0)
      lines.push_back(fmt::format(
          "{}: the noise grows with the state, about {:.2g} % of it{}.",
          source.variables[static_cast<std::size_t>(i)], 100 * d.noise[i] * std::sqrt(q) / d.rms[i],
          d.log_noise[static_cast<std::size_t>(i)] ? ", and is that of the logarithm" : ""));
  return lines;
}

Json number(double x) { return std::isfinite(x) ? Json(x) : nullptr; }

int run(const Arguments& a) {
  ReadOptions read = reading(a);
  read.may_keep = true;
  const ObservationSource source = source_of_files(a.paths(0), read);
  const Inspection d = inspect(source);
  const TableInfo& table = *source.table;
  std::vector<std::string> columns = source.variables;
  columns.insert(columns.end(), source.inputs.begin(), source.inputs.end());
  const auto [shortest, longest] =
      std::minmax_element(d.trajectory_rows.begin(), d.trajectory_rows.end());
  const std::size_t trajectories = d.trajectory_rows.size();
  const auto steps = plan(source, d);
  if (a.json()) {
    Json j = {{"source", source.name}, {"format", table.format}};
    if (table.format == "csv")
      j["dialect"] = {{"separator", std::string(1, table.dialect.separator)},
                      {"decimal", std::string(1, table.dialect.decimal)},
                      {"header", table.dialect.header}};
    j["rows"] = d.rows;
    j["dropped"] = table.dropped;
    j["notes"] = Json::array();
    for (const std::string& note : table.notes)
      j["notes"].push_back(spelled(note, Spelling::options));
    j["noise_rows"] = d.noise_rows;
    j["trajectories"] = {{"count", trajectories}, {"shortest", *shortest}, {"longest", *longest}};
    j["time"] = {{"first", d.first_time}, {"last", d.latest_time}};
    if (const auto& c = table.calendar)
      j["time"]["calendar"] = {{"column", table.time_name},
                               {"first", time_text(*c, d.first_time)},
                               {"last", time_text(*c, d.latest_time)},
                               {"unit", unit_name(c->unit)}};
    j["sampling"] = {{"even", d.even},
                     {"step", d.step},
                     {"smallest", d.smallest_step},
                     {"largest", d.largest_step},
                     {"gaps", d.gaps},
                     {"largest_gap", d.largest_gap}};
    Json described = Json::array();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      described.push_back({{"name", columns[i]},
                           {"use", i < source.variables.size() ? "variable" : "input"},
                           {"missing", d.missing[i]},
                           {"smallest", number(d.smallest[k])},
                           {"largest", number(d.largest[k])},
                           {"mean", number(d.mean[k])},
                           {"sd", number(d.sd[k])},
                           {"noise", number(d.noise[k])},
                           {"relative_noise", number(d.relative_noise[k])},
                           {"constant", bool(d.constant[i])}});
    }
    j["columns"] = described;
    j["fit"] = steps;
    put_json(j);
    return kDone;
  }
  put("{}: {}\n", printable(source.name),
      table.format == "csv" ? in_words(table.dialect) : table.format);
  const auto moment = [&](double t) {
    return table.calendar ? time_text(*table.calendar, t) : fmt::format("{:.6g}", t);
  };
  put("{} row{} in {} trajector{}{}, {} from {} to {}\n", d.rows, d.rows == 1 ? "" : "s",
      trajectories, trajectories == 1 ? "y" : "ies",
      trajectories == 1 ? "" : fmt::format(" of {} to {} rows", *shortest, *longest),
      printable(table.time_name), moment(d.first_time), moment(d.latest_time));
  if (table.dropped > 0)
    put("{} row{} with a missing cell left out\n", table.dropped, table.dropped == 1 ? "" : "s");
  for (const std::string& note : table.notes)
    put("{}.\n", printable(spelled(note, Spelling::options)));
  if (d.rows > d.noise_rows) put("The noise is that of the first {} rows.\n", d.noise_rows);
  put("Sampling: {}\n\n{:<16} {:>12} {:>12} {:>12} {:>12} {:>12}\n",
      sampling_text(d, table.calendar), "", "smallest", "largest", "mean", "sd", "noise sd");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    const auto known = [](double x) {
      return std::isfinite(x) ? fmt::format("{:.6g}", x) : "unknown";
    };  // all are missing
    put("{:<16} {:>12} {:>12} {:>12} {:>12} {:>12}{}\n", printable(columns[i]),
        known(d.smallest[k]), known(d.largest[k]), known(d.mean[k]), known(d.sd[k]),
        std::isfinite(d.noise[k]) ? fmt::format("{:.3g}", d.noise[k]) : "unknown",
        (i < source.variables.size() ? "" : "  input") +
            (d.missing[i] > 0 ? fmt::format("  {} missing ({:.1f} %)", d.missing[i],
                                            100.0 * static_cast<double>(d.missing[i]) /
                                                static_cast<double>(d.rows))
                              : ""));
  }
  for (const std::string& line : steps)
    put("{}{}\n", &line == &steps.front() ? "\n" : "", printable(line));
  return kDone;
}

}  // namespace

Command inspect_command() {
  std::vector<Option> options = reading_options();
  for (Option& o : options)
    if (o.name == "--missing") {
      o.help += ";\nkeep what else was observed";
      o.choices.push_back("keep");
    }
  return {
      "inspect",
      "say what is understood of a data file",
      "Reads observations as fit does and says what was understood: how the file is written,\n"
      "trajectories, rows, variables and their ranges, sampling, the noise that fit begins with\n"
      "(by smoothing), and what fit would do.",
      "odecast inspect data.csv",
      {{"DATA", "as for fit", true, true}},
      with_common(std::move(options)),
      run};
}

}  // namespace odecast::cli
