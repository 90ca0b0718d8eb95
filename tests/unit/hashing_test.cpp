#include "base/hashing.hpp"

#include <gtest/gtest.h>

namespace remote {
namespace {

TEST(Sha256, MatchesThePublishedExamples) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += static_cast<char>(i);
  }
  for (std::size_t size = 1; size < 140; ++size) {
    Sha256 digest;
    for (std::size_t at = 0; at < text.size(); at += size) {
      digest.add(std::string_view(text).substr(at, size));
    }
    EXPECT_EQ(digest.hex(), sha256_hex(text)) << size;
  }
}

TEST(Sha256, FieldsDoNotRunTogether) {
  EXPECT_NE(Sha256().add_field("ab").add_field("c").hex(), Sha256().add_field("a").add_field("bc").hex());
}

TEST(Hashing, HmacOfRfc2202) {
  EXPECT_EQ(base64_encode(hmac_sha1("Jefe", "what do ya want for nothing?")), "7/zfauXrL6LSdBbV8YTfnCWafHk=");
  EXPECT_EQ(base64_encode(
                hmac_sha1(std::string(80, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "qkrl4VJy0A6VcFY3zoo7Ve1AIRI=");
}

TEST(Hashing, Base64BothWays) {
  for (const std::string text : {"", "f", "fo", "foo", "foob", "fooba", "foobar", "\xff\xfe"}) {
    EXPECT_EQ(base64_decode(base64_encode(text)), text);
  }
  EXPECT_EQ(base64_encode("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64_decode("Zm9vYmE"), "fooba") << "without the padding";
  EXPECT_EQ(base64_decode("Zm9v===="), "foo") << "with too much of it";
}

TEST(Hashing, WhatIsNoBase64) {
  for (const char* text : {"a b", " Zm9v", "Zm9v\n", "Zm=v", "Zm9v-", "Zm9vY", "Zm9\xc3"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace remote
