#include "odecast/report/markup.hpp"

#include <algorithm>
#include <cstdint>

namespace odecast {
namespace {

/// Length of the UTF-8 sequence that `text` starts with if XML allows its character, else 0.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t point = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
    point = point << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = point < (length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return overlong || surrogate || point > 0x10ffff || (point & 0xfffe) == 0xfffe ? 0 : length;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    switch (text[0]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\t':
      case '\n':
      case '\r': out += ' '; break;
      default:
        if (length == 0)
          out += "\uFFFD";
        else
          out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace odecast
