#include "odecast/study/work.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "odecast/core/error.hpp"
#include "odecast/core/files.hpp"
#include "odecast/core/parallel.hpp"

namespace odecast {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw_file({"folder '" + folder.string() + "'", error ? error.message() : "a file of that name",
                "a folder that can be made", "Choose another with -o."});
}

Work run_units(std::vector<Unit> units, const WorkOptions& options, const Observer& observer) {
  make_folder(options.folder);
  const fs::path settings = options.folder / "settings";
  bool begun = false;
  for (const auto& entry : fs::directory_iterator(options.folder)) {
    if (entry.path().extension() == ".json")
      begun = true;
    else if (entry.path() != settings)
      fs::remove(entry.path());  // what work that was killed left behind
  }
  if (!begun || !fs::exists(settings)) {
    write_file(settings, options.settings);
  } else if (read_file(settings) != options.settings) {
    throw_usage({"folder '" + options.folder.parent_path().string() + "'", "work with other settings or data",
                 "a new folder, or the same settings and data", "Choose another folder with -o, or delete this one."});
  }
  // The longest first, so that no thread is left alone with one at the end.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.cost > b.cost; });

  Work work;
  std::vector<const Unit*> open;
  for (const Unit& unit : units) {
    const fs::path file = options.folder / (unit.key + ".json");
    if (fs::exists(file)) {
      work.results[unit.key] = parse_values(read_file(file), file.string());
      ++work.found;
    } else {
      open.push_back(&unit);
    }
  }

  double total = 0;
  for (const Unit* unit : open) total += unit->cost;
  std::atomic<double> done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  const auto caller = std::this_thread::get_id();
  parallel_for(options.threads, open.size(), [&](std::size_t i) {
    const Unit& unit = *open[i];
    // The observer belongs to the calling thread; the others stop when it has thrown. A unit in several
    // parts reports from 0 to 1 more than once; the bar never goes back.
    double furthest = 0;
    const Observer watch = [&](std::string_view, double fraction) {
      if (std::this_thread::get_id() != caller) {
        if (stop) throw Interrupted(0);
        return;
      }
      furthest = std::max(furthest, fraction);
      try {
        observer(options.activity, std::min(1.0, (done + furthest * unit.cost) / total));
      } catch (...) {
        stop = true;
        throw;
      }
    };
    Values values = unit.run(watch);
    write_file(options.folder / (unit.key + ".json"), format_values(values));
    const std::lock_guard lock(mutex);
    done = done + unit.cost;
    work.results[unit.key] = std::move(values);
  });
  return work;
}

std::string format_values(const Values& values) {
  nlohmann::ordered_json json{{"numbers", nlohmann::ordered_json::object()},
                              {"curves", nlohmann::ordered_json::object()}};
  for (const auto& [name, value] : values.numbers) json["numbers"][name] = value;  // NaN is null
  for (const auto& [name, curve] : values.curves) json["curves"][name] = curve;
  return json.dump(1) + "\n";
}

Values parse_values(const std::string& text, const std::string& source) {
  Values values;
  try {
    const auto json = nlohmann::json::parse(text);
    const auto number = [](const nlohmann::json& j) {
      return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
    };
    for (const auto& [name, value] : json.at("numbers").items()) values.numbers[name] = number(value);
    for (const auto& [name, curve] : json.at("curves").items())
      for (const auto& value : curve) values.curves[name].push_back(number(value));
  } catch (const nlohmann::json::exception&) {
    throw_data({source, "no result of this work", "a file that odecast has written",
                "Delete it; it is computed again."});
  }
  return values;
}

}  // namespace odecast
