#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/odecast/arguments.hpp"

namespace odecast::cli {

/// What completes the words of all commands in a shell: bash, zsh or fish. Throws Error (usage) for
/// another.
std::string completions(const std::vector<Command>& commands, std::string_view shell);

/// The page of the manual about a command, or of all where `name` is empty, as troff. Throws Error
/// (usage) for an unknown one.
std::string manual(const std::vector<Command>& commands, std::string_view name);

}  // namespace odecast::cli
