#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "odecast/learning/method.hpp"

namespace odecast {

enum class FieldType { flag, whole, number, numbers, choice, text };

/// A field of FitOptions or of a method, by name: what the command line's options and help,
/// Python's keywords, the settings of a model and of a page are made from. Values are text; numbers
/// print so that they read back as the same bits.
struct Field {
  std::string name;  ///< "max_iterations"
  FieldType type = FieldType::text;
  std::string value;                      ///< how help calls one: "N"
  std::vector<std::string> choices = {};  ///< allowed words; of a number: beside numbers
  std::string help;
  /// What holds where nothing is given, whatever the method; empty where that depends on it (then
  /// `help` says so), or where there is none.
  std::string initial = {};
  std::string bare = {};  ///< what it is where it is named without a value; empty: it needs one
  std::string group;      ///< heading under which help shows it
  /// As `options` have it; nothing where their method has no such field.
  std::function<std::optional<std::string>(const FitOptions&)> get = {};
  /// Throws Error (usage) for text that is no such value or out of range.
  std::function<void(FitOptions&, const std::string&)> set = {};
  /// What a field of this method waits for to have an effect; empty where it has one.
  std::function<std::string(const FitOptions&)> needs = [](const FitOptions&) { return ""; };
};

/// All fields but the threads, which change no result.
const std::vector<Field>& fit_fields();

/// Options from given values by name. Without `posterior`, or where it is auto, the values choose
/// the method: trajectory, but regression for maps and with `degree` auto, `terms` or `gap`, and
/// dropout with `dropout`, `layers` or other values than the initial ones of fields of networks and
/// derivatives. A value that is a field's initial one changes nothing, whatever the method. Throws
/// Error (usage) for an unknown name, a value out of range, and a field that the method does not
/// have or that has no effect.
FitOptions fit_options(const std::map<std::string, std::string>& given);

/// Name and value of every field that has an effect.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings(const FitOptions& options);

}  // namespace odecast
