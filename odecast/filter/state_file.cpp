#include "odecast/filter/state_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "odecast/core/encoding.hpp"
#include "odecast/core/error.hpp"
#include "odecast/model/model_file.hpp"

namespace odecast {
namespace {

using Json = nlohmann::ordered_json;

std::string model_hash(const Model& model) { return hexadecimal(fnv1a(model_to_text(model))); }

std::vector<double> numbers(const Vector& v) { return {v.begin(), v.end()}; }

/// All options that the next rows depend on.
Json settings(const Observing& observing, const FilterOptions& o) {
  Json j = {
      {"method", kFilterMethodNames[static_cast<std::size_t>(o.method)]},
      {"members", o.members},
      {"robust", o.robust},
      {"gate", o.gate},
      {"bank", o.bank},
      {"learn", o.learn},
      {"lag", o.lag},
      {"ahead", o.ahead},
      {"level", o.level},
      {"inflation", o.inflation},
      {"seed", o.seed},
      {"columns", observing.columns},
      {"sums", std::vector<double>(observing.H.data(), observing.H.data() + observing.H.size())}};
  if (o.noise) j["noise"] = numbers(*o.noise);
  if (o.drift) j["drift"] = *o.drift;
  return j;
}

Vector vector(const Json& json) {
  const auto all = json.get<std::vector<double>>();
  return Eigen::Map<const Vector>(all.data(), static_cast<Eigen::Index>(all.size()));
}

FilterState state_of(const Json& json) {
  FilterState s;
  s.weights = vector(json.at("weights"));
  const Vector members = vector(json.at("members"));
  if (s.weights.size() > 0 && members.size() % s.weights.size() == 0)
    s.members = Eigen::Map<const Matrix>(members.data(), s.weights.size(),
                                         members.size() / s.weights.size());
  s.draws = json.at("draws").get<std::vector<int>>();
  s.last_inputs = vector(json.at("last_inputs"));
  s.time = json.at("time");
  s.rows = json.at("rows");
  s.surprises = json.at("surprises");
  s.gated = json.at("gated");
  s.averaged = json.at("averaged");
  s.started = json.at("started");
  s.recovering = json.at("recovering");
  return s;
}

}  // namespace

std::string filter_state_to_text(const FilterState& state, const Model& model,
                                 const Observing& observing, const FilterOptions& options) {
  const Json json = {{"odecast_filter", 1},
                     {"model", model_hash(model)},
                     {"settings", settings(observing, options)},
                     {"time", state.time},
                     {"rows", state.rows},
                     {"surprises", state.surprises},
                     {"gated", state.gated},
                     {"averaged", state.averaged},
                     {"started", state.started},
                     {"recovering", state.recovering},
                     {"draws", state.draws},
                     {"last_inputs", numbers(state.last_inputs)},
                     {"weights", numbers(state.weights)},
                     {"members", std::vector<double>(state.members.data(),
                                                     state.members.data() + state.members.size())}};
  return sealed(json.dump(1));
}

FilterState filter_state_from_text(const std::string& text, const std::string& name,
                                   const Model& model, const Observing& observing,
                                   const FilterOptions& options) {
  const auto refuse = [&](const std::string& found, const std::string& expected,
                          const std::string& action) {
    throw_data({name, found, expected, action});
  };
  const std::string delete_it = "Delete it to begin anew.";
  if (!has_seal(text))
    refuse("a file that was changed or cut off, or is no state of a filter",
           "one as odecast filter wrote it", delete_it);
  try {
    const Json json = Json::parse(text);
    if (json.at("odecast_filter") != 1)
      refuse("a state of another version", "version 1", "Go on with the odecast that wrote it.");
    if (json.at("model") != model_hash(model))
      refuse("a state of another model", "one of the model given",
             "Go on with that model, or delete the state to begin anew.");
    const Json now = settings(observing, options), &then = json.at("settings");
    for (const auto& [key, value] : now.items())
      if (!then.contains(key) || then[key] != value)
        refuse(fmt::format("another `{}` when it was begun", key), fmt::format("{}", value.dump()),
               "Go on as it was begun, or delete the state to begin anew.");
    for (const auto& [key, value] : then.items())
      if (!now.contains(key))
        refuse(fmt::format("`{}` {} when it was begun", key, value.dump()), "the same",
               "Go on as it was begun, or delete the state to begin anew.");
    return state_of(json);
  } catch (const nlohmann::json::exception&) {
    refuse("no state of a filter", "one as odecast filter wrote it", delete_it);
  }
  return {};
}

}  // namespace odecast
