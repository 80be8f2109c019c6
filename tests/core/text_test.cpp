#include "odecast/core/text.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "odecast/core/error.hpp"
#include "support/names.hpp"

namespace odecast {
namespace {

RC_GTEST_PROP(TextTest, EveryCodePointIsReadAsItself, ()) {
  const auto c = *rc::gen::suchThat(rc::gen::inRange<std::uint32_t>(0, 0x110000),
                                    [](std::uint32_t p) { return p < 0xd800 || p > 0xdfff; });
  const auto [length, point] = first_character(utf8(c) + "rest");
  RC_ASSERT(point == c);
  RC_ASSERT(length == utf8(c).size());
}

TEST(TextTest, WhatIsNoUtf8IsFound) {
  for (const char* text : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xff", "\xf0\x9f\x98"})
    EXPECT_FALSE(is_utf8(text));
  EXPECT_TRUE(is_utf8("aé…😀"));
}

RC_GTEST_PROP(TextTest, PrintableTextDoesNotActOnATerminal, ()) {
  const std::string text =
      printable(*any_text() + *rc::gen::element<std::string>("", "\xff", "\x9b[31m", "\xc3"));
  RC_ASSERT(is_utf8(text));
  for (std::string_view left = text; !left.empty();) {
    const auto [length, c] = first_character(left);
    RC_ASSERT(c >= 0x20 && !(c >= 0x7f && c < 0xa0) && c != 0x202e && c != 0x2028);
    left.remove_prefix(length);
  }
  RC_ASSERT(printable(text) == text);
}

TEST(TextTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable("ééé", 2), "éé…");
  EXPECT_EQ(printable("ééé", 3), "ééé");
  EXPECT_EQ(shown(std::string(100'000, 'a')), "'" + std::string(60, 'a') + "…'");
  EXPECT_EQ(printable_lines("a\x1b\nb\tc"), "a?\nb?c");
}

TEST(TextTest, ErrorsAreCleanAndShortWhateverTheyQuote) {
  try {
    std::vector<char> many(1'000'000, 'x');
    many.push_back('\n');
    throw_data({"file 'a\x1b[31m'",
                std::string(many.begin(), many.end()),
                "b\rc",
                "Do\u202e it.",
                "line\x07",
                {"Or\n that."}});
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(text, "file 'a?[31m': found " + std::string(500, 'x') +
                        "…, expected b?c.\n  line?\n  1. Do? it.\n  2. Or? that.");
  }
}

TEST(TextTest, NamesThatNoFileCanHold) {
  for (const char* name : {"", " x", "x\t", "a\nb", "a\rb", "\xff"})
    EXPECT_NE(name_fault(name), nullptr) << name;
  EXPECT_NE(name_fault(std::string_view("a\0b", 3)), nullptr);
  for (const char* name : {"x", "a b", "a\tb", "\x1b[31m", "\"", ",", "#", "😀", "t", "nan", "=1"})
    EXPECT_EQ(name_fault(name), nullptr) << name;
}

TEST(TextTest, FieldsAreSpelledAsEachFaceDoes) {
  const std::string text = "`max_iterations`: use `posterior=dropout`, not `a b` or ` or `.";
  EXPECT_EQ(spelled(text, Spelling::names),
            "max_iterations: use posterior=dropout, not `a b` or ` or `.");
  EXPECT_EQ(spelled(text, Spelling::options),
            "--max-iterations: use --posterior dropout, not `a b` or ` or `.");
  EXPECT_EQ(spelled(text, Spelling::keywords),
            "max_iterations=: use posterior=dropout, not `a b` or ` or `.");
}

}  // namespace
}  // namespace odecast
