#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace odecast {

/// Base 64 with padding (RFC 4648, section 4).
std::string base64(std::string_view bytes);

/// SHA-256 (FIPS 180-4).
std::array<std::uint8_t, 32> sha256(std::string_view bytes);

/// 64-bit FNV-1a (Fowler, Noll, Vo): notices change, keeps no secret. `hash` is that of the bytes
/// before these.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = 0xcbf29ce484222325);

/// Sixteen digits.
std::string hexadecimal(std::uint64_t number);

/// A JSON object, as text that ends in "\n}", with the hash of that text as its last member.
std::string sealed(std::string object);
/// Whether the text is what sealed() gave, to the byte.
bool has_seal(std::string_view text);

}  // namespace odecast
