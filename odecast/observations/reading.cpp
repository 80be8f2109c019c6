#include "odecast/observations/reading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/text.hpp"
#include "odecast/observations/formats.hpp"
#include "odecast/observations/rows.hpp"

namespace odecast {
namespace {

TableInfo stream(const ByteSource& from, const std::string& name, const ReadOptions& options,
                 const RowVisitor& visit) {
  const Format& format = **std::find_if(std::begin(kFormats), std::end(kFormats) - 1,
                                        [&](auto* f) { return f->matches(from.head()); });
  TableInfo table = format.stream(from, name, options, visit);
  table.format = format.name;
  return table;
}

TableInfo stream_file(const std::filesystem::path& path, const ReadOptions& options,
                      const RowVisitor& visit) {
  ByteReader bytes(path);
  return stream({.file = &bytes, .path = path}, path.string(), options, visit);
}

/// Rows of a table as trajectories.
class Collector {
 public:
  RowVisitor visitor() {
    return [this](const TableInfo& table, const TableRow& row) {
      if (row.trajectory >= growing_.size()) growing_.resize(row.trajectory + 1);
      Growing& g = growing_[row.trajectory];
      const std::size_t width = table.variables.size() + table.inputs.size();
      g.times.push_back(row.time);
      g.values.insert(g.values.end(), row.values, row.values + width);
      if (keep_texts && table.calendar) g.texts.emplace_back(row.time_text);
      if (keep_numbers) g.numbers.push_back(row.gap ? -row.number : row.number);
      return true;
    };
  }

  Dataset dataset(const TableInfo& table, const ReadOptions& options) {
    Dataset data{table.variables, {},           table.certified_until, table.source,
                 table.time_name, table.inputs, table.calendar};
    for (std::size_t k = 0; k < growing_.size(); ++k) {
      Growing g = std::move(growing_[k]);
      growing_[k] = {};
      std::vector<std::size_t> ends = {g.times.size()};
      if (keep_numbers) ends = put_in_order(g, table, options);
      std::size_t begin = 0;
      const bool split = ends.size() > 1;
      for (std::size_t p = 0; p < ends.size(); begin = ends[p++]) {
        std::string id = table.ids[k];
        if (split) id += fmt::format("{}{}", id.empty() ? "" : ".", p + 1);
        data.trajectories.push_back(trajectory(std::move(id), g, begin, ends[p], table));
      }
    }
    return data;
  }

  bool keep_numbers = false;  ///< of the rows, to sort and to name them
  bool keep_texts = false;    ///< of times that are dates

 private:
  struct Growing {
    std::vector<double> times, values;
    std::vector<long> numbers;  // negative for a gap
    std::vector<std::string> texts;
  };

  static Trajectory trajectory(std::string id, Growing& g, std::size_t begin, std::size_t end,
                               const TableInfo& table) {
    const auto n = static_cast<Eigen::Index>(table.variables.size());
    const auto m = static_cast<Eigen::Index>(table.inputs.size());
    const auto rows = static_cast<Eigen::Index>(end - begin);
    Eigen::Map<const Matrix> all(g.values.data() + begin * static_cast<std::size_t>(n + m), rows,
                                 n + m);
    Trajectory t{std::move(id), {}, all.leftCols(n), m > 0 ? Matrix(all.rightCols(m)) : Matrix()};
    if (!g.texts.empty())
      t.time_texts.assign(g.texts.begin() + static_cast<std::ptrdiff_t>(begin),
                          g.texts.begin() + static_cast<std::ptrdiff_t>(end));
    if (rows == static_cast<Eigen::Index>(g.times.size()))
      t.times = std::move(g.times);
    else
      t.times.assign(g.times.begin() + static_cast<std::ptrdiff_t>(begin),
                     g.times.begin() + static_cast<std::ptrdiff_t>(end));
    return t;
  }

  /// Sorts, joins rows of the same time, takes the gaps out. Returns where the pieces between gaps
  /// end.
  static std::vector<std::size_t> put_in_order(Growing& g, const TableInfo& table,
                                               const ReadOptions& o) {
    const std::size_t width = table.variables.size() + table.inputs.size();
    std::vector<std::size_t> order(g.times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (o.sort)
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return g.times[a] < g.times[b]; });
    Growing sorted;
    std::vector<std::size_t> ends;
    bool fresh = true;  // the next row begins a piece
    double same = 0;    // rows joined into the last one
    for (const std::size_t i : order) {
      if (g.numbers[i] < 0) {
        if (!fresh) ends.push_back(sorted.times.size());
        fresh = true;
        continue;
      }
      const double* values = g.values.data() + i * width;
      if (!fresh && g.times[i] == sorted.times.back()) {
        if (o.duplicates == DuplicateRule::error)
          refuse(table, g.times[i], g.numbers[i], sorted.times.back(), sorted.numbers.back());
        if (o.duplicates == DuplicateRule::mean) {
          ++same;
          double* mean = sorted.values.data() + sorted.values.size() - width;
          for (std::size_t c = 0; c < width; ++c) mean[c] += (values[c] - mean[c]) / same;
        }
        continue;
      }
      if (!fresh && !(g.times[i] > sorted.times.back()))
        refuse(table, g.times[i], g.numbers[i], sorted.times.back(), sorted.numbers.back());
      fresh = false;
      same = 1;
      sorted.times.push_back(g.times[i]);
      sorted.values.insert(sorted.values.end(), values, values + width);
      sorted.numbers.push_back(g.numbers[i]);
      if (!g.texts.empty()) sorted.texts.push_back(g.texts[i]);
    }
    if (!fresh) ends.push_back(sorted.times.size());
    g = std::move(sorted);
    return ends;
  }

