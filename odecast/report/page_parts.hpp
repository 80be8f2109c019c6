#pragma once

#include <string>
#include <utility>
#include <vector>

#include "odecast/model/model.hpp"
#include "odecast/report/page.hpp"

namespace odecast {

/// Names in a row; of many the first and the last.
std::string joined(const std::vector<std::string>& names);
/// 12345678 as "12,345,678".
std::string counted(long number);
std::string plural(long number, const char* one, const char* many);

/// What the model learnt from, and how.
KeyValues observed_facts(const Model& model);
Section equation_section(const Model& model);

/// How a result came about, for the end of its page.
struct Origin {
  std::string command;  ///< that repeats it
  /// As they ran: those of settings.hpp, and what else there was.
  std::vector<std::pair<std::string, std::string>> settings = {}, versions = {};
};

/// "How this was made": command, settings, versions.
Section origin_section(const Origin& origin);

}  // namespace odecast
