#pragma once

// How the program ends when it is told to, or must, before its work is done.

#include <filesystem>
#include <string>

namespace odecast::cli {

/// Before anything else: SIGINT, SIGTERM and SIGHUP ask the work to stop and end it themselves after 0.8 s, or at the
/// second; a closed pipe or a file over its limit is a write error; out of memory is exit code 4 wherever it happens.
void install_endings();

/// For work that keeps parts of itself: what an interruption says of them.
void say_when_interrupted(const std::string& text);

/// That text for work in units (odecast/study/work.hpp).
std::string kept_units(const std::filesystem::path& folder);

/// What is kept, as a message.
const char* interruption_text();

}  // namespace odecast::cli
