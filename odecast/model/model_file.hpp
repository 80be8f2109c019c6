#pragma once

#include <filesystem>

#include "odecast/model/model.hpp"

namespace odecast {

/// Models as versioned JSON with a checksum; no code inside. The last member is a 64-bit FNV-1a
/// hash of all bytes before it: every step of that hash is a bijection of its state, so a change of
/// any one byte is seen with certainty.
std::string model_to_text(const Model& model);

/// Throws Error (data) for a text that is truncated, changed, of a newer version, or inconsistent.
/// Sizes are checked against the text before anything of that size is made. `name` stands in
/// messages.
Model model_from_text(const std::string& text, const std::string& name);

/// The text, after it was read: what is written can be read. Throws Error (data) otherwise.
std::string checked_model_text(const Model& model);

/// An older file stays where the model cannot be written, or not be read again.
void save_model(const Model& model, const std::filesystem::path& path);
Model load_model(const std::filesystem::path& path);

}  // namespace odecast
