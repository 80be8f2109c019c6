#include "odecast/report/markup.hpp"

#include <algorithm>

#include "odecast/core/text.hpp"

namespace odecast {
namespace {

/// Length of the character that `text` starts with if XML allows it, else 0.
std::size_t character_length(std::string_view text) {
  const auto [length, point] = first_character(text);
  return point < 0x20 || point == 0x7f || (point & 0xfffe) == 0xfffe ? 0 : length;
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
