#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "odecast/core/text.hpp"

namespace odecast {

/// What is wrong with the characters, the nesting of tags, quotes and entities, or nothing.
inline std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  if (!is_utf8(text)) return "no UTF-8";
  // The characters of XML 1.0, section 2.2.
  for (std::string_view left = text; !left.empty();) {
    const auto [length, c] = first_character(left);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0xfffe || c == 0xffff)
      return "a forbidden character";
    left.remove_prefix(length);
  }
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '&') {
      const std::size_t end = text.find(';', i);
      const std::string_view name = text.substr(i, end - i + 1);
      if (name != "&amp;" && name != "&lt;" && name != "&gt;" && name != "&quot;" &&
          name != "&#39;")
        return "bad entity";
    }
    if (text[i] != '<') {
      ++i;
      continue;
    }
    const std::size_t end = text.find('>', i);
    if (end == text.npos) return "tag without end";
    std::string_view tag = text.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag.find('<') != tag.npos) return "'<' in a tag";
    std::size_t quotes = 0;
    for (const char c : tag) quotes += c == '"';
    if (quotes % 2 != 0) return "odd number of quotes";
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + std::string(tag);
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      if (open.empty() && end != tag.size() + 1) return "second root";
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() ? "" : "left open: " + open.back();
}

}  // namespace odecast
