#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace odecast::cli_test {

/// The text of a model with a checksum that is right, whatever was changed in it (FNV-1a, 64 bits).
inline std::string sealed(std::string text) {
  const std::string seal = ",\n  \"checksum\": \"fnv1a64:";
  text.resize(text.rfind(seal));
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return text + fmt::format("{}{:016x}\"\n}}\n", seal, hash);
}

}  // namespace odecast::cli_test
