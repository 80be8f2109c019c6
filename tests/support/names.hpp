#pragma once

#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "odecast/core/text.hpp"

namespace odecast {

/// UTF-8 of a code point, as an oracle beside the decoder: by the table of RFC 3629.
inline std::string utf8(std::uint32_t c) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(b); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f))};
  if (c < 0x10000)
    return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f))};
  return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 0x3f)), byte(0x80 | (c >> 6 & 0x3f)),
          byte(0x80 | (c & 0x3f))};
}

/// Any text in UTF-8: a few pieces, of which most mean something to some file, language or
/// terminal.
inline rc::Gen<std::string> any_text() {
  const auto piece = rc::gen::oneOf(
      rc::gen::element<std::string>("t", "T", "time", "id", "trajectory", "series", "alive", "x",
                                    "x_mean", "_sd", "_observed", "_lower", "_q97.5", "nan", "NaN",
                                    "inf", "1.5", "-1e9", "#", "#x", "\"", "\"\"", "'", ",", ";",
                                    "|", "\t", " ", "  ", "\n", "\r", "\r\n"),
      rc::gen::element<std::string>("\x1b[31m", "\x1b]0;title\x07", "\x01", "\b", "\x7f", "\u009b",
                                    "\u0085", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff",
                                    "\ufffe", "\uffff", "😀", "é", "e\u0301", "λ₁", "نص",
                                    std::string(1, '\0')),
      rc::gen::element<std::string>("\\input{/etc/passwd}", "%", "_", "$", "{", "}", "&", "^", "~",
                                    "\\", "*/", "/*", "//", "?\?/", "<b>", "]]>", "-->", "&amp;",
                                    "</script>", "</title>", "=1+1", "=cmd|' /C calc'!A0",
                                    "@SUM(A1)", "+1", "-1", "../x"),
      rc::gen::map(rc::gen::suchThat(rc::gen::inRange<std::uint32_t>(0, 0x110000),
                                     [](std::uint32_t c) { return c < 0xd800 || c > 0xdfff; }),
                   utf8));
  return rc::gen::map(
      rc::gen::resize(4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(piece))),
      [](const std::vector<std::string>& pieces) {
        std::string text;
        for (const auto& p : pieces) text += p;
        return text;
      });
}

/// A name that files can hold.
inline rc::Gen<std::string> any_name() {
  return rc::gen::suchThat(any_text(), [](const std::string& s) { return !name_fault(s); });
}

/// One to four of them, all different.
inline rc::Gen<std::vector<std::string>> any_names() {
  return rc::gen::suchThat(
      rc::gen::resize(4, rc::gen::container<std::vector<std::string>>(any_name())),
      [](std::vector<std::string> names) {
        std::sort(names.begin(), names.end());
        return !names.empty() && std::adjacent_find(names.begin(), names.end()) == names.end();
      });
}

}  // namespace odecast
