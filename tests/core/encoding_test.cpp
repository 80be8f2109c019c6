#include "odecast/core/encoding.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace odecast {
namespace {

std::string hex(std::string_view text) {
  std::string out;
  for (const auto byte : sha256(text)) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    out += two;
  }
  return out;
}

TEST(EncodingTest, Base64OfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

// Examples of FIPS 180-4 (NIST CAVP), and the lengths around the padding as sha256sum gives them.
TEST(EncodingTest, Sha256OfTheStandard) {
  EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(hex(std::string(63, 'a')),
            "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  EXPECT_EQ(hex(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(EncodingTest, ASealTellsOfAnyChangedByte) {
  const std::string text = sealed("{\n \"a\": 1\n}");
  EXPECT_TRUE(has_seal(text));
  EXPECT_EQ(text.substr(0, 10), "{\n \"a\": 1,");
  for (std::size_t i = 0; i < text.size(); ++i)
    for (int c = 0; c < 256; ++c) {
      std::string changed = text;
      changed[i] = static_cast<char>(c);
      EXPECT_EQ(has_seal(changed), changed == text) << i;
    }
  EXPECT_FALSE(has_seal(text + " "));
  EXPECT_FALSE(has_seal(""));
}

}  // namespace
}  // namespace odecast