  [[noreturn]] static void refuse(const TableInfo& table, double time, long number, double before,
                                  long before_number) {
    const char* unit = table.format == "csv" ? "line" : "row";
    throw_data(
        {fmt::format("{}, {} {}", table.source, unit, number),
         fmt::format("time {} after {} in {} {}", shown_time(table, time),
                     shown_time(table, before), unit, before_number),
         "times that increase along a trajectory",
         time == before ? "Keep one row of each time: `duplicates=first` or `duplicates=mean`."
                        : "Sort the rows by time: `sort`.",
         "",
         {"Tell several trajectories apart: a column named trajectory (or `id` NAME), a blank "
          "line between them, or a file for each."}});
  }

  std::vector<Growing> growing_;
};

template <class Stream>
Dataset collect(const ReadOptions& options, TableInfo* understood, const Stream& stream) {
  Collector collector;
  collector.keep_numbers = options.sort || options.duplicates != DuplicateRule::error;
  collector.keep_texts = options.keep_time_texts;
  TableInfo table = stream(collector.visitor());
  Dataset data = collector.dataset(table, options);
  if (understood) *understood = std::move(table);
  return data;
}

}  // namespace

TableInfo stream_observations(const std::vector<std::filesystem::path>& paths,
                              const ReadOptions& options, const RowVisitor& visit) {
  if (paths.size() == 1) return stream_file(paths[0], options, visit);
  TableInfo all;
  ReadOptions each = options;  // dates of all files count from the first one's origin
  for (const auto& path : paths) {
    if (std::count(paths.begin(), paths.end(), path) > 1)
      throw_usage({"data " + shown(path.string()), "it given twice", "different files",
                   "Remove one of them."});
    const std::size_t before = all.ids.size();
    bool checked = before == 0, go_on = true;
    TableInfo one = stream_file(path, each, [&](const TableInfo& table, const TableRow& row) {
      if (!checked && table.calendar.has_value() != all.calendar.has_value())
        throw_data({table.source,
                    table.calendar ? "times that are dates" : "times that are numbers",
                    "times as in " + paths[0].string(), "Write the times of all files alike."});
      if (!checked && table.variables != all.variables)
        throw_data({table.source,
                    fmt::format("columns {}", fmt::join(table.variables, ", ")),
                    fmt::format("{} as in {}", fmt::join(all.variables, ", "), paths[0].string()),
                    "Choose common columns: `variables` A,B,….",
                    "",
                    {"Fit the files separately."}});
      checked = true;
      TableRow moved = row;
      moved.trajectory += before;
      return go_on = visit(table, moved);
    });
    const bool alone = one.ids.size() == 1;
    const std::string file = printable(one.source);
    for (const auto& id : one.ids) all.ids.push_back(alone && id.empty() ? file : file + ":" + id);
    one.ids = std::move(all.ids);
    if (all.certified_until)
      one.certified_until =
          std::min(*all.certified_until, one.certified_until.value_or(*all.certified_until));
    one.dropped += all.dropped;
    for (const auto& note : one.notes)  // of many files the same is said once
      if (std::count(all.notes.begin(), all.notes.end(), note) == 0) all.notes.push_back(note);
    one.notes = std::move(all.notes);
    all = std::move(one);
    if (all.calendar) each.time_count = *all.calendar;
    if (!go_on) break;
  }
  all.source = fmt::format("{} files", paths.size());
  return all;
}

Dataset read_observations(const std::vector<std::filesystem::path>& paths,
                          const ReadOptions& options, TableInfo* table) {
  return collect(options, table, [&](const RowVisitor& visit) {
    return stream_observations(paths, options, visit);
  });
}

Dataset read_observations(const std::filesystem::path& path, const ReadOptions& options) {
  return read_observations(std::vector{path}, options);
}

Dataset parse_observations(std::string_view bytes, const std::string& name,
                           const ReadOptions& options) {
  return collect(options, nullptr, [&](const RowVisitor& visit) {
    return stream({.memory = bytes}, name, options, visit);
  });
}

std::string format_observations(const std::filesystem::path& path, const Dataset& data) {
  const auto extension = lower_case(path.extension().string());
  return (*std::find_if(std::begin(kFormats), std::end(kFormats) - 1,
                        [&](auto* f) { return extension == f->extension; }))
      ->write(data);
}

void write_observations(const std::filesystem::path& path, const Dataset& data) {
  write_file(path, format_observations(path, data));
}

}  // namespace odecast
