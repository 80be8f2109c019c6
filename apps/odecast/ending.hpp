#pragma once

// How the program ends when it is told to, or must, before its work is done.

namespace odecast::cli {

/// Before anything else: SIGINT, SIGTERM and SIGHUP ask the work to stop and end it themselves
/// after 0.5 s, or at the second; a closed pipe or a file over its limit is a write error; out of
/// memory is exit code 4 wherever it happens.
void install_endings();

inline constexpr const char* kOutOfMemory =
    "out of memory. Give it more, or ask for less: fewer rows, draws, output times, terms or "
    "hidden units.";

/// What an interruption leaves, as a message. For a handler, too.
const char* interruption_text();

}  // namespace odecast::cli
